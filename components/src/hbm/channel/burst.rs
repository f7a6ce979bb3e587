//! Bursts of a packet, and the transfer of its bytes.

use crate::hbm::queue::Entry;
use crate::proto::mem::{SECTORS, byte_mask};
use crate::storage::Storage;

/// Mask of the bursts that hold `sectors`.
pub(super) fn bursts(sectors: u8, sectors_per_burst: usize) -> u8 {
    let burst = (1u32 << sectors_per_burst) - 1;
    // A burst has one sector or more, so no sector needs two bursts.
    (0..SECTORS.div_ceil(sectors_per_burst))
        .filter(|n| u32::from(sectors) & burst << (n * sectors_per_burst) != 0)
        .fold(0, |bursts, n| bursts | 1 << n)
}

/// Copies the bytes of a write to the storage, or of a read from it.
pub(super) fn transfer(entry: &mut Entry, storage: &Storage) {
    let packet = &mut *entry.packet;
    match entry.write {
        true => {
            let written = packet.byte_mask & byte_mask(packet.sectors);
            storage.write_masked(packet.line, written, &packet.bytes);
        }
        false => storage.read_sectors(packet.line, packet.sectors, &mut packet.bytes),
    }
}
