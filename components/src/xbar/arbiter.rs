//! Round robin among the inputs that request one output.

use bitvec::prelude::BitVec;

/// The requests for an output, and the input to serve next.
#[derive(Clone, Debug)]
pub(super) struct RoundRobin {
    /// Inputs that request the output.
    requests: BitVec<u64>,
    /// Number of requests.
    n: u32,
    /// Input from which the search for the next request starts: one after the input served last.
    start: usize,
}

impl RoundRobin {
    /// An arbiter of `inputs` inputs, with no request. Input 0 is first.
    pub(super) fn new(inputs: usize) -> Self {
        RoundRobin {
            requests: BitVec::repeat(false, inputs),
            n: 0,
            start: 0,
        }
    }

    /// Adds a request of an input that has none.
    #[inline]
    pub(super) fn request(&mut self, input: usize) {
        self.requests.set(input, true);
        self.n += 1;
    }

    /// Number of requests.
    #[inline]
    pub(super) fn n_requests(&self) -> u32 {
        self.n
    }

    /// Removes and returns the first request after the input served last, with wrap-around.
    #[inline]
    pub(super) fn grant(&mut self) -> Option<usize> {
        // `start` can be one past the last input: then this slice is empty.
        let after = self.requests[self.start..].first_one().map(|n| self.start + n);
        let input = after.or_else(|| self.requests.first_one())?;
        self.requests.set(input, false);
        self.n -= 1;
        self.start = input + 1;
        Some(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_inputs_request_always_each_is_served_in_turn() {
        let mut arbiter = RoundRobin::new(130);
        (0..130).for_each(|input| arbiter.request(input));
        for round in 0..3 {
            for input in 0..130 {
                assert_eq!(arbiter.grant(), Some(input), "round {round}");
                arbiter.request(input);
            }
        }
    }

    #[test]
    fn input_that_requests_again_waits_for_the_others() {
        let mut arbiter = RoundRobin::new(128);
        [3, 64, 127].into_iter().for_each(|input| arbiter.request(input));
        assert_eq!(arbiter.grant(), Some(3));
        arbiter.request(3);
        let order: Vec<_> = std::iter::from_fn(|| arbiter.grant()).collect();
        assert_eq!(order, [64, 127, 3]);
        assert_eq!(arbiter.n_requests(), 0);
    }
}
