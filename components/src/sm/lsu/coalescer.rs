//! The coalescer: turns the lanes' addresses into packets, one for each 128-byte line that a request touches.
//!
//! A warp access of up to 4 bytes a lane is one request; 8 bytes make two requests of 16 lanes, 16 bytes four of 8
//! (reference rules §2). Each request is coalesced by itself: lanes on the same line share a packet, whatever their order.

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

use crate::proto::mem::{LINE, SECTOR};

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
pub struct Parts {
    parts: [Part; WARP_SIZE],
    n: usize,
    next: usize,
    /// Requests that the access was split into.
    pub requests: u32,
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

    /// Coalesces an access of `bytes` aligned bytes in each of `lanes`.
    pub fn of(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) -> Self {
        let mut parts = Parts::NONE;
        parts.add(addresses, lanes, bytes);
        parts
    }

    /// Adds the requests of an access of `bytes` aligned bytes in each of `lanes`, disjoint from those added before.
    pub fn add(&mut self, addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) {
        let per_request = (128 / bytes.max(4)) as usize;
        for first in (0..WARP_SIZE).step_by(per_request) {
            let members = LaneMask(LaneMask::first(per_request as u32).0 << first) & lanes;
            if !members.is_empty() {
                self.requests += 1;
                self.add_request(addresses, members, bytes);
            }
        }
    }

    fn add_request(&mut self, addresses: &[u64; WARP_SIZE], members: LaneMask, bytes: u32) {
        let begin = self.n;
        for lane in members.iter() {
            let line = addresses[lane] & !(LINE as u64 - 1);
            let offset = (addresses[lane] - line) as usize;
            let found = self.parts[begin..self.n].iter().rposition(|part| part.line == line);
            let at = found.map_or(self.n, |n| begin + n);
            if found.is_none() {
                self.parts[at] = Part {
                    line,
                    ..Part::default()
                };
                self.n += 1;
            }
            let part = &mut self.parts[at];
            part.lanes |= LaneMask::lane(lane);
            for sector in offset / SECTOR..=(offset + bytes as usize - 1) / SECTOR {
                part.sectors |= 1 << sector;
            }
        }
    }

    /// All parts.
    pub fn all(&self) -> &[Part] {
        &self.parts[..self.n]
    }

    /// The next part not yet taken, left where it is.
    pub fn peek(&self) -> Option<&Part> {
        self.all().get(self.next)
    }

    /// The next part not yet taken.
    pub fn take(&mut self) -> Option<Part> {
        let part = *self.all().get(self.next)?;
        self.next += 1;
        Some(part)
    }

    /// Whether every part was taken.
    pub fn is_done(&self) -> bool {
        self.next == self.n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let parts = Parts::of(&stride(4 * words), LaneMask::ALL, 4);
            assert_eq!((parts.all().len(), sectors(&parts)), (lines, wanted), "stride {words}");
        }
    }

    #[test]
    fn any_order_within_the_line_is_as_good() {
        let mut addresses = stride(4);
        addresses.reverse();
        assert_eq!(Parts::of(&addresses, LaneMask::ALL, 4).all().len(), 1);
    }

    #[test]
    fn wide_words_are_two_and_four_requests() {
        let parts = Parts::of(&stride(8), LaneMask::ALL, 8);
        assert_eq!((parts.requests, parts.all().len(), sectors(&parts)), (2, 2, 8));
        let parts = Parts::of(&stride(16), LaneMask::ALL, 16);
        assert_eq!((parts.requests, parts.all().len(), sectors(&parts)), (4, 4, 16));
    }

    #[test]
    fn offset_by_one_word_touches_one_sector_more() {
        let addresses = std::array::from_fn(|lane| 0x1004 + 4 * lane as u64);
        let parts = Parts::of(&addresses, LaneMask::ALL, 4);
        assert_eq!((parts.all().len(), sectors(&parts)), (2, 5));
    }

    #[test]
    fn only_running_lanes_count() {
        let parts = Parts::of(&stride(128), LaneMask(0b101), 4);
        assert_eq!(
            parts.all().iter().map(|p| (p.line, p.lanes.0)).collect::<Vec<_>>(),
            [(0x1000, 1), (0x1100, 4)]
        );
    }
}
