//! Exchanges between the lanes of a warp: votes, matches, reductions, shuffles. Only the active lanes take part.

use super::map::wide;
use super::{Results, Step, fp32};
use crate::inst::{AtomOp, ShflMode, Ty, VoteMode};
use crate::lane::{LaneMask, Lanes, WARP_SIZE};

/// The word is the ballot in every mode.
pub(super) fn vote(step: &Step, results: &mut Results) {
    let active = step.active;
    let ballot = step.operands.preds[0] & active;
    let holds = match step.inst.mods.vote {
        VoteMode::Ballot | VoteMode::Any => !ballot.is_empty(),
        VoteMode::All => ballot == active,
        VoteMode::Uni => ballot == active || ballot.is_empty(),
    };
    results.words[0] = Lanes::splat(ballot.0);
    results.preds[0] = everywhere(holds);
}

fn everywhere(holds: bool) -> LaneMask {
    if holds { LaneMask::ALL } else { LaneMask::NONE }
}

pub(super) fn match_lanes(step: &Step, results: &mut Results) {
    let is_wide = step.inst.mods.ty.words() == 2;
    let value = |lane: usize| {
        if is_wide {
            wide(step.pair(0), lane)
        } else {
            step.a().0[lane].into()
        }
    };
    let equals = |lane: usize| {
        let same = step.active.iter().filter(|&other| value(other) == value(lane));
        same.fold(0, |mask, other| mask | 1 << other)
    };
    match step.inst.mods.vote {
        VoteMode::All => {
            let all = step.active.lowest().is_some_and(|lane| equals(lane) == step.active.0);
            results.words[0] = Lanes::splat(if all { step.active.0 } else { 0 });
            results.preds[0] = everywhere(all);
        }
        _ => {
            results.words[0].0 = std::array::from_fn(equals);
            results.preds[0] = LaneMask::ALL;
        }
    }
}

/// Add, min, max, and, or, xor; `ty` gives the order of min and max.
pub(super) fn redux(step: &Step, results: &mut Results) {
    let mods = &step.inst.mods;
    if mods.ty == Ty::F32 {
        let least = mods.atom == AtomOp::Min;
        let join = |x, y| fp32::choose(least, mods.unordered, x, y);
        let words = step.active.iter().map(|lane| step.a().0[lane]);
        // One value joined with itself has a NaN in the canonical form.
        let extreme = words.reduce(join).map_or(0, |word| join(word, word));
        results.words[0] = Lanes::splat(extreme);
        return;
    }
    let join = |x: u32, y: u32| match (mods.atom, mods.ty.is_signed()) {
        (AtomOp::Min, true) => (x as i32).min(y as i32) as u32,
        (AtomOp::Min, false) => x.min(y),
        (AtomOp::Max, true) => (x as i32).max(y as i32) as u32,
        (AtomOp::Max, false) => x.max(y),
        (AtomOp::And, _) => x & y,
        (AtomOp::Or, _) => x | y,
        (AtomOp::Xor, _) => x ^ y,
        _ => x.wrapping_add(y),
    };
    let words = step.active.iter().map(|lane| step.a().0[lane]);
    results.words[0] = Lanes::splat(words.reduce(join).unwrap_or(0));
}

/// PTX shfl: bits 0 to 4 of c are the clamp, bits 8 to 12 the bits of the lane number that stay within a segment.
/// A lane that reads past the clamp keeps its own word; so does one that reads a lane which is not active.
pub(super) fn shfl(step: &Step, results: &mut Results) {
    match step.inst.mods.shfl {
        ShflMode::Up => exchange(step, results, |lane, b, _, bound| (lane - b, lane - b >= bound)),
        ShflMode::Down => exchange(step, results, |lane, b, _, bound| (lane + b, lane + b <= bound)),
        ShflMode::Bfly => exchange(step, results, |lane, b, _, bound| (lane ^ b, lane ^ b <= bound)),
        ShflMode::Idx => exchange(step, results, |lane, b, segment, bound| {
            let from = (lane & segment) | (b & !segment);
            (from, from <= bound)
        }),
    }
}

/// `source` gives lane and validity from the lane, b, the segment's bits and the furthest lane that may be read.
#[inline(always)]
fn exchange(step: &Step, results: &mut Results, source: impl Fn(i32, i32, i32, i32) -> (i32, bool)) {
    let (a, b, c) = (step.a(), step.b(), step.c());
    let mut in_range = 0;
    for lane in 0..WARP_SIZE {
        let (clamp, segment) = ((c.0[lane] & 31) as i32, (c.0[lane] >> 8 & 31) as i32);
        let bound = (lane as i32 & segment) | (clamp & !segment);
        let (from, valid) = source(lane as i32, (b.0[lane] & 31) as i32, segment, bound);
        let from = (from & 31) as usize;
        let taken = valid && step.active.contains(from);
        results.words[0].0[lane] = a.0[if taken { from } else { lane }];
        in_range |= u32::from(valid) << lane;
    }
    results.preds[0] = LaneMask(in_range);
}
