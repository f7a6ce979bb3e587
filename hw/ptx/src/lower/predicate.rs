//! Short stretches that a branch jumps over run under its predicate instead.
//!
//! Takes: split code behind `jumps`. Promises: the same values. A stretch of at most [`LONGEST`] operations that only the branch
//! before it leads to, and that only leads to the branch's target, joins the block before it; so does what follows, if nothing else
//! leads there, and the scheduler sees one block. Accesses and what later code reads are guarded; other sums and products are made
//! in any case, because nobody sees them.

use super::code::{BlockId, Code, Op, What, When};
use super::graph::Graph;
use super::live;
use warpwave_isa::opcode::{Opcode, Pipe};

/// Operations that cost less than a branch and the wait for it.
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

/// A block that a branch jumps over.
struct Skip {
    over: BlockId,
    to: BlockId,
    /// When the block runs.
    when: When,
    /// Whether nothing else leads to where the branch goes.
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

/// The first block from here on that is not empty.
fn landing(code: &Code, from: BlockId) -> Option<BlockId> {
    (from..code.blocks.len()).find(|&block| !code.blocks[block].ops.is_empty())
}

/// Blocks with operations that go on at this one, in order.
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

/// Whether running an operation without need costs nothing but its issue.
fn is_cheap(op: &Op) -> bool {
    let What::Row(opcode) = op.what else { return false };
    matches!(opcode.info().pipe, Pipe::Int | Pipe::Fp32 | Pipe::Half) && !op.has_effect()
}
