//! Checks a bulk copy before it goes to the copy engine.

use warpwave_isa::exec::bulk::MAP_BYTES;

use crate::proto::bulk::{Bulk, map, of};
use crate::proto::launch::{Trap, TrapKind};
use crate::proto::warp::WarpInst;
use crate::sm::lsu::agu;
use crate::sm::lsu::fault::Fault;

/// Alignment of the addresses and the size of a plain copy, in bytes.
const ALIGNMENT: u64 = 16;

/// The trap of the first lane whose copy is misaligned, outside every allocation, or without a tensor map.
pub fn check(warp_inst: &WarpInst) -> Option<Box<Trap>> {
    warp_inst.lanes.iter().find_map(|lane| {
        let bulk = of(warp_inst, lane);
        let (kind, bytes, space, address) = fault(warp_inst, &bulk)?;
        Some(Fault::new(kind, lane, address, bytes, space).trap(warp_inst))
    })
}

/// Kind, bytes, state space and address of a copy's fault.
fn fault(warp_inst: &WarpInst, bulk: &Bulk) -> Option<(TrapKind, u32, &'static str, u64)> {
    let grid = &warp_inst.grid;
    let is_tile = warp_inst.inst().mods.count > 0;
    let bytes = match is_tile {
        false => bulk.extent[0],
        true => match map(grid, bulk.global) {
            Some(map) => map.tile_bytes(),
            None => return Some((TrapKind::OutOfBounds, MAP_BYTES as u32, "param", bulk.global)),
        },
    };
    let to_shared = !warp_inst.inst().mods.high;
    let inside = |offset: u32, n: u32| u64::from(offset) + u64::from(n) <= u64::from(grid.shared_bytes);
    let aligned = |address: u64| address.is_multiple_of(ALIGNMENT);
    match () {
        () if !aligned(bulk.shared.into()) => Some((TrapKind::Misaligned, bytes, "shared", bulk.shared.into())),
        () if !inside(bulk.shared, bytes) => Some((TrapKind::OutOfBounds, bytes, "shared", bulk.shared.into())),
        () if to_shared && !inside(bulk.barrier, 8) => Some((TrapKind::OutOfBounds, 8, "shared", bulk.barrier.into())),
        // A tile may reach beyond its tensor.
        () if is_tile => None,
        () if !aligned(bulk.global) || !aligned(bytes.into()) => {
            Some((TrapKind::Misaligned, bytes, "global", bulk.global))
        }
        () if !agu::contains(&grid.allocations, bulk.global, bytes.into()) => {
            Some((TrapKind::OutOfBounds, bytes, "global", bulk.global))
        }
        () => None,
    }
}
