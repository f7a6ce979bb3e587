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
    // All lanes have exited, and something of the warp is in flight.
    Drain "drain",
    // NANOSLEEP.
    Sleeping "sleeping",
    // No lane runs: at a block, cluster or convergence barrier.
    Barrier "barrier",
    // At a fence, or before it until earlier accesses are performed.
    Membar "membar",
    // For products of the warp group (HGMMA).
    Gmma "gmma",
    // For the branch unit, or for the fetch at the target.
    BranchResolving "branch_resolving",
    // The ibuffer is empty.
    NoInstruction "no_instruction",
    // For a line of constant operands.
    ImcMiss "imc_miss",
    // For a result from behind the L1, or for asynchronous copies.
    LongScoreboard "long_scoreboard",
    // For a result of a unit with a queue: shared memory, constant loads, SFU.
    ShortScoreboard "short_scoreboard",
    // For a result with a fixed latency, or for the guard.
    Wait "wait",
    // Ready, as all states from here on. The memory queue is full, for an access to local or global memory.
    LgThrottle "lg_throttle",
    // The memory queue is full, for the rest: shared memory, shuffles, constant loads.
    MioThrottle "mio_throttle",
    // The issue interval of the pipe is not over.
    MathPipeThrottle "math_pipe_throttle",
    // The dispatch unit takes no instruction, so no warp issues.
    DispatchStall "dispatch_stall",
    // Another warp was chosen.
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
