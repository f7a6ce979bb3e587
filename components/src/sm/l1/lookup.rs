//! The tag stage: one request a cycle is looked up, and hit, missed, merged, or passed on.

use warpwave_hw::time::Cycle;

use super::{L1, TagState, is_passed_on, line_number};
use crate::proto::mem::{LINE, Packet, PacketKind, Stage, byte_mask, n_sectors};

impl L1 {
    /// Looks one request up, if there is one.
    #[inline]
    pub(super) fn take_request(&mut self, now: Cycle) {
        let progress = std::mem::take(&mut self.progress);
        if !self.ports.requests.is_ready(now) {
            self.state = TagState::Idle;
            return;
        }
        if self.state.is_stall() && !progress {
            return;
        }
        let state = self.look_up(now);
        self.enter(state, now);
    }

    #[inline(always)]
    fn look_up(&mut self, now: Cycle) -> TagState {
        let packet = self.ports.requests.peek(now).expect("a request was seen");
        self.line = packet.line;
        match packet.kind {
            PacketKind::Load if !is_passed_on(packet) => {
                let (line, wanted) = (line_number(packet), packet.sectors);
                self.look_up_load(line, wanted, now)
            }
            PacketKind::Invalidate { bytes } => self.invalidate(bytes, now),
            _ => match packet.n_changed() {
                changed if self.store_queue.has_room(changed) => self.pass_on(changed, now),
                _ => TagState::StallStore,
            },
        }
    }

    /// Changes the state of the tag stage; the cycles of a stall are counted when it is over.
    fn enter(&mut self, state: TagState, now: Cycle) {
        if self.state.is_stall() {
            self.count_stall(now - self.since);
        }
        self.stats.tag_cycles += u64::from(!state.is_stall());
        self.state = state;
        self.since = now;
    }

    fn count_stall(&mut self, cycles: u64) {
        match self.state {
            TagState::StallMshr => self.stats.mshr_stall_cycles += cycles,
            TagState::StallStore => self.stats.store_stall_cycles += cycles,
            TagState::StallAnswer => self.stats.answer_stall_cycles += cycles,
            TagState::Idle | TagState::Hit | TagState::Miss | TagState::Pass => {}
        }
    }

    fn look_up_load(&mut self, line: u32, wanted: u8, now: Cycle) -> TagState {
        let found = self.tags.find(line);
        let here = found.map_or(0, |(_, sectors)| sectors & wanted);
        let missing = wanted & !here;
        if missing == 0 {
            let place = found.expect("a line of which nothing is missing is here").0;
            return self.hit(place, now);
        }
        let Some(merged) = self.mshr.mergeable(line, missing) else {
            return TagState::StallMshr;
        };
        let fetched = missing & !merged;
        if self.waiting.is_full() || !self.mshr.has_room(n_sectors(fetched)) {
            return TagState::StallMshr;
        }
        let mut packet = self.take(now);
        self.stats.count_request(PacketKind::Load, n_sectors(wanted));
        if let Some((place, _)) = found {
            self.tags.touch(place);
            self.data.read(place, here, &mut packet.bytes);
        }
        self.stats.load_sectors_hit += u64::from(n_sectors(here));
        self.stats.load_sectors_missed += u64::from(n_sectors(missing));
        self.stats.load_sectors_merged += u64::from(n_sectors(merged));
        packet.l1_hit = false;
        packet.l2_hit = true;
        let (cache, is_timed) = (packet.cache, packet.is_timed);
        let slot = self.waiting.add(packet, missing);
        if merged != 0 {
            self.mshr.merge(line, merged, slot, &mut self.waiting);
        }
        if fetched != 0 {
            let n = self.mshr.open(line, fetched, slot, &mut self.waiting);
            let line = u64::from(line) * LINE as u64;
            let mut packet = self.pool.take(PacketKind::Load, line, fetched, n, is_timed);
            packet.cache = cache;
            self.queue_below(packet, 0);
        }
        TagState::Miss
    }

    fn hit(&mut self, place: usize, now: Cycle) -> TagState {
        if self.hits.len() > self.config.latency as usize {
            return TagState::StallAnswer;
        }
        let mut packet = self.take(now);
        self.tags.touch(place);
        self.data.read(place, packet.sectors, &mut packet.bytes);
        self.stats.count_request(PacketKind::Load, packet.n_sectors());
        self.stats.load_sectors_hit += u64::from(packet.n_sectors());
        packet.l1_hit = true;
        self.hits.push_back((now + u64::from(self.config.latency), packet));
        TagState::Hit
    }

    /// Forgets every line, those under way too; the answer is a hit's.
    fn invalidate(&mut self, bytes: u32, now: Cycle) -> TagState {
        if self.hits.len() > self.config.latency as usize {
            return TagState::StallAnswer;
        }
        let packet = self.take(now);
        self.stats.count_request(packet.kind, 0);
        self.tags.hold(bytes);
        self.mshr.spoil_all();
        self.hits.push_back((now + u64::from(self.config.latency), packet));
        TagState::Hit
    }

    /// A store, an atomic or an uncached load: goes down itself, and changes so many sectors.
    #[inline(always)]
    fn pass_on(&mut self, changed: u32, now: Cycle) -> TagState {
        let mut packet = self.take(now);
        self.line = packet.line;
        packet.l1_hit = false;
        if packet.kind == PacketKind::Store {
            self.stats.count_request(PacketKind::Store, changed);
            let here = self.store(&packet);
            if here != 0 {
                self.stats.store_sectors_hit += u64::from(n_sectors(here));
            }
        } else {
            self.pass_by(&packet);
        }
        self.queue_below(packet, changed);
        TagState::Pass
    }

    /// Stores a packet's bytes in its line, as far as that is here; gives the sectors of it that are.
    #[inline(always)]
    pub(super) fn store(&mut self, packet: &Packet) -> u8 {
        let line = line_number(packet);
        self.mshr.spoil(line, packet.sectors);
        let Some((place, sectors)) = self.tags.find(line) else {
            return 0;
        };
        let mask = packet.byte_mask & byte_mask(sectors);
        self.data.write(place, mask, &packet.bytes);
        sectors & packet.sectors
    }

    /// What is done for an atomic or an uncached load.
    #[inline(never)]
    fn pass_by(&mut self, packet: &Packet) {
        let sectors = packet.n_sectors();
        self.stats.count_request(packet.kind, sectors);
        if packet.kind == PacketKind::Load {
            self.stats.load_sectors_missed += u64::from(sectors);
            self.stats.load_sectors_bypassed += u64::from(sectors);
        } else {
            let line = line_number(packet);
            self.tags.drop_line(line);
            self.mshr.spoil(line, packet.sectors);
        }
    }

    /// Takes the next request, which is visible.
    #[inline]
    fn take(&mut self, now: Cycle) -> Box<Packet> {
        let mut packet = self.ports.requests.take(now);
        packet.note(Stage::L1, now);
        packet
    }
}
