//! The meaning, the advice and the colour of each warp state.

/// Text and colour of a state.
pub struct StallText {
    /// Colour, the same in every chart.
    pub colour: &'static str,
    /// The meaning, as the rest of the sentence "the warp ...".
    pub means: &'static str,
    /// The change that reduces the time in this state.
    pub advice: &'static str,
}

/// The text for a state, by the profiler's name.
pub fn of(state: &str) -> StallText {
    let (colour, means, advice) = match state {
        "selected" => ("#009e73", "issued an instruction", "nothing: these are the issues"),
        "not_selected" => (
            "#8fd3bb",
            "could have issued, but another warp was selected",
            "nothing: enough warps are ready; use fewer instructions",
        ),
        "long_scoreboard" => (
            "#d55e00",
            "waited for a value from global or local memory",
            "use caches and coalesced access, load earlier, or keep more warps resident",
        ),
        "short_scoreboard" => (
            "#f0c75e",
            "waited for a value from shared memory, a shuffle or a special function",
            "remove bank conflicts, or put independent instructions between",
        ),
        "lg_throttle" => (
            "#e8905a",
            "could not issue a global or local access: the LSU queue was full",
            "use fewer and wider accesses",
        ),
        "tex_throttle" => (
            "#b8a07a",
            "could not issue a texture fetch: the queue of the texture unit was full",
            "use fewer texture fetches, or put arithmetic between them",
        ),
        "mio_throttle" => (
            "#e69f00",
            "could not issue a shared-memory access: the LSU queue was full",
            "reuse values in registers, use wider accesses, remove bank conflicts",
        ),
        "wait" => (
            "#7f9bd1",
            "waited for a fixed-latency result",
            "give each warp independent instructions, or keep more warps resident",
        ),
        "math_pipe_throttle" => (
            "#5a55a8",
            "waited for a busy arithmetic pipe",
            "the pipe is the limit: move work to other pipes",
        ),
        "barrier" => (
            "#cc79a7",
            "waited for the other warps of its block",
            "balance the work of the warps between barriers, or use smaller blocks",
        ),
        "membar" => (
            "#a05a84",
            "waited at a fence for its memory accesses",
            "use fewer fences, or a smaller scope",
        ),
        "gmma" => (
            "#7b4ea3",
            "waited for the matrix products of its warp group",
            "issue more products before each wait",
        ),
        "branch_resolving" => (
            "#56b4e9",
            "waited for the target of a branch",
            "use fewer branches: unroll loops, or use predicates",
        ),
        "no_instruction" => (
            "#0072b2",
            "had no instruction in its ibuffer",
            "use fewer jumps; every warp starts in this state",
        ),
        "imc_miss" => (
            "#9c6b00",
            "waited for a constant operand that was not in the constant cache",
            "the first read of a line by a launch misses; read fewer constants, or give each block more work",
        ),
        "dispatch_stall" => (
            "#6a51a3",
            "waited for the dispatch unit",
            "remove register bank conflicts",
        ),
        "sleeping" => (
            "#b9bec5",
            "slept in `nanosleep`",
            "sleep for shorter times, or less often",
        ),
        "drain" => (
            "#8d939b",
            "had exited and waited for its stores",
            "store less at the end, or give each block more work",
        ),
        _ => ("#444444", "waited", ""),
    };
    StallText { colour, means, advice }
}
