//! One memory channel: a request queue, a scheduler, banks in bank groups, and a data bus.
//!
//! ```text
//!               +----------------------------------------------------+
//!   slice 0 --->|                     +- row commands -> banks       |
//!   slice 1 --->|-- queue, scheduler -+                              |
//!    ...        |                     +- column commands -> data bus |---> slices, after `response_latency`
//!               +----------------------------------------------------+
//!                                                    |
//!                                                 storage
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `slices`, two links for each slice of the channel | fetches (loads) and write-backs (stores); each packet returns as its response |
//!
//! | Stage at a command-clock edge, in this order | What it does |
//! |---|---|
//! | respond | sends the oldest response, if it is due and its slice has room |
//! | command | does due refreshes; then sends at most one column command and one row command (HBM has a bus for each) |
//! | accept | takes one request, round robin over the slices; enqueues requests accepted `enqueue_latency` ago |
//!
//! | Read, idle channel | Command cycles from acceptance to the response |
//! |---|---|
//! | one burst, row open | `enqueue_latency` + 1 + CL + cycles of a burst + `response_latency` |
//! | one burst, bank closed | tRCD more |
//! | one burst, another row open | tRP + tRCD more |
//! | each further burst of a line | tCCD_L more, since a line lies in one bank group |
//!
//! A write has WL in place of CL. The scheduler (`scheduler`) chooses the requests for the next commands. The row policy (`row_policy`:
//! open, closed, timeout) closes rows that no request needs. The last column command of a request moves all its bytes from or to storage.
//! Source: JEDEC JESD235 (HBM) for the commands and the names of the timings.
//!
//! # Invariants
//! - Requests of one line are served in order of arrival.
//! - Every rule of `timing` holds between any two commands.

mod burst;
mod command;
mod stats;

pub use stats::Stats;

use std::collections::VecDeque;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::arrivals::ArrivalMask;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::{Cycle, Domain};

use super::checker::TimingChecker;
use super::layout::Layout;
use super::queue::{Entry, NextCommand, Queue, RowState};
use super::refresh::Refresh;
use super::row_policy::RowPolicy;
use super::scheduler::{Schedule, Scheduler};
use super::timing::BankTimers;
use crate::config::Hbm;
use crate::proto::mem::{ALL_SECTORS, LINE, Packet, PacketKind, Purpose, SECTOR, SECTORS, Stage};
use crate::proto::noc::AddressMap;
use crate::storage::Storage;
use burst::bursts;
use command::Command;

/// Parameters of a channel.
#[derive(Clone, Debug)]
pub struct Config {
    /// The `hbm` keys of the preset: shape, timing, policies.
    pub hbm: Hbm,
    /// Number of the channel. At one time, the channels refresh different single banks.
    pub number: u32,
    /// Command cycles from acceptance to the queue: the part of `hbm.access_latency` that no other stage takes.
    pub enqueue_latency: u32,
    /// Command cycles from the last data on the bus to the response: `hbm.latency_extra`, if `hbm.access_latency` leaves as much.
    pub response_latency: u32,
    /// The command clock.
    pub clock: Domain,
    /// Map of lines to channels.
    pub map: Arc<AddressMap>,
}

/// The links of a channel to one slice.
pub struct SlicePorts {
    /// Fetches and write-backs, from the slice.
    pub requests: InPort<Box<Packet>>,
    /// Fills and acknowledgements, to the slice.
    pub responses: OutPort<Box<Packet>>,
}

warpwave_hw::show_ports!(SlicePorts: requests, responses);

/// One memory channel.
pub struct Channel {
    path: Path,
    config: Config,
    slices: Vec<SlicePorts>,
    /// The slices with a request in flight to the channel.
    request_arrivals: ArrivalMask,
    storage: Arc<Storage>,
    layout: Layout,
    row_policy: RowPolicy,
    /// Table from a mask of sectors to the mask of the bursts that hold them.
    bursts: [u8; 1 << SECTORS],
    /// Checks every command, in a run that checks invariants.
    checker: Option<Box<TimingChecker>>,
    state: State,
}

/// A packet in a fixed delay, before the queue or after the data bus.
struct Delayed {
    /// Edge at which the delay ends.
    due: u64,
    /// Index of the slice in `slices`.
    port: usize,
    packet: Box<Packet>,
}

/// The state that `reset` clears. Times are edges of the command clock.
struct State {
    /// Accepted requests on their way to the queue.
    arriving: VecDeque<Delayed>,
    queue: Queue,
    scheduler: Scheduler,
    timers: BankTimers,
    refresh: Refresh,
    /// The bank that a due refresh of a single bank drains: it gets no command of a request.
    draining: Option<usize>,
    /// Complete requests, until each is sent as a response.
    responses: VecDeque<Delayed>,
    /// Index of the slice that the round robin tries first.
    next_port: usize,
    /// Next edge for the command stage. 0 after a new request, `u64::MAX` without work. An idle
    /// channel does not tick for a refresh: its next command stage applies the missed refreshes.
    command_from: u64,
    /// Edge of the next search for a row command. 0 means at once, after an event that may allow a command. Such events: an opened or closed
    /// row, a turn of the bus, a completed request, a new request without its row open.
    row_from: u64,
    /// Command on the row bus at this edge.
    row_command: Command,
    /// Command on the column bus at this edge.
    column_command: Command,
    /// Line of the request that got the last command, for the waveform. `None` if the row policy sent it.
    command_line: Option<u64>,
    stats: Stats,
}

impl State {
    fn new(config: &Config) -> Self {
        let hbm = &config.hbm;
        State {
            arriving: VecDeque::new(),
            queue: Queue::new(hbm.queue_depth, hbm.banks),
            scheduler: Scheduler::new(hbm),
            timers: BankTimers::new(hbm),
            refresh: Refresh::new(hbm, config.number),
            draining: None,
            responses: VecDeque::with_capacity(hbm.queue_depth as usize),
            next_port: 0,
            command_from: u64::MAX,
            row_from: 0,
            row_command: Command::None,
            column_command: Command::None,
            command_line: None,
            stats: Stats::default(),
        }
    }

    /// The requests of the bank that a refresh drains.
    #[inline]
    fn drained(&self) -> u64 {
        self.draining.map_or(0, |bank| self.queue.of_bank(bank))
    }
}

impl Channel {
    /// A channel with every row closed.
    pub fn new(path: Path, config: Config, slices: Vec<SlicePorts>, storage: Arc<Storage>) -> Self {
        let hbm = &config.hbm;
        let mut request_arrivals = ArrivalMask::default();
        slices
            .iter()
            .for_each(|ports| _ = request_arrivals.add(&ports.requests));
        Channel {
            layout: Layout {
                banks: hbm.banks,
                groups: hbm.bank_groups,
                lines_per_row: (hbm.row_bytes / LINE as u32).max(1),
                mapping: config.map.mappings().hbm,
            },
            row_policy: RowPolicy::new(hbm),
            bursts: std::array::from_fn(|sectors| bursts(sectors as u8, hbm.burst_bytes as usize / SECTOR)),
            checker: None,
            state: State::new(&config),
            request_arrivals,
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

    /// Runs the stages at one edge of the command clock.
    fn step(&mut self, now: Cycle, edge: u64) {
        self.state.row_command = Command::None;
        self.state.column_command = Command::None;
        // From the last stage to the first, so a request passes one stage per edge.
        self.respond(now, edge);
        if self.state.command_from <= edge {
            self.command(edge);
        }
        self.accept(now, edge);
    }

    /// Sends the oldest response, if it is due and its slice has room.
    fn respond(&mut self, now: Cycle, edge: u64) {
        let is_due = |first: &mut Delayed| first.due <= edge && self.slices[first.port].responses.has_room(now);
        if let Some(response) = self.state.responses.pop_front_if(is_due) {
            self.slices[response.port].responses.send(now, response.packet);
        }
    }

    /// Does due refreshes, then sends at most one column command and one row command.
    fn command(&mut self, edge: u64) {
        let refresh = match self.state.refresh.is_due(edge) {
            true => self.refresh(edge),
            false => None,
        };
        self.state.draining = refresh.and_then(|waiting| waiting.bank);
        let refresh_at = refresh.map_or(u64::MAX, |waiting| waiting.until);
        // A refresh of all banks that must wait blocks all commands until it starts.
        if refresh.is_some() && self.state.draining.is_none() {
            self.state.command_from = refresh_at;
            return;
        }
        // Requests go first, so the row policy gets the row bus only if it is free.
        let retry_at = match self.serve_requests(edge) {
            // Without requests the refresh can wait for the next one.
            u64::MAX if self.state.queue.len() == 0 => u64::MAX,
            retry_at => retry_at.min(refresh_at),
        };
        self.state.command_from = retry_at.min(self.close_idle_row(edge));
    }

    /// Sends commands of requests. Returns the edge to try again: a bank is ready then, or the scheduler changes its choice.
    fn serve_requests(&mut self, edge: u64) -> u64 {
        if self.state.queue.len() == 0 {
            return u64::MAX;
        }
        self.choose_direction(edge);
        // Column first: a request completed here no longer keeps its row open.
        let column = self.try_column_command(edge);
        let row = self.try_row_command(edge);
        let State { queue, scheduler, .. } = &self.state;
        // The column command may have served the last request.
        match queue.len() {
            0 => u64::MAX,
            _ => column.min(row).min(scheduler.next_change(queue)),
        }
    }

    /// Lets the scheduler choose between reads and writes.
    fn choose_direction(&mut self, edge: u64) {
        let state = &mut self.state;
        let was_writing = state.scheduler.is_writing();
        state.scheduler.update(&state.queue, edge);
        if state.scheduler.is_writing() != was_writing {
            state.stats.turnarounds += 1;
            state.row_from = 0;
        }
    }

    /// Sends a column command, if one is possible. Returns the edge at which to try again.
    fn try_column_command(&mut self, edge: u64) -> u64 {
        let state = &self.state;
        let (timers, write) = (&state.timers, state.scheduler.is_writing());
        let candidates = state.scheduler.column_candidates(&state.queue) & !state.drained();
        // No bank can get a column command before `any_bank_at`, so an earlier search is useless.
        let any_bank_at = timers.any_column_at(write);
        if candidates != 0 && any_bank_at > edge {
            return any_bank_at;
        }
        match state
            .queue
            .oldest_ready(candidates, edge, |bank| timers.column_at(bank, write))
        {
            NextCommand::Now(n) => self.send_column(n, edge),
            NextCommand::At(at) => at,
        }
    }

    /// Sends an activate or a precharge for a request, if one is possible. Returns the edge at which to try again.
    fn try_row_command(&mut self, edge: u64) -> u64 {
        let state = &mut self.state;
        if edge < state.row_from {
            return state.row_from;
        }
        // A refresh may have used the row bus at this edge.
        if state.row_command != Command::None {
            return edge + 1;
        }
        let timers = &state.timers;
        let ready_at = |bank: usize| match timers.banks[bank].row {
            None => timers.activate_at(bank),
            Some(_) => timers.precharge_at(bank),
        };
        let candidates = state.scheduler.row_candidates(&state.queue) & !state.drained();
        match state.queue.oldest_ready(candidates, edge, ready_at) {
            NextCommand::Now(n) => self.send_row(n, edge),
            NextCommand::At(at) => {
                state.row_from = at.min(state.scheduler.next_change(&state.queue));
                at
            }
        }
    }

    /// True if a slice's request has arrived.
    fn has_request(&self, now: Cycle) -> bool {
        self.request_arrivals.in_flight() != 0 && self.slices.iter().any(|ports| ports.requests.is_ready(now))
    }

    /// Accepts at most one request, then enqueues the accepted requests that are due.
    fn accept(&mut self, now: Cycle, edge: u64) {
        // Each accepted request reserves a queue entry.
        let accepted = self.state.queue.len() + self.state.arriving.len();
        if accepted == self.config.hbm.queue_depth as usize {
            self.state.stats.full_cycles += u64::from(self.has_request(now));
        } else if self.request_arrivals.in_flight() != 0 {
            self.take_request(now, edge);
        }
        // After `take_request`: with an enqueue latency of 0 a request enters the queue at once.
        while let Some(request) = self.state.arriving.pop_front_if(|request| request.due <= edge) {
            self.enqueue(request, edge);
        }
    }

    /// Takes a request from the next slice that has one, round robin.
    fn take_request(&mut self, now: Cycle, edge: u64) {
        let mut port = self.state.next_port;
        for _ in 0..self.slices.len() {
            let next = if port + 1 == self.slices.len() { 0 } else { port + 1 };
            if let Some(mut packet) = self.slices[port].requests.recv(now) {
                packet.note(Stage::Hbm, now);
                let due = edge + u64::from(self.config.enqueue_latency);
                self.state.next_port = next;
                return self.state.arriving.push_back(Delayed { due, port, packet });
            }
            port = next;
        }
    }

    /// Puts a request into the queue with its bank, row and bursts.
    fn enqueue(&mut self, request: Delayed, edge: u64) {
        let Delayed { port, packet, .. } = request;
        let state = &mut self.state;
        let write = packet.kind == PacketKind::Store;
        let requests = match write {
            true if packet.purpose == Purpose::Flush => &mut state.stats.flush_requests,
            true => &mut state.stats.write_requests,
            false => &mut state.stats.read_requests,
        };
        *requests += 1;
        let location = self.layout.locate(self.config.map.channel(packet.line).local);
        let open = state.timers.banks[location.bank as usize].row == Some(location.row);
        let entry = Entry {
            bursts: self.bursts[usize::from(packet.sectors & ALL_SECTORS)],
            packet,
            port: port as u16,
            location,
            write,
            // `send_row` changes this state if the request needs an activate or a precharge.
            row_state: RowState::Hit,
            arrived: edge,
        };
        state.queue.push(entry, open);
        // The new request may get a command at the next edge.
        state.command_from = 0;
        if !open {
            state.row_from = 0;
        }
    }

    /// True if a command is on a bus at this edge.
    fn has_command(&self) -> bool {
        self.state.row_command != Command::None || self.state.column_command != Command::None
    }

    /// When to tick next. `next_edge` is the first edge after this tick.
    fn activity(&mut self, now: Cycle, next_edge: u64) -> Activity {
        let mut next = self.state.command_from;
        // A command is on its bus for one edge: the next tick clears it for the waveform.
        if self.has_command() || self.has_request(now) {
            next = next_edge;
        }
        for queue in [&self.state.responses, &self.state.arriving] {
            next = queue.front().map_or(next, |first| next.min(first.due));
        }
        match next {
            u64::MAX => Activity::Idle,
            edge => Activity::Until(self.config.clock.cycle_of(edge.max(next_edge))),
        }
    }
}

// The simulator prefetches no field of a channel into the CPU's cache.
warpwave_hw::warm!(Channel);

impl Component for Channel {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let edges = self.config.clock.edges(now);
        // If the command clock is faster, a core cycle has several edges. If it is slower, some core cycles have none.
        for edge in edges.clone() {
            self.step(now, edge);
        }
        self.activity(now, edges.end)
    }

    fn reset(&mut self) {
        self.slices.iter_mut().for_each(|ports| ports.requests.clear());
        self.state = State::new(&self.config);
        self.checker.iter_mut().for_each(|checker| checker.reset());
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.arriving.is_empty() && state.queue.len() == 0 && state.responses.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = &self.state;
        let queue_width = count_width(self.config.hbm.queue_depth.into());
        probe.state("row_command", &Command::NAMES, Some(state.row_command as usize));
        probe.state("column_command", &Command::NAMES, Some(state.column_command as usize));
        // A waveform shows addresses in 48 bits.
        probe.vector("line", 48, state.command_line.filter(|_| self.has_command()));
        // A counter, because several bursts may begin in one core cycle. Like `dram__bytes`, it leaves out the write-back after a launch.
        let moved = state.stats.bytes_read + state.stats.bytes_written;
        probe.vector("bytes_moved", 48, Some(moved & ((1 << 48) - 1)));
        probe.vector("queue", queue_width, Some(state.queue.len() as u64));
        probe.bit("writing", Some(state.scheduler.is_writing()));
        // No parameter bounds the number of responses. A width of 24 bits is assumed to be enough.
        probe.vector("responses", 24, Some(state.responses.len() as u64));
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

    fn arm_invariants(&mut self) {
        self.checker = Some(Box::new(TimingChecker::new(&self.config.hbm)));
    }

    /// Each request is ready or waits for an older one of its line, in the set of its bank. The queue keeps its depth. Commands keep the
    /// timing table of the standard.
    fn invariants(&self, check: &mut Invariants) {
        self.state.queue.invariants(self.config.hbm.queue_depth, check);
        let violation = self.checker.as_ref().and_then(|checker| checker.violation());
        let cycle = |edge| self.config.clock.cycle_of(edge);
        check.none(violation.map(|violation| format!("command of cycle {}: {violation}", cycle(violation.edge))));
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
        report.count("refreshes", self.state.refresh.n_done());
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        let state = &self.state;
        let requests = state.arriving.len() + state.queue.len() + state.responses.len();
        if requests > 0 {
            say(format!("{}: {requests} requests have no response yet", self.path));
        }
    }
}

#[cfg(test)]
mod tests;
