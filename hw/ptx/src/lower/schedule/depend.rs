//! Dependencies: results before their readers, and accesses to the same memory in order.

use super::latency;
use crate::lower::code::{Op, OpKind, VReg};
use std::collections::{HashMap, HashSet};
use warpwave_isa::inst::CacheOp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

/// Returns for each operation its dependents, with the distance in cycles.
pub(in crate::lower) fn dependencies(region: &[Op]) -> Vec<Vec<(usize, u32)>> {
    let mut edges = vec![Vec::new(); region.len()];
    let mut vregs = Accesses::default();
    let mut preds = Accesses::default();
    for (n, op) in region.iter().enumerate() {
        op.uses().for_each(|vreg| vregs.read(&mut edges, region, n, vreg));
        op.pred_uses().for_each(|pred| preds.read(&mut edges, region, n, pred));
        // A guarded result keeps the old value where the guard is false, so the old value is an input.
        if op.guard.pred.is_some() {
            op.defs().for_each(|vreg| vregs.read(&mut edges, region, n, vreg));
            op.pred_defs().for_each(|pred| preds.read(&mut edges, region, n, pred));
        }
        // A copy after all other readers of its source can share the source's register.
        if op.is(Opcode::Mov) {
            op.uses().for_each(|vreg| vregs.follow_readers(&mut edges, n, vreg));
        }
        op.defs().for_each(|vreg| vregs.write(&mut edges, n, vreg));
        op.pred_defs().for_each(|pred| preds.write(&mut edges, n, pred));
    }
    memory_dependencies(region, &mut edges);
    keep_behind_prefetches(region, &mut edges);
    edges
}

/// Adds edges from each prefetch to the loads after it. Behind the load of its line, a prefetch would hide nothing.
fn keep_behind_prefetches(region: &[Op], edges: &mut [Vec<(usize, u32)>]) {
    let mut prefetches = Vec::new();
    for (n, op) in region.iter().enumerate() {
        if op.is(Opcode::Cctl) {
            prefetches.push(n);
        } else if op.is(Opcode::Ld) {
            prefetches.iter().for_each(|&prefetch| edges[prefetch].push((n, 1)));
        }
    }
}

/// Last writer and later readers of each register.
struct Accesses<R> {
    writer: HashMap<R, usize>,
    readers: HashMap<R, Vec<usize>>,
}

impl<R> Default for Accesses<R> {
    fn default() -> Self {
        Accesses {
            writer: HashMap::new(),
            readers: HashMap::new(),
        }
    }
}

impl<R: Copy + Eq + std::hash::Hash> Accesses<R> {
    fn read(&mut self, edges: &mut [Vec<(usize, u32)>], region: &[Op], n: usize, register: R) {
        if let Some(&writer) = self.writer.get(&register) {
            edges[writer].push((n, latency(&region[writer])));
        }
        self.readers.entry(register).or_default().push(n);
    }

    fn follow_readers(&self, edges: &mut [Vec<(usize, u32)>], n: usize, register: R) {
        let readers = self.readers.get(&register).map_or(&[][..], Vec::as_slice);
        readers
            .iter()
            .filter(|&&other| other != n)
            .for_each(|&other| edges[other].push((n, 1)));
    }

    fn write(&mut self, edges: &mut [Vec<(usize, u32)>], n: usize, register: R) {
        // Only the order matters for a write after a read or a write, so the distance is one cycle.
        let readers = self.readers.remove(&register).unwrap_or_default();
        let before = readers.into_iter().chain(self.writer.insert(register, n));
        before
            .filter(|&other| other != n)
            .for_each(|other| edges[other].push((n, 1)));
    }
}

/// Adds edges between accesses to the same memory, unless both read.
fn memory_dependencies(region: &[Op], edges: &mut [Vec<(usize, u32)>]) {
    let written: HashSet<VReg> = region.iter().flat_map(Op::defs).collect();
    let mut accesses: Vec<(usize, MemoryUse)> = Vec::new();
    let mut writes: Vec<(usize, MemoryUse)> = Vec::new();
    for (n, op) in region.iter().enumerate() {
        let Some(access) = MemoryUse::of(op) else { continue };
        // A read waits for writes only.
        for (before, other) in if access.writes { &accesses } else { &writes }.iter().rev() {
            if access.conflicts_with(other) && !are_disjoint(op, &region[*before], &written) {
                edges[*before].push((n, 1));
                // The earlier accesses come before this one already.
                if other.writes && !is_plain(&region[*before], &written) && access.spaces & !other.spaces == 0 {
                    break;
                }
            }
        }
        if access.writes {
            writes.push((n, access));
        }
        accesses.push((n, access));
    }
}

/// Memory that an operation accesses, with one bit per state space.
#[derive(Clone, Copy)]
pub(in crate::lower) struct MemoryUse {
    spaces: u8,
    pub writes: bool,
}

const GLOBAL: u8 = 1;
const SHARED: u8 = 2;
const LOCAL: u8 = 4;

impl MemoryUse {
    /// Returns the memory that an operation accesses; `None` if it needs no order.
    pub fn of(op: &Op) -> Option<MemoryUse> {
        let OpKind::Machine(opcode) = op.kind else { return None };
        let spaces = match op.mods.space {
            _ if opcode == Opcode::Ldgsts => GLOBAL | SHARED,
            space => bits(space),
        };
        let writes = match opcode {
            // Read-only data does not change while a kernel runs.
            Opcode::Ld if op.mods.cache == CacheOp::ReadOnly => return None,
            // Volatile loads keep their order among each other, as writes do.
            Opcode::Ld => op.mods.cache == CacheOp::Volatile,
            Opcode::Ldsm | Opcode::Tex | Opcode::Suld => false,
            Opcode::St | Opcode::Atom | Opcode::Red | Opcode::Ldgsts | Opcode::Sust => true,
            _ => return None,
        };
        (spaces != 0).then_some(MemoryUse { spaces, writes })
    }

    /// True if the operation may access memory of the space.
    pub fn includes(&self, space: Space) -> bool {
        self.spaces & bits(space) != 0
    }

    fn conflicts_with(&self, other: &MemoryUse) -> bool {
        self.spaces & other.spaces != 0 && (self.writes || other.writes)
    }
}

fn bits(space: Space) -> u8 {
    match space {
        Space::Global => GLOBAL,
        // A cluster address may name the CTA's own shared memory.
        Space::Shared | Space::Cluster => SHARED,
        Space::Local => LOCAL,
        Space::Generic => GLOBAL | SHARED | LOCAL,
        // Constants do not change while a kernel runs.
        Space::Const => 0,
    }
}

/// True if two plain accesses have the same unchanged base and disjoint displacements.
fn are_disjoint(a: &Op, b: &Op, written: &HashSet<VReg>) -> bool {
    let ends = |op: &Op| i64::from(op.mods.offset) + i64::from(op.mods.access.total());
    let same_base = a.src[0] == b.src[0] && a.mods.space == b.mods.space;
    let disjoint = ends(a) <= b.mods.offset.into() || ends(b) <= a.mods.offset.into();
    same_base && disjoint && is_plain(a, written) && is_plain(b, written)
}

/// True for a load or store without further effect, at an address that the region does not write.
fn is_plain(op: &Op, written: &HashSet<VReg>) -> bool {
    let fixed = op.src[0]
        .as_vreg()
        // An address has one word or two.
        .is_none_or(|vreg| !written.contains(&vreg) && !written.contains(&vreg.offset(1)));
    (op.is(Opcode::Ld) || op.is(Opcode::St)) && op.mods.cache != CacheOp::Volatile && fixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::Arg;
    use warpwave_isa::space;

    /// An access to `bytes` bytes at `offset` from one pointer.
    fn access(opcode: Opcode, offset: i32, bytes: u8) -> Op {
        let pointer = Arg::vreg(VReg(0));
        let op = match opcode {
            Opcode::Ld => Op::machine(opcode).dst(VReg(8)).src(&[pointer]),
            _ => Op::machine(opcode).src(&[pointer, Arg::vreg(VReg(4))]),
        };
        op.mods(|mods| {
            mods.offset = offset;
            mods.access = match bytes {
                16 => space::Access {
                    count: 4,
                    ..space::Access::one(4)
                },
                _ => space::Access::one(bytes),
            };
        })
    }

    #[test]
    fn accesses_of_one_pointer_keep_their_order_where_their_bytes_overlap() {
        let all = [1, 2, 4, 8, 16].map(|bytes| (0..32).step_by(bytes).map(move |offset| (offset, bytes as u8)));
        let all: Vec<(i32, u8)> = all.into_iter().flatten().collect();
        for [first, second] in [
            [Opcode::St, Opcode::Ld],
            [Opcode::Ld, Opcode::St],
            [Opcode::St, Opcode::St],
        ] {
            for &(a, a_bytes) in &all {
                for &(b, b_bytes) in &all {
                    let edges = dependencies(&[access(first, a, a_bytes), access(second, b, b_bytes)]);
                    let is_ordered = edges[0].iter().any(|&(to, _)| to == 1);
                    let overlap = (a..a + i32::from(a_bytes)).any(|byte| (b..b + i32::from(b_bytes)).contains(&byte));
                    assert_eq!(is_ordered, overlap, "{first:?} {a_bytes}@{a}, {second:?} {b_bytes}@{b}");
                }
            }
        }
    }

    #[test]
    fn loads_stay_behind_the_prefetches_before_them() {
        let (prefetch, load) = (access(Opcode::Cctl, 0, 4), access(Opcode::Ld, 0, 4));
        assert_eq!(dependencies(&[prefetch, load])[0], [(1, 1)]);
        assert_eq!(dependencies(&[load, prefetch])[0], []);
    }

    #[test]
    fn volatile_accesses_and_atomics_keep_their_order_with_other_addresses() {
        let plain = access(Opcode::St, 8, 4);
        let volatile = access(Opcode::Ld, 0, 4).mods(|mods| mods.cache = CacheOp::Volatile);
        for other in [volatile, access(Opcode::Atom, 0, 4), access(Opcode::Red, 0, 4)] {
            for [first, second] in [[other, plain], [plain, other]] {
                let edges = dependencies(&[first, second]);
                assert!(edges[0].iter().any(|&(to, _)| to == 1), "{first:?}, {second:?}");
            }
        }
    }

    #[test]
    fn loads_of_read_only_data_pass_stores() {
        let read_only = access(Opcode::Ld, 0, 4).mods(|mods| mods.cache = CacheOp::ReadOnly);
        let store = access(Opcode::St, 0, 4);
        for pair in [[read_only, store], [store, read_only]] {
            assert_eq!(dependencies(&pair)[0], []);
        }
    }

    #[test]
    fn accesses_keep_their_order_if_the_pointer_changes_between_them() {
        let pointer = Arg::vreg(VReg(0));
        let step = Op::machine(Opcode::Iadd3).dst(VReg(0)).src(&[pointer, Arg::imm(8)]);
        let edges = dependencies(&[access(Opcode::St, 8, 4), step, access(Opcode::Ld, 0, 4)]);
        assert!(edges[0].iter().any(|&(to, _)| to == 2));
    }
}
