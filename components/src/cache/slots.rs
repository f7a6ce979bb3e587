//! Allocates the slots of a table: one bit per slot in use.
//!
//! The lowest free slot is taken first, so a table with few entries stays in few host cache lines.

use bitvec::vec::BitVec;

/// The slots of a table, free or in use.
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

    /// Number of slots in use.
    pub(crate) fn len(&self) -> usize {
        self.n_used
    }

    /// True if no slot is free.
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
            .expect("the caller checks for room before it takes a slot");
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
