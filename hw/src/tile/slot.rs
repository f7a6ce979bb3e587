//! The slot of a component in its tile, and the shared state that links use to wake it.
//!
//! A link wakes the component at its other end. Inside a tile it writes to the wheel. From another tile it writes to the mailbox and
//! lowers the tile's entry in the due table.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crossbeam::utils::CachePadded;

use super::due::DueTable;
use super::mail::Mail;
use super::wheel::Wheel;
use super::{MAX_COMPONENTS, TileBuilder};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::time::Cycle;

/// The state of a tile that ports share.
pub(crate) struct TileState {
    /// The wake-ups of the components. Only one thread at a time uses it.
    pub(crate) wheel: Wheel,
    /// The part that other threads write.
    pub(crate) remote: CachePadded<RemoteState>,
    /// The shortest latency of a link to another tile, in cycles. `u32::MAX` without one.
    pub(super) remote_latency: AtomicU32,
    /// The [identities](TileState::identity) of the tiles with links to this one.
    pub(super) neighbors: Mutex<Vec<usize>>,
    /// The components to tick when the tile's next window begins.
    pub(super) window_waiters: AtomicU64,
    /// Two words per component. The first is the mask of its numbered links with messages in flight ([`crate::link::arrivals`]). The second
    /// is the cycle until which their wake-ups are deferred.
    arrivals: [[AtomicU64; 2]; MAX_COMPONENTS],
}

// It has its own host cache lines, because the tile's thread writes the other state in every cycle.
/// The state that other tiles access with every message.
#[repr(C)]
pub(crate) struct RemoteState {
    /// The machine's due table and the tile's number in it, once the tile is part of a machine.
    pub(crate) due: OnceLock<(DueTable, usize)>,
    pub(crate) mail: Mail,
}

impl TileState {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(TileState {
            wheel: Wheel::new(),
            remote: CachePadded::new(RemoteState {
                due: OnceLock::new(),
                mail: Mail::new(),
            }),
            remote_latency: AtomicU32::new(u32::MAX),
            neighbors: Mutex::default(),
            window_waiters: AtomicU64::new(0),
            arrivals: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
        })
    }

    /// A number that no other existing tile has.
    pub(crate) fn identity(&self) -> usize {
        // The tile and its links keep the state alive, so its address is not used twice.
        std::ptr::from_ref(self).addr()
    }

    fn note_neighbor(&self, other: &TileState) {
        let mut neighbors = self.neighbors.lock().unwrap_or_else(PoisonError::into_inner);
        if !neighbors.contains(&other.identity()) {
            neighbors.push(other.identity());
        }
    }

    /// Wakes a component in cycle `at`. Called by another tile.
    #[inline(never)]
    pub(crate) fn wake_remote(&self, component: u8, at: Cycle) {
        // The mailbox before the entry. The tile raises its entry before it empties the mailbox, so one thread sees the other's write.
        self.remote.mail.post(at, component);
        // The host's end of a link has no entry: it is part of no machine.
        if let Some((due, tile)) = self.remote.due.get() {
            due.lower(*tile, at);
        }
    }

    /// Moves the wake-ups from other tiles to the wheel. On the tile's own thread only.
    pub(crate) fn drain_mail(&self) {
        self.remote.mail.drain_into(&self.wheel);
    }

    /// Wakes a component when the tile's next window begins. On the tile's own thread only.
    pub(crate) fn wake_in_next_window(&self, component: u8) {
        // A load and a store are enough, because no other thread writes.
        let waiting = self.window_waiters.load(Ordering::Relaxed);
        self.window_waiters.store(waiting | 1 << component, Ordering::Relaxed);
    }

    /// The numbered links of a component with messages in flight. Bit i is link number i + 1.
    #[inline]
    pub(crate) fn arrivals(&self, component: u8) -> u64 {
        self.arrivals[component as usize][0].load(Ordering::Relaxed)
    }

    /// Defers the wake-ups by a component's numbered links until cycle `at`. On the tile's own thread only.
    #[inline]
    pub(crate) fn defer_wakeups(&self, component: u8, at: Cycle) {
        self.arrivals[component as usize][1].store(at.0, Ordering::Relaxed);
    }

    /// Notes a message on a component's numbered link. Returns the cycle up to which wake-ups are deferred. On the tile's own thread only.
    #[inline]
    pub(crate) fn note_arrival(&self, component: u8, number: u32) -> Cycle {
        let [arrivals, from] = &self.arrivals[component as usize];
        arrivals.store(arrivals.load(Ordering::Relaxed) | 1 << (number - 1), Ordering::Relaxed);
        Cycle(from.load(Ordering::Relaxed))
    }

    /// Notes that a component's numbered link is empty. On the tile's own thread only.
    #[inline]
    pub(crate) fn note_empty(&self, component: u8, number: u32) {
        // Number 0, of a link without a number, gives an empty mask.
        let arrivals = self.arrivals(component) & !(1 << number >> 1);
        self.arrivals[component as usize][0].store(arrivals, Ordering::Relaxed);
    }
}

/// The slot of a component in a tile. Links are created between slots, before the components are built.
#[derive(Clone)]
pub struct TileSlot {
    pub(super) shared: Arc<TileState>,
    pub(super) index: usize,
    /// True for the host's end of a link.
    pub(super) outside: bool,
}

impl TileSlot {
    /// A slot without a component, for the host's end of a link. The host acts between runs of the clock.
    pub fn outside() -> TileSlot {
        TileSlot {
            outside: true,
            // A tile of its own, which no clock runs.
            ..TileBuilder::new().slot()
        }
    }

    pub(crate) fn is_outside(&self) -> bool {
        self.outside
    }

    pub(crate) fn same_tile(&self, other: &TileSlot) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Notes a link of this latency to another tile.
    pub(crate) fn note_link(&self, other: &TileSlot, latency: u32) {
        self.shared.remote_latency.fetch_min(latency, Ordering::Relaxed);
        self.shared.note_neighbor(&other.shared);
    }

    /// The state of the tile, and the slot's number there.
    pub(crate) fn tile_and_number(&self) -> (Arc<TileState>, u8) {
        (self.shared.clone(), self.index as u8)
    }
}
