//! The command `warpwave`.

fn main() {}
