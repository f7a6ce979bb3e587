//! The crossbar between SMs and L2 slices.
