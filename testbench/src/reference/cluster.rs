//! A cluster of the reference: its CTAs by turns, the shared memory that all of them reach, their barrier.
//!
//! A CTA that is in no cluster is one of its own.

use warpwave_components::proto::launch::Grid;

use super::cta::{Cta, Turn};
use super::memory::Memory;
use super::warp::Warp;
use super::{Checks, Findings, ReferenceError};

/// Instructions that a CTA runs before the next one of its cluster gets its turn.
const MEMBER_TURN: u64 = 1 << 12;

/// A cluster on its way.
pub(super) struct Cluster<'a> {
    ctas: Vec<Cta<'a>>,
    /// Their shared memory, by rank; with a CTA while it runs.
    shared: Vec<Vec<u8>>,
}

impl<'a> Cluster<'a> {
    /// The cluster of this number, before its first instruction.
    pub fn new(grid: &'a Grid, number: u64, checks: Option<Checks>) -> Self {
        let ranks = 0..grid.cluster_ctas();
        // The race detector covers one CTA. It does not see writes of other CTAs, or the cluster barrier.
        let checks = checks.filter(|_| !grid.in_clusters());
        Cluster {
            shared: ranks.clone().map(|_| vec![0; grid.shared_bytes as usize]).collect(),
            ctas: ranks
                .map(|rank| Cta::new(grid, grid.cluster_cta(number, rank), checks))
                .collect(),
        }
    }

    /// Runs until every warp has ended, or for about `turn` warp instructions; adds them to `steps`.
    pub fn run(&mut self, memory: &mut Memory, turn: u64, steps: &mut u64) -> Result<Turn, ReferenceError> {
        let end = *steps + turn;
        let alone = self.ctas.len() == 1;
        while *steps < end {
            let before = *steps;
            let mut ended = true;
            for rank in 0..self.ctas.len() {
                let left = end.saturating_sub(*steps);
                let turn = self.turn(rank, memory, if alone { left } else { left.min(MEMBER_TURN) }, steps)?;
                ended &= turn == Turn::Ended;
            }
            if ended {
                return Ok(Turn::Ended);
            }
            if !self.open() && *steps == before {
                let waits = self.ctas.iter().flat_map(Cta::waits).collect();
                return Err(ReferenceError::Deadlock { waits });
            }
        }
        Ok(Turn::Unfinished)
    }

    /// What the watches of its CTAs have found since they were asked last.
    pub fn findings(&mut self) -> Findings {
        let mut findings = Findings::default();
        for watch in self.ctas.iter_mut().filter_map(|cta| cta.watch.as_mut()) {
            findings.add(std::mem::take(&mut watch.findings));
        }
        findings
    }

    fn turn(&mut self, rank: usize, memory: &mut Memory, turn: u64, steps: &mut u64) -> Result<Turn, ReferenceError> {
        let cta = &mut self.ctas[rank];
        cta.shared = std::mem::take(&mut self.shared);
        let result = cta.run(memory, turn, steps);
        self.shared = std::mem::take(&mut cta.shared);
        result
    }

    /// Opens the barrier if every warp that has not ended has arrived; whether it did.
    fn open(&mut self) -> bool {
        let warps = || {
            self.ctas
                .iter()
                .flat_map(|cta| &cta.warps)
                .filter(|warp| !warp.flow.is_done())
        };
        let is_open = |warp: &Warp| warp.cluster.open;
        if !warps().all(|warp| warp.has_arrived_in_cluster() && !is_open(warp)) {
            return false;
        }
        let live = self
            .ctas
            .iter_mut()
            .flat_map(|cta| &mut cta.warps)
            .filter(|warp| !warp.flow.is_done());
        for warp in live {
            warp.cluster.open = true;
            warp.pass_cluster_barrier();
        }
        true
    }
}
