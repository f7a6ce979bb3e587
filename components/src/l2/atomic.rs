//! Atomics on the bytes of a line: per lane, in lane order, in the slice.

use warpwave_isa::exec::atomic::atomic;

use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, SECTOR};

/// Does the lanes whose word lies in `sector`; each lane gets its old value. Gives the mask of the sector's bytes written.
pub(super) fn perform(atomics: &mut AtomicLanes, sector: usize, bytes: &mut [u8; LINE]) -> u32 {
    let (op, ty) = (atomics.op, atomics.ty);
    let size = usize::from(ty.bytes());
    let mut written = 0;
    for lane in &mut atomics.lanes[..atomics.n] {
        let offset = usize::from(lane.offset);
        if offset / SECTOR != sector {
            continue;
        }
        let word = &mut bytes[offset..offset + size];
        let old = read(word);
        let new = atomic(op, ty, old, lane.value, lane.compare);
        word.copy_from_slice(&new.to_le_bytes()[..size]);
        lane.value = old;
        written |= ((1 << size) - 1) << (offset % SECTOR);
    }
    written
}

/// The most lanes that meet in one word: they are done one after the other.
pub(super) fn depth(atomics: &AtomicLanes) -> u32 {
    let mut lanes_of_word = [0; LINE / 2];
    for AtomicLane { offset, .. } in &atomics.lanes[..atomics.n] {
        lanes_of_word[usize::from(offset / 2)] += 1;
    }
    lanes_of_word.into_iter().max().unwrap_or(0)
}

fn read(word: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..word.len()].copy_from_slice(word);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_isa::inst::{AtomOp, Ty};

    fn lanes(op: AtomOp, ty: Ty, offsets: &[u8]) -> AtomicLanes {
        let mut atomics = AtomicLanes {
            op,
            ty,
            n: offsets.len(),
            ..AtomicLanes::default()
        };
        for (n, &offset) in offsets.iter().enumerate() {
            atomics.lanes[n] = AtomicLane {
                lane: n as u8,
                offset,
                value: 10,
                compare: 0,
            };
        }
        atomics
    }

    #[test]
    fn two_lanes_add_to_one_word_the_second_finds_the_firsts_sum() {
        let mut bytes = [0; LINE];
        bytes[36] = 5;
        let mut atomics = lanes(AtomOp::Add, Ty::U32, &[36, 36, 64]);
        assert_eq!(perform(&mut atomics, 1, &mut bytes), 0xf0);
        assert_eq!(bytes[36], 25);
        assert_eq!(
            atomics.lanes[..3].iter().map(|lane| lane.value).collect::<Vec<_>>(),
            [5, 15, 10]
        );
        assert_eq!(
            (depth(&atomics), bytes[64]),
            (2, 0),
            "the third lane is of another sector"
        );
    }

    #[test]
    fn words_of_eight_bytes_carry_across_all_of_them() {
        let mut bytes = [0xff; LINE];
        assert_eq!(
            perform(&mut lanes(AtomOp::Add, Ty::U64, &[24]), 0, &mut bytes),
            0xff00_0000
        );
        assert_eq!(bytes[23..33], [0xff, 9, 0, 0, 0, 0, 0, 0, 0, 0xff]);
    }
}
