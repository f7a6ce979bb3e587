//! The tag stage: decides how each sector of a request is served, and serves it.

use warpwave_hw::time::Cycle;

use super::{Slice, State, line_number};
use crate::cache::tag_stage::TagState;
use crate::l2::atomic;
use crate::l2::lines::Lines;
use crate::proto::mem::{Packet, PacketKind, Stage, copy_sectors, each_sector};

/// What the tag stage did last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum SliceTagState {
    Idle,
    Hit,
    Miss,
    DataBusy,
    /// No MSHR is free.
    StallFetch,
    /// Every line of the set has a fetch in flight.
    StallPinned,
    /// The queue to memory is full.
    StallMemory,
    /// The response pipe is full.
    StallAnswer,
}

/// The names of all states, in order.
pub(super) const TAG_STATES: [&str; 8] = [
    "idle",
    "hit",
    "miss",
    "data_busy",
    "stall_fetch",
    "stall_pinned",
    "stall_memory",
    "stall_answer",
];

impl TagState for SliceTagState {
    const IDLE: Self = SliceTagState::Idle;

    #[inline]
    fn is_stall(self) -> bool {
        self >= SliceTagState::StallFetch
    }
}

impl SliceTagState {
    /// Whether the request at the head waits, for the data array too.
    #[inline]
    pub(super) fn is_held_up(self) -> bool {
        self >= SliceTagState::DataBusy
    }
}

/// How the sectors of a request are served. Sectors in neither mask are served at once.
struct Plan {
    /// The way of the line, or the way that it takes.
    way: usize,
    is_present: bool,
    /// Sectors that wait for a fetch in flight.
    merged: u8,
    /// Sectors to fetch.
    fetched: u8,
}

impl Slice {
    /// Looks up the request at the head, if there is one.
    pub(super) fn look_up_request(&mut self, now: Cycle, edge: u64) {
        let has_request = self.ports.requests.peek(now).is_some();
        if !self.state.tag.begin(has_request) {
            return;
        }
        let outcome = match self.plan(edge) {
            Ok(plan) => self.serve(plan, now, edge),
            Err(stall) => stall,
        };
        if let Some((stall, edges)) = self.state.tag.enter(outcome, edge) {
            self.state.stats.count_stall(stall, edges);
        }
    }

    /// How the request at the head is served, or what it must wait for.
    #[inline]
    fn plan(&mut self, edge: u64) -> Result<Plan, SliceTagState> {
        let state = &mut self.state;
        if state.data_free > edge {
            return Err(SliceTagState::DataBusy);
        }
        if state.responses.is_full() {
            return Err(SliceTagState::StallAnswer);
        }
        let memory_is_full = memory_is_full(state, self.config.memory_depth);
        if state.tag.state() == SliceTagState::StallMemory && memory_is_full {
            // While this request stalls, no other request fetches its sectors: a second lookup would give the same.
            return Err(SliceTagState::StallMemory);
        }
        let packet = self.ports.requests.peeked().expect("a request is at the head");
        state.tag.line = packet.line;
        let sectors = packet.sectors;
        let found = state.lines.find(line_number(packet));
        let victim = || state.lines.victim(self.config.map.local(packet.line));
        let Some(way) = found.or_else(victim) else {
            return Err(SliceTagState::StallPinned);
        };
        let is_present = found.is_some();
        let fetch = state.lines.fetch(way).filter(|_| is_present);
        let merged = fetch.map_or(0, |entry| state.mshr.sectors(entry) & sectors);
        let fetched = match packet.kind {
            PacketKind::Store => 0,
            _ if is_present => sectors & !merged & !state.lines.full(way),
            _ => sectors,
        };
        if merged | fetched != 0 && !state.mshr.has_room(fetched) {
            return Err(SliceTagState::StallFetch);
        }
        if (fetched != 0 || !is_present) && memory_is_full {
            return Err(SliceTagState::StallMemory);
        }
        Ok(Plan {
            way,
            is_present,
            merged,
            fetched,
        })
    }

    #[inline]
    fn serve(&mut self, plan: Plan, now: Cycle, edge: u64) -> SliceTagState {
        let Plan { way, is_present, .. } = plan;
        let mut packet = self.ports.requests.take(now);
        packet.note(Stage::L2, now);
        match is_present {
            true => self.state.lines.touch(way),
            false => self.replace(way, line_number(&packet)),
        }
        let state = &mut self.state;
        state.stats.tag_cycles += 1;
        state
            .stats
            .count_request(&packet, is_present, plan.merged, plan.fetched);
        let missing = plan.merged | plan.fetched;
        let served = packet.sectors & !missing;
        perform(&mut packet, &mut state.lines, way, served);
        let cycles = match packet.kind {
            PacketKind::Atomic | PacketKind::Reduction => self.atomic_cycles(&packet),
            _ => self.data_cycles(served),
        };
        self.occupy_data(edge, cycles);
        packet.l2_hit = missing == 0 && (is_present || packet.kind == PacketKind::Store);
        if missing == 0 {
            self.complete(packet, now, edge);
            return SliceTagState::Hit;
        }
        self.miss(packet, plan, now);
        SliceTagState::Miss
    }

    /// Cycles that an atomic holds the data array.
    #[inline(never)]
    fn atomic_cycles(&self, packet: &Packet) -> u32 {
        let depth = packet.atomic.as_ref().map_or(0, |atomics| atomic::depth(atomics));
        depth * self.config.atomic_interval
    }

    /// Parks a request until its missing sectors arrive. Fetches the sectors that are not in flight.
    #[inline(never)]
    fn miss(&mut self, packet: Box<Packet>, plan: Plan, now: Cycle) {
        let missing = plan.merged | plan.fetched;
        let is_timed = packet.is_timed;
        let slot = self.state.mshr.park(packet, missing);
        if plan.fetched != 0 {
            self.fetch(plan.way, plan.fetched, is_timed, now);
        }
        let state = &mut self.state;
        let entry = state.lines.fetch(plan.way);
        let entry = entry.expect("the sectors that a packet waits for are in flight");
        state.mshr.join(entry, missing, slot);
    }
}

/// Whether memory has no room for the fetch of a line and the write-back of the line whose way it takes.
fn memory_is_full(state: &State, depth: u32) -> bool {
    state.at_memory + 2 > depth
}

/// Does what a packet wants with sectors that it may have.
#[inline(always)]
pub(super) fn perform(packet: &mut Packet, lines: &mut Lines, way: usize, sectors: u8) {
    match packet.kind {
        PacketKind::Load => copy_sectors(lines.bytes(way), &mut packet.bytes, sectors),
        PacketKind::Store => lines.write(way, sectors, packet.byte_mask, &packet.bytes),
        PacketKind::Atomic | PacketKind::Reduction => perform_atomic(packet, lines, way, sectors),
        PacketKind::Invalidate { .. } => {}
    }
}

#[inline(never)]
fn perform_atomic(packet: &mut Packet, lines: &mut Lines, way: usize, sectors: u8) {
    debug_assert_eq!(sectors & !lines.full(way), 0, "an atomic needs every byte");
    if let Some(atomics) = &mut packet.atomic {
        for sector in each_sector(sectors) {
            let written = atomic::perform(atomics, sector, lines.bytes_mut(way));
            lines.mark(way, sector, written);
        }
    }
}
