//! How many passes an access takes, counted by its kind.

use warpwave_isa::exec::access::copy_destinations;
use warpwave_isa::opcode::Opcode;

use super::SharedMemory;
use crate::proto::launch::Route;
use crate::proto::warp::WarpInst;
use crate::sm::lsu::agu::{accessing_lanes, halves_in_shared, is_word};
use crate::sm::lsu::banks::{atomic_passes, least_passes, passes};
use crate::sm::lsu::halves::Halves;

impl SharedMemory {
    /// Passes of an access, counted, and what its halves want if that tells.
    pub(super) fn count(&mut self, warp_inst: &WarpInst) -> (u32, Option<Halves>) {
        if warp_inst.info.route != Route::Shared || !is_word(warp_inst.inst().mods.access) {
            return (self.count_any(warp_inst), None);
        }
        let Some(halves) = halves_in_shared(warp_inst) else {
            return (self.count_any(warp_inst), None);
        };
        let kind = match warp_inst.inst().op {
            Opcode::Ld => &mut self.stats.loads,
            _ => &mut self.stats.stores,
        };
        let n = halves.passes();
        kind.instructions += 1;
        kind.passes += u64::from(n);
        kind.conflicts += u64::from(n - 1);
        (n, Some(halves))
    }

    /// The same of an access of any kind.
    fn count_any(&mut self, warp_inst: &WarpInst) -> u32 {
        let inst = warp_inst.inst();
        let bytes = inst.mods.access.total();
        let (kind, n, least) = match inst.op {
            Opcode::Shfl => {
                self.stats.shuffles += 1;
                return 1;
            }
            Opcode::Ldsm => {
                let rows = accessing_lanes(warp_inst);
                (
                    &mut self.stats.loads,
                    passes(&warp_inst.addresses, rows, 16),
                    u32::from(inst.mods.count),
                )
            }
            Opcode::Ldgsts => {
                let to = copy_destinations(&warp_inst.operands);
                (
                    &mut self.stats.stores,
                    passes(&to, warp_inst.lanes, bytes),
                    least_passes(warp_inst.lanes, bytes),
                )
            }
            Opcode::Ld | Opcode::Syncs => (
                &mut self.stats.loads,
                passes(&warp_inst.addresses, warp_inst.shared_lanes, bytes),
                least_passes(warp_inst.shared_lanes, bytes),
            ),
            Opcode::St => (
                &mut self.stats.stores,
                passes(&warp_inst.addresses, warp_inst.shared_lanes, bytes),
                least_passes(warp_inst.shared_lanes, bytes),
            ),
            _ => (
                &mut self.stats.atomics,
                atomic_passes(&warp_inst.addresses, warp_inst.shared_lanes, bytes),
                least_passes(warp_inst.shared_lanes, bytes),
            ),
        };
        kind.instructions += 1;
        // An access that the guard keeps every lane from takes its turn and reads nothing.
        kind.passes += if warp_inst.lanes.is_empty() { 0 } else { u64::from(n) };
        kind.conflicts += u64::from(n.saturating_sub(least));
        n
    }
}
