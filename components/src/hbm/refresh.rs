//! Refresh of the banks: of all at once every tREFI, or of one bank after the other (REFSB), each once in tREFI.
//!
//! | `hbm.refresh` | Due | What a due refresh stops |
//! |---|---|---|
//! | `all-banks` | every tREFI | every new command, until all rows can be closed; then all banks are busy for tRFC |
//! | `single-bank` | every tREFI / banks | commands to its bank, until its row is closed; then this bank is busy for tRFCSB |
//!
//! A refresh needs no ticks: the next command catches up. Source: JEDEC JESD235 (HBM), refresh and single bank refresh.

use super::checker::BusCommand;
use super::timing::BankTimers;
use crate::config::{Hbm, RefreshMode};

/// The schedule of refreshes, in edges of the command clock.
pub(super) struct Refresh {
    mode: RefreshMode,
    /// tREFI.
    interval: u64,
    /// Refreshes in each interval.
    per_interval: u64,
    done: u64,
    /// The bank of the first refresh of a single bank. It differs among channels, so that not all are busy with the same bank (assumed).
    first_bank: u64,
    /// First edge at which the row bus is free for the next command of a single-bank refresh.
    bus_free_at: u64,
}

/// The first command that a due refresh could not send yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    /// The first edge for it.
    pub(super) until: u64,
    /// The bank that gets no other command until then. `None` if it is every bank.
    pub(super) bank: Option<usize>,
}

impl Refresh {
    /// A schedule whose first round of refreshes ends after one interval.
    pub(super) fn new(hbm: &Hbm, channel: u32) -> Self {
        Refresh {
            mode: hbm.refresh,
            interval: hbm.timing.t_refi.into(),
            per_interval: match hbm.refresh {
                RefreshMode::AllBanks => 1,
                RefreshMode::SingleBank => hbm.banks.into(),
            },
            done: 0,
            first_bank: channel.into(),
            bus_free_at: 0,
        }
    }

    /// Number of refreshes done.
    pub(super) fn n_done(&self) -> u64 {
        self.done
    }

    /// Edge at which the next refresh is due.
    fn due(&self) -> u64 {
        (self.done + 1) * self.interval / self.per_interval
    }

    /// True if a refresh is due.
    #[inline]
    pub(super) fn is_due(&self, edge: u64) -> bool {
        self.due() <= edge
    }

    /// Does the refreshes due up to `edge`, and shows their commands. Returns the refresh that must wait, if one must.
    pub(super) fn catch_up(
        &mut self,
        edge: u64,
        timers: &mut BankTimers,
        show: &mut impl FnMut(u64, BusCommand),
    ) -> Option<Waiting> {
        while self.is_due(edge) {
            self.skip_rounds(edge, timers);
            let next = match self.mode {
                RefreshMode::AllBanks => self.all_banks(edge, timers, show),
                RefreshMode::SingleBank => self.single_bank(edge, timers, show),
            };
            if next.is_some() {
                return next;
            }
            self.done += 1;
        }
        None
    }

    /// Leaves out rounds that an idle channel has missed: only the first and the last can affect a command.
    fn skip_rounds(&mut self, edge: u64, timers: &BankTimers) {
        let missed = (edge * self.per_interval / self.interval).saturating_sub(self.done);
        let rounds = (missed / self.per_interval).saturating_sub(2);
        if rounds > 0 && timers.banks.iter().all(|bank| bank.row.is_none()) {
            self.done += rounds * self.per_interval;
        }
    }

    /// Closes every row and refreshes all banks.
    fn all_banks(&self, edge: u64, timers: &mut BankTimers, show: &mut impl FnMut(u64, BusCommand)) -> Option<Waiting> {
        // At its own edge, even if the channel was idle then and did not tick.
        let start = self.due().max(timers.all_precharge_at());
        if start > edge {
            return Some(Waiting {
                until: start,
                bank: None,
            });
        }
        timers.refresh(start, show);
        None
    }

    /// Closes the row of the next bank, then refreshes this bank. Each is one command on the row bus.
    fn single_bank(
        &mut self,
        edge: u64,
        timers: &mut BankTimers,
        show: &mut impl FnMut(u64, BusCommand),
    ) -> Option<Waiting> {
        let bank = ((self.first_bank + self.done) % self.per_interval) as usize;
        let waiting = |until| {
            Some(Waiting {
                until,
                bank: Some(bank),
            })
        };
        let from = self.due().max(self.bus_free_at);
        if timers.banks[bank].row.is_some() {
            let close = from.max(timers.precharge_at(bank));
            if close > edge {
                return waiting(close);
            }
            timers.precharge(bank, close);
            show(close, BusCommand::Precharge { bank: bank as u32 });
            self.bus_free_at = close + 1;
        }
        let start = from.max(self.bus_free_at).max(timers.activate_at(bank));
        if start > edge {
            return waiting(start);
        }
        timers.refresh_bank(bank, start);
        show(start, BusCommand::RefreshBank { bank: bank as u32 });
        self.bus_free_at = start + 1;
        None
    }

    /// True if a refresh has sent a command on the row bus at this edge.
    #[inline]
    pub(super) fn uses_row_bus(&self, edge: u64) -> bool {
        self.bus_free_at > edge
    }
}
