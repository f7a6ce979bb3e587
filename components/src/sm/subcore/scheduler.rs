//! The warp scheduler of a sub-core: each cycle it chooses one warp whose next instruction can go, and sends it to dispatch.
//!
//! ```text
//!   cta --WarpCommand--> [scheduler] --Issue--> dispatch --> pipes
//!       <--WarpEvent---              <--Release--/
//!                                    <--Resolved-- branch unit
//!                                    <--MemoryNote-- lsu
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
//! - `ready` holds just the warps without a wait; each of them wants one pipe.

mod inbox;
mod states;
mod view;

pub use view::Stats;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::opcode::{Opcode, Pipe};

use crate::config::SchedulerPolicy;
use crate::proto::event::{Log, What};
use crate::proto::warp::{Issue, MemoryNote, Release, Resolved, WarpCommand, WarpEvent};
use crate::sm::subcore::control::immediate_operands;
use crate::sm::subcore::ibuffer::IBuffers;
use crate::sm::subcore::policy::Policy;
use crate::sm::subcore::stall::State;
use crate::sm::subcore::warp::Warp;
use crate::sm::timing;

/// Pipes, for masks by pipe.
pub const PIPES: usize = Pipe::Control as usize + 1;

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
    pub note: InPort<MemoryNote>,
}

/// The scheduler.
pub struct Scheduler {
    pub(super) path: Path,
    pub(super) config: Config,
    pub(super) ports: Ports,
    pub(super) warps: Vec<Option<Warp>>,
    pub(super) ibuffers: IBuffers,
    policy: Policy,
    /// Warps that could go but for pipes, bit i for slot i.
    ready: u32,
    /// Of these, by the pipe that they want.
    wanted: [u32; PIPES],
    /// Of those that want the LSU, the ones for local and global memory.
    wanted_global: u32,
    /// From when each pipe takes another instruction.
    pipe_free: [Cycle; PIPES],
    credits: u32,
    /// Warps whose state must be looked at again.
    dirty: u32,
    /// Warps whose lanes have all ended.
    ending: u32,
    /// Warps that go on at a known cycle.
    pub(super) timers: u32,
    /// Events that wait for room.
    pub(super) outbox: Vec<WarpEvent>,
    active_since: Option<Cycle>,
    issued: Option<view::Issued>,
    held_back: view::HeldBack,
    pub(super) stats: Stats,
    log: Log,
}

impl Scheduler {
    /// A scheduler without warps.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        let n = config.warps;
        assert!(n <= 32, "{path}: at most 32 warp slots, not {n}");
        Scheduler {
            warps: vec![None; n],
            ibuffers: IBuffers::new(n, config.ibuffer_entries, config.fetch_latency),
            policy: Policy::new(config.policy, n),
            ready: 0,
            wanted: [0; PIPES],
            wanted_global: 0,
            pipe_free: [Cycle::ZERO; PIPES],
            credits: config.memory_queue,
            dirty: 0,
            ending: 0,
            timers: 0,
            outbox: Vec::with_capacity(2 * n),
            active_since: None,
            issued: None,
            held_back: view::HeldBack::default(),
            stats: Stats::default(),
            log: Log::default(),
            path,
            config,
            ports,
        }
    }

    /// Tells the log what happens from now on.
    pub fn listen(&mut self, log: Log) {
        self.log = log;
    }

    #[inline]
    pub(super) fn tell(&self, at: Cycle, warp: usize, what: What) {
        self.log.tell(at, self.config.subcore, warp as u8, what);
    }

    /// Charges a cycle in this state to each of these warps.
    #[inline]
    fn charge(&mut self, state: State, warps: u32, now: Cycle) {
        self.stats.stalls.charge(state, u64::from(warps.count_ones()));
        if self.log.is_on() {
            let state = state as u8;
            bits(warps).for_each(|warp| self.tell(now + 1, warp, What::Wait { state, cycles: 1 }));
        }
    }

    pub(super) fn warp(&mut self, warp: usize) -> &mut Warp {
        self.warps[warp]
            .as_mut()
            .expect("messages come for resident warps only")
    }

    pub(super) fn look_again(&mut self, warp: usize) {
        self.dirty |= 1 << warp;
    }

    // ---- stage: issue

    fn issue(&mut self, now: Cycle) {
        self.issued = None;
        self.held_back.pipes = 0;
        self.held_back.no_room = false;
        if self.ready == 0 {
            return;
        }
        let mut eligible = self.ready;
        for pipe in 0..PIPES {
            let wanted = self.wanted[pipe];
            if wanted != 0 && self.is_taken(pipe, now) {
                eligible &= !wanted;
                self.held_back.pipes |= 1 << pipe;
                self.charge_throttle(pipe, wanted, now);
            }
        }
        if !self.ports.issue.has_room(now) {
            self.charge(State::DispatchStall, eligible, now);
            self.held_back.no_room = true;
            return;
        }
        if eligible == 0 {
            return;
        }
        let candidates = u64::from(eligible.count_ones());
        let slot = self.policy.choose(eligible);
        self.stats.eligible_warps += candidates;
        self.stats.stalls.charge(State::Selected, 1);
        self.charge(State::NotSelected, eligible & !(1 << slot), now);
        self.send(slot, now);
        self.refresh(slot, now + 1);
    }

    fn is_taken(&self, pipe: usize, now: Cycle) -> bool {
        if pipe == Pipe::Lsu as usize {
            self.credits == 0
        } else {
            self.pipe_free[pipe] > now
        }
    }

    fn charge_throttle(&mut self, pipe: usize, wanted: u32, now: Cycle) {
        if pipe == Pipe::Lsu as usize {
            let global = wanted & self.wanted_global;
            self.charge(State::LgThrottle, global, now);
            self.charge(State::MioThrottle, wanted & !global, now);
        } else {
            self.charge(State::MathPipeThrottle, wanted, now);
        }
    }

    fn send(&mut self, slot: usize, now: Cycle) {
        let warp = self.warps[slot].as_mut().expect("the chosen warp is resident");
        let (pc, active) = (warp.flow.pc(), warp.flow.active());
        let inst = &warp.grid.program.code()[pc as usize];
        let decoded = &warp.grid.program.decoded()[pc as usize];
        let pipe = decoded.pipe;
        self.stats.instructions += 1;
        self.stats.thread_instructions += u64::from(active.count());
        self.stats.by_pipe[pipe as usize] += 1;
        self.issued = Some(view::Issued {
            slot,
            pc,
            lanes: active,
            number: warp.grid.program.first() + pc,
        });
        let operands = if pipe == Pipe::Control {
            immediate_operands(inst)
        } else {
            None
        };
        let goes_on = operands.is_none() && inst.op != Opcode::Ldgdepbar;
        let lanes = active.0;
        self.log
            .tell(now, self.config.subcore, slot as u8, What::Issue { pc, lanes, goes_on });
        self.ibuffers.take(slot);
        warp.buffered_pc = pc + 1;
        if let Some(operands) = operands {
            let branch = inst.op == Opcode::Bra;
            self.resolve(slot, pc, active, operands, now);
            self.follow(slot, branch.then_some(now + u64::from(self.config.branch_latency)), now);
            self.dirty &= !(1 << slot);
            return;
        }
        if inst.op == Opcode::Ldgdepbar {
            warp.copies.close();
            warp.flow.step();
            return;
        }
        warp.in_flight += 1;
        let group = match inst.op {
            Opcode::Ldgsts => warp.copies.begin(),
            Opcode::Hgmma => warp.products.begin(),
            _ => 0,
        };
        match pipe {
            Pipe::Control => warp.resolving = true,
            Pipe::Lsu => {
                self.credits -= 1;
                warp.queued += 1;
                if timing::is_posted(inst) {
                    warp.in_flight -= 1;
                    warp.stores += 1;
                }
                warp.board.issue(inst, decoded);
                warp.flow.step();
            }
            _ => {
                self.pipe_free[pipe as usize] = now + u64::from(warp.grid.timing[pc as usize].interval);
                warp.board.issue(inst, decoded);
                warp.flow.step();
            }
        }
        self.ports.issue.send(
            now,
            Issue {
                warp: slot as u8,
                pc,
                active,
                group,
            },
        );
    }

    fn flush_outbox(&mut self, now: Cycle) {
        while !self.outbox.is_empty() && self.ports.event.has_room(now) {
            self.ports.event.send(now, self.outbox.remove(0));
        }
    }

    fn activity(&self) -> Activity {
        let busy = self.ready != 0
            || self.issued.is_some()
            || self.held_back.ended != 0
            || self.ibuffers.is_fetching()
            || !self.outbox.is_empty()
            || self.dirty != 0;
        let timer = bits(self.timers)
            .filter_map(|slot| Some(self.warps[slot].as_ref()?.resume_at))
            .min();
        let next = timer.into_iter().chain(self.ibuffers.next_arrival()).min();
        Activity::busy_if(busy).or(next.map_or(Activity::Idle, Activity::Until))
    }
}

/// Indices of the set bits, lowest first.
pub(in crate::sm::subcore) fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(lowest)
    })
}

impl Component for Scheduler {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.take_messages(now);
        self.run_timers(now);
        self.held_back.ended = 0;
        self.dirty |= self.ibuffers.arrive(now);
        self.look_at_changed(now);
        self.issue(now);
        let policy = &self.policy;
        if let Some(warp) = self.ibuffers.fetch(now, |set| policy.youngest(set)) {
            self.tell(now, warp, What::Fetch);
        }
        self.reap(now + 1);
        self.flush_outbox(now);
        self.activity()
    }

    fn reset(&mut self) {
        self.warps.fill(None);
        self.ibuffers = IBuffers::new(
            self.config.warps,
            self.config.ibuffer_entries,
            self.config.fetch_latency,
        );
        self.policy.clear();
        self.ready = 0;
        self.wanted = [0; PIPES];
        self.pipe_free = [Cycle::ZERO; PIPES];
        self.credits = self.config.memory_queue;
        self.dirty = 0;
        self.ending = 0;
        self.timers = 0;
        self.outbox.clear();
        self.active_since = None;
        self.issued = None;
        self.held_back = view::HeldBack::default();
        self.stats = Stats::default();
        self.ports.command.clear();
        self.ports.release.clear();
        self.ports.resolved.clear();
        self.ports.note.clear();
    }

    fn is_quiescent(&self) -> bool {
        self.warps.iter().all(Option::is_none) && self.outbox.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.show(probe);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        self.say_waits(say);
    }
}
