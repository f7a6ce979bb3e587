//! Exchanges between the lanes of a warp: vote, match, reduction, shuffle. Only the active lanes take part.

use super::map::wide;
use super::{ExecInput, Results, fp32};
use crate::inst::{AtomOp, ShflMode, Ty, VoteMode};
use crate::lane::{LaneMask, Lanes, WARP_SIZE};

/// Votes. The result word is the ballot in every mode.
pub(super) fn vote(input: &ExecInput, results: &mut Results) {
    let active = input.active;
    let ballot = input.operands.preds[0] & active;
    let holds = match input.inst.mods.vote {
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

pub(super) fn match_lanes(input: &ExecInput, results: &mut Results) {
    let is_wide = input.inst.mods.ty.words() == 2;
    let value = |lane: usize| {
        if is_wide {
            wide(input.pair(0), lane)
        } else {
            input.a().0[lane].into()
        }
    };
    let equals = |lane: usize| {
        let same = input.active.iter().filter(|&other| value(other) == value(lane));
        same.fold(0, |mask, other| mask | 1 << other)
    };
    match input.inst.mods.vote {
        VoteMode::All => {
            // All lanes are equal if they are equal to one of them.
            let all = input.active.lowest().is_some_and(|lane| equals(lane) == input.active.0);
            results.words[0] = Lanes::splat(if all { input.active.0 } else { 0 });
            results.preds[0] = everywhere(all);
        }
        _ => {
            results.words[0].0 = std::array::from_fn(equals);
            results.preds[0] = LaneMask::ALL;
        }
    }
}

/// Reduces by add, min, max, and, or, xor. `ty` gives the order of min and max.
pub(super) fn redux(input: &ExecInput, results: &mut Results) {
    let mods = &input.inst.mods;
    if mods.ty == Ty::F32 {
        let least = mods.atom == AtomOp::Min;
        let join = |x, y| fp32::min_or_max(least, mods.unordered, x, y);
        let words = input.active.iter().map(|lane| input.a().0[lane]);
        // Combining the value with itself makes a NaN canonical.
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
    let words = input.active.iter().map(|lane| input.a().0[lane]);
    results.words[0] = Lanes::splat(words.reduce(join).unwrap_or(0));
}

/// Shuffles (PTX shfl). Bits 0 to 4 of c are the clamp, bits 8 to 12 the segment mask.
///
/// The segment mask has the lane-number bits that must not change.
///
/// A lane keeps its own word if it reads past the clamp or from an inactive lane.
pub(super) fn shfl(input: &ExecInput, results: &mut Results) {
    match input.inst.mods.shfl {
        // Shifted up, the bound is the first lane of the segment, so the source must not be below it.
        ShflMode::Up => exchange(input, results, |lane, b, _, bound| (lane - b, lane - b >= bound)),
        ShflMode::Down => exchange(input, results, |lane, b, _, bound| (lane + b, lane + b <= bound)),
        ShflMode::Bfly => exchange(input, results, |lane, b, _, bound| (lane ^ b, lane ^ b <= bound)),
        ShflMode::Idx => exchange(input, results, |lane, b, segment, bound| {
            let from = (lane & segment) | (b & !segment);
            (from, from <= bound)
        }),
    }
}

/// Shuffles with a rule: `source` maps lane, b, segment mask and clamp to the source lane and its validity.
#[inline(always)]
fn exchange(input: &ExecInput, results: &mut Results, source: impl Fn(i32, i32, i32, i32) -> (i32, bool)) {
    let (a, b, c) = (input.a(), input.b(), input.c());
    let mut in_range = 0;
    for lane in 0..WARP_SIZE {
        let (clamp, segment) = ((c.0[lane] & 31) as i32, (c.0[lane] >> 8 & 31) as i32);
        // The last lane of the segment, or the first for a clamp of 0 (PTX shfl).
        let bound = (lane as i32 & segment) | (clamp & !segment);
        let (from, valid) = source(lane as i32, (b.0[lane] & 31) as i32, segment, bound);
        let from = (from & 31) as usize;
        let taken = valid && input.active.contains(from);
        results.words[0].0[lane] = a.0[if taken { from } else { lane }];
        in_range |= u32::from(valid) << lane;
    }
    results.preds[0] = LaneMask(in_range);
}
