//! The block barriers of one CTA: who has arrived, and when all have.
//!
//! A unit of the CTA manager. Sixteen barriers per CTA; each counts warps, or as many threads as its instruction says.
//! Invariants: a warp waits at one barrier at most; an open barrier is empty.

use warpwave_isa::barrier::BARRIERS;

/// One barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Barrier {
    /// Warps that have arrived.
    arrived: u32,
    /// Arrived warps that wait, bit i for warp i of the CTA.
    waiting: u64,
    /// Warps that it waits for; 0 for all live warps of the CTA.
    expected: u32,
    /// Threads whose predicate held, where the barrier counts them.
    count: Option<u32>,
}

/// A warp's arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// The barrier.
    pub number: u8,
    /// Index of the warp in its CTA.
    pub warp: u32,
    /// Threads as the instruction says; 0 for the whole CTA.
    pub threads: u32,
    /// Whether the warp goes on without waiting.
    pub pass: bool,
    /// Threads of it whose predicate holds, where the barrier counts them.
    pub count: Option<u32>,
}

/// A barrier that opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Warps that waited, bit i for warp i of the CTA.
    pub waiting: u64,
    /// Threads counted, where it counts.
    pub count: Option<u32>,
}

/// The barriers of one CTA.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Barriers([Barrier; BARRIERS]);

impl Barriers {
    /// A warp arrives.
    pub fn arrive(&mut self, arrival: Arrival) {
        let barrier = &mut self.0[arrival.number as usize % BARRIERS];
        barrier.arrived += 1;
        barrier.expected = arrival.threads.div_ceil(32);
        if !arrival.pass {
            barrier.waiting |= 1 << arrival.warp;
        }
        if let Some(count) = arrival.count {
            *barrier.count.get_or_insert(0) += count;
        }
    }

    /// Opens one barrier that is complete with `live` warps left in the CTA, if there is one.
    pub fn open(&mut self, live: u32) -> Option<Opened> {
        let complete = |b: &Barrier| b.arrived > 0 && b.arrived >= if b.expected == 0 { live } else { b.expected };
        let barrier = self.0.iter_mut().find(|b| complete(b))?;
        let Barrier { waiting, count, .. } = std::mem::take(barrier);
        Some(Opened { waiting, count })
    }

    /// Barriers at which some have arrived: number, arrived, expected (0: all).
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

    fn opened(waiting: u64) -> Option<Opened> {
        Some(Opened { waiting, count: None })
    }

    #[test]
    fn all_warps_arrive_opens_once_for_all() {
        let mut barriers = Barriers::default();
        barriers.arrive(arrival(0, 0));
        assert_eq!(barriers.open(2), None);
        barriers.arrive(arrival(0, 1));
        assert_eq!(barriers.open(2), opened(0b11));
        assert_eq!(barriers.open(2), None);
    }

    #[test]
    fn a_warp_that_ends_is_no_longer_waited_for() {
        let mut barriers = Barriers::default();
        barriers.arrive(arrival(0, 3));
        assert_eq!(barriers.open(2), None);
        assert_eq!(barriers.open(1), opened(0b1000));
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
        assert_eq!(barriers.open(8), opened(0b10));
    }

    #[test]
    fn predicates_of_all_warps_are_counted_afresh_each_time() {
        let mut barriers = Barriers::default();
        for count in [Some(3), Some(0)] {
            for warp in 0..2 {
                barriers.arrive(Arrival {
                    count,
                    ..arrival(2, warp)
                });
            }
            let count = count.map(|count| 2 * count);
            assert_eq!(barriers.open(2), Some(Opened { waiting: 0b11, count }));
        }
    }
}
