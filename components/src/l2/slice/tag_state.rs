//! The states of a tag stage: its own requests have one, and requests for copies of the twin have another.

use crate::cache::tag_stage::TagState;

/// The outcome of the tag stage's last lookup.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum SliceTagState {
    Idle,
    Hit,
    Miss,
    /// The request has passed on to the home slice in the other partition.
    Pass,
    /// The data array is busy.
    DataBusy,
    /// No MSHR or target is free.
    StallFetch,
    /// Every line of the set has a fetch in flight.
    StallPinned,
    /// The queue to memory is full.
    StallMemory,
    /// The response pipe is full.
    StallResponse,
    /// The pipe to the other partition is full.
    StallTwin,
}

/// The names of all states, in order.
pub(super) const TAG_STATES: [&str; 10] = [
    "idle",
    "hit",
    "miss",
    "pass",
    "data_busy",
    "stall_fetch",
    "stall_pinned",
    "stall_memory",
    "stall_response",
    "stall_twin",
];

impl TagState for SliceTagState {
    const IDLE: Self = SliceTagState::Idle;

    #[inline]
    fn is_stall(self) -> bool {
        self >= SliceTagState::StallFetch
    }
}

impl SliceTagState {
    /// True if the request stays at the head: it stalls, or waits for the data array.
    #[inline]
    pub(super) fn holds_request(self) -> bool {
        self >= SliceTagState::DataBusy
    }
}
