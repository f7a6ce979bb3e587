//! Traps: the errors of a thread that end the launch.

use std::fmt;

use warpwave_isa::exec::mbarrier;
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::WARP_SIZE;
use warpwave_isa::opcode::Opcode;

use crate::proto::cluster::RemoteByte;

/// Cause of a trap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrapKind {
    /// An access outside every allocation of its space.
    OutOfBounds,
    /// An address that is not a multiple of the access size.
    Misaligned,
    /// A trap instruction.
    Trapped,
    /// Lanes of one mask exchange values at different instructions.
    SplitExchange,
    /// A barrier number above 15, or a thread count that is no multiple of 32.
    Barrier,
    /// A bulk copy of a size that is no multiple of 16 bytes.
    BulkSize,
    /// An mbarrier was initialised with a count of 0 or above 2^20 - 1.
    MbarrierCount,
    /// An arrival that exceeds the counts of an mbarrier.
    Mbarrier(mbarrier::Fault),
    /// An access to the shared memory of a CTA of the cluster that has ended: its rank.
    EndedCta(u8),
}

impl TrapKind {
    /// The kind for an instruction that traps without an access: BPT.TRAP, a barrier, or an exchange.
    pub fn of(inst: &Inst) -> Self {
        match inst.op {
            Opcode::Trap if inst.mods.count == 1 => TrapKind::MbarrierCount,
            Opcode::Trap => TrapKind::Trapped,
            Opcode::Bar | Opcode::BarRed => TrapKind::Barrier,
            // Only exchanges between lanes are left, such as SHFL.
            _ => TrapKind::SplitExchange,
        }
    }
}

/// A trap: the error of a thread that ends the launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trap {
    /// Cause.
    pub kind: TrapKind,
    /// Index of the instruction in the program.
    pub pc: u32,
    /// Line of the source text.
    pub line: u32,
    /// Block in the grid, x, y, z.
    pub block: [u32; 3],
    /// Thread in the block, x, y, z. If several lanes trap, the thread of the lowest one.
    pub thread: [u32; 3],
    /// The address, for the trap of an access.
    pub address: Option<u64>,
    /// Bytes of the access.
    pub bytes: u32,
    /// State space of the access.
    pub space: &'static str,
}

/// A warp's instruction, as a trap names it. Accesses that another block performs carry it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// Index of the instruction in the program.
    pub pc: u32,
    /// Line of the source text.
    pub line: u32,
    /// Block in the grid, x, y, z.
    pub block: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block_size: [u32; 3],
    /// Number of the warp in its block.
    pub warp: u32,
    /// Shared memory of a block, bytes.
    pub shared_bytes: u32,
}

impl Origin {
    /// The trap of the thread in a lane, for an access to some bytes of a state space.
    #[cold]
    pub fn trap(&self, lane: usize, kind: TrapKind, (address, bytes): (u64, u32), space: &'static str) -> Box<Trap> {
        Box::new(Trap {
            kind,
            pc: self.pc,
            line: self.line,
            block: self.block,
            thread: thread_position(self.block_size, self.warp * WARP_SIZE as u32 + lane as u32),
            address: Some(address),
            bytes,
            space,
        })
    }

    /// The trap of an access to a remote address whose CTA has ended. `shared_unit` is the allocation unit of shared memory.
    #[cold]
    pub fn refused(&self, lane: usize, (address, bytes): (u64, u32), shared_unit: u32) -> Option<Box<Trap>> {
        let to = RemoteByte::of(address)?;
        // All CTAs of a grid have one size, so the remainder is the offset in the CTA.
        let size = self.shared_bytes.next_multiple_of(shared_unit).max(1);
        let access = ((to.byte % size).into(), bytes);
        Some(self.trap(lane, TrapKind::EndedCta(to.rank), access, "shared::cluster"))
    }
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrapKind::Mbarrier(fault) => return fault.fmt(f),
            TrapKind::EndedCta(rank) => return write!(f, "block {rank} of the cluster has ended"),
            TrapKind::OutOfBounds => "out-of-bounds access",
            TrapKind::Misaligned => "misaligned access",
            TrapKind::Trapped => "trap instruction",
            TrapKind::SplitExchange => "lanes of one mask exchange at different instructions",
            TrapKind::Barrier => "barrier number above 15, or a thread count that is no multiple of 32",
            TrapKind::BulkSize => "bulk copy of a size that is no multiple of 16 bytes",
            TrapKind::MbarrierCount => "count of an mbarrier outside 1 to 1048575",
        })
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
