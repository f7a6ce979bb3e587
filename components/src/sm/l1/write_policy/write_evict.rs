//! Write-evict: a store invalidates its valid sectors. Preset word `write-evict`.

use super::{Stored, valid_sectors};
use crate::proto::mem::Packet;
use crate::sm::l1::lines::Lines;

/// Applies a store to `line`.
#[inline]
pub fn store(lines: &mut Lines, line: u32, packet: &Packet) -> Stored {
    let mut hit = 0;
    if let Some((way, valid)) = valid_sectors(lines, line, packet) {
        lines.invalidate(way, valid);
        hit = valid;
    }
    Stored { hit, evicts: false }
}
