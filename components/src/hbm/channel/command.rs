//! The commands of a channel, and what each of them does.

use super::Channel;
use super::burst::transfer;
use crate::hbm::sched::RowState;

/// What went out at the last edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    None,
    Activate,
    Precharge,
    Read,
    Write,
}

impl Command {
    /// The names of all commands, in order.
    pub(super) const NAMES: [&str; 5] = ["none", "activate", "precharge", "read", "write"];
}

impl Channel {
    /// Moves one burst of an entry.
    pub(super) fn column(&mut self, n: usize, edge: u64) {
        let entry = self.queue.entry(n);
        entry.bursts &= entry.bursts - 1;
        let end = self.clockwork.column(entry.at.bank as usize, entry.write, edge);
        let is_last = entry.bursts == 0;
        if is_last {
            // Nobody sees the line before: requests of one line wait for each other.
            transfer(entry, &self.storage);
        }
        self.line = entry.packet.line;
        let (bursts, bytes, command) = match entry.write {
            true => (
                &mut self.stats.write_bursts,
                &mut self.stats.bytes_written,
                Command::Write,
            ),
            false => (&mut self.stats.read_bursts, &mut self.stats.bytes_read, Command::Read),
        };
        *bursts += 1;
        *bytes += u64::from(self.config.burst_bytes);
        self.stats.bus_cycles += self.clockwork.burst();
        self.column_command = command;
        if is_last {
            self.finish(n, end);
        }
    }

    /// An entry has moved its last burst.
    fn finish(&mut self, n: usize, end: u64) {
        let entry = self.queue.remove(n);
        *(match entry.found {
            RowState::Hit => &mut self.stats.row_hits,
            RowState::Closed => &mut self.stats.row_misses,
            RowState::Conflict => &mut self.stats.row_conflicts,
        }) += 1;
        let due = end + u64::from(self.config.latency_extra);
        let due = self.done.back().map_or(due, |&(last, ..)| due.max(last));
        self.done.push_back((due, usize::from(entry.port), entry.packet));
    }

    /// Opens an entry's row, or closes the one that is in its way.
    pub(super) fn row(&mut self, n: usize, edge: u64) {
        let entry = self.queue.entry(n);
        let (bank, row) = (entry.at.bank, entry.at.row);
        self.line = entry.packet.line;
        if self.clockwork.banks[bank as usize].row.is_some() {
            entry.found = RowState::Conflict;
            self.clockwork.precharge(bank as usize, edge);
            self.queue.row_changed(bank, None);
            self.stats.precharges += 1;
            self.row_command = Command::Precharge;
        } else {
            if entry.found == RowState::Hit {
                entry.found = RowState::Closed;
            }
            self.clockwork.activate(bank as usize, row, edge);
            self.queue.row_changed(bank, Some(row));
            self.stats.activates += 1;
            self.row_command = Command::Activate;
        }
    }
}
