//! The send stage: builds the packets of the accepted access, one per cycle. They go to the L1, or to other SMs of the cluster.

use warpwave_hw::time::Cycle;
use warpwave_isa::inst::CacheOp;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::Opcode;

use super::{INVALIDATION, Lsu};
use crate::proto::addresses::WarpAddresses;
use crate::proto::cluster::remote;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{LINE, PacketKind, Stage};
use crate::proto::warp::WarpInst;
use crate::sm::lsu::coalescer::{CoalescedAccess, coalesce};
use crate::sm::lsu::data::{self, PacketContents};
use crate::sm::lsu::pending::{Pending, tag};
use crate::sm::lsu::texture;

/// The access whose packets are being built.
pub(super) struct PacketBuilder {
    /// True if there is an access. If not, the other fields are undefined.
    pub(super) is_valid: bool,
    /// Its entry in the pending request table.
    entry: u32,
    contents: PacketContents,
    kind: PacketKind,
    cache: CacheOp,
    /// The group being built, and the number of groups.
    group: u32,
    groups: u32,
    /// The group, coalesced.
    access: CoalescedAccess,
    /// Number of lines with a packet.
    sent: usize,
}

impl Default for PacketBuilder {
    /// No access.
    fn default() -> Self {
        PacketBuilder {
            is_valid: false,
            entry: 0,
            contents: PacketContents::Prefetch,
            kind: PacketKind::Load,
            cache: CacheOp::All,
            group: 0,
            groups: 0,
            access: CoalescedAccess::default(),
            sent: 0,
        }
    }
}

impl PacketBuilder {
    /// Starts with the first group of an access.
    fn start(&mut self, warp_inst: &WarpInst, lanes: LaneMask) {
        self.is_valid = true;
        (self.kind, self.contents) = data::packets_of(warp_inst);
        self.cache = warp_inst.inst().mods.cache;
        (self.group, self.groups, self.sent) = (0, data::groups(warp_inst), 0);
        self.access.clear();
        coalesce_first(warp_inst, lanes, &mut self.access);
    }

    /// Continues with the next group. Returns false if there is none.
    fn start_next_group(&mut self, warp_inst: Option<&WarpInst>) -> bool {
        self.group += 1;
        let Some(warp_inst) = warp_inst.filter(|_| self.group < self.groups) else {
            return false;
        };
        self.sent = 0;
        self.access.clear();
        coalesce_next(warp_inst, self.group, &mut self.access);
        true
    }
}

/// Coalesces the first group: the first texel of a fetch, or an access with the first word of its local lanes.
fn coalesce_first(warp_inst: &WarpInst, lanes: LaneMask, access: &mut CoalescedAccess) {
    let inst = warp_inst.inst();
    if matches!(inst.op, Opcode::Tex | Opcode::Suld) {
        return texture::coalesce_texel(warp_inst, 0, access);
    }
    // A prefetch has an address and no size.
    let bytes = inst.mods.access.total().max(1);
    let local = warp_inst.local_lanes;
    coalesce(&warp_inst.addresses, lanes & !local, bytes, access);
    if !local.is_empty() {
        // Each further word of a local lane is on another line, in a later group.
        coalesce(&warp_inst.addresses, local, bytes.min(4), access);
    }
}

/// Coalesces a later group: another texel of a fetch, or another word of the local lanes.
#[inline(never)]
fn coalesce_next(warp_inst: &WarpInst, group: u32, access: &mut CoalescedAccess) {
    if warp_inst.inst().op == Opcode::Tex {
        return texture::coalesce_texel(warp_inst, group as usize, access);
    }
    let offset = u64::from(group) * LINE as u64;
    let addresses: [u64; WARP_SIZE] = std::array::from_fn(|lane| warp_inst.addresses.get(lane) + offset);
    coalesce(&WarpAddresses::per_lane(addresses), warp_inst.local_lanes, 4, access);
}

impl Lsu {
    /// True if there is a packet to send, of an access or for an invalidation.
    #[inline]
    pub(super) fn has_packet_to_send(&self) -> bool {
        self.state.builder.is_valid || self.state.invalidation.is_some()
    }

    /// Enters an access into the pending request table, and starts to build its packets.
    pub(super) fn start_access(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        // L1s are not coherent: the lines of an earlier grid may be old.
        if self.state.grid != Some(warp_inst.grid.id) {
            self.invalidate_l1(&warp_inst);
        }
        let state = &mut self.state;
        let builder = &mut state.builder;
        let lanes = data::device_lanes(&warp_inst);
        builder.start(&warp_inst, lanes);
        state.stats.count_access(warp_inst.inst(), &builder.access, lanes);
        let epoch = state.fences.begin_access();
        builder.entry = state.pending.add(Pending::new(warp_inst, builder.contents, epoch));
        // No packet, so no response would complete the access.
        if lanes.is_empty() {
            self.next_group(now);
        }
    }

    /// Sends one packet, if the L1 has room.
    pub(super) fn send(&mut self, now: Cycle) {
        if !self.has_packet_to_send() || !self.ports.l1.has_room(now) {
            return;
        }
        match self.state.invalidation.take() {
            Some(bytes) => self.send_invalidation(bytes, now),
            None => self.send_next_packet(now),
        }
    }

    fn send_invalidation(&mut self, bytes: u32, now: Cycle) {
        let mut packet = self.state.pool.any();
        packet.sm = self.config.sm;
        (packet.line, packet.sectors) = (0, 0);
        packet.kind = PacketKind::Invalidate { bytes };
        packet.tag = INVALIDATION;
        self.ports.l1.send(now, packet);
    }

    /// Sends the packet of the next line. After the last one, continues with the next group.
    fn send_next_packet(&mut self, now: Cycle) {
        let state = &mut self.state;
        let builder = &mut state.builder;
        // Only a group without lines gets here: all its texels are outside the image.
        let Some(&access) = builder.access.lines().get(builder.sent) else {
            return self.next_group(now);
        };
        let remote = remote(access.line);
        let request = self.ports.cluster.as_mut().map(|ports| &mut ports.request);
        if remote.is_some() && !request.as_ref().is_some_and(|request| request.has_room(now)) {
            return;
        }
        let pending = state.pending.get(builder.entry);
        pending.outstanding += 1;
        pending.packet_lanes[builder.sent] = access.lanes;
        // The pool does not clear packets: every field that is read later is set here.
        let mut packet = state.pool.any();
        packet.sm = self.config.sm;
        (packet.line, packet.sectors) = (access.line, access.sectors);
        packet.tag = tag(builder.entry, builder.sent);
        (packet.kind, packet.cache) = (builder.kind, builder.cache);
        packet.start_stamps(self.log.is_on());
        packet.note(Stage::Issue, pending.issued);
        packet.note(Stage::Lsu, now);
        (packet.l1_hit, packet.l2_hit) = (false, false);
        let warp_inst = pending
            .warp_inst
            .as_ref()
            .expect("an instruction stays until its packets are sent");
        builder
            .contents
            .fill(&mut packet, warp_inst, access.lanes, builder.group);
        builder.sent += 1;
        let is_last = builder.sent == builder.access.lines().len();
        state.stats.packets += 1;
        state.last_tick.sent = Some((access.line, access.sectors));
        match (remote, request) {
            (Some((sm, _)), Some(request)) => {
                // The outputs of the GPC's network have the numbers of its SMs.
                (packet.slice, packet.sm) = (sm, self.config.sm_in_gpc);
                state.remote_packets += 1;
                let header = Header::of(&packet, Direction::Request);
                request.send_sideband(now, header.sideband(), packet);
            }
            _ => self.ports.l1.send(now, packet),
        }
        if is_last {
            self.next_group(now);
        }
    }

    /// Starts the next group of packets. Ends the building after the last group.
    fn next_group(&mut self, now: Cycle) {
        let state = &mut self.state;
        let builder = &mut state.builder;
        let entry = builder.entry;
        let pending = state.pending.get(entry);
        if builder.start_next_group(pending.warp_inst.as_deref()) {
            return;
        }
        if pending.is_posted {
            // The packets carry the data, so the instruction is complete for its warp.
            state.complete.extend(pending.warp_inst.take());
        }
        builder.is_valid = false;
        // All responses may have arrived before the building ends.
        if pending.complete_one() {
            self.complete_access(entry, now);
        }
    }
}
