//! The pending request table: warp accesses whose packets are on their way through the L1.

use crate::proto::warp::Flight;

/// One access under way.
#[derive(Debug)]
pub struct Pending {
    /// The instruction, for what is answered with data; a store has none, its warp went on.
    pub flight: Option<Box<Flight>>,
    /// Sub-core of the warp.
    pub subcore: u8,
    /// Slot in it.
    pub warp: u8,
    /// The instruction.
    pub pc: u32,
    /// Packets not yet answered, and one more while packets are still being made.
    pub left: u32,
    /// Whether it is a store, a reduction or a prefetch, of whose end the scheduler is told.
    pub posted: bool,
}

/// A table with a fixed number of entries.
#[derive(Debug)]
pub struct PendingTable {
    entries: Vec<Option<Pending>>,
    free: Vec<u32>,
}

impl PendingTable {
    /// An empty table.
    pub fn new(entries: u32) -> Self {
        PendingTable {
            entries: (0..entries).map(|_| None).collect(),
            free: (0..entries).rev().collect(),
        }
    }

    /// Whether an entry is free.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Entries in use.
    pub fn n_used(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Adds an access; gives the tag of its packets.
    ///
    /// # Panics
    /// If the table is full: ask [`PendingTable::has_room`] first.
    pub fn add(&mut self, pending: Pending) -> u32 {
        let tag = self.free.pop().expect("a free entry was asked for");
        self.entries[tag as usize] = Some(pending);
        tag
    }

    /// The access of a packet.
    pub fn get(&mut self, tag: u32) -> &mut Pending {
        self.entries[tag as usize]
            .as_mut()
            .expect("an answer belongs to a pending access")
    }

    /// One packet is answered; the access, if it was the last.
    pub fn answered(&mut self, tag: u32) -> Option<Pending> {
        let pending = self.get(tag);
        pending.left -= 1;
        if pending.left > 0 {
            return None;
        }
        self.free.push(tag);
        self.entries[tag as usize].take()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = PendingTable::new(self.entries.len() as u32);
    }
}
