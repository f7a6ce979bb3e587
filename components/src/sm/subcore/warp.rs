//! A warp as its scheduler keeps it.

use std::sync::Arc;

use warpwave_hw::time::Cycle;
use warpwave_isa::flow::Flow;
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::Decoded;

use crate::proto::launch::{Grid, Timing};
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

/// One resident warp. What is looked at each time that it may go on stands together at the front, the rest of it behind.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Warp {
    /// What it runs.
    pub grid: Arc<Grid>,
    /// First cycle not yet charged.
    pub since: Cycle,
    /// Cycle from which it goes on fetching after a jump; a sleep sets it too.
    pub resume_at: Cycle,
    /// State since `since`; nothing while it could issue.
    pub state: Option<State>,
    /// Whether a control instruction is under way to the branch unit.
    pub resolving: bool,
    /// Whether it waits at a block barrier.
    pub at_barrier: bool,
    /// Whether it waits for its stores at a fence.
    pub at_fence: bool,
    /// Whether `resume_at` is the end of a sleep.
    pub asleep: bool,
    /// Instructions issued whose end has not been reported back.
    pub in_flight: u32,
    /// Memory instructions that the LSU has not taken yet.
    pub queued: u32,
    /// Stores and reductions not yet in the L2.
    pub stores: u32,
    /// Program counter of the instruction at the head of its buffer.
    pub buffered_pc: u32,
    /// Its asynchronous copies.
    pub copies: Copies,
    /// Its part of the products of its warp group.
    pub products: Copies,
    /// Its bulk copies towards global memory.
    pub bulk: Copies,
    /// Its pending writes.
    pub board: Scoreboard,
    /// Where its lanes stand.
    pub flow: Flow,
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
}

impl Warp {
    /// A warp at its first instruction.
    fn new(start: WarpStart, flow: Flow, now: Cycle) -> Self {
        Warp {
            flow,
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
            state: Some(State::NoInstruction),
            since: now,
            copies: Copies::default(),
            products: Copies::default(),
            bulk: Copies::default(),
            buffered_pc: 0,
            cluster: ClusterState::default(),
            barrier: (0, 0),
            barrier_count: None,
        }
    }

    /// The instruction at a program counter.
    #[inline]
    pub fn inst(&self, pc: u32) -> &Inst {
        &self.grid.program.code()[pc as usize]
    }

    /// Its facts.
    #[inline]
    pub fn decoded(&self, pc: u32) -> &Decoded {
        &self.grid.program.decoded()[pc as usize]
    }

    /// Its cycles.
    #[inline]
    pub fn timing(&self, pc: u32) -> Timing {
        self.grid.timing[pc as usize]
    }

    /// What keeps it from issuing, whatever the pipes do; nothing if it could.
    #[inline]
    pub fn wait(&self, now: Cycle, has_instruction: bool) -> Option<State> {
        if self.is_held(now) {
            return Some(self.hold(now));
        }
        if !has_instruction {
            return Some(State::NoInstruction);
        }
        let decoded = self.decoded(self.flow.pc());
        let blocked = self.board.wait(decoded);
        if blocked.is_none() && decoded.pipe == Pipe::Control {
            self.order(self.inst(self.flow.pc()).op)
        } else {
            blocked
        }
    }

    /// Whether anything but its next instruction keeps it, asked without a branch for each reason: mostly none does.
    #[inline]
    fn is_held(&self, now: Cycle) -> bool {
        self.flow.active().is_empty()
            | self.at_barrier
            | self.at_fence
            | self.resolving
            | self.products.is_awaited()
            | self.copies.is_awaited()
            | self.bulk.is_awaited()
            | (self.resume_at > now)
    }

    /// Why a warp that is held is held: the first that applies. A warp that has ended has no running lanes either.
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

    /// What a control instruction waits for so that what came before it is done in order: a barrier for accesses to leave the memory
    /// queue, a fence before products and bulk copies for them to be carried out.
    fn order(&self, op: Opcode) -> Option<State> {
        if self.queued > 0 && is_barrier(op) {
            return Some(State::ShortScoreboard);
        }
        let is_open = op == Opcode::FenceView && (self.in_flight > 0 || self.stores > 0);
        is_open.then_some(State::Membar)
    }
}

fn is_barrier(op: Opcode) -> bool {
    matches!(op, Opcode::Bar | Opcode::BarRed | Opcode::ClusterArrive)
}

/// The warps in a scheduler's slots.
#[derive(Clone, Debug)]
pub struct Warps {
    /// One that has ended stays until another begins in its slot, in its memory.
    slots: Vec<Option<Warp>>,
    /// Slots whose warp has not ended, bit i for slot i.
    resident: u32,
}

impl Warps {
    /// So many empty slots.
    pub fn new(slots: usize) -> Self {
        Warps {
            slots: vec![None; slots],
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
        self.slots[slot].as_ref().filter(|_| self.resident >> slot & 1 == 1)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Warp> {
        let is_resident = self.resident >> slot & 1 == 1;
        self.slots[slot].as_mut().filter(|_| is_resident)
    }

    /// All slots.
    pub fn iter(&self) -> impl Iterator<Item = Option<&Warp>> {
        (0..self.slots.len()).map(|slot| self.get(slot))
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
        let flow = match self.slots[slot].take() {
            Some(before) => before.flow.again(0, start.lanes),
            None => Flow::new(0, start.lanes),
        };
        self.slots[slot] = Some(Warp::new(start, flow, now));
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
