//! Tests of both forms of addresses against each other, and against a loop over lanes.

use std::collections::BTreeSet;

use proptest::prelude::*;
use warpwave_isa::exec::access::{load_words, store_bytes};
use warpwave_isa::space::Access;

use super::*;

/// Aligned addresses as in real warps: consecutive, close together, far apart, or anywhere in a few lines.
pub(crate) fn any_addresses(bytes: u64) -> impl Strategy<Value = [u64; WARP_SIZE]> {
    let place = (0..1u64 << 20, 0..300u64);
    let each = prop_oneof![Just(1u64), Just(3), Just(100)].prop_flat_map(|n| prop::array::uniform32(0..n));
    (place, each, any::<bool>()).prop_map(move |((first, stride), each, falls)| {
        std::array::from_fn(|lane| {
            let lane = if falls { WARP_SIZE - 1 - lane } else { lane };
            (first + lane as u64 * stride + each[lane]) * bytes
        })
    })
}

/// Addresses below 768 whose half-warps are broadcasts or unit strides, except for one lane now and then.
pub(crate) fn mostly_patterns() -> impl Strategy<Value = [u64; WARP_SIZE]> {
    let half = || (0..80u64, any::<bool>());
    let other = prop_oneof![3 => Just(None), 1 => (0..WARP_SIZE, 0..80u64).prop_map(Some)];
    (half(), half(), other).prop_map(|(low, high, other)| {
        std::array::from_fn(|lane| {
            let (first, has_stride) = if lane < HALF { low } else { high };
            let stride = if has_stride { (lane % HALF) as u64 } else { 0 };
            match other {
                Some((n, word)) if n == lane => 4 * word,
                _ => 4 * (first + stride),
            }
        })
    })
}

/// The form with patterns, if these addresses follow them.
pub(crate) fn pattern(addresses: &[u64; WARP_SIZE]) -> Option<WarpAddresses> {
    // The previous addresses must not matter.
    let mut found = WarpAddresses::per_lane([7; WARP_SIZE]);
    let low = Lanes(addresses.map(|address| address as u32));
    found.set_pattern32(&low, 0).then_some(found)
}

const WORD: Access = Access::one(4);

/// Accesses of whole words and of smaller elements.
fn any_access() -> impl Strategy<Value = Access> {
    const SIZES: [(u8, u8); 10] = [
        (1, 1),
        (1, 4),
        (2, 2),
        (2, 4),
        (4, 1),
        (4, 2),
        (4, 4),
        (8, 1),
        (8, 2),
        (16, 1),
    ];
    let access = |((bytes, count), signed)| Access { bytes, count, signed };
    (prop::sample::select(&SIZES), any::<bool>()).prop_map(access)
}

proptest! {
    #[test]
    fn any_pattern_is_recognized_and_nothing_else_is(addresses in mostly_patterns()) {
        let word = |lane: usize| addresses[lane] / 4;
        let follows = |first: usize| {
            let all = |step: u64| (1..HALF).all(|lane| word(first + lane) == word(first) + step * lane as u64);
            all(0) || all(1)
        };
        let found = pattern(&addresses);
        prop_assert_eq!(found.is_some(), follows(0) && follows(HALF));
        if let Some(found) = found {
            prop_assert!((0..WARP_SIZE).all(|lane| found.get(lane) == addresses[lane]));
            let mut changed = found.clone();
            changed.set(5, 1000);
            let mut expected = addresses;
            expected[5] = 1000;
            prop_assert!((0..WARP_SIZE).all(|lane| changed.get(lane) == expected[lane]));
        }
    }

    #[test]
    fn any_pattern_of_64_bit_addresses_has_the_sums_as_addresses(
        addresses in mostly_patterns(),
        high: u32,
        low in prop_oneof![any::<u32>(), Just(u32::MAX - 60), Just(u32::MAX - 200)],
        other in prop_oneof![3 => Just(None), 1 => (0..WARP_SIZE).prop_map(Some)],
        offset in -200..200i32,
    ) {
        let base = u64::from(high) << 32 | u64::from(low);
        let at = |lane: usize| base.wrapping_add(addresses[lane]) ^ u64::from(other == Some(lane)) << 40;
        let [low, high] = [0, 32].map(|from| Lanes(std::array::from_fn(|lane| (at(lane) >> from) as u32)));
        let mut found = WarpAddresses::ZERO;
        if found.set_pattern64(&low, &high, offset) {
            for lane in 0..WARP_SIZE {
                prop_assert_eq!(found.get(lane), at(lane).wrapping_add(offset as i64 as u64), "lane {}", lane);
            }
        }
    }

    #[test]
    fn bounds_hold_for_any_lanes(lanes in 1..=u32::MAX, base: u64, spread in 0..40u32, each: [u64; WARP_SIZE]) {
        let addresses = each.map(|own| base ^ own & ((1 << spread) - 1));
        let lanes = LaneMask(lanes);
        let bounds = WarpAddresses::per_lane(addresses).bounds(lanes);
        prop_assert!(lanes.iter().all(|lane| (bounds.least..=bounds.greatest).contains(&addresses[lane])));
        let low_bits = lanes.iter().fold(0, |bits, lane| bits | addresses[lane] & 0x1f);
        prop_assert_eq!(bounds.low_bits, low_bits);
    }

    #[test]
    fn bounds_of_any_pattern_are_exact(addresses in mostly_patterns(), offset in 0..4u64) {
        let addresses = addresses.map(|address| address + offset);
        if let Some(found) = pattern(&addresses) {
            let bounds = AddressBounds {
                least: *addresses.iter().min().expect("32 lanes"),
                greatest: *addresses.iter().max().expect("32 lanes"),
                low_bits: addresses.iter().fold(0, |bits, address| bits | address & 0x1f),
            };
            prop_assert_eq!(found.bounds(LaneMask::ALL), bounds);
        }
    }

    #[test]
    fn lines_of_any_access_have_each_lane_once_with_its_sector(
        addresses in prop_oneof![mostly_patterns(), any_addresses(4)],
        lanes in prop_oneof![Just(u32::MAX), any::<u32>()],
    ) {
        let per_lane = WarpAddresses::per_lane(addresses);
        for form in pattern(&addresses).into_iter().chain([per_lane]) {
            let mut seen = LaneMask::NONE;
            form.for_each_line(LaneMask(lanes), |own| {
                let sector = |lane: usize| 1u8 << (addresses[lane] % 128 / 32);
                assert_eq!(own.lanes & seen, LaneMask::NONE);
                assert!(own.lanes.iter().all(|lane| addresses[lane] / 128 * 128 == own.line));
                assert_eq!(own.lanes.iter().fold(0, |sectors, lane| sectors | sector(lane)), own.sectors);
                seen |= own.lanes;
            });
            prop_assert_eq!(seen, LaneMask(lanes));
        }
    }

    #[test]
    fn runs_of_any_access_have_its_words(
        addresses in prop_oneof![mostly_patterns(), any_addresses(8)],
        lanes in prop_oneof![Just(u32::MAX), any::<u32>()],
        words in 1..3u64,
    ) {
        let expected: BTreeSet<u64> = LaneMask(lanes)
            .iter()
            .flat_map(|lane| addresses[lane] / 4..addresses[lane] / 4 + words)
            .collect();
        let per_lane = WarpAddresses::per_lane(addresses);
        for form in pattern(&addresses).into_iter().chain([per_lane]) {
            let mut found = BTreeSet::new();
            form.for_each_run(LaneMask(lanes), words, |first, n| found.extend(first..first + n));
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn words_of_any_pattern_are_loaded_and_stored_line_by_line_as_lane_by_lane(
        addresses in mostly_patterns(),
        memory: [u8; 768],
        words: [u32; WARP_SIZE],
    ) {
        let Some(found) = pattern(&addresses) else { return Ok(()) };
        let (mut loaded, mut stored, mut expected) = ([Lanes::ZERO], memory, memory);
        for (lane, word) in words.iter().enumerate() {
            expected[addresses[lane] as usize..][..4].copy_from_slice(&word.to_le_bytes());
        }
        for (n, line) in stored.as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
            let base = (n * LINE) as u64;
            let lanes = LaneMask::ALL.filter(|lane| addresses[lane] / 128 * 128 == base);
            found.load(WORD, lanes, base, line, &mut loaded);
            found.store(WORD, lanes, base, line, &[Lanes(words)]);
            let written = WarpAddresses::per_lane(addresses).byte_mask(lanes, 4, base);
            prop_assert_eq!(found.byte_mask(lanes, 4, base), written);
            let is_written = |byte: u64| addresses.iter().any(|&at| (at..at + 4).contains(&(base + byte)));
            prop_assert!((0..128).all(|byte| written >> byte & 1 == u128::from(is_written(byte))));
        }
        prop_assert_eq!(stored, expected);
        let word = |lane: usize| u32::from_le_bytes(*memory[addresses[lane] as usize..].first_chunk().expect("in memory"));
        prop_assert!((0..WARP_SIZE).all(|lane| loaded[0].0[lane] == word(lane)));
        let mut at_once = [Lanes::ZERO];
        found.load(WORD, LaneMask::ALL, 0, &memory, &mut at_once);
        prop_assert_eq!(at_once, loaded);
        let mut at_once = memory;
        found.store(WORD, LaneMask::ALL, 0, &mut at_once, &[Lanes(words)]);
        prop_assert_eq!(at_once, expected);
    }

    #[test]
    fn any_access_moves_the_bytes_of_its_lanes_and_no_others(
        access in any_access(),
        lanes: u32,
        places in prop_oneof![any::<[u64; WARP_SIZE]>(), prop::array::uniform32(0..8u64)],
        memory in prop::collection::vec(any::<u8>(), 4096),
        words: [[u32; WARP_SIZE]; 4],
    ) {
        const BASE: u64 = 0x7000;
        let bytes = access.total() as usize;
        let own = |lane: usize| (places[lane] as usize % (4096 / bytes)) * bytes;
        let addresses = WarpAddresses::per_lane(std::array::from_fn(|lane| BASE + own(lane) as u64));
        let (lanes, words) = (LaneMask(lanes), words.map(Lanes));
        let (mut loaded, mut expected) = ([Lanes::ZERO; 5], [Lanes::ZERO; 5]);
        let (mut stored, mut expected_bytes) = (memory.clone(), memory.clone());
        for lane in lanes.iter() {
            let values = load_words(access, &memory[own(lane)..][..bytes]);
            (0..usize::from(access.words())).for_each(|n| expected[n].0[lane] = values[n]);
            let stored = store_bytes(access, [0, 1, 2, 3].map(|n| words[n].0[lane]));
            expected_bytes[own(lane)..][..bytes].copy_from_slice(&stored[..bytes]);
        }
        addresses.load(access, lanes, BASE, &memory, &mut loaded);
        prop_assert_eq!(loaded, expected);
        addresses.store(access, lanes, BASE, &mut stored, &words);
        prop_assert_eq!(stored, expected_bytes);
    }
}

#[test]
fn wide_accesses_are_two_and_four_requests_without_empty_ones() {
    let of = |lanes: u32, bytes| {
        requests(LaneMask(lanes), bytes)
            .map(|request| request.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(u32::MAX, 1), [u32::MAX]);
    assert_eq!(of(u32::MAX, 8), [0xffff, 0xffff_0000]);
    assert_eq!(of(0xf00f, 16), [0xf, 0xf000]);
    assert!(of(0, 4).is_empty());
}

proptest! {
    #[test]
    fn distinct_addresses_are_those_of_a_set(lanes: u32, any in any_addresses(4), repeated in mostly_patterns()) {
        let different = |addresses: &[u64; WARP_SIZE], lanes: LaneMask| {
            lanes.iter().map(|lane| addresses[lane]).collect::<BTreeSet<_>>().len() as u32
        };
        for (addresses, lanes) in [(any, LaneMask(lanes)), (repeated, LaneMask(lanes)), (repeated, LaneMask::ALL)] {
            let found = WarpAddresses::per_lane(addresses).n_distinct(lanes);
            prop_assert_eq!(found, different(&addresses, lanes));
        }
        if let Some(pattern) = pattern(&repeated) {
            prop_assert_eq!(pattern.n_distinct(LaneMask::ALL), different(&repeated, LaneMask::ALL));
        }
    }
}
