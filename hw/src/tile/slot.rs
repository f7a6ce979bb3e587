//! A component's place in its tile, and what others use to wake it there.
//!
//! Links wake the component at their other end. Inside a tile they write to the wheel itself. From another tile they write to the mailbox
//! and lower the tile's entry in the due table.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crossbeam::utils::CachePadded;

use super::due::DueTable;
use super::mail::Mail;
use super::wheel::Wheel;
use super::{MAX_COMPONENTS, TileBuilder};
use crate::time::Cycle;

/// What the ports of other components share with a tile.
pub(crate) struct Shared {
    pub(crate) wheel: Wheel,
    pub(super) remote: CachePadded<RemoteState>,
    pub(super) remote_latency: AtomicU32,
    /// The tiles that links lead to or come from, by [`Shared::identity`].
    pub(super) neighbors: Mutex<Vec<usize>>,
    /// Components to tick when the next quantum begins.
    pub(super) next_quantum: AtomicU64,
    /// For each component, its numbered links (see [`crate::link::arrivals`]) with messages under way, and the first cycle in which it
    /// looks at them.
    arrivals: [[AtomicU64; 2]; MAX_COMPONENTS],
}

/// What other tiles read and write for every message, apart from what the tile's own thread writes in every cycle.
#[repr(C)]
pub(super) struct RemoteState {
    /// The machine's due table and the tile's number in it, once the tile is part of a machine.
    pub(super) due: OnceLock<(DueTable, usize)>,
    pub(super) mail: Mail,
}

impl Shared {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Shared {
            wheel: Wheel::new(),
            remote: CachePadded::new(RemoteState {
                due: OnceLock::new(),
                mail: Mail::new(),
            }),
            remote_latency: AtomicU32::new(u32::MAX),
            neighbors: Mutex::default(),
            next_quantum: AtomicU64::new(0),
            arrivals: [const { [const { AtomicU64::new(0) }; 2] }; MAX_COMPONENTS],
        })
    }

    /// A number that no other living tile has.
    pub(crate) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn note_neighbor(&self, other: &Shared) {
        let mut neighbors = self.neighbors.lock().unwrap_or_else(PoisonError::into_inner);
        if !neighbors.contains(&other.identity()) {
            neighbors.push(other.identity());
        }
    }

    /// From another tile: has the tile tick a component.
    #[inline(never)]
    pub(crate) fn wake_remote(&self, component: u8, at: Cycle) {
        self.remote.mail.post(at, component);
        if let Some((due, tile)) = self.remote.due.get() {
            due.lower(*tile, at);
        }
    }

    /// On the tile's own thread: moves the wake-ups from other tiles to the wheel.
    pub(super) fn take_mail(&self) {
        self.remote.mail.drain_into(&self.wheel);
    }

    /// On the tile's own thread: ticks a component when the tile's next quantum begins.
    pub(crate) fn wake_in_next_quantum(&self, component: u8) {
        let waiting = self.next_quantum.load(Ordering::Relaxed);
        self.next_quantum.store(waiting | 1 << component, Ordering::Relaxed);
    }

    /// A component's numbered links with messages under way, bit i for number i + 1.
    #[inline]
    pub(crate) fn arrivals(&self, component: u8) -> u64 {
        self.arrivals[component as usize][0].load(Ordering::Relaxed)
    }

    /// On the tile's own thread: a component looks at its numbered links no sooner than this.
    #[inline]
    pub(crate) fn look_from(&self, component: u8, at: Cycle) {
        self.arrivals[component as usize][1].store(at.0, Ordering::Relaxed);
    }

    /// On the tile's own thread: a message is under way on a component's link of this number. Gives the first cycle in which the
    /// component looks.
    #[inline]
    pub(crate) fn note_arrival(&self, component: u8, number: u32) -> Cycle {
        let [arrivals, from] = &self.arrivals[component as usize];
        arrivals.store(arrivals.load(Ordering::Relaxed) | 1 << (number - 1), Ordering::Relaxed);
        Cycle(from.load(Ordering::Relaxed))
    }

    /// On the tile's own thread: none is under way there any more; nothing for number 0.
    #[inline]
    pub(crate) fn note_empty(&self, component: u8, number: u32) {
        let arrivals = self.arrivals(component) & !(1 << number >> 1);
        self.arrivals[component as usize][0].store(arrivals, Ordering::Relaxed);
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

    /// What it shares with the ports of others, and its number in its tile.
    pub(crate) fn place(&self) -> (Arc<Shared>, u8) {
        (self.shared.clone(), self.index as u8)
    }
}
