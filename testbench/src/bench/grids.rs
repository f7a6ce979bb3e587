//! The grids of a scenario: one for each launch.

use std::sync::Arc;

use warpwave_components::config::GpuConfig;
use warpwave_components::proto::launch::Grid;
use warpwave_components::storage::Storage;
use warpwave_isa::program::Program;
use warpwave_ptx::Module;

use super::BenchError;
use crate::host::{self, Placement, Workspaces};
use crate::scenario::Scenario;

/// Builds and checks the grid of every launch. Adds the workspaces of cooperative launches to the regions of `placement`.
pub(crate) fn grids(
    scenario: &Scenario,
    module: &Module,
    placement: &mut Placement,
    storage: &Storage,
    config: &GpuConfig,
) -> Result<Vec<Grid>, BenchError> {
    // One allocation for all of them: each grid has a list of the allocations.
    let n_cooperative = scenario.launches.iter().filter(|launch| launch.is_cooperative).count();
    let mut workspaces = Workspaces::new(n_cooperative);
    let grid = |(index, launch)| {
        let memory = (storage, &mut workspaces);
        host::build_grid(index as u32, launch, module, placement, memory, config)
            .map_err(|error| BenchError::Launch { index, error })
    };
    let mut grids = scenario
        .launches
        .iter()
        .enumerate()
        .map(grid)
        .collect::<Result<Vec<_>, _>>()?;
    placement.regions.extend(workspaces.region());
    number_instructions(&mut grids);
    Ok(grids)
}

/// Gives each instruction of all programs its own number, so a waveform can show instructions of several kernels. Launches of one
/// kernel share its program.
fn number_instructions(grids: &mut [Grid]) {
    let mut end = 0;
    let mut numbered: Vec<Arc<Program>> = Vec::new();
    for grid in grids {
        let known = numbered.iter().find(|program| program.name() == grid.program.name());
        if let Some(program) = known {
            grid.program = Arc::clone(program);
            continue;
        }
        // The first program begins at 0, so a run of one kernel copies no program.
        if end > 0 {
            grid.program = Arc::new(Program::clone(&grid.program).with_base_index(end));
        }
        end += grid.program.code().len() as u32;
        numbered.push(Arc::clone(&grid.program));
    }
}
