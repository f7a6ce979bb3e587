//! From the host to GigaThread to the SMs and back: grids, CTAs, traps.

use std::fmt;
use std::sync::Arc;

use warpwave_isa::exec::special::cluster_rank;
use warpwave_isa::exec::texture::Texture;
use warpwave_isa::inst::Inst;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Decoded, Program};

use crate::proto::cluster::ClusterPlacement;
use crate::proto::predecoded::Predecoded;
pub use crate::proto::timing::{ResultWait, Route, Timing};

/// All that a launch says, and that every SM reads while it runs.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Counts the machine's launches from 0; the machine fills it in at launch.
    pub id: u32,
    /// The code.
    pub program: Arc<Program>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z; of each there is a whole number in the grid.
    pub cluster: [u32; 3],
    /// Shared memory of a CTA, static and dynamic together, in bytes.
    pub shared_bytes: u32,
    /// The dynamic part of it.
    pub dynamic_shared_bytes: u32,
    /// Registers of a thread, as allocated.
    pub registers: u32,
    /// First address and bytes of each device allocation, ascending: what global accesses may touch.
    pub allocations: Vec<(u64, u64)>,
    /// First device address of the local memory of all warp slots, a multiple of a line. The GPU sets it at launch.
    pub local_base: u64,
    /// Constant banks, in words. Bank 0 holds launch values and parameters.
    pub constants: Vec<Vec<u32>>,
    /// The images of textures and surfaces; a handle is an index into them, counted from 1.
    pub textures: Vec<Texture>,
    /// CTAs that fit on one SM at a time.
    pub ctas_per_sm: u32,
    /// Bytes of an SM's L1 while the grid runs: the rest of the carve-out for shared memory. The GPU sets it at launch.
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

    /// Whether its CTAs run in clusters, if only of one.
    pub fn in_clusters(&self) -> bool {
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

    /// The linear index of the CTA of `rank` in the cluster with this number: clusters count x first, then y, then z.
    pub fn cluster_cta(&self, cluster: u64, rank: u32) -> u64 {
        let in_x = u64::from(self.grid[0] / self.cluster[0]);
        let in_y = u64::from(self.grid[1] / self.cluster[1]);
        let of_cluster = [cluster % in_x, cluster / in_x % in_y, cluster / (in_x * in_y)];
        let of_rank = [
            rank % self.cluster[0],
            rank / self.cluster[0] % self.cluster[1],
            rank / (self.cluster[0] * self.cluster[1]),
        ];
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

    /// What is wrong with a load of `bytes` bytes at an address of a constant bank, if anything.
    pub fn constant_fault(&self, bank: u8, address: u64, bytes: u32) -> Option<TrapKind> {
        let bytes = u64::from(bytes);
        if !address.is_multiple_of(bytes) {
            return Some(TrapKind::Misaligned);
        }
        (address + bytes > self.constant_bytes(bank)).then_some(TrapKind::OutOfBounds)
    }

    /// What people call a constant bank: bank 0 holds parameters.
    pub fn bank_name(bank: u8) -> &'static str {
        if bank == 0 { "parameter" } else { "constant" }
    }

    /// A constant word; zero beyond a bank's end.
    #[inline]
    pub fn constant(&self, bank: u8, word: u16) -> u32 {
        self.constants
            .get(bank as usize)
            .and_then(|words| words.get(word as usize))
            .copied()
            .unwrap_or(0)
    }
}

/// From GigaThread to an SM: run this CTA.
#[derive(Clone, Debug)]
pub struct CtaLaunch {
    /// Its grid.
    pub grid: Arc<Grid>,
    /// Its linear index in the grid.
    pub index: u64,
    /// The placement of every CTA of its cluster. `None` in a grid without clusters: any slot will do.
    pub placement: Option<ClusterPlacement>,
}

/// From an SM to GigaThread.
#[derive(Clone, Debug)]
pub enum SmEvent {
    /// A CTA has ended and its stores have left; its resources are free.
    CtaDone {
        /// Its linear index.
        index: u64,
        /// Its slot.
        slot: u8,
    },
    /// A thread trapped.
    Trap(Box<Trap>),
}

/// From GigaThread to the host.
#[derive(Clone, Debug)]
pub enum GridEvent {
    /// Every CTA has ended, in this cycle.
    Done {
        /// The launch.
        grid: u32,
        /// Cycle in which the last CTA was known to have ended.
        at: warpwave_hw::time::Cycle,
    },
    /// A thread trapped; the launch is abandoned.
    Trap(Box<Trap>),
}

/// Cause of a trap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrapKind {
    /// An access outside every allocation of its space.
    OutOfBounds,
    /// An address that is not a multiple of the access size.
    Misaligned,
    /// It executed a trap instruction.
    Trapped,
    /// Lanes that one mask names were to exchange values, but at several instructions.
    SplitExchange,
    /// It came to a barrier that no CTA has, or with a thread count that no barrier takes.
    Barrier,
}

impl TrapKind {
    /// The kind for an instruction that traps without an access: BPT.TRAP, a barrier, or an exchange.
    pub fn of(op: Opcode) -> Self {
        match op {
            Opcode::Trap => TrapKind::Trapped,
            Opcode::Bar | Opcode::BarRed => TrapKind::Barrier,
            _ => TrapKind::SplitExchange,
        }
    }
}

/// The end of a program that went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trap {
    /// What happened.
    pub kind: TrapKind,
    /// Index of the instruction in the program.
    pub pc: u32,
    /// Line of the source text.
    pub line: u32,
    /// Block in the grid, x, y, z.
    pub block: [u32; 3],
    /// Thread in the block, x, y, z: the lowest lane concerned.
    pub thread: [u32; 3],
    /// The address, where an access is concerned.
    pub address: Option<u64>,
    /// Bytes of the access.
    pub bytes: u32,
    /// State space of the access.
    pub space: &'static str,
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrapKind::OutOfBounds => "out-of-bounds access",
            TrapKind::Misaligned => "misaligned access",
            TrapKind::Trapped => "trap instruction",
            TrapKind::SplitExchange => "lanes of one mask exchange at different instructions",
            TrapKind::Barrier => "barrier number above 15, or a thread count that is no multiple of 32",
        })
    }
}
