//! Cycles and routing of one instruction, for the scheduler and the LSU.

use warpwave_isa::control::ResultBarriers;
use warpwave_isa::opcode::Pipe;

/// Cycles from the return of an instruction by a unit of the SM to the issue of a dependent one: two links.
pub(crate) const RETURN_CYCLES: u64 = 2;

/// Cycles and routing of one instruction, from the GPU's configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Issue to the issue of an instruction that reads the result.
    pub latency: u32,
    /// Issue interval of its pipe, in cycles.
    pub interval: u32,
    /// Cycles that the register banks need for its operands, at least 1.
    pub operand_cycles: u16,
    /// Its pipe.
    pub pipe: Pipe,
    /// Kind of stall of a dependent instruction.
    pub result: ResultWait,
    /// True if it is complete for its warp once it is sent.
    pub is_posted: bool,
    /// True for an access to local or global memory.
    pub is_local_or_global: bool,
    /// The unit that the LSU sends it to.
    pub route: Route,
    /// Its dependency barriers.
    pub barriers: ResultBarriers,
}

/// The unit that the LSU sends an instruction to, as far as it is known without the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Shared memory: a shuffle uses its crossbar.
    Shuffle,
    /// Shared memory: a load or store with shared-memory addresses.
    Shared,
    /// Device memory: an access with device addresses.
    Device,
    /// None: a fence, or an invalidation of the L1.
    Fence,
    /// Depends on its kind or its addresses.
    Other,
}

/// Stall of an instruction that needs the result: long scoreboard, short scoreboard, or fixed latency (wait).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultWait {
    /// The result comes from beyond the L1.
    Long,
    /// The result comes from a unit of the SM behind a queue.
    Short,
    /// The result comes after a fixed latency.
    Fixed,
}
