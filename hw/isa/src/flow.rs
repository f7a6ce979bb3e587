//! Control flow of one warp: divergence at branches, reconvergence at convergence barriers.
//!
//! Models the convergence barriers of Volta and later (M. Abaie Shoushtary et al., arXiv 2407.02944). One group of lanes runs at a time.
//!
//! | event | effect |
//! |---|---|
//! | branch with disagreeing lanes | the lanes that fall through run; the others become a pending group |
//! | BSSY | the running lanes become the members of a convergence barrier |
//! | BRX | the lanes of each target, and those that fall through, become pending groups; the newest runs |
//! | BSYNC | holds the running members until every member has arrived, left (BREAK) or ended (EXIT) |
//! | WARPSYNC | holds each lane until every live lane of its mask waits at a WARPSYNC with the same mask |
//! | block barrier | holds the lanes that execute it until the warp has arrived, and waiting lanes until the barrier opens |
//! | cluster barrier | its wait holds the lanes that execute it until the barrier opens |
//!
//! Which group runs next:
//! - When the running group is held or ends, lanes of a complete BSYNC or WARPSYNC go first, then the newest pending group.
//! - On Volta and later, a direct backward branch of the whole running group starts the oldest pending group. So every lane gets its turn.
//! - When no group can run, a BSYNC releases its lanes early if a WARPSYNC or block barrier needs one of them.
//!
//! A BSSY checks whether its convergence barrier has live members outside the running group. If not, the running lanes become the members.
//! Otherwise the barrier is in use. The running lanes are then removed from its members, and its BSYNC does not hold them. They may stay
//! diverged: slower, but correct.
//!
//! A value exchange, such as a shuffle, follows a WARPSYNC. Lanes that resume at different instructions form separate groups, which
//! cannot exchange values with each other. The warp reports a split exchange if it has to split the lanes of one exchange.
//!
//! GPUs before Volta have a SIMT stack with one program counter for a warp. [`Reconvergence::Stack`] models its order with the
//! same groups. A running group that branches backward keeps running. The other lanes wait until it ends or is held, however long it spins.
//!
//! Held lanes may resume at different instructions, so each lane has its own resume address.
//!
//! Invariants: groups are disjoint; pending, held and running lanes together are the live lanes.

mod barriers;
mod held;
mod sync;

pub use held::{Held, Hold};

use crate::lane::{LaneMask, WARP_SIZE};
use crate::reg::ConvBarrier;

/// Scheduling rule of diverged lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reconvergence {
    /// One program counter for the warp, and a stack of the paths that wait: GPUs before Volta. A path runs until it reconverges.
    Stack,
    /// A program counter for each lane: Volta and later. Each lane makes progress.
    #[default]
    Independent,
}

/// State of one convergence barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Convergence {
    /// Lanes that meet at the BSYNC, whether they have arrived or not.
    members: LaneMask,
    /// Members held at the BSYNC.
    arrived: LaneMask,
}

impl Convergence {
    /// True if `arriving` has every live member and no member is held. Then the lanes pass without waiting.
    fn can_pass(&self, arriving: LaneMask, live: LaneMask) -> bool {
        self.arrived.is_empty() && (self.members & live & !arriving).is_empty()
    }

    /// True if lanes are held, and every live member is one of them.
    fn is_complete(&self, live: LaneMask) -> bool {
        !self.arrived.is_empty() && (self.members & live & !self.arrived).is_empty()
    }
}

/// Control-flow state of one warp.
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
    /// Lanes at the block barrier before the warp's arrival, which needs every live lane.
    arriving: LaneMask,
    /// Lanes of `arriving` that continue at the warp's arrival.
    passing: LaneMask,
    /// Lanes that wait at the block barrier after the warp's arrival.
    block_barrier: LaneMask,
    /// Lanes that wait at the cluster barrier.
    cluster_barrier: LaneMask,
    /// Resume address of the lanes at a barrier, if the whole warp came together.
    after_barrier: Option<u32>,
    /// Lanes that wait at a WARPSYNC.
    syncing: LaneMask,
    /// Lanes of `syncing` that exchange values in their next instruction.
    exchanging: LaneMask,
    /// Lanes of a split exchange, until the caller takes them.
    split_exchange: LaneMask,
    reconvergence: Reconvergence,
    conv_barriers: [Convergence; ConvBarrier::COUNT],
    /// State of the lanes that do not run. Boxed, because a converged warp rarely reads it. `None` once [`Flow::restart`] has taken it.
    diverged: Option<Box<Diverged>>,
}

/// State of the lanes that do not run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Diverged {
    /// Pending groups: program counter and lanes, oldest first.
    pending: [(u32, LaneMask); WARP_SIZE],
    /// Resume address of each held lane.
    resume_at: [u32; WARP_SIZE],
    /// WARPSYNC mask of each lane in `syncing`.
    sync_mask: [LaneMask; WARP_SIZE],
}

impl Flow {
    /// Starts a warp with `lanes` at `pc`.
    pub fn new(pc: u32, lanes: LaneMask) -> Self {
        let storage = Diverged {
            pending: [(0, LaneMask::NONE); WARP_SIZE],
            resume_at: [0; WARP_SIZE],
            sync_mask: [LaneMask::NONE; WARP_SIZE],
        };
        Self::with_storage(pc, lanes, Some(Box::new(storage)))
    }

    /// Starts another warp, which takes over the heap allocation of this warp. Do not use this warp again.
    pub fn restart(&mut self, pc: u32, lanes: LaneMask) -> Self {
        Self::with_storage(pc, lanes, self.diverged.take())
    }

    /// Returns the warp with this scheduling rule of diverged lanes. A new warp has [`Reconvergence::Independent`].
    #[must_use]
    pub fn with_reconvergence(mut self, reconvergence: Reconvergence) -> Self {
        self.reconvergence = reconvergence;
        self
    }

    fn with_storage(pc: u32, lanes: LaneMask, diverged: Option<Box<Diverged>>) -> Self {
        Flow {
            pc,
            active: lanes,
            live: lanes,
            n_pending: 0,
            arriving: LaneMask::NONE,
            passing: LaneMask::NONE,
            block_barrier: LaneMask::NONE,
            cluster_barrier: LaneMask::NONE,
            after_barrier: None,
            syncing: LaneMask::NONE,
            exchanging: LaneMask::NONE,
            split_exchange: LaneMask::NONE,
            reconvergence: Reconvergence::default(),
            conv_barriers: [Convergence::default(); ConvBarrier::COUNT],
            diverged,
        }
    }

    /// Returns the program counter of the running group.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Returns the running lanes. The mask is empty if every live lane is held, or the warp has ended.
    pub fn active(&self) -> LaneMask {
        self.active
    }

    /// Returns the lanes that have not ended.
    pub fn live(&self) -> LaneMask {
        self.live
    }

    /// True if every lane has ended.
    pub fn is_done(&self) -> bool {
        self.live.is_empty()
    }

    /// True if the running lanes are all live lanes.
    pub fn is_converged(&self) -> bool {
        self.active == self.live
    }

    /// Advances to the next instruction.
    pub fn step(&mut self) {
        self.pc += 1;
    }

    /// Branches: the lanes of `taken` go to `target`, the others to the next instruction.
    pub fn branch(&mut self, taken: LaneMask, target: u32) {
        let taken = taken & self.active;
        let rest = self.active & !taken;
        self.pc += 1;
        if rest.is_empty() {
            // `pc` is the next instruction here, so a branch to the next instruction counts as backward.
            let is_backward = target <= self.pc;
            self.pc = target;
            let is_fair = self.reconvergence == Reconvergence::Independent;
            if is_backward && self.n_pending > 0 && is_fair {
                self.rotate_pending();
            }
        } else if !taken.is_empty() {
            self.push_pending(target, taken);
            self.active = rest;
        }
    }

    /// Branches indirectly (BRX): each lane of `taken` goes to its own target.
    pub fn branch_indirect(&mut self, taken: LaneMask, targets: &[u32; WARP_SIZE]) {
        let taken = taken & self.active;
        let stay = self.active & !taken;
        if !stay.is_empty() {
            self.push_pending(self.pc + 1, stay);
        }
        // The targets are pushed last, so one of them runs first.
        self.push_by_target(taken, targets);
        self.resume_pending();
    }

    /// Makes the running lanes the members of `conv`, unless other live lanes are members. Then the running lanes are no members.
    pub fn bssy(&mut self, conv: ConvBarrier) {
        let (active, live) = (self.active, self.live);
        let convergence = &mut self.conv_barriers[conv.0 as usize];
        if (convergence.members & live & !active).is_empty() {
            convergence.members = active;
        } else {
            // Other lanes are between a BSSY of this barrier and its BSYNC. They diverged at a branch without a barrier, as in recursion.
            convergence.members &= !active;
        }
        self.pc += 1;
    }

    /// Holds the running members of `conv` until every member has arrived, left or ended. The other running lanes become a
    /// pending group.
    pub fn bsync(&mut self, conv: ConvBarrier) {
        let n = conv.0 as usize;
        let members = self.conv_barriers[n].members;
        let arriving = self.active & members;
        // No running lane is a member: a BSSY of a barrier in use, or a BREAK, has removed them. They pass without waiting.
        if arriving.is_empty() {
            self.pc += 1;
            return;
        }
        if self.conv_barriers[n].can_pass(arriving, self.live) {
            // Frees the barrier for the next BSSY.
            self.conv_barriers[n].members = LaneMask::NONE;
            self.pc += 1;
            return;
        }
        // Lanes of the running group that are no members go on behind the barrier.
        let others = self.active & !members;
        if !others.is_empty() {
            self.push_pending(self.pc + 1, others);
            self.active = arriving;
        }
        let lanes = self.hold_active();
        self.conv_barriers[n].arrived |= lanes;
        self.select_group();
    }

    /// Removes the running lanes of `leaving` from the members of `conv`.
    pub fn break_from(&mut self, conv: ConvBarrier, leaving: LaneMask) {
        self.conv_barriers[conv.0 as usize].members &= !(leaving & self.active);
        self.pc += 1;
    }

    /// Ends the running lanes of `ending`. The other running lanes continue.
    ///
    /// Returns true if every remaining lane has come to the block barrier: the warp has arrived now.
    pub fn exit(&mut self, ending: LaneMask) -> bool {
        let ending = ending & self.active;
        self.live &= !ending;
        self.active &= !ending;
        self.pc += 1;
        if self.active.is_empty() {
            self.select_group();
        }
        self.complete_arrival()
    }

    fn diverged_mut(&mut self) -> &mut Diverged {
        self.diverged.as_mut().expect("no restart has taken the box")
    }

    fn diverged(&self) -> &Diverged {
        self.diverged.as_ref().expect("no restart has taken the box")
    }

    fn push_pending(&mut self, pc: u32, lanes: LaneMask) {
        // Pending groups are disjoint and not empty, so the array has room.
        let n = self.n_pending as usize;
        self.diverged_mut().pending[n] = (pc, lanes);
        self.n_pending += 1;
    }

    /// Runs the oldest pending group. The running group becomes the newest pending one, so a spinning lane cannot starve the lock's holder.
    fn rotate_pending(&mut self) {
        let (spinning, n) = ((self.pc, self.active), self.n_pending as usize);
        // The array stays in order of age: the oldest leaves at the front, the spinning group enters at the back.
        let pending = &mut self.diverged_mut().pending[..n];
        let oldest = pending[0];
        pending.copy_within(1.., 0);
        pending[n - 1] = spinning;
        (self.pc, self.active) = oldest;
    }

    /// Appends a pending group for each distinct target, the group of the lowest lane first.
    fn push_by_target(&mut self, lanes: LaneMask, targets: &[u32; WARP_SIZE]) {
        let mut rest = lanes;
        while let Some(lane) = rest.lowest() {
            let target = targets[lane];
            let same = rest.filter(|other| targets[other] == target);
            self.push_pending(target, same);
            rest &= !same;
        }
    }

    /// Runs the newest pending group.
    fn resume_pending(&mut self) {
        self.n_pending -= 1;
        let n = self.n_pending as usize;
        (self.pc, self.active) = self.diverged_mut().pending[n];
    }

    /// Holds the running lanes. They will resume at the next instruction.
    fn hold_active(&mut self) -> LaneMask {
        let lanes = self.active;
        self.hold(lanes);
        lanes
    }

    /// Holds some running lanes. They will resume at the next instruction.
    fn hold(&mut self, lanes: LaneMask) {
        let pc = self.pc;
        let diverged = self.diverged_mut();
        // Per lane, because the lanes of one barrier may be held at different instructions.
        lanes.iter().for_each(|lane| diverged.resume_at[lane] = pc + 1);
        self.active &= !lanes;
    }

    /// Holds some running lanes. The other running lanes step on; without any, another group runs.
    fn hold_and_select(&mut self, lanes: LaneMask) {
        self.hold(lanes);
        if self.active.is_empty() {
            self.select_group();
        } else {
            self.pc += 1;
        }
    }

    /// Makes held lanes pending at their resume addresses. One group runs, if none does.
    fn resume(&mut self, lanes: LaneMask) {
        let targets = self.diverged_mut().resume_at;
        self.push_by_target(lanes, &targets);
        if self.active.is_empty() {
            self.resume_pending();
        }
    }

    /// Selects the group to run when none runs: a complete barrier, the newest pending group, or lanes released early.
    fn select_group(&mut self) {
        if let Some(lanes) = self.complete_convergence().or_else(|| self.complete_sync()) {
            self.resume(lanes);
        } else if self.n_pending > 0 {
            self.resume_pending();
        } else if let Some(lanes) = self.release_bsync_early() {
            self.resume(lanes);
        }
    }

    /// Takes the lanes of a complete convergence barrier.
    fn complete_convergence(&mut self) -> Option<LaneMask> {
        let live = self.live;
        let convergence = self
            .conv_barriers
            .iter_mut()
            .find(|convergence| convergence.is_complete(live))?;
        convergence.members = LaneMask::NONE;
        Some(std::mem::take(&mut convergence.arrived))
    }

    /// Takes the lanes of the first BSYNC that holds an awaited lane, and removes them from its members.
    ///
    /// An awaited lane is one that a WARPSYNC or a barrier needs.
    fn release_bsync_early(&mut self) -> Option<LaneMask> {
        // A warp's arrival needs every live lane. Other warps at an open barrier may need what the held lanes do next.
        let mut awaited = match (self.arriving | self.block_barrier | self.cluster_barrier).is_empty() {
            true => LaneMask::NONE,
            false => self.live,
        };
        let mut rest = self.syncing;
        while let Some(lane) = rest.lowest() {
            let (mask, lanes) = self.sync_group(lane);
            awaited |= mask;
            rest &= !lanes;
        }
        let convergence = self
            .conv_barriers
            .iter_mut()
            .find(|convergence| !(convergence.arrived & awaited).is_empty())?;
        let lanes = std::mem::take(&mut convergence.arrived);
        // The released lanes are no members any more, so the others do not wait for them.
        convergence.members &= !lanes;
        Some(lanes)
    }
}
