//! A component's place in its tile, and what others use to wake it there.
//!
//! Links hold a [`Waker`] for each end. Inside a tile it writes to the wheel itself; from another tile it writes to the mailbox and
//! rings the tile's bell.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::bell::Bells;
use super::wheel::Wheel;
use super::{MAX_COMPONENTS, TileBuilder};
use crate::time::Cycle;

/// What the ports of other components share with a tile.
pub(super) struct Shared {
    pub(super) wheel: Wheel,
    pub(super) mail: Wheel,
    pub(super) remote_latency: AtomicU32,
    /// The tiles that links lead to or come from, by [`Shared::identity`].
    pub(super) neighbors: Mutex<Vec<usize>>,
    /// Components to tick when the next quantum begins.
    pub(super) next_quantum: AtomicU64,
    /// For each component, its numbered links (see [`crate::link::inbox`]) with messages under way.
    arrivals: [AtomicU64; MAX_COMPONENTS],
    /// The machine's bells and which is this tile's, once it is part of a machine.
    pub(super) bell: OnceLock<(Bells, usize)>,
}

impl Shared {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Shared {
            wheel: Wheel::new(),
            mail: Wheel::new(),
            remote_latency: AtomicU32::new(u32::MAX),
            neighbors: Mutex::default(),
            next_quantum: AtomicU64::new(0),
            arrivals: [const { AtomicU64::new(0) }; MAX_COMPONENTS],
            bell: OnceLock::new(),
        })
    }

    /// Tells tiles apart for as long as they live.
    pub(super) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn note_neighbor(&self, other: &Shared) {
        let mut neighbors = self.neighbors.lock().unwrap_or_else(PoisonError::into_inner);
        if !neighbors.contains(&other.identity()) {
            neighbors.push(other.identity());
        }
    }

    fn post(&self, at: Cycle, components: u64) {
        self.mail.post(at, components);
        if let Some((bells, tile)) = self.bell.get() {
            bells.ring(*tile);
        }
    }
}

/// A component's place in a tile, known before the component is built: links are made between slots.
#[derive(Clone)]
pub struct Slot {
    pub(super) shared: Arc<Shared>,
    pub(super) index: usize,
    pub(super) outside: bool,
}

impl Slot {
    /// The end of a link that no component holds: the host's, which acts between quanta.
    pub fn outside() -> Slot {
        Slot {
            outside: true,
            ..TileBuilder::new().slot()
        }
    }

    pub(crate) fn is_outside(&self) -> bool {
        self.outside
    }

    pub(crate) fn same_tile(&self, other: &Slot) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// A link of this latency joins the slot's tile to another's.
    pub(crate) fn note_link(&self, other: &Slot, latency: u32) {
        self.shared.remote_latency.fetch_min(latency, Ordering::Relaxed);
        self.shared.note_neighbor(&other.shared);
    }

    pub(crate) fn waker(&self, remote: bool) -> Waker {
        Waker {
            shared: self.shared.clone(),
            component: self.index as u32,
            remote,
        }
    }
}

/// Puts a component on its tile's wheel.
#[derive(Clone)]
pub(crate) struct Waker {
    shared: Arc<Shared>,
    component: u32,
    /// Whether the link that it belongs to joins two tiles.
    remote: bool,
}

impl Waker {
    #[inline]
    pub(crate) fn wake(&self, at: Cycle) {
        if self.remote {
            self.shared.post(at, 1 << self.component);
        } else {
            self.shared.wheel.add(at, 1 << self.component);
        }
    }

    /// On the tile's own thread: ticks the component when its tile's next quantum begins.
    pub(crate) fn wake_in_next_quantum(&self) {
        let waiting = &self.shared.next_quantum;
        waiting.store(waiting.load(Ordering::Relaxed) | 1 << self.component, Ordering::Relaxed);
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.remote
    }

    /// Whether both stand for the same component.
    pub(crate) fn is_same(&self, other: &Waker) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.component == other.component
    }

    /// The component's numbered links with messages under way, bit i for number i + 1.
    #[inline]
    pub(crate) fn arrivals(&self) -> u64 {
        self.shared.arrivals[self.component as usize].load(Ordering::Relaxed)
    }

    /// On the tile's own thread: a message is under way on the component's link of this number.
    #[inline]
    pub(crate) fn note_arrival(&self, number: u32) {
        let arrivals = &self.shared.arrivals[self.component as usize];
        arrivals.store(arrivals.load(Ordering::Relaxed) | 1 << (number - 1), Ordering::Relaxed);
    }

    /// On the tile's own thread: none is under way there any more; nothing for number 0.
    #[inline]
    pub(crate) fn note_empty(&self, number: u32) {
        let arrivals = &self.shared.arrivals[self.component as usize];
        arrivals.store(
            arrivals.load(Ordering::Relaxed) & !(1 << number >> 1),
            Ordering::Relaxed,
        );
    }
}
