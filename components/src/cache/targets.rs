//! Packets that wait for sectors in flight (the targets of misses): a slot each, and for each sector a queue of slots.
//!
//! The MSHR entry of a miss keeps a [`TargetQueue`] per sector. The links of the queues are here, one per slot and sector, so a
//! merge allocates nothing.
//!
//! Invariant: a slot is in one queue for each sector that its packet lacks.

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
    /// No packet waits.
    pub(crate) const EMPTY: TargetQueue = TargetQueue { head: NONE, tail: NONE };

    /// The slot that waits alone, if one does.
    #[inline]
    pub(crate) fn only(self) -> Option<u32> {
        (self.head == self.tail && self.head != NONE).then_some(self.head)
    }
}

/// A slot, in half a line of the host's cache.
#[derive(Clone)]
#[repr(align(32))]
struct Slot {
    packet: Option<Box<Packet>>,
    /// The slot behind this one in the queue of each sector.
    next: [u32; SECTORS],
    /// Sectors that the packet lacks.
    missing: u8,
}

const FREE: Slot = Slot {
    packet: None,
    next: [NONE; SECTORS],
    missing: 0,
};

/// The packets that wait in one cache.
pub(crate) struct MissTargets {
    slots: Vec<Slot>,
    used: Slots,
}

impl MissTargets {
    /// Room for `packets` packets.
    pub(crate) fn new(packets: u32) -> Self {
        MissTargets {
            slots: vec![FREE; packets as usize],
            used: Slots::new(packets),
        }
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.used.len()
    }

    /// Whether every slot is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.used.is_full()
    }

    /// Gives a packet that lacks the sectors `missing` a slot. The caller pushes the slot on the queue of each of them.
    ///
    /// # Panics
    /// If every slot is taken.
    pub(crate) fn add(&mut self, packet: Box<Packet>, missing: u8) -> u32 {
        let slot = self.used.take();
        let target = &mut self.slots[slot as usize];
        (target.packet, target.missing) = (Some(packet), missing);
        slot
    }

    /// Puts a slot at the end of the queue of `sector`.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut TargetQueue, slot: u32, sector: usize) {
        self.slots[slot as usize].next[sector] = NONE;
        match queue.tail {
            NONE => queue.head = slot,
            tail => self.slots[tail as usize].next[sector] = slot,
        }
        queue.tail = slot;
    }

    /// Takes the oldest slot off the queue of `sector`.
    #[inline]
    pub(crate) fn pop(&mut self, queue: &mut TargetQueue, sector: usize) -> Option<u32> {
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
        let packet = self.slots[slot as usize].packet.as_mut();
        packet.expect("a queued slot holds a packet")
    }

    /// Notes that `sector` has arrived. Returns the packet when it lacks no other sector, and frees its slot.
    #[inline]
    pub(crate) fn arrived(&mut self, slot: u32, sector: usize) -> Option<Box<Packet>> {
        let target = &mut self.slots[slot as usize];
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
    fn two_wait_for_one_sector_they_come_out_in_order() {
        let mut targets = MissTargets::new(2);
        let mut queue = TargetQueue::EMPTY;
        for sectors in [0b0010, 0b0011] {
            let slot = targets.add(Box::new(Packet::blank()), sectors);
            targets.push(&mut queue, slot, 1);
        }
        assert!(targets.is_full());
        let (first, second) = (targets.pop(&mut queue, 1).unwrap(), targets.pop(&mut queue, 1).unwrap());
        assert_eq!(targets.pop(&mut queue, 1), None);
        assert!(targets.arrived(first, 1).is_some());
        assert!(targets.arrived(second, 1).is_none(), "sector 0 is still missing");
        assert!(targets.arrived(second, 0).is_some());
        assert_eq!(targets.len(), 0);
    }
}
