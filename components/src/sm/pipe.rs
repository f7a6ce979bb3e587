//! The execution pipes of a sub-core: operands in, results out after the instruction's latency.

pub mod math;

pub mod branch;

#[cfg(test)]
mod tests;
