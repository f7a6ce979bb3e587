//! The bank timers of a channel: the first edge at which each command may follow the commands before it.
//!
//! Edges are those of the command clock. The rules have the names of the JEDEC standards:
//!
//! | After | comes | not before |
//! |---|---|---|
//! | activate | column command, same bank | tRCD |
//! | activate | precharge, same bank | tRAS |
//! | activate | activate, same bank | tRC |
//! | activate | activate, any bank | tRRD |
//! | precharge | activate, same bank | tRP |
//! | column command | column command, same group | tCCD_L |
//! | column command | column command, any group | tCCD_S |
//! | read | precharge, same bank | tRTP |
//! | read | write | CL + burst + 1 - WL: one idle cycle of the data bus between their data |
//! | write | precharge, same bank | WL + burst + tWR |
//! | write | read | WL + burst + tWTR |
//! | precharge of any bank | refresh | tRP |
//! | activate of any bank | refresh | tRC |
//! | refresh, all banks precharged | activate, refresh | tRFC |
//! | precharge, activate | refresh of a single bank, same bank | tRP, tRC |
//! | activate | refresh of a single bank, other bank | tRRD |
//! | refresh of a single bank | activate, refresh, same bank | tRFCSB |
//! | refresh of a single bank | activate, refresh, other bank | tRREFD |
//!
//! Not modelled: tFAW, and longer tRRD and tWTR within a bank group.
//!
//! On a part with check bits in its memory (ECC), every `check_interval`-th burst of data brings a burst of check bits. It follows on the
//! data bus, so the times after this burst count from its end.

use super::bank::Bank;
use super::checker::BusCommand;
use crate::config::{Hbm, Timing};

/// Timers of the banks of a channel, and of the buses that they share.
pub(super) struct BankTimers {
    t: Timing,
    /// Command cycles of a burst on the data bus.
    burst: u64,
    /// Bursts of data for each burst of check bits, 0 without check bits.
    check_interval: u32,
    /// Bursts of data since the last burst of check bits.
    unchecked: u32,
    pub(super) banks: Vec<Bank>,
    /// First edge for a column command, by bank group.
    groups: Vec<u64>,
    /// First edges for a column command, an activate, a read and a write, in any bank.
    column_at: u64,
    activate_at: u64,
    read_at: u64,
    write_at: u64,
}

impl BankTimers {
    /// All banks closed and ready. The group of a bank is its number modulo the number of groups.
    pub(super) fn new(hbm: &Hbm) -> Self {
        let (banks, groups) = (hbm.banks, hbm.bank_groups);
        BankTimers {
            t: hbm.timing,
            burst: hbm.burst_bytes.div_ceil(hbm.bus_bytes_per_command_cycle).into(),
            check_interval: hbm.check_interval,
            unchecked: 0,
            banks: (0..banks).map(|bank| Bank::closed(bank % groups)).collect(),
            groups: vec![0; groups as usize],
            column_at: 0,
            activate_at: 0,
            read_at: 0,
            write_at: 0,
        }
    }

    /// First edge for an activate of a bank.
    #[inline]
    pub(super) fn activate_at(&self, bank: usize) -> u64 {
        self.banks[bank].activate_at.max(self.activate_at)
    }

    /// First edge for a precharge of a bank.
    #[inline]
    pub(super) fn precharge_at(&self, bank: usize) -> u64 {
        self.banks[bank].precharge_at
    }

    /// First edge for a write, or else a read, in any bank.
    #[inline]
    pub(super) fn any_column_at(&self, write: bool) -> u64 {
        self.column_at.max(if write { self.write_at } else { self.read_at })
    }

    /// First edge for a write, or else a read, of an open bank.
    #[inline]
    pub(super) fn column_at(&self, bank: usize, write: bool) -> u64 {
        let Bank { group, column_at, .. } = self.banks[bank];
        column_at
            .max(self.groups[group as usize])
            .max(self.any_column_at(write))
    }

    /// Opens a row of a closed bank.
    pub(super) fn activate(&mut self, bank: usize, row: u32, edge: u64) {
        let t = &self.t;
        // No `max`: the caller has waited for the last value.
        self.activate_at = edge + u64::from(t.t_rrd);
        let bank = &mut self.banks[bank];
        assert!(
            bank.row.is_none(),
            "edge {edge}: row {row} is opened while another is open, {bank:?}"
        );
        bank.row = Some(row);
        bank.used_at = edge;
        bank.column_at = edge + u64::from(t.t_rcd);
        // The column commands of the row move this later.
        bank.precharge_at = edge + u64::from(t.t_ras);
        bank.activate_at = edge + u64::from(t.t_rc);
    }

    /// Closes the row of a bank.
    pub(super) fn precharge(&mut self, bank: usize, edge: u64) {
        let bank = &mut self.banks[bank];
        bank.row = None;
        // The tRC of the last activate may end later.
        bank.activate_at = bank.activate_at.max(edge + u64::from(self.t.t_rp));
    }

    /// Command cycles of the check bits that follow the next burst.
    #[inline]
    fn check_bits(&mut self) -> u64 {
        // A part without check bits counts nothing: its counter would never be cleared.
        if self.check_interval == 0 {
            return 0;
        }
        self.unchecked += 1;
        if self.unchecked != self.check_interval {
            return 0;
        }
        self.unchecked = 0;
        self.burst
    }

    /// Reads or writes one burst of an open row. Returns the cycles that the data bus is held, and the edge after the last of them.
    pub(super) fn column(&mut self, bank: usize, write: bool, edge: u64) -> (u64, u64) {
        let check = self.check_bits();
        let burst = self.burst + check;
        let t = &self.t;
        let bank = &mut self.banks[bank];
        // A command to the same bank group waits longer than one to another group.
        self.groups[bank.group as usize] = edge + u64::from(t.t_ccd_l) + check;
        self.column_at = edge + u64::from(t.t_ccd_s) + check;
        assert!(
            bank.row.is_some(),
            "edge {edge}: a column command to a bank without an open row"
        );
        bank.used_at = edge;
        // Only the turn to the other direction: tCCD covers the next burst of the same direction.
        if write {
            let end = edge + u64::from(t.wl) + burst;
            bank.precharge_at = bank.precharge_at.max(end + u64::from(t.t_wr));
            self.read_at = end + u64::from(t.t_wtr);
            (burst, end)
        } else {
            let end = edge + u64::from(t.cl) + burst;
            bank.precharge_at = bank.precharge_at.max(edge + u64::from(t.t_rtp));
            self.write_at = (end + 1).saturating_sub(u64::from(t.wl));
            (burst, end)
        }
    }

    /// First edge for a precharge of all open banks.
    pub(super) fn all_precharge_at(&self) -> u64 {
        let open = self.banks.iter().filter(|bank| bank.row.is_some());
        open.map(|bank| bank.precharge_at).max().unwrap_or(0)
    }

    /// Refreshes one closed bank.
    pub(super) fn refresh_bank(&mut self, bank: usize, edge: u64) {
        let t = &self.t;
        self.activate_at = edge + u64::from(t.t_rrefd);
        self.banks[bank].activate_at = edge + u64::from(t.t_rfcsb);
    }

    /// Closes every row and refreshes all banks. Shows the commands.
    pub(super) fn refresh(&mut self, edge: u64, show: &mut impl FnMut(u64, BusCommand)) {
        for n in 0..self.banks.len() {
            if self.banks[n].row.is_some() {
                show(edge, BusCommand::Precharge { bank: n as u32 });
                self.precharge(n, edge);
            }
        }
        // A bank that may be activated may be refreshed too: its tRP, its tRC and the tRFC of the last refresh have passed.
        let idle = self.banks.iter().map(|bank| bank.activate_at).max().unwrap_or(0);
        let start = edge.max(idle);
        show(start, BusCommand::Refresh);
        // The refresh holds all banks at once.
        let ready = start + u64::from(self.t.t_rfc);
        self.banks.iter_mut().for_each(|bank| bank.activate_at = ready);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn part_without_check_bits_has_none_after_any_number_of_bursts() {
        let mut hbm = preset::load("tiny", &[]).expect("tiny is built in").config.hbm;
        hbm.check_interval = 0;
        let mut timers = BankTimers::new(&hbm);
        // The counter of bursts is one burst before its end.
        timers.unchecked = u32::MAX;
        timers.activate(0, 0, 0);
        let burst = u64::from(hbm.burst_bytes / hbm.bus_bytes_per_command_cycle);
        assert_eq!(timers.column(0, false, 100).0, burst);
    }
}
