//! Miss status holding registers: one entry per outstanding miss, with a queue of targets for each of its sectors.
//!
//! The capacity counts sectors: each sector in flight takes one register. The L1 finds an entry by an index, an L2 slice by the line's way.
//!
//! Invariant: an entry is allocated exactly while at least one of its sectors is in flight.

use warpwave_hw::invariant::Invariants;

use super::slots::Slots;
use super::targets::{MissTargets, TargetQueue};
use crate::proto::mem::{Packet, SECTORS, each_sector, n_sectors};

struct Entry {
    /// Mask of the sectors in flight.
    in_flight: u8,
    /// The targets of each sector, oldest first.
    queues: [TargetQueue; SECTORS],
}

/// The outstanding misses of one cache, and their targets: the packets that wait for them.
pub(crate) struct MshrTable {
    entries: Vec<Entry>,
    in_use: Slots,
    /// Number of sectors in flight, over all entries.
    n_in_flight: u32,
    targets: MissTargets,
}

impl MshrTable {
    /// A table for at most `max_sectors` sectors in flight and `max_targets` targets.
    pub(crate) fn new(max_sectors: u32, max_targets: u32) -> Self {
        let entry = || Entry {
            in_flight: 0,
            queues: [TargetQueue::EMPTY; SECTORS],
        };
        MshrTable {
            // One entry per sector is enough: an entry in use has a sector in flight.
            entries: (0..max_sectors).map(|_| entry()).collect(),
            in_use: Slots::new(max_sectors),
            n_in_flight: 0,
            targets: MissTargets::new(max_targets),
        }
    }

    /// Number of sectors in flight.
    pub(crate) fn n_in_flight(&self) -> u32 {
        self.n_in_flight
    }

    /// Checks the counts: an entry is in use exactly while a sector of it is in flight.
    pub(crate) fn invariants(&self, check: &mut Invariants) {
        let sectors: u32 = self.entries.iter().map(|entry| n_sectors(entry.in_flight)).sum();
        let used = self.entries.iter().filter(|entry| entry.in_flight != 0).count();
        check.equal("sectors in flight", self.n_in_flight.into(), sectors.into());
        check.at_most("sectors in flight", self.n_in_flight.into(), self.entries.len() as u64);
        check.equal("MSHRs in use", self.in_use.len() as u64, used as u64);
        self.targets.invariants(check);
    }

    /// Number of targets.
    pub(crate) fn n_targets(&self) -> usize {
        self.targets.len()
    }

    /// True if there is room for one more target, and for `sectors` more sectors in flight.
    #[inline]
    pub(crate) fn has_room(&self, sectors: u8) -> bool {
        !self.targets.is_full() && (self.n_in_flight + n_sectors(sectors)) as usize <= self.entries.len()
    }

    /// Allocates a free entry. The caller adds its first sectors with [`MshrTable::add_sectors`].
    ///
    /// # Panics
    /// If no entry is free.
    pub(crate) fn allocate(&mut self) -> u32 {
        self.in_use.take()
    }

    /// Adds sectors in flight to an entry.
    pub(crate) fn add_sectors(&mut self, entry: u32, sectors: u8) {
        self.entries[entry as usize].in_flight |= sectors;
        self.n_in_flight += n_sectors(sectors);
    }

    /// Mask of the sectors of an entry that are in flight.
    #[inline]
    pub(crate) fn in_flight(&self, entry: u32) -> u8 {
        self.entries[entry as usize].in_flight
    }

    /// Stores a packet that waits for the sectors `missing`. Returns its slot. The caller puts the slot in the queue of each of these
    /// sectors with [`MshrTable::add_target`].
    pub(crate) fn park(&mut self, packet: Box<Packet>, missing: u8) -> u32 {
        self.targets.add(packet, missing)
    }

    /// Appends a slot to the queues of `sectors`.
    pub(crate) fn add_target(&mut self, entry: u32, sectors: u8, slot: u32) {
        let entry = &mut self.entries[entry as usize];
        // One slot in several queues: the packet waits once, for all its sectors.
        for sector in each_sector(sectors) {
            self.targets.push(&mut entry.queues[sector], slot, sector);
        }
    }

    /// The oldest target of a sector of an entry, which stays.
    #[inline]
    pub(crate) fn front(&self, entry: u32, sector: usize) -> Option<u32> {
        self.entries[entry as usize].queues[sector].front()
    }

    /// Takes the oldest target of a sector of an entry.
    #[inline]
    pub(crate) fn next_target(&mut self, entry: u32, sector: usize) -> Option<u32> {
        self.targets
            .pop(&mut self.entries[entry as usize].queues[sector], sector)
    }

    /// Takes the slot that is the only target of each of `sectors`, if there is one.
    pub(crate) fn take_only_target(&mut self, entry: u32, sectors: u8) -> Option<u32> {
        let queues = &mut self.entries[entry as usize].queues;
        let slot = queues[each_sector(sectors).next()?].only()?;
        // Several targets must be served sector by sector, in order.
        if each_sector(sectors).any(|sector| queues[sector].only() != Some(slot)) {
            return None;
        }
        // The slot leaves all its queues at once: the caller delivers the sectors together.
        each_sector(sectors).for_each(|sector| queues[sector] = TargetQueue::EMPTY);
        Some(slot)
    }

    /// The packet in a slot.
    #[inline]
    pub(crate) fn packet(&mut self, slot: u32) -> &mut Packet {
        self.targets.packet(slot)
    }

    /// The packet in a slot, to read.
    #[inline]
    pub(crate) fn target(&self, slot: u32) -> &Packet {
        self.targets.target(slot)
    }

    /// Delivers `sector` to a target. Returns the packet if it waits for no other sector.
    #[inline]
    pub(crate) fn deliver(&mut self, slot: u32, sector: usize) -> Option<Box<Packet>> {
        self.targets.deliver(slot, sector)
    }

    /// Removes sectors that have arrived. Frees the entry with its last sector, and then returns true.
    pub(crate) fn remove_sectors(&mut self, entry: u32, sectors: u8) -> bool {
        let in_flight = &mut self.entries[entry as usize].in_flight;
        *in_flight &= !sectors;
        self.n_in_flight -= n_sectors(sectors);
        let is_last = *in_flight == 0;
        if is_last {
            self.in_use.release(entry);
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
    fn room_is_taken_by_sectors_in_flight_and_returns_with_them() {
        let mut table = MshrTable::new(4, 8);
        let entry = table.allocate();
        table.add_sectors(entry, 0b0011);
        assert!(table.has_room(0b0011) && !table.has_room(0b0111));
        table.add_sectors(entry, 0b1100);
        assert!(table.has_room(0) && !table.has_room(0b0001), "a merge needs no sector");
        assert!(!table.remove_sectors(entry, 0b0111));
        assert_eq!((table.n_in_flight(), table.in_flight(entry)), (1, 0b1000));
        assert!(table.remove_sectors(entry, 0b1000));
        assert_eq!(table.n_in_flight(), 0);
    }

    #[test]
    fn lost_sector_and_leaked_entry_break_invariants() {
        let mut table = MshrTable::new(4, 8);
        let entry = table.allocate();
        table.add_sectors(entry, 0b0011);
        let broken = |table: &MshrTable| Invariants::broken(|check| table.invariants(check));
        assert!(broken(&table).is_empty());
        table.entries[0].in_flight = 0b0001;
        assert_eq!(broken(&table), ["sectors in flight: 2, not 1"]);
        table.entries[0].in_flight = 0;
        table.n_in_flight = 0;
        assert_eq!(broken(&table), ["MSHRs in use: 1, not 0"]);
        let slot = table.park(packet(), 0);
        assert_eq!(
            broken(&table).last().unwrap(),
            &format!("sectors that target {slot} waits for: 0, not 1")
        );
    }

    #[test]
    fn full_target_slots_refuse_even_a_merge() {
        let mut table = MshrTable::new(4, 1);
        let entry = table.allocate();
        table.add_sectors(entry, 0b0001);
        let slot = table.park(packet(), 0b0001);
        table.add_target(entry, 0b0001, slot);
        assert!(!table.has_room(0));
    }

    #[test]
    fn only_target_of_all_sectors_is_taken_at_once() {
        let mut table = MshrTable::new(8, 8);
        let entry = table.allocate();
        table.add_sectors(entry, 0b0011);
        let first = table.park(packet(), 0b0011);
        table.add_target(entry, 0b0011, first);
        assert_eq!(table.take_only_target(entry, 0b0011), Some(first));
        assert_eq!(table.next_target(entry, 0), None);
        table.add_target(entry, 0b0011, first);
        let second = table.park(packet(), 0b0010);
        table.add_target(entry, 0b0010, second);
        assert_eq!(table.take_only_target(entry, 0b0011), None);
        assert_eq!(table.next_target(entry, 1), Some(first));
    }
}
