//! Target: a random network of nodes, in one to three tiles, joined by links.
//!
//! Oracle: a model of queues that ticks every node in every cycle. The clock must give the same deliveries, for any quantum, threads, order
//! of ticks and idle-skipping.

use std::any::Any;
use std::collections::VecDeque;

use arbitrary::Arbitrary;
use warpwave_hw::clock::Clock;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::TileBuilder;
use warpwave_hw::time::Cycle;

use crate::draw::{Pace, up_to, within};
use crate::features;

/// Cycles of a run.
const CYCLES: u64 = 200;

/// A network, and the way in which it is run.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    /// The tile of each node.
    tiles: [Tile; 4],
    #[arbitrary(with = up_to(6))]
    links: Vec<LinkSpec>,
    nodes: [NodeSpec; 4],
    skips: bool,
    #[arbitrary(with = within(0..=3))]
    rotation: usize,
    #[arbitrary(with = within(1..=32))]
    quantum: u64,
    #[arbitrary(with = within(0..=20))]
    second_thread: u8,
    /// The cycle of a reset. 0 for none.
    #[arbitrary(with = within(0..=100))]
    reset: u64,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Tile(#[arbitrary(with = within(0..=2))] usize);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct LinkSpec {
    #[arbitrary(with = within(0..=3))]
    from: usize,
    #[arbitrary(with = within(0..=3))]
    to: usize,
    #[arbitrary(with = within(1..=32))]
    latency: u32,
    #[arbitrary(with = within(1..=4))]
    depth: u32,
}

/// A node makes messages, takes messages at a pace, and sends each on over its links in turn.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct NodeSpec {
    #[arbitrary(with = within(0..=9))]
    made: u64,
    sends: Pace,
    takes: Pace,
    /// Extra cycles of every third message.
    #[arbitrary(with = within(0..=20))]
    extra: u64,
    /// Messages with fewer hops than this are sent on.
    #[arbitrary(with = within(0..=4))]
    hops: u64,
}

/// A message: its number, with its hops in the low bits.
type Message = u64;

/// A message taken: cycle, input of the node, message.
type Taken = (u64, usize, Message);

/// The behaviour of a node, on real links or on links of the model.
#[derive(Clone)]
struct Behaviour {
    spec: NodeSpec,
    queue: VecDeque<Message>,
    sent: u64,
    taken: Vec<Taken>,
}

/// The links of a node, real or of the model.
trait Links {
    fn has_room(&self, output: usize, now: u64) -> bool;
    fn send(&mut self, output: usize, now: u64, extra: u64, message: Message);
    fn recv(&mut self, input: usize, now: u64) -> Option<Message>;
    fn max_extra(&self, output: usize) -> u64;
    fn n_outputs(&self) -> usize;
    fn n_inputs(&self) -> usize;
}

impl Behaviour {
    fn new(spec: NodeSpec, number: usize) -> Self {
        let made = (0..spec.made).map(|n| (number as u64 * 100 + n) << 8);
        Behaviour {
            spec,
            queue: made.collect(),
            sent: 0,
            taken: Vec::new(),
        }
    }

    fn tick(&mut self, links: &mut impl Links, now: u64) {
        let at = Cycle(now);
        for input in 0..links.n_inputs() {
            if self.spec.takes.acts(at)
                && let Some(message) = links.recv(input, now)
            {
                self.taken.push((now, input, message));
                // The low byte counts hops, so that no message circles for ever.
                if message & 0xff < self.spec.hops {
                    self.queue.push_back(message + 1);
                }
            }
        }
        if links.n_outputs() == 0 || !self.spec.sends.acts(at) {
            return;
        }
        let output = self.sent as usize % links.n_outputs();
        if links.has_room(output, now)
            && let Some(message) = self.queue.pop_front()
        {
            let extra = if self.sent.is_multiple_of(3) {
                self.spec.extra
            } else {
                0
            };
            self.sent += 1;
            links.send(output, now, extra.min(links.max_extra(output)), message);
        }
    }
}

/// A node of the machine.
struct Node {
    path: Path,
    number: usize,
    behaviour: Behaviour,
    ports: NodePorts,
}

#[derive(Default)]
struct NodePorts {
    inputs: Vec<InPort<Message>>,
    outputs: Vec<OutPort<Message>>,
}

impl Links for NodePorts {
    fn has_room(&self, output: usize, now: u64) -> bool {
        self.outputs[output].has_room(Cycle(now))
    }
    fn send(&mut self, output: usize, now: u64, extra: u64, message: Message) {
        self.outputs[output].send_after(Cycle(now), extra, message);
    }
    fn recv(&mut self, input: usize, now: u64) -> Option<Message> {
        self.inputs[input].recv(Cycle(now))
    }
    fn max_extra(&self, output: usize) -> u64 {
        self.outputs[output].max_extra()
    }
    fn n_outputs(&self) -> usize {
        self.outputs.len()
    }
    fn n_inputs(&self) -> usize {
        self.inputs.len()
    }
}

impl warpwave_hw::warm::Warm for Node {}

impl Component for Node {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.behaviour.tick(&mut self.ports, now.0);
        let has_message = self.ports.inputs.iter().any(|port| port.is_ready(now));
        let can_send = !self.behaviour.queue.is_empty() && !self.ports.outputs.is_empty();
        Activity::busy_if(has_message || can_send)
    }

    fn reset(&mut self) {
        self.ports.inputs.iter_mut().for_each(InPort::clear);
        self.behaviour = Behaviour::new(self.behaviour.spec, self.number);
    }

    // A run has a fixed number of cycles, and may end with work left.
    fn is_quiescent(&self) -> bool {
        true
    }

    fn probe(&self, _: &mut dyn Probe) {}

    fn stats(&self, _: &mut dyn Report) {}
}

/// A link of the model.
struct Queue {
    spec: LinkSpec,
    credit_latency: u64,
    max_latency: u64,
    messages: VecDeque<(u64, Message)>,
    /// The cycle from which each slot is free.
    free: VecDeque<u64>,
    last_visible: u64,
}

/// The links of one node of the model.
struct QueueEnds<'a> {
    queues: &'a mut [Queue],
    node: usize,
}

impl QueueEnds<'_> {
    fn at(&self, n: usize, end: fn(&LinkSpec) -> usize) -> usize {
        let of_node = (0..self.queues.len()).filter(|&q| end(&self.queues[q].spec) == self.node);
        of_node.clone().nth(n).expect("a node knows the number of its links")
    }

    fn count(&self, end: fn(&LinkSpec) -> usize) -> usize {
        self.queues.iter().filter(|queue| end(&queue.spec) == self.node).count()
    }
}

impl Links for QueueEnds<'_> {
    fn has_room(&self, output: usize, now: u64) -> bool {
        let queue = &self.queues[self.at(output, |spec| spec.from)];
        queue.free.front().is_some_and(|free| *free <= now)
    }
    fn send(&mut self, output: usize, now: u64, extra: u64, message: Message) {
        let at = self.at(output, |spec| spec.from);
        let queue = &mut self.queues[at];
        queue.free.pop_front();
        // A message with extra cycles delays the ones behind it: a link keeps the order.
        queue.last_visible = queue.last_visible.max(now + u64::from(queue.spec.latency) + extra);
        queue.messages.push_back((queue.last_visible, message));
    }
    fn recv(&mut self, input: usize, now: u64) -> Option<Message> {
        let at = self.at(input, |spec| spec.to);
        let queue = &mut self.queues[at];
        let (_, message) = queue.messages.pop_front_if(|(visible, _)| *visible <= now)?;
        queue.free.push_back(now + queue.credit_latency);
        Some(message)
    }
    fn max_extra(&self, output: usize) -> u64 {
        let queue = &self.queues[self.at(output, |spec| spec.from)];
        queue.max_latency - u64::from(queue.spec.latency)
    }
    fn n_outputs(&self) -> usize {
        self.count(|spec| spec.from)
    }
    fn n_inputs(&self) -> usize {
        self.count(|spec| spec.to)
    }
}

/// The messages that every node takes, by the model.
fn expected(input: &Input) -> Vec<Vec<Taken>> {
    let queue = |spec: &LinkSpec| {
        let is_inside = input.tiles[spec.from].0 == input.tiles[spec.to].0;
        Queue {
            spec: *spec,
            // Inside a tile a slot is free in the next cycle. Between tiles the credit takes the link's latency.
            credit_latency: if is_inside { 1 } else { spec.latency.into() },
            max_latency: if is_inside { 63 } else { 32 },
            messages: VecDeque::new(),
            free: std::iter::repeat_n(0, spec.depth as usize).collect(),
            last_visible: 0,
        }
    };
    let mut queues: Vec<Queue> = input.links.iter().map(queue).collect();
    let mut nodes: Vec<_> = (0..4).map(|n| Behaviour::new(input.nodes[n], n)).collect();
    for now in 0..CYCLES {
        // In any order: a message is visible in the next cycle at the earliest.
        for (node, behaviour) in nodes.iter_mut().enumerate() {
            let mut ends = QueueEnds {
                queues: &mut queues,
                node,
            };
            behaviour.tick(&mut ends, now);
        }
    }
    nodes.into_iter().map(|node| node.taken).collect()
}

/// Builds the network.
fn build(input: &Input) -> Clock {
    let mut tiles: Vec<_> = (0..3).map(|_| TileBuilder::new()).collect();
    let slots: Vec<_> = input.tiles.iter().map(|tile| tiles[tile.0].slot()).collect();
    let mut ports: Vec<_> = (0..4).map(|_| NodePorts::default()).collect();
    for spec in &input.links {
        let config = LinkConfig {
            path: Path::root("link"),
            latency: spec.latency,
            depth: spec.depth,
        };
        let (output, taken) = link(&config, &slots[spec.from], &slots[spec.to]);
        ports[spec.from].outputs.push(output);
        ports[spec.to].inputs.push(taken);
    }
    for (number, ports) in ports.into_iter().enumerate() {
        let node = Node {
            path: Path::root("node"),
            number,
            behaviour: Behaviour::new(input.nodes[number], number),
            ports,
        };
        tiles[input.tiles[number].0].fill(&slots[number], node);
    }
    let mut clock = Clock::new(tiles.into_iter().map(TileBuilder::build).collect());
    for tile in clock.tiles_mut() {
        tile.set_skipping(input.skips);
        let n = tile.components().len();
        tile.set_order((0..n).rev().map(|at| (at + input.rotation) % n).collect());
    }
    // A quantum is at most the shortest link between tiles.
    clock.set_quantum(input.quantum.min(clock.quantum()));
    // A second thread costs more than the rest of the run.
    clock.set_threads(if input.second_thread == 20 { 2 } else { 1 });
    clock
}

/// Runs the network and the model.
///
/// # Panics
/// If a node takes other messages than the node of the model, or takes them in other cycles.
pub fn check(input: Input) {
    let mut clock = build(&input);
    if input.reset > 0 {
        clock.run(Cycle(input.reset), |_| false);
        clock.reset(Cycle::ZERO);
    }
    clock.run(Cycle(CYCLES), |_| false);
    for (number, expected) in expected(&input).iter().enumerate() {
        let mut components = clock.tiles().iter().flat_map(|tile| tile.components());
        let node = components.find_map(|component| {
            let component: &dyn Any = component.as_ref();
            component.downcast_ref::<Node>().filter(|node| node.number == number)
        });
        let taken = &node.expect("every node has a tile").behaviour.taken;
        assert_eq!(taken, expected, "messages of node {number}: cycle, input, message");
        features::note_count("taken", taken.len() as u64);
        features::note_count(
            "hops",
            taken.iter().map(|(.., message)| message & 0xff).max().unwrap_or(0),
        );
    }
}
