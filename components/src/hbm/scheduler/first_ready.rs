//! First ready, first come: requests whose row is open go before requests that wait for a row. Preset word `first-ready-first-come`.
//!
//! - Among equals the older goes before the younger.
//! - Reads go before writes until `write_drain_start` writes wait or no read can go. Then writes go down to `write_drain_stop`.
//! - A row that a candidate needs stays open.
//! - Once the oldest request has waited for `starved_after` command cycles, it goes before all others of its bank.
//!
//! Source: Rixner et al., "Memory access scheduling" (ISCA 2000).

use super::Schedule;
use crate::config::Hbm;
use crate::hbm::queue::Queue;

/// The policy.
pub struct FirstReady {
    /// Writes from which on they go before reads.
    drain_start: usize,
    /// Writes down to which they do.
    drain_stop: usize,
    /// Command cycles after which a request starves.
    starved_after: u64,
    writing: bool,
    /// The bank of the oldest request, if that starves.
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

    fn would_write(&self, queue: &Queue) -> bool {
        if queue.ready(true) == 0 {
            return false;
        }
        let drains = match self.writing {
            true => queue.n_writes() > self.drain_stop,
            false => queue.n_writes() >= self.drain_start,
        };
        drains || queue.ready(false) == 0
    }

    /// The entries of banks whose open row a candidate needs, except the bank of a starving request.
    fn of_needed_rows(&self, queue: &Queue) -> u64 {
        let mut hits = queue.hits() & queue.ready(self.writing);
        let mut needed = 0;
        while hits != 0 {
            let bank = queue.bank(hits.trailing_zeros() as usize);
            let of_bank = queue.of_bank(bank);
            hits &= !of_bank;
            if self.starving != Some(bank) {
                needed |= of_bank;
            }
        }
        needed
    }
}

impl Schedule for FirstReady {
    fn look(&mut self, queue: &Queue, edge: u64) {
        let starved = queue.oldest().filter(|_| edge >= self.changes_at(queue));
        self.starving = starved.map(|oldest| oldest.at.bank as usize);
        self.writing = match starved {
            Some(oldest) => oldest.write,
            None => self.would_write(queue),
        };
    }

    fn is_writing(&self) -> bool {
        self.writing
    }

    fn columns(&self, queue: &Queue) -> u64 {
        let candidates = queue.hits() & queue.ready(self.writing);
        match self.starving {
            // The row of the starving request is not open: the others of its bank must not keep theirs in use.
            Some(bank) if candidates & 1 == 0 => candidates & !queue.of_bank(bank),
            _ => candidates,
        }
    }

    fn rows(&self, queue: &Queue) -> u64 {
        queue.ready(self.writing) & !queue.hits() & !self.of_needed_rows(queue)
    }

    /// The edge at which the oldest request begins to starve.
    fn changes_at(&self, queue: &Queue) -> u64 {
        let oldest = queue.oldest();
        oldest.map_or(u64::MAX, |oldest| oldest.arrived + self.starved_after + 1)
    }
}
