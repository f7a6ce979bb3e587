//! Refresh of all banks at once, or of one bank after the other. Preset key `hbm.refresh`.
//!
//! | Preset word | A refresh command comes | What waits |
//! |---|---|---|
//! | `all-banks` | every tREFI | every command, until all rows can be closed; then every bank, for tRFC |
//! | `single-bank` | every tREFI over the number of banks | bursts of the bank, until its row can be closed; then this bank, for tRFC |
//!
//! Refresh needs no ticks: the next command catches up.
//!
//! Sources: JEDEC JESD235 (HBM) for both commands, REF and REFSB. `single-bank` takes the rules between REFSB and ACT of other banks as those
//! between two ACT.

use super::checker::BusCommand;
use super::timing::BankTimers;
use crate::config::{Hbm, RefreshPolicy};

/// The schedule of refreshes, in edges of the command clock.
pub(super) struct Refresh {
    /// Edges between two commands.
    interval: u64,
    due: u64,
    done: u64,
    /// Banks that are refreshed in turn, 1 if all are refreshed at once.
    turns: u64,
    /// The turn of the next command.
    turn: u64,
}

impl Refresh {
    /// A schedule whose first refresh is due after one interval.
    pub(super) fn new(hbm: &Hbm) -> Self {
        let turns = match hbm.refresh {
            RefreshPolicy::AllBanks => 1,
            RefreshPolicy::SingleBank => u64::from(hbm.banks),
        };
        let interval = u64::from(hbm.timing.t_refi) / turns;
        Refresh {
            interval,
            due: interval,
            done: 0,
            turns,
            turn: 0,
        }
    }

    /// Number of refresh commands done.
    pub(super) fn n_done(&self) -> u64 {
        self.done
    }

    /// True if a refresh is due.
    #[inline]
    pub(super) fn is_due(&self, edge: u64) -> bool {
        self.due <= edge
    }

    /// Does the due refreshes of all banks up to `edge`, and shows their commands. If one must wait for a row to close, returns the edge at
    /// which it can start.
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

    /// The bank of the next refresh, and the edge at which it is due. Skips rounds that an idle channel has missed, up to the last two.
    pub(super) fn next_bank(&mut self, edge: u64) -> (usize, u64) {
        let round = self.turns * self.interval;
        let missed = (edge.saturating_sub(self.due) / round).saturating_sub(1);
        self.done += missed * self.turns;
        self.due += missed * round;
        (self.turn as usize, self.due)
    }

    /// Ends the refresh of the next bank.
    pub(super) fn end_bank(&mut self) {
        self.done += 1;
        self.due += self.interval;
        self.turn = (self.turn + 1) % self.turns;
    }
}
