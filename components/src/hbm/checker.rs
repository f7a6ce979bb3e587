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
//!
//! Each command also needs a legal state: ACT a closed bank, RD and WR an open row. Data of two bursts never overlap on the bus. The command
//! clock has at most one row command and one column command per edge.
//!
//! Source: JEDEC JESD235 (HBM), the tables of timing parameters and the state diagram of a bank.

use std::collections::VecDeque;

use crate::config::{Hbm, Timing};

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
}

/// Sees the commands of a channel, with their edges of the command clock.
pub trait CommandObserver: Send {
    /// A command is on its bus.
    fn command(&mut self, edge: u64, command: BusCommand);
}

/// The checker of one channel. It panics at the first violation.
pub struct TimingChecker {
    hbm: Hbm,
    /// The open row of each bank.
    rows: Vec<Option<u32>>,
    /// Commands that can still constrain a new one, oldest first.
    recent: VecDeque<(u64, BusCommand)>,
    /// Edges after which no command constrains another.
    reach: u64,
    commands: u64,
}

impl TimingChecker {
    /// A checker for a channel with all banks closed.
    pub fn new(hbm: &Hbm) -> Self {
        let t = hbm.timing;
        let longest = [t.t_rc, t.t_rfc, t.t_ras, t.t_rp, t.t_rcd, t.t_ccd_l, t.t_rrd, t.t_rtp];
        let turnaround = t.cl + t.wl + t.t_wr + t.t_wtr + 2 * burst(hbm);
        TimingChecker {
            hbm: *hbm,
            rows: vec![None; hbm.banks as usize],
            recent: VecDeque::new(),
            reach: u64::from(longest.into_iter().max().unwrap_or(0).max(turnaround)) + 2,
            commands: 0,
        }
    }

    /// Number of commands checked.
    pub fn n_commands(&self) -> u64 {
        self.commands
    }

    fn check_state(&mut self, edge: u64, command: BusCommand) {
        let is_legal = match command {
            BusCommand::Activate { bank, row } => self.rows[bank as usize].replace(row).is_none(),
            BusCommand::Precharge { bank } => self.rows[bank as usize].take().is_some(),
            BusCommand::Read { bank } | BusCommand::Write { bank } => self.rows[bank as usize].is_some(),
            BusCommand::Refresh => self.rows.iter().all(Option::is_none),
        };
        assert!(is_legal, "edge {edge}: {command:?} in a state that does not allow it");
    }

    /// The fewest edges from `before` to `after`, and the name of the rule.
    fn least(&self, before: BusCommand, after: BusCommand) -> (u32, &'static str) {
        use BusCommand::{Activate, Precharge, Read, Refresh, Write};
        let (t, burst) = (&self.hbm.timing, burst(&self.hbm));
        let same_group = |a: u32, b: u32| a % self.hbm.bank_groups == b % self.hbm.bank_groups;
        match (before, after) {
            (Activate { bank: a, .. }, Activate { bank: b, .. }) if a == b => (t.t_rc, "tRC"),
            (Activate { .. }, Activate { .. }) => (t.t_rrd, "tRRD"),
            (Precharge { bank: a }, Activate { bank: b, .. }) if a == b => (t.t_rp, "tRP"),
            (Refresh, Activate { .. } | Refresh) => (t.t_rfc, "tRFC"),
            (Activate { bank: a, .. }, Precharge { bank: b }) if a == b => (t.t_ras, "tRAS"),
            (Read { bank: a }, Precharge { bank: b }) if a == b => (t.t_rtp, "tRTP"),
            (Write { bank: a }, Precharge { bank: b }) if a == b => (t.wl + burst + t.t_wr, "tWR"),
            (Activate { bank: a, .. }, Read { bank: b } | Write { bank: b }) if a == b => (t.t_rcd, "tRCD"),
            (Write { bank: a }, Read { bank: b }) => (ccd(t, same_group(a, b)).max(t.wl + burst + t.t_wtr), "tWTR"),
            (Read { bank: a }, Write { bank: b }) => {
                let bus = (t.cl + burst + 1).saturating_sub(t.wl);
                (ccd(t, same_group(a, b)).max(bus), "the turn of the data bus")
            }
            (Read { bank: a }, Read { bank: b }) | (Write { bank: a }, Write { bank: b }) => {
                (ccd(t, same_group(a, b)).max(burst), "tCCD")
            }
            (Precharge { .. }, Refresh) => (t.t_rp, "tRP"),
            (Activate { .. }, Refresh) => (t.t_rc, "tRC"),
            _ => (0, ""),
        }
    }

    fn check_buses(&self, edge: u64, command: BusCommand) {
        let is_column = |command| matches!(command, BusCommand::Read { .. } | BusCommand::Write { .. });
        let now = self.recent.iter().filter(|(at, _)| *at == edge);
        let same_bus = now.filter(|(_, other)| is_column(*other) == is_column(command));
        // The precharges before a refresh are one command to all banks.
        let one_of_all = |other: &BusCommand| {
            matches!(
                (other, command),
                (BusCommand::Precharge { .. }, BusCommand::Precharge { .. })
            )
        };
        let other = same_bus.map(|(_, other)| other).find(|other| !one_of_all(other));
        assert!(
            other.is_none(),
            "edge {edge}: {command:?} and {other:?} are on one bus"
        );
    }
}

/// Edges between two column commands, without the turn of the bus.
fn ccd(t: &Timing, same_group: bool) -> u32 {
    if same_group { t.t_ccd_l } else { t.t_ccd_s }
}

/// Edges of a burst on the data bus.
fn burst(hbm: &Hbm) -> u32 {
    hbm.burst_bytes.div_ceil(hbm.bus_bytes_per_command_cycle)
}

impl CommandObserver for TimingChecker {
    fn command(&mut self, edge: u64, command: BusCommand) {
        self.commands += 1;
        while self.recent.pop_front_if(|(at, _)| *at + self.reach < edge).is_some() {}
        self.check_state(edge, command);
        self.check_buses(edge, command);
        for &(at, before) in &self.recent {
            assert!(at <= edge, "edge {edge}: {command:?} after {before:?} of edge {at}");
            let (least, rule) = self.least(before, command);
            assert!(
                edge - at >= u64::from(least),
                "edge {edge}: {command:?} comes {} edges after {before:?}, and {rule} is {least}",
                edge - at
            );
        }
        self.recent.push_back((edge, command));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    /// Checks commands of the timings of `tiny`. Returns the message of the violation.
    fn checked(commands: &[(u64, BusCommand)]) -> Option<String> {
        let hbm = preset::load("tiny", &[]).expect("tiny is built in").config.hbm;
        let mut checker = TimingChecker::new(&hbm);
        let run = std::panic::AssertUnwindSafe(|| commands.iter().for_each(|&(edge, c)| checker.command(edge, c)));
        let panic = std::panic::catch_unwind(run).err()?;
        panic.downcast_ref::<String>().cloned()
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
    }
}
