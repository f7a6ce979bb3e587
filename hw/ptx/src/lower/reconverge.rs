//! Where lanes that parted meet again.
//!
//! Takes: split code whose loops have gates (`jumps`). Promises: for each branch on which lanes may disagree, a BSSY in a
//! block that every lane of the branch has passed, outside the loops that the lanes leave one by one, and a BSYNC where
//! they meet: the branch's immediate post-dominator, or the next one behind it that such a block exists for. Regions nest;
//! regions in which lanes may be at the same time have convergence barriers of their own. Where none is left the lanes stay apart, which is slower and no less
//! right; so they do behind a loop that waits for memory (`spin`). WARPSYNC stays only where lanes may be apart or the mask is
//! not all lanes, or where who asked for the code wants to see it.

use super::code::{BlockId, Code, Op};
use super::graph::Graph;
use super::uniform::Uniform;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::ConvBarrier;

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let uniform = Uniform::of(code, &graph);
    drop_idle_syncs(code, &graph, &uniform);
    let regions = regions(&graph, &uniform);
    let barriers = barriers(&graph, &uniform, &regions);
    for (region, conv) in regions.iter().zip(barriers) {
        let Some(conv) = conv else { continue };
        insert(code, region, conv);
    }
}

/// Lanes that part behind `fork` meet at `join`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Region {
    fork: BlockId,
    join: BlockId,
}

/// Drops each WARPSYNC of all lanes at which the lanes are together for certain.
/// Lanes may be apart in a divergent block, and behind a WARPSYNC in one: there lanes may leave a join early.
/// They also may be apart behind a WARPSYNC whose mask is in a register: lanes with different masks part there.
fn drop_idle_syncs(code: &mut Code, graph: &Graph, uniform: &Uniform) {
    let may_part = |block: BlockId, op: &Op| {
        let mask = op.src[0].known();
        op.is(Opcode::Warpsync) && (uniform.divergent_block[block] || (mask.is_none() && !uniform.reads_alike(op)))
    };
    let parting: Vec<BlockId> = (0..code.blocks.len())
        .filter(|&block| code.blocks[block].ops.iter().any(|op| may_part(block, op)))
        .collect();
    let behind: Vec<BlockId> = parting
        .iter()
        .flat_map(|&block| graph.successors[block].clone())
        .collect();
    let apart = graph.reach(&behind, None);
    for (block, body) in code.blocks.iter_mut().enumerate() {
        let mut is_apart = uniform.divergent_block[block] || apart[block];
        body.ops.retain(|op| {
            let all_lanes = op.src[0].known() == Some(0xffff_ffff);
            let is_kept = code.keep_syncs && op.mods.count == 1;
            let stays = !op.is(Opcode::Warpsync) || !all_lanes || is_apart || is_kept;
            is_apart |= may_part(block, op);
            stays
        });
    }
}

/// One region for each place where lanes meet, the widest; outer regions come before those inside.
fn regions(graph: &Graph, uniform: &Uniform) -> Vec<Region> {
    let parts = |&block: &BlockId| uniform.divergent_branch[block] && !uniform.leaves_spin[block];
    let branches = (0..uniform.divergent_branch.len()).filter(parts);
    let mut regions: Vec<Region> = Vec::new();
    for region in branches.filter_map(|branch| region_of(graph, branch)) {
        match regions.iter_mut().find(|other| other.join == region.join) {
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

/// The nearest dominator of a branch that runs once for each time the lanes meet.
fn fork(graph: &Graph, branch: BlockId, join: BlockId) -> Option<BlockId> {
    let mut candidates = std::iter::successors(Some(branch), |&block| graph.dominator[block]);
    candidates.find(|&block| {
        let closed = block != join && graph.dominates(block, join) && graph.post_dominates(join, block);
        closed && !graph.is_in_cycle(block, join)
    })
}

/// A barrier for each region that no region uses in which lanes may be at the same time: one around it, or one on the other side
/// of a branch. `None` when all are taken.
fn barriers(graph: &Graph, uniform: &Uniform, regions: &[Region]) -> Vec<Option<ConvBarrier>> {
    let inside: Vec<Vec<bool>> = regions
        .iter()
        .map(|region| graph.reach(&[region.fork], Some(region.join)))
        .collect();
    let sides = sides(graph, uniform, regions);
    let mut taken: Vec<Option<ConvBarrier>> = Vec::new();
    for (n, region) in regions.iter().enumerate() {
        let around = |m: usize| inside[m][region.fork] || inside[n][regions[m].fork];
        let beside = |m: usize| meets(&sides[m][0], &sides[n][1]) || meets(&sides[m][1], &sides[n][0]);
        let used: Vec<ConvBarrier> = (0..n)
            .filter(|&m| around(m) || beside(m))
            .filter_map(|m| taken[m])
            .collect();
        let free = (0..ConvBarrier::COUNT as u8)
            .map(ConvBarrier)
            .find(|conv| !used.contains(conv));
        taken.push(free);
    }
    taken
}

/// For each region the branches on whose first and on whose second side it is entered, a bit each.
fn sides(graph: &Graph, uniform: &Uniform, regions: &[Region]) -> Vec<[Vec<u64>; 2]> {
    let branches: Vec<BlockId> = (0..graph.successors.len())
        .filter(|&block| uniform.divergent_branch[block])
        .collect();
    let mut sides = vec![[(); 2].map(|()| vec![0; branches.len().div_ceil(64)]); regions.len()];
    for (bit, &branch) in branches.iter().enumerate() {
        for (side, &next) in graph.successors[branch].iter().enumerate() {
            let reached = graph.reach(&[next], graph.post_dominator[branch]);
            for (region, sides) in regions.iter().zip(&mut sides) {
                sides[side][bit / 64] |= u64::from(reached[region.fork]) << (bit % 64);
            }
        }
    }
    sides
}

fn meets(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// BSSY before the fork's branch, behind the BSSYs of regions around it; BSYNC first thing at the join.
fn insert(code: &mut Code, region: &Region, conv: ConvBarrier) {
    let line = |ops: &[Op]| ops.first().map_or(0, |op| op.line);
    let mut enter = Op::row(Opcode::Bssy);
    enter.conv = conv;
    enter.target = Some(region.join);
    let fork = &mut code.blocks[region.fork].ops;
    let ends = fork.last().is_some_and(|op| op.is(Opcode::Bra));
    let at = fork.len() - usize::from(ends);
    enter.line = line(&fork[at..]);
    fork.insert(at, enter);
    let join = &mut code.blocks[region.join].ops;
    let mut leave = Op::row(Opcode::Bsync);
    leave.conv = conv;
    leave.line = line(join);
    join.insert(0, leave);
}
