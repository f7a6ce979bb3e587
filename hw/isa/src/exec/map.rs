//! Loops over the 32 lanes, in forms that compilers vectorize: no early exit, no skipped lane.

use crate::lane::{LaneMask, Lanes, WARP_SIZE};

/// The mask bit of each lane. A table, because some hosts have no per-lane vector shift.
const BIT: [u32; WARP_SIZE] = {
    let mut bits = [0; WARP_SIZE];
    let mut lane = 0;
    while lane < WARP_SIZE {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

#[inline(always)]
fn bit(lane: usize) -> u32 {
    BIT[lane]
}

#[inline(always)]
pub(super) fn map1(out: &mut Lanes, a: &Lanes, f: impl Fn(u32) -> u32) {
    for lane in 0..WARP_SIZE {
        out.0[lane] = f(a.0[lane]);
    }
}

#[inline(always)]
pub(super) fn map2(out: &mut Lanes, a: &Lanes, b: &Lanes, f: impl Fn(u32, u32) -> u32) {
    for lane in 0..WARP_SIZE {
        out.0[lane] = f(a.0[lane], b.0[lane]);
    }
}

#[inline(always)]
pub(super) fn map3(out: &mut Lanes, a: &Lanes, b: &Lanes, c: &Lanes, f: impl Fn(u32, u32, u32) -> u32) {
    for lane in 0..WARP_SIZE {
        out.0[lane] = f(a.0[lane], b.0[lane], c.0[lane]);
    }
}

/// Like `map2`, with a flag that is true in the lanes of `mask`.
#[inline(always)]
pub(super) fn map2_where(out: &mut Lanes, mask: LaneMask, a: &Lanes, b: &Lanes, f: impl Fn(bool, u32, u32) -> u32) {
    for lane in 0..WARP_SIZE {
        out.0[lane] = f(mask.0 & bit(lane) != 0, a.0[lane], b.0[lane]);
    }
}

/// Applies `f` to every lane in place.
#[inline(always)]
pub(super) fn update(lanes: &mut Lanes, f: impl Fn(u32) -> u32) {
    for word in &mut lanes.0 {
        *word = f(*word);
    }
}

/// Returns one in the lanes of `mask` and zero elsewhere.
#[inline(always)]
pub(super) fn ones(mask: LaneMask) -> Lanes {
    let mut out = Lanes::ZERO;
    for lane in 0..WARP_SIZE {
        out.0[lane] = u32::from(mask.0 & bit(lane) != 0);
    }
    out
}

/// Returns the lanes in which `f` is true.
#[inline(always)]
pub(super) fn lanes_where(f: impl Fn(usize) -> bool) -> LaneMask {
    let mut mask = 0;
    for lane in 0..WARP_SIZE {
        mask |= if f(lane) { bit(lane) } else { 0 };
    }
    LaneMask(mask)
}

/// Returns the 64-bit value of a lane from its two words.
#[inline(always)]
pub(super) fn wide([low, high]: [&Lanes; 2], lane: usize) -> u64 {
    u64::from(high.0[lane]) << 32 | u64::from(low.0[lane])
}

/// Writes a 64-bit value per lane as two words.
#[inline(always)]
pub(super) fn put_wide(out: &mut [Lanes], f: impl Fn(usize) -> u64) {
    let [low, high, ..] = out else {
        unreachable!("a wide result has two words")
    };
    for lane in 0..WARP_SIZE {
        let value = f(lane);
        low.0[lane] = value as u32;
        high.0[lane] = (value >> 32) as u32;
    }
}
