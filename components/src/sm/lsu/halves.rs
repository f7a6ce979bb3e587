//! The commonest accesses of shared memory: each half of a whole warp wants one word, or a row of sixteen.
//!
//! So is an access of 32 words in a row, of one word by all lanes, and of two rows or columns of a tile sixteen wide. What is true of all
//! lanes is seen here at once, and the words are moved together.

use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};

use super::banks::BANKS;

/// Lanes of a half.
const LANES: usize = WARP_SIZE / 2;

/// How far each lane's address is from the first one's: of one word, and of a row.
const ONE: [u64; LANES] = [0; LANES];
const ROW: [u64; LANES] = row();

const fn row() -> [u64; LANES] {
    let mut row = [0; LANES];
    let mut n = 0;
    while n < LANES {
        row[n] = 4 * n as u64;
        n += 1;
    }
    row
}

/// What half a warp wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Half {
    /// Byte offset of the first lane's word.
    first: usize,
    /// Words: one for all lanes, or one for each.
    words: usize,
}

/// What the two halves of a whole warp want, a word of 4 aligned bytes in each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halves([Half; 2]);

impl Halves {
    /// Nothing, if the access is another.
    #[inline]
    pub fn of(addresses: &[u64; WARP_SIZE], lanes: LaneMask) -> Option<Self> {
        let (halves, _) = addresses.as_chunks::<LANES>();
        if lanes != LaneMask::ALL {
            return None;
        }
        Some(Halves([Half::of(&halves[0])?, Half::of(&halves[1])?]))
    }

    /// Passes of the access: no half has two words of a bank, and the two have none if their words lie in a row that is no longer
    /// than the banks.
    #[inline]
    pub fn passes(self) -> u32 {
        let [low, high] = self.0;
        let shares_banks = low.banks() & high.banks() != 0;
        let spread = low.end().max(high.end()) - low.first.min(high.first);
        1 + u32::from(shares_banks && spread > 4 * BANKS)
    }

    /// Loads the words.
    #[inline]
    pub fn load(self, own: &[u8], to: &mut Lanes) {
        for (half, to) in self.0.iter().zip(to.0.as_chunks_mut::<LANES>().0) {
            let (words, _) = own[half.first..half.end()].as_chunks();
            if let [word] = words {
                to.fill(u32::from_le_bytes(*word));
            } else {
                to.iter_mut()
                    .zip(words)
                    .for_each(|(to, word)| *to = u32::from_le_bytes(*word));
            }
        }
    }

    /// Stores the words: of several lanes on one word the last one's.
    #[inline]
    pub fn store(self, own: &mut [u8], from: &Lanes) {
        for (half, from) in self.0.iter().zip(from.0.as_chunks::<LANES>().0) {
            let (words, _) = own[half.first..half.end()].as_chunks_mut();
            if let [word] = words {
                *word = from[LANES - 1].to_le_bytes();
            } else {
                words
                    .iter_mut()
                    .zip(from)
                    .for_each(|(word, from)| *word = from.to_le_bytes());
            }
        }
    }
}

impl Half {
    #[inline]
    fn of(addresses: &[u64; LANES]) -> Option<Self> {
        let first = addresses[0];
        let (steps, words) = match addresses[1].wrapping_sub(first) {
            0 => (&ONE, 1),
            4 => (&ROW, LANES),
            _ => return None,
        };
        let off = |(address, step): (&u64, &u64)| address.wrapping_sub(first) ^ step;
        let differ = addresses.iter().zip(steps).map(off).fold(0, |any, off| any | off);
        (differ == 0).then_some(Half {
            first: first as usize,
            words,
        })
    }

    /// The byte after its last.
    #[inline]
    fn end(self) -> usize {
        self.first + 4 * self.words
    }

    /// The banks of its words, bit i for bank i.
    #[inline]
    fn banks(self) -> u32 {
        LaneMask::first(self.words as u32)
            .0
            .rotate_left((self.first / 4 % BANKS) as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sm::lsu::banks::passes;

    /// Two halves of one word or a row each, near each other or not, and now and then a lane that is elsewhere.
    fn addresses() -> impl Strategy<Value = [u64; WARP_SIZE]> {
        let half = || (0..80u64, any::<bool>());
        (
            half(),
            half(),
            prop_oneof![3 => Just(None), 1 => (0..WARP_SIZE, 0..80u64).prop_map(Some)],
        )
            .prop_map(|(low, high, other)| {
                let word = |lane: usize| {
                    let (first, is_row) = if lane < LANES { low } else { high };
                    first + if is_row { (lane % LANES) as u64 } else { 0 }
                };
                std::array::from_fn(|lane| match other {
                    Some((n, word)) if n == lane => 4 * word,
                    _ => 4 * word(lane),
                })
            })
    }

    proptest! {
        #[test]
        fn any_halves_pass_load_and_store_as_lane_by_lane(
            addresses in addresses(),
            bytes: [u8; 512],
            words: [u32; WARP_SIZE],
        ) {
            let Some(halves) = Halves::of(&addresses, LaneMask::ALL) else {
                let word = |n: usize| addresses[n] / 4;
                let is_half = |n: usize| {
                    (1..LANES).all(|lane| word(n + lane) == word(n))
                        || (1..LANES).all(|lane| word(n + lane) == word(n) + lane as u64)
                };
                prop_assert!(!is_half(0) || !is_half(LANES));
                return Ok(());
            };
            prop_assert_eq!(halves.passes(), passes(&addresses, LaneMask::ALL, 4));
            let mut loaded = Lanes::ZERO;
            halves.load(&bytes, &mut loaded);
            let (mut stored, mut expected) = (bytes, bytes);
            halves.store(&mut stored, &Lanes(words));
            for lane in 0..WARP_SIZE {
                let at = addresses[lane] as usize;
                prop_assert_eq!(&loaded.0[lane].to_le_bytes()[..], &bytes[at..at + 4]);
                expected[at..at + 4].copy_from_slice(&words[lane].to_le_bytes());
            }
            prop_assert_eq!(stored, expected);
        }
    }

    #[test]
    fn warp_that_is_not_whole_is_no_two_halves() {
        assert_eq!(Halves::of(&[0; WARP_SIZE], LaneMask::first(31)), None);
    }
}
