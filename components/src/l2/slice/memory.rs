//! Traffic with memory: fetches, write-backs and fills, and the commands of the host.

use tracing::trace;
use warpwave_hw::time::Cycle;

use super::lookup::perform;
use super::{Slice, State, address};
use crate::proto::mem::{Packet, PacketKind, SliceCommand, Stage, byte_mask, copy_sectors, each_sector, n_sectors};

impl Slice {
    /// Sends the oldest fetch or write-back, if its channel has room. Packets for other channels wait behind it.
    #[inline(never)]
    pub(super) fn send_to_memory(&mut self, now: Cycle) {
        let to_memory = &mut self.state.to_memory;
        let Some((channel, _)) = to_memory.front() else {
            return;
        };
        let port = &mut self.ports.memory[*channel].requests;
        // In order: a fetch must not pass the write-back of its own line.
        if port.has_room(now) {
            let (_, packet) = to_memory.pop_front().expect("the queue is not empty");
            port.send(now, packet);
        }
    }

    /// Queues a fetch or write-back for the channel of its line.
    fn queue_to_memory(&mut self, packet: Box<Packet>) {
        // With one channel the map is not needed.
        let channel = match self.ports.memory.len() {
            1 => 0,
            _ => usize::from(self.config.map.channel(packet.line).channel),
        };
        self.state.to_memory.push_back((channel, packet));
        self.state.in_memory += 1;
    }

    // Not inlined, like other rare stages: a step that only responds and looks up then keeps its values in host registers.
    /// Takes one packet from a channel.
    #[inline(never)]
    pub(super) fn take_from_memory(&mut self, now: Cycle, edge: u64) {
        // A fill completes its targets, and each enters a response pipe.
        // The pipe to the twin is not tested: it takes a response for each target, however many it holds.
        if self.state.responses.is_full() {
            return;
        }
        let Some(packet) = self.next_from_memory(now) else {
            return;
        };
        // The acknowledgement of a write-back only frees its place in `in_memory`.
        if packet.kind == PacketKind::Load {
            self.fill(&packet, now, edge);
        }
        let state = &mut self.state;
        state.in_memory -= 1;
        state.pool.give(packet);
        state.note_progress();
    }

    /// Takes a packet from the next channel that has one, round robin.
    fn next_from_memory(&mut self, now: Cycle) -> Option<Box<Packet>> {
        let n = self.ports.memory.len();
        let mut channel = self.state.next_channel;
        for _ in 0..n {
            let next = if channel + 1 == n { 0 } else { channel + 1 };
            let port = &mut self.ports.memory[channel].responses;
            if port.is_ready(now) {
                self.state.next_channel = next;
                return port.recv(now);
            }
            channel = next;
        }
        None
    }

    /// Fills the sectors that a fetch brings, and serves their targets in order of arrival.
    fn fill(&mut self, fill: &Packet, now: Cycle, edge: u64) {
        let way = fill.tag as usize;
        let state = &mut self.state;
        state.lines.merge(way, fill.sectors, &fill.bytes);
        self.serve_targets(way, fill, now, edge);
        self.occupy_data(edge, self.data_cycles(fill.sectors));
    }

    /// Serves the targets of the sectors of `fill` in order of arrival. A sector stays in flight if its next target needs a recall.
    pub(super) fn serve_targets(&mut self, way: usize, fill: &Packet, now: Cycle, edge: u64) {
        let entry = self.state.lines.fetch(way);
        let entry = entry.expect("a line with sectors in flight is pinned");
        let mut recalled = 0;
        // Fast path: most misses have one target.
        if !self.is_next_recalled(entry, fill.sectors)
            && let Some(slot) = self.state.mshr.take_only_target(entry, fill.sectors)
        {
            self.serve_target(slot, way, fill.sectors, fill, now, edge);
        } else {
            for sector in each_sector(fill.sectors) {
                while !self.is_next_recalled(entry, 1 << sector)
                    && let Some(slot) = self.state.mshr.next_target(entry, sector)
                {
                    self.serve_target(slot, way, 1 << sector, fill, now, edge);
                }
                // A target is left only if it needs a recall. It keeps the sector in flight for the packets behind it.
                recalled |= u8::from(self.state.mshr.front(entry, sector).is_some()) << sector;
            }
        }
        if recalled != 0 {
            self.send_recall(way, recalled, edge);
        }
        let arrived = fill.sectors & !recalled;
        if arrived != 0 && self.state.mshr.remove_sectors(entry, arrived) {
            self.state.lines.set_fetch(way, None);
        }
    }

    /// True if the first target of the lowest sector in `sectors` needs a recall of any of `sectors`.
    #[inline]
    fn is_next_recalled(&mut self, entry: u32, sectors: u8) -> bool {
        if self.state.twin.is_none() {
            return false;
        }
        let next = each_sector(sectors).next();
        let slot = next.and_then(|sector| self.state.mshr.front(entry, sector));
        slot.is_some_and(|slot| self.to_recall(self.state.mshr.target(slot)) & sectors != 0)
    }

    /// Applies a target to sectors that have arrived. Completes it with its last sector.
    fn serve_target(&mut self, slot: u32, way: usize, sectors: u8, fill: &Packet, now: Cycle, edge: u64) {
        let State { mshr, lines, twin, .. } = &mut self.state;
        perform(mshr.packet(slot), lines, way, sectors, twin.as_mut());
        for sector in each_sector(sectors) {
            if let Some(mut packet) = self.state.mshr.deliver(slot, sector) {
                packet.inherit_stamps(fill, Stage::L2, &[Stage::Hbm]);
                self.complete(packet, now, edge);
            }
        }
    }

    /// Takes a command of the host. Continues the write-back that is running.
    #[cold]
    #[inline(never)]
    pub(super) fn run_host_command(&mut self, now: Cycle) {
        self.take_command(now);
        self.continue_write_back(now);
    }

    /// Takes one command of the host, unless a write-back is running.
    fn take_command(&mut self, now: Cycle) {
        if self.state.write_back.is_some() || !self.ports.commands.is_ready(now) {
            return;
        }
        let Some(command) = self.ports.commands.recv(now) else {
            return;
        };
        match command {
            SliceCommand::WriteBack => {
                trace!(cycle = now.0, path = %self.path, "write-back begins");
                self.state.write_back = Some(0);
            }
            SliceCommand::Invalidate => {
                trace!(cycle = now.0, path = %self.path, "clean lines are invalidated");
                self.state.lines.invalidate_clean();
                // The host sends the command to the twin too, which drops all its copies: a copy is always clean.
                if let Some(twin) = &mut self.state.twin {
                    twin.directory.clear();
                }
            }
        }
    }

    /// True if a command of the host needs the next edge.
    pub(super) fn has_host_work(&self, now: Cycle) -> bool {
        match self.state.write_back {
            Some(_) => self.may_write_back(),
            None => self.ports.commands.is_ready(now),
        }
    }

    /// True if a write-back is running, and memory has room for one more line.
    fn may_write_back(&self) -> bool {
        self.state.write_back.is_some() && self.state.in_memory < self.config.memory_depth
    }

    /// Writes the next dirty line back, or ends the write-back if there is none.
    fn continue_write_back(&mut self, now: Cycle) {
        let Some(first) = self.state.write_back.filter(|_| self.may_write_back()) else {
            return;
        };
        let next = self.state.lines.next_dirty(first);
        if let Some((_, way)) = next {
            self.write_line_back(way, true);
        } else {
            trace!(cycle = now.0, path = %self.path, "write-back ends");
        }
        // The set may have more dirty lines, so the search goes on in it.
        self.state.write_back = next.map(|(set, _)| set);
    }

    /// Allocates a line in `way`, and evicts the line there.
    #[inline(never)]
    pub(super) fn replace(&mut self, way: usize, line: u32, is_copy: bool) {
        if self.state.lines.line(way).is_some() {
            self.state.stats.lines_evicted += 1;
            if self.state.lines.dirty(way) != 0 {
                self.write_line_back(way, false);
            }
        }
        self.state.lines.allocate(way, line, is_copy);
    }

    /// Writes the dirty sectors of a line to memory. `is_flush` is true for a command of the host, false for an eviction.
    fn write_line_back(&mut self, way: usize, is_flush: bool) {
        let state = &mut self.state;
        let line = state.lines.line(way).expect("a dirty way holds a line");
        let sectors = state.lines.dirty(way);
        let mut packet = state.pool.take(PacketKind::Store, address(line), sectors, 0, false);
        // A dirty sector can be valid in part: memory keeps its other bytes.
        packet.byte_mask = state.lines.valid(way) & byte_mask(sectors);
        copy_sectors(state.lines.bytes(way), &mut packet.bytes, sectors);
        packet.is_flush = is_flush;
        let counter = match is_flush {
            true => &mut state.stats.sectors_flushed,
            false => &mut state.stats.sectors_written_back,
        };
        *counter += u64::from(n_sectors(sectors));
        // Clean from now on: a later fetch of the line is behind the packet on its way to the same channel.
        state.lines.clean(way);
        self.queue_to_memory(packet);
    }

    /// Fetches sectors of the line in `way`. The fetch is timed if the packet that misses is.
    pub(super) fn fetch(&mut self, way: usize, sectors: u8, is_timed: bool, now: Cycle) {
        let state = &mut self.state;
        let entry = state.lines.fetch(way).unwrap_or_else(|| state.mshr.allocate());
        state.lines.set_fetch(way, Some(entry));
        state.mshr.add_sectors(entry, sectors);
        let line = state.lines.line(way).expect("a line was allocated");
        // A line with a fetch in flight keeps its way, so the way is the tag.
        let mut packet = state
            .pool
            .take(PacketKind::Load, address(line), sectors, way as u32, is_timed);
        packet.note(Stage::L2, now);
        state.stats.sectors_fetched += u64::from(n_sectors(sectors));
        self.queue_to_memory(packet);
    }
}
