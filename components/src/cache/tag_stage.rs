//! The state of a tag stage: what its last lookup did, since when, and whether a stalled request is due for another lookup.
//!
//! The request at the head of the queue stays there while it stalls. It is looked up again once a message has left the cache or
//! come back: nothing else can end a stall.

/// The states of one cache's tag stage.
pub(crate) trait TagState: Copy + PartialEq {
    /// No request is there.
    const IDLE: Self;

    /// Whether the request at the head stalls until something else makes progress.
    fn is_stall(self) -> bool;
}

/// A tag stage. Time is counted in cycles or in edges of the cache's clock.
pub(crate) struct TagStage<S> {
    state: S,
    since: u64,
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

    /// Address of the line looked up last, while there are requests.
    pub(crate) fn shown_line(&self) -> Option<u64> {
        (self.state != S::IDLE).then_some(self.line)
    }

    /// A message has left the cache or come back: a stalled request is looked up again.
    #[inline]
    pub(crate) fn note_progress(&mut self) {
        self.progress = true;
    }

    /// Begins a cycle. Returns whether a request at the head is looked up in it.
    #[inline]
    pub(crate) fn begin(&mut self, has_request: bool) -> bool {
        let progress = std::mem::take(&mut self.progress);
        if !has_request {
            self.state = S::IDLE;
        }
        has_request && (progress || !self.state.is_stall())
    }

    /// Enters the state that a lookup gives. Returns the stall that ends, with its length: stalls are counted when they are over.
    #[inline]
    pub(crate) fn enter(&mut self, state: S, at: u64) -> Option<(S, u64)> {
        let stall = self.state.is_stall().then_some((self.state, at - self.since));
        (self.state, self.since) = (state, at);
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
    fn stalled_request_is_looked_up_again_after_progress_and_its_wait_is_counted() {
        let mut stage = TagStage::new();
        assert!(stage.begin(true));
        assert_eq!(stage.enter(State::Stall, 5), None);
        assert!(!stage.begin(true), "nothing has moved");
        stage.note_progress();
        assert!(stage.begin(true));
        assert_eq!(stage.enter(State::Hit, 9), Some((State::Stall, 4)));
        assert!(stage.begin(true), "the next request");
        assert_eq!(stage.enter(State::Hit, 10), None);
        assert!(!stage.begin(false));
        assert_eq!(stage.shown_line(), None);
    }
}
