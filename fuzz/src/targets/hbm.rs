//! Target: one memory channel with slices in front of it.
//!
//! Oracles: the bytes of a memory without time, and the timing checker of the standard's table.

use std::sync::Arc;

use arbitrary::Arbitrary;
use warpwave_components::config::{DramScheduler, Hbm, Mapping, RefreshMode, RowPolicy, Timing};
use warpwave_components::hbm::channel::{Channel, Config, SlicePorts};
use warpwave_components::proto::mem::Packet;
use warpwave_components::proto::noc::AddressMap;
use warpwave_components::storage::Storage;
use warpwave_hw::path::Path;
use warpwave_hw::time::{Cycle, Domain};

use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{Action, Mask, Owed, PlainMemory, Request, TINY, clock};

/// A channel and its traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    shape: Shape,
    timing: SmallTiming,
    #[arbitrary(with = clock)]
    clock: Domain,
    paces: [Pace; 2],
    #[arbitrary(with = up_to(60))]
    requests: Vec<Request>,
}

/// Banks, queue and policies.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Shape {
    #[arbitrary(with = one_of(&[(4, 2), (8, 4), (2, 1), (16, 4)]))]
    banks: (u32, u32),
    #[arbitrary(with = one_of(&[256, 128, 1024]))]
    row_bytes: u32,
    #[arbitrary(with = one_of(&Mapping::ALL))]
    mapping: Mapping,
    #[arbitrary(with = within(1..=12))]
    queue_depth: u32,
    #[arbitrary(with = one_of(&DramScheduler::ALL))]
    scheduler: DramScheduler,
    #[arbitrary(with = one_of(&RowPolicy::ALL))]
    row_policy: RowPolicy,
    #[arbitrary(with = within(1..=60))]
    row_timeout: u32,
    #[arbitrary(with = one_of(&RefreshMode::ALL))]
    refresh: RefreshMode,
    #[arbitrary(with = within(5..=300))]
    starved_after: u32,
    #[arbitrary(with = one_of(&[32, 64]))]
    burst_bytes: u32,
    #[arbitrary(with = one_of(&[0, 8, 2, 1]))]
    check_interval: u32,
    #[arbitrary(with = within(0..=9))]
    delays: u32,
}

/// Timings within the rules of a preset.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct SmallTiming {
    #[arbitrary(with = within(1..=16))]
    t_rcd: u32,
    #[arbitrary(with = within(1..=16))]
    t_rp: u32,
    /// tRAS without tRCD.
    #[arbitrary(with = within(0..=20))]
    t_ras_extra: u32,
    #[arbitrary(with = within(0..=9))]
    t_rc_extra: u32,
    #[arbitrary(with = within(1..=6))]
    t_rrd: u32,
    #[arbitrary(with = within(0..=3))]
    t_ccd_extra: u32,
    #[arbitrary(with = within(1..=14))]
    cl: u32,
    #[arbitrary(with = within(1..=14))]
    wl: u32,
    #[arbitrary(with = within(1..=12))]
    t_wr: u32,
    #[arbitrary(with = within(1..=8))]
    t_wtr: u32,
    #[arbitrary(with = within(1..=8))]
    t_rtp: u32,
    #[arbitrary(with = within(1..=90))]
    t_rfc: u32,
    #[arbitrary(with = within(1..=90))]
    t_rfcsb: u32,
    #[arbitrary(with = within(1..=9))]
    t_rrefd: u32,
    #[arbitrary(with = within(1..=250))]
    t_refi_extra: u32,
}

impl Input {
    fn hbm(&self) -> Hbm {
        let (shape, t) = (&self.shape, &self.timing);
        let mut hbm = TINY.hbm;
        let burst = shape.burst_bytes.div_ceil(32);
        let t_ras = t.t_rcd + t.t_ras_extra;
        let t_rc = t_ras + t.t_rp + t.t_rc_extra;
        // The least tREFI of a preset: a refresh can wait for the end of an open row.
        let row_end = t_rc.max(t.wl + 2 * burst + t.t_wr + t.t_rp).max(t.t_rtp + t.t_rp);
        let least_t_refi = match shape.refresh {
            RefreshMode::AllBanks => t.t_rfc + t.t_rcd + row_end,
            // A round of refreshes must end in time.
            RefreshMode::SingleBank => {
                (t.t_rfcsb + t.t_rcd + row_end).max(shape.banks.0 * (row_end + t.t_rrd + t.t_rrefd))
            }
        };
        (hbm.banks, hbm.bank_groups) = shape.banks;
        hbm.row_bytes = shape.row_bytes;
        hbm.mapping = shape.mapping;
        hbm.queue_depth = shape.queue_depth;
        hbm.scheduler = shape.scheduler;
        hbm.row_policy = shape.row_policy;
        hbm.row_timeout = shape.row_timeout;
        hbm.refresh = shape.refresh;
        hbm.starved_after = shape.starved_after;
        // A drain starts at half of the queue and stops at a quarter.
        hbm.write_drain_start = shape.queue_depth.div_ceil(2);
        hbm.write_drain_stop = shape.queue_depth / 4;
        hbm.burst_bytes = shape.burst_bytes;
        hbm.bus_bytes_per_command_cycle = 32;
        hbm.check_interval = shape.check_interval;
        hbm.timing = Timing {
            t_rcd: t.t_rcd,
            t_rp: t.t_rp,
            t_ras,
            t_rc,
            t_rrd: t.t_rrd,
            t_ccd_s: burst,
            t_ccd_l: burst + t.t_ccd_extra,
            cl: t.cl,
            wl: t.wl,
            t_wr: t.t_wr,
            t_wtr: t.t_wtr,
            t_rtp: t.t_rtp,
            t_rfc: t.t_rfc,
            t_refi: least_t_refi + t.t_refi_extra,
            t_rfcsb: t.t_rfcsb,
            t_rrefd: t.t_rrefd,
        };
        hbm
    }
}

/// Two slices: lines of even and of odd numbers.
const SLICES: usize = 2;

struct Slices {
    requests: Vec<Request>,
    storage: Arc<Storage>,
    sources: Vec<Source<Box<Packet>>>,
    sinks: Vec<Sink<Box<Packet>>>,
    memory: PlainMemory,
    owed: Owed,
}

impl Slices {
    fn start(&mut self) {
        (self.memory, self.owed) = Default::default();
        let mut at = 0;
        for (tag, request) in self.requests.iter().enumerate() {
            at += request.gap;
            let slice = tag % SLICES;
            // Slices never share a line. The channel knows loads and stores only.
            let line = u64::from(request.line) * SLICES as u64 + slice as u64;
            let action = match request.action {
                Action::Load | Action::Atomic(_) => Action::Load,
                Action::Store(..) => request.action,
                Action::Reduction(_) => Action::Store(Mask::Whole, tag as u8),
            };
            let packet = Request { action, ..*request }.packet(line, tag as u32);
            // In order of the script: each slice has lines of its own, so the order between them is free.
            self.owed.request(&mut self.memory, &packet);
            self.sources[slice].push(at, packet);
        }
    }
}

impl World for Slices {
    fn tick(&mut self, now: Cycle) -> bool {
        self.sources.iter_mut().for_each(|source| source.tick(now));
        for sink in &mut self.sinks {
            if let Some(response) = sink.take(now) {
                self.owed.response(&response);
            }
        }
        !self.owed.is_empty()
    }

    fn reset(&mut self) {
        self.sources.iter_mut().for_each(Source::clear);
        self.sinks.iter_mut().for_each(Sink::clear);
        self.memory.clear_in(&self.storage);
        self.start();
    }

    fn check_end(&self) {
        self.memory.assert_in(&self.storage);
    }

    fn digest(&self) -> u64 {
        combine(self.sinks.iter().map(Sink::digest))
    }
}

/// Runs the channel.
///
/// # Panics
/// If a byte is wrong, if a command violates the standard, or if the channel breaks the contract.
pub fn check(input: Input) {
    let hbm = input.hbm();
    let build = |wiring: &Wiring| {
        let storage = Arc::new(Storage::new(1 << 20));
        let (sources, requests): (Vec<_>, Vec<_>) = (0..SLICES).map(|_| wiring.input(1, 4)).unzip();
        let (responses, sinks): (Vec<_>, Vec<_>) = (0..SLICES).map(|_| wiring.output(1, 2)).unzip();
        let ports = requests.into_iter().zip(responses);
        let ports = ports.map(|(requests, responses)| SlicePorts { requests, responses });
        let config = Config {
            hbm,
            enqueue_latency: input.shape.delays / 3,
            number: 0,
            response_latency: input.shape.delays,
            clock: input.clock,
            map: Arc::new(AddressMap::new(1, 1)),
        };
        let channel = Channel::new(Path::root("channel"), config, ports.collect(), storage.clone());
        let mut world = Slices {
            requests: input.requests.clone(),
            storage,
            sources: sources.into_iter().map(Source::new).collect(),
            sinks: sinks
                .into_iter()
                .zip(input.paces)
                .map(|(port, pace)| Sink::new(port, pace))
                .collect(),
            memory: PlainMemory::default(),
            owed: Owed::default(),
        };
        world.start();
        (channel, world)
    };
    check_component(build, input.second, 200_000);
}
