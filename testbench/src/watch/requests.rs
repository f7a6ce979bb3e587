//! Latencies of requests by path and stage, over time, and the slowest requests of all.
//!
//! A path is where a request found what it wanted: `l1_hit`, `l2_hit`, `hbm`; or what it was: `atomic`, `store`. The latency of a request
//! runs from the issue of its instruction to the first issue of a dependent instruction. For a store it ends when the L2 has its bytes. The
//! stages between its stamps cover it without gap.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use warpwave_components::proto::event::{Event, EventKind, Request};
use warpwave_components::proto::mem::{PacketKind, STAGES, Stage};
use warpwave_hw::stats::Latency;
use warpwave_hw::time::Cycle;

use super::Listener;

/// Slowest requests that are kept.
pub const WORST: usize = 16;

/// Cycles from the answer at the LSU to a dependent issue: write port, then scheduler.
const RETURN_TO_USE: u64 = 2;

/// What a request does between a stamp and its next one, by the first of the two.
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

/// Where a request found what it wanted, or what it was.
pub fn path(request: &Request) -> Option<&'static str> {
    Some(match request.kind {
        PacketKind::Load if request.l1_hit => "l1_hit",
        PacketKind::Load if request.l2_hit => "l2_hit",
        PacketKind::Load => "hbm",
        PacketKind::Atomic => "atomic",
        PacketKind::Store | PacketKind::Reduction => "store",
        PacketKind::Invalidate { .. } => return None,
    })
}

/// The stages of a request with their first cycle and length, in order of time.
pub fn stages(request: &Request) -> Vec<(&'static str, Cycle, u64)> {
    let all = STAGE_NAMES.iter().zip(request.stamps.0);
    let mut passed: Vec<(&'static str, Cycle)> = all
        .filter(|(_, at)| *at != Cycle::NEVER)
        .map(|(name, at)| (*name, at))
        .collect();
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

/// The first cycle in which a dependent instruction may issue; of what returns no value, that of the answer.
fn end(request: &Request) -> Cycle {
    let answered = request.stamps.0[Stage::Return as usize];
    match request.kind {
        PacketKind::Load | PacketKind::Atomic => answered + RETURN_TO_USE,
        _ => answered,
    }
}

/// A request by name: the SM and its number there, counted from 0 in the order of answers.
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
pub struct Worst {
    /// Its name.
    pub id: RequestId,
    /// Its path.
    pub path: &'static str,
    /// Its latency in cycles.
    pub cycles: u64,
    /// Position of its warp's CTA in the grid.
    pub block: [u32; 3],
    /// Index of its warp in the CTA.
    pub warp: u32,
    /// What is known of it.
    pub request: Request,
}

/// How often each latency was seen: what an interval holds is too little to fill a whole distribution.
pub type Spread = BTreeMap<u64, u64>;

/// Collects the latencies of a run.
pub struct Requests {
    by_stage: BTreeMap<(&'static str, &'static str), Latency>,
    by_path: BTreeMap<&'static str, Latency>,
    interval: u64,
    intervals: BTreeMap<(u64, &'static str), Spread>,
    worst: Vec<Worst>,
    numbers: Vec<u64>,
    /// CTA and index of the warp in each slot, by SM, sub-core and slot.
    warps: BTreeMap<(u16, u8, u8), ([u32; 3], u32)>,
}

impl Requests {
    /// An empty collection with intervals of `interval` cycles.
    ///
    /// # Panics
    /// If an interval has no cycle.
    pub fn new(interval: u64) -> Self {
        assert!(interval > 0, "an interval has at least one cycle");
        Requests {
            by_stage: BTreeMap::new(),
            by_path: BTreeMap::new(),
            interval,
            intervals: BTreeMap::new(),
            worst: Vec::new(),
            numbers: Vec::new(),
            warps: BTreeMap::new(),
        }
    }

    /// Latency of each path.
    pub fn paths(&self) -> impl Iterator<Item = (&'static str, &Latency)> {
        self.by_path.iter().map(|(path, latency)| (*path, latency))
    }

    /// Time spent in each stage, by path and stage.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, &'static str, &Latency)> {
        let order = |stage: &str| STAGE_NAMES.iter().position(|name| *name == stage);
        let mut stages: Vec<_> = self.by_stage.iter().map(|((p, s), l)| (*p, *s, l)).collect();
        stages.sort_by_key(|(path, stage, _)| (*path, order(stage)));
        stages.into_iter()
    }

    /// Cycles of an interval.
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// Each path in each interval that saw an answer on it, by the interval's number, in order.
    pub fn intervals(&self) -> impl Iterator<Item = (u64, &'static str, &Spread)> {
        self.intervals.iter().map(|((n, path), spread)| (*n, *path, spread))
    }

    /// The slowest requests, the slowest first, the earlier first among equals.
    pub fn worst(&self) -> &[Worst] {
        &self.worst
    }

    fn rank(&mut self, worst: Worst) {
        let key = |w: &Worst| (Reverse(w.cycles), begin(&w.request), w.id);
        let place = self.worst.partition_point(|other| key(other) < key(&worst));
        if place < WORST {
            self.worst.truncate(WORST - 1);
            self.worst.insert(place, worst);
        }
    }
}

impl Listener for Requests {
    fn event(&mut self, sm: u16, event: &Event) {
        if let EventKind::Start { block, index, .. } = event.kind {
            self.warps.insert((sm, event.subcore, event.warp), (block, index));
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
        self.numbers[sm as usize] += 1;
        for (stage, _, cycles) in stages(request) {
            self.by_stage.entry((path, stage)).or_default().record(cycles);
        }
        let cycles = end(request).since(begin(request));
        self.by_path.entry(path).or_default().record(cycles);
        let interval = request.stamps.0[Stage::Return as usize].0 / self.interval;
        let spread = self.intervals.entry((interval, path)).or_default();
        *spread.entry(cycles).or_default() += 1;
        let slot = (sm, request.subcore, request.warp);
        let (block, warp) = self.warps.get(&slot).copied().unwrap_or_default();
        self.rank(Worst {
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
