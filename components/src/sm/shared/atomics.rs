//! Atomics on shared memory, applied in lane order.

use warpwave_hw::time::Cycle;
use warpwave_isa::exec::atomic::AtomicUnit;
use warpwave_isa::exec::mbarrier::{Fault, fault};
use warpwave_isa::inst::AtomOp;

use super::SharedMemory;
use crate::proto::launch::TrapKind;
use crate::proto::mem::{AtomicLane, AtomicLanes, apply_atomic};
use crate::proto::warp::WarpInst;

impl SharedMemory {
    /// Applies an atomic of a warp of this SM. It ends at the first lane that traps.
    pub(super) fn perform_atomic(&mut self, warp_inst: &mut WarpInst, now: Cycle) {
        let mods = warp_inst.inst().mods;
        let total = mods.access.total() as usize;
        let own = &mut self.state.bytes[warp_inst.shared_base as usize..];
        // Lanes on one word see each other's results: the hardware serializes them.
        for lane in warp_inst.shared_lanes.iter() {
            let address = warp_inst.addresses.get(lane);
            let word = &mut own[address as usize..][..total];
            let operands = warp_inst.atomic_operands(lane);
            if let Some(fault) = arrival_fault(mods.atom, word, operands.0) {
                let kind = TrapKind::Mbarrier(fault);
                let trap = warp_inst.origin().trap(lane, kind, (address, MBARRIER), "shared");
                return self.send_trap(trap, now);
            }
            let before = first_bytes(word);
            let old = apply_atomic(AtomicUnit::Shared, word, mods.atom, mods.ty, operands);
            self.state.stats.atomic_words_changed += u64::from(first_bytes(word) != before);
            warp_inst.set_old_value(lane, old);
        }
    }
}

/// Bytes of an mbarrier.
pub(super) const MBARRIER: u32 = 8;

/// The fault of an atomic on a word, if it is an arrival at an mbarrier.
fn arrival_fault(op: AtomOp, word: &[u8], operand: u128) -> Option<Fault> {
    let state = word.first_chunk().copied().map_or(0, u64::from_le_bytes);
    fault(op, state, operand as u64)
}

/// The bytes of a word of up to 16 bytes.
fn first_bytes(word: &[u8]) -> [u8; 16] {
    std::array::from_fn(|n| word.get(n).copied().unwrap_or(0))
}

/// Applies the lanes of a packet to its line. Each lane gets its old value. Ends at the first arrival with a fault, and returns it.
///
/// Adds the lanes that change their word to `changed`.
pub(super) fn apply_packet(lanes: &mut AtomicLanes, line: &mut [u8], changed: &mut u64) -> Option<(AtomicLane, Fault)> {
    let (op, ty) = (lanes.op, lanes.ty);
    for lane in &mut lanes.lanes[..lanes.n] {
        let word = &mut line[lane.offset as usize..][..ty.bytes() as usize];
        if let Some(fault) = arrival_fault(op, word, lane.value) {
            return Some((*lane, fault));
        }
        let before = first_bytes(word);
        lane.value = apply_atomic(AtomicUnit::Shared, word, op, ty, (lane.value, lane.compare));
        *changed += u64::from(first_bytes(word) != before);
    }
    None
}
