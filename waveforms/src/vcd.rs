//! Value change dumps: the text format that every waveform viewer reads.
//!
//! The dialect of the [`writer`]:
//! - header, then one `$dumpvars` with every signal, then changes, then a last time;
//! - a clock and the count of its cycles come with every dump; values are those after a cycle's tick, from its rising edge on;
//! - times rise strictly; a signal changes at most once at a time;
//! - leading zeros are cut; `x` was never written, `z` is not driven; states are numbers, whose names stand in a `$comment`;
//! - a signal that appears in two scopes has one code;
//! - no date: the same run gives the same bytes.

pub mod writer;

/// Time units of a cycle on an axis of cycles: a viewer's ruler in ns reads as the cycle.
pub const UNITS: u64 = 10;

/// What the times of a dump are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Cycles of the core clock, each shown as 1 ns.
    Cycles,
    /// Real time, in ps, of a core clock of so many kHz.
    Time {
        /// Its frequency.
        khz: u64,
    },
}

impl Axis {
    /// The time at which a cycle's clock rises.
    #[inline]
    pub fn rise(self, cycle: u64) -> u64 {
        match self {
            Axis::Cycles => cycle * UNITS,
            Axis::Time { khz } => half_periods(2 * u128::from(cycle), khz),
        }
    }

    /// The time at which it falls.
    #[inline]
    pub fn fall(self, cycle: u64) -> u64 {
        match self {
            Axis::Cycles => cycle * UNITS + UNITS / 2,
            Axis::Time { khz } => half_periods(2 * u128::from(cycle) + 1, khz),
        }
    }

    /// The picoseconds, as a viewer shows them, at which a cycle's clock rises.
    pub fn shown_ps(self, cycle: u64) -> u64 {
        match self {
            Axis::Cycles => cycle * 1000,
            Axis::Time { .. } => self.rise(cycle),
        }
    }

    fn timescale(self) -> &'static str {
        match self {
            Axis::Cycles => "100 ps",
            Axis::Time { .. } => "1 ps",
        }
    }

    fn in_words(self) -> String {
        match self {
            Axis::Cycles => {
                format!("{UNITS} time units are one cycle of the core clock: the ruler in ns reads as the cycle")
            }
            Axis::Time { khz } => format!("time is real time at a core clock of {khz} kHz"),
        }
    }
}

/// So many half periods in ps.
fn half_periods(n: u128, khz: u64) -> u64 {
    (n * 500_000_000 / u128::from(khz.max(1))) as u64
}
