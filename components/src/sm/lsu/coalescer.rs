//! The coalescer: merges the lane addresses of a warp access into one [`LineAccess`] per request and line. Each becomes a packet.
//!
//! A warp access of up to 4 bytes a lane is one request. 8 bytes are two requests of 16 lanes, and 16 bytes are four of 8 (source:
//! `cuda_guide`). Lanes of one request on one line share a packet, whatever their order. Two requests on one line are two packets.

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

use crate::proto::addresses::{LineAccess, WarpAddresses, requests};
use crate::proto::cluster::is_remote;
use crate::proto::mem::ALL_SECTORS;

/// A coalesced warp access. The next access reuses its memory.
#[derive(Clone, Debug)]
pub struct CoalescedAccess {
    /// Requests that the access was split into.
    pub requests: u32,
    /// Number of `lines` in use.
    n: usize,
    /// The lines of all requests. One place per lane is enough: each lane is in one request, and on one line.
    lines: [LineAccess; WARP_SIZE],
}

/// Coalesces an access of `bytes` bytes per lane, naturally aligned, and appends its requests to `access`.
///
/// An access with lanes in local memory takes two calls: these lanes are requests of their own.
pub fn coalesce(addresses: &WarpAddresses, lanes: LaneMask, bytes: u32, access: &mut CoalescedAccess) {
    // Accesses are aligned, so no lane straddles two lines.
    // One request moves at most 128 bytes, as wide as a line: 32 lanes of 4 bytes, or fewer wider ones.
    for request_lanes in requests(lanes, bytes) {
        access.add_request(addresses, request_lanes);
    }
}

impl Default for CoalescedAccess {
    /// An access without lanes.
    fn default() -> Self {
        CoalescedAccess {
            requests: 0,
            n: 0,
            lines: [LineAccess::default(); WARP_SIZE],
        }
    }
}

impl CoalescedAccess {
    /// Removes every request.
    #[inline]
    pub fn clear(&mut self) {
        (self.requests, self.n) = (0, 0);
    }

    /// The lines of each request, in order of their first lanes.
    #[inline]
    pub fn lines(&self) -> &[LineAccess] {
        &self.lines[..self.n]
    }

    /// Makes each access to device memory cover all sectors of its line. For GPUs with `sm.lsu.load_unit` = 128 (a line).
    ///
    /// An access to the shared memory of another SM stays as it is: it is no fetch of a line.
    #[inline(never)]
    pub fn extend_to_lines(&mut self) {
        for access in &mut self.lines[..self.n] {
            if !is_remote(access.line) {
                access.sectors = ALL_SECTORS;
            }
        }
    }

    /// Appends the lines of one request.
    fn add_request(&mut self, addresses: &WarpAddresses, request_lanes: LaneMask) {
        // The search starts at `begin`: requests share no packet, even on one line.
        let (lines, begin) = (&mut self.lines, self.n);
        let (mut n, mut last, mut highest) = (begin, begin, 0);
        addresses.for_each_line(request_lanes, |next| {
            // Most lanes need no search: they are on the last line, or on a line with a higher address than all so far.
            let is_highest = n == begin || next.line > highest;
            if !is_highest && lines[last].line != next.line {
                let known = lines[begin..n].iter().rposition(|known| known.line == next.line);
                last = known.map_or(n, |known| begin + known);
            }
            if is_highest || last == n {
                highest = next.line.max(highest);
                lines[n] = next;
                (last, n) = (n, n + 1);
            } else {
                lines[last].lanes |= next.lanes;
                lines[last].sectors |= next.sectors;
            }
        });
        self.n = n;
        self.requests += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proto::addresses::tests::{any_addresses, mostly_patterns, pattern};

    fn coalesced(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) -> CoalescedAccess {
        let mut access = CoalescedAccess::default();
        coalesce(&WarpAddresses::per_lane(*addresses), lanes, bytes, &mut access);
        access
    }

    proptest! {
        #[test]
        fn request_has_one_access_per_line_in_order_of_first_lanes(
            lanes: u32,
            (bytes, addresses) in (0..5u32).prop_flat_map(|n| (Just(1 << n), any_addresses(1 << n))),
        ) {
            let access = coalesced(&addresses, LaneMask(lanes), bytes);
            let mut expected: Vec<LineAccess> = Vec::new();
            let mut requests = 0;
            for request_lanes in (0..WARP_SIZE).collect::<Vec<_>>().chunks(128 / bytes.max(4) as usize) {
                let first = expected.len();
                for &lane in request_lanes.iter().filter(|&&lane| lanes >> lane & 1 == 1) {
                    let line = addresses[lane] / 128 * 128;
                    let known = expected[first..].iter().position(|known| known.line == line);
                    let at = known.map_or(expected.len(), |n| first + n);
                    if at == expected.len() {
                        expected.push(LineAccess { line, ..LineAccess::default() });
                    }
                    expected[at].lanes |= LaneMask::lane(lane);
                    expected[at].sectors |= 1 << (addresses[lane] % 128 / 32);
                }
                requests += u32::from(expected.len() > first);
            }
            prop_assert_eq!(access.lines(), &expected[..]);
            prop_assert_eq!(access.requests, requests);
        }

        #[test]
        fn pattern_is_coalesced_like_its_lanes(addresses in mostly_patterns()) {
            if let Some(pattern) = pattern(&addresses) {
                let mut access = CoalescedAccess::default();
                coalesce(&pattern, LaneMask::ALL, 4, &mut access);
                let lane_by_lane = coalesced(&addresses, LaneMask::ALL, 4);
                prop_assert_eq!(access.lines(), lane_by_lane.lines());
                prop_assert_eq!(access.requests, 1);
            }
        }
    }

    fn stride(bytes: u64) -> [u64; WARP_SIZE] {
        std::array::from_fn(|lane| 0x1000 + lane as u64 * bytes)
    }

    fn sectors(access: &CoalescedAccess) -> u32 {
        access.lines().iter().map(|line| line.sectors.count_ones()).sum()
    }

    #[test]
    fn strided_words_touch_the_published_sectors_and_lines() {
        // Sectors and lines of a 32-bit access by stride in words: 32-byte sectors of 128-byte lines (khairy20).
        for (words, lines, expected) in [(1, 1, 4), (2, 2, 8), (4, 4, 16), (8, 8, 32), (16, 16, 32), (32, 32, 32)] {
            let access = coalesced(&stride(4 * words), LaneMask::ALL, 4);
            assert_eq!(
                (access.lines().len(), sectors(&access)),
                (lines, expected),
                "stride {words}"
            );
        }
    }

    #[test]
    fn order_of_lanes_within_a_line_does_not_matter() {
        let mut addresses = stride(4);
        addresses.reverse();
        assert_eq!(coalesced(&addresses, LaneMask::ALL, 4).lines().len(), 1);
    }

    #[test]
    fn wide_accesses_are_two_and_four_requests() {
        let access = coalesced(&stride(8), LaneMask::ALL, 8);
        assert_eq!((access.requests, access.lines().len(), sectors(&access)), (2, 2, 8));
        let access = coalesced(&stride(16), LaneMask::ALL, 16);
        assert_eq!((access.requests, access.lines().len(), sectors(&access)), (4, 4, 16));
    }

    #[test]
    fn offset_of_one_word_adds_one_sector() {
        let addresses = std::array::from_fn(|lane| 0x1004 + 4 * lane as u64);
        let access = coalesced(&addresses, LaneMask::ALL, 4);
        assert_eq!((access.lines().len(), sectors(&access)), (2, 5));
    }

    #[test]
    fn widened_access_moves_the_whole_of_each_line() {
        // Two rows of 16 words, 256 bytes apart: 4 sectors of 128 bytes each side (wp_fermi: a miss moves a whole line).
        let addresses = std::array::from_fn(|lane| 0x1000 + 256 * (lane as u64 / 16) + 4 * (lane as u64 % 16));
        let mut access = coalesced(&addresses, LaneMask::ALL, 4);
        assert_eq!((access.lines().len(), sectors(&access)), (2, 4));
        access.extend_to_lines();
        assert_eq!((access.lines().len(), sectors(&access)), (2, 8));
    }

    #[test]
    fn inactive_lanes_touch_no_line() {
        let access = coalesced(&stride(128), LaneMask(0b101), 4);
        assert_eq!(
            access
                .lines()
                .iter()
                .map(|line| (line.line, line.lanes.0))
                .collect::<Vec<_>>(),
            [(0x1000, 1), (0x1100, 4)]
        );
    }
}
