//! Packets that wait inside a cache for sectors under way: a slot each, and for each sector a queue of slots.
//!
//! Whoever has a fetch under way keeps a [`SectorQueue`] per sector; the links of the queues lie here, one per slot and
//! sector, so nothing is allocated.
//!
//! Invariant: a slot stands in exactly as many queues as its packet has sectors missing.

use crate::proto::mem::{Packet, SECTORS};

const NONE: u32 = u32::MAX;

/// Slots that wait for one sector, in order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SectorQueue {
    head: u32,
    tail: u32,
}

impl SectorQueue {
    /// Nobody waits.
    pub(crate) const EMPTY: SectorQueue = SectorQueue { head: NONE, tail: NONE };

    /// The slot that waits alone, if one does.
    #[inline]
    pub(crate) fn only(self) -> Option<u32> {
        (self.head == self.tail && self.head != NONE).then_some(self.head)
    }
}

/// A place for a packet that waits: half a line of the host's cache.
#[derive(Clone)]
#[repr(align(32))]
struct Slot {
    packet: Option<Box<Packet>>,
    /// The slot behind it in the queue of each sector.
    next: [u32; SECTORS],
    /// Sectors that it waits for.
    missing: u8,
}

impl Slot {
    const FREE: Slot = Slot {
        packet: None,
        next: [NONE; SECTORS],
        missing: 0,
    };
}

/// The packets that wait in one cache.
pub(crate) struct Waiting {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Waiting {
    /// Room for so many packets.
    pub(crate) fn new(slots: u32) -> Self {
        Waiting {
            slots: vec![Slot::FREE; slots as usize],
            free: (0..slots).rev().collect(),
        }
    }

    /// Packets waiting.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no packet more may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Drops all packets.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.slots.len() as u32);
    }

    /// Takes a packet in that waits for `missing` sectors. Each of them must be pushed on its queue. There must be room.
    pub(crate) fn add(&mut self, packet: Box<Packet>, missing: u8) -> u32 {
        let slot = self.free.pop().expect("asked for a slot before adding");
        let place = &mut self.slots[slot as usize];
        (place.packet, place.missing) = (Some(packet), missing);
        slot
    }

    /// Puts a slot at the end of the queue of `sector`.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut SectorQueue, slot: u32, sector: usize) {
        self.slots[slot as usize].next[sector] = NONE;
        match queue.tail {
            NONE => queue.head = slot,
            tail => self.slots[tail as usize].next[sector] = slot,
        }
        queue.tail = slot;
    }

    /// Takes the oldest slot off the queue of `sector`.
    #[inline]
    pub(crate) fn pop(&mut self, queue: &mut SectorQueue, sector: usize) -> Option<u32> {
        let slot = queue.head;
        if slot == NONE {
            return None;
        }
        queue.head = self.slots[slot as usize].next[sector];
        if queue.head == NONE {
            queue.tail = NONE;
        }
        Some(slot)
    }

    /// The packet in a slot.
    #[inline]
    pub(crate) fn packet(&mut self, slot: u32) -> &mut Packet {
        self.slots[slot as usize]
            .packet
            .as_mut()
            .expect("a queued slot holds a packet")
    }

    /// Notes that a sector is there; gives the packet back with its last one.
    #[inline]
    pub(crate) fn arrived(&mut self, slot: u32, sector: usize) -> Option<Box<Packet>> {
        let place = &mut self.slots[slot as usize];
        place.missing &= !(1 << sector);
        if place.missing != 0 {
            return None;
        }
        self.free.push(slot);
        place.packet.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_wait_for_one_sector_they_come_out_in_order() {
        let mut waiting = Waiting::new(2);
        let mut queue = SectorQueue::EMPTY;
        for sectors in [0b0010, 0b0011] {
            let slot = waiting.add(Box::new(Packet::blank()), sectors);
            waiting.push(&mut queue, slot, 1);
        }
        assert!(waiting.is_full());
        let (first, second) = (waiting.pop(&mut queue, 1).unwrap(), waiting.pop(&mut queue, 1).unwrap());
        assert_eq!(waiting.pop(&mut queue, 1), None);
        assert!(waiting.arrived(first, 1).is_some());
        assert!(waiting.arrived(second, 1).is_none(), "sector 0 is still missing");
        assert!(waiting.arrived(second, 0).is_some());
        assert_eq!(waiting.len(), 0);
    }
}
