//! Register allocation: virtual registers to R0..R254.
//!
//! Registers of one value become consecutive and aligned. Registers that are live at the same time never share. The register
//! count is the highest number plus one, and at least 8. Source and destination of a move share a register if possible, and the
//! move is removed.
//!
//! A bundle is a set of registers for up to four consecutive slots. Registers of several groups share a slot if their live
//! ranges are disjoint.

use super::code::{Bits, Code, Op, Word};
use super::graph::Graph;
use super::live::{self, Spans};
use super::spill::Spilled;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Reg;

/// Result of the allocation.
pub(super) struct Allocation {
    /// Physical register of each virtual register; RZ for one without a value.
    pub registers: Vec<Reg>,
    /// Registers per thread.
    pub count: u32,
}

/// Allocates at most `most` registers, and spills values if they are too few.
///
/// # Errors
///
/// Returns the number of registers needed if spilling does not help.
pub(super) fn within(code: &mut Code, most: usize, spilled: &mut Spilled) -> Result<Allocation, usize> {
    // Spill slots need registers for their loads, so the spill target can be below `most`.
    let mut aim = most;
    loop {
        let wanted = match assigned(code) {
            Ok(allocation) if allocation.count as usize <= most => {
                drop_moves(code, &allocation.registers);
                return Ok(allocation);
            }
            Ok(allocation) => allocation.count as usize,
            Err(wanted) => wanted,
        };
        while !spilled.relieve(code, aim) {
            aim = aim.checked_sub(1).ok_or(wanted)?;
        }
    }
}

fn assigned(code: &Code) -> Result<Allocation, usize> {
    let spans = live::spans::<live::Words>(code, &Graph::of(code));
    let mut bundles = Bundles::of(code, spans);
    for mv in moves(code) {
        bundles.join(mv);
    }
    bundles.assign()
}

/// Minimum register count of a kernel: the allocation unit of the hardware.
const LEAST: usize = 8;

/// Maximum width of a bundle with several groups.
const SLOTS: usize = 4;

/// Maximum width of a group: coordinates of a five-dimensional tile, aligned to 8.
const WIDEST: usize = 8;

/// Registers that must be allocated at fixed distances.
#[derive(Default)]
struct Bundle {
    /// Live ranges in each slot.
    slots: [Spans; WIDEST],
    /// Registers, with their slots.
    words: Vec<(Word, usize)>,
    /// Required alignments: slot and power of two.
    aligned: Vec<(usize, usize)>,
}

impl Bundle {
    fn width(&self) -> usize {
        self.words.iter().map(|&(_, slot)| slot + 1).max().unwrap_or(0)
    }

    fn alignment(&self) -> usize {
        self.aligned.iter().map(|&(_, align)| align).max().unwrap_or(1)
    }

    fn start(&self) -> u32 {
        self.slots
            .iter()
            .filter_map(|spans| spans.first())
            .map(|span| span.0)
            .min()
            .unwrap_or(0)
    }
}

/// All bundles of a kernel.
struct Bundles {
    bundles: Vec<Bundle>,
    /// Minimum register count of the kernel.
    least: usize,
    /// Bundle and slot of each register.
    places: Vec<Option<(usize, usize)>>,
}

impl Bundles {
    fn of(code: &Code, mut spans: Vec<Spans>) -> Bundles {
        let joined = joined_words(code);
        let mut bundles = Bundles {
            bundles: Vec::new(),
            places: vec![None; spans.len()],
            least: code.least_registers,
        };
        for word in (0..spans.len() as u32).map(Word) {
            let (first, words) = if joined[word.0 as usize] {
                code.groups[word.0 as usize]
            } else {
                (word, 1)
            };
            if first != word || (0..words).all(|n| spans[word.offset(n).0 as usize].is_empty()) {
                continue;
            }
            let mut bundle = Bundle {
                aligned: vec![(0, usize::from(words).next_power_of_two())],
                ..Bundle::default()
            };
            for n in 0..words {
                let member = word.offset(n);
                bundle.slots[usize::from(n)] = std::mem::take(&mut spans[member.0 as usize]);
                bundle.words.push((member, n.into()));
                bundles.places[member.0 as usize] = Some((bundles.bundles.len(), n.into()));
            }
            bundles.bundles.push(bundle);
        }
        bundles
    }

    /// Merges the bundles of a move's source and destination, so that both share a slot. Does nothing if that is impossible.
    fn join(&mut self, (to, from): (Word, Word)) {
        let (Some((a, slot_a)), Some((b, slot_b))) = (self.places[to.0 as usize], self.places[from.0 as usize]) else {
            return;
        };
        if a == b {
            return;
        }
        let Some((shift_a, shift_b)) = self.fit(a, slot_a, b, slot_b) else {
            return;
        };
        let gone = std::mem::take(&mut self.bundles[b]);
        self.shift(a, shift_a);
        let bundle = &mut self.bundles[a];
        for (slot, spans) in gone.slots.iter().enumerate().filter(|(_, spans)| !spans.is_empty()) {
            live::merge(&mut bundle.slots[slot + shift_b], spans);
        }
        bundle
            .aligned
            .extend(gone.aligned.iter().map(|&(slot, align)| (slot + shift_b, align)));
        for (word, slot) in gone.words {
            bundle.words.push((word, slot + shift_b));
            self.places[word.0 as usize] = Some((a, slot + shift_b));
        }
    }

    /// Returns the shifts of both bundles that bring the two registers into one slot.
    fn fit(&self, a: usize, slot_a: usize, b: usize, slot_b: usize) -> Option<(usize, usize)> {
        let (first, second) = (&self.bundles[a], &self.bundles[b]);
        let least = slot_a.max(slot_b);
        (least..SLOTS)
            .map(|slot| (slot - slot_a, slot - slot_b))
            .find(|&(shift_a, shift_b)| {
                let narrow = first.width() + shift_a <= SLOTS && second.width() + shift_b <= SLOTS;
                let shifted = |bundle: &Bundle, shift: usize| {
                    bundle
                        .aligned
                        .iter()
                        .all(|&(slot, align)| (slot + shift).is_multiple_of(align))
                };
                narrow && shifted(first, shift_a) && shifted(second, shift_b) && self.apart(a, shift_a, b, shift_b)
            })
    }

    fn apart(&self, a: usize, shift_a: usize, b: usize, shift_b: usize) -> bool {
        (0..SLOTS).all(|slot| {
            let of =
                |bundle: usize, shift: usize| slot.checked_sub(shift).map(|slot| &self.bundles[bundle].slots[slot]);
            match (of(a, shift_a), of(b, shift_b)) {
                (Some(first), Some(second)) => !live::overlap(first, second),
                _ => true,
            }
        })
    }

    fn shift(&mut self, bundle: usize, by: usize) {
        let moved = &mut self.bundles[bundle];
        moved.slots.rotate_right(by);
        for (slot, _) in &mut moved.aligned {
            *slot += by;
        }
        for (word, slot) in &mut moved.words {
            *slot += by;
            self.places[word.0 as usize] = Some((bundle, *slot));
        }
    }

    /// Assigns by first fit in two orders, by time and by width, and keeps the result with fewer registers.
    fn assign(&self) -> Result<Allocation, usize> {
        let mut by_time: Vec<usize> = (0..self.bundles.len())
            .filter(|&n| self.bundles[n].width() > 0)
            .collect();
        by_time.sort_by_key(|&n| self.bundles[n].start());
        let mut by_width = by_time.clone();
        by_width.sort_by_key(|&n| WIDEST - self.bundles[n].width().next_power_of_two());
        let [first, second] = [by_time, by_width].map(|order| self.first_fit(&order));
        let best = if second.1 < first.1 { second } else { first };
        if best.1 > Reg::COUNT {
            return Err(best.1);
        }
        let registers = best
            .0
            .into_iter()
            .map(|place| place.map_or(Reg::ZERO, |n| Reg(n as u8)))
            .collect();
        Ok(Allocation {
            registers,
            count: best.1.max(LEAST).max(self.least) as u32,
        })
    }

    fn first_fit(&self, order: &[usize]) -> (Vec<Option<usize>>, usize) {
        let mut file: Vec<Spans> = Vec::new();
        let mut registers = vec![None; self.places.len()];
        for &n in order {
            let bundle = &self.bundles[n];
            let mut base = 0;
            while !fits(&file, bundle, base) {
                base += bundle.alignment();
            }
            for (slot, spans) in bundle.slots.iter().enumerate().filter(|(_, spans)| !spans.is_empty()) {
                file.resize(file.len().max(base + slot + 1), Spans::new());
                live::merge(&mut file[base + slot], spans);
            }
            for &(word, slot) in &bundle.words {
                registers[word.0 as usize] = Some(base + slot);
            }
        }
        let highest = registers.iter().flatten().max();
        let count = highest.map_or(0, |highest| highest + 1);
        (registers, count)
    }
}

fn fits(file: &[Spans], bundle: &Bundle, base: usize) -> bool {
    let taken = |slot: usize| file.get(base + slot).map_or(&[][..], Vec::as_slice);
    bundle
        .slots
        .iter()
        .enumerate()
        .all(|(slot, spans)| !live::overlap(taken(slot), spans))
}

/// Marks registers whose group is used as one value by an operation.
fn joined_words(code: &Code) -> Vec<bool> {
    let mut joined = vec![false; code.groups.len()];
    for op in code.ops() {
        let shape = op.shape();
        let sources = op.src.iter().map(|arg| arg.as_word()).zip(shape.src);
        for (word, _) in sources.chain([(op.dst, shape.dst)]).filter(|&(_, words)| words > 1) {
            let Some(word) = word else { continue };
            let (first, length) = code.groups[word.0 as usize];
            for n in 0..length {
                joined[first.offset(n).0 as usize] = true;
            }
        }
    }
    joined
}

/// Returns all moves between registers. Moves in loops come first, because they run most often.
fn moves(code: &Code) -> Vec<(Word, Word)> {
    let graph = Graph::of(code);
    let mut found: Vec<(bool, Word, Word)> = Vec::new();
    for (body, in_cycle) in code.blocks.iter().zip(graph.in_cycles()) {
        let straight = !in_cycle;
        found.extend(body.ops.iter().filter_map(|op| Some((straight, op.dst?, moved(op)?))));
    }
    found.sort_by_key(|&(straight, ..)| straight);
    found.into_iter().map(|(_, to, from)| (to, from)).collect()
}

fn moved(op: &Op) -> Option<Word> {
    match op.src[0].bits {
        Bits::Word(word) if op.is(Opcode::Mov) && op.src[0].is_plain() => Some(word),
        _ => None,
    }
}

/// Removes moves from a register to itself.
fn drop_moves(code: &mut Code, registers: &[Reg]) {
    for block in &mut code.blocks {
        block.ops.retain(|op| {
            let (Some(to), Some(from)) = (op.dst, moved(op)) else {
                return true;
            };
            registers[to.0 as usize] != registers[from.0 as usize]
        });
    }
}
