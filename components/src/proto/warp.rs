//! Inside an SM: warps started and ended, instructions issued, operands and results on their way.

use std::sync::Arc;

use warpwave_hw::time::Cycle;
use warpwave_isa::exec::texture::{MAX_TEXELS, Texel};
use warpwave_isa::exec::{Operands, Results};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};
use warpwave_isa::opcode::Pipe;
use warpwave_isa::program::{Decoded, MAX_RESULT_WORDS, MAX_SOURCE_WORDS};
use warpwave_isa::reg::Reg;

use crate::proto::launch::{Grid, Route, Timing};

/// A warp to be: from the CTA manager to scheduler and dispatch unit of its sub-core.
#[derive(Clone, Debug)]
pub struct WarpStart {
    /// Slot in the sub-core.
    pub warp: u8,
    /// Slot of its CTA in the SM.
    pub cta: u8,
    /// Index of the warp in its CTA: thread 32 * this is lane 0.
    pub index: u32,
    /// Position of its CTA in the grid.
    pub block: [u32; 3],
    /// First byte of its CTA's shared memory.
    pub shared_base: u32,
    /// Lanes that hold a thread.
    pub lanes: LaneMask,
    /// What it runs.
    pub grid: Arc<Grid>,
}

/// The CTA manager to a scheduler.
#[derive(Clone, Debug)]
pub enum WarpCommand {
    /// Begin.
    Start(WarpStart),
    /// These warps' barrier is open, bit i for slot i.
    Release(u32),
    /// The barrier of these warps' cluster is open.
    OpenCluster(u32),
}

/// The CTA manager to a dispatch unit.
#[derive(Clone, Debug)]
pub enum WarpInfo {
    /// A warp begins.
    Start(WarpStart),
    /// These warps' barrier has counted so many threads.
    Counted {
        /// Bit i for slot i.
        warps: u32,
        /// The threads.
        count: u32,
    },
}

/// A scheduler to the CTA manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarpEvent {
    /// The warp has arrived at a barrier of its CTA.
    Arrive {
        /// Slot in the sub-core.
        warp: u8,
        /// Barrier number.
        barrier: u8,
        /// Threads that the barrier waits for; 0 for all of the CTA.
        threads: u32,
        /// Whether the warp goes on without waiting (`bar.arrive`).
        pass: bool,
        /// Threads of the warp whose predicate holds, where the barrier counts them.
        count: Option<u32>,
    },
    /// Every live lane of the warp has arrived at the barrier of its cluster.
    ArriveCluster {
        /// Slot in the sub-core.
        warp: u8,
    },
    /// Every lane has ended, and nothing of the warp is in flight.
    Done {
        /// Slot in the sub-core.
        warp: u8,
    },
    /// The warp executed a trap instruction.
    Trap {
        /// Slot in the sub-core.
        warp: u8,
        /// The instruction.
        pc: u32,
        /// The lanes.
        lanes: LaneMask,
    },
}

/// The branch unit to its scheduler.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Slot in the sub-core.
    pub warp: u8,
    /// The instruction.
    pub pc: u32,
    /// Lanes in which its guard holds.
    pub lanes: LaneMask,
    /// Its operand A (barrier number, mask, target) in the lowest of these lanes.
    pub a: u32,
    /// Its operand B likewise.
    pub b: u32,
    /// Of these lanes, those in which its predicate source holds.
    pub count: u32,
    /// WARPSYNC: the lanes whose operand A differs from `a`.
    pub apart: LaneMask,
}

/// The LSU to a scheduler. Of a word's size, as one of these comes for every access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(8))]
pub enum LsuAck {
    /// The LSU has taken an instruction of this warp from the sub-core's memory queue: its place is free again, and what any
    /// warp of the SM sends from now on comes after it.
    QueueCredit {
        /// Slot in the sub-core.
        warp: u8,
    },
    /// All bytes of a store or reduction of this warp are in the L2, or on their way to shared memory alone.
    StoreDone {
        /// Slot in the sub-core.
        warp: u8,
    },
}

/// The texels that a fetch wants, and their bytes as far as they have come.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The texels of each lane.
    pub texels: [[Texel; MAX_TEXELS]; WARP_SIZE],
    /// Texels of a lane.
    pub n: usize,
    /// Their bytes.
    pub bytes: [[[u8; 16]; MAX_TEXELS]; WARP_SIZE],
}

impl Default for Fetch {
    /// Nothing.
    fn default() -> Self {
        Fetch {
            texels: [[Texel::default(); MAX_TEXELS]; WARP_SIZE],
            n: 0,
            bytes: [[[0; 16]; MAX_TEXELS]; WARP_SIZE],
        }
    }
}

/// What becomes of an instruction, looked up once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IssueInfo {
    /// Where it goes.
    pub pipe: Pipe,
    /// The first register that it writes.
    pub dst: Reg,
    /// How many; none if they are not kept.
    pub result_words: u8,
    /// Whether it writes predicates.
    pub sets_predicates: bool,
    /// Whether it is over for its warp once it is sent.
    pub is_posted: bool,
    /// Where the LSU sends it.
    pub route: Route,
}

impl IssueInfo {
    /// Of an instruction, its facts, and its cycles.
    #[inline]
    pub fn of(inst: &Inst, decoded: &Decoded, timing: &Timing) -> Self {
        IssueInfo {
            pipe: decoded.pipe,
            dst: inst.dst,
            result_words: if inst.dst.is_zero() { 0 } else { decoded.result_words },
            sets_predicates: decoded.pred_defs != 0,
            is_posted: timing.is_posted,
            route: timing.route,
        }
    }
}

/// An instruction on its way through a pipe: its operands, later its results. The same box goes round, from the dispatch unit
/// through a pipe and back, so that nothing is allocated.
///
/// Laid out in whole lines of the host's cache: one that everybody reads, then what is read and written.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct WarpInst {
    /// What the warp runs.
    pub grid: Arc<Grid>,
    /// Cycle of issue.
    pub issued: Cycle,
    /// The instruction.
    pub pc: u32,
    /// Lanes in which it takes effect: running, and the guard holds.
    pub lanes: LaneMask,
    /// Lanes whose address is in shared memory.
    pub shared_lanes: LaneMask,
    /// Lanes whose address is in local memory, where each further word lies a line further.
    pub local_lanes: LaneMask,
    /// Position of the CTA in the grid.
    pub block: [u32; 3],
    /// Index of the warp in its CTA.
    pub index: u32,
    /// First byte of the CTA's shared memory.
    pub shared_base: u32,
    /// Sub-core that it belongs to.
    pub subcore: u8,
    /// Slot in the sub-core.
    pub warp: u8,
    /// Of an asynchronous copy, its group.
    pub group: u8,
    /// What is asked of the instruction most.
    pub info: IssueInfo,
    /// What it reads.
    pub operands: Operands,
    /// What it writes.
    pub results: Results,
    /// Address of each lane's access, once the LSU has worked them out: in device memory, or in the CTA's shared memory.
    pub addresses: [u64; WARP_SIZE],
    /// Of a texture's or surface's access: what it fetches. Made by the first one, and kept with the box.
    pub fetch: Option<Box<Fetch>>,
}

/// What everybody reads of an instruction fills one line.
const _: () = assert!(std::mem::offset_of!(WarpInst, operands) == 64);

impl WarpInst {
    /// A box for a dispatch unit's pool.
    pub fn blank(subcore: u8, grid: Arc<Grid>) -> Self {
        WarpInst {
            subcore,
            warp: 0,
            pc: 0,
            issued: Cycle::ZERO,
            lanes: LaneMask::NONE,
            block: [0; 3],
            index: 0,
            shared_base: 0,
            grid,
            group: 0,
            info: IssueInfo {
                pipe: Pipe::Int,
                dst: Reg::ZERO,
                result_words: 0,
                sets_predicates: false,
                is_posted: false,
                route: Route::Other,
            },
            addresses: [0; WARP_SIZE],
            shared_lanes: LaneMask::NONE,
            local_lanes: LaneMask::NONE,
            fetch: None,
            operands: Operands {
                words: [Lanes::ZERO; MAX_SOURCE_WORDS],
                preds: [LaneMask::NONE; 2],
                file: [LaneMask::NONE; 7],
            },
            results: Results {
                words: [Lanes::ZERO; MAX_RESULT_WORDS],
                preds: [LaneMask::NONE; 7],
            },
        }
    }

    /// The instruction itself.
    #[inline]
    pub fn inst(&self) -> &Inst {
        &self.grid.program.code()[self.pc as usize]
    }

    /// Its facts.
    #[inline]
    pub fn decoded(&self) -> &Decoded {
        &self.grid.program.decoded()[self.pc as usize]
    }

    /// Its cycles.
    #[inline]
    pub fn timing(&self) -> Timing {
        self.grid.timing[self.pc as usize]
    }

    /// Position in the block of the thread in `lane`.
    pub fn thread(&self, lane: usize) -> [u32; 3] {
        thread_position(self.grid.block, self.index * WARP_SIZE as u32 + lane as u32)
    }
}

/// Position in its block of the thread with this linear index: x first, then y, then z.
pub fn thread_position(block: [u32; 3], linear: u32) -> [u32; 3] {
    [
        linear % block[0],
        linear / block[0] % block[1],
        linear / (block[0] * block[1]),
    ]
}
