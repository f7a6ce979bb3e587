//! The tag stage: plans how each sector of a request is served, and serves the request.

use warpwave_hw::time::Cycle;

use super::tag_state::SliceTagState;
use super::twin::Twin;
use super::{Slice, State};
use crate::l2::atomic;
use crate::l2::lines::Lines;
use crate::proto::mem::{Crossing, Packet, PacketKind, SECTOR, Stage, copy_sectors, each_sector};

/// Plan for the sectors of a request. Sectors in no mask are served at once.
struct Plan {
    /// The way of the line, or the way that it takes.
    way: usize,
    /// True if the line is in the slice already.
    is_present: bool,
    /// Sectors that wait for a fetch in flight.
    merged: u8,
    /// Sectors to fetch.
    fetched: u8,
    /// Sectors with a copy in the other partition, to recall before this request changes them.
    recalled: u8,
}

/// Where a request comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// The crossbar: an SM.
    Sm,
    /// The twin slice in the other partition.
    Twin,
}

impl Slice {
    /// Looks up the request at the head, if there is one.
    pub(super) fn look_up_request(&mut self, now: Cycle, edge: u64) {
        let has_request = self.ports.requests.peek(now).is_some();
        if self.state.twin.is_some() {
            return self.look_up_either(has_request, now, edge);
        }
        if !self.state.tag.begin(has_request) {
            return;
        }
        let outcome = self.look_up(Source::Sm, now, edge);
        if let Some((stall, edges)) = self.state.tag.enter(outcome, edge) {
            self.state.stats.count_stall(stall, edges);
        }
    }

    /// Looks up one request, of an SM or of the twin. They take turns. If the first one stalls, the other is looked up at the same edge.
    #[inline(never)]
    fn look_up_either(&mut self, has_request: bool, now: Cycle, edge: u64) {
        let (Some(twin), Some(ports)) = (&mut self.state.twin, &mut self.ports.twin) else {
            return;
        };
        // Both stages begin at every edge: `begin` also shows an empty port as idle.
        let from_twin = twin.tag.begin(ports.requests.peek(now).is_some());
        let from_sm = self.state.tag.begin(has_request);
        let mut turns = [(Source::Sm, from_sm), (Source::Twin, from_twin)];
        if twin.is_first {
            turns.reverse();
        }
        let mut is_served = false;
        for (source, _) in turns.into_iter().filter(|(_, is_looked_up)| *is_looked_up) {
            let outcome = match is_served {
                // The other request has the tags.
                true => SliceTagState::DataBusy,
                false => self.look_up(source, now, edge),
            };
            is_served |= !outcome.holds_request();
            let State { tag, twin, stats, .. } = &mut self.state;
            let twin = twin.as_mut().expect("a slice with a twin");
            let tag = match source {
                Source::Sm => tag,
                Source::Twin => &mut twin.tag,
            };
            match tag.enter(outcome, edge) {
                Some((SliceTagState::StallTwin, edges)) => twin.stats.twin_stall_cycles += edges,
                Some((stall, edges)) => stats.count_stall(stall, edges),
                None => {}
            }
            // Only a request that leaves its port passes the turn on.
            if !outcome.holds_request() {
                twin.is_first = source == Source::Sm;
            }
        }
    }

    /// Looks up the request at the head of the port of `source`. Returns the new state of its tag stage.
    #[inline]
    fn look_up(&mut self, source: Source, now: Cycle, edge: u64) -> SliceTagState {
        if source == Source::Sm && self.state.twin.is_some() && self.head(source).crossing == Crossing::Far {
            return self.look_up_copy(now, edge);
        }
        match self.plan(source, edge) {
            Ok(plan) => self.serve(plan, source, now, edge),
            Err(stall) => stall,
        }
    }

    /// The request at the head of the port of `source`.
    #[inline]
    fn head(&self, source: Source) -> &Packet {
        let head = match source {
            Source::Sm => self.ports.requests.peeked(),
            Source::Twin => self.ports.twin.as_ref().and_then(|ports| ports.requests.peeked()),
        };
        head.expect("a request is at the head")
    }

    /// True if memory has no room for the two packets of a miss: the write-back of the victim and the fetch.
    pub(super) fn is_memory_full(&self) -> bool {
        memory_is_full(&self.state, self.config.memory_depth)
    }

    /// Plans the request at the head of the port of `source`. The error is the state of a request that has to wait.
    #[inline]
    fn plan(&mut self, source: Source, edge: u64) -> Result<Plan, SliceTagState> {
        let state = &mut self.state;
        if state.data_free_at > edge {
            return Err(SliceTagState::DataBusy);
        }
        // All pipes are tested before the sectors are known: a hit responds at once, and a store may send a recall.
        if state.responses.is_full() || state.twin.as_ref().is_some_and(|twin| twin.responses.is_full()) {
            return Err(SliceTagState::StallResponse);
        }
        let memory_is_full = memory_is_full(state, self.config.memory_depth);
        if state.tag.state() == SliceTagState::StallMemory && memory_is_full && source == Source::Sm {
            // A second lookup has the same outcome: requests of SMs wait behind this one, so none fetches its sectors. Only a fetch
            // of the twin may. Then the stall lasts until memory has room.
            return Err(SliceTagState::StallMemory);
        }
        let line = self.head(source).line;
        let state = &mut self.state;
        match (source, &mut state.twin) {
            (Source::Twin, Some(twin)) => twin.tag.line = line,
            _ => state.tag.line = line,
        }
        let (state, packet) = (&self.state, self.head(source));
        let sectors = packet.sectors;
        let found = state.lines.find(packet.line_number());
        let victim = || state.lines.victim(self.config.map.local(packet.line));
        let Some(way) = found.or_else(victim) else {
            return Err(SliceTagState::StallPinned);
        };
        let is_present = found.is_some();
        let fetch = state.lines.fetch(way).filter(|_| is_present);
        let merged = fetch.map_or(0, |entry| state.mshr.in_flight(entry) & sectors);
        if merged != 0 && packet.kind != PacketKind::Store && state.lines.recalled_in_part(way) & merged != 0 {
            // The sector was never fetched. After the answer this request finds it in part, and fetches the rest.
            return Err(SliceTagState::StallTwin);
        }
        let fetched = match packet.kind {
            // Write-validate: a store needs no bytes of the line.
            PacketKind::Store => 0,
            _ if is_present => sectors & !merged & !state.lines.full(way),
            _ => sectors,
        };
        // A fetch goes first. Its fill finds the sectors to recall.
        let recalled = self.to_recall(packet) & !merged & !fetched;
        // A merge needs a target. A fetch or a recall also needs an MSHR for each sector.
        if merged | fetched | recalled != 0 && !state.mshr.has_room(fetched | recalled) {
            return Err(SliceTagState::StallFetch);
        }
        // A store to an absent line fetches nothing, but its victim may be dirty.
        if (fetched != 0 || !is_present) && memory_is_full {
            return Err(SliceTagState::StallMemory);
        }
        Ok(Plan {
            way,
            is_present,
            merged,
            fetched,
            recalled,
        })
    }

    /// Serves a planned request: takes it from its port, and completes it or stores it as a miss.
    #[inline]
    fn serve(&mut self, plan: Plan, source: Source, now: Cycle, edge: u64) -> SliceTagState {
        let Plan { way, is_present, .. } = plan;
        let mut packet = match (source, &mut self.ports.twin) {
            (Source::Twin, Some(ports)) => ports.requests.take(now),
            _ => self.ports.requests.take(now),
        };
        // A request of the twin was stamped at the near slice.
        if source == Source::Sm {
            packet.note(Stage::L2, now);
        }
        match is_present {
            true => self.state.lines.touch(way),
            false => self.replace(way, packet.line_number(), false),
        }
        let state = &mut self.state;
        state.stats.tag_cycles += 1;
        match (&mut state.twin, packet.crossing) {
            (Some(twin), Crossing::Fetch) => twin.stats.count_fetch(&packet, plan.merged | plan.fetched),
            _ => state
                .stats
                .count_request(&packet, is_present, plan.merged, plan.fetched),
        }
        let missing = plan.merged | plan.fetched | plan.recalled;
        let served = packet.sectors & !missing;
        perform(&mut packet, &mut state.lines, way, served, state.twin.as_mut());
        // An atomic is charged here for all its lanes, even if sectors are missing. Loads and stores are charged for the sectors served.
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
        self.miss(packet, plan, now, edge);
        SliceTagState::Miss
    }

    /// Whole cycles for which an atomic keeps the data array busy. A fraction of a cycle is carried over to the next atomic.
    #[inline(never)]
    fn atomic_cycles(&mut self, packet: &Packet) -> u32 {
        let Some(atomics) = packet.atomic.as_deref() else {
            return 0;
        };
        let state = &mut self.state;
        let used = &mut state.atomic_centicycles;
        *used += self
            .config
            .atomic
            .centicycles(atomics, packet.line, &mut state.last_float_add);
        let cycles = *used / 100;
        *used %= 100;
        state.stats.atomic_cycles += u64::from(cycles);
        cycles
    }

    /// Stores a request until its missing sectors arrive. Fetches the sectors that are not in flight.
    #[inline(never)]
    fn miss(&mut self, packet: Box<Packet>, plan: Plan, now: Cycle, edge: u64) {
        let missing = plan.merged | plan.fetched | plan.recalled;
        let is_timed = packet.is_timed;
        // The plan has checked that the packet and its sectors have room.
        let slot = self.state.mshr.park(packet, missing);
        if plan.fetched != 0 {
            self.fetch(plan.way, plan.fetched, is_timed, now);
        }
        if plan.recalled != 0 {
            let State { lines, mshr, .. } = &mut self.state;
            // A recall pins the line, like a fetch: its answer finds the way by the packet's tag.
            let entry = lines.fetch(plan.way).unwrap_or_else(|| mshr.allocate());
            lines.set_fetch(plan.way, Some(entry));
            mshr.add_sectors(entry, plan.recalled);
            self.send_recall(plan.way, plan.recalled, edge);
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

/// Applies a packet to `sectors` of its line. The caller has checked that it need not wait for them.
#[inline(always)]
pub(super) fn perform(packet: &mut Packet, lines: &mut Lines, way: usize, sectors: u8, twin: Option<&mut Twin>) {
    if let Some(twin) = twin {
        twin.note_performed(packet, sectors);
    }
    match packet.kind {
        PacketKind::Load => copy_sectors(lines.bytes(way), &mut packet.bytes, sectors),
        PacketKind::Store => lines.write(way, sectors, packet.byte_mask, &packet.bytes),
        PacketKind::Atomic | PacketKind::Reduction => perform_atomic(packet, lines, way, sectors),
        PacketKind::Invalidate { .. } => {}
    }
}

/// Applies an atomic to `sectors` of its line, in order of the sectors.
#[inline(never)]
fn perform_atomic(packet: &mut Packet, lines: &mut Lines, way: usize, sectors: u8) {
    debug_assert_eq!(sectors & !lines.full(way), 0, "an atomic needs every byte");
    if let Some(atomics) = &mut packet.atomic {
        for sector in each_sector(sectors) {
            let bytes = lines.bytes_mut(way);
            let before = bytes.as_chunks::<SECTOR>().0[sector];
            let written = atomic::perform(atomics, sector, bytes);
            // An atomic can write the old value, such as a maximum. The counter is of sectors that differ.
            let changed = bytes.as_chunks::<SECTOR>().0[sector] != before;
            lines.count_atomic_change(changed);
            lines.mark(way, sector, written);
        }
    }
}
