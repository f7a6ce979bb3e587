//! Dependencies: results before their readers, and accesses to the same memory in order.

use super::latency;
use crate::lower::code::{Op, What, Word};
use std::collections::{HashMap, HashSet};
use warpwave_isa::inst::CacheOp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

/// Returns for each operation its dependents, with the distance in cycles.
pub(super) fn dependencies(region: &[Op]) -> Vec<Vec<(usize, u32)>> {
    let mut edges = vec![Vec::new(); region.len()];
    let mut words = Accesses::default();
    let mut flags = Accesses::default();
    for (n, op) in region.iter().enumerate() {
        op.uses().for_each(|word| words.read(&mut edges, region, n, word));
        op.flag_uses().for_each(|flag| flags.read(&mut edges, region, n, flag));
        // A guarded result keeps the old value where the guard is false, so the old value is an input.
        if op.guard.flag.is_some() {
            op.defs().for_each(|word| words.read(&mut edges, region, n, word));
            op.flag_defs().for_each(|flag| flags.read(&mut edges, region, n, flag));
        }
        // A copy after all other readers of its source can share the source's register.
        if op.is(Opcode::Mov) {
            op.uses().for_each(|word| words.follow_readers(&mut edges, n, word));
        }
        op.defs().for_each(|word| words.write(&mut edges, n, word));
        op.flag_defs().for_each(|flag| flags.write(&mut edges, n, flag));
    }
    memory_dependencies(region, &mut edges);
    edges
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
        let readers = self.readers.remove(&register).unwrap_or_default();
        let before = readers.into_iter().chain(self.writer.insert(register, n));
        before
            .filter(|&other| other != n)
            .for_each(|other| edges[other].push((n, 1)));
    }
}

/// Adds edges between accesses to the same memory, unless both read.
fn memory_dependencies(region: &[Op], edges: &mut [Vec<(usize, u32)>]) {
    let written: HashSet<Word> = region.iter().flat_map(Op::defs).collect();
    let accesses: Vec<(usize, Access)> = region
        .iter()
        .enumerate()
        .filter_map(|(n, op)| Some((n, Access::of(op)?)))
        .collect();
    for (at, (n, access)) in accesses.iter().enumerate() {
        for (before, other) in &accesses[..at] {
            if access.meets(other) && !are_apart(&region[*n], &region[*before], &written) {
                edges[*before].push((*n, 1));
            }
        }
    }
}

/// Memory that an operation accesses, with one bit per state space.
struct Access {
    spaces: u8,
    writes: bool,
}

impl Access {
    fn of(op: &Op) -> Option<Access> {
        const GLOBAL: u8 = 1;
        const SHARED: u8 = 2;
        const LOCAL: u8 = 4;
        let What::Row(opcode) = op.what else { return None };
        let spaces = match op.mods.space {
            _ if opcode == Opcode::Ldgsts => GLOBAL | SHARED,
            Space::Global => GLOBAL,
            Space::Shared | Space::Cluster => SHARED,
            Space::Local => LOCAL,
            Space::Generic => GLOBAL | SHARED | LOCAL,
            Space::Const => return None,
        };
        let writes = match opcode {
            Opcode::Ld => op.mods.cache == CacheOp::Volatile,
            Opcode::Ldsm | Opcode::Tex | Opcode::Suld => false,
            Opcode::St | Opcode::Atom | Opcode::Red | Opcode::Ldgsts | Opcode::Sust => true,
            _ => return None,
        };
        Some(Access { spaces, writes })
    }

    fn meets(&self, other: &Access) -> bool {
        self.spaces & other.spaces != 0 && (self.writes || other.writes)
    }
}

/// True if two plain accesses have the same unchanged base and disjoint displacements.
fn are_apart(a: &Op, b: &Op, written: &HashSet<Word>) -> bool {
    let plain = |op: &Op| {
        let fixed = op.src[0]
            .as_word()
            .is_none_or(|word| !written.contains(&word) && !written.contains(&word.offset(1)));
        (op.is(Opcode::Ld) || op.is(Opcode::St)) && op.mods.cache != CacheOp::Volatile && fixed
    };
    let ends = |op: &Op| i64::from(op.mods.offset) + i64::from(op.mods.access.total());
    let same_base = a.src[0] == b.src[0] && a.mods.space == b.mods.space;
    let disjoint = ends(a) <= b.mods.offset.into() || ends(b) <= a.mods.offset.into();
    plain(a) && plain(b) && same_base && disjoint
}
