//! Interleaves: distribute numbers over n places, one to one with the pairs of a place and a run.
//!
//! | Preset word | Interleave | Place of x among n |
//! |---|---|---|
//! | `hash` | [`Hash`] | a polynomial hash of x: nearly even for each stride |
//! | `modulo` | [`Modulo`] | x mod n: uneven for strides that share a factor with n |
//! | `scatter` | [`Scatter`] | the hash of a permuted x: few consecutive numbers meet as by chance |
//!
//! With `hash` and `modulo` each aligned run of n numbers covers each place once. With `scatter` it is each block of 4,096 numbers that is even.
//!
//! The keys `l2.mapping` and `hbm.mapping` choose it ([`super::AddressMap`]).
//!
//! ```
//! use warpwave_components::config::Mapping;
//! use warpwave_components::proto::noc::Interleave;
//!
//! let interleave = Interleave::new(Mapping::Hash, 80);
//! let mut seen = [0; 80];
//! (8000..8080).for_each(|x| seen[interleave.map(x).0 as usize] += 1);
//! assert_eq!(seen, [1; 80]);
//! ```

use super::hash::Hash;
use super::modulo::Modulo;
use super::scatter::Scatter;
use crate::config::Mapping;

/// An interleave over any number of places.
#[derive(Clone, Debug)]
pub enum Interleave {
    /// By a polynomial hash.
    Hash(Hash),
    /// By the remainder.
    Modulo(Modulo),
    /// By a permutation of each aligned block of numbers, then by a polynomial hash.
    Scatter(Scatter),
}

impl Interleave {
    /// The interleave of a preset word over `n` places, at least 1.
    pub fn new(mapping: Mapping, n: u32) -> Self {
        match mapping {
            Mapping::Hash => Interleave::Hash(Hash::new(n)),
            Mapping::Modulo => Interleave::Modulo(Modulo::new(n)),
            Mapping::Scatter => Interleave::Scatter(Scatter::new(n)),
        }
    }

    /// Number of places.
    pub fn places(&self) -> u32 {
        match self {
            Interleave::Hash(hash) => hash.places(),
            Interleave::Modulo(modulo) => modulo.places(),
            Interleave::Scatter(scatter) => scatter.places(),
        }
    }

    /// The number of the run of `x`: x / n.
    #[inline]
    pub fn run(&self, x: u64) -> u64 {
        match self {
            Interleave::Hash(hash) => hash.run(x),
            Interleave::Modulo(modulo) => modulo.run(x),
            Interleave::Scatter(scatter) => scatter.run(x),
        }
    }

    /// The place of `x`, and the number of its run. No two numbers share both.
    #[inline]
    pub fn map(&self, x: u64) -> (u32, u64) {
        match self {
            Interleave::Hash(hash) => hash.map(x),
            Interleave::Modulo(modulo) => modulo.map(x),
            Interleave::Scatter(scatter) => scatter.map(x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [u32; 14] = [1, 2, 3, 5, 6, 12, 20, 24, 32, 40, 48, 64, 80, 96];

    #[test]
    fn whole_blocks_cover_every_place_equally() {
        for (n, mapping) in COUNTS
            .into_iter()
            .flat_map(|n| Mapping::ALL.map(|mapping| (n, mapping)))
        {
            let interleave = Interleave::new(mapping, n);
            let mut seen = vec![0; n as usize];
            (0..u64::from(n) * 4096).for_each(|x| seen[interleave.map(x).0 as usize] += 1);
            assert!(seen.iter().all(|&times| times == 4096), "{n} places: {seen:?}");
        }
    }

    #[test]
    fn hash_and_scatter_give_no_place_twice_its_share_for_any_stride() {
        let mappings = [Mapping::Hash, Mapping::Scatter];
        for (n, mapping) in COUNTS.into_iter().flat_map(|n| mappings.map(|mapping| (n, mapping))) {
            let hash = Interleave::new(mapping, n);
            for stride in (0..14).map(|k| 1u64 << k).chain([3, 5, 10, 80, 96, 1000, 5120]) {
                let mut seen = vec![0u32; n as usize];
                let samples = u64::from(n) * 400;
                (0..samples).for_each(|i| seen[hash.map(2_097_152 + i * stride).0 as usize] += 1);
                let (least, most) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
                assert!(
                    *most < 800 && *least > 100,
                    "{mapping:?}, {n} places, stride {stride}: {least} to {most} of 400"
                );
            }
        }
    }

    #[test]
    fn stride_of_n_uses_one_place_with_modulo_and_all_with_hash_and_scatter() {
        let places = |mapping| {
            let interleave = Interleave::new(mapping, 8);
            let places = (0..64).map(|n| 1 << interleave.map(8 * n).0);
            places.fold(0u32, |seen, place| seen | place).count_ones()
        };
        assert_eq!(Mapping::ALL.map(places), [8, 1, 8]);
    }
}
