//! Finds the last writer of each word that a hanging launch polls.
//! It runs the scenario up to the hang once more, this time with the requests recorded.
//!
//! The machine is deterministic, so the second run makes the same writes. A run that does not hang records nothing.

use std::collections::{BTreeMap, BTreeSet};

use warpwave_components::proto::event::{Event, EventKind, Request};
use warpwave_components::proto::mem::{LINE, Stage};
use warpwave_hw::time::Cycle;

use crate::watch::Listener;

/// The last write of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastWrite {
    /// Cycle in which the L2 wrote it.
    pub at: Cycle,
    /// Index of its launch.
    pub launch: u32,
    /// Position of its block.
    pub block: [u32; 3],
    /// Index of its warp in the block.
    pub warp: u32,
    /// The instruction.
    pub pc: u32,
}

/// Listens to all requests, and keeps the last write of some words.
pub struct LastWrites {
    words: BTreeMap<u64, Option<LastWrite>>,
    /// Block and index of the warp in each slot: SM, sub-core, slot.
    warps: BTreeMap<(u16, u8, u8), ([u32; 3], u32)>,
}

impl LastWrites {
    /// Watches the words at these addresses of device memory.
    pub fn of(addresses: &BTreeSet<u64>) -> Self {
        LastWrites {
            words: addresses.iter().map(|&address| (address, None)).collect(),
            warps: BTreeMap::new(),
        }
    }

    /// Each word with its last write. `None` if no kernel has written it.
    pub fn found(&self) -> impl Iterator<Item = (u64, Option<&LastWrite>)> {
        self.words.iter().map(|(&address, write)| (address, write.as_ref()))
    }
}

impl Listener for LastWrites {
    fn event(&mut self, sm: u16, event: &Event) {
        if let EventKind::Start { block, index, .. } = event.kind {
            // A warp ends only after its stores are done, so the last `Start` of a slot names the writer.
            self.warps.insert((sm, event.subcore, event.warp), (block, index));
        }
    }

    fn request(&mut self, sm: u16, request: &Request) {
        if request.written == 0 {
            return;
        }
        // The L2 orders all writes to a word. The cycle of issue does not.
        let at = request.stamps.0[Stage::L2 as usize];
        let line = request.line..request.line + LINE as u64;
        let warp = self.warps.get(&(sm, request.subcore, request.warp));
        for (address, last) in self.words.range_mut(line) {
            let is_written = request.written >> (address - request.line) & 1 == 1;
            // A slice takes the requests for a line one after the other.
            let is_later = last.as_ref().is_none_or(|last| last.at < at);
            if let Some(&(block, warp)) = warp
                && is_written
                && is_later
            {
                *last = Some(LastWrite {
                    at,
                    launch: request.grid,
                    block,
                    warp,
                    pc: request.pc,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_components::proto::mem::{Packet, PacketKind};

    fn store(line: u64, written: u128, at: u64, pc: u32) -> Request {
        let mut packet = Packet::blank();
        (packet.kind, packet.line, packet.byte_mask) = (PacketKind::Store, line, written);
        packet.stamps.0[Stage::L2 as usize] = Cycle(at);
        Request::of(&packet, 0, (1, 2, pc))
    }

    #[test]
    fn write_that_the_l2_took_last_is_found_whatever_the_order_of_responses() {
        let mut writes = LastWrites::of(&BTreeSet::from([0x104, 0x200]));
        let kind = EventKind::Start {
            grid: 0,
            block: [3, 0, 0],
            index: 5,
        };
        let at = Cycle(1);
        writes.event(
            7,
            &Event {
                at,
                subcore: 1,
                warp: 2,
                kind,
            },
        );
        // The third store writes the word beside 0x104.
        for request in [
            store(0x100, 0xf0, 90, 11),
            store(0x100, 0xf0, 80, 12),
            store(0x100, 0xf, 99, 13),
        ] {
            writes.request(7, &request);
        }
        let last = LastWrite {
            at: Cycle(90),
            launch: 0,
            block: [3, 0, 0],
            warp: 5,
            pc: 11,
        };
        let found: Vec<_> = writes.found().collect();
        assert_eq!(found, [(0x104, Some(&last)), (0x200, None)]);
    }
}
