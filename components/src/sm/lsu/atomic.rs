//! The passes of an atomic on device memory.
//!
//! An atomic leaves the SM in rounds. A round takes one pass, and one more for each of its sectors. Exchanges and compare-and-swaps have
//! one lane of each word in a round. Other operations take all lanes in one round: their values need no order within the SM.
//!
//! | A warp of one SM, among many | Passes | Cycles on A100 | On H100 |
//! |---|---|---|---|
//! | one lane | 1 + 1 | 2.1 | 2.0 |
//! | 32 words in a row | 1 + 4 | 5.0 | 5.0 |
//! | 32 words, 128 bytes apart | 1 + 32 | 36 | 32 |
//! | 32 lanes exchange one word | 32 x (1 + 1) | 64 | 67 |
//!
//! Sources: `burtchell24` for A100, `own_h100` for H100.

use warpwave_isa::inst::AtomOp;
use warpwave_isa::lane::LaneMask;

use crate::proto::addresses::requests;
use crate::proto::cluster::is_remote;
use crate::proto::mem::rounds;
use crate::proto::warp::WarpInst;
use crate::sm::lsu::coalescer::CoalescedAccess;

/// The passes of a coalesced atomic. A line of another SM's shared memory takes one.
pub(super) fn passes(warp_inst: &WarpInst, lanes: LaneMask, access: &CoalescedAccess) -> u32 {
    let mods = &warp_inst.inst().mods;
    let lanes_take_turns = matches!(mods.atom, AtomOp::Exch | AtomOp::Cas);
    let of_request = |request_lanes: LaneMask| {
        let (mut most, mut in_sectors) = (0, 0);
        for line in access
            .lines()
            .iter()
            .filter(|line| !(line.lanes & request_lanes).is_empty())
        {
            if is_remote(line.line) {
                in_sectors += 1;
            } else if lanes_take_turns {
                let offsets = line
                    .lanes
                    .iter()
                    .map(|lane| (warp_inst.addresses.get(lane) - line.line) as u8);
                let rounds = rounds(offsets);
                most = rounds.into_iter().fold(most, u32::max);
                in_sectors += rounds.into_iter().sum::<u32>();
            } else {
                most = most.max(1);
                in_sectors += line.sectors.count_ones();
            }
        }
        most + in_sectors
    };
    requests(lanes, mods.access.total()).map(of_request).sum()
}
