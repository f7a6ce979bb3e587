//! A sub-core: one scheduler, one dispatch unit, and what they keep of their warps.
//!
//! [`scheduler`] is a component built from the units [`warp`], [`ibuffer`], [`scoreboard`], [`copies`], [`stall`] and [`policy`];
//! [`dispatch`] is one built from [`regfile`] and [`collector`].

pub mod stall;

pub mod scoreboard;

pub mod copies;

pub mod ibuffer;

pub mod warp;

pub mod policy;

mod control;

pub mod scheduler;

pub mod regfile;

pub mod collector;

pub mod dispatch;
