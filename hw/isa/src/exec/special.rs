//! Special registers (S2R): position of a thread in its launch and in the machine.

use crate::lane::{Lanes, WARP_SIZE};
use crate::reg::Special;

/// State from which the special registers of a warp follow.
///
/// ```
/// use warpwave_isa::exec::special::WarpContext;
/// use warpwave_isa::reg::Special;
/// let context = WarpContext { block_size: [8, 4, 2], first_thread: 32, ..WarpContext::default() };
/// assert_eq!(context.word(Special::TidX, 9), 1); // thread 41 = 1 + 8 * (1 + 4 * 1)
/// assert_eq!(context.word(Special::TidY, 9), 1);
/// assert_eq!(context.word(Special::TidZ, 9), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarpContext {
    /// Threads of the CTA in x, y, z.
    pub block_size: [u32; 3],
    /// Index in the CTA of the thread in lane 0.
    pub first_thread: u32,
    /// Position of the CTA in the grid.
    pub cta: [u32; 3],
    /// Warp slot on the SM.
    pub warp: u32,
    /// Number of warp slots of the SM.
    pub n_warps: u32,
    /// Index of the SM.
    pub sm: u32,
    /// Number of SMs of the machine.
    pub n_sms: u32,
    /// Index of the launch.
    pub grid: u32,
    /// Cycles of the SM's clock since the launch.
    pub clock: u64,
    /// Global timer, in nanoseconds.
    pub globaltimer: u64,
    /// CTAs of the grid in x, y, z.
    pub grid_size: [u32; 3],
    /// CTAs of a cluster in x, y, z.
    pub cluster: [u32; 3],
    /// Dynamic shared memory of the launch, in bytes.
    pub dynamic_shared_bytes: u32,
    /// Static and dynamic shared memory of the CTA, in bytes.
    pub total_shared_bytes: u32,
    /// Count of the last BAR.RED.
    pub barrier_count: u32,
}

impl Default for WarpContext {
    /// Returns the only warp of a one-thread grid on a machine with one warp slot.
    fn default() -> Self {
        WarpContext {
            block_size: [1; 3],
            first_thread: 0,
            cta: [0; 3],
            warp: 0,
            n_warps: 1,
            sm: 0,
            n_sms: 1,
            grid: 0,
            clock: 0,
            globaltimer: 0,
            grid_size: [1; 3],
            cluster: [1; 3],
            dynamic_shared_bytes: 0,
            total_shared_bytes: 0,
            barrier_count: 0,
        }
    }
}

impl WarpContext {
    /// Returns the value of a special register in one lane.
    pub fn word(&self, special: Special, lane: usize) -> u32 {
        // Threads of a block are counted along x, then y, then z (CUDA programming guide).
        let thread = self.first_thread + lane as u32;
        let [width, height, _] = self.block_size;
        let bit = 1u32 << lane;
        match special {
            Special::TidX => thread % width,
            Special::TidY => thread / width % height,
            Special::TidZ => thread / width / height,
            Special::CtaidX => self.cta[0],
            Special::CtaidY => self.cta[1],
            Special::CtaidZ => self.cta[2],
            Special::LaneId => lane as u32,
            Special::WarpId => self.warp,
            Special::NWarpId => self.n_warps,
            Special::SmId => self.sm,
            Special::NSmId => self.n_sms,
            Special::GridId => self.grid,
            Special::LanemaskEq => bit,
            Special::LanemaskLt => bit - 1,
            // `2 * bit - 1` would overflow in lane 31.
            Special::LanemaskLe => (bit - 1) | bit,
            Special::LanemaskGt => !((bit - 1) | bit),
            Special::LanemaskGe => !(bit - 1),
            Special::ClockLo => self.clock as u32,
            Special::ClockHi => (self.clock >> 32) as u32,
            Special::GlobaltimerLo => self.globaltimer as u32,
            Special::GlobaltimerHi => (self.globaltimer >> 32) as u32,
            Special::ClusterCtarank => cluster_rank(self.cta, self.cluster),
            Special::ClusterNctarank => self.cluster.iter().product(),
            // A cluster's position counts in clusters. The grid is a whole number of clusters.
            Special::ClusteridX => self.cta[0] / self.cluster[0],
            Special::ClusteridY => self.cta[1] / self.cluster[1],
            Special::ClusteridZ => self.cta[2] / self.cluster[2],
            Special::NclusteridX => self.grid_size[0] / self.cluster[0],
            Special::NclusteridY => self.grid_size[1] / self.cluster[1],
            Special::NclusteridZ => self.grid_size[2] / self.cluster[2],
            Special::ClusterCtaidX => self.cta[0] % self.cluster[0],
            Special::ClusterCtaidY => self.cta[1] % self.cluster[1],
            Special::ClusterCtaidZ => self.cta[2] % self.cluster[2],
            Special::ClusterNctaidX => self.cluster[0],
            Special::ClusterNctaidY => self.cluster[1],
            Special::ClusterNctaidZ => self.cluster[2],
            Special::DynamicSharedSize => self.dynamic_shared_bytes,
            Special::TotalSharedSize => self.total_shared_bytes,
            Special::BarrierCount => self.barrier_count,
        }
    }

    /// Returns the value of a special register in every lane.
    pub fn lanes(&self, special: Special) -> Lanes {
        let mut out = Lanes::ZERO;
        for lane in 0..WARP_SIZE {
            out.0[lane] = self.word(special, lane);
        }
        out
    }
}

/// Returns the rank of a CTA in its cluster, from its grid position: x first, then y, then z.
///
/// ```
/// use warpwave_isa::exec::special::cluster_rank;
/// assert_eq!(cluster_rank([5, 2, 0], [4, 2, 1]), 1); // the second in x, the first in y
/// assert_eq!(cluster_rank([5, 3, 0], [4, 2, 1]), 5);
/// ```
pub fn cluster_rank(cta: [u32; 3], cluster: [u32; 3]) -> u32 {
    let [x, y, z] = [0, 1, 2].map(|axis| cta[axis] % cluster[axis]);
    x + cluster[0] * (y + cluster[1] * z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_block_are_numbered_x_first_then_y_then_z() {
        for block_size in [[2, 3, 5], [32, 1, 1], [1, 1, 64], [7, 2, 9], [4, 16, 2]] {
            let [width, height, depth] = block_size;
            let all = (0..depth).flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| [x, y, z])));
            for (thread, position) in all.enumerate() {
                let context = WarpContext {
                    block_size,
                    first_thread: (thread / WARP_SIZE * WARP_SIZE) as u32,
                    ..WarpContext::default()
                };
                let found = [Special::TidX, Special::TidY, Special::TidZ]
                    .map(|special| context.word(special, thread % WARP_SIZE));
                assert_eq!(found, position, "thread {thread} of {block_size:?}");
            }
        }
    }
}
