//! Targets of misses: packets that wait for sectors in flight. Each has a slot, and each sector has a queue of slots.
//!
//! The MSHR entry of a miss keeps a [`TargetQueue`] per sector. The links of the queues are in the slots, so a merge allocates
//! nothing.
//!
//! Invariant: a slot is in one queue for each sector that its packet waits for.

use warpwave_hw::invariant::Invariants;

use super::slots::Slots;
use crate::proto::mem::{Packet, SECTORS};

const NONE: u32 = u32::MAX;

/// Slots that wait for one sector, in order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TargetQueue {
    head: u32,
    tail: u32,
}

impl TargetQueue {
    /// The empty queue.
    pub(crate) const EMPTY: TargetQueue = TargetQueue { head: NONE, tail: NONE };

    /// The oldest slot.
    #[inline]
    pub(crate) fn front(self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// The slot of a queue with exactly one.
    #[inline]
    pub(crate) fn only(self) -> Option<u32> {
        (self.head == self.tail && self.head != NONE).then_some(self.head)
    }
}

/// A slot: half a host cache line.
#[derive(Clone)]
#[repr(align(32))]
struct Slot {
    packet: Option<Box<Packet>>,
    /// The next slot in the queue of each sector.
    next: [u32; SECTORS],
    /// Mask of the sectors that the packet waits for.
    missing: u8,
}

const FREE: Slot = Slot {
    packet: None,
    next: [NONE; SECTORS],
    missing: 0,
};

/// The targets of one cache.
pub(crate) struct MissTargets {
    slots: Vec<Slot>,
    used: Slots,
}

impl MissTargets {
    /// No targets, and room for `max`.
    pub(crate) fn new(max: u32) -> Self {
        MissTargets {
            slots: vec![FREE; max as usize],
            used: Slots::new(max),
        }
    }

    /// Checks that each slot in use has a packet that waits for a sector.
    pub(super) fn invariants(&self, check: &mut Invariants) {
        let full = self.slots.iter().filter(|slot| slot.packet.is_some());
        check.equal("targets", self.used.len() as u64, full.count() as u64);
        for (n, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.packet.is_some()) {
            check.equal(
                format_args!("sectors that target {n} waits for"),
                u64::from(slot.missing != 0),
                1,
            );
        }
    }

    /// Number of targets.
    pub(crate) fn len(&self) -> usize {
        self.used.len()
    }

    /// True if every slot is in use.
    pub(crate) fn is_full(&self) -> bool {
        self.used.is_full()
    }

    /// Puts a packet that waits for the sectors `missing` in a slot. The caller pushes the slot on the queue of each sector.
    ///
    /// # Panics
    /// If every slot is in use.
    pub(crate) fn add(&mut self, packet: Box<Packet>, missing: u8) -> u32 {
        let slot = self.used.take();
        let target = &mut self.slots[slot as usize];
        (target.packet, target.missing) = (Some(packet), missing);
        slot
    }

    /// Appends a slot to the queue of `sector`.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut TargetQueue, slot: u32, sector: usize) {
        // The slot may have a link from its last packet.
        self.slots[slot as usize].next[sector] = NONE;
        match queue.tail {
            NONE => queue.head = slot,
            tail => self.slots[tail as usize].next[sector] = slot,
        }
        queue.tail = slot;
    }

    /// Removes the oldest slot from the queue of `sector`.
    #[inline]
    pub(crate) fn pop(&mut self, queue: &mut TargetQueue, sector: usize) -> Option<u32> {
        let slot = queue.head;
        if slot == NONE {
            return None;
        }
        queue.head = self.slots[slot as usize].next[sector];
        // It was the only slot.
        if queue.head == NONE {
            queue.tail = NONE;
        }
        Some(slot)
    }

    /// The packet in a slot.
    #[inline]
    pub(crate) fn packet(&mut self, slot: u32) -> &mut Packet {
        let packet = self.slots[slot as usize].packet.as_mut();
        packet.expect("a queued slot holds a packet")
    }

    /// The packet in a slot, to read.
    #[inline]
    pub(crate) fn target(&self, slot: u32) -> &Packet {
        let packet = self.slots[slot as usize].packet.as_ref();
        packet.expect("a queued slot holds a packet")
    }

    /// Delivers `sector` to a slot. If the packet waits for no other sector, frees the slot and returns the packet.
    #[inline]
    pub(crate) fn deliver(&mut self, slot: u32, sector: usize) -> Option<Box<Packet>> {
        let target = &mut self.slots[slot as usize];
        // The slot has left the queue of this sector. It stays in the queues of the others.
        target.missing &= !(1 << sector);
        if target.missing != 0 {
            return None;
        }
        self.used.release(slot);
        target.packet.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_a_sector_leave_in_order_of_arrival() {
        let mut targets = MissTargets::new(2);
        let mut queue = TargetQueue::EMPTY;
        for sectors in [0b0010, 0b0011] {
            let slot = targets.add(Box::new(Packet::blank()), sectors);
            targets.push(&mut queue, slot, 1);
        }
        assert!(targets.is_full());
        let (first, second) = (targets.pop(&mut queue, 1).unwrap(), targets.pop(&mut queue, 1).unwrap());
        assert_eq!(targets.pop(&mut queue, 1), None);
        assert!(targets.deliver(first, 1).is_some());
        assert!(targets.deliver(second, 1).is_none(), "sector 0 is still missing");
        assert!(targets.deliver(second, 0).is_some());
        assert_eq!(targets.len(), 0);
    }
}
