//! Refresh of all banks at once, every tREFI.
//!
//! A refresh that falls due stops new commands until every row can be closed, closes them, and holds the banks for tRFC. Refresh needs no
//! tick of its own. Refreshes that fell due while the channel was idle are applied before the next command, with their own times.

use super::timing::BankTimers;

/// When the next refresh is due.
pub(super) struct Refresh {
    interval: u64,
    due: u64,
    done: u64,
}

impl Refresh {
    /// The first is due after one interval.
    pub(super) fn new(interval: u64) -> Self {
        Refresh {
            interval,
            due: interval,
            done: 0,
        }
    }

    /// Refreshes done.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Whether one is due.
    #[inline]
    pub(super) fn is_due(&self, edge: u64) -> bool {
        self.due <= edge
    }

    /// Does what is due up to `edge`. If a refresh waits for a row to close, gives the edge at which it can start.
    pub(super) fn catch_up(&mut self, edge: u64, timers: &mut BankTimers) -> Option<u64> {
        while self.due <= edge {
            let start = self.due.max(timers.all_precharge_at());
            if start > edge {
                return Some(start);
            }
            timers.refresh(start);
            // Of several that a sleeping channel has missed, only the first and the last can matter.
            let missed = ((edge - self.due) / self.interval).max(1);
            self.done += missed;
            self.due += missed * self.interval;
        }
        None
    }
}
