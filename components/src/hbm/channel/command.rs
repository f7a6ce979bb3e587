//! The commands of a channel, and what each of them does.

use super::Channel;
use super::burst::transfer;
use crate::hbm::queue::RowState;

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
    /// Moves one burst of an entry. Gives the edge at which another column command may be due.
    pub(super) fn send_column(&mut self, n: usize, edge: u64) -> u64 {
        let state = &mut self.state;
        let entry = state.queue.entry(n);
        entry.bursts &= entry.bursts - 1;
        let end = state.timers.column(entry.at.bank as usize, entry.write, edge);
        let is_last = entry.bursts == 0;
        if is_last {
            // No request sees the line before: requests of one line wait for each other.
            transfer(entry, &self.storage);
        }
        state.line = Some(entry.packet.line);
        let (bursts, bytes, command) = match entry.write {
            true => (
                &mut state.stats.write_bursts,
                &mut state.stats.bytes_written,
                Command::Write,
            ),
            false => (&mut state.stats.read_bursts, &mut state.stats.bytes_read, Command::Read),
        };
        *bursts += 1;
        *bytes += u64::from(self.config.hbm.burst_bytes);
        state.stats.bus_cycles += state.timers.burst();
        state.column_command = command;
        if is_last {
            self.finish(n, end);
        }
        edge + 1
    }

    /// An entry has moved its last burst.
    fn finish(&mut self, n: usize, end: u64) {
        let state = &mut self.state;
        let entry = state.queue.remove(n);
        // The row that the entry kept open may be in the way of another.
        state.row_from = 0;
        *(match entry.found {
            RowState::Hit => &mut state.stats.row_hits,
            RowState::Closed => &mut state.stats.row_misses,
            RowState::Conflict => &mut state.stats.row_conflicts,
        }) += 1;
        let due = end + u64::from(self.config.interface_cycles);
        let due = state.done.back().map_or(due, |&(last, ..)| due.max(last));
        state.done.push_back((due, usize::from(entry.port), entry.packet));
    }

    /// Opens an entry's row, or closes the one that is in its way. Gives the edge at which another row command may be due.
    pub(super) fn send_row(&mut self, n: usize, edge: u64) -> u64 {
        let state = &mut self.state;
        let entry = state.queue.entry(n);
        let (bank, row) = (entry.at.bank, entry.at.row);
        state.line = Some(entry.packet.line);
        if state.timers.banks[bank as usize].row.is_some() {
            entry.found = RowState::Conflict;
            self.close_row(bank as usize, edge);
        } else {
            if entry.found == RowState::Hit {
                entry.found = RowState::Closed;
            }
            state.timers.activate(bank as usize, row, edge);
            state.queue.row_changed(bank, Some(row));
            state.stats.activates += 1;
            state.row_command = Command::Activate;
            state.row_from = 0;
        }
        edge + 1
    }

    /// Closes a bank's row.
    pub(super) fn close_row(&mut self, bank: usize, edge: u64) {
        let state = &mut self.state;
        state.timers.precharge(bank, edge);
        state.queue.row_changed(bank as u32, None);
        state.stats.precharges += 1;
        state.row_command = Command::Precharge;
        state.row_from = 0;
    }
}
