//! A job: the bulk copy of one lane, split into pieces, and the packets of these pieces.

use warpwave_isa::exec::bulk::{Piece, split_run, swizzled};
use warpwave_isa::inst::{AtomOp, CacheOp, Ty};

use crate::proto::bulk;
use crate::proto::cluster::remote_address;
use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR};
use crate::proto::warp::WarpInst;

/// A copy in flight.
pub(super) struct Job {
    /// True for a copy from shared to global memory.
    pub to_global: bool,
    pieces: Vec<Piece>,
    /// Number of the next piece to send.
    next: usize,
    /// Number of pieces that are not complete.
    pub pieces_left: u32,
    /// First byte of the CTA's shared memory in the shared memory of the SM.
    base: u32,
    swizzle: u8,
    /// Offset of the mbarrier in the CTA's shared memory.
    barrier: u32,
    /// Bytes that the mbarrier expects of this copy.
    bytes: u32,
}

impl Job {
    /// The copy of a lane.
    pub(super) fn of(warp_inst: &WarpInst, lane: usize) -> Self {
        let bulk = bulk::of(warp_inst, lane);
        let to_global = warp_inst.inst().mods.high;
        let mut pieces = Vec::new();
        let mut add = |piece: Piece| {
            // Bytes outside a tensor are never written.
            if !(to_global && piece.global.is_none()) {
                pieces.push(piece);
            }
        };
        let (bytes, swizzle) = match bulk::map(&warp_inst.grid, bulk.global).filter(|_| warp_inst.inst().mods.count > 0)
        {
            Some(map) => {
                map.pieces(bulk.extent.map(|at| at as i32), bulk.shared, &mut add);
                (map.tile_bytes(), map.swizzle)
            }
            None => {
                split_run(Some(bulk.global), bulk.shared, bulk.extent[0], &mut add);
                (bulk.extent[0], 0)
            }
        };
        Job {
            to_global,
            pieces_left: pieces.len() as u32,
            pieces,
            next: 0,
            base: warp_inst.shared_base,
            swizzle,
            barrier: bulk.barrier,
            bytes,
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
        self.address_shared(packet, piece);
    }

    /// Turns the response of a global load into the store to shared memory.
    pub(super) fn write_shared(&self, packet: &mut Packet, n: u32) {
        let piece = self.pieces[n as usize];
        let from = packet.bytes;
        let first = piece.global.map_or(0, |at| at as usize % LINE);
        self.store_shared(packet, piece, |n| from[first + n]);
    }

    /// Builds the store of zeros for a piece outside the tensor.
    pub(super) fn write_zeros(&self, packet: &mut Packet, piece: Piece) {
        self.store_shared(packet, piece, |_| 0);
    }

    fn store_shared(&self, packet: &mut Packet, piece: Piece, byte: impl Fn(usize) -> u8) {
        packet.kind = PacketKind::Store;
        self.address_shared(packet, piece);
        packet.byte_mask = 0;
        for n in 0..piece.bytes as usize {
            let offset = self.shared_offset(piece, n);
            packet.bytes[offset] = byte(n);
            packet.byte_mask |= 1 << offset;
        }
    }

    /// Turns the response of a shared load into the store to global memory.
    pub(super) fn write_global(&self, packet: &mut Packet, n: u32) {
        let piece = self.pieces[n as usize];
        let from = packet.bytes;
        packet.kind = PacketKind::Store;
        self.address_global(packet, piece);
        let first = piece.global.map_or(0, |at| at as usize % LINE);
        packet.byte_mask = 0;
        for n in 0..piece.bytes as usize {
            packet.bytes[first + n] = from[self.shared_offset(piece, n)];
            packet.byte_mask |= 1 << (first + n);
        }
    }

    /// Builds the arrival at the mbarrier. It subtracts the bytes of the copy from the expected bytes.
    pub(super) fn arrive(&self, packet: &mut Packet) {
        packet.kind = PacketKind::Reduction;
        packet.line = remote_address(0, u64::from(self.base + self.barrier));
        let lanes = packet.atomic.get_or_insert_with(Box::<AtomicLanes>::default);
        lanes.op = AtomOp::Arrive;
        lanes.ty = Ty::U64;
        lanes.n = 1;
        lanes.lanes[0] = AtomicLane {
            lane: 0,
            // The line begins at the mbarrier, at any byte.
            offset: 0,
            // The upper half of the mbarrier is its transaction count.
            value: u64::from(self.bytes.wrapping_neg()) << 32,
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

    /// Sets the line to that of a piece in shared memory.
    fn address_shared(&self, packet: &mut Packet, piece: Piece) {
        let line = piece.shared & !(LINE as u32 - 1);
        // Shared memory does not read the SM number.
        packet.line = remote_address(0, u64::from(self.base + line));
    }

    /// Offset of byte `n` of a piece in its line of shared memory.
    fn shared_offset(&self, piece: Piece, n: usize) -> usize {
        swizzled(piece.shared + n as u32, self.swizzle) as usize % LINE
    }
}
