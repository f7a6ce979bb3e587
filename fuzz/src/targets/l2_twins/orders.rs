//! The oracle: the orders of all accesses to a sector that explain every response.

use std::collections::{BTreeMap, HashSet};

use warpwave_components::proto::mem::{Packet, PacketKind, SECTOR};

use super::Asked;
use crate::parts::change_word;

/// The bytes of a sector.
pub(super) type Bytes = [u8; SECTOR];

/// A request as an access to one sector.
pub(super) struct Access<'a> {
    tag: u32,
    sector: usize,
    sent: u64,
    answered: u64,
    request: &'a Packet,
    answer: &'a Packet,
}

/// The accesses of a side to a sector, in the order in which they were sent.
pub(super) fn accesses(asked: &[Asked], side: usize, line: u64, sector: usize) -> Vec<Access<'_>> {
    let is_meant = |asked: &&Asked| {
        let packet = &asked.packet;
        asked.side == side && packet.line == line && packet.sectors >> sector & 1 == 1
    };
    let access = |asked: &'_ Asked| -> Option<(u64, u64)> { Some((asked.sent?, asked.answer.as_ref()?.0)) };
    asked
        .iter()
        .filter(is_meant)
        .map(|asked| {
            let (sent, answered) = access(asked).expect("all requests have a response");
            let (_, answer) = asked.answer.as_ref().expect("all requests have a response");
            Access {
                tag: asked.packet.tag,
                sector,
                sent,
                answered,
                request: &asked.packet,
                answer,
            }
        })
        .collect()
}

impl Access<'_> {
    /// The sector after the access. `None` if the response does not fit to the sector before it.
    fn perform(&self, before: &Bytes) -> Option<Bytes> {
        let mut bytes = *before;
        match self.request.kind {
            PacketKind::Load => {
                let found = &self.answer.bytes.as_chunks::<SECTOR>().0[self.sector];
                return (found == before).then_some(bytes);
            }
            PacketKind::Store => {
                let first = self.sector * SECTOR;
                let written = (0..SECTOR).filter(|at| self.request.byte_mask >> (first + at) & 1 == 1);
                written.for_each(|at| bytes[at] = self.request.bytes[first + at]);
            }
            _ => {
                let lanes = |packet: &Packet| packet.atomic.as_deref().cloned().expect("an atomic keeps its lanes");
                let (atomics, answer) = (lanes(self.request), lanes(self.answer));
                let size = usize::from(atomics.ty.bytes());
                for (lane, found) in atomics.lanes[..atomics.n].iter().zip(&answer.lanes) {
                    let offset = usize::from(lane.offset);
                    if offset / SECTOR != self.sector {
                        continue;
                    }
                    let word = &mut bytes[offset % SECTOR..][..size];
                    let old = change_word(atomics.op, word, lane.value, lane.compare);
                    if self.request.kind == PacketKind::Atomic && old != found.value {
                        return None;
                    }
                }
            }
        }
        Some(bytes)
    }
}

/// The bytes that a sector may end with: those of each order that explains all responses.
pub(super) fn ends(first: Bytes, sides: &[Vec<Access<'_>>; 2]) -> HashSet<Bytes> {
    // For each access: the accesses of the other side that must come before it.
    let before = |side: usize, access: &Access<'_>| {
        let is_over = |other: &Access<'_>| other.answered <= access.sent;
        sides[1 - side].iter().rposition(is_over).map_or(0, |last| last + 1)
    };
    let earlier = [0, 1].map(|side| {
        sides[side]
            .iter()
            .map(|access| before(side, access))
            .collect::<Vec<_>>()
    });
    let mut reached: BTreeMap<[usize; 2], HashSet<Bytes>> = BTreeMap::from([([0, 0], HashSet::from([first]))]);
    let all = [sides[0].len(), sides[1].len()];
    // In the order of the map, each pair comes after all pairs that lead to it.
    while let Some((done, states)) = reached.pop_first() {
        if done == all {
            return states;
        }
        for side in 0..2 {
            let n = done[side];
            let Some(access) = sides[side].get(n).filter(|_| earlier[side][n] <= done[1 - side]) else {
                continue;
            };
            let mut next = done;
            next[side] += 1;
            let after = states.iter().filter_map(|state| access.perform(state));
            let after: Vec<Bytes> = after.collect();
            if !after.is_empty() {
                reached.entry(next).or_default().extend(after);
            }
        }
    }
    HashSet::new()
}

/// The accesses to a sector, as text.
pub(super) fn explain(sides: &[Vec<Access<'_>>; 2]) -> String {
    let line = |side: usize, access: &Access<'_>| {
        let Access {
            tag, sent, answered, ..
        } = access;
        let bytes = access.answer.bytes.as_chunks::<SECTOR>().0[access.sector];
        let kind = access.request.kind;
        format!("side {side}, request {tag}: {kind:?}, sent in {sent}, response in {answered}, {bytes:?}")
    };
    let lines = (0..2).flat_map(|side| sides[side].iter().map(move |access| line(side, access)));
    lines.collect::<Vec<_>>().join("\n")
}
