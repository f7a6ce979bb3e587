//! Counters of an L2 slice.

use super::tag_state::SliceTagState;
use crate::proto::mem::{Packet, PacketKind, n_sectors};

warpwave_hw::counters! {
    /// Counters of a slice. A sector that waits for a fetch in flight counts as missed too.
    pub struct Stats {
        pub load_requests: u64,
        pub store_requests: u64,
        pub atomic_requests: u64,
        pub reduction_requests: u64,
        pub load_sectors: u64,
        pub load_sectors_hit: u64,
        pub load_sectors_missed: u64,
        pub load_sectors_merged: u64,
        pub store_sectors: u64,
        /// Sectors of stores to a line that was present.
        pub store_sectors_hit: u64,
        pub store_sectors_missed: u64,
        /// Sectors of atomics and reductions.
        pub atomic_sectors: u64,
        pub atomic_sectors_hit: u64,
        pub atomic_sectors_missed: u64,
        pub atomic_lanes: u64,
        pub sectors_fetched: u64,
        /// Dirty sectors of evicted lines.
        pub sectors_written_back: u64,
        /// Dirty sectors that the host has written back after a launch.
        pub sectors_flushed: u64,
        pub lines_evicted: u64,
        /// Cycles in which the tag stage served a request or passed it on. Lookups that stall do not count.
        pub tag_cycles: u64,
        /// Cycles in which the data array was busy.
        pub data_cycles: u64,
        /// Those of them for atomics and reductions.
        pub atomic_cycles: u64,
        /// Cycles in which a response was sent to the crossbar.
        pub response_cycles: u64,
        /// Cycles in which a request waited for a free MSHR or target.
        pub fetch_stall_cycles: u64,
        /// Cycles in which a request waited for a line of its set to be unpinned.
        pub pinned_stall_cycles: u64,
        /// Cycles in which a request waited for room in `l2.memory_queue`.
        pub memory_stall_cycles: u64,
        /// Cycles in which a request waited for room in a response pipe, plus cycles in which a response waited for its link.
        pub response_stall_cycles: u64,
    }
}

impl Stats {
    /// Counts a request that is served. Its sectors `merged` wait for a fetch in flight, and `fetched` for a new one.
    #[inline]
    pub(super) fn count_request(&mut self, packet: &Packet, is_present: bool, merged: u8, fetched: u8) {
        let s = self;
        let sectors = u64::from(packet.n_sectors());
        let missed = u64::from(n_sectors(merged | fetched));
        match packet.kind {
            PacketKind::Load => {
                s.load_requests += 1;
                s.load_sectors += sectors;
                s.load_sectors_hit += sectors - missed;
                s.load_sectors_missed += missed;
                s.load_sectors_merged += u64::from(n_sectors(merged));
            }
            PacketKind::Store => {
                s.store_requests += 1;
                s.store_sectors += sectors;
                // A store needs no bytes, so it hits by line, not by sector.
                match is_present {
                    true => s.store_sectors_hit += sectors,
                    false => s.store_sectors_missed += sectors,
                }
            }
            PacketKind::Atomic | PacketKind::Reduction => s.count_atomic(packet, missed),
            PacketKind::Invalidate { .. } => unreachable!("an invalidation stays in the L1"),
        }
    }

    /// Counts an atomic or a reduction. `missed` is its number of sectors that wait.
    #[inline(never)]
    fn count_atomic(&mut self, packet: &Packet, missed: u64) {
        match packet.kind {
            PacketKind::Atomic => self.atomic_requests += 1,
            _ => self.reduction_requests += 1,
        }
        let sectors = u64::from(packet.n_sectors());
        self.atomic_sectors += sectors;
        self.atomic_sectors_hit += sectors - missed;
        self.atomic_sectors_missed += missed;
        self.atomic_lanes += packet.atomic.as_ref().map_or(0, |atomics| atomics.n as u64);
    }

    /// Counts a stall of the tag stage when it ends.
    #[cold]
    pub(super) fn count_stall(&mut self, stall: SliceTagState, edges: u64) {
        match stall {
            SliceTagState::StallFetch => self.fetch_stall_cycles += edges,
            SliceTagState::StallPinned => self.pinned_stall_cycles += edges,
            SliceTagState::StallMemory => self.memory_stall_cycles += edges,
            SliceTagState::StallResponse => self.response_stall_cycles += edges,
            SliceTagState::Idle
            | SliceTagState::Hit
            | SliceTagState::Miss
            | SliceTagState::Pass
            // `TwinStats::twin_stall_cycles` counts it.
            | SliceTagState::StallTwin
            | SliceTagState::DataBusy => {}
        }
    }
}

warpwave_hw::counters! {
    /// Counters of a slice with copies of lines of the other partition.
    pub struct TwinStats {
        /// Requests of SMs that passed on to the home slice. That slice counts them by kind.
        pub requests_passed: u64,
        /// Sectors that this slice has fetched from their home, for copies.
        pub copy_sectors_fetched: u64,
        /// Valid sectors of copies that a recall or a passing request has dropped.
        pub copy_sectors_dropped: u64,
        /// Fetches that the twin sent to this slice, for its copies. Profilers call this traffic the L2 fabric.
        pub fabric_requests: u64,
        pub fabric_sectors: u64,
        pub fabric_sectors_hit: u64,
        pub fabric_sectors_missed: u64,
        /// Recalls that this slice has sent, as the home of a line with a copy.
        pub recalls: u64,
        /// Cycles in which a request waited for room in the pipe to the twin, or for the answer to a recall.
        pub twin_stall_cycles: u64,
    }
}

impl TwinStats {
    /// Counts a fetch of the twin that is served. Its sectors `missing` wait for memory.
    pub(super) fn count_fetch(&mut self, packet: &Packet, missing: u8) {
        let (sectors, missed) = (u64::from(packet.n_sectors()), u64::from(n_sectors(missing)));
        self.fabric_requests += 1;
        self.fabric_sectors += sectors;
        self.fabric_sectors_hit += sectors - missed;
        self.fabric_sectors_missed += missed;
    }
}
