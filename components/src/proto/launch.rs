//! Messages of a launch, between host, GigaThread and SMs: grids, CTAs, traps.

use std::sync::Arc;

use warpwave_isa::exec::special::cluster_rank;
use warpwave_isa::exec::texture::Texture;
use warpwave_isa::inst::Inst;
use warpwave_isa::program::{Decoded, Program};
use warpwave_isa::space::bank0;

use crate::proto::cluster::ClusterPlacement;
use crate::proto::predecoded::Predecoded;
pub use crate::proto::timing::{ResultWait, Route, Timing};
pub use crate::proto::trap::{Origin, Trap, TrapKind};

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

    /// True for a cooperative launch: its CTAs are resident together, and its kernel finds the address of a workspace.
    pub fn is_cooperative(&self) -> bool {
        // Device memory does not begin at address 0.
        let has_word = |offset: u16| self.constant(0, offset / 4) != 0;
        has_word(bank0::WORKSPACE_HIGH) || has_word(bank0::WORKSPACE_LOW)
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
