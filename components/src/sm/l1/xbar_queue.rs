//! The queue to the crossbar: misses, stores and atomics in one queue, so a load never overtakes an earlier store. The head waits for its
//! translation.
//!
//! With `check.weak` each packet is held back for some cycles at random, and packets for other lines pass it. Packets for one line keep
//! their order (PTX ISA, axiom Coherence). A fence waits until all earlier packets are back, so it orders them as before.

use std::collections::VecDeque;

use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::stall::Stall;
use warpwave_hw::time::Cycle;

use crate::config::Check;
use crate::proto::header::Header;
use crate::proto::mem::Packet;

// The packet has left the host's cache when it leaves the queue, so these fields are copied.
/// A packet in the queue, with copies of the fields that the L1 reads when it sends it.
pub(super) struct Queued {
    pub(super) packet: Box<Packet>,
    pub(super) header: Header,
    /// First cycle in which the packet may leave: its translation is there.
    due: Cycle,
    /// Sectors that the packet changes.
    changed: u32,
    pub(super) is_timed: bool,
    missed_tlb: bool,
}

/// The queue. Its depth counts the sectors that packets change, so a load always fits.
pub(super) struct XbarQueue {
    packets: VecDeque<Queued>,
    /// Sectors that the packets in the queue change.
    changed: u32,
    /// Packets in the queue that have missed the TLB.
    tlb_misses: u32,
    depth: u32,
    /// `None` without `check.weak`: packets leave in the order of arrival.
    shuffle: Option<Box<Shuffle>>,
}

impl XbarQueue {
    /// A queue for `depth` changed sectors. One packet always fits.
    pub(super) fn new(depth: u32, shuffle: Option<Box<Shuffle>>) -> Self {
        XbarQueue {
            packets: VecDeque::with_capacity(depth as usize),
            changed: 0,
            tlb_misses: 0,
            depth,
            shuffle,
        }
    }

    /// Number of packets.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Number of sectors that the packets change.
    pub(super) fn changed(&self) -> u32 {
        self.changed
    }

    /// Number of packets that have missed the TLB. They wait for their translation, for an older packet or for the crossbar.
    pub(super) fn tlb_misses(&self) -> u32 {
        self.tlb_misses
    }

    /// True if a packet that changes `changed` sectors fits.
    pub(super) fn has_room(&self, changed: u32) -> bool {
        // A packet with more sectors than the depth needs a queue without stores.
        self.changed == 0 || self.changed + changed <= self.depth
    }

    /// Appends a packet that may leave from cycle `due` on. `missed_tlb` tells that it waits for a translation until then.
    #[inline]
    pub(super) fn push(&mut self, packet: Box<Packet>, header: Header, due: Cycle, missed_tlb: bool) {
        let changed = packet.n_changed();
        if let Some(shuffle) = &mut self.shuffle {
            shuffle.push(packet.line, due);
        }
        self.changed += changed;
        self.tlb_misses += u32::from(missed_tlb);
        // Loads count as 0 sectors, so the queue can hold more packets than `depth`.
        self.packets.push_back(Queued {
            is_timed: packet.is_timed,
            packet,
            header,
            due,
            changed,
            missed_tlb,
        });
    }

    /// Takes the oldest packet that may leave.
    pub(super) fn pop(&mut self, now: Cycle) -> Option<Queued> {
        let queued = match &mut self.shuffle {
            None => self.packets.pop_front_if(|head| head.due <= now)?,
            Some(shuffle) => self.packets.remove(shuffle.pop(now)?)?,
        };
        self.changed -= queued.changed;
        self.tlb_misses -= u32::from(queued.missed_tlb);
        Some(queued)
    }

    /// First cycle in which a packet may leave. [`Cycle::NEVER`] for an empty queue.
    pub(super) fn next_due(&self) -> Cycle {
        match &self.shuffle {
            None => self.packets.front().map_or(Cycle::NEVER, |head| head.due),
            Some(shuffle) => shuffle.next_due(),
        }
    }

    /// The counts of changed sectors and of TLB misses are those of the packets.
    pub(super) fn invariants(&self, check: &mut Invariants) {
        let sum = |of: fn(&Queued) -> u32| self.packets.iter().map(|queued| u64::from(of(queued))).sum();
        check.equal("changed sectors", self.changed.into(), sum(|queued| queued.changed));
        check.equal(
            "TLB misses",
            self.tlb_misses.into(),
            sum(|queued| queued.missed_tlb.into()),
        );
    }
}

/// A packet that is held back.
struct Held {
    line: u64,
    /// First cycle in which it may leave.
    due: Cycle,
}

/// The disorder of `check.weak`.
pub(super) struct Shuffle {
    /// Cycles for which each packet is held back, by its number.
    delays: Stall,
    /// Packets so far.
    n_packets: u64,
    /// The packets of the queue, in its order.
    held: VecDeque<Held>,
}

impl Shuffle {
    /// The disorder of the L1 of SM `sm`. `None` if `check.weak` is 0.
    pub(super) fn new(check: Check, sm: u16) -> Option<Box<Self>> {
        let shuffle = || {
            Box::new(Shuffle {
                delays: Stall::new(u64::from(check.seed) << 16 | u64::from(sm), check.weak),
                n_packets: 0,
                held: VecDeque::new(),
            })
        };
        (check.weak > 0).then(shuffle)
    }

    /// Adds a packet for `line` that may leave from `due` on, and draws the cycles for which it is held back.
    fn push(&mut self, line: u64, due: Cycle) {
        let cycles = self.delays.delay(Cycle(self.n_packets));
        self.n_packets += 1;
        let due = due + cycles;
        self.held.push_back(Held { line, due });
    }

    /// Removes the oldest packet that may leave. Returns its index.
    fn pop(&mut self, now: Cycle) -> Option<usize> {
        let n = self.first_of_lines().find(|&(_, held)| held.due <= now)?.0;
        self.held.remove(n);
        Some(n)
    }

    fn next_due(&self) -> Cycle {
        let due = self.first_of_lines().map(|(_, held)| held.due);
        due.fold(Cycle::NEVER, Cycle::min)
    }

    /// The packets without an older one for their line.
    fn first_of_lines(&self) -> impl Iterator<Item = (usize, &Held)> {
        let is_first = |&(n, held): &(usize, &Held)| self.held.iter().take(n).all(|older| older.line != held.line);
        self.held.iter().enumerate().filter(is_first)
    }
}
