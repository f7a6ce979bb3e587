//! Where the merged changes of a run go: a file of some format, or memory.
//!
//! A sink is made with the table of signals and names them by their place in it. It is told of every cycle's changes in order:
//! cycles rise strictly, in a cycle signals rise strictly, and each change is one.

use std::io;

/// What takes the changes.
pub trait Sink: Send {
    /// The first values, of all signals. They hold from cycle `at` on.
    fn begin(&mut self, at: u64, values: &[Option<u64>]) -> io::Result<()>;

    /// Signal number `signal` has this value from cycle `at` on.
    fn change(&mut self, at: u64, signal: u32, value: Option<u64>) -> io::Result<()>;

    /// Nothing more happens before cycle `at`, which is not part of the record: writes out what is gathered, and ends.
    fn finish(&mut self, at: u64) -> io::Result<()>;

    /// Bytes written or gathered so far.
    fn bytes(&self) -> u64;
}
