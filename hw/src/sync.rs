//! Atomics and locks that host threads share: those of `std`, or those of `loom` with `--cfg loom`.
//!
//! `loom` runs a test with every order of the threads, and lets a load return any value that the memory model allows
//! (`loom_tests.rs`, `hw/docs/time.md`).

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{Condvar, Mutex, MutexGuard, atomic},
};

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{Condvar, Mutex, MutexGuard, atomic},
};
