//! The block barriers of one CTA: who has arrived, and when all have.
//!
//! A unit of the CTA manager. Sixteen barriers per CTA; each counts warps, or as many threads as its instruction says.
//! Invariants: a warp waits at one barrier at most; an open barrier is empty.

/// Barriers of a CTA (PTX ISA, bar).
pub const BARRIERS: usize = 16;

/// One barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Barrier {
    /// Warps that have arrived.
    arrived: u32,
    /// Arrived warps that wait, bit i for warp i of the CTA.
    waiting: u64,
    /// Warps that it waits for; 0 for all live warps of the CTA.
    expected: u32,
}

/// The barriers of one CTA.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Barriers([Barrier; BARRIERS]);

impl Barriers {
    /// Warp `warp` arrives; `threads` as the instruction says (0: the whole CTA); `pass`: without waiting.
    pub fn arrive(&mut self, number: u8, warp: u32, threads: u32, pass: bool) {
        let barrier = &mut self.0[number as usize % BARRIERS];
        barrier.arrived += 1;
        barrier.expected = threads.div_ceil(32);
        if !pass {
            barrier.waiting |= 1 << warp;
        }
    }

    /// Opens one barrier that is complete with `live` warps left in the CTA, if there is one; gives the warps that waited.
    pub fn open(&mut self, live: u32) -> Option<u64> {
        let complete = |b: &Barrier| b.arrived > 0 && b.arrived >= if b.expected == 0 { live } else { b.expected };
        let barrier = self.0.iter_mut().find(|b| complete(b))?;
        let waiting = barrier.waiting;
        *barrier = Barrier::default();
        Some(waiting)
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

    #[test]
    fn all_warps_arrive_opens_once_for_all() {
        let mut barriers = Barriers::default();
        barriers.arrive(0, 0, 0, false);
        assert_eq!(barriers.open(2), None);
        barriers.arrive(0, 1, 0, false);
        assert_eq!(barriers.open(2), Some(0b11));
        assert_eq!(barriers.open(2), None);
    }

    #[test]
    fn a_warp_that_ends_is_no_longer_waited_for() {
        let mut barriers = Barriers::default();
        barriers.arrive(0, 3, 0, false);
        assert_eq!(barriers.open(2), None);
        assert_eq!(barriers.open(1), Some(0b1000));
    }

    #[test]
    fn counted_barrier_producer_passes_consumer_waits() {
        let mut barriers = Barriers::default();
        barriers.arrive(1, 0, 64, true);
        assert_eq!(barriers.open(8), None);
        barriers.arrive(1, 1, 64, false);
        assert_eq!(barriers.open(8), Some(0b10));
    }
}
