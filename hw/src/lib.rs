//! The ground of the GPU model: time, links, components, statistics. It knows no GPU block.
//!
//! Read in this order: [`time`], [`path`], [`component`], [`link`], [`tile`], [`clock`], then the parts of
//! components ([`bits`], [`arbiter`], [`grow`]).
//!
//! # Promises
//! - What is sent in a cycle is seen in a later one; the order in which components tick never changes a result.
//! - Quantum, threads, idle-skipping and watching change nothing: same bits, same cycles. `hw/docs/time.md` gives the rule and the proof.

pub mod time;

pub mod path;

pub mod component;

pub mod link;

pub mod tile;

pub mod clock;

pub mod bits;

pub mod arbiter;

pub mod grow;

pub mod warm;

pub mod probe;

pub mod stats;

pub mod error;

pub mod rig;
