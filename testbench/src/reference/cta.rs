//! A CTA of the reference: runs its warps in turns. Has the block barriers.

use warpwave_components::proto::launch::Grid;
use warpwave_isa::barrier::BLOCK_BARRIERS;

use super::memory::Memory;
use super::race_detector::RaceDetector;
use super::race_detector::global::GlobalDetector;
use super::warp::Warp;
use super::{ReferenceError, step};

/// Instructions of a warp's turn.
const WARP_TURN: u64 = 256;

/// Result of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Every warp has ended.
    Ended,
    /// The turn is over, but not the work.
    Unfinished,
    /// No warp can continue without an event outside the CTA.
    Stuck,
}

/// Arrivals at a block barrier.
#[derive(Clone, Copy, Default)]
struct Barrier {
    /// Number of warps that have arrived.
    arrived: u32,
    /// Arrivals needed to open it; 0 means one per live warp.
    expected: u32,
    /// Threads with a true predicate, for a counting barrier.
    count: u32,
}

/// A running CTA.
pub(super) struct Cta<'a> {
    pub grid: &'a Grid,
    pub position: [u32; 3],
    /// Its linear index in the grid.
    pub index: u32,
    /// Its rank in its cluster.
    pub rank: usize,
    /// Shared memory of all CTAs of the cluster, by rank. Present during the CTA's turn only.
    pub shared: Vec<Vec<u8>>,
    pub warps: Vec<Warp>,
    /// Race detector of the cluster's shared memory. Present during the CTA's turn only.
    pub detector: Option<Box<RaceDetector<'a>>>,
    /// Race detector of global memory. Present during the CTA's turn only.
    pub global: Option<Box<GlobalDetector<'a>>>,
    barriers: [Barrier; BLOCK_BARRIERS],
}

impl<'a> Cta<'a> {
    /// Creates the CTA with this linear index, before its first instruction.
    pub fn new(grid: &'a Grid, index: u64) -> Self {
        let position = grid.cta_position(index);
        Cta {
            grid,
            position,
            index: index as u32,
            rank: grid.cluster_rank(index) as usize,
            shared: Vec::new(),
            warps: (0..grid.warps()).map(|n| Warp::new(grid, position, n)).collect(),
            detector: None,
            global: None,
            barriers: [Barrier::default(); BLOCK_BARRIERS],
        }
    }

    /// Runs until every warp has ended, or for about `turn` warp instructions. Adds their number to `steps`.
    pub fn run(&mut self, memory: &mut Memory, turn: u64, steps: &mut u64) -> Result<Turn, ReferenceError> {
        let end = *steps + turn;
        while *steps < end {
            let before = *steps;
            for warp in 0..self.warps.len() {
                self.run_warp(warp, memory, WARP_TURN.min(end.saturating_sub(*steps)), steps)?;
            }
            if self.warps.iter().all(|warp| warp.flow.is_done()) {
                return Ok(Turn::Ended);
            }
            // Every live warp waits. Only the cluster barrier can release one.
            if *steps == before {
                return Ok(Turn::Stuck);
            }
        }
        Ok(Turn::Unfinished)
    }

    /// Runs a warp for at most `turn` instructions, or until it waits or ends.
    fn run_warp(&mut self, warp: usize, memory: &mut Memory, turn: u64, steps: &mut u64) -> Result<(), ReferenceError> {
        for _ in 0..turn {
            if self.warps[warp].flow.active().is_empty() {
                return Ok(());
            }
            step::step(self, warp, memory).map_err(ReferenceError::Trap)?;
            *steps += 1;
        }
        Ok(())
    }

    /// A warp arrives at a barrier of `threads` threads (0: all of the CTA). `count` of its threads have a true predicate.
    pub fn arrive(&mut self, warp: usize, barrier: usize, threads: u32, count: u32) {
        if let Some(detector) = &mut self.detector {
            detector.arrive(warp, barrier);
        }
        if let Some(detector) = &mut self.global {
            detector.arrive(warp, barrier);
        }
        let barrier = &mut self.barriers[barrier];
        barrier.arrived += 1;
        // A barrier counts warps: PTX demands a multiple of 32 threads.
        barrier.expected = threads.div_ceil(32);
        barrier.count += count;
        self.open();
    }

    /// Opens every barrier at which all expected warps have arrived.
    pub fn open(&mut self) {
        let live = self.warps.iter().filter(|warp| !warp.flow.is_done()).count() as u32;
        for (number, barrier) in self.barriers.iter_mut().enumerate() {
            let expected = if barrier.expected == 0 { live } else { barrier.expected };
            // Without arrivals a barrier stays closed, even if no warp is live.
            if barrier.arrived == 0 || barrier.arrived < expected {
                continue;
            }
            // The next phase begins without arrivals.
            let count = std::mem::take(barrier).count;
            let waiting = self.warps.iter().enumerate();
            let waiting = waiting.filter(|(_, warp)| warp.waits_at == Some(number));
            let waiting = waiting.map(|(warp, _)| warp);
            if let Some(detector) = &mut self.detector {
                detector.open(number, waiting.clone());
            }
            if let Some(detector) = &mut self.global {
                detector.open(number, waiting);
            }
            for warp in self.warps.iter_mut().filter(|warp| warp.waits_at == Some(number)) {
                warp.waits_at = None;
                warp.place.barrier_count = count;
                warp.flow.release();
            }
        }
    }

    /// One sentence per waiting warp.
    pub fn waits(&self) -> Vec<String> {
        let waiting = self.warps.iter().enumerate().filter(|(_, warp)| !warp.flow.is_done());
        let say = |(n, warp): (usize, &Warp)| match warp.waits_at {
            Some(barrier) => {
                let Barrier { arrived, expected, .. } = self.barriers[barrier];
                let expected = if expected == 0 {
                    "all".to_owned()
                } else {
                    expected.to_string()
                };
                format!(
                    "block {:?} warp {n} waits at barrier {barrier}: {arrived} of {expected} warps have arrived",
                    self.position
                )
            }
            None if !warp.flow.at_cluster_barrier().is_empty() => {
                format!("block {:?} warp {n} waits at the barrier of its cluster", self.position)
            }
            None => format!("block {:?} warp {n} waits for its own lanes to meet", self.position),
        };
        waiting.map(say).collect()
    }
}
