//! Messages of clusters: placement of their CTAs, arrivals at their barrier, addresses in another CTA's shared memory.

use std::sync::Arc;

/// Most CTA slots of an SM: the bits of a mask.
pub const MAX_CTA_SLOTS: usize = u64::BITS as usize;

/// The SM and slot of a CTA in a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtaPlacement {
    /// Number of its SM within the GPC.
    pub sm: u16,
    /// Its CTA slot in the SM.
    pub slot: u8,
    /// Its start number, from 1 to [`MAX_START`]: the CTAs placed in this slot so far, itself included.
    pub start: u32,
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

/// Start or end of a CTA of a cluster. From its CTA manager to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtaResidence {
    /// CTA slot.
    pub slot: u8,
    /// Start number of the CTA.
    pub start: u32,
    /// Bytes of a CTA slot in shared memory.
    pub slot_bytes: u32,
    /// True at the start, false at the end.
    pub is_resident: bool,
}

/// Bit of an address in the shared memory of another SM. No device address is that high.
const REMOTE: u64 = 1 << 63;

/// Bits of the byte, the rank and the SM in a remote address, from the lowest on. The start number has the rest.
const FIELDS: [u32; 3] = [24, 4, 11];

/// Most bytes of shared memory that a remote address can name.
pub const MAX_REMOTE_BYTES: u32 = 1 << FIELDS[0];

/// Highest start number. The number after it is 1.
pub const MAX_START: u32 = (1 << (63 - FIELDS[0] - FIELDS[1] - FIELDS[2])) - 1;

/// A byte in the shared memory of another SM, with the CTA that the access is for.
///
/// ```
/// use warpwave_components::proto::cluster::{MAX_START, RemoteByte};
/// let byte = RemoteByte { sm: 5, rank: 15, start: MAX_START, byte: 0x1040 };
/// assert_eq!(RemoteByte::of(byte.address()), Some(byte));
/// assert_eq!(RemoteByte::of(0x1040), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteByte {
    /// Number of its SM within the GPC.
    pub sm: u16,
    /// Rank of the CTA in its cluster.
    pub rank: u8,
    /// Start number of the CTA. 0 for an access that no CTA is named for, which shared memory performs without a check.
    pub start: u32,
    /// The byte in the shared memory of the SM.
    pub byte: u32,
}

impl RemoteByte {
    /// Its address in packets.
    #[inline]
    pub fn address(self) -> u64 {
        let [byte, rank, sm] = FIELDS;
        let start = u64::from(self.start) << sm | u64::from(self.sm);
        REMOTE | (start << rank | u64::from(self.rank)) << byte | u64::from(self.byte)
    }

    /// The byte at an address of a packet. `None` for an address in device memory.
    #[inline]
    pub fn of(address: u64) -> Option<Self> {
        let [byte, rank, sm] = FIELDS;
        let field = |first: u32, bits: u32| (address >> first) as u32 & ((1 << bits) - 1);
        is_remote(address).then(|| RemoteByte {
            sm: field(byte + rank, sm) as u16,
            rank: field(byte, rank) as u8,
            start: field(byte + rank + sm, 63 - byte - rank - sm),
            byte: field(0, byte),
        })
    }
}

/// True if an address is in the shared memory of another SM.
#[inline]
pub fn is_remote(address: u64) -> bool {
    address & REMOTE != 0
}

/// The address, in packets, of a byte in the shared memory of SM `sm` of the GPC, for an access without a check.
pub fn remote_address(sm: u16, byte: u32) -> u64 {
    let (rank, start) = (0, 0);
    RemoteByte { sm, rank, start, byte }.address()
}
