//! A link: one bounded crossbeam channel with a latency and a depth, from an [`OutPort`] to an [`InPort`].
//!
//! ```text
//!   OutPort --- message through the channel, stamped with the cycle from which it is visible ---> InPort
//!           <-- credit, stamped with the cycle from which the slot is free -----------------------
//! ```
//!
//! Every message passes the channel. Each slot has a stamp beside the channel (module `stamp`). An end reads the stamp before it
//! touches the channel, so it never finds the channel full or empty.
//!
//! # Promises
//! - A message sent in cycle t is visible from t + latency on, in the order of sending.
//! - A slot emptied in cycle t is free again in t + credit latency (1 inside a tile, the link's latency between tiles).
//! - Both depend on stamps alone. Inside a window no stamp of another tile falls due. So room and visible messages are the same for any
//!   tick order, quantum or number of threads.
//! - A link of latency 1 carries a message per cycle at depth 2, one every two cycles at depth 1.
//!
//! A sender asks for room first: a send without room panics. [`OutPort::await_room`] wakes a sender when there is room.

mod attached;
mod receive;
mod sideband;
mod stamp;

pub mod arrivals;
pub mod monitor;
pub mod stall;
pub mod wires;

use std::sync::Arc;

use crossbeam::channel::{Receiver, Sender, bounded};

use crate::component::Activity;
use crate::path::Path;
use crate::tile::{Shared, Slot};
use crate::time::Cycle;
use crate::warm::prefetch;
use attached::Attached;
use monitor::Monitor;
pub use stamp::MAX_SIDEBAND;
use stamp::{FIRST, HEADER, NUMBER, Stamp, Stamps, WAITED_FOR, next, stamps};

/// Shape of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// Instance name.
    pub path: Path,
    /// Cycles from sending to being visible, at least 1.
    pub latency: u32,
    /// Messages in flight or waiting, at least 1.
    pub depth: u32,
}

/// The sending end. The fields that every message needs are in the first 64 bytes: one line of the host's cache.
#[repr(C, align(64))]
pub struct OutPort<T> {
    stamps: Stamps,
    /// Slot of the next message.
    slot: u32,
    latency: u8,
    /// Most cycles until a message is visible.
    longest: u8,
    /// Number of the receiver in its tile, and whether that is another than the sender's.
    receiver: u8,
    is_remote: bool,
    last_visible: Cycle,
    channel: Sender<T>,
    attached: Option<Box<Attached<T>>>,
    /// The receiver's tile.
    tile: Arc<Shared>,
    /// The sender itself.
    sender: (Arc<Shared>, u8),
    config: Arc<LinkConfig>,
}

/// The receiving end, ordered likewise.
#[repr(C, align(64))]
pub struct InPort<T> {
    stamps: Stamps,
    /// Slot of the oldest message.
    slot: u32,
    credit_latency: u8,
    /// Numbers of the two in their tiles, and whether these differ.
    sender: u8,
    receiver: u8,
    is_remote: bool,
    channel: Receiver<T>,
    /// The receiver's tile.
    tile: Arc<Shared>,
    monitor: Option<Box<Watcher<T>>>,
    /// The oldest message, if it was received from the channel to be looked at.
    head: Option<T>,
    config: Arc<LinkConfig>,
}

/// In a box of its own, which is smaller where nobody watches.
type Watcher<T> = Box<dyn Monitor<T>>;

/// Joins two components. Between tiles the latency also bounds the quantum (see [`crate::clock`]).
///
/// # Panics
/// If latency or depth is 0, or the latency is beyond what a tile can look ahead ([`crate::tile::HORIZON`]).
pub fn link<T: Send>(config: &LinkConfig, from: &Slot, to: &Slot) -> (OutPort<T>, InPort<T>) {
    let LinkConfig { path, latency, depth } = config;
    assert!(
        *latency >= 1 && *depth >= 1,
        "{path}: a link needs a latency and a depth of at least 1"
    );
    let between_tiles = !from.same_tile(to);
    let longest = if between_tiles {
        crate::tile::HORIZON / 2
    } else {
        crate::tile::HORIZON - 1
    };
    assert!(
        u64::from(*latency) <= longest,
        "{path}: latency {latency} is beyond the horizon of {longest} cycles"
    );
    // What is outside acts between quanta, so it bounds none.
    let inside = !from.is_outside() && !to.is_outside();
    if between_tiles && inside {
        from.note_link(to, *latency);
        to.note_link(from, *latency);
    }
    let (sender, receiver) = bounded(*depth as usize);
    let stamps = stamps(*depth);
    let ((from_tile, from), (to_tile, to)) = (from.place(), to.place());
    let config = Arc::new(config.clone());
    let input = InPort {
        channel: receiver,
        head: None,
        stamps: stamps.clone(),
        slot: FIRST,
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
        slot: FIRST,
        latency: *latency as u8,
        longest: longest as u8,
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

    /// Whether a message may be sent in this cycle.
    #[inline]
    pub fn has_room(&self, now: Cycle) -> bool {
        self.stamp().is_free(now)
    }

    /// The activity of a sender that waits for room.
    ///
    /// Inside a tile the receiver wakes the sender when it takes a message. Another tile cannot free a slot for a cycle of the same
    /// window, so a sender to another tile is woken when the next window begins.
    pub fn await_room(&self, now: Cycle) -> Activity {
        if let Some(free) = self.stamp().free_from() {
            return match free <= now + 1 {
                true => Activity::Busy,
                false => Activity::Until(free),
            };
        }
        let (tile, sender) = &self.sender;
        if self.is_remote {
            tile.wake_in_next_quantum(*sender);
        } else {
            let header = &self.stamps[HEADER];
            header.set_header(header.header() | WAITED_FOR);
        }
        Activity::Idle
    }

    /// Sends a message; it is visible `latency` cycles later.
    ///
    /// # Panics
    /// If there is no room: ask [`OutPort::has_room`] first.
    #[inline]
    pub fn send(&mut self, now: Cycle, message: T) {
        self.send_after(now, 0, message);
    }

    /// Sends a message that takes `extra` cycles more than the link's latency: a pipeline whose stages lie in the link.
    /// Messages never overtake: a faster one is visible in the same cycle as the message before it.
    ///
    /// # Panics
    /// If there is no room, or the message would come beyond the horizon of a tile.
    #[inline]
    pub fn send_after(&mut self, now: Cycle, extra: u64, message: T) {
        if self.attached.is_some() {
            return self.send_attached(now, extra, 0, message);
        }
        self.put(now, u64::from(self.latency) + extra, 0, message);
    }

    /// Puts a message into the link, visible `after` cycles later.
    #[inline(always)]
    fn put(&mut self, now: Cycle, after: u64, sideband: u16, message: T) {
        let mut visible = now + after;
        if self.last_visible > visible {
            visible = self.behind_last(visible);
        }
        let stamp = &self.stamps[self.slot as usize];
        if !stamp.is_free(now) || visible > now + u64::from(self.longest) {
            self.cannot_send(now, visible);
        }
        self.last_visible = visible;
        let sent = self.channel.try_send(message);
        assert!(sent.is_ok(), "{}: a free slot, but a full channel", self.config.path);
        // The receiver asks the stamp first, so the message must be in the channel by now.
        stamp.fill(visible, sideband);
        self.slot = next(self.slot, &self.stamps);
        if self.is_remote {
            return self.tile.wake_remote(self.receiver, visible);
        }
        let number = self.stamps[HEADER].header() & NUMBER;
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
            "{}, cycle {now}: message sent without asking for room",
            self.config.path
        );
        panic!(
            "{}, cycle {now}: a message visible only in cycle {visible}, beyond the horizon of {} cycles",
            self.config.path, self.longest
        );
    }

    /// The cycle of the message before if that is still in flight, else `visible`. A receiver that was reset has dropped it.
    fn behind_last(&self, visible: Cycle) -> Cycle {
        let last = if self.slot == FIRST {
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

    /// Prefetches the stamps.
    pub(crate) fn prefetch_stamps(&self) {
        prefetch(self.stamp());
        prefetch(&self.stamps[HEADER]);
    }

    /// Cycles from sending to being visible.
    pub fn latency(&self) -> u64 {
        u64::from(self.latency)
    }
}

#[cfg(test)]
mod tests;
