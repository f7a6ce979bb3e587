//! Messages of a launch, between host, GigaThread and SMs: grids, CTAs, traps.

use std::fmt;
use std::sync::Arc;

use warpwave_isa::exec::mbarrier;
use warpwave_isa::exec::special::cluster_rank;
use warpwave_isa::exec::texture::Texture;
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::WARP_SIZE;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Decoded, Program};

use crate::proto::cluster::ClusterPlacement;
use crate::proto::predecoded::Predecoded;
pub use crate::proto::timing::{ResultWait, Route, Timing};
use crate::proto::warp::thread_position;

/// A launch: kernel, shape, parameters and memory. Every SM reads it while it runs.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Number of the launch, counted from 0. The GPU sets it at launch.
    pub id: u32,
    /// The code.
    pub program: Arc<Program>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z. Each divides the size of the grid.
    pub cluster: [u32; 3],
    /// Shared memory of a CTA, static and dynamic together, in bytes.
    pub shared_bytes: u32,
    /// Dynamic shared memory of a CTA in bytes, a part of `shared_bytes`.
    pub dynamic_shared_bytes: u32,
    /// Registers of a thread, as allocated.
    pub registers: u32,
    /// First address and bytes of each device allocation, ascending. A global access must be in one of them.
    pub allocations: Vec<(u64, u64)>,
    /// First device address of the local memory of all warp slots, a multiple of a line. The GPU sets it at launch.
    pub local_base: u64,
    /// Constant banks, in words. Bank 0 holds launch values and parameters.
    pub constants: Vec<Vec<u32>>,
    /// The images of textures and surfaces, and of samplers. [`Texture::of_handle`] finds them.
    pub textures: Vec<Texture>,
    /// CTAs that fit on one SM at a time.
    pub ctas_per_sm: u32,
    /// Capacity of the L1 for this grid, in bytes: the rest of the carve-out for shared memory. The GPU sets it at launch.
    pub l1_bytes: u32,
    /// Cycles of each instruction, by program counter. The GPU sets them at launch.
    pub timing: Vec<Timing>,
    /// Predecoded instructions for the schedulers, by program counter. The GPU sets them at launch.
    pub predecoded: Arc<[Predecoded]>,
}

impl Grid {
    /// CTAs of the whole grid.
    pub fn ctas(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a CTA.
    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// The instruction at `pc`, and its decoded form.
    #[inline]
    pub fn instruction(&self, pc: u32) -> (&Inst, &Decoded) {
        (&self.program.code()[pc as usize], &self.program.decoded()[pc as usize])
    }

    /// Position in the grid of the CTA with this linear index: x first, then y, then z.
    pub fn cta_position(&self, linear: u64) -> [u32; 3] {
        let (x, y) = (u64::from(self.grid[0]), u64::from(self.grid[1]));
        [(linear % x) as u32, (linear / x % y) as u32, (linear / (x * y)) as u32]
    }

    /// True if its CTAs run in clusters, also in clusters of one CTA.
    pub fn in_clusters(&self) -> bool {
        // A kernel with a cluster barrier needs the barrier unit, even in clusters of one CTA.
        self.cluster_ctas() > 1 || self.program.has_cluster_barrier()
    }

    /// CTAs of a cluster.
    pub fn cluster_ctas(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// Rank in its cluster of the CTA with this linear index.
    pub fn cluster_rank(&self, linear: u64) -> u32 {
        cluster_rank(self.cta_position(linear), self.cluster)
    }

    /// The linear index of the CTA of `rank` in cluster number `cluster`. Clusters count x first, then y, then z.
    pub fn cluster_cta(&self, cluster: u64, rank: u32) -> u64 {
        let in_x = u64::from(self.grid[0] / self.cluster[0]);
        let in_y = u64::from(self.grid[1] / self.cluster[1]);
        let of_cluster = [cluster % in_x, cluster / in_x % in_y, cluster / (in_x * in_y)];
        let of_rank = [
            rank % self.cluster[0],
            rank / self.cluster[0] % self.cluster[1],
            rank / (self.cluster[0] * self.cluster[1]),
        ];
        // Clusters tile the grid along each axis.
        let [x, y, z] =
            [0, 1, 2].map(|axis| of_cluster[axis] * u64::from(self.cluster[axis]) + u64::from(of_rank[axis]));
        x + u64::from(self.grid[0]) * (y + u64::from(self.grid[1]) * z)
    }

    /// Bytes of a constant bank.
    pub fn constant_bytes(&self, bank: u8) -> u64 {
        self.constants
            .get(bank as usize)
            .map_or(0, |words| 4 * words.len() as u64)
    }

    /// The fault of a load of `bytes` bytes at an address of a constant bank, if it has one.
    pub fn constant_fault(&self, bank: u8, address: u64, bytes: u32) -> Option<TrapKind> {
        let bytes = u64::from(bytes);
        if !address.is_multiple_of(bytes) {
            return Some(TrapKind::Misaligned);
        }
        (address + bytes > self.constant_bytes(bank)).then_some(TrapKind::OutOfBounds)
    }

    /// Name of the state space of a constant bank. Bank 0 holds parameters.
    pub fn bank_name(bank: u8) -> &'static str {
        if bank == 0 { "parameter" } else { "constant" }
    }

    /// A word of a constant bank. Zero beyond its end.
    #[inline]
    pub fn constant(&self, bank: u8, word: u16) -> u32 {
        self.constants
            .get(bank as usize)
            .and_then(|words| words.get(word as usize))
            .copied()
            .unwrap_or(0)
    }
}

/// Launch of a CTA. From GigaThread to an SM.
#[derive(Clone, Debug)]
pub struct CtaLaunch {
    /// Its grid.
    pub grid: Arc<Grid>,
    /// Its linear index in the grid.
    pub index: u64,
    /// The placement of every CTA of its cluster. `None` in a grid without clusters: the SM chooses the slot.
    pub placement: Option<ClusterPlacement>,
}

/// Event of a CTA. From an SM to GigaThread.
#[derive(Clone, Debug)]
pub enum SmEvent {
    /// A CTA has ended. Its resources are free.
    CtaDone {
        /// Its linear index.
        index: u64,
        /// Its slot.
        slot: u8,
        /// True if stores of ended warps of the SM are in flight. `StoresDone` follows.
        is_storing: bool,
    },
    /// The stores of all ended warps of the SM are in the L2.
    StoresDone,
    /// A thread trapped.
    Trap(Box<Trap>),
}

/// End of a launch. From GigaThread to the host.
#[derive(Clone, Debug)]
pub enum GridEvent {
    /// Every CTA has ended, and every store is in the L2.
    Done {
        /// The launch.
        grid: u32,
        /// Cycle in which GigaThread took the last end of a CTA or of an SM's stores.
        at: warpwave_hw::time::Cycle,
    },
    /// A thread trapped. The launch ends.
    Trap(Box<Trap>),
}

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
    /// An arrival that exceeds the counts of an mbarrier.
    Mbarrier(mbarrier::Fault),
}

impl TrapKind {
    /// The kind for an instruction that traps without an access: BPT.TRAP, a barrier, or an exchange.
    pub fn of(op: Opcode) -> Self {
        match op {
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
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrapKind::Mbarrier(fault) => return fault.fmt(f),
            TrapKind::OutOfBounds => "out-of-bounds access",
            TrapKind::Misaligned => "misaligned access",
            TrapKind::Trapped => "trap instruction",
            TrapKind::SplitExchange => "lanes of one mask exchange at different instructions",
            TrapKind::Barrier => "barrier number above 15, or a thread count that is no multiple of 32",
            TrapKind::BulkSize => "bulk copy of a size that is no multiple of 16 bytes",
        })
    }
}
