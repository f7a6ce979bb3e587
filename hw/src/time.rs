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

    /// The last cycle that a machine may reach, after 23 hours of a GPU at 1.7 GHz: links keep the other bits of a word for
    /// themselves.
    pub const LAST: Cycle = Cycle(u64::MAX >> 17);

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
    num: Divisor,
    den: Divisor,
}

/// A number, and 2^64 divided by it, rounded down: wide division is slow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Divisor {
    n: u64,
    inverse: u64,
}

impl Divisor {
    const fn new(n: u64) -> Self {
        Divisor {
            n,
            inverse: if n == 1 {
                u64::MAX
            } else {
                (u64::MAX / n) + (u64::MAX % n + 1) / n
            },
        }
    }

    /// x / n, and what is left.
    #[inline]
    const fn divide(self, x: u64) -> (u64, u64) {
        // One too low at most, as both factors are rounded down.
        let low = ((x as u128 * self.inverse as u128) >> 64) as u64;
        let rest = x - low * self.n;
        if rest >= self.n {
            (low + 1, rest - self.n)
        } else {
            (low, rest)
        }
    }
}

impl Domain {
    /// The global clock itself.
    pub const GLOBAL: Domain = Domain {
        num: Divisor::new(1),
        den: Divisor::new(1),
    };

    /// A clock at `num / den` of the global one. Neither may be zero.
    pub fn new(num: u64, den: u64) -> Self {
        assert!(
            num > 0 && den > 0,
            "a clock domain needs a ratio above zero, not {num}/{den}"
        );
        let divisor = gcd(num, den);
        Domain {
            num: Divisor::new(num / divisor),
            den: Divisor::new(den / divisor),
        }
    }

    /// This clock's edges that fall into global cycle `now`.
    #[inline]
    pub fn edges(self, now: Cycle) -> Range<u64> {
        let (num, den) = (self.num.n, self.den.n);
        if num == den {
            return now.0..now.0 + 1;
        }
        // Distances in the cycle, `num` long, with an edge every `den`: less than `den` to the first one.
        let (first, before) = self.first_edge(now.0);
        let from_first = num.saturating_sub(before);
        // A second division only where a cycle has several edges.
        let n = if from_first <= den {
            u64::from(from_first > 0)
        } else {
            from_first.div_ceil(den)
        };
        first..first + n
    }

    /// The global cycle into which this clock's edge falls.
    #[inline]
    pub fn cycle_of(self, edge: u64) -> Cycle {
        let (num, den) = (self.num.n, self.den.n);
        if num == den {
            return Cycle(edge);
        }
        Cycle(match edge.checked_mul(den) {
            Some(product) => self.num.divide(product).0,
            None => (u128::from(edge) * u128::from(den) / u128::from(num)) as u64,
        })
    }

    /// The first edge that does not fall before cycle `n`, and how far behind its beginning.
    #[inline]
    fn first_edge(self, n: u64) -> (u64, u64) {
        let den = self.den.n;
        let (edge, rest) = match n.checked_mul(self.num.n) {
            Some(product) => self.den.divide(product),
            None => {
                let (product, den) = (u128::from(n) * u128::from(self.num.n), u128::from(den));
                ((product / den) as u64, (product % den) as u64)
            }
        };
        if rest == 0 { (edge, 0) } else { (edge + 1, den - rest) }
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
            u128::from(edge) * u128::from(domain.den.n) < u128::from(cycle) * u128::from(domain.num.n)
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
    fn division_without_dividing_agrees_with_division() {
        for n in [
            1,
            2,
            3,
            7,
            877,
            1530,
            1 << 20,
            (1 << 32) - 1,
            (1 << 32) + 1,
            u64::MAX / 2,
            u64::MAX,
        ] {
            let divisor = Divisor::new(n);
            let around = |x: u64| [x.wrapping_sub(1), x, x.wrapping_add(1)];
            let products = [1, 2, 3, 1000, 1 << 31].map(|k: u64| n.wrapping_mul(k));
            for x in products
                .into_iter()
                .chain([0, u64::MAX / 3, u64::MAX - 1])
                .flat_map(around)
            {
                assert_eq!(divisor.divide(x), (x / n, x % n), "{x} / {n}");
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
