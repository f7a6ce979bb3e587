//! Messages between blocks, one file per interface. Blocks share no other types.

pub mod addresses;

pub mod bulk;

pub mod cluster;

pub mod constant;

pub mod data_banks;

pub mod header;

pub mod issue;

pub mod launch;

pub mod mem;

pub mod noc;

pub(crate) mod pool;

pub mod predecoded;

pub mod tag_banks;

pub(crate) mod timing;
pub mod trap;

pub mod warp;

pub mod event;

mod wires;
