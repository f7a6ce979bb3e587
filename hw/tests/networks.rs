//! Random networks of small components over several tiles. Every message is sent and taken in the same cycle for any quantum, thread count
//! and tick order. Idle-skipping and watching change nothing either.

use std::collections::VecDeque;

use proptest::prelude::*;
use warpwave_hw::clock::Clock;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::monitor::{MessageLog, Messages};
use warpwave_hw::link::stall::Stall;
use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::{Sampler, TileBuilder, TileSlot};
use warpwave_hw::time::Cycle;

/// What one node does with the messages that it takes.
#[derive(Debug, Clone)]
struct NodeShape {
    tile: usize,
    /// Messages it begins with, one every `interval` cycles.
    messages: u64,
    interval: u64,
    /// Cycles for which it holds a message, at most.
    hold: u64,
    /// Messages it holds at once.
    room: usize,
    /// Whether it says that it is busy when it could name a cycle.
    restless: bool,
}

#[derive(Debug, Clone)]
struct LinkShape {
    from: usize,
    to: usize,
    latency: u32,
    depth: u32,
    extra: u64,
    /// Maximum number of cycles of random delay.
    stall: u32,
}

#[derive(Debug, Clone)]
struct Shape {
    nodes: Vec<NodeShape>,
    links: Vec<LinkShape>,
}

impl Shape {
    fn is_remote(&self, link: &LinkShape) -> bool {
        self.nodes[link.from].tile != self.nodes[link.to].tile
    }

    /// The link's latency and the most that a message may take beyond it, as far as the horizon allows.
    fn latency(&self, link: &LinkShape) -> (u32, u64) {
        let longest = if self.is_remote(link) { 32 } else { 63 };
        let latency = link.latency.min(longest);
        (latency, link.extra.min(u64::from(longest - latency)))
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let node = (
        0usize..4,
        0u64..12,
        1u64..90,
        prop_oneof![3 => 0u64..6, 1 => 0u64..300],
        1usize..5,
        any::<bool>(),
    );
    let node = node.prop_map(|(tile, messages, interval, hold, room, restless)| NodeShape {
        tile,
        messages,
        interval,
        hold,
        room,
        restless,
    });
    prop::collection::vec(node, 1..12).prop_flat_map(|nodes| {
        let n = nodes.len();
        let latency = prop_oneof![4 => 1u32..8, 2 => 8u32..64];
        let extra = prop_oneof![3 => Just(0u64), 1 => 0u64..60];
        let stall = prop_oneof![3 => Just(0u32), 1 => 1u32..40];
        let link = (0..n, 0..n, latency, 1u32..5, extra, stall);
        let link = link.prop_map(|(from, to, latency, depth, extra, stall)| LinkShape {
            from,
            to,
            latency,
            depth,
            extra,
            stall,
        });
        let links = prop::collection::vec(link, 1..24);
        links.prop_map(move |links| Shape {
            nodes: nodes.clone(),
            links,
        })
    })
}

/// How the same network is run.
#[derive(Debug, Clone)]
struct Mode {
    quantum: u64,
    threads: usize,
    order: u64,
    skip: bool,
    watched: bool,
    /// Whether the tiles run from the last to the first.
    backwards: bool,
}

const PLAIN: Mode = Mode {
    quantum: 1,
    threads: 1,
    order: 0,
    skip: false,
    watched: false,
    backwards: false,
};

fn modes() -> impl Strategy<Value = Mode> {
    let switches = (any::<bool>(), any::<bool>(), any::<bool>());
    let mode = (1u64..=32, 1usize..4, any::<u64>(), switches);
    mode.prop_map(|(quantum, threads, order, (skip, watched, backwards))| Mode {
        quantum,
        threads,
        order,
        skip,
        watched,
        backwards,
    })
}

struct Node {
    path: Path,
    shape: NodeShape,
    inputs: Vec<InPort<Box<u64>>>,
    outputs: Vec<(OutPort<Box<u64>>, u64)>,
    held: VecDeque<(Cycle, u64)>,
    begun: u64,
    ended: u64,
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value ^ value >> 29
}

impl Node {
    /// A message lives for 0 to 15 more nodes: what its low bits say.
    fn hold(&mut self, now: Cycle, message: u64) {
        let until = now + mixed(message) % (self.shape.hold + 1);
        self.held.push_back((until, message));
    }

    fn has_room(&self) -> bool {
        self.held.len() < self.shape.room
    }

    fn next_begin(&self) -> Option<Cycle> {
        (self.begun < self.shape.messages).then(|| Cycle(self.begun * self.shape.interval))
    }

    /// Sends the oldest if its time has come; false if it must wait for room.
    fn pass_on(&mut self, now: Cycle) -> bool {
        let Some(&(until, message)) = self.held.front() else {
            return true;
        };
        if until > now {
            return true;
        }
        if message & 15 == 0 || self.outputs.is_empty() {
            self.ended += 1;
        } else {
            let n = (mixed(message) >> 32) as usize % self.outputs.len();
            let (output, most_extra) = &mut self.outputs[n];
            if !output.has_room(now) {
                return false;
            }
            output.send_after(
                now,
                (mixed(message) >> 16) % (*most_extra + 1),
                Box::new((mixed(message) << 4) | ((message & 15) - 1)),
            );
        }
        self.held.pop_front();
        true
    }
}

impl warpwave_hw::warm::Warm for Node {}

impl Component for Node {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let mut waits = !self.pass_on(now);
        for n in 0..self.inputs.len() {
            if self.has_room()
                && let Some(message) = self.inputs[n].recv(now)
            {
                self.hold(now, *message);
            }
            waits |= self.inputs[n].is_ready(now);
        }
        if self.has_room() && self.next_begin().is_some_and(|at| at <= now) {
            self.hold(now, (mixed(self.begun) << 4) | 15);
            self.begun += 1;
        }
        if waits || self.shape.restless && !self.is_quiescent() {
            return Activity::Busy;
        }
        let oldest = self.held.front().map(|&(until, _)| until);
        let next = oldest.into_iter().chain(self.next_begin()).min();
        next.map_or(Activity::Idle, Activity::Until)
    }

    fn reset(&mut self) {
        self.inputs.iter_mut().for_each(InPort::clear);
        self.held.clear();
        (self.begun, self.ended) = (0, 0);
    }

    fn is_quiescent(&self) -> bool {
        self.held.is_empty() && self.begun == self.shape.messages && self.inputs.iter().all(InPort::is_empty)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.vector("held", 8, Some(self.held.len() as u64));
    }

    fn stats(&self, _: &mut dyn Report) {}
}

/// Looks at everything and remembers nothing.
struct Looker;

impl Sampler for Looker {
    fn begin(&mut self, _: Cycle, components: &[Box<dyn Component>]) {
        components.iter().for_each(|component| component.probe(&mut Nothing));
    }
    fn sample(&mut self, _: Cycle, _: usize, component: &dyn Component) {
        component.probe(&mut Nothing);
    }
    fn flush(&mut self, _: Cycle) {}
}

struct Nothing;

impl Probe for Nothing {
    fn bit(&mut self, _: &'static str, _: Option<bool>) {}
    fn vector(&mut self, _: &'static str, _: u32, _: Option<u64>) {}
    fn state(&mut self, _: &'static str, _: &'static [&'static str], _: Option<usize>) {}
    fn enter(&mut self, _: &'static str, _: usize) {}
    fn leave(&mut self) {}
}

/// What passed an end of a link, and when.
type History = Vec<(Cycle, Box<u64>)>;

/// A network with a record of every message at both ends of every link.
struct Network {
    clock: Clock,
    records: Vec<Messages<Box<u64>>>,
}

impl Network {
    fn build(shape: &Shape, mode: &Mode) -> Network {
        let mut tiles: Vec<TileBuilder> = (0..4).map(|_| TileBuilder::new()).collect();
        let slots: Vec<TileSlot> = shape.nodes.iter().map(|node| tiles[node.tile].slot()).collect();
        let mut nodes: Vec<Node> = shape
            .nodes
            .iter()
            .enumerate()
            .map(|(n, node)| Node::new(n, node))
            .collect();
        let mut records = Vec::new();
        for (n, shape_of_link) in shape.links.iter().enumerate() {
            let (latency, most_extra) = shape.latency(shape_of_link);
            let config = LinkConfig {
                path: Path::root("net").at("link", n),
                latency,
                depth: shape_of_link.depth,
            };
            let (from, to) = (shape_of_link.from, shape_of_link.to);
            let (mut output, mut input) = link(&config, &slots[from], &slots[to]);
            let ((sent, sent_record), (taken, taken_record)) = (MessageLog::new(), MessageLog::new());
            if shape_of_link.stall > 0 {
                output.disturb(Stall::new(n as u64, shape_of_link.stall));
            }
            output.watch(Box::new(sent));
            input.watch(Box::new(taken));
            records.extend([sent_record, taken_record]);
            nodes[from].outputs.push((output, most_extra));
            nodes[to].inputs.push(input);
        }
        for (n, node) in nodes.into_iter().enumerate() {
            tiles[shape.nodes[n].tile].fill(&slots[n], node);
        }
        let tiles = tiles.into_iter().map(TileBuilder::build).collect();
        let mut clock = Clock::new(tiles);
        clock.set_quantum(mode.quantum.min(clock.quantum()));
        clock.set_threads(mode.threads);
        if mode.backwards {
            clock.tiles_mut().reverse();
        }
        for tile in clock.tiles_mut() {
            tile.set_skipping(mode.skip);
            let n = tile.components().len();
            tile.set_order(shuffled(n, mode.order));
            if mode.watched {
                tile.watch(Box::new(Looker), u64::MAX >> 7, Cycle(20)..Cycle(400));
            }
        }
        Network { clock, records }
    }

    /// What was sent and taken up to here, link by link, and whether all came to rest.
    fn history(&self) -> (Vec<History>, bool) {
        let records = self
            .records
            .iter()
            .map(|record| record.lock().expect("no panic").clone());
        let components = self.clock.tiles().iter().flat_map(|tile| tile.components());
        (
            records.collect(),
            components.into_iter().all(|component| component.is_quiescent()),
        )
    }
}

impl Node {
    fn new(n: usize, shape: &NodeShape) -> Node {
        Node {
            path: Path::root("net").at("node", n),
            inputs: Vec::new(),
            outputs: Vec::new(),
            held: VecDeque::with_capacity(shape.room),
            shape: shape.clone(),
            begun: 0,
            ended: 0,
        }
    }
}

/// A permutation of 0 to n - 1; seed 0 is the natural order.
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    if seed != 0 {
        order.sort_by_key(|&n| mixed(seed.wrapping_add(n as u64)));
    }
    order
}

const LIMIT: Cycle = Cycle(1500);

fn run(shape: &Shape, mode: &Mode) -> (Vec<History>, bool) {
    let mut network = Network::build(shape, mode);
    network.clock.run(LIMIT, |_| false);
    network.history()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_way_of_running_sends_and_takes_the_same_in_the_same_cycles(shape in shapes(), modes in prop::collection::vec(modes(), 3)) {
        let plain = run(&shape, &PLAIN);
        for mode in modes {
            prop_assert_eq!(&run(&shape, &mode), &plain, "{:?}", mode);
        }
    }

    #[test]
    fn run_in_pieces_is_as_run_at_once(shape in shapes(), mode in modes(), pieces in prop::collection::vec(1u64..200, 1..12)) {
        let plain = run(&shape, &PLAIN);
        let mut network = Network::build(&shape, &mode);
        let mut limit = Cycle::ZERO;
        for piece in pieces {
            limit += piece;
            network.clock.run(limit.min(LIMIT), |_| false);
        }
        network.clock.run(LIMIT, |_| false);
        prop_assert_eq!(network.history(), plain);
    }

    #[test]
    fn reset_in_mid_run_and_run_again_is_as_the_first_time(shape in shapes(), mode in modes(), at in 1u64..400) {
        let plain = run(&shape, &PLAIN);
        let mut network = Network::build(&shape, &mode);
        network.clock.run(Cycle(at), |_| false);
        // Cycles of a second life are told from its first: all nodes' clocks start at 0, so time must too.
        network.records.iter().for_each(|record| record.lock().expect("no panic").clear());
        network.clock.reset(Cycle::ZERO);
        network.clock.run(LIMIT, |_| false);
        prop_assert_eq!(network.history(), plain);
    }

    #[test]
    fn no_message_is_lost_doubled_early_or_overtakes(shape in shapes(), mode in modes()) {
        let (records, at_rest) = run(&shape, &mode);
        for (link, ends) in shape.links.iter().zip(records.chunks(2)) {
            let (latency, _) = shape.latency(link);
            let (sent, taken) = (&ends[0], &ends[1]);
            prop_assert!(taken.len() <= sent.len());
            prop_assert!(!at_rest || taken.len() == sent.len());
            for ((sent_at, sent), (taken_at, taken)) in sent.iter().zip(taken) {
                prop_assert_eq!(sent, taken);
                prop_assert!(taken_at.since(*sent_at) >= u64::from(latency));
            }
            for (n, (sent_at, _)) in sent.iter().enumerate() {
                let waiting = n - taken.iter().filter(|(taken_at, _)| taken_at < sent_at).count();
                prop_assert!(waiting < link.depth as usize);
            }
        }
    }
}
