//! Value change dumps: the text format that every waveform viewer reads.
//!
//! The dialect, which the [`writer`] writes and the [`reader`] insists on:
//! - header, then one `$dumpvars` with every signal, then changes, then a last time;
//! - one time unit is one core cycle, shown as 1 ns, so a viewer's ruler in ns reads as the cycle;
//! - times rise strictly; a signal changes at most once in a cycle;
//! - leading zeros are cut; unknown is `x`; states are numbers, whose names stand in a `$comment`;
//! - no date: the same run gives the same bytes.

pub mod writer;

pub mod reader;
