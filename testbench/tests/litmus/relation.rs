//! Binary relations over at most 32 events, as one word of successors per event.

/// Maximum number of events.
pub const MOST: usize = 32;

/// A relation: bit `b` of word `a` is set if `a` precedes `b`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relation([u32; MOST]);

impl Relation {
    pub const EMPTY: Self = Self([0; MOST]);

    pub fn add(&mut self, a: usize, b: usize) {
        self.0[a] |= 1 << b;
    }

    pub fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] >> b & 1 != 0
    }

    /// Adds every pair of `other`.
    pub fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }

    /// Keeps the pairs that `keep` accepts.
    pub fn retain(&mut self, keep: impl Fn(usize, usize) -> bool) {
        for a in 0..MOST {
            for b in 0..MOST {
                if self.has(a, b) && !keep(a, b) {
                    self.0[a] &= !(1 << b);
                }
            }
        }
    }

    /// Pairs of `self` followed by a pair of `next`.
    pub fn then(&self, next: &Self) -> Self {
        let mut pairs = Self::EMPTY;
        for a in 0..MOST {
            for b in (0..MOST).filter(|&b| self.has(a, b)) {
                pairs.0[a] |= next.0[b];
            }
        }
        pairs
    }

    /// Makes the relation transitive.
    pub fn close(&mut self) {
        for middle in 0..MOST {
            let after = self.0[middle];
            for row in &mut self.0 {
                if *row >> middle & 1 != 0 {
                    *row |= after;
                }
            }
        }
    }

    /// True if no chain of pairs returns to its start.
    pub fn is_acyclic(&self) -> bool {
        let mut closed = *self;
        closed.close();
        (0..MOST).all(|event| !closed.has(event, event))
    }
}

#[test]
fn closure_follows_chains_and_shows_a_cycle() {
    let mut chain = Relation::EMPTY;
    chain.add(0, 1);
    chain.add(1, 31);
    assert!(chain.is_acyclic());
    let mut closed = chain;
    closed.close();
    assert!(closed.has(0, 31) && !closed.has(31, 0));
    assert!(chain.then(&chain).has(0, 31) && !chain.then(&chain).has(0, 1));
    chain.add(31, 0);
    assert!(!chain.is_acyclic());
    chain.retain(|a, _| a != 31);
    assert!(chain.is_acyclic());
}
