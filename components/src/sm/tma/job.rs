//! A job: the bulk copy of one lane, split into pieces, and the packets of these pieces.

use warpwave_isa::exec::bulk::{Piece, TensorMap, split_run, swizzled};
use warpwave_isa::exec::special::cluster_rank;
use warpwave_isa::inst::{AtomOp, CacheOp, Ty};
use warpwave_isa::opcode::Opcode;

use crate::proto::bulk::{Bulk, BulkInst};
use crate::proto::cluster::RemoteByte;
use crate::proto::launch::Origin;
use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR};

/// The shared memory of a CTA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Destination {
    /// Number of its SM in the GPC. `None` for the SM of the engine.
    pub sm: Option<u16>,
    /// First byte of the CTA in the shared memory of the SM.
    base: u32,
    /// Rank and start number of the CTA. The own CTA has start number 0: the engine's accesses to it are not checked.
    rank: u8,
    start: u32,
}

/// A copy in flight.
pub(super) struct Job {
    /// True for a copy from shared to global memory.
    pub to_global: bool,
    /// Operation and type of a reduction.
    reduction: Option<(AtomOp, Ty)>,
    pieces: Vec<Piece>,
    /// Number of the next piece to send.
    next: usize,
    /// Number of pieces that are not complete.
    pub pieces_left: u32,
    /// The CTAs whose shared memory the copy accesses. A copy to global memory reads that of the first one.
    pub destinations: Vec<Destination>,
    /// The map of a tile.
    map: Option<TensorMap>,
    /// Offset of the mbarrier in the shared memory of each CTA.
    barrier: u32,
    /// Bytes that the mbarrier expects of this copy.
    bytes: u32,
    /// The instruction and the lane of the copy, for the trap of the mbarrier.
    origin: Origin,
    lane: u8,
}

impl Job {
    /// The copy of one lane of an instruction, with its tensor map for a tile. `sm` is the number of the SM in the GPC.
    pub(super) fn of(inst: &BulkInst, lane: usize, bulk: &Bulk, map: Option<TensorMap>, sm: u16) -> Self {
        let machine_inst = *inst.warp_inst.inst();
        let to_global = machine_inst.mods.high;
        let reduces = machine_inst.op == Opcode::Ublkred;
        let op = machine_inst.mods.atom;
        let reduction = map
            .filter(|_| reduces)
            .and_then(|map| Some((op, map.element.reduction(op)?)));
        // A packet has at most 32 lanes, one per element.
        let most = reduction.map_or(u32::MAX, |(_, ty)| 32 * u32::from(ty.bytes()));
        let mut pieces = Vec::new();
        let mut add = |piece: Piece| {
            // Bytes outside a tensor are never written.
            if !(to_global && piece.global.is_none()) {
                split(piece, most, &mut pieces);
            }
        };
        let bytes = match &map {
            Some(map) => {
                map.pieces(bulk.coordinates, bulk.offsets, bulk.shared, &mut add);
                map.tile_bytes()
            }
            None => {
                split_run(Some(bulk.global), bulk.shared, bulk.bytes, &mut add);
                bulk.bytes
            }
        };
        Job {
            to_global,
            reduction,
            pieces_left: pieces.len() as u32,
            pieces,
            next: 0,
            destinations: destinations(inst, bulk.ranks, sm),
            map,
            barrier: bulk.barrier,
            bytes,
            origin: inst.warp_inst.origin(),
            lane: lane as u8,
        }
    }

    pub(super) fn has_more(&self) -> bool {
        self.next < self.pieces.len()
    }

    /// True if the job has no piece to send and none in flight.
    pub(super) fn is_complete(&self) -> bool {
        self.pieces_left == 0 && !self.has_more()
    }

    /// True if the next piece is read from global memory.
    pub(super) fn reads_global_next(&self) -> bool {
        !self.to_global && self.pieces.get(self.next).is_some_and(|piece| piece.global.is_some())
    }

    /// Takes the next piece. Returns its number and the piece.
    pub(super) fn take(&mut self) -> (u32, Piece) {
        let piece = self.pieces[self.next];
        self.next += 1;
        (self.next as u32 - 1, piece)
    }

    /// Builds the load of a piece from global memory.
    pub(super) fn read_global(&self, packet: &mut Packet, piece: Piece) {
        packet.kind = PacketKind::Load;
        self.address_global(packet, piece);
    }

    /// Builds the load of a piece from shared memory.
    pub(super) fn read_shared(&self, packet: &mut Packet, piece: Piece) {
        packet.kind = PacketKind::Load;
        address_shared(packet, piece, self.destinations[0]);
    }

    /// Builds the store of a piece to the shared memory of a CTA. `from` is the line of global memory.
    pub(super) fn write_shared(&self, packet: &mut Packet, from: &[u8; LINE], n: u32, to: Destination) {
        let piece = self.pieces[n as usize];
        let first = piece.global.map_or(0, |at| at as usize % LINE);
        self.store_shared(packet, piece, to, |n| from[first + n]);
    }

    /// Builds the store of a piece outside the tensor.
    pub(super) fn write_fill(&self, packet: &mut Packet, piece: Piece, to: Destination) {
        // A tile begins at a multiple of its elements' size.
        let fill = |n: usize| self.map.map_or(0, |map| map.fill_byte(piece.shared + n as u32));
        self.store_shared(packet, piece, to, fill);
    }

    fn store_shared(&self, packet: &mut Packet, piece: Piece, to: Destination, byte: impl Fn(usize) -> u8) {
        packet.kind = PacketKind::Store;
        address_shared(packet, piece, to);
        packet.byte_mask = 0;
        for n in 0..piece.bytes as usize {
            let offset = self.shared_offset(piece, n);
            packet.bytes[offset] = byte(n);
            packet.byte_mask |= 1 << offset;
        }
        let touched = |sector: usize| (packet.byte_mask >> (sector * SECTOR)) as u32 != 0;
        // A swizzle moves the bytes of a piece within the line, so the sectors follow from the mask.
        packet.sectors = (0..LINE / SECTOR).fold(0, |mask, n| mask | u8::from(touched(n)) << n);
    }

    /// Turns the response of a shared load into the store or the reduction in global memory.
    pub(super) fn write_global(&self, packet: &mut Packet, n: u32) {
        let piece = self.pieces[n as usize];
        // A copy of the line: the packet is turned into the store in place.
        let from = packet.bytes;
        self.address_global(packet, piece);
        let first = piece.global.map_or(0, |at| at as usize % LINE);
        let byte = |n: usize| from[self.shared_offset(piece, n)];
        if let Some((op, ty)) = self.reduction {
            return reduce(packet, (op, ty), first, piece.bytes as usize, byte);
        }
        packet.kind = PacketKind::Store;
        packet.byte_mask = 0;
        for n in 0..piece.bytes as usize {
            packet.bytes[first + n] = byte(n);
            packet.byte_mask |= 1 << (first + n);
        }
    }

    /// Builds the arrival at the mbarrier of a CTA. It subtracts the bytes of the copy from the expected bytes.
    pub(super) fn arrive(&self, packet: &mut Packet, to: Destination) {
        packet.kind = PacketKind::Reduction;
        address_byte(packet, to, self.barrier);
        // The line begins at the mbarrier. A response without a sector is a refusal.
        packet.sectors = 1;
        let lanes = packet.atomic.get_or_insert_with(Box::<AtomicLanes>::default);
        // Completes bytes, not an arrival of a thread: the pending count stays.
        lanes.op = AtomOp::Arrive;
        lanes.ty = Ty::U64;
        lanes.origin = self.origin;
        lanes.n = 1;
        lanes.lanes[0] = AtomicLane {
            lane: self.lane,
            // The line begins at the mbarrier, at any byte.
            offset: 0,
            // The upper half of the mbarrier is its transaction count.
            value: u128::from(self.bytes.wrapping_neg()) << 32,
            compare: 0,
        };
    }

    /// Sets line and sectors to those of a piece in global memory.
    fn address_global(&self, packet: &mut Packet, piece: Piece) {
        let address = piece.global.unwrap_or(0);
        let first = address as usize % LINE;
        packet.line = address - first as u64;
        packet.sectors =
            (first / SECTOR..=(first + piece.bytes as usize - 1) / SECTOR).fold(0, |mask, n| mask | 1 << n);
        // Bypasses the L1.
        packet.cache = CacheOp::Global;
        packet.start_stamps(true);
    }

    /// Offset of byte `n` of a piece in its line of shared memory.
    fn shared_offset(&self, piece: Piece, n: usize) -> usize {
        let swizzle = self.map.map_or(0, |map| map.swizzle);
        swizzled(piece.shared + n as u32, swizzle) as usize % LINE
    }
}

/// Splits a piece into pieces of at most `most` bytes.
fn split(piece: Piece, most: u32, pieces: &mut Vec<Piece>) {
    let mut done = 0;
    while done < piece.bytes {
        let bytes = (piece.bytes - done).min(most);
        pieces.push(Piece {
            global: piece.global.map(|at| at + u64::from(done)),
            shared: piece.shared + done,
            bytes,
        });
        done += bytes;
    }
}

/// The CTAs with these ranks. The own CTA is there without a cluster too.
fn destinations(inst: &BulkInst, ranks: u16, sm: u16) -> Vec<Destination> {
    let warp_inst = &inst.warp_inst;
    let own = cluster_rank(warp_inst.block, warp_inst.grid.cluster);
    let place = |rank: u32| {
        // Without a placement there is no cluster, and the own CTA is the only destination.
        let placed = inst.cluster.as_ref().and_then(|cluster| cluster.get(rank as usize));
        match placed.filter(|_| rank != own) {
            None => Destination {
                sm: None,
                base: warp_inst.shared_base,
                rank: rank as u8,
                start: 0,
            },
            Some(cta) => Destination {
                sm: (cta.sm != sm).then_some(cta.sm),
                base: u32::from(cta.slot) * inst.cta_bytes,
                rank: rank as u8,
                start: cta.start,
            },
        }
    };
    (0..u16::BITS)
        .filter(|rank| ranks >> rank & 1 == 1)
        .map(place)
        .collect()
}

/// Builds the reduction of the elements from byte `first` of a line on. `byte` gives their operands.
fn reduce(packet: &mut Packet, (op, ty): (AtomOp, Ty), first: usize, bytes: usize, byte: impl Fn(usize) -> u8) {
    packet.kind = PacketKind::Reduction;
    let lanes = packet.atomic.get_or_insert_with(Box::<AtomicLanes>::default);
    let size = usize::from(ty.bytes());
    (lanes.op, lanes.ty, lanes.n) = (op, ty, bytes / size);
    for (n, lane) in lanes.lanes[..bytes / size].iter_mut().enumerate() {
        let operand = (0..size)
            // Little-endian: the last byte is the most significant one.
            .rev()
            .fold(0, |value, at| value << 8 | u128::from(byte(n * size + at)));
        *lane = AtomicLane {
            lane: n as u8,
            offset: (first + n * size) as u8,
            value: operand,
            compare: 0,
        };
    }
}

/// Sets the line to that of a piece in the shared memory of a CTA.
fn address_shared(packet: &mut Packet, piece: Piece, to: Destination) {
    // Within its CTA, a piece lies in one aligned line: the swizzle works on such lines.
    address_byte(packet, to, piece.shared & !(LINE as u32 - 1));
}

/// Sets the line to the one from byte `offset` of a CTA on, and the receiver.
fn address_byte(packet: &mut Packet, to: Destination, offset: u32) {
    // Shared memory does not read the SM number. The network reads `slice`.
    packet.slice = to.sm.unwrap_or(0);
    let byte = RemoteByte {
        sm: packet.slice,
        rank: to.rank,
        start: to.start,
        byte: to.base + offset,
    };
    packet.line = byte.address();
}
