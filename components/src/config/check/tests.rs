//! The text of each fault, one by one, and numbers at and beyond each bound.

use crate::config::{CarveoutTakes, GpuConfig, RefreshMode};
use crate::preset;

fn tiny() -> GpuConfig {
    preset::load("tiny", &[]).unwrap().config
}

/// Texts of the faults of preset `tiny` after a change.
fn faults(change: impl FnOnce(&mut GpuConfig)) -> Vec<String> {
    let mut config = tiny();
    change(&mut config);
    config.check().iter().map(ToString::to_string).collect()
}

#[test]
fn every_built_in_preset_checks_clean() {
    for name in preset::names() {
        assert_eq!(preset::load(name, &[]).unwrap().config.check(), [], "{name}");
    }
}

#[test]
fn zero_counts_are_all_named() {
    let found = faults(|gpu| {
        gpu.l2.slices = 0;
        gpu.sm.subcores = 0;
    });
    assert_eq!(
        found,
        [
            "`l2.slices` is 0: it must be at least 1",
            "`sm.subcores` is 0: it must be at least 1"
        ]
    );
}

#[test]
fn numbers_that_may_be_zero_are_no_fault() {
    let found = faults(|gpu| {
        gpu.hbm.latency_extra = 0;
        gpu.sm.barrier.per_warp = 0;
        gpu.sm.shared.conflict_latency_per_pass = 0;
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn any_slice_and_channel_count_is_no_fault() {
    let found = faults(|gpu| {
        gpu.l2.slices = 7;
        gpu.l2.size = 7 * 64 * 1024;
        gpu.hbm.channels = 11;
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn gpc_list_shorter_than_gpc_count_is_named() {
    let found = faults(|gpu| gpu.topology.gpcs = 2);
    assert_eq!(
        found,
        ["`topology.tpcs_per_gpc` has 1 entries: it must have 2, the value of `topology.gpcs`"]
    );
}

#[test]
fn gpc_without_tpcs_is_named() {
    let found = faults(|gpu| {
        gpu.topology.gpcs = 2;
        gpu.topology.tpcs_per_gpc = vec![1, 0];
    });
    let expected = "`topology.tpcs_per_gpc` is 0: it must be at least 1, as every GPC has a TPC";
    assert_eq!(found, [expected]);
}

#[test]
fn distance_list_without_entries_or_with_a_large_one_is_named() {
    let found = faults(|gpu| gpu.cluster.sm_distances.clear());
    assert_eq!(found, ["`cluster.sm_distances` is []: it must have at least one entry"]);
    let found = faults(|gpu| gpu.cluster.sm_distances = vec![3, 41]);
    let expected = "`cluster.sm_distances` is 41: it must be at most 40, so that a link is no longer than the longest";
    assert_eq!(found, [expected]);
}

#[test]
fn more_sms_than_headers_can_name_are_named() {
    let found = faults(|gpu| gpu.topology.tpcs_per_gpc = vec![u32::MAX]);
    assert_eq!(
        found,
        ["`topology.tpcs_per_gpc` is 8589934590: it must be at most 4096, counted in SMs (x `topology.sms_per_tpc`)"]
    );
}

#[test]
fn more_slices_than_headers_can_name_are_named() {
    let found = faults(|gpu| {
        gpu.l2.slices = 8192;
        gpu.hbm.channels = 8192;
        gpu.l2.size = 8192 * gpu.l2.line * gpu.l2.associativity;
    });
    assert_eq!(
        found,
        ["`l2.slices` is 8192: it must be at most 4096, far more than any part has"]
    );
}

#[test]
fn more_tag_banks_than_the_hash_can_name_are_named() {
    assert_eq!(
        faults(|gpu| gpu.sm.l1.tag_banks = 16),
        ["`sm.l1.tag_banks` is 16: it must be at most 8, the banks that the hash of a line can name"]
    );
}

#[test]
fn address_fields_must_be_powers_of_two() {
    let found = faults(|gpu| {
        gpu.sm.register_banks = 3;
        gpu.hbm.row_bytes = 1056;
        gpu.limits.shared_unit = 384;
        gpu.sm.l1.tag_banks = 3;
    });
    assert_eq!(
        found,
        [
            "`limits.shared_unit` is 384: it must be a power of two",
            "`sm.register_banks` is 3: it must be a power of two",
            "`sm.l1.tag_banks` is 3: it must be a power of two",
            "`hbm.row_bytes` is 1056: it must be a power of two",
        ]
    );
}

#[test]
fn constants_of_the_model_are_named() {
    let found = faults(|gpu| {
        gpu.sm.shared.banks = 16;
        gpu.sm.shared.bank_bytes = 8;
        gpu.sm.l1.line = 64;
        gpu.sm.l1.sector = 64;
        gpu.l2.line = 256;
        gpu.l2.sector = 64;
    });
    // The last three follow from the lines and sectors of 64 and 256 bytes.
    assert_eq!(
        found[..6],
        [
            "`sm.shared.banks` is 16: it must be 32, the banks of shared memory in this model",
            "`sm.shared.bank_bytes` is 8: it must be 4, the bytes of a bank's word in this model",
            "`sm.l1.line` is 64: it must be 128, the bytes of a line in this model",
            "`sm.l1.sector` is 64: it must be 32, the bytes of a sector in this model",
            "`l2.line` is 256: it must be 128, the bytes of a line in this model",
            "`l2.sector` is 64: it must be 32, the bytes of a sector in this model",
        ]
    );
}

#[test]
fn queues_too_small_for_one_message_are_named() {
    let found = faults(|gpu| {
        gpu.sm.collector_entries = 1;
        gpu.l2.memory_queue = 1;
        gpu.hbm.queue_depth = 8;
        gpu.hbm.write_drain_stop = 16;
    });
    assert_eq!(
        found,
        [
            "`sm.collector_entries` is 1: it must be at least 2, \
             one instruction in the collector and one on its way to it",
            "`l2.memory_queue` is 1: it must be at least 2, a fetch and the write-back of its victim",
            "`hbm.write_drain_start` is 16: it must be at most 8, all of `hbm.queue_depth`",
            "`hbm.write_drain_stop` is 16: it must be at most 15, fewer than `hbm.write_drain_start`",
        ]
    );
}

#[test]
fn l2_size_that_is_no_multiple_of_a_set_is_named() {
    let found = faults(|gpu| gpu.l2.size = 65_537);
    let expected = "`l2.size` is 65537: it must be a multiple of `l2.slices` x `l2.line` x `l2.associativity` (2048)";
    assert_eq!(found, [expected]);
}

#[test]
fn carveout_that_leaves_no_whole_l1_sets_is_named() {
    let found = faults(|gpu| gpu.limits.shared_carveouts = vec![0, 512, 49_152]);
    let expected = "`sm.l1.size` is 65536: it must be a multiple of \
        `sm.l1.line` x `sm.l1.associativity` beyond the carve-out 512 of `limits.shared_carveouts` (1024)";
    assert_eq!(found, [expected]);
}

#[test]
fn carveout_that_leaves_part_of_a_way_is_named() {
    let found = faults(|gpu| {
        gpu.sm.l1.carveout_takes = CarveoutTakes::Ways;
        gpu.sm.l1.associativity = 32;
        gpu.limits.shared_carveouts = vec![0, 1024, 49_152];
    });
    let expected = "`sm.l1.size` is 65536: it must be a multiple of \
        `sm.l1.size` / `sm.l1.associativity` beyond the carve-out 1024 of `limits.shared_carveouts` (2048)";
    assert_eq!(found, [expected]);
}

#[test]
fn carveouts_out_of_order_or_absent_are_named() {
    let rule = "it must have at least one entry, in ascending order";
    let found = faults(|gpu| gpu.limits.shared_carveouts = vec![49_152, 0]);
    assert_eq!(found, [format!("`limits.shared_carveouts` is [49152, 0]: {rule}")]);
    let found = faults(|gpu| gpu.limits.shared_carveouts.clear());
    assert_eq!(found, [format!("`limits.shared_carveouts` is []: {rule}")]);
}

#[test]
fn carveout_of_the_whole_array_is_named() {
    let found = faults(|gpu| gpu.limits.shared_carveouts = vec![0, 65_536]);
    let expected = "`limits.shared_carveouts` is 65536: it must be at most 65535, \
        so that the L1 keeps part of `sm.l1.size`";
    assert_eq!(found, [expected]);
}

#[test]
fn carveout_beyond_the_addresses_of_packets_between_sms_is_named() {
    let found = |clusters: u32| {
        faults(|gpu| {
            gpu.cluster.max_ctas = clusters;
            gpu.sm.l1.size = 1 << 25;
            gpu.limits.shared_carveouts = vec![0, (1 << 24) + 1024];
        })
    };
    let expected = "`limits.shared_carveouts` is 16778240: it must be at most 16777216, \
        a limit of the simulator: the bytes that a packet between SMs can name";
    assert_eq!(found(8), [expected]);
    assert_eq!(found(0), Vec::<String>::new());
}

#[test]
fn block_with_more_shared_memory_than_the_largest_carveout_is_named() {
    let found = faults(|gpu| gpu.limits.shared_reserved_per_block = 1024);
    let expected = "`limits.shared_per_block_max` is 49152: it must be at most 48128, \
        the largest of `limits.shared_carveouts` less `limits.shared_reserved_per_block`";
    assert_eq!(found, [expected]);
}

#[test]
fn heap_out_of_bounds_is_named() {
    let found = |bytes: u64| faults(|gpu| gpu.limits.heap_bytes = bytes);
    let rule = "a limit of the simulator";
    assert_eq!(
        found(1023),
        [format!("`limits.heap_bytes` is 1023: it must be at least 1024, {rule}")]
    );
    let most = 1 << 30;
    assert_eq!(
        found(most + 1),
        [format!(
            "`limits.heap_bytes` is {}: it must be at most {most}, {rule}",
            most + 1
        )]
    );
    assert!(found(1024).is_empty() && found(most).is_empty());
}

#[test]
fn interval_that_is_no_power_of_two_is_named() {
    let found = faults(|gpu| gpu.sm.pipes.fp64.interval = 3);
    assert_eq!(found, ["`sm.pipes.fp64.interval` is 3: it must be a power of two"]);
}

#[test]
fn pipe_faster_than_its_stages_is_named() {
    let found = faults(|gpu| gpu.sm.pipes.int.latency = 3);
    let expected = "`sm.pipes.int.latency` is 3: it must be at least 4, the stages from issue to write-back";
    assert_eq!(found, [expected]);
}

#[test]
fn l1_faster_than_the_stages_around_it_is_named() {
    // Seven cycles pass outside the L1, and one in it.
    let rule = "it must be at least 8, the stages from issue through the L1 and back";
    for latency in 1..8 {
        let found = faults(|gpu| gpu.sm.l1.hit_latency = latency);
        assert_eq!(found, [format!("`sm.l1.hit_latency` is {latency}: {rule}")]);
    }
    assert!(faults(|gpu| gpu.sm.l1.hit_latency = 8).is_empty());
}

#[test]
fn more_sub_cores_than_a_tile_holds_are_named() {
    // Six blocks of the SM and nine of each sub-core: 60 of 64, and 69 with a seventh.
    for (subcores, warps) in [(7, 63), (8, 64)] {
        let found = faults(|gpu| {
            gpu.sm.subcores = subcores;
            gpu.limits.max_warps_per_sm = warps;
            gpu.limits.max_threads_per_block = 512;
        });
        let rule = "it must be at most 6, a limit of the simulator: one tile holds all blocks of an SM";
        assert_eq!(found, [format!("`sm.subcores` is {subcores}: {rule}")]);
    }
}

#[test]
fn clock_far_faster_than_the_core_clock_is_named() {
    let found = faults(|gpu| gpu.clocks.core_khz = 999);
    assert_eq!(
        found,
        [
            "`clocks.l2_khz` is 1000000: it must be at most 999000, \
             a thousand times `clocks.core_khz`, a limit of the simulator",
            "`clocks.memory_khz` is 1000000: it must be at most 999000, \
             a thousand times `clocks.core_khz`, a limit of the simulator",
        ]
    );
    assert!(faults(|gpu| gpu.clocks.core_khz = 1000).is_empty());
}

#[test]
fn warp_of_other_than_32_lanes_is_named() {
    let found = faults(|gpu| gpu.limits.warp_size = 64);
    assert_eq!(found, ["`limits.warp_size` is 64: it must be 32, as on every part"]);
}

#[test]
fn block_with_more_warps_than_an_sm_is_named() {
    let found = faults(|gpu| gpu.limits.max_warps_per_sm = 16);
    let expected = "`limits.max_threads_per_block` is 1024: it must be at most 512, \
        the threads of `limits.max_warps_per_sm` warps";
    assert_eq!(found, [expected]);
}

#[test]
fn exclusive_part_longer_than_the_fence_is_named() {
    let found = faults(|gpu| (gpu.sm.fence.gpu_latency, gpu.sm.fence.gpu_exclusive) = (60, 61));
    assert_eq!(
        found,
        ["`sm.fence.gpu_exclusive` is 61: it must be at most 60, the cycles of `sm.fence.gpu_latency`"]
    );
}

#[test]
fn far_latency_with_one_partition_is_named() {
    let found = faults(|gpu| gpu.l2.far_latency = 200);
    assert_eq!(
        found,
        ["`l2.far_latency` is 200: it must be at most 0, with one of `l2.partitions`"]
    );
}

#[test]
fn partitions_must_share_the_slices_evenly() {
    let found = faults(|gpu| gpu.l2.partitions = 4);
    assert_eq!(found, ["`l2.partitions` is 4: it must divide `l2.slices` (2)"]);
}

#[test]
fn single_banks_need_time_for_a_round_of_refreshes() {
    let found = faults(|gpu| {
        gpu.hbm.refresh = RefreshMode::SingleBank;
        gpu.hbm.timing.t_refi = 943;
    });
    // 16 x (4 + 8 + 47)
    assert_eq!(
        found,
        [
            "`hbm.timing.t_refi` is 943: it must be at least 944, or not every bank is refreshed in time \
          (`hbm.banks` x (`hbm.timing.t_rrd` + `hbm.timing.t_rrefd` + `hbm.timing.t_rc`))"
        ]
    );
}

#[test]
fn bank_timing_that_contradicts_itself_is_named() {
    let found = faults(|gpu| {
        gpu.hbm.bus_bytes_per_command_cycle = 16;
        gpu.hbm.timing.t_rc = 46;
        gpu.hbm.timing.t_refi = 410;
    });
    assert_eq!(
        found,
        [
            "`hbm.timing.t_ccd_s` is 1: it must be at least 2, the cycles that a burst holds the data bus \
             (`hbm.burst_bytes` over `hbm.bus_bytes_per_command_cycle`)",
            "`hbm.timing.t_rc` is 46: it must be at least 47, `hbm.timing.t_ras` + `hbm.timing.t_rp`",
            // 350 + 14 + 46 + 1
            "`hbm.timing.t_refi` is 410: it must be at least 411, or every refresh delays the next one, and no request is served \
             (`hbm.timing.t_rfc` + `hbm.timing.t_rcd` + 1 + `hbm.timing.t_rc`)",
            // 3 + 1 + 14 + 14 + 2 + 26 cycles beyond the 112 of an L2 hit.
            "`hbm.access_latency` is 171: it must be at least 172, \
             `l2.hit_latency` + 3 + a command cycle + `hbm.timing.t_rcd` + `hbm.timing.cl` + a burst (`hbm.burst_bytes` over \
             `hbm.bus_bytes_per_command_cycle`) + `hbm.latency_extra`, from `clocks.memory_khz` to `clocks.core_khz`",
        ]
    );
}

#[test]
fn l2_total_shorter_than_its_stages_is_named() {
    // 32 in the SM, 2 x 20 on the way, 40 in the slice.
    let found = faults(|gpu| gpu.l2.hit_latency = 111);
    let expected = "`l2.hit_latency` is 111: it must be at least 112, \
        `sm.l1.hit_latency` + 2 x `xbar.latency` + `l2.slice_latency`, from `clocks.l2_khz` to `clocks.core_khz`";
    assert_eq!(found, [expected]);
}

#[test]
fn slower_l2_clock_stretches_its_stages_in_core_cycles() {
    // 80 cycles at half the core clock are 160, and 32 in the SM.
    let found = faults(|gpu| {
        gpu.clocks.l2_khz = 500_000;
        gpu.hbm.access_latency = 500;
    });
    let expected = "`l2.hit_latency` is 112: it must be at least 192, \
        `sm.l1.hit_latency` + 2 x `xbar.latency` + `l2.slice_latency`, from `clocks.l2_khz` to `clocks.core_khz`";
    assert_eq!(found, [expected]);
}

#[test]
fn numbers_beyond_what_the_machine_can_hold_are_named() {
    let found = faults(|gpu| gpu.xbar.queue_depth = 400_000_000);
    let expected = "`xbar.queue_depth` is 400000000: it must be at most 65536, far more than any part has";
    assert_eq!(found, [expected]);
    // A line number of 33 bits would alias another line.
    let found = faults(|gpu| gpu.memory_bytes = 1 << 39);
    let expected = "`memory_bytes` is 549755813888: it must be at most 549487378432, \
        a limit of the simulator: line numbers have 32 bits";
    assert_eq!(found, [expected]);
    let found = faults(|gpu| {
        gpu.limits.max_warps_per_sm = 260;
        gpu.limits.max_threads_per_block = 4096;
        gpu.limits.max_blocks_per_sm = 65;
        gpu.sm.ibuffer_entries = 256;
        gpu.sm.dependency_barriers = 7;
        gpu.hbm.queue_depth = 65;
        gpu.hbm.channels = 126;
    });
    assert_eq!(
        found,
        [
            "`limits.max_warps_per_sm` is 260: it must be at most 256, \
             a limit of the simulator: 64 for each of `sm.subcores`",
            "`limits.max_threads_per_block` is 4096: it must be at most 2048, a limit of the simulator: 64 warps",
            "`limits.max_blocks_per_sm` is 65: it must be at most 64, a limit of the simulator",
            "`sm.ibuffer_entries` is 256: it must be at most 255, a limit of the simulator",
            "`sm.dependency_barriers` is 7: it must be at most 6, the barriers that a control word can name",
            "`hbm.queue_depth` is 65: it must be at most 64, a limit of the simulator",
            "`hbm.channels` is 64: it must be at most 63, counted with `l2.slices` over their greatest common divisor, \
             a limit of the simulator: one tile holds a group",
        ]
    );
}

#[test]
fn numbers_of_a_large_machine_are_no_fault() {
    // Counts above 255, and latencies above the horizon of a tile's timing wheel.
    let found = faults(|gpu| {
        gpu.gigathread.link_latency = 300;
        gpu.sm.lsu.queue_depth = 1000;
        gpu.sm.lsu.pending_requests = 5000;
        gpu.sm.ibuffer_entries = 64;
        gpu.sm.pipes.fp64.latency = 200;
        gpu.sm.pipes.fp64.interval = 64;
        gpu.sm.l1.hit_latency = 500;
        gpu.l2.hit_latency = 700;
        gpu.hbm.access_latency = 900;
        gpu.limits.max_blocks_per_sm = 64;
        gpu.limits.max_warps_per_sm = 256;
    });
    assert!(found.is_empty(), "{found:?}");
}
