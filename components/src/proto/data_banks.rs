//! Bank conflicts of the array that shared memory and the L1 share: the passes that an access takes.
//!
//! Each of the 32 banks delivers one word of 4 bytes per pass. Lanes on one word share it. Different words of one bank take one pass
//! each. An 8-byte access is two requests of 16 lanes, a 16-byte access four of 8 (source: `cuda_guide`).

use warpwave_isa::lane::LaneMask;

use crate::proto::addresses::{WarpAddresses, requests};

/// Banks of the array.
pub const BANKS: u64 = 32;

/// Passes of an access of `bytes` aligned bytes per lane, at least 1.
pub fn passes(addresses: &WarpAddresses, lanes: LaneMask, bytes: u32) -> u32 {
    let words = bytes.div_ceil(4).into();
    let of_request = |lanes: LaneMask| match is_conflict_free(addresses, lanes, words) {
        true => 1,
        false => busiest_bank(addresses, lanes, words),
    };
    requests(lanes, bytes).map(of_request).sum::<u32>().max(1)
}

/// Passes of an atomic, at least 1. Lanes on one word take one pass each.
pub fn atomic_passes(addresses: &WarpAddresses, lanes: LaneMask, bytes: u32) -> u32 {
    let words = u64::from(bytes.div_ceil(4));
    let of_request = |lanes: LaneMask| {
        let mut counts = [0; BANKS as usize];
        // No sharing: each lane reads and writes its word on its own.
        for lane in lanes.iter() {
            let first = addresses.get(lane) / 4;
            for word in first..first + words {
                counts[(word % BANKS) as usize] += 1;
            }
        }
        counts.into_iter().max().unwrap_or(0)
    };
    requests(lanes, bytes).map(of_request).sum::<u32>().max(1)
}

/// Passes of the same access without conflicts, at least 1.
pub fn least_passes(lanes: LaneMask, bytes: u32) -> u32 {
    (requests(lanes, bytes).count() as u32).max(1)
}

/// A fast test that recognizes most requests without conflicts. True if all words are within 64 words and no two share a bank, or if no
/// two runs share a bank.
#[inline]
fn is_conflict_free(addresses: &WarpAddresses, lanes: LaneMask, words: u64) -> bool {
    let Some(first) = lanes.lowest() else { return true };
    // Words are numbered so that the first one has number 32. Numbers 0 to 63 are bits of one host word.
    let start = BANKS.wrapping_sub(addresses.get(first) / 4);
    let (mut accessed, mut any, mut n_words) = (0u64, 0, 0);
    addresses.for_each_run(lanes, words, |word, n| {
        let number = word.wrapping_add(start);
        accessed |= ((1u64 << n) - 1).rotate_left(number as u32 % 64);
        any |= number | number.wrapping_add(n - 1);
        n_words += n;
    });
    let (low, high) = (accessed & u64::from(u32::MAX), accessed >> BANKS);
    let is_near = any < 2 * BANKS;
    is_near && low & high == 0 || u64::from((low | high).count_ones()) == n_words
}

/// The end of a chain.
const NONE: u8 = u8::MAX;

/// The most distinct words on one bank. A request accesses at most 32 words.
fn busiest_bank(addresses: &WarpAddresses, lanes: LaneMask, words: u64) -> u32 {
    // The known words of a bank form a chain, from the newest to the oldest.
    let (mut known, mut older, mut n) = ([0u64; BANKS as usize], [NONE; BANKS as usize], 0);
    let (mut newest, mut counts) = ([NONE; BANKS as usize], [0u32; BANKS as usize]);
    let mut above = 0;
    addresses.for_each_run(lanes, words, |first, n_words| {
        for word in first..first + n_words {
            let bank = (word % BANKS) as usize;
            // A word above all known words is new, so rising addresses need no search.
            let mut index = if word >= above { NONE } else { newest[bank] };
            while index != NONE && known[index as usize] != word {
                index = older[index as usize];
            }
            if index == NONE {
                (known[n], older[n], newest[bank]) = (word, newest[bank], n as u8);
                counts[bank] += 1;
                n += 1;
            }
            above = above.max(word + 1);
        }
    });
    counts.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use warpwave_isa::lane::WARP_SIZE;

    use super::*;
    use crate::proto::addresses::tests::{mostly_patterns, pattern};

    fn by(f: impl Fn(u64) -> u64) -> WarpAddresses {
        WarpAddresses::per_lane(std::array::from_fn(|lane| f(lane as u64)))
    }

    #[test]
    fn strided_words_take_the_published_passes() {
        for (stride, expected) in [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1), (3, 1)] {
            assert_eq!(
                passes(&by(|lane| 4 * stride * lane), LaneMask::ALL, 4),
                expected,
                "stride {stride}"
            );
        }
    }

    #[test]
    fn lanes_on_one_word_share_a_load_but_not_an_atomic() {
        assert_eq!(passes(&by(|_| 64), LaneMask::ALL, 4), 1);
        assert_eq!(atomic_passes(&by(|_| 64), LaneMask::ALL, 4), 32);
    }

    #[test]
    fn wide_access_without_conflict_takes_two_and_four_passes() {
        assert_eq!(passes(&by(|lane| 8 * lane), LaneMask::ALL, 8), 2);
        assert_eq!(passes(&by(|lane| 16 * lane), LaneMask::ALL, 16), 4);
    }

    #[test]
    fn lanes_on_bytes_of_one_word_share_it() {
        assert_eq!(passes(&by(|lane| lane), LaneMask::ALL, 1), 1);
    }

    /// Passes of one request, counted bank by bank.
    fn counted(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) -> u32 {
        let words = |lane: usize| (0..bytes.div_ceil(4)).map(move |n| addresses[lane] / 4 + u64::from(n));
        let expected: BTreeSet<u64> = lanes.iter().flat_map(words).collect();
        let of_bank = |bank: u64| expected.iter().filter(|&&word| word % BANKS == bank).count();
        (0..BANKS).map(of_bank).max().unwrap_or(0) as u32
    }

    proptest! {
        #[test]
        fn access_takes_the_passes_of_the_busiest_bank_of_each_request(
            lanes: u32,
            size in 0..5u32,
            units in prop_oneof![Just(1u64), Just(2), Just(16), Just(40), Just(2000)],
            stride in 0..40u64,
            each in prop::array::uniform32(any::<u64>()),
        ) {
            let bytes = 1 << size;
            let addresses: [u64; WARP_SIZE] = std::array::from_fn(|lane| (lane as u64 * stride + each[lane] % units) * u64::from(bytes));
            let per_request = 128 / bytes.max(4);
            let requests = (0..32 / per_request).map(|n| LaneMask(lanes & LaneMask::first(per_request).0 << (n * per_request)));
            let expected: u32 = requests.map(|lanes| counted(&addresses, lanes, bytes)).sum();
            let per_lane = WarpAddresses::per_lane(addresses);
            prop_assert_eq!(passes(&per_lane, LaneMask(lanes), bytes), expected.max(1));
        }

        #[test]
        fn pattern_takes_the_passes_of_its_lanes(addresses in mostly_patterns()) {
            if let Some(pattern) = pattern(&addresses) {
                prop_assert_eq!(passes(&pattern, LaneMask::ALL, 4), counted(&addresses, LaneMask::ALL, 4));
            }
        }
    }

    #[test]
    fn access_without_lanes_takes_one_pass() {
        assert_eq!(passes(&by(|_| 0), LaneMask::NONE, 4), 1);
    }
}
