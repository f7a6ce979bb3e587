//! The send stage: builds the packets of the accepted access. They go to the L1, or to other SMs of the cluster.
//!
//! The packets that the tag banks of the L1 look up together leave in one cycle. The last packet of a group waits for the last pass of the
//! data banks. So a group takes max(passes of the data banks, lines on the fullest tag bank) cycles. Packets to other SMs leave one per
//! cycle.
//!
//! | Group of packets | Passes of the data banks |
//! |---|---|
//! | load, store | the bank conflicts of each request, as in shared memory ([`data_banks`]) |
//! | atomic | its rounds ([`atomic`]) |
//! | texels | one per line (assumed) |
//! | words in local memory, prefetch | one |

use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::CacheOp;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::Opcode;

use super::{ClusterPorts, INVALIDATION, Lsu};
use crate::proto::addresses::WarpAddresses;
use crate::proto::cluster::{RemoteByte, is_remote};
use crate::proto::data_banks;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{LINE, Packet, PacketKind, Purpose, Stage};
use crate::proto::warp::WarpInst;
use crate::sm::lsu::atomic;
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
    purpose: Purpose,
    cache: CacheOp,
    /// The group being built, and the number of groups.
    group: u32,
    groups: u32,
    /// The group, coalesced.
    access: CoalescedAccess,
    /// The lines without a packet, bit i for line i.
    remaining: u32,
    /// First cycle in which the group's last packet may be sent: that of the last pass of the data banks.
    last_pass: Cycle,
    /// True if loads through the L1 move whole lines.
    loads_lines: bool,
}

impl Default for PacketBuilder {
    /// No access.
    fn default() -> Self {
        PacketBuilder {
            is_valid: false,
            entry: 0,
            contents: PacketContents::Prefetch,
            kind: PacketKind::Load,
            purpose: Purpose::Other,
            cache: CacheOp::All,
            group: 0,
            groups: 0,
            access: CoalescedAccess::default(),
            remaining: 0,
            last_pass: Cycle::ZERO,
            loads_lines: false,
        }
    }
}

impl PacketBuilder {
    /// A builder whose loads through the L1 move units of `load_unit` bytes.
    pub(super) fn new(load_unit: u32) -> Self {
        PacketBuilder {
            loads_lines: load_unit as usize == LINE,
            ..PacketBuilder::default()
        }
    }

    /// Starts with the first group of an access. Its first packets leave in the next cycle.
    fn start(&mut self, warp_inst: &WarpInst, lanes: LaneMask, now: Cycle) {
        self.is_valid = true;
        (self.kind, self.contents) = data::packets_of(warp_inst);
        self.purpose = data::purpose(warp_inst);
        self.cache = warp_inst.inst().mods.cache;
        (self.group, self.groups) = (0, data::groups(warp_inst));
        self.access.clear();
        coalesce_first(warp_inst, lanes, &mut self.access);
        self.widen_loads();
        self.start_group(warp_inst, lanes, now);
    }

    /// Extends the loads of the group to whole lines, on a part that moves no less.
    #[inline]
    fn widen_loads(&mut self) {
        let through_l1 = self.kind == PacketKind::Load && !matches!(self.cache, CacheOp::Global | CacheOp::Volatile);
        if self.loads_lines && through_l1 {
            self.access.extend_to_lines();
        }
    }

    fn start_group(&mut self, warp_inst: &WarpInst, lanes: LaneMask, now: Cycle) {
        let n = self.access.lines().len() as u32;
        self.remaining = LaneMask::first(n).0;
        let passes = match self.contents {
            PacketContents::AtomicLanes => atomic::passes(warp_inst, lanes, &self.access),
            // A line has each bank once, so requests of one line have no conflict.
            // Before the kinds below: the common case needs no search for conflicts.
            _ if n <= self.access.requests => n,
            PacketContents::Registers { access, .. } => data_banks::passes(&warp_inst.addresses, lanes, access.total()),
            PacketContents::Texels => n,
            PacketContents::LocalWords | PacketContents::Prefetch => 1,
        };
        // The last packet carries the last pass, so the next access waits for it in the coalescer.
        self.last_pass = now + u64::from(passes);
    }

    /// Continues with the next group. Returns false if there is none.
    fn start_next_group(&mut self, warp_inst: Option<&WarpInst>, now: Cycle) -> bool {
        self.group += 1;
        let Some(warp_inst) = warp_inst.filter(|_| self.group < self.groups) else {
            return false;
        };
        self.access.clear();
        coalesce_next(warp_inst, self.group, &mut self.access);
        self.widen_loads();
        self.start_group(warp_inst, warp_inst.lanes, now);
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
    // A lane that does not run may hold any address.
    let addresses: [u64; WARP_SIZE] = std::array::from_fn(|lane| warp_inst.addresses.get(lane).wrapping_add(offset));
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
        builder.start(&warp_inst, lanes, now);
        state.stats.count_access(&warp_inst, &builder.access, lanes);
        let epoch = state.fences.begin_access();
        builder.entry = state.pending.add(Pending::new(warp_inst, builder.contents, epoch));
        // No packet, so no response would complete the access.
        if lanes.is_empty() {
            self.next_group(now);
        }
    }

    /// Sends the packets of one cycle, if the L1 has room.
    pub(super) fn send(&mut self, now: Cycle) {
        if !self.has_packet_to_send() || !self.ports.l1.has_room(now) {
            return;
        }
        match self.state.invalidation.take() {
            // Before any packet: the link is in order, so the packets of the new grid find an empty cache.
            Some(bytes) => self.send_invalidation(bytes, now),
            None => self.send_packets(now),
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

    /// Sends the packets whose lines are looked up together. After the last one, continues with the next group.
    fn send_packets(&mut self, now: Cycle) {
        self.state.lookups.clear();
        for n in ones(self.state.builder.remaining) {
            let (builder, lookups) = (&self.state.builder, &mut self.state.lookups);
            // One bit set: this is the only packet left.
            let is_last = builder.remaining.is_power_of_two();
            if is_last && now < builder.last_pass || !self.ports.l1.has_room(now) {
                return;
            }
            let line = builder.access.lines()[n].line;
            if is_remote(line) {
                self.send_remote(n, now);
                break;
            }
            if lookups.admit(line) {
                let packet = self.build_packet(n, now);
                self.ports.l1.send(now, packet);
            }
        }
        // A group without lines gets here too: all its texels are outside the image.
        if self.state.builder.remaining == 0 {
            self.next_group(now);
        }
    }

    /// Sends packet `n` to another SM, if there is room.
    fn send_remote(&mut self, n: usize, now: Cycle) {
        let has_room = |ports: &ClusterPorts| ports.request.has_room(now);
        if !self.ports.cluster.as_ref().is_some_and(has_room) {
            return;
        }
        self.state.pending.note_remote(self.state.builder.entry);
        let mut packet = self.build_packet(n, now);
        let to = RemoteByte::of(packet.line).expect("the line is in another SM");
        // The outputs of the GPC's network have the numbers of its SMs.
        (packet.slice, packet.sm) = (to.sm, self.config.sm_in_gpc);
        // Counted, so that `receive` asks the link only while a response can come.
        self.state.remote_packets += 1;
        let header = Header::of(&packet, Direction::Request);
        let ports = self.ports.cluster.as_mut().expect("it has room");
        ports.request.send_sideband(now, header.sideband(), packet);
    }

    /// Builds the packet of line `n` of the group.
    fn build_packet(&mut self, n: usize, now: Cycle) -> Box<Packet> {
        let state = &mut self.state;
        let builder = &mut state.builder;
        let access = builder.access.lines()[n];
        let pending = state.pending.get(builder.entry);
        // Counted when it is built: the response comes at least one cycle later.
        pending.outstanding += 1;
        pending.packet_lanes[n] = access.lanes;
        // The pool does not clear packets: every field that is read later is set here.
        let mut packet = state.pool.any();
        packet.sm = self.config.sm;
        (packet.line, packet.sectors) = (access.line, access.sectors);
        packet.tag = tag(builder.entry, n);
        (packet.kind, packet.cache) = (builder.kind, builder.cache);
        packet.purpose = builder.purpose;
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
        packet.words = builder.contents.words(access.lanes, access.sectors);
        builder.remaining &= !(1 << n);
        state.stats.packets += 1;
        state.last_tick.sent = Some((access.line, access.sectors));
        packet
    }

    /// Starts the next group of packets. Ends the building after the last group.
    fn next_group(&mut self, now: Cycle) {
        let state = &mut self.state;
        let builder = &mut state.builder;
        let entry = builder.entry;
        let pending = state.pending.get(entry);
        if builder.start_next_group(pending.warp_inst.as_deref(), now) {
            if let Some(warp_inst) = pending.warp_inst.as_deref() {
                state.stats.count_later_group(warp_inst, &builder.access);
            }
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
