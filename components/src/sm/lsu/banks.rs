//! Bank conflicts of shared memory: how many passes an access takes.
//!
//! 32 banks of 4 bytes give one word each per pass. Lanes on the same word share it; lanes on different words of one bank take a
//! pass each. An 8-byte access is two requests of 16 lanes, a 16-byte one four of 8 (reference rules §3).

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

/// Banks of shared memory.
pub const BANKS: usize = 32;

/// Passes of an access of `bytes` aligned bytes in each of `lanes`; at least 1.
pub fn passes(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32) -> u32 {
    requests(lanes, bytes)
        .map(|members| degree(addresses, members, bytes, true))
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

fn requests(lanes: LaneMask, bytes: u32) -> impl Iterator<Item = LaneMask> {
    let per_request = (128 / bytes.max(4)) as usize;
    (0..WARP_SIZE)
        .step_by(per_request)
        .map(move |first| LaneMask(LaneMask::first(per_request as u32).0 << first) & lanes)
        .filter(|members| !members.is_empty())
}

/// No word.
const NONE: u8 = u8::MAX;

/// The largest number of words wanted of one bank; each word once if `shared`. A request wants at most 32 words: 128 bytes.
fn degree(addresses: &[u64; WARP_SIZE], members: LaneMask, bytes: u32, shared: bool) -> u32 {
    // The words of a bank are a chain from the newest on.
    let (mut words, mut older, mut n) = ([0u32; WARP_SIZE], [NONE; WARP_SIZE], 0);
    let (mut newest, mut counts) = ([NONE; BANKS], [0u8; BANKS]);
    for lane in members.iter() {
        let first = (addresses[lane] / 4) as u32;
        for word in first..first + bytes.div_ceil(4) {
            let bank = word as usize % BANKS;
            let mut at = newest[bank];
            while shared && at != NONE && words[at as usize] != word {
                at = older[at as usize];
            }
            if !shared || at == NONE {
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

    #[test]
    fn no_lane_still_takes_a_turn() {
        assert_eq!(passes(&by(|_| 0), LaneMask::NONE, 4), 1);
    }
}
