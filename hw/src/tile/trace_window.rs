//! A trace window: a sampler, the components that it samples, and its window of cycles.

use std::ops::Range;

use crate::component::Component;
use crate::time::Cycle;

/// Samples the watched components of one tile, on the tile's thread.
///
/// It samples after each tick. That shows every change, because a component does not change without a tick.
pub trait Sampler: Send {
    /// Begins the window, before cycle `now` has run. `components` are all components of the tile. Called once, to record the initial
    /// values.
    fn begin(&mut self, now: Cycle, components: &[Box<dyn Component>]);
    /// Samples component `index` after its tick in cycle `now`. The cycle may be before or after the window.
    fn sample(&mut self, now: Cycle, index: usize, component: &dyn Component);
    /// Writes out the records of a quantum that ends before cycle `end`.
    fn flush(&mut self, end: Cycle);
}

/// The sampler of a tile, with its window.
pub(super) struct TraceWindow {
    pub sampler: Box<dyn Sampler>,
    /// Mask of the components to sample.
    components: u64,
    window: Range<Cycle>,
    /// True once the sampler has the initial values.
    begun: bool,
}

impl TraceWindow {
    /// Creates a window. The sampler sees the components of the mask `components`.
    pub(super) fn new(sampler: Box<dyn Sampler>, components: u64, window: Range<Cycle>) -> Self {
        TraceWindow {
            sampler,
            components,
            window,
            begun: false,
        }
    }

    /// The first cycle of the window, or never if the window has begun.
    pub(super) fn next(&self) -> Cycle {
        if self.begun { Cycle::NEVER } else { self.window.start }
    }

    /// Begins the window. Returns the components to sample from now on.
    pub(super) fn begin(&mut self, now: Cycle, components: &[Box<dyn Component>]) -> u64 {
        self.begun = true;
        self.sampler.begin(now, components);
        self.components
    }

    /// Flushes the sampler after a quantum that ends before cycle `end`. Returns true if the window is over.
    pub(super) fn flush(&mut self, end: Cycle) -> bool {
        if self.begun {
            self.sampler.flush(end);
        }
        // Only a window that has begun can be over: the sampler must see the initial values once.
        self.begun && self.window.end <= end
    }
}
