//! The plain interleave: number x goes to place x mod n. Preset word `modulo`.
//!
//! Strides that share a factor with n use only part of the places.

/// The plain interleave over `n` places.
#[derive(Clone, Copy, Debug)]
pub struct Modulo {
    n: u64,
}

impl Modulo {
    /// A plain interleave over `n` places, at least 1.
    pub fn new(n: u32) -> Self {
        Modulo { n: u64::from(n) }
    }

    /// Number of places.
    pub fn places(&self) -> u32 {
        self.n as u32
    }

    /// The number of the run of `x`: x / n.
    #[inline]
    pub fn run(&self, x: u64) -> u64 {
        x / self.n
    }

    /// The place of `x`, and the number of its run.
    #[inline]
    pub fn map(&self, x: u64) -> (u32, u64) {
        ((x % self.n) as u32, x / self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_take_the_places_in_turn() {
        let modulo = Modulo::new(3);
        let mapped = [0, 1, 2, 3, 7].map(|x| modulo.map(x));
        assert_eq!(mapped, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 2)]);
        assert_eq!((modulo.places(), modulo.run(7)), (3, 2));
    }
}
