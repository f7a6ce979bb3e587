//! A faulting access of a lane, and its trap.

use crate::proto::launch::{Trap, TrapKind};
use crate::proto::warp::WarpInst;

/// An access that traps.
pub struct Fault {
    kind: TrapKind,
    lane: usize,
    address: u64,
    bytes: u32,
    space: &'static str,
}

impl Fault {
    /// The fault of an access of `bytes` bytes at an address of a state space.
    pub fn new(kind: TrapKind, lane: usize, address: u64, bytes: u32, space: &'static str) -> Self {
        Fault {
            kind,
            lane,
            address,
            bytes,
            space,
        }
    }

    /// The trap of the thread in the lane.
    #[cold]
    pub fn trap(&self, warp_inst: &WarpInst) -> Box<Trap> {
        let access = (self.address, self.bytes);
        warp_inst.origin().trap(self.lane, self.kind, access, self.space)
    }
}
