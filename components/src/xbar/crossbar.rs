//! One crossbar network, for requests (SM to slice) or responses (slice to SM). Each port moves one packet at a time.
//!
//! ```text
//!   in[0] --[head]--+                     +--[round robin]--> out[0]
//!   in[1] --[head]--+---- request,     ---+--[round robin]--> out[1]
//!    ...            |      grant          |       ...
//!   in[n] --[head]--+                     +--[round robin]--> out[m]
//! ```
//!
//! The [`Header`] in the link's sideband names the output. Only an atomic's packet is read here, for its size.
//!
//! `tick` runs two stages for each edge of the crossbar's clock in the cycle:
//!
//! | Stage | What it does |
//! |---|---|
//! | request | the visible head of each free input requests its output |
//! | grant | each free output with room grants one request, and the packet leaves |
//!
//! | Operation | Cycles of the crossbar's clock |
//! |---|---|
//! | through an idle crossbar | 0: the links on both sides have the latency |
//! | a packet keeps its input and its output busy | max(1, ceil(data bytes / `bytes_per_cycle`)); the header takes no bandwidth |
//!
//! # Invariants
//! - Packets from one input to one output stay in order.
//! - Round robin: an output serves each waiting input before it serves one twice.

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
}

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
        /// Cycles in which an output was requested and free, but its link was full.
        pub blocked_cycles: u64,
        /// Cycles that heads of inputs waited for an output that served another packet, summed over the heads.
        pub conflict_cycles: u64,
    }
}

/// An input. Its head is the oldest visible packet in its link.
#[derive(Clone, Copy, Default)]
struct Input {
    /// First edge at which the input is free again.
    free_at: u64,
    /// Data bytes of the head, valid while it waits for its output.
    bytes: u32,
    /// True while the head waits for its output.
    is_waiting: bool,
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
    /// Outputs with a request.
    requested: BitVec<u64>,
    /// First edge that has not passed.
    next_edge: u64,
    /// The last edge at which a busy port becomes free. Until then an input may hold a visible packet that has not requested its output.
    last_free_at: u64,
    stats: Stats,
}

impl State {
    fn new(n_inputs: usize, n_outputs: usize) -> Self {
        let output = Output {
            free_at: 0,
            arbiter: RoundRobin::new(n_inputs),
            blocked: false,
        };
        State {
            inputs: vec![Input::default(); n_inputs],
            outputs: vec![output; n_outputs],
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
            state: State::new(inputs.len(), outputs.len()),
            path,
            config,
            ports: Ports { inputs, outputs },
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Stats {
        &self.state.stats
    }

    /// The visible head of each free input requests its output.
    fn request(&mut self, now: Cycle, edge: u64) {
        for n in 0..self.state.inputs.len() {
            let Input {
                free_at, is_waiting, ..
            } = self.state.inputs[n];
            if !is_waiting
                && free_at <= edge
                && let Some(sideband) = self.ports.inputs[n].sideband(now)
            {
                self.request_output(n, Header::from_sideband(sideband), now);
            }
        }
    }

    #[inline]
    fn request_output(&mut self, n: usize, header: Header, now: Cycle) {
        let (port, direction, state) = (&mut self.ports.inputs[n], self.config.direction, &mut self.state);
        // The header of an atomic does not hold its size.
        let read_atomic_bytes = || atomic_bytes(port.peek(now).expect("the head of an input stays"), direction);
        state.inputs[n].bytes = header.data_bytes(read_atomic_bytes);
        state.inputs[n].is_waiting = true;
        state.outputs[header.output()].arbiter.request(n);
        state.requested.set(header.output(), true);
    }

    /// Each free output with room grants one request.
    fn grant(&mut self, now: Cycle, edge: u64) {
        // Iterates over a copy of each word, because a grant clears bits.
        for word in 0..self.state.requested.as_raw_slice().len() {
            for bit in ones(self.state.requested.as_raw_slice()[word]) {
                self.grant_output(word * 64 + bit, now, edge);
            }
        }
    }

    #[inline]
    fn grant_output(&mut self, n: usize, now: Cycle, edge: u64) {
        let (state, port) = (&mut self.state, &mut self.ports.outputs[n]);
        let output = &mut state.outputs[n];
        let is_free = output.free_at <= edge;
        output.blocked = is_free && !port.has_room(now);
        // Requests at a blocked output count as blocked, not as conflicts.
        if output.blocked {
            state.stats.blocked_cycles += 1;
            return;
        }
        // A busy output grants nothing, but its requests count as conflicts.
        if is_free {
            let granted = output.arbiter.grant().expect("an output in `requested` has a request");
            let input = &mut state.inputs[granted];
            let cycles = busy_cycles(input.bytes, self.config.bytes_per_cycle);
            input.free_at = edge + cycles;
            input.is_waiting = false;
            output.free_at = edge + cycles;
            state.last_free_at = state.last_free_at.max(edge + cycles);
            state.stats.packets += 1;
            state.stats.data_bytes += u64::from(input.bytes);
            state.stats.output_cycles += cycles;
            // Cut-through: the packet leaves at once, and its busy cycles delay only later packets.
            port.send(now, self.ports.inputs[granted].take(now));
        }
        let n_waiting = output.arbiter.n_requests();
        state.stats.conflict_cycles += u64::from(n_waiting);
        if n_waiting == 0 {
            state.requested.set(n, false);
        }
    }

    /// True if no head waits and no input is busy. The arrival of a packet wakes the crossbar.
    fn is_idle(&self) -> bool {
        self.state.last_free_at < self.state.next_edge && self.state.requested.not_any()
    }

    fn n_waiting(&self) -> usize {
        self.state.inputs.iter().filter(|input| input.is_waiting).count()
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
        }
        // After a cycle without an edge, the next edge must run: a head may have become visible.
        match has_edge && self.is_idle() {
            true => Activity::Idle,
            false => Activity::Until(self.config.clock.cycle_of(self.state.next_edge)),
        }
    }

    fn reset(&mut self) {
        self.state = State::new(self.ports.inputs.len(), self.ports.outputs.len());
        self.ports.clear_inputs();
    }

    /// Quiescent if no head waits: the crossbar stores no packet.
    fn is_quiescent(&self) -> bool {
        self.n_waiting() == 0
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = &self.state;
        probe.vector("inputs_waiting", 16, Some(self.n_waiting() as u64));
        for (
            n,
            &Input {
                free_at, is_waiting, ..
            },
        ) in state.inputs.iter().enumerate()
        {
            probe.enter("in", n);
            probe.bit("waits", Some(is_waiting));
            // `free_at` is 0 until the input has sent its first packet.
            probe.bit("sends", Some(!is_waiting && free_at >= state.next_edge && free_at > 0));
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

    fn invariants(&self, check: &mut Invariants) {
        let requests: u64 = self
            .state
            .outputs
            .iter()
            .map(|output| u64::from(output.arbiter.n_requests()))
            .sum();
        check.equal("requests at the outputs", requests, self.n_waiting() as u64);
        for (n, output) in self.state.outputs.iter().enumerate() {
            let is_requested = self.state.requested[n];
            check.equal(
                format!("request bit of output {n}"),
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
                say(format!("{}: {waiting} packets wait for output {n}", self.path));
            }
        }
    }
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
