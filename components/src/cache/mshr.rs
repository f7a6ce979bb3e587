//! Miss status holding registers: one entry per outstanding miss, with a queue of targets for each of its sectors.
//!
//! The capacity is in sectors, because each sector in flight takes one register. Each cache finds its entries in its own way. The L1 has an
//! index, and an L2 slice reads the tag of the line.
//!
//! Invariant: an entry is open while one of its sectors is in flight, and then alone.

use super::slots::Slots;
use super::targets::{MissTargets, TargetQueue};
use crate::proto::mem::{Packet, SECTORS, each_sector, n_sectors};

struct Entry {
    /// Sectors in flight.
    sectors: u8,
    queues: [TargetQueue; SECTORS],
}

/// The outstanding misses of one cache, and the packets that wait for them.
pub(crate) struct MshrTable {
    entries: Vec<Entry>,
    open: Slots,
    /// Sectors in flight, of all entries.
    in_flight: u32,
    targets: MissTargets,
}

impl MshrTable {
    /// A table for `sectors` sectors in flight and `packets` packets that wait.
    pub(crate) fn new(sectors: u32, packets: u32) -> Self {
        let entry = || Entry {
            sectors: 0,
            queues: [TargetQueue::EMPTY; SECTORS],
        };
        MshrTable {
            entries: (0..sectors).map(|_| entry()).collect(),
            open: Slots::new(sectors),
            in_flight: 0,
            targets: MissTargets::new(packets),
        }
    }

    /// Sectors in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Packets that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.targets.len()
    }

    /// Whether one more packet may wait, and `sectors` more sectors be in flight for it.
    #[inline]
    pub(crate) fn has_room(&self, sectors: u8) -> bool {
        !self.targets.is_full() && (self.in_flight + n_sectors(sectors)) as usize <= self.entries.len()
    }

    /// A free entry; its first sectors must follow ([`MshrTable::fetch`]).
    ///
    /// # Panics
    /// If no entry is free.
    pub(crate) fn open(&mut self) -> u32 {
        self.open.take()
    }

    /// Adds sectors in flight to an entry.
    pub(crate) fn fetch(&mut self, entry: u32, sectors: u8) {
        self.entries[entry as usize].sectors |= sectors;
        self.in_flight += n_sectors(sectors);
    }

    /// Sectors of an entry that are in flight.
    #[inline]
    pub(crate) fn sectors(&self, entry: u32) -> u8 {
        self.entries[entry as usize].sectors
    }

    /// Parks a packet that lacks the sectors `missing`. Returns its slot, which must [`join`](MshrTable::join) the queue of each.
    pub(crate) fn park(&mut self, packet: Box<Packet>, missing: u8) -> u32 {
        self.targets.add(packet, missing)
    }

    /// Appends a slot to the queues of the given sectors.
    pub(crate) fn join(&mut self, entry: u32, sectors: u8, slot: u32) {
        let entry = &mut self.entries[entry as usize];
        for sector in each_sector(sectors) {
            self.targets.push(&mut entry.queues[sector], slot, sector);
        }
    }

    /// Takes the slot that has waited longest for a sector of an entry.
    #[inline]
    pub(crate) fn next_target(&mut self, entry: u32, sector: usize) -> Option<u32> {
        self.targets
            .pop(&mut self.entries[entry as usize].queues[sector], sector)
    }

    /// Takes the slot that waits for all of `sectors`, if it is the only target of each.
    pub(crate) fn take_only_target(&mut self, entry: u32, sectors: u8) -> Option<u32> {
        let queues = &mut self.entries[entry as usize].queues;
        let slot = queues[each_sector(sectors).next()?].only()?;
        if each_sector(sectors).any(|sector| queues[sector].only() != Some(slot)) {
            return None;
        }
        each_sector(sectors).for_each(|sector| queues[sector] = TargetQueue::EMPTY);
        Some(slot)
    }

    /// The packet in a slot.
    #[inline]
    pub(crate) fn packet(&mut self, slot: u32) -> &mut Packet {
        self.targets.packet(slot)
    }

    /// Notes that `sector` has arrived for a slot. Returns the packet when it lacks no other sector.
    #[inline]
    pub(crate) fn arrived(&mut self, slot: u32, sector: usize) -> Option<Box<Packet>> {
        self.targets.arrived(slot, sector)
    }

    /// Notes that `sectors` are no longer in flight. Returns whether they were the entry's last: then it is free.
    pub(crate) fn finish(&mut self, entry: u32, sectors: u8) -> bool {
        let left = &mut self.entries[entry as usize].sectors;
        *left &= !sectors;
        self.in_flight -= n_sectors(sectors);
        let is_last = *left == 0;
        if is_last {
            self.open.release(entry);
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Box<Packet> {
        Box::new(Packet::blank())
    }

    #[test]
    fn table_has_room_until_its_sectors_are_in_flight_and_again_once_they_are_back() {
        let mut table = MshrTable::new(4, 8);
        let entry = table.open();
        table.fetch(entry, 0b0011);
        assert!(table.has_room(0b0011) && !table.has_room(0b0111));
        table.fetch(entry, 0b1100);
        assert!(table.has_room(0) && !table.has_room(0b0001), "a merge needs no sector");
        assert!(!table.finish(entry, 0b0111));
        assert_eq!((table.in_flight(), table.sectors(entry)), (1, 0b1000));
        assert!(table.finish(entry, 0b1000));
        assert_eq!(table.in_flight(), 0);
    }

    #[test]
    fn every_slot_taken_not_even_a_merge_has_room() {
        let mut table = MshrTable::new(4, 1);
        let entry = table.open();
        table.fetch(entry, 0b0001);
        let slot = table.park(packet(), 0b0001);
        table.join(entry, 0b0001, slot);
        assert!(!table.has_room(0));
    }

    #[test]
    fn target_alone_in_all_queues_is_taken_at_once_one_of_two_is_not() {
        let mut table = MshrTable::new(8, 8);
        let entry = table.open();
        table.fetch(entry, 0b0011);
        let first = table.park(packet(), 0b0011);
        table.join(entry, 0b0011, first);
        assert_eq!(table.take_only_target(entry, 0b0011), Some(first));
        assert_eq!(table.next_target(entry, 0), None);
        table.join(entry, 0b0011, first);
        let second = table.park(packet(), 0b0010);
        table.join(entry, 0b0010, second);
        assert_eq!(table.take_only_target(entry, 0b0011), None);
        assert_eq!(table.next_target(entry, 1), Some(first));
    }
}
