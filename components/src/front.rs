//! The front end of the chip: assigns CTAs to SMs.

pub mod gigathread;

pub mod cluster_barrier;

mod delay_queue;
