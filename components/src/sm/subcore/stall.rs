//! The state of a resident warp: one per warp and cycle. The first that applies wins, so the sum over states is the resident cycles.
//!
//! A warp that waits for an event is charged once, when its state changes. A ready warp is charged per cycle, because whether it is
//! selected, not selected or throttled changes from cycle to cycle.

use warpwave_hw::stats::Report;

/// States in the order in which they are matched. Names are the profiler's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "the profiler's stall reasons")]
pub enum WarpState {
    Drain,
    Sleeping,
    Barrier,
    Membar,
    Gmma,
    BranchResolving,
    NoInstruction,
    LongScoreboard,
    ShortScoreboard,
    Wait,
    LgThrottle,
    MioThrottle,
    MathPipeThrottle,
    DispatchStall,
    NotSelected,
    Selected,
}

/// Number of states.
pub const STATES: usize = WarpState::Selected as usize + 1;

/// The states' names, in order, as waveforms show them.
pub const NAMES: [&str; STATES] = [
    "drain",
    "sleeping",
    "barrier",
    "membar",
    "gmma",
    "branch_resolving",
    "no_instruction",
    "long_scoreboard",
    "short_scoreboard",
    "wait",
    "lg_throttle",
    "mio_throttle",
    "math_pipe_throttle",
    "dispatch_stall",
    "not_selected",
    "selected",
];

/// Values of a warp slot in waveforms: the states' names, then the name of a slot without a warp.
pub const SHOWN: [&str; STATES + 1] = {
    let mut shown = ["empty"; STATES + 1];
    let mut n = 0;
    while n < STATES {
        shown[n] = NAMES[n];
        n += 1;
    }
    shown
};

/// Index of an empty slot in [`SHOWN`].
pub const EMPTY: usize = STATES;

/// The states' counter names in reports.
const COUNTERS: [&str; STATES] = [
    "stall_drain",
    "stall_sleeping",
    "stall_barrier",
    "stall_membar",
    "stall_gmma",
    "stall_branch_resolving",
    "stall_no_instruction",
    "stall_long_scoreboard",
    "stall_short_scoreboard",
    "stall_wait",
    "stall_lg_throttle",
    "stall_mio_throttle",
    "stall_math_pipe_throttle",
    "stall_dispatch_stall",
    "stall_not_selected",
    "stall_selected",
];

/// Warp-cycles spent in each state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StallCycles([u64; STATES]);

impl StallCycles {
    /// Charges `cycles` warp-cycles to a state.
    #[inline]
    pub fn charge(&mut self, state: WarpState, cycles: u64) {
        self.0[state as usize] += cycles;
    }

    /// Warp-cycles charged to a state.
    pub fn of(&self, state: WarpState) -> u64 {
        self.0[state as usize]
    }

    /// Warp-cycles of all states together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Gives every state's counter.
    pub fn report(&self, report: &mut dyn Report) {
        for (name, &cycles) in COUNTERS.iter().zip(&self.0) {
            report.count(name, cycles);
        }
    }
}
