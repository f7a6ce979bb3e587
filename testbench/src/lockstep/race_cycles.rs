//! The cycles in which the machine issues the accesses of a race.
//! The reference finds the race but has no time, so the scenario runs once more on the machine.

use warpwave_components::config::GpuConfig;
use warpwave_hw::time::Cycle;
use warpwave_isa::program::Program;

use super::CheckedLaunch;
use crate::bench::{Bench, BenchError, Options};
use crate::reference::Access;
use crate::scenario::Scenario;
use crate::watch::issues::{Execution, Issues};

/// Runs the scenario on the machine once more. Returns the issue cycles of both accesses of each race, by launch.
///
/// A cycle is `None` if the warp takes another path on the machine, or if the run ends at `max_cycles` before it.
///
/// # Errors
/// If the scenario does not match its program or exceeds the GPU.
pub fn race_cycles(
    scenario: &Scenario,
    config: &GpuConfig,
    checked: &[CheckedLaunch],
    max_cycles: Option<u64>,
) -> Result<Vec<Vec<[Option<Cycle>; 2]>>, BenchError> {
    let mut bench = Bench::new(scenario, config.clone())?;
    let programs = bench.programs().to_vec();
    let executions: Vec<Vec<[Option<Execution>; 2]>> = checked
        .iter()
        .enumerate()
        .map(|(launch, found)| {
            let races = found.findings.races.iter();
            let of = |access| execution(launch as u32, access, (&found.program, &programs[launch]));
            races.map(|race| [of(&race.first), of(&race.second)]).collect()
        })
        .collect();
    let mut issues = Issues::new(executions.iter().flatten().flatten().flatten().copied());
    let options = Options { threads: 1, max_cycles };
    bench.run_with_events(options, &mut [&mut issues], &mut |_| true);
    let cycle = |execution: Option<Execution>| issues.cycle(&execution?);
    let cycles = executions
        .iter()
        .map(|races| races.iter().map(|pair| pair.map(cycle)).collect());
    Ok(cycles.collect())
}

/// An access of a race as an execution on the machine. `None` if the machine's program has no such instruction.
fn execution(launch: u32, access: &Access, programs: (&Program, &Program)) -> Option<Execution> {
    Some(Execution {
        launch,
        block: access.block,
        warp: access.warp,
        pc: machine_pc(programs, access.pc)?,
        nth: access.nth,
    })
}

/// The machine's instruction for instruction `pc` of the reference. The machine's program leaves out some `bar.warp.sync`.
/// All other instructions keep opcode, PTX line, and their order among instructions of the same opcode and line.
fn machine_pc((reference, machine): (&Program, &Program), pc: u32) -> Option<u32> {
    // Program counters do not carry over. The n-th instruction of an opcode on a PTX line does.
    let wanted = &reference.code()[pc as usize];
    let is_same = |inst: &warpwave_isa::inst::Inst| (inst.op, inst.line) == (wanted.op, wanted.line);
    let before = reference.code()[..pc as usize]
        .iter()
        .filter(|inst| is_same(inst))
        .count();
    let alike = machine.code().iter().enumerate().filter(|(_, inst)| is_same(inst));
    alike.map(|(pc, _)| pc as u32).nth(before)
}
