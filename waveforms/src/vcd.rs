//! Value change dumps (VCD, IEEE 1364 clause 18): the text format that every waveform viewer reads.
//!
//! Rules of the dumps written here:
//! - A dump is a header, one `$dumpvars` with every signal, the changes, and a last time.
//! - Every dump has a clock and a count of its cycles. A value holds from the rising edge on, after the tick of that cycle.
//! - Times never go back. A signal changes at most once per time.
//! - Leading zeros are cut. `x` was never written, `z` is not driven. States are numbers, with their names in a `$comment`.
//! - A signal in two scopes has one identifier code.
//! - There is no date: the same run gives the same bytes.

pub mod writer;

/// Time units per cycle for [`TimeAxis::Cycles`]. A unit is 100 ps, so a viewer's ruler in ns shows cycles.
pub const UNITS_PER_CYCLE: u64 = 10;

/// The meaning of the times in a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeAxis {
    /// Cycles of the core clock. A cycle is 1 ns in the viewer.
    Cycles,
    /// Real time, in ps.
    Real {
        /// The frequency of the core clock, in kHz.
        khz: u64,
    },
}

impl TimeAxis {
    /// The time of the rising clock edge of a cycle, in units of the dump.
    #[inline]
    pub fn rise(self, cycle: u64) -> u64 {
        match self {
            TimeAxis::Cycles => cycle * UNITS_PER_CYCLE,
            TimeAxis::Real { khz } => half_periods(2 * u128::from(cycle), khz),
        }
    }

    /// The time of the falling clock edge of a cycle, in units of the dump.
    #[inline]
    pub fn fall(self, cycle: u64) -> u64 {
        match self {
            TimeAxis::Cycles => cycle * UNITS_PER_CYCLE + UNITS_PER_CYCLE / 2,
            TimeAxis::Real { khz } => half_periods(2 * u128::from(cycle) + 1, khz),
        }
    }

    /// The time of the rising clock edge of a cycle as a viewer shows it, in ps.
    pub fn viewer_ps(self, cycle: u64) -> u64 {
        match self {
            TimeAxis::Cycles => cycle * 1000,
            TimeAxis::Real { .. } => self.rise(cycle),
        }
    }

    fn timescale(self) -> &'static str {
        match self {
            TimeAxis::Cycles => "100 ps",
            TimeAxis::Real { .. } => "1 ps",
        }
    }

    fn description(self) -> String {
        match self {
            TimeAxis::Cycles => {
                format!("{UNITS_PER_CYCLE} time units are one cycle of the core clock: the ruler in ns shows cycles")
            }
            TimeAxis::Real { khz } => format!("times are real time at a core clock of {khz} kHz"),
        }
    }
}

/// The duration of `n` half periods of the clock, in ps, rounded down.
fn half_periods(n: u128, khz: u64) -> u64 {
    // A half period is 10^12 ps / (2 * 10^3 * khz). The multiplication comes first, so that no error adds up.
    (n * 500_000_000 / u128::from(khz.max(1))) as u64
}
