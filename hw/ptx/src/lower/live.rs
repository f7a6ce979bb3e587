//! Live ranges: the times at which each register holds a value that is read later.
//!
//! Operation *i* reads at time 2*i* and writes at time 2*i*+1. So a result can take the register of a source.

use super::code::{BlockId, Code, Flag, Op, When};
use super::graph::{Graph, places};
use std::collections::HashMap;

/// Live ranges of a register: sorted, disjoint, each with an exclusive end.
pub(super) type Spans = Vec<(u32, u32)>;

/// True if two registers are live at the same time.
pub(super) fn overlap(a: &[(u32, u32)], b: &[(u32, u32)]) -> bool {
    let (Some(&(a_begins, _)), Some(&(b_begins, _))) = (a.first(), b.first()) else {
        return false;
    };
    // Skip the ranges of each list that end before the other list begins. Often one list is long.
    let mut a = &a[a.partition_point(|span| span.1 <= b_begins)..];
    let mut b = &b[b.partition_point(|span| span.1 <= a_begins)..];
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

/// Adds live ranges to a set. Only the part between the first and the last of `more` is examined.
pub(super) fn merge(times: &mut Spans, more: &[(u32, u32)]) {
    let (Some(&(begins, _)), Some(&(_, ends))) = (more.first(), more.last()) else {
        return;
    };
    let first = times.partition_point(|span| span.1 < begins);
    let last = times.partition_point(|span| span.0 <= ends).max(first);
    let between = [&times[first..last], more].concat();
    times.splice(first..last, sorted(between));
}

/// Sorts ranges and merges adjacent ones.
fn sorted(mut all: Spans) -> Spans {
    all.sort_unstable();
    let mut merged: Spans = Vec::with_capacity(all.len());
    for (start, end) in all {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// A register class: how operations read and write its registers.
pub(super) trait File {
    fn count(code: &Code) -> usize;
    fn uses(op: &Op) -> impl Iterator<Item = usize>;
    fn defs(op: &Op) -> impl Iterator<Item = usize>;
}

/// 32-bit registers.
pub(super) struct Words;

impl File for Words {
    fn count(code: &Code) -> usize {
        code.groups.len()
    }
    fn uses(op: &Op) -> impl Iterator<Item = usize> {
        op.uses().map(|word| word.0 as usize)
    }
    fn defs(op: &Op) -> impl Iterator<Item = usize> {
        op.defs().map(|word| word.0 as usize)
    }
}

/// Predicates.
pub(super) struct Flags;

impl File for Flags {
    fn count(code: &Code) -> usize {
        code.n_flags as usize
    }
    fn uses(op: &Op) -> impl Iterator<Item = usize> {
        op.flag_uses().map(|flag| flag.0 as usize)
    }
    fn defs(op: &Op) -> impl Iterator<Item = usize> {
        op.flag_defs().map(|flag| flag.0 as usize)
    }
}

/// Returns the live ranges of each register of a class.
pub(super) fn spans<F: File>(code: &Code, graph: &Graph) -> Vec<Spans> {
    let n = F::count(code);
    let fresh = fresh_definitions::<F>(code, graph);
    let out = live_out::<F>(code, graph, &fresh);
    let starts: Vec<u32> = code
        .blocks
        .iter()
        .scan(0, |at, block| {
            *at += block.ops.len() as u32;
            Some(*at - block.ops.len() as u32)
        })
        .collect();
    let mut spans = vec![Spans::new(); n];
    let mut until: Vec<Option<u32>> = vec![None; n];
    // Registers with an entry in `until` for this block.
    let mut touched: Vec<usize> = Vec::new();
    for (block, body) in code.blocks.iter().enumerate().rev() {
        let start = starts[block];
        let end = start + body.ops.len() as u32;
        for &register in &out[block] {
            until[register] = Some(2 * end);
        }
        touched.extend(&out[block]);
        for (index, op) in (start..end).zip(&body.ops).rev() {
            for register in F::defs(op) {
                if op.guard == When::ALWAYS || fresh[register] {
                    let wanted = until[register].take().unwrap_or(0).max(2 * index + 2);
                    spans[register].push((2 * index + 1, wanted));
                } else if until[register].is_none() {
                    until[register] = Some(2 * index + 2);
                    touched.push(register);
                }
            }
            for register in F::uses(op) {
                until[register].get_or_insert(2 * index + 1);
                touched.push(register);
            }
        }
        for register in touched.drain(..) {
            if let Some(wanted) = until[register].take() {
                spans[register].push((2 * start, wanted));
            }
        }
    }
    spans.into_iter().map(sorted).collect()
}

/// Returns the registers of a class that are live after each block.
pub(super) fn behind_blocks<F: File>(code: &Code, graph: &Graph) -> Vec<Vec<usize>> {
    let fresh = fresh_definitions::<F>(code, graph);
    live_out::<F>(code, graph, &fresh)
}

/// Marks registers whose definition kills the old value, guarded or not.
///
/// The register has one definition. It comes before all uses and is in no loop, or all uses follow in its block and guard.
pub(super) fn fresh_definitions<F: File>(code: &Code, graph: &Graph) -> Vec<bool> {
    let mut place: Vec<Option<(BlockId, usize)>> = vec![None; F::count(code)];
    let mut sole = vec![true; F::count(code)];
    for (block, index, op) in places(code) {
        for register in F::defs(op) {
            sole[register] &= place[register].is_none();
            place[register] = Some((block, index));
        }
    }
    let in_loop = graph.in_cycles();
    let outside = |place: Option<(BlockId, usize)>| place.is_none_or(|(block, _)| !in_loop[block]);
    let mut before: Vec<bool> = place.iter().map(|&place| outside(place)).collect();
    let mut close = vec![true; F::count(code)];
    let mut flag_at: HashMap<Flag, (BlockId, usize)> = HashMap::new();
    for (block, index, op) in places(code) {
        for register in F::uses(op) {
            let Some((at, n)) = place[register] else { continue };
            before[register] &= if at == block {
                n < index
            } else {
                graph.dominates(at, block)
            };
            let guard = code.blocks[at].ops[n].guard;
            let changed = guard
                .flag
                .and_then(|flag| flag_at.get(&flag))
                .is_some_and(|&(b, i)| b == block && i >= n);
            close[register] &= at == block && n < index && op.guard == guard && !changed;
        }
        op.flag_defs().for_each(|flag| _ = flag_at.insert(flag, (block, index)));
    }
    (0..sole.len()).map(|n| sole[n] && (before[n] || close[n])).collect()
}

/// Returns the registers live after each block, in ascending order.
fn live_out<F: File>(code: &Code, graph: &Graph, fresh: &[bool]) -> Vec<Vec<usize>> {
    let blocks = code.blocks.len();
    // The cost grows with the live ranges, not with registers times blocks.
    let (reads, writes) = accesses::<F>(code, fresh);
    let mut out = vec![Vec::new(); blocks];
    // Each mark holds a register number, so the next register need not clear the marks.
    const NONE: usize = usize::MAX;
    let (mut written, mut wanted_before, mut wanted_behind) =
        (vec![NONE; blocks], vec![NONE; blocks], vec![NONE; blocks]);
    for (register, (mut open, writes)) in reads.into_iter().zip(writes).enumerate() {
        writes.into_iter().for_each(|block| written[block] = register);
        open.iter().for_each(|&block| wanted_before[block] = register);
        while let Some(block) = open.pop() {
            for &before in &graph.predecessors[block] {
                if std::mem::replace(&mut wanted_behind[before], register) == register {
                    continue;
                }
                out[before].push(register);
                if written[before] != register && std::mem::replace(&mut wanted_before[before], register) != register {
                    open.push(before);
                }
            }
        }
    }
    out
}

/// Returns the blocks that read each register before writing it, and the blocks that write it.
fn accesses<F: File>(code: &Code, fresh: &[bool]) -> (Vec<Vec<BlockId>>, Vec<Vec<BlockId>>) {
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
                if (op.guard == When::ALWAYS || fresh[register]) && is_new(&writes[register], block) {
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
}
