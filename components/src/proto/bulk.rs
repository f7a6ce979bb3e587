//! The bulk copy of a lane: the LSU checks it, and the copy engine executes it.

use warpwave_isa::exec::bulk::{MAP_BYTES, TensorMap};
use warpwave_isa::space::PARAM_WINDOW;

use crate::proto::launch::Grid;
use crate::proto::warp::WarpInst;

/// The bulk copy of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// First byte in the CTA's shared memory.
    pub shared: u32,
    /// First byte in global memory, or the address of the tensor map.
    pub global: u64,
    /// Bytes of a plain copy, or the coordinates of a tile.
    pub extent: [u32; 5],
    /// Offset of its mbarrier in the CTA's shared memory.
    pub barrier: u32,
}

/// The copy of a lane, from its operands.
pub fn of(warp_inst: &WarpInst, lane: usize) -> Bulk {
    let first = warp_inst.decoded().first_word;
    let word = |slot: usize, n: usize| warp_inst.operands.words[first[slot] as usize + n].0[lane];
    let n_extents = usize::from(warp_inst.inst().mods.count.max(1));
    Bulk {
        shared: word(0, 0),
        global: u64::from(word(1, 1)) << 32 | u64::from(word(1, 0)),
        extent: std::array::from_fn(|n| if n < n_extents { word(2, n) } else { 0 }),
        barrier: word(3, 0),
    }
}

/// The tensor map at an address, if it is a kernel parameter. Maps in other memory are not modelled.
pub fn map(grid: &Grid, address: u64) -> Option<TensorMap> {
    let at = address.checked_sub(PARAM_WINDOW)?;
    let first = u16::try_from(at / 4).ok()?;
    let mut bytes = [0; MAP_BYTES];
    for (n, word) in (0..).zip(bytes.as_chunks_mut::<4>().0) {
        *word = grid.constant(0, first.checked_add(n)?).to_le_bytes();
    }
    TensorMap::from_bytes(&bytes)
}
