//! Spilling: keeps values in local memory if a kernel has too few registers.
//!
//! Each spilled register has a slot in local memory after the kernel's variables. It is stored after every definition, under the
//! same guard, and loaded before every use. The new registers for these loads and stores live for one operation, and are never
//! spilled.

use super::code::{Arg, Bits, BlockId, Code, Op, Word};
use super::graph::Graph;
use super::live::{self, Spans};
use std::collections::HashMap;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space};

/// Values spilled so far.
pub(super) struct Spilled {
    /// First register number created by spilling.
    first_new: u32,
    /// Offset in local memory of each spilled group, by its first register.
    places: HashMap<Word, u32>,
    /// Bytes of local memory, with spill slots.
    pub local_bytes: u32,
}

impl Spilled {
    pub fn new(code: &Code, local_bytes: u32) -> Spilled {
        Spilled {
            first_new: code.groups.len() as u32,
            places: HashMap::new(),
            local_bytes,
        }
    }

    /// Spills values until at most `most` registers are live at any time. Returns false if no value can be spilled.
    pub fn relieve(&mut self, code: &mut Code, most: usize) -> bool {
        let graph = Graph::of(code);
        let spans = live::spans::<live::Words>(code, &graph);
        let weights = self.weights(code, &graph);
        let mut chosen: Vec<Word> = Vec::new();
        let mut gone = vec![false; code.groups.len()];
        let changes = changes(&spans, code);
        loop {
            let (pressure, at) = crowd(&changes, &gone);
            if pressure <= most {
                break;
            }
            let groups = (0..self.first_new).map(Word).filter(|&word| {
                let (first, length) = code.groups[word.0 as usize];
                first == word
                    && !gone[word.0 as usize]
                    && (0..length).any(|n| wanted_at(&spans[word.offset(n).0 as usize], at))
                    && !self.places.contains_key(&word)
            });
            let cost =
                |word: &Word| weights.get(word).copied().unwrap_or(0) / u64::from(code.groups[word.0 as usize].1);
            let Some(word) = groups.min_by_key(|word| (cost(word), *word)) else {
                break;
            };
            gone[word.0 as usize] = true;
            chosen.push(word);
        }
        for &word in &chosen {
            self.place(code, word);
        }
        self.rewrite(code, &gone);
        !chosen.is_empty()
    }

    /// Counts the accesses of each group. An access in a loop counts 10 times.
    fn weights(&self, code: &Code, graph: &Graph) -> HashMap<Word, u64> {
        let mut weights = HashMap::new();
        for (body, in_cycle) in code.blocks.iter().zip(graph.in_cycles()) {
            let weight = if in_cycle { 10 } else { 1 };
            for word in body.ops.iter().flat_map(|op| op.uses().chain(op.defs())) {
                *weights.entry(code.groups[word.0 as usize].0).or_default() += weight;
            }
        }
        weights
    }

    fn place(&mut self, code: &Code, word: Word) {
        let bytes = 4 * u32::from(code.groups[word.0 as usize].1);
        let at = self.local_bytes.next_multiple_of(bytes.next_power_of_two());
        self.places.insert(word, at);
        self.local_bytes = at + bytes;
    }

    fn rewrite(&self, code: &mut Code, gone: &[bool]) {
        for block in 0..code.blocks.len() {
            self.rewrite_block(code, block, gone);
        }
    }

    fn rewrite_block(&self, code: &mut Code, block: BlockId, gone: &[bool]) {
        let ops = std::mem::take(&mut code.blocks[block].ops);
        let mut out = Vec::with_capacity(ops.len());
        for mut op in ops {
            let shape = op.shape();
            for (slot, &words) in shape.src.iter().enumerate().filter(|(_, words)| **words > 0) {
                let Some(place) = op.src[slot].as_word().and_then(|word| self.home(code, word, gone)) else {
                    continue;
                };
                let carrier = code.group(words);
                out.extend(transfers(Opcode::Ld, carrier, place, words, &op));
                op.src[slot].bits = Bits::Word(carrier);
            }
            let home = op
                .dst
                .filter(|_| shape.dst > 0)
                .and_then(|word| self.home(code, word, gone));
            let Some(place) = home else {
                out.push(op);
                continue;
            };
            let carrier = code.group(shape.dst);
            let stores = transfers(Opcode::St, carrier, place, shape.dst, &op);
            op.dst = Some(carrier);
            out.push(op);
            out.extend(stores.into_iter().map(|store| store.when(op.guard)));
        }
        code.blocks[block].ops = out;
    }

    /// Returns the spill slot of a register; `None` if it is not spilled now.
    fn home(&self, code: &Code, word: Word, gone: &[bool]) -> Option<u32> {
        let first = code.groups[word.0 as usize].0;
        // Registers created by this pass have no entry and stay.
        let goes = gone.get(first.0 as usize).copied().unwrap_or(false);
        goes.then(|| self.places[&first] + 4 * (word.0 - first.0))
    }
}

/// Returns start and end of each live range in time order: time, change of the live count, and group.
fn changes(spans: &[Spans], code: &Code) -> Vec<(u32, i32, Word)> {
    let mut changes: Vec<(u32, i32, Word)> = Vec::new();
    for (list, &(group, _)) in spans.iter().zip(&code.groups) {
        changes.extend(
            list.iter()
                .flat_map(|&(start, end)| [(start, 1, group), (end, -1, group)]),
        );
    }
    changes.sort_unstable();
    changes
}

/// Returns the maximum number of live registers and its time, without spilled registers.
fn crowd(changes: &[(u32, i32, Word)], gone: &[bool]) -> (usize, u32) {
    let (mut now, mut most) = (0, (0, 0));
    for &(time, change, _) in changes.iter().filter(|(.., group)| !gone[group.0 as usize]) {
        now += change;
        if now > most.0 {
            most = (now, time);
        }
    }
    (most.0 as usize, most.1)
}

fn wanted_at(spans: &[(u32, u32)], time: u32) -> bool {
    spans.iter().any(|&(start, end)| (start..end).contains(&time))
}

/// Returns the loads or stores of a value: one if size and alignment allow, otherwise one per register.
fn transfers(opcode: Opcode, carrier: Word, place: u32, words: u8, cause: &Op) -> Vec<Op> {
    let whole = matches!(words, 1 | 2 | 4) && place.is_multiple_of(4 * u32::from(words));
    let (count, each) = if whole { (1, words) } else { (words, 1) };
    let transfer = |n: u8| {
        let word = carrier.offset(n * each);
        let mut op = match opcode {
            Opcode::Ld => Op::row(opcode).dst(word).src(&[Arg::ZERO]),
            _ => Op::row(opcode).src(&[Arg::ZERO, Arg::word(word)]),
        };
        op.line = cause.line;
        op.mods(|mods| {
            mods.space = Space::Local;
            mods.offset = (place + 4 * u32::from(n * each)) as i32;
            mods.access = Access {
                count: each,
                ..Access::one(4)
            };
        })
    };
    (0..count).map(transfer).collect()
}
