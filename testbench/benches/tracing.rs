//! Cost of recording on `v100-sxm2`, with one thread. Four kinds of run take turns: without recording, with the flight recorder of one SM,
//! with a waveform file of one SM, and with one of all SMs. A ratio compares CPU time with the unrecorded run of its round. The medians
//! are printed.
//!
//! ```text
//! cargo bench -p warpwave --bench tracing               five rounds of each kernel
//! cargo bench -p warpwave --bench tracing -- --quick    one round of a small part of each grid: tests the bench
//! ```

use std::time::Instant;

use warpwave::bench::{Bench, Options};
use warpwave::scenario::builtin;
use warpwave::suite::median;
use warpwave_components::preset;
use warpwave_waveforms::file::RunInfo;
use warpwave_waveforms::select::Selection;
use warpwave_waveforms::waveform::Waveform;

const GPU: &str = "v100-sxm2";
const KERNELS: [&str; 3] = ["sgemm_tiled", "transpose_tiled_unpadded", "vector_add"];
const SCOPES: [&str; 2] = ["gpu.gpc[0].sm[0]", "gpu.gigathread"];
const ROUNDS: usize = 5;

/// Divisors of the first grid size.
const SHARE: u32 = 4;
const QUICK_SHARE: u32 = 64;

#[derive(Clone, Copy)]
enum Watch {
    Nothing,
    Flight,
    File,
    Everything,
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, share) = if quick { (1, QUICK_SHARE) } else { (ROUNDS, SHARE) };
    println!(
        "{:<26}{:>12}{:>16}{:>12}{:>12}",
        "kernel", "unwatched s", "flight recorder", "waveform", "all SMs"
    );
    for kernel in KERNELS {
        let mut figures = [const { Vec::new() }; 4];
        for _ in 0..rounds {
            let plain = run(kernel, share, Watch::Nothing);
            figures[0].push(plain);
            figures[1].push(run(kernel, share, Watch::Flight) / plain);
            figures[2].push(run(kernel, share, Watch::File) / plain);
            figures[3].push(run(kernel, share, Watch::Everything) / plain);
        }
        let [plain, flight, file, everything] = figures.map(median);
        println!(
            "{kernel:<26}{plain:>12.2}{:>16}{:>12}{:>12}",
            format!("{flight:.3}"),
            format!("{file:.3}"),
            format!("{everything:.3}")
        );
    }
}

/// CPU seconds of the run alone.
fn run(kernel: &str, share: u32, watch: Watch) -> f64 {
    let mut scenario = builtin::load(&format!("speed_{kernel}")).unwrap_or_else(|error| panic!("{error}"));
    let shrink = |grid: &mut [u32; 3]| grid[0] = grid[0].div_ceil(share);
    scenario.launches.iter_mut().for_each(|launch| shrink(&mut launch.grid));
    let config = preset::load(GPU, &[]).expect("a built-in preset").config;
    let mut bench = Bench::new(&scenario, config).unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let folder = tempfile::tempdir().expect("a folder");
    let selection = match watch {
        Watch::Everything => Selection::all(),
        _ => Selection::new(&SCOPES, "..").expect("patterns"),
    };
    let about = RunInfo::new(1_000_000, Vec::new());
    let clock = bench.gpu_mut().clock_mut();
    let mut waveform = match watch {
        Watch::Nothing => None,
        Watch::Flight => Some(Waveform::watch_flight(&selection, &about, clock, 20_000).expect("signals")),
        Watch::File | Watch::Everything => {
            Some(Waveform::create(&folder.path().join("run.vcd"), &selection, &about, clock).expect("a file"))
        }
    };
    let options = Options {
        threads: 1,
        max_cycles: None,
    };
    let begin = seconds();
    let run = bench.run(options, &mut |progress| {
        waveform
            .as_mut()
            .is_none_or(|waveform| waveform.collect(progress.now).is_ok())
    });
    assert!(run.stopped.is_none(), "{kernel} did not come to its end");
    seconds() - begin
}

/// CPU time of this thread so far, in seconds. Wall time if the system does not report it.
fn seconds() -> f64 {
    static BEGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedstat.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGIN.elapsed().as_secs_f64(), |time| time / 1e9)
}
