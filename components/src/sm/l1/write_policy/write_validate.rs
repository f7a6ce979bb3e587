//! Write-validate: a store writes to its valid sectors, and makes sectors valid that it writes completely. Preset word `write-validate`.

use super::{Stored, write_through};
use crate::proto::mem::{Packet, sector_masks};
use crate::sm::l1::lines::Lines;

/// Applies a store to `line`.
#[inline]
pub fn store(lines: &mut Lines, line: u32, packet: &Packet) -> Stored {
    let Stored { hit, .. } = write_through::store(lines, line, packet);
    // A partly written sector stays invalid: without a fetch its other bytes are unknown.
    let new = whole_sectors(packet) & !hit;
    let evicts = new != 0 && lines.install(line, new, &packet.bytes);
    Stored { hit, evicts }
}

/// Sectors that a store writes completely.
fn whole_sectors(packet: &Packet) -> u8 {
    let masks = sector_masks(packet.byte_mask).into_iter().enumerate();
    masks.fold(0, |whole, (sector, mask)| whole | u8::from(mask == u32::MAX) << sector)
}
