//! Cycles of the global clock, and clock domains with an exact ratio to it.

use std::fmt;
use std::ops::{Add, AddAssign, Range, Sub};

/// A point in time, in cycles of the global clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cycle(pub u64);

impl Cycle {
    /// The first cycle.
    pub const ZERO: Cycle = Cycle(0);
    /// A cycle later than any that a machine reaches.
    pub const NEVER: Cycle = Cycle(u64::MAX);

    /// The last cycle that a machine may reach: 23 hours of a GPU at 1.7 GHz. A link stores a cycle and other bits in one word.
    pub const LAST: Cycle = Cycle(u64::MAX >> 17);

    /// The number of cycles since `earlier`, or 0 if `earlier` is later.
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

/// A clock domain with `num / den` times the frequency of the global clock. Its edge k is at global time k * den / num.
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

/// A divisor n with its reciprocal, because a multiplication is faster than a division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Divisor {
    n: u64,
    /// 2^64 / n, rounded down.
    inverse: u64,
}

impl Divisor {
    const fn new(n: u64) -> Self {
        Divisor {
            n,
            // Computed without 2^64, which has 65 bits. For n = 1 it is one too low, which `divide` corrects.
            inverse: if n == 1 {
                u64::MAX
            } else {
                (u64::MAX / n) + (u64::MAX % n + 1) / n
            },
        }
    }

    /// The quotient x / n and the remainder.
    #[inline]
    const fn divide(self, x: u64) -> (u64, u64) {
        // At most one too low, because the inverse and the product are rounded down.
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
    /// The global clock.
    pub const GLOBAL: Domain = Domain {
        num: Divisor::new(1),
        den: Divisor::new(1),
    };

    /// Creates a domain with `num / den` times the frequency of the global clock.
    ///
    /// # Panics
    /// If `num` or `den` is 0.
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

    /// The edges of this clock in global cycle `now`.
    #[inline]
    pub fn edges(self, now: Cycle) -> Range<u64> {
        let (num, den) = (self.num.n, self.den.n);
        if num == den {
            // The ratio is in lowest terms, so both are 1: edge k is cycle k.
            return now.0..now.0 + 1;
        }
        // In units of 1 / num of a cycle: the cycle has `num` units, and the edges are `den` units apart.
        let (first, before) = self.first_edge(now.0);
        let from_first = num.saturating_sub(before);
        // Most often the cycle has no edge or one, which needs no division.
        let n = if from_first <= den {
            u64::from(from_first > 0)
        } else {
            from_first.div_ceil(den)
        };
        first..first + n
    }

    /// The global cycle that contains an edge of this clock.
    #[inline]
    pub fn cycle_of(self, edge: u64) -> Cycle {
        let (num, den) = (self.num.n, self.den.n);
        if num == den {
            return Cycle(edge);
        }
        Cycle(match edge.checked_mul(den) {
            Some(product) => self.num.divide(product).0,
            // A long run exceeds 64 bits.
            None => (u128::from(edge) * u128::from(den) / u128::from(num)) as u64,
        })
    }

    /// The first edge in or after cycle `n`, and its distance from the begin of the cycle. The unit is 1 / num of a cycle.
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
        // Rounded up: the first k with k * den / num at or after cycle n.
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
    fn edges_of_a_slower_clock_are_in_the_cycle_that_lists_them() {
        let domain = Domain::new(877, 1530);
        // The product of a late edge has more than 64 bits.
        for now in (0..5000).chain(u64::MAX / 100..u64::MAX / 100 + 5000).map(Cycle) {
            for edge in domain.edges(now) {
                assert_eq!(domain.cycle_of(edge), now);
            }
        }
    }

    #[test]
    fn edges_of_a_cycle_are_not_before_it_and_not_after_it() {
        let falls_before = |domain: Domain, edge: u64, cycle: u64| {
            u128::from(edge) * u128::from(domain.den.n) < u128::from(cycle) * u128::from(domain.num.n)
        };
        for (num, den) in [(877, 1530), (2619, 1980), (1, 7), (7, 1), (13, 4)] {
            let domain = Domain::new(num, den);
            for now in (0..300).chain(u64::MAX / 100..u64::MAX / 100 + 300) {
                let edges = domain.edges(Cycle(now));
                for (edge, cycle) in [(edges.start, now), (edges.end, now + 1)] {
                    assert!(!falls_before(domain, edge, cycle), "{domain:?} {now}: {edges:?}");
                    assert!(edge == 0 || falls_before(domain, edge - 1, cycle), "{domain:?} {now}");
                }
            }
        }
    }

    #[test]
    fn division_by_reciprocal_is_exact() {
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
    fn faster_clock_loses_no_edge() {
        let domain = Domain::new(2619, 1980);
        let edges: Vec<u64> = (0..1980).flat_map(|n| domain.edges(Cycle(n))).collect();
        assert_eq!(edges, (0..2619).collect::<Vec<_>>());
    }
}
