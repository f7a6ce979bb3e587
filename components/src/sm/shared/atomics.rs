//! Atomics on shared memory: read, modify, write, in lane order.

use warpwave_isa::exec::atomic::atomic;
use warpwave_isa::inst::{AtomOp, Ty};

use super::SharedMemory;
use crate::proto::mem::AtomicLanes;
use crate::proto::warp::WarpInst;

impl SharedMemory {
    /// Applies an atomic of the SM's own.
    pub(super) fn apply_atomic(&mut self, warp_inst: &mut WarpInst) {
        let mods = warp_inst.inst().mods;
        let total = mods.access.total() as usize;
        let own = &mut self.state.bytes[warp_inst.shared_base as usize..];
        for lane in warp_inst.shared_lanes.iter() {
            let place = &mut own[warp_inst.addresses.get(lane) as usize..][..total];
            let old = apply(place, mods.atom, mods.ty, warp_inst.atomic_operands(lane));
            warp_inst.set_old_value(lane, old);
        }
    }
}

/// Applies the lanes of a packet to its line. Their values become the old ones.
pub(super) fn apply_packet(lanes: &mut AtomicLanes, line: &mut [u8]) {
    let (op, ty) = (lanes.op, lanes.ty);
    for lane in &mut lanes.lanes[..lanes.n] {
        let place = &mut line[lane.offset as usize..][..ty.bytes() as usize];
        lane.value = apply(place, op, ty, (lane.value, lane.compare));
    }
}

/// Applies one operation to the bytes of one value. Returns the old value.
fn apply(place: &mut [u8], op: AtomOp, ty: Ty, (operand, compare): (u64, u64)) -> u64 {
    let mut old = [0; 8];
    old[..place.len()].copy_from_slice(place);
    let old = u64::from_le_bytes(old);
    let new = atomic(op, ty, old, operand, compare);
    place.copy_from_slice(&new.to_le_bytes()[..place.len()]);
    old
}
