//! Counters of an L1.

use super::lookup::L1TagState;
use crate::proto::mem::{BULK_TAG, Packet, PacketKind, Purpose, n_sectors};

warpwave_hw::counters! {
    /// Counters of an L1. A sector that merges with a miss in flight counts as missed too.
    pub struct Stats {
        pub load_requests: u64,
        pub store_requests: u64,
        pub atomic_requests: u64,
        pub reduction_requests: u64,
        pub load_sectors: u64,
        pub load_sectors_hit: u64,
        pub load_sectors_missed: u64,
        pub load_sectors_merged: u64,
        pub load_sectors_bypassed: u64,
        /// Sectors of loads of warps from global memory: a part of `load_sectors`, as are the next three.
        pub global_load_sectors: u64,
        pub global_load_sectors_hit: u64,
        pub global_load_sectors_missed: u64,
        pub global_load_sectors_merged: u64,
        pub store_sectors: u64,
        pub store_sectors_hit: u64,
        pub atomic_sectors: u64,
        pub reduction_sectors: u64,
        pub invalidations: u64,
        /// Sectors of loads from global and local memory that came back from the crossbar.
        pub l2_sectors_read: u64,
        /// Sectors of stores to global and local memory sent to the crossbar.
        pub l2_sectors_written: u64,
        /// Sectors of textures and surfaces that came back from the crossbar.
        pub texture_sectors_read: u64,
        /// Sectors of surface stores sent to the crossbar.
        pub surface_sectors_written: u64,
        /// Sectors of bulk copies that came back from the crossbar.
        pub bulk_sectors_read: u64,
        /// Sectors of bulk copies sent to the crossbar.
        pub bulk_sectors_written: u64,
        pub lines_evicted: u64,
        /// Packets for the crossbar whose page was in the TLB, or took an entry that was never used.
        pub tlb_hits: u64,
        /// Packets for the crossbar whose page was not in the TLB.
        pub tlb_misses: u64,
        /// Cycles in which at least one request was looked up.
        pub tag_cycles: u64,
        /// Cycles in which responses held the data path to the LSU.
        pub data_cycles: u64,
        pub mshr_stall_cycles: u64,
        pub store_stall_cycles: u64,
        pub response_stall_cycles: u64,
    }
}

impl Stats {
    // The caller knows the kind, so the compiler leaves one branch.
    /// Counts the lookup of a request of `kind` for `n` sectors.
    #[inline]
    pub(super) fn count_request(&mut self, kind: PacketKind, n: u32) {
        let (requests, sectors) = match kind {
            PacketKind::Load => (&mut self.load_requests, &mut self.load_sectors),
            PacketKind::Store => (&mut self.store_requests, &mut self.store_sectors),
            PacketKind::Atomic => (&mut self.atomic_requests, &mut self.atomic_sectors),
            PacketKind::Reduction => (&mut self.reduction_requests, &mut self.reduction_sectors),
            PacketKind::Invalidate { .. } => {
                self.invalidations += 1;
                return;
            }
        };
        *requests += 1;
        *sectors += u64::from(n);
    }

    /// Counts the lookup of a load: the sectors `missing` are not valid, and `merged` of them are in flight.
    #[inline]
    pub(super) fn count_load(&mut self, packet: &Packet, missing: u8, merged: u8) {
        self.count_request(PacketKind::Load, packet.n_sectors());
        let [hit, missed, merged] = [packet.sectors & !missing, missing, merged].map(|set| u64::from(n_sectors(set)));
        self.load_sectors_hit += hit;
        self.load_sectors_missed += missed;
        self.load_sectors_merged += merged;
        if packet.purpose == Purpose::GlobalLoad {
            self.global_load_sectors += hit + missed;
            self.global_load_sectors_hit += hit;
            self.global_load_sectors_missed += missed;
            self.global_load_sectors_merged += merged;
        }
    }

    /// Counts a load that has come back from the crossbar.
    #[inline]
    pub(super) fn count_read(&mut self, packet: &Packet) {
        let sectors = match packet.purpose {
            Purpose::Texture => &mut self.texture_sectors_read,
            _ if packet.tag & BULK_TAG != 0 => &mut self.bulk_sectors_read,
            _ => &mut self.l2_sectors_read,
        };
        *sectors += u64::from(packet.n_sectors());
    }

    /// Counts the `n` data sectors of a packet that is sent to the crossbar.
    #[inline]
    pub(super) fn count_written(&mut self, packet: &Packet, n: u32) {
        let sectors = match packet.purpose {
            Purpose::Texture => &mut self.surface_sectors_written,
            _ if packet.tag & BULK_TAG != 0 => &mut self.bulk_sectors_written,
            _ => &mut self.l2_sectors_written,
        };
        *sectors += u64::from(n);
    }

    /// Counts a stall of the tag stage when it ends.
    pub(super) fn count_stall(&mut self, stall: L1TagState, cycles: u64) {
        match stall {
            L1TagState::StallMshr => self.mshr_stall_cycles += cycles,
            L1TagState::StallStore => self.store_stall_cycles += cycles,
            L1TagState::StallResponse => self.response_stall_cycles += cycles,
            L1TagState::Idle | L1TagState::Hit | L1TagState::Miss | L1TagState::Bypass => {}
        }
    }
}
