//! A cluster of the reference: runs its CTAs in turns. Has their shared memory, its race detector, and their barrier.
//!
//! In a launch without clusters, each CTA is a cluster of one.

use warpwave_components::proto::launch::Grid;

use super::cta::{Cta, Turn};
use super::memory::Memory;
use super::race_detector::RaceDetector;
use super::race_detector::global::GlobalDetector;
use super::warp::Warp;
use super::{Checks, Findings, ReferenceError};

/// Warp instructions of a turn in a cluster.
const MEMBER_TURN: u64 = 1 << 12;

/// A running cluster.
pub(super) struct Cluster<'a> {
    number: u64,
    ctas: Vec<Cta<'a>>,
    /// Shared memory by rank. It moves to a CTA for the CTA's turn.
    shared: Vec<Vec<u8>>,
    /// Race detector of the shared memory, if checks are on. It moves to a CTA for the CTA's turn.
    detector: Option<Box<RaceDetector<'a>>>,
}

impl<'a> Cluster<'a> {
    /// Creates the cluster with this number, before its first instruction.
    pub fn new(grid: &'a Grid, number: u64, checks: Option<Checks>) -> Self {
        let ranks = 0..grid.cluster_ctas();
        Cluster {
            number,
            shared: ranks.clone().map(|_| vec![0; grid.shared_bytes as usize]).collect(),
            ctas: ranks
                .map(|rank| Cta::new(grid, grid.cluster_cta(number, rank)))
                .collect(),
            detector: checks.map(|checks| Box::new(RaceDetector::new(checks, grid, number))),
        }
    }

    /// Runs until every warp has ended, or for about `turn` warp instructions. Adds their number to `steps`.
    ///
    /// # Errors
    /// A trap, or a deadlock of the cluster.
    pub fn run(
        &mut self,
        memory: &mut Memory,
        global: &mut Option<Box<GlobalDetector<'a>>>,
        turn: u64,
        steps: &mut u64,
    ) -> Result<Turn, ReferenceError> {
        let end = *steps + turn;
        // Each member gets its share, so that one which polls leaves the others their turns.
        let share = (turn / self.ctas.len() as u64).max(1);
        // Without other members a CTA can use the whole turn.
        let member_turn = if self.ctas.len() == 1 {
            turn
        } else {
            share.min(MEMBER_TURN)
        };
        while *steps < end {
            let before = *steps;
            let mut ended = true;
            for rank in 0..self.ctas.len() {
                let left = end.saturating_sub(*steps);
                let turn = self.turn(rank, (memory, global), left.min(member_turn), steps)?;
                ended &= turn == Turn::Ended;
            }
            if ended {
                return Ok(Turn::Ended);
            }
            // No CTA made progress, and the cluster barrier cannot open: nothing else can wake a warp.
            if !self.open(global) && *steps == before {
                let waits = self.ctas.iter().flat_map(Cta::waits).collect();
                return Err(ReferenceError::Deadlock { waits });
            }
        }
        Ok(Turn::Unfinished)
    }

    /// Removes and returns the findings of its race detector.
    pub fn findings(&mut self) -> Findings {
        let detector = self.detector.as_mut();
        detector.map_or_else(Findings::default, |detector| std::mem::take(&mut detector.findings))
    }

    /// Runs a turn of the CTA with this rank.
    fn turn(
        &mut self,
        rank: usize,
        (memory, global): (&mut Memory, &mut Option<Box<GlobalDetector<'a>>>),
        turn: u64,
        steps: &mut u64,
    ) -> Result<Turn, ReferenceError> {
        let cta = &mut self.ctas[rank];
        // Lent for the turn: the CTA can access the shared memory of all members, and no other CTA runs meanwhile.
        cta.shared = std::mem::take(&mut self.shared);
        cta.global = global.take();
        cta.detector = self.detector.take();
        if let Some(detector) = &mut cta.global {
            detector.enter(cta.index, self.number, rank);
        }
        if let Some(detector) = &mut cta.detector {
            detector.enter(rank);
        }
        let result = cta.run(memory, turn, steps);
        self.shared = std::mem::take(&mut cta.shared);
        *global = cta.global.take();
        self.detector = cta.detector.take();
        let ended = result == Ok(Turn::Ended);
        if let Some(detector) = global {
            detector.leave(ended);
        }
        if let Some(detector) = self.detector.as_mut().filter(|_| ended) {
            detector.end();
        }
        result
    }

    /// Opens the cluster barrier if every live warp has arrived. Returns true if it opens.
    fn open(&mut self, global: &mut Option<Box<GlobalDetector<'a>>>) -> bool {
        let warps = || {
            self.ctas
                .iter()
                .flat_map(|cta| &cta.warps)
                .filter(|warp| !warp.flow.is_done())
        };
        if !warps().all(Warp::has_arrived_in_cluster) {
            return false;
        }
        if let Some(detector) = global {
            detector.cluster_open(self.number);
        }
        if let Some(detector) = &mut self.detector {
            detector.cluster_open();
        }
        for (rank, cta) in self.ctas.iter_mut().enumerate() {
            // A detector notes an event for the CTA that it has entered.
            if let Some(detector) = global {
                detector.enter(cta.index, self.number, rank);
            }
            if let Some(detector) = &mut self.detector {
                detector.enter(rank);
            }
            let live = cta
                .warps
                .iter_mut()
                .enumerate()
                .filter(|(_, warp)| !warp.flow.is_done());
            for (n, warp) in live {
                if !warp.open_cluster() {
                    continue;
                }
                if let Some(detector) = global {
                    detector.cluster_wait(n);
                }
                if let Some(detector) = &mut self.detector {
                    detector.cluster_wait(n);
                }
            }
            if let Some(detector) = global {
                detector.leave(false);
            }
        }
        true
    }
}
