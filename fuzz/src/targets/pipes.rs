//! Target: one math pipe, or one branch unit, between a dispatch unit and its sinks.
//!
//! Oracle: own definitions of the instructions, for every active lane. Each instruction leaves once, in order of arrival, so each result
//! has one owner. It leaves in the cycle of its latency, and later only behind an older one or under back-pressure.

mod definitions;

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::proto::launch::Grid;
use warpwave_components::proto::warp::{Resolved, WarpInst};
use warpwave_components::sm::pipe::{branch, math};
use warpwave_hw::link::InPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::opcode::Opcode;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::warp_access::grid;
use definitions::{HGMMA, MMA, define};

/// A pipe and its instructions.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    unit: Unit,
    #[arbitrary(with = within(1..=5))]
    output_latency: u32,
    /// Slots of each output. `FREE` slots and a sink that takes in every cycle are no back-pressure.
    #[arbitrary(with = one_of(&[FREE, 1, 2, 4]))]
    depth: u32,
    paces: [Pace; 2],
    /// Latency of an instruction, by its number modulo 4.
    latencies: [Latency; 4],
    #[arbitrary(with = up_to(40))]
    insts: Vec<InstSpec>,
}

#[derive(Arbitrary, Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Math,
    Tensor,
    Branch,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Latency(#[arbitrary(with = one_of(&[4, 1, 3, 6, 18, 62, 70, 150]))] u32);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct InstSpec {
    /// Cycles after the last arrival.
    #[arbitrary(with = one_of(&[0, 0, 1, 2, 4, 30, 100]))]
    gap: u64,
    /// Cycles from issue to the link of the pipe.
    #[arbitrary(with = one_of(&[1, 1, 2, 5, 20]))]
    age: u64,
    pc: u8,
    warp: u8,
    #[arbitrary(with = one_of(&[u32::MAX, 1, 0xffff_0000, 0x8000_0001, 0x5a5a_5a5a, 0]))]
    lanes: u32,
    preds: [u32; 2],
    /// Makes the operands.
    seed: u32,
}

/// More slots than any run fills.
const FREE: u32 = 256;

const BRANCHES: &str = "BRA 0
    BRX R1
    BSSY B0
    WARPSYNC R1
    EXIT
    BAR R1, R2
    BAR.RED R1, R2, P0
    NANOSLEEP R1";

static MATH: LazyLock<Grid> = LazyLock::new(|| grid(definitions::PROGRAM));
static CONTROL: LazyLock<Grid> = LazyLock::new(|| grid(BRANCHES));

impl InstSpec {
    fn inst(self, grid: &Arc<Grid>, at: u64, index: u32, last: u32) -> Box<WarpInst> {
        let mut inst = Box::new(WarpInst::blank(0, grid.clone()));
        inst.pc = u32::from(self.pc) % last;
        (inst.warp, inst.index) = (self.warp, index);
        // `at` begins at 20, the greatest age.
        inst.issued = Cycle(at - self.age);
        inst.lanes = LaneMask(self.lanes);
        inst.operands.preds = self.preds.map(LaneMask);
        for (n, word) in inst.operands.words.iter_mut().enumerate() {
            *word = Lanes(std::array::from_fn(|lane| operand(self.seed, n, lane)));
        }
        if std::ptr::eq(grid.program.code(), MATH.program.code()) && inst.pc == MMA {
            // A matrix product needs the whole warp.
            inst.lanes = LaneMask::ALL;
        }
        inst
    }
}

/// A word of an operand: often an edge of its type, or the word of a neighbour.
fn operand(seed: u32, n: usize, lane: usize) -> u32 {
    const EDGES: [u32; 16] = [
        0,
        1,
        2,
        31,
        u32::MAX,
        1 << 31,
        i32::MAX as u32,
        // Floats: infinities, a NaN, 1, the least normal number, a subnormal, two packed halves, 2^23 + 1.
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x3f80_0000,
        0x0080_0000,
        0x8000_0001,
        0x7bff_7bff,
        0x0400_8001,
        0x4b00_0001,
    ];
    // The top bits of the seed join neighbouring lanes, so that equal words occur.
    let mixed = (seed ^ (n as u32) << 8 ^ (lane as u32 >> (seed >> 30))).wrapping_mul(0x9e37_79b1);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b);
    if mixed >> 29 < 3 {
        EDGES[mixed as usize % EDGES.len()]
    } else {
        mixed ^ mixed >> 13
    }
}

/// The messages that must leave through one output, in order.
struct Owed<T> {
    /// First cycle in which each message may be visible, and the message.
    messages: VecDeque<(u64, T)>,
    /// Visible cycle of the newest message.
    last: u64,
    /// First cycle in which the sink can take the next message: it takes one per cycle.
    next_take: u64,
}

impl<T> Default for Owed<T> {
    fn default() -> Self {
        Owed {
            messages: VecDeque::new(),
            last: 0,
            next_take: 0,
        }
    }
}

impl<T> Owed<T> {
    /// Adds a message that is visible from `at` on, but never before an older one.
    fn push(&mut self, at: u64, message: T) {
        self.last = self.last.max(at);
        self.messages.push_back((self.last, message));
    }

    /// Takes the oldest message, which leaves in cycle `now`.
    fn take(&mut self, now: Cycle, is_free: bool) -> T {
        let (at, message) = self.messages.pop_front().expect("a message that is not owed");
        assert!(now.0 >= at, "a message of cycle {at} leaves in cycle {now:?}");
        // The sink takes one message per cycle, so a burst waits in the link.
        let earliest = at.max(self.next_take);
        self.next_take = now.0 + 1;
        assert!(
            !is_free || now.0 == earliest,
            "a message of cycle {earliest} leaves in cycle {now:?} without back-pressure"
        );
        message
    }
}

/// The dispatch unit: sends the instructions, and says when each reaches the pipe.
struct Dispatch {
    input: Input,
    grid: Arc<Grid>,
    source: Source<Box<WarpInst>>,
}

impl Dispatch {
    fn new(input: &Input, source: Source<Box<WarpInst>>) -> Self {
        let grid = match input.unit {
            Unit::Branch => CONTROL.clone(),
            _ => MATH.clone(),
        };
        let mut grid = grid;
        for (n, timing) in grid.timing.iter_mut().enumerate() {
            timing.latency = input.latencies[n % 4].0;
        }
        let mut dispatch = Dispatch {
            input: input.clone(),
            grid: Arc::new(grid),
            source,
        };
        dispatch.start();
        dispatch
    }

    fn start(&mut self) {
        // A math pipe never gets the last instruction, the warp-group product.
        let last = self.grid.program.code().len() as u32 - u32::from(self.input.unit == Unit::Math);
        let mut at = 20;
        for (index, spec) in self.input.insts.iter().enumerate() {
            at += spec.gap;
            self.source.push(at, spec.inst(&self.grid, at, index as u32, last));
        }
    }

    fn reset(&mut self) {
        self.source.clear();
        self.start();
    }

    fn is_free(&self) -> bool {
        // Only without back-pressure does the oracle know the exact cycle.
        self.input.depth == FREE && self.input.paces == [Pace::ALWAYS; 2]
    }

    /// First visible cycle of a message that enters the pipe in `entry` and may enter the link in `due`.
    fn visible(&self, entry: u64, due: u64) -> u64 {
        entry.max(due) + u64::from(self.input.output_latency)
    }
}

/// Surroundings of a math pipe.
struct MathWorld {
    dispatch: Dispatch,
    results: Sink<Box<WarpInst>>,
    groups: Option<Sink<Box<WarpInst>>>,
    owed: Owed<Box<WarpInst>>,
    owed_groups: Owed<Box<WarpInst>>,
}

impl MathWorld {
    fn send(&mut self, now: Cycle) {
        let mut sent = None;
        self.dispatch.source.tick_with(now, |inst| sent = Some(inst.clone()));
        let Some(inst) = sent else { return };
        // The link to the pipe takes a cycle.
        let entry = now.0 + 1;
        if inst.pc == HGMMA {
            self.owed_groups
                // The pipe forwards a product of a warp group at once.
                .push(entry + u64::from(self.dispatch.input.output_latency), inst);
        } else {
            // The link to the write port and the release follow.
            let due = inst.issued.0 + u64::from(inst.timing().latency).saturating_sub(2);
            self.owed.push(self.dispatch.visible(entry, due), inst);
        }
    }
}

impl World for MathWorld {
    fn tick(&mut self, now: Cycle) -> bool {
        self.send(now);
        let is_free = self.dispatch.is_free();
        if let Some(found) = self.results.take(now) {
            let sent = self.owed.take(now, is_free);
            assert_eq!(found.index, sent.index, "the order of results");
            check_results(&sent, &found);
        }
        if let Some(found) = self.groups.as_mut().and_then(|sink| sink.take(now)) {
            let sent = self.owed_groups.take(now, is_free);
            assert_eq!(found.index, sent.index, "the order of warp-group products");
            assert!(
                found.operands == sent.operands && found.lanes == sent.lanes,
                "{:?} changes",
                sent.inst().op
            );
        }
        let n_owed = self.owed.messages.len() + self.owed_groups.messages.len();
        n_owed > 0 || !self.dispatch.source.is_empty()
    }

    fn reset(&mut self) {
        self.dispatch.reset();
        self.results.clear();
        self.groups.iter_mut().for_each(Sink::clear);
        (self.owed, self.owed_groups) = Default::default();
    }

    fn digest(&self) -> u64 {
        combine(
            [self.results.digest()]
                .into_iter()
                .chain(self.groups.as_ref().map(Sink::digest)),
        )
    }
}

/// Checks the results of an instruction in its lanes.
fn check_results(sent: &WarpInst, found: &WarpInst) {
    let head = |inst: &WarpInst| (inst.pc, inst.warp, inst.lanes, inst.issued);
    assert_eq!(head(sent), head(found), "an instruction changes in the pipe");
    let defined = define(sent.pc, sent.lanes, &sent.operands);
    features::note((sent.pc, sent.lanes.count().min(2)));
    for lane in sent.lanes.iter() {
        for (n, word) in defined.words.iter().enumerate() {
            let result = found.results.words[n].0[lane];
            assert_eq!(result, word[lane], "word {n} of lane {lane} of {}", sent.inst());
        }
        for (n, pred) in defined.preds.iter().enumerate() {
            let result = found.results.preds[n].contains(lane);
            assert_eq!(
                result,
                pred >> lane & 1 == 1,
                "predicate {n} of lane {lane} of {}",
                sent.inst()
            );
        }
    }
}

/// Surroundings of a branch unit.
struct BranchWorld {
    dispatch: Dispatch,
    resolved: Sink<Resolved>,
    spent: Sink<Box<WarpInst>>,
    owed: Owed<Box<WarpInst>>,
    owed_boxes: Owed<u32>,
}

impl World for BranchWorld {
    fn tick(&mut self, now: Cycle) -> bool {
        let mut sent = None;
        self.dispatch.source.tick_with(now, |inst| sent = Some(inst.clone()));
        if let Some(inst) = sent {
            let entry = now.0 + 1;
            self.owed_boxes
                .push(entry + u64::from(self.dispatch.input.output_latency), inst.index);
            // The link is part of the latency.
            let link = u64::from(self.dispatch.input.output_latency);
            let due = inst.issued.0 + u64::from(inst.timing().latency).saturating_sub(link);
            self.owed.push(self.dispatch.visible(entry, due), inst);
        }
        let is_free = self.dispatch.is_free();
        if let Some(found) = self.resolved.take(now) {
            check_resolved(&self.owed.take(now, is_free), &found);
        }
        if let Some(found) = self.spent.take(now) {
            assert_eq!(
                found.index,
                self.owed_boxes.take(now, is_free),
                "the order of spent boxes"
            );
        }
        let n_owed = self.owed.messages.len() + self.owed_boxes.messages.len();
        n_owed > 0 || !self.dispatch.source.is_empty()
    }

    fn reset(&mut self) {
        self.dispatch.reset();
        self.resolved.clear();
        self.spent.clear();
        (self.owed, self.owed_boxes) = Default::default();
    }

    fn digest(&self) -> u64 {
        combine([self.resolved.digest(), self.spent.digest()])
    }
}

/// Checks the result of a control instruction: operands of the lowest lane, and the number of lanes with a true predicate. A NANOSLEEP has
/// the largest operand of its lanes.
fn check_resolved(sent: &WarpInst, found: &Resolved) {
    assert_eq!(
        (found.warp, found.pc, found.lanes),
        (sent.warp, sent.pc, sent.lanes),
        "order of branches"
    );
    let lowest = (0..32).find(|lane| sent.lanes.0 >> lane & 1 == 1).unwrap_or(0);
    let op = sent.inst().op;
    let n_operands = match op {
        Opcode::Bar | Opcode::BarRed => 2,
        Opcode::Brx | Opcode::Warpsync | Opcode::Nanosleep => 1,
        _ => 0,
    };
    let word = |n: usize| {
        let words = &sent.operands.words[n].0;
        if n < n_operands && op == Opcode::Nanosleep {
            sent.lanes.iter().map(|lane| words[lane]).max().unwrap_or(0)
        } else if n < n_operands {
            words[lowest]
        } else {
            0
        }
    };
    assert_eq!((found.a, found.b), (word(0), word(1)), "operands of {}", sent.inst());
    let n_true = (sent.lanes.0 & sent.operands.preds[0].0).count_ones();
    assert_eq!(found.count, n_true, "true predicates of {}", sent.inst());
    let differs = |lane: usize| op == Opcode::Warpsync && sent.operands.words[0].0[lane] != word(0);
    assert_eq!(found.apart, sent.lanes.filter(differs), "masks of {}", sent.inst());
    features::note((op, sent.lanes.count().min(2), found.apart.is_empty()));
}

fn output<T: Send>(wiring: &Wiring, input: &Input, n: usize) -> (warpwave_hw::link::OutPort<T>, Sink<T>) {
    let (port, sink): (_, InPort<T>) = wiring.output(input.output_latency, input.depth);
    (port, Sink::new(sink, input.paces[n]))
}

/// Runs the pipe.
///
/// # Panics
/// If a result or its cycle is wrong, if an instruction is lost, doubled or overtaken, or if the pipe breaks the contract.
pub fn check(input: Input) {
    if input.unit == Unit::Branch {
        let build = |wiring: &Wiring| {
            let (source, insts) = wiring.input(1, 2);
            let (resolved, results) = output(wiring, &input, 0);
            let (spent, boxes) = output(wiring, &input, 1);
            let ports = branch::Ports {
                input: insts,
                resolved,
                spent,
            };
            let world = BranchWorld {
                dispatch: Dispatch::new(&input, Source::new(source)),
                resolved: results,
                spent: boxes,
                owed: Owed::default(),
                owed_boxes: Owed::default(),
            };
            (branch::BranchUnit::new(Path::root("branch"), ports), world)
        };
        return check_component(build, input.second, 200_000);
    }
    let build = |wiring: &Wiring| {
        let (source, insts) = wiring.input(1, 2);
        let (output_port, results) = output(wiring, &input, 0);
        let (group, groups) = (input.unit == Unit::Tensor).then(|| output(wiring, &input, 1)).unzip();
        let ports = math::Ports {
            input: insts,
            output: output_port,
            group,
        };
        let world = MathWorld {
            dispatch: Dispatch::new(&input, Source::new(source)),
            results,
            groups,
            owed: Owed::default(),
            owed_groups: Owed::default(),
        };
        (math::MathPipe::new(Path::root("pipe"), ports), world)
    };
    check_component(build, input.second, 200_000);
}
