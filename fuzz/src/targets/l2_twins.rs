//! Target: two L2 slices of different partitions, which keep copies of each other's lines.
//!
//! ```text
//!   SM 0, host, memory <--> slice 0 <== requests, responses ==> slice 1 <--> SM 1, host, memory
//! ```
//!
//! Oracle: every byte is one register to both SMs. There is an order of all its accesses that agrees with these facts:
//! - A load or an atomic returns the byte of the last write before it.
//! - An access that ends before another is sent comes first.
//! - Accesses of one SM keep their order.
//!
//! Every write of a byte has a value of its own, so the write that a load returns is known. `history` then decides exactly if such an
//! order exists. After a write-back memory has the byte of the last write.

mod history;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use arbitrary::Arbitrary;
use warpwave_components::config::ReplacementPolicy;
use warpwave_components::l2::atomic::AtomicPace;
use warpwave_components::l2::slice::twin::{TwinLatency, TwinPorts};
use warpwave_components::l2::slice::{ChannelPorts, Config, Ports, Slice};
use warpwave_components::proto::mem::{
    AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR, SliceCommand, byte_mask,
};
use warpwave_components::proto::noc::AddressMap;
use warpwave_components::storage::BASE;
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::{Cycle, Domain};
use warpwave_isa::inst::{AtomOp, Ty};

use self::history::{Access, check_line};
use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{Group, SecondRun, Sink, Source, Wiring, World, check_group, combine};
use crate::parts::{Mask, PlainMemory, clock};

/// Requests of a run, at most. Each has a value of its own in a byte, and 0 is the first value of every byte.
const MOST: usize = 80;

/// Two slices and their traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    shape: Shape,
    #[arbitrary(with = clock)]
    clock: Domain,
    /// Of responses and fetches, for each slice.
    paces: [[Pace; 2]; 2],
    #[arbitrary(with = one_of(&[5, 1, 40, 200]))]
    memory_delay: u64,
    #[arbitrary(with = up_to(MOST))]
    requests: Vec<Request>,
}

/// Caches, queues and the links between the slices.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Shape {
    #[arbitrary(with = one_of(&[(2, 2), (1, 1), (1, 4), (4, 1), (1, 2)]))]
    sets_ways: (u32, u32),
    #[arbitrary(with = one_of(&ReplacementPolicy::ALL))]
    replacement: ReplacementPolicy,
    #[arbitrary(with = within(1..=12))]
    latency: u32,
    #[arbitrary(with = within(1..=6))]
    to_home: u32,
    #[arbitrary(with = within(1..=6))]
    from_home: u32,
    #[arbitrary(with = within(1..=4))]
    link_latency: u32,
    #[arbitrary(with = one_of(&[8, 1, 2, 3]))]
    link_depth: u32,
    #[arbitrary(with = within(4..=12))]
    mshr_sectors: u32,
    #[arbitrary(with = within(1..=8))]
    mshr_targets: u32,
    #[arbitrary(with = within(2..=6))]
    memory_depth: u32,
    #[arbitrary(with = one_of(&[32, 64, 128]))]
    bytes_per_cycle: u32,
}

/// What a request does.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Action {
    Load,
    Store(Mask),
    /// An exchange by this number of lanes.
    Exchange(#[arbitrary(with = within(1..=8))] u8),
    /// An exchange without old values.
    Reduction(#[arbitrary(with = within(1..=8))] u8),
    /// A compare-and-swap by this number of lanes. It compares with the value of an earlier request, or with 0.
    Swap(
        #[arbitrary(with = within(1..=8))] u8,
        #[arbitrary(with = within(0..=15))] u8,
    ),
}

/// A request of an SM.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Request {
    /// Cycles after the previous request.
    #[arbitrary(with = one_of(&[0, 0, 0, 1, 2, 7, 20, 90]))]
    gap: u64,
    /// The SM, which is in the partition of its number.
    #[arbitrary(with = within(0..=1))]
    sm: u16,
    #[arbitrary(with = within(0..=7))]
    line: u8,
    #[arbitrary(with = within(1..=15))]
    sectors: u8,
    action: Action,
}

impl Request {
    /// The packet of the request. Every byte that it writes gets `value`.
    fn packet(&self, map: &AddressMap, tag: usize) -> Box<Packet> {
        let value = value_of(tag);
        let mut packet = Box::new(Packet {
            line: BASE + u64::from(self.line) * LINE as u64,
            sectors: self.sectors,
            sm: self.sm,
            tag: tag as u32,
            ..Packet::blank()
        });
        (packet.slice, packet.crossing) = map.route(packet.line, self.sm.into());
        match self.action {
            Action::Load => {}
            Action::Store(mask) => {
                packet.kind = PacketKind::Store;
                packet.byte_mask = mask.byte_mask(self.sectors);
                packet.bytes = [value; LINE];
            }
            Action::Exchange(lanes) => set_atomic(&mut packet, PacketKind::Atomic, AtomOp::Exch, lanes, 0),
            Action::Reduction(lanes) => set_atomic(&mut packet, PacketKind::Reduction, AtomOp::Exch, lanes, 0),
            Action::Swap(lanes, of) => {
                let compare = if of == 0 {
                    0
                } else {
                    value_of(tag.saturating_sub(of.into()))
                };
                set_atomic(&mut packet, PacketKind::Atomic, AtomOp::Cas, lanes, compare);
            }
        }
        packet
    }
}

/// The byte that the request with this tag writes.
fn value_of(tag: usize) -> u8 {
    tag as u8 + 1
}

/// A word of four equal bytes.
fn word(byte: u8) -> u128 {
    u32::from_le_bytes([byte; 4]).into()
}

/// Makes a packet an atomic. Its lanes take turns over its sectors, each with a word of its own.
fn set_atomic(packet: &mut Packet, kind: PacketKind, op: AtomOp, lanes: u8, compare: u8) {
    let sectors: Vec<u8> = (0..4).filter(|n| packet.sectors >> n & 1 == 1).collect();
    let mut atomics = AtomicLanes {
        op,
        ty: Ty::U32,
        n: lanes.into(),
        ..AtomicLanes::default()
    };
    packet.sectors = 0;
    for (n, lane) in (0..).zip(&mut atomics.lanes[..lanes.into()]) {
        let sector = sectors[usize::from(n) % sectors.len()];
        packet.sectors |= 1 << sector;
        *lane = AtomicLane {
            lane: n,
            offset: SECTOR as u8 * sector + 4 * (n / sectors.len() as u8),
            value: word(value_of(packet.tag as usize)),
            compare: word(compare),
        };
    }
    (packet.kind, packet.atomic) = (kind, Some(Box::new(atomics)));
}

/// What one access reads and writes, by byte of its line. `response` has the bytes or old values.
fn access(request: &Packet, response: &Packet, [sent, done]: [u64; 2]) -> Access {
    let mut access = Access {
        sm: request.sm,
        sent,
        done,
        value: value_of(request.tag as usize),
        reads: 0,
        read: [0; LINE],
        writes: 0,
    };
    match request.kind {
        PacketKind::Load => (access.reads, access.read) = (byte_mask(request.sectors), response.bytes),
        PacketKind::Store => access.writes = request.byte_mask,
        _ => access_words(&mut access, request, response),
    }
    access
}

/// Notes the words of an atomic or a reduction.
fn access_words(access: &mut Access, request: &Packet, response: &Packet) {
    let lanes = |packet: &Packet| {
        let atomics = packet.atomic.as_ref().expect("an atomic has lanes");
        (atomics.op, atomics.lanes[..atomics.n].to_vec())
    };
    let (op, asked) = lanes(request);
    for (n, asked) in asked.iter().enumerate() {
        let first = usize::from(asked.offset);
        let mask = 0xf << first;
        if request.kind == PacketKind::Reduction {
            access.writes |= mask;
            continue;
        }
        let old = lanes(response).1[n].value;
        access.reads |= mask;
        access.read[first..first + 4].copy_from_slice(&(old as u32).to_le_bytes());
        if op == AtomOp::Exch || old == asked.compare {
            access.writes |= mask;
        }
    }
}

/// Memory of one slice, which answers after a fixed delay, in order.
struct Memory {
    waiting: VecDeque<(u64, Box<Packet>)>,
    port: OutPort<Box<Packet>>,
    fetches: Sink<Box<Packet>>,
}

/// One slice's neighbours.
struct Side {
    source: Source<Box<Packet>>,
    responses: Sink<Box<Packet>>,
    host: Source<SliceCommand>,
    memory: Memory,
}

/// A request and its response.
struct Sent {
    packet: Box<Packet>,
    at: Option<u64>,
    access: Option<Access>,
}

struct Neighbours {
    input: Input,
    map: Arc<AddressMap>,
    sides: [Side; 2],
    /// By tag.
    sent: Vec<Sent>,
    /// Responses to come.
    owed: usize,
    bytes: PlainMemory,
    is_written_back: bool,
}

impl Neighbours {
    fn start(&mut self) {
        (self.bytes, self.is_written_back) = Default::default();
        self.sent.clear();
        let mut at = 0;
        for (tag, request) in self.input.requests.iter().enumerate() {
            at += request.gap;
            let packet = request.packet(&self.map, tag);
            self.sides[usize::from(request.sm)].source.push(at, packet.clone());
            self.sent.push(Sent {
                packet,
                at: None,
                access: None,
            });
        }
        self.owed = self.sent.len();
    }

    /// Notes a response.
    fn answer(&mut self, response: &Packet, sm: usize, now: Cycle) {
        let sent = self.sent.get_mut(response.tag as usize);
        let sent = sent.unwrap_or_else(|| panic!("a response that is not owed: {response:?}"));
        let same = |packet: &Packet| (packet.kind, packet.line, packet.sectors, usize::from(packet.sm));
        let owed = &sent.packet;
        assert_eq!(
            (response.kind, response.line, response.sectors, sm),
            same(owed),
            "another response"
        );
        assert!(sent.access.is_none(), "a second response: {response:?}");
        let at = sent.at.expect("a response after its request");
        sent.access = Some(access(owed, response, [at, now.0]));
        self.owed -= 1;
    }

    fn tick_memory(&mut self, n: usize, now: Cycle) {
        let Memory { waiting, port, fetches } = &mut self.sides[n].memory;
        if port.has_room(now)
            && let Some((_, packet)) = waiting.pop_front_if(|(at, _)| *at <= now.0)
        {
            port.send(now, packet);
        }
        if let Some(mut packet) = fetches.take(now) {
            let home = self.map.home(packet.line).slice;
            assert_eq!(
                usize::from(home),
                n,
                "a slice asks memory for a line of the other: {packet:?}"
            );
            if packet.kind == PacketKind::Store {
                // A write-back changes the masked bytes of its sectors only.
                packet.byte_mask &= byte_mask(packet.sectors);
            }
            self.bytes.perform(&mut packet);
            waiting.push_back((now.0 + self.input.memory_delay, packet));
        }
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        for n in 0..2 {
            let (side, sent) = (&mut self.sides[n], &mut self.sent);
            side.source
                .tick_with(now, |packet| sent[packet.tag as usize].at = Some(now.0));
            side.host.tick(now);
            if let Some(response) = side.responses.take(now) {
                self.answer(&response, n, now);
            }
            self.tick_memory(n, now);
        }
        let is_idle = self.owed == 0 && self.sides.iter().all(|side| side.memory.waiting.is_empty());
        if is_idle && !self.is_written_back {
            self.is_written_back = true;
            // Long after the last response, so that no write-back is on its way.
            let at = now.0 + 20;
            self.sides
                .iter_mut()
                .for_each(|side| side.host.push(at, SliceCommand::WriteBack));
        }
        let is_done = is_idle && self.sides.iter().all(|side| side.host.is_empty());
        // Write-backs come after the last response, and wait for the pace.
        !is_done || self.sides.iter().any(|side| side.memory.fetches.is_ready(now))
    }

    fn reset(&mut self) {
        for side in &mut self.sides {
            side.source.clear();
            side.host.clear();
            side.responses.clear();
            side.memory.fetches.clear();
            side.memory.waiting.clear();
        }
        self.start();
    }

    fn check_end(&self) {
        assert!(self.owed == 0 && self.is_written_back);
        let lines: BTreeSet<u64> = self.sent.iter().map(|sent| sent.packet.line).collect();
        let mut bytes = self.bytes.clone();
        for line in lines {
            let of_line = self.sent.iter().filter(|sent| sent.packet.line == line);
            let accesses: Vec<&Access> = of_line.filter_map(|sent| sent.access.as_ref()).collect();
            check_line(line, &accesses, bytes.line(line));
        }
    }

    fn digest(&self) -> u64 {
        combine(
            self.sides
                .iter()
                .flat_map(|side| [side.responses.digest(), side.memory.fetches.digest()]),
        )
    }
}

/// The links between the slices.
fn twin_ports(wiring: &Wiring, shape: Shape) -> [TwinPorts; 2] {
    let between = |ends| wiring.between(ends, shape.link_latency, shape.link_depth);
    let (requests, responses) = ([between([0, 1]), between([1, 0])], [between([0, 1]), between([1, 0])]);
    let [(to_1, at_1), (to_0, at_0)] = requests;
    let [(answers_to_1, answers_at_1), (answers_to_0, answers_at_0)] = responses;
    [
        TwinPorts {
            to_requests: to_1,
            requests: at_0,
            to_responses: answers_to_1,
            responses: answers_at_0,
        },
        TwinPorts {
            to_requests: to_0,
            requests: at_1,
            to_responses: answers_to_0,
            responses: answers_at_1,
        },
    ]
}

fn config(input: &Input, map: &Arc<AddressMap>, n: u16) -> Config {
    let shape = input.shape;
    let (sets, ways) = shape.sets_ways;
    Config {
        bytes: sets * ways * LINE as u32,
        associativity: ways,
        replacement: shape.replacement.new_replacement(),
        latency: shape.latency,
        l2_data_latency: 0,
        far_latency: 0,
        near_sms: n..n + 1,
        mshr_sectors: shape.mshr_sectors,
        mshr_targets: shape.mshr_targets,
        memory_depth: shape.memory_depth,
        bytes_per_cycle: shape.bytes_per_cycle,
        atomic: AtomicPace {
            round: 100,
            float_add: 200,
        },
        clock: input.clock,
        twin: Some(TwinLatency {
            request: shape.to_home,
            response: shape.from_home,
        }),
        map: map.clone(),
    }
}

/// Runs the slices.
///
/// # Panics
/// If the accesses of a byte have no order, if a response is missing or doubled, or if the slices break the contract.
pub fn check(input: Input) {
    let map = Arc::new(AddressMap::new(2, 2).with_copies());
    let build = |wiring: &Wiring| {
        let (mut slices, mut numbers) = (Group::new(), 0..2);
        let sides = twin_ports(wiring, input.shape).map(|twin| {
            let n = numbers.next().expect("two slices");
            let depth = input.shape.memory_depth;
            let (source, requests) = wiring.input_of(n, 1, 4);
            let (to_xbar, responses) = wiring.output_of(n, 1, 2);
            let (host, commands) = wiring.input_of(n, 1, 1);
            let (to_memory, fetches) = wiring.output_of(n, 1, depth);
            let (port, from_memory) = wiring.input_of(n, 1, depth);
            let ports = Ports {
                requests,
                responses: to_xbar,
                commands,
                memory: vec![ChannelPorts {
                    requests: to_memory,
                    responses: from_memory,
                }],
                twin: Some(twin),
            };
            let path = Path::root("slice").child(["0", "1"][n]);
            slices.push(Box::new(Slice::new(path, config(&input, &map, n as u16), ports)));
            let [of_responses, of_fetches] = input.paces[n];
            Side {
                source: Source::new(source),
                responses: Sink::new(responses, of_responses),
                host: Source::new(host),
                memory: Memory {
                    waiting: VecDeque::new(),
                    port,
                    fetches: Sink::new(fetches, of_fetches),
                },
            }
        });
        let mut world = Neighbours {
            input: input.clone(),
            map: map.clone(),
            sides,
            sent: Vec::new(),
            owed: 0,
            bytes: PlainMemory::default(),
            is_written_back: false,
        };
        world.start();
        (slices, world)
    };
    check_group(2, build, input.second, 200_000);
}
