//! Target: one dispatch unit with its register file, between a scheduler and the pipes.
//!
//! Oracle: a pipe gets the operands that a register file without time holds, in the lanes whose guard is true. Each instruction reaches its
//! pipe once, in order of issue, and is released once.

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::proto::issue::{Issue, Release};
use warpwave_components::proto::launch::Grid;
use warpwave_components::proto::warp::{WarpInfo, WarpInst, WarpStart};
use warpwave_components::sm::subcore::dispatch::{Config, Dispatch, Ports};
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::Pipe;
use warpwave_isa::program::WordSource;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{Late, SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::warp_access::grid;

/// A dispatch unit and the instructions that are issued to it.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    /// Cycles of each pipe, by its number modulo 4.
    delays: [Delay; 4],
    pipe_pace: Pace,
    release_pace: Pace,
    #[arbitrary(with = up_to(40))]
    issues: Vec<IssueSpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Delay(#[arbitrary(with = one_of(&[4, 1, 2, 17, 60]))] u64);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct IssueSpec {
    #[arbitrary(with = one_of(&[0, 0, 1, 4, 30]))]
    gap: u64,
    #[arbitrary(with = within(0..=3))]
    warp: u8,
    #[arbitrary(with = within(0..=9))]
    pc: u32,
    #[arbitrary(with = one_of(&[u32::MAX, 1, 0xffff_0000, 0x5555_5555]))]
    lanes: u32,
}

const PROGRAM: &str = "FFMA R0, R1, R2, R3
    IADD3 R2, PT, R0, R1, 0x7, PT
    FADD R3, R0, R1
    LD.B64 R0, [R6]
    ST.B32 [R6], R0
    @P0 IADD3 R4, PT, R1, R2, RZ, PT
    @!P1 FADD R6, R4, R4
    ISETP.LT.AND.S32 P0, P1, R1, R2, PT, PT
    SEL R3, R1, R2, P0
    LD.SHARED.B32 R1, [R2]";

/// Registers of a warp.
const REGISTERS: usize = 8;
const WARPS: usize = 4;

static GRID: LazyLock<Arc<Grid>> = LazyLock::new(|| {
    Arc::new(Grid {
        registers: REGISTERS as u32,
        ..grid(PROGRAM)
    })
});

/// Registers and predicates of a warp.
#[derive(Clone, Default)]
struct Registers {
    words: [[u32; WARP_SIZE]; REGISTERS],
    preds: [u32; 7],
}

/// An instruction on its way.
struct InFlight {
    warp: u8,
    pc: u32,
    /// Its number, which makes its results.
    number: u32,
    lanes: u32,
    /// Operands, before it reaches its pipe.
    operands: Option<Vec<[u32; WARP_SIZE]>>,
    is_done: bool,
}

struct Neighbours {
    input: Input,
    info: Source<WarpInfo>,
    issue: Source<Issue>,
    release: Sink<Release>,
    pipes: Vec<Sink<Box<WarpInst>>>,
    results: Vec<Late<Box<WarpInst>>>,
    registers: [Registers; WARPS],
    in_flight: Vec<InFlight>,
    n_issued: usize,
    /// First cycle of the next issue.
    next_issue: u64,
}

/// A result of an instruction.
fn result(number: u32, word: usize, lane: usize) -> u32 {
    number.wrapping_mul(0x9e37_79b9).rotate_left(7 * word as u32) ^ (lane as u32 * 0x0101)
}

impl Neighbours {
    fn start(&mut self) {
        for warp in 0..WARPS as u8 {
            let start = WarpStart {
                warp,
                cta: 0,
                index: warp.into(),
                block: [0; 3],
                shared_base: 0,
                lanes: LaneMask::ALL,
                generation: false,
                grid: GRID.clone(),
            };
            self.info.push(0, WarpInfo::Start(start));
        }
        // The starts arrive before the first instruction.
        self.next_issue = 10;
    }

    /// Issues the next instruction, once no pending write is in its way.
    fn issue_next(&mut self, now: Cycle) {
        self.issue.tick(now);
        let Some(spec) = self.input.issues.get(self.n_issued).copied() else {
            return;
        };
        let (_, decoded) = GRID.instruction(spec.pc);
        // The scoreboard of a scheduler: no access to a register with a pending write.
        let conflicts = |other: &InFlight| {
            let (_, earlier) = GRID.instruction(other.pc);
            let preds = earlier.pred_defs & decoded.pred_touches != 0;
            other.warp == spec.warp && (preds || earlier.defs.intersects(&decoded.touches))
        };
        if now.0 < self.next_issue || !self.issue.is_empty() || self.in_flight.iter().any(conflicts) {
            return;
        }
        let registers = &self.registers[usize::from(spec.warp)];
        let word = |source: &WordSource| match *source {
            WordSource::Reg(reg) => registers.words[usize::from(reg.0)],
            WordSource::Imm(bits) => [bits; WARP_SIZE],
            WordSource::Zero => [0; WARP_SIZE],
            ref other => unreachable!("{other:?} is not in the program"),
        };
        let operands = decoded.sources[..usize::from(decoded.source_words)]
            .iter()
            .map(word)
            .collect();
        let guard = GRID.instruction(spec.pc).0.guard;
        // PT has no entry: it is always true.
        let value = registers
            .preds
            .get(usize::from(guard.pred.0))
            .copied()
            .unwrap_or(u32::MAX);
        self.in_flight.push(InFlight {
            warp: spec.warp,
            pc: spec.pc,
            number: self.n_issued as u32,
            lanes: spec.lanes & if guard.negated { !value } else { value },
            operands: Some(operands),
            is_done: false,
        });
        self.issue
            .push(now.0, Issue::new(spec.warp, spec.pc, LaneMask(spec.lanes), 0));
        self.next_issue = now.0 + 1 + spec.gap;
        self.n_issued += 1;
    }

    /// Takes an instruction as its pipe, checks its operands, and computes its results.
    fn run_pipe(&mut self, pipe: usize, now: Cycle) {
        self.results[pipe].tick(now, |_| ());
        let Some(mut inst) = self.pipes[pipe].take(now) else {
            return;
        };
        assert_eq!(inst.info.pipe as usize, pipe, "the pipe of {:?}", inst.inst().op);
        // The oldest of equal instructions: a pipe gets them in order of issue.
        let waits = |other: &&mut InFlight| (other.warp, other.pc) == (inst.warp, inst.pc) && other.operands.is_some();
        let expected = self
            .in_flight
            .iter_mut()
            .find(waits)
            .expect("an instruction reaches its pipe once");
        let operands = expected.operands.take().expect("found with operands");
        assert_eq!(inst.lanes.0, expected.lanes, "lanes of {:?}", inst.inst());
        for (n, operand) in operands.iter().enumerate() {
            assert_eq!(
                &inst.operands.words[n].0,
                operand,
                "operand word {n} of {:?}",
                inst.inst()
            );
        }
        let number = expected.number;
        for (n, word) in inst.results.words.iter_mut().enumerate() {
            word.0 = std::array::from_fn(|lane| result(number, n, lane));
        }
        for (n, pred) in inst.results.preds.iter_mut().enumerate() {
            // No lane has the number 40, so a predicate has a value of its own.
            *pred = LaneMask(result(number, n, 40));
        }
        // The end of a posted access goes to the scheduler from the LSU.
        let is_posted = inst.info.is_posted;
        expected.is_done = true;
        self.in_flight.retain(|inst| !(inst.number == number && is_posted));
        let delay = self.input.delays[pipe % 4].0;
        self.results[pipe].push(now.0 + delay, inst);
    }

    fn take_release(&mut self, now: Cycle) {
        let Some(release) = self.release.take(now) else { return };
        let is_it = |inst: &InFlight| (inst.warp, inst.pc) == (release.warp(), release.pc());
        let at = self
            .in_flight
            .iter()
            // An instruction without lanes skips its pipe.
            .position(|inst| is_it(inst) && (inst.is_done || inst.lanes == 0));
        let done = self
            .in_flight
            .remove(at.unwrap_or_else(|| panic!("{release:?} of no instruction")));
        let (inst, decoded) = GRID.instruction(done.pc);
        features::note((done.pc, done.lanes.count_ones().min(2), done.is_done));
        // The release tells that the results are in the register file, so the model writes them now.
        let registers = &mut self.registers[usize::from(done.warp)];
        for lane in LaneMask(done.lanes).iter() {
            for n in (0..decoded.result_words).filter(|_| !inst.dst.is_zero()) {
                let word = result(done.number, n.into(), lane);
                registers.words[usize::from(inst.dst.0 + n)][lane] = word;
            }
            for (n, pred) in inst.pdst[..inst.op.info().pdst as usize].iter().enumerate() {
                let value = result(done.number, n, 40) >> lane & 1;
                // A write to PT is lost.
                if let Some(mask) = registers.preds.get_mut(usize::from(pred.0)) {
                    *mask = *mask & !(1 << lane) | value << lane;
                }
            }
        }
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.info.tick(now);
        // Releases first: they clear the registers that the next issue needs.
        self.take_release(now);
        (0..self.pipes.len()).for_each(|pipe| self.run_pipe(pipe, now));
        self.issue_next(now);
        let is_returned = self.results.iter().all(Late::is_empty);
        self.n_issued < self.input.issues.len() || !self.in_flight.is_empty() || !is_returned
    }

    fn reset(&mut self) {
        self.info.clear();
        self.issue.clear();
        self.release.clear();
        self.pipes.iter_mut().for_each(Sink::clear);
        self.results.iter_mut().for_each(Late::clear);
        self.registers = Default::default();
        self.in_flight.clear();
        self.n_issued = 0;
        self.start();
    }

    fn digest(&self) -> u64 {
        combine(self.pipes.iter().map(Sink::digest).chain([self.release.digest()]))
    }
}

/// Runs the dispatch unit.
///
/// # Panics
/// If an operand or a guard is wrong, if an instruction is lost or doubled, or if the unit breaks the contract.
pub fn check(input: Input) {
    let build = |wiring: &Wiring| {
        let (info, warp_info) = wiring.input(1, 2);
        let (issue, issued) = wiring.input(1, 2);
        let (release, releases) = wiring.output(1, 2);
        let (mut to_pipes, mut pipes, mut results) = (Vec::new(), Vec::new(), Vec::new());
        let (mut math, mut queued) = (Vec::new(), Vec::new());
        for pipe in 0..=Pipe::Control as usize {
            let (output, sink) = wiring.output(1, 2);
            let (result, done) = wiring.input(1, 2);
            to_pipes.push(output);
            pipes.push(Sink::new(sink, input.pipe_pace));
            results.push(Late::new(result));
            if pipe == Pipe::Lsu as usize {
                &mut queued
            } else {
                &mut math
            }
            .push(done);
        }
        let ports = Ports {
            warp_info,
            issue: issued,
            release,
            pipes: to_pipes,
            results: math,
            queued_results: queued,
        };
        let config = Config {
            subcore: 0,
            subcores: 1,
            warps: WARPS,
            warp_registers: WARPS * REGISTERS,
            sm: (0, 1),
            core_khz: 1_000_000,
        };
        let mut world = Neighbours {
            info: Source::new(info),
            issue: Source::new(issue),
            release: Sink::new(releases, input.release_pace),
            pipes,
            results,
            registers: Default::default(),
            in_flight: Vec::new(),
            n_issued: 0,
            next_issue: 0,
            input: input.clone(),
        };
        world.start();
        (Dispatch::new(Path::root("dispatch"), config, ports), world)
    };
    check_component(build, input.second, 200_000);
}
