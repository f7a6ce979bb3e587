//! Messages of clusters: placement of their CTAs, arrivals at their barrier, addresses in another CTA's shared memory.

use std::sync::Arc;

/// The SM and slot of a CTA in a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtaPlacement {
    /// Number of its SM within the GPC.
    pub sm: u16,
    /// Its CTA slot in the SM.
    pub slot: u8,
}

/// Placement of every CTA of a cluster, by rank.
pub type ClusterPlacement = Arc<[CtaPlacement]>;

/// Placement of the cluster of a CTA. From the CTA manager to the LSU.
#[derive(Clone, Debug)]
pub struct ClusterPlaced {
    /// CTA slot.
    pub slot: u8,
    /// The placement of its cluster.
    pub placement: ClusterPlacement,
}

/// Arrival of a CTA. From its CTA manager to the cluster barrier of the GPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterArrive {
    /// The cluster: the linear index of its first CTA.
    pub cluster: u64,
    /// Rank of the CTA. All its warps have arrived or ended.
    pub rank: u8,
    /// CTAs of the cluster.
    pub size: u8,
    /// True if the CTA has ended: it counts as arrived in every later round.
    pub ended: bool,
}

/// Opening of the barrier. From the cluster barrier of a GPC to a CTA manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterOpen {
    /// The cluster: the linear index of its first CTA.
    pub cluster: u64,
    /// Rank of the CTA that may continue.
    pub rank: u8,
}

/// Bit of an address in the shared memory of another SM. No device address is that high.
const REMOTE: u64 = 1 << 63;

/// The address, in packets, of a byte in the shared memory of another SM. `sm` is its number within the GPC.
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

/// The SM and the byte of an address in the shared memory of another SM. `None` for an address in device memory.
#[inline]
pub fn remote(address: u64) -> Option<(u16, usize)> {
    (address & REMOTE != 0).then_some(((address >> 32) as u16, address as u32 as usize))
}
