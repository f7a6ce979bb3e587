//! Checks a bulk copy before it goes to the copy engine.

use warpwave_isa::opcode::Opcode;

use crate::proto::bulk::{fault, of};
use crate::proto::launch::Trap;
use crate::proto::warp::WarpInst;
use crate::sm::lsu::agu;

/// True for an instruction of the copy engine.
pub fn is_bulk(op: Opcode) -> bool {
    matches!(op, Opcode::Ublkcp | Opcode::Ublkred)
}

/// The trap of the first lane whose copy is misaligned, outside every allocation, or without a tensor map.
pub fn check(warp_inst: &WarpInst) -> Option<Box<Trap>> {
    let allocations = &warp_inst.grid.allocations;
    warp_inst.lanes.iter().find_map(|lane| {
        let is_allocated = |address, bytes| agu::contains(allocations, address, bytes);
        let fault = fault(warp_inst, &of(warp_inst, lane), is_allocated)?;
        Some(fault.trap(warp_inst, lane))
    })
}
