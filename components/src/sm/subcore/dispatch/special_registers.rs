//! Special registers of a warp: its position in the GPU and in its grid, and the clocks.

use warpwave_hw::time::Cycle;
use warpwave_isa::exec::special::WarpContext;
use warpwave_isa::lane::WARP_SIZE;

use super::Config;
use crate::proto::warp::WarpStart;

/// The special registers of a warp in cycle `now`, without the result of its last counting barrier.
pub(super) fn special_registers(config: &Config, start: &WarpStart, now: Cycle) -> WarpContext {
    let grid = &start.grid;
    WarpContext {
        block_size: grid.block,
        first_thread: start.index * WARP_SIZE as u32,
        cta: start.block,
        // Neighbouring numbers lie on different sub-cores.
        warp: u32::from(start.warp) * config.subcores + u32::from(config.subcore),
        n_warps: config.warps as u32 * config.subcores,
        sm: config.sm.0,
        n_sms: config.sm.1,
        grid: grid.id,
        clock: now.0,
        // Nanoseconds. The product of a long run exceeds 64 bits.
        globaltimer: (u128::from(now.0) * 1_000_000 / u128::from(config.core_khz)) as u64,
        grid_size: grid.grid,
        cluster: grid.cluster,
        dynamic_shared_bytes: grid.dynamic_shared_bytes,
        total_shared_bytes: grid.shared_bytes,
        barrier_count: 0,
    }
}
