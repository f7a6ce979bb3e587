//! Copies of lines of the other partition, and the protocol that keeps them equal to their home.
//!
//! Each slice has a *twin* in the other partition. A request of an SM goes to the slice of its own partition: the *home* of the line, or
//! the home's twin, which is then the *near* slice. The near slice keeps a copy of what it loads, in the same ways as its own lines.
//!
//! ```text
//!   SMs of partition 0 --> slice n <== requests, responses ==> slice n + slices / 2 <-- SMs of partition 1
//! ```
//!
//! | Message | Direction | Meaning |
//! |---|---|---|
//! | [`Crossing::Fetch`] | near to home, and back | a load that fills a copy |
//! | [`Crossing::Far`] | near to home, and back | a request that the near slice passes on: stores, atomics, loads that get no copy |
//! | [`Crossing::Recall`] | home to near | drop the copy of these sectors |
//! | [`Crossing::Recalled`] | near to home | the near slice has no copy of them |
//!
//! # The protocol
//!
//! Rule: a sector of a copy is valid only while its bytes equal those at home. So a load that hits a copy reads what it would read at
//! home. The L2 is one memory to all SMs, for strong loads too.
//! - The home has a directory of the sectors that the twin may hold. It adds a sector when it serves a fetch.
//! - A store or atomic of an SM on the home's side first recalls the sectors in the directory. It is performed after the answer. Until
//!   then the sectors are in flight, and each later access to them waits behind it, in the order of arrival.
//! - A recall brings no bytes. A load or atomic that needs more bytes of such a sector stalls until the answer, and then fetches it.
//! - A store or atomic of an SM on the near side drops the copy as it passes the near slice. At home it needs no recall.
//! - A recall or a passing request can find a fetch in flight. Then its sectors become *stale*: the fill serves the packets that wait
//!   for it, and leaves no copy. Later loads of a stale sector pass on to the home.
//!
//! The packets that wait may have the old bytes. They came before the recall, and the write at home comes after the answer. They also came
//! before a store that passed. So they take effect before the write.
//!
//! Order: requests of the near side for one sector take effect in the order in which they passed the near slice. A packet that passes on
//! leaves no valid copy of its sectors, and the link to the home is a queue. So the next fetch arrives behind the packet.
//!
//! Home lines and copies are evicted freely. No message tells the home of an evicted copy, so it may recall a copy that is gone.
//!
//! # No deadlock
//! - A response, recall or answer waits only for room in the pipe to the SMs.
//! - A request of the twin waits only for memory, for answers to recalls, and for room in the response pipes. No request of an SM blocks
//!   it, since it has a tag stage of its own. Copies in flight take neither its MSHRs nor the last way of a set.

use warpwave_hw::component::Activity;
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::time::Cycle;

use super::responses::{NEVER, Pipe};
use super::stats::TwinStats;
use super::tag_state::{SliceTagState, TAG_STATES};
use super::{Config, Slice, State, address};
use crate::cache::mshr::MshrTable;
use crate::cache::tag_stage::{TagStage, TagState};
use crate::l2::directory::Directory;
use crate::proto::mem::{Crossing, Packet, PacketKind, Stage, copy_sectors, each_sector, n_sectors};

/// Latencies of a crossing inside a slice, in slice-clock cycles. The links add theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwinLatency {
    /// From the near slice's lookup to the link, at least 1.
    pub request: u32,
    /// From the home's hit or last fill to the link, at least 1. Recalls and answers take it too.
    pub response: u32,
}

/// The links between a slice and its twin.
pub struct TwinPorts {
    /// Fetches and passed requests, to the twin.
    pub to_requests: OutPort<Box<Packet>>,
    /// Fetches and passed requests, from the twin.
    pub requests: InPort<Box<Packet>>,
    /// Fills, responses, recalls and answers, to the twin.
    pub to_responses: OutPort<Box<Packet>>,
    /// Fills, responses, recalls and answers, from the twin.
    pub responses: InPort<Box<Packet>>,
}

warpwave_hw::show_ports!(TwinPorts: to_requests, requests, to_responses, responses);

/// The state of a slice with a twin.
pub(super) struct Twin {
    /// Requests on their way to the twin.
    pub(super) requests: Pipe,
    /// Responses, recalls and answers on their way to the twin.
    pub(super) responses: Pipe,
    /// The copies in flight to this slice, and the loads that wait for them.
    pub(super) mshr: MshrTable,
    /// The copies of this slice's lines that the twin may have.
    pub(super) directory: Directory,
    /// Tag stage of the twin's requests.
    pub(super) tag: TagStage<SliceTagState>,
    /// True if the request of the twin is looked up before that of an SM.
    pub(super) is_first: bool,
    /// Number of recalls without an answer yet.
    pub(super) recalls: u32,
    pub(super) stats: TwinStats,
}

impl Twin {
    /// The state without copies. `ways` is the number of ways of the twin slice.
    pub(super) fn new(latency: TwinLatency, ways: usize, max_sectors: u32, max_targets: u32) -> Self {
        Twin {
            requests: Pipe::new(latency.request),
            responses: Pipe::new(latency.response),
            mshr: MshrTable::new(max_sectors, max_targets),
            directory: Directory::new(ways),
            tag: TagStage::new(),
            is_first: false,
            recalls: 0,
            stats: TwinStats::default(),
        }
    }

    /// True if nothing is in flight.
    pub(super) fn is_quiescent(&self) -> bool {
        self.mshr.n_targets() == 0
            && self.mshr.n_in_flight() == 0
            && self.requests.len() == 0
            && self.responses.len() == 0
            && self.recalls == 0
    }

    /// Updates the directory after the home has applied a packet to `sectors`.
    #[inline]
    pub(super) fn note_performed(&mut self, packet: &Packet, sectors: u8) {
        match packet.crossing {
            // The tag of a fetch is the way of its copy.
            Crossing::Fetch => self.directory.add(packet.line_number(), packet.tag as usize, sectors),
            // The near slice dropped its copy as it passed the request on.
            Crossing::Far if packet.n_changed() != 0 => self.directory.remove(packet.line_number(), sectors),
            _ => {}
        }
    }

    pub(super) fn invariants(&self, check: &mut Invariants) {
        self.mshr.invariants(check);
    }

    pub(super) fn probe(&self, config: &Config, probe: &mut dyn Probe) {
        let count = |max: u32| count_width(max.into());
        let latency = config.twin.expect("a slice with a twin");
        probe.state("twin_tag", &TAG_STATES, Some(self.tag.state() as usize));
        probe.vector("twin_line", 48, self.tag.current_line());
        let in_flight = u64::from(self.mshr.n_in_flight());
        probe.vector("copy_sectors", count(config.mshr_sectors), Some(in_flight));
        probe.vector(
            "copy_targets",
            count(config.mshr_targets),
            Some(self.mshr.n_targets() as u64),
        );
        probe.vector("recalls", count(config.mshr_sectors), Some(self.recalls.into()));
        probe.vector("to_twin", count(latency.request + 1), Some(self.requests.len() as u64));
        // One fill can add a response and a recall for each target, and each recall of the twin needs an answer.
        let max_responses = latency.response + 1 + 2 * config.mshr_targets + config.mshr_sectors;
        probe.vector(
            "twin_responses",
            count(max_responses),
            Some(self.responses.len() as u64),
        );
    }

    /// Says what the copies wait for.
    pub(super) fn waits(&self, path: &Path, say: &mut dyn FnMut(String)) {
        let (packets, sectors, recalls) = (self.mshr.n_targets(), self.mshr.n_in_flight(), self.recalls);
        if packets > 0 {
            say(format!(
                "{path}: {packets} packets wait for {sectors} sectors from the other partition"
            ));
        }
        if recalls > 0 {
            say(format!(
                "{path}: {recalls} recalls wait for an answer of the other partition"
            ));
        }
    }
}

/// Plan for a load at the near slice. Sectors in neither mask hit.
struct CopyPlan {
    /// The way of the copy, or the way that it takes.
    way: usize,
    is_present: bool,
    /// Sectors that wait for a fetch in flight.
    merged: u8,
    /// Sectors to fetch from the home.
    fetched: u8,
}

impl Slice {
    /// Sends what is due to the twin, and takes one response from it.
    #[inline(never)]
    pub(super) fn exchange_with_twin(&mut self, now: Cycle, edge: u64) {
        let (Some(twin), Some(ports)) = (&mut self.state.twin, &mut self.ports.twin) else {
            return;
        };
        let mut progress = false;
        for (pipe, port) in [
            (&mut twin.requests, &mut ports.to_requests),
            (&mut twin.responses, &mut ports.to_responses),
        ] {
            // One packet per edge and link. A due packet without room waits, and those behind it.
            if pipe.due() <= edge && port.has_room(now) {
                let (_, packet) = pipe.pop().expect("a packet is due");
                port.send(now, packet);
                progress = true;
            }
        }
        // A fill completes its targets, and each enters the pipe to the SMs.
        if ports.responses.is_ready(now) && !self.state.responses.is_near_full() {
            let packet = ports.responses.recv(now).expect("a response is ready");
            self.take_from_twin(packet, now, edge);
            progress = true;
        }
        if progress {
            self.state.note_progress();
        }
    }

    /// Takes a message from the response link of the twin.
    fn take_from_twin(&mut self, mut packet: Box<Packet>, now: Cycle, edge: u64) {
        match packet.crossing {
            // The response to a request that passed on.
            Crossing::Far => self.complete(packet, now, edge),
            Crossing::Fetch => {
                self.fill_copy(&packet, now, edge);
                self.state.pool.give(packet);
            }
            Crossing::Recall => {
                self.drop_copy(packet.line_number(), packet.sectors);
                packet.crossing = Crossing::Recalled;
                let twin = self.state.twin.as_mut().expect("a slice with a twin");
                // The pipe may be full: the MSHRs of the twin bound its recalls, and so the answers here.
                twin.responses.push(packet, edge);
            }
            Crossing::Recalled => {
                self.end_recall(&packet, now, edge);
                self.state.pool.give(packet);
            }
            Crossing::Near => unreachable!("{}: a packet that never crosses", self.path),
        }
    }

    /// Drops the copy of these sectors, and marks those in flight stale.
    fn drop_copy(&mut self, line: u32, sectors: u8) {
        let State { lines, twin, .. } = &mut self.state;
        let twin = twin.as_mut().expect("a slice with a twin");
        if let Some(way) = lines.find(line) {
            twin.stats.copy_sectors_dropped += u64::from(n_sectors(lines.full(way) & sectors));
            let in_flight = lines.fetch(way).map_or(0, |entry| twin.mshr.in_flight(entry));
            lines.drop_copy(way, sectors, in_flight & sectors);
        }
    }

    /// Looks up a request of an SM at the near slice of its line.
    pub(super) fn look_up_copy(&mut self, now: Cycle, edge: u64) -> SliceTagState {
        let packet = self.ports.requests.peeked().expect("a request is at the head");
        self.state.tag.line = packet.line;
        if self.state.data_free_at > edge {
            return SliceTagState::DataBusy;
        }
        // A near SM asks, so a hit responds through the near pipe.
        if self.state.responses.is_near_full() {
            return SliceTagState::StallResponse;
        }
        match self.plan_copy() {
            Ok(Some(plan)) => self.serve_copy(plan, now, edge),
            Ok(None) => self.pass_on(now, edge),
            Err(stall) => stall,
        }
    }

    /// Plans a load at the near slice. Returns `None` for a request that goes on to the home. The error is what it waits for.
    fn plan_copy(&self) -> Result<Option<CopyPlan>, SliceTagState> {
        let State { lines, twin, .. } = &self.state;
        let twin = twin.as_ref().expect("a slice with a twin");
        let packet = self.ports.requests.peeked().expect("a request is at the head");
        let sectors = packet.sectors;
        if packet.kind != PacketKind::Load {
            return Ok(None);
        }
        let plan = match lines.find(packet.line_number()) {
            // The fill of a stale sector is too old for this load: a store has passed since, or a recall.
            Some(way) if lines.stale(way) & sectors != 0 => return Ok(None),
            Some(way) => {
                let in_flight = lines.fetch(way).map_or(0, |entry| twin.mshr.in_flight(entry));
                CopyPlan {
                    way,
                    is_present: true,
                    merged: in_flight & sectors,
                    fetched: sectors & !in_flight & !lines.full(way),
                }
            }
            None => match lines.copy_victim(self.config.map.local(packet.line)) {
                Some(way) => CopyPlan {
                    way,
                    is_present: false,
                    merged: 0,
                    fetched: sectors,
                },
                // No way is left for a copy. The home serves the load.
                None => return Ok(None),
            },
        };
        if plan.merged | plan.fetched != 0 && !twin.mshr.has_room(plan.fetched) {
            return Err(SliceTagState::StallFetch);
        }
        if plan.fetched != 0 && twin.requests.is_full() {
            return Err(SliceTagState::StallTwin);
        }
        // The victim may be a dirty line of this slice.
        if !plan.is_present && self.is_memory_full() {
            return Err(SliceTagState::StallMemory);
        }
        Ok(Some(plan))
    }

    fn serve_copy(&mut self, plan: CopyPlan, now: Cycle, edge: u64) -> SliceTagState {
        let CopyPlan {
            way,
            is_present,
            merged,
            fetched,
        } = plan;
        let mut packet = self.ports.requests.take(now);
        packet.note(Stage::L2, now);
        match is_present {
            true => self.state.lines.touch(way),
            false => self.replace(way, packet.line_number(), true),
        }
        let missing = merged | fetched;
        let served = packet.sectors & !missing;
        let state = &mut self.state;
        state.stats.tag_cycles += 1;
        state.stats.count_request(&packet, is_present, merged, fetched);
        copy_sectors(state.lines.bytes(way), &mut packet.bytes, served);
        self.occupy_data(edge, self.data_cycles(served));
        // A fill clears the flag if the home missed.
        packet.l2_hit = true;
        if missing == 0 {
            // The data have not crossed: latency reports count a near hit.
            packet.crossing = Crossing::Near;
            self.complete(packet, now, edge);
            return SliceTagState::Hit;
        }
        let (sm, is_timed) = (packet.sm, packet.is_timed);
        let State { lines, twin, pool, .. } = &mut self.state;
        let twin = twin.as_mut().expect("a slice with a twin");
        let line = packet.line;
        let slot = twin.mshr.park(packet, missing);
        let entry = lines.fetch(way).unwrap_or_else(|| twin.mshr.allocate());
        if fetched != 0 {
            lines.set_fetch(way, Some(entry));
            twin.mshr.add_sectors(entry, fetched);
            // A line with a fetch in flight keeps its way, so the way is the tag.
            let mut fetch = pool.take(PacketKind::Load, line, fetched, way as u32, is_timed);
            // By the SM the home finds the pipe of the response: the one to the twin.
            (fetch.sm, fetch.crossing) = (sm, Crossing::Fetch);
            fetch.note(Stage::L2, now);
            twin.stats.copy_sectors_fetched += u64::from(n_sectors(fetched));
            twin.requests.push(fetch, edge);
        }
        twin.mshr.add_target(entry, missing, slot);
        SliceTagState::Miss
    }

    /// Passes a request on to the home. No copy of its sectors stays.
    fn pass_on(&mut self, now: Cycle, edge: u64) -> SliceTagState {
        let twin = self.state.twin.as_ref().expect("a slice with a twin");
        if twin.requests.is_full() {
            return SliceTagState::StallTwin;
        }
        let mut packet = self.ports.requests.take(now);
        packet.note(Stage::L2, now);
        // For loads too: the next load of these sectors must reach the home behind this request.
        self.drop_copy(packet.line_number(), packet.sectors);
        let state = &mut self.state;
        state.stats.tag_cycles += 1;
        let twin = state.twin.as_mut().expect("a slice with a twin");
        twin.stats.requests_passed += 1;
        twin.requests.push(packet, edge);
        SliceTagState::Pass
    }

    /// Fills sectors of a copy, and serves the loads that wait for them.
    fn fill_copy(&mut self, fill: &Packet, now: Cycle, edge: u64) {
        let way = fill.tag as usize;
        let State { lines, .. } = &mut self.state;
        let entry = lines.fetch(way);
        let entry = entry.expect("a line with a fetch in flight is pinned");
        // Stale sectors too: their targets read them from the line, and `drop_stale` removes them below.
        lines.merge(way, fill.sectors, &fill.bytes);
        for sector in each_sector(fill.sectors) {
            loop {
                let State { lines, twin, .. } = &mut self.state;
                let mshr = &mut twin.as_mut().expect("a slice with a twin").mshr;
                let Some(slot) = mshr.next_target(entry, sector) else {
                    break;
                };
                let packet = mshr.packet(slot);
                copy_sectors(lines.bytes(way), &mut packet.bytes, 1 << sector);
                packet.l2_hit &= fill.l2_hit;
                if let Some(mut packet) = mshr.deliver(slot, sector) {
                    packet.inherit_stamps(fill, Stage::L2, &[Stage::Hbm]);
                    self.complete(packet, now, edge);
                }
            }
        }
        self.occupy_data(edge, self.data_cycles(fill.sectors));
        let State { lines, twin, .. } = &mut self.state;
        let mshr = &mut twin.as_mut().expect("a slice with a twin").mshr;
        if mshr.remove_sectors(entry, fill.sectors) {
            lines.set_fetch(way, None);
        }
        lines.drop_stale(way, fill.sectors);
    }

    /// Sectors of a request that must be recalled first: the twin may have a copy.
    #[inline]
    pub(super) fn to_recall(&self, packet: &Packet) -> u8 {
        match &self.state.twin {
            Some(twin) if packet.crossing == Crossing::Near && packet.n_changed() != 0 => {
                twin.directory.sectors(packet.line_number()) & packet.sectors
            }
            _ => 0,
        }
    }

    /// Sends a recall of sectors of the line in `way`. The caller has marked them as in flight.
    pub(super) fn send_recall(&mut self, way: usize, sectors: u8, edge: u64) {
        let State { lines, twin, pool, .. } = &mut self.state;
        let twin = twin.as_mut().expect("a slice with a twin");
        let line = lines.line(way).expect("a line with sectors in flight is pinned");
        // The answer returns with the way as its tag.
        let mut recall = pool.take(PacketKind::Load, address(line), sectors, way as u32, false);
        recall.crossing = Crossing::Recall;
        lines.set_recalled(way, sectors, true);
        twin.stats.recalls += 1;
        twin.recalls += 1;
        twin.responses.push(recall, edge);
    }

    /// Takes the answer to a recall, and serves the packets that wait for it.
    fn end_recall(&mut self, answer: &Packet, now: Cycle, edge: u64) {
        let twin = self.state.twin.as_mut().expect("a slice with a twin");
        twin.recalls -= 1;
        // First: the store that waits must not find its copy in the directory.
        twin.directory.remove(answer.line_number(), answer.sectors);
        let way = answer.tag as usize;
        self.state.lines.set_recalled(way, answer.sectors, false);
        self.serve_targets(way, answer, now, edge);
    }

    /// True if the next edge can take a message of the twin, or has to show its tag stage idle.
    #[inline]
    pub(super) fn is_twin_busy(&self, now: Cycle) -> bool {
        let (Some(twin), Some(ports)) = (&self.state.twin, &self.ports.twin) else {
            return false;
        };
        let tag = twin.tag.state();
        tag != SliceTagState::IDLE && !tag.holds_request()
            || !tag.holds_request() && ports.requests.is_ready(now)
            || ports.responses.is_ready(now)
    }

    /// When a pipe to the twin has work.
    pub(super) fn twin_activity(&self, now: Cycle) -> Activity {
        let (Some(twin), Some(ports)) = (&self.state.twin, &self.ports.twin) else {
            return Activity::Idle;
        };
        let of = |pipe: &Pipe, port: &OutPort<Box<Packet>>| match pipe.due() {
            NEVER => Activity::Idle,
            // The packet waits for room in the link, which wakes the slice.
            due if due < self.state.next_edge && !port.has_room(now) => port.await_room(now),
            due => self.tick_at(due),
        };
        of(&twin.requests, &ports.to_requests).or(of(&twin.responses, &ports.to_responses))
    }
}
