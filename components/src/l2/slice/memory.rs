//! The way to memory and back: fetches, write-backs, and the host's commands that cause them.

use warpwave_hw::time::Cycle;

use super::Slice;
use super::lookup::perform;
use crate::proto::mem::{
    LINE, Packet, PacketKind, SliceCommand, Stage, byte_mask, copy_sectors, each_sector, n_sectors,
};

impl Slice {
    /// Sends one fetch or write-back.
    #[inline(never)]
    pub(super) fn send_to_memory(&mut self, now: Cycle) {
        let Some((channel, _)) = self.to_memory.front() else {
            return;
        };
        let (port, _) = &mut self.ports.memory[*channel];
        if port.has_room(now) {
            let (_, packet) = self.to_memory.pop_front().expect("a packet is there");
            port.send(now, packet);
        }
    }

    fn enqueue(&mut self, packet: Box<Packet>) {
        let channel = match self.ports.memory.len() {
            1 => 0,
            _ => usize::from(self.config.map.channel(packet.line).channel),
        };
        self.to_memory.push_back((channel, packet));
        self.at_memory += 1;
    }

    /// Takes one packet from a channel. Not inlined, as are others here: a step that only answers and looks up has registers enough.
    #[inline(never)]
    pub(super) fn take_from_memory(&mut self, now: Cycle, edge: u64) {
        if self.answers.is_full() {
            return;
        }
        let Some(packet) = self.next_from_memory(now) else {
            return;
        };
        if packet.kind == PacketKind::Load {
            self.fill(&packet, now, edge);
        }
        self.at_memory -= 1;
        self.pool.give(packet);
        self.progress = true;
    }

    /// The packet of the channel whose turn it is.
    fn next_from_memory(&mut self, now: Cycle) -> Option<Box<Packet>> {
        let n = self.ports.memory.len();
        let mut channel = self.turn;
        for _ in 0..n {
            let next = if channel + 1 == n { 0 } else { channel + 1 };
            if self.ports.memory[channel].1.is_ready(now) {
                self.turn = next;
                return self.ports.memory[channel].1.recv(now);
            }
            channel = next;
        }
        None
    }

    /// Takes fetched sectors in and does what waited for them, in order.
    fn fill(&mut self, fill: &Packet, now: Cycle, edge: u64) {
        let place = fill.tag as usize;
        let entry = self
            .lines
            .fetch(place)
            .expect("a line with a fetch under way is pinned");
        self.lines.merge(place, fill.sectors, &fill.bytes);
        if let Some(slot) = self.fetches.take_only_waiter(entry, fill.sectors) {
            self.serve_waiter(slot, place, fill.sectors, fill, now, edge);
        } else {
            for sector in each_sector(fill.sectors) {
                while let Some(slot) = self.fetches.next_waiter(entry, sector, &mut self.waiting) {
                    self.serve_waiter(slot, place, 1 << sector, fill, now, edge);
                }
            }
        }
        self.occupy(edge, self.data_cycles(fill.sectors));
        if self.fetches.finish(entry, fill.sectors) {
            self.lines.set_fetch(place, None);
        }
    }

    /// Does what a packet waited for with sectors that came.
    fn serve_waiter(&mut self, slot: u32, place: usize, sectors: u8, fill: &Packet, now: Cycle, edge: u64) {
        perform(self.waiting.packet(slot), &mut self.lines, place, sectors);
        for sector in each_sector(sectors) {
            if let Some(mut packet) = self.waiting.arrived(slot, sector) {
                inherit_stamp(&mut packet, fill);
                self.complete(packet, now, edge);
            }
        }
    }

    /// Takes a command of the host's, and goes on with the one under way.
    #[cold]
    #[inline(never)]
    pub(super) fn obey_host(&mut self, now: Cycle) {
        self.take_command(now);
        self.go_on_writing_back();
    }

    /// Takes a command of the host's.
    fn take_command(&mut self, now: Cycle) {
        if self.write_back.is_some() || !self.ports.commands.is_ready(now) {
            return;
        }
        match self.ports.commands.recv(now) {
            Some(SliceCommand::WriteBack) => self.write_back = Some(0),
            Some(SliceCommand::Invalidate) => self.lines.forget_clean(),
            None => {}
        }
    }

    /// Whether there is something to do for the host at the next edge.
    pub(super) fn host_keeps_busy(&self, now: Cycle) -> bool {
        match self.write_back {
            Some(_) => self.may_write_back(),
            None => self.ports.commands.is_ready(now),
        }
    }

    /// Whether there is something to write back, and room for it at memory.
    pub(super) fn may_write_back(&self) -> bool {
        self.write_back.is_some() && self.at_memory < self.config.memory_depth
    }

    /// Writes one more changed line back.
    fn go_on_writing_back(&mut self) {
        let Some(first) = self.write_back.filter(|_| self.may_write_back()) else {
            return;
        };
        let next = self.lines.next_changed(first);
        if let Some((_, place)) = next {
            self.write_line_back(place);
        }
        self.write_back = next.map(|(set, _)| set);
    }

    /// Gives a line the place of another.
    #[inline(never)]
    pub(super) fn replace(&mut self, place: usize, line: u32) {
        if self.lines.line(place).is_some() {
            self.stats.lines_evicted += 1;
            if self.lines.dirty(place) != 0 {
                self.write_line_back(place);
            }
            self.lines.evict(place);
        }
        self.lines.allocate(place, line);
    }

    fn write_line_back(&mut self, place: usize) {
        let line = self.lines.line(place).expect("a changed place holds a line");
        let sectors = self.lines.dirty(place);
        let mut packet = self.pool.take(PacketKind::Store, address(line), sectors, 0, false);
        packet.byte_mask = self.lines.valid(place) & byte_mask(sectors);
        copy_sectors(self.lines.bytes(place), &mut packet.bytes, sectors);
        self.stats.sectors_written_back += u64::from(n_sectors(sectors));
        self.lines.clean(place);
        self.enqueue(packet);
    }

    /// Asks memory for sectors of a line that is here, for a packet that is timed or is not.
    pub(super) fn fetch(&mut self, place: usize, sectors: u8, is_timed: bool, now: Cycle) {
        if sectors == 0 {
            return;
        }
        let entry = self.lines.fetch(place).unwrap_or_else(|| self.fetches.open());
        self.lines.set_fetch(place, Some(entry));
        self.fetches.start(entry, sectors);
        let line = self.lines.line(place).expect("a line was allocated");
        let mut packet = self
            .pool
            .take(PacketKind::Load, address(line), sectors, place as u32, is_timed);
        packet.note(Stage::L2, now);
        self.stats.sectors_fetched += u64::from(n_sectors(sectors));
        self.enqueue(packet);
    }
}

/// A packet that waited was at the memory when its fetch was, if it came before that.
fn inherit_stamp(packet: &mut Packet, fill: &Packet) {
    if !packet.is_timed || !fill.is_timed {
        return;
    }
    match (fill.stamps.at(Stage::Hbm), packet.stamps.at(Stage::L2)) {
        (Some(at), Some(looked_up)) if at >= looked_up => packet.note(Stage::Hbm, at),
        _ => {}
    }
}

fn address(line: u32) -> u64 {
    u64::from(line) * LINE as u64
}
