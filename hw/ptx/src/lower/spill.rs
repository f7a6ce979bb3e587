//! Spilling: keeps values in local memory if a kernel has too few registers.
//!
//! Each spilled register has a slot in local memory after the kernel's variables. It is stored after every definition, under the
//! same guard, and loaded before every use. The new registers for these loads and stores live for one operation, and are never
//! spilled.

use super::code::{Arg, Bits, BlockId, Code, Op, VReg};
use super::graph::Graph;
use super::live::{self, LiveRanges};
use std::collections::HashMap;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space};

/// Values spilled so far.
pub(super) struct SpillSlots {
    /// First register number created by spilling.
    first_temp: u32,
    /// Offset in local memory of each spilled group, by its first register.
    slots: HashMap<VReg, u32>,
    /// Bytes of local memory, with spill slots.
    pub local_bytes: u32,
}

impl SpillSlots {
    pub fn new(code: &Code, local_bytes: u32) -> SpillSlots {
        SpillSlots {
            first_temp: code.groups.len() as u32,
            slots: HashMap::new(),
            local_bytes,
        }
    }

    /// Spills values until at most `limit` registers are live at any time. Returns false if no value can be spilled.
    pub fn spill_until(&mut self, code: &mut Code, limit: usize) -> bool {
        let graph = Graph::of(code);
        let ranges = live::live_ranges::<live::GeneralRegs>(code, &graph);
        let weights = self.weights(code, &graph);
        let mut spilled: Vec<VReg> = Vec::new();
        let mut is_spilled = vec![false; code.groups.len()];
        let changes = changes(&ranges, code);
        loop {
            let (pressure, at) = peak_pressure(&changes, &is_spilled);
            if pressure <= limit {
                break;
            }
            let groups = (0..self.first_temp).map(VReg).filter(|&vreg| {
                let (first, length) = code.groups[vreg.0 as usize];
                first == vreg
                    && !is_spilled[vreg.0 as usize]
                    && (0..length).any(|n| is_live_at(&ranges[vreg.offset(n).0 as usize], at))
                    && !self.slots.contains_key(&vreg)
            });
            let cost =
                |vreg: &VReg| weights.get(vreg).copied().unwrap_or(0) / u64::from(code.groups[vreg.0 as usize].1);
            let Some(vreg) = groups.min_by_key(|vreg| (cost(vreg), *vreg)) else {
                break;
            };
            is_spilled[vreg.0 as usize] = true;
            spilled.push(vreg);
        }
        for &vreg in &spilled {
            self.add_slot(code, vreg);
        }
        self.rewrite(code, &is_spilled);
        !spilled.is_empty()
    }

    /// Counts the accesses of each group. An access in a loop counts 10 times.
    fn weights(&self, code: &Code, graph: &Graph) -> HashMap<VReg, u64> {
        let mut weights = HashMap::new();
        for (body, in_cycle) in code.blocks.iter().zip(graph.in_cycles()) {
            let weight = if in_cycle { 10 } else { 1 };
            for vreg in body.ops.iter().flat_map(|op| op.uses().chain(op.defs())) {
                *weights.entry(code.groups[vreg.0 as usize].0).or_default() += weight;
            }
        }
        weights
    }

    fn add_slot(&mut self, code: &Code, vreg: VReg) {
        let bytes = 4 * u32::from(code.groups[vreg.0 as usize].1);
        let at = self.local_bytes.next_multiple_of(bytes.next_power_of_two());
        self.slots.insert(vreg, at);
        self.local_bytes = at + bytes;
    }

    fn rewrite(&self, code: &mut Code, is_spilled: &[bool]) {
        for block in 0..code.blocks.len() {
            self.rewrite_block(code, block, is_spilled);
        }
    }

    fn rewrite_block(&self, code: &mut Code, block: BlockId, is_spilled: &[bool]) {
        let ops = std::mem::take(&mut code.blocks[block].ops);
        let mut out = Vec::with_capacity(ops.len());
        for mut op in ops {
            let shape = op.shape();
            for (slot, &words) in shape.src.iter().enumerate().filter(|(_, words)| **words > 0) {
                let Some(offset) = op.src[slot]
                    .as_vreg()
                    .and_then(|vreg| self.slot_of(code, vreg, is_spilled))
                else {
                    continue;
                };
                let temp = code.new_group(words);
                out.extend(transfers(Opcode::Ld, temp, offset, words, &op));
                op.src[slot].bits = Bits::VReg(temp);
            }
            let dst_offset = op
                .dst
                .filter(|_| shape.dst > 0)
                .and_then(|vreg| self.slot_of(code, vreg, is_spilled));
            let Some(offset) = dst_offset else {
                out.push(op);
                continue;
            };
            let temp = code.new_group(shape.dst);
            let stores = transfers(Opcode::St, temp, offset, shape.dst, &op);
            op.dst = Some(temp);
            out.push(op);
            out.extend(stores.into_iter().map(|store| store.guard(op.guard)));
        }
        code.blocks[block].ops = out;
    }

    /// Returns the spill slot of a register; `None` if it is not spilled now.
    fn slot_of(&self, code: &Code, vreg: VReg, is_spilled: &[bool]) -> Option<u32> {
        let first = code.groups[vreg.0 as usize].0;
        // Registers created by this pass have no entry and stay.
        let has_slot = is_spilled.get(first.0 as usize).copied().unwrap_or(false);
        has_slot.then(|| self.slots[&first] + 4 * (vreg.0 - first.0))
    }
}

/// Returns start and end of each live range in time order: time, change of the live count, and group.
fn changes(ranges: &[LiveRanges], code: &Code) -> Vec<(u32, i32, VReg)> {
    let mut changes: Vec<(u32, i32, VReg)> = Vec::new();
    for (list, &(group, _)) in ranges.iter().zip(&code.groups) {
        changes.extend(
            list.iter()
                .flat_map(|&(start, end)| [(start, 1, group), (end, -1, group)]),
        );
    }
    changes.sort_unstable();
    changes
}

/// Returns the maximum number of live registers and its time, without spilled registers.
fn peak_pressure(changes: &[(u32, i32, VReg)], is_spilled: &[bool]) -> (usize, u32) {
    let (mut now, mut peak) = (0, (0, 0));
    for &(time, change, _) in changes.iter().filter(|(.., group)| !is_spilled[group.0 as usize]) {
        now += change;
        if now > peak.0 {
            peak = (now, time);
        }
    }
    (peak.0 as usize, peak.1)
}

fn is_live_at(ranges: &[(u32, u32)], time: u32) -> bool {
    ranges.iter().any(|&(start, end)| (start..end).contains(&time))
}

/// Returns the loads or stores of a value: one if size and alignment allow, otherwise one per register.
fn transfers(opcode: Opcode, temp: VReg, offset: u32, words: u8, cause: &Op) -> Vec<Op> {
    let whole = matches!(words, 1 | 2 | 4) && offset.is_multiple_of(4 * u32::from(words));
    let (count, each) = if whole { (1, words) } else { (words, 1) };
    let transfer = |n: u8| {
        let vreg = temp.offset(n * each);
        let mut op = match opcode {
            Opcode::Ld => Op::machine(opcode).dst(vreg).src(&[Arg::ZERO]),
            _ => Op::machine(opcode).src(&[Arg::ZERO, Arg::vreg(vreg)]),
        };
        op.line = cause.line;
        op.mods(|mods| {
            mods.space = Space::Local;
            mods.offset = (offset + 4 * u32::from(n * each)) as i32;
            mods.access = Access {
                count: each,
                ..Access::one(4)
            };
        })
    };
    (0..count).map(transfer).collect()
}
