//! Text and colour of each stall state: its meaning, and advice.

/// Text and colour of a state.
pub struct StallText {
    /// Colour, the same in every chart.
    pub colour: &'static str,
    /// What a warp in this state did, as the end of a sentence.
    pub means: &'static str,
    /// What reduces the time in this state.
    pub advice: &'static str,
}

/// The text for a state, by the profiler's name.
pub fn of(state: &str) -> StallText {
    let (colour, means, advice) = match state {
        "selected" => ("#009e73", "issued an instruction", "this is the work itself"),
        "not_selected" => (
            "#8fd3bb",
            "could have issued, another warp was chosen",
            "there are warps enough; fewer instructions would help",
        ),
        "long_scoreboard" => (
            "#d55e00",
            "waited for a value from global or local memory",
            "use caches and coalesced access, load earlier, or keep more warps resident",
        ),
        "short_scoreboard" => (
            "#f0c75e",
            "waited for a value from shared memory, a shuffle or a special function",
            "look for bank conflicts, put independent work between",
        ),
        "lg_throttle" => (
            "#e8905a",
            "could not send a global or local access, the memory queue was full",
            "use fewer and wider accesses",
        ),
        "mio_throttle" => (
            "#e69f00",
            "could not send a shared-memory access, the memory queue was full",
            "reuse values in registers, use wider accesses, look for bank conflicts",
        ),
        "wait" => (
            "#7f9bd1",
            "waited out the fixed latency of its last result",
            "give each warp independent instructions, or keep more warps resident",
        ),
        "math_pipe_throttle" => (
            "#5a55a8",
            "waited for a busy arithmetic pipe",
            "the pipe is the limit: spread the work over other pipes",
        ),
        "barrier" => (
            "#cc79a7",
            "waited for the other warps of its block",
            "balance the work between barriers, or use smaller blocks",
        ),
        "membar" => ("#a05a84", "waited at a fence for memory accesses", "fence less often"),
        "gmma" => (
            "#7b4ea3",
            "waited for the tensor products of its warp group",
            "issue more products before each wait",
        ),
        "branch_resolving" => (
            "#56b4e9",
            "waited for the target of a branch",
            "branch less: unroll, or use predicates",
        ),
        "no_instruction" => (
            "#0072b2",
            "had no instruction in its buffer",
            "jump less; very short kernels begin like this",
        ),
        "dispatch_stall" => (
            "#6a51a3",
            "waited for the dispatch unit",
            "look for register bank conflicts",
        ),
        "sleeping" => (
            "#b9bec5",
            "slept, as the kernel asked",
            "sleep for a shorter time, or less often",
        ),
        "drain" => (
            "#8d939b",
            "had ended and waited for its last stores",
            "store less at the end, or give blocks more to do",
        ),
        _ => ("#444444", "waited", ""),
    };
    StallText { colour, means, advice }
}
