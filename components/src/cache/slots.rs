//! The slots of a table in use, one bit each.
//!
//! The lowest free slot is taken first, so a table in light use stays in few lines of the host's cache.

use bitvec::vec::BitVec;

/// A set of slots.
pub(crate) struct Slots {
    used: BitVec<u64>,
    n_used: usize,
}

impl Slots {
    /// `n` free slots.
    pub(crate) fn new(n: u32) -> Self {
        Slots {
            used: BitVec::repeat(false, n as usize),
            n_used: 0,
        }
    }

    /// Slots in use.
    pub(crate) fn len(&self) -> usize {
        self.n_used
    }

    /// Whether no slot is free.
    pub(crate) fn is_full(&self) -> bool {
        self.n_used == self.used.len()
    }

    /// Takes the lowest free slot.
    ///
    /// # Panics
    /// If no slot is free.
    pub(crate) fn take(&mut self) -> u32 {
        let slot = self
            .used
            .first_zero()
            .expect("the cache asks for room before it takes a slot");
        self.used.set(slot, true);
        self.n_used += 1;
        slot as u32
    }

    /// Frees a slot in use.
    pub(crate) fn release(&mut self, slot: u32) {
        self.used.set(slot as usize, false);
        self.n_used -= 1;
    }
}
