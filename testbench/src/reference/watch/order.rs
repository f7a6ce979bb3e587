//! Order of the accesses of a CTA, as vector clocks with one step per warp instruction.
//!
//! | Cause | Orders |
//! |---|---|
//! | program order | a lane with itself |
//! | `bar.warp.sync` | the lanes of its mask |
//! | a block barrier | the warps that arrive before the warps that it releases |
//! | a strong access (atomic, volatile, mbarrier) | earlier writers of the address before later readers |
//!
//! Inside a warp each lane has its own order. Another warp sees one order for the whole warp: if one lane releases to it, all lanes do.
//! Shuffles and votes order no memory (PTX ISA, `shfl.sync`).

use std::collections::HashMap;

use warpwave_isa::lane::{LaneMask, WARP_SIZE};

/// Complete steps of each warp, by warp.
type Clock = Vec<u32>;

/// True for shared memory, and the address.
type Place = (bool, u64);

/// The vector clocks of a warp.
struct Known {
    /// Instructions of the warp so far.
    step: u32,
    warps: Clock,
    /// For each lane (first index): the steps of the other lanes that come before it.
    lanes: Box<[[u32; WARP_SIZE]; WARP_SIZE]>,
    /// Lanes that wait at a WARPSYNC.
    meeting: LaneMask,
}

/// The clocks of a CTA.
pub(super) struct Order {
    warps: Vec<Known>,
    /// Joined clocks of the warps that have arrived at each block barrier.
    barriers: HashMap<usize, Clock>,
    /// Joined clocks of the warps that have written an address by a strong access.
    places: HashMap<Place, Clock>,
}

impl Order {
    pub fn new(warps: usize) -> Self {
        let known = || Known {
            step: 0,
            warps: vec![0; warps],
            lanes: Box::new([[0; WARP_SIZE]; WARP_SIZE]),
            meeting: LaneMask::NONE,
        };
        Order {
            warps: (0..warps).map(|_| known()).collect(),
            barriers: HashMap::new(),
            places: HashMap::new(),
        }
    }

    /// The step of a warp's current instruction.
    pub fn step(&self, warp: usize) -> u32 {
        self.warps[warp].step
    }

    /// Begins the next instruction of a warp. Lanes that waited at a WARPSYNC and run again have met.
    pub fn begin(&mut self, warp: usize, active: LaneMask) {
        let known = &mut self.warps[warp];
        if !(known.meeting & active).is_empty() {
            let met = std::mem::take(&mut known.meeting);
            known.join(met);
        }
        known.step += 1;
    }

    pub fn meet(&mut self, warp: usize, lanes: LaneMask) {
        self.warps[warp].meeting |= lanes;
    }

    pub fn arrive(&mut self, warp: usize, barrier: usize) {
        let passed = self.passed_on(warp);
        join(self.barriers.entry(barrier).or_default(), &passed);
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

    pub fn acquire(&mut self, warp: usize, lane: usize, place: Place) {
        let Some(clock) = self.places.get(&place) else {
            return;
        };
        let known = &mut self.warps[warp];
        join(&mut known.warps, clock);
        let own = clock[warp];
        known.lanes[lane].iter_mut().for_each(|step| *step = own.max(*step));
    }

    pub fn release(&mut self, warp: usize, place: Place) {
        let passed = self.passed_on(warp);
        join(self.places.entry(place).or_default(), &passed);
    }

    /// The clock that later accesses join to come after a warp's current instruction.
    fn passed_on(&self, warp: usize) -> Clock {
        let mut clock = self.warps[warp].warps.clone();
        clock[warp] = self.warps[warp].step;
        clock
    }

    /// True if a lane's access in `step` comes before the current access of another lane.
    pub fn is_before(&self, first: (usize, usize), step: u32, second: (usize, usize)) -> bool {
        let known = &self.warps[second.0];
        if first.0 != second.0 {
            return known.warps[first.0] >= step;
        }
        first.1 == second.1 || known.lanes[second.1][first.1] >= step
    }
}

impl Known {
    /// These lanes now know what any of them knew, and all that each of them has done.
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
    into.resize(other.len(), 0);
    for (all, own) in into.iter_mut().zip(other) {
        *all = (*all).max(*own);
    }
}
