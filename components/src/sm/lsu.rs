//! The load-store unit of an SM, shared by its sub-cores, and shared memory beside it.
//!
//! [`unit`](mod@unit) is the component; [`agu`] checks addresses, with [`cluster`] for those in other SMs and [`bulk`] for bulk
//! copies, [`coalescer`] makes packets of them, [`data`] moves
//! bytes between registers and packets, [`texture`](mod@texture) does both for images, [`pending`] keeps what waits for
//! the L1; [`shared`] is the component that holds shared memory, with [`banks`] for its conflicts, [`halves`] for the accesses
//! that are quick to see through, and [`mbarrier`] for the tests that it holds.

pub mod agu;

pub mod cluster;

pub mod bulk;

pub mod coalescer;

pub mod data;

pub mod pending;

pub mod texture;

pub mod unit;

pub mod banks;

pub mod halves;

pub mod mbarrier;

pub mod shared;
