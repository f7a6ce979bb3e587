//! Addresses in the shared memory of a cluster's other CTAs: whose they are, whether they may be, and where they lead.

use warpwave_isa::exec::special::cluster_rank;
use warpwave_isa::space::in_window;

use crate::proto::cluster::{Seated, Seats, remote_address};
use crate::proto::launch::Grid;
use crate::proto::warp::Flight;

/// The clusters of the CTAs on an SM, by CTA slot.
#[derive(Clone, Debug)]
pub struct Clusters {
    seats: Vec<Option<Seats>>,
    /// A CTA's shared memory is rounded up to this many bytes.
    shared_unit: u32,
}

impl Clusters {
    /// No clusters.
    pub fn new(slots: u32, shared_unit: u32) -> Self {
        Clusters {
            seats: vec![None; slots as usize],
            shared_unit,
        }
    }

    /// A CTA of a cluster has come.
    pub fn seated(&mut self, seated: Seated) {
        self.seats[seated.slot as usize] = Some(seated.seats);
    }

    /// Everybody has gone.
    pub fn clear(&mut self) {
        self.seats.fill(None);
    }

    /// Where a cluster address leads, which [`holds`].
    pub fn place(&self, flight: &Flight, address: u64) -> u64 {
        let bytes = flight.grid.shared_bytes.next_multiple_of(self.shared_unit);
        let slot = flight.shared_base / bytes;
        let seats = self.seats[slot as usize]
            .as_ref()
            .expect("a CTA of a cluster was seated before its warps began");
        let (rank, offset) = in_window(address);
        let seat = seats[rank.expect("a CTA's own window is not another's") as usize];
        remote_address(seat.sm, u64::from(seat.slot) * u64::from(bytes) + offset)
    }
}

/// The address in the warp's own CTA, if a cluster address is there.
#[inline]
pub fn own_address(flight: &Flight, address: u64) -> Option<u64> {
    let (rank, offset) = in_window(address);
    let is_own = rank.is_none_or(|rank| rank == cluster_rank(flight.block, flight.grid.cluster));
    is_own.then_some(offset)
}

/// Whether a cluster address is that of so many bytes of a CTA of the cluster.
pub fn holds(grid: &Grid, address: u64, bytes: u32) -> bool {
    let (rank, offset) = in_window(address);
    rank.is_none_or(|rank| rank < grid.cluster_ctas()) && offset + u64::from(bytes) <= u64::from(grid.shared_bytes)
}
