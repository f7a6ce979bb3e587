//! Collects latencies of requests by path and stage, and over time. Keeps the slowest requests.
//!
//! The path of a load is the level that had its data: `l1_hit`, `l2_hit` or `hbm`. Other paths are `atomic` and `store`. Latency runs
//! from the issue of the instruction to the first possible issue of a dependent one. For a store it ends with the acknowledgement.
//! The stages cover the latency without a gap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use warpwave_components::proto::event::{Event, EventKind, Request};
use warpwave_components::proto::mem::{PacketKind, STAGES, Stage};
use warpwave_hw::stats::Latency;
use warpwave_hw::time::Cycle;

use super::{Listener, returned};

/// Number of the slowest requests that are kept.
pub const N_SLOWEST: usize = 16;

/// Cycles from the response at the LSU to a dependent issue: write port, then scheduler.
const RETURN_TO_USE: u64 = 2;

/// Names of the stages. A stage begins with the stamp of its index and ends with the next stamp.
pub const STAGE_NAMES: [&str; STAGES] = [
    "issue_to_lsu",
    "lsu_to_l1",
    "l1",
    "to_l2",
    "l2",
    "memory",
    "to_l1",
    "l1_to_lsu",
    "lsu_to_use",
];

/// The path of a request. `None` for a request without a latency path.
pub fn path(request: &Request) -> Option<&'static str> {
    // An access to the shared memory of another block bypasses the L1, so it has no stamps. The LSU counts its latency.
    request.stamps.at(Stage::Return)?;
    Some(match request.kind {
        PacketKind::Load if request.l1_hit => "l1_hit",
        PacketKind::Load if request.l2_hit => "l2_hit",
        PacketKind::Load => "hbm",
        PacketKind::Atomic => "atomic",
        PacketKind::Store | PacketKind::Reduction => "store",
        PacketKind::Invalidate { .. } => return None,
    })
}

/// The stages of a request: name, first cycle and length, in order of time.
pub fn stages(request: &Request) -> Vec<(&'static str, Cycle, u64)> {
    let all = STAGE_NAMES.iter().zip(request.stamps.0);
    let mut passed: Vec<(&'static str, Cycle)> = all
        .filter(|(_, at)| *at != Cycle::NEVER)
        .map(|(name, at)| (*name, at))
        .collect();
    // A merged request lacks the stages that its fill had passed before. So a stage ends with the next stamp that the request has.
    passed.sort_by_key(|(_, at)| *at);
    let ends = passed.iter().skip(1).map(|(_, at)| *at).chain([end(request)]);
    let stages = passed.iter().zip(ends);
    let mut stages: Vec<_> = stages.map(|((name, at), end)| (*name, *at, end.since(*at))).collect();
    if end(request) == request.stamps.0[Stage::Return as usize] {
        // A store has no dependent instruction.
        stages.pop();
    }
    stages
}

/// The cycle of issue.
pub fn begin(request: &Request) -> Cycle {
    request.stamps.0[Stage::Issue as usize]
}

/// The first cycle in which a dependent instruction may issue. For a request without a value, the cycle of the response.
pub fn end(request: &Request) -> Cycle {
    let responded = request.stamps.0[Stage::Return as usize];
    match request.kind {
        PacketKind::Load | PacketKind::Atomic => responded + RETURN_TO_USE,
        _ => responded,
    }
}

/// The identity of a request: its SM, and its number in that SM in the order of responses, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RequestId {
    /// The SM.
    pub sm: u16,
    /// The request's number.
    pub number: u64,
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sm{}#{}", self.sm, self.number)
    }
}

/// One of the slowest requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlowRequest {
    /// Its identity.
    pub id: RequestId,
    /// Its path.
    pub path: &'static str,
    /// Its latency in cycles.
    pub cycles: u64,
    /// Position of its warp's CTA in the grid.
    pub block: [u32; 3],
    /// Index of its warp in the CTA.
    pub warp: u32,
    /// The request with its stamps.
    pub request: Request,
}

/// Count of each latency in an interval. A sparse map: an interval has too few requests for a full histogram.
pub type LatencyCounts = BTreeMap<u64, u64>;

/// A warp that has started.
struct Started {
    at: Cycle,
    /// Position of its CTA in the grid.
    block: [u32; 3],
    /// Its index in the CTA.
    index: u32,
}

/// Warps of a slot that are kept. A store may be acknowledged after the next warps of its slot have started. Assumed: at most 31 of them.
const KEPT_WARPS: usize = 32;

/// Collects the latencies of a run.
pub struct Requests {
    /// The first cycle that counts. Earlier responses do not.
    first: Cycle,
    by_stage: BTreeMap<(&'static str, &'static str), Latency>,
    by_path: BTreeMap<&'static str, Latency>,
    interval: u64,
    intervals: BTreeMap<(u64, &'static str), LatencyCounts>,
    slowest: Vec<SlowRequest>,
    numbers: Vec<u64>,
    /// True for each launch that only warms up.
    warm_ups: Vec<bool>,
    /// The last warps of each slot, by SM, sub-core and slot.
    warps: BTreeMap<(u16, u8, u8), VecDeque<Started>>,
}

impl Requests {
    /// Creates an empty collection with intervals of `interval` cycles.
    ///
    /// # Panics
    /// If `interval` is 0.
    pub fn new(interval: u64) -> Self {
        assert!(interval > 0, "an interval has at least one cycle");
        Requests {
            first: Cycle::ZERO,
            by_stage: BTreeMap::new(),
            by_path: BTreeMap::new(),
            interval,
            intervals: BTreeMap::new(),
            slowest: Vec::new(),
            numbers: Vec::new(),
            warm_ups: Vec::new(),
            warps: BTreeMap::new(),
        }
    }

    /// Leaves out the requests with a response before cycle `first`.
    pub fn since(self, first: Cycle) -> Self {
        Requests { first, ..self }
    }

    /// Leaves out the launches that warm up. `warm_ups` has `true` for each of these, by number of the launch.
    pub fn without(self, warm_ups: Vec<bool>) -> Self {
        Requests { warm_ups, ..self }
    }

    /// CTA and index of the warp that issued a request.
    fn issuer(&self, sm: u16, request: &Request) -> ([u32; 3], u32) {
        let of_slot = self.warps.get(&(sm, request.subcore, request.warp));
        let mut latest = of_slot.into_iter().flatten().rev();
        let found = latest.find(|warp| warp.at <= begin(request));
        found.map(|warp| (warp.block, warp.index)).unwrap_or_default()
    }

    /// The latency distribution of each path.
    pub fn paths(&self) -> impl Iterator<Item = (&'static str, &Latency)> {
        self.by_path.iter().map(|(path, latency)| (*path, latency))
    }

    /// The distribution of cycles in each stage, by path and stage.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, &'static str, &Latency)> {
        let order = |stage: &str| STAGE_NAMES.iter().position(|name| *name == stage);
        let mut stages: Vec<_> = self.by_stage.iter().map(|((p, s), l)| (*p, *s, l)).collect();
        stages.sort_by_key(|(path, stage, _)| (*path, order(stage)));
        stages.into_iter()
    }

    /// Length of an interval, in cycles.
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// Latency counts by interval and path, in order. A request counts in the interval of its response. Intervals without one are left out.
    pub fn intervals(&self) -> impl Iterator<Item = (u64, &'static str, &LatencyCounts)> {
        self.intervals.iter().map(|((n, path), spread)| (*n, *path, spread))
    }

    /// The slowest requests, in descending order. Among equals, the earlier one is first.
    pub fn slowest(&self) -> &[SlowRequest] {
        &self.slowest
    }

    fn rank(&mut self, new: SlowRequest) {
        let key = |w: &SlowRequest| (Reverse(w.cycles), begin(&w.request), w.id);
        let index = self.slowest.partition_point(|other| key(other) < key(&new));
        if index < N_SLOWEST {
            // The last one of a full list makes room.
            self.slowest.truncate(N_SLOWEST - 1);
            self.slowest.insert(index, new);
        }
    }
}

impl Listener for Requests {
    fn event(&mut self, sm: u16, event: &Event) {
        if let EventKind::Start { block, index, .. } = event.kind {
            let of_slot = self.warps.entry((sm, event.subcore, event.warp)).or_default();
            if of_slot.len() == KEPT_WARPS {
                of_slot.pop_front();
            }
            let at = event.at;
            of_slot.push_back(Started { at, block, index });
        }
    }

    fn request(&mut self, sm: u16, request: &Request) {
        let Some(path) = path(request) else { return };
        if self.numbers.len() <= sm as usize {
            self.numbers.resize(sm as usize + 1, 0);
        }
        let id = RequestId {
            sm,
            number: self.numbers[sm as usize],
        };
        // Earlier requests are counted too, so that a number does not depend on the first cycle.
        self.numbers[sm as usize] += 1;
        let warms_up = self.warm_ups.get(request.grid as usize).is_some_and(|warms| *warms);
        if warms_up || returned(request) < self.first {
            return;
        }
        for (stage, _, cycles) in stages(request) {
            self.by_stage.entry((path, stage)).or_default().record(cycles);
        }
        let cycles = end(request).since(begin(request));
        self.by_path.entry(path).or_default().record(cycles);
        let interval = request.stamps.0[Stage::Return as usize].0 / self.interval;
        let spread = self.intervals.entry((interval, path)).or_default();
        *spread.entry(cycles).or_default() += 1;
        let (block, warp) = self.issuer(sm, request);
        self.rank(SlowRequest {
            id,
            path,
            cycles,
            block,
            warp,
            request: *request,
        });
    }
}

#[cfg(test)]
mod tests;
