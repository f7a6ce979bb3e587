//! Order for few registers: moves operations down to their readers where the text's order keeps many registers live.
//!
//! PTX often loads many values, then uses them one by one. A section between fences gets a new order if more than
//! [`COMFORTABLE_REGISTERS`] are live in it. The order is built from the last operation to the first. At each step the operation
//! that frees most registers is next, so a load comes just before its first reader. `schedule` then moves loads up, as far as
//! registers last.
//!
//! A step sees one operation alone. Of 600 loads followed by 600 sums, the last load makes its address live, and so frees no
//! register. A sum looks as good, and all sums would come behind all loads. So further orders follow each value to its inputs
//! before they start the next one ([`Rule::Chain`]).
//!
//! The new order replaces the text's only if its peak is lower by [`MIN_GAIN`] registers.

mod liveness;

use super::code::{Code, Op, OpKind};
use super::graph::Graph;
use super::live;
use super::schedule::{FREE_PREDICATES, LiveSet, are_in_one_section, dependencies};
use liveness::Liveness;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use warpwave_isa::opcode::{Opcode, Pipe};

/// Live registers that need no other order. Assumed.
const COMFORTABLE_REGISTERS: usize = 40;
/// Registers of a limit left for alignment and for the loads that `schedule` moves up. Assumed.
const RESERVE: usize = 12;
/// Registers that a new order must save. `schedule` spends up to this many for latency.
const MIN_GAIN: usize = 8;
/// Maximum product of stores and memory accesses ordered together. It bounds the dependencies between them.
const MAX_MEMORY_PAIRS: usize = 1 << 22;

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let vregs_out = live::live_after_blocks::<live::GeneralRegs>(code, &graph);
    let preds_out = live::live_after_blocks::<live::Predicates>(code, &graph);
    let kills = live::killing_defs::<live::GeneralRegs>(code, &graph);
    // A kernel with a lower limit is narrowed sooner.
    let comfortable = COMFORTABLE_REGISTERS.min(code.max_registers.saturating_sub(RESERVE));
    for (block, body) in code.blocks.iter_mut().enumerate() {
        let mut live_set = LiveSet::of(&vregs_out[block], &preds_out[block]);
        // Whole sections, unlike in `schedule`: a load may be far from its only reader.
        let sections = body.ops.chunk_by_mut(are_in_one_section).flat_map(regions);
        let sections: Vec<&mut [Op]> = sections.collect();
        // From the last region to the first, as the live set steps back.
        for region in sections.into_iter().rev() {
            let after = live_set.clone();
            let mut peak = live_set.vregs.len();
            for op in region.iter().rev() {
                live_set.step_back(op, &kills);
                peak = peak.max(live_set.vregs.len());
            }
            if peak > comfortable
                && let Some(order) = narrower_order(region, &after, &kills, comfortable)
            {
                let ops: Vec<Op> = order.into_iter().map(|op| region[op]).collect();
                region.copy_from_slice(&ops);
            }
        }
    }
}

/// Splits a section into regions of at most [`MAX_MEMORY_PAIRS`].
fn regions(mut section: &mut [Op]) -> Vec<&mut [Op]> {
    let mut regions = Vec::new();
    while !section.is_empty() {
        let (mut stores, mut accesses) = (0, 0);
        let end = section.iter().position(|op| {
            let is_access = matches!(op.kind, OpKind::Machine(opcode) if opcode.info().pipe == Pipe::Lsu);
            accesses += usize::from(is_access);
            stores += usize::from(is_access && !op.is(Opcode::Ld) || op.has_effect());
            stores * accesses > MAX_MEMORY_PAIRS
        });
        let (region, rest) = section.split_at_mut(end.unwrap_or(section.len()));
        regions.push(region);
        section = rest;
    }
    regions
}

/// Returns an order with a lower peak of live registers than the text's; `None` if there is none.
fn narrower_order(region: &[Op], after: &LiveSet, kills: &[bool], comfortable: usize) -> Option<Vec<usize>> {
    let orders = Orders::of(region, after, kills);
    // No rule is better for every text. The chains are tried only if registers would still run out.
    let first = orders.best_of(&[Rule::Text, Rule::LatestReady]);
    let is_enough = first.as_ref().is_some_and(|&(peak, _)| peak <= comfortable);
    // On silicon the parts of a warp group's product are one instruction. A chain would take one part away from the others.
    let has_parts = region.iter().any(|op| op.is(Opcode::Hgmma) || op.is(Opcode::HgmmaSp));
    let chains = match is_enough || has_parts {
        true => None,
        false => orders.best_of(&[Rule::Chain, Rule::ChainAfterStores]),
    };
    let (peak, order) = first.into_iter().chain(chains).min_by_key(|&(peak, _)| peak)?;
    (peak + MIN_GAIN <= orders.vregs.peak(&orders.text)).then_some(order)
}

/// The orders of a region: its dependencies, and the live values at its end.
struct Orders {
    edges: Vec<Vec<(usize, u32)>>,
    vregs: Liveness,
    preds: Liveness,
    /// The order of the text.
    text: Vec<usize>,
}

impl Orders {
    fn of(region: &[Op], after: &LiveSet, kills: &[bool]) -> Orders {
        // A guarded write keeps the old value in other lanes, so it reads its own result.
        let keeps_old = |op: &Op| {
            let kills = op.defs().all(|vreg| kills[vreg.0 as usize]);
            op.guard.pred.is_some() && !kills
        };
        let vregs = region
            .iter()
            .map(|op| (op.uses().collect(), op.defs().collect(), keeps_old(op)));
        let preds = region.iter().map(|op| {
            let is_guarded = op.guard.pred.is_some();
            (op.pred_uses().collect(), op.pred_defs().collect(), is_guarded)
        });
        Orders {
            edges: dependencies(region),
            vregs: Liveness::of(vregs, &after.vregs),
            preds: Liveness::of(preds, &after.preds),
            text: (0..region.len()).collect(),
        }
    }

    /// Returns the order of one of the rules with the lowest peak of live registers, and that peak.
    fn best_of(&self, rules: &[Rule]) -> Option<(usize, Vec<usize>)> {
        // More predicates than these would be moved to general registers.
        let max_preds = self.preds.peak(&self.text).max(FREE_PREDICATES);
        let orders = rules
            .iter()
            .map(|&rule| Backward::of(&self.edges, self.vregs.clone(), rule).order());
        orders
            .filter(|order| self.preds.peak(order) <= max_preds)
            .map(|order| (self.vregs.peak(&order), order))
            .min_by_key(|&(peak, _)| peak)
    }
}

/// Rule that chooses the next operation.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// The operation that frees most registers, and of equals the last in the text.
    Text,
    /// The operation that frees most registers, and of equals the one with the readers that were scheduled latest.
    LatestReady,
    /// As `LatestReady`, but all operations that add registers are equals. Of the inputs of one operation, the one with the
    /// shortest path of dependencies is next.
    Chain,
    /// As `Chain`, but operations without a result in a register are next as soon as they are ready. A load is ready only after
    /// the stores that it must not pass.
    ChainAfterStores,
}

impl Rule {
    fn follows_chains(self) -> bool {
        matches!(self, Rule::Chain | Rule::ChainAfterStores)
    }
}

/// List scheduler from the last operation to the first.
struct Backward {
    /// Dependencies of each operation.
    before: Vec<Vec<usize>>,
    /// Number of unscheduled dependents of each operation.
    pending: Vec<usize>,
    /// Rank among operations that free equally many registers. The highest is next.
    rank: Vec<usize>,
    is_done: Vec<bool>,
    ready: BinaryHeap<(Reverse<isize>, usize, usize)>,
    vregs: Liveness,
    rule: Rule,
    n_ready: usize,
    /// Length of the longest path of dependencies to each operation.
    height: Vec<usize>,
}

impl Backward {
    /// Starts with the operations without dependents.
    fn of(edges: &[Vec<(usize, u32)>], vregs: Liveness, rule: Rule) -> Backward {
        let n = edges.len();
        let mut before = vec![Vec::new(); n];
        let mut height = vec![0; n];
        for (from, dependents) in edges.iter().enumerate() {
            for &(to, _) in dependents {
                before[to].push(from);
                height[to] = height[to].max(height[from] + 1);
            }
        }
        let mut list = Backward {
            before,
            pending: edges.iter().map(Vec::len).collect(),
            rank: (0..n).collect(),
            is_done: vec![false; n],
            ready: BinaryHeap::new(),
            vregs,
            rule,
            n_ready: 0,
            height,
        };
        for op in (0..n).filter(|&op| edges[op].is_empty()) {
            list.make_ready(op);
        }
        list
    }

    fn make_ready(&mut self, op: usize) {
        if self.rule != Rule::Text {
            self.rank[op] = self.n_ready;
        }
        self.n_ready += 1;
        self.push(op);
    }

    fn push(&mut self, op: usize) {
        let change = match self.rule {
            Rule::ChainAfterStores if !self.vregs.has_result(op) => isize::MIN,
            rule if rule.follows_chains() => self.vregs.change(op).min(1),
            _ => self.vregs.change(op),
        };
        self.ready.push((Reverse(change), self.rank[op], op));
    }

    /// Returns the operations in their new order, from the first to the last.
    fn order(mut self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.pending.len());
        while let Some((_, _, op)) = self.ready.pop() {
            // An operation that came to free more was pushed a second time.
            if std::mem::replace(&mut self.is_done[op], true) {
                continue;
            }
            order.push(op);
            // A value became live, so its other ready readers now add one register less.
            for value in self.vregs.step_back(op) {
                for at in 0..self.vregs.readers[value].len() {
                    let reader = self.vregs.readers[value][at];
                    if self.pending[reader] == 0 && !self.is_done[reader] {
                        self.push(reader);
                    }
                }
            }
            let mut before = std::mem::take(&mut self.before[op]);
            if self.rule.follows_chains() {
                // Of equals the first in the text is made ready last, and is next.
                before.sort_unstable_by_key(|&dependency| Reverse((self.height[dependency], dependency)));
            }
            for dependency in before {
                self.pending[dependency] -= 1;
                if self.pending[dependency] == 0 {
                    self.make_ready(dependency);
                }
            }
        }
        order.reverse();
        order
    }
}
