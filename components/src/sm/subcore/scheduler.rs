//! The warp scheduler of a sub-core: issues at most one instruction per cycle.
//!
//! ```text
//!   cta --WarpCommand--> [scheduler] --Issue---> dispatch unit --> pipes
//!       <--WarpEvent---              <--Release-- dispatch unit
//!                                    <--Resolved- branch unit
//!                                    <--LsuAck--- lsu
//! ```
//!
//! Stages of `tick`, in this order. Each stage is a function:
//!
//! | Stage | What it does |
//! |---|---|
//! | receive | warps start, barriers open, results release registers, branches resolve, memory-queue credits return |
//! | run timers | sleeps end, fetching restarts after a branch |
//! | arrive | fetched instructions enter the instruction buffers |
//! | evaluate | each changed warp gets its stall reason, or joins the ready set of its pipe |
//! | issue | the [policy](super::policy) chooses one of the ready warps whose pipe is free |
//! | fetch | one instruction is fetched, for one warp |
//! | retire | exited warps with nothing in flight leave their slot |
//! | send events | arrivals, traps and ends go to the CTA manager |
//!
//! A warp can issue if:
//! - its instruction buffer has an instruction, and no barrier, fence, unresolved branch or sleep blocks the warp;
//! - no register that the instruction reads or writes has a pending write;
//! - the issue interval of its math pipe is over, or the memory queue has a credit;
//! - the dispatch unit has room.
//!
//! A control instruction that reads no register is resolved at issue. Other control instructions go to the branch unit.
//!
//! | From, to | Cycles |
//! |---|---|
//! | issue to the dispatch unit | 1 |
//! | write-back to the issue of a dependent instruction | 1 |
//! | issue of a taken branch to the fetch at its target | `branch_latency` |
//!
//! # Invariants
//! - Each resident warp is charged one state per cycle.
//! - A warp is in the ready set if and only if its `state` is `None`.

mod control;
mod evaluate;
mod issue;
mod ready;
mod receive;
mod view;

pub use view::Stats;

use warpwave_hw::bits::ones;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::arrivals::ArrivalMask;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::config::SchedulerPolicy;
use crate::proto::event::{EventKind, Log};
use crate::proto::issue::{Issue, Release};
use crate::proto::warp::{LsuAck, Resolved, WarpCommand, WarpEvent};
use crate::sm::subcore::ibuffer::IBuffers;
use crate::sm::subcore::policy::{SchedulingPolicy, WarpSelector};
use crate::sm::subcore::warp::{Warp, Warps};
use ready::{N_GROUPS, Ready};
use view::LastTick;

/// Parameters of a scheduler.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sub-core in its SM.
    pub subcore: u8,
    /// Warp slots, at most 32.
    pub warps: usize,
    /// Policy that chooses the warp that issues.
    pub policy: SchedulerPolicy,
    /// Depth of a warp's instruction buffer.
    pub ibuffer_entries: u32,
    /// Cycles of a fetch.
    pub fetch_latency: u32,
    /// Cycles from a branch's issue to the fetch at its target.
    pub branch_latency: u32,
    /// Entries of the sub-core's memory queue at the LSU.
    pub memory_queue: u32,
    /// Core clock in kHz, for sleeps.
    pub core_khz: u32,
}

/// The links of a scheduler.
pub struct Ports {
    /// Warps to start and open barriers, from the CTA manager.
    pub command: InPort<WarpCommand>,
    /// Arrivals at barriers, traps and ends of warps, to the CTA manager.
    pub event: OutPort<WarpEvent>,
    /// Issued instructions, to the dispatch unit.
    pub issue: OutPort<Issue>,
    /// Completed instructions, from the dispatch unit.
    pub release: InPort<Release>,
    /// Resolved control instructions, from the branch unit.
    pub resolved: InPort<Resolved>,
    /// Credits of the memory queue and completed stores, from the LSU.
    pub ack: InPort<LsuAck>,
}

warpwave_hw::show_ports!(Ports: command, event, issue, release, resolved, ack);

/// Numbers of the input ports in `arrivals`.
const COMMAND: u32 = 0;
const ACK: u32 = 1;
const RELEASE: u32 = 2;
const RESOLVED: u32 = 3;

/// The scheduler.
pub struct Scheduler {
    path: Path,
    config: Config,
    ports: Ports,
    /// The input ports with messages in flight.
    arrivals: ArrivalMask,
    log: Log,
    /// Chooses among the eligible warps.
    selector: WarpSelector,
    state: State,
}

/// State that `reset` clears. Sets of warps are masks: bit i for slot i.
struct State {
    /// The warp slots.
    warps: Warps,
    /// The instruction buffer of each slot, and the fetches in flight.
    ibuffers: IBuffers,
    /// The warps without a stall reason, by the pipe that each needs.
    ready: Ready,
    /// First cycle in which each pipe accepts an instruction. [`Cycle::NEVER`] for the LSU while no credit is left.
    pipe_free_at: [Cycle; N_GROUPS],
    /// Credits of the memory queue: its free entries.
    queue_credits: u32,
    /// Warps to evaluate, after a change that may end or begin a stall.
    reevaluate: u32,
    /// Warps whose lanes have all exited.
    exited: u32,
    /// Warps that may retire: less in flight than at the last retire stage, or a new stall reason.
    retire_candidates: u32,
    /// Warps with a `resume_at` in the future: asleep, or waiting to fetch at a branch target.
    timers: u32,
    /// Events that wait for room in the link.
    outbox: Vec<WarpEvent>,
    /// First cycle that is not charged to the ready warps. From this cycle on, all of them are throttled.
    charged_until: Cycle,
    /// First cycle of the current interval with a resident warp.
    active_since: Option<Cycle>,
    /// Actions of the last tick, for the waveform.
    last_tick: LastTick,
    stats: Stats,
}

warpwave_hw::warm!(State: ibuffers, ready, pipe_free_at, stats, warps);

impl State {
    fn new(config: &Config) -> Self {
        let n = config.warps;
        State {
            warps: Warps::new(n),
            ibuffers: IBuffers::new(n, config.ibuffer_entries, config.fetch_latency),
            ready: Ready::default(),
            pipe_free_at: [Cycle::ZERO; N_GROUPS],
            queue_credits: config.memory_queue,
            reevaluate: 0,
            exited: 0,
            retire_candidates: 0,
            timers: 0,
            outbox: Vec::with_capacity(2 * n),
            charged_until: Cycle::ZERO,
            active_since: None,
            last_tick: LastTick::default(),
            stats: Stats::default(),
        }
    }

    /// The resident warp of a message or a timer.
    fn warp(&mut self, slot: usize) -> &mut Warp {
        self.warps
            .get_mut(slot)
            .expect("messages and timers belong to resident warps")
    }
}

impl Scheduler {
    /// A scheduler without warps.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        let n = config.warps;
        assert!(n <= 32, "{path}: at most 32 warp slots, not {n}");
        let mut arrivals = ArrivalMask::default();
        assert_eq!(arrivals.add(&ports.command), COMMAND);
        assert_eq!(arrivals.add(&ports.ack), ACK);
        assert_eq!(arrivals.add(&ports.release), RELEASE);
        assert_eq!(arrivals.add(&ports.resolved), RESOLVED);
        Scheduler {
            selector: WarpSelector::new(config.policy, n),
            state: State::new(&config),
            arrivals,
            log: Log::default(),
            path,
            config,
            ports,
        }
    }

    /// Replaces the policy of the configuration with a user's.
    pub fn set_policy(&mut self, policy: Box<dyn SchedulingPolicy>) {
        self.selector.set_policy(policy);
    }

    /// Sends events to `log` from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    #[inline]
    fn emit(&self, at: Cycle, slot: usize, kind: EventKind) {
        self.log.emit(at, self.config.subcore, slot as u8, kind);
    }

    /// Moves fetched instructions into the buffers.
    fn arrive(&mut self, now: Cycle) {
        // A warp whose buffer was empty may issue now.
        self.state.reevaluate |= self.state.ibuffers.arrive(now);
    }

    fn fetch(&mut self, now: Cycle) {
        let selector = &self.selector;
        if let Some(slot) = self.state.ibuffers.fetch(now, |set| selector.youngest(set)) {
            self.emit(now, slot, EventKind::Fetch);
        }
    }

    fn send_events(&mut self, now: Cycle) {
        while !self.state.outbox.is_empty() && self.ports.event.has_room(now) {
            self.ports.event.send(now, self.state.outbox.remove(0));
        }
    }

    /// The next cycle with a fetch, a timer, an event to send, or a free pipe for a ready warp.
    fn activity(&self, now: Cycle) -> Activity {
        let state = &self.state;
        if state.ibuffers.is_fetching() || !state.outbox.is_empty() || state.reevaluate != 0 {
            return Activity::Busy;
        }
        let timers = ones(state.timers).filter_map(|slot| Some(state.warps.get(slot)?.resume_at));
        let next = timers.fold(state.ibuffers.next_arrival(), Cycle::min);
        self.next_issue(now, next)
    }
}

warpwave_hw::warm!(Scheduler: selector; state, ports);

impl Component for Scheduler {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.state.last_tick = LastTick::default();
        self.receive(now);
        self.run_timers(now);
        self.arrive(now);
        self.evaluate(now);
        self.issue(now);
        self.fetch(now);
        self.retire(now + 1);
        self.send_events(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config);
        self.selector.clear();
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        self.state.warps.resident() == 0 && self.state.outbox.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.show(probe);
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        self.say_waits(say);
    }
}

#[cfg(test)]
mod tests;
