//! Random delays of a link's messages, for tests. Messages keep their order.
//!
//! A delay depends only on the seed and the cycle of the send. So a run repeats exactly, for any quantum, tick order and number of
//! threads. A correct machine gives the same results with any delays, in other cycles.

use crate::time::Cycle;

/// A random delay for each cycle.
#[derive(Clone, Debug)]
pub struct Stall {
    seed: u64,
    largest: u32,
}

impl Stall {
    /// Creates uniform delays of 0 to `largest` cycles. A link cuts them off at the horizon of a tile.
    pub fn new(seed: u64, largest: u32) -> Self {
        Stall { seed, largest }
    }

    /// The delay of a message sent in cycle `now`, in cycles: output `now` of SplitMix64 (Steele, Lea, Flood 2014).
    pub fn delay(&self, now: Cycle) -> u64 {
        // Output n mixes the seed plus n + 1 times the increment. So any cycle's delay is found without the ones before it.
        let step = now.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let state = self.seed.wrapping_add(step);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % (u64::from(self.largest) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_match_the_published_generator() {
        // The first outputs for seed 1234567 of the authors' C code.
        let published: [u64; 3] = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        let stall = Stall::new(1234567, 999);
        let delays = [0, 1, 2].map(|now| stall.delay(Cycle(now)));
        assert_eq!(delays, published.map(|output| output % 1000));
    }
}
