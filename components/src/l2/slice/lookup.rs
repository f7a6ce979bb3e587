//! The tag stage: plans how each sector of a request is served, and serves the request.

use warpwave_hw::time::Cycle;

use super::{Slice, State};
use crate::cache::tag_stage::TagState;
use crate::l2::atomic;
use crate::l2::lines::Lines;
use crate::proto::mem::{Packet, PacketKind, SECTOR, Stage, copy_sectors, each_sector};

/// The outcome of the tag stage's last lookup.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum SliceTagState {
    Idle,
    Hit,
    Miss,
    /// The data array is busy.
    DataBusy,
    /// No MSHR or target is free.
    StallFetch,
    /// Every line of the set has a fetch in flight.
    StallPinned,
    /// The queue to memory is full.
    StallMemory,
    /// The response pipe is full.
    StallResponse,
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
    "stall_response",
];

impl TagState for SliceTagState {
    const IDLE: Self = SliceTagState::Idle;

    #[inline]
    fn is_stall(self) -> bool {
        self >= SliceTagState::StallFetch
    }
}

impl SliceTagState {
    /// True if the request stays at the head: it stalls, or waits for the data array.
    #[inline]
    pub(super) fn holds_request(self) -> bool {
        self >= SliceTagState::DataBusy
    }
}

/// Plan for the sectors of a request. Sectors in neither mask are served at once.
struct Plan {
    /// The way of the line, or the way that it takes.
    way: usize,
    /// True if the line is in the slice already.
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

    /// Plans the request at the head. The error is what it waits for.
    #[inline]
    fn plan(&mut self, edge: u64) -> Result<Plan, SliceTagState> {
        let state = &mut self.state;
        if state.data_free_at > edge {
            return Err(SliceTagState::DataBusy);
        }
        if state.responses.is_full() {
            return Err(SliceTagState::StallResponse);
        }
        let memory_is_full = memory_is_full(state, self.config.memory_depth);
        if state.tag.state() == SliceTagState::StallMemory && memory_is_full {
            // No other request fetches its sectors during the stall, so a second lookup has the same outcome.
            return Err(SliceTagState::StallMemory);
        }
        let packet = self.ports.requests.peeked().expect("a request is at the head");
        state.tag.line = packet.line;
        let sectors = packet.sectors;
        let found = state.lines.find(packet.line_number());
        let victim = || state.lines.victim(self.config.map.local(packet.line));
        let Some(way) = found.or_else(victim) else {
            return Err(SliceTagState::StallPinned);
        };
        let is_present = found.is_some();
        let fetch = state.lines.fetch(way).filter(|_| is_present);
        let merged = fetch.map_or(0, |entry| state.mshr.in_flight(entry) & sectors);
        let fetched = match packet.kind {
            // Write-validate: a store needs no bytes of the line.
            PacketKind::Store => 0,
            _ if is_present => sectors & !merged & !state.lines.full(way),
            _ => sectors,
        };
        // A merge needs a target, a fetch also MSHRs.
        if merged | fetched != 0 && !state.mshr.has_room(fetched) {
            return Err(SliceTagState::StallFetch);
        }
        // A store that misses may need a write-back too.
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
            false => self.replace(way, packet.line_number()),
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
        // A store needs no fetch: it hits even if its line is absent.
        packet.l2_hit = missing == 0 && (is_present || packet.kind == PacketKind::Store);
        if missing == 0 {
            self.complete(packet, now, edge);
            return SliceTagState::Hit;
        }
        self.miss(packet, plan, now);
        SliceTagState::Miss
    }

    /// Whole cycles in which an atomic keeps the data array busy. The rest is left to the next atomic.
    #[inline(never)]
    fn atomic_cycles(&mut self, packet: &Packet) -> u32 {
        let Some(atomics) = packet.atomic.as_deref() else {
            return 0;
        };
        let used = &mut self.state.atomic_centicycles;
        *used += self.config.atomic.centicycles(atomics);
        let cycles = *used / 100;
        *used %= 100;
        cycles
    }

    /// Stores a request until its missing sectors arrive. Fetches the sectors that are not in flight.
    #[inline(never)]
    fn miss(&mut self, packet: Box<Packet>, plan: Plan, now: Cycle) {
        let missing = plan.merged | plan.fetched;
        let is_timed = packet.is_timed;
        let slot = self.state.mshr.park(packet, missing);
        if plan.fetched != 0 {
            self.fetch(plan.way, plan.fetched, is_timed, now);
        }
        let state = &mut self.state;
        // A fetch adds its sectors to the entry of the line, so there is one entry for both masks.
        let entry = state.lines.fetch(plan.way);
        let entry = entry.expect("the sectors that a packet waits for are in flight");
        state.mshr.add_target(entry, missing, slot);
    }
}

/// True if memory has no room for the two packets of a miss: the write-back of the victim and the fetch.
fn memory_is_full(state: &State, depth: u32) -> bool {
    state.in_memory + 2 > depth
}

/// Applies a packet to `sectors` of its line: none of them is in flight.
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
            let bytes = lines.bytes_mut(way);
            let before = bytes.as_chunks::<SECTOR>().0[sector];
            let written = atomic::perform(atomics, sector, bytes);
            let changed = bytes.as_chunks::<SECTOR>().0[sector] != before;
            lines.count_atomic_change(changed);
            lines.mark(way, sector, written);
        }
    }
}
