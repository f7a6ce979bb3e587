//! What an LSU counts.

use warpwave_hw::stats::{Latency, Report};
use warpwave_isa::lane::LaneMask;

use crate::proto::cluster::remote;
use crate::proto::mem::{Packet, PacketKind, n_sectors};
use crate::sm::lsu::coalescer::Parts;

/// What an LSU counts, by kind of global access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    /// Warp instructions with at least one lane.
    pub instructions: u64,
    /// Requests (an 8-byte access is two, a 16-byte one four).
    pub requests: u64,
    /// Sectors wanted.
    pub sectors: u64,
    /// Bytes wanted by lanes.
    pub lane_bytes: u64,
}

impl Accesses {
    /// Counts an instruction's access.
    pub(super) fn count(&mut self, parts: &Parts, lanes: LaneMask, bytes: u32) {
        let sectors = parts.all().iter().map(|part| u64::from(n_sectors(part.sectors)));
        self.instructions += u64::from(!lanes.is_empty());
        self.requests += u64::from(parts.requests);
        self.sectors += sectors.sum::<u64>();
        self.lane_bytes += u64::from(lanes.count() * bytes);
    }
}

/// What an LSU counts.
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
    /// Packets sent to the L1.
    pub packets: u64,
    /// Issue to use, of packets found in the L1, in the L2, in memory, and of atomics.
    pub l1_hit: Latency,
    /// As above, from the L2.
    pub l2_hit: Latency,
    /// As above, from memory.
    pub hbm: Latency,
    /// As above, of atomics that return a value.
    pub atomic: Latency,
    /// As above, of loads and atomics in other SMs' shared memory.
    pub cluster: Latency,
}

impl Stats {
    /// Counts the cycles that a packet took that brings data. Apart from what answers to stores need.
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

    /// Gives every counter.
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
