//! The streaming multiprocessor and its parts.

pub mod l1;
