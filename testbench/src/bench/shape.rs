//! The shape of a launch: sizes and theoretical occupancy.

use warpwave_components::config::GpuConfig;
use warpwave_components::occupancy::{Occupancy, occupancy};
use warpwave_components::proto::launch::Grid;

use crate::report::metrics::LaunchShape;

/// The sizes of a launch, with its occupancy.
pub(super) fn launch_shape(grid: &Grid, config: &GpuConfig) -> LaunchShape {
    LaunchShape {
        ctas: grid.ctas(),
        threads: grid.threads(),
        registers: grid.registers,
        shared_bytes: grid.shared_bytes,
        occupancy: occupancy_of(grid, config),
    }
}

/// The theoretical occupancy of a launch.
pub(super) fn occupancy_of(grid: &Grid, config: &GpuConfig) -> Occupancy {
    occupancy(config, grid.threads(), grid.registers, grid.shared_bytes).expect("`Bench::new` has checked the launch")
}
