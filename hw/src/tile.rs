//! A tile: components that one host thread runs as a unit, with one timing wheel.
//!
//! Links inside a tile may have a latency of one cycle. Links between tiles bound the quantum.
//!
//! The wheel holds wake-ups. A message wakes its receiver in the cycle in which it becomes visible. A tick returns the cycle of the
//! component's own next wake-up. A component without a wake-up costs no host time.
//!
//! # Invariants
//! - Every wake-up on the wheel lies less than [`HORIZON`] cycles ahead. Later wake-ups wait in the overflow list.
//! - Wake-ups from other tiles arrive in the mailbox (module `mail`). They move to the wheel at the start of a window, before they are due.
//! - A tile is at most a quantum ahead of its receivers. A quantum and a link between tiles are each at most half the horizon long. A
//!   mailbox has one bit per cycle modulo the horizon. No two pending cycles share a bit.

pub(crate) mod due;
mod mail;
pub(crate) mod slot;
mod trace_window;
mod wheel;
mod window;

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::bits::ones;
use crate::component::{Activity, Component};
use crate::time::Cycle;
use due::DueTable;
use trace_window::TraceWindow;

pub use slot::TileSlot;
pub(crate) use slot::TileState;
pub use trace_window::Sampler;

/// The number of cycles on a timing wheel.
pub const HORIZON: u64 = 64;

/// The largest number of components in a tile: one bit each in a mask on the wheel.
pub const MAX_COMPONENTS: usize = 64;

/// Collects the components of a tile.
pub struct TileBuilder {
    shared: Arc<TileState>,
    components: Vec<Option<Box<dyn Component>>>,
}

impl TileBuilder {
    /// Creates a builder without components.
    pub fn new() -> Self {
        TileBuilder {
            shared: TileState::new(),
            components: Vec::new(),
        }
    }

    /// Adds a slot for a component.
    ///
    /// # Panics
    /// If the tile has [`MAX_COMPONENTS`] already.
    pub fn slot(&mut self) -> TileSlot {
        let index = self.components.len();
        assert!(
            index < MAX_COMPONENTS,
            "a tile holds at most {MAX_COMPONENTS} components"
        );
        self.components.push(None);
        TileSlot {
            shared: self.shared.clone(),
            index,
            outside: false,
        }
    }

    /// Puts a component into its slot.
    ///
    /// # Panics
    /// If the slot is one of another tile.
    pub fn fill(&mut self, slot: &TileSlot, component: impl Component + 'static) {
        self.fill_boxed(slot, Box::new(component));
    }

    /// Puts a boxed component into its slot.
    ///
    /// # Panics
    /// If the slot is one of another tile.
    pub fn fill_boxed(&mut self, slot: &TileSlot, component: Box<dyn Component>) {
        assert!(
            Arc::ptr_eq(&self.shared, &slot.shared),
            "{}: the slot is one of another tile",
            component.path()
        );
        self.components[slot.index] = Some(component);
    }

    /// Builds the tile.
    ///
    /// # Panics
    /// If a slot is empty.
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
            last_due: Cycle::ZERO,
            skips_idle: true,
            trace: None,
            watched: 0,
            pulses: 0,
            pulse_end: Cycle::NEVER,
            woken: 0,
            components,
        }
    }
}

impl Default for TileBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Components that run as a unit.
pub struct Tile {
    /// The state that links and other tiles access: the wheel, the mailbox, the entry in the due table.
    shared: Arc<TileState>,
    components: Vec<Box<dyn Component>>,
    /// The tick order within a cycle.
    order: Vec<usize>,
    /// True if the tick order is the order of slots.
    in_order: bool,
    /// Wake-ups beyond the horizon, by component.
    overflow: Vec<Cycle>,
    /// No entry of `overflow` is before this cycle.
    next_overflow: Cycle,
    /// The last cycle in which a component was due. Ticks for a watcher alone do not count.
    last_due: Cycle,
    /// True if components tick only when they are due.
    skips_idle: bool,
    trace: Option<TraceWindow>,
    /// Mask of the components to sample. It is set in the clock window in which the trace window begins, and cleared after the one in
    /// which it ends.
    watched: u64,
    /// Mask of the watched components that were due in the cycle before `pulse_end`. They tick once more in `pulse_end`. So a signal of one
    /// cycle returns to idle in the waveform.
    pulses: u64,
    /// The next cycle if `pulses` is not 0, else [`Cycle::NEVER`].
    pulse_end: Cycle,
    /// Mask of the components that the wheel has woken since the window began. The next window prefetches them.
    woken: u64,
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

    /// The shortest latency of a link to another tile. `None` without such a link.
    pub fn remote_latency(&self) -> Option<u64> {
        match self.shared.remote_latency.load(Ordering::Relaxed) {
            // The initial value: no link has noted its latency.
            u32::MAX => None,
            latency => Some(u64::from(latency)),
        }
    }

    /// A number that no other existing tile has, known before the tile joins a machine.
    pub(crate) fn identity(&self) -> usize {
        self.shared.identity()
    }

    /// The identities of the tiles with links to this one.
    pub(crate) fn neighbors(&self) -> Vec<usize> {
        let neighbors = self.shared.neighbors.lock();
        neighbors.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the tick order within a cycle, a permutation of the slot indices. No result may depend on it.
    ///
    /// # Panics
    /// If `order` has another length than the list of components.
    pub fn set_order(&mut self, order: Vec<usize>) {
        assert_eq!(
            order.len(),
            self.components.len(),
            "an order names every component once"
        );
        self.in_order = order.iter().copied().eq(0..order.len());
        self.order = order;
    }

    /// Turns idle-skipping on or off. It is on by default. No result may depend on it.
    pub fn set_skipping(&mut self, skips_idle: bool) {
        self.skips_idle = skips_idle;
    }

    /// True if components are ticked only when they are due.
    pub fn is_skipping(&self) -> bool {
        self.skips_idle
    }

    /// Samples the components of the mask `watched`, in the cycles of `window`.
    pub fn watch(&mut self, sampler: Box<dyn Sampler>, watched: u64, window: Range<Cycle>) {
        self.watched = 0;
        // No component is sampled before the trace window begins (`begin_trace_window`).
        self.trace = Some(TraceWindow::new(sampler, watched, window));
    }

    /// Flushes the sampler after a panic during a window.
    pub fn flush_after_panic(&mut self) {
        // Cycle 0 is not after the end of a trace window, so the sampler is kept.
        self.flush_sampler(Cycle::ZERO);
    }

    /// Resets every component. All are due in cycle `now`.
    pub fn reset(&mut self, now: Cycle) {
        self.components.iter_mut().for_each(|component| component.reset());
        self.overflow.fill(Cycle::NEVER);
        self.next_overflow = Cycle::NEVER;
        self.pulses = 0;
        self.pulse_end = Cycle::NEVER;
        // Older wake-ups stay on the wheel. Each costs one tick, which changes nothing.
        self.wake_all(now);
    }

    /// Puts every component on the wheel for cycle `now`.
    pub fn wake_all(&mut self, now: Cycle) {
        self.shared.wheel.add(now, self.all_mask());
    }

    /// The first cycle from `now` on in which a component is due, or `now` if the tile must run anyway.
    pub fn next_due(&self, now: Cycle) -> Cycle {
        // A sender that waits for room in a link to another tile gets no message. The start of a window wakes it, so the tile must run.
        if !self.skips_idle || self.shared.window_waiters.load(Ordering::Relaxed) != 0 {
            return now;
        }
        let message = self.shared.remote.mail.next(now);
        self.next_local(now).min(message)
    }

    /// The first cycle from `now` on in which a component is due. Wake-ups in the mailbox are left out.
    #[inline]
    fn next_local(&self, now: Cycle) -> Cycle {
        self.shared.wheel.next(now).min(self.next_overflow).min(self.pulse_end)
    }

    /// The first cycle of a trace window that has not begun.
    pub(crate) fn next_trace_window(&self) -> Cycle {
        self.trace.as_ref().map_or(Cycle::NEVER, TraceWindow::next)
    }

    /// Adds the tile to a machine, with its number and the due table of the machine.
    ///
    /// # Panics
    /// If the tile is part of a machine already.
    pub(crate) fn join_machine(&self, due: &DueTable, tile: usize) {
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

    /// Lowers the tile's entry in the due table. The tile has run up to cycle `now`.
    pub(crate) fn note_due(&self, now: Cycle) {
        let (due, tile) = self.due_entry();
        due.lower(*tile, self.next_due(now));
    }

    /// The last cycle in which a component was due.
    pub(crate) fn last_due(&self) -> Cycle {
        self.last_due
    }

    /// True if all components are quiescent.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.components.iter().all(|component| component.is_quiescent())
    }

    /// A mask of all components.
    fn all_mask(&self) -> u64 {
        // `checked_shr`, because a tile without components shifts by 64.
        u64::MAX
            .checked_shr((MAX_COMPONENTS - self.components.len()) as u32)
            .unwrap_or(0)
    }

    /// Removes the components that are due in a cycle from the wheel and the overflow.
    #[inline]
    fn take_due(&mut self, now: Cycle) -> u64 {
        let due = self.shared.wheel.take(now);
        self.woken |= due;
        match self.next_overflow <= now {
            true => due | self.take_overflow(now),
            false => due,
        }
    }

    #[inline]
    fn run_cycle(&mut self, now: Cycle) {
        let mut due = self.take_due(now);
        // Before the steps below: neither watching nor skipping may change `last_due`.
        if due != 0 {
            self.last_due = now;
        }
        if !self.skips_idle {
            // An early tick changes nothing: the contract of components.
            due = self.all_mask();
        }
        if self.watched != 0 || self.pulses != 0 {
            due |= self.take_pulses(now, due);
        }
        // The order of slots needs no list: the bits are taken from the lowest up.
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
        // After the tick, so the sample has the values that this cycle ends with.
        if self.watched >> index & 1 == 1 {
            self.sample(index, now);
        }
        self.schedule(index, now, activity);
    }

    // Cold: most tiles are not watched.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, index: usize, now: Cycle) {
        if let Some(trace) = &mut self.trace {
            trace.sampler.sample(now, index, self.components[index].as_ref());
        }
    }

    /// Returns the watched components to tick once more in this cycle. Notes the watched components in `due` for the next cycle.
    fn take_pulses(&mut self, now: Cycle, due: u64) -> u64 {
        // The trace window may have ended, so only components in `watched` count.
        let ended = match self.pulse_end <= now {
            true => self.pulses & self.watched,
            false => 0,
        };
        self.pulses = due & self.watched;
        self.pulse_end = if self.pulses == 0 { Cycle::NEVER } else { now + 1 };
        ended
    }

    /// Puts the component's next wake-up on the wheel or in the overflow list.
    #[inline]
    fn schedule(&mut self, index: usize, now: Cycle, activity: Activity) {
        match activity {
            Activity::Busy => self.shared.wheel.add(now + 1, 1 << index),
            // A past cycle means the next one.
            Activity::Until(at) if at.since(now) < HORIZON => self.shared.wheel.add(at.max(now + 1), 1 << index),
            Activity::Until(at) => self.add_overflow(index, at),
            Activity::Idle => {}
        }
    }

    #[cold]
    fn add_overflow(&mut self, index: usize, at: Cycle) {
        // An earlier entry of the component may leave `next_overflow` too early. Then one scan finds nothing and corrects it.
        self.overflow[index] = at;
        self.next_overflow = self.next_overflow.min(at);
    }

    /// Removes and returns the components of the overflow list that are due in cycle `now`.
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
