//! Watched components that show something of their last tick: each is ticked and sampled once more when that is over.
//!
//! A unit that shows "accepted" for one cycle need not be ticked in the next for any other reason. Nobody watching costs one
//! comparison per cycle.

use crate::time::Cycle;

/// For each component of a tile, when what it shows is over.
pub struct Fading {
    at: Vec<Cycle>,
    next: Cycle,
}

impl Fading {
    /// None of so many components shows anything.
    pub fn new(components: usize) -> Self {
        Fading {
            at: vec![Cycle::NEVER; components],
            next: Cycle::NEVER,
        }
    }

    /// What a component shows now is over in cycle `at`.
    pub fn set(&mut self, index: usize, at: Cycle) {
        self.at[index] = at;
        self.next = self.next.min(at);
    }

    /// The first cycle in which anything is over.
    #[inline]
    pub fn next(&self) -> Cycle {
        self.next
    }

    /// The components for which it is over, taken off.
    pub fn take(&mut self, now: Cycle) -> u64 {
        let mut faded = 0;
        self.next = Cycle::NEVER;
        for (index, at) in self.at.iter_mut().enumerate() {
            if *at <= now {
                faded |= 1 << index;
                *at = Cycle::NEVER;
            }
            self.next = self.next.min(*at);
        }
        faded
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.at.fill(Cycle::NEVER);
        self.next = Cycle::NEVER;
    }
}
