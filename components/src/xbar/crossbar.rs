//! One network of the crossbar: every input reaches every output, one packet at a time through each.
//!
//! ```text
//!   in[0] --head--+                      +--> out[0]   round robin per output
//!   in[1] --head--+--- destination ------+--> out[1]
//!    ...          |                      |     ...
//!   in[n] --head--+                      +--> out[m]
//! ```
//!
//! Requests go from SMs to slices, responses from slices to SMs. Where a packet goes is in its [`Header`], the label of its link.
//!
//! | Operation | Cycles of the crossbar's clock |
//! |---|---|
//! | through an idle crossbar | 0: the links before and behind it carry the latency |
//! | a packet holds its input and its output | ceil(data bytes / `bytes_per_cycle`), at least 1; the header travels beside the data |
//!
//! A packet is sent on when it gets its output; the cycles that the rest of it takes delay what follows.
//!
//! # Invariants
//! - Packets from one input to one output stay in order.
//! - An output that several inputs want serves each before it serves one twice.

use warpwave_hw::bits::ones;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::{Cycle, Domain};

use super::arbiter::RoundRobin;
use super::calendar::Calendar;
use super::ports::Ports;
use crate::proto::header::{Direction, Header, MAX_OUTPUTS, atomic_bytes};
use crate::proto::mem::Packet;

/// Shape of a network.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which way packets go.
    pub direction: Direction,
    /// Data bytes that a port moves per cycle.
    pub bytes_per_cycle: u32,
    /// Its clock.
    pub clock: Domain,
}

/// Events of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the unit is in the name")]
pub struct Stats {
    pub packets: u64,
    pub data_bytes: u64,
    /// Cycles that packets held an output, all outputs together.
    pub output_cycles: u64,
    /// Cycles in which an output was wanted and free, but the link behind it was full.
    pub blocked_cycles: u64,
    /// Cycles that packets at the head of an input waited for an output that another held or got.
    pub conflict_cycles: u64,
}

/// In place of the edge from which an input is free: its head is known to an output, and waits for it.
const WAITS: u64 = u64::MAX;

/// What is known of an input and the packet at its head.
#[derive(Clone, Copy, Default)]
struct Head {
    /// Edge from which the input may send again, or [`WAITS`].
    free: u64,
    /// Where the packet goes, once it is known to be under way.
    header: Header,
    /// Its data bytes, once an output knows of it.
    bytes: u32,
}

struct Output {
    port: OutPort<Box<Packet>>,
    free: u64,
    arbiter: RoundRobin,
    blocked: bool,
}

/// One network of the crossbar.
pub struct Crossbar {
    path: Path,
    config: Config,
    inputs: Vec<InPort<Box<Packet>>>,
    /// Inputs of which no head is known, and those of them whose sender is of the same tile and may send at any time.
    unknown: Ports,
    near: Ports,
    /// Inputs whose heads become visible in this window, and the first cycle after it.
    calendar: Calendar,
    end: Cycle,
    /// Inputs with a visible head that no output knows.
    visible: Ports,
    /// For each input.
    heads: Box<[Head]>,
    outputs: Vec<Output>,
    /// Outputs that an input wants.
    wanted: Ports,
    /// First edge not seen yet.
    next_edge: u64,
    /// The last edge at which an input becomes free.
    last_free: u64,
    stats: Stats,
}

impl Crossbar {
    /// Nothing under way. Outputs are numbered as headers name them.
    ///
    /// # Panics
    /// If there are more outputs than headers can name.
    pub fn new(
        path: Path,
        config: Config,
        inputs: Vec<InPort<Box<Packet>>>,
        outputs: Vec<OutPort<Box<Packet>>>,
    ) -> Self {
        let n = inputs.len();
        assert!(outputs.len() <= MAX_OUTPUTS, "{path}: more outputs than headers name");
        let output = |port| Output {
            port,
            free: 0,
            arbiter: RoundRobin::new(n),
            blocked: false,
        };
        let of = |is_wanted: &dyn Fn(&InPort<Box<Packet>>) -> bool| {
            let mut ports = Ports::none(n);
            let wanted = inputs.iter().enumerate().filter(|(_, input)| is_wanted(input));
            wanted.for_each(|(n, _)| ports.add(n));
            ports
        };
        Crossbar {
            unknown: of(&|_| true),
            near: of(&|input| !input.is_remote()),
            calendar: Calendar::new(n),
            end: Cycle::ZERO,
            visible: Ports::none(n),
            wanted: Ports::none(outputs.len()),
            heads: vec![Head::default(); n].into(),
            inputs,
            outputs: outputs.into_iter().map(output).collect(),
            next_edge: 0,
            last_free: 0,
            stats: Stats::default(),
            path,
            config,
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Stats {
        &self.stats
    }

    /// Serves every output that is wanted.
    fn serve(&mut self, now: Cycle, edge: u64) {
        for word in 0..self.wanted.words() {
            let mut over = 0;
            for n in ones(self.wanted.word(word)) {
                over |= u64::from(!self.serve_output(word * 64 + n, now, edge)) << n;
            }
            self.wanted.remove_some(word, over);
        }
    }

    /// Sends the packet whose turn it is at an output that is wanted, if it goes; whether the output is still wanted.
    #[inline]
    fn serve_output(&mut self, n: usize, now: Cycle, edge: u64) -> bool {
        let output = &mut self.outputs[n];
        let free = output.free <= edge;
        let mut served = None;
        output.blocked = free && !output.port.has_room(now);
        if output.blocked {
            self.stats.blocked_cycles += 1;
        } else if free {
            let input = output.arbiter.grant().expect("an output in `wanted` is wanted");
            served = Some(input);
            let packet = self.inputs[input].take(now);
            let head = &mut self.heads[input];
            let bytes = head.bytes;
            let cycles = u64::from(cycles(bytes, self.config.bytes_per_cycle));
            head.free = edge + cycles;
            output.free = edge + cycles;
            output.port.send(now, packet);
            self.last_free = self.last_free.max(edge + cycles);
            self.stats.packets += 1;
            self.stats.data_bytes += u64::from(bytes);
            self.stats.output_cycles += cycles;
        }
        let n_wanted = output.arbiter.n_wanted();
        if !output.blocked {
            self.stats.conflict_cycles += u64::from(n_wanted);
        }
        if let Some(input) = served {
            self.expect_head(input, now);
        }
        n_wanted > 0
    }

    /// Finds out when the next head of an input becomes visible, if it does so in this window.
    #[inline]
    fn expect_head(&mut self, n: usize, now: Cycle) {
        let coming = self.inputs[n].coming();
        if let Some((_, label)) = coming {
            self.heads[n].header = Header::from_label(label);
        }
        match coming {
            Some((at, _)) if at <= now => self.visible.add(n),
            Some((at, _)) if at < self.end => self.calendar.note(at, n),
            _ => self.unknown.add(n),
        }
    }

    /// Finds the heads that have become visible.
    #[inline]
    fn find_visible(&mut self, now: Cycle) {
        self.calendar.take(now, &mut self.visible);
        for word in 0..self.near.words() {
            for n in ones(self.near.word(word) & self.unknown.word(word)) {
                if let Some(label) = self.inputs[word * 64 + n].label(now) {
                    self.heads[word * 64 + n].header = Header::from_label(label);
                    self.unknown.remove(word * 64 + n);
                    self.visible.add(word * 64 + n);
                }
            }
        }
    }

    /// Makes the visible heads of free inputs known to their outputs.
    fn look(&mut self, now: Cycle, edge: u64) {
        for word in 0..self.visible.words() {
            let mut known = 0;
            for n in ones(self.visible.word(word)) {
                if self.heads[word * 64 + n].free <= edge {
                    known |= 1 << n;
                    self.make_known(word * 64 + n, now);
                }
            }
            self.visible.remove_some(word, known);
        }
    }

    /// Makes the head of an input known to its output.
    #[inline]
    fn make_known(&mut self, n: usize, now: Cycle) {
        let (input, head, direction) = (&mut self.inputs[n], &mut self.heads[n], self.config.direction);
        let of_atomic = || atomic_bytes(input.peek(now).expect("the head of an input stays"), direction);
        head.bytes = head.header.data_bytes(of_atomic);
        head.free = WAITS;
        let output = head.header.output();
        self.outputs[output].arbiter.want(n);
        self.wanted.add(output);
    }

    /// A head waits for an edge, its input, or an output.
    fn activity(&self) -> Activity {
        let busy = self.next_edge <= self.last_free || !self.wanted.is_empty() || !self.visible.is_empty();
        match busy {
            true => Activity::Until(self.config.clock.cycle_of(self.next_edge)),
            false => Activity::Idle,
        }
    }

    fn n_waiting(&self) -> usize {
        self.heads.iter().filter(|head| head.free == WAITS).count()
    }
}

warpwave_hw::warm!(Crossbar);

impl Component for Crossbar {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let edges = self.config.clock.edges(now);
        self.next_edge = edges.end;
        self.find_visible(now);
        for edge in edges {
            self.look(now, edge);
            self.serve(now, edge);
        }
        self.activity()
    }

    /// Notes the heads that become visible in the window.
    fn begin(&mut self, from: Cycle, end: Cycle) {
        self.end = end;
        self.calendar.begin(from, &mut self.visible);
        for word in 0..self.unknown.words() {
            let mut known = 0;
            for n in ones(self.unknown.word(word)) {
                if let Some((at, label)) = self.inputs[word * 64 + n].coming()
                    && at < end
                {
                    known |= 1 << n;
                    self.calendar.note(at.max(from), word * 64 + n);
                    self.heads[word * 64 + n].header = Header::from_label(label);
                }
            }
            self.unknown.remove_some(word, known);
        }
    }

    fn reset(&mut self) {
        let n = self.inputs.len();
        self.inputs.iter_mut().for_each(InPort::clear);
        (0..n).for_each(|input| self.unknown.add(input));
        self.calendar = Calendar::new(n);
        self.end = Cycle::ZERO;
        self.visible.clear();
        self.heads.fill(Head::default());
        for output in &mut self.outputs {
            output.free = 0;
            output.arbiter = RoundRobin::new(n);
            output.blocked = false;
        }
        self.wanted.clear();
        self.next_edge = 0;
        self.last_free = 0;
        self.stats = Stats::default();
    }

    /// Packets are in the links alone.
    fn is_quiescent(&self) -> bool {
        self.n_waiting() == 0
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.vector("inputs_waiting", 16, Some(self.n_waiting() as u64));
        for (n, &Head { free, .. }) in self.heads.iter().enumerate() {
            let waits = free == WAITS;
            probe.enter("in", n);
            probe.bit("waits", Some(waits));
            probe.bit("sends", Some(!waits && free >= self.next_edge && free > 0));
            probe.leave();
        }
        for (n, output) in self.outputs.iter().enumerate() {
            probe.enter("out", n);
            probe.vector("wanted", 16, Some(u64::from(output.arbiter.n_wanted())));
            probe.bit("busy", Some(output.free >= self.next_edge && output.free > 0));
            probe.bit("blocked", Some(output.blocked));
            probe.leave();
        }
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.inputs.show(wires);
        self.outputs.iter_mut().for_each(|output| output.port.show(wires));
    }

    fn stats(&self, report: &mut dyn Report) {
        let s = &self.stats;
        report.count("packets", s.packets);
        report.count("data_bytes", s.data_bytes);
        report.count("output_cycles", s.output_cycles);
        report.count("blocked_cycles", s.blocked_cycles);
        report.count("conflict_cycles", s.conflict_cycles);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        for (n, output) in self.outputs.iter().enumerate() {
            let wanted = output.arbiter.n_wanted();
            if wanted > 0 {
                say(format!("{}: {wanted} packets wait for output {n}", self.path));
            }
        }
    }
}

/// Cycles that so many bytes take. Most packets take one, which needs no division.
#[inline]
fn cycles(bytes: u32, per_cycle: u32) -> u32 {
    if bytes <= per_cycle {
        1
    } else {
        bytes.div_ceil(per_cycle)
    }
}

#[cfg(test)]
mod tests;
