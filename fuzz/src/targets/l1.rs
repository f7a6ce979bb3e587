//! Target: one L1 between an LSU and the L2.
//!
//! Oracle: without another SM the L1 is invisible. Each request returns what a memory without time returns, in program order.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex};

use arbitrary::Arbitrary;
use warpwave_components::config::{ReplacementPolicy, Tlb, WritePolicy};
use warpwave_components::gpu::{Factory, Gpu};
use warpwave_components::proto::mem::{Packet, PacketKind};
use warpwave_components::proto::noc::AddressMap;
use warpwave_components::sm::l1::{Config, L1, Ports};
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::CacheOp;

use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{Action, Owed, PlainMemory, Request, TINY};

/// An L1 and its traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    shape: Shape,
    paces: [Pace; 2],
    /// Cycles of the L2, for each of its two slices.
    delays: [Delay; 2],
    #[arbitrary(with = up_to(60))]
    requests: Vec<Request>,
    /// The requests before which the L1 is invalidated.
    #[arbitrary(with = up_to(2))]
    invalidations: Vec<u8>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Delay(#[arbitrary(with = one_of(&[20, 1, 5, 90]))] u64);

/// Cache and queues.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Shape {
    #[arbitrary(with = one_of(&[(2, 2), (1, 1), (1, 4), (4, 1), (2, 4)]))]
    sets_ways: (u32, u32),
    #[arbitrary(with = one_of(&ReplacementPolicy::ALL))]
    replacement: ReplacementPolicy,
    #[arbitrary(with = one_of(&WritePolicy::ALL))]
    write_policy: WritePolicy,
    #[arbitrary(with = within(1..=30))]
    latency: u32,
    #[arbitrary(with = within(4..=12))]
    mshr_sectors: u32,
    #[arbitrary(with = within(1..=4))]
    mshr_merges: u32,
    #[arbitrary(with = within(1..=8))]
    mshr_targets: u32,
    #[arbitrary(with = one_of(&[1, 2, 4]))]
    tag_banks: u32,
    #[arbitrary(with = one_of(&[32, 64, 128]))]
    data_bytes_per_cycle: u32,
    #[arbitrary(with = within(1..=8))]
    store_queue: u32,
    #[arbitrary(with = within(1..=4))]
    return_queue: u32,
    /// Entries of the TLB, with a page of 256 bytes each.
    #[arbitrary(with = one_of(&[2, 0, 1, 3]))]
    tlb_entries: u32,
    #[arbitrary(with = within(1..=40))]
    tlb_miss_latency: u32,
}

/// The configuration of the first L1 of `tiny`, as the machine builds it.
static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    let seen: Arc<Mutex<Option<Config>>> = Arc::default();
    let keep = seen.clone();
    let factory = Factory::new().l1(move |path, config: Config, ports| {
        *keep.lock().expect("one thread builds") = Some(config.clone());
        L1::new(path, config, ports)
    });
    Gpu::with_factory(TINY.clone(), &factory);
    let config = seen.lock().expect("one thread builds").clone();
    config.expect("the machine has an L1")
});

struct Neighbours {
    input: Input,
    source: Source<Box<Packet>>,
    responses: Sink<Box<Packet>>,
    to_l2: Sink<Box<Packet>>,
    from_l2: OutPort<Box<Packet>>,
    /// The packets of each slice, with the cycles of their responses.
    slices: [VecDeque<(u64, Box<Packet>)>; 2],
    l2: PlainMemory,
    newest: PlainMemory,
    owed: Owed,
}

impl Neighbours {
    fn start(&mut self) {
        (self.l2, self.newest, self.owed) = Default::default();
        let (mut at, mut tag) = (0, 0);
        for (n, request) in self.input.requests.clone().into_iter().enumerate() {
            at += request.gap;
            if self.input.invalidations.contains(&(n as u8)) {
                let (sets, ways) = self.input.shape.sets_ways;
                let mut packet = Box::new(Packet::blank());
                packet.kind = PacketKind::Invalidate {
                    bytes: sets * ways * 128,
                };
                packet.tag = tag;
                self.push(at, packet);
                tag += 1;
            }
            let mut packet = request.packet(request.line.into(), tag);
            if request.action == Action::Load {
                // Half of the loads may hit in the L1. The others bypass it.
                let operators = [CacheOp::All, CacheOp::All, CacheOp::Global, CacheOp::Volatile];
                packet.cache = operators[usize::from(request.choice)];
            }
            self.push(at, packet);
            tag += 1;
        }
    }

    fn push(&mut self, at: u64, packet: Box<Packet>) {
        self.owed.request(&mut self.newest, &packet);
        self.source.push(at, packet);
    }

    /// Performs a request at its arrival, and answers it later.
    fn run_l2(&mut self, now: Cycle) {
        if let Some(mut packet) = self.to_l2.take(now) {
            // Performed at arrival: the order in which the L1 sends is the order of memory.
            self.l2.perform(&mut packet);
            packet.l2_hit = true;
            let slice = (packet.line / 128 % 2) as usize;
            self.slices[slice].push_back((now.0 + self.input.delays[slice].0, packet));
        }
        // The slices take turns, so responses of different lines overtake each other.
        let first = (now.0 % 2) as usize;
        for slice in [first, 1 - first] {
            if self.from_l2.has_room(now)
                && let Some((_, packet)) = self.slices[slice].pop_front_if(|(at, _)| *at <= now.0)
            {
                self.from_l2.send(now, packet);
            }
        }
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.source.tick(now);
        if let Some(response) = self.responses.take(now) {
            self.owed.response(&response);
        }
        self.run_l2(now);
        !self.owed.is_empty() || self.slices.iter().any(|slice| !slice.is_empty())
    }

    fn reset(&mut self) {
        self.source.clear();
        self.responses.clear();
        self.to_l2.clear();
        self.slices = Default::default();
        self.start();
    }

    fn check_end(&self) {
        // Every store goes through the L1, so the L2 has the newest bytes.
        let mut found = self.l2.clone();
        for (line, bytes) in self.newest.lines() {
            assert_eq!(found.line(line), bytes, "line {line:#x} in the L2 at the end");
        }
    }

    fn digest(&self) -> u64 {
        combine([self.responses.digest(), self.to_l2.digest()])
    }
}

/// Runs the L1.
///
/// # Panics
/// If a byte or an old value is wrong, if a response is missing or doubled, or if the L1 breaks the contract.
pub fn check(input: Input) {
    let shape = input.shape;
    let build = |wiring: &Wiring| {
        let (source, requests) = wiring.input(1, 2);
        let (to_lsu, responses) = wiring.output(1, 2);
        let (to_xbar, to_l2) = wiring.output(1, 2);
        let (from_l2, from_xbar) = wiring.input(1, 4);
        let ports = Ports {
            requests,
            responses: to_lsu,
            to_xbar,
            from_xbar,
            bulk: None,
        };
        let (sets, ways) = shape.sets_ways;
        let mut config = CONFIG.clone();
        config.bytes = sets * ways * 128;
        config.associativity = ways;
        config.replacement = shape.replacement.new_replacement();
        config.write_policy = shape.write_policy;
        config.latency = shape.latency;
        config.mshr_sectors = shape.mshr_sectors;
        config.mshr_merges = shape.mshr_merges;
        config.mshr_targets = shape.mshr_targets;
        config.tag_banks = shape.tag_banks;
        config.data_bytes_per_cycle = shape.data_bytes_per_cycle;
        config.store_queue = shape.store_queue;
        config.return_queue = shape.return_queue;
        config.tlb = Tlb {
            entries: shape.tlb_entries,
            page: 256,
            miss_latency: shape.tlb_miss_latency,
        };
        config.map = Arc::new(AddressMap::new(1, 1));
        let mut world = Neighbours {
            source: Source::with_sideband(source, |packet| packet.n_changed() as u16),
            responses: Sink::new(responses, input.paces[0]),
            to_l2: Sink::new(to_l2, input.paces[1]),
            from_l2,
            slices: Default::default(),
            l2: PlainMemory::default(),
            newest: PlainMemory::default(),
            owed: Owed::default(),
            input: input.clone(),
        };
        world.start();
        (L1::new(Path::root("l1"), config, ports), world)
    };
    check_component(build, input.second, 200_000);
}
