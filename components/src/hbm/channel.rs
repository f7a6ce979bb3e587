//! One memory channel: a request queue, a scheduler, banks in groups, a data bus.
//!
//! ```text
//!               +----------------------------------------------------+
//!   slice 0 --->|                     +- row commands -> banks       |
//!   slice 1 --->|-- queue, scheduler -+                              |
//!    ...        |                     +- column commands -> data bus |---> slices, after `latency_extra`
//!               +----------------------------------------------------+
//!                                                    |
//!                                                 storage
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `slices`, a pair per slice of the group | loads (fetches) and stores (write-backs); both come back, loads with their bytes |
//!
//! | Operation, idle channel | Command cycles from acceptance to the answer |
//! |---|---|
//! | one burst, row open | 1 + CL + burst + `latency_extra` |
//! | one burst, bank closed | 1 + tRCD + CL + burst + `latency_extra` |
//! | one burst, another row open | 1 + tRP + tRCD + CL + burst + `latency_extra` |
//! | each further burst of a line | tCCD_L |
//!
//! A row command and a column command may go out in one command cycle (HBM has a bus for each). Rows stay open until another
//! row of the bank is wanted or a refresh comes. Bytes are copied from and to the storage with a request's last column command.
//!
//! # Invariants
//! - Requests of one line are served in the order of their arrival.
//! - Every rule of `timing` holds between any two commands.
//!
//! Sources: JEDEC JESD235 (HBM) for the commands and the names of the timings; Rixner et al. (ISCA 2000) for the scheduler.

mod burst;
mod command;
mod stats;

pub use stats::Stats;

use std::collections::VecDeque;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::arrivals::ArrivalMask;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::{Cycle, Domain};

use super::bank::Layout;
use super::refresh::Refresh;
use super::sched::{Choice, Entry, Queue, RowState};
use super::timing::Clockwork;
use crate::config::Timing;
use crate::proto::mem::{ALL_SECTORS, LINE, Packet, PacketKind, SECTOR, SECTORS, Stage};
use crate::proto::noc::AddressMap;
use crate::storage::Storage;
use burst::bursts;
use command::Command;

/// Shape of a channel.
#[derive(Clone, Debug)]
pub struct Config {
    /// Banks.
    pub banks: u32,
    /// Groups of banks.
    pub bank_groups: u32,
    /// Bytes of a row of one bank.
    pub row_bytes: u32,
    /// Requests waiting, at most 64.
    pub queue_depth: u32,
    /// Bytes of a burst, at least a sector.
    pub burst_bytes: u32,
    /// Bytes that the data bus moves per command cycle.
    pub bus_bytes_per_command_cycle: u32,
    /// Command cycles that every access takes beside those of the banks.
    pub latency_extra: u32,
    /// Bank timing.
    pub timing: Timing,
    /// The command clock.
    pub clock: Domain,
    /// Where lines live.
    pub map: Arc<AddressMap>,
}

/// A pair of ports for one slice.
pub type SlicePorts = (InPort<Box<Packet>>, OutPort<Box<Packet>>);

/// One memory channel.
pub struct Channel {
    path: Path,
    config: Config,
    slices: Vec<SlicePorts>,
    /// Slices that have sent something.
    requests: ArrivalMask,
    storage: Arc<Storage>,
    layout: Layout,
    /// The bursts of each mask of sectors.
    bursts: [u8; 1 << SECTORS],
    queue: Queue,
    clockwork: Clockwork,
    refresh: Refresh,
    /// Requests done, with port and edge of their answer.
    done: VecDeque<(u64, usize, Box<Packet>)>,
    /// Port asked first.
    turn: usize,
    /// Nothing but arrivals can happen before this edge.
    idle_until: u64,
    row_command: Command,
    column_command: Command,
    line: u64,
    stats: Stats,
}

impl Channel {
    /// A channel with every row closed.
    pub fn new(path: Path, config: Config, slices: Vec<SlicePorts>, storage: Arc<Storage>) -> Self {
        let burst = config.burst_bytes.div_ceil(config.bus_bytes_per_command_cycle);
        let mut requests = ArrivalMask::default();
        slices.iter().for_each(|(port, _)| _ = requests.add(port));
        Channel {
            layout: Layout {
                banks: config.banks,
                groups: config.bank_groups,
                lines_per_row: (config.row_bytes / LINE as u32).max(1),
            },
            bursts: std::array::from_fn(|sectors| bursts(sectors as u8, config.burst_bytes as usize / SECTOR)),
            queue: Queue::new(config.queue_depth, config.banks),
            clockwork: Clockwork::new(config.timing, u64::from(burst), config.banks, config.bank_groups),
            refresh: Refresh::new(u64::from(config.timing.t_refi)),
            done: VecDeque::with_capacity(config.queue_depth as usize),
            turn: 0,
            idle_until: 0,
            row_command: Command::None,
            column_command: Command::None,
            line: 0,
            stats: Stats::default(),
            requests,
            path,
            config,
            slices,
            storage,
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Stats {
        &self.stats
    }

    fn step(&mut self, now: Cycle, edge: u64) {
        self.row_command = Command::None;
        self.column_command = Command::None;
        self.answer(now, edge);
        if self.queue.len() > 0 {
            self.command(edge);
        }
        self.accept(now, edge);
    }

    fn answer(&mut self, now: Cycle, edge: u64) {
        let Some(&(due, port, _)) = self.done.front() else {
            return;
        };
        if due <= edge && self.slices[port].1.has_room(now) {
            let (_, _, packet) = self.done.pop_front().expect("an answer is due");
            self.slices[port].1.send(now, packet);
        }
    }

    /// Sends out at most one row and one column command.
    fn command(&mut self, edge: u64) {
        if edge < self.idle_until {
            return;
        }
        if self.refresh.is_due(edge)
            && let Some(start) = self.refresh(edge)
        {
            self.idle_until = start;
            return;
        }
        let before = self.queue.is_writing();
        let starving = self.queue.starving(edge);
        self.queue.choose_direction(starving);
        self.stats.turnarounds += u64::from(before != self.queue.is_writing());
        let mut next = self.queue.starved_at();
        match self.queue.column(edge, starving, &self.clockwork) {
            Choice::Now(n) => {
                self.column(n, edge);
                next = 0;
            }
            Choice::At(at) => next = next.min(at),
        }
        match self.queue.row(edge, starving, &self.clockwork) {
            Choice::Now(n) => {
                self.row(n, edge);
                next = 0;
            }
            Choice::At(at) => next = next.min(at),
        }
        self.idle_until = next;
    }

    /// Does the refreshes that are due. If one must wait for a row to close, gives the edge at which it can start.
    fn refresh(&mut self, edge: u64) -> Option<u64> {
        let waits_until = self.refresh.catch_up(edge, &mut self.clockwork);
        if self.clockwork.banks.iter().all(|bank| bank.row.is_none()) {
            self.queue.all_rows_closed();
        }
        waits_until
    }

    /// Whether a request waits before the queue.
    fn one_waits(&self, now: Cycle) -> bool {
        self.requests.in_flight() != 0 && self.slices.iter().any(|(port, _)| port.is_ready(now))
    }

    /// Takes one request in.
    fn accept(&mut self, now: Cycle, edge: u64) {
        if self.queue.is_full() {
            self.stats.full_cycles += u64::from(self.one_waits(now));
            return;
        }
        if self.requests.in_flight() == 0 {
            return;
        }
        let mut port = self.turn;
        for _ in 0..self.slices.len() {
            let next = if port + 1 == self.slices.len() { 0 } else { port + 1 };
            if self.slices[port].0.is_ready(now)
                && let Some(packet) = self.slices[port].0.recv(now)
            {
                self.turn = next;
                self.enqueue(packet, port, now, edge);
                return;
            }
            port = next;
        }
    }

    fn enqueue(&mut self, mut packet: Box<Packet>, port: usize, now: Cycle, edge: u64) {
        packet.note(Stage::Hbm, now);
        let write = packet.kind == PacketKind::Store;
        *(if write {
            &mut self.stats.write_requests
        } else {
            &mut self.stats.read_requests
        }) += 1;
        let at = self.layout.locate(self.config.map.channel(packet.line).local);
        let open = self.clockwork.banks[at.bank as usize].row == Some(at.row);
        let entry = Entry {
            bursts: self.bursts[usize::from(packet.sectors & ALL_SECTORS)],
            packet,
            port: port as u16,
            at,
            write,
            found: RowState::Hit,
            arrived: edge,
        };
        self.queue.push(entry, open);
        self.idle_until = 0;
    }

    fn has_command(&self) -> bool {
        self.row_command != Command::None || self.column_command != Command::None
    }

    fn activity(&mut self, now: Cycle, next_edge: u64) -> Activity {
        let mut next = u64::MAX;
        // A command is on its bus for one edge.
        if self.has_command() || self.one_waits(now) {
            next = next_edge;
        }
        if self.queue.len() > 0 {
            next = next.min(self.idle_until);
        }
        if let Some(&(due, ..)) = self.done.front() {
            next = next.min(due);
        }
        match next {
            u64::MAX => Activity::Idle,
            edge => Activity::Until(self.config.clock.cycle_of(edge.max(next_edge))),
        }
    }
}

warpwave_hw::warm!(Channel);

impl Component for Channel {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let edges = self.config.clock.edges(now);
        for edge in edges.clone() {
            self.step(now, edge);
        }
        self.activity(now, edges.end)
    }

    fn reset(&mut self) {
        self.slices.iter_mut().for_each(|(port, _)| port.clear());
        self.queue.clear();
        self.clockwork.clear();
        self.refresh.clear();
        self.done.clear();
        self.turn = 0;
        self.idle_until = 0;
        self.row_command = Command::None;
        self.column_command = Command::None;
        self.line = 0;
        self.stats = Stats::default();
    }

    fn is_quiescent(&self) -> bool {
        self.queue.len() == 0 && self.done.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.state("row_command", &Command::NAMES, Some(self.row_command as usize));
        probe.state("column_command", &Command::NAMES, Some(self.column_command as usize));
        probe.vector("line", 48, self.has_command().then_some(self.line));
        probe.vector("queue", 8, Some(self.queue.len() as u64));
        probe.bit("writing", Some(self.queue.is_writing()));
        probe.vector("done", 16, Some(self.done.len() as u64));
        for (n, bank) in self.clockwork.banks.iter().enumerate() {
            probe.enter("bank", n);
            probe.state("state", &["closed", "open"], Some(usize::from(bank.row.is_some())));
            probe.stored("row", 32, bank.row.map(u64::from));
            probe.leave();
        }
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.slices.show(observer);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(self.refresh.done(), report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        let requests = self.queue.len() + self.done.len();
        if requests > 0 {
            say(format!("{}: {requests} requests are not answered", self.path));
        }
    }
}

#[cfg(test)]
mod tests;
