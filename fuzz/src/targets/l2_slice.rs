//! Target: one L2 slice between a crossbar, a host and memory.
//!
//! Oracle: requests for a sector take effect in order of arrival, as in a memory without time. After a write-back that memory and device
//! memory are equal.

use std::collections::VecDeque;
use std::sync::Arc;

use arbitrary::Arbitrary;
use warpwave_components::config::ReplacementPolicy;
use warpwave_components::l2::atomic::AtomicPace;
use warpwave_components::l2::slice::{ChannelPorts, Config, Ports, Slice};
use warpwave_components::proto::mem::{Packet, PacketKind, SliceCommand, byte_mask};
use warpwave_components::proto::noc::AddressMap;
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::{Cycle, Domain};

use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{Owed, PlainMemory, Request, clock};

/// A slice and its traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    shape: Shape,
    #[arbitrary(with = clock)]
    clock: Domain,
    paces: [Pace; 2],
    #[arbitrary(with = one_of(&[5, 1, 40, 200]))]
    memory_delay: u64,
    #[arbitrary(with = up_to(60))]
    requests: Vec<Request>,
}

/// Cache and queues.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Shape {
    #[arbitrary(with = one_of(&[(2, 2), (1, 1), (1, 4), (4, 1), (3, 2)]))]
    sets_ways: (u32, u32),
    #[arbitrary(with = one_of(&ReplacementPolicy::ALL))]
    replacement: ReplacementPolicy,
    #[arbitrary(with = within(1..=12))]
    latency: u32,
    #[arbitrary(with = one_of(&[0, 9]))]
    far_latency: u32,
    #[arbitrary(with = within(4..=12))]
    mshr_sectors: u32,
    #[arbitrary(with = within(1..=8))]
    mshr_targets: u32,
    #[arbitrary(with = within(2..=6))]
    memory_depth: u32,
    #[arbitrary(with = one_of(&[32, 64, 128]))]
    bytes_per_cycle: u32,
    /// Hundredths of a cycle of a round, and of a further float addition.
    #[arbitrary(with = one_of(&[(100, 100), (300, 25), (1, 250)]))]
    atomic_pace: (u32, u32),
}

/// Memory that answers after a fixed delay, in order.
struct Memory {
    delay: u64,
    bytes: PlainMemory,
    waiting: VecDeque<(u64, Box<Packet>)>,
    port: OutPort<Box<Packet>>,
}

impl Memory {
    fn take(&mut self, mut packet: Box<Packet>, now: Cycle) {
        if packet.kind == PacketKind::Store {
            // A write-back changes the masked bytes of its sectors only.
            packet.byte_mask &= byte_mask(packet.sectors);
        }
        self.bytes.perform(&mut packet);
        self.waiting.push_back((now.0 + self.delay, packet));
    }

    fn tick(&mut self, now: Cycle) {
        if self.port.has_room(now)
            && let Some((_, packet)) = self.waiting.pop_front_if(|(at, _)| *at <= now.0)
        {
            self.port.send(now, packet);
        }
    }
}

struct Neighbours {
    input: Input,
    source: Source<Box<Packet>>,
    responses: Sink<Box<Packet>>,
    host: Source<SliceCommand>,
    fetches: Sink<Box<Packet>>,
    memory: Memory,
    newest: PlainMemory,
    owed: Owed,
    is_written_back: bool,
}

impl Neighbours {
    fn start(&mut self) {
        (self.newest, self.owed, self.memory.bytes) = Default::default();
        self.is_written_back = false;
        let mut at = 0;
        for (tag, request) in self.input.requests.iter().enumerate() {
            at += request.gap;
            let mut packet = request.packet(request.line.into(), tag as u32);
            // SMs 0 and 1 are near, 2 and 3 far: `near_sms` below.
            packet.sm = request.choice.into();
            self.owed.request(&mut self.newest, &packet);
            self.source.push(at, packet);
        }
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.source.tick(now);
        self.host.tick(now);
        if let Some(response) = self.responses.take(now) {
            self.owed.response(&response);
        }
        self.memory.tick(now);
        // Fetches and write-backs share the link to memory.
        if let Some(packet) = self.fetches.take(now) {
            self.memory.take(packet, now);
        }
        if self.owed.is_empty() && !self.is_written_back && self.memory.waiting.is_empty() {
            self.is_written_back = true;
            // Long after the last response, so that no write-back is on its way.
            self.host.push(now.0 + 20, SliceCommand::WriteBack);
        }
        let is_done = self.owed.is_empty() && self.host.is_empty() && self.memory.waiting.is_empty();
        // Write-backs come after the last response, and wait for the pace.
        !is_done || self.fetches.is_ready(now)
    }

    fn reset(&mut self) {
        self.source.clear();
        self.host.clear();
        self.responses.clear();
        self.fetches.clear();
        self.memory.waiting.clear();
        self.start();
    }

    fn check_end(&self) {
        assert!(self.is_written_back && self.memory.waiting.is_empty());
        let mut found = self.memory.bytes.clone();
        for (line, bytes) in self.newest.lines() {
            assert_eq!(found.line(line), bytes, "line {line:#x} after the write-back");
        }
    }

    fn digest(&self) -> u64 {
        combine([self.responses.digest(), self.fetches.digest()])
    }
}

/// Runs the slice.
///
/// # Panics
/// If a byte or an old value is wrong, if a response is missing or doubled, or if the slice breaks the contract.
pub fn check(input: Input) {
    let shape = input.shape;
    let build = |wiring: &Wiring| {
        let (source, requests) = wiring.input(1, 4);
        let (to_xbar, responses) = wiring.output(1, 2);
        let (host, commands) = wiring.input(1, 1);
        let (to_memory, fetches) = wiring.output(1, shape.memory_depth);
        let (port, from_memory) = wiring.input(1, shape.memory_depth);
        let ports = Ports {
            requests,
            responses: to_xbar,
            commands,
            memory: vec![ChannelPorts {
                requests: to_memory,
                responses: from_memory,
            }],
            twin: None,
        };
        let (sets, ways) = shape.sets_ways;
        let config = Config {
            bytes: sets * ways * 128,
            associativity: ways,
            replacement: shape.replacement.new_replacement(),
            latency: shape.latency,
            l2_data_latency: 0,
            far_latency: shape.far_latency,
            near_sms: 0..2,
            mshr_sectors: shape.mshr_sectors,
            mshr_targets: shape.mshr_targets,
            memory_depth: shape.memory_depth,
            bytes_per_cycle: shape.bytes_per_cycle,
            atomic: AtomicPace {
                round: shape.atomic_pace.0,
                float_add: shape.atomic_pace.1,
            },
            clock: input.clock,
            twin: None,
            map: Arc::new(AddressMap::new(1, 1)),
        };
        let mut world = Neighbours {
            source: Source::new(source),
            responses: Sink::new(responses, input.paces[0]),
            host: Source::new(host),
            fetches: Sink::new(fetches, input.paces[1]),
            memory: Memory {
                delay: input.memory_delay,
                bytes: PlainMemory::default(),
                waiting: VecDeque::new(),
                port,
            },
            newest: PlainMemory::default(),
            owed: Owed::default(),
            is_written_back: false,
            input: input.clone(),
        };
        world.start();
        (Slice::new(Path::root("slice"), config, ports), world)
    };
    check_component(build, input.second, 200_000);
}
