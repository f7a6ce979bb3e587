//! Refresh of all banks at once, every tREFI.
//!
//! A due refresh stops new commands until every row can be closed. Then it closes all rows and keeps the banks busy for tRFC. Refresh needs
//! no ticks: the next command catches up.

use super::checker::BusCommand;
use super::timing::BankTimers;

/// The schedule of refreshes, in edges of the command clock.
pub(super) struct Refresh {
    interval: u64,
    due: u64,
    done: u64,
}

impl Refresh {
    /// A schedule whose first refresh is due after one interval.
    pub(super) fn new(interval: u64) -> Self {
        Refresh {
            interval,
            due: interval,
            done: 0,
        }
    }

    /// Number of refreshes done.
    pub(super) fn n_done(&self) -> u64 {
        self.done
    }

    /// True if a refresh is due.
    #[inline]
    pub(super) fn is_due(&self, edge: u64) -> bool {
        self.due <= edge
    }

    /// Does the refreshes due up to `edge`, and shows their commands. If one must wait for a row to close, returns the edge at which it can
    /// start.
    pub(super) fn catch_up(
        &mut self,
        edge: u64,
        timers: &mut BankTimers,
        show: &mut impl FnMut(u64, BusCommand),
    ) -> Option<u64> {
        while self.due <= edge {
            // At its own edge, even if the channel was idle then and did not tick.
            let start = self.due.max(timers.all_precharge_at());
            if start > edge {
                return Some(start);
            }
            timers.refresh(start, show);
            // Of several that an idle channel has missed, only the first and the last can affect a command.
            let missed = ((edge - self.due) / self.interval).max(1);
            self.done += missed;
            self.due += missed * self.interval;
        }
        None
    }
}
