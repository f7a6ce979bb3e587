//! Happens-before order of all warps of a launch.
//!
//! | Cause | Orders |
//! |---|---|
//! | program order | a lane with itself |
//! | `bar.warp.sync` | the lanes of its mask |
//! | a block barrier, an mbarrier, a strong access to shared memory | earlier arrivals and writes before later waits and reads |
//! | release pattern, then acquire pattern | accesses before the first fence before those after the second |
//! | a cluster barrier | a releasing arrival before an acquiring wait |
//!
//! A release pattern is a fence, then a strong write. An acquire pattern is a strong read, then a fence. The compiler makes a relaxed
//! access and a fence of `ld.acquire` and of `st.release`. The read must take the value of the write, or of atomics that follow it. Both
//! fences and both accesses must have a scope that includes the other thread (PTX ISA, "Memory Consistency Model").
//!
//! Across warps, a release by one lane counts for its warp. Every doubtful case counts as ordered.

use std::collections::HashMap;

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

use super::Strength;
use super::clock::Clock;
use crate::reference::race_detector::order::{all_if, lanes_since};

/// What an order demands of a release and of an acquire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// Fences and scopes, as in the memory model.
    Model,
    /// Fences, of any scope.
    AnyScope,
    /// Strong accesses, without fences.
    NoFence,
}

/// A word of shared memory: cluster, rank of the CTA, offset.
pub(super) type SharedWord = (u64, usize, u32);

/// What readers of a location can acquire.
#[derive(Default)]
struct Location {
    /// Releases at GPU scope.
    wide: Clock,
    /// Releases at any scope, for readers of the same CTA.
    narrow: Vec<(u32, Clock)>,
}

/// The clocks of a warp.
#[derive(Default)]
struct WarpClocks {
    /// Instructions so far.
    step: u32,
    clock: Clock,
    /// For each lane (first index): the steps of the other lanes that come before it.
    lanes: Option<Box<[[u32; WARP_SIZE]; WARP_SIZE]>>,
    /// Lanes that wait at a WARPSYNC.
    syncing: LaneMask,
    /// The clock at the last fence of GPU scope, and at the last fence of any scope.
    released: [Clock; 2],
    /// Releases that strong reads have seen since the last acquiring fence of GPU scope: at GPU scope, and in the own CTA.
    seen: [Clock; 2],
}

/// The clocks of a CTA.
#[derive(Default)]
struct CtaClocks {
    warps: Vec<WarpClocks>,
    /// Joined clocks of the warps that have arrived at each block barrier.
    barriers: HashMap<usize, Clock>,
}

/// The order of a launch under one rule. One CTA runs at a time.
pub(super) struct Causality {
    rule: Rule,
    warps: usize,
    cta: u32,
    running: CtaClocks,
    /// CTAs that have begun and not ended.
    others: HashMap<u32, CtaClocks>,
    locations: HashMap<u64, Location>,
    /// Clocks of arrivals and strong writes in shared memory.
    shared: HashMap<SharedWord, Clock>,
    /// For each cluster: arrivals of the phase that is open, and of the phase before it.
    clusters: HashMap<u64, [Clock; 2]>,
}

impl Causality {
    pub fn new(rule: Rule, warps: usize) -> Self {
        Causality {
            rule,
            warps,
            cta: 0,
            running: CtaClocks::default(),
            others: HashMap::new(),
            locations: HashMap::new(),
            shared: HashMap::new(),
            clusters: HashMap::new(),
        }
    }

    /// A CTA begins a turn.
    pub fn enter(&mut self, cta: u32) {
        self.cta = cta;
        // The other rules explain races between warps only, so they need no clocks of lanes.
        let (warps, has_lanes) = (self.warps, self.rule == Rule::Model);
        let new = || WarpClocks {
            lanes: has_lanes.then(|| Box::new([[0; WARP_SIZE]; WARP_SIZE])),
            ..WarpClocks::default()
        };
        self.running = self.others.remove(&cta).unwrap_or_else(|| CtaClocks {
            warps: (0..warps).map(|_| new()).collect(),
            barriers: HashMap::new(),
        });
    }

    /// The running CTA ends its turn. `ended` if it ends altogether.
    pub fn leave(&mut self, ended: bool) {
        let clocks = std::mem::take(&mut self.running);
        // Nothing of an ended CTA acquires any more, so its clocks are dropped. Its releases stay in `locations`.
        if !ended {
            self.others.insert(self.cta, clocks);
        }
    }

    /// The step of a warp's instruction.
    pub fn step(&self, warp: usize) -> u32 {
        self.running.warps[warp].step
    }

    /// Begins the next instruction of a warp. Active lanes that waited at a WARPSYNC have been released: their clocks are joined.
    pub fn begin(&mut self, warp: usize, active: LaneMask) {
        let known = &mut self.running.warps[warp];
        if !(known.syncing & active).is_empty() {
            let met = std::mem::take(&mut known.syncing);
            known.join_lanes(met);
        }
        known.step += 1;
    }

    pub fn on_warpsync(&mut self, warp: usize, lanes: LaneMask) {
        self.running.warps[warp].syncing |= lanes;
    }

    pub fn arrive(&mut self, warp: usize, barrier: usize) {
        let clock = self.now(warp);
        self.running.barriers.entry(barrier).or_default().join(&clock);
    }

    pub fn open(&mut self, barrier: usize, waiting: impl Iterator<Item = usize>) {
        let Some(clock) = self.running.barriers.remove(&barrier) else {
            return;
        };
        for warp in waiting {
            self.acquire(warp, LaneMask::ALL, &clock);
            self.running.warps[warp].join_lanes(LaneMask::ALL);
        }
    }

    /// A fence of a warp. `wide` is false for CTA scope.
    pub fn fence(&mut self, warp: usize, lanes: LaneMask, wide: bool, releases: bool, acquires: bool) {
        let wide = wide || self.rule == Rule::AnyScope;
        if releases {
            let now = self.now(warp);
            let known = &mut self.running.warps[warp];
            if wide {
                known.released[0] = now.clone();
            }
            known.released[1] = now;
        }
        if acquires {
            let [of_gpu, of_cta] = self.running.warps[warp].seen.clone();
            self.acquire(warp, lanes, &of_cta);
            if wide {
                self.running.warps[warp].seen = Default::default();
                self.acquire(warp, lanes, &of_gpu);
            } else if !of_gpu.is_empty() {
                // A fence of CTA scope covers the own CTA, and what a warp of this CTA has acquired from others.
                let near = of_gpu.within(self.cta, &self.known_in_cta());
                self.acquire(warp, lanes, &near);
            }
        }
    }

    /// A strong read of global memory.
    pub fn read(&mut self, warp: usize, lane: usize, address: u64, scope: Strength) {
        let Some(location) = self.locations.get(&address) else {
            return;
        };
        let narrow = location.narrow.iter().find(|(cta, _)| *cta == self.cta);
        let narrow = narrow.map(|(_, clock)| clock.clone());
        let wide = location.wide.clone();
        if self.rule == Rule::NoFence {
            self.acquire(warp, LaneMask::lane(lane), &wide);
            return;
        }
        if scope == Strength::Gpu || self.rule == Rule::AnyScope {
            self.running.warps[warp].seen[0].join(&wide);
        } else if !wide.is_empty() {
            // As at a fence of CTA scope: the own CTA, and what its warps have acquired.
            let near = wide.within(self.cta, &self.known_in_cta());
            self.running.warps[warp].seen[1].join(&near);
        }
        if let Some(narrow) = narrow {
            self.running.warps[warp].seen[1].join(&narrow);
        }
    }

    /// A strong write to global memory. An atomic keeps the releases of the value that it replaces.
    pub fn write(&mut self, warp: usize, address: u64, scope: Strength, is_atomic: bool) {
        let [mut wide, narrow] = match self.rule {
            // Without fences each strong write is a release.
            Rule::NoFence => [self.now(warp), Clock::default()],
            _ => self.running.warps[warp].released.clone(),
        };
        if scope != Strength::Gpu && self.rule == Rule::Model {
            wide = Clock::default();
        }
        // A plain write ends the release sequence of the earlier value.
        if !is_atomic {
            self.locations.remove(&address);
        }
        if wide.is_empty() && narrow.is_empty() {
            return;
        }
        let location = self.locations.entry(address).or_default();
        location.wide.join(&wide);
        match location.narrow.iter_mut().find(|(cta, _)| *cta == self.cta) {
            Some((_, clock)) => clock.join(&narrow),
            None if narrow.is_empty() => {}
            None => location.narrow.push((self.cta, narrow)),
        }
    }

    /// A weak write to global memory: later readers of the address see no earlier release.
    pub fn overwrite(&mut self, address: u64) {
        if !self.locations.is_empty() {
            self.locations.remove(&address);
        }
    }

    /// An arrival at an mbarrier, or a strong write to shared memory.
    pub fn write_shared(&mut self, warp: usize, word: SharedWord) {
        let clock = self.now(warp);
        self.shared.entry(word).or_default().join(&clock);
    }

    /// A successful wait at an mbarrier, or a strong read of shared memory.
    pub fn read_shared(&mut self, warp: usize, lane: usize, word: SharedWord) {
        if let Some(clock) = self.shared.get(&word).cloned() {
            self.acquire(warp, LaneMask::lane(lane), &clock);
        }
    }

    /// A warp arrives at the barrier of its cluster.
    pub fn cluster_arrive(&mut self, warp: usize, cluster: u64) {
        let clock = match self.rule {
            Rule::NoFence => self.now(warp),
            // The compiler puts a fence before an arrival that releases.
            _ => self.running.warps[warp].released[0].clone(),
        };
        self.clusters.entry(cluster).or_default()[0].join(&clock);
    }

    /// The barrier of a cluster opens.
    pub fn cluster_open(&mut self, cluster: u64) {
        let phases = self.clusters.entry(cluster).or_default();
        // Arrivals of the next phase may come before the last wait of this one.
        phases[1] = std::mem::take(&mut phases[0]);
    }

    /// A warp has waited at the barrier of its cluster, which is open.
    pub fn cluster_wait(&mut self, warp: usize, cluster: u64) {
        let Some([_, clock]) = self.clusters.get(&cluster).cloned() else {
            return;
        };
        match self.rule {
            Rule::NoFence => self.acquire(warp, LaneMask::ALL, &clock),
            // The compiler puts an acquiring fence behind the wait, which makes this count.
            _ => self.running.warps[warp].seen[0].join(&clock),
        }
    }

    /// The lanes of `first`, a CTA and a warp, whose access in `step` is ordered before the current access of a warp and lane.
    pub fn before(&self, first: (u32, usize), step: u32, (warp, lane): (usize, usize)) -> LaneMask {
        let known = &self.running.warps[warp];
        if first != (self.cta, warp) {
            return all_if(known.clock.get(first.0, first.1) >= step);
        }
        let others = known.lanes.as_ref().map(|lanes| lanes_since(&lanes[lane], step));
        // Inside a warp, program order holds for each lane alone.
        others.unwrap_or_default() | LaneMask::lane(lane)
    }

    /// True if a strong read of the running CTA has seen a release after `step` of another warp. A fence would make it an acquire.
    pub fn has_seen(&self, other: (u32, usize), step: u32) -> bool {
        let mut seen = self.running.warps.iter().flat_map(|warp| &warp.seen);
        seen.any(|clock| clock.get(other.0, other.1) >= step)
    }

    /// The clock of a release: accesses that acquire it come after the warp's instruction.
    fn now(&self, warp: usize) -> Clock {
        let known = &self.running.warps[warp];
        known.clock.with(self.cta, warp, known.step, self.warps)
    }

    /// Orders all steps of `clock` before the next ones of a warp. Steps of the warp itself are ordered for `lanes` alone.
    fn acquire(&mut self, warp: usize, lanes: LaneMask, clock: &Clock) {
        if clock.is_empty() {
            return;
        }
        let known = &mut self.running.warps[warp];
        known.clock.join(clock);
        // A release by the own warp counts for each of its lanes.
        let own = clock.get(self.cta, warp);
        if let Some(of_lanes) = known.lanes.as_mut().filter(|_| own > 0) {
            for lane in lanes.iter() {
                of_lanes[lane].iter_mut().for_each(|step| *step = own.max(*step));
            }
        }
    }

    /// All that a warp of the running CTA has acquired.
    fn known_in_cta(&self) -> Clock {
        let mut known = Clock::default();
        self.running.warps.iter().for_each(|warp| known.join(&warp.clock));
        known
    }
}

impl WarpClocks {
    /// Joins the clocks of these lanes, with their own steps so far.
    fn join_lanes(&mut self, lanes: LaneMask) {
        let Some(of_lanes) = &mut self.lanes else { return };
        let mut joint = [0; WARP_SIZE];
        for lane in lanes.iter() {
            for (all, own) in joint.iter_mut().zip(of_lanes[lane]) {
                *all = own.max(*all);
            }
        }
        for lane in lanes.iter() {
            joint[lane] = self.step;
        }
        for lane in lanes.iter() {
            of_lanes[lane] = joint;
        }
    }
}
