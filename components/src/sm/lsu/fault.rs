//! A faulting access of a lane, and its trap.

use crate::proto::launch::{Trap, TrapKind};
use crate::proto::warp::WarpInst;

/// An access that traps.
pub struct Fault {
    /// Cause.
    pub kind: TrapKind,
    /// The faulting lane.
    pub lane: usize,
    /// Address of the access.
    pub address: u64,
    /// Bytes of the access.
    pub bytes: u32,
    /// Name of the state space.
    pub space: &'static str,
}

impl Fault {
    /// The trap of the thread in the lane.
    #[cold]
    pub fn trap(&self, warp_inst: &WarpInst) -> Box<Trap> {
        Box::new(Trap {
            kind: self.kind,
            pc: warp_inst.pc,
            line: warp_inst.inst().line,
            block: warp_inst.block,
            thread: warp_inst.thread(self.lane),
            address: Some(self.address),
            bytes: self.bytes,
            space: self.space,
        })
    }
}
