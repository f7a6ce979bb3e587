//! Every key of a preset has an effect: another value changes a result, or is refused with an error that names the key.
//!
//! The test changes each key of the GPU `tiny`, up and down, and runs probes that together reach every block of the machine. A probe runs a
//! scenario or a kernel, or computes occupancy. It records what a user can see: cycles, every counter, latencies, memory requests by stage,
//! and refusals.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use warpwave::bench::{Bench, Options};
use warpwave::components::config::GpuConfig;
use warpwave::components::occupancy::occupancy;
use warpwave::components::preset;
use warpwave::components::proto::event::Request;
use warpwave::gpu::{Factory, Gpu, GpuError};
use warpwave::scenario::builtin;
use warpwave::watch::Listener;
use warpwave_hw::component::Component;
use warpwave_hw::stats::{Latency, Report};

const KERNELS: &str = include_str!("kernels.ptx");

/// A program for a GPU of compute capability 8.6.
const FOR_8_6: &str = ".version 7.8\n.target sm_86\n.address_size 64\n.visible .entry k() { ret; }\n";

/// Counts the blocks of 1,000 bytes that `malloc` returns, up to eight.
const HEAP: &str = include_str!("heap.ptx");

/// Cycle limit of a launch, for changes that make it very slow.
const LIMIT: u64 = 80_000;

/// Settings of `tiny` for a probe.
type Sets = &'static [(&'static str, &'static str)];

/// An observation of a machine.
struct Probe {
    /// Settings of `tiny` that this probe changes.
    base: Sets,
    /// Returns everything observed, or the error.
    look: fn(GpuConfig) -> Result<String, String>,
}

/// Settings with slack in totals and sums of timings, so that their parts may grow.
const ROOM: Sets = &[
    ("hbm.access_latency", "400"),
    ("l2.hit_latency", "200"),
    ("hbm.timing.t_ccd_s", "2"),
    ("hbm.timing.t_ccd_l", "3"),
    ("hbm.timing.t_rc", "60"),
];

/// The probes, the quickest first.
const PROBES: [Probe; 21] = [
    Probe {
        base: &[("limits.shared_per_block_max", "47104")],
        look: residency,
    },
    Probe {
        base: &[("cc_major", "8")],
        look: program_for_8_6,
    },
    Probe { base: &[], look: units },
    Probe { base: &[], look: apart },
    Probe {
        base: &[],
        look: two_launches,
    },
    Probe {
        base: &[("sm.reconvergence", "stack"), ("gigathread.standstill_cycles", "20000")],
        look: |config| Ok(format!("{:?}", apart(config))),
    },
    Probe {
        base: &[("sm.constant.l15_size", "1024")],
        look: constants,
    },
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
        base: &[("check.weak", "50")],
        look: traffic,
    },
    Probe {
        base: ROOM,
        look: traffic,
    },
    Probe {
        // The traffic covers 66 pages of this size.
        base: &[("sm.tlb.page", "4096")],
        look: traffic,
    },
    Probe {
        base: &[("hbm.row_policy", "timeout")],
        look: traffic,
    },
    Probe {
        base: &[
            ("hbm.refresh", "single-bank"),
            ("hbm.banks", "4"),
            ("hbm.timing.t_refi", "400"),
        ],
        look: traffic,
    },
    Probe {
        base: &[("topology.sms_per_tpc", "1")],
        look: |config| kernel("traffic", config, (1, 192), &[132, 3]).map_err(|error| error.to_string()),
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
        // An L1 of 16 KiB, smaller than the data.
        base: &[("limits.shared_carveouts", "[49152]")],
        look: |config| scenario("sgemm_tiled", config),
    },
    Probe {
        base: &[],
        look: |config| scenario("transpose_naive", config),
    },
    Probe {
        base: &[("limits.heap_bytes", "4096")],
        look: heap,
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
fn scenario(name: &str, config: GpuConfig) -> Result<String, String> {
    let scenario = builtin::load(name).unwrap();
    let mut bench = Bench::new(&scenario, config).map_err(|error| error.to_string())?;
    let mut seen = format!("{:?}", bench.unmet_requirements());
    let mut stages = Stages::default();
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let run = bench.run_with_events(options, &mut [&mut stages], &mut |_| true);
    assert!(run.differences.is_empty(), "{name}: {:?}", run.differences);
    for launch in &run.launches {
        write!(seen, "{} ", launch.cycles).unwrap();
    }
    counters(bench.gpu().components(), &mut seen);
    write!(seen, "{:?}", stages.0).unwrap();
    match run.stopped {
        Some((_, error)) => Err(error.to_string()),
        None => Ok(seen),
    }
}

/// A kernel of this test, with its last arguments.
fn kernel(name: &str, config: GpuConfig, (grid, block): (u32, u32), args: &[u32]) -> Result<String, GpuError> {
    let mut gpu = Gpu::with_factory(config, &Factory::new())?;
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
fn units(config: GpuConfig) -> Result<String, String> {
    kernel("units", config, (40, 96), &[3]).map_err(|error| error.to_string())
}

/// Constants of more lines than the caches hold, read by six warps.
fn constants(config: GpuConfig) -> Result<String, String> {
    let mut args = [7; 41];
    args[0] = 3;
    kernel("constants", config, (1, 192), &args).map_err(|error| error.to_string())
}

/// A lock that lanes of one warp take in turn.
fn apart(config: GpuConfig) -> Result<String, String> {
    kernel("apart", config, (1, 32), &[]).map_err(|error| error.to_string())
}

/// The cycles of two launches, one after the other.
fn two_launches(config: GpuConfig) -> Result<String, String> {
    let mut gpu = Gpu::with_factory(config, &Factory::new()).map_err(|error| error.to_string())?;
    gpu.limit_cycles(LIMIT);
    let module = gpu.load(KERNELS).unwrap();
    let data = gpu.buffer(&[1u32; 32]).unwrap();
    let cycles = [(); 2].map(|()| {
        gpu.launch(&module, "apart", (1, 32), &[&data])
            .map(|report| report.cycles())
    });
    Ok(format!("{cycles:?}"))
}

/// Loads, stores and atomics over more lines than the caches hold.
fn traffic(config: GpuConfig) -> Result<String, String> {
    kernel("traffic", config, (6, 192), &[132, 3]).map_err(|error| error.to_string())
}

/// Blocks of the device heap, until it is full or has given eight.
fn heap(config: GpuConfig) -> Result<String, String> {
    let mut gpu = Gpu::with_factory(config, &Factory::new()).map_err(|error| error.to_string())?;
    let module = gpu.load(HEAP).unwrap();
    let count = gpu.buffer(&[0u32]).unwrap();
    let launched = gpu.launch(&module, "k", (1, 1), &[&count]);
    launched.map_err(|error| error.to_string())?;
    Ok(format!("{:?}", gpu.read(&count)))
}

/// Residency of CTAs of several shapes: threads, registers of a thread, bytes of shared memory.
fn residency(config: GpuConfig) -> Result<String, String> {
    let shapes = [
        (1024, 32, 0),
        (96, 40, 1000),
        (32, 255, 49_152),
        (256, 64, 8_300),
        (160, 33, 300),
        (64, 24, 16_500),
    ];
    let found = shapes.map(|(threads, registers, shared)| occupancy(&config, threads, registers, shared));
    Ok(format!("{found:?}"))
}

/// Runs a program for compute capability 8.6, or returns the refusal.
fn program_for_8_6(config: GpuConfig) -> Result<String, String> {
    let mut gpu = Gpu::with_factory(config, &Factory::new()).unwrap();
    Ok(gpu
        .load(FOR_8_6)
        .map_or_else(|error| error.to_string(), |_| String::new()))
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
            1024,
            0,
            // Accepted by `gigathread.standstill_cycles`, which has a large minimum.
            50_000,
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

/// The effect of other values of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// At least one changes a result.
    Result,
    /// All are refused, with errors that name the key.
    Refusal,
}

/// Loads `tiny` with these settings. The last setting of a key is in force.
fn load(base: Sets, change: Option<(&str, &str)>) -> Result<GpuConfig, String> {
    let all = base.iter().copied().chain(change);
    let sets: Vec<_> = all.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let preset = preset::load("tiny", &sets).map_err(|error| error.to_string())?;
    Ok(preset.config)
}

/// The effect of a key with the value `value`. `first` caches the observations of the probes on `tiny`.
fn effect(key: &str, value: &str, first: &mut [Option<String>]) -> Result<Effect, String> {
    let mut accepted = Vec::new();
    for other in others(key, value) {
        if let Err(error) = load(&[], Some((key, &other)))
            && !error.contains(&format!("`{key}`"))
        {
            return Err(format!("{key}={other} is refused without the name of the key: {error}"));
        }
        for (probe, first) in PROBES.iter().zip(&mut *first) {
            let Ok(config) = load(probe.base, Some((key, &other))) else {
                continue;
            };
            let before = first.get_or_insert_with(|| {
                let seen = load(probe.base, None).and_then(probe.look);
                seen.unwrap_or_else(|error| panic!("{:?}: {error}", probe.base))
            });
            if (probe.look)(config).as_ref() != Ok(before) {
                return Ok(Effect::Result);
            }
            accepted.push(other.clone());
        }
    }
    accepted.dedup();
    match accepted.is_empty() {
        true => Ok(Effect::Refusal),
        false => Err(format!("{key}: nothing changes with {}", accepted.join(", "))),
    }
}

/// Keys with only one accepted value: constants of the model, and the length of a list.
const REFUSED: [&str; 8] = [
    "l2.line",
    "l2.sector",
    "limits.warp_size",
    "sm.l1.line",
    "sm.l1.sector",
    "sm.shared.bank_bytes",
    "sm.shared.banks",
    "topology.gpcs",
];

#[test]
fn every_key_of_a_preset_changes_a_result_or_refuses_other_values() {
    let tiny = preset::load("tiny", &[]).unwrap();
    let mut first = vec![None; PROBES.len()];
    let (mut refused, mut findings) = (Vec::new(), Vec::new());
    for number in &tiny.sources {
        match effect(&number.key, &number.value, &mut first) {
            Ok(Effect::Result) => {}
            Ok(Effect::Refusal) => refused.push(number.key.as_str()),
            Err(finding) => findings.push(finding),
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert_eq!(refused, REFUSED, "these have one value, all others have several");
}
