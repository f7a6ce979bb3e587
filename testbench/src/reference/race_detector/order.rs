//! Happens-before order of the accesses in a CTA: vector clocks with one step per warp instruction.
//!
//! | Cause | Orders |
//! |---|---|
//! | program order | a lane with itself |
//! | `bar.warp.sync` | the lanes of its mask |
//! | a block barrier | the warps that arrive before the warps that it releases |
//! | a strong access (atomic, volatile, mbarrier) | earlier writers of the address before later readers |
//!
//! Inside a warp each lane has its own clock. Other warps see one clock per warp: if one lane releases, all its lanes do.
//! Shuffles and votes order no memory (PTX ISA, `shfl.sync`).

use std::collections::HashMap;

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

/// For each warp, the last step that is ordered before.
type Clock = Vec<u32>;

/// True for shared memory, then the address.
type Location = (bool, u64);

/// The vector clocks of a warp.
struct WarpClocks {
    /// Instructions of the warp so far.
    step: u32,
    /// For each warp, the last step that is ordered before this warp.
    warps: Clock,
    /// For each lane (first index): the steps of the other lanes that come before it.
    lanes: Box<[[u32; WARP_SIZE]; WARP_SIZE]>,
    /// Lanes that wait at a WARPSYNC.
    syncing: LaneMask,
}

/// The clocks of a CTA.
pub(super) struct Order {
    warps: Vec<WarpClocks>,
    /// Joined clocks of the warps that have arrived at each block barrier.
    barriers: HashMap<usize, Clock>,
    /// Joined clocks of the warps that have written an address by a strong access.
    locations: HashMap<Location, Clock>,
}

impl Order {
    pub fn new(warps: usize) -> Self {
        let known = || WarpClocks {
            step: 0,
            warps: vec![0; warps],
            lanes: Box::new([[0; WARP_SIZE]; WARP_SIZE]),
            syncing: LaneMask::NONE,
        };
        Order {
            warps: (0..warps).map(|_| known()).collect(),
            barriers: HashMap::new(),
            locations: HashMap::new(),
        }
    }

    /// The step of a warp's current instruction.
    pub fn step(&self, warp: usize) -> u32 {
        self.warps[warp].step
    }

    /// Begins the next instruction of a warp. Active lanes that waited at a WARPSYNC have been released: their clocks are joined.
    pub fn begin(&mut self, warp: usize, active: LaneMask) {
        let known = &mut self.warps[warp];
        if !(known.syncing & active).is_empty() {
            let met = std::mem::take(&mut known.syncing);
            known.join(met);
        }
        known.step += 1;
    }

    pub fn on_warpsync(&mut self, warp: usize, lanes: LaneMask) {
        self.warps[warp].syncing |= lanes;
    }

    pub fn arrive(&mut self, warp: usize, barrier: usize) {
        let clock = self.release_clock(warp);
        join(self.barriers.entry(barrier).or_default(), &clock);
    }

    pub fn open(&mut self, barrier: usize, waiting: impl Iterator<Item = usize>) {
        let Some(clock) = self.barriers.remove(&barrier) else {
            return;
        };
        for warp in waiting {
            join(&mut self.warps[warp].warps, &clock);
            self.warps[warp].join(LaneMask::ALL);
        }
    }

    pub fn acquire(&mut self, warp: usize, lane: usize, location: Location) {
        let Some(clock) = self.locations.get(&location) else {
            return;
        };
        let known = &mut self.warps[warp];
        join(&mut known.warps, clock);
        // A release by the own warp counts for each of its lanes.
        let own = clock[warp];
        known.lanes[lane].iter_mut().for_each(|step| *step = own.max(*step));
    }

    pub fn release(&mut self, warp: usize, location: Location) {
        let clock = self.release_clock(warp);
        join(self.locations.entry(location).or_default(), &clock);
    }

    /// The clock of a release: accesses that join it come after the warp's current instruction.
    fn release_clock(&self, warp: usize) -> Clock {
        let mut clock = self.warps[warp].warps.clone();
        clock[warp] = self.warps[warp].step;
        clock
    }

    /// True if the access of lane `first` in `step` is ordered before the current access of lane `second`, as (warp, lane).
    pub fn is_before(&self, first: (usize, usize), step: u32, second: (usize, usize)) -> bool {
        let known = &self.warps[second.0];
        if first.0 != second.0 {
            return known.warps[first.0] >= step;
        }
        // Inside a warp, program order holds for each lane alone.
        first.1 == second.1 || known.lanes[second.1][first.1] >= step
    }
}

impl WarpClocks {
    /// Joins the clocks of these lanes, with their own steps so far.
    fn join(&mut self, lanes: LaneMask) {
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

fn join(into: &mut Clock, other: &Clock) {
    // A new entry is empty. Steps count from 1.
    into.resize(other.len(), 0);
    for (all, own) in into.iter_mut().zip(other) {
        *all = (*all).max(*own);
    }
}
