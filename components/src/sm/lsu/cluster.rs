//! Addresses in the shared memory of the other CTAs of a cluster.

use warpwave_isa::exec::special::cluster_rank;
use warpwave_isa::space::split_window;

use crate::proto::cluster::{ClusterPlaced, ClusterPlacement, RemoteByte};
use crate::proto::launch::Grid;
use crate::proto::warp::WarpInst;

/// The clusters of the CTAs on an SM, by CTA slot.
#[derive(Clone, Debug)]
pub struct Clusters {
    placement: Vec<Option<ClusterPlacement>>,
    /// Allocation unit of shared memory, in bytes.
    shared_unit: u32,
}

impl Clusters {
    /// No clusters yet.
    pub fn new(slots: u32, shared_unit: u32) -> Self {
        Clusters {
            placement: vec![None; slots as usize],
            shared_unit,
        }
    }

    /// Stores the placement of a CTA's cluster.
    pub fn place(&mut self, placed: ClusterPlaced) {
        self.placement[placed.slot as usize] = Some(placed.placement);
    }

    /// The placement of the CTAs of the warp's cluster, and the bytes of a CTA in shared memory.
    pub fn placement(&self, warp_inst: &WarpInst) -> (Option<ClusterPlacement>, u32) {
        // At least 1, because it divides below: a grid without shared memory has one slot base, 0.
        let bytes = warp_inst.grid.shared_bytes.next_multiple_of(self.shared_unit).max(1);
        // All CTAs of a grid have one size, so the base of a CTA gives its slot.
        let slot = warp_inst.shared_base / bytes;
        (self.placement.get(slot as usize).cloned().flatten(), bytes)
    }

    /// The remote address of an address in another CTA of the warp's cluster.
    pub fn to_remote(&self, warp_inst: &WarpInst, address: u64) -> u64 {
        let (placement, bytes) = self.placement(warp_inst);
        let placement = placement.expect("the placement of a cluster arrives before its warps start");
        let (rank, offset) = split_window(address);
        let rank = rank.expect("the address is in the window of another CTA");
        let cta = placement[rank as usize];
        let byte = RemoteByte {
            sm: cta.sm,
            rank: rank as u8,
            start: cta.start,
            byte: u32::from(cta.slot) * bytes + offset as u32,
        };
        byte.address()
    }
}

/// The offset of a cluster address in the warp's own CTA, if it is there.
#[inline]
pub fn own_address(warp_inst: &WarpInst, address: u64) -> Option<u64> {
    let (rank, offset) = split_window(address);
    let is_own = rank.is_none_or(|rank| rank == cluster_rank(warp_inst.block, warp_inst.grid.cluster));
    // Without a rank the address is in the plain window of shared memory, which is always the own CTA's.
    is_own.then_some(offset)
}

/// True if `bytes` bytes from a cluster address on are in a CTA of the cluster.
pub fn contains(grid: &Grid, address: u64, bytes: u32) -> bool {
    let (rank, offset) = split_window(address);
    rank.is_none_or(|rank| rank < grid.cluster_ctas()) && offset + u64::from(bytes) <= u64::from(grid.shared_bytes)
}
