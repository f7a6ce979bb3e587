//! Jump simplification, and one entry block per loop.
//!
//! A jump to an EXIT becomes an EXIT. A jump to the next code is removed. A branch around a jump becomes one branch. Unreachable
//! blocks become empty. Each loop gets one block that every entry passes, and one that every back edge passes if there are
//! several: `reconverge` inserts its operations there.

use super::code::{Block, BlockId, Code, Op, VGuard};
use super::graph::Graph;
use warpwave_isa::opcode::Opcode;

pub(super) fn run(code: &mut Code) {
    jumps_to_exits(code);
    branches_around_jumps(code);
    clear_unreachable(code);
    jumps_to_next(code);
    for latch in [true, false] {
        add_gates(code, latch);
    }
}

/// Replaces jumps to a block that only ends by EXIT.
fn jumps_to_exits(code: &mut Code) {
    let ends: Vec<bool> = code
        .blocks
        .iter()
        .map(|block| matches!(block.ops.as_slice(), [op] if is_end(op)))
        .collect();
    for op in code.blocks.iter_mut().filter_map(|block| block.ops.last_mut()) {
        if op.is(Opcode::Bra) && op.target.is_some_and(|target| ends[target]) {
            // As in vendor code: `@P0 EXIT`, without a branch.
            *op = Op {
                line: op.line,
                ..Op::machine(Opcode::Exit).guard(op.guard)
            };
        }
    }
}

fn is_end(op: &Op) -> bool {
    op.is(Opcode::Exit) && op.guard == VGuard::ALWAYS
}

/// Replaces `@p bra A; bra B; A:` by `@!p bra B`.
fn branches_around_jumps(code: &mut Code) {
    let mut jumps = JumpSources::of(code);
    for block in 0..code.blocks.len().saturating_sub(2) {
        let skipped = match code.blocks[block + 1].ops.as_slice() {
            [op] if op.is(Opcode::Bra) && op.guard == VGuard::ALWAYS => *op,
            _ => continue,
        };
        let Some(last) = code.blocks[block].ops.last_mut() else {
            continue;
        };
        if last.is(Opcode::Bra) && last.guard.pred.is_some() && last.target == Some(block + 2) {
            // The fall-through path is now the old target, block + 2.
            last.guard = last.guard.negated();
            last.target = skipped.target;
            // Other jumps to the removed jump go to its target. Without them the block is unreachable.
            code.blocks[block + 1].ops = Vec::new();
            jumps.add(block, skipped.target);
            jumps.redirect(code, block + 1, skipped.target);
        }
    }
}

/// Sources of the jumps to each block. Stale entries are allowed.
struct JumpSources(Vec<Vec<BlockId>>);

impl JumpSources {
    fn of(code: &Code) -> JumpSources {
        let mut jumps = JumpSources(vec![Vec::new(); code.blocks.len()]);
        for (block, body) in code.blocks.iter().enumerate() {
            jumps.add(block, body.ops.last().and_then(|op| op.target));
        }
        jumps
    }

    fn add(&mut self, block: BlockId, target: Option<BlockId>) {
        if let Some(sources) = target.and_then(|target| self.0.get_mut(target)) {
            sources.push(block);
        }
    }

    /// Redirects the jumps to block `from` to block `to`.
    fn redirect(&mut self, code: &mut Code, from: BlockId, to: Option<BlockId>) {
        for block in std::mem::take(&mut self.0[from]) {
            let last = code.blocks[block].ops.last_mut();
            if let Some(op) = last.filter(|op| op.is(Opcode::Bra) && op.target == Some(from)) {
                op.target = to;
                self.add(block, to);
            }
        }
    }
}

fn clear_unreachable(code: &mut Code) {
    let graph = Graph::of(code);
    for block in 0..code.blocks.len() {
        if !graph.is_reachable(block) {
            code.blocks[block].ops.clear();
        }
    }
}

/// Removes jumps that skip only empty blocks.
fn jumps_to_next(code: &mut Code) {
    // First block with code from each block on. A removed jump can only empty an earlier block, so entries stay valid.
    let mut next_filled: Vec<BlockId> = vec![code.blocks.len(); code.blocks.len() + 1];
    for block in (0..code.blocks.len()).rev() {
        let is_empty = code.blocks[block].ops.is_empty();
        next_filled[block] = if is_empty { next_filled[block + 1] } else { block };
    }
    for block in 0..code.blocks.len() {
        let Some(target) = code.blocks[block]
            .ops
            .last()
            .filter(|op| op.is(Opcode::Bra))
            .and_then(|op| op.target)
        else {
            continue;
        };
        if target > block && next_filled[block + 1] >= target {
            code.blocks[block].ops.pop();
        }
    }
}

/// Gives each loop header that needs one a gate: for the back edges if `latch`, otherwise for the entries.
///
/// A gate does not change the needs of another header.
fn add_gates(code: &mut Code, latch: bool) {
    let graph = Graph::of(code);
    // Current position of each original block.
    let mut positions: Vec<BlockId> = (0..code.blocks.len()).collect();
    for header in 0..positions.len() {
        let (back, into): (Vec<BlockId>, Vec<BlockId>) = graph.predecessors[header]
            .iter()
            .partition(|&&before| graph.dominates(header, before));
        // A BSSY in a block with another successor would also run for lanes that do not enter the loop.
        let shared = |&before: &BlockId| graph.successors[before].len() > 1;
        // The kernel's start enters block 0 without a predecessor.
        let needed = match latch {
            true => back.len() > 1,
            false => !back.is_empty() && (header == 0 || into.len() > 1 || into.iter().any(shared)),
        };
        if needed {
            let through: Vec<BlockId> = if latch { back } else { into };
            let through: Vec<BlockId> = through.into_iter().map(|block| positions[block]).collect();
            let at = positions[header];
            let moved = insert_gate(code, at, &through);
            let later = positions.iter_mut().filter(|position| **position >= at);
            later.for_each(|position| *position += moved);
        }
    }
}

/// Creates a block through which the blocks of `through` enter `header`. Returns the distance that the header moved.
///
/// The gate comes before the header. If another block falls through into the header, it comes at the end of the code.
fn insert_gate(code: &mut Code, header: BlockId, through: &[BlockId]) -> usize {
    let neighbour = header
        .checked_sub(1)
        .filter(|&before| falls_through(&code.blocks[before]));
    // A latch of block 0 goes to the end, because the kernel's start must not pass it.
    let in_front = neighbour.is_none_or(|before| through.contains(&before)) && (header > 0 || through.is_empty());
    let gate = if in_front { header } else { code.blocks.len() };
    let moved = usize::from(in_front);
    for (block, body) in code.blocks.iter_mut().enumerate() {
        let Some(op) = body.ops.last_mut().filter(|op| op.is(Opcode::Bra)) else {
            continue;
        };
        op.target = op.target.map(|target| match target {
            _ if target == header && through.contains(&block) => gate,
            _ if target >= header => target + moved,
            _ => target,
        });
    }
    let mut body = Block::default();
    if !in_front {
        let mut jump = Op::machine(Opcode::Bra);
        jump.target = Some(header);
        body.ops.push(jump);
    }
    code.blocks.insert(gate, body);
    moved
}

fn falls_through(block: &Block) -> bool {
    !block.ops.last().is_some_and(Op::ends_flow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::VPred;

    fn jump(target: BlockId) -> Op {
        let mut op = Op::machine(Opcode::Bra);
        op.target = Some(target);
        op
    }

    fn code(blocks: &[&[Op]]) -> Code {
        Code {
            blocks: blocks.iter().map(|ops| Block { ops: ops.to_vec() }).collect(),
            n_preds: 1,
            ..Code::default()
        }
    }

    fn targets(code: &Code) -> Vec<Option<BlockId>> {
        code.blocks
            .iter()
            .map(|block| block.ops.last().and_then(|op| op.target))
            .collect()
    }

    const GUARD: VGuard = VGuard {
        pred: Some(VPred(0)),
        negated: false,
    };

    #[test]
    fn branch_around_a_jump_becomes_one_branch() {
        let nop = Op::machine(Opcode::Nop);
        let mut code = code(&[
            &[jump(2).guard(GUARD)],
            &[jump(3)],
            &[nop],
            &[nop, Op::machine(Opcode::Exit)],
        ]);
        run(&mut code);
        assert_eq!(code.blocks[0].ops, [jump(3).guard(GUARD.negated())]);
        assert!(code.blocks[1].ops.is_empty());
    }

    #[test]
    fn branch_to_an_exit_is_a_guarded_exit() {
        let nop = Op::machine(Opcode::Nop);
        let mut code = code(&[&[jump(2).guard(GUARD)], &[nop], &[Op::machine(Opcode::Exit)]]);
        run(&mut code);
        assert_eq!(code.blocks[0].ops, [Op::machine(Opcode::Exit).guard(GUARD)]);
    }

    #[test]
    fn loop_entered_by_a_branch_gets_an_entry_block() {
        let nop = Op::machine(Opcode::Nop);
        let end = Op::machine(Opcode::Exit);
        let mut code = code(&[&[jump(2).guard(GUARD)], &[nop, jump(1).guard(GUARD)], &[nop, end]]);
        run(&mut code);
        // Block 0 branches over the loop or falls through into the gate, block 1. The loop is block 2.
        assert_eq!(targets(&code), [Some(3), None, Some(2), None]);
        assert!(code.blocks[1].ops.is_empty());
    }

    #[test]
    fn loop_with_two_back_edges_gets_one_latch() {
        let nop = Op::machine(Opcode::Nop);
        let end = Op::machine(Opcode::Exit);
        let mut code = code(&[
            &[nop],
            &[jump(1).guard(GUARD)],
            &[nop, jump(1).guard(GUARD)],
            &[nop, end],
        ]);
        run(&mut code);
        assert_eq!(targets(&code), [None, Some(4), Some(4), None, Some(1)]);
    }
}
