//! Target: one crossbar network between random senders and receivers.
//!
//! Oracles: each packet arrives once, at its output, in order; an output keeps the cycles of each packet; no input starves.

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use warpwave_components::proto::header::{Direction, Header};
use warpwave_components::proto::mem::{Packet, PacketKind};
use warpwave_components::xbar::crossbar::{Config, Crossbar};
use warpwave_hw::path::Path;
use warpwave_hw::time::{Cycle, Domain};
use warpwave_isa::inst::AtomOp;

use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{Request, clock};

/// A network and its traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = one_of(&[Direction::Request, Direction::Response]))]
    direction: Direction,
    #[arbitrary(with = within(1..=5))]
    inputs: usize,
    #[arbitrary(with = one_of(&[2, 1, 3, 5, 70]))]
    outputs: usize,
    #[arbitrary(with = one_of(&[32, 1, 7, 128]))]
    bytes_per_cycle: u32,
    #[arbitrary(with = one_of(&[1, 2, 4]))]
    window: usize,
    #[arbitrary(with = within(1..=3))]
    depth: u32,
    #[arbitrary(with = clock)]
    clock: Domain,
    paces: [Pace; 4],
    #[arbitrary(with = up_to(60))]
    requests: Vec<Request>,
}

/// A packet on its way: its tag, and its cycles of the crossbar's clock.
#[derive(Clone, Copy)]
struct Expected {
    tag: u32,
    cycles: u64,
}

struct Neighbours {
    input: Input,
    sources: Vec<Source<Box<Packet>>>,
    sinks: Vec<Sink<Box<Packet>>>,
    /// The packets from each input to each output, in order.
    expected: Vec<Vec<VecDeque<Expected>>>,
    left: usize,
    /// For each output, the first edge at which the next packet may leave the crossbar.
    free_at: Vec<u64>,
    turns: Turns,
}

/// The inputs that each output served, in order. Exact on the global clock, with a window of one packet and receivers that always take.
#[derive(Default)]
struct Turns {
    is_exact: bool,
    /// Cycle in which each packet was sent, by tag.
    sent_at: Vec<u64>,
    /// First cycle in which the next head of each input may leave.
    free_at: Vec<u64>,
    /// Cycle and input of each packet that left through an output.
    served: Vec<Vec<(u64, usize)>>,
}

impl Turns {
    /// Checks that no other input left twice through the output while this packet waited there.
    fn check(&mut self, (from, to): (usize, usize), expected: Expected, now: Cycle) {
        // The links on both sides take a cycle.
        let left = now.0 - 1;
        let waits_from = self.free_at[from].max(self.sent_at[expected.tag as usize] + 1);
        let during = self.served[to].iter().filter(|(at, _)| (waits_from..left).contains(at));
        let mut times = vec![0; self.free_at.len()];
        during.for_each(|(_, input)| times[*input] += 1);
        // Round robin: while one input waits, no other is served twice.
        let starves = self.is_exact && times.iter().any(|n| *n > 1);
        assert!(
            !starves,
            "packet {} of input {from} waits from {waits_from} to {left} while output {to} serves {times:?}",
            expected.tag
        );
        self.free_at[from] = left + expected.cycles;
        self.served[to].push((left, from));
    }
}

/// Data bytes of a packet in a direction, from the table of the crossbar's page.
fn data_bytes(packet: &Packet, direction: Direction) -> u64 {
    let sectors = 32 * u64::from(packet.sectors.count_ones());
    let words = packet
        .atomic
        .as_ref()
        .map_or(0, |atomic| atomic.n as u64 * u64::from(atomic.ty.bytes()));
    let is_cas = packet.atomic.as_ref().is_some_and(|atomic| atomic.op == AtomOp::Cas);
    match (packet.kind, direction) {
        (PacketKind::Store, Direction::Request) | (PacketKind::Load, Direction::Response) => sectors,
        // A compare-and-swap carries the compare value too.
        (PacketKind::Atomic | PacketKind::Reduction, Direction::Request) if is_cas => 2 * words,
        (PacketKind::Atomic | PacketKind::Reduction, Direction::Request) => words,
        (PacketKind::Atomic, Direction::Response) => words,
        _ => 0,
    }
}

impl Neighbours {
    fn start(&mut self) {
        let Input {
            inputs,
            outputs,
            direction,
            bytes_per_cycle,
            ..
        } = self.input;
        self.expected = vec![vec![VecDeque::new(); outputs]; inputs];
        self.free_at = vec![0; outputs];
        self.left = self.input.requests.len();
        let takes_always = self.input.paces.iter().all(|pace| *pace == Pace::ALWAYS);
        self.turns = Turns {
            // Otherwise the cycle in which a packet left is not known exactly, or a packet may pass an older one.
            is_exact: takes_always && self.input.clock == Domain::GLOBAL && self.input.window == 1,
            sent_at: vec![0; self.left],
            free_at: vec![0; inputs],
            served: vec![Vec::new(); outputs],
        };
        let mut at = 0;
        for (tag, request) in self.input.requests.iter().enumerate() {
            at += request.gap;
            let (from, to) = (
                usize::from(request.choice) % inputs,
                usize::from(request.line) * 3 % outputs,
            );
            let mut packet = request.packet(request.line.into(), tag as u32);
            (packet.slice, packet.sm) = match direction {
                Direction::Request => (to as u16, from as u16),
                Direction::Response => (from as u16, to as u16),
            };
            let cycles = data_bytes(&packet, direction).div_ceil(bytes_per_cycle.into()).max(1);
            let tag = tag as u32;
            self.expected[from][to].push_back(Expected { tag, cycles });
            self.sources[from].push(at, packet);
        }
    }

    fn arrived(&mut self, to: usize, packet: &Packet, now: Cycle) {
        let from = match self.input.direction {
            Direction::Request => packet.sm,
            Direction::Response => packet.slice,
        };
        let expected = self.expected[usize::from(from)][to].pop_front();
        let expected = expected.unwrap_or_else(|| panic!("cycle {now}: output {to} got packet {}", packet.tag));
        assert_eq!(
            packet.tag, expected.tag,
            "cycle {now}: order from input {from} to output {to}"
        );
        // The packet left at the latest edge before this cycle. An edge later, the next one may leave.
        let latest = self.input.clock.edges(now).start;
        assert!(
            latest > self.free_at[to] || self.free_at[to] == 0,
            "cycle {now}: output {to} serves packet {} by edge {latest}, and is busy to {}",
            packet.tag,
            self.free_at[to]
        );
        self.free_at[to] += expected.cycles;
        self.turns.check((from.into(), to), expected, now);
        self.left -= 1;
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        for source in &mut self.sources {
            let sent_at = &mut self.turns.sent_at;
            source.tick_with(now, |packet| sent_at[packet.tag as usize] = now.0);
        }
        for to in 0..self.sinks.len() {
            if let Some(packet) = self.sinks[to].take(now) {
                self.arrived(to, &packet, now);
            }
        }
        self.left > 0
    }

    fn reset(&mut self) {
        self.sources.iter_mut().for_each(Source::clear);
        self.sinks.iter_mut().for_each(Sink::clear);
        self.start();
    }

    fn digest(&self) -> u64 {
        combine(self.sinks.iter().map(Sink::digest))
    }
}

/// Runs the network.
///
/// # Panics
/// If a packet is lost, doubled, out of order or at another output, or if the network breaks the contract.
pub fn check(input: Input) {
    let build = |wiring: &Wiring| {
        let sideband = match input.direction {
            Direction::Request => |packet: &Box<_>| Header::of(packet, Direction::Request).sideband(),
            Direction::Response => |packet: &Box<_>| Header::of(packet, Direction::Response).sideband(),
        };
        let (sources, ins): (Vec<_>, Vec<_>) = (0..input.inputs).map(|_| wiring.input(1, input.depth)).unzip();
        let (outs, sinks): (Vec<_>, Vec<_>) = (0..input.outputs).map(|_| wiring.output(1, 2)).unzip();
        let config = Config {
            direction: input.direction,
            bytes_per_cycle: input.bytes_per_cycle,
            clock: input.clock,
            window: input.window,
        };
        let paced = sinks.into_iter().zip(input.paces.iter().cycle());
        let mut world = Neighbours {
            sources: sources
                .into_iter()
                .map(|port| Source::with_sideband(port, sideband))
                .collect(),
            sinks: paced.map(|(port, pace)| Sink::new(port, *pace)).collect(),
            expected: Vec::new(),
            left: 0,
            free_at: Vec::new(),
            turns: Turns::default(),
            input: input.clone(),
        };
        world.start();
        (Crossbar::new(Path::root("xbar"), config, ins, outs), world)
    };
    check_component(build, input.second, 100_000);
}
