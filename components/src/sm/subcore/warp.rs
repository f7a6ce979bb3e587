//! A warp as its scheduler keeps it.

use std::sync::Arc;

use warpwave_hw::time::Cycle;
use warpwave_isa::flow::Flow;
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::LaneMask;

use crate::proto::launch::Grid;
use crate::proto::predecoded::{Group, IssueTarget, Order, Predecoded};
use crate::proto::warp::WarpStart;
use crate::sm::subcore::copies::Copies;
use crate::sm::subcore::scoreboard::Scoreboard;
use crate::sm::subcore::stall::State;

/// How far a warp is with the barrier of its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClusterState {
    /// Lanes that have arrived since the barrier opened last.
    pub arrived: LaneMask,
    /// Whether the CTA manager knows that all have.
    pub announced: bool,
    /// Whether the barrier has opened, and the warp has not come to wait for that yet.
    pub open: bool,
    /// Whether lanes wait for the barrier of the cluster, rather than that of the block.
    pub waits: bool,
}

/// One resident warp. What every instruction needs stands together: the first 64 bytes, and those of the scoreboard.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Warp {
    /// What its scheduler needs to know of its instructions, by program counter.
    pub code: Arc<[Predecoded]>,
    /// First cycle not yet charged.
    pub since: Cycle,
    /// Cycle from which it goes on fetching after a jump; a sleep sets it too.
    pub resume_at: Cycle,
    /// Instructions issued whose end has not been reported back.
    pub in_flight: u32,
    /// Memory instructions that the LSU has not taken yet.
    pub queued: u32,
    /// Stores and reductions not yet in the L2.
    pub stores: u32,
    /// Program counter of the instruction at the head of its buffer.
    pub buffered_pc: u32,
    /// State since `since`; nothing while it could issue.
    pub state: Option<State>,
    /// Whether a control instruction is under way to the branch unit.
    pub resolving: bool,
    /// Whether it waits at a block barrier.
    pub at_barrier: bool,
    /// Whether it waits at a fence.
    pub at_fence: bool,
    /// Whether `resume_at` is the end of a sleep.
    pub asleep: bool,
    /// Whether it waits for groups of copies or products.
    awaits_groups: bool,
    /// Where its lanes stand: the place and the running lanes first.
    pub flow: Flow,
    /// Its pending writes.
    pub board: Scoreboard,
    copies: Copies,
    products: Copies,
    bulk: Copies,
    /// What it runs.
    pub grid: Arc<Grid>,
    /// Position of its CTA in the grid.
    pub block: [u32; 3],
    /// Its index in the CTA.
    pub index: u32,
    /// Where it stands with the barrier of its cluster.
    pub cluster: ClusterState,
    /// The block barrier that it waits at, and the threads that the barrier waits for.
    pub barrier: (u8, u32),
    /// Threads of it that the barrier is to count, so far.
    pub barrier_count: Option<u32>,
    /// Loads and atomics issued and not returned. Asynchronous copies do not count.
    pub loads: u32,
}

/// The place and the running lanes are the last that the first 64 bytes hold.
const _: () = assert!(std::mem::offset_of!(Warp, flow) == 56);

impl Warp {
    /// A warp at its first instruction.
    fn new(start: WarpStart, flow: Flow, now: Cycle) -> Self {
        Warp {
            flow,
            code: start.grid.predecoded.clone(),
            grid: start.grid,
            block: start.block,
            index: start.index,
            board: Scoreboard::default(),
            in_flight: 0,
            queued: 0,
            stores: 0,
            resolving: false,
            at_barrier: false,
            at_fence: false,
            resume_at: now,
            asleep: false,
            awaits_groups: false,
            state: Some(State::NoInstruction),
            since: now,
            copies: Copies::default(),
            products: Copies::default(),
            bulk: Copies::default(),
            buffered_pc: 0,
            cluster: ClusterState::default(),
            barrier: (0, 0),
            barrier_count: None,
            loads: 0,
        }
    }

    /// The instruction at a program counter.
    #[inline]
    pub fn inst(&self, pc: u32) -> &Inst {
        &self.grid.program.code()[pc as usize]
    }

    /// Its next instruction, or what keeps it from issuing that, whatever the pipes do.
    #[inline]
    pub fn next(&self, now: Cycle, has_instruction: bool) -> Result<&Predecoded, State> {
        if self.is_held(now) {
            return Err(self.hold(now));
        }
        if !has_instruction {
            return Err(State::NoInstruction);
        }
        let next = &self.code[self.flow.pc() as usize];
        if let Some(state) = self.board.wait(next) {
            return Err(state);
        }
        match next.order {
            Order::Queued if self.queued > 0 => Err(State::ShortScoreboard),
            Order::Returned if self.loads > 0 && next.target == IssueTarget::Fence => Err(State::Membar),
            Order::Returned if self.loads > 0 => Err(State::LongScoreboard),
            Order::Over if self.in_flight > 0 || self.stores > 0 => Err(State::Membar),
            _ => Ok(next),
        }
    }

    /// Whether anything but its next instruction keeps it, asked without a branch for each reason: mostly none does.
    #[inline]
    fn is_held(&self, now: Cycle) -> bool {
        self.flow.active().is_empty()
            | self.at_barrier
            | self.at_fence
            | self.resolving
            | self.awaits_groups
            | (self.resume_at > now)
    }

    /// Why a warp that is held is held: the first that applies. A warp that has ended has no running lanes either.
    #[cold]
    fn hold(&self, now: Cycle) -> State {
        if self.flow.is_done() {
            State::Drain
        } else if self.asleep && self.resume_at > now {
            State::Sleeping
        } else if self.at_barrier || self.flow.active().is_empty() {
            State::Barrier
        } else if self.at_fence {
            State::Membar
        } else if self.products.is_awaited() {
            State::Gmma
        } else if self.copies.is_awaited() || self.bulk.is_awaited() {
            State::LongScoreboard
        } else {
            State::BranchResolving
        }
    }

    /// Whether the end of one of its instructions may change what it waits for: not what is no matter of results.
    #[inline]
    pub fn waits_for_results(&self) -> bool {
        matches!(
            self.state,
            Some(State::LongScoreboard | State::ShortScoreboard | State::Wait | State::Membar | State::Gmma)
        )
    }

    /// One more of a group begins; gives the group's number.
    #[inline]
    pub fn begin(&mut self, group: Group) -> u8 {
        self.groups(group).map_or(0, Copies::begin)
    }

    /// One of a numbered group is over.
    #[inline]
    pub fn end(&mut self, group: Group, number: u8) {
        if group != Group::None {
            self.change(group, |groups| groups.end(number));
        }
    }

    /// The group that is open begins no more.
    pub fn close(&mut self, group: Group) {
        self.change(group, Copies::close);
    }

    /// It waits until at most the `n` groups closed last are under way.
    pub fn wait(&mut self, group: Group, n: u8) {
        self.change(group, |groups| groups.wait(n));
    }

    fn change(&mut self, group: Group, change: impl FnOnce(&mut Copies)) {
        self.groups(group).map(change);
        self.awaits_groups = self.copies.is_awaited() || self.products.is_awaited() || self.bulk.is_awaited();
    }

    #[inline]
    fn groups(&mut self, group: Group) -> Option<&mut Copies> {
        match group {
            Group::None => None,
            Group::Copies => Some(&mut self.copies),
            Group::Products => Some(&mut self.products),
            Group::Bulk => Some(&mut self.bulk),
        }
    }
}

/// The warps in a scheduler's slots.
#[derive(Clone, Debug)]
pub struct Warps {
    /// One that has ended stays until another begins in its slot, in its memory. Slots that none has begun in hold copies of the
    /// first, so that who asks for a resident warp need not look whether there ever was one.
    slots: Vec<Warp>,
    /// How many there are.
    n: usize,
    /// Slots whose warp has not ended, bit i for slot i.
    resident: u32,
}

impl Warps {
    /// So many empty slots.
    pub fn new(slots: usize) -> Self {
        Warps {
            slots: Vec::new(),
            n: slots,
            resident: 0,
        }
    }

    /// The slots with a warp, bit i for slot i.
    #[inline]
    pub fn resident(&self) -> u32 {
        self.resident
    }

    /// The warp in a slot, if one is there.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<&Warp> {
        (self.resident >> slot & 1 == 1).then(|| &self.slots[slot])
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Warp> {
        (self.resident >> slot & 1 == 1).then(|| &mut self.slots[slot])
    }

    /// All slots.
    pub fn iter(&self) -> impl Iterator<Item = Option<&Warp>> {
        (0..self.n).map(|slot| self.get(slot))
    }

    /// A warp begins at its first instruction.
    ///
    /// # Panics
    /// If its slot is taken.
    pub fn start(&mut self, start: WarpStart, now: Cycle) {
        let slot = start.warp as usize;
        assert!(
            self.resident >> slot & 1 == 0,
            "cycle {now}: a warp starts in slot {slot}, which is taken"
        );
        assert!(slot < self.n, "cycle {now}: a warp starts in slot {slot} of {}", self.n);
        if self.slots.is_empty() {
            let flow = Flow::new(0, start.lanes);
            self.slots = vec![Warp::new(start.clone(), flow, now); self.n];
        }
        let warp = &mut self.slots[slot];
        let flow = warp.flow.again(0, start.lanes);
        *warp = Warp::new(start, flow, now);
        self.resident |= 1 << slot;
    }

    /// The warp in a slot has ended.
    pub fn end(&mut self, slot: usize) {
        self.resident &= !(1 << slot);
    }

    /// All slots are empty.
    pub fn clear(&mut self) {
        self.resident = 0;
    }
}
