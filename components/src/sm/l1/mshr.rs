//! The outstanding misses of the L1: one entry per request to the L2, found by line.
//!
//! A sector in flight is *fillable* until a store or an atomic of this SM to it passes the L1. Then it is *stale*: a later load must not
//! see its bytes. A stale sector still serves its targets, but accepts no merge and fills no line.
//!
//! Invariant: no sector of a line is fillable in two entries.

use crate::cache::line_index::LineIndex;
use crate::cache::mshr::MshrTable;
use crate::proto::mem::{Packet, SECTORS, each_sector};

/// State of an entry that only the L1 needs.
#[derive(Clone, Copy, Default)]
struct Miss {
    /// Sectors that may fill a line.
    fillable: u8,
    /// Targets that each sector has had.
    n_targets: [u32; SECTORS],
}

/// All outstanding misses of one L1.
pub(super) struct Mshr {
    pub(super) table: MshrTable,
    misses: Box<[Miss]>,
    /// The entries of a line.
    index: LineIndex,
    /// Maximum number of targets of a sector.
    max_merges: u32,
}

impl Mshr {
    /// No misses. At most `max_sectors` sectors are in flight, with `max_targets` targets, and `max_merges` of them for one sector.
    pub(super) fn new(max_sectors: u32, max_targets: u32, max_merges: u32) -> Self {
        Mshr {
            table: MshrTable::new(max_sectors, max_targets),
            misses: vec![Miss::default(); max_sectors as usize].into(),
            index: LineIndex::new(max_sectors as usize),
            max_merges,
        }
    }

    /// The fillable sectors among `wanted`. `None` if one of them has its most targets already.
    pub(super) fn mergeable(&self, line: u32, wanted: u8) -> Option<u8> {
        let mut found = 0;
        let mut entry = self.index.find(line);
        // At most one entry has a given sector fillable, so no sector is counted twice.
        while let Some(n) = entry {
            let miss = &self.misses[n];
            let sectors = miss.fillable & wanted;
            if each_sector(sectors).any(|sector| miss.n_targets[sector] >= self.max_merges) {
                return None;
            }
            found |= sectors;
            entry = self.index.next(n, line);
        }
        Some(found)
    }

    /// Stores a load that waits for the sectors `merged`, which are fillable, and `fetched`, which are not in flight. Returns the new entry
    /// for the fetched sectors. Its number is the tag of the request. The caller has checked for room.
    pub(super) fn park(&mut self, line: u32, packet: Box<Packet>, merged: u8, fetched: u8) -> Option<u32> {
        // The packet waits once. Each sector in flight points to it.
        let slot = self.table.park(packet, merged | fetched);
        // Several misses of the line can be in flight, each with other fillable sectors.
        let mut entry = self.index.find(line).filter(|_| merged != 0);
        while let Some(n) = entry {
            self.add_target(n, self.misses[n].fillable & merged, slot);
            entry = self.index.next(n, line);
        }
        if fetched == 0 {
            return None;
        }
        let entry = self.table.allocate();
        self.table.add_sectors(entry, fetched);
        self.index.insert(entry as usize, line);
        self.misses[entry as usize] = Miss {
            fillable: fetched,
            // `add_target` counts the load that causes the miss, so a merge limit of 1 allows no merge.
            n_targets: [0; SECTORS],
        };
        self.add_target(entry as usize, fetched, slot);
        Some(entry)
    }

    fn add_target(&mut self, entry: usize, sectors: u8, slot: u32) {
        each_sector(sectors).for_each(|sector| self.misses[entry].n_targets[sector] += 1);
        self.table.add_target(entry as u32, sectors, slot);
    }

    /// Marks sectors of a line stale, if they are in flight: this SM writes them.
    #[inline]
    pub(super) fn mark_stale(&mut self, line: u32, sectors: u8) {
        let mut entry = self.index.find(line);
        while let Some(n) = entry {
            self.misses[n].fillable &= !sectors;
            entry = self.index.next(n, line);
        }
    }

    /// Marks all sectors in flight stale.
    pub(super) fn mark_all_stale(&mut self) {
        self.misses.iter_mut().for_each(|miss| miss.fillable = 0);
    }

    /// Sectors of an entry that may fill a line.
    pub(super) fn fillable(&self, entry: u32) -> u8 {
        self.misses[entry as usize].fillable
    }

    /// Frees an entry after its response.
    pub(super) fn close(&mut self, entry: u32) {
        self.index.remove(entry as usize);
        self.table.remove_sectors(entry, self.table.in_flight(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Box<Packet> {
        Box::new(Packet::blank())
    }

    #[test]
    fn loads_of_a_sector_in_flight_merge_until_the_limit() {
        let mut mshr = Mshr::new(8, 8, 2);
        mshr.park(7, packet(), 0, 0b0011);
        assert_eq!(mshr.mergeable(7, 0b0110), Some(0b0010));
        assert_eq!(mshr.park(7, packet(), 0b0010, 0), None, "a merge sends no request");
        assert_eq!(mshr.mergeable(7, 0b0010), None, "two targets already");
        assert_eq!(mshr.mergeable(7, 0b0001), Some(0b0001));
    }

    #[test]
    fn sector_written_while_in_flight_accepts_no_merge_and_no_fill() {
        let mut mshr = Mshr::new(8, 8, 2);
        let entry = mshr.park(7, packet(), 0, 0b0011).unwrap();
        mshr.mark_stale(7, 0b0001);
        assert_eq!(mshr.mergeable(7, 0b0011), Some(0b0010));
        assert_eq!(mshr.fillable(entry), 0b0010);
        assert!(
            mshr.table.next_target(entry, 0).is_some(),
            "its earlier target is still served"
        );
    }

    #[test]
    fn entry_closes_without_effect_on_the_others() {
        let mut mshr = Mshr::new(4, 4, 1);
        let lines = [1, 9, 17, 25];
        let entries = lines.map(|line| mshr.park(line, packet(), 0, 1).unwrap());
        assert!(!mshr.table.has_room(1));
        let mut open = [true; 4];
        for n in [1, 3, 0, 2] {
            let slot = mshr.table.next_target(entries[n], 0).unwrap();
            mshr.table.deliver(slot, 0);
            mshr.close(entries[n]);
            open[n] = false;
            // An open entry has its only target already. A closed one leaves no sector in flight.
            let found = lines.map(|line| mshr.mergeable(line, 1));
            assert_eq!(found, open.map(|open| if open { None } else { Some(0) }));
        }
        assert_eq!(mshr.table.n_in_flight(), 0);
        assert!(mshr.table.has_room(0b1111));
    }
}
