//! The bulk copy of a lane: the LSU checks it, and the copy engine executes it.

use warpwave_isa::exec::bulk::{Extent, MAP_ALIGNMENT, MAP_BYTES, TensorMap};
use warpwave_isa::exec::special::cluster_rank;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{PARAM_WINDOW, WINDOW_BYTES, split_window};

use super::cluster::ClusterPlacement;
use super::launch::{Grid, Trap, TrapKind};
use super::warp::WarpInst;

/// Alignment of the addresses and the size of a plain copy, in bytes.
const ALIGNMENT: u64 = 16;

/// Alignment of a tile in shared memory, in bytes (PTX ISA, `cp.async.bulk.tensor`).
const TILE_ALIGNMENT: u64 = 128;

/// Constant bank of the module's constants. Their window follows the window of the parameters.
pub const CONST_BANK: u8 = 3;

/// A bulk copy instruction. From the LSU to the copy engine.
#[derive(Clone, Debug)]
pub struct BulkInst {
    /// The instruction.
    pub warp_inst: Box<WarpInst>,
    /// Placement of the CTAs of its cluster. Without a cluster it is `None`, or left from an earlier launch.
    pub cluster: Option<ClusterPlacement>,
    /// Bytes of a CTA in the shared memory of an SM.
    pub cta_bytes: u32,
}

/// The bulk copy of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// Offset of the first byte in the shared memory of each receiving CTA. For a copy to global memory, of the CTA that it reads.
    pub shared: u32,
    /// First byte in global memory, or the address of the tensor map.
    pub global: u64,
    /// Bytes of a plain copy; 0 for a tile.
    pub bytes: u32,
    /// Coordinates of a tile.
    pub coordinates: [i32; 5],
    /// Offsets of an im2col copy.
    pub offsets: [u16; 3],
    /// Offset of its mbarrier in the shared memory of each receiving CTA.
    pub barrier: u32,
    /// Ranks of the CTAs whose shared memory it accesses, one bit each.
    pub ranks: u16,
}

/// A bulk copy that traps: cause, bytes, state space and address.
pub struct BulkFault(TrapKind, u32, &'static str, u64);

/// Where the tensor map of a copy is.
pub enum MapPlace {
    /// The copy has none.
    None,
    /// In a kernel parameter or in constant memory. `None` if there is no valid map.
    Constant(Option<TensorMap>),
    /// In global memory, from where the engine fetches it.
    Global,
}

/// The copy of a lane, from its operands.
pub fn of(warp_inst: &WarpInst, lane: usize) -> Bulk {
    let first = warp_inst.decoded().first_word;
    let word = |slot: usize, n: usize| warp_inst.operands.words[first[slot] as usize + n].0[lane];
    let extent = Extent::of(&warp_inst.inst().mods);
    let in_extent = |n: usize| word(2, n);
    let (rank, shared) = split_window(word(0, 0).into());
    let (_, barrier) = split_window(word(3, 0).into());
    let own = || cluster_rank(warp_inst.block, warp_inst.grid.cluster);
    Bulk {
        shared: shared as u32,
        global: u64::from(word(1, 1)) << 32 | u64::from(word(1, 0)),
        bytes: if extent.coordinates == 0 { word(2, 0) } else { 0 },
        coordinates: extent.coordinates(in_extent),
        offsets: extent.offsets(in_extent),
        barrier: barrier as u32,
        ranks: extent
            .mask(in_extent)
            // A rank of 16 or more gives an empty mask, which `fault` refuses.
            .unwrap_or_else(|| 1u16.checked_shl(rank.unwrap_or_else(own)).unwrap_or(0)),
    }
}

/// Finds the tensor map of a copy.
pub fn map_place(warp_inst: &WarpInst, bulk: &Bulk) -> MapPlace {
    if warp_inst.inst().mods.count == 0 {
        return MapPlace::None;
    }
    let Some(at) = bulk
        .global
        .checked_sub(PARAM_WINDOW)
        .filter(|at| *at < 2 * WINDOW_BYTES)
    else {
        return MapPlace::Global;
    };
    // The window of the parameters, then that of the module's constants.
    let bank = if at < WINDOW_BYTES { 0 } else { CONST_BANK };
    MapPlace::Constant(constant_map(&warp_inst.grid, bank, at % WINDOW_BYTES))
}

/// The tensor map at an offset of a constant bank, a multiple of 4.
pub fn constant_map(grid: &Grid, bank: u8, at: u64) -> Option<TensorMap> {
    if !at.is_multiple_of(4) {
        return None;
    }
    let first = u16::try_from(at / 4).ok()?;
    let mut bytes = [0; MAP_BYTES];
    for (n, word) in (0..).zip(bytes.as_chunks_mut::<4>().0) {
        *word = grid.constant(bank, first.checked_add(n)?).to_le_bytes();
    }
    TensorMap::from_bytes(&bytes)
}

/// True if `map` fits the instruction: the rank is the same, and a reduction exists for the map's elements.
///
/// A copy to shared memory has im2col offsets if and only if the map is an im2col map.
fn fits(warp_inst: &WarpInst, map: &TensorMap) -> bool {
    let inst = warp_inst.inst();
    let reduces = inst.op == Opcode::Ublkred;
    map.rank == inst.mods.count
        && (inst.mods.high || inst.mods.trans == map.im2col.is_some())
        && (!reduces || map.element.reduction(inst.mods.atom).is_some())
}

/// The space in the trap of a copy without a tensor map that fits it.
pub const MAP_SPACE: &str = "tensor map";

/// The fault of a copy: a misaligned or foreign address, or no tensor map. `is_allocated` tells whether bytes are in an allocation.
///
/// A map in global memory is checked when it has arrived, by [`map_fault`].
pub fn fault(warp_inst: &WarpInst, bulk: &Bulk, is_allocated: impl Fn(u64, u64) -> bool) -> Option<BulkFault> {
    use TrapKind::{Misaligned, OutOfBounds};
    let grid = &warp_inst.grid;
    let (shared, barrier) = (u64::from(bulk.shared), u64::from(bulk.barrier));
    let inside = |offset: u64, n: u32| offset + u64::from(n) <= u64::from(grid.shared_bytes);
    let to_shared = !warp_inst.inst().mods.high;
    // True if `ranks` has a bit beyond the last CTA of the cluster.
    let foreign = u32::from(bulk.ranks).checked_shr(grid.cluster_ctas()).unwrap_or(0) != 0;
    // A copy to global memory reads the CTA's own shared memory (PTX ISA, `cp.async.bulk`: `.shared::cta`).
    let own = 1 << cluster_rank(warp_inst.block, grid.cluster);
    let is_remote_source = !to_shared && bulk.ranks != own;
    if bulk.ranks == 0 || foreign || is_remote_source {
        return Some(BulkFault(OutOfBounds, bulk.bytes, "shared::cluster", shared));
    }
    // The report names the alignment as the size of the access.
    let alignment = match warp_inst.inst().mods.count {
        0 => ALIGNMENT,
        _ => TILE_ALIGNMENT,
    };
    if !shared.is_multiple_of(alignment) {
        return Some(BulkFault(Misaligned, alignment as u32, "shared", shared));
    }
    if to_shared && !inside(barrier, 8) {
        return Some(BulkFault(OutOfBounds, 8, "shared", barrier));
    }
    match map_place(warp_inst, bulk) {
        MapPlace::Constant(map) => map_fault(warp_inst, bulk, map.as_ref()),
        MapPlace::Global if !is_allocated(bulk.global, MAP_BYTES as u64) => {
            Some(BulkFault(OutOfBounds, MAP_BYTES as u32, MAP_SPACE, bulk.global))
        }
        MapPlace::Global => (!bulk.global.is_multiple_of(MAP_ALIGNMENT)).then_some(BulkFault(
            Misaligned,
            MAP_BYTES as u32,
            "global",
            bulk.global,
        )),
        MapPlace::None if !inside(shared, bulk.bytes) => Some(BulkFault(OutOfBounds, bulk.bytes, "shared", shared)),
        MapPlace::None if !u64::from(bulk.bytes).is_multiple_of(ALIGNMENT) => {
            Some(BulkFault(TrapKind::BulkSize, bulk.bytes, "global", bulk.global))
        }
        MapPlace::None if !bulk.global.is_multiple_of(ALIGNMENT) => {
            Some(BulkFault(Misaligned, ALIGNMENT as u32, "global", bulk.global))
        }
        MapPlace::None => (!is_allocated(bulk.global, bulk.bytes.into())).then_some(BulkFault(
            OutOfBounds,
            bulk.bytes,
            "global",
            bulk.global,
        )),
    }
}

/// The fault of a copy of a tile: no map that fits it, or a tile beyond shared memory.
pub fn map_fault(warp_inst: &WarpInst, bulk: &Bulk, map: Option<&TensorMap>) -> Option<BulkFault> {
    let Some(map) = map.filter(|map| fits(warp_inst, map)) else {
        return Some(BulkFault(
            TrapKind::OutOfBounds,
            MAP_BYTES as u32,
            MAP_SPACE,
            bulk.global,
        ));
    };
    let bytes = map.tile_bytes();
    let end = u64::from(bulk.shared) + u64::from(bytes);
    (end > u64::from(warp_inst.grid.shared_bytes)).then_some(BulkFault(
        TrapKind::OutOfBounds,
        bytes,
        "shared",
        bulk.shared.into(),
    ))
}

impl BulkFault {
    /// The trap of the thread in `lane`.
    #[cold]
    pub fn trap(self, warp_inst: &WarpInst, lane: usize) -> Box<Trap> {
        let BulkFault(kind, bytes, space, address) = self;
        warp_inst.origin().trap(lane, kind, (address, bytes), space)
    }
}
