//! The 16 barriers of one CTA (BAR, BAR.RED), a part of the CTA manager.
//!
//! A barrier counts arrived warps. It is complete when all live warps of the CTA have arrived, or as many warps as its thread count needs.
//!
//! Invariants: a warp waits at one barrier at most; an open barrier is empty.

use warpwave_hw::invariant::Invariants;
use warpwave_hw::time::Cycle;
use warpwave_isa::barrier::BLOCK_BARRIERS;

/// One barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Barrier {
    /// Warps that have arrived.
    arrived: u32,
    /// Arrived warps that wait, bit i for warp i of the CTA.
    waiting: u64,
    /// Number of warps that complete the barrier; 0 for all live warps of the CTA.
    expected: u32,
    /// Threads whose predicate holds so far, at a counting barrier (BAR.RED).
    count: Option<u32>,
    /// Cycle from which its last arrival is counted.
    counted: Cycle,
}

/// A warp's arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// Index of the barrier.
    pub number: u8,
    /// Index of the warp in its CTA.
    pub warp: u32,
    /// Thread count of the instruction; 0 for the whole CTA.
    pub threads: u32,
    /// True if the warp continues without waiting.
    pub pass: bool,
    /// Threads of the warp whose predicate holds, at a counting barrier.
    pub count: Option<u32>,
    /// Cycle from which the SM's barrier unit has counted it.
    pub counted: Cycle,
}

/// An opened barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Index of the barrier.
    pub number: u8,
    /// Warps that waited, bit i for warp i of the CTA.
    pub waiting: u64,
    /// Threads whose predicate held, at a counting barrier.
    pub count: Option<u32>,
    /// Cycle from which its last arrival is counted.
    pub counted: Cycle,
}

/// The barriers of one CTA.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Barriers([Barrier; BLOCK_BARRIERS]);

impl Barriers {
    /// Adds the arrival of a warp.
    pub fn arrive(&mut self, arrival: Arrival) {
        let barrier = &mut self.0[arrival.number as usize % BLOCK_BARRIERS];
        barrier.arrived += 1;
        // The hardware counts warps, and PTX requires a multiple of 32 threads. The latest count stands.
        barrier.expected = arrival.threads.div_ceil(32);
        // One unit counts in order, so the latest arrival is counted last.
        barrier.counted = arrival.counted;
        if !arrival.pass {
            barrier.waiting |= 1 << arrival.warp;
        }
        if let Some(count) = arrival.count {
            *barrier.count.get_or_insert(0) += count;
        }
    }

    /// Opens one complete barrier, if any. `live` is the number of warps of the CTA that have not ended.
    pub fn open(&mut self, live: u32) -> Option<Opened> {
        // A thread count of 0 stands for all live warps.
        let complete = |b: &Barrier| b.arrived > 0 && b.arrived >= if b.expected == 0 { live } else { b.expected };
        let number = self.0.iter().position(complete)?;
        // An open barrier is empty again.
        let barrier = std::mem::take(&mut self.0[number]);
        Some(Opened {
            number: number as u8,
            waiting: barrier.waiting,
            count: barrier.count,
            counted: barrier.counted,
        })
    }

    /// Checks the counts: each warp waits at one barrier at most, and an arrival is counted once.
    pub(super) fn invariants(&self, warps: u32, check: &mut Invariants) {
        let mut all = 0;
        for (number, barrier) in self.0.iter().enumerate() {
            let waiting = barrier.waiting.count_ones();
            check.at_most(
                format_args!("warps that wait at barrier {number}"),
                waiting.into(),
                barrier.arrived.into(),
            );
            check.equal(
                format_args!("warps at barrier {number} and another one"),
                barrier.waiting & all,
                0,
            );
            all |= barrier.waiting;
        }
        check.within("warps at barriers", all, u64::MAX >> (64 - warps));
    }

    /// Warps that wait at a barrier, bit i for warp i of the CTA.
    pub fn waiting(&self, number: usize) -> u64 {
        self.0[number].waiting
    }

    /// Barriers with arrivals: number, warps arrived, warps needed (0: all).
    pub fn pending(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, b)| b.arrived > 0)
            .map(|(n, b)| (n, b.arrived, b.expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(number: u8, warp: u32) -> Arrival {
        Arrival {
            number,
            warp,
            ..Arrival::default()
        }
    }

    fn opened(number: u8, waiting: u64) -> Option<Opened> {
        Some(Opened {
            number,
            waiting,
            count: None,
            counted: Cycle::ZERO,
        })
    }

    #[test]
    fn all_warps_arrived_barrier_opens_once() {
        let mut barriers = Barriers::default();
        let counted = |warp, cycle| Arrival {
            counted: Cycle(cycle),
            ..arrival(0, warp)
        };
        barriers.arrive(counted(0, 5));
        assert_eq!(barriers.open(2), None);
        barriers.arrive(counted(1, 7));
        let expected = opened(0, 0b11).map(|opened| Opened {
            counted: Cycle(7),
            ..opened
        });
        assert_eq!(barriers.open(2), expected);
        assert_eq!(barriers.open(2), None);
    }

    #[test]
    fn warp_at_two_barriers_or_without_an_arrival_breaks_an_invariant() {
        let mut barriers = Barriers::default();
        barriers.arrive(arrival(0, 3));
        let broken = |barriers: &Barriers, warps| Invariants::broken(|check| barriers.invariants(warps, check));
        assert!(broken(&barriers, 4).is_empty());
        assert_eq!(broken(&barriers, 3), ["warps at barriers: 0x8, all within 0x7"]);
        barriers.0[2].waiting = 0b1000;
        assert_eq!(
            broken(&barriers, 4),
            [
                "warps that wait at barrier 2: 1, at most 0",
                "warps at barrier 2 and another one: 8, not 0"
            ]
        );
    }

    #[test]
    fn barrier_does_not_wait_for_an_ended_warp() {
        let mut barriers = Barriers::default();
        barriers.arrive(arrival(0, 3));
        assert_eq!(barriers.open(2), None);
        assert_eq!(barriers.open(1), opened(0, 0b1000));
    }

    #[test]
    fn counted_barrier_producer_passes_consumer_waits() {
        let mut barriers = Barriers::default();
        let of_64 = |warp, pass| Arrival {
            threads: 64,
            pass,
            ..arrival(1, warp)
        };
        barriers.arrive(of_64(0, true));
        assert_eq!(barriers.open(8), None);
        barriers.arrive(of_64(1, false));
        assert_eq!(barriers.open(8), opened(1, 0b10));
    }

    #[test]
    fn predicates_of_all_warps_are_counted_from_zero_in_each_round() {
        let mut barriers = Barriers::default();
        for count in [Some(3), Some(0)] {
            for warp in 0..2 {
                barriers.arrive(Arrival {
                    count,
                    ..arrival(2, warp)
                });
            }
            let count = count.map(|count| 2 * count);
            let expected = Opened {
                number: 2,
                waiting: 0b11,
                count,
                counted: Cycle::ZERO,
            };
            assert_eq!(barriers.open(2), Some(expected));
        }
    }
}
