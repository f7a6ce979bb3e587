//! A link: one bounded crossbeam channel with a latency and a depth, from an [`OutPort`] to an [`InPort`].
//!
//! ```text
//!   OutPort --- message through the channel, stamped with the cycle from which it is visible ---> InPort
//!           <-- credit, stamped with the cycle from which the slot is free -----------------------
//! ```
//!
//! Every message goes through the channel. A link of depth n has n slots, used in turn. Each slot has a stamp, stored outside the channel
//! (module `stamp`). An end reads the stamp before it touches the channel, so a channel operation never fails.
//!
//! # Promises
//! - A message sent in cycle t is visible in t + latency at the earliest, in the order of sending.
//! - A slot emptied in cycle t is free again in t + credit latency. That latency is 1 inside a tile, and the link's latency between tiles.
//! - Visibility and room depend on stamps alone. A stamp that another tile writes names a cycle that this tile has not run yet.
//!   So visibility and room are the same for any tick order, quantum or number of threads.
//! - A link of latency 1 carries a message per cycle at depth 2, one every two cycles at depth 1.
//!
//! A sender checks [`OutPort::has_room`] first: a send without room panics. [`OutPort::await_room`] wakes a sender when a slot may be free.

mod attached;
pub mod payload;
mod receive;
mod sideband;
pub(crate) mod stamp;

pub mod arrivals;
pub mod audit;
pub mod delay;
pub mod fault;
pub mod monitor;
pub mod stall;
pub mod wires;

use std::sync::Arc;

use crossbeam::channel::{self, Receiver, Sender};

use crate::component::Activity;
use crate::path::Path;
use crate::tile::{TileSlot, TileState};
use crate::time::Cycle;
use crate::warm::{Warm, prefetch};
use attached::Attached;
use monitor::Monitor;
pub use stamp::MAX_SIDEBAND;
use stamp::{FIRST_SLOT, HEADER, LINK_NUMBER, Stamp, Stamps, WAITED_FOR, next_slot, stamps};

/// The configuration of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// The instance name.
    pub path: Path,
    /// Cycles from the send until the message is visible, at least 1.
    pub latency: u32,
    /// The number of slots, at least 1. A slot is occupied from the send. It is free again one credit latency after the
    /// receiver takes the message.
    pub depth: u32,
}

/// The sending end of a link. The fields that every message needs are in the first host cache line.
#[repr(C, align(64))]
pub struct OutPort<T> {
    /// The link's header, then one stamp per slot. Both ends share them.
    stamps: Stamps,
    /// The slot of the next message.
    slot: u32,
    latency: u8,
    /// The largest `latency + extra` of [`OutPort::send_after`]: the most cycles from the send until the message is visible.
    max_latency: u8,
    /// The receiver's component number in its tile.
    receiver: u8,
    /// True if the receiver is in another tile.
    is_remote: bool,
    /// The cycle from which the newest message is visible.
    last_visible: Cycle,
    channel: Sender<T>,
    /// Monitor, delays and fault of the link, for tests and waveforms. `None` for most links.
    attached: Option<Box<Attached<T>>>,
    /// The receiver's tile.
    tile: Arc<TileState>,
    /// The sender's tile, and its component number there.
    sender: (Arc<TileState>, u8),
    config: Arc<LinkConfig>,
}

/// The receiving end of a link. The fields that every message needs are in the first host cache line.
#[repr(C, align(64))]
pub struct InPort<T> {
    /// The link's header, then one stamp per slot. Both ends share them.
    stamps: Stamps,
    /// The slot of the oldest message.
    slot: u32,
    credit_latency: u8,
    /// The sender's component number in its tile.
    sender: u8,
    /// The receiver's component number in its tile.
    receiver: u8,
    /// True if the sender is in another tile.
    is_remote: bool,
    channel: Receiver<T>,
    /// The receiver's tile.
    tile: Arc<TileState>,
    monitor: Option<Box<BoxedMonitor<T>>>,
    /// The oldest message, once `peek` has received it from the channel.
    head: Option<T>,
    config: Arc<LinkConfig>,
}

// `InPort` boxes a monitor twice: a pointer to a trait object is two words, the outer pointer is one.
/// A boxed monitor. [`InPort`] boxes it again.
type BoxedMonitor<T> = Box<dyn Monitor<T>>;

/// Creates a link between two components. Its latency bounds the [clock](crate::clock)'s quantum if it joins two tiles of the machine. The
/// host's links do not bound it.
///
/// # Panics
/// If the latency or the depth is 0. Inside a tile, if the latency is the [horizon](crate::tile::HORIZON) or longer. Between tiles, if it
/// is longer than half the horizon.
pub fn link<T: Send>(config: &LinkConfig, from: &TileSlot, to: &TileSlot) -> (OutPort<T>, InPort<T>) {
    let LinkConfig { path, latency, depth } = config;
    assert!(
        *latency >= 1 && *depth >= 1,
        "{path}: a link needs a latency and a depth of at least 1"
    );
    let between_tiles = !from.same_tile(to);
    let max_latency = if between_tiles {
        crate::tile::HORIZON / 2
    } else {
        crate::tile::HORIZON - 1
    };
    assert!(
        u64::from(*latency) <= max_latency,
        "{path}: latency {latency} exceeds the limit of {max_latency} cycles"
    );
    // The host sends only between runs of the clock, so its links do not limit the quantum.
    let is_host_link = from.is_outside() || to.is_outside();
    if between_tiles && !is_host_link {
        from.note_link(to, *latency);
        to.note_link(from, *latency);
    }
    // One place per slot, so a free slot has room in the channel.
    let (sender, receiver) = channel::bounded(*depth as usize);
    let stamps = stamps(*depth);
    let ((from_tile, from), (to_tile, to)) = (from.tile_and_number(), to.tile_and_number());
    let config = Arc::new(config.clone());
    let input = InPort {
        channel: receiver,
        head: None,
        stamps: stamps.clone(),
        slot: FIRST_SLOT,
        // Between tiles a credit takes as long as a message, so neither depends on which tile runs first.
        credit_latency: if between_tiles { *latency as u8 } else { 1 },
        sender: from,
        receiver: to,
        is_remote: between_tiles,
        tile: to_tile.clone(),
        config: config.clone(),
        monitor: None,
    };
    let output = OutPort {
        channel: sender,
        stamps,
        slot: FIRST_SLOT,
        latency: *latency as u8,
        max_latency: max_latency as u8,
        last_visible: Cycle::ZERO,
        receiver: to,
        is_remote: between_tiles,
        tile: to_tile,
        sender: (from_tile, from),
        config,
        attached: None,
    };
    (output, input)
}

impl<T> OutPort<T> {
    /// The stamp of the next message's slot.
    #[inline]
    fn stamp(&self) -> &Stamp {
        &self.stamps[self.slot as usize]
    }

    /// True if a message may be sent in this cycle.
    #[inline]
    pub fn has_room(&self, now: Cycle) -> bool {
        self.stamp().is_free(now)
    }

    /// The activity of a sender that waits for room.
    ///
    /// Inside a tile the receiver schedules the sender's wake-up when it takes a message. A slot that another tile frees is usable in the
    /// next window at the earliest. So a sender to another tile is woken when the next window begins, and then checks again.
    pub fn await_room(&self, now: Cycle) -> Activity {
        // The slot is empty: it is usable from cycle `free` on.
        if let Some(free) = self.stamp().free_from() {
            return match free <= now + 1 {
                true => Activity::Busy,
                false => Activity::Until(free),
            };
        }
        let (tile, sender) = &self.sender;
        if self.is_remote {
            tile.wake_in_next_window(*sender);
        } else {
            let header = &self.stamps[HEADER];
            // The receiver, in this tile, reads it when it next takes a message (`free_slot`).
            header.set_header(header.header() | WAITED_FOR);
        }
        Activity::Idle
    }

    /// Sends a message. It is visible `latency` cycles later, or with the previous message if that is later.
    ///
    /// # Panics
    /// If there is no room: check [`OutPort::has_room`] first.
    #[inline]
    pub fn send(&mut self, now: Cycle, message: T) {
        self.send_after(now, 0, message);
    }

    /// Sends a message that is visible `latency + extra` cycles later. So a link can model the stages of a pipeline.
    ///
    /// Messages keep their order. A message is visible no earlier than the previous message, even if its `extra` is smaller.
    ///
    /// # Panics
    /// If there is no room, or the message would be visible more than `latency +` [`OutPort::max_extra`] cycles after the send.
    #[inline]
    pub fn send_after(&mut self, now: Cycle, extra: u64, message: T) {
        if self.attached.is_some() {
            // Only tests and waveforms attach something.
            return self.send_attached(now, extra, 0, message);
        }
        self.put(now, u64::from(self.latency) + extra, 0, message);
    }

    /// Puts a message into the link. It is visible `after` cycles later. The receiver can read `sideband` without the message.
    #[inline(always)]
    fn put(&mut self, now: Cycle, after: u64, sideband: u16, message: T) {
        let mut visible = now + after;
        if self.last_visible > visible {
            visible = self.keep_order(visible);
        }
        let stamp = &self.stamps[self.slot as usize];
        // Past `max_latency` a wake-up could share its bit of the wheel with an earlier cycle.
        if !stamp.is_free(now) || visible > now + u64::from(self.max_latency) {
            self.cannot_send(now, visible);
        }
        self.last_visible = visible;
        let sent = self.channel.try_send(message);
        assert!(sent.is_ok(), "{}: a free slot, but a full channel", self.config.path);
        // The receiver reads the stamp before the channel. So the message enters the channel before the stamp is written.
        stamp.fill(visible, sideband);
        self.slot = next_slot(self.slot, &self.stamps);
        // Another thread may run that tile, so the wake-up goes through its mailbox.
        if self.is_remote {
            return self.tile.wake_remote(self.receiver, visible);
        }
        // The receiver wakes in `visible`, or later if its `ArrivalMask` defers wake-ups. Number 0: the link is in no `ArrivalMask`.
        let number = self.stamps[HEADER].header() & LINK_NUMBER;
        if number != 0 {
            visible = visible.max(self.tile.note_arrival(self.receiver, number as u32));
        }
        self.tile.wheel.add(visible, 1 << self.receiver);
    }

    #[cold]
    #[inline(never)]
    fn cannot_send(&self, now: Cycle, visible: Cycle) -> ! {
        assert!(
            self.has_room(now),
            "{}, cycle {now}: a message is sent without room",
            self.config.path
        );
        panic!(
            "{}, cycle {now}: a message would be visible in cycle {visible}, more than {} cycles after its send",
            self.config.path, self.max_latency
        );
    }

    /// Returns `last_visible` if the link still holds the previous message, else `visible`.
    fn keep_order(&self, visible: Cycle) -> Cycle {
        // A reset of the receiver can drop the previous message. Then `last_visible` does not limit the next message.
        let last = if self.slot == FIRST_SLOT {
            self.stamps.len() as u32
        } else {
            self.slot
        } - 1;
        if self.stamps[last as usize].is_full() {
            self.last_visible
        } else {
            visible
        }
    }

    /// The largest `extra` of [`OutPort::send_after`], in cycles.
    #[inline]
    pub fn max_extra(&self) -> u64 {
        u64::from(self.max_latency - self.latency)
    }

    /// Cycles from the send until the message is visible.
    pub fn latency(&self) -> u64 {
        u64::from(self.latency)
    }
}

impl<T> Warm for OutPort<T> {
    #[inline]
    fn warm(&self) {
        prefetch(self.stamp());
        prefetch(&self.stamps[HEADER]);
    }
}

#[cfg(test)]
mod tests;
