//! Live ranges: the times at which each register holds a value that is read later.
//!
//! Operation *i* reads at time 2*i* and writes at time 2*i*+1. So a result can take the register of a source that ends there.

use super::code::{BlockId, Code, Op, VGuard, VPred};
use super::graph::{Graph, indexed_ops};
use std::collections::HashMap;

/// Live ranges of a register: sorted, disjoint, each with an exclusive end.
pub(super) type LiveRanges = Vec<(u32, u32)>;

/// True if two registers are live at the same time.
pub(super) fn overlap(a: &[(u32, u32)], b: &[(u32, u32)]) -> bool {
    let (Some(&(a_begins, _)), Some(&(b_begins, _))) = (a.first(), b.first()) else {
        return false;
    };
    // Skip the ranges of each list that end before the other list begins. Often one list is long.
    let mut a = &a[a.partition_point(|range| range.1 <= b_begins)..];
    let mut b = &b[b.partition_point(|range| range.1 <= a_begins)..];
    while let ([first, rest @ ..], [other, others @ ..]) = (a, b) {
        if first.1 <= other.0 {
            a = rest;
        } else if other.1 <= first.0 {
            b = others;
        } else {
            return true;
        }
    }
    false
}

/// True if a register is live at this time.
pub(super) fn contains(ranges: &[(u32, u32)], time: u32) -> bool {
    let next = &ranges[ranges.partition_point(|range| range.1 <= time)..];
    next.first().is_some_and(|range| range.0 <= time)
}

/// Returns the maximum number of registers that are live at the same time.
pub(super) fn peak(ranges: &[LiveRanges]) -> usize {
    let end = ranges
        .iter()
        .filter_map(|ranges| ranges.last())
        .map(|range| range.1)
        .max();
    // One entry more, because the last range ends there.
    let mut changes = vec![0_isize; end.unwrap_or(0) as usize + 1];
    for &(start, end) in ranges.iter().flatten() {
        changes[start as usize] += 1;
        changes[end as usize] -= 1;
    }
    let live = changes.iter().scan(0, |live, change| {
        *live += change;
        Some(*live)
    });
    live.max().unwrap_or(0) as usize
}

/// Adds live ranges to a set. Only the part between the first and the last of `more` is examined.
pub(super) fn merge(times: &mut LiveRanges, more: &[(u32, u32)]) {
    let (Some(&(begins, _)), Some(&(_, ends))) = (more.first(), more.last()) else {
        return;
    };
    let first = times.partition_point(|range| range.1 < begins);
    let last = times.partition_point(|range| range.0 <= ends).max(first);
    let between = [&times[first..last], more].concat();
    times.splice(first..last, sorted(between));
}

/// Returns the times of `all` that are outside `taken`.
pub(super) fn without(all: &[(u32, u32)], taken: &[(u32, u32)]) -> LiveRanges {
    let mut rest = LiveRanges::new();
    for &(mut start, end) in all {
        let later = &taken[taken.partition_point(|range| range.1 <= start)..];
        for &(from, to) in later.iter().take_while(|range| range.0 < end) {
            if start < from {
                rest.push((start, from));
            }
            start = to;
        }
        if start < end {
            rest.push((start, end));
        }
    }
    rest
}

/// Sorts ranges and merges adjacent ones.
fn sorted(mut all: LiveRanges) -> LiveRanges {
    all.sort_unstable();
    let mut merged: LiveRanges = Vec::with_capacity(all.len());
    for (start, end) in all {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// A register class: how operations read and write its registers.
pub(super) trait RegClass {
    fn count(code: &Code) -> usize;
    fn uses(op: &Op) -> impl Iterator<Item = usize>;
    fn defs(op: &Op) -> impl Iterator<Item = usize>;
}

/// 32-bit registers.
pub(super) struct GeneralRegs;

impl RegClass for GeneralRegs {
    fn count(code: &Code) -> usize {
        code.groups.len()
    }
    fn uses(op: &Op) -> impl Iterator<Item = usize> {
        op.uses().map(|vreg| vreg.0 as usize)
    }
    fn defs(op: &Op) -> impl Iterator<Item = usize> {
        op.defs().map(|vreg| vreg.0 as usize)
    }
}

/// Predicates.
pub(super) struct Predicates;

impl RegClass for Predicates {
    fn count(code: &Code) -> usize {
        code.n_preds as usize
    }
    fn uses(op: &Op) -> impl Iterator<Item = usize> {
        op.pred_uses().map(|pred| pred.0 as usize)
    }
    fn defs(op: &Op) -> impl Iterator<Item = usize> {
        op.pred_defs().map(|pred| pred.0 as usize)
    }
}

/// Returns the live ranges of each register of a class.
pub(super) fn live_ranges<F: RegClass>(code: &Code, graph: &Graph) -> Vec<LiveRanges> {
    let n = F::count(code);
    let kills = killing_defs::<F>(code, graph);
    let out = live_out::<F>(code, graph, &kills);
    let starts: Vec<u32> = code
        .blocks
        .iter()
        .scan(0, |at, block| {
            *at += block.ops.len() as u32;
            Some(*at - block.ops.len() as u32)
        })
        .collect();
    let mut ranges = vec![LiveRanges::new(); n];
    let mut ends: Vec<Option<u32>> = vec![None; n];
    // Registers with an entry in `ends` for this block.
    let mut seen: Vec<usize> = Vec::new();
    for (block, body) in code.blocks.iter().enumerate().rev() {
        let start = starts[block];
        let end = start + body.ops.len() as u32;
        for &register in &out[block] {
            ends[register] = Some(2 * end);
        }
        seen.extend(&out[block]);
        for (index, op) in (start..end).zip(&body.ops).rev() {
            for register in F::defs(op) {
                if op.guard == VGuard::ALWAYS || kills[register] {
                    // A result that is never read still needs a register for its write.
                    let last_use = ends[register].take().unwrap_or(0).max(2 * index + 2);
                    ranges[register].push((2 * index + 1, last_use));
                } else if ends[register].is_none() {
                    // A guarded write keeps the value of other lanes, so the register is live before it too.
                    ends[register] = Some(2 * index + 2);
                    seen.push(register);
                }
            }
            for register in F::uses(op) {
                // The read is at time 2i, and ends are exclusive. A later read has set the end already.
                ends[register].get_or_insert(2 * index + 1);
                seen.push(register);
            }
        }
        for register in seen.drain(..) {
            if let Some(last_use) = ends[register].take() {
                ranges[register].push((2 * start, last_use));
            }
        }
    }
    ranges.into_iter().map(sorted).collect()
}

/// Returns the registers of a class that are live after each block.
pub(super) fn live_after_blocks<F: RegClass>(code: &Code, graph: &Graph) -> Vec<Vec<usize>> {
    let kills = killing_defs::<F>(code, graph);
    live_out::<F>(code, graph, &kills)
}

/// Marks registers whose definition kills the old value, guarded or not.
///
/// Such a register has one definition, with one of two properties. It is in no loop and before all uses. Or all uses follow in
/// its block under the same guard.
pub(super) fn killing_defs<F: RegClass>(code: &Code, graph: &Graph) -> Vec<bool> {
    let mut position: Vec<Option<(BlockId, usize)>> = vec![None; F::count(code)];
    let mut single = vec![true; F::count(code)];
    for (block, index, op) in indexed_ops(code) {
        for register in F::defs(op) {
            single[register] &= position[register].is_none();
            position[register] = Some((block, index));
        }
    }
    let in_loop = graph.in_cycles();
    // In a loop, a lane with a false guard keeps the value of an earlier iteration.
    let outside = |position: Option<(BlockId, usize)>| position.is_none_or(|(block, _)| !in_loop[block]);
    let mut before: Vec<bool> = position.iter().map(|&position| outside(position)).collect();
    let mut local_uses = vec![true; F::count(code)];
    let mut pred_at: HashMap<VPred, (BlockId, usize)> = HashMap::new();
    for (block, index, op) in indexed_ops(code) {
        for register in F::uses(op) {
            let Some((at, n)) = position[register] else { continue };
            before[register] &= if at == block {
                n < index
            } else {
                graph.dominates(at, block)
            };
            let guard = code.blocks[at].ops[n].guard;
            // After a later write the same predicate is another condition.
            let changed = guard
                .pred
                .and_then(|pred| pred_at.get(&pred))
                .is_some_and(|&(b, i)| b == block && i >= n);
            local_uses[register] &= at == block && n < index && op.guard == guard && !changed;
        }
        op.pred_defs().for_each(|pred| _ = pred_at.insert(pred, (block, index)));
    }
    (0..single.len())
        .map(|n| single[n] && (before[n] || local_uses[n]))
        .collect()
}

/// Returns the registers live after each block, in ascending order.
fn live_out<F: RegClass>(code: &Code, graph: &Graph, kills: &[bool]) -> Vec<Vec<usize>> {
    let blocks = code.blocks.len();
    // The cost grows with the live ranges, not with registers times blocks.
    let (reads, writes) = accesses::<F>(code, kills);
    let mut out = vec![Vec::new(); blocks];
    // Each mark holds a register number, so the next register need not clear the marks.
    const NONE: usize = usize::MAX;
    let (mut defined, mut live_in, mut live_after) = (vec![NONE; blocks], vec![NONE; blocks], vec![NONE; blocks]);
    for (register, (mut worklist, writes)) in reads.into_iter().zip(writes).enumerate() {
        writes.into_iter().for_each(|block| defined[block] = register);
        worklist.iter().for_each(|&block| live_in[block] = register);
        while let Some(block) = worklist.pop() {
            for &before in &graph.predecessors[block] {
                if std::mem::replace(&mut live_after[before], register) == register {
                    continue;
                }
                out[before].push(register);
                if defined[before] != register && std::mem::replace(&mut live_in[before], register) != register {
                    worklist.push(before);
                }
            }
        }
    }
    out
}

/// Returns the blocks that read each register before writing it, and the blocks that write it.
fn accesses<F: RegClass>(code: &Code, kills: &[bool]) -> (Vec<Vec<BlockId>>, Vec<Vec<BlockId>>) {
    let n = F::count(code);
    let (mut reads, mut writes) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    let is_new = |blocks: &Vec<BlockId>, block| blocks.last() != Some(&block);
    for (block, body) in code.blocks.iter().enumerate() {
        for op in &body.ops {
            for register in F::uses(op) {
                if is_new(&writes[register], block) && is_new(&reads[register], block) {
                    reads[register].push(block);
                }
            }
            for register in F::defs(op) {
                if (op.guard == VGuard::ALWAYS || kills[register]) && is_new(&writes[register], block) {
                    writes[register].push(block);
                }
            }
        }
    }
    (reads, writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_counts_registers_live_at_once() {
        assert_eq!(peak(&[]), 0);
        assert_eq!(peak(&[vec![]]), 0);
        // A range that starts where another ends takes its register.
        assert_eq!(peak(&[vec![(1, 4), (6, 7)], vec![(4, 6)]]), 1);
        assert_eq!(peak(&[vec![(1, 4), (6, 9)], vec![(4, 7)], vec![(6, 8)]]), 3);
    }

    #[test]
    fn touching_ranges_merge_without_overlap() {
        assert!(!overlap(&[(1, 4)], &[(4, 6)]));
        assert!(overlap(&[(1, 4), (8, 9)], &[(5, 6), (8, 12)]));
        let mut times = vec![(1, 4)];
        merge(&mut times, &[(4, 6), (8, 9)]);
        assert_eq!(times, [(1, 6), (8, 9)]);
        merge(&mut times, &[(0, 2), (7, 8), (20, 21)]);
        assert_eq!(times, [(0, 6), (7, 9), (20, 21)]);
        merge(&mut times, &[]);
        assert_eq!(times, [(0, 6), (7, 9), (20, 21)]);
    }

    #[test]
    fn times_without_others_are_the_gaps_between_them() {
        assert_eq!(without(&[(1, 4), (6, 9)], &[]), [(1, 4), (6, 9)]);
        assert_eq!(without(&[(1, 4), (6, 9)], &[(1, 9)]), []);
        // The others start before, lie within, and end after.
        assert_eq!(
            without(&[(2, 20)], &[(0, 4), (6, 8), (10, 11), (18, 30)]),
            [(4, 6), (8, 10), (11, 18)]
        );
        assert_eq!(
            without(&[(2, 4), (8, 12)], &[(4, 8), (9, 10)]),
            [(2, 4), (8, 9), (10, 12)]
        );
    }
}
