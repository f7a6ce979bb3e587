//! Tests with random inputs, the empty input, and idle machines of every preset.

use super::*;
use warpwave_components::config::OUTSIDE_L1;
use warpwave_components::proto::mem::{Packet, Stage};
use warpwave_components::proto::noc::AddressMap;

/// Pseudo-random bytes from a seed (xorshift).
fn noise(seed: u64, n: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        })
        .collect()
}

fn input(bytes: &[u8]) -> MemoryTraffic {
    MemoryTraffic::arbitrary_take_rest(Unstructured::new(bytes)).unwrap()
}

#[test]
fn random_traffic_on_random_machines_keeps_every_guarantee() {
    let mut all = Summary::default();
    for seed in 0..60 {
        let input = input(&noise(seed, 2000));
        let summary = check(&input).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        all.requests += summary.requests;
        all.l1_hits += summary.l1_hits;
        all.l2_hits += summary.l2_hits;
    }
    assert!(
        all.l1_hits > 100 && all.l2_hits > all.l1_hits + 100 && all.requests > 10_000,
        "{all:?}"
    );
}

#[test]
fn empty_input_sends_no_request() {
    let summary = check(&input(&[])).unwrap();
    assert_eq!((summary.requests, summary.l1_hits, summary.l2_hits), (0, 0, 0));
}

/// Cycles from the L1's lookup to its response, for loads that bypass the L1, one at a time.
fn trips(config: &GpuConfig, lines: &[u64]) -> Vec<u64> {
    let load = |&line| Packet {
        line: traffic::FIRST_LINE + line * LINE as u64,
        sectors: 0b0001,
        cache: CacheOp::Volatile,
        ..Packet::blank()
    };
    let traffic = Traffic::one_by_one(config.clone(), lines.iter().map(load).collect());
    let (responses, _) = Machine::new(&traffic)
        .run(&traffic, None, &mut Reached::default())
        .unwrap();
    let cycles = |response: &Response| {
        let at = |stage| response.packet.stamps.at(stage).unwrap();
        at(Stage::Return) - at(Stage::L1)
    };
    responses[0].iter().map(cycles).collect()
}

#[test]
fn idle_machine_of_every_preset_has_its_latencies_to_near_and_far_slices() {
    for name in preset::names() {
        let mut config = preset::load(name, &[]).unwrap().config;
        // No refresh falls into the run.
        config.hbm.timing.t_refi = 1_000_000;
        let map = AddressMap::of(&config);
        let slice_of = |line: u64| map.home(traffic::FIRST_LINE + line * LINE as u64).slice;
        // A line of the first slice and one of the last slice. Their channels differ, so both rows are closed.
        let near = (0..).find(|&line| slice_of(line) == 0).unwrap();
        let far = (0..)
            .find(|&line| u32::from(slice_of(line)) == config.l2.slices - 1)
            .unwrap();
        let trips = trips(&config, &[near, far, near, far]);
        let far_latency = if config.l2.partitions > 1 {
            config.l2.far_latency
        } else {
            0
        };
        let (memory, l2) = (
            config.hbm.access_latency - OUTSIDE_L1,
            config.l2.hit_latency - OUTSIDE_L1,
        );
        let wanted = match config.sm.ideal_memory_latency {
            // The second load of the far line hits its copy.
            0 if config.l2.far_lines == FarLines::Copied => [memory, memory + far_latency, l2, l2].map(u64::from),
            0 => [memory, memory + far_latency, l2, l2 + far_latency].map(u64::from),
            ideal => [u64::from(ideal); 4],
        };
        for (n, wanted) in wanted.into_iter().enumerate() {
            // With different clocks, each crossing waits for the next edge of its domain.
            let slack = if n < 2 { 4 } else { 0 };
            assert!(
                trips[n].abs_diff(wanted) <= slack,
                "{name}: {trips:?}, wanted {wanted:?}"
            );
        }
    }
}
