//! The front end of the chip: who gets which CTA.

pub mod gigathread;

pub mod cluster_barrier;
