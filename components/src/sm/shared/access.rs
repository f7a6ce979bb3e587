//! Loads, stores and copies on the bytes of shared memory, in lane order.

use warpwave_isa::exec::access::copy_destinations;

use super::SharedMemory;
use crate::proto::warp::WarpInst;

impl SharedMemory {
    pub(super) fn load(&self, warp_inst: &mut WarpInst) {
        let access = warp_inst.inst().mods.access;
        // Addresses count from the CTA's first byte. The AGU has checked that they are below its size.
        let own = &self.state.bytes[warp_inst.shared_base as usize..];
        let results = &mut warp_inst.results.words;
        warp_inst
            .addresses
            .load(access, warp_inst.shared_lanes, 0, own, results);
    }

    pub(super) fn store(&mut self, warp_inst: &WarpInst) {
        let access = warp_inst.inst().mods.access;
        let own = &mut self.state.bytes[warp_inst.shared_base as usize..];
        let words = &warp_inst.operands.words[warp_inst.decoded().first_word[1] as usize..];
        warp_inst.addresses.store(access, warp_inst.shared_lanes, 0, own, words);
    }

    /// Stores the bytes of an asynchronous copy (LDGSTS), which the LSU has read. Bytes beyond the size of the source are zero.
    pub(super) fn copy(&mut self, warp_inst: &WarpInst) {
        let to = copy_destinations(&warp_inst.operands);
        let total = warp_inst.inst().mods.access.total() as usize;
        let size = &warp_inst.operands.words[warp_inst.decoded().first_word[2] as usize];
        for lane in warp_inst.lanes.iter() {
            let at = warp_inst.shared_base as usize + to[lane] as usize;
            let read = (size.0[lane] as usize).min(total);
            // Byte by byte: the zeros may begin within a word.
            for n in 0..total {
                let word = warp_inst.results.words[n / 4].0[lane];
                self.state.bytes[at + n] = if n < read { word.to_le_bytes()[n % 4] } else { 0 };
            }
        }
    }

    /// Loads matrices (LDSM). Row r of matrix m is at the address of lane 8 m + r. Lane l gets two elements of row l / 4, or of column
    /// l / 4 if transposed. The first is element 2 (l mod 4), the second the next one (PTX ISA, ldmatrix).
    pub(super) fn load_matrices(&self, warp_inst: &mut WarpInst) {
        let mods = warp_inst.inst().mods;
        let own = &self.state.bytes[warp_inst.shared_base as usize..];
        let (addresses, results) = (&warp_inst.addresses, &mut warp_inst.results.words);
        let element = |matrix: usize, row: usize, column: usize| {
            let at = addresses.get(8 * matrix + row) as usize + 2 * column;
            u32::from(u16::from_le_bytes([own[at], own[at + 1]]))
        };
        for (matrix, words) in results.iter_mut().enumerate().take(mods.count as usize) {
            for (lane, word) in words.0.iter_mut().enumerate() {
                let (major, minor) = (lane / 4, 2 * (lane % 4));
                *word = if mods.trans {
                    element(matrix, minor, major) | element(matrix, minor + 1, major) << 16
                } else {
                    element(matrix, major, minor) | element(matrix, major, minor + 1) << 16
                };
            }
        }
    }
}
