//! A machine with the least and the greatest accepted number of each key runs a kernel, without panic or deadlock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warpwave::bench::{Bench, Options, StopReason};
use warpwave::scenario::builtin;
use warpwave_components::config::GpuConfig;
use warpwave_components::preset;

/// Blocks in clusters that use shared memory, its atomics, barriers, and the memory of other blocks.
const SCENARIO: &str = "cluster_histogram";

/// Cycle limit: most machines run by then, but the slowest has not placed a CTA yet.
const OPTIONS: Options = Options {
    threads: 1,
    max_cycles: Some(4000),
};

/// Largest L2 to build, in bytes: the machine needs as much host memory.
const LARGE_L2: u32 = 1 << 26;

/// The two least accepted numbers and the greatest one for a key of the GPU `tiny`.
fn extremes(key: &str) -> Vec<(String, GpuConfig)> {
    let powers = (0..=32).map(|n| 1u64 << n);
    let mut values: Vec<u64> = (0..=64).chain(powers.clone()).chain(powers.map(|n| n - 1)).collect();
    values.sort_unstable();
    values.dedup();
    let accepted = |value: u64| {
        let config = preset::load("tiny", &[(key.to_owned(), value.to_string())])
            .ok()?
            .config;
        (config.l2.size <= LARGE_L2).then(|| (format!("{key}={value}"), config))
    };
    let mut found: Vec<_> = values.into_iter().filter_map(accepted).collect();
    let last = found.split_off(found.len().saturating_sub(1));
    found.truncate(2);
    found.extend(last);
    found
}

#[test]
fn machine_with_an_extreme_number_runs_a_kernel_or_refuses_it() {
    let scenario = builtin::load(SCENARIO).unwrap();
    let (mut ran, mut refused, mut findings) = (0, 0, Vec::new());
    for number in preset::load("tiny", &[]).unwrap().sources {
        for (setting, config) in extremes(&number.key) {
            let run = catch_unwind(AssertUnwindSafe(|| {
                let mut bench = Bench::new(&scenario, config).ok()?;
                Some(bench.run(OPTIONS, &mut |_| true))
            }));
            match run {
                Ok(Some(run))
                    if matches!(run.stopped_by(), None | Some(StopReason::Limit)) && run.differences.is_empty() =>
                {
                    ran += 1
                }
                Ok(Some(run)) => findings.push(format!("{setting}: {:?} {:?}", run.stopped, run.differences)),
                Ok(None) => refused += 1,
                Err(_) => findings.push(format!("{setting}: panics")),
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(ran > 250 && refused < 40, "{ran} ran, {refused} refused");
}
