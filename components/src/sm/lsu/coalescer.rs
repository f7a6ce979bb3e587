//! The coalescer: turns the lanes' addresses into packets, one for each 128-byte line that a request touches.
//!
//! A warp access of up to 4 bytes a lane is one request; 8 bytes make two requests of 16 lanes, 16 bytes four of 8
//! (reference rules §2). Each request is coalesced by itself: lanes on the same line share a packet, whatever their order.

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

use super::agu::Common;
use super::banks::requests;
use super::halves::Halves;
use crate::proto::mem::{LINE, SECTOR, SECTORS};

/// What a request wants of one line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// Address of the line.
    pub line: u64,
    /// Sectors touched.
    pub sectors: u8,
    /// Lanes on the line.
    pub lanes: LaneMask,
}

/// The parts of one warp access, in lane order.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Parts {
    n: u32,
    next: u32,
    /// Requests that the access was split into.
    pub requests: u32,
    /// Those beyond the first `n` mean nothing.
    parts: [Part; WARP_SIZE],
}

impl Parts {
    /// No parts.
    pub const NONE: Parts = Parts {
        parts: [Part {
            line: 0,
            sectors: 0,
            lanes: LaneMask::NONE,
        }; WARP_SIZE],
        n: 0,
        next: 0,
        requests: 0,
    };

    /// Forgets all parts.
    pub fn clear(&mut self) {
        (self.n, self.next, self.requests) = (0, 0, 0);
    }

    /// Adds an access of an aligned word in each lane whose halves are known, to none.
    pub fn add_halves(&mut self, halves: Halves) {
        self.requests = 1;
        halves.each_line(|own| {
            let known = self.parts[..self.n as usize].iter_mut();
            match known.rev().find(|part| part.line == own.line) {
                Some(part) => {
                    part.lanes |= own.lanes;
                    part.sectors |= own.sectors;
                }
                None => {
                    self.parts[self.n as usize] = own;
                    self.n += 1;
                }
            }
        });
    }

    /// Adds the requests of an access of `bytes` aligned bytes in each of `lanes`, disjoint from those added before.
    pub fn add(&mut self, addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) {
        if bytes <= 4 && !lanes.is_empty() {
            self.requests += 1;
            return self.add_request(addresses, lanes);
        }
        for members in requests(lanes, bytes) {
            self.requests += 1;
            self.add_request(addresses, members);
        }
    }

    fn add_request(&mut self, addresses: &[u64; WARP_SIZE], members: LaneMask) {
        if Common::of(addresses, members).is_within(LINE.trailing_zeros()) {
            self.add_line(addresses, members);
        } else {
            self.add_lines(addresses, members);
        }
    }

    /// A request whose lanes are all on one line.
    fn add_line(&mut self, addresses: &[u64; WARP_SIZE], lanes: LaneMask) {
        // Bit i for sector i of so many lines as 64 bits are for: the lanes' line is the only one.
        let sector = |lane: usize| addresses[lane] / SECTOR as u64 % 64;
        let sectors = lanes.iter().fold(0, |sectors, lane| sectors | 1u64 << sector(lane));
        let line = addresses[lanes.0.trailing_zeros() as usize % WARP_SIZE] & !(LINE as u64 - 1);
        let place = line / SECTOR as u64 % 64;
        self.parts[self.n as usize] = Part {
            line,
            sectors: (sectors >> place) as u8,
            lanes,
        };
        self.n += 1;
    }

    /// A request whose lanes may be on any lines. Aligned bytes never reach into the next sector.
    fn add_lines(&mut self, addresses: &[u64; WARP_SIZE], members: LaneMask) {
        let (parts, begin) = (&mut self.parts, self.n as usize);
        let (mut n, mut at, mut highest) = (begin, begin, 0);
        for lane in members.iter() {
            let own = Part {
                line: addresses[lane] & !(LINE as u64 - 1),
                sectors: 1 << (addresses[lane] as usize / SECTOR % SECTORS),
                lanes: LaneMask::lane(lane),
            };
            // Mostly a line lies above all lines before or is that of the lane before.
            let is_above = own.line > highest || n == begin;
            if !is_above && parts[at].line != own.line {
                let known = parts[begin..n].iter().rposition(|part| part.line == own.line);
                at = known.map_or(n, |known| begin + known);
            }
            if is_above || at == n {
                highest = own.line.max(highest);
                parts[n] = own;
                (at, n) = (n, n + 1);
            } else {
                parts[at].lanes |= own.lanes;
                parts[at].sectors |= own.sectors;
            }
        }
        self.n = n as u32;
    }

    /// All parts.
    pub fn all(&self) -> &[Part] {
        &self.parts[..self.n as usize]
    }

    /// The lanes on the line of part `n`, those of other requests among them.
    #[inline]
    pub fn lanes_on_line(&self, n: usize) -> LaneMask {
        let Part { line, lanes, .. } = self.parts[n];
        match self.requests {
            1 => lanes,
            _ => {
                let on_line = self.all().iter().filter(|part| part.line == line);
                on_line.fold(lanes, |lanes, part| lanes | part.lanes)
            }
        }
    }

    /// The next part not yet taken, left where it is.
    #[inline]
    pub fn peek(&self) -> Option<&Part> {
        self.all().get(self.next as usize)
    }

    /// Takes the next part; gives its number.
    #[inline]
    pub fn take(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Whether every part was taken.
    pub fn is_done(&self) -> bool {
        self.next == self.n
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub fn parts_of(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) -> Parts {
        let mut parts = Parts::NONE;
        parts.add(addresses, lanes, bytes);
        parts
    }

    /// Aligned addresses as warps have them: one after the other, near each other, apart, or anywhere in a few lines.
    pub fn any_addresses(bytes: u64) -> impl Strategy<Value = [u64; WARP_SIZE]> {
        let place = (0..1u64 << 20, 0..300u64);
        let each = prop_oneof![Just(1u64), Just(3), Just(100)].prop_flat_map(|n| prop::array::uniform32(0..n));
        (place, each, any::<bool>()).prop_map(move |((first, stride), each, falls)| {
            std::array::from_fn(|lane| {
                let lane = if falls { WARP_SIZE - 1 - lane } else { lane };
                (first + lane as u64 * stride + each[lane]) * bytes
            })
        })
    }

    proptest! {
        #[test]
        fn any_request_gives_a_part_for_each_line_in_order_of_its_first_lane(
            lanes: u32,
            (bytes, addresses) in (0..5u32).prop_flat_map(|n| (Just(1 << n), any_addresses(1 << n))),
        ) {
            let parts = parts_of(&addresses, LaneMask(lanes), bytes);
            let mut wanted: Vec<Part> = Vec::new();
            let mut requests = 0;
            for members in (0..WARP_SIZE).collect::<Vec<_>>().chunks(128 / bytes.max(4) as usize) {
                let first = wanted.len();
                for &lane in members.iter().filter(|&&lane| lanes >> lane & 1 == 1) {
                    let line = addresses[lane] / 128 * 128;
                    let known = wanted[first..].iter().position(|part| part.line == line);
                    let at = known.map_or(wanted.len(), |n| first + n);
                    if at == wanted.len() {
                        wanted.push(Part { line, ..Part::default() });
                    }
                    wanted[at].lanes |= LaneMask::lane(lane);
                    wanted[at].sectors |= 1 << (addresses[lane] % 128 / 32);
                }
                requests += u32::from(wanted.len() > first);
            }
            prop_assert_eq!(parts.all(), &wanted[..]);
            prop_assert_eq!(parts.requests, requests);
        }
    }

    fn stride(bytes: u64) -> [u64; WARP_SIZE] {
        std::array::from_fn(|lane| 0x1000 + lane as u64 * bytes)
    }

    fn sectors(parts: &Parts) -> u32 {
        parts
            .all()
            .iter()
            .map(|part| u32::from(part.sectors).count_ones())
            .sum()
    }

    #[test]
    fn stride_of_words_costs_sectors_and_lines_as_published() {
        // Sectors and lines of a 32-bit access by stride in words (reference rules §2).
        for (words, lines, wanted) in [(1, 1, 4), (2, 2, 8), (4, 4, 16), (8, 8, 32), (16, 16, 32), (32, 32, 32)] {
            let parts = parts_of(&stride(4 * words), LaneMask::ALL, 4);
            assert_eq!((parts.all().len(), sectors(&parts)), (lines, wanted), "stride {words}");
        }
    }

    #[test]
    fn any_order_within_the_line_is_as_good() {
        let mut addresses = stride(4);
        addresses.reverse();
        assert_eq!(parts_of(&addresses, LaneMask::ALL, 4).all().len(), 1);
    }

    #[test]
    fn wide_words_are_two_and_four_requests() {
        let parts = parts_of(&stride(8), LaneMask::ALL, 8);
        assert_eq!((parts.requests, parts.all().len(), sectors(&parts)), (2, 2, 8));
        let parts = parts_of(&stride(16), LaneMask::ALL, 16);
        assert_eq!((parts.requests, parts.all().len(), sectors(&parts)), (4, 4, 16));
    }

    #[test]
    fn offset_by_one_word_touches_one_sector_more() {
        let addresses = std::array::from_fn(|lane| 0x1004 + 4 * lane as u64);
        let parts = parts_of(&addresses, LaneMask::ALL, 4);
        assert_eq!((parts.all().len(), sectors(&parts)), (2, 5));
    }

    #[test]
    fn only_running_lanes_count() {
        let parts = parts_of(&stride(128), LaneMask(0b101), 4);
        assert_eq!(
            parts.all().iter().map(|p| (p.line, p.lanes.0)).collect::<Vec<_>>(),
            [(0x1000, 1), (0x1100, 4)]
        );
    }
}
