//! A running machine allocates no host memory after its first cycles: messages and state are reused.
//!
//! Pools and queues grow to the most messages in flight, and keep that size. So the test repeats launches of one grid, with kernels that
//! reach their peak traffic soon.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use warpwave::bench::{Bench, Options};
use warpwave::scenario::builtin;
use warpwave_components::preset;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const OPTIONS: Options = Options {
    threads: 1,
    max_cycles: None,
};

/// Number of allocations and reallocations so far.
fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// Launches of the same grid. The test measures the last one, after its first cycles. It touches no set of a cache for the first time: a set
/// gets the state of its replacement then.
const LAUNCHES: usize = 10;

/// Most allocations of the measured part: pools that grow by one.
const NEW_PEAKS: usize = 2;

/// Cycles at the begin of a launch that may allocate.
const BEGINNING: u64 = 1000;

#[test]
fn repeated_launch_allocates_nothing() {
    for kernel in ["speed_histogram", "speed_scan"] {
        let mut scenario = builtin::load(kernel).unwrap();
        scenario.launches = vec![scenario.launches[0].clone(); LAUNCHES];
        // The search for a standstill is the host's: every 100,000 cycles it copies the state of the warps.
        let settings = [("gigathread.standstill_cycles".to_owned(), "0".to_owned())];
        let config = preset::load("tiny", &settings).unwrap().config;
        let mut bench = Bench::new(&scenario, config).unwrap();
        // The first and the last observation of the last launch: cycle and allocations so far.
        let (mut begin, mut first, mut last) = (0, None, None);
        let run = bench.run(OPTIONS, &mut |progress| {
            if progress.launch < LAUNCHES - 1 {
                begin = progress.now.0;
            } else if progress.now.0 > begin + BEGINNING {
                last = Some((progress.now.0, allocations()));
                first = first.or(last);
            }
            true
        });
        assert!(run.stopped.is_none(), "{kernel}: {:?}", run.stopped);
        let ((from, before), (to, after)) = (first.unwrap(), last.unwrap());
        assert!(to - from > 50_000, "{kernel}: {} cycles prove little", to - from);
        // A pool may grow to a new peak: refreshes come at other cycles of each launch. Work in each cycle would allocate thousands of times.
        let n = after - before;
        assert!(n <= NEW_PEAKS, "{kernel}: {n} allocations in cycles {from}..{to}");
    }
}
