//! Spilling: keeps values in local memory if a kernel has too few registers.
//!
//! Each spilled register has a slot in local memory after the kernel's variables. It is stored after every definition, under the
//! same guard, and loaded before every use. A definition that also writes a predicate may overwrite its guard. Its slot is loaded before
//! it, and stored in all lanes. A value that one cheap operation gives has no slot: [`recompute`] repeats the operation before every
//! use. The new registers for these loads, stores and operations live for one operation, and are never spilled.

mod pressure;
mod recompute;

use super::code::{Arg, Bits, BlockId, Code, Op, VGuard, VReg};
use super::dce;
use super::graph::Graph;
use super::live::{self, LiveRanges};
use pressure::PressureTree;
use recompute::{Recipe, Recipes};
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

    /// Spills at least one value, and further ones until at most `limit` registers are live at any time.
    ///
    /// `ranges` are the live ranges of the code. Returns the limit that the spilling aimed at; `None` if no value can be spilled.
    pub fn spill(&mut self, code: &mut Code, graph: &Graph, ranges: &[LiveRanges], limit: usize) -> Option<usize> {
        let mut tree = PressureTree::of(ranges);
        // Spills at least one value, or the caller would try the same code again.
        let limit = limit.min(tree.peak().checked_sub(1)?);
        let recipes = Recipes::of(code, graph, ranges);
        let costs = costs(code, graph, &recipes);
        let cost = |value: VReg| costs[value.0 as usize];
        let mut candidates = self.candidates(code);
        // Descending costs: the tree takes the cheapest from the end.
        candidates.sort_unstable_by_key(|&value| Reverse((cost(value), value)));
        for value in candidates {
            for vreg in members(code, value) {
                tree.add_candidate(value, &ranges[vreg]);
            }
        }
        let mut round = Round {
            recipes: &recipes,
            roles: vec![Role::Free; code.groups.len()],
            ranges: ranges.to_vec(),
            tree,
        };
        let mut n_spilled = 0;
        while round.tree.peak() > limit {
            let is_settled = |value: VReg| round.roles[value.0 as usize] != Role::Free;
            let Some(value) = round.tree.cheapest_at_peak(is_settled, cost) else {
                break;
            };
            round.spill(code, value);
            if round.roles[value.0 as usize] == Role::Stored {
                self.add_slot(code, value);
            }
            n_spilled += 1;
        }
        let is_recomputed = |vreg: VReg| round.roles.get(vreg.0 as usize) == Some(&Role::Recomputed);
        for block in 0..code.blocks.len() {
            recipes.rewrite(code, block, is_recomputed);
            self.rewrite_block(code, block);
        }
        // Constants that only recipes read now have no reader.
        dce::run(code);
        (n_spilled > 0).then_some(limit)
    }

    /// Returns the values without a slot, by their first registers. Registers created by spilling are no values.
    fn candidates(&self, code: &Code) -> Vec<VReg> {
        let is_value = |vreg: &VReg| code.groups[vreg.0 as usize].0 == *vreg && !self.slots.contains_key(vreg);
        (0..self.first_temp).map(VReg).filter(is_value).collect()
    }

    fn add_slot(&mut self, code: &Code, vreg: VReg) {
        let bytes = 4 * u32::from(code.groups[vreg.0 as usize].1);
        // Aligned for one wide access to the whole value.
        let at = self.local_bytes.next_multiple_of(bytes.next_power_of_two());
        self.slots.insert(vreg, at);
        self.local_bytes = at + bytes;
    }

    /// Loads spilled values before each use, and stores them after each definition.
    fn rewrite_block(&self, code: &mut Code, block: BlockId) {
        let ops = std::mem::take(&mut code.blocks[block].ops);
        let mut out = Vec::with_capacity(ops.len());
        for mut op in ops {
            let shape = op.shape();
            for (slot, &words) in shape.src.iter().enumerate().filter(|(_, words)| **words > 0) {
                let Some(offset) = op.src[slot].as_vreg().and_then(|vreg| self.slot_of(code, vreg)) else {
                    continue;
                };
                let temp = code.new_group(words);
                // Without a guard: every thread has the slot, so the load cannot fault.
                out.extend(transfers(Opcode::Ld, temp, offset, words, &op));
                op.src[slot].bits = Bits::VReg(temp);
            }
            let dst_offset = op
                .dst
                .filter(|_| shape.dst > 0)
                .and_then(|vreg| self.slot_of(code, vreg));
            let Some(offset) = dst_offset else {
                out.push(op);
                continue;
            };
            let temp = code.new_group(shape.dst);
            let stores = transfers(Opcode::St, temp, offset, shape.dst, &op);
            op.dst = Some(temp);
            // Predicates have their registers already: after the operation, any result may be in the register of the guard.
            let overwrites_guard = op.guard != VGuard::ALWAYS && op.pred_defs().next().is_some();
            if overwrites_guard {
                out.extend(transfers(Opcode::Ld, temp, offset, shape.dst, &op));
            }
            out.push(op);
            // Other lanes keep their old value in the slot.
            let guard = if overwrites_guard { VGuard::ALWAYS } else { op.guard };
            out.extend(stores.into_iter().map(|store| store.guard(guard)));
        }
        code.blocks[block].ops = out;
    }

    /// Returns the spill slot of a register; `None` if it has none.
    fn slot_of(&self, code: &Code, vreg: VReg) -> Option<u32> {
        let first = code.groups[vreg.0 as usize].0;
        Some(self.slots.get(&first)? + 4 * (vreg.0 - first.0))
    }
}

/// Role of a value in one round of spilling.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// The value may still be spilled.
    Free,
    /// Its recipe runs before each use.
    Recomputed,
    /// It is the source of such a recipe, so it stays in its register.
    Kept,
    /// It has a slot.
    Stored,
}

/// The choices of one round.
struct Round<'r> {
    recipes: &'r Recipes,
    /// Role of each value, by its first register.
    roles: Vec<Role>,
    /// Live ranges. A kept value is live as long as the values that are computed from it.
    ranges: Vec<LiveRanges>,
    tree: PressureTree,
}

impl Round<'_> {
    fn role(&mut self, code: &Code, vreg: VReg) -> &mut Role {
        &mut self.roles[code.groups[vreg.0 as usize].0.0 as usize]
    }

    /// Spills a value: by its recipe if the sources stay in registers, otherwise with a slot.
    fn spill(&mut self, code: &Code, value: VReg) {
        for vreg in members(code, value) {
            self.tree.remove(&self.ranges[vreg]);
        }
        let Some(kept) = self.kept_sources(code, value) else {
            *self.role(code, value) = Role::Stored;
            return;
        };
        *self.role(code, value) = Role::Recomputed;
        for source in kept {
            *self.role(code, source) = Role::Kept;
            for vreg in members(code, value) {
                let added = live::without(&self.ranges[vreg], &self.ranges[source.0 as usize]);
                self.tree.add(&added);
                live::merge(&mut self.ranges[source.0 as usize], &added);
            }
        }
    }

    /// Returns the registers that the recipe of a value keeps; `None` if this round has spilled one of them.
    fn kept_sources(&mut self, code: &Code, value: VReg) -> Option<Vec<VReg>> {
        let recipe = self.recipes.get(value)?;
        let mut kept = Vec::with_capacity(recipe.kept.len());
        for &source in &recipe.kept {
            let role = *self.role(code, source);
            match role {
                Role::Free | Role::Kept => kept.push(source),
                // Such a constant is moved before each use of the value too.
                Role::Recomputed if self.recipes.is_constant(code, source) => {}
                Role::Recomputed | Role::Stored => return None,
            }
        }
        Some(kept)
    }
}

/// Returns the cost of spilling each group, by its first register: accesses per register. An access in a loop counts 10 times.
fn costs(code: &Code, graph: &Graph, recipes: &Recipes) -> Vec<u64> {
    let mut costs = vec![0; code.groups.len()];
    let first = |vreg: VReg| code.groups[vreg.0 as usize].0.0 as usize;
    for (body, in_cycle) in code.blocks.iter().zip(graph.in_cycles()) {
        let weight = if in_cycle { 10 } else { 1 };
        for vreg in body.ops.iter().flat_map(|op| op.uses().chain(op.defs())) {
            let recipe = recipes.of_register(code, vreg);
            costs[first(vreg)] += weight * access_cost(recipe);
            // A use of the value can become a use of its sources.
            for &source in recipe.into_iter().flat_map(|recipe| &recipe.kept) {
                costs[first(source)] += weight * access_cost(recipes.of_register(code, source));
            }
        }
    }
    for (cost, &(_, length)) in costs.iter_mut().zip(&code.groups) {
        *cost /= u64::from(length);
    }
    costs
}

/// Returns the cost of one access to a spilled value. An operation of a recipe costs a quarter of a load.
fn access_cost(recipe: Option<&Recipe>) -> u64 {
    recipe.map_or(4, |recipe| recipe.cost)
}

/// Returns the indices of the registers of a group.
fn members(code: &Code, first: VReg) -> Range<usize> {
    let index = first.0 as usize;
    index..index + usize::from(code.groups[index].1)
}

/// Returns the loads or stores of a value: one if size and alignment allow, otherwise one per register.
fn transfers(opcode: Opcode, temp: VReg, offset: u32, words: u8, cause: &Op) -> Vec<Op> {
    // Local memory is accessed 4, 8 or 16 bytes at a time, aligned to the size.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::{Block, VPred};

    #[test]
    fn spilled_words_are_moved_once_each_at_aligned_addresses() {
        let cause = Op::machine(Opcode::Nop);
        for opcode in [Opcode::Ld, Opcode::St] {
            for (words, offset) in (1..=4).flat_map(|words| (0..8).map(move |n| (words, 4 * n))) {
                let mut moved = Vec::new();
                for op in transfers(opcode, VReg(8), offset, words, &cause) {
                    let (at, bytes) = (op.mods.offset, op.mods.access.total() as i32);
                    // PTX ISA, "Addresses as Operands": an address is a multiple of the access size.
                    assert_eq!(at % bytes, 0, "{words} words at {offset}: {op:?}");
                    let value = if opcode == Opcode::Ld {
                        op.dst
                    } else {
                        op.src[1].as_vreg()
                    };
                    let first = value.expect("a register").0 - 8;
                    moved.extend((0..bytes / 4).map(|n| (first + n as u32, at + 4 * n)));
                }
                let all: Vec<_> = (0..u32::from(words)).map(|n| (n, (offset + 4 * n) as i32)).collect();
                assert_eq!(moved, all, "{words} words at {offset}");
            }
        }
    }

    #[test]
    fn spilled_value_is_stored_under_the_guard_of_its_definition() {
        let guard = VGuard::pred(VPred(0));
        let definition = Op::machine(Opcode::Mov)
            .dst(VReg(1))
            .src(&[Arg::vreg(VReg(0))])
            .guard(guard);
        let mut code = Code {
            blocks: vec![Block { ops: vec![definition] }],
            n_preds: 1,
            ..Code::default()
        };
        (0..2).for_each(|_| _ = code.new_group(1));
        let mut spill = SpillSlots::new(&code, 0);
        spill.add_slot(&code, VReg(1));
        spill.rewrite_block(&mut code, 0);
        let [value, store] = &code.blocks[0].ops[..] else {
            panic!("{:?}", code.blocks[0].ops)
        };
        assert!(value.is(Opcode::Mov) && store.is(Opcode::St));
        assert_eq!((value.guard, store.guard), (guard, guard));
        assert_eq!(store.src[1].as_vreg(), value.dst);
    }

    #[test]
    fn definition_that_writes_a_predicate_loads_its_slot_first() {
        let definition = Op::machine(Opcode::Shfl)
            .dst(VReg(1))
            .src(&[Arg::vreg(VReg(0))])
            .pdst(VPred(0))
            .guard(VGuard::pred(VPred(0)));
        let mut code = Code {
            blocks: vec![Block { ops: vec![definition] }],
            n_preds: 1,
            ..Code::default()
        };
        (0..2).for_each(|_| _ = code.new_group(1));
        let mut spill = SpillSlots::new(&code, 0);
        spill.add_slot(&code, VReg(1));
        spill.rewrite_block(&mut code, 0);
        let [old, value, store] = &code.blocks[0].ops[..] else {
            panic!("{:?}", code.blocks[0].ops)
        };
        assert!(old.is(Opcode::Ld) && value.is(Opcode::Shfl) && store.is(Opcode::St));
        assert_eq!((old.guard, store.guard), (VGuard::ALWAYS, VGuard::ALWAYS));
        assert_eq!((old.dst, store.src[1].as_vreg()), (value.dst, value.dst));
        assert_eq!(old.mods.offset, store.mods.offset);
    }
}
