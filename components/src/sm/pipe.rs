//! The execution pipes of a sub-core: math pipes and the branch unit.

pub mod math;

pub mod branch;

mod account;

#[cfg(test)]
mod tests;
