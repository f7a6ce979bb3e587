//! The warp scheduler of a sub-core: each cycle it chooses one warp whose next instruction can go, and sends it to dispatch.
//!
//! ```text
//!   cta --WarpCommand--> [scheduler] --Issue--> dispatch --> pipes
//!       <--WarpEvent---              <--Release--/
//!                                    <--Resolved-- branch unit
//!                                    <--LsuAck-- lsu
//! ```
//!
//! A warp may go when it has an instruction in its buffer, no pending write concerns it, its pipe's issue interval is over
//! (or the memory queue has a place), and the dispatch unit takes one. Control instructions that need no register are resolved
//! here, at issue; the others go to the branch unit and the warp waits.
//!
//! | what | cycles |
//! |---|---|
//! | issue to dispatch | 1 |
//! | result stored to dependent issue | 1 |
//! | taken branch, from issue to the fetch at its target | `branch_latency` |
//!
//! # Invariants
//! - Each resident warp is charged one state per cycle: the states' sum is the warps' resident cycles.
//! - `ready` holds just the warps without a wait.

mod inbox;
mod issue;
mod ready;
mod states;
mod view;

pub use view::Stats;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::inbox::Inbox;
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::bits::bits;
use crate::config::SchedulerPolicy;
use crate::proto::event::{EventKind, Log};
use crate::proto::issue::{Issue, Release};
use crate::proto::warp::{LsuAck, Resolved, WarpCommand, WarpEvent};
use crate::sm::subcore::ibuffer::IBuffers;
use crate::sm::subcore::policy::Policy;
use crate::sm::subcore::warp::{Warp, Warps};
use ready::{PLACES, Ready};

/// The numbers of its ports in its inbox.
const COMMAND: u32 = 0;
const NOTE: u32 = 1;
const RELEASE: u32 = 2;
const RESOLVED: u32 = 3;

/// Numbers of a scheduler.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sub-core in its SM.
    pub subcore: u8,
    /// Warp slots.
    pub warps: usize,
    /// Which ready warp goes.
    pub policy: SchedulerPolicy,
    /// Instructions of a warp's buffer.
    pub ibuffer_entries: u32,
    /// Cycles of a fetch.
    pub fetch_latency: u32,
    /// Cycles from a branch's issue to the fetch at its target.
    pub branch_latency: u32,
    /// Places of the sub-core's memory queue.
    pub memory_queue: u32,
    /// Core clock, for sleeps.
    pub core_khz: u32,
}

/// The links of a scheduler.
pub struct Ports {
    /// Warps to start, barriers that open.
    pub command: InPort<WarpCommand>,
    /// Arrivals and ends.
    pub event: OutPort<WarpEvent>,
    /// Chosen instructions.
    pub issue: OutPort<Issue>,
    /// Stored results.
    pub release: InPort<Release>,
    /// Branches that are known.
    pub resolved: InPort<Resolved>,
    /// Places and stores that are done.
    pub note: InPort<LsuAck>,
}

warpwave_hw::show_ports!(Ports: command, event, issue, release, resolved, note);

/// The scheduler.
pub struct Scheduler {
    pub(super) path: Path,
    pub(super) config: Config,
    pub(super) ports: Ports,
    inbox: Inbox,
    pub(super) warps: Warps,
    pub(super) ibuffers: IBuffers,
    policy: Policy,
    ready: Ready,
    /// From when each pipe takes another instruction; of the LSU never while its queue has no place.
    pipe_free: [Cycle; PLACES],
    credits: u32,
    /// Warps whose state must be looked at again.
    dirty: u32,
    /// Warps whose lanes have all ended.
    ending: u32,
    /// Warps of which less is under way than when that was last asked.
    settled: u32,
    /// Warps that go on at a known cycle.
    pub(super) timers: u32,
    /// Events that wait for room.
    pub(super) outbox: Vec<WarpEvent>,
    active_since: Option<Cycle>,
    issued: Option<view::Issued>,
    held_back: view::HeldBack,
    /// First cycle for which the warps that could go have not been charged: since then all have waited for their pipes.
    uncharged: Cycle,
    pub(super) stats: Stats,
    log: Log,
}

impl Scheduler {
    /// A scheduler without warps.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        let n = config.warps;
        assert!(n <= 32, "{path}: at most 32 warp slots, not {n}");
        let mut inbox = Inbox::default();
        assert_eq!(inbox.add(&ports.command), COMMAND);
        assert_eq!(inbox.add(&ports.note), NOTE);
        assert_eq!(inbox.add(&ports.release), RELEASE);
        assert_eq!(inbox.add(&ports.resolved), RESOLVED);
        Scheduler {
            inbox,
            warps: Warps::new(n),
            ibuffers: IBuffers::new(n, config.ibuffer_entries, config.fetch_latency),
            policy: Policy::new(config.policy, n),
            ready: Ready::default(),
            pipe_free: [Cycle::ZERO; PLACES],
            credits: config.memory_queue,
            dirty: 0,
            ending: 0,
            settled: 0,
            timers: 0,
            outbox: Vec::with_capacity(2 * n),
            active_since: None,
            issued: None,
            held_back: view::HeldBack::default(),
            uncharged: Cycle::ZERO,
            stats: Stats::default(),
            log: Log::default(),
            path,
            config,
            ports,
        }
    }

    /// Tells the log what happens from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    #[inline]
    pub(super) fn emit(&self, at: Cycle, warp: usize, kind: EventKind) {
        self.log.emit(at, self.config.subcore, warp as u8, kind);
    }

    pub(super) fn warp(&mut self, warp: usize) -> &mut Warp {
        self.warps.get_mut(warp).expect("messages come for resident warps only")
    }

    pub(super) fn look_again(&mut self, warp: usize) {
        self.dirty |= 1 << warp;
    }

    fn flush_outbox(&mut self, now: Cycle) {
        while !self.outbox.is_empty() && self.ports.event.has_room(now) {
            self.ports.event.send(now, self.outbox.remove(0));
        }
    }

    fn activity(&self, now: Cycle) -> Activity {
        let busy = self.ibuffers.is_fetching() || !self.outbox.is_empty() || self.dirty != 0;
        if busy {
            return Activity::Busy;
        }
        let timers = bits(self.timers).filter_map(|slot| Some(self.warps.get(slot)?.resume_at));
        let next = timers.fold(self.ibuffers.next_filling(), Cycle::min);
        self.next_issue(now, next)
    }
}

warpwave_hw::warm!(Scheduler: ibuffers, policy, ready, pipe_free, stats, warps; ports);

impl Component for Scheduler {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let under_way = self.inbox.under_way();
        if under_way != 0 {
            self.take_messages(under_way, now);
        }
        if self.timers != 0 {
            self.run_timers(now);
        }
        self.held_back.ended = 0;
        self.dirty |= self.ibuffers.arrive(now);
        self.look_at_changed(now);
        self.issue(now);
        let policy = &self.policy;
        if let Some(warp) = self.ibuffers.fetch(now, |set| policy.youngest(set)) {
            self.emit(now, warp, EventKind::Fetch);
        }
        self.reap(now + 1);
        self.flush_outbox(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.warps.clear();
        self.ibuffers = IBuffers::new(
            self.config.warps,
            self.config.ibuffer_entries,
            self.config.fetch_latency,
        );
        self.policy.clear();
        self.ready = Ready::default();
        self.pipe_free = [Cycle::ZERO; PLACES];
        self.credits = self.config.memory_queue;
        self.dirty = 0;
        self.ending = 0;
        self.settled = 0;
        self.timers = 0;
        self.outbox.clear();
        self.active_since = None;
        self.issued = None;
        self.held_back = view::HeldBack::default();
        self.uncharged = Cycle::ZERO;
        self.stats = Stats::default();
        self.ports.command.clear();
        self.ports.release.clear();
        self.ports.resolved.clear();
        self.ports.note.clear();
    }

    fn is_quiescent(&self) -> bool {
        self.warps.resident() == 0 && self.outbox.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.show(probe);
    }

    fn drifts_at(&self) -> Cycle {
        self.ibuffers.next_arrival()
    }

    fn catch_up(&mut self, now: Cycle) {
        self.dirty |= self.ibuffers.arrive(Cycle(now.0.saturating_sub(1)));
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        self.say_waits(say);
    }
}
