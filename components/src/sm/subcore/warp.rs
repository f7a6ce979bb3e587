//! The warp slots of a scheduler, and the scheduler's state of each warp.

use std::sync::Arc;

use warpwave_hw::time::Cycle;
use warpwave_isa::flow::Flow;
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::LaneMask;

use crate::proto::launch::Grid;
use crate::proto::predecoded::{Group, IssueTarget, Order, Predecoded};
use crate::proto::warp::{SlotMask, WarpStart};
use crate::sm::subcore::async_groups::AsyncGroups;
use crate::sm::subcore::scoreboard::Scoreboard;
use crate::sm::subcore::stall::WarpState;

/// Progress of a warp at its cluster barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClusterState {
    /// Lanes that have arrived since the barrier last opened.
    pub arrived: LaneMask,
    /// True if the warp's arrival has been sent to the CTA manager.
    pub announced: bool,
    /// Lanes that had not begun to wait when the barrier opened. Their wait passes at once.
    pub open: LaneMask,
}

/// One resident warp. Every instruction reads two host cache lines: the first 64 bytes, and the scoreboard.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Warp {
    /// Predecoded instructions, by program counter.
    pub code: Arc<[Predecoded]>,
    /// First cycle of the state in `stall`. A stall is charged when it ends.
    pub since: Cycle,
    /// Cycle in which fetching restarts after a branch, or in which a pause ends.
    pub resume_at: Cycle,
    /// Issued instructions that are not complete, without posted stores.
    pub in_flight: u32,
    /// Memory instructions in the memory queue.
    pub queued: u32,
    /// Posted stores and reductions that have not reached the L2. The count belongs to the slot: a warp takes over the stores of the last
    /// warp there, and its fences wait for them too.
    pub stores: u32,
    /// Program counter of the instruction at the head of its buffer.
    pub buffered_pc: u32,
    /// Stall reason since `since`. `None` while the warp is ready.
    pub stall: Option<WarpState>,
    /// True while a control instruction is at the branch unit.
    pub resolving: bool,
    /// True while the whole warp waits at a barrier. True too after a trap, so that the warp issues nothing more.
    pub at_barrier: bool,
    /// True while the warp waits at a fence.
    pub at_fence: bool,
    /// Stall reason of a pause until `resume_at`. `None` after a branch.
    pub pause: Option<WarpState>,
    /// True while the warp waits for groups of asynchronous operations.
    awaits_groups: bool,
    /// True once the constant operands of the next instruction have been found.
    pub has_constants: bool,
    /// Control flow: program counter and active lanes first, then diverged paths.
    pub flow: Flow,
    /// Pending register writes.
    pub board: Scoreboard,
    /// Groups of copies to shared memory (LDGSTS).
    copies: AsyncGroups,
    /// Groups of warpgroup products (HGMMA).
    products: AsyncGroups,
    /// Groups of bulk copies to global memory.
    bulk: AsyncGroups,
    /// Grid of the warp.
    pub grid: Arc<Grid>,
    /// Position of its CTA in the grid.
    pub block: [u32; 3],
    /// Index of the warp in its CTA.
    pub index: u32,
    /// Generation of its slot, modulo 2.
    pub generation: bool,
    /// Progress at the cluster barrier.
    pub cluster: ClusterState,
    /// Index and thread count of the block barrier that the warp waits at.
    pub barrier: (u8, u32),
    /// Threads of the warp whose predicate holds, for a counting barrier.
    pub barrier_count: Option<u32>,
    /// Loads and atomics in flight, without asynchronous copies.
    pub loads: u32,
    /// Instructions that the scheduler had issued before the cycle `since`. The charge of a stall counts its cycles without an issue apart,
    /// from the difference.
    pub issued_before: u64,
}

// The program counter and the active lanes end the first host cache line.
const _: () = assert!(std::mem::offset_of!(Warp, flow) == 56);

impl Warp {
    /// A warp at its first instruction.
    fn new(start: WarpStart, flow: Flow, now: Cycle, issued_before: u64) -> Self {
        Warp {
            flow,
            code: start.grid.predecoded.clone(),
            grid: start.grid,
            block: start.block,
            index: start.index,
            generation: start.generation,
            board: Scoreboard::default(),
            in_flight: 0,
            queued: 0,
            stores: 0,
            resolving: false,
            at_barrier: false,
            at_fence: false,
            resume_at: now,
            pause: None,
            awaits_groups: false,
            has_constants: false,
            stall: Some(WarpState::NoInstruction),
            since: now,
            copies: AsyncGroups::default(),
            products: AsyncGroups::default(),
            bulk: AsyncGroups::default(),
            buffered_pc: 0,
            cluster: ClusterState::default(),
            barrier: (0, 0),
            barrier_count: None,
            loads: 0,
            issued_before,
        }
    }

    /// True if no lane of the warp can run and no instruction is in flight. Its lanes wait at barriers, or have exited.
    pub fn is_held_at_barrier(&self) -> bool {
        self.flow.active().is_empty() && self.in_flight == 0 && !self.resolving
    }

    /// The instruction at a program counter.
    #[inline]
    pub fn inst(&self, pc: u32) -> &Inst {
        &self.grid.program.code()[pc as usize]
    }

    /// The next instruction if it has no hazard, else the stall reason. Busy pipes are not tested here.
    #[inline]
    pub fn next_or_stall(&self, now: Cycle, has_instruction: bool) -> Result<&Predecoded, WarpState> {
        if self.is_blocked(now) {
            return Err(self.stall_reason(now));
        }
        // After the blocks: a blocked warp names its own reason, even if its buffer is empty.
        if !has_instruction {
            return Err(WarpState::NoInstruction);
        }
        let next = &self.code[self.flow.pc() as usize];
        if let Some(state) = self.board.stall_reason(next) {
            return Err(state);
        }
        if self.board.guard_from(next) > now {
            return Err(WarpState::Wait);
        }
        match next.order {
            // Ordering rules of the instruction itself, beyond its registers: what must be over before it may issue.
            Order::Queued if self.queued > 0 => Err(WarpState::ShortScoreboard),
            Order::Returned if self.loads > 0 && next.target == IssueTarget::Fence => Err(WarpState::Membar),
            Order::Returned if self.loads > 0 => Err(WarpState::LongScoreboard),
            Order::Over if self.in_flight > 0 || self.stores > 0 => Err(WarpState::Membar),
            _ => Ok(next),
        }
    }

    /// First cycle in which the guard of the next instruction is visible to it.
    pub fn guard_from(&self) -> Cycle {
        self.board.guard_from(&self.code[self.flow.pc() as usize])
    }

    /// True if the warp stalls, whatever its next instruction is.
    #[inline]
    fn is_blocked(&self, now: Cycle) -> bool {
        // `|` instead of `||`: mostly no reason applies, so a branch per reason costs more.
        self.flow.active().is_empty()
            | self.at_barrier
            | self.at_fence
            | self.resolving
            | self.awaits_groups
            | (self.resume_at > now)
    }

    /// Stall reason of a blocked warp: the first that applies.
    #[cold]
    fn stall_reason(&self, now: Cycle) -> WarpState {
        // Before the test for no active lanes, which an exited warp also meets.
        if self.flow.is_done() {
            WarpState::Drain
        } else if let Some(state) = self.pause.filter(|_| self.resume_at > now) {
            state
        } else if self.at_barrier || self.flow.active().is_empty() {
            WarpState::Barrier
        } else if self.at_fence {
            WarpState::Membar
        } else if self.products.is_awaited() {
            WarpState::Gmma
        } else if self.copies.is_awaited() || self.bulk.is_awaited() {
            WarpState::LongScoreboard
        } else {
            WarpState::BranchResolving
        }
    }

    /// True if the completion of an instruction can end the warp's stall.
    #[inline]
    pub fn waits_for_completion(&self) -> bool {
        matches!(
            self.stall,
            Some(
                WarpState::LongScoreboard
                    | WarpState::ShortScoreboard
                    | WarpState::Wait
                    | WarpState::Membar
                    | WarpState::Gmma
            )
        )
    }

    /// Adds an operation to the open group. Returns the group's number.
    #[inline]
    pub fn begin(&mut self, group: Group) -> u8 {
        self.groups(group).map_or(0, AsyncGroups::begin)
    }

    /// Completes an operation of group `number`.
    #[inline]
    pub fn end(&mut self, group: Group, number: u8) {
        if group != Group::None {
            self.change(group, |groups| groups.end(number));
        }
    }

    /// Executes a commit: closes the open group.
    pub fn close(&mut self, group: Group) {
        self.flow.step();
        self.change(group, AsyncGroups::close);
    }

    /// Stalls the warp as `state` before cycle `end`.
    pub fn pause(&mut self, state: WarpState, end: Cycle) {
        (self.pause, self.resume_at) = (Some(state), end);
    }

    /// Executes a wait until only the last `n` closed groups are in flight.
    pub fn wait(&mut self, group: Group, n: u8) {
        self.flow.step();
        self.change(group, |groups| groups.wait(n));
    }

    fn change(&mut self, group: Group, change: impl FnOnce(&mut AsyncGroups)) {
        self.groups(group).map(change);
        // One flag for the three kinds, in the host cache line that each evaluation reads.
        self.awaits_groups = self.copies.is_awaited() || self.products.is_awaited() || self.bulk.is_awaited();
    }

    #[inline]
    fn groups(&mut self, group: Group) -> Option<&mut AsyncGroups> {
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
    /// Resident and retired warps. A new warp reuses the memory of the retired warp in its slot. An unused slot holds a copy of the first
    /// warp, so that the vector has no empty slots.
    slots: Vec<Warp>,
    /// Number of slots.
    n: usize,
    /// Slots with a resident warp, bit i for slot i.
    resident: SlotMask,
}

impl Warps {
    /// A table of `slots` empty slots.
    pub fn new(slots: usize) -> Self {
        Warps {
            slots: Vec::new(),
            n: slots,
            resident: 0,
        }
    }

    /// Slots with a resident warp, bit i for slot i.
    #[inline]
    pub fn resident(&self) -> SlotMask {
        self.resident
    }

    /// The resident warp in a slot.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<&Warp> {
        (self.resident >> slot & 1 == 1).then(|| &self.slots[slot])
    }

    /// The warp in a slot, or else the last one that ended there.
    pub fn last(&self, slot: usize) -> Option<&Warp> {
        self.slots.get(slot)
    }

    /// The resident warp in a slot, mutable.
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Warp> {
        (self.resident >> slot & 1 == 1).then(|| &mut self.slots[slot])
    }

    /// The resident warp of every slot, or `None`.
    pub fn iter(&self) -> impl Iterator<Item = Option<&Warp>> {
        (0..self.n).map(|slot| self.get(slot))
    }

    /// Starts a warp at its first instruction, in an empty slot. The scheduler has issued `issued` instructions so far.
    ///
    /// # Panics
    /// If its slot is in use.
    pub fn start(&mut self, start: WarpStart, now: Cycle, issued: u64) {
        let slot = start.warp as usize;
        assert!(
            self.resident >> slot & 1 == 0,
            "cycle {now}: a warp starts in slot {slot}, which is in use"
        );
        assert!(slot < self.n, "cycle {now}: a warp starts in slot {slot} of {}", self.n);
        if self.slots.is_empty() {
            let flow = Flow::new(0, start.lanes);
            self.slots = vec![Warp::new(start.clone(), flow, now, issued); self.n];
        }
        let warp = &mut self.slots[slot];
        // Reuses the memory of the last warp's stack of diverged paths.
        let flow = warp.flow.restart(0, start.lanes);
        let flow = flow.with_reconvergence(start.grid.program.reconvergence());
        let stores = warp.stores;
        *warp = Warp::new(start, flow, now, issued);
        warp.stores = stores;
        self.resident |= 1 << slot;
    }

    /// Ends the warp in a slot.
    pub fn end(&mut self, slot: usize) {
        self.resident &= !(1 << slot);
    }

    /// Counts a store of a slot as complete. Returns the stores that are left there.
    pub fn store_done(&mut self, slot: usize) -> u32 {
        let stores = &mut self.slots[slot].stores;
        *stores = stores
            .checked_sub(1)
            .unwrap_or_else(|| panic!("slot {slot} has no store in flight"));
        *stores
    }

    /// True if a slot without a resident warp has stores that have not reached the L2.
    pub fn owes_stores(&self) -> bool {
        let ended = |&(slot, _): &(usize, &Warp)| self.resident >> slot & 1 == 0;
        self.slots
            .iter()
            .enumerate()
            .filter(ended)
            .any(|(_, warp)| warp.stores > 0)
    }
}
