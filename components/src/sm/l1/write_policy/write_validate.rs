//! Write-validate: a store changes valid sectors, and validates sectors that it writes whole. Preset word `write-validate`.

use super::{Stored, write_through};
use crate::proto::mem::{Packet, sector_masks};
use crate::sm::l1::lines::Lines;

/// Applies a store to `line`.
#[inline]
pub fn store(lines: &mut Lines, line: u32, packet: &Packet) -> Stored {
    let Stored { hit, .. } = write_through::store(lines, line, packet);
    let absent = whole_sectors(packet) & !hit;
    let evicts = absent != 0 && lines.install(line, absent, &packet.bytes);
    Stored { hit, evicts }
}

/// Sectors that a store writes whole.
fn whole_sectors(packet: &Packet) -> u8 {
    let masks = sector_masks(packet.byte_mask).into_iter().enumerate();
    masks.fold(0, |whole, (sector, mask)| whole | u8::from(mask == u32::MAX) << sector)
}
