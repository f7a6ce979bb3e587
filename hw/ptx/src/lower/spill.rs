//! Spilling: keeps values in local memory if a kernel has too few registers.
//!
//! Each spilled register has a slot in local memory after the kernel's variables. It is stored after every definition, under the
//! same guard, and loaded before every use. The new registers for these loads and stores live for one operation, and are never
//! spilled.

mod pressure;

use super::code::{Arg, Bits, BlockId, Code, Op, VReg};
use super::graph::Graph;
use super::live::LiveRanges;
use pressure::PressureTree;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
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

    /// Spills values until at most `limit` registers are live at any time, and at least one value. Returns the number of live
    /// registers that the spilling aimed at, or `None` if no value can be spilled.
    ///
    /// `ranges` are the live ranges of the code.
    pub fn spill(&mut self, code: &mut Code, graph: &Graph, ranges: &[LiveRanges], limit: usize) -> Option<usize> {
        let mut tree = PressureTree::of(ranges);
        // Spills at least one value, or the caller would try the same code again.
        let limit = limit.min(tree.peak().checked_sub(1)?);
        let costs = costs(code, graph);
        let cost = |value: VReg| costs[value.0 as usize];
        let mut candidates = self.candidates(code);
        candidates.sort_unstable_by_key(|&value| Reverse((cost(value), value)));
        for value in candidates {
            for vreg in members(code, value) {
                tree.add_candidate(value, &ranges[vreg]);
            }
        }
        let mut spilled: Vec<VReg> = Vec::new();
        let mut is_spilled = vec![false; code.groups.len()];
        while tree.peak() > limit {
            let Some(value) = tree.cheapest_at_peak(&is_spilled, cost) else {
                break;
            };
            for vreg in members(code, value) {
                tree.remove(&ranges[vreg]);
            }
            is_spilled[value.0 as usize] = true;
            spilled.push(value);
        }
        for &value in &spilled {
            self.add_slot(code, value);
        }
        self.rewrite(code, &is_spilled);
        (!spilled.is_empty()).then_some(limit)
    }

    /// Returns the values without a slot, by their first registers. Registers created by spilling are no values.
    fn candidates(&self, code: &Code) -> Vec<VReg> {
        let is_value = |vreg: &VReg| code.groups[vreg.0 as usize].0 == *vreg && !self.slots.contains_key(vreg);
        (0..self.first_temp).map(VReg).filter(is_value).collect()
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

/// Returns the cost of spilling each group, by its first register: accesses per register. An access in a loop counts 10 times.
fn costs(code: &Code, graph: &Graph) -> Vec<u64> {
    let mut costs = vec![0; code.groups.len()];
    for (body, in_cycle) in code.blocks.iter().zip(graph.in_cycles()) {
        let weight = if in_cycle { 10 } else { 1 };
        for vreg in body.ops.iter().flat_map(|op| op.uses().chain(op.defs())) {
            costs[code.groups[vreg.0 as usize].0.0 as usize] += weight;
        }
    }
    for (cost, &(_, length)) in costs.iter_mut().zip(&code.groups) {
        *cost /= u64::from(length);
    }
    costs
}

/// Returns the indices of the registers of a group.
fn members(code: &Code, first: VReg) -> Range<usize> {
    let index = first.0 as usize;
    index..index + usize::from(code.groups[index].1)
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
