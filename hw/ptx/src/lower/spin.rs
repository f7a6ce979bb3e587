//! Spin loops: finds branches that leave a loop waiting for memory, such as a lock or a flag.
//!
//! A lane that leaves such a loop may hold the lock that other lanes wait for. So it must not wait for them at the loop's end:
//! PTX promises that each thread makes progress.
//!
//! A loop spins if its exit tests an atomic or volatile load with operands that no iteration changes. The loop must not write
//! other memory. A loop that retries with the value just read (a maximum by compare-and-swap) makes progress alone. Its lanes
//! reconverge after it as after any other loop.
//!
//! GPUs before Volta do not promise that. With a stack, no exit is marked. Lanes wait for each other at the end of every loop.
//!
//! Source: PTX ISA, memory consistency model; forward progress of the atomics that CUDA C builds on it.

use std::collections::BTreeSet;

use super::code::{BlockId, Code, Op, VGuard, VPred, VReg};
use super::graph::Graph;
use warpwave_isa::flow::Reconvergence;
use warpwave_isa::inst::CacheOp;
use warpwave_isa::opcode::Opcode;

/// Marks the blocks that leave a spin loop by their last branch.
pub(super) fn spin_exits(code: &Code, graph: &Graph) -> Vec<bool> {
    let mut spin_exits = vec![false; code.blocks.len()];
    if code.reconvergence == Reconvergence::Stack {
        return spin_exits;
    }
    for (latch, header) in back_edges(graph) {
        let body = body(graph, latch, header);
        if !may_spin(code, &body) {
            continue;
        }
        for block in (0..spin_exits.len()).filter(|&block| body[block]) {
            let leaves = graph.successors[block].iter().any(|&next| !body[next]);
            spin_exits[block] |= leaves && is_spin_exit(code, &body, block);
        }
    }
    spin_exits
}

fn back_edges(graph: &Graph) -> Vec<(BlockId, BlockId)> {
    let edges = graph.successors.iter().enumerate();
    let edges = edges.flat_map(|(from, nexts)| nexts.iter().map(move |&to| (from, to)));
    // An edge to a dominator closes a natural loop.
    edges.filter(|&(from, to)| graph.dominates(to, from)).collect()
}

/// Marks the blocks of a loop: its header, and all blocks that reach the latch without passing it.
fn body(graph: &Graph, latch: BlockId, header: BlockId) -> Vec<bool> {
    let mut body = vec![false; graph.successors.len()];
    // Marked first, so that the walk stops at the header.
    body[header] = true;
    let mut worklist = vec![latch];
    while let Some(block) = worklist.pop() {
        if !std::mem::replace(&mut body[block], true) {
            worklist.extend(&graph.predecessors[block]);
        }
    }
    body
}

/// True if a loop polls, and has no store that is no poll. Debug code has loops with thousands of blocks, most of them with a store.
fn may_spin(code: &Code, body: &[bool]) -> bool {
    let ops = || {
        let blocks = code.blocks.iter().zip(body).filter(|(_, inside)| **inside);
        blocks.flat_map(|(block, _)| &block.ops)
    };
    ops().any(is_poll) && !ops().any(|op| op.is(Opcode::St) || op.is(Opcode::Red))
}

/// True if block `exit` leaves the loop `body` by a test of polled memory.
fn is_spin_exit(code: &Code, body: &[bool], exit: BlockId) -> bool {
    let blocks = code.blocks.iter().zip(body).filter(|(_, inside)| **inside);
    let ops: Vec<&Op> = blocks.flat_map(|(block, _)| &block.ops).collect();
    let guard = code.blocks[exit]
        .ops
        .last()
        .filter(|op| op.is(Opcode::Bra) && op.guard != VGuard::ALWAYS);
    let Some(pred) = guard.and_then(|op| op.guard.pred) else {
        return false;
    };
    let polls = polled_accesses(&ops, pred);
    let writes = ops
        .iter()
        .any(|op| writes_memory(op) && !polls.iter().any(|poll| std::ptr::eq(*poll, *op)));
    !polls.is_empty() && !writes && polls.iter().all(|poll| is_unchanging(&ops, poll))
}

/// Returns the polling accesses that a predicate depends on.
fn polled_accesses<'c>(ops: &[&'c Op], pred: VPred) -> Vec<&'c Op> {
    let (mut vregs, mut preds) = (BTreeSet::new(), BTreeSet::from([pred]));
    let mut polls: Vec<&Op> = Vec::new();
    // The backward slice of the predicate, until it stops growing. An access ends it: its address is tested apart.
    loop {
        let known = (vregs.len(), preds.len());
        for op in ops {
            let is_needed =
                op.defs().any(|vreg| vregs.contains(&vreg)) || op.pred_defs().any(|pred| preds.contains(&pred));
            if !is_needed {
                continue;
            }
            if is_poll(op) {
                if !polls.iter().any(|poll| std::ptr::eq(*poll, *op)) {
                    polls.push(op);
                }
                continue;
            }
            vregs.extend(op.uses());
            preds.extend(op.pred_uses());
        }
        if known == (vregs.len(), preds.len()) {
            return polls;
        }
    }
}

fn is_poll(op: &Op) -> bool {
    op.is(Opcode::Atom) || op.is(Opcode::Ld) && op.mods.cache == CacheOp::Volatile
}

fn writes_memory(op: &Op) -> bool {
    [Opcode::St, Opcode::Atom, Opcode::Red]
        .iter()
        .any(|&opcode| op.is(opcode))
}

/// True if an access polls the same operands in every iteration: the loop writes only constants to them.
fn is_unchanging(ops: &[&Op], poll: &Op) -> bool {
    let is_written = |vreg: VReg| ops.iter().any(|op| op.defs().any(|def| def == vreg));
    let is_constant = |op: &Op| !is_poll(op) && !op.is(Opcode::Ld) && !op.uses().any(is_written);
    let is_kept = |vreg: VReg| ops.iter().all(|op| op.defs().all(|def| def != vreg) || is_constant(op));
    poll.uses().all(is_kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::{Arg, Block};
    use warpwave_isa::space::Access;

    /// Builds a loop of one block after the entry. Its exit tests predicate 0, which comes from register 9.
    fn exit_spins(inside: &[Op]) -> bool {
        let guard = VGuard::pred(VPred(0));
        let mut back = Op::machine(Opcode::Bra).guard(guard);
        back.target = Some(1);
        let mut compare = Op::machine(Opcode::Isetp).src(&[Arg::vreg(VReg(9))]);
        compare.pdst[0] = Some(VPred(0));
        let ops = inside.iter().copied().chain([compare, back]).collect();
        let code = Code {
            blocks: vec![
                Block {
                    ops: vec![Op::machine(Opcode::Nop)],
                },
                Block { ops },
                Block {
                    ops: vec![Op::machine(Opcode::Exit)],
                },
            ],
            groups: (0..10).map(|vreg| (VReg(vreg), 1)).collect(),
            n_preds: 1,
            ..Code::default()
        };
        spin_exits(&code, &Graph::of(&code))[1]
    }

    /// Returns an access to 4 bytes at the address in registers 2 and 3. Register 9 gets the old value.
    fn access(opcode: Opcode) -> Op {
        let op = Op::machine(opcode).src(&[Arg::vreg(VReg(2))]).dst(VReg(9));
        op.mods(|mods| mods.access = Access::one(4))
    }

    fn swap(compare: Arg) -> Op {
        let mut op = access(Opcode::Atom);
        op.src[1] = compare;
        op
    }

    #[test]
    fn lock_by_repeated_equal_swap_spins() {
        assert!(exit_spins(&[swap(Arg::ZERO)]));
    }

    #[test]
    fn swap_with_last_seen_value_does_not_spin() {
        assert!(!exit_spins(&[swap(Arg::vreg(VReg(9)))]));
    }

    #[test]
    fn loop_that_releases_its_lock_does_not_spin() {
        assert!(!exit_spins(&[swap(Arg::ZERO), Op::machine(Opcode::St)]));
    }

    #[test]
    fn volatile_load_spins_and_plain_load_does_not() {
        let load = access(Opcode::Ld);
        assert!(!exit_spins(&[load]));
        assert!(exit_spins(&[load.mods(|mods| mods.cache = CacheOp::Volatile)]));
    }

    #[test]
    fn counting_loop_does_not_spin() {
        let count = Op::machine(Opcode::Iadd3).src(&[Arg::vreg(VReg(9))]).dst(VReg(9));
        assert!(!exit_spins(&[count]));
    }
}
