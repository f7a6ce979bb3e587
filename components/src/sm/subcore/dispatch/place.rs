//! What special registers read: where a warp is in the machine and in its grid, and when.

use warpwave_hw::time::Cycle;
use warpwave_isa::exec::special::Place;
use warpwave_isa::lane::WARP_SIZE;

use super::Config;
use crate::proto::warp::WarpStart;

/// The place of a warp, but for what its barriers counted.
pub(super) fn place(config: &Config, start: &WarpStart, now: Cycle) -> Place {
    let grid = &start.grid;
    Place {
        block_size: grid.block,
        first_thread: start.index * WARP_SIZE as u32,
        cta: start.block,
        warp: u32::from(start.warp) * config.subcores + u32::from(config.subcore),
        n_warps: config.warps as u32 * config.subcores,
        sm: config.sm.0,
        n_sms: config.sm.1,
        grid: grid.id,
        clock: now.0,
        globaltimer: (u128::from(now.0) * 1_000_000 / u128::from(config.core_khz)) as u64,
        grid_size: grid.grid,
        cluster: grid.cluster,
        dynamic_shared_bytes: grid.dynamic_shared_bytes,
        total_shared_bytes: grid.shared_bytes,
        barrier_count: 0,
    }
}
