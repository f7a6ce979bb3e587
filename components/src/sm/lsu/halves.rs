//! The commonest accesses: each half of a whole warp wants one word, or a row of sixteen.
//!
//! So is an access of 32 words in a row, of one word by all lanes, and of two rows or columns of a tile sixteen wide. What is true of all
//! lanes is seen here at once, and the words are moved together.

use std::ops::Range;

use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};

use super::banks::BANKS;
use super::coalescer::Part;
use crate::proto::mem::{LINE, SECTOR};

/// Lanes of a half.
const LANES: usize = WARP_SIZE / 2;

/// How far each lane's address is from the first one's: of one word, and of a row.
const ONE: [u32; LANES] = [0; LANES];
const ROW: [u32; LANES] = row();

const fn row() -> [u32; LANES] {
    let mut row = [0; LANES];
    let mut n = 0;
    while n < LANES {
        row[n] = 4 * n as u32;
        n += 1;
    }
    row
}

/// What half a warp wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Half {
    /// Address of the first lane's word.
    first: usize,
    wants: Wanted,
}

/// Words that the lanes of a half want.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    /// One for all of them.
    One,
    /// One each, in a row.
    Row,
}

/// What the two halves of a whole warp want, a word of 4 aligned bytes in each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halves([Half; 2]);

impl Halves {
    /// By addresses of one word, as [`narrow_addresses`](warpwave_isa::exec::access::narrow_addresses) makes them; nothing if the access is another.
    #[inline]
    pub fn narrow(base: &Lanes, offset: i32, lanes: LaneMask) -> Option<Self> {
        let place = |lane: usize| base.0[lane].wrapping_add(offset as u32) as usize;
        Self::of(base, lanes, place)
    }

    /// By addresses of two words, low and high.
    #[inline]
    pub fn wide(low: &Lanes, high: &Lanes, offset: i32, lanes: LaneMask) -> Option<Self> {
        let differ = high.0.iter().fold(0, |any, word| any | (word ^ high.0[0]));
        let place = |lane: usize| {
            let base = u64::from(high.0[lane]) << 32 | u64::from(low.0[lane]);
            base.wrapping_add(offset as i64 as u64) as usize
        };
        // A row does not go on where the low word begins anew.
        let is_whole = [low.0[0], low.0[LANES]]
            .iter()
            .all(|&first| first <= u32::MAX - ROW[LANES - 1]);
        let halves = Self::of(low, lanes, place)?;
        (differ == 0 && is_whole).then_some(halves)
    }

    /// By the low words of the lanes' addresses, and where an address is.
    #[inline]
    fn of(low: &Lanes, lanes: LaneMask, place: impl Fn(usize) -> usize) -> Option<Self> {
        let (halves, _) = low.0.as_chunks::<LANES>();
        if lanes != LaneMask::ALL {
            return None;
        }
        let wants = [wanted(&halves[0])?, wanted(&halves[1])?];
        Some(Halves([0, 1].map(|n| Half {
            first: place(n * LANES),
            wants: wants[n],
        })))
    }

    /// Addresses of the lowest byte that is wanted, and of the byte after the highest.
    #[inline]
    pub fn bounds(self) -> (u64, u64) {
        let [low, high] = self.0;
        let end = |half: Half| half.first.saturating_add(4 * half.words());
        (low.first.min(high.first) as u64, end(low).max(end(high)) as u64)
    }

    /// Whether the words lie at multiples of 4.
    #[inline]
    pub fn is_aligned(self) -> bool {
        let [low, high] = self.0;
        (low.first | high.first).is_multiple_of(4)
    }

    /// What is wanted of each line, in the order of the lanes; the words are aligned.
    #[inline]
    pub fn each_line(self, mut take: impl FnMut(Part)) {
        for (n, half) in self.0.into_iter().enumerate() {
            let lanes = LaneMask::first(LANES as u32).0 << (LANES * n);
            let next = half.first / LINE * LINE + LINE;
            let (end, first) = (half.end(), half.first);
            if end <= next {
                take(part(first, end, lanes));
                continue;
            }
            let below = LaneMask::first(((next - first) / 4) as u32).0 << (LANES * n);
            take(part(first, next, lanes & below));
            take(part(next, end, lanes & !below));
        }
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

    /// Loads those of the words that lie in the line at address `line`, whose bytes these are.
    #[inline]
    pub fn load_line(self, line: u64, bytes: &[u8; LINE], to: &mut Lanes) {
        let (places, _) = bytes.as_chunks();
        for (half, to) in self.0.iter().zip(to.0.as_chunks_mut::<LANES>().0) {
            let (lanes, place) = half.on_line(line);
            let to = &mut to[lanes];
            if half.wants == Wanted::One {
                to.fill(u32::from_le_bytes(places[place]));
            } else {
                let words = &places[place..][..to.len()];
                to.iter_mut()
                    .zip(words)
                    .for_each(|(to, word)| *to = u32::from_le_bytes(*word));
            }
        }
    }

    /// Stores those of the words that lie in the line at address `line` into its bytes: of several lanes on one word the last one's.
    /// Gives the bytes stored, bit i for byte i.
    #[inline]
    pub fn store_line(self, line: u64, bytes: &mut [u8; LINE], from: &Lanes) -> u128 {
        let (places, _) = bytes.as_chunks_mut();
        let mut stored = LaneMask::NONE;
        for (half, from) in self.0.iter().zip(from.0.as_chunks::<LANES>().0) {
            let (lanes, place) = half.on_line(line);
            let from = &from[lanes];
            let n = from.len().min(half.words());
            let words = places[place..][..n].iter_mut();
            words
                .zip(&from[from.len() - n..])
                .for_each(|(word, from)| *word = from.to_le_bytes());
            stored |= LaneMask(LaneMask::first(n as u32).0 << place);
        }
        bytes_of_words(stored)
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

/// The bits of the bytes of a line's words, bit i for word i.
#[inline]
fn bytes_of_words(words: LaneMask) -> u128 {
    match words {
        LaneMask::ALL => u128::MAX,
        some => some.iter().fold(0, |bytes, word| bytes | 0xf << (4 * word)),
    }
}

/// What lanes want that want the bytes of a line from `first` until before `end`.
fn part(first: usize, end: usize, lanes: u32) -> Part {
    let sector = |byte: usize| byte % LINE / SECTOR;
    Part {
        line: (first / LINE * LINE) as u64,
        sectors: (2 << sector(end - 1)) - (1 << sector(first)),
        lanes: LaneMask(lanes),
    }
}

/// What the lanes of a half want, if it is one word for all or a row.
#[inline]
fn wanted(low: &[u32; LANES]) -> Option<Wanted> {
    let (steps, wanted) = match low[1].wrapping_sub(low[0]) {
        0 => (&ONE, Wanted::One),
        4 => (&ROW, Wanted::Row),
        _ => return None,
    };
    let off = |(word, step): (&u32, &u32)| word.wrapping_sub(low[0]) ^ step;
    let differ = low.iter().zip(steps).map(off).fold(0, |any, off| any | off);
    (differ == 0).then_some(wanted)
}

impl Half {
    /// How many words it wants.
    #[inline]
    fn words(self) -> usize {
        match self.wants {
            Wanted::One => 1,
            Wanted::Row => LANES,
        }
    }

    /// The byte after its last.
    #[inline]
    fn end(self) -> usize {
        self.first + 4 * self.words()
    }

    /// Its lanes whose words lie in the line at address `line`, and the place of the first one's among the words of the line.
    #[inline]
    fn on_line(self, line: u64) -> (Range<usize>, usize) {
        let line = line as usize;
        let from = self.first.max(line);
        let end = self.end().min(line + LINE);
        if from >= end {
            return (0..0, 0);
        }
        let lanes = match self.wants {
            Wanted::One => 0..LANES,
            Wanted::Row => (from - self.first) / 4..(end - self.first) / 4,
        };
        (lanes, (from - line) / 4)
    }

    /// The banks of its words, bit i for bank i.
    #[inline]
    fn banks(self) -> u32 {
        LaneMask::first(self.words() as u32)
            .0
            .rotate_left((self.first / 4 % BANKS) as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sm::lsu::banks::passes;
    use crate::sm::lsu::coalescer::Parts;
    use crate::sm::lsu::coalescer::tests::parts_of;

    fn of(addresses: &[u64; WARP_SIZE], lanes: LaneMask) -> Option<Halves> {
        Halves::narrow(&Lanes(addresses.map(|address| address as u32)), 0, lanes)
    }

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
            let Some(halves) = of(&addresses, LaneMask::ALL) else {
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

    proptest! {
        #[test]
        fn any_halves_are_loaded_from_and_stored_to_their_lines_as_lane_by_lane(
            addresses in addresses(),
            bytes: [u8; 768],
            words: [u32; WARP_SIZE],
        ) {
            if let Some(halves) = of(&addresses, LaneMask::ALL) {
                let mut loaded = Lanes::ZERO;
                let (mut stored, mut expected) = (bytes, bytes);
                for lane in 0..WARP_SIZE {
                    expected[addresses[lane] as usize..][..4].copy_from_slice(&words[lane].to_le_bytes());
                }
                for (n, (line, to)) in bytes.as_chunks().0.iter().zip(stored.as_chunks_mut::<LINE>().0).enumerate() {
                    let first = n * LINE;
                    halves.load_line(first as u64, line, &mut loaded);
                    let written = halves.store_line(first as u64, to, &Lanes(words));
                    let is_wanted = |byte: usize| addresses.iter().any(|&at| (at as usize..at as usize + 4).contains(&(first + byte)));
                    prop_assert!((0..LINE).all(|byte| written >> byte & 1 == u128::from(is_wanted(byte))));
                }
                prop_assert_eq!(stored, expected);
                let wanted = |lane: usize| bytes[addresses[lane] as usize..].as_chunks().0[0];
                prop_assert!((0..WARP_SIZE).all(|lane| loaded.0[lane].to_le_bytes() == wanted(lane)));
            }
        }
    }

    proptest! {
        #[test]
        fn any_halves_are_coalesced_and_bounded_as_their_lanes_are(addresses in addresses()) {
            if let Some(halves) = of(&addresses, LaneMask::ALL) {
                let mut parts = Parts::NONE;
                parts.add_halves(halves);
                let lane_by_lane = parts_of(&addresses, LaneMask::ALL, 4);
                prop_assert_eq!(parts.all(), lane_by_lane.all());
                prop_assert_eq!(parts.requests, 1);
                let (first, end) = halves.bounds();
                prop_assert_eq!(addresses.iter().min(), Some(&first));
                prop_assert_eq!(addresses.iter().max(), Some(&(end - 4)));
                prop_assert!(halves.is_aligned());
                let apart = of(&addresses.map(|address| address + 2), LaneMask::ALL);
                prop_assert!(!apart.expect("all of them moved").is_aligned());
            }
        }
    }

    proptest! {
        #[test]
        fn any_halves_by_two_words_are_those_by_their_addresses(
            addresses in addresses(),
            high: u32,
            low in prop_oneof![any::<u32>(), Just(u32::MAX - 60), Just(u32::MAX - 200)],
            other in prop_oneof![3 => Just(None), 1 => (0..WARP_SIZE).prop_map(Some)],
            offset in -200..200i32,
        ) {
            let base = u64::from(high) << 32 | u64::from(low);
            let at = |lane: usize| base.wrapping_add(addresses[lane]) ^ u64::from(other == Some(lane)) << 40;
            let [low, high] = [0, 32].map(|from| Lanes(std::array::from_fn(|lane| (at(lane) >> from) as u32)));
            if let Some(halves) = Halves::wide(&low, &high, offset, LaneMask::ALL) {
                let Halves(found) = halves;
                for lane in 0..WARP_SIZE {
                    let Half { first, wants } = found[lane / LANES];
                    let step = if wants == Wanted::One { 0 } else { 4 * (lane % LANES) as u64 };
                    let address = at(lane).wrapping_add(offset as i64 as u64);
                    prop_assert_eq!((first as u64).wrapping_add(step), address, "lane {}", lane);
                }
            }
        }
    }

    #[test]
    fn warp_that_is_not_whole_is_no_two_halves() {
        assert_eq!(of(&[0; WARP_SIZE], LaneMask::first(31)), None);
    }
}
