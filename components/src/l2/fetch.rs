//! Fetches under way for the lines of a slice: one entry per line, with a queue of packets per sector.
//!
//! Every packet that touches a sector under way joins its queue, stores too: so a load that came before a store never sees it.

use crate::proto::mem::{SECTORS, each_sector, n_sectors};
use crate::waiting::{SectorQueue, Waiting};

struct Entry {
    sectors: u8,
    queues: [SectorQueue; SECTORS],
}

/// All fetches of one slice.
pub(super) struct Fetches {
    entries: Vec<Entry>,
    free: Vec<u16>,
    in_flight: u32,
}

impl Fetches {
    /// At most so many sectors under way.
    pub(super) fn new(sectors: u32) -> Self {
        let entry = || Entry {
            sectors: 0,
            queues: [SectorQueue::EMPTY; SECTORS],
        };
        Fetches {
            entries: (0..sectors).map(|_| entry()).collect(),
            free: (0..sectors as u16).rev().collect(),
            in_flight: 0,
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.entries.len() as u32);
    }

    /// Sectors under way.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether so many sectors more may be under way.
    pub(super) fn has_room(&self, sectors: u32) -> bool {
        self.in_flight as usize + sectors as usize <= self.entries.len()
    }

    /// Sectors of an entry's line that are under way.
    #[inline]
    pub(super) fn sectors(&self, entry: u16) -> u8 {
        self.entries[usize::from(entry)].sectors
    }

    /// An entry for a line that has none. There must be room.
    pub(super) fn open(&mut self) -> u16 {
        self.free.pop().expect("asked for room before opening an entry")
    }

    /// So many sectors more of the entry's line are under way.
    pub(super) fn start(&mut self, entry: u16, sectors: u8) {
        self.entries[usize::from(entry)].sectors |= sectors;
        self.in_flight += n_sectors(sectors);
    }

    /// Lets a slot wait for sectors under way.
    pub(super) fn wait(&mut self, entry: u16, sectors: u8, slot: u32, waiting: &mut Waiting) {
        let entry = &mut self.entries[usize::from(entry)];
        for sector in each_sector(sectors) {
            waiting.push(&mut entry.queues[sector], slot, sector);
        }
    }

    /// The next slot that waits for a sector.
    #[inline]
    pub(super) fn next_waiter(&mut self, entry: u16, sector: usize, waiting: &mut Waiting) -> Option<u32> {
        waiting.pop(&mut self.entries[usize::from(entry)].queues[sector], sector)
    }

    /// The slot that waits for all of these sectors and is alone in each of their queues, if there is one: it leaves them.
    pub(super) fn take_only_waiter(&mut self, entry: u16, sectors: u8) -> Option<u32> {
        let queues = &mut self.entries[usize::from(entry)].queues;
        let slot = queues[sectors.trailing_zeros() as usize].only()?;
        if each_sector(sectors).any(|sector| queues[sector].only() != Some(slot)) {
            return None;
        }
        each_sector(sectors).for_each(|sector| queues[sector] = SectorQueue::EMPTY);
        Some(slot)
    }

    /// The sectors are there. Says whether they were the entry's last: then it is free.
    pub(super) fn finish(&mut self, n: u16, sectors: u8) -> bool {
        let entry = &mut self.entries[usize::from(n)];
        entry.sectors &= !sectors;
        self.in_flight -= n_sectors(sectors);
        if entry.sectors == 0 {
            self.free.push(n);
        }
        entry.sectors == 0
    }
}
