//! The warp scheduler of a sub-core: issues at most one instruction per cycle.
//!
//! ```text
//!   cta --WarpCommand--> [scheduler] --Issue---> dispatch unit --> pipes
//!       <--WarpEvent---              <--Release-- dispatch unit
//!                                    <--Resolved- branch unit
//!                                    <--LsuAck--- lsu
//!                                    <--ConstantLine--> constant cache
//! ```
//!
//! Stages of `tick`, in this order. Each stage is a function:
//!
//! | Stage | What it does |
//! |---|---|
//! | receive | warps start, barriers open, results release registers, stores complete, branches resolve, memory-queue credits and constant lines come |
//! | run timers | due sleeps end; warps whose guard predicate becomes visible are marked for evaluation; fetch restarts at a branch target |
//! | fill ibuffers | fetched instructions enter the instruction buffers |
//! | evaluate | each warp whose hazards may have changed gets a stall reason, or joins the ready group of its pipe |
//! | send requests | lines of constant operands that are absent are requested from the L1.5 |
//! | issue | the [policy](super::policy) chooses one of the ready warps whose pipe is free |
//! | fetch | at most one instruction is fetched, for one warp |
//! | retire | exited warps with nothing in flight leave their slot |
//! | send events | barrier arrivals, traps and warp ends go to the CTA manager |
//!
//! Two sets lead to the choice. A *ready* warp has no hazard: evaluate finds it when something changes, not in every cycle. An
//! *eligible* warp is ready and its pipe is free: issue finds it in each tick. The policy chooses one of the eligible warps.
//!
//! A warp can issue if:
//! - nothing blocks it: no barrier, fence, wait for asynchronous operations, unresolved branch or sleep;
//! - its instruction buffer has an instruction;
//! - no register that the instruction reads or writes has a pending write;
//! - its guard predicate is visible: no write of it is pending, and its last writer issued at least `guard_latency` cycles ago;
//! - its `Order` (`proto::predecoded`) holds: a barrier or fence waits for earlier memory accesses of its warp;
//! - its constant operands are in the sub-core's constant cache (module [`immediate`]);
//! - the instruction's pipe is free: a math pipe after its issue interval, the LSU while the memory queue has a credit;
//! - the dispatch unit has room.
//!
//! A control instruction that reads no register and no predicate is resolved at issue. Other control instructions go to the branch unit.
//!
//! | From, to | Cycles |
//! |---|---|
//! | issue to the dispatch unit | 1 |
//! | write-back to the issue of a dependent instruction | 1 |
//! | issue of an instruction that writes a predicate to the issue of one that the predicate guards | `guard_latency` |
//! | issue of a taken branch to the fetch at its target | `branch_latency` |
//!
//! # Invariants
//! - Each cycle of a resident warp is charged to one profiler state: a stall reason, a throttle, `selected`,
//!   `not_selected` or `dispatch_stall`.
//! - A warp is in the ready set if and only if `Warp::stall` is `None`. A throttled warp is ready: it lacks only a free pipe or
//!   a credit of the memory queue.

mod control;
mod evaluate;
mod guard_timers;
mod issue;
mod ledger;
mod ready;
mod receive;
// Outputs: counters, waveform signals, and the stall reasons for the report of a deadlock.
mod view;

pub use view::Stats;

use warpwave_hw::bits::ones;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::arrivals::ArrivalMask;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::config::{self, SchedulerPolicy, SlotRelease};
use crate::proto::event::{EventKind, Log};
use crate::proto::issue::{Issue, Release};
use crate::proto::warp::{LsuAck, MAX_SLOTS, Resolved, SlotMask, WarpCommand, WarpEvent};
use crate::sm::subcore::ibuffer::IBuffers;
use crate::sm::subcore::immediate::{self, Immediate};
use crate::sm::subcore::policy::{SchedulingPolicy, WarpSelector};
use crate::sm::subcore::stall::WarpState;
use crate::sm::subcore::warp::{Warp, Warps};
pub(crate) use control::longest_sleep;
use guard_timers::GuardTimers;
use ledger::Ledger;
use ready::{N_READY_GROUPS, Ready};
use view::LastTick;

/// Parameters of a scheduler.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of the sub-core within the SM.
    pub subcore: u8,
    /// Warp slots, at most [`MAX_SLOTS`].
    pub warps: usize,
    /// Policy that chooses the warp that issues. Preset key `sm.scheduler`.
    pub policy: SchedulerPolicy,
    /// When an ended warp frees its slot. Preset key `sm.slot_release`.
    pub slot_release: SlotRelease,
    /// Depth of a warp's instruction buffer, in instructions.
    pub ibuffer_entries: u32,
    /// Cycles from a fetch to the instruction's arrival in the buffer.
    pub fetch_latency: u32,
    /// Cycles from the issue of a taken branch to the fetch at its target.
    pub branch_latency: u32,
    /// Cycles from the issue of a predicate's writer to the issue of an instruction that the predicate guards.
    pub guard_latency: u32,
    /// Least cycles from a WARPSYNC to the next issue of its warp. They count from its issue, or from its resolution if the branch unit
    /// resolves it.
    pub warp_barrier_latency: u32,
    /// Depth of the sub-core's memory queue at the LSU. The scheduler starts with this number of credits.
    pub memory_queue: u32,
    /// Constant caches.
    pub constant: config::Constant,
    /// Core clock in kHz, for sleeps.
    pub core_khz: u32,
}

/// The links of a scheduler.
pub struct Ports {
    /// Warp starts and barrier releases, from the CTA manager.
    pub command: InPort<WarpCommand>,
    /// Barrier arrivals, traps and warp ends, to the CTA manager.
    pub event: OutPort<WarpEvent>,
    /// Issued instructions, to the dispatch unit.
    pub issue: OutPort<Issue>,
    /// Completed instructions, from the dispatch unit.
    pub release: InPort<Release>,
    /// Resolved control instructions, from the branch unit.
    pub resolved: InPort<Resolved>,
    /// Credits of the memory queue and completed stores, from the LSU.
    pub ack: InPort<LsuAck>,
    /// To and from the L1.5 constant cache, if the SM has one. Without it every constant operand is found.
    pub constant: Option<immediate::Ports>,
}

warpwave_hw::show_ports!(Ports: command, event, issue, release, resolved, ack, constant);

// Bits of the input ports in `arrivals`, in the order in which `Scheduler::new` adds the ports.
const COMMAND: u32 = 0;
const ACK: u32 = 1;
const RELEASE: u32 = 2;
const RESOLVED: u32 = 3;
const CONSTANT: u32 = 4;

/// The scheduler.
pub struct Scheduler {
    path: Path,
    config: Config,
    ports: Ports,
    /// The input ports with messages in flight.
    arrivals: ArrivalMask,
    /// Sink of trace events. Off without a subscriber.
    log: Log,
    /// The policy, and the age of each warp.
    selector: WarpSelector,
    /// A second account of warps and instructions, in a run that checks invariants.
    ledger: Option<Box<Ledger>>,
    state: State,
}

/// State that `reset` clears. Sets of warps are masks: bit i for slot i.
struct State {
    /// The warp slots.
    warps: Warps,
    /// The instruction buffer of each slot, and the fetches in flight.
    ibuffers: IBuffers,
    /// The immediate constant cache (IMC), for the constant operands of instructions.
    immediate: Immediate,
    /// The warps without a stall reason, by the pipe that each needs.
    ready: Ready,
    /// First cycle in which each [`Ready`] group can issue. The memory queue has two groups, one per stall reason: `lg_throttle` for local
    /// and global memory, `mio_throttle` for the rest. While the queue has no credit, both hold [`Cycle::NEVER`].
    pipe_free_at: [Cycle; N_READY_GROUPS],
    /// Credits of the memory queue: its free entries.
    queue_credits: u32,
    /// Warps to evaluate: a stall may have begun or ended.
    reevaluate: SlotMask,
    /// Warps whose lanes have all exited.
    exited: SlotMask,
    /// Warps for the retire stage to test. A warp joins when one of its operations ends, or when its stall reason changes. The second case
    /// covers a warp that exits with nothing in flight: no later message would make it join.
    retire_candidates: SlotMask,
    /// Warps with a `resume_at` in the future: paused, or waiting to fetch at a branch target.
    resuming: SlotMask,
    /// Cycles in which waits for guards end.
    guard_timers: GuardTimers,
    /// Messages to the CTA manager that wait for room in the link.
    outbox: Vec<WarpEvent>,
    /// First cycle not yet charged to the ready warps. While all of them are throttled, the scheduler need not tick. One later step charges
    /// these cycles, before the ready set changes.
    charged_until: Cycle,
    /// Cycle since which at least one warp has been resident. `None` while no warp is.
    active_since: Option<Cycle>,
    /// Issue and retirements of the last tick, for the waveform.
    last_tick: LastTick,
    stats: Stats,
}

// Most ticks read these fields. The simulator prefetches them to the host CPU's cache.
warpwave_hw::warm!(State: ibuffers, ready, pipe_free_at, stats, warps);

impl State {
    fn new(config: &Config) -> Self {
        let n = config.warps;
        State {
            warps: Warps::new(n),
            ibuffers: IBuffers::new(n, config.ibuffer_entries, config.fetch_latency),
            immediate: Immediate::new(&config.constant, n),
            ready: Ready::default(),
            pipe_free_at: [Cycle::ZERO; N_READY_GROUPS],
            queue_credits: config.memory_queue,
            reevaluate: 0,
            exited: 0,
            retire_candidates: 0,
            resuming: 0,
            guard_timers: GuardTimers::default(),
            // Initial room for two events per warp. The queue grows if more wait.
            outbox: Vec::with_capacity(2 * n),
            charged_until: Cycle::ZERO,
            active_since: None,
            last_tick: LastTick::default(),
            stats: Stats::default(),
        }
    }

    /// The warp in `slot`.
    ///
    /// # Panics
    /// If the slot is empty.
    fn warp(&mut self, slot: usize) -> &mut Warp {
        self.warps
            .get_mut(slot)
            .expect("messages and timers belong to resident warps")
    }
}

impl Scheduler {
    /// A scheduler without warps.
    ///
    /// # Panics
    /// If there are more than [`MAX_SLOTS`] warp slots.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        let n = config.warps;
        assert!(n <= MAX_SLOTS, "{path}: at most {MAX_SLOTS} warp slots, not {n}");
        let mut arrivals = ArrivalMask::default();
        assert_eq!(arrivals.add(&ports.command), COMMAND);
        assert_eq!(arrivals.add(&ports.ack), ACK);
        assert_eq!(arrivals.add(&ports.release), RELEASE);
        assert_eq!(arrivals.add(&ports.resolved), RESOLVED);
        if let Some(constant) = &ports.constant {
            assert_eq!(arrivals.add(&constant.fill), CONSTANT);
        }
        Scheduler {
            selector: WarpSelector::new(config.policy, n),
            state: State::new(&config),
            arrivals,
            log: Log::default(),
            ledger: None,
            path,
            config,
            ports,
        }
    }

    /// Replaces the preset's policy with a user's policy.
    pub fn set_policy(&mut self, policy: Box<dyn SchedulingPolicy>) {
        self.selector.set_policy(policy);
    }

    /// The resident warps, each with its slot.
    pub(crate) fn resident_warps(&self) -> impl Iterator<Item = (usize, &Warp)> {
        let slots = self.state.warps.iter().enumerate();
        slots.filter_map(|(slot, warp)| Some((slot, warp?)))
    }

    /// The warp in a slot, or else the last one that ended there.
    pub(crate) fn last_warp(&self, slot: usize) -> Option<&Warp> {
        self.state.warps.last(slot)
    }

    /// Sends trace events to `log` from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    /// Sends a trace event of the warp in `slot` to the log.
    #[inline]
    fn emit(&self, at: Cycle, slot: usize, kind: EventKind) {
        self.log.emit(at, self.config.subcore, slot as u8, kind);
    }

    /// Moves fetched instructions into the buffers.
    fn fill_ibuffers(&mut self, now: Cycle) {
        // A warp whose buffer was empty may issue now.
        self.state.reevaluate |= self.state.ibuffers.fill(now);
    }

    /// Starts the fetch of one instruction, if a buffer has room.
    fn fetch(&mut self, now: Cycle) {
        // Module `ibuffer` gives the order and its source.
        let selector = &self.selector;
        if let Some(slot) = self.state.ibuffers.fetch(now, |set| selector.youngest(set)) {
            self.emit(now, slot, EventKind::Fetch);
        }
    }

    /// Requests the absent lines of constants.
    #[inline]
    fn send_requests(&mut self, now: Cycle) {
        if self.state.immediate.has_request()
            && let Some(ports) = &mut self.ports.constant
        {
            self.state.immediate.send(ports, now);
        }
    }

    /// Sends waiting events to the CTA manager while the link has room.
    fn send_events(&mut self, now: Cycle) {
        // Oldest first: the CTA manager sees a warp's barrier arrival before its end.
        while !self.state.outbox.is_empty() && self.ports.event.has_room(now) {
            self.ports.event.send(now, self.state.outbox.remove(0));
        }
    }

    /// When to tick next: for an evaluation, an event, a timer, a fetch or its arrival, or when the pipe of a ready warp becomes free.
    fn activity(&self, now: Cycle) -> Activity {
        let state = &self.state;
        // Each of these takes a step in every cycle: a fetch, an event, a request.
        let has_work = state.ibuffers.is_fetching() || !state.outbox.is_empty() || state.immediate.has_request();
        if has_work || state.reevaluate != 0 {
            return Activity::Busy;
        }
        // No message announces these ends: pauses and branch latencies, then arrivals of fetches and guards.
        let resuming = ones(state.resuming).filter_map(|slot| Some(state.warps.get(slot)?.resume_at));
        let next = resuming.fold(state.ibuffers.next_arrival().min(state.guard_timers.next()), Cycle::min);
        self.next_issue(now, next)
    }
}

warpwave_hw::warm!(Scheduler: selector; state, ports);

impl Component for Scheduler {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // A waveform shows the actions of one tick.
        self.state.last_tick = LastTick::default();
        self.receive(now);
        // Before the evaluation: a write-back that arrives now can end a stall in this cycle.
        self.run_timers(now);
        self.fill_ibuffers(now);
        self.evaluate(now);
        // The lines that the evaluation has not found. Issue looks up the constants of the next instruction: its requests leave one cycle
        // later.
        self.send_requests(now);
        self.issue(now);
        // After the issue: the entry that the issued instruction leaves can take a fetch in this cycle.
        self.fetch(now);
        // `now + 1` is an exclusive end: a retiring warp is charged for this cycle too.
        self.retire(now + 1);
        self.send_events(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config);
        self.selector.clear();
        if self.ledger.is_some() {
            self.arm_invariants();
        }
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        // A warp retires after its last result and credit. Its stores may follow.
        let warps = &self.state.warps;
        warps.resident() == 0 && !warps.owes_stores() && self.state.outbox.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.show(probe);
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    fn arm_invariants(&mut self) {
        self.ledger = Some(Box::new(Ledger::new(self.config.warps)));
    }

    /// Credits: here + queued = depth. A warp is ready if it has no stall reason. Each live lane is in one group. A pending register or
    /// predicate has exactly one writer in flight. Dependency barriers count their results in flight. Each cycle of a warp is charged to
    /// one state. A math pipe keeps its issue interval.
    fn invariants(&self, check: &mut Invariants) {
        let State { warps, ready, .. } = &self.state;
        check.at_most(
            "memory credits",
            self.state.queue_credits.into(),
            self.config.memory_queue.into(),
        );
        let queued = self
            .resident_warps()
            .map(|(_, warp)| u64::from(warp.queued))
            .sum::<u64>();
        check.equal(
            "memory credits here and in the queue",
            u64::from(self.state.queue_credits) + queued,
            self.config.memory_queue.into(),
        );
        check.within("ready warps", ready.warps, warps.resident());
        ready.invariants(check);
        self.state.immediate.invariants(check);
        if let Some(ledger) = &self.ledger {
            ledger.invariants(&self.state, check);
        }
        for (slot, warp) in self.resident_warps() {
            let is_ready = ready.warps >> slot & 1;
            check.equal(
                format_args!("ready bit of slot {slot}"),
                is_ready,
                warp.stall.is_none().into(),
            );
            check.equal(
                format_args!("constant miss of slot {slot}"),
                self.state.immediate.waiting >> slot & 1,
                u64::from(warp.stall == Some(WarpState::ImcMiss)),
            );
            check.equal(
                format_args!("lanes of slot {slot} not in exactly one control-flow group"),
                warp.flow.misplaced_lanes().0.into(),
                0,
            );
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        match report.until() {
            // A run that was stopped: stalls that have not ended are charged up to the stop.
            Some(until) => self.stats_until(until).report(report),
            None => self.state.stats.report(report),
        }
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        self.report_waits(say);
    }
}

#[cfg(test)]
mod tests;
