//! Occupancies of the presets. Expectations are counted by hand from the rules in the module's table.

use warpwave_components::config::GpuConfig;
use warpwave_components::occupancy::{Allowed, Limiter, occupancy};
use warpwave_components::preset;

fn config(name: &str) -> GpuConfig {
    preset::load(name, &[]).unwrap().config
}

/// `tiny` with other limits, as `--set` writes them.
fn altered(sets: &[(&str, &str)]) -> GpuConfig {
    let sets: Vec<_> = sets
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    preset::load("tiny", &sets).unwrap().config
}

/// One row: threads, registers, shared bytes; CTAs, warps, per cent, limiter.
type Row = (u32, u32, u32, u32, u32, f64, Limiter);

fn holds(config: &GpuConfig, rows: &[Row]) {
    for &(threads, registers, shared, blocks, warps, percent, limiter) in rows {
        let found = occupancy(config, threads, registers, shared).unwrap();
        let shape = format!(
            "{}: {threads} threads, {registers} registers, {shared} bytes",
            config.name
        );
        assert_eq!(
            (found.blocks, found.warps, found.limiter),
            (blocks, warps, limiter),
            "{shape}"
        );
        assert!((found.percent - percent).abs() < 1e-9, "{shape}: {} %", found.percent);
    }
}

#[test]
fn part_with_64_warps_and_65536_registers_follows_the_worked_examples() {
    use Limiter::{Blocks, Registers, Warps};
    for name in [
        "tiny",
        "gtx1080ti",
        "v100-sxm2",
        "a100-sxm4-80",
        "h100-pcie",
        "h100-sxm5",
        "gh100-full",
        "h200",
        "b200",
    ] {
        let rows = [
            // 64 x 32 = 2048 registers a warp: 8 warps in each quarter of 16384.
            (256, 64, 0, 4, 32, 50.0, Registers),
            // 1024 a warp: 16 in each quarter, all 64 warps.
            (256, 32, 0, 8, 64, 100.0, Warps),
            // One register more: 1056 becomes 1280, 12 in each quarter, 6 CTAs of 8 warps.
            (256, 33, 0, 6, 48, 75.0, Registers),
            (128, 32, 0, 16, 64, 100.0, Warps),
            // 32 one-warp CTAs fill the slots, not the warps.
            (32, 16, 0, 32, 32, 50.0, Blocks),
            // 128 registers: 4096 a warp, 4 in each quarter, 16 warps.
            (512, 128, 0, 1, 16, 25.0, Registers),
            // 100 threads are 4 warps.
            (100, 32, 0, 16, 64, 100.0, Warps),
            // 40 registers: 1280 a warp, 12 in each quarter, 48 warps, 16 CTAs of 3.
            (96, 40, 0, 16, 48, 75.0, Registers),
            (1024, 64, 0, 1, 32, 50.0, Registers),
            // Nothing but warps and slots limits a kernel without registers.
            (1024, 0, 0, 2, 64, 100.0, Warps),
        ];
        holds(&config(name), &rows);
    }
}

#[test]
fn v100_shared_memory_of_96_kib_without_reserve() {
    use Limiter::SharedMemory;
    let rows = [
        (256, 32, 32_768, 3, 24, 37.5, SharedMemory),
        (256, 32, 98_304, 1, 8, 12.5, SharedMemory),
        // 20000 becomes 20224: four in 98304.
        (256, 32, 20_000, 4, 32, 50.0, SharedMemory),
    ];
    holds(&config("v100-sxm2"), &rows);
}

#[test]
fn a100_shared_memory_of_164_kib_less_one_kib_per_block() {
    use Limiter::SharedMemory;
    let rows = [
        // 33792 bytes each: four in 167936.
        (256, 32, 32_768, 4, 32, 50.0, SharedMemory),
        (256, 32, 166_912, 1, 8, 12.5, SharedMemory),
        // 1 becomes 1152: 32 slots fit easily, 64 warps / 2 = 32.
        (64, 32, 1, 32, 64, 100.0, Limiter::Warps),
    ];
    holds(&config("a100-sxm4-80"), &rows);
}

#[test]
fn h100_shared_memory_of_228_kib_less_one_kib_per_block() {
    use Limiter::SharedMemory;
    let rows = [
        // 33792 bytes each: six in 233472.
        (256, 32, 32_768, 6, 48, 75.0, SharedMemory),
        (256, 32, 232_448, 1, 8, 12.5, SharedMemory),
    ];
    holds(&config("h100-sxm5"), &rows);
}

#[test]
fn tiny_holds_one_block_with_all_shared_memory_and_threads() {
    holds(
        &config("tiny"),
        &[(1024, 32, 49_152, 1, 32, 50.0, Limiter::SharedMemory)],
    );
}

#[test]
fn m2070_limits_give_the_published_occupancies() {
    use Limiter::{Blocks, Registers, Warps};
    let two_thirds = 200.0 / 3.0;
    let rows = [
        (1024, 16, 0, 1, 32, two_thirds, Warps),
        (128, 16, 0, 8, 32, two_thirds, Blocks),
        (256, 16, 0, 6, 48, 100.0, Warps),
        (512, 16, 0, 3, 48, 100.0, Warps),
        // 672 becomes 768 for 21 registers: 21 warps in each half, 4 CTAs of 9; by 704 it were 5.
        (288, 21, 0, 4, 36, 75.0, Registers),
        (288, 20, 0, 5, 45, 93.75, Warps),
    ];
    holds(&config("m2070"), &rows);
}

#[test]
fn rtx3090_has_48_warps_16_slots_and_100_kib_less_one_kib_per_block() {
    use Limiter::{Blocks, SharedMemory, Warps};
    let rows = [
        (256, 32, 0, 6, 48, 100.0, Warps),
        (1024, 32, 0, 1, 32, 200.0 / 3.0, Warps),
        // 16 slots of 2 warps.
        (64, 16, 0, 16, 32, 200.0 / 3.0, Blocks),
        // 33792 bytes each: three in 102400.
        (256, 32, 32_768, 3, 24, 50.0, SharedMemory),
    ];
    holds(&config("rtx3090"), &rows);
}

#[test]
fn gp100_keeps_the_smaller_of_two_and_four_parts() {
    let gp100 = altered(&[
        ("cc_major", "6"),
        ("sm.subcores", "2"),
        ("limits.warp_allocation_granularity", "2"),
    ]);
    // 1280 a warp: 25 in each half make 25 CTAs of two, 12 in each quarter 24.
    holds(&gp100, &[(64, 33, 0, 24, 48, 75.0, Limiter::Registers)]);
}

#[test]
fn each_resource_alone_is_reported() {
    let found = occupancy(&config("v100-sxm2"), 256, 64, 32_768).unwrap();
    let allowed = Allowed {
        warps: 8,
        blocks: 32,
        shared: Some(3),
        registers: Some(4),
    };
    assert_eq!(found.allowed, allowed);
    let found = occupancy(&config("v100-sxm2"), 256, 0, 0).unwrap();
    assert_eq!((found.allowed.shared, found.allowed.registers), (None, None));
}

#[test]
fn driver_picks_the_smallest_carveout_that_holds_the_resident_blocks() {
    let picked =
        |name, threads, registers, shared| occupancy(&config(name), threads, registers, shared).unwrap().carveout;
    assert_eq!(picked("v100-sxm2", 256, 32, 0), 0);
    // Four CTAs by registers, 8 KiB each.
    assert_eq!(picked("v100-sxm2", 256, 64, 8_192), 32_768);
    assert_eq!(picked("v100-sxm2", 256, 64, 8_193), 65_536);
    assert_eq!(picked("v100-sxm2", 256, 32, 32_768), 98_304);
    // Eight CTAs reserve 1 KiB each.
    assert_eq!(picked("a100-sxm4-80", 256, 32, 0), 8_192);
    // Six CTAs of 33792 bytes need 202752, more than 196 KiB.
    assert_eq!(picked("h100-sxm5", 256, 32, 32_768), 233_472);
    assert_eq!(occupancy(&config("m2070"), 256, 16, 0).unwrap().carveout, 49_152);
}

#[test]
fn launch_that_cannot_fit_names_resource_need_and_limit() {
    let refused = |threads, registers, shared| {
        occupancy(&config("v100-sxm2"), threads, registers, shared)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(refused(0, 32, 0), "a block of 0 threads cannot be launched");
    assert_eq!(refused(1025, 32, 0), "threads: a block needs 1025, the limit is 1024");
    assert_eq!(refused(32, 256, 0), "registers: a thread needs 256, the limit is 255");
    // 65 x 32 = 2080 becomes 2304, times 32 warps.
    assert_eq!(
        refused(1024, 65, 0),
        "registers: a block needs 73728 as allocated, the limit is 65536"
    );
    // 13 warps are spread over the quarters as 16: 16 x 4352.
    assert_eq!(
        refused(416, 129, 0),
        "registers: a block needs 69632 as allocated, the limit is 65536"
    );
    assert_eq!(
        refused(256, 32, 98_305),
        "shared memory: a block needs 98305 bytes, the limit is 98304"
    );
}

#[test]
fn sixteen_warps_hold_at_most_128_registers_a_thread() {
    let v100 = config("v100-sxm2");
    assert!(occupancy(&v100, 512, 128, 0).is_ok());
    assert!(occupancy(&v100, 512, 129, 0).is_err());
}
