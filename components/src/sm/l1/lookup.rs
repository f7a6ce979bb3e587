//! The tag stage: looks up requests in order, one line per tag bank and cycle. A request hits, misses, merges with a miss, bypasses the L1,
//! or stalls.

use tracing::debug;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::CacheOp;

use super::write_policy::Stored;
use super::{L1, bypasses_l1};
use crate::cache::tag_stage::TagState;
use crate::proto::mem::{ALL_SECTORS, LINE, Packet, PacketKind, Stage, n_sectors};

/// The outcome of the tag stage's last lookup.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum L1TagState {
    Idle,
    Hit,
    Miss,
    /// The packet goes on to the L2.
    Bypass,
    /// No MSHR or target is free, or a sector has all its merges.
    StallMshr,
    /// The queue to the crossbar is full of stores.
    StallStore,
    /// The hit pipe is full.
    StallResponse,
}

/// The names of all states, in order.
pub(super) const TAG_STATES: [&str; 7] = [
    "idle",
    "hit",
    "miss",
    "bypass",
    "stall_mshr",
    "stall_store",
    "stall_response",
];

impl TagState for L1TagState {
    const IDLE: Self = L1TagState::Idle;

    fn is_stall(self) -> bool {
        self >= L1TagState::StallMshr
    }
}

impl L1 {
    /// Looks up requests until none is left, one stalls, or the bank of one is in use.
    #[inline]
    pub(super) fn look_up_requests(&mut self, now: Cycle) {
        let has_request = self.ports.requests.is_ready(now);
        if !self.state.tag.begin(has_request) {
            return;
        }
        self.state.lookups.clear();
        let mut is_busy = false;
        while let Some(packet) = self.ports.requests.peek(now)
            && self.state.lookups.admit(packet.line)
        {
            let outcome = self.look_up(now);
            let stats = &mut self.state.stats;
            if let Some((stall, cycles)) = self.state.tag.enter(outcome, now.0) {
                stats.count_stall(stall, cycles);
            }
            if outcome.is_stall() {
                break;
            }
            is_busy = true;
        }
        self.state.stats.tag_cycles += u64::from(is_busy);
    }

    #[inline(always)]
    fn look_up(&mut self, now: Cycle) -> L1TagState {
        let packet = self.ports.requests.peek(now).expect("the caller has seen a request");
        self.state.tag.line = packet.line;
        match packet.kind {
            PacketKind::Invalidate { bytes } => self.invalidate(bytes, now),
            _ if bypasses_l1(packet) => {
                // Stores and atomics carry data, so they need room. A load changes no sector and always fits.
                let has_room = self.state.xbar_queue.has_room(packet.n_changed());
                if has_room {
                    self.bypass(now)
                } else {
                    L1TagState::StallStore
                }
            }
            _ => {
                let (line, wanted) = (packet.line_number(), packet.sectors);
                self.look_up_load(line, wanted, now)
            }
        }
    }

    /// Looks up a load that may use the L1. It hits if all its sectors are valid.
    fn look_up_load(&mut self, line: u32, wanted: u8, now: Cycle) -> L1TagState {
        let found = self.state.lines.find(line);
        // A line can be present with only some of these sectors.
        let valid = found.map_or(0, |(_, sectors)| sectors & wanted);
        let missing = wanted & !valid;
        match found {
            Some((way, _)) if missing == 0 => self.hit(way, now),
            _ => self.miss(line, found.map(|(way, _)| (way, valid)), missing, now),
        }
    }

    fn hit(&mut self, way: usize, now: Cycle) -> L1TagState {
        if self.hit_pipe_is_full() {
            return L1TagState::StallResponse;
        }
        let mut packet = self.take_request(now);
        let state = &mut self.state;
        state.lines.read(way, packet.sectors, &mut packet.bytes);
        state.stats.count_load(&packet, 0, 0);
        packet.l1_hit = true;
        self.enter_hit_pipe(packet, now);
        L1TagState::Hit
    }

    /// Handles a load with `missing` sectors: reads its valid sectors, joins sectors in flight, and requests the rest. `found` has the way
    /// and the valid sectors.
    fn miss(&mut self, line: u32, found: Option<(usize, u8)>, missing: u8, now: Cycle) -> L1TagState {
        // All or nothing: a load that cannot get every sector stalls, and takes none.
        let Some(merged) = self.state.mshr.mergeable(line, missing) else {
            return L1TagState::StallMshr;
        };
        // A stale sector in flight is fetched once more: its bytes may be from before a store.
        let fetched = missing & !merged;
        if !self.state.mshr.table.has_room(fetched) {
            return L1TagState::StallMshr;
        }
        let mut packet = self.take_request(now);
        let state = &mut self.state;
        if let Some((way, valid)) = found {
            // Now, since the line may be evicted before the missing sectors come.
            state.lines.read(way, valid, &mut packet.bytes);
        }
        state.stats.count_load(&packet, missing, merged);
        // Each fill clears `l2_hit` if it missed in the L2.
        (packet.l1_hit, packet.l2_hit) = (false, true);
        let (cache, purpose, is_timed) = (packet.cache, packet.purpose, packet.is_timed);
        // Without a new entry all missing sectors have merged.
        if let Some(entry) = state.mshr.park(line, packet, merged, fetched) {
            let address = u64::from(line) * LINE as u64;
            let mut request = state.pool.take(PacketKind::Load, address, fetched, entry, is_timed);
            (request.cache, request.purpose) = (cache, purpose);
            self.queue_to_xbar(request, now);
        }
        L1TagState::Miss
    }

    /// Invalidates every line, and marks every sector in flight stale. The L1 holds `bytes` bytes from now on. The response is as for a
    /// hit.
    fn invalidate(&mut self, bytes: u32, now: Cycle) -> L1TagState {
        if self.hit_pipe_is_full() {
            return L1TagState::StallResponse;
        }
        let packet = self.take_request(now);
        debug!(cycle = now.0, path = %self.path, bytes, "L1 invalidated");
        let state = &mut self.state;
        state.stats.count_request(packet.kind, 0);
        state.lines.resize(bytes);
        // A fill in flight may be as old as the lines.
        state.mshr.mark_all_stale();
        self.enter_hit_pipe(packet, now);
        L1TagState::Hit
    }

    /// Sends a store, an atomic or an uncached load on to the L2.
    #[inline(always)]
    fn bypass(&mut self, now: Cycle) -> L1TagState {
        let mut packet = self.take_request(now);
        packet.l1_hit = false;
        if packet.kind == PacketKind::Store {
            self.state.stats.count_request(PacketKind::Store, packet.n_sectors());
            let hit = self.store(&packet);
            self.state.stats.store_sectors_hit += u64::from(n_sectors(hit));
        } else {
            self.bypass_other(&packet);
        }
        self.queue_to_xbar(packet, now);
        L1TagState::Bypass
    }

    /// Applies a store to the lines by the write policy. Returns the sectors that were valid.
    #[inline]
    pub(super) fn store(&mut self, packet: &Packet) -> u8 {
        let (state, line) = (&mut self.state, packet.line_number());
        // A fill in flight may have the bytes from before this store.
        state.mshr.mark_stale(line, packet.sectors);
        let Stored { hit, evicts } = self.config.write_policy.store(&mut state.lines, line, packet);
        state.stats.lines_evicted += u64::from(evicts);
        hit
    }

    /// Counts an uncached load, or drops the line of an atomic: the L2 will change it. A strong load drops its sectors: a plain load after
    /// it must not find an older value (axiom Causality of the PTX memory model).
    #[inline(never)]
    fn bypass_other(&mut self, packet: &Packet) {
        let state = &mut self.state;
        let dropped = match packet.kind {
            PacketKind::Load => packet.sectors,
            _ => ALL_SECTORS,
        };
        if packet.kind == PacketKind::Load {
            state.stats.count_load(packet, packet.sectors, 0);
            state.stats.load_sectors_bypassed += u64::from(packet.n_sectors());
            // A weak load past the L1 (`.cg`) drops nothing: PTX allows a later plain load to read the older value.
            if packet.cache != CacheOp::Volatile {
                return;
            }
        } else {
            state.stats.count_request(packet.kind, packet.n_sectors());
        }
        self.drop_sectors(packet, dropped);
    }

    /// Drops sectors of a packet's line. A fill in flight may have the bytes from before the packet.
    pub(super) fn drop_sectors(&mut self, packet: &Packet, dropped: u8) {
        let (state, line) = (&mut self.state, packet.line_number());
        state.mshr.mark_stale(line, packet.sectors);
        if let Some((way, valid)) = state.lines.find(line) {
            state.lines.invalidate(way, dropped & valid);
        }
    }

    /// Takes the request at the head.
    #[inline]
    fn take_request(&mut self, now: Cycle) -> Box<Packet> {
        let mut packet = self.ports.requests.take(now);
        packet.note(Stage::L1, now);
        packet
    }

    fn hit_pipe_is_full(&self) -> bool {
        self.state.hits.len() >= self.config.max_hits()
    }

    fn enter_hit_pipe(&mut self, packet: Box<Packet>, now: Cycle) {
        let due = now + u64::from(self.config.latency);
        self.state.hits.push_back((due, packet));
    }
}
