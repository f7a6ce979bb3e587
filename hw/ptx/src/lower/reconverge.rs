//! Reconvergence: inserts BSSY and BSYNC around divergent branches.
//!
//! Each branch on which lanes may disagree gets a BSSY and a BSYNC. The BSSY is in a block that every lane of the branch
//! passes, outside loops that lanes leave one by one. The BSYNC is at the branch's immediate post-dominator, or at the next
//! post-dominator with such a block. Regions nest. Regions where lanes may be at the same time use different convergence barriers.
//!
//! If no barrier is left, lanes stay diverged: slower, but correct. Lanes also stay diverged after a spin loop (`spin`).
//!
//! A WARPSYNC is kept if lanes may be diverged, or if its mask may be partial. The caller can also keep every `bar.warp.sync`.

use super::code::{BlockId, Code, Op};
use super::divergence::Divergence;
use super::graph::Graph;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::ConvBarrier;

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let divergence = Divergence::of(code, &graph);
    drop_redundant_syncs(code, &graph, &divergence);
    let regions = regions(&graph, &divergence);
    let barriers = barriers(&graph, &divergence, &regions);
    for (region, conv) in regions.iter().zip(barriers) {
        let Some(conv) = conv else { continue };
        insert(code, region, conv);
    }
}

/// A divergent region: lanes diverge after `fork` and reconverge at `join`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Region {
    fork: BlockId,
    join: BlockId,
}

/// Drops each implied WARPSYNC of all lanes where the lanes are certainly together. A `bar.warp.sync` orders memory and takes time.
fn drop_redundant_syncs(code: &mut Code, graph: &Graph, divergence: &Divergence) {
    // Lanes may be diverged in a divergent block, and after a WARPSYNC there: lanes may leave a join early.
    // A WARPSYNC with its mask in a register can also diverge lanes, if their masks differ, and a barrier that only some lanes execute.
    let may_diverge = |block: BlockId, op: &Op| {
        let mask = op.src[0].known();
        let holds_some = [Opcode::Bar, Opcode::BarRed, Opcode::ClusterWait]
            .iter()
            .any(|&barrier| op.is(barrier));
        op.is(Opcode::Warpsync)
            && (divergence.divergent_block[block] || (mask.is_none() && !divergence.reads_uniform(op)))
            || holds_some && !divergence.has_uniform_guard(op)
    };
    let diverging: Vec<BlockId> = (0..code.blocks.len())
        .filter(|&block| code.blocks[block].ops.iter().any(|op| may_diverge(block, op)))
        .collect();
    let after: Vec<BlockId> = diverging
        .iter()
        .flat_map(|&block| graph.successors[block].clone())
        .collect();
    let diverged = graph.reachable_from(&after, None);
    for (block, body) in code.blocks.iter_mut().enumerate() {
        let mut is_diverged = divergence.divergent_block[block] || diverged[block];
        body.ops.retain(|op| {
            let all_lanes = op.src[0].known() == Some(0xffff_ffff);
            let is_explicit = op.mods.count == 1;
            let is_needed = !op.is(Opcode::Warpsync) || !all_lanes || is_diverged || is_explicit;
            is_diverged |= may_diverge(block, op);
            is_needed
        });
    }
}

/// Returns the widest region for each join. Outer regions come before inner ones.
fn regions(graph: &Graph, divergence: &Divergence) -> Vec<Region> {
    let diverges = |&block: &BlockId| divergence.divergent_branch[block] && !divergence.leaves_spin[block];
    let branches = (0..divergence.divergent_branch.len()).filter(diverges);
    let mut regions: Vec<Region> = Vec::new();
    for region in branches.filter_map(|branch| region_of(graph, branch)) {
        match regions.iter_mut().find(|other| other.join == region.join) {
            // One BSYNC at a join is enough if its BSSY dominates every branch that meets there.
            Some(other) if graph.dominates(region.fork, other.fork) => *other = region,
            Some(_) => {}
            None => regions.push(region),
        }
    }
    regions.sort_by_key(|region| std::iter::successors(Some(region.fork), |&block| graph.dominator[block]).count());
    regions
}

fn region_of(graph: &Graph, branch: BlockId) -> Option<Region> {
    let joins = std::iter::successors(graph.post_dominator[branch], |&join| graph.post_dominator[join]);
    joins.into_iter().find_map(|join| {
        Some(Region {
            fork: fork(graph, branch, join)?,
            join,
        })
    })
}

/// Returns the nearest dominator of a branch that runs once for each reconvergence.
fn fork(graph: &Graph, branch: BlockId, join: BlockId) -> Option<BlockId> {
    let mut candidates = std::iter::successors(Some(branch), |&block| graph.dominator[block]);
    candidates.find(|&block| {
        // Each lane that passes the BSSY reaches the join, and each lane at the join has passed the BSSY.
        let closed = block != join && graph.dominates(block, join) && graph.post_dominates(join, block);
        // A BSSY that runs twice before the join would find its barrier in use.
        closed && !graph.is_in_cycle(block, join)
    })
}

/// Gives each region a barrier; `None` if all are taken.
///
/// Two regions conflict if lanes may be in both: one contains the other, or a branch separates them.
fn barriers(graph: &Graph, divergence: &Divergence, regions: &[Region]) -> Vec<Option<ConvBarrier>> {
    let inside: Vec<Vec<bool>> = regions
        .iter()
        .map(|region| graph.reachable_from(&[region.fork], Some(region.join)))
        .collect();
    let sides = sides(graph, divergence, regions);
    let mut assigned: Vec<Option<ConvBarrier>> = Vec::new();
    for (n, region) in regions.iter().enumerate() {
        let is_nested = |m: usize| inside[m][region.fork] || inside[n][regions[m].fork];
        let is_on_other_side =
            |m: usize| intersects(&sides[m][0], &sides[n][1]) || intersects(&sides[m][1], &sides[n][0]);
        let used: Vec<ConvBarrier> = (0..n)
            .filter(|&m| is_nested(m) || is_on_other_side(m))
            .filter_map(|m| assigned[m])
            .collect();
        // Outer regions are first in the list, so an inner region goes without a barrier if all are taken.
        let free = (0..ConvBarrier::COUNT as u8)
            .map(ConvBarrier)
            .find(|conv| !used.contains(conv));
        assigned.push(free);
    }
    assigned
}

/// Returns two bit sets for each region: branches that lead to it by their first and by their second side.
fn sides(graph: &Graph, divergence: &Divergence, regions: &[Region]) -> Vec<[Vec<u64>; 2]> {
    let branches: Vec<BlockId> = (0..graph.successors.len())
        .filter(|&block| divergence.divergent_branch[block])
        .collect();
    let mut sides = vec![[(); 2].map(|()| vec![0; branches.len().div_ceil(64)]); regions.len()];
    for (bit, &branch) in branches.iter().enumerate() {
        for (side, &next) in graph.successors[branch].iter().enumerate() {
            let reached = graph.reachable_from(&[next], graph.post_dominator[branch]);
            for (region, sides) in regions.iter().zip(&mut sides) {
                sides[side][bit / 64] |= u64::from(reached[region.fork]) << (bit % 64);
            }
        }
    }
    sides
}

fn intersects(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// Inserts BSSY before the fork's branch and BSYNC at the start of the join.
fn insert(code: &mut Code, region: &Region, conv: ConvBarrier) {
    let joined = code.blocks[region.join].ops.first().map_or(0, |op| op.line);
    // Outer regions come first, so their BSSY is before this one.
    let mut enter = Op::machine(Opcode::Bssy);
    enter.conv = conv;
    enter.target = Some(region.join);
    let fork = &mut code.blocks[region.fork].ops;
    let ends = fork.last().is_some_and(|op| op.is(Opcode::Bra));
    let at = fork.len() - usize::from(ends);
    // The line of the branch. A fork may fall through, or be empty.
    enter.line = fork.get(at).or(fork.last()).map_or(joined, |op| op.line);
    fork.insert(at, enter);
    let join = &mut code.blocks[region.join].ops;
    let mut leave = Op::machine(Opcode::Bsync);
    leave.conv = conv;
    leave.line = joined;
    join.insert(0, leave);
}
