//! Stall reasons: a resident warp has one state per cycle, so the sum over the states is the warp's resident cycles.
//!
//! A stalled warp is charged once, when its state changes. A ready warp is charged per cycle: it may be selected, not selected or
//! throttled in each.

use warpwave_hw::stats::Report;

macro_rules! states {
    ($($state:ident $name:literal,)+) => {
        /// States in the order of priority. Names are the profiler's.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the profiler's stall reasons")]
        pub enum WarpState {
            $($state,)+
        }

        /// Number of states.
        pub const STATES: usize = [$($name),+].len();

        /// Names of the states in waveforms, in order.
        pub const NAMES: [&str; STATES] = [$($name),+];

        /// Values of a warp slot in waveforms: the names of the states, then the name of a slot without a warp.
        pub const SHOWN: [&str; STATES + 1] = [$($name,)+ "empty"];

        /// Counter names of the states in reports: all cycles, and those without an issue.
        const COUNTERS: [(&str, &str); STATES] = [$((concat!("stall_", $name), concat!("unissued_", $name))),+];
    };
}

states! {
    Drain "drain",
    Sleeping "sleeping",
    Barrier "barrier",
    Membar "membar",
    Gmma "gmma",
    BranchResolving "branch_resolving",
    NoInstruction "no_instruction",
    ImcMiss "imc_miss",
    LongScoreboard "long_scoreboard",
    ShortScoreboard "short_scoreboard",
    Wait "wait",
    LgThrottle "lg_throttle",
    MioThrottle "mio_throttle",
    MathPipeThrottle "math_pipe_throttle",
    DispatchStall "dispatch_stall",
    NotSelected "not_selected",
    Selected "selected",
}

/// Index of an empty slot in [`SHOWN`].
pub const EMPTY: usize = STATES;

/// Warp-cycles spent in each state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StallCycles {
    all: [u64; STATES],
    /// The warp-cycles in cycles in which the scheduler issued nothing.
    unissued: [u64; STATES],
}

impl StallCycles {
    /// Charges `cycles` warp-cycles to a state. In `unissued` of these the scheduler issued nothing.
    #[inline]
    pub fn charge(&mut self, state: WarpState, cycles: u64, unissued: u64) {
        self.all[state as usize] += cycles;
        self.unissued[state as usize] += unissued;
    }

    /// Warp-cycles charged to a state.
    pub fn of(&self, state: WarpState) -> u64 {
        self.all[state as usize]
    }

    /// Warp-cycles of all states together.
    pub fn total(&self) -> u64 {
        self.all.iter().sum()
    }

    /// Reports both counters of every state.
    pub fn report(&self, report: &mut dyn Report) {
        for ((name, unissued_name), (&cycles, &unissued)) in COUNTERS.iter().zip(self.all.iter().zip(&self.unissued)) {
            report.count(name, cycles);
            report.count(unissued_name, unissued);
        }
    }
}
