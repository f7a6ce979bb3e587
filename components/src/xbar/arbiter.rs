//! A round-robin arbiter: chooses among the inputs that request one output.

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

    /// The first free input with a request, after the input served last and with wrap-around. The request stays until
    /// [`RoundRobin::withdraw`].
    #[inline]
    pub(super) fn grant(&self, free: &BitVec<u64>) -> Option<usize> {
        // The first search found none from `start` on, so the second finds an earlier input or none.
        self.first_from(self.start, free).or_else(|| self.first_from(0, free))
    }

    /// The first free input with a request after `refused`, which this edge's search has found. `None` after a whole round.
    pub(super) fn grant_after(&self, refused: usize, free: &BitVec<u64>) -> Option<usize> {
        let in_round = |input: &usize| *input < self.start;
        match in_round(&refused) {
            true => self.first_from(refused + 1, free).filter(in_round),
            false => self
                .first_from(refused + 1, free)
                .or_else(|| self.first_from(0, free).filter(in_round)),
        }
    }

    /// The first free input with a request, from input `start` on.
    #[inline]
    fn first_from(&self, start: usize, free: &BitVec<u64>) -> Option<usize> {
        // `start` can be one past the last input: then no word is left, or the mask leaves no bit.
        let words = self.requests.as_raw_slice().iter().zip(free.as_raw_slice());
        let mut mask = !0 << (start % 64);
        for (n, (requests, free)) in words.enumerate().skip(start / 64) {
            let found = requests & free & mask;
            if found != 0 {
                return Some(n * 64 + found.trailing_zeros() as usize);
            }
            mask = !0;
        }
        None
    }

    /// Notes that an input was served: the next search starts behind it.
    #[inline]
    pub(super) fn serve(&mut self, input: usize) {
        self.start = input + 1;
    }

    /// Removes the request of an input.
    #[inline]
    pub(super) fn withdraw(&mut self, input: usize) {
        self.requests.set(input, false);
        self.n -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grants a request, serves it and removes it.
    fn take(arbiter: &mut RoundRobin, free: &BitVec<u64>) -> Option<usize> {
        let input = arbiter.grant(free)?;
        arbiter.serve(input);
        arbiter.withdraw(input);
        Some(input)
    }

    #[test]
    fn all_inputs_request_always_each_is_served_in_turn() {
        for inputs in [64, 128, 130] {
            let (mut arbiter, free) = (RoundRobin::new(inputs), BitVec::repeat(true, inputs));
            (0..inputs).for_each(|input| arbiter.request(input));
            for round in 0..3 {
                for input in 0..inputs {
                    assert_eq!(take(&mut arbiter, &free), Some(input), "round {round}");
                    arbiter.request(input);
                }
            }
        }
    }

    #[test]
    fn input_that_requests_again_waits_for_the_others() {
        let (mut arbiter, free) = (RoundRobin::new(128), BitVec::repeat(true, 128));
        [3, 64, 127].into_iter().for_each(|input| arbiter.request(input));
        assert_eq!(take(&mut arbiter, &free), Some(3));
        arbiter.request(3);
        let order: Vec<_> = std::iter::from_fn(|| take(&mut arbiter, &free)).collect();
        assert_eq!(order, [64, 127, 3]);
        assert_eq!(arbiter.n_requests(), 0);
    }

    #[test]
    fn busy_input_is_passed_over_and_keeps_its_request() {
        let (mut arbiter, mut free) = (RoundRobin::new(70), BitVec::repeat(true, 70));
        [5, 66].into_iter().for_each(|input| arbiter.request(input));
        free.set(5, false);
        assert_eq!(take(&mut arbiter, &free), Some(66));
        assert_eq!(arbiter.grant(&free), None);
        free.set(5, true);
        assert_eq!((arbiter.n_requests(), take(&mut arbiter, &free)), (1, Some(5)));
    }
}
