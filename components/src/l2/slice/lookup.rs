//! The tag stage: how each sector of a request is served, and serving it.

use warpwave_hw::time::Cycle;

use super::tag::TagState;
use super::{Slice, line_number};
use crate::l2::atomic;
use crate::l2::lines::Lines;
use crate::proto::mem::{Packet, PacketKind, Stage, copy_sectors, each_sector, n_sectors};

/// How the sectors of a request are served.
struct Plan {
    place: usize,
    /// Whether the line is here.
    here: bool,
    /// Sectors that wait for a fetch under way.
    queued: u8,
    /// Sectors to fetch.
    fetched: u8,
}

impl Slice {
    /// Looks the request at the head up.
    pub(super) fn take_request(&mut self, now: Cycle, edge: u64) {
        let progress = std::mem::take(&mut self.progress);
        if self.ports.requests.peek(now).is_none() {
            self.state = TagState::Idle;
            return;
        }
        if self.state.is_stall() && !progress {
            return;
        }
        let state = match self.plan(edge) {
            Ok(plan) => self.serve(plan, now, edge),
            Err(waits) => waits,
        };
        self.enter(state, edge);
    }

    /// Changes the state of the tag stage; the cycles of a stall are counted when it is over.
    #[inline]
    fn enter(&mut self, state: TagState, edge: u64) {
        if self.state.is_stall() {
            self.count_stall(edge - self.since);
        }
        self.state = state;
        self.since = edge;
    }

    #[cold]
    fn count_stall(&mut self, stalled: u64) {
        match self.state {
            TagState::StallFetch => self.stats.fetch_stall_cycles += stalled,
            TagState::StallPinned => self.stats.pinned_stall_cycles += stalled,
            TagState::StallMemory => self.stats.memory_stall_cycles += stalled,
            TagState::StallAnswer => self.stats.answer_stall_cycles += stalled,
            TagState::Idle | TagState::Hit | TagState::Miss | TagState::DataBusy => {}
        }
    }

    /// How the request at the head is served, or what it must wait for.
    #[inline]
    fn plan(&mut self, edge: u64) -> Result<Plan, TagState> {
        if self.data_free > edge {
            return Err(TagState::DataBusy);
        }
        if self.answers.is_full() {
            return Err(TagState::StallAnswer);
        }
        if self.state == TagState::StallMemory && self.memory_is_full() {
            // What it wants of memory is not fetched for others meanwhile: it need not be looked up again.
            return Err(TagState::StallMemory);
        }
        let packet = self.ports.requests.seen().expect("a request is at the head");
        self.line = packet.line;
        let (kind, sectors) = (packet.kind, packet.sectors);
        let line = line_number(packet);
        let found = self.lines.find(line);
        let here = found.is_some();
        let Some(place) = found.or_else(|| self.lines.victim(|| self.config.map.local(self.line))) else {
            return Err(TagState::StallPinned);
        };
        let fetch = self.lines.fetch(place).filter(|_| here);
        let queued = fetch.map_or(0, |entry| self.fetches.sectors(entry) & sectors);
        let fetched = match kind {
            PacketKind::Store => 0,
            _ if here => sectors & !queued & !self.lines.full(place),
            _ => sectors,
        };
        if queued | fetched != 0 && (self.waiting.is_full() || !self.fetches.has_room(n_sectors(fetched))) {
            return Err(TagState::StallFetch);
        }
        if (fetched != 0 || !here) && self.memory_is_full() {
            return Err(TagState::StallMemory);
        }
        Ok(Plan {
            place,
            here,
            queued,
            fetched,
        })
    }

    /// Whether there is no room for the fetch of a line and the write-back of the one whose place it takes.
    fn memory_is_full(&self) -> bool {
        self.at_memory + 2 > self.config.memory_depth
    }

    #[inline]
    fn serve(&mut self, plan: Plan, now: Cycle, edge: u64) -> TagState {
        let Plan { place, here, .. } = plan;
        let mut packet = self.ports.requests.take(now);
        packet.note(Stage::L2, now);
        if !here {
            self.replace(place, line_number(&packet));
        }
        self.lines.touch(place);
        self.stats.tag_cycles += 1;
        self.stats.count_request(&packet, here, plan.queued, plan.fetched);
        let rest = plan.queued | plan.fetched;
        let served = packet.sectors & !rest;
        perform(&mut packet, &mut self.lines, place, served);
        let cycles = match packet.kind {
            PacketKind::Atomic | PacketKind::Reduction => self.atomic_cycles(&packet),
            _ => self.data_cycles(served),
        };
        self.occupy(edge, cycles);
        packet.l2_hit = rest == 0 && (here || packet.kind == PacketKind::Store);
        if rest == 0 {
            self.complete(packet, now, edge);
            return TagState::Hit;
        }
        self.wait(packet, plan, now);
        TagState::Miss
    }

    /// Cycles that an atomic holds the data array.
    #[inline(never)]
    fn atomic_cycles(&self, packet: &Packet) -> u32 {
        let depth = packet.atomic.as_ref().map_or(0, |atomics| atomic::depth(atomics));
        depth * self.config.atomic_interval
    }

    /// Lets a request wait for sectors, and asks memory for those that are not under way.
    #[inline(never)]
    fn wait(&mut self, packet: Box<Packet>, plan: Plan, now: Cycle) {
        let Plan {
            place, queued, fetched, ..
        } = plan;
        let rest = queued | fetched;
        let is_timed = packet.is_timed;
        let slot = self.waiting.add(packet, rest);
        self.fetch(place, fetched, is_timed, now);
        let entry = self
            .lines
            .fetch(place)
            .expect("sectors that a packet waits for are under way");
        self.fetches.wait(entry, rest, slot, &mut self.waiting);
    }
}

/// Does what a packet wants of sectors that it may have.
#[inline(always)]
pub(super) fn perform(packet: &mut Packet, lines: &mut Lines, place: usize, sectors: u8) {
    match packet.kind {
        PacketKind::Load => copy_sectors(lines.bytes(place), &mut packet.bytes, sectors),
        PacketKind::Store => lines.write(place, sectors, packet.byte_mask, &packet.bytes),
        PacketKind::Atomic | PacketKind::Reduction => perform_atomic(packet, lines, place, sectors),
        PacketKind::Invalidate { .. } => {}
    }
}

#[inline(never)]
fn perform_atomic(packet: &mut Packet, lines: &mut Lines, place: usize, sectors: u8) {
    debug_assert_eq!(sectors & !lines.full(place), 0, "an atomic needs every byte");
    if let Some(atomics) = &mut packet.atomic {
        for sector in each_sector(sectors) {
            let written = atomic::perform(atomics, sector, lines.bytes_mut(place));
            lines.mark(place, sector, written);
        }
    }
}
