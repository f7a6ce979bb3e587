//! What a store does to the lines of the L1: preset key `sm.l1.write_policy`. Every policy sends the store on to the L2.
//!
//! | Preset word | A valid sector | A sector that is not valid |
//! |---|---|---|
//! | `write-through` | the bytes change | stays out |
//! | `write-evict` | becomes invalid | stays out |
//! | `write-validate` | the bytes change | comes in, with its line, if the store writes all 32 bytes |
//!
//! Sources: the GPGPU-Sim 3 manual (2012) for `write-evict`, the policy of global stores on Fermi; Jouppi, "Cache write policies and
//! performance" (ISCA 1993), for `write-validate`, here with a valid bit per sector.

use super::lines::Lines;
use crate::config::WritePolicy;
use crate::proto::mem::{Packet, byte_mask, sector_masks};

/// What a store met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stored {
    /// Sectors of the store that were valid.
    pub(super) hit: u8,
    /// Whether a line left for the store's.
    pub(super) evicts: bool,
}

impl WritePolicy {
    /// Applies a store to `line`.
    #[inline]
    pub(super) fn store(self, lines: &mut Lines, line: u32, packet: &Packet) -> Stored {
        let found = lines.find(line);
        let (way, valid) = found.unwrap_or((0, 0));
        let hit = valid & packet.sectors;
        let mut evicts = false;
        match self {
            WritePolicy::WriteThrough | WritePolicy::WriteValidate if hit != 0 => {
                lines.write(way, packet.byte_mask & byte_mask(hit), &packet.bytes);
            }
            WritePolicy::WriteEvict if hit != 0 => lines.invalidate(way, hit),
            _ => {}
        }
        if self == WritePolicy::WriteValidate {
            let absent = whole_sectors(packet) & !hit;
            evicts = absent != 0 && lines.install(line, absent, &packet.bytes);
        }
        Stored { hit, evicts }
    }
}

/// Sectors of which a store writes every byte.
fn whole_sectors(packet: &Packet) -> u8 {
    let masks = sector_masks(packet.byte_mask).into_iter().enumerate();
    masks.fold(0, |whole, (sector, mask)| whole | u8::from(mask == u32::MAX) << sector)
}
