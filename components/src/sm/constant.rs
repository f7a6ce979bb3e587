//! The L1.5 constant cache of an SM: serves the misses of the sub-cores' operand caches and of the LSU's constant loads.
//!
//! ```text
//!                        +--------------------+
//!   scheduler request -->| look up --> delay -|--> scheduler fill
//!   lsu request -------->|    ^               |--> lsu fill
//!                        +----|---------------+
//!                            tags, arrival of each line
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `requests` | lines, from each sub-core's scheduler, then from the LSU |
//! | `fills` | the same lines, back |
//!
//! | Operation | Cycles from the request to its fill |
//! |---|---|
//! | hit, for a scheduler | `immediate_miss_latency` |
//! | hit, for the LSU | `l15_latency`, less the stages of a load outside |
//! | miss | `l2_latency` - `l15_latency` more |
//! | first request of a line of bank 0 in a launch | as a hit |
//! | miss of a line that is on its way | until the line arrives, and not less than a hit |
//!
//! One request is looked up per cycle. The first request of a launch empties the cache: the host may have changed the banks. Bank 0 has
//! the parameters of the launch. It is written into the L1.5 before the first CTA starts (assumed). On an H100, a warp that reads its
//! parameters takes as long as an empty one (own_h100). The least time between two launches may hide a part.
//! The lines come from the L2 with the latency of a hit there, as the host has just written them (assumed). They take no part of the
//! crossbar's and the L2's bandwidth. Instructions share the level on silicon, and their fetches always hit here.
//!
//! # Invariants
//! - Each request gets one fill.
//! - The fills of a requester wait in the order of their due cycles.
//!
//! Sources: jia18 (sizes and latencies on V100), huerta25 (delay of an issue).

use std::collections::VecDeque;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::cache::tags::{Shape, Tags};
use crate::config::{self, ReplacementPolicy};
use crate::proto::constant::ConstantLine;

/// Cycles of a miss of a sub-core in the two links.
const OUTSIDE_IMMEDIATE: u32 = 2;

/// Cycles of a constant load outside: issue to the LSU, the two links, and the way back to the scheduler.
const OUTSIDE_LOAD: u32 = 7;

/// The links of an L1.5 constant cache.
pub struct Ports {
    /// From each scheduler, then from the LSU.
    pub requests: Vec<InPort<ConstantLine>>,
    /// To each of them.
    pub fills: Vec<OutPort<ConstantLine>>,
}

warpwave_hw::show_ports!(Ports: requests, fills);

warpwave_hw::counters! {
    /// Counters of an L1.5 constant cache.
    pub struct Stats {
        pub requests: u64,
        /// Requests of lines that the cache holds.
        pub requests_hit: u64,
        /// Requests of lines that are on their way.
        pub requests_merged: u64,
    }
}

/// The state that `reset` clears.
struct State {
    tags: Tags,
    /// The cycle from which each way holds its line.
    arrives: Vec<Cycle>,
    /// The launch of the lines.
    grid: Option<u32>,
    /// Fills with the cycle of their sending, by requester. A hit overtakes misses.
    delays: Vec<VecDeque<(Cycle, ConstantLine)>>,
    /// Fills sent.
    sent: u64,
    /// The requester served last.
    last: usize,
    /// The line looked up in the last tick, for the waveform.
    line: Option<ConstantLine>,
    stats: Stats,
}

impl State {
    fn new(config: &config::Constant, requesters: usize) -> Self {
        let shape = shape(config);
        State {
            tags: Tags::new(shape, &ReplacementPolicy::Lru.new_replacement()),
            arrives: vec![Cycle::ZERO; shape.sets * shape.ways],
            grid: None,
            delays: vec![VecDeque::new(); requesters],
            sent: 0,
            last: 0,
            line: None,
            stats: Stats::default(),
        }
    }
}

fn shape(config: &config::Constant) -> Shape {
    let ways = config.l15_ways as usize;
    let sets = (config.l15_size / config.l15_line) as usize / ways;
    Shape {
        sets: sets.max(1),
        ways,
    }
}

/// The L1.5 constant cache of an SM.
pub struct ConstantCache {
    path: Path,
    config: config::Constant,
    ports: Ports,
    state: State,
}

warpwave_hw::warm!(ConstantCache);

impl ConstantCache {
    /// An empty cache. The last port is that of the LSU.
    pub fn new(path: Path, config: config::Constant, ports: Ports) -> Self {
        ConstantCache {
            state: State::new(&config, ports.requests.len()),
            path,
            config,
            ports,
        }
    }

    /// Sends the due fills, at most one to each requester.
    fn send_fills(&mut self, now: Cycle) {
        for (delay, port) in self.state.delays.iter_mut().zip(&mut self.ports.fills) {
            if delay.front().is_some_and(|&(due, _)| due <= now) && port.has_room(now) {
                let (_, line) = delay.pop_front().expect("a fill is due");
                port.send(now, line);
                self.state.sent += 1;
            }
        }
    }

    /// Looks one request up, round robin over the requesters.
    fn take_request(&mut self, now: Cycle) {
        self.state.line = None;
        let n = self.ports.requests.len();
        let from = self.state.last + 1;
        // The search begins behind the requester served last, so none starves.
        let next = (from..from + n).map(|at| at % n);
        let Some(requester) = next.into_iter().find(|&at| self.ports.requests[at].is_ready(now)) else {
            return;
        };
        let line = self.ports.requests[requester].take(now);
        self.state.last = requester;
        self.state.line = Some(line);
        let latency = match requester + 1 == n {
            true => self.config.l15_latency - OUTSIDE_LOAD,
            false => self.config.immediate_miss_latency - OUTSIDE_IMMEDIATE,
        };
        // A line on its way may arrive later than a hit would take.
        let due = (now + u64::from(latency)).max(self.look_up(line, u64::from(latency), now));
        let delay = &mut self.state.delays[requester];
        // Sorted by due cycle, and in order of arrival among equals.
        let at = delay.partition_point(|&(other, _)| other <= due);
        delay.insert(at, (due, line));
    }

    /// The cycle from which the cache can give a line. `latency` is that of a hit.
    fn look_up(&mut self, ConstantLine { grid, line }: ConstantLine, latency: u64, now: Cycle) -> Cycle {
        let state = &mut self.state;
        if state.grid != Some(grid) {
            // Lines in flight of the last launch are dropped with the others. Their fills are already in the delay queues.
            state.tags.retain(|_| false);
            state.grid = Some(grid);
        }
        let is_parameter = ConstantLine::is_in_bank_0(line, self.config.line);
        let line = ConstantLine::containing(line, self.config.line, self.config.l15_line);
        state.stats.requests += 1;
        if let Some(way) = state.tags.find(line) {
            state.tags.touch(way);
            let arrives = state.arrives[way];
            let counter = match arrives > now {
                true => &mut state.stats.requests_merged,
                false => &mut state.stats.requests_hit,
            };
            *counter += 1;
            return arrives;
        }
        let set = line as usize % state.tags.sets();
        // A requester that waits for an evicted line gets it: its fill is in a delay queue.
        let way = state.tags.victim(set, |_| true).expect("every line may go");
        state.tags.insert(way, line);
        if is_parameter {
            // The launch has written the line.
            state.stats.requests_hit += 1;
            state.arrives[way] = now;
            return now;
        }
        let more = u64::from(self.config.l2_latency - self.config.l15_latency);
        state.arrives[way] = now + latency + more;
        state.arrives[way]
    }

    /// When to tick next.
    fn activity(&self, now: Cycle) -> Activity {
        let requests = self.ports.requests.iter();
        if requests.into_iter().any(|port| port.is_ready(now)) {
            return Activity::Busy;
        }
        let fills = self.state.delays.iter().zip(&self.ports.fills);
        fills.fold(Activity::Idle, |next, (delay, port)| match delay.front() {
            Some(&(due, _)) if due > now => next.or(Activity::Until(due)),
            Some(_) => next.or(port.await_room(now)),
            None => next,
        })
    }
}

impl Component for ConstantCache {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // Fills first: a request of this cycle cannot be filled in it.
        self.send_fills(now);
        self.take_request(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config, self.ports.requests.len());
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        self.state.delays.iter().all(VecDeque::is_empty)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let line = self.state.line;
        probe.bit("lookup_valid", Some(line.is_some()));
        probe.vector("lookup_line", 24, line.map(|line| u64::from(line.line)));
        let fills: usize = self.state.delays.iter().map(VecDeque::len).sum();
        probe.vector("fills", count_width(1 << 12), Some(fills as u64));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// The fills of each requester are sorted by due cycle. Requests = fills sent + waiting. No line is in two ways.
    fn invariants(&self, check: &mut Invariants) {
        for (n, delay) in self.state.delays.iter().enumerate() {
            let in_order = delay.iter().zip(delay.iter().skip(1)).all(|(a, b)| a.0 <= b.0);
            check.equal(
                format_args!("fills of requester {n} out of order"),
                u64::from(!in_order),
                0,
            );
        }
        let stats = &self.state.stats;
        let found = stats.requests_hit + stats.requests_merged;
        check.at_most("constant lines found", found, stats.requests);
        let waiting: usize = self.state.delays.iter().map(VecDeque::len).sum();
        check.equal(
            "fills sent and waiting",
            self.state.sent + waiting as u64,
            stats.requests,
        );
        self.state.tags.invariants(check);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        let lines: usize = self.state.delays.iter().map(VecDeque::len).sum();
        if lines > 0 {
            say(format!("{}: {lines} constant lines are on their way", self.path));
        }
    }
}

#[cfg(test)]
mod tests;
