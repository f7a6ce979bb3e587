//! A sub-core: one warp scheduler, one dispatch unit, and their parts.
//!
//! The component `scheduler` is built from `warp`, `ibuffer`, `scoreboard`, `async_groups`, `stall`, `policy` and `immediate`.
//! The component `dispatch` is built from `regfile` and `collector`.

pub mod stall;

pub(crate) mod scoreboard;

pub(crate) mod async_groups;

pub(crate) mod ibuffer;

pub(crate) mod warp;

pub mod policy;

pub mod immediate;

pub mod scheduler;

pub(crate) mod regfile;

pub(crate) mod collector;

pub mod dispatch;
