//! What the tag stage of a slice is doing, as counters and waveforms tell it.

/// What the tag stage did last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum TagState {
    Idle,
    Hit,
    Miss,
    DataBusy,
    StallFetch,
    StallPinned,
    StallMemory,
    StallAnswer,
}

impl TagState {
    /// The names of all states, in order.
    pub(super) const NAMES: [&str; 8] = [
        "idle",
        "hit",
        "miss",
        "data_busy",
        "stall_fetch",
        "stall_pinned",
        "stall_memory",
        "stall_answer",
    ];

    /// Whether the request at the head was looked at, and waits.
    #[inline]
    pub(super) fn is_held_up(self) -> bool {
        self >= TagState::DataBusy
    }

    /// Whether something else must go on before the request can.
    #[inline]
    pub(super) fn is_stall(self) -> bool {
        self >= TagState::StallFetch
    }
}
