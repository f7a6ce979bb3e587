//! Bank conflicts of shared memory: how many passes an access takes.
//!
//! 32 banks of 4 bytes give one word each per pass. Lanes on the same word share it; lanes on different words of one bank take a
//! pass each. An 8-byte access is two requests of 16 lanes, a 16-byte one four of 8 (reference rules §3).

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

/// Banks of shared memory.
pub const BANKS: usize = 32;

/// Passes of an access of `bytes` aligned bytes in each of `lanes`; at least 1.
pub fn passes(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) -> u32 {
    match bytes {
        ..=4 => passes_of::<4>(addresses, lanes),
        8 => passes_of::<8>(addresses, lanes),
        _ => passes_of::<16>(addresses, lanes),
    }
}

/// Passes of an access of `N` bytes in each lane; fewer than 4 are as 4 are.
fn passes_of<const N: usize>(addresses: &[u64; WARP_SIZE], lanes: LaneMask) -> u32 {
    requests(lanes, N as u32)
        .map(|members| match is_free_of_conflicts::<N>(addresses, members) {
            true => 1,
            false => degree(addresses, members, N as u32, true),
        })
        .sum::<u32>()
        .max(1)
}

/// Passes of an atomic: lanes on the same word take a pass each, too.
pub fn atomic_passes(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) -> u32 {
    requests(lanes, bytes)
        .map(|members| degree(addresses, members, bytes, false))
        .sum::<u32>()
        .max(1)
}

/// Passes that an access without conflicts takes.
pub fn least_passes(lanes: LaneMask, bytes: u32) -> u32 {
    (requests(lanes, bytes).count() as u32).max(1)
}

/// The lanes of each request of an access: of up to 4 bytes one, of 8 bytes two, of 16 bytes four. Those without lanes are none.
#[inline]
pub fn requests(lanes: LaneMask, bytes: u32) -> impl Iterator<Item = LaneMask> {
    let n = bytes.max(4) / 4;
    let per_request = WARP_SIZE as u32 >> n.trailing_zeros();
    (0..n)
        .map(move |request| LaneMask(LaneMask::first(per_request).0 << (request * per_request)) & lanes)
        .filter(|members| !members.is_empty())
}

/// Whether it is plain to see that no two lanes want different words of one bank, as in most accesses: because the words lie in
/// a row twice as long as the banks, as their bits in one number, or because every lane has a bank to itself.
///
/// Aligned lanes of `N` = 8 or 16 bytes want the same two or four banks or none in common: they go together here as one.
fn is_free_of_conflicts<const N: usize>(addresses: &[u64; WARP_SIZE], members: LaneMask) -> bool {
    let banks = (4 * BANKS / N) as u64;
    let Some(first) = members.lowest() else { return true };
    // The first lane's word is at the start of the second half of the row; only the distance of words counts.
    let start = banks.wrapping_sub(addresses[first] / N as u64);
    let (wanted, any) = members.iter().fold((0u64, 0), |(wanted, any), lane| {
        let place = (addresses[lane] / N as u64).wrapping_add(start);
        (wanted | 1 << (place % (2 * banks)), any | place)
    });
    let (first_half, second_half) = (wanted & ((1 << banks) - 1), wanted >> banks);
    let is_one_row = any < 2 * banks;
    is_one_row && first_half & second_half == 0 || (first_half | second_half).count_ones() == members.count()
}

/// No word.
const NONE: u8 = u8::MAX;

/// The largest number of words wanted of one bank; each word once if `shared`. A request wants at most 32 words: 128 bytes.
fn degree(addresses: &[u64; WARP_SIZE], members: LaneMask, bytes: u32, shared: bool) -> u32 {
    // Lanes whose addresses rise share no word.
    if shared && !rises(addresses, members) {
        return degree_of_shared(addresses, members, bytes);
    }
    let mut counts = [0u8; BANKS];
    for lane in members.iter() {
        let first = (addresses[lane] / 4) as u32;
        for word in first..first + bytes.div_ceil(4) {
            counts[word as usize % BANKS] += 1;
        }
    }
    counts.into_iter().max().unwrap_or(0).into()
}

/// Whether each lane's word is above that of the lane before.
fn rises(addresses: &[u64; WARP_SIZE], members: LaneMask) -> bool {
    // Above by a word at least: bytes of one word share it.
    let mut least = 0;
    members.iter().all(|lane| {
        let word = addresses[lane] / 4;
        let above = word >= least;
        least = word + 1;
        above
    })
}

/// The same, if lanes may share words.
fn degree_of_shared(addresses: &[u64; WARP_SIZE], members: LaneMask, bytes: u32) -> u32 {
    // The words of a bank are a chain from the newest on.
    let (mut words, mut older, mut n) = ([0u32; WARP_SIZE], [NONE; WARP_SIZE], 0);
    let (mut newest, mut counts) = ([NONE; BANKS], [0u8; BANKS]);
    for lane in members.iter() {
        let first = (addresses[lane] / 4) as u32;
        for word in first..first + bytes.div_ceil(4) {
            let bank = word as usize % BANKS;
            let mut at = newest[bank];
            while at != NONE && words[at as usize] != word {
                at = older[at as usize];
            }
            if at == NONE {
                (words[n], older[n], newest[bank]) = (word, newest[bank], n as u8);
                counts[bank] += 1;
                n += 1;
            }
        }
    }
    counts.into_iter().max().unwrap_or(0).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn by(f: impl Fn(u64) -> u64) -> [u64; WARP_SIZE] {
        std::array::from_fn(|lane| f(lane as u64))
    }

    #[test]
    fn stride_of_words_takes_passes_as_taught() {
        for (stride, wanted) in [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1), (3, 1)] {
            assert_eq!(
                passes(&by(|lane| 4 * stride * lane), LaneMask::ALL, 4),
                wanted,
                "stride {stride}"
            );
        }
    }

    #[test]
    fn same_word_is_broadcast_but_atomics_take_turns() {
        assert_eq!(passes(&by(|_| 64), LaneMask::ALL, 4), 1);
        assert_eq!(atomic_passes(&by(|_| 64), LaneMask::ALL, 4), 32);
    }

    #[test]
    fn wide_access_without_conflict_takes_two_and_four_passes() {
        assert_eq!(passes(&by(|lane| 8 * lane), LaneMask::ALL, 8), 2);
        assert_eq!(passes(&by(|lane| 16 * lane), LaneMask::ALL, 16), 4);
    }

    #[test]
    fn bytes_of_one_word_share_it() {
        assert_eq!(passes(&by(|lane| lane), LaneMask::ALL, 1), 1);
    }

    /// Passes of one request, counted bank by bank.
    fn counted(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) -> u32 {
        let words = |lane: usize| (0..bytes.div_ceil(4)).map(move |n| addresses[lane] / 4 + u64::from(n));
        let wanted: BTreeSet<u64> = lanes.iter().flat_map(words).collect();
        let of_bank = |bank: usize| wanted.iter().filter(|&&word| word as usize % BANKS == bank).count();
        (0..BANKS).map(of_bank).max().unwrap_or(0) as u32
    }

    proptest! {
        #[test]
        fn any_aligned_access_takes_the_passes_of_its_busiest_bank_request_by_request(
            lanes: u32,
            size in 0..5u32,
            units in prop_oneof![Just(1u64), Just(2), Just(16), Just(40), Just(2000)],
            stride in 0..40u64,
            each in prop::array::uniform32(any::<u64>()),
        ) {
            let bytes = 1 << size;
            let addresses = std::array::from_fn(|lane| (lane as u64 * stride + each[lane] % units) * u64::from(bytes));
            let per_request = 128 / bytes.max(4);
            let requests = (0..32 / per_request).map(|n| LaneMask(lanes & LaneMask::first(per_request).0 << (n * per_request)));
            let wanted: u32 = requests.map(|members| counted(&addresses, members, bytes)).sum();
            prop_assert_eq!(passes(&addresses, LaneMask(lanes), bytes), wanted.max(1));
        }
    }

    #[test]
    fn no_lane_still_takes_a_turn() {
        assert_eq!(passes(&by(|_| 0), LaneMask::NONE, 4), 1);
    }
}
