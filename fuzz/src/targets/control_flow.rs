//! Target: `Flow`, the control flow of a warp, against one interpreter per thread.
//!
//! Oracle: each thread executes the instructions that it executes alone, in the same order, and every program ends. If every region has a
//! convergence barrier, its threads leave it together.

use arbitrary::{Arbitrary, Result, Unstructured};
use warpwave_isa::flow::{Flow, Reconvergence};
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::reg::ConvBarrier;

use crate::draw::{one_of, within};
use crate::features;

/// A program of nested regions, and the warp that runs it.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    #[arbitrary(with = one_of(&[u32::MAX, 0xf, 0x8421_1248, 1]))]
    lanes: u32,
    stack: bool,
    /// True if every region has a convergence barrier.
    all_sync: bool,
    /// True if `Sync` is a block barrier, false if it is a WARPSYNC of all lanes.
    block_barriers: bool,
    #[arbitrary(with = |bytes: &mut Unstructured<'_>| statements(bytes, 3))]
    body: Vec<Statement>,
}

/// A statement. A condition says how the lanes disagree.
#[derive(Clone, Debug)]
enum Statement {
    Work,
    /// Lanes wait for each other. Not in a program whose regions must reconverge.
    Sync,
    Exit(Condition),
    If(Condition, Region),
    /// Repeats its first body until the condition is false, 4 times at most.
    Loop(Condition, Region),
    /// Goes to one of three bodies by an indirect branch.
    Switch(Condition, Region),
}

/// The bodies of a region, and whether it has a convergence barrier.
#[derive(Clone, Debug)]
struct Region {
    has_barrier: bool,
    bodies: [Vec<Statement>; 3],
}

/// A decision by lane and by the number of its visits.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Condition {
    #[arbitrary(with = one_of(&[0, u32::MAX, 0xffff, 0xaaaa_aaaa, 1, 0x7070_0707]))]
    lanes: u32,
    /// Rotation of the mask at each further visit, in lanes.
    #[arbitrary(with = within(0..=5))]
    shift: u32,
}

impl Condition {
    fn holds(self, lane: usize, visit: u32) -> bool {
        self.lanes.rotate_left(self.shift * visit) >> lane & 1 == 1
    }
}

fn statements(bytes: &mut Unstructured<'_>, depth: u32) -> Result<Vec<Statement>> {
    let mut list = Vec::new();
    for _ in 0..bytes.int_in_range(0..=3u8)? {
        list.push(statement(bytes, depth)?);
    }
    Ok(list)
}

fn statement(bytes: &mut Unstructured<'_>, depth: u32) -> Result<Statement> {
    let kind = bytes.int_in_range(0..=if depth == 0 { 2 } else { 8u8 })?;
    let condition = Condition::arbitrary(bytes)?;
    Ok(match kind {
        0 => Statement::Work,
        1 => Statement::Sync,
        2 => Statement::Exit(condition),
        3..=4 => Statement::If(condition, region(bytes, depth, 2)?),
        5..=7 => Statement::Loop(condition, region(bytes, depth, 1)?),
        _ => Statement::Switch(condition, region(bytes, depth, 3)?),
    })
}

fn region(bytes: &mut Unstructured<'_>, depth: u32, n: usize) -> Result<Region> {
    let mut bodies = [const { Vec::new() }; 3];
    for body in &mut bodies[..n] {
        *body = statements(bytes, depth - 1)?;
    }
    let has_barrier = bytes.ratio(2, 3)?;
    Ok(Region { has_barrier, bodies })
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
enum Op {
    Work,
    Sync,
    Exit(Condition),
    /// Lanes with a true condition go to the target, in at most `most` visits.
    Branch(Condition, u32, u32),
    /// Lanes choose one of the targets by their number and visit.
    Indirect(Condition, [u32; 3]),
    Bssy(ConvBarrier),
    Bsync(ConvBarrier),
}

/// Most visits of a backward branch that take it.
const TRIPS: u32 = 4;
const ALWAYS: Condition = Condition {
    lanes: u32::MAX,
    shift: 0,
};

/// Translates statements into instructions.
struct Assembler {
    ops: Vec<Op>,
    all_sync: bool,
    n_barriers: u8,
}

impl Assembler {
    fn body(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Sync if !self.all_sync => self.ops.push(Op::Sync),
            Statement::Work | Statement::Sync => self.ops.push(Op::Work),
            Statement::Exit(condition) => self.ops.push(Op::Exit(*condition)),
            Statement::If(condition, region) => self.region(region, |code| {
                let branch = code.jump(*condition);
                code.body(&region.bodies[0]);
                let skip = code.jump(ALWAYS);
                code.land(branch);
                code.body(&region.bodies[1]);
                code.land(skip);
            }),
            Statement::Loop(condition, region) => self.region(region, |code| {
                let first = code.ops.len() as u32;
                code.body(&region.bodies[0]);
                // The backward branch is bounded, so every program ends.
                code.ops.push(Op::Branch(*condition, first, TRIPS));
            }),
            Statement::Switch(condition, region) => self.region(region, |code| code.switch(*condition, region)),
        }
    }

    fn switch(&mut self, condition: Condition, region: &Region) {
        let at = self.ops.len();
        self.ops.push(Op::Work);
        let (mut targets, mut skips) = ([0; 3], [0; 3]);
        for (n, body) in region.bodies.iter().enumerate() {
            targets[n] = self.ops.len() as u32;
            self.body(body);
            skips[n] = self.jump(ALWAYS);
        }
        // Written last: the targets are known after the bodies.
        self.ops[at] = Op::Indirect(condition, targets);
        skips.into_iter().for_each(|skip| self.land(skip));
    }

    /// Encloses `inner` in a convergence barrier of its own, if the region has one and one is left.
    fn region(&mut self, region: &Region, inner: impl FnOnce(&mut Self)) {
        // Barriers are not reused, so a deep program may run out of them.
        let is_left = usize::from(self.n_barriers) < ConvBarrier::COUNT;
        let has_barrier = (self.all_sync || region.has_barrier) && is_left;
        let barrier = ConvBarrier(self.n_barriers);
        if has_barrier {
            self.n_barriers += 1;
            self.ops.push(Op::Bssy(barrier));
        }
        inner(self);
        if has_barrier {
            self.ops.push(Op::Bsync(barrier));
        }
        // The first instruction after the region belongs to no other one.
        self.ops.push(Op::Work);
    }

    /// A forward branch to a place that `land` sets.
    fn jump(&mut self, condition: Condition) -> usize {
        self.ops.push(Op::Branch(condition, 0, u32::MAX));
        self.ops.len() - 1
    }

    fn land(&mut self, jump: usize) {
        let here = self.ops.len() as u32;
        if let Op::Branch(_, target, _) = &mut self.ops[jump] {
            *target = here;
        }
    }
}

/// The program counters that one thread executes, and its visits of each.
#[derive(Clone, Default)]
struct Thread {
    trace: Vec<u32>,
    visits: Vec<u32>,
}

impl Thread {
    /// Executes the instruction at `pc`. Returns the next program counter, `None` for an exit.
    fn execute(&mut self, ops: &[Op], pc: u32, lane: usize) -> Option<u32> {
        self.trace.push(pc);
        self.visits.resize(ops.len(), 0);
        let visit = std::mem::replace(&mut self.visits[pc as usize], 0);
        self.visits[pc as usize] = visit + 1;
        match ops[pc as usize] {
            Op::Exit(condition) if condition.holds(lane, visit) => None,
            Op::Branch(condition, target, most) => {
                let is_taken = condition.holds(lane, visit) && visit % most.max(1) + 1 < most;
                Some(if is_taken { target } else { pc + 1 })
            }
            Op::Indirect(condition, targets) => {
                // The bits of the lane and of its neighbour: 0, 1 or 2 selects a target.
                let choice = usize::from(condition.holds(lane, visit)) + usize::from(condition.holds(lane ^ 1, visit));
                Some(targets[choice])
            }
            _ => Some(pc + 1),
        }
    }
}

/// Runs one thread alone.
fn run_alone(ops: &[Op], lane: usize) -> Vec<u32> {
    let mut thread = Thread::default();
    let mut pc = 0;
    while let Some(next) = thread.execute(ops, pc, lane) {
        pc = next;
    }
    thread.trace
}

/// A warp that runs the program with [`Flow`].
struct Warp<'a> {
    ops: &'a [Op],
    flow: Flow,
    threads: Vec<Thread>,
    block_barriers: bool,
    /// For each convergence barrier, the lanes that entered its region last.
    entered: [LaneMask; ConvBarrier::COUNT],
    all_sync: bool,
}

impl Warp<'_> {
    /// Executes one instruction of the running group.
    fn step(&mut self) {
        let (pc, active) = (self.flow.pc(), self.flow.active());
        assert!(!active.is_empty(), "no lane runs, and {:?} are live", self.flow.live());
        let next: Vec<(usize, Option<u32>)> = active
            .iter()
            .map(|lane| (lane, self.threads[lane].execute(self.ops, pc, lane)))
            .collect();
        let lanes = |wanted: &dyn Fn(Option<u32>) -> bool| {
            let chosen = next.iter().filter(|(_, next)| wanted(*next));
            chosen.fold(LaneMask::NONE, |mask, (lane, _)| mask | LaneMask(1 << lane))
        };
        self.check_reconverged(pc, active);
        match self.ops[pc as usize] {
            Op::Work => self.flow.step(),
            Op::Sync if self.block_barriers => {
                // The warp is alone in its block, so the barrier opens with its last lane.
                if self.flow.arrive(LaneMask::ALL, true) {
                    self.flow.release();
                }
            }
            Op::Sync => self.flow.warpsync(LaneMask::ALL, LaneMask::NONE, false),
            Op::Exit(_) => {
                if self.flow.exit(lanes(&|next| next.is_none())) {
                    self.flow.release();
                }
            }
            // A branch to the next instruction is taken by no lane or by all.
            Op::Branch(_, target, _) => self.flow.branch(lanes(&|next| next == Some(target)), target),
            Op::Indirect(..) => {
                let mut targets = [0; WARP_SIZE];
                next.iter().for_each(|(lane, next)| targets[*lane] = next.unwrap_or(0));
                self.flow.branch_indirect(active, &targets);
            }
            Op::Bssy(barrier) => {
                self.entered[usize::from(barrier.0)] = active;
                self.flow.bssy(barrier);
            }
            Op::Bsync(barrier) => self.flow.bsync(barrier),
        }
    }

    /// Checks that the lanes of a region leave it together.
    fn check_reconverged(&self, pc: u32, active: LaneMask) {
        let before = pc.checked_sub(1).map(|before| self.ops[before as usize]);
        if let Some(Op::Bsync(barrier)) = before.filter(|_| self.all_sync) {
            // Lanes that exited inside the region do not come back.
            let members = self.entered[usize::from(barrier.0)] & self.flow.live();
            assert_eq!(active, members, "lanes that leave the region of {barrier:?} at {pc}");
            features::note(("reconverged", active.count()));
        }
    }
}

/// Runs the program.
///
/// # Panics
/// If a thread executes other instructions than alone, if the warp gets stuck, or if lanes do not reconverge.
pub fn check(input: Input) {
    let mut code = Assembler {
        ops: Vec::new(),
        all_sync: input.all_sync,
        n_barriers: 0,
    };
    code.body(&input.body);
    code.ops.push(Op::Exit(ALWAYS));
    // Without a barrier for each region lanes may stay apart.
    let all_sync = input.all_sync && usize::from(code.n_barriers) < ConvBarrier::COUNT;
    let reconvergence = if input.stack {
        Reconvergence::Stack
    } else {
        Reconvergence::Independent
    };
    let mut warp = Warp {
        ops: &code.ops,
        flow: Flow::new(0, LaneMask(input.lanes)).with_reconvergence(reconvergence),
        threads: vec![Thread::default(); WARP_SIZE],
        block_barriers: input.block_barriers,
        entered: [LaneMask::NONE; ConvBarrier::COUNT],
        all_sync,
    };
    while !warp.flow.is_done() {
        warp.step();
    }
    for lane in LaneMask(input.lanes).iter() {
        assert_eq!(
            warp.threads[lane].trace,
            run_alone(&code.ops, lane),
            "instructions of lane {lane}"
        );
    }
    features::note_count(
        "instructions",
        warp.threads.iter().map(|thread| thread.trace.len() as u64).sum(),
    );
    features::note(("barriers", code.n_barriers, input.all_sync, input.stack));
}
