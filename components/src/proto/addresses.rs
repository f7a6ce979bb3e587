//! The byte addresses of a warp access. The LSU computes them, and shared memory reads them.
//!
//! Most accesses of a full warp follow a pattern: each half-warp accesses one word, or 16 consecutive words. Such an access is stored as
//! two patterns, and its lines, banks and bytes are computed without a loop over lanes. Any other access is stored as one address per
//! lane. The form is private to this module.
//!
//! Invariant: both forms of the same addresses give the same results.

mod half_warp;
mod transfer;

use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};

use crate::proto::mem::{LINE, SECTOR, SECTORS};
use half_warp::{HALF, HalfAccess, HalfWarpPattern};

/// The address of each lane of a warp access.
#[derive(Clone, Debug)]
pub struct WarpAddresses {
    /// The patterns of a full warp. `None` if the addresses are in `per_lane`.
    halves: Option<[HalfWarpPattern; 2]>,
    per_lane: [u64; WARP_SIZE],
}

/// Bounds of the addresses of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressBounds {
    /// No address is below this. It need not be an address of the access.
    pub least: u64,
    /// No address is above this. It need not be an address of the access.
    pub greatest: u64,
    /// The OR of the lowest five bits of all addresses. Enough to check an alignment of up to 32 bytes.
    pub low_bits: u64,
}

/// The part of a request on one line. It becomes one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineAccess {
    /// Address of the line.
    pub line: u64,
    /// Sectors accessed, bit i for bytes 32*i to 32*i + 31.
    pub sectors: u8,
    /// Lanes on the line.
    pub lanes: LaneMask,
}

/// The lanes of each request of a warp access. Up to 4 bytes a lane are one request, 8 bytes two, 16 bytes four. Requests without
/// lanes are left out.
#[inline]
pub fn requests(lanes: LaneMask, bytes: u32) -> impl Iterator<Item = LaneMask> {
    let n = bytes.max(4) / 4;
    let per_request = WARP_SIZE as u32 >> n.trailing_zeros();
    (0..n)
        .map(move |request| LaneMask(LaneMask::first(per_request).0 << (request * per_request)) & lanes)
        .filter(|request_lanes| !request_lanes.is_empty())
}

impl WarpAddresses {
    /// Address 0 in each lane.
    pub const ZERO: WarpAddresses = WarpAddresses::per_lane([0; WARP_SIZE]);

    /// One address per lane.
    pub const fn per_lane(per_lane: [u64; WARP_SIZE]) -> Self {
        WarpAddresses { halves: None, per_lane }
    }

    /// Stores the addresses of a full warp, `base` plus `offset` modulo 2^32, if they follow a pattern. If not, returns false without a
    /// change.
    #[inline]
    pub fn set_pattern32(&mut self, base: &Lanes, offset: i32) -> bool {
        self.set_pattern(base, |lane| base.0[lane].wrapping_add(offset as u32).into())
    }

    /// Stores 64-bit addresses of a full warp if they follow a pattern, like [`set_pattern32`](Self::set_pattern32).
    #[inline]
    pub fn set_pattern64(&mut self, low: &Lanes, high: &Lanes, offset: i32) -> bool {
        let differ = high.0.iter().fold(0, |differ, word| differ | (word ^ high.0[0]));
        // If a stride carries into the high word, the low words alone do not show it.
        let carries = [0, HALF]
            .iter()
            .any(|&lane| low.0[lane] > u32::MAX - 4 * (HALF as u32 - 1));
        differ == 0
            && !carries
            && self.set_pattern(low, |lane| {
                let base = u64::from(high.0[lane]) << 32 | u64::from(low.0[lane]);
                base.wrapping_add(offset as i64 as u64)
            })
    }

    #[inline]
    fn set_pattern(&mut self, low: &Lanes, address: impl Fn(usize) -> u64) -> bool {
        let (halves, _) = low.0.as_chunks::<HALF>();
        let accesses = (HalfAccess::recognize(&halves[0]), HalfAccess::recognize(&halves[1]));
        let (Some(low_half), Some(high_half)) = accesses else {
            return false;
        };
        let pattern = |lane, access| HalfWarpPattern {
            first: address(lane),
            access,
        };
        self.halves = Some([pattern(0, low_half), pattern(HALF, high_half)]);
        true
    }

    /// Stores one address per lane, as `fill` writes them.
    #[inline]
    pub fn set_all(&mut self, fill: impl FnOnce(&mut [u64; WARP_SIZE])) {
        self.halves = None;
        fill(&mut self.per_lane);
    }

    /// Changes the address of one lane.
    pub fn set(&mut self, lane: usize, address: u64) {
        if self.halves.is_some() {
            // One changed lane breaks the pattern.
            self.per_lane = std::array::from_fn(|lane| self.get(lane));
            self.halves = None;
        }
        self.per_lane[lane] = address;
    }

    /// The address of one lane.
    #[inline]
    pub fn get(&self, lane: usize) -> u64 {
        match &self.halves {
            Some(halves) => halves[lane / HALF].address(lane % HALF),
            None => self.per_lane[lane],
        }
    }

    /// Bounds of the addresses of some lanes. Without lanes, `least` is above `greatest`.
    #[inline]
    pub fn bounds(&self, lanes: LaneMask) -> AddressBounds {
        if let Some([low, high]) = &self.halves {
            return AddressBounds {
                least: low.first.min(high.first),
                greatest: low.last().max(high.last()),
                low_bits: low.low_bits() | high.low_bits(),
            };
        }
        let (every, any) = self.common_bits(lanes);
        AddressBounds {
            least: every,
            greatest: any,
            low_bits: any & 0x1f,
        }
    }

    /// The AND and the OR of all addresses. The host computes both for many lanes at once, which it cannot do for a minimum.
    #[inline]
    fn common_bits(&self, lanes: LaneMask) -> (u64, u64) {
        let join = |(every, any): (u64, u64), address: u64| (every & address, any | address);
        let none = (u64::MAX, 0);
        match (lanes, &self.halves) {
            (LaneMask::ALL, None) => self.per_lane.iter().copied().fold(none, join),
            _ => lanes.iter().map(|lane| self.get(lane)).fold(none, join),
        }
    }

    /// Number of different addresses of some lanes.
    #[inline]
    pub fn n_distinct(&self, lanes: LaneMask) -> u32 {
        match (&self.halves, lanes) {
            (Some([low, high]), LaneMask::ALL) => low.n_distinct_with(*high),
            _ => self.n_distinct_of_lanes(lanes),
        }
    }

    // Not inlined, like `for_each_line_of_lanes`.
    #[inline(never)]
    fn n_distinct_of_lanes(&self, lanes: LaneMask) -> u32 {
        let mut all = [0; WARP_SIZE];
        let n = lanes.count() as usize;
        all.iter_mut()
            .zip(lanes.iter())
            .for_each(|(to, lane)| *to = self.get(lane));
        let addresses = &mut all[..n];
        // Most addresses rise from lane to lane, so they need no sort.
        if !addresses.is_sorted_by(|one, next| one < next) {
            addresses.sort_unstable();
        }
        let repeats = addresses.windows(2).filter(|pair| pair[0] == pair[1]).count();
        (n - repeats) as u32
    }

    /// Calls `visit` for the lines of an access, in lane order. Lanes on one line may be in several visits. The bytes of a lane must not
    /// cross the end of a sector.
    #[inline]
    pub fn for_each_line(&self, lanes: LaneMask, mut visit: impl FnMut(LineAccess)) {
        let (Some(halves), LaneMask::ALL) = (&self.halves, lanes) else {
            return self.for_each_line_of_lanes(lanes, visit);
        };
        for (n, half) in halves.iter().enumerate() {
            half.for_each_line(|bytes, lanes| {
                let sector = |byte: u64| byte as usize / SECTOR % SECTORS;
                visit(LineAccess {
                    line: bytes.start / LINE as u64 * LINE as u64,
                    // The bits from the first sector to the last one.
                    sectors: (2 << sector(bytes.end - 1)) - (1 << sector(bytes.start)),
                    lanes: LaneMask(lanes.0 << (HALF * n)),
                });
            });
        }
    }

    // Not inlined: the compiler would move the loop over lanes out of the caller's loop over requests, for patterns too.
    #[inline(never)]
    fn for_each_line_of_lanes(&self, lanes: LaneMask, mut visit: impl FnMut(LineAccess)) {
        let on_line = |lane: usize, lanes: LaneMask, sectors: u8| LineAccess {
            line: self.get(lane) / LINE as u64 * LINE as u64,
            sectors,
            lanes,
        };
        let sector = |lane: usize| 1u8 << (self.get(lane) as usize / SECTOR % SECTORS);
        let (every, any) = self.common_bits(lanes);
        match lanes.lowest() {
            // All lanes are on one line.
            Some(first) if (every ^ any) < LINE as u64 => {
                let sectors = lanes.iter().fold(0, |sectors, lane| sectors | sector(lane));
                visit(on_line(first, lanes, sectors));
            }
            _ => lanes
                .iter()
                .for_each(|lane| visit(on_line(lane, LaneMask::lane(lane), sector(lane)))),
        }
    }

    /// Calls `visit` for runs of consecutive words, in lane order, with the number of the first word and the number of words. Each lane
    /// accesses `words` words. A word that several lanes access may be in several runs.
    #[inline]
    pub fn for_each_run(&self, lanes: LaneMask, words: u64, mut visit: impl FnMut(u64, u64)) {
        match (&self.halves, lanes) {
            (Some(halves), LaneMask::ALL) if words == 1 => {
                halves.iter().for_each(|half| visit(half.first / 4, half.n_words()));
            }
            _ => self.for_each_run_of_lanes(lanes, words, visit),
        }
    }

    // Not inlined, like `for_each_line_of_lanes`.
    #[inline(never)]
    fn for_each_run_of_lanes(&self, lanes: LaneMask, words: u64, mut visit: impl FnMut(u64, u64)) {
        lanes.iter().for_each(|lane| visit(self.get(lane) / 4, words));
    }
}

#[cfg(test)]
pub(crate) mod tests;
