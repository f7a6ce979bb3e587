//! The outstanding misses of the L1: one entry per request to the L2, found by line.
//!
//! A sector in flight is *fillable* until this SM writes to it (a store or an atomic passes the L1). From then on it is stale: a later
//! load must not see its bytes. A stale sector still serves the packets that wait for it, but takes no more of them and fills no
//! line.
//!
//! Invariant: no sector of a line is fillable in two entries.

use crate::cache::line_index::LineIndex;
use crate::cache::mshr::MshrTable;
use crate::proto::mem::{Packet, SECTORS, each_sector};

/// What the L1 keeps of an entry beside its targets.
#[derive(Clone, Copy, Default)]
struct Miss {
    /// Sectors that may fill a line.
    fillable: u8,
    /// Packets that have waited for each sector.
    targets: [u32; SECTORS],
}

/// All outstanding misses of one L1.
pub(super) struct Mshr {
    pub(super) table: MshrTable,
    misses: Box<[Miss]>,
    /// The entries of a line.
    index: LineIndex,
    max_targets: u32,
}

impl Mshr {
    /// At most `sectors` sectors in flight, `packets` packets that wait, and `max_targets` of them for one sector.
    pub(super) fn new(sectors: u32, packets: u32, max_targets: u32) -> Self {
        Mshr {
            table: MshrTable::new(sectors, packets),
            misses: vec![Miss::default(); sectors as usize].into(),
            index: LineIndex::new(sectors as usize),
            max_targets,
        }
    }

    /// The fillable sectors among `wanted`. `None` if one of them has as many targets as it may have.
    pub(super) fn mergeable(&self, line: u32, wanted: u8) -> Option<u8> {
        let mut found = 0;
        let mut entry = self.index.find(line);
        while let Some(n) = entry {
            let miss = &self.misses[n];
            let sectors = miss.fillable & wanted;
            if each_sector(sectors).any(|sector| miss.targets[sector] >= self.max_targets) {
                return None;
            }
            found |= sectors;
            entry = self.index.next(n, line);
        }
        Some(found)
    }

    /// Parks a load that lacks `merged` sectors, which are fillable, and `fetched` sectors, which are not in flight. Returns the new
    /// entry of the latter; its number is the tag of the request. There must be room.
    pub(super) fn park(&mut self, line: u32, packet: Box<Packet>, merged: u8, fetched: u8) -> Option<u32> {
        let slot = self.table.park(packet, merged | fetched);
        let mut entry = self.index.find(line).filter(|_| merged != 0);
        while let Some(n) = entry {
            self.join(n, self.misses[n].fillable & merged, slot);
            entry = self.index.next(n, line);
        }
        if fetched == 0 {
            return None;
        }
        let entry = self.table.open();
        self.table.fetch(entry, fetched);
        self.index.insert(entry as usize, line);
        self.misses[entry as usize] = Miss {
            fillable: fetched,
            targets: [0; SECTORS],
        };
        self.join(entry as usize, fetched, slot);
        Some(entry)
    }

    fn join(&mut self, entry: usize, sectors: u8, slot: u32) {
        each_sector(sectors).for_each(|sector| self.misses[entry].targets[sector] += 1);
        self.table.join(entry as u32, sectors, slot);
    }

    /// This SM writes sectors of a line: what is in flight of them is stale.
    #[inline]
    pub(super) fn mark_stale(&mut self, line: u32, sectors: u8) {
        let mut entry = self.index.find(line);
        while let Some(n) = entry {
            self.misses[n].fillable &= !sectors;
            entry = self.index.next(n, line);
        }
    }

    /// Everything in flight is stale.
    pub(super) fn mark_all_stale(&mut self) {
        self.misses.iter_mut().for_each(|miss| miss.fillable = 0);
    }

    /// Sectors of an entry that may fill a line.
    pub(super) fn fillable(&self, entry: u32) -> u8 {
        self.misses[entry as usize].fillable
    }

    /// The response of an entry has been served.
    pub(super) fn close(&mut self, entry: u32) {
        self.index.remove(entry as usize);
        self.table.finish(entry, self.table.sectors(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Box<Packet> {
        Box::new(Packet::blank())
    }

    #[test]
    fn sector_in_flight_second_load_merges_until_the_limit() {
        let mut mshr = Mshr::new(8, 8, 2);
        mshr.park(7, packet(), 0, 0b0011);
        assert_eq!(mshr.mergeable(7, 0b0110), Some(0b0010));
        assert_eq!(mshr.park(7, packet(), 0b0010, 0), None, "a merge sends no request");
        assert_eq!(mshr.mergeable(7, 0b0010), None, "two wait already");
        assert_eq!(mshr.mergeable(7, 0b0001), Some(0b0001));
    }

    #[test]
    fn sector_written_while_in_flight_no_merge_and_no_fill() {
        let mut mshr = Mshr::new(8, 8, 2);
        let entry = mshr.park(7, packet(), 0, 0b0011).unwrap();
        mshr.mark_stale(7, 0b0001);
        assert_eq!(mshr.mergeable(7, 0b0011), Some(0b0010));
        assert_eq!(mshr.fillable(entry), 0b0010);
        assert!(
            mshr.table.next_target(entry, 0).is_some(),
            "the packet that waited before is still served"
        );
    }

    #[test]
    fn entries_closed_in_any_order_the_others_stay() {
        let mut mshr = Mshr::new(4, 4, 1);
        let lines = [1, 9, 17, 25];
        let entries = lines.map(|line| mshr.park(line, packet(), 0, 1).unwrap());
        assert!(!mshr.table.has_room(1));
        let mut open = [true; 4];
        for n in [1, 3, 0, 2] {
            let slot = mshr.table.next_target(entries[n], 0).unwrap();
            mshr.table.arrived(slot, 0);
            mshr.close(entries[n]);
            open[n] = false;
            // An open entry has its one target; a closed one leaves nothing to merge with.
            let found = lines.map(|line| mshr.mergeable(line, 1));
            assert_eq!(found, open.map(|open| if open { None } else { Some(0) }));
        }
        assert_eq!(mshr.table.in_flight(), 0);
        assert!(mshr.table.has_room(0b1111));
    }
}
