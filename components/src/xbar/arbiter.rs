//! Round robin among the inputs that want one output.

/// Which inputs want an output, and whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct RoundRobin {
    wanted: Box<[u64]>,
    n_wanted: u32,
    turn: usize,
}

impl RoundRobin {
    /// Nobody among `inputs` wants it; input 0 is first.
    pub(super) fn new(inputs: usize) -> Self {
        RoundRobin {
            wanted: vec![0; inputs.div_ceil(64)].into(),
            n_wanted: 0,
            turn: 0,
        }
    }

    /// An input wants it. It must not have done so already.
    #[inline]
    pub(super) fn want(&mut self, input: usize) {
        self.wanted[input / 64] |= 1 << (input % 64);
        self.n_wanted += 1;
    }

    /// Inputs that want it.
    #[inline]
    pub(super) fn n_wanted(&self) -> u32 {
        self.n_wanted
    }

    /// The input whose turn it is: the first that wants it after the one served last. It is taken off.
    #[inline]
    pub(super) fn grant(&mut self) -> Option<usize> {
        let input = self.first_from(self.turn).or_else(|| self.first_from(0))?;
        self.wanted[input / 64] &= !(1 << (input % 64));
        self.n_wanted -= 1;
        self.turn = input + 1;
        Some(input)
    }

    fn first_from(&self, first: usize) -> Option<usize> {
        let word = first / 64;
        let below = |n: usize| if n == word { (1u64 << (first % 64)) - 1 } else { 0 };
        (word..self.wanted.len())
            .map(|n| (n, self.wanted[n] & !below(n)))
            .find(|&(_, bits)| bits != 0)
            .map(|(n, bits)| n * 64 + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_want_always_each_is_served_in_turn() {
        let mut arbiter = RoundRobin::new(130);
        (0..130).for_each(|input| arbiter.want(input));
        for round in 0..3 {
            for input in 0..130 {
                assert_eq!(arbiter.grant(), Some(input), "round {round}");
                arbiter.want(input);
            }
        }
    }

    #[test]
    fn served_input_wants_again_the_others_go_first() {
        let mut arbiter = RoundRobin::new(128);
        [3, 64, 127].into_iter().for_each(|input| arbiter.want(input));
        assert_eq!(arbiter.grant(), Some(3));
        arbiter.want(3);
        let order: Vec<_> = std::iter::from_fn(|| arbiter.grant()).collect();
        assert_eq!(order, [64, 127, 3]);
        assert_eq!(arbiter.n_wanted(), 0);
    }
}
