//! Atomics on shared memory, applied in lane order.

use warpwave_isa::exec::atomic::AtomicUnit;

use super::SharedMemory;
use crate::proto::mem::{AtomicLanes, apply_atomic};
use crate::proto::warp::WarpInst;

impl SharedMemory {
    /// Applies an atomic of a warp of this SM.
    pub(super) fn perform_atomic(&mut self, warp_inst: &mut WarpInst) {
        let mods = warp_inst.inst().mods;
        let total = mods.access.total() as usize;
        let own = &mut self.state.bytes[warp_inst.shared_base as usize..];
        // Lanes on one word see each other's results: the hardware serializes them.
        for lane in warp_inst.shared_lanes.iter() {
            let word = &mut own[warp_inst.addresses.get(lane) as usize..][..total];
            let before = first_bytes(word);
            let old = apply_atomic(
                AtomicUnit::Shared,
                word,
                mods.atom,
                mods.ty,
                warp_inst.atomic_operands(lane),
            );
            self.state.stats.atomic_words_changed += u64::from(first_bytes(word) != before);
            warp_inst.set_old_value(lane, old);
        }
    }
}

/// The bytes of a word of up to 16 bytes.
fn first_bytes(word: &[u8]) -> [u8; 16] {
    std::array::from_fn(|n| word.get(n).copied().unwrap_or(0))
}

/// Applies the lanes of a packet to its line. Each lane gets its old value. Returns the lanes that changed their word.
pub(super) fn apply_packet(lanes: &mut AtomicLanes, line: &mut [u8]) -> u64 {
    let (op, ty) = (lanes.op, lanes.ty);
    let mut changed = 0;
    for lane in &mut lanes.lanes[..lanes.n] {
        let word = &mut line[lane.offset as usize..][..ty.bytes() as usize];
        let before = first_bytes(word);
        lane.value = apply_atomic(AtomicUnit::Shared, word, op, ty, (lane.value, lane.compare));
        changed += u64::from(first_bytes(word) != before);
    }
    changed
}
