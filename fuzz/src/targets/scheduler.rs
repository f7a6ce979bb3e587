//! Target: one warp scheduler with its scoreboards, between CTA manager, dispatch unit, branch unit and LSU.
//!
//! Oracle: each warp issues its instructions in program order, each once. No instruction issues while a register or predicate that it
//! touches has a pending write, or while its fence or guard must wait. None issues while a result holds a dependency barrier that it names.
//! A warp ends once, with nothing in flight.

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::config::{SchedulerPolicy, SlotRelease, Sm};
use warpwave_components::proto::issue::{Issue, Release};
use warpwave_components::proto::launch::{Grid, ResultWait};
use warpwave_components::proto::predecoded;
use warpwave_components::proto::warp::{LsuAck, Resolved, WarpCommand, WarpEvent, WarpStart};
use warpwave_components::sm::subcore::scheduler::{Config, Ports, Scheduler};
use warpwave_components::sm::timing;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::{Program, Requirements};

use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{Late, SecondRun, Sink, Wiring, World, check as check_component, combine};
use crate::parts::TINY;
use crate::warp_access::grid;

/// A scheduler and its warps.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = one_of(&[SchedulerPolicy::LooseRoundRobin, SchedulerPolicy::GreedyThenOldest, SchedulerPolicy::OldestFirst]))]
    policy: SchedulerPolicy,
    #[arbitrary(with = one_of(&[SlotRelease::StoresSent, SlotRelease::StoresPerformed]))]
    slot_release: SlotRelease,
    #[arbitrary(with = within(1..=4))]
    ibuffer_entries: u32,
    #[arbitrary(with = within(1..=8))]
    fetch_latency: u32,
    #[arbitrary(with = within(1..=12))]
    branch_latency: u32,
    #[arbitrary(with = within(1..=12))]
    guard_latency: u32,
    #[arbitrary(with = within(1..=4))]
    memory_queue: u32,
    /// Dependency barriers of a warp. 0 for a scoreboard of registers.
    #[arbitrary(with = one_of(&[0, 6, 1, 2, 3]))]
    dependency_barriers: u32,
    issue_pace: Pace,
    event_pace: Pace,
    /// Cycles of a pipe, of the memory queue and of the memory, chosen by program counter.
    delays: [Delays; 4],
    /// Starts of warps: cycles after the previous start. Warp n takes slot n modulo 4, once it is free.
    #[arbitrary(with = up_to(6))]
    starts: Vec<Gap>,
    /// The program, as choices among `MENU`. An EXIT follows.
    #[arbitrary(with = up_to(16))]
    code: Vec<u8>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Gap(#[arbitrary(with = one_of(&[1, 5, 30, 200]))] u64);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Delays {
    #[arbitrary(with = one_of(&[4, 1, 2, 13, 40]))]
    pipe: u64,
    #[arbitrary(with = one_of(&[2, 1, 9, 50]))]
    queue: u64,
    #[arbitrary(with = one_of(&[20, 0, 1, 150]))]
    memory: u64,
}

/// The instructions of a program: few registers, so that hazards are common. A taken branch skips the next instruction.
const MENU: &str = "FFMA R0, R1, R2, R3
    FADD R3, R0, R1
    IADD3 R2, PT, R0, R1, RZ, PT
    LD.B32 R4, [R6]
    LD.B64 R0, [R6]
    ST.B32 [R6], R0
    LD.SHARED.B32 R1, [R2]
    RED.ADD.U32.B32 [R6], R4
    ISETP.LT.AND.S32 P0, PT, R1, R2, PT, PT
    ISETP.LT.AND.S32 P1, PT, R4, R2, P0, PT
    @P0 IADD3 R4, PT, R1, R2, RZ, PT
    @!P1 LD.B32 R3, [R6]
    SEL R3, R1, R2, P0
    MEMBAR.GPU
    @P0 BRA 0
    BRA 0
    SHFL.BFLY R1, P1, R0, 0x10, 0x1f
    FADD R7, R7, R7
    EXIT";

static INSTS: LazyLock<Vec<Inst>> = LazyLock::new(|| grid(MENU).program.code().to_vec());
static EMPTY: LazyLock<Grid> = LazyLock::new(|| grid("EXIT"));

/// The grid with the program of an input.
fn program(choices: &[u8], dependency_barriers: u32) -> Arc<Grid> {
    // Only the last instruction is an EXIT, so no warp ends before it.
    let exit = INSTS.len() - 1;
    let chosen = choices.iter().map(|choice| usize::from(*choice) % exit);
    let mut code: Vec<Inst> = chosen.map(|n| INSTS[n]).collect();
    let last = code.len() as u32;
    for (pc, inst) in (0..).zip(&mut code).filter(|(_, inst)| inst.op == Opcode::Bra) {
        // Forward only, so every warp reaches its EXIT.
        inst.target = (pc + 2).min(last);
    }
    code.push(INSTS[exit]);
    let program = Arc::new(Program::new("fuzz", code, Requirements::default()));
    let sm = Sm {
        dependency_barriers,
        ..TINY.sm.clone()
    };
    let timing = timing::table(&program, &sm);
    Arc::new(Grid {
        predecoded: predecoded::table(&program, &timing),
        timing,
        program,
        ..EMPTY.clone()
    })
}

/// An instruction in flight.
struct InFlight {
    pc: u32,
    /// Cycle of issue, or a later one if the pace hides it.
    issued: u64,
    /// Still in the memory queue.
    queued: bool,
    /// First cycle in which the scheduler knows the end. `None` before it.
    ends: Option<u64>,
}

/// A warp of the model.
struct Warp {
    pc: u32,
    in_flight: Vec<InFlight>,
    /// Cycle of issue of the last writer of each predicate with a fixed latency.
    written: [Option<u64>; 7],
}

struct Neighbours {
    input: Input,
    grid: Arc<Grid>,
    command: Late<WarpCommand>,
    release: Late<Release>,
    resolved: Late<Resolved>,
    ack: Late<LsuAck>,
    issue: Sink<Issue>,
    event: Sink<WarpEvent>,
    warps: [Option<Warp>; 4],
    /// Stores of ended warps in flight, by slot. A completion counts for them first.
    owed: [usize; 4],
    /// Slots whose last event said that stores are in flight.
    announced: [bool; 4],
    n_started: usize,
    next_start: u64,
    n_done: usize,
}

impl Neighbours {
    fn start_next(&mut self, now: Cycle) {
        let Some(gap) = self.input.starts.get(self.n_started) else {
            return;
        };
        let slot = self.n_started % 4;
        if self.warps[slot].is_some() || now.0 < self.next_start {
            return;
        }
        self.next_start = now.0 + gap.0;
        self.n_started += 1;
        self.warps[slot] = Some(Warp {
            pc: 0,
            in_flight: Vec::new(),
            written: [None; 7],
        });
        let start = WarpStart {
            warp: slot as u8,
            cta: 0,
            index: slot as u32,
            block: [0; 3],
            shared_base: 0,
            lanes: LaneMask::ALL,
            generation: false,
            grid: self.grid.clone(),
        };
        self.command.push(now.0, WarpCommand::Start(start));
    }

    fn take_issue(&mut self, now: Cycle) {
        let Some(issue) = self.issue.take(now) else { return };
        // With a slow dispatch unit the instruction may have been issued earlier.
        let issued = if self.input.issue_pace == Pace::ALWAYS {
            now.0 - 1
        } else {
            now.0
        };
        self.check_issue(issue, issued);
        let (slot, pc) = (issue.warp(), issue.pc());
        let delays = self.input.delays[pc as usize % 4];
        let (inst, decoded) = self.grid.instruction(pc);
        // An instruction leaves the memory queue before it ends.
        let (queued, done) = (now.0 + delays.queue, now.0 + delays.queue + 1 + delays.memory);
        let release = Release::new(slot, pc, issue.group());
        match decoded.pipe {
            Pipe::Control => self.resolved.push(now.0 + delays.pipe, resolve(slot, pc)),
            Pipe::Lsu => {
                self.ack.push(queued, LsuAck::QueueCredit { warp: slot });
                match self.grid.timing[pc as usize].is_posted {
                    true => self.ack.push(done, LsuAck::StoreDone { warp: slot }),
                    false => self.release.push(done, release),
                }
            }
            _ => self.release.push(now.0 + delays.pipe, release),
        }
        let warp = self.warps[usize::from(slot)].as_mut().expect("checked above");
        if inst.op == Opcode::Bra {
            warp.pc = if is_taken(pc) { inst.target } else { pc + 1 };
        } else {
            warp.pc = pc + 1;
        }
        let is_fixed = self.grid.timing[pc as usize].result == ResultWait::Fixed;
        let written = (0..7).filter(|pred| is_fixed && decoded.pred_defs >> pred & 1 == 1);
        // A guard has a latency of its own after such a write.
        written.for_each(|pred| warp.written[pred] = Some(issued));
        warp.in_flight.push(InFlight {
            pc,
            issued,
            queued: decoded.pipe == Pipe::Lsu,
            ends: None,
        });
    }

    /// Checks that an instruction may issue.
    fn check_issue(&self, issue: Issue, issued: u64) {
        let pc = issue.pc();
        let warp = self.warps[usize::from(issue.warp())]
            .as_ref()
            .expect("the warp of an issue runs");
        // A branch that reads nothing is resolved in the scheduler.
        let mut next = warp.pc;
        while next != pc && self.grid.predecoded[next as usize].target == predecoded::IssueTarget::Resolved {
            next = self.grid.program.code()[next as usize].target;
        }
        assert_eq!(pc, next, "the next instruction of warp {}", issue.warp());
        assert_eq!(issue.active(), LaneMask::ALL, "lanes of warp {}", issue.warp());
        let (inst, decoded) = self.grid.instruction(pc);
        let barriers = self.grid.timing[pc as usize].barriers.wait;
        let pending = warp
            .in_flight
            .iter()
            .filter(|other| other.ends.is_none_or(|end| end > issued));
        for other in pending {
            let (earlier, of_earlier) = self.grid.instruction(other.pc);
            let hazard =
                of_earlier.defs.intersects(&decoded.touches) || of_earlier.pred_defs & decoded.pred_touches != 0;
            // Nothing issues behind an open fence or branch.
            let waits = earlier.op == Opcode::Membar || of_earlier.pipe == Pipe::Control;
            // A fence issues after the loads before it. The LSU waits for the stores and reductions before it.
            let orders = inst.op == Opcode::Membar
                && of_earlier.pipe == Pipe::Lsu
                && !matches!(earlier.op, Opcode::St | Opcode::Red);
            let held = self.grid.timing[other.pc as usize].barriers.write;
            let is_barred = held.is_some_and(|barrier| barriers >> barrier & 1 == 1);
            assert!(
                !(hazard || waits || orders || is_barred),
                "warp {}: {inst:?} issues in cycle {issued} before {earlier:?} of cycle {} ends",
                issue.warp(),
                other.issued
            );
        }
        // PT has no entry. With a slow dispatch unit the exact cycle of issue is not known.
        let written = warp.written.get(usize::from(inst.guard.pred.0)).copied().flatten();
        let least = u64::from(self.input.guard_latency);
        assert!(
            written.is_none_or(|at| issued >= at + least || self.input.issue_pace != Pace::ALWAYS),
            "guard of {inst:?}"
        );
        let queued = self
            .warps
            .iter()
            .flatten()
            .flat_map(|warp| &warp.in_flight)
            .filter(|other| other.queued)
            .count();
        let most = self.input.memory_queue as usize;
        assert!(
            decoded.pipe != Pipe::Lsu || queued < most,
            "{queued} entries of the memory queue are in use"
        );
    }

    fn take_event(&mut self, now: Cycle) {
        let Some(event) = self.event.take(now) else { return };
        let (slot, is_storing) = match event {
            WarpEvent::Done { warp, is_storing } => (warp, is_storing),
            WarpEvent::StoresDone { warp } => {
                assert_eq!(self.owed[usize::from(warp)], 0, "stores of slot {warp}");
                let announced = std::mem::take(&mut self.announced[usize::from(warp)]);
                assert!(announced, "stores of slot {warp} end that were never announced");
                return;
            }
            _ => panic!("no warp arrives or traps: {event:?}"),
        };
        let warp = self.warps[usize::from(slot)].take().expect("a warp ends once");
        let is_open_store = |inst: &&InFlight| self.grid.timing[inst.pc as usize].is_posted && inst.ends.is_none();
        let stores = warp.in_flight.iter().filter(is_open_store).count();
        assert!(
            stores == 0 || self.input.slot_release == SlotRelease::StoresSent,
            "warp {slot} ends before its stores"
        );
        // A warp ends with nothing in flight but stores that have left the queue.
        let done = warp.in_flight.iter().filter(|inst| inst.ends.is_some()).count();
        assert_eq!(done + stores, warp.in_flight.len(), "warp {slot} ends in flight");
        assert!(
            warp.in_flight.iter().all(|inst| !inst.queued),
            "warp {slot} ends in the queue"
        );
        let owed = &mut self.owed[usize::from(slot)];
        *owed += stores;
        // A completion may have arrived after the scheduler sent the event.
        assert!(is_storing || *owed == 0, "warp {slot} ends with {owed} stores");
        self.announced[usize::from(slot)] = is_storing;
        let mut pc = warp.pc;
        // Branches that the scheduler resolved by itself were never issued.
        while self.grid.program.code()[pc as usize].op == Opcode::Bra {
            pc = self.grid.program.code()[pc as usize].target;
        }
        assert_eq!(
            pc as usize,
            self.grid.program.code().len() - 1,
            "warp {slot} ends before its EXIT"
        );
        self.n_done += 1;
    }

    fn respond(&mut self, now: Cycle) {
        let (warps, owed, grid) = (&mut self.warps, &mut self.owed, &self.grid);
        // The scheduler sees a message a cycle later.
        let seen = Some(now.0 + 1);
        let mut first = |slot: u8, wanted: &dyn Fn(&InFlight) -> bool, change: &dyn Fn(&mut InFlight)| {
            let warp = warps[usize::from(slot)]
                .as_mut()
                .expect("messages belong to running warps");
            let found = warp.in_flight.iter_mut().find(|inst| wanted(inst));
            found.into_iter().for_each(change);
        };
        let runs = |inst: &InFlight, pc: u32| inst.pc == pc && inst.ends.is_none();
        let end = |inst: &mut InFlight| inst.ends = seen;
        self.release.tick(now, |release| {
            first(release.warp(), &|inst| runs(inst, release.pc()), &end)
        });
        self.resolved.tick(now, |resolved| {
            first(resolved.warp, &|inst| runs(inst, resolved.pc), &end)
        });
        self.ack.tick(now, |ack| match ack {
            LsuAck::QueueCredit { warp } => first(*warp, &|inst| inst.queued, &|inst| inst.queued = false),
            LsuAck::StoreDone { warp } if owed[usize::from(*warp)] > 0 => owed[usize::from(*warp)] -= 1,
            LsuAck::StoreDone { warp } => {
                let is_store = |inst: &InFlight| grid.timing[inst.pc as usize].is_posted && inst.ends.is_none();
                first(*warp, &is_store, &end);
            }
        });
    }
}

/// Branches of even program counters are taken.
fn is_taken(pc: u32) -> bool {
    pc.is_multiple_of(2)
}

/// The response of the branch unit.
fn resolve(warp: u8, pc: u32) -> Resolved {
    Resolved {
        warp,
        pc,
        lanes: if is_taken(pc) { LaneMask::ALL } else { LaneMask::NONE },
        a: 0,
        b: 0,
        count: 0,
        apart: LaneMask::NONE,
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        // Ends first: they free slots for the next warps.
        self.take_event(now);
        self.take_issue(now);
        self.start_next(now);
        self.command.tick(now, |_| ());
        self.respond(now);
        self.n_done < self.input.starts.len() || self.owed != [0; 4] || self.announced != [false; 4]
    }

    fn reset(&mut self) {
        self.command.clear();
        self.release.clear();
        self.resolved.clear();
        self.ack.clear();
        self.issue.clear();
        self.event.clear();
        self.warps = Default::default();
        (self.owed, self.announced) = ([0; 4], [false; 4]);
        (self.n_started, self.next_start, self.n_done) = (0, 0, 0);
    }

    fn digest(&self) -> u64 {
        combine([self.issue.digest(), self.event.digest()])
    }
}

/// Runs the scheduler.
///
/// # Panics
/// If an instruction issues out of order or too early, if a warp never ends, or if the scheduler breaks the contract.
pub fn check(input: Input) {
    let grid = program(&input.code, input.dependency_barriers);
    let build = |wiring: &Wiring| {
        let (command, commands) = wiring.input(1, 2);
        let (release, releases) = wiring.input(1, 2);
        let (resolved, branches) = wiring.input(1, 2);
        let (ack, acks) = wiring.input(1, 2);
        let (issue, issued) = wiring.output(1, 2);
        let (event, events) = wiring.output(1, 2);
        let ports = Ports {
            command: commands,
            event,
            issue,
            release: releases,
            resolved: branches,
            ack: acks,
            constant: None,
        };
        let config = Config {
            subcore: 0,
            warps: 4,
            policy: input.policy,
            ibuffer_entries: input.ibuffer_entries,
            fetch_latency: input.fetch_latency,
            branch_latency: input.branch_latency,
            guard_latency: input.guard_latency,
            warp_barrier_latency: TINY.sm.barrier.warp_latency,
            memory_queue: input.memory_queue,
            constant: TINY.sm.constant,
            slot_release: input.slot_release,
            core_khz: 1_000_000,
        };
        let world = Neighbours {
            grid: grid.clone(),
            command: Late::new(command),
            release: Late::new(release),
            resolved: Late::new(resolved),
            ack: Late::new(ack),
            issue: Sink::new(issued, input.issue_pace),
            event: Sink::new(events, input.event_pace),
            warps: Default::default(),
            owed: [0; 4],
            announced: [false; 4],
            n_started: 0,
            next_start: 0,
            n_done: 0,
            input: input.clone(),
        };
        (Scheduler::new(Path::root("scheduler"), config, ports), world)
    };
    check_component(build, input.second, 200_000);
}
