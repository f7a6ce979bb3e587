//! What an access does to the bytes of shared memory, lane by lane, in lane order.

use warpwave_isa::exec::access::{copy_destinations, load_words, store_bytes};
use warpwave_isa::exec::atomic::atomic;
use warpwave_isa::inst::AtomOp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Decoded;
use warpwave_isa::space::Access;

use super::SharedMemory;
use crate::proto::warp::WarpInst;
use crate::sm::lsu::halves::Halves;

impl SharedMemory {
    fn at(&self, warp_inst: &WarpInst, lane: usize) -> usize {
        warp_inst.shared_base as usize + warp_inst.addresses[lane] as usize
    }

    pub(super) fn load(&self, warp_inst: &mut WarpInst) {
        let access = warp_inst.inst().mods.access;
        let own = &self.bytes[warp_inst.shared_base as usize..];
        match (access.bytes, access.total()) {
            (4.., 4) => load_words_of::<4>(own, warp_inst),
            (4.., 8) => load_words_of::<8>(own, warp_inst),
            (4.., 16) => load_words_of::<16>(own, warp_inst),
            _ => load_elements(own, access, warp_inst),
        }
    }

    pub(super) fn store(&mut self, warp_inst: &WarpInst) {
        let access = warp_inst.inst().mods.access;
        let own = &mut self.bytes[warp_inst.shared_base as usize..];
        match (access.bytes, access.total()) {
            (4.., 4) => store_words_of::<4>(own, warp_inst),
            (4.., 8) => store_words_of::<8>(own, warp_inst),
            (4.., 16) => store_words_of::<16>(own, warp_inst),
            _ => store_elements(own, access, warp_inst),
        }
    }

    /// A load or store whose halves are known.
    pub(super) fn move_halves(&mut self, warp_inst: &mut WarpInst, halves: Halves) {
        let own = &mut self.bytes[warp_inst.shared_base as usize..];
        if warp_inst.inst().op == Opcode::Ld {
            halves.load(own, &mut warp_inst.results.words[0]);
        } else {
            let word = warp_inst.decoded().first_word[1] as usize;
            halves.store(own, &warp_inst.operands.words[word]);
        }
    }

    /// The end of an asynchronous copy: what was read goes to its place; bytes beyond the size asked for are zero.
    pub(super) fn copy(&mut self, warp_inst: &WarpInst) {
        let to = copy_destinations(&warp_inst.operands);
        let total = warp_inst.inst().mods.access.total() as usize;
        let size = &warp_inst.operands.words[warp_inst.decoded().first_word[2] as usize];
        for lane in warp_inst.lanes.iter() {
            let at = warp_inst.shared_base as usize + to[lane] as usize;
            let read = (size.0[lane] as usize).min(total);
            for n in 0..total {
                let word = warp_inst.results.words[n / 4].0[lane];
                self.bytes[at + n] = if n < read { word.to_le_bytes()[n % 4] } else { 0 };
            }
        }
    }

    pub(super) fn atomics(&mut self, warp_inst: &mut WarpInst) {
        let Decoded { first_word, .. } = *warp_inst.decoded();
        let mods = warp_inst.inst().mods;
        let (total, words) = (mods.access.total() as usize, mods.access.words() as usize);
        let cas = warp_inst.inst().op == Opcode::Atom && mods.atom == AtomOp::Cas;
        for lane in warp_inst.shared_lanes.iter() {
            let at = self.at(warp_inst, lane);
            let source = |slot: usize| wide_word(warp_inst, first_word[slot] as usize, lane, words);
            let (operand, compare) = if cas { (source(2), source(1)) } else { (source(1), 0) };
            let mut old = [0; 8];
            old[..total].copy_from_slice(&self.bytes[at..at + total]);
            let old = u64::from_le_bytes(old);
            let new = atomic(mods.atom, mods.ty, old, operand, compare);
            self.bytes[at..at + total].copy_from_slice(&new.to_le_bytes()[..total]);
            for n in 0..words {
                warp_inst.results.words[n].0[lane] = (old >> (32 * n)) as u32;
            }
        }
    }

    /// Row r of matrix m is at the address of lane 8 m + r; lane l gets elements 2 (l mod 4) and the next of row l / 4
    /// (PTX ISA, ldmatrix), or of column l / 4 if transposed.
    pub(super) fn load_matrices(&self, warp_inst: &mut WarpInst) {
        let mods = warp_inst.inst().mods;
        let element = |matrix: usize, row: usize, column: usize| {
            let at = self.at(warp_inst, 8 * matrix + row) + 2 * column;
            u32::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
        };
        let mut loaded = warp_inst.results.words;
        for (matrix, words) in loaded.iter_mut().enumerate().take(mods.count as usize) {
            for (lane, word) in words.0.iter_mut().enumerate() {
                let (major, minor) = (lane / 4, 2 * (lane % 4));
                *word = if mods.trans {
                    element(matrix, minor, major) | element(matrix, minor + 1, major) << 16
                } else {
                    element(matrix, major, minor) | element(matrix, major, minor + 1) << 16
                };
            }
        }
        warp_inst.results.words = loaded;
    }
}

/// A source of one or two words.
fn wide_word(warp_inst: &WarpInst, first: usize, lane: usize, words: usize) -> u64 {
    let high = if words > 1 {
        warp_inst.operands.words[first + 1].0[lane]
    } else {
        0
    };
    u64::from(warp_inst.operands.words[first].0[lane]) | u64::from(high) << 32
}

/// Loads whole words, `N` bytes in each lane. As lanes are aligned, memory is an array of such places.
fn load_words_of<const N: usize>(own: &[u8], warp_inst: &mut WarpInst) {
    let (places, addresses) = (own.as_chunks::<N>().0, &warp_inst.addresses);
    let results = &mut warp_inst.results.words;
    warp_inst.shared_lanes.iter().for_each(|lane| {
        let place = &places[addresses[lane] as usize / N];
        for (result, word) in results.iter_mut().zip(place.as_chunks().0) {
            result.0[lane] = u32::from_le_bytes(*word);
        }
    });
}

/// Stores whole words likewise.
fn store_words_of<const N: usize>(own: &mut [u8], warp_inst: &WarpInst) {
    let (places, addresses) = (own.as_chunks_mut::<N>().0, &warp_inst.addresses);
    let words = &warp_inst.operands.words[warp_inst.decoded().first_word[1] as usize..][..N / 4];
    warp_inst.shared_lanes.iter().for_each(|lane| {
        let place = &mut places[addresses[lane] as usize / N];
        for (bytes, word) in place.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.0[lane].to_le_bytes();
        }
    });
}

/// Loads elements of any size, those of less than a word among them.
fn load_elements(own: &[u8], access: Access, warp_inst: &mut WarpInst) {
    for lane in warp_inst.shared_lanes.iter() {
        let at = warp_inst.addresses[lane] as usize;
        let values = load_words(access, &own[at..at + access.total() as usize]);
        let results = warp_inst.results.words.iter_mut().take(access.words() as usize);
        for (result, value) in results.zip(values) {
            result.0[lane] = value;
        }
    }
}

/// Stores elements likewise.
fn store_elements(own: &mut [u8], access: Access, warp_inst: &WarpInst) {
    let total = access.total() as usize;
    let words = &warp_inst.operands.words[warp_inst.decoded().first_word[1] as usize..][..access.words() as usize];
    for lane in warp_inst.shared_lanes.iter() {
        let at = warp_inst.addresses[lane] as usize;
        let mut value = [0; 4];
        for (value, word) in value.iter_mut().zip(words) {
            *value = word.0[lane];
        }
        own[at..at + total].copy_from_slice(&store_bytes(access, value)[..total]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpwave_isa::lane::{LaneMask, Lanes};

    use super::*;
    use crate::test_ports::grid;

    const KINDS: [&str; 5] = ["B32", "B32X2", "B32X4", "B64", "B64X2"];

    /// Lanes of one access at these places, each as large as the access, in 4 KiB.
    fn warp_inst(text: &str, lanes: u32, places: [u64; 32]) -> WarpInst {
        let mut warp_inst = WarpInst {
            shared_lanes: LaneMask(lanes),
            ..WarpInst::blank(0, grid(text, 1))
        };
        let bytes = u64::from(warp_inst.inst().mods.access.total());
        warp_inst.addresses = places.map(|place| place % (4096 / bytes) * bytes);
        warp_inst
    }

    proptest! {
        #[test]
        fn whole_words_are_loaded_as_elements_of_any_size_are(
            lanes: u32,
            kind in prop::sample::select(&KINDS),
            places: [u64; 32],
            bytes in prop::collection::vec(any::<u8>(), 4096),
        ) {
            let mut at_once = warp_inst(&format!("LD.SHARED.{kind} R4, [R0]"), lanes, places);
            let mut general = at_once.clone();
            let access = general.inst().mods.access;
            match access.total() {
                4 => load_words_of::<4>(&bytes, &mut at_once),
                8 => load_words_of::<8>(&bytes, &mut at_once),
                _ => load_words_of::<16>(&bytes, &mut at_once),
            }
            load_elements(&bytes, access, &mut general);
            prop_assert_eq!(at_once.results, general.results);
        }

        #[test]
        fn whole_words_are_stored_as_elements_of_any_size_are(
            lanes: u32,
            kind in prop::sample::select(&KINDS),
            places in prop_oneof![any::<[u64; 32]>(), prop::array::uniform32(0..8u64)],
            words in prop::collection::vec(any::<[u32; 32]>(), 10),
        ) {
            let mut warp_inst = warp_inst(&format!("ST.SHARED.{kind} [R0], R4"), lanes, places);
            warp_inst.operands.words = std::array::from_fn(|n| Lanes(words[n]));
            let (mut at_once, mut general) = ([0x55; 4096], [0x55; 4096]);
            let access = warp_inst.inst().mods.access;
            match access.total() {
                4 => store_words_of::<4>(&mut at_once, &warp_inst),
                8 => store_words_of::<8>(&mut at_once, &warp_inst),
                _ => store_words_of::<16>(&mut at_once, &warp_inst),
            }
            store_elements(&mut general, access, &warp_inst);
            prop_assert_eq!(at_once, general);
        }
    }
}
