//! Loop unrolling: copies of a loop's body in a row, with fewer tests and increments.
//!
//! - A known number of iterations: copies replace the loop if they are short enough. Otherwise the loop gets as many copies as fit into some
//!   340 instructions. The iterations left over follow it.
//! - Otherwise a short loop gets four copies. They run while four iterations are left for certain, and the original loop runs the rest.
//!
//! A counter starts as a constant and grows by a constant, so it is a constant or a displacement in each copy. Its compares, increments and
//! address arithmetic are folded. Inner loops come first. A loop around a remaining loop stays as it is.
//!
//! Lanes with different numbers of iterations leave the copies one by one, as they leave the loop. Each operation runs as often as before, on
//! the same values. The limits are those of the vendor's assembler: `hw/docs/unrolling.md`.

mod copy;
mod four;
mod layout;
mod locals;
mod loops;

use super::code::{Arg, Code, Op, OpKind, VGuard, Wide};
use super::graph::Graph;
use super::{Pass, addresses, copy_prop, dce, fold, spin};
use copy::{Copier, Start, comparison};
use layout::Region;
use locals::{Live, Locals};
use loops::Loop;
use std::ops::Range;
use warpwave_isa::inst::{CacheOp, Cmp, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

/// Limit of iterations times (body + 1)² for copies in place of a loop.
const MAX_SQUARES: u64 = 23_500;
/// Limits of a loop with few iterations: their number, and the operations of all copies.
const MAX_SHORT: (u64, u64) = (6, 384);
/// Limit of the copies in a loop and behind it. It gives the copies of all seven loops in the table.
const MAX_PARTIAL: u64 = 340;
/// Unrolling keeps a kernel below this number of operations. Assumed: it limits the time to compile.
const MAX_OPS: u64 = 50_000;
/// Levels of nested loops that are unrolled. Assumed: it limits the time to compile.
const MAX_LEVELS: usize = 8;

pub(super) fn run(code: &mut Code) {
    if code.keeps_loops {
        return;
    }
    for _ in 0..MAX_LEVELS {
        let regions = regions(code);
        if regions.is_empty() {
            return;
        }
        layout::replace(code, regions);
        layout::join_chains(code);
        // Increments that nothing reads are gone first: they are second definitions of their registers.
        let cleaning: [Pass; 4] = [
            ("dce", dce::run),
            ("copy_prop", copy_prop::run),
            ("addresses", addresses::run),
            ("dce", dce::run),
        ];
        for (name, pass) in cleaning {
            if !code.skipped.contains(name) {
                pass(code);
            }
        }
    }
}

/// Unrolls each loop without inner loops, or keeps it for good.
fn regions(code: &mut Code) -> Vec<Region> {
    let graph = Graph::of(code);
    let loops = loops::innermost(code, &graph);
    if loops.is_empty() {
        return Vec::new();
    }
    let live = Live::of(code, &graph);
    // Lanes that leave a spin loop do not wait for the others. Without the loop they would.
    let spins = spin::spin_exits(code, &graph);
    let mut n_ops = code.ops().count() as u64;
    let mut regions = Vec::new();
    for shape in &loops {
        let locals = live.locals(code, &graph, shape);
        let n_body = code.blocks[shape.blocks()]
            .iter()
            .map(|block| block.ops.len() as u64)
            .sum::<u64>();
        // Moves count here, unlike in the limits of the plan.
        let is_short = |plan: &Plan| n_ops.saturating_add(plan.copies().saturating_mul(n_body)) < MAX_OPS;
        let region = plan(code, shape)
            .filter(|plan| is_short(plan) && !shape.blocks().any(|block| spins[block]))
            .and_then(|plan| unrolled(code, shape, &plan, locals));
        match region {
            Some(region) => {
                n_ops += region.blocks.iter().map(|block| block.ops.len() as u64).sum::<u64>();
                regions.push(region);
            }
            None => code.kept_loops.push(shape.header),
        }
    }
    regions
}

/// What becomes of a loop.
enum Plan {
    /// This many whole iterations in place of the loop.
    Whole(u64),
    /// `rounds` of a loop with `copies`, and `rest` iterations behind it.
    Partial { copies: u64, rounds: u64, rest: u64 },
    /// Four copies while four iterations are left, then the loop.
    Four,
}

impl Plan {
    /// Returns the number of copies of the body. With a test before the end, one more copy holds the part in front of it.
    fn copies(&self) -> u64 {
        match *self {
            Plan::Whole(n) => n + 1,
            Plan::Partial { copies, rest, .. } => copies + rest + 1,
            Plan::Four => 5,
        }
    }
}

/// Returns what becomes of a loop; `None` if it stays as it is.
fn plan(code: &Code, shape: &Loop) -> Option<Plan> {
    let ops = || code.blocks[shape.blocks()].iter().flat_map(|block| &block.ops);
    if ops().any(stays_in_loop) {
        return None;
    }
    shape.test?;
    let size: u64 = ops().map(instructions).sum();
    // The increment of the counter and the test.
    let body = size.saturating_sub(2);
    let Some(passes) = shape.passes() else {
        let fits = !shape.breaks && !shape.ends && size < max_rolled(ops());
        // Lanes with different counters may run the copies at different times, and a matrix instruction needs all lanes.
        let keeps_warp = shape.counters[shape.test?.counter].start.is_some() || !ops().any(is_of_warp);
        return (fits && keeps_warp).then_some(Plan::Four);
    };
    // The last iteration of a loop with its test at the end is whole.
    let n = passes.checked_add(u64::from(shape.tests_at_end()))?;
    let squares = n.saturating_mul((body + 1) * (body + 1));
    if squares <= MAX_SQUARES || n <= MAX_SHORT.0 && n * body <= MAX_SHORT.1 {
        return Some(Plan::Whole(n));
    }
    // Only whole iterations are certain to run in a row.
    let most = (MAX_PARTIAL / body.max(1)).min(n / 2);
    let copies = (4..=most)
        .rev()
        .find(|copies| (copies + n % copies) * body <= MAX_PARTIAL);
    let (copies, _) = copies.zip((!shape.breaks && !shape.ends).then_some(()))?;
    Some(Plan::Partial {
        copies,
        rounds: n / copies,
        rest: n % copies,
    })
}

/// True for an operation whose loop stays as it is. The vendor's assembler keeps loops with exchanges between lanes and fences. Votes stay
/// too, because lanes with other numbers of iterations would vote apart. A test of an mbarrier polls. P2R and R2P use predicates that are no
/// operands.
fn stays_in_loop(op: &Op) -> bool {
    use Opcode::*;
    let OpKind::Machine(opcode) = op.kind else { return false };
    let is_exchange = matches!(opcode, Shfl | Vote | Match | Redux) || is_explicit_sync(op);
    let is_fence_or_wait = matches!(opcode, Membar | FenceView | CctlIvall | Nanosleep | Syncs);
    is_exchange || is_fence_or_wait || matches!(opcode, Brx | P2r | R2p)
}

/// True for an operation that all lanes of a warp compute together.
fn is_of_warp(op: &Op) -> bool {
    use Opcode::*;
    matches!(op.kind, OpKind::Machine(Mma | MmaSp | Ldsm | Hgmma | HgmmaSp))
}

/// True for a `bar.warp.sync` of the text. The syncs that selection adds to other instructions usually go.
fn is_explicit_sync(op: &Op) -> bool {
    op.is(Opcode::Warpsync) && op.mods.count == 1
}

/// Returns the number of machine instructions of an operation. Moves between registers and the branch of the loop count as none.
fn instructions(op: &Op) -> u64 {
    match op.kind {
        OpKind::Machine(Opcode::Mov | Opcode::Bra | Opcode::Warpsync) | OpKind::Wide(Wide::Mov) => 0,
        OpKind::Machine(_) => 1,
        OpKind::Wide(Wide::Mad) => 3,
        OpKind::Wide(_) => 2,
    }
}

/// Returns the size of the largest loop that gets four copies, with its counter, test and branch. It depends on the kind of the body.
fn max_rolled<'c>(ops: impl Iterator<Item = &'c Op>) -> u64 {
    let (mut shared, mut loads, mut stores, mut volatile) = (0, 0, 0, false);
    for op in ops {
        let reads = op.is(Opcode::Ld) || op.is(Opcode::Ldc);
        shared += u32::from(reads && op.mods.space == Space::Shared);
        loads += u32::from(reads);
        stores += u32::from(op.is(Opcode::St));
        volatile |= reads && op.mods.cache == CacheOp::Volatile;
    }
    match (shared, loads, stores) {
        _ if volatile => 26,
        (1.., ..) => 60,
        (_, 0, 1..) => 12,
        (_, 1.., 1..) => 27,
        (_, 1, _) => 35,
        (_, 2.., _) => 32,
        _ => 21,
    }
}

/// Returns the code in place of a loop.
fn unrolled(code: &mut Code, shape: &Loop, plan: &Plan, locals: Locals) -> Option<Region> {
    let mut copier = Copier::new(code, shape, locals);
    let kept_loops = match *plan {
        Plan::Whole(n) => {
            add_iterations(&mut copier, shape, 0..n);
            Vec::new()
        }
        Plan::Partial { copies, rounds, rest } => {
            add_rounds(&mut copier, shape, copies, rounds)?;
            let first = copies * rounds;
            add_iterations(&mut copier, shape, first..first + rest);
            vec![0]
        }
        Plan::Four => four::add(&mut copier, shape)?,
    };
    Some(Region {
        header: shape.header,
        latch: shape.latch,
        blocks: copier.blocks,
        kept_loops,
    })
}

/// Adds the last iterations of a loop. A test before the end of the body needs one more copy: the part in front of the test.
fn add_iterations(copier: &mut Copier<'_>, shape: &Loop, iterations: Range<u64>) {
    let end = iterations.end + u64::from(!shape.tests_at_end());
    for n in iterations.start..end {
        let k = n - iterations.start;
        copier.copy(Start::Iteration { n, k }, n + 1 == end);
    }
}

/// Adds a loop of several copies that runs `rounds` times. Its test compares the counter with a constant.
fn add_rounds(copier: &mut Copier<'_>, shape: &Loop, copies: u64, rounds: u64) -> Option<()> {
    let counter = &shape.counters[shape.test?.counter];
    let begin = copier.blocks.len();
    for k in 0..copies {
        copier.copy(Start::Registers { k }, false);
    }
    let line = last_line(copier, shape);
    copier.finish(true, line);
    let end = counter.cut(counter.start?.wrapping_add(counter.step.wrapping_mul(copies * rounds)));
    let goes_on = copier.code.new_pred();
    let test = comparison(counter.words).src(&[Arg::vreg(counter.vreg), Arg::imm(end)]);
    let test = test.pdst(goes_on).mods(|mods| {
        mods.cmp = Cmp::Ne;
        mods.ty = unsigned(counter.words);
    });
    copier.push(Op { line, ..test });
    copier.push_branch(copier.label(begin), VGuard::pred(goes_on), line);
    Some(())
}

/// Returns the line of the branch back.
fn last_line(copier: &Copier<'_>, shape: &Loop) -> u32 {
    copier.code.blocks[shape.latch].ops.last().map_or(0, |op| op.line)
}

fn unsigned(words: u8) -> Ty {
    if words == 2 { Ty::U64 } else { Ty::U32 }
}
