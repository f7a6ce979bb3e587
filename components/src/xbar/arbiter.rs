//! Round robin among the inputs that want one output.

use super::ports::Ports;

/// Which inputs want an output, and whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct RoundRobin {
    /// Those that want it, where there are several: one alone needs no search.
    wanted: Ports,
    n_wanted: u32,
    /// The numbers of all that want it, exclusive-or'ed: the number itself where there is one.
    all: usize,
    turn: usize,
}

impl RoundRobin {
    /// Nobody among `inputs` wants it; input 0 is first.
    pub(super) fn new(inputs: usize) -> Self {
        RoundRobin {
            wanted: Ports::none(inputs),
            n_wanted: 0,
            all: 0,
            turn: 0,
        }
    }

    /// An input wants it. It must not have done so already.
    #[inline]
    pub(super) fn want(&mut self, input: usize) {
        if self.n_wanted != 0 {
            if self.n_wanted == 1 {
                self.wanted.add(self.all);
            }
            self.wanted.add(input);
        }
        self.n_wanted += 1;
        self.all ^= input;
    }

    /// Inputs that want it.
    #[inline]
    pub(super) fn n_wanted(&self) -> u32 {
        self.n_wanted
    }

    /// The input whose turn it is: the first that wants it after the one served last. It is taken off.
    #[inline]
    pub(super) fn grant(&mut self) -> Option<usize> {
        let input = match self.n_wanted {
            0 => return None,
            1 => self.all,
            _ => self.take_next()?,
        };
        self.n_wanted -= 1;
        self.all ^= input;
        self.turn = input + 1;
        Some(input)
    }

    /// The next of several.
    fn take_next(&mut self) -> Option<usize> {
        let after = self.wanted.first_from(self.turn);
        let input = after.or_else(|| self.wanted.first_from(0))?;
        self.wanted.remove(input);
        if self.n_wanted == 2 {
            self.wanted.remove(self.all ^ input);
        }
        Some(input)
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
