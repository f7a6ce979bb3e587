//! Every key of a preset does something: another value gives another result, or is refused in a sentence that names the key.
//!
//! The test walks all keys of the GPU `tiny`. It changes each in turn, up and down, and looks at a few probes that together reach every
//! block of the machine. A probe runs a scenario or a kernel, or asks for occupancy, and writes down all that a user can see of it: cycles,
//! every counter, latencies, memory requests by stage, and refusals.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use warpwave::bench::{Bench, Options};
use warpwave::components::config::GpuConfig;
use warpwave::components::occupancy::occupancy;
use warpwave::components::preset;
use warpwave::components::proto::event::Request;
use warpwave::gpu::{Factory, Gpu, GpuError};
use warpwave::scenario::builtin;
use warpwave::watch::{Listener, Watch};
use warpwave_hw::component::Component;
use warpwave_hw::stats::{Latency, Report};

const KERNELS: &str = include_str!("kernels.ptx");

/// A program for a GPU of compute capability 8.6.
const FOR_8_6: &str = ".version 7.8\n.target sm_86\n.address_size 64\n.visible .entry k() { ret; }\n";

/// Cycles after which a launch ends, whatever a changed number makes of it.
const LIMIT: u64 = 60_000;

/// Settings of the GPU `tiny` with which a probe begins.
type Sets = &'static [(&'static str, &'static str)];

/// Something to look at in a machine.
struct Probe {
    /// What `tiny` has otherwise here.
    base: Sets,
    /// All that is seen.
    look: fn(GpuConfig) -> String,
}

/// Room around totals and sums of timings, so that their parts may grow.
const ROOM: Sets = &[
    ("hbm.access_latency", "400"),
    ("l2.hit_latency", "200"),
    ("hbm.timing.t_ccd_s", "2"),
    ("hbm.timing.t_ccd_l", "3"),
    ("hbm.timing.t_rc", "60"),
];

/// The probes, the quickest first.
const PROBES: [Probe; 11] = [
    Probe {
        base: &[],
        look: residency,
    },
    Probe {
        base: &[("cc_major", "8")],
        look: program_for_8_6,
    },
    Probe { base: &[], look: units },
    Probe {
        base: &[],
        look: |config| scenario("cluster_histogram", config),
    },
    Probe {
        base: &[],
        look: |config| scenario("wgmma_gemm", config),
    },
    Probe {
        base: &[],
        look: |config| scenario("tma_bulk_scale", config),
    },
    Probe {
        base: ROOM,
        look: traffic,
    },
    Probe {
        base: &[("hbm.row_policy", "timeout")],
        look: traffic,
    },
    Probe {
        base: &[("l2.slices", "4"), ("l2.partitions", "2"), ("l2.far_latency", "50")],
        look: traffic,
    },
    Probe {
        base: &[],
        look: |config| scenario("sgemm_tiled", config),
    },
    Probe {
        base: &[],
        look: |config| scenario("transpose_naive", config),
    },
];

/// Writes the counters and latencies of components.
struct Counters<'a>(&'a mut String);

impl Report for Counters<'_> {
    fn count(&mut self, _name: &'static str, value: u64) {
        write!(self.0, "{value} ").unwrap();
    }

    fn latency(&mut self, _name: &'static str, latency: &Latency) {
        let histogram = latency.histogram();
        let ends = (histogram.len(), histogram.min(), histogram.max());
        write!(self.0, "{ends:?} {:.3} ", histogram.mean()).unwrap();
    }
}

fn counters<'a>(components: impl Iterator<Item = &'a dyn Component>, seen: &mut String) {
    components.for_each(|component| component.stats(&mut Counters(seen)));
}

/// Sums the cycles in which requests entered each stage.
#[derive(Default)]
struct Stages(BTreeMap<usize, u64>);

impl Listener for Stages {
    fn request(&mut self, _sm: u16, request: &Request) {
        for (stage, at) in request.stamps.0.iter().enumerate() {
            *self.0.entry(stage).or_default() += at.0 & 0xffff_ffff;
        }
    }
}

/// A built-in scenario.
fn scenario(name: &str, config: GpuConfig) -> String {
    let scenario = builtin::load(name).unwrap();
    let mut bench = match Bench::new(&scenario, config) {
        Ok(bench) => bench,
        Err(error) => return error.to_string(),
    };
    let mut seen = format!("{:?}", bench.too_new());
    let mut watch = Watch::begin(bench.gpu_mut());
    let mut stages = Stages::default();
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let run = bench.run(options, &mut |progress| {
        watch.collect(progress.now, &mut [&mut stages]);
        true
    });
    watch.collect(bench.gpu().clock().now(), &mut [&mut stages]);
    assert!(run.differences.is_empty(), "{name}: {:?}", run.differences);
    for launch in &run.launches {
        write!(seen, "{} ", launch.cycles).unwrap();
    }
    counters(bench.gpu().components(), &mut seen);
    write!(seen, "{:?} {:?}", run.stopped, stages.0).unwrap();
    seen
}

/// A kernel of this test, with its last arguments.
fn kernel(name: &str, config: GpuConfig, (grid, block): (u32, u32), args: &[u32]) -> Result<String, GpuError> {
    let mut gpu = Gpu::with_own(config, &Factory::new())?;
    gpu.limit_cycles(LIMIT);
    let module = gpu.load(KERNELS)?;
    let data = gpu.buffer(&vec![1u32; 80 << 10])?;
    let mut all: Vec<&dyn warpwave::gpu::KernelArg> = vec![&data];
    all.extend(args.iter().map(|arg| arg as &dyn warpwave::gpu::KernelArg));
    let report = gpu.launch(&module, name, (grid, block), &all)?;
    let mut seen = format!("{} ", report.cycles());
    counters(gpu.machine_mut().components(), &mut seen);
    Ok(seen)
}

/// Every pipe, shared memory, constants, fences and barriers.
fn units(config: GpuConfig) -> String {
    let run = kernel("units", config, (40, 96), &[3]);
    run.unwrap_or_else(|error| error.to_string())
}

/// Loads, stores and atomics over more lines than the caches hold.
fn traffic(config: GpuConfig) -> String {
    let run = kernel("traffic", config, (12, 256), &[132, 4]);
    run.unwrap_or_else(|error| error.to_string())
}

/// Residency of CTAs of several shapes: threads, registers of a thread, bytes of shared memory.
fn residency(config: GpuConfig) -> String {
    let shapes = [
        (1024, 32, 0),
        (96, 40, 1000),
        (32, 255, 49_152),
        (256, 64, 8_300),
        (160, 33, 300),
        (64, 24, 16_500),
    ];
    let found = shapes.map(|(threads, registers, shared)| occupancy(&config, threads, registers, shared));
    format!("{found:?}")
}

/// Whether a GPU runs a program made for 8.6.
fn program_for_8_6(config: GpuConfig) -> String {
    let mut gpu = Gpu::with_own(config, &Factory::new()).unwrap();
    gpu.load(FOR_8_6)
        .map_or_else(|error| error.to_string(), |_| String::new())
}

/// Other values of a key, near ones first.
fn others(key: &str, value: &str) -> Vec<String> {
    if let Ok(value) = value.parse::<u64>() {
        let numbers = [
            value + 1,
            2 * value,
            value / 2,
            value.saturating_sub(1),
            4 * value,
            1,
            value / 16,
            value / 1024,
            0,
        ];
        return numbers
            .into_iter()
            .filter(|&other| other != value)
            .map(|other| other.to_string())
            .collect();
    }
    if let Some(list) = value.strip_prefix('[') {
        let numbers: Vec<u64> = list
            .trim_end_matches(']')
            .split(',')
            .map(|n| n.trim().parse().unwrap())
            .collect();
        let doubled = numbers.iter().map(|n| 2 * n).collect::<Vec<_>>();
        let fewer = numbers[1..].to_vec();
        return [doubled, fewer].map(|list| format!("{list:?}")).into();
    }
    // The error for a word that no key has lists the words of this one.
    let error = preset::load("tiny", &[(key.to_owned(), "no_such_word".to_owned())])
        .unwrap_err()
        .to_string();
    let (_, words) = error
        .split_once("expected")
        .expect("a wrong word is refused with a list");
    let words = words.split('`').skip(1).step_by(2).map(|word| format!("\"{word}\""));
    words.filter(|word| word != value).collect()
}

/// How `key` shows: a probe that sees another value, or the refusals of all other values that name it.
fn shows(key: &str, value: &str, first: &mut [Option<String>]) -> Result<(), String> {
    let mut accepted = Vec::new();
    for other in others(key, value) {
        let mut is_accepted = false;
        for (probe, first) in PROBES.iter().zip(&mut *first) {
            let set = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            let base: Vec<_> = probe.base.iter().map(set).collect();
            let changed = [base.clone(), vec![(key.to_owned(), other.clone())]].concat();
            match preset::load("tiny", &changed) {
                Err(error) if probe.base.is_empty() && !error.to_string().contains(&format!("`{key}`")) => {
                    return Err(format!("{key}={other} is refused without its name: {error}"));
                }
                Err(_) => continue,
                Ok(preset) => {
                    is_accepted = true;
                    let before = first.get_or_insert_with(|| {
                        let tiny = preset::load("tiny", &base).unwrap_or_else(|error| panic!("{error}"));
                        (probe.look)(tiny.config)
                    });
                    if (probe.look)(preset.config) != *before {
                        return Ok(());
                    }
                }
            }
        }
        if is_accepted {
            accepted.push(other);
        }
    }
    match accepted.is_empty() {
        true => Ok(()),
        false => Err(format!("{key}: nothing changes with any of {}", accepted.join(", "))),
    }
}

#[test]
fn every_key_of_a_preset_changes_a_result_or_refuses_other_values() {
    let tiny = preset::load("tiny", &[]).unwrap();
    let mut first = vec![None; PROBES.len()];
    let keys = tiny.sources.iter();
    let findings: Vec<_> = keys
        .filter_map(|key| shows(&key.key, &key.value, &mut first).err())
        .collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
