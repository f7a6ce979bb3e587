//! A disturbance for tests: messages of a link take longer at random, and keep their order.
//!
//! The delays depend on the seed and the cycle of sending alone, so a disturbed run repeats exactly, for any quantum, tick order
//! and number of threads. A machine that is right gives the same results under any disturbance, in other cycles.

use crate::time::Cycle;

/// An extra delay for each cycle.
#[derive(Clone, Debug)]
pub struct Stall {
    seed: u64,
    most: u64,
}

impl Stall {
    /// Delays of 0 to `most` cycles, each as likely. A link cuts them off at the horizon of a tile.
    pub fn new(seed: u64, most: u64) -> Self {
        Stall { seed, most }
    }

    /// The delay of what is sent now, in cycles: output number `now` of SplitMix64 (Steele, Lea, Flood 2014).
    pub(crate) fn delay(&self, now: Cycle) -> u64 {
        let step = now.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let state = self.seed.wrapping_add(step);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % (self.most + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_those_of_the_published_generator() {
        // First outputs of SplitMix64 for seed 1234567, as its authors' C code gives them.
        let published: [u64; 3] = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        let stall = Stall::new(1234567, 999);
        let delays = [0, 1, 2].map(|now| stall.delay(Cycle(now)));
        assert_eq!(delays, published.map(|output| output % 1000));
    }
}
