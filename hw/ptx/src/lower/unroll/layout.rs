//! Blocks in place of a loop, and chains of blocks that become one.

use crate::lower::code::{Block, BlockId, Code, Op, VGuard};
use crate::lower::graph::Graph;
use warpwave_isa::opcode::Opcode;

/// Code in place of a loop. Targets of its jumps are those of `Copier`.
pub(super) struct Region {
    pub header: BlockId,
    pub latch: BlockId,
    pub blocks: Vec<Block>,
    /// Blocks of the list that begin a loop, which is not unrolled further.
    pub kept_loops: Vec<usize>,
}

/// Replaces loops by the code of their regions, which are in order.
pub(super) fn replace(code: &mut Code, regions: Vec<Region>) {
    let n_blocks = code.blocks.len();
    let mut old: Vec<Block> = std::mem::take(&mut code.blocks);
    // New number of each block. A block inside a loop has none, because only its header is entered from outside.
    let mut numbers = vec![0; n_blocks + 1];
    // First block of the region that each new block belongs to.
    let mut firsts = Vec::new();
    let mut new: Vec<Block> = Vec::new();
    let mut kept = Vec::new();
    let mut regions = regions.into_iter().peekable();
    let mut block = 0;
    while block < n_blocks {
        numbers[block] = new.len();
        match regions.next_if(|region| region.header == block) {
            Some(region) => {
                let first = new.len();
                kept.extend(region.kept_loops.iter().map(|at| first + at));
                new.extend(region.blocks);
                block = region.latch + 1;
                firsts.resize(new.len(), first);
            }
            None => {
                new.push(std::mem::take(&mut old[block]));
                block += 1;
                firsts.resize(new.len(), 0);
            }
        }
    }
    numbers[n_blocks] = new.len();
    for (block, first) in new.iter_mut().zip(firsts) {
        for target in block.ops.iter_mut().filter_map(|op| op.target.as_mut()) {
            *target = if *target < n_blocks {
                numbers[*target]
            } else {
                first + *target - n_blocks
            };
        }
    }
    code.blocks = new;
    code.kept_loops.iter_mut().for_each(|block| *block = numbers[*block]);
    code.kept_loops.extend(kept);
}

/// Removes blocks that nothing reaches, and appends each block to the one before it if no other leads to it.
pub(super) fn join_chains(code: &mut Code) {
    let graph = Graph::of(code);
    let old = std::mem::take(&mut code.blocks);
    let mut numbers = vec![0; old.len() + 1];
    let mut new: Vec<Block> = Vec::new();
    // Number of the old block whose operations end the last new block.
    let mut last = None;
    for (block, mut body) in old.into_iter().enumerate() {
        numbers[block] = new.len();
        if !graph.is_reachable(block) {
            continue;
        }
        let follows = last.is_some()
            && graph.predecessors[block]
                .iter()
                .filter(|&&from| graph.is_reachable(from))
                .eq(last.iter());
        let before = new.last_mut().filter(|_| follows);
        if let Some(before) = before.filter(|before| goes_to_next(&before.ops)) {
            numbers[block] -= 1;
            before.ops.pop_if(|op| op.is(Opcode::Bra));
            before.ops.append(&mut body.ops);
        } else {
            new.push(body);
        }
        last = Some(block);
    }
    numbers[graph.successors.len()] = new.len();
    for op in new.iter_mut().flat_map(|block| &mut block.ops) {
        op.target = op.target.map(|target| numbers[target]);
    }
    code.blocks = new;
    code.kept_loops.iter_mut().for_each(|block| *block = numbers[*block]);
}

/// True if a block with one successor goes there without a condition. After a guarded jump or end the next block begins.
fn goes_to_next(ops: &[Op]) -> bool {
    let is_end = |op: &Op| op.is(Opcode::Bra) || op.is(Opcode::Exit) || op.is(Opcode::Trap);
    ops.last().is_none_or(|op| !is_end(op) || op.guard == VGuard::ALWAYS)
}
