//! Metrics of counters given by hand, against hand counts.

use warpwave_components::occupancy::occupancy;
use warpwave_components::preset;

use super::*;
use crate::report::counts::tests::counts;

fn value(name: &str, inputs: &Inputs<'_>) -> Value {
    find(name).unwrap_or_else(|| panic!("{name} is a row")).value(inputs)
}

#[test]
fn names_are_unique_and_every_row_explains_itself() {
    let mut names: Vec<_> = all().iter().map(|metric| metric.name.clone()).collect();
    let n = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), n);
    for metric in all() {
        assert!(
            metric.definition.ends_with('.') && !metric.formula.is_empty(),
            "{}",
            metric.name
        );
    }
}

#[test]
fn two_schedulers_with_known_counters_give_the_ratios_of_a_hand_count() {
    let config = preset::load("tiny", &[]).unwrap().config;
    let counts = counts(&[
        ("scheduler", "inst_issued", &[60, 40]),
        ("scheduler", "active_cycles", &[200, 200]),
        ("scheduler", "warp_cycles", &[500, 300]),
        ("scheduler", "stall_wait", &[200, 200]),
        ("scheduler", "thread_inst", &[1920, 640]),
        ("cta", "active_cycles", &[220, 180]),
        ("lsu", "global_ld_inst", &[8]),
        ("lsu", "global_ld_sectors", &[40]),
        ("l1", "global_load_sectors", &[0]),
        ("l1", "global_load_sectors_hit", &[0]),
        ("l1", "global_load_sectors_merged", &[0]),
    ]);
    let inputs = Inputs {
        counts: &counts,
        config: &config,
        cycles: 500,
        launch: None,
    };
    let number = |name| {
        value(name, &inputs)
            .number()
            .unwrap_or_else(|| panic!("{name} is a number"))
    };
    assert_eq!(number("smsp__issue_active.avg.per_cycle_active"), 0.25);
    assert_eq!(number("smsp__issue_inst0.avg.pct_of_peak_sustained_active"), 75.0);
    assert_eq!(number("smsp__warps_active.avg.per_cycle_active"), 2.0);
    assert_eq!(number("smsp__average_warp_latency_per_inst_issued.ratio"), 8.0);
    assert_eq!(
        number("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"),
        4.0
    );
    assert_eq!(number("smsp__warp_issue_stalled_wait_per_warp_active.pct"), 50.0);
    assert_eq!(number("smsp__warps_issue_stalled_wait.sum"), 400.0);
    assert_eq!(number("smsp__thread_inst_executed_per_inst_executed.ratio"), 25.6);
    assert_eq!(number("sm__cycles_active.avg"), 200.0);
    assert_eq!(number("sm__cycles_active.max"), 220.0);
    assert_eq!(
        number("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"),
        5.0
    );
    assert_eq!(number("gpc__cycles_elapsed.max"), 500.0);

    let none = |name| value(name, &inputs);
    assert_eq!(
        none("l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"),
        Value::NotReached
    );
    assert_eq!(
        none("smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio"),
        Value::NotModelled
    );
    assert_eq!(none("sm__icc_request_hit_rate.pct"), Value::NotModelled);
    assert_eq!(none("launch__grid_size"), Value::NotReached);
}

#[test]
fn full_sm_has_an_occupancy_of_100_per_cent_and_one_ready_warp_counts_as_one() {
    for gpu in ["tiny", "rtx3090", "m2070"] {
        let config = preset::load(gpu, &[]).unwrap().config;
        let slots = u64::from(config.limits.max_warps_per_sm);
        // One SM for 100 cycles: all its warp slots in use, and one ready warp in each cycle.
        let counts = counts(&[
            ("scheduler", "warp_cycles", &[slots * 100]),
            ("scheduler", "active_cycles", &[100]),
            ("scheduler", "eligible_warps", &[100]),
            ("scheduler", "inst_issued", &[40]),
            ("cta", "active_cycles", &[100]),
        ]);
        let inputs = Inputs {
            counts: &counts,
            config: &config,
            cycles: 100,
            launch: None,
        };
        let number = |name| value(name, &inputs).number();
        let occupancy = number("sm__warps_active.avg.pct_of_peak_sustained_active");
        assert_eq!(occupancy, Some(100.0), "{gpu}");
        assert_eq!(number("smsp__warps_eligible.avg.per_cycle_active"), Some(1.0), "{gpu}");
    }
}

#[test]
fn launch_of_v100_blocks_of_256_threads_with_64_registers_has_the_vendors_occupancy() {
    let config = preset::load("v100-sxm2", &[]).unwrap().config;
    let counts = counts(&[]);
    let inputs = Inputs {
        counts: &counts,
        config: &config,
        cycles: 1_530_000,
        launch: Some(LaunchShape {
            ctas: 640,
            threads: 256,
            registers: 64,
            shared_bytes: 0,
            occupancy: occupancy(&config, 256, 64, 0).unwrap(),
        }),
    };
    let number = |name| {
        value(name, &inputs)
            .number()
            .unwrap_or_else(|| panic!("{name} is a number"))
    };
    // 4 blocks of 8 warps of 64 (DESIGN lessons 17), 80 SMs: 640 blocks are 2 waves.
    assert_eq!(number("sm__maximum_warps_per_active_cycle_pct"), 50.0);
    assert_eq!(number("smsp__maximum_warps_avg_per_active_cycle"), 8.0);
    assert_eq!(number("launch__waves_per_multiprocessor"), 2.0);
    assert_eq!(number("launch__thread_count"), 163_840.0);
    assert_eq!(number("launch__occupancy_limit_registers"), 4.0);
    assert_eq!(number("gpu__time_duration.sum"), 1e6);
}

#[test]
fn registers_are_allocated_in_units_that_fermi_doubles_for_some_counts() {
    let counts = counts(&[]);
    let allocated = |gpu: &str, registers| {
        let config = preset::load(gpu, &[]).unwrap().config;
        let inputs = Inputs {
            counts: &counts,
            config: &config,
            cycles: 1,
            launch: Some(LaunchShape {
                ctas: 1,
                threads: 32,
                registers,
                shared_bytes: 0,
                occupancy: occupancy(&config, 32, registers, 0).unwrap(),
            }),
        };
        value("launch__registers_per_thread_allocated", &inputs).number()
    };
    // Units of 64 registers a warp, 2 a thread (`occ_header`); 4 a thread for the counts that the header names.
    for (registers, want) in [
        (20, 20.0),
        (21, 24.0),
        (22, 24.0),
        (23, 24.0),
        (29, 32.0),
        (37, 40.0),
        (46, 48.0),
        (47, 48.0),
    ] {
        assert_eq!(allocated("m2070", registers), Some(want), "{registers}");
    }
    // 25 is in no list: 26 of the same unit.
    assert_eq!(allocated("m2070", 25), Some(26.0));
    // Units of 256 registers a warp, 8 a thread.
    assert_eq!(allocated("v100-sxm2", 21), Some(24.0));
}

#[test]
fn memory_path_of_known_counters_is_as_busy_as_its_busiest_stage() {
    let config = preset::load("tiny", &[]).unwrap().config;
    let slices = vec![0; config.l2.slices as usize];
    let channels = vec![0; config.hbm.channels as usize];
    // Every output of the request network held for 30 of 100 cycles of the L2 clock.
    let l2_cycles = 100;
    let cycles = l2_cycles * u64::from(config.clocks.core_khz) / u64::from(config.clocks.l2_khz);
    let held = 30 * u64::from(config.l2.slices);
    let mut hits = slices.clone();
    hits[0] = 3;
    let mut sectors = slices.clone();
    sectors[0] = 4;
    let mut bytes = channels.clone();
    bytes[0] = 6400;
    let counts = counts(&[
        ("request", "output_cycles", &[held]),
        ("l2_slice", "tag_cycles", &slices),
        ("l2_slice", "load_sectors", &sectors),
        ("l2_slice", "load_sectors_hit", &hits),
        ("l2_slice", "store_sectors", &slices),
        ("l2_slice", "store_sectors_hit", &slices),
        ("l2_slice", "atomic_sectors", &slices),
        ("l2_slice", "atomic_sectors_hit", &slices),
        ("channel", "bus_cycles", &channels),
        ("channel", "bytes_read", &bytes),
        ("channel", "bytes_written", &channels),
    ]);
    let inputs = Inputs {
        counts: &counts,
        config: &config,
        cycles,
        launch: None,
    };
    let number = |name| {
        value(name, &inputs)
            .number()
            .unwrap_or_else(|| panic!("{name} is a number"))
    };
    assert_eq!(
        number("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
        30.0
    );
    assert_eq!(number("lts__t_sector_hit_rate.pct"), 75.0);
    assert_eq!(number("lts__t_sectors.sum"), 4.0);
    assert_eq!(number("dram__sectors_read.sum"), 200.0);
    let seconds = cycles as f64 / (f64::from(config.clocks.core_khz) * 1e3);
    assert_eq!(number("dram__bytes.sum.per_second"), 6400.0 / seconds);
    assert_eq!(value("lts__t_sector_op_write_hit_rate.pct", &inputs), Value::NotReached);
}

#[test]
fn busy_share_of_a_channel_counts_the_cycles_of_the_memory_clock() {
    // 1530 cycles of the V100's core clock are 877 of its memory clock (1530 and 877 MHz).
    let config = preset::load("v100-sxm2", &[]).unwrap().config;
    let channels = config.hbm.channels as usize;
    for (busy, share) in [(877, 100.0), (0, 0.0)] {
        let counts = counts(&[("channel", "bus_cycles", &vec![busy; channels])]);
        let inputs = Inputs {
            counts: &counts,
            config: &config,
            cycles: 1530,
            launch: None,
        };
        let found = value("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", &inputs);
        assert_eq!(found.number(), Some(share));
    }
}
