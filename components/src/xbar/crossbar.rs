//! One crossbar network, for requests (SM to slice) or responses (slice to SM). Each port moves one packet at a time.
//!
//! ```text
//!   in[0] --[window]--+                       +--[round robin]--> out[0]
//!   in[1] --[window]--+---- request,       ---+--[round robin]--> out[1]
//!    ...              |     grant, accept     |       ...
//!   in[n] --[window]--+                       +--[round robin]--> out[m]
//! ```
//!
//! The [`Header`] in the link's sideband names the output. Only an atomic's packet is read here, for its size.
//!
//! The window of an input has its oldest packets. Packets for different outputs pass each other (Hluchyj and Karol, 1988). A window of 1 is
//! a plain queue, where the head blocks the packets behind it.
//!
//! `tick` runs three stages for each edge of the crossbar's clock in the cycle. They are one iteration of iSLIP (McKeown, 1999), where an
//! input prefers its oldest packet.
//!
//! | Stage | What it does |
//! |---|---|
//! | request | each input moves one visible packet into its window, if it has room; the window's oldest packet for an output requests it |
//! | grant | each free output with room grants the request of one free input |
//! | accept | each input accepts the grant of its oldest packet, which leaves |
//!
//! | Operation | Cycles of the crossbar's clock |
//! |---|---|
//! | through an idle crossbar | 0: the links on both sides have the latency |
//! | a packet keeps its input and its output busy | max(1, ceil(data bytes / `bytes_per_cycle`)); the header takes no bandwidth |
//!
//! # Invariants
//! - Packets from one input to one output stay in order.
//! - Round robin: an output serves each waiting input that is free before it serves one twice.
//! - At most `MOST_PASSES` packets pass the oldest packet of their input. Then the input sends only the oldest.

use bitvec::prelude::BitVec;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::{Cycle, Domain};

use super::arbiter::RoundRobin;
use crate::proto::header::{Direction, Header, MAX_OUTPUTS, atomic_bytes};
use crate::proto::mem::Packet;
use warpwave_hw::bits::ones;

/// Parameters of a network.
#[derive(Clone, Debug)]
pub struct Config {
    /// Direction of the packets.
    pub direction: Direction,
    /// Data bytes that a port moves per cycle.
    pub bytes_per_cycle: u32,
    /// Clock of the network.
    pub clock: Domain,
    /// Packets of each input that arbitration considers. 1: the head alone.
    pub window: usize,
}

/// Number of packets that may pass the oldest packet of their input. Then the input waits for the oldest one. Assumed.
const MOST_PASSES: u32 = 64;

/// The links of a network. A header names an output by its index.
struct Ports {
    inputs: Vec<InPort<Box<Packet>>>,
    outputs: Vec<OutPort<Box<Packet>>>,
}

warpwave_hw::show_ports!(Ports: inputs, outputs);

warpwave_hw::counters! {
    /// Events of a network.
    pub struct Stats {
        pub packets: u64,
        pub data_bytes: u64,
        /// Busy cycles of all outputs together.
        pub output_cycles: u64,
        /// Cycles in which an output was requested and free, but its link was full. Summed over the outputs.
        pub blocked_cycles: u64,
        /// Cycles that requests waited while their output or their input served another packet, summed over the requests.
        pub conflict_cycles: u64,
    }
}

/// A packet in the window of its input.
struct Waiting {
    packet: Box<Packet>,
    output: u16,
    /// Data bytes.
    bytes: u32,
}

/// An input.
struct Input {
    /// First edge at which the input is free again.
    free_at: u64,
    /// The oldest packets, in the order of arrival.
    window: Vec<Waiting>,
    /// Number of packets that have passed the oldest one.
    passes: u32,
    /// Index in the window of the oldest packet with a grant at this edge.
    granted: Option<usize>,
}

impl Input {
    fn new(window: usize) -> Self {
        Input {
            free_at: 0,
            window: Vec::with_capacity(window),
            passes: 0,
            granted: None,
        }
    }

    /// Index of the oldest packet for an output.
    fn oldest(&self, output: usize) -> Option<usize> {
        self.window
            .iter()
            .position(|waiting| usize::from(waiting.output) == output)
    }

    /// True if no packet for `output` may leave now: it would pass the oldest packet once too often.
    #[inline]
    fn refuses(&self, output: usize) -> bool {
        self.passes >= MOST_PASSES && self.oldest(output) != Some(0)
    }

    /// Takes a packet out of the window. Counts a pass, unless it is the oldest.
    fn take(&mut self, index: usize) -> Waiting {
        self.passes = if index == 0 { 0 } else { self.passes + 1 };
        self.window.remove(index)
    }
}

/// An output and its arbiter.
#[derive(Clone)]
struct Output {
    /// First edge at which the output is free again.
    free_at: u64,
    /// The inputs that request the output.
    arbiter: RoundRobin,
    /// True if, at the last edge, the output was requested and free, but its link was full.
    blocked: bool,
}

/// State that `reset` clears.
struct State {
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// Inputs that are free at this edge.
    free: BitVec<u64>,
    /// Inputs with a grant at this edge.
    granted: Vec<usize>,
    /// Outputs with a request.
    requested: BitVec<u64>,
    /// First edge that has not passed.
    next_edge: u64,
    /// Latest edge at which a busy port becomes free. Before that edge, a link may hold a visible packet although its window is empty.
    last_free_at: u64,
    stats: Stats,
}

impl State {
    fn new(n_inputs: usize, n_outputs: usize, window: usize) -> Self {
        let output = Output {
            free_at: 0,
            arbiter: RoundRobin::new(n_inputs),
            blocked: false,
        };
        State {
            inputs: (0..n_inputs).map(|_| Input::new(window)).collect(),
            outputs: vec![output; n_outputs],
            free: BitVec::repeat(true, n_inputs),
            granted: Vec::with_capacity(n_inputs),
            requested: BitVec::repeat(false, n_outputs),
            next_edge: 0,
            last_free_at: 0,
            stats: Stats::default(),
        }
    }
}

/// One network of the crossbar.
pub struct Crossbar {
    path: Path,
    config: Config,
    ports: Ports,
    state: State,
}

impl Crossbar {
    /// An empty network.
    ///
    /// # Panics
    /// If a header cannot name every output.
    pub fn new(
        path: Path,
        config: Config,
        inputs: Vec<InPort<Box<Packet>>>,
        outputs: Vec<OutPort<Box<Packet>>>,
    ) -> Self {
        assert!(
            outputs.len() <= MAX_OUTPUTS,
            "{path}: more outputs than a header can name"
        );
        Crossbar {
            state: State::new(inputs.len(), outputs.len(), config.window),
            path,
            config,
            ports: Ports { inputs, outputs },
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Stats {
        &self.state.stats
    }

    /// Moves one visible packet of each input into its window. The packet requests its output, unless an older one for it already does.
    fn request(&mut self, now: Cycle, edge: u64) {
        let state = &mut self.state;
        for (n, (input, port)) in state.inputs.iter_mut().zip(&mut self.ports.inputs).enumerate() {
            state.free.set(n, input.free_at <= edge);
            // A busy input takes packets too, so that its next choice has a full window.
            if input.window.len() < self.config.window
                && let Some(sideband) = port.sideband(now)
            {
                let (header, packet) = (Header::from_sideband(sideband), port.take(now));
                let output = header.output();
                if input.oldest(output).is_none() {
                    state.outputs[output].arbiter.request(n);
                    state.requested.set(output, true);
                }
                // The size of an atomic is not in its header: only then the packet is read.
                let bytes = header.data_bytes(|| atomic_bytes(&packet, self.config.direction));
                input.window.push(Waiting {
                    packet,
                    output: output as u16,
                    bytes,
                });
            }
        }
    }

    /// Each free output with room grants the request of one free input.
    fn grant(&mut self, now: Cycle, edge: u64) {
        let state = &mut self.state;
        for n in indices(&state.requested) {
            let (output, port) = (&mut state.outputs[n], &mut self.ports.outputs[n]);
            let is_free = output.free_at <= edge;
            output.blocked = is_free && !port.has_room(now);
            if !is_free || output.blocked {
                continue;
            }
            // An input whose oldest packet has been passed too often sends only that one. It must not keep the turn of other outputs:
            // two outputs would wait for each other's input.
            let mut granted = output.arbiter.grant(&state.free);
            while let Some(refused) = granted.filter(|&input| state.inputs[input].refuses(n)) {
                granted = output.arbiter.grant_after(refused, &state.free);
            }
            let Some(granted) = granted else { continue };
            let input = &mut state.inputs[granted];
            let index = input.oldest(n).expect("a request has a packet");
            // Accept in advance: of several grants, only the one of the oldest packet is kept.
            match input.granted {
                Some(older) if older < index => {}
                older => {
                    input.granted = Some(index);
                    if older.is_none() {
                        state.granted.push(granted);
                    }
                }
            }
        }
    }

    /// Each input accepts the grant of its oldest packet.
    fn accept(&mut self, now: Cycle, edge: u64) {
        let state = &mut self.state;
        for n in state.granted.drain(..) {
            let input = &mut state.inputs[n];
            let index = input.granted.take().expect("the input has a grant");
            let Waiting { packet, output, bytes } = input.take(index);
            let to = usize::from(output);
            let output = &mut state.outputs[to];
            // A grant that is not accepted leaves the turn as it is.
            output.arbiter.serve(n);
            if input.oldest(to).is_none() {
                output.arbiter.withdraw(n);
            }
            let cycles = busy_cycles(bytes, self.config.bytes_per_cycle);
            input.free_at = edge + cycles;
            output.free_at = edge + cycles;
            state.last_free_at = state.last_free_at.max(edge + cycles);
            state.stats.packets += 1;
            state.stats.data_bytes += u64::from(bytes);
            state.stats.output_cycles += cycles;
            // Cut-through: the packet leaves at once, and its busy cycles delay only later packets.
            self.ports.outputs[to].send(now, packet);
        }
    }

    /// Counts requests that wait after this edge, and clears the bits of outputs without a request.
    fn count(&mut self) {
        let state = &mut self.state;
        for word in 0..state.requested.as_raw_slice().len() {
            // Iterates over a copy of the word, because this clears bits.
            for bit in ones(state.requested.as_raw_slice()[word]) {
                let n = word * 64 + bit;
                let output = &state.outputs[n];
                let n_waiting = output.arbiter.n_requests();
                // Requests at a blocked output count as blocked, not as conflicts.
                match output.blocked {
                    true => state.stats.blocked_cycles += 1,
                    false => state.stats.conflict_cycles += u64::from(n_waiting),
                }
                // The bit can be cleared only here: `accept` serves one request, and others may wait.
                if n_waiting == 0 {
                    state.requested.set(n, false);
                }
            }
        }
    }

    /// True if no packet waits and no port is busy. The arrival of a packet wakes the crossbar.
    fn is_idle(&self) -> bool {
        self.state.last_free_at < self.state.next_edge && self.state.requested.not_any()
    }

    /// Number of inputs with a packet in the window.
    fn n_waiting(&self) -> usize {
        self.state
            .inputs
            .iter()
            .filter(|input| !input.window.is_empty())
            .count()
    }
}

warpwave_hw::warm!(Crossbar);

impl Component for Crossbar {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let edges = self.config.clock.edges(now);
        let has_edge = !edges.is_empty();
        self.state.next_edge = edges.end;
        for edge in edges {
            self.request(now, edge);
            self.grant(now, edge);
            self.accept(now, edge);
            self.count();
        }
        // After a cycle without an edge, the next edge must run: a packet may have become visible.
        match has_edge && self.is_idle() {
            true => Activity::Idle,
            false => Activity::Until(self.config.clock.cycle_of(self.state.next_edge)),
        }
    }

    fn reset(&mut self) {
        self.state = State::new(self.ports.inputs.len(), self.ports.outputs.len(), self.config.window);
        self.ports.clear_inputs();
    }

    /// Quiescent if the windows are empty.
    fn is_quiescent(&self) -> bool {
        self.n_waiting() == 0
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = &self.state;
        probe.vector("inputs_waiting", 16, Some(self.n_waiting() as u64));
        for (n, Input { free_at, window, .. }) in state.inputs.iter().enumerate() {
            probe.enter("in", n);
            probe.bit("waits", Some(!window.is_empty()));
            // `free_at` is 0 until the input has sent its first packet.
            probe.bit("sends", Some(*free_at >= state.next_edge && *free_at > 0));
            probe.leave();
        }
        for (n, output) in state.outputs.iter().enumerate() {
            probe.enter("out", n);
            probe.vector("wanted", 16, Some(u64::from(output.arbiter.n_requests())));
            probe.bit("busy", Some(output.free_at >= state.next_edge && output.free_at > 0));
            probe.bit("blocked", Some(output.blocked));
            probe.leave();
        }
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// Each waiting input has one request at an output.
    fn invariants(&self, check: &mut Invariants) {
        let requests: u64 = self
            .state
            .outputs
            .iter()
            .map(|output| u64::from(output.arbiter.n_requests()))
            .sum();
        let wanted = self.state.inputs.iter().map(|input| n_outputs(&input.window)).sum();
        check.equal("requests at the outputs", requests, wanted);
        for (n, output) in self.state.outputs.iter().enumerate() {
            let is_requested = self.state.requested[n];
            check.equal(
                format_args!("request bit of output {n}"),
                is_requested.into(),
                (output.arbiter.n_requests() > 0).into(),
            );
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        for (n, output) in self.state.outputs.iter().enumerate() {
            let waiting = output.arbiter.n_requests();
            if waiting > 0 {
                say(format!(
                    "{}: packets of {waiting} inputs wait for output {n}",
                    self.path
                ));
            }
        }
    }
}

/// The indices of the bits that are set.
#[inline]
fn indices(bits: &BitVec<u64>) -> impl Iterator<Item = usize> {
    let words = bits.as_raw_slice().iter().enumerate();
    words.flat_map(|(n, word)| ones(*word).map(move |bit| n * 64 + bit))
}

/// Number of different outputs of waiting packets.
fn n_outputs(window: &[Waiting]) -> u64 {
    let is_first = |n: &usize| window[..*n].iter().all(|older| older.output != window[*n].output);
    (0..window.len()).filter(is_first).count() as u64
}

/// Cycles that a packet occupies its ports.
#[inline]
fn busy_cycles(bytes: u32, per_cycle: u32) -> u64 {
    // Most packets take one cycle, without the division.
    if bytes <= per_cycle {
        1
    } else {
        u64::from(bytes.div_ceil(per_cycle))
    }
}

#[cfg(test)]
mod tests;
