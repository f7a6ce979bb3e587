//! Messages about one warp: its start, for the sub-core, and its trap, for GigaThread.

use tracing::info;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};

use super::{Cta, CtaManager};
use crate::proto::launch::{Grid, SmEvent, Trap, TrapKind};
use crate::proto::trap::thread_position;
use crate::proto::warp::WarpStart;

/// The start of a warp in a slot of a sub-core.
pub(super) fn warp_start(
    resident: &Cta,
    cta: usize,
    slot: u8,
    index: u32,
    shared_unit: u32,
    generation: bool,
) -> WarpStart {
    let grid = &resident.grid;
    WarpStart {
        warp: slot,
        cta: cta as u8,
        index,
        block: grid.cta_position(resident.index),
        shared_base: shared_base(grid, cta, shared_unit),
        // All 32 lanes, but fewer in the last warp if the block's size is no multiple of 32.
        lanes: LaneMask::first(grid.threads() - index * WARP_SIZE as u32),
        generation,
        grid: grid.clone(),
    }
}

/// The first byte of the shared memory of a CTA slot.
pub(super) fn shared_base(grid: &Grid, cta: usize, shared_unit: u32) -> u32 {
    // All CTAs on an SM belong to one grid, so they have one size.
    cta as u32 * slot_bytes(grid, shared_unit)
}

/// Bytes of a CTA slot in shared memory.
pub(super) fn slot_bytes(grid: &Grid, shared_unit: u32) -> u32 {
    grid.shared_bytes.next_multiple_of(shared_unit)
}

/// The trap of a warp, located by its lowest lane.
pub(super) fn trapped(resident: &Cta, index: u32, pc: u32, lanes: LaneMask) -> Trap {
    // A warp traps as a whole: the report names one thread.
    let lane = lanes.lowest().unwrap_or(0) as u32;
    let inst = &resident.grid.program.code()[pc as usize];
    Trap {
        kind: TrapKind::of(inst),
        pc,
        line: inst.line,
        block: resident.grid.cta_position(resident.index),
        thread: thread_position(resident.grid.block, index * WARP_SIZE as u32 + lane),
        address: None,
        bytes: 0,
        space: "none",
    }
}

impl CtaManager {
    /// Reports a trap to GigaThread, once the link has room. The first trap ends the launch, so a later one may be lost.
    pub(super) fn report_trap(&mut self, trap: Trap, now: Cycle) {
        self.state.trap.get_or_insert(trap);
        self.send_trap(now);
    }

    /// Sends a waiting trap, if the link has room. Ends of CTAs may have filled it.
    pub(super) fn send_trap(&mut self, now: Cycle) {
        if !self.ports.event.has_room(now) {
            return;
        }
        if let Some(trap) = self.state.trap.take() {
            info!(
                cycle = now.0,
                path = %self.path,
                pc = trap.pc,
                line = trap.line,
                block = ?trap.block,
                thread = ?trap.thread,
                "trap: {}",
                trap.kind
            );
            self.ports.event.send(now, SmEvent::Trap(Box::new(trap)));
        }
    }
}
