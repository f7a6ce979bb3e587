//! Bursts: which of them a packet needs, and moving their bytes.

use std::ops::Range;

use crate::hbm::sched::Entry;
use crate::proto::mem::{SECTOR, SECTORS};
use crate::storage::Storage;

/// The bursts that hold these sectors.
pub(super) fn bursts(sectors: u8, sectors_per_burst: usize) -> u8 {
    let one = (1u32 << sectors_per_burst) - 1;
    (0..SECTORS.div_ceil(sectors_per_burst))
        .filter(|n| u32::from(sectors) & one << (n * sectors_per_burst) != 0)
        .fold(0, |bursts, n| bursts | 1 << n)
}

/// Copies the wanted sectors of one burst between packet and storage.
pub(super) fn transfer(entry: &mut Entry, burst: Range<usize>, storage: &Storage) {
    let packet = &mut *entry.packet;
    let sectors = packet.bytes.as_chunks_mut::<SECTOR>().0;
    for n in burst.filter(|&n| n < SECTORS && packet.sectors >> n & 1 == 1) {
        let first = n * SECTOR;
        let address = packet.line + first as u64;
        match entry.write {
            true => storage.write_sector(address, &sectors[n], (packet.byte_mask >> first) as u32),
            false => storage.read_sector(address, &mut sectors[n]),
        }
    }
}
