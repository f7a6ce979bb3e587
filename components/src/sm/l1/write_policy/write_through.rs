//! Write-through: a store writes to its valid sectors. Preset word `write-through`.

use super::{Stored, valid_sectors};
use crate::proto::mem::{Packet, byte_mask};
use crate::sm::l1::lines::Lines;

/// Applies a store to `line`.
#[inline]
pub fn store(lines: &mut Lines, line: u32, packet: &Packet) -> Stored {
    let mut hit = 0;
    if let Some((way, valid)) = valid_sectors(lines, line, packet) {
        lines.write(way, packet.byte_mask & byte_mask(valid), &packet.bytes);
        hit = valid;
    }
    Stored { hit, evicts: false }
}
