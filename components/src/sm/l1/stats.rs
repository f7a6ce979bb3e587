//! What an L1 counts.

use warpwave_hw::stats::Report;

use super::lookup::L1TagState;
use crate::proto::mem::{PacketKind, n_sectors};

/// Events of an L1. A sector that merges with a miss in flight counts as missed too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the unit is in the name")]
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
    pub store_sectors: u64,
    pub store_sectors_hit: u64,
    pub atomic_sectors: u64,
    pub reduction_sectors: u64,
    pub invalidations: u64,
    /// Sectors of loads that came back from the crossbar.
    pub sectors_read_below: u64,
    /// Sectors of stores sent to the crossbar.
    pub sectors_written_below: u64,
    pub lines_evicted: u64,
    /// Cycles in which a request was looked up.
    pub tag_cycles: u64,
    /// Cycles that responses held the data path to the LSU.
    pub data_cycles: u64,
    pub mshr_stall_cycles: u64,
    pub store_stall_cycles: u64,
    pub answer_stall_cycles: u64,
}

impl Stats {
    /// A request of `kind` for `n` sectors is looked up. The caller knows the kind, so one branch is left.
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

    /// Counts a miss of the sectors `wanted`: `missing` are not valid, and `merged` of them are in flight.
    pub(super) fn count_miss(&mut self, wanted: u8, missing: u8, merged: u8) {
        self.count_request(PacketKind::Load, n_sectors(wanted));
        self.load_sectors_hit += u64::from(n_sectors(wanted & !missing));
        self.load_sectors_missed += u64::from(n_sectors(missing));
        self.load_sectors_merged += u64::from(n_sectors(merged));
    }

    /// A stall of the tag stage is over.
    pub(super) fn count_stall(&mut self, stall: L1TagState, cycles: u64) {
        match stall {
            L1TagState::StallMshr => self.mshr_stall_cycles += cycles,
            L1TagState::StallStore => self.store_stall_cycles += cycles,
            L1TagState::StallAnswer => self.answer_stall_cycles += cycles,
            L1TagState::Idle | L1TagState::Hit | L1TagState::Miss | L1TagState::Bypass => {}
        }
    }

    /// Gives every counter its name.
    pub(super) fn report(&self, report: &mut dyn Report) {
        let s = self;
        for (name, value) in [
            ("load_requests", s.load_requests),
            ("store_requests", s.store_requests),
            ("atomic_requests", s.atomic_requests),
            ("reduction_requests", s.reduction_requests),
            ("load_sectors", s.load_sectors),
            ("load_sectors_hit", s.load_sectors_hit),
            ("load_sectors_missed", s.load_sectors_missed),
            ("load_sectors_merged", s.load_sectors_merged),
            ("load_sectors_bypassed", s.load_sectors_bypassed),
            ("store_sectors", s.store_sectors),
            ("store_sectors_hit", s.store_sectors_hit),
            ("atomic_sectors", s.atomic_sectors),
            ("reduction_sectors", s.reduction_sectors),
            ("invalidations", s.invalidations),
            ("sectors_read_below", s.sectors_read_below),
            ("sectors_written_below", s.sectors_written_below),
            ("lines_evicted", s.lines_evicted),
            ("tag_cycles", s.tag_cycles),
            ("data_cycles", s.data_cycles),
            ("mshr_stall_cycles", s.mshr_stall_cycles),
            ("store_stall_cycles", s.store_stall_cycles),
            ("answer_stall_cycles", s.answer_stall_cycles),
        ] {
            report.count(name, value);
        }
    }
}
