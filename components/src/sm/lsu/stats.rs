//! Counters of an LSU.

use warpwave_hw::stats::{Latency, Report};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use crate::proto::cluster::remote;
use crate::proto::mem::{Packet, PacketKind, n_sectors};
use crate::sm::lsu::coalescer::CoalescedAccess;

/// Counters of one kind of access to global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    /// Warp instructions with at least one active lane.
    pub instructions: u64,
    /// Requests: 1 per instruction of up to 4 bytes a lane, 2 for 8 bytes, 4 for 16.
    pub requests: u64,
    /// Sectors requested.
    pub sectors: u64,
    /// Bytes accessed, summed over lanes.
    pub lane_bytes: u64,
}

/// Counters of an LSU.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Instructions taken from the sub-cores.
    pub instructions: u64,
    /// Loads from global memory.
    pub loads: Accesses,
    /// Stores to global memory.
    pub stores: Accesses,
    /// Atomics and reductions on global memory.
    pub atomics: Accesses,
    /// Constant loads, and their passes.
    pub constant_loads: (u64, u64),
    /// Packets sent to the L1 and to other SMs.
    pub packets: u64,
    /// Issue to use, in cycles, of loads that hit in the L1.
    pub l1_hit: Latency,
    /// Issue to use, in cycles, of loads that hit in the L2.
    pub l2_hit: Latency,
    /// Issue to use, in cycles, of loads from memory.
    pub hbm: Latency,
    /// Issue to use, in cycles, of atomics that return a value.
    pub atomic: Latency,
    /// Issue to use, in cycles, of loads and atomics in other SMs' shared memory.
    pub cluster: Latency,
}

impl Stats {
    /// Counts a coalesced access of `lanes`. Only the L1 counts a prefetch.
    pub(super) fn count_access(&mut self, inst: &Inst, access: &CoalescedAccess, lanes: LaneMask) {
        let kind = match inst.op {
            Opcode::Ld | Opcode::Ldgsts | Opcode::Tex | Opcode::Suld => &mut self.loads,
            Opcode::St | Opcode::Sust => &mut self.stores,
            Opcode::Cctl => return,
            _ => &mut self.atomics,
        };
        let sectors = access.lines().iter().map(|line| u64::from(n_sectors(line.sectors)));
        kind.instructions += u64::from(!lanes.is_empty());
        kind.requests += u64::from(access.requests);
        kind.sectors += sectors.sum::<u64>();
        kind.lane_bytes += u64::from(lanes.count() * inst.mods.access.total());
    }

    // Not inlined: responses to stores do not need it.
    /// Records the cycles from issue to use of a response with data.
    #[inline(never)]
    pub(super) fn count_latency(&mut self, packet: &Packet, cycles: u64) {
        let latency = match packet.kind {
            _ if remote(packet.line).is_some() => &mut self.cluster,
            PacketKind::Load if packet.l1_hit => &mut self.l1_hit,
            PacketKind::Load if packet.l2_hit => &mut self.l2_hit,
            PacketKind::Load => &mut self.hbm,
            _ => &mut self.atomic,
        };
        latency.record(cycles);
    }

    /// Reports every counter.
    pub(super) fn report(&self, report: &mut dyn Report) {
        let stats = self;
        report.count("instructions", stats.instructions);
        for (names, accesses) in [
            (LOADS, &stats.loads),
            (STORES, &stats.stores),
            (ATOMICS, &stats.atomics),
        ] {
            let values = [
                accesses.instructions,
                accesses.requests,
                accesses.sectors,
                accesses.lane_bytes,
            ];
            names
                .iter()
                .zip(values)
                .for_each(|(name, value)| report.count(name, value));
        }
        report.count("constant_loads", stats.constant_loads.0);
        report.count("constant_passes", stats.constant_loads.1);
        report.count("packets", stats.packets);
        report.latency("l1_hit", &stats.l1_hit);
        report.latency("l2_hit", &stats.l2_hit);
        report.latency("hbm", &stats.hbm);
        report.latency("atomic", &stats.atomic);
        report.latency("cluster", &stats.cluster);
    }
}

const LOADS: [&str; 4] = [
    "global_ld_inst",
    "global_ld_requests",
    "global_ld_sectors",
    "global_ld_lane_bytes",
];
const STORES: [&str; 4] = [
    "global_st_inst",
    "global_st_requests",
    "global_st_sectors",
    "global_st_lane_bytes",
];
const ATOMICS: [&str; 4] = [
    "global_atom_inst",
    "global_atom_requests",
    "global_atom_sectors",
    "global_atom_lane_bytes",
];
