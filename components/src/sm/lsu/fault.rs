//! A lane's access that must not be, and the trap that it causes.

use crate::proto::launch::{Trap, TrapKind};
use crate::proto::warp::WarpInst;

/// An access that traps.
pub struct Fault {
    /// Cause.
    pub kind: TrapKind,
    /// The lane.
    pub lane: usize,
    /// Its address.
    pub address: u64,
    /// Bytes of its access.
    pub bytes: u32,
    /// Name of the state space.
    pub space: &'static str,
}

impl Fault {
    /// The trap of the lane's thread.
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
