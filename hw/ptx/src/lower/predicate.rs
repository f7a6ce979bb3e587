//! If-conversion: replaces a short forward branch by guards.
//!
//! A block that one branch skips, of at most [`LONGEST`] operations, is merged into the block of the branch. It must have no other
//! entry and no other exit than the branch's target. The target is merged too if nothing else leads there, so the scheduler
//! sees one block.
//! Memory accesses and results read later get the guard. Other cheap operations run unguarded, since no later code reads them.
//! The pass needs split code after `jumps`.

use super::code::{BlockId, Code, Op, What, When};
use super::graph::Graph;
use super::live;
use warpwave_isa::opcode::{Opcode, Pipe};

/// Maximum number of operations: more cost as much as a branch and its delay.
const LONGEST: usize = 7;

pub(super) fn run(code: &mut Code) {
    let wanted: Vec<Vec<usize>> = live::behind_blocks::<live::Words>(code, &Graph::of(code));
    let wanted_flags: Vec<Vec<usize>> = live::behind_blocks::<live::Flags>(code, &Graph::of(code));
    for block in 0..code.blocks.len() {
        while let Some(skip) = Skip::behind(code, block) {
            let is_seen = |op: &Op| {
                op.defs().any(|word| wanted[skip.over].contains(&(word.0 as usize)))
                    || op
                        .flag_defs()
                        .any(|flag| wanted_flags[skip.over].contains(&(flag.0 as usize)))
            };
            let ops = std::mem::take(&mut code.blocks[skip.over].ops);
            code.blocks[block].ops.pop();
            for mut op in ops {
                if is_seen(&op) || !is_cheap(&op) {
                    op.guard = skip.when;
                }
                code.blocks[block].ops.push(op);
            }
            if skip.joins {
                let behind = std::mem::take(&mut code.blocks[skip.to].ops);
                code.blocks[block].ops.extend(behind);
            }
        }
    }
}

/// A block that a branch skips.
struct Skip {
    over: BlockId,
    to: BlockId,
    /// Guard under which the block runs.
    when: When,
    /// True if nothing else leads to the branch's target.
    joins: bool,
}

impl Skip {
    fn behind(code: &Code, block: BlockId) -> Option<Skip> {
        let branch = code.blocks[block].ops.last().filter(|op| op.is(Opcode::Bra))?;
        branch.guard.flag?;
        let over = landing(code, block + 1)?;
        let to = landing(code, branch.target?)?;
        let stretch = &code.blocks[over].ops;
        let goes_on = over < to && landing(code, over + 1) == Some(to);
        let fits = stretch.len() <= LONGEST && stretch.iter().all(|op| can_be_guarded(op, branch.guard));
        if !goes_on || !fits || leads_to(code, over) != [block] {
            return None;
        }
        Some(Skip {
            over,
            to,
            when: branch.guard.negated(),
            joins: leads_to(code, to) == [block, over],
        })
    }
}

/// Returns the first block with operations, from `from` on.
fn landing(code: &Code, from: BlockId) -> Option<BlockId> {
    (from..code.blocks.len()).find(|&block| !code.blocks[block].ops.is_empty())
}

/// Returns the blocks with operations that continue at `block`, in order.
fn leads_to(code: &Code, block: BlockId) -> Vec<BlockId> {
    let goes = |&from: &BlockId| {
        let has_code = !code.blocks[from].ops.is_empty();
        has_code && code.successors(from).any(|next| landing(code, next) == Some(block))
    };
    (0..code.blocks.len()).filter(goes).collect()
}

fn can_be_guarded(op: &Op, branch: When) -> bool {
    let What::Row(opcode) = op.what else { return false };
    let is_exchange = matches!(
        opcode,
        Opcode::Vote | Opcode::Match | Opcode::Redux | Opcode::Shfl | Opcode::Mma | Opcode::Ldsm
    );
    let is_plain = op.guard == When::ALWAYS && op.flag_defs().all(|flag| branch.flag != Some(flag));
    is_plain && !is_exchange && opcode.info().pipe != Pipe::Control
}

/// True if the only cost of running the operation needlessly is its issue slot.
fn is_cheap(op: &Op) -> bool {
    let What::Row(opcode) = op.what else { return false };
    matches!(opcode.info().pipe, Pipe::Int | Pipe::Fp32 | Pipe::Half) && !op.has_effect()
}
