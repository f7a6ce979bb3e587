//! Oracle: a random program must leave the same memory on the machine and on the reference.

mod generate;

mod program;

mod silicon;

mod statements;

mod table;

mod tree;

mod units;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use warpwave_components::config::GpuConfig;
use warpwave_components::preset;

use super::Reached;
use crate::bench::{Bench, Options};
use crate::lockstep;
use crate::reference::Checks;
use crate::scenario::Scenario;
use program::MACHINES;
pub use program::RandomProgram;
pub use silicon::write_plan;

/// Limit of warp instructions, and of cycles. Every generated program needs fewer.
const LIMIT: u64 = 4_000_000;

/// The configurations of [`MACHINES`], each with the SMs of one TPC.
static CONFIGS: LazyLock<BTreeMap<&str, GpuConfig>> = LazyLock::new(|| {
    let small = |name: &&'static str| {
        let mut config = preset::load(name, &[]).expect("a built-in preset").config;
        // One TPC keeps a run short. A cluster of four blocks fits it.
        (config.topology.gpcs, config.topology.tpcs_per_gpc) = (1, vec![1]);
        (*name, config)
    };
    MACHINES.iter().map(small).collect()
});

impl RandomProgram {
    /// The program as a scenario with one launch.
    pub fn scenario(&self) -> Scenario {
        generate::scenario(self)
    }

    /// The machine that the program was drawn for: a preset with one TPC.
    pub fn config(&self) -> GpuConfig {
        CONFIGS[self.machine].clone()
    }
}

/// True if the invariants of the machine are checked. A check reads every line of the L2, so a large machine is checked less often.
fn is_checked(program: &RandomProgram, config: &GpuConfig) -> bool {
    let one_of = if config.l2.size <= 1 << 20 { 4 } else { 32 };
    program.seed.is_multiple_of(one_of)
}

/// Runs a program on a small machine and on the reference.
///
/// # Panics
/// If the program does not compile, or does not end on both. If they leave different bytes in memory. If the race detector finds a race or
/// a read of unwritten bytes. The program has none. If an invariant of the machine is broken, in the programs that check it.
///
/// ```
/// use warpwave::oracle;
/// oracle::replay(b"any bytes make a program", oracle::random_programs);
/// ```
pub fn random_programs(program: RandomProgram) -> Reached {
    let scenario = program.scenario();
    let fails = |what: String| -> ! { panic!("{what}\nof this program:\n{}", scenario.ptx) };
    let config = program.config();
    let mut bench = match Bench::new(&scenario, config.clone()) {
        Ok(bench) => bench,
        Err(error) => fails(format!("{error:?}")),
    };
    // Before the machine runs: the reference copies the initial memory.
    let reference = match lockstep::reference(&bench, LIMIT) {
        Ok(memory) => memory,
        Err((_, error)) => fails(format!("without time: {error}")),
    };
    if is_checked(&program, &config) {
        bench.gpu_mut().check_invariants();
    }
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let run = bench.run(options, &mut |_| true);
    if let Some((_, error)) = run.stopped {
        fails(format!("on the machine: {error}"));
    }
    if let Some(difference) = lockstep::difference(&bench, &reference) {
        fails(format!("machine and reference differ: {difference}"));
    }
    let checks = Checks {
        races: true,
        uninit: true,
        ..Checks::default()
    };
    match lockstep::check_memory(&scenario, &config, checks, LIMIT) {
        Ok(checked) if checked.iter().all(|launch| launch.findings.is_empty()) => {}
        Ok(checked) => {
            let findings: Vec<_> = checked.iter().map(|launch| &launch.findings).collect();
            fails(format!("the race detector finds {findings:?}"))
        }
        Err(error) => fails(format!("{error:?}")),
    }
    let mut reached = Reached::default();
    reached.note_counters(bench.gpu());
    reached
}
