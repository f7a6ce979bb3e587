//! A sub-core: one warp scheduler, one dispatch unit, and their parts.
//!
//! The component [`scheduler`] is built from [`warp`], [`ibuffer`], [`scoreboard`], [`async_groups`], [`stall`] and [`policy`].
//! The component [`dispatch`] is built from [`regfile`] and [`collector`].

pub mod stall;

pub mod scoreboard;

pub mod async_groups;

pub mod ibuffer;

pub mod warp;

pub mod policy;

pub mod scheduler;

pub mod regfile;

pub mod collector;

pub mod dispatch;
