//! What an access does to the bytes of shared memory, lane by lane, in lane order.

use warpwave_isa::exec::access::{copy_destinations, load_words, store_bytes};
use warpwave_isa::exec::atomic::atomic;
use warpwave_isa::inst::AtomOp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Decoded;

use super::SharedMemory;
use crate::proto::warp::Flight;

impl SharedMemory {
    fn at(&self, flight: &Flight, lane: usize) -> usize {
        flight.shared_base as usize + flight.addresses[lane] as usize
    }

    pub(super) fn load(&self, flight: &mut Flight) {
        let access = flight.inst().mods.access;
        let (total, words) = (access.total() as usize, access.words() as usize);
        if access.bytes == 4 && access.count == 1 {
            let (base, addresses) = (flight.shared_base as usize, &flight.addresses);
            let result = &mut flight.results.words[0].0;
            return flight.shared_lanes.iter().for_each(|lane| {
                let bytes = &self.bytes[base + addresses[lane] as usize..][..4];
                result[lane] = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            });
        }
        for lane in flight.shared_lanes.iter() {
            let at = self.at(flight, lane);
            let values = load_words(access, &self.bytes[at..at + total]);
            for (result, &value) in flight.results.words.iter_mut().zip(&values).take(words) {
                result.0[lane] = value;
            }
        }
    }

    pub(super) fn store(&mut self, flight: &Flight) {
        let access = flight.inst().mods.access;
        let first = flight.decoded().first_word[1] as usize;
        let (total, words) = (access.total() as usize, access.words() as usize);
        for lane in flight.shared_lanes.iter() {
            let at = self.at(flight, lane);
            let value = std::array::from_fn(|n| {
                if n < words {
                    flight.operands.words[first + n].0[lane]
                } else {
                    0
                }
            });
            self.bytes[at..at + total].copy_from_slice(&store_bytes(access, value)[..total]);
        }
    }

    /// The end of an asynchronous copy: what was read goes to its place; bytes beyond the size asked for are zero.
    pub(super) fn copy(&mut self, flight: &Flight) {
        let to = copy_destinations(&flight.operands);
        let total = flight.inst().mods.access.total() as usize;
        let size = &flight.operands.words[flight.decoded().first_word[2] as usize];
        for lane in flight.lanes.iter() {
            let at = flight.shared_base as usize + to[lane] as usize;
            let read = (size.0[lane] as usize).min(total);
            for n in 0..total {
                let word = flight.results.words[n / 4].0[lane];
                self.bytes[at + n] = if n < read { word.to_le_bytes()[n % 4] } else { 0 };
            }
        }
    }

    pub(super) fn atomics(&mut self, flight: &mut Flight) {
        let Decoded { first_word, .. } = *flight.decoded();
        let mods = flight.inst().mods;
        let (total, words) = (mods.access.total() as usize, mods.access.words() as usize);
        let cas = flight.inst().op == Opcode::Atom && mods.atom == AtomOp::Cas;
        for lane in flight.shared_lanes.iter() {
            let at = self.at(flight, lane);
            let source = |slot: usize| wide_word(flight, first_word[slot] as usize, lane, words);
            let (operand, compare) = if cas { (source(2), source(1)) } else { (source(1), 0) };
            let mut old = [0; 8];
            old[..total].copy_from_slice(&self.bytes[at..at + total]);
            let old = u64::from_le_bytes(old);
            let new = atomic(mods.atom, mods.ty, old, operand, compare);
            self.bytes[at..at + total].copy_from_slice(&new.to_le_bytes()[..total]);
            for n in 0..words {
                flight.results.words[n].0[lane] = (old >> (32 * n)) as u32;
            }
        }
    }

    /// Row r of matrix m is at the address of lane 8 m + r; lane l gets elements 2 (l mod 4) and the next of row l / 4
    /// (PTX ISA, ldmatrix), or of column l / 4 if transposed.
    pub(super) fn load_matrices(&self, flight: &mut Flight) {
        let mods = flight.inst().mods;
        let element = |matrix: usize, row: usize, column: usize| {
            let at = self.at(flight, 8 * matrix + row) + 2 * column;
            u32::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
        };
        let mut loaded = flight.results.words;
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
        flight.results.words = loaded;
    }
}

/// A source of one or two words.
fn wide_word(flight: &Flight, first: usize, lane: usize, words: usize) -> u64 {
    let high = if words > 1 {
        flight.operands.words[first + 1].0[lane]
    } else {
        0
    };
    u64::from(flight.operands.words[first].0[lane]) | u64::from(high) << 32
}
