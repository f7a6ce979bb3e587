//! The streaming multiprocessor (SM) and its blocks.
//!
//! ```text
//!   GigaThread -> cta (with barriers) <-> 4 x subcore: scheduler -> dispatch -> pipes -> dispatch
//!                                                          ^            |
//!                                                          |            v
//!                                                          +--- acks -- lsu -> shared, l1 -> crossbar
//!                                       scheduler, lsu <-> constant
//! ```

pub mod timing;

pub mod cta;

pub(crate) mod barrier;

pub mod l1;

pub mod ideal_memory;

pub mod subcore;

pub mod pipe;

pub mod lsu;

pub mod shared;

pub mod tma;

pub mod constant;
