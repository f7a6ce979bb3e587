//! One slice of the L2: a bank of the cache with its queue, its atomic unit and its way to memory.
//!
//! ```text
//!                       +-----------------------------------------------+
//!   crossbar requests ->| tag --hit--> data, atomic unit -- answer pipe |--> answers crossbar
//!                       |  |                ^                 ^         |
//!                       |  +--miss--> fetches (queue per sector)        |
//!   host     commands ->|  |                ^ merge                     |
//!                       |  +--> to memory --|---------------------------|--> channels
//!                       |                   +---------------------------|<-- channels
//!                       +-----------------------------------------------+
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `requests` from the crossbar | loads, stores, atomics, reductions |
//! | `answers` to the crossbar | the same packets |
//! | `commands` from the host | write back, invalidate; between launches |
//! | `memory`, a pair per channel of the group | fetches and write-backs, and both come back |
//!
//! | Operation | Cycles of the slice's clock |
//! |---|---|
//! | tag lookup | one packet per cycle while the data array is free |
//! | load, every sector there; store | answer sent `latency` after the request was taken |
//! | load, a sector missing | fetch sent 1 after the lookup; answer `latency` after the last sector came |
//! | data array | ceil(bytes / `bytes_per_cycle`) per access and per fill |
//! | atomic | the array is held `atomic_interval` for each lane that meets in one word |
//!
//! Policy: write-back, write-validate: a store never fetches, it marks the bytes it brings; a load of a sector that is known in
//! part fetches it and keeps the bytes written. Lines are allocated by the access that misses; the least recently used goes.
//!
//! # Invariants
//! - What one SM sends for one sector takes effect in the order in which it arrives.
//! - Each request is answered once; a store when its bytes are here.
//! - A line is in memory, or here with its changed sectors marked, or on its way, in that order.
//!
//! Sources: Khairy et al., "Accel-Sim" (ISCA 2020), for write-validate and sector fetches.

mod answers;
mod lookup;
mod memory;
mod stats;
mod tag;

pub use stats::Stats;

use std::array;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::inbox::Inbox;
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::{Cycle, Domain};

use self::answers::{Answers, NEVER};
use self::tag::TagState;
use super::fetch::Fetches;
use super::lines::Lines;
use crate::pool::Pool;
use crate::proto::mem::{ALL_SECTORS, LINE, Packet, SECTOR, SECTORS, SliceCommand, n_sectors};
use crate::proto::noc::AddressMap;
use crate::waiting::Waiting;

/// Shape of a slice.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of its lines.
    pub bytes: u32,
    /// Ways of a set.
    pub associativity: u32,
    /// Cycles of its clock from taking a request to sending its answer on a hit, at least 1.
    pub latency: u32,
    /// Cycles more if the SM that asks is on another part of the chip, there and back.
    pub far_latency: u32,
    /// SMs on the slice's own part of the chip.
    pub near_sms: Range<u16>,
    /// Sectors in flight to memory, at least those of one line.
    pub mshr_entries: u32,
    /// Packets that may wait for sectors.
    pub waiting: u32,
    /// Fetches and write-backs that may be at memory, at least 2; each link to a channel holds as many.
    pub memory_depth: u32,
    /// Bytes that the data array reads or writes per cycle.
    pub bytes_per_cycle: u32,
    /// Cycles between two atomics on the same word.
    pub atomic_interval: u32,
    /// Its clock.
    pub clock: Domain,
    /// Where lines live.
    pub map: Arc<AddressMap>,
}

/// A pair of ports for one channel.
pub type ChannelPorts = (OutPort<Box<Packet>>, InPort<Box<Packet>>);

/// What a slice is joined to.
pub struct Ports {
    /// From the crossbar.
    pub requests: InPort<Box<Packet>>,
    /// To the crossbar.
    pub answers: OutPort<Box<Packet>>,
    /// From the host.
    pub commands: InPort<SliceCommand>,
    /// To and from each channel of the group.
    pub memory: Vec<ChannelPorts>,
}

warpwave_hw::show_ports!(Ports: requests, answers, commands, memory);

/// What a tick finds that is seldom there, so that it asks only once.
#[derive(Clone, Copy)]
struct Business {
    /// Something comes from memory.
    memory: bool,
    /// A command of the host's is there or under way.
    host: bool,
}

/// One slice of the L2.
pub struct Slice {
    path: Path,
    config: Config,
    ports: Ports,
    lines: Lines,
    fetches: Fetches,
    waiting: Waiting,
    answers: Answers,
    /// Packets on their way to memory, with the channel that each goes to.
    to_memory: VecDeque<(usize, Box<Packet>)>,
    /// Packets at memory, or on their way there or back.
    at_memory: u32,
    /// Channels that have sent something.
    from_memory: Inbox,
    pool: Pool,
    /// Cycles that each mask of sectors holds the data array.
    data_cycles: [u32; 1 << SECTORS],
    /// Edge from which the data array is free.
    data_free: u64,
    /// Channel asked first for its packet.
    turn: usize,
    /// Set from which a write-back of everything goes on.
    write_back: Option<usize>,
    next_edge: u64,
    state: TagState,
    /// Edge at which the tag stage entered its state.
    since: u64,
    /// Whether anything has left or come back since a request was held up: only then may it go on.
    progress: bool,
    line: u64,
    stats: Stats,
}

impl Slice {
    /// An empty slice.
    ///
    /// # Panics
    /// If the latency is 0 or a line's sectors could not be in flight together.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert!(config.latency >= 1, "{path}: a hit takes at least a cycle");
        assert!(
            (SECTORS as u32..u32::from(u16::MAX)).contains(&config.mshr_entries),
            "{path}: sectors in flight must be {SECTORS} to 65534, not {}",
            config.mshr_entries
        );
        let mut from_memory = Inbox::default();
        ports.memory.iter().for_each(|(_, port)| _ = from_memory.add(port));
        Slice {
            lines: Lines::new(config.bytes, config.associativity),
            fetches: Fetches::new(config.mshr_entries),
            waiting: Waiting::new(config.waiting),
            answers: Answers::new(config.latency, config.latency + config.far_latency),
            to_memory: VecDeque::with_capacity(config.memory_depth as usize),
            at_memory: 0,
            from_memory,
            pool: Pool::default(),
            data_cycles: array::from_fn(|sectors| {
                (n_sectors(sectors as u8) * SECTOR as u32).div_ceil(config.bytes_per_cycle)
            }),
            data_free: 0,
            turn: 0,
            write_back: None,
            next_edge: 0,
            state: TagState::Idle,
            since: 0,
            progress: false,
            line: 0,
            stats: Stats::default(),
            path,
            config,
            ports,
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Stats {
        &self.stats
    }

    #[inline(always)]
    fn step(&mut self, now: Cycle, edge: u64, business: Business) {
        if self.answers.due() <= edge {
            self.send_answer(now, edge);
        }
        if !self.to_memory.is_empty() {
            self.send_to_memory(now);
        }
        if business.memory {
            self.take_from_memory(now, edge);
        }
        if business.host {
            self.obey_host(now);
        }
        self.take_request(now, edge);
    }

    fn data_cycles(&self, sectors: u8) -> u32 {
        self.data_cycles[usize::from(sectors & ALL_SECTORS)]
    }

    fn occupy(&mut self, edge: u64, cycles: u32) {
        self.data_free = self.data_free.max(edge) + u64::from(cycles);
        self.stats.data_cycles += u64::from(cycles);
    }

    /// What is held up by memory waits for a message from there, and is no reason to tick.
    #[inline]
    fn activity(&mut self, now: Cycle, business: Business) -> Activity {
        let busy = !self.state.is_held_up() && self.ports.requests.is_ready(now)
            || !self.to_memory.is_empty()
            || business.memory && self.ports.memory.iter().any(|(_, port)| port.is_ready(now))
            || business.host && self.host_keeps_busy(now);
        if busy {
            return self.at(self.next_edge);
        }
        let free = match self.state {
            TagState::DataBusy => self.data_free,
            _ => NEVER,
        };
        if self.answers.is_blocked() {
            return self.at(free).or(self.ports.answers.await_room(now));
        }
        self.at(free.min(self.answers.due()))
    }

    /// To be ticked at an edge, or at the next if that is over.
    #[inline]
    fn at(&self, edge: u64) -> Activity {
        match edge {
            NEVER => Activity::Idle,
            edge => Activity::Until(self.config.clock.cycle_of(edge.max(self.next_edge))),
        }
    }
}

warpwave_hw::warm!(Slice: ; ports);

impl Component for Slice {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let edges = self.config.clock.edges(now);
        self.next_edge = edges.end;
        let business = Business {
            memory: self.from_memory.under_way() != 0,
            host: self.write_back.is_some() || self.ports.commands.is_ready(now),
        };
        for edge in edges {
            self.step(now, edge, business);
        }
        self.activity(now, business)
    }

    fn reset(&mut self) {
        self.ports.requests.clear();
        self.ports.commands.clear();
        self.ports.memory.iter_mut().for_each(|(_, port)| port.clear());
        self.lines.clear();
        self.fetches.clear();
        self.waiting.clear();
        self.pool.clear();
        self.answers.clear();
        self.to_memory.clear();
        self.at_memory = 0;
        self.data_free = 0;
        self.turn = 0;
        self.write_back = None;
        self.next_edge = 0;
        self.state = TagState::Idle;
        self.since = 0;
        self.progress = false;
        self.line = 0;
        self.stats = Stats::default();
    }

    fn is_quiescent(&self) -> bool {
        self.waiting.len() == 0
            && self.answers.len() == 0
            && self.to_memory.is_empty()
            && self.fetches.in_flight() == 0
            && self.write_back.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.state("tag", &TagState::NAMES, Some(self.state as usize));
        let known = self.state != TagState::Idle;
        probe.vector("line", 48, known.then_some(self.line));
        probe.vector("waiting", 16, Some(self.waiting.len() as u64));
        probe.vector("fetch_sectors", 16, Some(u64::from(self.fetches.in_flight())));
        probe.vector("to_memory", 8, Some(self.to_memory.len() as u64));
        probe.vector("answers", 16, Some(self.answers.len() as u64));
        probe.bit("writes_back", Some(self.write_back.is_some()));
    }

    fn fades_at(&self, _: Cycle) -> Cycle {
        self.config.clock.cycle_of(self.next_edge)
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        if self.waiting.len() > 0 {
            let (packets, sectors) = (self.waiting.len(), self.fetches.in_flight());
            say(format!(
                "{}: {packets} packets wait for {sectors} sectors from memory",
                self.path
            ));
        }
        if self.answers.len() > 0 {
            let answers = self.answers.len();
            say(format!("{}: {answers} answers wait for the crossbar", self.path));
        }
    }
}

fn line_number(packet: &Packet) -> u32 {
    (packet.line / LINE as u64) as u32
}

#[cfg(test)]
mod tests;
