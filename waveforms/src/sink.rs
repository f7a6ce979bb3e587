//! The interface of an output: a dump in some format, or memory.
//!
//! A sink is created with the list of signals. Changes name a signal by its index in that list.
//!
//! # Invariants that a sink relies on
//! - Cycles never go back.
//! - Within a cycle, signals come in rising order, each at most once.
//! - Each change gives the signal a new value.

use std::io;

use crate::recorder::Change;

/// Receives the changes of a run.
pub trait Sink: Send {
    /// Begins the dump with the values of all signals, from cycle `at` on.
    fn begin(&mut self, at: u64, values: &[Option<u64>]) -> io::Result<()>;

    /// Sets a signal, by its index, to a value from cycle `at` on. `None` is a missing value.
    fn change(&mut self, at: u64, signal: u32, value: Option<u64>) -> io::Result<()>;

    /// Sets the signals of one cycle. Each has a new value from cycle `at` on.
    fn changes(&mut self, at: u64, changes: &[Change]) -> io::Result<()> {
        // One call for all changes of a cycle: an output is behind a pointer, and the calls in this loop are not.
        changes
            .iter()
            .try_for_each(|&(signal, value)| self.change(at, signal, value))
    }

    /// Ends the dump. Cycle `at` is the first one that is not part of it.
    fn finish(&mut self, at: u64) -> io::Result<()>;

    /// Bytes written or buffered so far.
    fn bytes(&self) -> u64;

    /// Bytes that the file has if it goes on to cycle `at` without a change.
    fn bytes_at(&self, _at: u64) -> u64 {
        self.bytes()
    }

    /// Adds a remark to the file, if its format has room for one.
    fn remark(&mut self, _text: &str) -> io::Result<()> {
        Ok(())
    }
}
