//! A disturbance for tests: messages of a link take longer at random, and keep their order.
//!
//! The delays depend on the seed and on how many messages were sent, so a disturbed run repeats exactly, for any quantum, tick
//! order and number of threads. A machine that is right gives the same results under any disturbance, in other cycles.

/// A sequence of extra delays.
#[derive(Clone, Debug)]
pub struct Stall {
    state: u64,
    most: u64,
}

impl Stall {
    /// Delays of 0 to `most` cycles, each as likely. A link cuts them off at the horizon of a tile.
    pub fn new(seed: u64, most: u64) -> Self {
        Stall { state: seed, most }
    }

    /// The delay of the next message, in cycles.
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
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
        let mut stall = Stall::new(1234567, 999);
        assert_eq!([(); 3].map(|()| stall.next()), published.map(|output| output % 1000));
    }
}
