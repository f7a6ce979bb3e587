//! Counters of the machine, against counts of the reference for the same launches.

mod pipes;
mod worked;

use std::collections::BTreeMap;
use std::ops::Range;

use warpwave::bench::{Activity, Bench, Options, Run, Sampled, StopReason};
use warpwave::reference::{self, Memory};
use warpwave::report::counts::Counts;
use warpwave::report::metrics;
use warpwave::scenario::{Scenario, builtin};
use warpwave_components::gpu::Gpu;
use warpwave_components::preset;
use warpwave_hw::time::Cycle;

const OPTIONS: Options = Options {
    threads: 1,
    max_cycles: None,
};

/// Scenarios that poll an mbarrier, or the word of a grid barrier. The reference has no time, so their numbers of polls differ.
const POLLS: &[&str] = &["grid_sync", "tma_bulk_scale", "tma_multicast"];

#[test]
fn machine_issues_as_many_instructions_as_the_reference_executes() {
    let tiny = preset::load("tiny", &[]).unwrap().config;
    for name in builtin::names().into_iter().filter(|name| !POLLS.contains(name)) {
        let scenario = builtin::load(name).unwrap();
        let mut bench = Bench::new(&scenario, tiny.clone()).unwrap();
        let mut memory = Memory::of(bench.gpu().storage());
        let executed: Vec<u64> = bench
            .grids()
            .iter()
            .map(|grid| reference::run(grid, &mut memory, u64::MAX).unwrap())
            .collect();
        let run = bench.run(OPTIONS, &mut |_| true);
        let issued: Vec<u64> = run
            .launches
            .iter()
            .map(|launch| launch.counts.sum("scheduler", "inst_issued").unwrap())
            .collect();
        assert_eq!(issued, executed, "{name}, launch by launch");
        check_global_loads(name, &run);
    }
}

/// Checks that each sector of a global load is a hit or a miss of the L1, and that no other load is one.
fn check_global_loads(name: &str, run: &Run) {
    for launch in &run.launches {
        let sectors = |part: &str| {
            let metric = format!("l1tex__t_sectors_pipe_lsu_mem_global_op_ld{part}.sum");
            let value = metrics::find(&metric).unwrap().value(&launch.inputs(&run.config));
            value.number().unwrap_or_else(|| panic!("{metric} is {value}"))
        };
        let looked_up = sectors("_lookup_hit") + sectors("_lookup_miss");
        assert_eq!(looked_up, sectors(""), "{name}, {}", launch.entry);
    }
}

/// The sum of a counter of the LSUs in a built-in scenario.
fn lsu_counters(name: &str) -> impl Fn(&'static str) -> u64 {
    let scenario = builtin::load(name).unwrap();
    let run = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config)
        .unwrap()
        .run(OPTIONS, &mut |_| true);
    move |counter| run.totals.sum("lsu", counter).unwrap()
}

#[test]
fn accesses_of_textures_and_of_other_blocks_are_not_global() {
    // Launches of 128 blocks of 4 warps, each with one access to the image: `sust` in one, `ld.global` in one, `tex` in six.
    let texture = lsu_counters("texture");
    let kinds = ["surface_st_inst", "global_ld_inst", "texture_ld_inst"];
    assert_eq!(kinds.map(texture), [512, 512, 6 * 512]);
    // `ld.shared::cluster` and `red.shared::cluster`.
    let swap = lsu_counters("cluster_swap");
    assert!(swap("remote_ld_inst") > 0 && swap("remote_ld_inst") <= swap("global_ld_inst"));
    let histogram = lsu_counters("cluster_histogram");
    assert!(histogram("remote_atom_inst") > histogram("global_atom_inst"));
}

#[test]
fn run_stopped_by_its_observer_keeps_its_counters() {
    let scenario = builtin::load("saxpy").unwrap();
    let bench = || Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let whole = bench().run(OPTIONS, &mut |_| true);
    let issued = |run: &Run| run.totals.sum("scheduler", "inst_issued").unwrap();
    let mut before = 0;
    for stop in [0, 1000, 2000, 3000] {
        let mut last = 0;
        let run = bench().run(OPTIONS, &mut |progress| {
            last = progress.now.0;
            last < stop
        });
        assert!(run.differences.is_empty());
        let [launch] = &run.launches[..] else {
            panic!("the launch under way: {:?}", run.launches)
        };
        assert_eq!(launch.entry, "saxpy");
        // The host's data are announced to the slices before the launch begins.
        assert!(
            launch.cycles <= last + 100 && launch.cycles + 200 > last,
            "{} of {last}",
            launch.cycles
        );
        assert_eq!(launch.counts.sum("scheduler", "inst_issued"), Some(issued(&run)));
        assert!(
            issued(&run) >= before && issued(&run) < issued(&whole),
            "{}",
            issued(&run)
        );
        before = issued(&run);
        assert_eq!(run.stopped_by(), Some(StopReason::Interrupted));
        let (launch, error) = run.stopped.expect("it was stopped");
        assert_eq!(launch, 0);
        assert!(error.to_string().starts_with("cancelled in cycle "), "{error}");
    }
    assert!(before > 0);
    assert_eq!(whole.stopped_by(), None);
}

#[test]
fn activity_counts_the_blocks_of_each_launch_and_changes_no_result() {
    let mut scenario = builtin::load("transpose_tiled").unwrap();
    scenario.launches.push(scenario.launches[0].clone());
    let bench = || Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let plain = bench().run(OPTIONS, &mut |_| true);
    for threads in [1, 2] {
        let options = Options { threads, ..OPTIONS };
        let (mut done, mut seen, mut earlier) = ([0; 2], Vec::new(), Activity::default());
        let run = bench().run(options, &mut |progress| {
            assert_eq!((progress.n_launches, progress.ctas), (2, 20));
            let activity = progress.activity();
            let last = std::mem::replace(&mut done[progress.launch], activity.ctas_done);
            assert!(last <= activity.ctas_done && activity.ctas_done <= 20);
            seen.extend(activity.top_stall(&earlier));
            earlier = activity;
            true
        });
        // The window in which the last block of a launch ends is observed too.
        assert_eq!(done, [20, 20], "{threads} threads");
        assert_eq!(run.cycles(), plain.cycles());
        // The two throttles are the most frequent stalls of this scenario.
        assert!(seen.contains(&"lg_throttle") && seen.contains(&"mio_throttle") && !seen.contains(&"selected"));
    }
}

#[test]
fn launch_stopped_after_another_has_only_its_own_counters() {
    let mut scenario = builtin::load("saxpy").unwrap();
    scenario.launches.push(scenario.launches[0].clone());
    let bench = || Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let whole = bench().run(OPTIONS, &mut |_| true);
    let limit = Some(whole.launches[0].cycles + 500);
    let run = bench().run(
        Options {
            threads: 1,
            max_cycles: limit,
        },
        &mut |_| true,
    );
    assert_eq!(run.stopped_by(), Some(StopReason::Limit));
    assert_eq!(run.launches[0].cycles, whole.launches[0].cycles);
    assert_eq!(run.launches[1].cycles, 500);
    let issued = |counts: &Counts| counts.sum("scheduler", "inst_issued").unwrap();
    let [first, second] = [0, 1].map(|n| issued(&run.launches[n].counts));
    assert_eq!(first, issued(&whole.launches[0].counts));
    assert!(second > 0 && second < first, "{second} of {first}");
    assert_eq!(issued(&run.totals), first + second);
}

/// Runs a scenario twice in a row on the smallest machine, and counts a sample of cycles. `set` changes the machine before.
fn sampled(name: &str, threads: usize, cycles: Range<u64>, set: impl FnOnce(&mut Gpu)) -> Run {
    let mut scenario = builtin::load(name).unwrap();
    scenario.launches.extend(scenario.launches.clone());
    let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    set(bench.gpu_mut());
    bench.sample(Cycle(cycles.start)..Cycle(cycles.end));
    bench.run(Options { threads, ..OPTIONS }, &mut |_| true)
}

const EVERYTHING: Range<u64> = 0..u64::MAX;

/// The metrics that add up over time, with their values in a run, and the number of records of each latency.
fn sums(run: &Run) -> BTreeMap<String, f64> {
    let sums = metrics::all().iter().filter(|metric| metric.name.ends_with(".sum"));
    let sums = sums.filter_map(|metric| Some((metric.name.clone(), metric.value(&run.inputs()).number()?)));
    let latencies = run.totals.latencies();
    let latencies = latencies.map(|(path, latency)| (path.to_owned(), latency.histogram().len() as f64));
    let cycles = ("cycles".to_owned(), run.cycles() as f64);
    sums.chain(latencies).chain([cycles]).collect()
}

#[test]
fn two_samples_in_a_row_add_up_to_the_run() {
    for name in [
        "transpose_tiled",
        "histogram_global",
        "diverge_nested",
        "reduce_shuffle",
    ] {
        let whole = sampled(name, 1, EVERYTHING, |_| {});
        assert_eq!((whole.stopped_by(), &whole.stopped), (None, &None), "{name}");
        let expected = sums(&whole);
        assert!(expected["smsp__inst_executed.sum"] > 0.0 && expected["cycles"] > 0.0);
        // The second launch begins after the cycles of the first one.
        let (first, end) = (whole.launches[0].cycles, whole.sample.unwrap().end);
        for split in [1, 100, 555, first / 2, first, first + 300, end - 200, end - 1, end] {
            let [mut sum, second] = [0..split, split..u64::MAX].map(|cycles| sums(&sampled(name, 1, cycles, |_| {})));
            for (metric, value) in second {
                *sum.entry(metric).or_default() += value;
            }
            assert_eq!(sum, expected, "{name}: samples before and from cycle {split}");
        }
    }
}

#[test]
fn sample_of_everything_is_the_run_without_a_sample() {
    let mut scenario = builtin::load("histogram_shared").unwrap();
    scenario.launches.extend(scenario.launches.clone());
    let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let plain = bench.run(OPTIONS, &mut |_| true);
    let sample = sampled("histogram_shared", 1, EVERYTHING, |_| {});
    assert_eq!(sums(&sample), sums(&plain));
    assert_eq!(sample.differences.len(), plain.differences.len());
    assert!(sample.launches.iter().all(|launch| !launch.is_sampled));
}

#[test]
fn sample_does_not_depend_on_threads_quantum_tick_order_or_skipping() {
    for cycles in [700..1900, 1234..5000] {
        let of = |threads, set: fn(&mut Gpu)| {
            let run = sampled("transpose_tiled", threads, cycles.clone(), set);
            let launches: Vec<_> = run.launches.iter().map(|launch| launch.cycles).collect();
            (sums(&run), launches, run.stopped_by(), run.sample)
        };
        let plain = of(1, |_| {});
        assert!(plain.0["cycles"] > 0.0 && plain.2 == Some(StopReason::Sampled));
        assert_eq!(of(3, |_| {}), plain);
        assert_eq!(of(1, |gpu| gpu.clock_mut().set_quantum(1)), plain);
        assert_eq!(of(2, |gpu| gpu.clock_mut().set_quantum(7)), plain);
        let no_skipping = |gpu: &mut Gpu| {
            let tiles = gpu.clock_mut().tiles_mut().iter_mut();
            tiles.for_each(|tile| tile.set_skipping(false));
        };
        assert_eq!(of(1, no_skipping), plain);
    }
}

#[test]
fn launch_is_counted_as_far_as_it_is_in_the_sample() {
    let whole = sampled("saxpy", 1, EVERYTHING, |_| {});
    let [first, second] = [0, 1].map(|launch| whole.launches[launch].cycles);
    // The last 100 cycles of the run are of the second launch.
    let end = whole.sample.unwrap().end;
    let run = sampled("saxpy", 1, end - 100..u64::MAX, |_| {});
    let cycles = |run: &Run| run.launches.iter().map(|launch| launch.cycles).collect::<Vec<_>>();
    assert_eq!(cycles(&run), [0, 100]);
    assert_eq!((run.stopped_by(), &run.stopped), (Some(StopReason::Sampled), &None));
    assert_eq!(run.launches[0].counts.sum("scheduler", "warp_cycles"), Some(0));
    // From within the first launch into the second one: the end of the first and the begin of the second.
    let run = sampled("saxpy", 1, first / 2..end - 100, |_| {});
    let counted = cycles(&run);
    assert!(counted[0] > 0 && counted[0] < first, "{counted:?}");
    assert_eq!(counted[1], second - 100);
    let marks = [0, 1].map(|launch| run.launch_stopped_by(launch));
    assert_eq!(marks, [Some(StopReason::Sampled); 2]);
    // A sample that ends before the first launch begins.
    let none = sampled("saxpy", 1, 0..1, |_| {});
    assert_eq!((none.cycles(), none.stopped_by()), (0, Some(StopReason::Sampled)));
    assert_eq!(none.sample, Some(Sampled { first: 0, end: 1 }));
    // A sample after the run.
    let late = sampled("saxpy", 1, end..end + 10, |_| {});
    assert_eq!(
        (late.cycles(), late.totals.sum("scheduler", "inst_issued")),
        (0, Some(0))
    );
}

#[test]
fn cycle_limit_counts_the_cycles_outside_of_a_sample_too() {
    let whole = sampled("saxpy", 1, EVERYTHING, |_| {});
    let [first, second] = [0, 1].map(|launch| whole.launches[launch].cycles);
    let mut scenario = builtin::load("saxpy").unwrap();
    scenario.launches.extend(scenario.launches.clone());
    let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    // The sample begins in the second launch, which the limit stops before its end.
    bench.sample(Cycle(whole.sample.unwrap().end - 100)..Cycle(u64::MAX));
    let max_cycles = Some(first + second - 10);
    let run = bench.run(Options { max_cycles, ..OPTIONS }, &mut |_| true);
    assert_eq!(run.stopped_by(), Some(StopReason::Limit));
}

/// The number of records of each latency.
fn records(counts: &Counts) -> BTreeMap<&'static str, u64> {
    let latencies = counts.latencies();
    latencies
        .map(|(path, latency)| (path, latency.histogram().len()))
        .collect()
}

#[test]
fn latencies_of_a_launch_are_its_own_and_those_of_a_warm_up_do_not_count() {
    let run = |is_warm_up| {
        let mut scenario = builtin::load("saxpy").unwrap();
        scenario.launches.extend(scenario.launches.clone());
        scenario.launches[0].is_warm_up = is_warm_up;
        let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
        bench.run(OPTIONS, &mut |_| true)
    };
    let both = run(false);
    // Both launches do the same, so they have as many accesses.
    let of_each = [0, 1].map(|launch| records(&both.launches[launch].counts).values().sum::<u64>());
    assert!(of_each[0] > 0);
    assert_eq!(of_each, [of_each[0]; 2]);
    assert_eq!(records(&both.totals).values().sum::<u64>(), 2 * of_each[0]);
    assert_eq!(records(&run(true).totals).values().sum::<u64>(), of_each[0]);
}

#[test]
fn eligible_warps_are_those_selected_and_those_not_selected() {
    for name in ["saxpy", "sgemm_tiled", "reduce_shuffle"] {
        let scenario = builtin::load(name).unwrap();
        let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
        let run = bench.run(OPTIONS, &mut |_| true);
        let sum = |counter: &'static str| run.totals.sum("scheduler", counter).unwrap();
        let [selected, not_selected] = ["stall_selected", "stall_not_selected"].map(sum);
        assert!(not_selected > 0, "{name}: two warps were eligible in some cycle");
        assert_eq!(sum("eligible_warps"), selected + not_selected, "{name}");
    }
}

/// Runs one warp of a kernel in `tests/counts` on a buffer `in` of this many words, and returns the value of a metric.
fn one_warp(kernel: &str, words: u32, more_args: &str) -> impl Fn(&str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    let ptx = format!("{}/tests/counts/{kernel}.ptx", env!("CARGO_MANIFEST_DIR"));
    let text = format!(
        "ptx = \"{ptx}\"\n[buffers.in]\ndtype = \"f32\"\nshape = [{words}]\ninit = {{ fill = 0.5 }}\n\
         [buffers.out]\ndtype = \"u32\"\nshape = [32]\nexpect = \"reference\"\n\
         [[launch]]\ngrid = 1\nblock = 32\nargs = [\"in\", \"out\"{more_args}]\n"
    );
    std::fs::write(&path, text).unwrap();
    let scenario = Scenario::load(&path).unwrap();
    let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let run = bench.run(OPTIONS, &mut |_| true);
    assert_eq!(run.stopped_by(), None);
    assert!(run.differences.is_empty());
    move |name| {
        let metric = metrics::find(name).unwrap_or_else(|| panic!("{name} is a metric"));
        let value = metric.value(&run.inputs());
        value.number().unwrap_or_else(|| panic!("{name} is {value}"))
    }
}

#[test]
fn operations_of_one_warp_have_the_counts_of_its_text() {
    let value = one_warp("mix", 128, ", { u32 = 2 }");
    let op = |class: &str| value(&format!("smsp__sass_thread_inst_executed_op_{class}_pred_on.sum"));
    // One add, one multiply and two multiply-adds in 32 lanes; one f64 multiply-add in 16 lanes.
    assert_eq!([op("fadd"), op("fmul"), op("ffma")], [32.0, 32.0, 64.0]);
    assert_eq!([op("dadd"), op("dmul"), op("dfma")], [0.0, 0.0, 16.0]);
    assert_eq!([op("hadd"), op("hmul"), op("hfma")], [0.0; 3]);
    assert_eq!([op("fp32"), op("fp64"), op("fp16")], [128.0, 16.0, 0.0]);
    assert_eq!(op("conversion"), 64.0);
    assert_eq!(op("inter_thread_communication"), 32.0);
    assert_eq!(op("bit"), 32.0);
    // Three loads, two stores and the load of a constant.
    assert_eq!(op("memory"), 6.0 * 32.0);
    assert_eq!(value("derived__flops_fp32.sum"), 32.0 + 32.0 + 2.0 * 64.0);
    assert_eq!(value("derived__flops_fp64.sum"), 32.0);
    assert_eq!(
        value("derived__flops_fp16.sum") + value("derived__flops_tensor.sum"),
        0.0
    );
    // 512 bytes in. 128 out, and 128 of local memory, stay in the L2 until the launch has ended.
    assert_eq!(value("dram__bytes_read.sum") + value("dram__bytes_write.sum"), 512.0);
    assert_eq!(value("dram__bytes_write_after_launch.sum"), 256.0);
    assert_eq!(value("derived__arithmetic_intensity_dram.ratio"), 224.0 / 512.0);
    let seconds = value("gpu__time_duration.sum") / 1e9;
    let rate = value("derived__flops.sum.per_second");
    assert!((rate * seconds - 224.0).abs() < 1e-6, "{rate} in {seconds} s");
}

#[test]
fn half_precision_operations_count_the_halves_of_each_instruction() {
    let value = one_warp("half", 32, "");
    let op = |class: &str| value(&format!("smsp__sass_thread_inst_executed_op_{class}_pred_on.sum"));
    assert_eq!([op("hadd"), op("hmul"), op("hfma")], [32.0, 16.0, 64.0]);
    // One half: a multiply-add in 32 lanes, a multiply in 16. Two halves: an add and a multiply-add in 32 lanes.
    let (single, packed) = (2.0 * 32.0 + 16.0, 2.0 * 32.0 + 2.0 * 2.0 * 32.0);
    assert_eq!(value("derived__flops_fp16.sum"), single + packed);
}

#[test]
fn branch_that_all_lanes_or_none_take_is_not_divergent() {
    let value = one_warp("loop", 32, "");
    // Four branches and the exit.
    assert_eq!(value("smsp__inst_executed_op_branch.sum"), 5.0);
    assert_eq!(value("smsp__sass_branch_targets_threads_divergent.sum"), 0.0);
    assert_eq!(value("smsp__sass_average_branch_targets_threads_uniform.pct"), 100.0);
}

#[test]
fn local_memory_and_constants_are_apart_from_global_memory() {
    let value = one_warp("mix", 128, ", { u32 = 2 }");
    for kind in ["ld", "st"] {
        assert_eq!(value(&format!("smsp__sass_inst_executed_op_local_{kind}.sum")), 1.0);
        // Word 2 of all lanes is one line.
        assert_eq!(
            value(&format!("l1tex__t_sectors_pipe_lsu_mem_local_op_{kind}.sum")),
            4.0
        );
    }
    assert_eq!(value("idc__requests.sum"), 1.0);
    assert_eq!(value("smsp__sass_inst_executed_op_global_ld.sum"), 2.0);
    assert_eq!(value("smsp__sass_inst_executed_op_global_st.sum"), 1.0);
    // 4 and 16 sectors. The load of the local slot is no access to global memory.
    let looked_up =
        ["hit", "miss"].map(|part| value(&format!("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_{part}.sum")));
    assert_eq!(looked_up.iter().sum::<f64>(), 20.0);
}

#[test]
fn wide_access_is_one_request_with_more_sectors() {
    let value = one_warp("mix", 128, ", { u32 = 2 }");
    // 4 bytes a lane are 4 sectors, 16 bytes a lane are 16.
    assert_eq!(value("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"), 2.0);
    assert_eq!(value("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"), 20.0);
    assert_eq!(
        value("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"),
        10.0
    );
    assert_eq!(value("derived__memory_l2_theoretical_sectors_global_excessive"), 0.0);
}

#[test]
fn sectors_above_those_without_gaps_are_excessive() {
    let value = one_warp("strided", 1024, "");
    // 32 sectors for 128 bytes, which fit 4; the store has no gaps.
    assert_eq!(value("memory_l2_theoretical_sectors_global"), 36.0);
    assert_eq!(value("memory_l2_theoretical_sectors_global_ideal"), 8.0);
    assert_eq!(value("derived__memory_l2_theoretical_sectors_global_excessive"), 28.0);
}

#[test]
fn instructions_and_samples_of_one_warp_are_its_issues_and_its_cycles() {
    let value = one_warp("strided", 1024, "");
    assert_eq!(value("inst_executed"), value("smsp__inst_executed.sum"));
    // One scheduler has one warp, so it has a sample in each of its active cycles.
    let schedulers = 4.0 * 2.0;
    assert_eq!(
        value("smsp__pcsamp_sample_count"),
        value("smsp__cycles_active.avg") * schedulers
    );
}

#[test]
fn one_warp_through_shared_memory_has_the_counts_of_its_text() {
    let value = one_warp("shared", 32, "");
    let launch = |name: &str| value(&format!("launch__{name}"));
    assert_eq!([launch("grid_size"), launch("block_size")], [1.0, 32.0]);
    // R0 to R7 in `check --code`, and the 256 bytes of `tile`.
    assert_eq!(
        [launch("registers_per_thread"), launch("shared_mem_per_block")],
        [8.0, 256.0]
    );
    // An SM has 64 warps, 32 block slots and 65536 registers. A warp has 8 times 32 registers.
    let limit = |name: &str| launch(&format!("occupancy_limit_{name}"));
    assert_eq!(
        [limit("warps"), limit("blocks"), limit("registers")],
        [64.0, 32.0, 256.0]
    );
    assert_eq!(launch("waves_per_multiprocessor"), 1.0 / 64.0);
    assert_eq!(value("sm__maximum_warps_per_active_cycle_pct"), 50.0);

    let global = |name: &str| value(&format!("l1tex__t_sectors_pipe_lsu_mem_global_op_{name}.sum"));
    // The first load takes 4 sectors from the L2, the second one hits.
    assert_eq!(
        [
            global("ld"),
            global("ld_lookup_hit"),
            global("ld_lookup_miss"),
            global("st")
        ],
        [8.0, 4.0, 4.0, 4.0]
    );
    assert_eq!(
        value("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"),
        32.0
    );
    assert!((value("l1tex__t_sector_hit_rate.pct") - 100.0 / 3.0).abs() < 1e-9);
    let below = |name: &str| value(&format!("l1tex__m_{name}.sum"));
    assert_eq!(
        [
            below("xbar2l1tex_read_sectors_mem_lg_op_ld"),
            below("l1tex2xbar_write_sectors_mem_lg_op_st")
        ],
        [4.0; 2]
    );
    assert_eq!(
        [value("lts__t_sectors.sum"), value("lts__t_sector_hit_rate.pct")],
        [8.0, 0.0]
    );
    assert_eq!(
        ["read", "write", "write_after_launch"].map(|op| value(&format!("dram__bytes_{op}.sum"))),
        [128.0, 0.0, 128.0]
    );

    let shared = |op: &str| value(&format!("smsp__sass_inst_executed_op_shared_{op}.sum"));
    assert_eq!([shared("ld"), shared("st")], [1.0, 2.0]);
    // A pass for each store, and two for the load with two lanes to a bank.
    assert_eq!(value("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"), 4.0);
    assert_eq!(value("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"), 1.0);
    assert_eq!(value("derived__memory_l1_wavefronts_shared_excessive"), 1.0);
}

#[test]
fn ratios_of_one_warp_follow_from_its_instructions_and_its_cycles() {
    let value = one_warp("shared", 32, "");
    let near = |name: &str, want: f64| {
        let found = value(name);
        assert!(
            (found - want).abs() < 1e-9 * want.abs().max(1.0),
            "{name} is {found}, not {want}"
        );
    };
    // Straight code: 19 machine instructions in `check --code`, in all lanes.
    let n = 19.0;
    near("smsp__inst_executed.sum", n);
    near("smsp__thread_inst_executed_per_inst_executed.ratio", 32.0);
    near("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", 32.0);
    // The exit.
    near("smsp__inst_executed_op_branch.sum", 1.0);
    near("smsp__sass_branch_targets_threads_divergent.sum", 0.0);
    // Two SMs with four schedulers each. One of them has one warp.
    let resident = value("smsp__cycles_active.avg") * 8.0;
    let active = value("sm__cycles_active.avg") * 2.0;
    near("smsp__warps_active.avg.per_cycle_active", 1.0);
    near("smsp__issue_active.avg.per_cycle_active", n / resident);
    near(
        "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
        100.0 * (1.0 - n / resident),
    );
    near("smsp__average_warp_latency_per_inst_issued.ratio", resident / n);
    near("sm__inst_executed.avg.per_cycle_active", n / active);
    near(
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        100.0 * resident / active / 64.0,
    );
    // A warp alone issues whenever it can.
    near("smsp__warps_eligible.avg.per_cycle_active", n / resident);
    let state = |state: &str| format!("smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio");
    near(&state("selected"), 1.0);
    for none in [
        "not_selected",
        "barrier",
        "membar",
        "branch_resolving",
        "sleeping",
        "misc",
    ] {
        near(&state(none), 0.0);
    }
    let others = "long_scoreboard short_scoreboard wait no_instruction dispatch_stall math_pipe_throttle mio_throttle lg_throttle drain";
    let waits: f64 = others.split(' ').map(|name| value(&state(name))).sum();
    assert!((waits + 1.0 - resident / n).abs() < 1e-9, "{waits} beside the issue");
    let share = value(&state("long_scoreboard")) * n / resident;
    near(
        "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
        100.0 * share,
    );
    // The core clock of the smallest machine is 1 GHz.
    let ns = value("gpu__time_duration.sum");
    near("gpc__cycles_elapsed.max", ns);
    near("dram__bytes.sum.per_second", 128.0 / ns * 1e9);
}
