//! Checks the commands of a channel against the timing table of the standard, without the code of the channel.
//!
//! The checker keeps the edges of all recent commands, and compares each new command with every earlier one. It shares no code with the
//! bank timers, so a fault in them shows here.
//!
//! | Command | Least edges after an earlier command |
//! |---|---|
//! | ACT | tRC after ACT of the bank; tRRD after ACT of another bank; tRP after PRE of the bank; tRFC after REF |
//! | PRE | tRAS after ACT; tRTP after RD; WL + burst + tWR after WR; all of the bank |
//! | RD, WR | tRCD after ACT of the bank; tCCD_L after RD or WR of the group; tCCD_S after RD or WR of another group |
//! | RD | WL + burst + tWTR after WR of any bank |
//! | WR | its data begin at least one edge after the data of a RD of any bank |
//! | REF | tRP after PRE of any bank; tRC after ACT of any bank; tRFC after REF; every bank is closed |
//! | REFSB | tRP after PRE and tRC after ACT of the bank; tRRD after ACT of another bank |
//! | REFSB, ACT | tRFCSB after REFSB of the bank; tRREFD after REFSB of another bank |
//!
//! With check bits in the memory (ECC), every `check_interval`-th burst is followed by a burst of check bits. A command that waits for
//! the data bus or for the end of a write then waits one burst longer.
//!
//! Each command also needs a legal state: ACT a closed bank, RD and WR an open row. Data of two bursts never overlap on the bus. The
//! command clock has at most one row command and one column command per edge.
//!
//! Source: JEDEC JESD235 (HBM), the tables of timing parameters and the state diagram of a bank.

use std::collections::VecDeque;

use thiserror::Error;

use crate::config::Hbm;

/// A command on the buses of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BusCommand {
    /// ACT: opens a row.
    Activate {
        /// The bank.
        bank: u32,
        /// The row.
        row: u32,
    },
    /// PRE: closes the row of a bank.
    Precharge {
        /// The bank.
        bank: u32,
    },
    /// RD: reads a burst.
    Read {
        /// The bank.
        bank: u32,
    },
    /// WR: writes a burst.
    Write {
        /// The bank.
        bank: u32,
    },
    /// REF: refreshes all banks.
    Refresh,
    /// REFSB: refreshes one bank.
    RefreshBank {
        /// The bank.
        bank: u32,
    },
}

/// A broken rule, with the edge of the command that broke it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("edge {edge}: {what}")]
pub struct Violation {
    /// The edge of the command clock.
    pub edge: u64,
    /// The command, and the rule or the state that forbids it.
    pub what: String,
}

/// A command of the past.
#[derive(Clone, Copy)]
struct Recent {
    edge: u64,
    command: BusCommand,
    /// Edges of the check bits that follow its burst.
    check: u32,
}

/// The checker of one channel. It keeps the first violation.
pub struct TimingChecker {
    hbm: Hbm,
    /// The open row of each bank.
    rows: Vec<Option<u32>>,
    /// Commands that can still constrain a new one, oldest first.
    recent: VecDeque<Recent>,
    /// Bursts of data so far.
    bursts: u64,
    /// Edges after which no command constrains another.
    reach: u64,
    violation: Option<Violation>,
}

impl TimingChecker {
    /// A checker for a channel with all banks closed.
    pub fn new(hbm: &Hbm) -> Self {
        let t = hbm.timing;
        let longest = [
            t.t_rc, t.t_rfc, t.t_ras, t.t_rp, t.t_rcd, t.t_ccd_l, t.t_rrd, t.t_rtp, t.t_rfcsb, t.t_rrefd,
        ];
        // Above every sum in `least`, also with a burst of check bits.
        let turnaround = t.cl + t.wl + t.t_wr + t.t_wtr + 3 * burst(hbm);
        TimingChecker {
            hbm: *hbm,
            rows: vec![None; hbm.banks as usize],
            recent: VecDeque::new(),
            bursts: 0,
            reach: u64::from(longest.into_iter().max().unwrap_or(0).max(turnaround)) + 2,
            violation: None,
        }
    }

    /// The first violation since construction or reset.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Forgets every command: all banks are closed.
    pub fn reset(&mut self) {
        self.rows.fill(None);
        self.recent.clear();
        self.bursts = 0;
        self.violation = None;
    }

    /// Checks a command at the edge at which it is on its bus.
    pub fn command(&mut self, edge: u64, command: BusCommand) {
        // Commands too old for any rule.
        while self.recent.pop_front_if(|old| old.edge + self.reach < edge).is_some() {}
        let what = (self.state_fault(command))
            .or_else(|| self.bus_fault(edge, command))
            .or_else(|| self.timing_fault(edge, command));
        if let Some(what) = what {
            self.violation.get_or_insert(Violation { edge, what });
        }
        let check = self.check_bits(command);
        self.recent.push_back(Recent { edge, command, check });
    }

    /// Enters the new state of the bank. Returns the fault of a command in a state that does not allow it.
    fn state_fault(&mut self, command: BusCommand) -> Option<String> {
        let is_legal = match command {
            // `replace` and `take` also enter the new state of the bank.
            BusCommand::Activate { bank, row } => self.rows[bank as usize].replace(row).is_none(),
            BusCommand::Precharge { bank } => self.rows[bank as usize].take().is_some(),
            BusCommand::Read { bank } | BusCommand::Write { bank } => self.rows[bank as usize].is_some(),
            BusCommand::Refresh => self.rows.iter().all(Option::is_none),
            BusCommand::RefreshBank { bank } => self.rows[bank as usize].is_none(),
        };
        (!is_legal).then(|| format!("{command:?} in a state that does not allow it"))
    }

    /// Edges of the check bits that follow this command.
    fn check_bits(&mut self, command: BusCommand) -> u32 {
        if !is_column(command) {
            return 0;
        }
        self.bursts += 1;
        match self.hbm.check_interval {
            0 => 0,
            interval if self.bursts.is_multiple_of(interval.into()) => burst(&self.hbm),
            _ => 0,
        }
    }

    /// The fewest edges from `before` to `after`, and the name of the rule.
    fn least(&self, before: &Recent, after: BusCommand) -> (u32, &'static str) {
        use BusCommand::{Activate, Precharge, Read, Refresh, RefreshBank, Write};
        let (t, check) = (&self.hbm.timing, before.check);
        let burst = burst(&self.hbm) + check;
        let ccd = |a: u32, b: u32| {
            let groups = self.hbm.bank_groups;
            check + if a % groups == b % groups { t.t_ccd_l } else { t.t_ccd_s }
        };
        match (before.command, after) {
            (Activate { bank: a, .. }, Activate { bank: b, .. }) if a == b => (t.t_rc, "tRC"),
            (Activate { .. }, Activate { .. }) => (t.t_rrd, "tRRD"),
            (Precharge { bank: a }, Activate { bank: b, .. }) if a == b => (t.t_rp, "tRP"),
            (Refresh, Activate { .. } | Refresh) => (t.t_rfc, "tRFC"),
            (Activate { bank: a, .. }, Precharge { bank: b }) if a == b => (t.t_ras, "tRAS"),
            (Read { bank: a }, Precharge { bank: b }) if a == b => (t.t_rtp, "tRTP"),
            (Write { bank: a }, Precharge { bank: b }) if a == b => (t.wl + burst + t.t_wr, "tWR"),
            (Activate { bank: a, .. }, Read { bank: b } | Write { bank: b }) if a == b => (t.t_rcd, "tRCD"),
            (Write { bank: a }, Read { bank: b }) => (ccd(a, b).max(t.wl + burst + t.t_wtr), "tWTR"),
            (Read { bank: a }, Write { bank: b }) => {
                // Data of a read come CL after it, data of a write WL after it. One idle edge lies between.
                let bus = (t.cl + burst + 1).saturating_sub(t.wl);
                (ccd(a, b).max(bus), "the turn of the data bus")
            }
            (Read { bank: a }, Read { bank: b }) | (Write { bank: a }, Write { bank: b }) => {
                (ccd(a, b).max(burst), "tCCD")
            }
            (Precharge { .. }, Refresh) => (t.t_rp, "tRP"),
            (Activate { .. }, Refresh) => (t.t_rc, "tRC"),
            (Precharge { bank: a }, RefreshBank { bank: b }) if a == b => (t.t_rp, "tRP"),
            (Activate { bank: a, .. }, RefreshBank { bank: b }) if a == b => (t.t_rc, "tRC"),
            (Activate { .. }, RefreshBank { .. }) => (t.t_rrd, "tRRD"),
            (RefreshBank { bank: a }, Activate { bank: b, .. } | RefreshBank { bank: b }) if a == b => {
                (t.t_rfcsb, "tRFCSB")
            }
            (RefreshBank { .. }, Activate { .. } | RefreshBank { .. }) => (t.t_rrefd, "tRREFD"),
            _ => (0, "no rule"),
        }
    }

    /// The fault of a command whose bus has another command.
    fn bus_fault(&self, edge: u64, command: BusCommand) -> Option<String> {
        let same_edge = self.recent.iter().rev().take_while(|other| other.edge == edge);
        let mut same_bus = same_edge.filter(|other| is_column(other.command) == is_column(command));
        // The precharges before a refresh are one command to all banks.
        let is_precharge = |command| matches!(command, BusCommand::Precharge { .. });
        let other = same_bus.find(|other| !(is_precharge(other.command) && is_precharge(command)))?;
        Some(format!("{command:?} and {:?} are on one bus", other.command))
    }

    /// The fault of a command that comes too early after another.
    fn timing_fault(&self, edge: u64, command: BusCommand) -> Option<String> {
        self.recent.iter().find_map(|before| {
            let (at, earlier) = (before.edge, before.command);
            if at > edge {
                return Some(format!("{command:?} after {earlier:?} of edge {at}"));
            }
            let (least, rule) = self.least(before, command);
            let edges = edge - at;
            (edges < u64::from(least))
                .then(|| format!("{command:?} comes {edges} edges after {earlier:?}, and {rule} is {least}"))
        })
    }
}

/// True for a command on the column bus.
fn is_column(command: BusCommand) -> bool {
    matches!(command, BusCommand::Read { .. } | BusCommand::Write { .. })
}

/// Edges of a burst on the data bus.
fn burst(hbm: &Hbm) -> u32 {
    hbm.burst_bytes.div_ceil(hbm.bus_bytes_per_command_cycle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    /// Checks commands of the timings of `tiny`. Returns the message of the violation.
    fn checked(commands: &[(u64, BusCommand)]) -> Option<String> {
        let hbm = preset::load("tiny", &[]).expect("tiny is built in").config.hbm;
        let mut checker = TimingChecker::new(&hbm);
        commands.iter().for_each(|&(edge, c)| checker.command(edge, c));
        checker.violation().map(ToString::to_string)
    }

    #[test]
    fn violations_are_named_by_their_rule() {
        let t = preset::load("tiny", &[]).expect("tiny is built in").config.hbm.timing;
        let [trcd, tras, trp] = [t.t_rcd, t.t_ras, t.t_rp].map(u64::from);
        let open = (0, BusCommand::Activate { bank: 0, row: 3 });
        let read = |at| (at, BusCommand::Read { bank: 0 });
        let close = |at| (at, BusCommand::Precharge { bank: 0 });
        let refresh = |at| (at, BusCommand::Refresh);
        assert_eq!(checked(&[open, read(trcd)]), None);
        assert!(checked(&[open, read(trcd - 1)]).unwrap().contains("tRCD"));
        assert!(checked(&[open, close(tras - 1)]).unwrap().contains("tRAS"));
        assert!(checked(&[open, open]).unwrap().contains("state"));
        assert!(checked(&[read(9)]).unwrap().contains("state"));
        assert!(checked(&[open, refresh(500)]).unwrap().contains("state"));
        let idle = tras + 100;
        assert_eq!(checked(&[open, close(idle), refresh(idle + trp)]), None);
        let early = checked(&[open, close(idle), refresh(idle + trp - 1)]);
        assert!(early.unwrap().contains("tRP"));
        let [trfcsb, trrefd] = [t.t_rfcsb, t.t_rrefd].map(u64::from);
        let single = |bank, at| (at, BusCommand::RefreshBank { bank });
        let activate = |bank, at| (at, BusCommand::Activate { bank, row: 0 });
        assert_eq!(checked(&[single(0, 0), activate(1, trrefd), activate(0, trfcsb)]), None);
        assert!(
            checked(&[single(0, 0), activate(1, trrefd - 1)])
                .unwrap()
                .contains("tRREFD")
        );
        assert!(
            checked(&[single(0, 0), activate(0, trfcsb - 1)])
                .unwrap()
                .contains("tRFCSB")
        );
        assert!(
            checked(&[single(0, 0), single(1, trrefd - 1)])
                .unwrap()
                .contains("tRREFD")
        );
        assert!(checked(&[open, single(0, 500)]).unwrap().contains("state"));
    }
}
