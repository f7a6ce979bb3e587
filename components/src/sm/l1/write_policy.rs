//! Write policies: the effect of a store on the lines of the L1. Preset key `sm.l1.write_policy`. Each policy sends the store on to the L2.
//!
//! | Preset word | A valid sector | A sector that is not valid |
//! |---|---|---|
//! | `write-through` | bytes are written | stays invalid |
//! | `write-evict` | becomes invalid | stays invalid |
//! | `write-validate` | bytes are written | becomes valid if the store writes all 32 bytes; the line is allocated |
//!
//! Sources: the GPGPU-Sim 3 manual (2012) for `write-evict`, the policy of global stores on Fermi; Jouppi, "Cache write policies and
//! performance" (ISCA 1993), for `write-validate`, here with a valid bit per sector.

mod write_evict;
mod write_through;
mod write_validate;

use super::lines::Lines;
use crate::config::WritePolicy;
use crate::proto::mem::Packet;

/// The effect of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stored {
    /// Sectors of the store that were valid.
    pub(super) hit: u8,
    /// True if the store evicted another line.
    pub(super) evicts: bool,
}

impl WritePolicy {
    /// Applies a store to `line`.
    #[inline]
    pub(super) fn store(self, lines: &mut Lines, line: u32, packet: &Packet) -> Stored {
        match self {
            WritePolicy::WriteThrough => write_through::store(lines, line, packet),
            WritePolicy::WriteEvict => write_evict::store(lines, line, packet),
            WritePolicy::WriteValidate => write_validate::store(lines, line, packet),
        }
    }
}

/// The way of a line and the sectors of a store that are valid in it, if there is one.
#[inline]
fn valid_sectors(lines: &Lines, line: u32, packet: &Packet) -> Option<(usize, u8)> {
    let (way, valid) = lines.find(line)?;
    Some((way, valid & packet.sectors)).filter(|&(_, hit)| hit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tags::Shape;
    use crate::config::{CarveoutTakes, ReplacementPolicy};
    use crate::proto::mem::{LINE, PacketKind};

    /// Stores sevens to 4 bytes of sector 1 and to all of sector 2, first in line 5, then in line 6. Line 5 has valid zeros in sectors 0
    /// and 1. Line 6 is absent. Returns the valid sectors of both lines, and byte 32 of line 5 if its sector is valid.
    fn stored(policy: WritePolicy) -> ([u8; 2], Option<u8>) {
        let packet = Packet {
            kind: PacketKind::Store,
            sectors: 0b0110,
            byte_mask: 0xf << 32 | 0xffff_ffff << 64,
            bytes: [7; LINE],
            ..Packet::blank()
        };
        let mut lines = Lines::new(
            Shape::new(1024, 2),
            CarveoutTakes::Sets,
            &ReplacementPolicy::Lru.new_replacement(),
        );
        lines.install(5, 0b0011, &[0; LINE]);
        policy.store(&mut lines, 5, &packet);
        policy.store(&mut lines, 6, &packet);
        let valid = [5, 6].map(|line| lines.find(line).map_or(0, |(_, valid)| valid));
        let (way, _) = lines.find(5).expect("line 5 stays");
        let mut bytes = [0; LINE];
        lines.read(way, valid[0], &mut bytes);
        (valid, (valid[0] & 0b0010 != 0).then_some(bytes[32]))
    }

    #[test]
    fn write_through_changes_valid_sectors_only() {
        assert_eq!(stored(WritePolicy::WriteThrough), ([0b0011, 0], Some(7)));
    }

    #[test]
    fn write_evict_invalidates_valid_sectors() {
        assert_eq!(stored(WritePolicy::WriteEvict), ([0b0001, 0], None));
    }

    #[test]
    fn write_validate_validates_sectors_written_whole() {
        assert_eq!(stored(WritePolicy::WriteValidate), ([0b0111, 0b0100], Some(7)));
    }
}
