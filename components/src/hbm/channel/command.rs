//! The commands of a channel, and their effects.

use super::burst::transfer;
use super::{Channel, Delayed};
use crate::hbm::checker::{BusCommand, TimingChecker};
use crate::hbm::queue::RowState;
use crate::hbm::refresh::Waiting;
use crate::proto::mem::Purpose;

/// The command of a bus at the last edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    None,
    Activate,
    Precharge,
    Read,
    Write,
    /// A refresh of a single bank, or the precharge before it.
    Refresh,
}

impl Command {
    /// The names of all commands, in order.
    pub(super) const NAMES: [&str; 6] = ["none", "activate", "precharge", "read", "write", "refresh"];
}

/// Shows a command to the checker, if the channel has one.
#[inline]
pub(super) fn show_command(checker: &mut Option<Box<TimingChecker>>, edge: u64, command: BusCommand) {
    if let Some(checker) = checker {
        checker.command(edge, command);
    }
}

impl Channel {
    /// Does the due refreshes. Returns the one that must wait, if one must.
    pub(super) fn refresh(&mut self, edge: u64) -> Option<Waiting> {
        let state = &mut self.state;
        let checker = &mut self.checker;
        let queue = &mut state.queue;
        let mut show = |edge, command| {
            if let BusCommand::Precharge { bank } = command {
                queue.row_changed(bank, None);
            }
            show_command(checker, edge, command);
        };
        let waiting = state.refresh.catch_up(edge, &mut state.timers, &mut show);
        if state.refresh.uses_row_bus(edge) {
            state.row_command = Command::Refresh;
            state.command_line = None;
        }
        // The refresh may have closed a row, or ended. The next search for a row command is at once.
        state.row_from = 0;
        waiting
    }

    /// Closes a row that no request needs, if the row policy says so. Returns the edge at which to try again.
    pub(super) fn close_idle_row(&mut self, edge: u64) -> u64 {
        let state = &mut self.state;
        let Some((at, bank)) = self.row_policy.next(&state.timers.banks, &state.queue) else {
            return u64::MAX;
        };
        if at > edge {
            return at;
        }
        // A request may have used the row bus at this edge.
        if state.row_command == Command::None {
            // A column command at this edge keeps its line in the waveform.
            if state.column_command == Command::None {
                state.command_line = None;
            }
            self.close_row(bank, edge);
        }
        // Another row may be due, or this one if the row bus was busy.
        edge + 1
    }

    /// Sends the column command of an entry's next burst. Returns the edge at which to try again.
    pub(super) fn send_column(&mut self, n: usize, edge: u64) -> u64 {
        let state = &mut self.state;
        let entry = state.queue.entry(n);
        // Bursts are sent from the lowest to the highest.
        entry.bursts &= entry.bursts - 1;
        let (held, end) = state.timers.column(entry.location.bank as usize, entry.write, edge);
        let is_last = entry.bursts == 0;
        if is_last {
            // Requests of one line wait for each other, so no other request sees the line earlier.
            transfer(entry, &self.storage);
        }
        state.command_line = Some(entry.packet.line);
        let is_flush = entry.packet.purpose == Purpose::Flush;
        let (bursts, bytes, command) = match entry.write {
            // A write of a dirty line after the launch.
            true if is_flush => (
                &mut state.stats.flush_bursts,
                &mut state.stats.bytes_flushed,
                Command::Write,
            ),
            true => (
                &mut state.stats.write_bursts,
                &mut state.stats.bytes_written,
                Command::Write,
            ),
            false => (&mut state.stats.read_bursts, &mut state.stats.bytes_read, Command::Read),
        };
        *bursts += 1;
        *bytes += u64::from(self.config.hbm.burst_bytes);
        // Profilers do not count the write-back after a launch.
        state.stats.bus_cycles += if is_flush { 0 } else { held };
        state.column_command = command;
        let bank = entry.location.bank;
        if is_last {
            self.complete(n, end);
        }
        let shown = match command {
            Command::Write => BusCommand::Write { bank },
            _ => BusCommand::Read { bank },
        };
        show_command(&mut self.checker, edge, shown);
        edge + 1
    }

    /// Removes an entry after its last burst, and queues its response.
    fn complete(&mut self, n: usize, end: u64) {
        let state = &mut self.state;
        let entry = state.queue.remove(n);
        // A row that only this entry needed may now be closed for another.
        state.row_from = 0;
        if entry.packet.purpose != Purpose::Flush {
            *(match entry.row_state {
                RowState::Hit => &mut state.stats.row_hits,
                RowState::Closed => &mut state.stats.row_misses,
                RowState::Conflict => &mut state.stats.row_conflicts,
            }) += 1;
        }
        // Data of successive commands never overlap on the bus, so responses are due in order.
        state.responses.push_back(Delayed {
            due: end + u64::from(self.config.response_latency),
            port: usize::from(entry.port),
            packet: entry.packet,
        });
    }

    /// Opens the row of an entry, or closes another row of its bank. Returns the edge at which to try again.
    pub(super) fn send_row(&mut self, n: usize, edge: u64) -> u64 {
        let state = &mut self.state;
        let entry = state.queue.entry(n);
        let (bank, row) = (entry.location.bank, entry.location.row);
        state.command_line = Some(entry.packet.line);
        if state.timers.banks[bank as usize].row.is_some() {
            entry.row_state = RowState::Conflict;
            self.close_row(bank as usize, edge);
        } else {
            // A conflict keeps its state when its row opens.
            if entry.row_state == RowState::Hit {
                entry.row_state = RowState::Closed;
            }
            state.timers.activate(bank as usize, row, edge);
            state.queue.row_changed(bank, Some(row));
            state.stats.activates += 1;
            state.row_command = Command::Activate;
            state.row_from = 0;
            show_command(&mut self.checker, edge, BusCommand::Activate { bank, row });
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
        show_command(&mut self.checker, edge, BusCommand::Precharge { bank: bank as u32 });
    }
}
