//! Target: two L2 slices that keep copies of each other's lines, between the SMs of both partitions, a host and memory.
//!
//! ```text
//!   SMs of side 0 --> [ slice 0 ] <== relays with random room ==> [ slice 1 ] <-- SMs of side 1
//!                        memory 0                                    memory 1
//! ```
//!
//! Oracle: for each sector there is one order of all requests that explains every response. The order keeps the requests of a side in
//! the order in which they were sent. A request that was sent after the response to another one comes after it. So no copy is stale
//! after the response to a write. The memory after a write-back is the result of such an order.
//!
//! The requests come in two parts. Between them the host writes the slices back and invalidates them, as between two launches.

mod orders;
mod pair;

use std::collections::VecDeque;
use std::sync::Arc;

use arbitrary::Arbitrary;
use warpwave_components::config::ReplacementPolicy;
use warpwave_components::l2::atomic::AtomicPace;
use warpwave_components::l2::slice::twin::{TwinLatency, TwinPorts};
use warpwave_components::l2::slice::{ChannelPorts, Config, Ports, Slice};
use warpwave_components::proto::mem::{
    AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR, SECTORS, SliceCommand, byte_mask,
};
use warpwave_components::proto::noc::AddressMap;
use warpwave_components::storage::BASE;
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::{Cycle, Domain};
use warpwave_isa::inst::{AtomOp, Ty};

use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{PlainMemory, Request, clock};
use orders::{accesses, ends, explain};
use pair::{Pair, Relay};

/// Two slices and their traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    shape: Shape,
    #[arbitrary(with = clock)]
    clock: Domain,
    /// Of the responses to the SMs of each side.
    responses: [Pace; 2],
    /// Of the packets to the memory of each side.
    memory: [Pace; 2],
    /// Of the requests and of the responses between the slices, in each direction.
    relays: [Pace; 4],
    #[arbitrary(with = one_of(&[5, 1, 40, 200]))]
    memory_delay: u64,
    /// Lines in use.
    #[arbitrary(with = within(1..=8))]
    lines: u8,
    /// Requests before the commands of the host, in sixteenths of all.
    #[arbitrary(with = one_of(&[16, 8, 4]))]
    first_part: usize,
    #[arbitrary(with = up_to(60))]
    requests: Vec<Traffic>,
}

/// A request, which may be a bulk reduction.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Traffic {
    request: Request,
    #[arbitrary(with = one_of(&[false, false, false, true]))]
    is_bulk: bool,
}

impl Traffic {
    /// The side of the sender. Its SM is one of two.
    fn side(&self) -> usize {
        usize::from(self.request.choice / 2)
    }

    /// The packet, of a random line below `lines`.
    fn packet(&self, lines: u8, tag: u32, map: &AddressMap) -> Box<Packet> {
        let mut packet = self.request.packet((self.request.line % lines).into(), tag);
        match packet.kind {
            // Each store has its own bytes, so that a load shows the store that it saw.
            PacketKind::Store => packet.bytes = [tag as u8 + 1; LINE],
            PacketKind::Reduction if self.is_bulk => make_bulk(&mut packet, self.request.sectors),
            _ => {}
        }
        packet.sm = self.request.choice.into();
        (packet.slice, packet.crossing) = map.route(packet.line, self.side() as u32);
        packet
    }
}

/// Makes a packet the reduction of a bulk copy: one lane for each word of a run of sectors.
fn make_bulk(packet: &mut Packet, sectors: u8) {
    let (first, last) = (sectors.trailing_zeros() as usize, sectors.ilog2() as usize);
    packet.sectors = (first..=last).fold(0, |mask, sector| mask | 1 << sector);
    let mut atomics = AtomicLanes {
        op: AtomOp::Add,
        ty: Ty::U32,
        n: (last + 1 - first) * SECTOR / 4,
        ..AtomicLanes::default()
    };
    for (n, lane) in atomics.lanes[..atomics.n].iter_mut().enumerate() {
        *lane = AtomicLane {
            lane: n as u8,
            offset: (first * SECTOR + 4 * n) as u8,
            value: 0x0001_0001 + n as u128,
            compare: 0,
        };
    }
    packet.atomic = Some(Box::new(atomics));
}

/// Caches and queues.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Shape {
    #[arbitrary(with = one_of(&[(2, 2), (1, 1), (1, 4), (4, 1), (3, 2), (1, 2)]))]
    sets_ways: (u32, u32),
    #[arbitrary(with = one_of(&ReplacementPolicy::ALL))]
    replacement: ReplacementPolicy,
    #[arbitrary(with = within(1..=12))]
    latency: u32,
    #[arbitrary(with = within(1..=9))]
    request_latency: u32,
    #[arbitrary(with = within(1..=9))]
    response_latency: u32,
    #[arbitrary(with = within(4..=12))]
    mshr_sectors: u32,
    #[arbitrary(with = within(1..=8))]
    mshr_targets: u32,
    #[arbitrary(with = within(2..=6))]
    memory_depth: u32,
    #[arbitrary(with = one_of(&[1, 2, 4, 16]))]
    twin_depth: u32,
    #[arbitrary(with = one_of(&[32, 64, 128]))]
    bytes_per_cycle: u32,
}

/// The neighbours of one slice.
struct Side {
    source: Source<Box<Packet>>,
    responses: Sink<Box<Packet>>,
    host: Source<SliceCommand>,
    fetches: Sink<Box<Packet>>,
    memory: OutPort<Box<Packet>>,
    /// What memory answers, with the cycle in which it may.
    due: VecDeque<(u64, Box<Packet>)>,
}

/// A request of the traffic, and its response.
#[derive(Clone)]
struct Asked {
    side: usize,
    packet: Box<Packet>,
    sent: Option<u64>,
    answer: Option<(u64, Box<Packet>)>,
}

/// What the host does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The requests of a part are sent.
    Traffic,
    /// The slices write back, until the cycle.
    WriteBack(u64),
    /// The slices drop their clean lines, until the cycle.
    Invalidate(u64),
    /// All parts are over.
    Over,
}

struct Neighbours {
    input: Input,
    map: Arc<AddressMap>,
    sides: [Side; 2],
    relays: [Relay; 4],
    bytes: PlainMemory,
    /// Memory at the start of the part.
    first: PlainMemory,
    /// The requests of the part, by tag.
    asked: Vec<Asked>,
    /// Tag of the first request of the part.
    first_tag: usize,
    phase: Phase,
    owed: usize,
    checked_parts: usize,
}

impl Neighbours {
    fn start(&mut self) {
        self.bytes = PlainMemory::default();
        for n in 0..u64::from(self.input.lines) {
            // No store has these bytes.
            *self.bytes.line(BASE + n * LINE as u64) = [200 + n as u8; LINE];
        }
        (self.first_tag, self.checked_parts) = (0, 0);
        self.asked.clear();
        self.start_part(0);
    }

    /// The first tag after the part that begins with `first`.
    fn end_of_part(&self, first: usize) -> usize {
        let n = self.input.requests.len();
        let split = (n * self.input.first_part).div_ceil(16);
        if first < split { split } else { n }
    }

    fn start_part(&mut self, now: u64) {
        self.phase = Phase::Traffic;
        self.first = self.bytes.clone();
        let tags = self.first_tag..self.end_of_part(self.first_tag);
        (self.owed, self.asked) = (tags.len(), Vec::new());
        let mut at = now;
        for tag in tags {
            let traffic = self.input.requests[tag];
            at += traffic.request.gap;
            let packet = traffic.packet(self.input.lines, tag as u32, &self.map);
            let side = traffic.side();
            self.sides[side].source.push(at, packet.clone());
            self.asked.push(Asked {
                side,
                packet,
                sent: None,
                answer: None,
            });
        }
    }

    /// The host commands both slices.
    fn command(&mut self, now: Cycle, command: SliceCommand) {
        let sides = self.sides.iter_mut();
        sides.for_each(|side| side.host.push(now.0, command));
    }

    /// Goes on to the next phase when the last one is over.
    fn advance(&mut self, now: Cycle) {
        match self.phase {
            Phase::Traffic if self.owed == 0 => {
                self.command(now, SliceCommand::WriteBack);
                let (sets, ways) = self.input.shape.sets_ways;
                // At the slowest pace memory takes a line in 64 cycles. Each slice writes all of its lines at most.
                let most = 70 * u64::from(sets * ways + 4) + 2 * self.input.memory_delay + 100;
                self.phase = Phase::WriteBack(now.0 + most);
            }
            Phase::WriteBack(end) if now.0 == end => {
                self.check_part();
                self.checked_parts += 1;
                self.first_tag = self.end_of_part(self.first_tag);
                if self.first_tag == self.input.requests.len() {
                    self.phase = Phase::Over;
                } else {
                    self.command(now, SliceCommand::Invalidate);
                    self.phase = Phase::Invalidate(now.0 + 20);
                }
            }
            Phase::Invalidate(end) if now.0 == end => self.start_part(now.0),
            _ => {}
        }
    }

    /// Checks all sectors of a part against each order of its requests.
    fn check_part(&mut self) {
        for n in 0..u64::from(self.input.lines) {
            let line = BASE + n * LINE as u64;
            let (first, last) = (*self.first.line(line), *self.bytes.line(line));
            for sector in 0..SECTORS {
                let of = |bytes: [u8; LINE]| bytes.as_chunks::<SECTOR>().0[sector];
                let accesses = [0, 1].map(|side| accesses(&self.asked, side, line, sector));
                let ends = ends(of(first), &accesses);
                let what = || explain(&accesses);
                assert!(
                    !ends.is_empty(),
                    "sector {sector} of {line:#x}: no order explains\n{}",
                    what()
                );
                assert!(
                    ends.contains(&of(last)),
                    "sector {sector} of {line:#x}: {:?} in memory after\n{}",
                    of(last),
                    what()
                );
            }
        }
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.relays.iter_mut().for_each(|relay| relay.tick(now));
        for n in 0..2 {
            let side = &mut self.sides[n];
            if let Some(response) = side.responses.take(now) {
                let tag = response.tag as usize;
                let owed = tag.checked_sub(self.first_tag).and_then(|at| self.asked.get_mut(at));
                let owed = owed.filter(|asked| asked.side == n && asked.sent.is_some() && asked.answer.is_none());
                let owed = owed.unwrap_or_else(|| panic!("a response that is not owed: {response:?}"));
                let of = |packet: &Packet| (packet.kind, packet.line, packet.sectors, packet.sm);
                assert_eq!(of(&owed.packet), of(&response), "another response");
                owed.answer = Some((now.0, response));
                self.owed -= 1;
            }
            if let Some(mut packet) = side.fetches.take(now) {
                // Each slice keeps its own lines in memory, and no copy.
                assert_eq!(usize::from(self.map.home(packet.line).slice), n, "a copy in memory");
                if packet.kind == PacketKind::Store {
                    packet.byte_mask &= byte_mask(packet.sectors);
                }
                self.bytes.perform(&mut packet);
                side.due.push_back((now.0 + self.input.memory_delay, packet));
            }
            if side.memory.has_room(now)
                && let Some((_, packet)) = side.due.pop_front_if(|(at, _)| *at <= now.0)
            {
                side.memory.send(now, packet);
            }
            side.host.tick(now);
        }
        // After the responses: what is sent now comes after them.
        for side in &mut self.sides {
            side.source.tick_with(now, |packet| {
                self.asked[packet.tag as usize - self.first_tag].sent = Some(now.0);
            });
        }
        self.advance(now);
        let has_message =
            |side: &Side| side.responses.is_ready(now) || side.fetches.is_ready(now) || !side.due.is_empty();
        self.phase != Phase::Over
            || self.sides.iter().any(has_message)
            || self.relays.iter().any(|relay| relay.is_busy(now))
    }

    fn reset(&mut self) {
        for side in &mut self.sides {
            side.source.clear();
            side.host.clear();
            side.responses.clear();
            side.fetches.clear();
            side.due.clear();
        }
        for relay in &mut self.relays {
            relay.from.clear();
            relay.held = None;
        }
        self.start();
    }

    fn check_end(&self) {
        let parts = 1 + usize::from(self.end_of_part(0) < self.input.requests.len());
        assert_eq!((self.phase, self.checked_parts), (Phase::Over, parts));
        assert!(self.sides.iter().all(|side| side.due.is_empty()), "memory has work");
    }

    fn digest(&self) -> u64 {
        let sides = self
            .sides
            .iter()
            .flat_map(|side| [side.responses.digest(), side.fetches.digest()]);
        combine(sides.chain(self.relays.iter().map(|relay| relay.from.digest())))
    }
}

/// Runs the slices.
///
/// # Panics
/// If no order explains the responses or memory, if a response is missing or doubled, or if the slices break the contract.
pub fn check(input: Input) {
    let map = Arc::new(AddressMap::new(2, 2).with_copies());
    let build = |wiring: &Wiring| {
        let Input { shape, .. } = input;
        // In the order of `Input::relays`: requests of slice 0 and of slice 1, then responses.
        let mut outs = Vec::new();
        let relays = [(); 4].map(|()| {
            let (out, from) = wiring.output(1, shape.twin_depth);
            let (port, into) = wiring.input(1, shape.twin_depth);
            outs.push((out, into));
            (from, port)
        });
        let mut paces = input.relays.into_iter();
        let relays = relays.map(|(from, to)| Relay {
            from: Sink::new(from, paces.next().unwrap_or(Pace::ALWAYS)),
            held: None,
            to,
        });
        let Ok([first, second, third, fourth]) = <[_; 4]>::try_from(outs) else {
            unreachable!("four relays")
        };
        let twins = [
            TwinPorts {
                to_requests: first.0,
                requests: second.1,
                to_responses: third.0,
                responses: fourth.1,
            },
            TwinPorts {
                to_requests: second.0,
                requests: first.1,
                to_responses: fourth.0,
                responses: third.1,
            },
        ];
        let (sets, ways) = shape.sets_ways;
        let mut numbers = 0..2u16;
        let built = twins.map(|twin| {
            let n = numbers.next().expect("two sides");
            let (source, requests) = wiring.input(1, 4);
            let (to_xbar, responses) = wiring.output(1, 2);
            let (host, commands) = wiring.input(1, 1);
            let (to_memory, fetches) = wiring.output(1, shape.memory_depth);
            let (memory, from_memory) = wiring.input(1, shape.memory_depth);
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
            let config = Config {
                bytes: sets * ways * 128,
                associativity: ways,
                replacement: shape.replacement.new_replacement(),
                latency: shape.latency,
                l2_data_latency: 0,
                far_latency: 0,
                near_sms: 2 * n..2 * n + 2,
                mshr_sectors: shape.mshr_sectors,
                mshr_targets: shape.mshr_targets,
                memory_depth: shape.memory_depth,
                bytes_per_cycle: shape.bytes_per_cycle,
                atomic: AtomicPace {
                    swap: 100,
                    float_add: 200,
                    other: 25,
                },
                clock: input.clock,
                twin: Some(TwinLatency {
                    request: shape.request_latency,
                    response: shape.response_latency,
                }),
                map: map.clone(),
            };
            let side = Side {
                source: Source::new(source),
                responses: Sink::new(responses, input.responses[usize::from(n)]),
                host: Source::new(host),
                fetches: Sink::new(fetches, input.memory[usize::from(n)]),
                memory,
                due: VecDeque::new(),
            };
            (Slice::new(Path::root("slice"), config, ports), side)
        });
        let [(slice, side), (other_slice, other_side)] = built;
        let mut world = Neighbours {
            input: input.clone(),
            map: map.clone(),
            sides: [side, other_side],
            relays,
            bytes: PlainMemory::default(),
            first: PlainMemory::default(),
            asked: Vec::new(),
            first_tag: 0,
            phase: Phase::Traffic,
            owed: 0,
            checked_parts: 0,
        };
        world.start();
        let path = Path::root("pair");
        let slices = [slice, other_slice];
        (Pair { path, slices }, world)
    };
    check_component(build, input.second, 400_000);
}
