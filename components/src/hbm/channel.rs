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
//! | Stage of an edge, in this order | What it does |
//! |---|---|
//! | respond | one request that is due goes back to its slice |
//! | command | a refresh that is due, or at most one column command and one row command (HBM has a bus for each) |
//! | accept | one request is taken, the slices in turn; it enters the queue `way_cycles` later, in most presets at once |
//!
//! | Operation, idle channel | Command cycles from acceptance to the response |
//! |---|---|
//! | one burst, row open | `way_cycles` + 1 + CL + burst + `latency_extra` |
//! | one burst, bank closed | tRCD more |
//! | one burst, another row open | tRP + tRCD more |
//! | each further burst of a line | tCCD_L |
//!
//! The scheduling policy (`scheduler`) chooses the requests whose commands go out. The row policy (`row_policy`) chooses the rows that
//! are closed without a request. Bytes are copied from and to the storage with a request's last column command.
//!
//! # Invariants
//! - Requests of one line are served in the order of their arrival.
//! - Every rule of `timing` holds between any two commands.
//!
//! Source: JEDEC JESD235 (HBM) for the commands and the names of the timings.

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
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::{Cycle, Domain};

use super::layout::Layout;
use super::queue::{Choice, Entry, Queue, RowState};
use super::refresh::Refresh;
use super::row_policy::RowPolicy;
use super::scheduler::{Schedule, Scheduler};
use super::timing::BankTimers;
use crate::config::Hbm;
use crate::proto::mem::{ALL_SECTORS, LINE, Packet, PacketKind, SECTOR, SECTORS, Stage};
use crate::proto::noc::AddressMap;
use crate::storage::Storage;
use burst::bursts;
use command::Command;

/// Numbers and policies of a channel.
#[derive(Clone, Debug)]
pub struct Config {
    /// The keys `hbm` of the preset: shape, timing, policies.
    pub hbm: Hbm,
    /// Command cycles on the way from a slice to the queue.
    pub way_cycles: u32,
    /// Command cycles in controller and interface, from the last data to the response: at most `hbm.latency_extra`.
    pub interface_cycles: u32,
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
    /// The slices with a request in flight to the channel.
    requests: ArrivalMask,
    storage: Arc<Storage>,
    layout: Layout,
    row_policy: RowPolicy,
    /// The bursts of each mask of sectors.
    bursts: [u8; 1 << SECTORS],
    state: State,
}

/// What `reset` clears. Times are edges of the command clock.
struct State {
    /// Requests on the way to the queue: when each is there, and the port of its slice.
    arriving: VecDeque<(u64, usize, Box<Packet>)>,
    queue: Queue,
    scheduler: Scheduler,
    timers: BankTimers,
    refresh: Refresh,
    /// Requests that are done: when each is due at its slice, and the port of the slice.
    done: VecDeque<(u64, usize, Box<Packet>)>,
    /// The port that is asked first for a request.
    turn: usize,
    /// No command can go out before this edge, unless a request arrives.
    command_from: u64,
    /// No row command of a request can go out before this edge, unless queue, rows or direction change.
    row_from: u64,
    row_command: Command,
    column_command: Command,
    /// The line of the last command; none if that closed a row without a request.
    line: Option<u64>,
    stats: Stats,
}

impl State {
    fn new(config: &Config) -> Self {
        let hbm = &config.hbm;
        let burst = hbm.burst_bytes.div_ceil(hbm.bus_bytes_per_command_cycle);
        State {
            arriving: VecDeque::new(),
            queue: Queue::new(hbm.queue_depth, hbm.banks),
            scheduler: Scheduler::new(hbm),
            timers: BankTimers::new(hbm.timing, u64::from(burst), hbm.banks, hbm.bank_groups),
            refresh: Refresh::new(u64::from(hbm.timing.t_refi)),
            done: VecDeque::with_capacity(hbm.queue_depth as usize),
            turn: 0,
            command_from: u64::MAX,
            row_from: 0,
            row_command: Command::None,
            column_command: Command::None,
            line: None,
            stats: Stats::default(),
        }
    }
}

impl Channel {
    /// A channel with every row closed.
    pub fn new(path: Path, config: Config, slices: Vec<SlicePorts>, storage: Arc<Storage>) -> Self {
        let hbm = &config.hbm;
        let mut requests = ArrivalMask::default();
        slices.iter().for_each(|(port, _)| _ = requests.add(port));
        Channel {
            layout: Layout {
                banks: hbm.banks,
                groups: hbm.bank_groups,
                lines_per_row: (hbm.row_bytes / LINE as u32).max(1),
                mapping: config.map.mappings().hbm,
            },
            row_policy: RowPolicy::new(hbm),
            bursts: std::array::from_fn(|sectors| bursts(sectors as u8, hbm.burst_bytes as usize / SECTOR)),
            state: State::new(&config),
            requests,
            path,
            config,
            slices,
            storage,
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Stats {
        &self.state.stats
    }

    fn step(&mut self, now: Cycle, edge: u64) {
        self.state.row_command = Command::None;
        self.state.column_command = Command::None;
        self.respond(now, edge);
        if self.state.command_from <= edge {
            self.command(edge);
        }
        self.accept(now, edge);
    }

    /// Sends the oldest response, if it is due.
    fn respond(&mut self, now: Cycle, edge: u64) {
        let Some(&(due, port, _)) = self.state.done.front() else {
            return;
        };
        if due <= edge && self.slices[port].1.has_room(now) {
            let (_, _, packet) = self.state.done.pop_front().expect("a response is due");
            self.slices[port].1.send(now, packet);
        }
    }

    /// Does a refresh that is due, or sends at most one column command and one row command.
    fn command(&mut self, edge: u64) {
        if self.state.refresh.is_due(edge)
            && let Some(start) = self.refresh(edge)
        {
            self.state.command_from = start;
            return;
        }
        let requests = self.serve_requests(edge);
        self.state.command_from = requests.min(self.close_idle_row(edge));
    }

    /// Sends the commands of waiting requests. Gives the edge at which to try again.
    fn serve_requests(&mut self, edge: u64) -> u64 {
        if self.state.queue.len() == 0 {
            return u64::MAX;
        }
        self.choose_direction(edge);
        let column = self.column_command(edge);
        let row = self.row_command(edge);
        let State { queue, scheduler, .. } = &self.state;
        match queue.len() {
            0 => u64::MAX,
            _ => column.min(row).min(scheduler.changes_at(queue)),
        }
    }

    /// Does the refreshes that are due. If one must wait for a row to close, gives the edge at which it can start.
    fn refresh(&mut self, edge: u64) -> Option<u64> {
        let state = &mut self.state;
        let waits_until = state.refresh.catch_up(edge, &mut state.timers);
        if state.timers.banks.iter().all(|bank| bank.row.is_none()) {
            state.queue.all_rows_closed();
            state.row_from = 0;
        }
        waits_until
    }

    /// Lets the scheduler choose between reads and writes.
    fn choose_direction(&mut self, edge: u64) {
        let state = &mut self.state;
        let was_writing = state.scheduler.is_writing();
        state.scheduler.look(&state.queue, edge);
        if state.scheduler.is_writing() != was_writing {
            state.stats.turnarounds += 1;
            state.row_from = 0;
        }
    }

    /// Sends a column command, if one can go out. Gives the edge at which to try again.
    fn column_command(&mut self, edge: u64) -> u64 {
        let State {
            queue,
            scheduler,
            timers,
            ..
        } = &self.state;
        let (candidates, write) = (scheduler.columns(queue), scheduler.is_writing());
        // While the data bus is taken, no bank needs to be asked.
        let bus_free = timers.any_column_at(write);
        if candidates != 0 && bus_free > edge {
            return bus_free;
        }
        match queue.oldest_ready(candidates, edge, |bank| timers.column_at(bank, write)) {
            Choice::Now(n) => self.send_column(n, edge),
            Choice::At(at) => at,
        }
    }

    /// Sends an activate or a precharge for a request, if one can go out. Gives the edge at which to try again.
    fn row_command(&mut self, edge: u64) -> u64 {
        let State {
            queue,
            scheduler,
            timers,
            row_from,
            ..
        } = &self.state;
        if edge < *row_from {
            return *row_from;
        }
        let ready_at = |bank: usize| match timers.banks[bank].row {
            None => timers.activate_at(bank),
            Some(_) => timers.precharge_at(bank),
        };
        match queue.oldest_ready(scheduler.rows(queue), edge, ready_at) {
            Choice::Now(n) => self.send_row(n, edge),
            Choice::At(at) => {
                self.state.row_from = at.min(scheduler.changes_at(queue));
                at
            }
        }
    }

    /// Closes a row that no request needs, if the row policy says so. Gives the edge at which to try again.
    fn close_idle_row(&mut self, edge: u64) -> u64 {
        let state = &mut self.state;
        let Some((at, bank)) = self.row_policy.next(&state.timers.banks, &state.queue) else {
            return u64::MAX;
        };
        if at > edge {
            return at;
        }
        if state.row_command == Command::None {
            if state.column_command == Command::None {
                state.line = None;
            }
            self.close_row(bank, edge);
        }
        edge + 1
    }

    /// True if a request waits before the queue.
    fn one_waits(&self, now: Cycle) -> bool {
        self.requests.in_flight() != 0 && self.slices.iter().any(|(port, _)| port.is_ready(now))
    }

    /// Takes one request per edge into the queue.
    fn accept(&mut self, now: Cycle, edge: u64) {
        let taken = self.state.queue.len() + self.state.arriving.len();
        if taken == self.config.hbm.queue_depth as usize {
            self.state.stats.full_cycles += u64::from(self.one_waits(now));
        } else if self.requests.in_flight() != 0 {
            self.take_request(now, edge);
        }
        while self.state.arriving.front().is_some_and(|&(due, ..)| due <= edge)
            && let Some((_, port, packet)) = self.state.arriving.pop_front()
        {
            self.enqueue(packet, port, edge);
        }
    }

    /// Takes a request from the next slice that has sent one.
    fn take_request(&mut self, now: Cycle, edge: u64) {
        let mut port = self.state.turn;
        for _ in 0..self.slices.len() {
            let next = if port + 1 == self.slices.len() { 0 } else { port + 1 };
            if self.slices[port].0.is_ready(now)
                && let Some(mut packet) = self.slices[port].0.recv(now)
            {
                packet.note(Stage::Hbm, now);
                let due = edge + u64::from(self.config.way_cycles);
                self.state.turn = next;
                self.state.arriving.push_back((due, port, packet));
                return;
            }
            port = next;
        }
    }

    fn enqueue(&mut self, packet: Box<Packet>, port: usize, edge: u64) {
        let state = &mut self.state;
        let write = packet.kind == PacketKind::Store;
        *(if write {
            &mut state.stats.write_requests
        } else {
            &mut state.stats.read_requests
        }) += 1;
        let at = self.layout.locate(self.config.map.channel(packet.line).local);
        let open = state.timers.banks[at.bank as usize].row == Some(at.row);
        let entry = Entry {
            bursts: self.bursts[usize::from(packet.sectors & ALL_SECTORS)],
            packet,
            port: port as u16,
            at,
            write,
            found: RowState::Hit,
            arrived: edge,
        };
        state.queue.push(entry, open);
        state.command_from = 0;
        if !open {
            state.row_from = 0;
        }
    }

    fn has_command(&self) -> bool {
        self.state.row_command != Command::None || self.state.column_command != Command::None
    }

    fn activity(&mut self, now: Cycle, next_edge: u64) -> Activity {
        let mut next = self.state.command_from;
        // A command is on its bus for one edge.
        if self.has_command() || self.one_waits(now) {
            next = next_edge;
        }
        for queue in [&self.state.done, &self.state.arriving] {
            next = queue.front().map_or(next, |&(due, ..)| next.min(due));
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
        self.state = State::new(&self.config);
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.arriving.is_empty() && state.queue.len() == 0 && state.done.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = &self.state;
        let requests = count_width(self.config.hbm.queue_depth.into());
        probe.state("row_command", &Command::NAMES, Some(state.row_command as usize));
        probe.state("column_command", &Command::NAMES, Some(state.column_command as usize));
        probe.vector("line", 48, state.line.filter(|_| self.has_command()));
        probe.vector("queue", requests, Some(state.queue.len() as u64));
        probe.bit("writing", Some(state.scheduler.is_writing()));
        probe.vector("done", 24, Some(state.done.len() as u64));
        for (n, bank) in state.timers.banks.iter().enumerate() {
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
        self.state.stats.report(report);
        report.count("refreshes", self.state.refresh.done());
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        let State {
            arriving, queue, done, ..
        } = &self.state;
        let requests = arriving.len() + queue.len() + done.len();
        if requests > 0 {
            say(format!("{}: {requests} requests have no response yet", self.path));
        }
    }
}

#[cfg(test)]
mod tests;
