//! The fetch of a tensor map from global memory. A map is aligned to 64 bytes, so it has one or two lines.

use warpwave_isa::exec::bulk::{MAP_BYTES, TensorMap};
use warpwave_isa::inst::CacheOp;

use crate::proto::mem::{LINE, Packet, PacketKind, SECTOR};

/// A tensor map on its way.
pub(super) struct MapFetch {
    /// Its first byte.
    address: u64,
    bytes: [u8; MAP_BYTES],
    /// Lines of the map, lines requested, and lines that have arrived.
    lines: u32,
    requested: u32,
    arrived: u32,
}

impl MapFetch {
    /// The fetch of the map at an address, before its first request.
    pub(super) fn new(address: u64) -> Self {
        MapFetch {
            address,
            bytes: [0; MAP_BYTES],
            // 128 bytes at a multiple of 64: one line, or the halves of two.
            lines: if address.is_multiple_of(LINE as u64) { 1 } else { 2 },
            requested: 0,
            arrived: 0,
        }
    }

    /// True if a line is not requested yet.
    pub(super) fn has_request(&self) -> bool {
        self.requested < self.lines
    }

    /// Builds the load of the next line. It bypasses the L1. Returns the number of the line.
    pub(super) fn request(&mut self, packet: &mut Packet) -> u32 {
        let line = self.requested;
        self.requested += 1;
        packet.kind = PacketKind::Load;
        packet.line = self.address / LINE as u64 * LINE as u64 + u64::from(line) * LINE as u64;
        let holds = |sector: usize| {
            let at = packet.line + (sector * SECTOR) as u64;
            (self.address..self.address + MAP_BYTES as u64).contains(&at)
        };
        packet.sectors = (0..LINE / SECTOR).fold(0, |mask, sector| mask | u8::from(holds(sector)) << sector);
        packet.cache = CacheOp::Global;
        packet.start_stamps(true);
        line
    }

    /// Takes the bytes of a line.
    pub(super) fn take_line(&mut self, packet: &Packet) {
        self.arrived += 1;
        for (at, byte) in (self.address..).zip(&mut self.bytes) {
            if let Some(offset) = packet.offset_of(at) {
                *byte = packet.bytes[offset];
            }
        }
    }

    /// True once all lines have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.arrived == self.lines
    }

    /// The map. `None` if its bytes are no map.
    pub(super) fn map(&self) -> Option<TensorMap> {
        TensorMap::from_bytes(&self.bytes)
    }
}
