//! The state of a tag stage: the outcome of its last lookup, since when, and whether to repeat the lookup of a stalled request.
//!
//! A request that stalls stays at the head of the queue. The stage repeats its lookup only after a message has left the cache or come back.

/// The states of one cache's tag stage.
pub(crate) trait TagState: Copy + PartialEq {
    /// State without a request.
    const IDLE: Self;

    /// True if the request at the head stalls until another message makes progress.
    fn is_stall(self) -> bool;
}

/// A tag stage. Its time unit is a cycle, or an edge of the cache's clock.
pub(crate) struct TagStage<S> {
    state: S,
    /// Time of the last lookup.
    since: u64,
    /// True if a message has left the cache or come back since the last cycle.
    progress: bool,
    /// Address of the line looked up last.
    pub(crate) line: u64,
}

impl<S: TagState> TagStage<S> {
    /// An idle stage.
    pub(crate) fn new() -> Self {
        TagStage {
            state: S::IDLE,
            since: 0,
            progress: false,
            line: 0,
        }
    }

    /// The outcome of the last lookup.
    #[inline]
    pub(crate) fn state(&self) -> S {
        self.state
    }

    /// Address of the line looked up last, for the waveform. `None` without a request.
    pub(crate) fn current_line(&self) -> Option<u64> {
        (self.state != S::IDLE).then_some(self.line)
    }

    /// Notes that a message has left the cache or come back: a stalled request is looked up again.
    #[inline]
    pub(crate) fn note_progress(&mut self) {
        self.progress = true;
    }

    /// Begins a cycle. Returns true if the request at the head is looked up in it.
    #[inline]
    pub(crate) fn begin(&mut self, has_request: bool) -> bool {
        let progress = std::mem::take(&mut self.progress);
        if !has_request {
            self.state = S::IDLE;
        }
        // Only a message that leaves the cache or comes back can end a stall.
        has_request && (progress || !self.state.is_stall())
    }

    /// Enters the outcome of a lookup at time `now`. Returns the stall that this ends, with its length.
    #[inline]
    pub(crate) fn enter(&mut self, state: S, now: u64) -> Option<(S, u64)> {
        // A repeated lookup may stall once more. Each part of a long stall is returned at the next lookup.
        let stall = self.state.is_stall().then_some((self.state, now - self.since));
        (self.state, self.since) = (state, now);
        stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum State {
        Idle,
        Hit,
        Stall,
    }

    impl TagState for State {
        const IDLE: Self = State::Idle;

        fn is_stall(self) -> bool {
            self == State::Stall
        }
    }

    #[test]
    fn stalled_request_is_looked_up_again_only_after_progress() {
        let mut stage = TagStage::new();
        assert!(stage.begin(true));
        assert_eq!(stage.enter(State::Stall, 5), None);
        assert!(!stage.begin(true), "no progress");
        stage.note_progress();
        assert!(stage.begin(true));
        assert_eq!(stage.enter(State::Hit, 9), Some((State::Stall, 4)));
        assert!(stage.begin(true), "the next request");
        assert_eq!(stage.enter(State::Hit, 10), None);
        assert!(!stage.begin(false));
        assert_eq!(stage.current_line(), None);
    }
}
