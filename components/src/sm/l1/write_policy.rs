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

mod write_evict;
mod write_through;
mod write_validate;

use super::lines::Lines;
use crate::config::WritePolicy;
use crate::proto::mem::Packet;

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
