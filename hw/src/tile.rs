//! A tile: components that run together, and the wheel that knows which of them to tick when.
//!
//! Links inside a tile may be as short as one cycle; links between tiles bound the quantum that a tile runs by itself.
//!
//! The wheel holds wake-ups. A sent message wakes its receiver in the cycle in which it becomes visible. A component names the cycle of
//! its own next wake-up. So a cycle costs what happens in it, not the number of components.
//!
//! # Invariants
//! - Every wake-up on the wheel lies less than [`HORIZON`] cycles ahead. Later ones wait in the overflow.
//! - Wake-ups from other tiles arrive in the mailbox (module `mail`). They move to the wheel when a window begins, before the first is due.
//! - A tile is at most a quantum ahead of its receivers. A quantum and a message between tiles take at most half the horizon each, so
//!   two cycles of a mailbox never share a bit.

pub(crate) mod due;
mod mail;
mod slot;
mod trace_window;
mod wheel;
mod window;

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::bits::ones;
use crate::component::{Activity, Component};
use crate::probe::Sampler;
use crate::time::Cycle;
use due::DueTable;
use trace_window::TraceWindow;

pub(crate) use slot::Shared;
pub use slot::Slot;

/// Cycles that the wheel looks ahead.
pub const HORIZON: u64 = 64;

/// Most components of one tile: the bits of a wheel's mask.
pub const MAX_COMPONENTS: usize = 64;

/// Collects the components of a tile.
pub struct TileBuilder {
    shared: Arc<Shared>,
    components: Vec<Option<Box<dyn Component>>>,
}

impl TileBuilder {
    /// A tile without components.
    pub fn new() -> Self {
        TileBuilder {
            shared: Shared::new(),
            components: Vec::new(),
        }
    }

    /// A place for a component.
    ///
    /// # Panics
    /// If the tile has [`MAX_COMPONENTS`] already.
    pub fn slot(&mut self) -> Slot {
        let index = self.components.len();
        assert!(
            index < MAX_COMPONENTS,
            "a tile holds at most {MAX_COMPONENTS} components"
        );
        self.components.push(None);
        Slot {
            shared: self.shared.clone(),
            index,
            outside: false,
        }
    }

    /// Puts the component that was built into its place.
    pub fn fill(&mut self, slot: &Slot, component: impl Component + 'static) {
        self.fill_boxed(slot, Box::new(component));
    }

    /// As [`TileBuilder::fill`], for a component of any type.
    pub fn fill_boxed(&mut self, slot: &Slot, component: Box<dyn Component>) {
        assert!(
            Arc::ptr_eq(&self.shared, &slot.shared),
            "{}: a slot of another tile",
            component.path()
        );
        self.components[slot.index] = Some(component);
    }

    /// The finished tile.
    ///
    /// # Panics
    /// If a slot was left empty.
    pub fn build(self) -> Tile {
        let components: Vec<_> = self
            .components
            .into_iter()
            .map(|c| c.expect("every slot of a tile is filled"))
            .collect();
        let n = components.len();
        Tile {
            shared: self.shared,
            order: (0..n).collect(),
            in_order: true,
            overflow: vec![Cycle::NEVER; n],
            next_overflow: Cycle::NEVER,
            skip: true,
            watch: None,
            watched: 0,
            pulses: 0,
            pulse_end: Cycle::NEVER,
            ran: 0,
            components,
        }
    }
}

impl Default for TileBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Components that run together.
pub struct Tile {
    shared: Arc<Shared>,
    components: Vec<Box<dyn Component>>,
    order: Vec<usize>,
    in_order: bool,
    /// Wake-ups beyond the horizon, by component.
    overflow: Vec<Cycle>,
    next_overflow: Cycle,
    skip: bool,
    watch: Option<TraceWindow>,
    /// The components to sample now: none outside the window.
    watched: u64,
    /// Watched components that were due in the cycle before `pulse_end`. They tick once more then, which ends signals of one cycle.
    pulses: u64,
    pulse_end: Cycle,
    /// Components that the wheel has woken since the window began.
    ran: u64,
}

impl Tile {
    /// The components, in slot order.
    pub fn components(&self) -> &[Box<dyn Component>] {
        &self.components
    }

    /// The components, in slot order, for set-up before a run.
    pub fn components_mut(&mut self) -> impl Iterator<Item = &mut dyn Component> {
        self.components.iter_mut().map(|component| component.as_mut())
    }

    /// The shortest latency of a link to another tile, if it has one.
    pub fn remote_latency(&self) -> Option<u64> {
        match self.shared.remote_latency.load(Ordering::Relaxed) {
            u32::MAX => None,
            latency => Some(u64::from(latency)),
        }
    }

    /// A number that no other living tile has.
    pub(crate) fn identity(&self) -> usize {
        self.shared.identity()
    }

    /// The tiles that links join to this one, by identity.
    pub(crate) fn neighbors(&self) -> Vec<usize> {
        let neighbors = self.shared.neighbors.lock();
        neighbors.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ticks components in this order from now on: a permutation of their indices. No result may depend on it.
    pub fn set_order(&mut self, order: Vec<usize>) {
        assert_eq!(
            order.len(),
            self.components.len(),
            "an order names every component once"
        );
        self.in_order = order.iter().copied().eq(0..order.len());
        self.order = order;
    }

    /// Whether components with nothing to do are left out (the default). No result may depend on it.
    pub fn set_skipping(&mut self, skip: bool) {
        self.skip = skip;
    }

    /// Whether components with nothing to do are left out.
    pub fn is_skipping(&self) -> bool {
        self.skip
    }

    /// Watches the components whose bit is set in `watched`, in the cycles of `window`. Outside of it watching costs nothing.
    pub fn watch(&mut self, sampler: Box<dyn Sampler>, watched: u64, window: Range<Cycle>) {
        self.watched = 0;
        self.watch = Some(TraceWindow::new(sampler, watched, window));
    }

    /// Flushes the sampler after a panic in the middle of a window.
    pub fn give_up(&mut self) {
        self.hand_on(Cycle::ZERO);
    }

    /// Resets every component. All are due in cycle `now`.
    pub fn reset(&mut self, now: Cycle) {
        self.components.iter_mut().for_each(|component| component.reset());
        self.overflow.fill(Cycle::NEVER);
        self.next_overflow = Cycle::NEVER;
        self.pulses = 0;
        self.pulse_end = Cycle::NEVER;
        self.wake_all(now);
    }

    /// Puts every component on the wheel for cycle `now`.
    pub fn wake_all(&mut self, now: Cycle) {
        self.shared.wheel.add(now, self.all());
    }

    /// The first cycle from `now` on in which a component is due, messages from other tiles included.
    pub fn next_due(&self, now: Cycle) -> Cycle {
        if !self.skip || self.shared.next_quantum.load(Ordering::Relaxed) != 0 {
            return now;
        }
        let message = self.shared.remote.mail.next(now);
        self.next_known(now).min(message)
    }

    /// The first cycle in which a component is due, messages from other tiles left out.
    #[inline]
    fn next_known(&self, now: Cycle) -> Cycle {
        self.shared.wheel.next(now).min(self.next_overflow).min(self.pulse_end)
    }

    /// The first cycle of a trace window that has not begun.
    pub(crate) fn next_trace_window(&self) -> Cycle {
        self.watch.as_ref().map_or(Cycle::NEVER, TraceWindow::next)
    }

    /// Makes the tile number `tile` of the machine with this due table.
    ///
    /// # Panics
    /// If it is part of a machine already.
    pub(crate) fn join(&self, due: &DueTable, tile: usize) {
        let joined = self.shared.remote.due.set((due.clone(), tile));
        assert!(joined.is_ok(), "a tile is part of one machine");
    }

    fn due_entry(&self) -> &(DueTable, usize) {
        let entry = self.shared.remote.due.get();
        entry.expect("a tile that runs is part of a machine")
    }

    /// The tile's number in the machine.
    pub(crate) fn number(&self) -> usize {
        self.due_entry().1
    }

    /// Lowers the tile's entry in the due table. The tile has run up to `now`.
    pub(crate) fn note_due(&self, now: Cycle) {
        let (due, tile) = self.due_entry();
        due.lower(*tile, self.next_due(now));
    }

    /// Whether no component has anything in flight.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.components.iter().all(|component| component.is_quiescent())
    }

    fn all(&self) -> u64 {
        u64::MAX
            .checked_shr((MAX_COMPONENTS - self.components.len()) as u32)
            .unwrap_or(0)
    }

    /// The components that are due in a cycle.
    #[inline]
    fn take_due(&mut self, now: Cycle) -> u64 {
        let due = self.shared.wheel.take(now);
        self.ran |= due;
        match self.next_overflow <= now {
            true => due | self.take_overflow(now),
            false => due,
        }
    }

    #[inline]
    fn cycle(&mut self, now: Cycle) {
        let mut due = self.take_due(now);
        if !self.skip {
            due = self.all();
        }
        if self.watched != 0 || self.pulses != 0 {
            due |= self.take_pulses(now, due);
        }
        if self.in_order {
            ones(due).for_each(|index| self.tick(index, now));
        } else {
            for n in 0..self.order.len() {
                let index = self.order[n];
                if due >> index & 1 == 1 {
                    self.tick(index, now);
                }
            }
        }
    }

    #[inline]
    fn tick(&mut self, index: usize, now: Cycle) {
        let activity = self.components[index].tick(now);
        if self.watched >> index & 1 == 1 {
            self.sample(index, now);
        }
        self.schedule(index, now, activity);
    }

    // Cold: most tiles are not watched.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, index: usize, now: Cycle) {
        if let Some(watch) = &mut self.watch {
            watch.sampler.sample(now, index, self.components[index].as_ref());
        }
    }

    /// The watched components whose pulses end now. `due` are the components that begin new ones.
    fn take_pulses(&mut self, now: Cycle, due: u64) -> u64 {
        let ended = match self.pulse_end <= now {
            true => self.pulses & self.watched,
            false => 0,
        };
        self.pulses = due & self.watched;
        self.pulse_end = if self.pulses == 0 { Cycle::NEVER } else { now + 1 };
        ended
    }

    #[inline]
    fn schedule(&mut self, index: usize, now: Cycle, activity: Activity) {
        match activity {
            Activity::Busy => self.shared.wheel.add(now + 1, 1 << index),
            Activity::Until(at) if at.since(now) < HORIZON => self.shared.wheel.add(at.max(now + 1), 1 << index),
            Activity::Until(at) => self.add_overflow(index, at),
            Activity::Idle => {}
        }
    }

    #[cold]
    fn add_overflow(&mut self, index: usize, at: Cycle) {
        self.overflow[index] = at;
        self.next_overflow = self.next_overflow.min(at);
    }

    fn take_overflow(&mut self, now: Cycle) -> u64 {
        let mut due = 0;
        self.next_overflow = Cycle::NEVER;
        for (index, at) in self.overflow.iter_mut().enumerate() {
            if *at <= now {
                due |= 1 << index;
                *at = Cycle::NEVER;
            }
            self.next_overflow = self.next_overflow.min(*at);
        }
        due
    }
}
