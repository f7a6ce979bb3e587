//! Cycles of the global clock, and clocks that run at an exact ratio of it.

use std::fmt;
use std::ops::{Add, AddAssign, Range, Sub};

/// A point in time, counted in cycles of the global clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cycle(pub u64);

impl Cycle {
    /// The first cycle.
    pub const ZERO: Cycle = Cycle(0);
    /// Later than any cycle that is ever reached.
    pub const NEVER: Cycle = Cycle(u64::MAX);

    /// Cycles from `earlier` to here; 0 if it is not earlier.
    pub const fn since(self, earlier: Cycle) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Cycle {
    type Output = Cycle;
    fn add(self, cycles: u64) -> Cycle {
        Cycle(self.0 + cycles)
    }
}

impl AddAssign<u64> for Cycle {
    fn add_assign(&mut self, cycles: u64) {
        self.0 += cycles;
    }
}

impl Sub for Cycle {
    type Output = u64;
    fn sub(self, earlier: Cycle) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

/// A clock whose frequency is `num / den` of the global clock's. Its edge k falls at global time k * den / num.
///
/// ```
/// use warpwave_hw::time::{Cycle, Domain};
/// let memory = Domain::new(2, 3); // 2 memory edges in 3 core cycles
/// let edges: u64 = (0..300).map(|n| memory.edges(Cycle(n)).count() as u64).sum();
/// assert_eq!(edges, 200);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Domain {
    num: u64,
    den: u64,
}

impl Domain {
    /// The global clock itself.
    pub const GLOBAL: Domain = Domain { num: 1, den: 1 };

    /// A clock at `num / den` of the global one. Neither may be zero.
    pub fn new(num: u64, den: u64) -> Self {
        assert!(
            num > 0 && den > 0,
            "a clock domain needs a ratio above zero, not {num}/{den}"
        );
        let divisor = gcd(num, den);
        Domain {
            num: num / divisor,
            den: den / divisor,
        }
    }

    /// This clock's edges that fall into global cycle `now`.
    #[inline]
    pub fn edges(self, now: Cycle) -> Range<u64> {
        if self.num == self.den {
            return now.0..now.0 + 1;
        }
        let first = self.first_edge(now.0);
        // Distances in the cycle, `num` long, with an edge every `den`: less than `den` to the first one, whatever overflows.
        let before = first.wrapping_mul(self.den).wrapping_sub(now.0.wrapping_mul(self.num));
        let from_first = self.num.saturating_sub(before);
        // A second division only where a cycle has several edges.
        let n = if from_first <= self.den {
            u64::from(from_first > 0)
        } else {
            from_first.div_ceil(self.den)
        };
        first..first + n
    }

    /// The global cycle into which this clock's edge falls.
    #[inline]
    pub fn cycle_of(self, edge: u64) -> Cycle {
        if self.num == self.den {
            return Cycle(edge);
        }
        Cycle(match edge.checked_mul(self.den) {
            Some(product) => product / self.num,
            None => (u128::from(edge) * u128::from(self.den) / u128::from(self.num)) as u64,
        })
    }

    /// The first edge that does not fall before cycle `n`. Wide division is slow, and seldom needed.
    fn first_edge(self, n: u64) -> u64 {
        match n.checked_mul(self.num) {
            Some(product) => product.div_ceil(self.den),
            None => (u128::from(n) * u128::from(self.num)).div_ceil(u128::from(self.den)) as u64,
        }
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_clock_every_edge_falls_into_the_cycle_that_lists_it() {
        let domain = Domain::new(877, 1530);
        for now in (0..5000).map(Cycle) {
            for edge in domain.edges(now) {
                assert_eq!(domain.cycle_of(edge), now);
            }
        }
    }

    #[test]
    fn edges_of_a_cycle_are_those_that_begin_no_earlier_than_it_and_before_the_next() {
        let falls_before = |domain: Domain, edge: u64, cycle: u64| {
            u128::from(edge) * u128::from(domain.den) < u128::from(cycle) * u128::from(domain.num)
        };
        for (num, den) in [(877, 1530), (2619, 1980), (1, 7), (7, 1), (13, 4)] {
            let domain = Domain::new(num, den);
            for now in (0..300).chain(u64::MAX / 1000..u64::MAX / 1000 + 300) {
                let edges = domain.edges(Cycle(now));
                for (edge, cycle) in [(edges.start, now), (edges.end, now + 1)] {
                    assert!(!falls_before(domain, edge, cycle), "{domain:?} {now}: {edges:?}");
                    assert!(edge == 0 || falls_before(domain, edge - 1, cycle), "{domain:?} {now}");
                }
            }
        }
    }

    #[test]
    fn faster_clock_has_several_edges_in_a_cycle_and_loses_none() {
        let domain = Domain::new(2619, 1980);
        let edges: Vec<u64> = (0..1980).flat_map(|n| domain.edges(Cycle(n))).collect();
        assert_eq!(edges, (0..2619).collect::<Vec<_>>());
    }
}
