//! One lane's bulk copy: its pieces, and what packets carry of them.

use warpwave_isa::exec::bulk::{Piece, run, swizzled};
use warpwave_isa::inst::{AtomOp, CacheOp, Ty};

use crate::proto::bulk;
use crate::proto::cluster::remote_address;
use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR};
use crate::proto::warp::WarpInst;

/// A copy under way.
pub(super) struct Job {
    pub to_global: bool,
    pieces: Vec<Piece>,
    next: usize,
    /// Pieces that have not come through.
    pub left: u32,
    /// First byte of the CTA's shared memory.
    base: u32,
    swizzle: u8,
    barrier: u32,
    bytes: u32,
}

impl Job {
    /// The copy of a lane.
    pub(super) fn of(warp_inst: &WarpInst, lane: usize) -> Self {
        let bulk = bulk::of(warp_inst, lane);
        let to_global = warp_inst.inst().mods.high;
        let mut pieces = Vec::new();
        let mut add = |piece: Piece| {
            // Nothing is written outside a tensor.
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
                run(Some(bulk.global), bulk.shared, bulk.extent[0], &mut add);
                (bulk.extent[0], 0)
            }
        };
        Job {
            to_global,
            left: pieces.len() as u32,
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

    /// Whether the next piece begins its way in global memory.
    pub(super) fn next_is_global(&self) -> bool {
        !self.to_global && self.pieces.get(self.next).is_some_and(|piece| piece.global.is_some())
    }

    /// The next piece, and its place.
    pub(super) fn take(&mut self) -> (u32, Piece) {
        let piece = self.pieces[self.next];
        self.next += 1;
        (self.next as u32 - 1, piece)
    }

    pub(super) fn read_global(&self, packet: &mut Packet, piece: Piece) {
        packet.kind = PacketKind::Load;
        self.at_global(packet, piece);
    }

    pub(super) fn read_shared(&self, packet: &mut Packet, piece: Piece) {
        packet.kind = PacketKind::Load;
        self.at_shared(packet, piece);
    }

    /// Bytes that came from global memory go to their places in shared memory.
    pub(super) fn write_shared(&self, packet: &mut Packet, n: u32) {
        let piece = self.pieces[n as usize];
        let from = packet.bytes;
        let first = piece.global.map_or(0, |at| at as usize % LINE);
        self.store_shared(packet, piece, |n| from[first + n]);
    }

    pub(super) fn write_zeros(&self, packet: &mut Packet, piece: Piece) {
        self.store_shared(packet, piece, |_| 0);
    }

    fn store_shared(&self, packet: &mut Packet, piece: Piece, byte: impl Fn(usize) -> u8) {
        packet.kind = PacketKind::Store;
        self.at_shared(packet, piece);
        packet.byte_mask = 0;
        for n in 0..piece.bytes as usize {
            let place = self.place(piece, n);
            packet.bytes[place] = byte(n);
            packet.byte_mask |= 1 << place;
        }
    }

    /// Bytes that came from shared memory go to their places in global memory.
    pub(super) fn write_global(&self, packet: &mut Packet, n: u32) {
        let piece = self.pieces[n as usize];
        let from = packet.bytes;
        packet.kind = PacketKind::Store;
        self.at_global(packet, piece);
        let first = piece.global.map_or(0, |at| at as usize % LINE);
        packet.byte_mask = 0;
        for n in 0..piece.bytes as usize {
            packet.bytes[first + n] = from[self.place(piece, n)];
            packet.byte_mask |= 1 << (first + n);
        }
    }

    /// The copy's bytes have come: the mbarrier waits for so many less.
    pub(super) fn arrive(&self, packet: &mut Packet) {
        packet.kind = PacketKind::Reduction;
        packet.line = remote_address(0, u64::from(self.base + self.barrier));
        let lanes = packet.atomic.get_or_insert_with(Box::<AtomicLanes>::default);
        lanes.op = AtomOp::Arrive;
        lanes.ty = Ty::U64;
        lanes.n = 1;
        lanes.lanes[0] = AtomicLane {
            lane: 0,
            offset: 0,
            value: u64::from(self.bytes.wrapping_neg()) << 32,
            compare: 0,
        };
    }

    fn at_global(&self, packet: &mut Packet, piece: Piece) {
        let at = piece.global.unwrap_or(0);
        let first = at as usize % LINE;
        packet.line = at - first as u64;
        packet.sectors =
            (first / SECTOR..=(first + piece.bytes as usize - 1) / SECTOR).fold(0, |mask, n| mask | 1 << n);
        packet.cache = CacheOp::Global;
        packet.set_out(true);
    }

    /// The line of the CTA's shared memory that a piece is in.
    fn at_shared(&self, packet: &mut Packet, piece: Piece) {
        let line = piece.shared & !(LINE as u32 - 1);
        packet.line = remote_address(0, u64::from(self.base + line));
    }

    /// Where byte `n` of a piece is in its line of shared memory.
    fn place(&self, piece: Piece, n: usize) -> usize {
        swizzled(piece.shared + n as u32, self.swizzle) as usize % LINE
    }
}
