//! Messages of clusters: placement of their CTAs, arrivals at their barrier, addresses in another CTA's shared memory.

use std::sync::Arc;

/// The SM and slot of a CTA in a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtaPlacement {
    /// Its SM, counted within the GPC.
    pub sm: u16,
    /// Its CTA slot there.
    pub slot: u8,
}

/// Placement of every CTA of a cluster, by rank.
pub type ClusterPlacement = Arc<[CtaPlacement]>;

/// From a CTA manager to the LSU: the CTA in this slot belongs to a cluster.
#[derive(Clone, Debug)]
pub struct ClusterPlaced {
    /// CTA slot.
    pub slot: u8,
    /// The placement of its cluster.
    pub placement: ClusterPlacement,
}

/// From a CTA manager to the cluster barrier of its GPC: a CTA has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterArrive {
    /// The cluster: the linear index of its first CTA.
    pub cluster: u64,
    /// Rank of the CTA. Each of its warps has arrived or ended.
    pub rank: u8,
    /// CTAs of the cluster.
    pub size: u8,
    /// True if the CTA has ended: it counts as arrived in every later round.
    pub ended: bool,
}

/// From the cluster barrier of a GPC to a CTA manager: the barrier is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterOpen {
    /// The cluster: the linear index of its first CTA.
    pub cluster: u64,
    /// Rank of the CTA that may continue.
    pub rank: u8,
}

/// Marks an address as one in the shared memory of another SM.
const REMOTE: u64 = 1 << 63;

/// The address of a byte of another SM's shared memory, as packets carry it: SM within the GPC, byte of its shared memory.
///
/// ```
/// use warpwave_components::proto::cluster::{remote, remote_address};
/// assert_eq!(remote(remote_address(5, 0x1040)), Some((5, 0x1040)));
/// assert_eq!(remote(0x1040), None);
/// ```
#[inline]
pub fn remote_address(sm: u16, byte: u64) -> u64 {
    REMOTE | u64::from(sm) << 32 | byte
}

/// The SM and byte of an address in another SM's shared memory; nothing for one in device memory.
#[inline]
pub fn remote(address: u64) -> Option<(u16, usize)> {
    (address & REMOTE != 0).then_some(((address >> 32) as u16, address as u32 as usize))
}
