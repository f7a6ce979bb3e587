//! Messages inside an SM: starts and ends of warps, instructions with operands and results, acknowledgements.

use std::sync::Arc;

use warpwave_hw::time::Cycle;
use warpwave_isa::exec::texture::{MAX_TEXELS, Texel};
use warpwave_isa::exec::{Operands, Results};
use warpwave_isa::inst::{AtomOp, Inst};
use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::{Decoded, MAX_RESULT_WORDS, MAX_SOURCE_WORDS};
use warpwave_isa::reg::Reg;

use crate::proto::addresses::WarpAddresses;
use crate::proto::launch::{Grid, Origin, Route, Timing};

/// A set of warp slots of a sub-core, bit i for slot i.
pub type SlotMask = u64;

/// Maximum number of warp slots of a sub-core.
pub const MAX_SLOTS: usize = SlotMask::BITS as usize;

/// Width of a warp slot in a waveform.
pub(crate) const SLOT_WIDTH: u32 = MAX_SLOTS.ilog2();

/// The start of a warp. The CTA manager sends it to the scheduler and to the dispatch unit of the sub-core.
#[derive(Clone, Debug)]
pub struct WarpStart {
    /// Slot in the sub-core.
    pub warp: u8,
    /// Slot of its CTA in the SM.
    pub cta: u8,
    /// Index of the warp in its CTA: lane 0 is thread 32 * `index`.
    pub index: u32,
    /// Position of its CTA in the grid.
    pub block: [u32; 3],
    /// First byte of its CTA's shared memory.
    pub shared_base: u32,
    /// Lanes with a thread.
    pub lanes: LaneMask,
    /// Generation of the slot, modulo 2: it changes with each start there. An issued instruction has it too, so a late start is found.
    pub generation: bool,
    /// Its grid.
    pub grid: Arc<Grid>,
}

/// Command for warps. From the CTA manager to a scheduler.
#[derive(Clone, Debug)]
pub enum WarpCommand {
    /// A warp starts.
    Start(WarpStart),
    /// The block barrier of these warps is open, bit i for slot i.
    Release(SlotMask),
    /// The cluster barrier of these warps is open, bit i for slot i.
    OpenCluster(SlotMask),
}

/// Values of special registers and of BAR.RED. From the CTA manager to a dispatch unit.
#[derive(Clone, Debug)]
pub enum WarpInfo {
    /// A warp starts.
    Start(WarpStart),
    /// The counting barrier of these warps is open.
    Counted {
        /// The warps, bit i for slot i.
        warps: SlotMask,
        /// Number of threads with a true predicate.
        count: u32,
    },
}

/// Event of a warp. From its scheduler to the CTA manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarpEvent {
    /// The warp has arrived at a barrier of its CTA.
    Arrive {
        /// Slot in the sub-core.
        warp: u8,
        /// Barrier number.
        barrier: u8,
        /// Threads that the barrier waits for. 0 for all threads of the CTA.
        threads: u32,
        /// True if the warp continues without waiting (`bar.arrive`).
        pass: bool,
        /// Threads of the warp with a true predicate, at a counting barrier.
        count: Option<u32>,
    },
    /// Every live lane of the warp has arrived at the barrier of its cluster.
    ArriveCluster {
        /// Slot in the sub-core.
        warp: u8,
    },
    /// Every lane has exited, and nothing of the warp is in flight but stores.
    Done {
        /// Slot in the sub-core.
        warp: u8,
        /// True if stores are in flight. `StoresDone` follows, or the `Done` of a later warp in the slot.
        is_storing: bool,
    },
    /// The stores of ended warps in a slot without a warp are in the L2.
    StoresDone {
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

/// Guard and operands of a control instruction. From the branch unit to its scheduler.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Slot in the sub-core.
    pub warp: u8,
    /// The instruction.
    pub pc: u32,
    /// Active lanes with a true guard.
    pub lanes: LaneMask,
    /// Operand A (barrier number, mask, target) in the lowest lane of `lanes`.
    pub a: u32,
    /// Operand B in the lowest lane of `lanes`.
    pub b: u32,
    /// Number of lanes of `lanes` with a true predicate source.
    pub count: u32,
    /// For WARPSYNC: the lanes whose operand A differs from `a`.
    pub apart: LaneMask,
}

/// Acknowledgement of an access. From the LSU to a scheduler. One word, because each access sends one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(8))]
pub enum LsuAck {
    /// The LSU has accepted an instruction of this warp. Its entry in the sub-core's memory queue is free, and every later access of the SM
    /// is ordered after it.
    QueueCredit {
        /// Slot in the sub-core.
        warp: u8,
    },
    /// All bytes of a store or reduction of this warp are in the L2. For shared memory, the LSU has sent them on.
    StoreDone {
        /// Slot in the sub-core.
        warp: u8,
    },
}

/// The texels of a texture fetch, and the bytes that have arrived.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The texels of each lane.
    pub texels: [[Texel; MAX_TEXELS]; WARP_SIZE],
    /// Largest number of texels of a lane.
    pub n: usize,
    /// Number of texels of each lane. Lanes with different handles may differ.
    pub lane_texels: [u8; WARP_SIZE],
    /// The bytes of each texel.
    pub bytes: [[[u8; 16]; MAX_TEXELS]; WARP_SIZE],
}

impl Default for Fetch {
    /// No texels.
    fn default() -> Self {
        Fetch {
            texels: [[Texel::default(); MAX_TEXELS]; WARP_SIZE],
            n: 0,
            lane_texels: [0; WARP_SIZE],
            bytes: [[[0; 16]; MAX_TEXELS]; WARP_SIZE],
        }
    }
}

/// The properties of an instruction that its units read most. Looked up once, at operand collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IssueInfo {
    /// Its pipe.
    pub pipe: Pipe,
    /// The first register that it writes.
    pub dst: Reg,
    /// Number of registers that it writes. 0 if the destination is RZ.
    pub result_words: u8,
    /// True if it writes predicates.
    pub sets_predicates: bool,
    /// True if it is complete for its warp once it is sent: a store, a reduction.
    pub is_posted: bool,
    /// The unit that the LSU sends it to.
    pub route: Route,
}

impl IssueInfo {
    /// The properties of `inst`.
    #[inline]
    pub fn of(inst: &Inst, decoded: &Decoded, timing: &Timing) -> Self {
        IssueInfo {
            pipe: timing.pipe,
            dst: inst.dst,
            // RZ drops the result.
            result_words: if inst.dst.is_zero() { 0 } else { decoded.result_words },
            sets_predicates: decoded.pred_defs != 0,
            is_posted: timing.is_posted,
            route: timing.route,
        }
    }
}

/// A warp instruction in flight, with its operands and later its results. Its box travels from the dispatch unit through a pipe and
/// back, so nothing is allocated.
///
/// The first 64 bytes, one host cache line, hold the fields that every unit reads.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct WarpInst {
    /// Its grid.
    pub grid: Arc<Grid>,
    /// Cycle of issue.
    pub issued: Cycle,
    /// The instruction.
    pub pc: u32,
    /// Lanes in which it takes effect: active, with a true guard.
    pub lanes: LaneMask,
    /// Lanes whose address is in shared memory.
    pub shared_lanes: LaneMask,
    /// Lanes whose address is in local memory, where successive words of a lane are a line apart.
    pub local_lanes: LaneMask,
    /// Position of the CTA in the grid.
    pub block: [u32; 3],
    /// Index of the warp in its CTA.
    pub index: u32,
    /// First byte of the CTA's shared memory.
    pub shared_base: u32,
    /// Its sub-core.
    pub subcore: u8,
    /// Slot in the sub-core.
    pub warp: u8,
    /// Group of an asynchronous operation.
    pub group: u8,
    /// The properties that its units read most.
    pub info: IssueInfo,
    /// Source operands.
    pub operands: Operands,
    /// Results.
    pub results: Results,
    /// Address of each lane's access, computed by the LSU: in device memory, or in the CTA's shared memory.
    pub addresses: WarpAddresses,
    /// The fetch of a texture or surface access. Allocated by the first one, and kept with the box.
    pub fetch: Option<Box<Fetch>>,
}

// The fields that every unit reads fill one host cache line.
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
            addresses: WarpAddresses::ZERO,
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

    /// The instruction.
    #[inline]
    pub fn inst(&self) -> &Inst {
        self.grid.instruction(self.pc).0
    }

    /// Its decoded form.
    #[inline]
    pub fn decoded(&self) -> &Decoded {
        self.grid.instruction(self.pc).1
    }

    /// Its timing.
    #[inline]
    pub fn timing(&self) -> Timing {
        self.grid.timing[self.pc as usize]
    }

    /// The lanes whose address is used. For a matrix load they are the lanes with row addresses.
    pub fn address_lanes(&self) -> LaneMask {
        let inst = self.inst();
        match inst.op {
            // Eight rows of each matrix, one address each.
            Opcode::Ldsm => LaneMask::first(8 * u32::from(inst.mods.count)),
            _ => self.lanes,
        }
    }

    /// Operand and compare value of an atomic in `lane`. CAS compares with source B and stores C. Other atomics use B.
    pub fn atomic_operands(&self, lane: usize) -> (u128, u128) {
        let inst = self.inst();
        let words = usize::from(inst.mods.access.words());
        let source = |slot: usize| {
            let first = usize::from(self.decoded().first_word[slot]);
            let word = |n: usize| u128::from(self.operands.words[first + n].0[lane]);
            // The lowest register holds the lowest word.
            (0..words).fold(0, |value, n| value | word(n) << (32 * n))
        };
        match inst.op == Opcode::Atom && inst.mods.atom == AtomOp::Cas {
            true => (source(2), source(1)),
            false => (source(1), 0),
        }
    }

    /// Stores the old value that an atomic returns in `lane`.
    pub fn set_old_value(&mut self, lane: usize, value: u128) {
        let words = usize::from(self.inst().mods.access.words());
        for (n, result) in self.results.words.iter_mut().enumerate().take(words) {
            result.0[lane] = (value >> (32 * n)) as u32;
        }
    }

    /// The instruction, as a trap of one of its lanes names it.
    pub fn origin(&self) -> Origin {
        Origin {
            pc: self.pc,
            line: self.inst().line,
            block: self.block,
            block_size: self.grid.block,
            warp: self.index,
            shared_bytes: self.grid.shared_bytes,
        }
    }
}
