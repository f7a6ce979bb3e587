//! Addresses in the shared memory of the other CTAs of a cluster.

use warpwave_isa::exec::special::cluster_rank;
use warpwave_isa::space::split_window;

use crate::proto::cluster::{ClusterPlaced, ClusterPlacement, remote_address};
use crate::proto::launch::Grid;
use crate::proto::warp::WarpInst;

/// The clusters of the CTAs on an SM, by CTA slot.
#[derive(Clone, Debug)]
pub struct Clusters {
    placement: Vec<Option<ClusterPlacement>>,
    /// A CTA's shared memory is rounded up to a multiple of this, in bytes.
    shared_unit: u32,
}

impl Clusters {
    /// No clusters.
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

    /// The remote address of an address in another CTA of the warp's cluster.
    pub fn to_remote(&self, warp_inst: &WarpInst, address: u64) -> u64 {
        let bytes = warp_inst.grid.shared_bytes.next_multiple_of(self.shared_unit);
        let slot = warp_inst.shared_base / bytes;
        let placement = self.placement[slot as usize]
            .as_ref()
            .expect("a CTA of a cluster is placed before its warps start");
        let (rank, offset) = split_window(address);
        let cta = placement[rank.expect("a CTA's own window is not another's") as usize];
        remote_address(cta.sm, u64::from(cta.slot) * u64::from(bytes) + offset)
    }
}

/// The offset in the warp's own CTA, if a cluster address is there.
#[inline]
pub fn own_address(warp_inst: &WarpInst, address: u64) -> Option<u64> {
    let (rank, offset) = split_window(address);
    let is_own = rank.is_none_or(|rank| rank == cluster_rank(warp_inst.block, warp_inst.grid.cluster));
    is_own.then_some(offset)
}

/// True if `bytes` bytes from a cluster address on lie in a CTA of the cluster.
pub fn contains(grid: &Grid, address: u64, bytes: u32) -> bool {
    let (rank, offset) = split_window(address);
    rank.is_none_or(|rank| rank < grid.cluster_ctas()) && offset + u64::from(bytes) <= u64::from(grid.shared_bytes)
}
