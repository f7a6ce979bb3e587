//! First ready, first come: a request whose row is open goes before a request that needs a row. Preset word `first-ready-first-come`.
//!
//! - Of two such requests the older goes first.
//! - Reads go before writes until `write_drain_start` writes wait, or no read is ready. Then writes drain down to `write_drain_stop`.
//! - A row that a candidate needs stays open.
//! - Once the oldest request has waited for more than `starved_after` command cycles, it goes before all others of its bank.
//!
//! Source: Rixner et al., "Memory access scheduling" (ISCA 2000).

use super::Schedule;
use crate::config::Hbm;
use crate::hbm::queue::Queue;

/// The policy.
pub struct FirstReady {
    /// Number of writes at which a drain of writes starts.
    drain_start: usize,
    /// Number of writes at which the drain stops.
    drain_stop: usize,
    /// Command cycles after which a request starves.
    starved_after: u64,
    writing: bool,
    /// The bank of the oldest request, if it starves.
    starving: Option<usize>,
}

impl FirstReady {
    pub(super) fn new(hbm: &Hbm) -> Self {
        FirstReady {
            drain_start: hbm.write_drain_start as usize,
            drain_stop: hbm.write_drain_stop as usize,
            starved_after: u64::from(hbm.starved_after),
            writing: false,
            starving: None,
        }
    }

    /// True if writes go next, without a starving request.
    fn drains_writes(&self, queue: &Queue) -> bool {
        if queue.ready(true) == 0 {
            return false;
        }
        // Two thresholds: each turn of the bus costs idle cycles, so writes go in batches.
        let drains = match self.writing {
            true => queue.n_writes() > self.drain_stop,
            false => queue.n_writes() >= self.drain_start,
        };
        drains || queue.ready(false) == 0
    }

    /// The entries of banks whose open row a candidate needs. The bank of a starving request is left out until its row is open.
    fn entries_of_needed_rows(&self, queue: &Queue) -> u64 {
        let mut hits = queue.hits() & queue.ready(self.writing);
        let mut needed = 0;
        // The starving request is the oldest: entry 0.
        let opens_row = self.starving.filter(|_| hits & 1 == 0);
        while hits != 0 {
            let bank = queue.bank(hits.trailing_zeros() as usize);
            let of_bank = queue.of_bank(bank);
            hits &= !of_bank;
            if opens_row != Some(bank) {
                needed |= of_bank;
            }
        }
        needed
    }
}

impl Schedule for FirstReady {
    fn update(&mut self, queue: &Queue, edge: u64) {
        let starved = queue.oldest().filter(|_| edge >= self.next_change(queue));
        self.starving = starved.map(|oldest| oldest.location.bank as usize);
        self.writing = match starved {
            // A starving request decides the direction, even during a drain.
            Some(oldest) => oldest.write,
            None => self.drains_writes(queue),
        };
    }

    fn is_writing(&self) -> bool {
        self.writing
    }

    fn column_candidates(&self, queue: &Queue) -> u64 {
        let candidates = queue.hits() & queue.ready(self.writing);
        match self.starving {
            // The row of the starving request is not open: other requests must not keep the open row of its bank in use.
            Some(bank) if candidates & 1 == 0 => candidates & !queue.of_bank(bank),
            _ => candidates,
        }
    }

    fn row_candidates(&self, queue: &Queue) -> u64 {
        // A bank with a hit in this direction keeps its row until the last hit is served.
        queue.ready(self.writing) & !queue.hits() & !self.entries_of_needed_rows(queue)
    }

    /// The edge at which the oldest request begins to starve.
    fn next_change(&self, queue: &Queue) -> u64 {
        let oldest = queue.oldest();
        oldest.map_or(u64::MAX, |oldest| oldest.arrived + self.starved_after + 1)
    }
}
