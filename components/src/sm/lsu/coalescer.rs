//! The coalescer: turns the addresses of a warp access into one [`LineAccess`] per request and line. Each becomes a packet.
//!
//! An access of up to 4 bytes a lane is one request. An access of 8 bytes a lane is two requests of 16
//! lanes, and of 16 bytes four requests of 8 lanes (`cuda_guide`).
//! Within a request, lanes on one line share a packet, whatever their order.

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

use crate::proto::addresses::{LineAccess, WarpAddresses, requests};

/// A coalesced warp access. It is a buffer: the next access reuses it.
#[derive(Clone, Debug)]
pub struct CoalescedAccess {
    /// Requests that the access was split into.
    pub requests: u32,
    n: usize,
    /// The first `n` count.
    lines: [LineAccess; WARP_SIZE],
}

/// Coalesces an access of `bytes` aligned bytes in each of `lanes`, and appends it to `access`.
pub fn coalesce(addresses: &WarpAddresses, lanes: LaneMask, bytes: u32, access: &mut CoalescedAccess) {
    for members in requests(lanes, bytes) {
        access.add_request(addresses, members);
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

    fn add_request(&mut self, addresses: &WarpAddresses, members: LaneMask) {
        let (lines, begin) = (&mut self.lines, self.n);
        let (mut n, mut last, mut highest) = (begin, begin, 0);
        addresses.for_each_line(members, |own| {
            // No search for most lanes: their line is that of the lane before, or is above all lines so far.
            let is_above = n == begin || own.line > highest;
            if !is_above && lines[last].line != own.line {
                let known = lines[begin..n].iter().rposition(|line| line.line == own.line);
                last = known.map_or(n, |known| begin + known);
            }
            if is_above || last == n {
                highest = own.line.max(highest);
                lines[n] = own;
                (last, n) = (n, n + 1);
            } else {
                lines[last].lanes |= own.lanes;
                lines[last].sectors |= own.sectors;
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
        fn any_request_gives_its_lines_in_order_of_their_first_lanes(
            lanes: u32,
            (bytes, addresses) in (0..5u32).prop_flat_map(|n| (Just(1 << n), any_addresses(1 << n))),
        ) {
            let access = coalesced(&addresses, LaneMask(lanes), bytes);
            let mut expected: Vec<LineAccess> = Vec::new();
            let mut requests = 0;
            for members in (0..WARP_SIZE).collect::<Vec<_>>().chunks(128 / bytes.max(4) as usize) {
                let first = expected.len();
                for &lane in members.iter().filter(|&&lane| lanes >> lane & 1 == 1) {
                    let line = addresses[lane] / 128 * 128;
                    let known = expected[first..].iter().position(|own| own.line == line);
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
        fn any_pattern_is_coalesced_as_its_lanes_are(addresses in mostly_patterns()) {
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
    fn stride_of_words_costs_sectors_and_lines_as_published() {
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
    fn any_order_within_the_line_is_as_good() {
        let mut addresses = stride(4);
        addresses.reverse();
        assert_eq!(coalesced(&addresses, LaneMask::ALL, 4).lines().len(), 1);
    }

    #[test]
    fn wide_words_are_two_and_four_requests() {
        let access = coalesced(&stride(8), LaneMask::ALL, 8);
        assert_eq!((access.requests, access.lines().len(), sectors(&access)), (2, 2, 8));
        let access = coalesced(&stride(16), LaneMask::ALL, 16);
        assert_eq!((access.requests, access.lines().len(), sectors(&access)), (4, 4, 16));
    }

    #[test]
    fn offset_by_one_word_touches_one_sector_more() {
        let addresses = std::array::from_fn(|lane| 0x1004 + 4 * lane as u64);
        let access = coalesced(&addresses, LaneMask::ALL, 4);
        assert_eq!((access.lines().len(), sectors(&access)), (2, 5));
    }

    #[test]
    fn inactive_lanes_do_not_count() {
        let access = coalesced(&stride(128), LaneMask(0b101), 4);
        assert_eq!(
            access
                .lines()
                .iter()
                .map(|own| (own.line, own.lanes.0))
                .collect::<Vec<_>>(),
            [(0x1000, 1), (0x1100, 4)]
        );
    }
}
