//! What a component shows to a waveform.
//!
//! One visit of [`crate::component::Component::probe`] both declares the signals (their names, widths, states) and gives their
//! values, so the two cannot drift apart. Nobody watching costs one branch per tick.

use crate::component::Component;
use crate::time::Cycle;

/// Bits of an instruction's number.
pub const CODE_WIDTH: u32 = 24;

/// Receives a component's signals in their fixed order. A value of `None` is no value: of what is kept in storage, not written
/// yet (x); of everything else, not driven (z).
pub trait Probe {
    /// One bit.
    fn bit(&mut self, name: &'static str, value: Option<bool>);
    /// An unsigned number of `width` bits (1 to 64).
    fn vector(&mut self, name: &'static str, width: u32, value: Option<u64>);
    /// A number of `width` bits that is kept in storage.
    fn stored(&mut self, name: &'static str, width: u32, value: Option<u64>) {
        self.vector(name, width, value);
    }
    /// The number of an instruction, of [`CODE_WIDTH`] bits, among those of all kernels that may run; views show its text.
    fn code(&mut self, name: &'static str, value: Option<u64>) {
        self.vector(name, CODE_WIDTH, value);
    }
    /// One of a fixed list of states.
    fn state(&mut self, name: &'static str, names: &'static [&'static str], value: Option<usize>);
    /// The following signals belong to part `name[index]`, until `leave`.
    fn enter(&mut self, name: &'static str, index: usize);
    /// Ends the part.
    fn leave(&mut self);
}

/// Looks at the watched components of one tile. It runs on the tile's thread.
///
/// It sees every change from the window's first cycle on: a component that is not ticked has not changed.
pub trait Sampler: Send {
    /// Once, before the first quantum that reaches into the window: cycle `now` has not been ticked yet. `components` are all
    /// of the tile. The place to record a first state.
    fn begin(&mut self, now: Cycle, components: &[Box<dyn Component>]);
    /// Component `index` of the tile has ticked in cycle `now`, which may lie before the window or behind it.
    fn sample(&mut self, now: Cycle, index: usize, component: &dyn Component);
    /// The quantum that ends before `end` is over: hand on what was recorded.
    fn flush(&mut self, end: Cycle);
}
