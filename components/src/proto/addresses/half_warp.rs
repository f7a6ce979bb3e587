//! The address pattern of a half-warp: each lane accesses one word of 4 bytes.

use std::ops::Range;

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

use crate::proto::mem::LINE;

/// Lanes of a half-warp.
pub(super) const HALF: usize = WARP_SIZE / 2;

/// The words that the lanes of a half-warp access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HalfAccess {
    /// One word for all lanes.
    Broadcast,
    /// Consecutive words, one per lane.
    UnitStride,
}

impl HalfAccess {
    /// The pattern of the low address words of a half-warp, if they follow one.
    #[inline]
    pub(super) fn recognize(low: &[u32; HALF]) -> Option<Self> {
        const UNIT_STRIDE: [u32; HALF] = unit_stride();
        let (offsets, access) = match low[1].wrapping_sub(low[0]) {
            0 => (&[0; HALF], HalfAccess::Broadcast),
            4 => (&UNIT_STRIDE, HalfAccess::UnitStride),
            _ => return None,
        };
        // No early exit: the host compares many lanes at once.
        let words = low.iter().zip(offsets);
        let differ = words.fold(0, |differ, (word, offset)| {
            differ | (word.wrapping_sub(low[0]) ^ offset)
        });
        (differ == 0).then_some(access)
    }
}

const fn unit_stride() -> [u32; HALF] {
    let mut offsets = [0; HALF];
    let mut lane = 0;
    while lane < HALF {
        offsets[lane] = 4 * lane as u32;
        lane += 1;
    }
    offsets
}

/// The addresses of a half-warp that follow a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HalfWarpPattern {
    /// Address of the first lane.
    pub(super) first: u64,
    pub(super) access: HalfAccess,
}

impl HalfWarpPattern {
    #[inline]
    pub(super) fn is_broadcast(self) -> bool {
        self.access == HalfAccess::Broadcast
    }

    /// Number of words that the lanes access.
    #[inline]
    pub(super) fn n_words(self) -> u64 {
        if self.is_broadcast() { 1 } else { HALF as u64 }
    }

    /// Number of different words of two half-warps.
    #[inline]
    pub(super) fn n_distinct_with(self, other: HalfWarpPattern) -> u32 {
        let (below, above) = if self.first <= other.first {
            (self, other)
        } else {
            (other, self)
        };
        let apart = above.first - below.first;
        let common = match apart % 4 {
            0 => below.n_words().saturating_sub(apart / 4).min(above.n_words()),
            // Bytes at different places of a word.
            _ => 0,
        };
        (below.n_words() + above.n_words() - common) as u32
    }

    /// Address of a lane, counted within the half-warp.
    #[inline]
    pub(super) fn address(self, lane: usize) -> u64 {
        let offset = if self.is_broadcast() { 0 } else { 4 * lane as u64 };
        self.first.wrapping_add(offset)
    }

    /// Address of the highest word.
    #[inline]
    pub(super) fn last(self) -> u64 {
        // Saturated instead of wrapped: both are out of bounds.
        self.first.saturating_add(4 * (self.n_words() - 1))
    }

    /// The OR of the lowest five bits of all addresses.
    #[inline]
    pub(super) fn low_bits(self) -> u64 {
        // 16 consecutive words include every multiple of 4.
        self.first & 0x1f | if self.is_broadcast() { 0 } else { 0x1c }
    }

    /// Address after the highest word.
    #[inline]
    fn end(self) -> u64 {
        // No overflow: the AGU has refused addresses beyond every allocation.
        self.first + 4 * self.n_words()
    }

    /// Calls `visit` for each line: the bytes accessed there, and the lanes. Words are aligned, so there are one or two lines.
    #[inline]
    pub(super) fn for_each_line(self, mut visit: impl FnMut(Range<u64>, LaneMask)) {
        let (first, end) = (self.first, self.end());
        let next_line = (first / LINE as u64 + 1) * LINE as u64;
        let lanes = LaneMask::first(HALF as u32);
        if end <= next_line {
            return visit(first..end, lanes);
        }
        let first_lanes = LaneMask::first(((next_line - first) / 4) as u32);
        visit(first..next_line, first_lanes);
        visit(next_line..end, lanes & !first_lanes);
    }

    /// The lanes whose words are in the `bytes` bytes from `base` on, and the index there of the first such word.
    #[inline]
    pub(super) fn within(self, base: u64, bytes: usize) -> (Range<usize>, usize) {
        let from = self.first.max(base);
        let end = self.end().min(base + bytes as u64);
        if from >= end {
            return (0..0, 0);
        }
        let lanes = match self.access {
            HalfAccess::Broadcast => 0..HALF,
            HalfAccess::UnitStride => (from - self.first) as usize / 4..(end - self.first) as usize / 4,
        };
        (lanes, (from - base) as usize / 4)
    }
}
