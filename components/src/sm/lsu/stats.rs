//! Counters of an LSU.

use warpwave_hw::stats::{Indexed, Latency, Report};
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use crate::proto::cluster::is_remote;
use crate::proto::mem::{Packet, PacketKind, SECTOR, n_sectors};
use crate::proto::warp::WarpInst;
use crate::sm::lsu::coalescer::CoalescedAccess;

/// Counters of one kind of access to global or local memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    /// Warp instructions with at least one active lane.
    pub instructions: u64,
    /// Requests of this machine: 1 per instruction of up to 4 bytes a lane, 2 for 8 bytes, 4 for 16.
    pub requests: u64,
    /// Sectors requested.
    pub sectors: u64,
    /// Bytes accessed, summed over lanes.
    pub lane_bytes: u64,
    /// Sectors above the number that `lane_bytes` fill without gaps, instruction by instruction.
    pub excess_sectors: u64,
}

/// Counters of an LSU.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Instructions taken from the sub-cores.
    pub instructions: u64,
    /// Loads from global memory.
    pub loads: Accesses,
    /// Bytes of global loads. A byte that several lanes of an instruction load counts once.
    pub distinct_load_bytes: u64,
    /// Bytes of reductions, summed over lanes: a part of those of `atomics`. No old value returns.
    pub reduction_lane_bytes: u64,
    /// Stores to global memory.
    pub stores: Accesses,
    /// Atomics and reductions on global memory.
    pub atomics: Accesses,
    /// Warp instructions, sectors and lane bytes of each instruction on global or local memory, by program counter.
    pub by_pc: Indexed<3>,
    /// Loads from local memory.
    pub local_loads: Accesses,
    /// Stores to local memory.
    pub local_stores: Accesses,
    /// Fetches from textures.
    pub texture_loads: Accesses,
    /// Loads from surfaces.
    pub surface_loads: Accesses,
    /// Stores to surfaces.
    pub surface_stores: Accesses,
    /// Loads from the shared memory of other SMs.
    pub remote_loads: Accesses,
    /// Stores to the shared memory of other SMs.
    pub remote_stores: Accesses,
    /// Atomics and reductions on the shared memory of other SMs.
    pub remote_atomics: Accesses,
    /// Constant loads.
    pub constant_loads: u64,
    /// Constant loads that waited for a line.
    pub constant_loads_missed: u64,
    /// Passes of the constant loads: one per distinct address.
    pub constant_passes: u64,
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
    pub(super) fn count_access(&mut self, warp_inst: &WarpInst, access: &CoalescedAccess, lanes: LaneMask) {
        let inst = warp_inst.inst();
        let is_local = !warp_inst.local_lanes.is_empty();
        let (sectors, remote_lanes) = device_part(access);
        // A generic address may name this GPU's memory in one lane and another SM in the next: such an access counts as global.
        let is_remote = !remote_lanes.is_empty() && (lanes & !remote_lanes).is_empty();
        let kind = match inst.op {
            // A texel has no address of its lane, and its sectors are those of the filter.
            Opcode::Tex => &mut self.texture_loads,
            Opcode::Suld => &mut self.surface_loads,
            Opcode::Sust => &mut self.surface_stores,
            // A prefetch returns nothing to the warp, so it is no access of the warp.
            Opcode::Cctl => return,
            Opcode::Ld | Opcode::Ldgsts if is_remote => &mut self.remote_loads,
            Opcode::St if is_remote => &mut self.remote_stores,
            _ if is_remote => &mut self.remote_atomics,
            Opcode::Ld if is_local => &mut self.local_loads,
            Opcode::St if is_local => &mut self.local_stores,
            Opcode::Ld | Opcode::Ldgsts => &mut self.loads,
            Opcode::St => &mut self.stores,
            _ => &mut self.atomics,
        };
        let (sectors, counted_lanes) = match is_remote {
            true => (all_sectors(access), lanes),
            false => (sectors, lanes & !remote_lanes),
        };
        let bytes = inst.mods.access.total();
        let lane_bytes = u64::from(counted_lanes.count() * bytes);
        kind.instructions += u64::from(!lanes.is_empty());
        kind.requests += u64::from(access.requests);
        kind.sectors += sectors;
        kind.lane_bytes += lane_bytes;
        // A broadcast needs fewer sectors than its lane bytes: it has no excess.
        kind.excess_sectors += sectors.saturating_sub(lane_bytes.div_ceil(SECTOR as u64));
        match inst.op {
            Opcode::Ld | Opcode::Ldgsts if !is_remote && !is_local => {
                // Accesses are aligned, so two of them are equal or have no byte in common.
                self.distinct_load_bytes += u64::from(warp_inst.addresses.n_distinct(counted_lanes) * bytes);
            }
            Opcode::Red if !is_remote => self.reduction_lane_bytes += lane_bytes,
            _ => {}
        }
        // The counts by instruction show how well lanes coalesce. Texels and words of another SM do not coalesce into sectors.
        if is_remote || matches!(inst.op, Opcode::Tex | Opcode::Suld | Opcode::Sust) {
            return;
        }
        let counted = [u64::from(!lanes.is_empty()), sectors, lane_bytes];
        let of_inst = self.by_pc.at(warp_inst.pc).iter_mut();
        of_inst.zip(counted).for_each(|(sum, n)| *sum += n);
    }

    /// Counts the sectors of a later group of a local access: the next word of each lane.
    pub(super) fn count_later_group(&mut self, warp_inst: &WarpInst, access: &CoalescedAccess) {
        let kind = match warp_inst.inst().op {
            Opcode::Ld => &mut self.local_loads,
            Opcode::St => &mut self.local_stores,
            // A texel: the first one of a fetch counts.
            _ => return,
        };
        let sectors = all_sectors(access);
        kind.sectors += sectors;
        self.by_pc.at(warp_inst.pc)[1] += sectors;
    }

    // Not inlined: responses to stores do not need it.
    /// Records the cycles from issue to use of a response with data.
    #[inline(never)]
    pub(super) fn count_latency(&mut self, packet: &Packet, cycles: u64) {
        let latency = match packet.kind {
            // First, since the packet kind of a remote access is also a load or an atomic.
            _ if is_remote(packet.line) => &mut self.cluster,
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
        let reported: [(&[&'static str], &Accesses); 11] = [
            (&LOADS, &stats.loads),
            (&STORES, &stats.stores),
            (&ATOMICS, &stats.atomics),
            (&LOCAL_LOADS, &stats.local_loads),
            (&LOCAL_STORES, &stats.local_stores),
            // Lanes name texels, not bytes: such accesses have no lane bytes and no excess.
            (&TEXTURE_LOADS, &stats.texture_loads),
            (&SURFACE_LOADS, &stats.surface_loads),
            (&SURFACE_STORES, &stats.surface_stores),
            (&REMOTE_LOADS, &stats.remote_loads),
            (&REMOTE_STORES, &stats.remote_stores),
            (&REMOTE_ATOMICS, &stats.remote_atomics),
        ];
        for (names, accesses) in reported {
            let values = [
                accesses.instructions,
                accesses.requests,
                accesses.sectors,
                accesses.lane_bytes,
                accesses.excess_sectors,
            ];
            names
                .iter()
                .zip(values)
                .for_each(|(name, value)| report.count(name, value));
        }
        stats
            .by_pc
            .report(report, ["global_inst", "global_sectors", "global_lane_bytes"]);
        report.count("global_ld_distinct_bytes", stats.distinct_load_bytes);
        report.count("global_red_lane_bytes", stats.reduction_lane_bytes);
        report.count("constant_loads", stats.constant_loads);
        report.count("constant_loads_missed", stats.constant_loads_missed);
        report.count("constant_passes", stats.constant_passes);
        report.count("packets", stats.packets);
        report.latency("l1_hit", &stats.l1_hit);
        report.latency("l2_hit", &stats.l2_hit);
        report.latency("hbm", &stats.hbm);
        report.latency("atomic", &stats.atomic);
        report.latency("cluster", &stats.cluster);
    }
}

/// Sectors of an access in device memory, and the lanes that access another SM.
fn device_part(access: &CoalescedAccess) -> (u64, LaneMask) {
    let (mut sectors, mut remote_lanes) = (0, LaneMask::NONE);
    for line in access.lines() {
        match is_remote(line.line) {
            true => remote_lanes |= line.lanes,
            false => sectors += u64::from(n_sectors(line.sectors)),
        }
    }
    (sectors, remote_lanes)
}

/// Sectors of an access.
fn all_sectors(access: &CoalescedAccess) -> u64 {
    let sectors = access.lines().iter().map(|line| u64::from(n_sectors(line.sectors)));
    sectors.sum()
}

const LOADS: [&str; 5] = [
    "global_ld_inst",
    "global_ld_requests",
    "global_ld_sectors",
    "global_ld_lane_bytes",
    "global_ld_excess_sectors",
];
const STORES: [&str; 5] = [
    "global_st_inst",
    "global_st_requests",
    "global_st_sectors",
    "global_st_lane_bytes",
    "global_st_excess_sectors",
];
const ATOMICS: [&str; 5] = [
    "global_atom_inst",
    "global_atom_requests",
    "global_atom_sectors",
    "global_atom_lane_bytes",
    "global_atom_excess_sectors",
];
const LOCAL_LOADS: [&str; 5] = [
    "local_ld_inst",
    "local_ld_requests",
    "local_ld_sectors",
    "local_ld_lane_bytes",
    "local_ld_excess_sectors",
];
const LOCAL_STORES: [&str; 5] = [
    "local_st_inst",
    "local_st_requests",
    "local_st_sectors",
    "local_st_lane_bytes",
    "local_st_excess_sectors",
];
const TEXTURE_LOADS: [&str; 3] = ["texture_ld_inst", "texture_ld_requests", "texture_ld_sectors"];
const SURFACE_LOADS: [&str; 3] = ["surface_ld_inst", "surface_ld_requests", "surface_ld_sectors"];
const SURFACE_STORES: [&str; 3] = ["surface_st_inst", "surface_st_requests", "surface_st_sectors"];
const REMOTE_LOADS: [&str; 5] = [
    "remote_ld_inst",
    "remote_ld_requests",
    "remote_ld_sectors",
    "remote_ld_lane_bytes",
    "remote_ld_excess_sectors",
];
const REMOTE_STORES: [&str; 5] = [
    "remote_st_inst",
    "remote_st_requests",
    "remote_st_sectors",
    "remote_st_lane_bytes",
    "remote_st_excess_sectors",
];
const REMOTE_ATOMICS: [&str; 5] = [
    "remote_atom_inst",
    "remote_atom_requests",
    "remote_atom_sectors",
    "remote_atom_lane_bytes",
    "remote_atom_excess_sectors",
];
