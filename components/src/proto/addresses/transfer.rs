//! Moves the bytes of a warp access between memory and registers.
//!
//! `memory` is the line of a packet or the shared memory of a CTA. `base` is the address of its first byte. The addresses of `lanes` must
//! be in it. With patterns, all words within `memory` are moved: they are the words of `lanes`.

use warpwave_isa::exec::access::{load_words, store_bytes};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::space::Access;

use super::WarpAddresses;
use super::half_warp::{HALF, HalfWarpPattern};
use crate::proto::mem::LINE;

impl WarpAddresses {
    /// Loads the registers of `lanes` from memory.
    #[inline]
    pub fn load(&self, access: Access, lanes: LaneMask, base: u64, memory: &[u8], to: &mut [Lanes]) {
        match (access.bytes, access.total(), &self.halves) {
            // Elements of 4 bytes or more fill whole registers. Only smaller ones need shifts and sign bits.
            (4.., 4, Some(halves)) => load_pattern(halves, base, memory, &mut to[0]),
            (4.., 4, None) => self.load_whole::<4>(lanes, base, memory, to),
            (4.., 8, _) => self.load_whole::<8>(lanes, base, memory, to),
            (4.., 16, _) => self.load_whole::<16>(lanes, base, memory, to),
            _ => self.load_elements(access, lanes, base, memory, to),
        }
    }

    /// Stores the registers of `lanes` to memory. Where lanes overlap, the highest lane wins.
    #[inline]
    pub fn store(&self, access: Access, lanes: LaneMask, base: u64, memory: &mut [u8], from: &[Lanes]) {
        match (access.bytes, access.total(), &self.halves) {
            (4.., 4, Some(halves)) => store_pattern(halves, base, memory, &from[0]),
            (4.., 4, None) => self.store_whole::<4>(lanes, base, memory, from),
            (4.., 8, _) => self.store_whole::<8>(lanes, base, memory, from),
            (4.., 16, _) => self.store_whole::<16>(lanes, base, memory, from),
            _ => self.store_elements(access, lanes, base, memory, from),
        }
    }

    /// The bytes of a line that `lanes` access, `bytes` bytes each: bit i for byte i.
    #[inline]
    pub fn byte_mask(&self, lanes: LaneMask, bytes: usize, line: u64) -> u128 {
        match &self.halves {
            Some(halves) if bytes == 4 => halves.iter().fold(0, |mask, half| {
                let (lanes, word) = half.within(line, LINE);
                // All lanes of a broadcast access the same 4 bytes.
                let n_words = if half.is_broadcast() {
                    lanes.len().min(1)
                } else {
                    lanes.len()
                };
                mask | low_bits(4 * n_words) << (4 * word)
            }),
            _ => {
                let item = low_bits(bytes);
                lanes
                    .iter()
                    .fold(0, |mask, lane| mask | item << (self.get(lane) - line))
            }
        }
    }

    /// Loads `N` bytes per lane, in whole words. Addresses are aligned, so `memory` is an array of items of `N` bytes.
    #[inline(never)]
    fn load_whole<const N: usize>(&self, lanes: LaneMask, base: u64, memory: &[u8], to: &mut [Lanes]) {
        let (items, _) = memory.as_chunks::<N>();
        lanes.iter().for_each(|lane| {
            let item = &items[(self.get(lane) - base) as usize / N];
            for (to, word) in to.iter_mut().zip(item.as_chunks().0) {
                to.0[lane] = u32::from_le_bytes(*word);
            }
        });
    }

    /// Stores `N` bytes per lane, in whole words.
    #[inline(never)]
    fn store_whole<const N: usize>(&self, lanes: LaneMask, base: u64, memory: &mut [u8], from: &[Lanes]) {
        let (items, _) = memory.as_chunks_mut::<N>();
        lanes.iter().for_each(|lane| {
            let item = &mut items[(self.get(lane) - base) as usize / N];
            for (word, from) in item.as_chunks_mut().0.iter_mut().zip(from) {
                *word = from.0[lane].to_le_bytes();
            }
        });
    }

    /// Loads elements of any size.
    #[inline(never)]
    fn load_elements(&self, access: Access, lanes: LaneMask, base: u64, memory: &[u8], to: &mut [Lanes]) {
        for lane in lanes.iter() {
            let at = (self.get(lane) - base) as usize;
            let values = load_words(access, &memory[at..][..access.total() as usize]);
            let words = to.iter_mut().take(access.words().into());
            words.zip(values).for_each(|(to, value)| to.0[lane] = value);
        }
    }

    /// Stores elements of any size.
    #[inline(never)]
    fn store_elements(&self, access: Access, lanes: LaneMask, base: u64, memory: &mut [u8], from: &[Lanes]) {
        let total = access.total() as usize;
        for lane in lanes.iter() {
            let mut words = [0; 4];
            let sources = from.iter().take(access.words().into());
            words
                .iter_mut()
                .zip(sources)
                .for_each(|(word, from)| *word = from.0[lane]);
            let at = (self.get(lane) - base) as usize;
            memory[at..][..total].copy_from_slice(&store_bytes(access, words)[..total]);
        }
    }
}

#[inline]
fn load_pattern(halves: &[HalfWarpPattern; 2], base: u64, memory: &[u8], to: &mut Lanes) {
    let (words, _) = memory.as_chunks();
    for (half, to) in halves.iter().zip(to.0.as_chunks_mut::<HALF>().0) {
        let (lanes, first) = half.within(base, memory.len());
        let to = &mut to[lanes];
        if half.is_broadcast() {
            to.fill(u32::from_le_bytes(words[first]));
        } else {
            let words = &words[first..][..to.len()];
            to.iter_mut()
                .zip(words)
                .for_each(|(to, word)| *to = u32::from_le_bytes(*word));
        }
    }
}

#[inline]
fn store_pattern(halves: &[HalfWarpPattern; 2], base: u64, memory: &mut [u8], from: &Lanes) {
    let bytes = memory.len();
    let (words, _) = memory.as_chunks_mut();
    for (half, from) in halves.iter().zip(from.0.as_chunks::<HALF>().0) {
        let (lanes, first) = half.within(base, bytes);
        match &from[lanes] {
            [] => {}
            // The highest lane wins.
            [.., last] if half.is_broadcast() => words[first] = last.to_le_bytes(),
            from => {
                let words = words[first..].iter_mut();
                words.zip(from).for_each(|(word, from)| *word = from.to_le_bytes());
            }
        }
    }
}

/// The lowest `n` bits.
#[inline]
fn low_bits(n: usize) -> u128 {
    // A shift by 128 would overflow.
    if n >= 128 { u128::MAX } else { (1 << n) - 1 }
}
