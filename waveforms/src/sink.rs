//! The interface of an output: a dump in some format, or memory.
//!
//! A sink is created with the list of signals. Changes name a signal by its index in that list.
//!
//! # Invariants that a sink relies on
//! - Cycles never go back.
//! - Within a cycle, signals come in rising order, each at most once.
//! - Each change gives the signal a new value.

use std::io;

/// Receives the changes of a run.
pub trait Sink: Send {
    /// Begins the dump with the values of all signals, from cycle `at` on.
    fn begin(&mut self, at: u64, values: &[Option<u64>]) -> io::Result<()>;

    /// Sets a signal, by its index, to a value from cycle `at` on. `None` is a missing value.
    fn change(&mut self, at: u64, signal: u32, value: Option<u64>) -> io::Result<()>;

    /// Ends the dump. Cycle `at` is the first one that is not part of it.
    fn finish(&mut self, at: u64) -> io::Result<()>;

    /// Bytes written or buffered so far.
    fn bytes(&self) -> u64;
}
