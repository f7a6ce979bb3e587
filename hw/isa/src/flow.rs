//! Lanes that part at branches and meet again: where each group of a warp's lanes stands.
//!
//! A warp runs one group of lanes at a time. A branch on which its lanes disagree splits the group; the part that does not
//! branch goes on first, the other is pending. BSSY notes the lanes that will meet at a join, BSYNC holds a group there until the
//! others have come, left (BREAK) or ended (EXIT). When a group is held, the group pending last goes on; when all of it jumps back, the
//! group pending longest, so that every lane gets its turn.
//! This is the convergence of Volta and later (reference rules §5), so it takes no stack discipline from the program.
//! Lanes of another group that comes to a BSSY whose lanes have not met yet do not meet: they pass its BSYNC, slower and no less right.
//! That happens where no region was found around a branch, as in functions that call themselves.
//! WARPSYNC holds each lane until every live lane of the lane's mask waits at a WARPSYNC with the same mask. Lanes that exchange values
//! must do so at one instruction. If they met from several, the warp reports a split exchange.
//! The lanes at a WARPSYNC or a block barrier may need lanes that a BSYNC holds. So when no group can run, the held lanes leave their join
//! and run on.
//! Lanes may wait for each other at different places (a block barrier in either arm of a branch): each remembers where it goes on.
//!
//! Invariants: groups are disjoint; pending, held and running lanes together are the live lanes.

mod sync;

use crate::lane::{LaneMask, WARP_SIZE};
use crate::reg::ConvBarrier;

/// A meeting of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Convergence {
    /// Lanes that are to come.
    members: LaneMask,
    /// Lanes that wait.
    arrived: LaneMask,
}

impl Convergence {
    /// Whether the lanes that come are all that are to come, so that nobody need wait.
    fn is_satisfied_by(&self, coming: LaneMask, live: LaneMask) -> bool {
        self.arrived.is_empty() && (self.members & live & !coming).is_empty()
    }

    /// Whether lanes wait, and none of the live members is missing.
    fn is_complete(&self, live: LaneMask) -> bool {
        !self.arrived.is_empty() && (self.members & live & !self.arrived).is_empty()
    }
}

/// The control state of one warp.
///
/// ```
/// use warpwave_isa::flow::Flow;
/// use warpwave_isa::lane::LaneMask;
/// use warpwave_isa::reg::ConvBarrier;
/// let mut flow = Flow::new(0, LaneMask::first(4));
/// flow.bssy(ConvBarrier(0)); // 0: BSSY
/// flow.branch(LaneMask::first(1), 5); // 1: lane 0 goes to 5
/// assert_eq!((flow.pc(), flow.active().count()), (2, 3));
/// flow.branch(LaneMask::NONE, 0); // 2: falls through
/// flow.bsync(ConvBarrier(0)); // 3: waits, so lane 0 goes on
/// assert_eq!((flow.pc(), flow.active().count()), (5, 1));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Flow {
    pc: u32,
    active: LaneMask,
    live: LaneMask,
    n_pending: u32,
    barrier: LaneMask,
    /// Where all lanes at the barrier go on, if they came together.
    after_barrier: Option<u32>,
    /// Lanes that wait at a WARPSYNC.
    syncing: LaneMask,
    /// The lanes of `syncing` that exchange values next.
    exchanging: LaneMask,
    /// The lanes of an exchange that came together from several instructions.
    split_exchange: LaneMask,
    joins: [Convergence; ConvBarrier::COUNT],
    /// Of use to warps whose lanes have diverged alone, so out of the way of the others. Gone when another warp has taken it over.
    diverged: Option<Box<Diverged>>,
}

/// Lanes that do not run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Diverged {
    /// Groups that could.
    pending: [(u32, LaneMask); WARP_SIZE],
    /// Where each lane that waits goes on.
    resume_at: [u32; WARP_SIZE],
    /// The mask of the WARPSYNC at which each lane of `syncing` waits.
    sync_mask: [LaneMask; WARP_SIZE],
}

impl Flow {
    /// All of `lanes` at `pc`.
    pub fn new(pc: u32, lanes: LaneMask) -> Self {
        let storage = Diverged {
            pending: [(0, LaneMask::NONE); WARP_SIZE],
            resume_at: [0; WARP_SIZE],
            sync_mask: [LaneMask::NONE; WARP_SIZE],
        };
        Self::with_storage(pc, lanes, Some(Box::new(storage)))
    }

    /// Another warp's begin, in the memory of this one's, which is over.
    pub fn restart(&mut self, pc: u32, lanes: LaneMask) -> Self {
        Self::with_storage(pc, lanes, self.diverged.take())
    }

    fn with_storage(pc: u32, lanes: LaneMask, diverged: Option<Box<Diverged>>) -> Self {
        Flow {
            pc,
            active: lanes,
            live: lanes,
            n_pending: 0,
            barrier: LaneMask::NONE,
            after_barrier: None,
            syncing: LaneMask::NONE,
            exchanging: LaneMask::NONE,
            split_exchange: LaneMask::NONE,
            joins: [Convergence::default(); ConvBarrier::COUNT],
            diverged,
        }
    }

    /// Where the running group stands.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// The running lanes; none when every live lane is held at a block barrier, or when the warp has ended.
    pub fn active(&self) -> LaneMask {
        self.active
    }

    /// Lanes that have not ended.
    pub fn live(&self) -> LaneMask {
        self.live
    }

    /// Whether every lane has ended.
    pub fn is_done(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether the running lanes are all the live ones.
    pub fn is_converged(&self) -> bool {
        self.active == self.live
    }

    /// Goes on to the next instruction.
    pub fn step(&mut self) {
        self.pc += 1;
    }

    /// The lanes of `taken` go to `target`, the others to the next instruction.
    pub fn branch(&mut self, taken: LaneMask, target: u32) {
        let taken = taken & self.active;
        let rest = self.active & !taken;
        self.pc += 1;
        if rest.is_empty() {
            let is_backward = target <= self.pc;
            self.pc = target;
            if is_backward && self.n_pending > 0 {
                self.rotate_pending();
            }
        } else if !taken.is_empty() {
            self.push_pending(target, taken);
            self.active = rest;
        }
    }

    /// Each running lane goes to its own target (BRX).
    pub fn branch_indirect(&mut self, taken: LaneMask, targets: &[u32; WARP_SIZE]) {
        let taken = taken & self.active;
        let stay = self.active & !taken;
        if !stay.is_empty() {
            self.push_pending(self.pc + 1, stay);
        }
        self.push_by_target(taken, targets);
        self.resume_pending();
    }

    /// Notes the running lanes as those that meet at `conv`, unless others are on their way there.
    pub fn bssy(&mut self, conv: ConvBarrier) {
        let (active, live) = (self.active, self.live);
        let join = &mut self.joins[conv.0 as usize];
        if (join.members & live & !active).is_empty() {
            join.members = active;
        } else {
            join.members &= !active;
        }
        self.pc += 1;
    }

    /// Holds the running lanes until all members of `conv` have come or gone; those that are none go on.
    pub fn bsync(&mut self, conv: ConvBarrier) {
        let n = conv.0 as usize;
        let members = self.joins[n].members;
        let coming = self.active & members;
        if coming.is_empty() {
            self.pc += 1;
            return;
        }
        if self.joins[n].is_satisfied_by(coming, self.live) {
            self.joins[n].members = LaneMask::NONE;
            self.pc += 1;
            return;
        }
        let others = self.active & !members;
        if !others.is_empty() {
            self.push_pending(self.pc + 1, others);
            self.active = coming;
        }
        let lanes = self.suspend();
        self.joins[n].arrived |= lanes;
        self.select_group();
    }

    /// The lanes of `leaving` no longer meet at `conv`.
    pub fn break_from(&mut self, conv: ConvBarrier, leaving: LaneMask) {
        self.joins[conv.0 as usize].members &= !(leaving & self.active);
        self.pc += 1;
    }

    /// Holds the running lanes at a block barrier; true when every live lane is there, so that the warp has arrived.
    pub fn arrive(&mut self) -> bool {
        if self.is_converged() {
            // The common case: nobody is pending or waits elsewhere, so no lane needs a place of its own.
            self.after_barrier = Some(self.pc + 1);
            self.barrier = std::mem::take(&mut self.active);
            return true;
        }
        let lanes = self.suspend();
        self.barrier |= lanes;
        self.select_group();
        self.is_at_barrier()
    }

    /// Whether every live lane waits at the block barrier.
    pub fn is_at_barrier(&self) -> bool {
        !self.live.is_empty() && self.barrier == self.live
    }

    /// The block barrier opens: the lanes held there go on, together if they came to the same place.
    pub fn release(&mut self) {
        let lanes = std::mem::take(&mut self.barrier);
        match self.after_barrier.take() {
            Some(pc) => (self.pc, self.active) = (pc, lanes),
            None => self.resume(lanes),
        }
    }

    /// The lanes of `ending` are done; the others of the group go on.
    /// True when the lanes left all wait at the block barrier, which then counts as the warp's arrival.
    pub fn exit(&mut self, ending: LaneMask) -> bool {
        let ending = ending & self.active;
        self.live &= !ending;
        self.active &= !ending;
        self.pc += 1;
        if self.active.is_empty() {
            self.select_group();
        }
        self.is_at_barrier()
    }

    fn diverged_mut(&mut self) -> &mut Diverged {
        self.diverged.as_mut().expect("no other warp runs in this one's memory")
    }

    fn diverged(&self) -> &Diverged {
        self.diverged.as_ref().expect("no other warp runs in this one's memory")
    }

    fn push_pending(&mut self, pc: u32, lanes: LaneMask) {
        let n = self.n_pending as usize;
        self.diverged_mut().pending[n] = (pc, lanes);
        self.n_pending += 1;
    }

    /// The group pending longest runs, and the running one is pending: who spins on a lock must not keep its holder from running.
    fn rotate_pending(&mut self) {
        let (spinning, n) = ((self.pc, self.active), self.n_pending as usize);
        let pending = &mut self.diverged_mut().pending[..n];
        let longest = pending[0];
        pending.copy_within(1.., 0);
        pending[n - 1] = spinning;
        (self.pc, self.active) = longest;
    }

    /// Keeps lanes in one group for each place they go to; that of the lowest lane first.
    fn push_by_target(&mut self, lanes: LaneMask, targets: &[u32; WARP_SIZE]) {
        let mut rest = lanes;
        while let Some(lane) = rest.lowest() {
            let target = targets[lane];
            let same = rest.filter(|other| targets[other] == target);
            self.push_pending(target, same);
            rest &= !same;
        }
    }

    fn resume_pending(&mut self) {
        self.n_pending -= 1;
        let n = self.n_pending as usize;
        (self.pc, self.active) = self.diverged_mut().pending[n];
    }

    /// Stops the running lanes, which will go on at the next instruction.
    fn suspend(&mut self) -> LaneMask {
        let (lanes, pc) = (self.active, self.pc);
        let diverged = self.diverged_mut();
        lanes.iter().for_each(|lane| diverged.resume_at[lane] = pc + 1);
        std::mem::take(&mut self.active)
    }

    /// Lanes that waited run again.
    fn resume(&mut self, lanes: LaneMask) {
        let targets = self.diverged_mut().resume_at;
        self.push_by_target(lanes, &targets);
        self.resume_pending();
    }

    /// Chooses the next group when none runs: a complete meeting, else the group pending last, else the lanes of a join that opens early.
    fn select_group(&mut self) {
        if let Some(lanes) = self.complete_join().or_else(|| self.complete_sync()) {
            self.resume(lanes);
        } else if self.n_pending > 0 {
            self.resume_pending();
        } else if let Some(lanes) = self.release_join_early() {
            self.resume(lanes);
        }
    }

    /// Takes the lanes of a join that no live member is missing from, if there is one.
    fn complete_join(&mut self) -> Option<LaneMask> {
        let live = self.live;
        let join = self.joins.iter_mut().find(|join| join.is_complete(live))?;
        join.members = LaneMask::NONE;
        Some(std::mem::take(&mut join.arrived))
    }

    /// Takes the lanes held at a join that lanes at a WARPSYNC or at the block barrier may wait for. They meet there no more.
    fn release_join_early(&mut self) -> Option<LaneMask> {
        let mut awaited = match self.barrier.is_empty() {
            true => LaneMask::NONE,
            false => self.live,
        };
        let mut rest = self.syncing;
        while let Some(lane) = rest.lowest() {
            let (mask, lanes) = self.sync_group(lane);
            awaited |= mask;
            rest &= !lanes;
        }
        let join = self
            .joins
            .iter_mut()
            .find(|join| !(join.arrived & awaited).is_empty())?;
        let lanes = std::mem::take(&mut join.arrived);
        join.members &= !lanes;
        Some(lanes)
    }
}
