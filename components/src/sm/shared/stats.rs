//! Counters of shared memory, and the passes of each access.

use warpwave_hw::stats::{Indexed, Latency, Report};
use warpwave_isa::exec::access::copy_destinations;
use warpwave_isa::opcode::Opcode;

use crate::proto::addresses::WarpAddresses;
use crate::proto::data_banks::{atomic_passes, least_passes, passes};
use crate::proto::warp::WarpInst;

/// Counters of one kind of access to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    /// Warp instructions with an active lane.
    pub instructions: u64,
    /// Passes of the banks.
    pub passes: u64,
    /// Passes beyond those of the same accesses without bank conflicts.
    pub conflicts: u64,
}

/// Counters of shared memory.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Loads, with matrix loads and tests of mbarriers.
    pub loads: Accesses,
    /// Stores, with asynchronous copies.
    pub stores: Accesses,
    /// Atomics and reductions.
    pub atomics: Accesses,
    /// Matrix loads, of `loads`.
    pub matrix_loads: u64,
    /// Tests of mbarriers, of `loads`.
    pub barrier_tests: u64,
    /// Asynchronous copies, of `stores`.
    pub copies: u64,
    /// Instructions, passes and conflicts of each instruction, by program counter.
    pub by_pc: Indexed<3>,
    /// Words that atomics have changed.
    pub atomic_words_changed: u64,
    /// Shuffles.
    pub shuffles: u64,
    /// Cycles in which the banks were busy.
    pub busy_cycles: u64,
    /// Line accesses of other SMs and of the bulk copy engine.
    pub lines: u64,
    /// Of `lines`, those with a store.
    pub lines_stored: u64,
    /// Products of warp groups: one per warp and 8 columns.
    pub products: u64,
    /// Issue to use of accesses, in cycles. Shuffles are left out.
    pub latency: Latency,
}

impl Stats {
    /// Counts an access. Returns its passes.
    pub(super) fn count(&mut self, warp_inst: &WarpInst) -> u32 {
        let inst = warp_inst.inst();
        let (addresses, lanes) = (&warp_inst.addresses, warp_inst.shared_lanes);
        let bytes = inst.mods.access.total();
        let (kind, n, least) = match inst.op {
            Opcode::Shfl => {
                self.shuffles += 1;
                return 1;
            }
            // A fence has no access.
            Opcode::FenceView | Opcode::Membar => return 1,
            Opcode::Ldsm => {
                // Each address lane names a row of 16 bytes: eight rows, one matrix, fit into a pass.
                let n = passes(addresses, warp_inst.address_lanes(), 16);
                (&mut self.loads, n, inst.mods.count.into())
            }
            Opcode::Ldgsts => {
                // The lane addresses of a copy are in global memory. The banks see its destinations.
                let to = WarpAddresses::per_lane(copy_destinations(&warp_inst.operands));
                let lanes = warp_inst.lanes;
                (&mut self.stores, passes(&to, lanes, bytes), least_passes(lanes, bytes))
            }
            op => {
                let (kind, n) = match op {
                    Opcode::Ld | Opcode::Syncs => (&mut self.loads, passes(addresses, lanes, bytes)),
                    Opcode::St => (&mut self.stores, passes(addresses, lanes, bytes)),
                    _ => (&mut self.atomics, atomic_passes(addresses, lanes, bytes)),
                };
                (kind, n, least_passes(lanes, bytes))
            }
        };
        // An access without active lanes takes a cycle, and no pass of the banks.
        let is_active = !warp_inst.lanes.is_empty();
        let passes = if is_active { u64::from(n) } else { 0 };
        let conflicts = u64::from(n.saturating_sub(least));
        kind.instructions += u64::from(is_active);
        kind.passes += passes;
        kind.conflicts += conflicts;
        match inst.op {
            Opcode::Ldsm => self.matrix_loads += u64::from(is_active),
            Opcode::Syncs => self.barrier_tests += u64::from(is_active),
            Opcode::Ldgsts => self.copies += u64::from(is_active),
            _ => {}
        }
        let [by_inst, by_pass, by_conflict] = self.by_pc.at(warp_inst.pc);
        *by_inst += 1;
        *by_pass += passes;
        *by_conflict += conflicts;
        n
    }

    /// Reports every counter.
    pub(super) fn report(&self, report: &mut dyn Report) {
        for (names, kind) in [(LOADS, &self.loads), (STORES, &self.stores), (ATOMICS, &self.atomics)] {
            let values = [kind.instructions, kind.passes, kind.conflicts];
            names
                .iter()
                .zip(values)
                .for_each(|(name, value)| report.count(name, value));
        }
        report.count("matrix_loads", self.matrix_loads);
        report.count("barrier_tests", self.barrier_tests);
        report.count("copies", self.copies);
        self.by_pc
            .report(report, ["shared_inst", "shared_passes", "shared_conflicts"]);
        report.count("atomic_words_changed", self.atomic_words_changed);
        report.count("shuffles", self.shuffles);
        report.count("busy_cycles", self.busy_cycles);
        report.count("cluster_lines", self.lines);
        report.count("cluster_lines_stored", self.lines_stored);
        report.count("products", self.products);
        report.latency("shared", &self.latency);
    }
}

const LOADS: [&str; 3] = ["shared_ld_inst", "shared_ld_passes", "shared_ld_conflicts"];
const STORES: [&str; 3] = ["shared_st_inst", "shared_st_passes", "shared_st_conflicts"];
const ATOMICS: [&str; 3] = ["shared_atom_inst", "shared_atom_passes", "shared_atom_conflicts"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ports::{grid, warp_inst};
    use warpwave_isa::lane::LaneMask;

    #[test]
    fn conflicts_are_the_passes_beyond_those_that_the_width_needs() {
        let grid = grid(
            "LD.SHARED.B32 R0, [R8]\n LD.SHARED.B64 R0, [R8]\n LD.SHARED.B128 R0, [R8]",
            1,
        );
        // A pass serves 32 words. Width in the program, bytes between lanes, passes and conflicts.
        for (pc, stride, passes, conflicts) in [(0, 4, 1, 0), (0, 8, 2, 1), (1, 8, 2, 0), (1, 16, 4, 2), (2, 16, 4, 0)]
        {
            let mut inst = warp_inst(&grid, 0, pc, LaneMask::ALL);
            inst.shared_lanes = LaneMask::ALL;
            inst.addresses.set_all(|all| {
                all.iter_mut()
                    .zip(0..)
                    .for_each(|(address, lane)| *address = lane * stride)
            });
            let mut stats = Stats::default();
            assert_eq!(stats.count(&inst), passes, "{stride} bytes");
            let found = (stats.loads.passes, stats.loads.conflicts);
            assert_eq!(found, (u64::from(passes), conflicts), "{stride} bytes");
        }
    }
}
