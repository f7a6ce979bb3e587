//! The cycles in which the machine issues the accesses of a race. The reference, which finds the race, has no time.

use warpwave_components::config::GpuConfig;
use warpwave_hw::time::Cycle;
use warpwave_isa::program::Program;

use super::CheckedLaunch;
use crate::bench::{Bench, BenchError, Options};
use crate::reference::Access;
use crate::scenario::Scenario;
use crate::watch::issues::{Execution, Issues};
use crate::watch::{EventCollector, Listener};

/// Runs the scenario on the machine once more. Returns the issue cycles of both accesses of each race, by launch.
///
/// A cycle is missing if the warp takes another path on the machine, or if the run ends before it at `max_cycles`.
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
    let mut collector = EventCollector::begin(bench.gpu_mut());
    let options = Options { threads: 1, max_cycles };
    bench.run(options, &mut |progress| {
        collector.collect(progress.now, &mut [&mut issues as &mut dyn Listener]);
        true
    });
    // The event after the last cycle is of no warp.
    collector.collect(bench.gpu().clock().now() + 1, &mut [&mut issues as &mut dyn Listener]);
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

/// The machine's instruction for instruction `pc` of the reference. The programs differ in the `bar.warp.sync` that the machine leaves
/// out. So the two have the same opcode and PTX line, and as many instructions of both kinds before them.
fn machine_pc((reference, machine): (&Program, &Program), pc: u32) -> Option<u32> {
    let wanted = &reference.code()[pc as usize];
    let is_same = |inst: &warpwave_isa::inst::Inst| (inst.op, inst.line) == (wanted.op, wanted.line);
    let before = reference.code()[..pc as usize]
        .iter()
        .filter(|inst| is_same(inst))
        .count();
    let alike = machine.code().iter().enumerate().filter(|(_, inst)| is_same(inst));
    alike.map(|(pc, _)| pc as u32).nth(before)
}
