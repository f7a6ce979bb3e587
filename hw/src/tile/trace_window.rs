//! A sampler with the components that it watches and its window of cycles.

use std::ops::Range;

use crate::component::Component;
use crate::probe::Sampler;
use crate::time::Cycle;

/// What watches a tile.
pub struct TraceWindow {
    pub sampler: Box<dyn Sampler>,
    components: u64,
    window: Range<Cycle>,
    begun: bool,
}

impl TraceWindow {
    /// Watches the components whose bit is set.
    pub fn new(sampler: Box<dyn Sampler>, components: u64, window: Range<Cycle>) -> Self {
        TraceWindow {
            sampler,
            components,
            window,
            begun: false,
        }
    }

    /// The window's first cycle, if it has not begun.
    pub fn next(&self) -> Cycle {
        if self.begun { Cycle::NEVER } else { self.window.start }
    }

    /// Begins the window; the components to sample from now on.
    pub fn begin(&mut self, now: Cycle, components: &[Box<dyn Component>]) -> u64 {
        self.begun = true;
        self.sampler.begin(now, components);
        self.components
    }

    /// A quantum is over: the sampler hands on what it recorded. Whether the window is over too.
    pub fn hand_on(&mut self, end: Cycle) -> bool {
        if self.begun {
            self.sampler.flush(end);
        }
        self.begun && self.window.end <= end
    }
}
