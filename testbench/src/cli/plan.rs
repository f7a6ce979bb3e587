//! `--plan`: the launches of a scenario for a real GPU, with the model's results beside them.

use std::path::Path;

use warpwave::bench::Bench;
use warpwave::lockstep;
use warpwave::plan::{self, Plan};
use warpwave::scenario::Scenario;

use super::failure::Failure;
use super::write;

/// Refuses a scenario that a plan cannot hold, before it runs.
pub fn check(scenario: &Scenario) -> Result<(), Failure> {
    Plan::of(scenario).map(drop).map_err(Failure::input)
}

/// Writes the plan, and the bytes of each buffer after the run as `SCENARIO.BUFFER.model`.
pub fn write(folder: &Path, scenario: &Scenario, bench: &Bench<'_>) -> Result<(), Failure> {
    let plan = Plan::of(scenario).map_err(Failure::input)?;
    plan::write(folder, &[plan])
        .map_err(|error| Failure::input(format!("cannot write into {}: {error}", folder.display())))?;
    for (buffer, address) in bench.data() {
        let bytes = lockstep::bytes_of(buffer, address, bench.gpu().storage());
        write::write(&folder.join(format!("{}.{}.model", scenario.name, buffer.name)), &bytes)?;
    }
    Ok(())
}
