//! Oracle: random traffic on the memory system of a random machine.
//!
//! ```text
//!   LSU (idle)   driver -- L1 --+                                    n SMs
//!   LSU (idle)   driver -- L1 --+-- crossbar -- slices -- channels -- storage
//! ```
//!
//! A [`Driver`] between the LSU and the L1 of each SM ([`Factory::before_l1`]) sends a script of packets. A flat array of bytes
//! predicts every response.
//!
//! # Guarantees
//! - Every request gets one response, and then no component has work left.
//! - Each unit of eight bytes has at most one SM that writes it, so its bytes are known exactly. A load returns what the SM's
//!   earlier requests left there, through any hit, merge, eviction or write-back. So does an atomic. One sector has units of
//!   several SMs, so parts of sectors travel.
//! - One line of counters takes additions from every SM; their sums are exact.
//! - After a write-back, storage holds the flat array.
//! - Without idle-skipping, in another tick order, with a quantum of 1, every response comes in the same cycle.

mod driver;
mod traffic;

use std::cell::RefCell;

use arbitrary::{Arbitrary, Unstructured};
use warpwave_components::config::{FarLines, GpuConfig, RefreshMode};
use warpwave_components::gpu::{Factory, Gpu};
use warpwave_components::preset;
use warpwave_components::proto::mem::LINE;
use warpwave_components::sm::l1::{self, L1};
use warpwave_hw::clock::Stop;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::CacheOp;

use super::Reached;
use super::draw::one_of;
use driver::{Driver, Record, Response};
use traffic::{LINES, READ_ONLY, Traffic};

/// Maximum number of requests of one input.
const MOST_REQUESTS: usize = 4000;

/// Cycle limit. Traffic that has not ended by then is stuck.
const LIMIT: Cycle = Cycle(20_000_000);

/// Invariants are checked for one of this number of inputs.
const CHECKED: u64 = 4;

/// Cycles between two checks of invariants.
const CHECK_EVERY: u64 = 256;

/// The input: the shape of a machine, and requests. SM after SM takes one request in turn.
#[derive(Arbitrary, Clone, Debug)]
pub struct MemoryTraffic {
    shape: Shape,
    /// One driver per SM.
    drivers: [DriverShape; 3],
    /// Number of lines in use. Fewer lines give more conflicts.
    #[arbitrary(with = one_of(&[LINES, READ_ONLY.end + 2, READ_ONLY.end + 16]))]
    lines: usize,
    /// Seed of bytes, masks and operands.
    seed: u64,
    #[arbitrary(with = requests)]
    requests: Vec<Request>,
}

/// A small machine. Every count and rate is one of a few values.
#[derive(Arbitrary, Clone, Debug)]
struct Shape {
    #[arbitrary(with = one_of(&[1, 2, 3]))]
    sms: u32,
    #[arbitrary(with = one_of(&[1_000_000, 700_000, 1_300_000]))]
    l2_khz: u32,
    #[arbitrary(with = one_of(&[1_000_000, 600_000, 1_900_000]))]
    memory_khz: u32,
    l1: L1Shape,
    #[arbitrary(with = one_of(&[20, 2, 75]))]
    xbar_latency: u32,
    #[arbitrary(with = one_of(&[16, 1]))]
    xbar_queue_depth: u32,
    #[arbitrary(with = one_of(&[32, 8]))]
    xbar_bytes_per_cycle: u32,
    l2: L2Shape,
    hbm: HbmShape,
    #[arbitrary(with = one_of(&[1, 2, 8]))]
    xbar_input_window: u32,
}

#[derive(Arbitrary, Clone, Debug)]
struct L1Shape {
    #[arbitrary(with = one_of(&[2, 1, 8]))]
    associativity: u32,
    #[arbitrary(with = one_of(&[32, 4, 5]))]
    mshr_entries: u32,
    #[arbitrary(with = one_of(&[8, 1, 2]))]
    mshr_merges: u32,
    #[arbitrary(with = one_of(&[32, 1, 4]))]
    store_queue: u32,
    #[arbitrary(with = one_of(&[128, 32]))]
    data_bytes_per_cycle: u32,
    #[arbitrary(with = one_of(&[512, 1024, 2048, 8192]))]
    bytes: u32,
    /// Maximum number of packets that wait for sectors.
    #[arbitrary(with = one_of(&[1, 4, 32]))]
    waiting: u32,
    /// Entries of the TLB, with a page of four lines each.
    #[arbitrary(with = one_of(&[2, 0, 1, 8]))]
    tlb_entries: u32,
}

#[derive(Arbitrary, Clone, Debug)]
struct L2Shape {
    #[arbitrary(with = one_of(&[2, 1, 3, 4, 6]))]
    slices: u32,
    /// Two partitions, if the number of slices is even.
    #[arbitrary(with = one_of(&[false, true]))]
    is_split: bool,
    #[arbitrary(with = one_of(&[2, 1, 4]))]
    associativity: u32,
    #[arbitrary(with = one_of(&[4, 1, 3]))]
    sets: u32,
    #[arbitrary(with = one_of(&[0, 30, 4]))]
    far_latency: u32,
    /// Copies of far lines, with two partitions and a latency between them.
    #[arbitrary(with = one_of(&FarLines::ALL))]
    far_lines: FarLines,
    #[arbitrary(with = one_of(&[32, 4, 6]))]
    mshr_entries: u32,
    #[arbitrary(with = one_of(&[16, 1]))]
    queue_depth: u32,
    #[arbitrary(with = one_of(&[64, 32]))]
    bytes_per_cycle: u32,
}

#[derive(Arbitrary, Clone, Debug)]
struct HbmShape {
    #[arbitrary(with = one_of(&[2, 1, 3, 4]))]
    channels: u32,
    #[arbitrary(with = one_of(&[16, 4]))]
    banks: u32,
    #[arbitrary(with = one_of(&[32, 64]))]
    burst_bytes: u32,
    #[arbitrary(with = one_of(&[32, 1, 3]))]
    queue_depth: u32,
    #[arbitrary(with = one_of(&[3900, 1200]))]
    t_refi: u32,
    #[arbitrary(with = one_of(&RefreshMode::ALL))]
    refresh: RefreshMode,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct DriverShape {
    /// Maximum number of packets in flight.
    #[arbitrary(with = one_of(&[64, 1, 8]))]
    most_in_flight: usize,
    /// The driver takes no response in every n-th cycle, unless n is 0.
    #[arbitrary(with = one_of(&[0, 2, 3, 7]))]
    pause: u64,
}

/// One request, for the next SM in turn.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Request {
    /// Line, modulo the lines in use.
    line: u8,
    #[arbitrary(with = one_of(CACHE_OPS))]
    cache: CacheOp,
    #[arbitrary(with = one_of(KINDS))]
    kind: Kind,
    /// Idle cycles before the request.
    #[arbitrary(with = one_of(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 40, 60]))]
    gap: u64,
}

/// Kind of a request. On a read-only line it becomes a load, on the line of counters an addition.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Load,
    Store,
    Atomic,
    Invalidate,
}

const CACHE_OPS: &[CacheOp] = &[
    CacheOp::All,
    CacheOp::All,
    CacheOp::All,
    CacheOp::Streaming,
    CacheOp::ReadOnly,
    CacheOp::Global,
    CacheOp::Volatile,
];

// Repeated entries are weights.
const KINDS: &[Kind] = &{
    use Kind::*;
    [
        Load, Load, Load, Load, Load, Load, Load, Load, Store, Store, Store, Store, Store, Atomic, Atomic, Invalidate,
    ]
};

/// Decodes requests until the bytes end.
fn requests(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<Request>> {
    let mut requests = Vec::new();
    while !bytes.is_empty() && requests.len() < MOST_REQUESTS {
        requests.push(bytes.arbitrary()?);
    }
    Ok(requests)
}

impl Shape {
    fn config(&self) -> GpuConfig {
        let Shape { l1, l2, hbm, .. } = self;
        let mut config = preset::load("tiny", &[]).expect("the built-in preset is sound").config;
        // Small: the traffic uses 96 lines, and every run builds two machines.
        config.memory_bytes = 1 << 20;
        config.topology.tpcs_per_gpc = vec![self.sms];
        config.topology.sms_per_tpc = 1;
        config.clocks.l2_khz = self.l2_khz;
        config.clocks.memory_khz = self.memory_khz;
        config.sm.l1.associativity = l1.associativity;
        config.sm.l1.mshr_entries = l1.mshr_entries;
        config.sm.l1.mshr_merges = l1.mshr_merges;
        config.sm.l1.store_queue = l1.store_queue;
        config.sm.l1.data_bytes_per_cycle = l1.data_bytes_per_cycle;
        config.sm.tlb.entries = l1.tlb_entries;
        config.sm.tlb.page = 4 * LINE as u32;
        config.xbar.latency = self.xbar_latency;
        config.xbar.queue_depth = self.xbar_queue_depth;
        config.xbar.request_bytes_per_cycle = self.xbar_bytes_per_cycle;
        config.xbar.input_window = self.xbar_input_window;
        config.l2.slices = l2.slices;
        config.l2.associativity = l2.associativity;
        // Few sets: a hundred lines must force evictions.
        config.l2.size = l2.slices * l2.associativity * l2.sets * LINE as u32;
        config.l2.partitions = if l2.is_split && l2.slices.is_multiple_of(2) {
            2
        } else {
            1
        };
        // The configuration allows it only with two partitions.
        config.l2.far_latency = l2.far_latency * (config.l2.partitions - 1);
        config.l2.far_lines = match config.l2.far_latency {
            0 => FarLines::AtHome,
            _ => l2.far_lines,
        };
        config.l2.mshr_entries = l2.mshr_entries;
        config.l2.queue_depth = l2.queue_depth;
        config.l2.bytes_per_cycle = l2.bytes_per_cycle;
        config.hbm.channels = hbm.channels;
        config.hbm.banks = hbm.banks;
        config.hbm.burst_bytes = hbm.burst_bytes;
        config.hbm.queue_depth = hbm.queue_depth;
        // A burst occupies the data bus for its whole length, so the next column command must wait.
        config.hbm.timing.t_ccd_s = hbm.burst_bytes / config.hbm.bus_bytes_per_command_cycle;
        config.hbm.timing.t_refi = hbm.t_refi;
        config.hbm.refresh = hbm.refresh;
        config
    }
}

/// Runs the traffic on a machine of its shape and checks the guarantees.
///
/// # Panics
/// If a guarantee is broken. If an invariant of the machine is broken, for a fourth of the inputs.
///
/// ```
/// use warpwave::oracle;
/// oracle::replay(b"any bytes are the shape of a machine and its traffic", oracle::memory_traffic);
/// ```
pub fn memory_traffic(input: MemoryTraffic) -> Reached {
    match check(&input) {
        Ok(summary) => summary.reached,
        Err(what) => panic!("{what}"),
    }
}

/// Counts of a run, to test that traffic reaches all levels.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Summary {
    /// Requests with a response.
    requests: u64,
    /// Loads that hit in the L1 with all sectors.
    l1_hits: u64,
    /// Loads with all sectors in the L1 or the L2.
    l2_hits: u64,
    /// Counters of the machine.
    reached: Reached,
}

fn check(input: &MemoryTraffic) -> Result<Summary, String> {
    let traffic = Traffic::new(input);
    // Requests are a function of the seed, so both machines get the same traffic.
    let mut plain = Machine::new(&traffic);
    if input.seed.is_multiple_of(CHECKED) {
        plain.gpu.check_invariants();
    }
    let mut reached = Reached::default();
    let (plain, ends) = plain.run(&traffic, None, &mut reached)?;
    let mut other = Machine::new(&traffic);
    // The second machine differs in every way that must not matter.
    let clock = other.gpu.clock_mut();
    clock.set_quantum(1);
    for tile in clock.tiles_mut() {
        tile.set_skipping(false);
        tile.set_order((0..tile.components().len()).rev().collect());
    }
    let (other, _) = other.run(&traffic, Some(ends), &mut Reached::default())?;
    for (sm, (a, b)) in plain.iter().zip(&other).enumerate() {
        if let Some((a, b)) = a.iter().zip(b).find(|(a, b)| (a.op, a.at) != (b.op, b.at)) {
            return Err(format!(
                "SM {sm}: request {} has its response in cycle {}, but with every component ticked request {} in cycle {}",
                a.op, a.at, b.op, b.at
            ));
        }
    }
    Ok(Summary {
        reached,
        ..summary(&plain)
    })
}

fn summary(responses: &[Vec<Response>]) -> Summary {
    let mut summary = Summary::default();
    for response in responses.iter().flatten() {
        summary.requests += 1;
        summary.l1_hits += u64::from(response.packet.l1_hit);
        summary.l2_hits += u64::from(response.packet.l1_hit || response.packet.l2_hit);
    }
    summary
}

/// A GPU with a driver in front of each L1.
struct Machine {
    gpu: Gpu,
    records: Vec<Record>,
}

impl Machine {
    fn new(traffic: &Traffic) -> Self {
        let records: Vec<Record> = traffic.scripts.iter().map(|_| Record::default()).collect();
        let drivers = traffic.scripts.iter().cloned().zip(records.clone());
        let drivers = RefCell::new(drivers.collect::<Vec<_>>().into_iter());
        let (bytes, mshr_targets) = (traffic.l1_bytes, traffic.l1_waiting);
        let factory = Factory::new()
            .before_l1("driver", move |path, ports| {
                // SMs are built in the order of their numbers.
                let (script, record) = drivers.borrow_mut().next().expect("one script for each SM");
                Driver::new(path, script, ports, record)
            })
            .l1(move |path, config, ports| {
                let config = l1::Config {
                    bytes,
                    mshr_targets,
                    ..config
                };
                L1::new(path, config, ports)
            });
        let gpu = Gpu::with_factory(traffic.config.clone(), &factory);
        // Written to storage directly: the caches are empty.
        gpu.storage().write(traffic::FIRST_LINE, &traffic.before);
        Machine { gpu, records }
    }

    /// Runs the traffic to its end, writes dirty lines back, and checks the guarantees. Returns the responses of each SM in order, and
    /// the cycle in which the traffic ended. With `end`, runs exactly to that cycle: a machine without idle-skipping is never quiet.
    fn run(
        mut self,
        traffic: &Traffic,
        end: Option<Cycle>,
        reached: &mut Reached,
    ) -> Result<(Vec<Vec<Response>>, Cycle), String> {
        let end = self.run_until_quiet(end)?;
        reached.note_counters(&self.gpu);
        // Dirty lines of the L2 are not in storage yet.
        self.gpu.write_back();
        let mut after = vec![0; traffic.after.len()];
        self.gpu.storage().read(traffic::FIRST_LINE, &mut after);
        if let Some(n) = (0..after.len()).find(|&n| after[n] != traffic.after[n]) {
            let (line, byte) = (n / LINE, n % LINE);
            return Err(format!(
                "line {line} byte {byte} is {:#x} in storage, not {:#x}",
                after[n], traffic.after[n]
            ));
        }
        let responses: Vec<Vec<Response>> = self.records.iter().map(driver::take).collect();
        for (sm, responses) in responses.iter().enumerate() {
            traffic.check(sm, responses)?;
        }
        Ok((responses, end))
    }

    fn run_until_quiet(&mut self, end: Option<Cycle>) -> Result<Cycle, String> {
        let end_or_limit = end.unwrap_or(LIMIT);
        let stop = loop {
            let until = (self.gpu.clock().now() + CHECK_EVERY).min(end_or_limit);
            let stop = self.gpu.clock_mut().run(until, |_| false);
            self.gpu.assert_invariants();
            if stop != Stop::Limit || self.gpu.clock().now() >= end_or_limit {
                break stop;
            }
        };
        let unquiet = self.gpu.components().find(|component| !component.is_quiescent());
        match (stop, unquiet) {
            (Stop::Idle, None) => Ok(self.gpu.clock().now()),
            // Without idle-skipping the clock never finds the machine idle, so the given end counts.
            (Stop::Limit, None) if end.is_some() => Ok(self.gpu.clock().now()),
            (stop, unquiet) => {
                let mut waits = Vec::new();
                let components = self.gpu.components();
                components.for_each(|component| component.waits(&mut |wait| waits.push(wait)));
                let path = unquiet.map(|component| component.path().to_string());
                Err(format!("stopped ({stop:?}) with work left at {path:?}: {waits:?}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
