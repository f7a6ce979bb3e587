//! The states of a tag stage. A slice has one stage for requests of SMs. With a twin it has another, for requests of the twin.

use crate::cache::tag_stage::TagState;

/// The outcome of the tag stage's last lookup.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum SliceTagState {
    Idle,
    Hit,
    Miss,
    /// The request has passed on to the home slice in the other partition.
    Pass,
    /// The data array is busy, or the other stage has used the tags at this edge.
    DataBusy,
    /// No MSHR or target is free.
    StallFetch,
    /// Every line of the set has a fetch in flight.
    StallPinned,
    /// Memory has no room for the two packets of a miss: a fetch and a write-back.
    StallMemory,
    /// A response pipe is full.
    StallResponse,
    /// The pipe of requests to the twin is full, or a sector that lacks bytes waits for the answer to a recall.
    StallTwin,
}

/// The names of all states in a waveform, in the order of [`SliceTagState`].
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
        // The stalls come last. `DataBusy` is none: it ends with time, not with a message.
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
