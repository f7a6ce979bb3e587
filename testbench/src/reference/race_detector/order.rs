//! Happens-before order of the accesses in a cluster: vector clocks with one step per warp instruction.
//!
//! | Cause | Orders |
//! |---|---|
//! | program order | a lane with itself |
//! | `bar.warp.sync` | the lanes of its mask |
//! | a block barrier | the warps that arrive before the warps that it releases |
//! | a cluster barrier | the accesses before a fence and an arrival before the warps that it releases |
//! | a strong access (atomic, volatile, mbarrier) | earlier writers of the address before later readers |
//!
//! Inside a warp each lane has its own clock. Other warps see one clock per warp: if one lane releases, all its lanes do.
//! Shuffles and votes order no memory (PTX ISA, `shfl.sync`).
//!
//! Asynchronous accesses have another proxy. They come after a write of a thread only with a proxy fence between the two. Any warp on the
//! way may execute it (PTX ISA, "Proxy-preserved base causality order"). So each clock has a second one: the steps with a proxy fence
//! behind them.
//!
//! Warps are numbered through the cluster.

use std::collections::HashMap;

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

/// For each warp, the last step that is ordered before.
type Clock = Vec<u32>;

/// Rank of the CTA for shared memory, then the address.
type Location = (Option<usize>, u64);

/// The steps that are ordered before an event.
#[derive(Clone, Default)]
struct Known {
    before: Clock,
    /// The steps with a proxy fence between them and the event.
    fenced: Clock,
}

/// The vector clocks of a warp.
struct WarpClocks {
    /// Instructions of the warp so far.
    step: u32,
    known: Known,
    /// What the warp knew at its last fence beyond CTA scope, with its own step.
    released: Known,
    /// For each lane (first index): the steps of the other lanes that come before it.
    lanes: Box<[[u32; WARP_SIZE]; WARP_SIZE]>,
    /// Lanes that wait at a WARPSYNC.
    syncing: LaneMask,
}

/// The clocks of a cluster.
pub(super) struct Order {
    warps: Vec<WarpClocks>,
    /// Joined clocks of the warps that have arrived at each block barrier.
    barriers: HashMap<usize, Known>,
    /// Arrivals at the cluster barrier: in the phase that is open, and in the phase before it.
    phases: [Known; 2],
    /// Joined clocks of the warps that have written an address by a strong access.
    locations: HashMap<Location, Known>,
}

impl Order {
    pub fn new(warps: usize) -> Self {
        let new = || WarpClocks {
            step: 0,
            known: Known {
                before: vec![0; warps],
                fenced: vec![0; warps],
            },
            released: Known::default(),
            lanes: Box::new([[0; WARP_SIZE]; WARP_SIZE]),
            syncing: LaneMask::NONE,
        };
        Order {
            warps: (0..warps).map(|_| new()).collect(),
            barriers: HashMap::new(),
            phases: Default::default(),
            locations: HashMap::new(),
        }
    }

    /// The step of a warp's current instruction.
    pub fn step(&self, warp: usize) -> u32 {
        self.warps[warp].step
    }

    /// Begins the next instruction of a warp. Active lanes that waited at a WARPSYNC have been released: their clocks are joined.
    pub fn begin(&mut self, warp: usize, active: LaneMask) {
        let clocks = &mut self.warps[warp];
        if !(clocks.syncing & active).is_empty() {
            let met = std::mem::take(&mut clocks.syncing);
            clocks.join_lanes(met);
        }
        clocks.step += 1;
    }

    pub fn on_warpsync(&mut self, warp: usize, lanes: LaneMask) {
        self.warps[warp].syncing |= lanes;
    }

    pub fn arrive(&mut self, warp: usize, barrier: usize) {
        let now = self.now(warp);
        self.barriers.entry(barrier).or_default().join(&now);
    }

    pub fn open(&mut self, barrier: usize, waiting: impl Iterator<Item = usize>) {
        let Some(known) = self.barriers.remove(&barrier) else {
            return;
        };
        for warp in waiting {
            self.warps[warp].known.join(&known);
            self.warps[warp].join_lanes(LaneMask::ALL);
        }
    }

    /// A fence beyond CTA scope, which releases.
    pub fn fence(&mut self, warp: usize) {
        self.warps[warp].released = self.now(warp);
    }

    /// A proxy fence: asynchronous accesses may come after all that is ordered before it.
    pub fn fence_proxy(&mut self, warp: usize) {
        let now = self.now(warp);
        join(&mut self.warps[warp].known.fenced, &now.before);
    }

    /// A warp arrives at the cluster barrier. The compiler puts a fence before an arrival that releases.
    pub fn cluster_arrive(&mut self, warp: usize) {
        self.phases[0].join(&self.warps[warp].released);
    }

    /// The cluster barrier opens. Arrivals of the next phase may come before the last wait of this one.
    pub fn cluster_open(&mut self) {
        self.phases[1] = std::mem::take(&mut self.phases[0]);
    }

    /// A warp continues after the cluster barrier.
    pub fn cluster_wait(&mut self, warp: usize) {
        self.warps[warp].acquire(warp, LaneMask::ALL, &self.phases[1]);
    }

    pub fn acquire(&mut self, warp: usize, lane: usize, location: Location) {
        if let Some(known) = self.locations.get(&location) {
            self.warps[warp].acquire(warp, LaneMask::lane(lane), known);
        }
    }

    pub fn release(&mut self, warp: usize, location: Location) {
        let now = self.now(warp);
        self.locations.entry(location).or_default().join(&now);
    }

    /// What is released now: accesses that acquire it come after the warp's current instruction.
    fn now(&self, warp: usize) -> Known {
        let mut known = self.warps[warp].known.clone();
        known.before[warp] = self.warps[warp].step;
        known
    }

    /// The lanes of warp `first` whose access in `step` is ordered before the current access of `second`, a warp and a lane.
    pub fn before(&self, first: usize, step: u32, (warp, lane): (usize, usize)) -> LaneMask {
        let clocks = &self.warps[warp];
        if first != warp {
            return all_if(clocks.known.before[first] >= step);
        }
        // Inside a warp, program order holds for each lane alone.
        lanes_since(&clocks.lanes[lane], step) | LaneMask::lane(lane)
    }

    /// True if a proxy fence is between `step` of warp `first` and the current instruction of warp `second`.
    pub fn is_fenced(&self, first: usize, step: u32, second: usize) -> bool {
        self.warps[second].known.fenced[first] >= step
    }
}

/// All lanes, or none.
pub(super) fn all_if(holds: bool) -> LaneMask {
    if holds { LaneMask::ALL } else { LaneMask::NONE }
}

/// The lanes whose step is `step` or later.
pub(super) fn lanes_since(steps: &[u32; WARP_SIZE], step: u32) -> LaneMask {
    let lanes = steps.iter().enumerate();
    LaneMask(lanes.fold(0, |mask, (lane, own)| mask | u32::from(*own >= step) << lane))
}

impl WarpClocks {
    /// Orders all that is known at a release before the next steps of this warp.
    fn acquire(&mut self, warp: usize, lanes: LaneMask, known: &Known) {
        self.known.join(known);
        // A release by the own warp counts for each of its lanes.
        let own = known.before.get(warp).copied().unwrap_or(0);
        for lane in lanes.iter() {
            self.lanes[lane].iter_mut().for_each(|step| *step = own.max(*step));
        }
    }

    /// Joins the clocks of these lanes, with their own steps so far.
    fn join_lanes(&mut self, lanes: LaneMask) {
        let mut joint = [0; WARP_SIZE];
        for lane in lanes.iter() {
            for (all, own) in joint.iter_mut().zip(self.lanes[lane]) {
                *all = own.max(*all);
            }
        }
        for lane in lanes.iter() {
            joint[lane] = self.step;
        }
        for lane in lanes.iter() {
            self.lanes[lane] = joint;
        }
    }
}

impl Known {
    fn join(&mut self, other: &Known) {
        join(&mut self.before, &other.before);
        join(&mut self.fenced, &other.fenced);
    }
}

fn join(into: &mut Clock, other: &Clock) {
    // A new entry is empty. Steps count from 1.
    if into.len() < other.len() {
        into.resize(other.len(), 0);
    }
    for (all, own) in into.iter_mut().zip(other) {
        *all = (*all).max(*own);
    }
}
