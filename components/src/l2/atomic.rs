//! Atomics on the bytes of a line, applied in lane order.

use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, SECTOR, apply_atomic};

/// Applies the lanes whose word is in `sector`. Each gets its old value. Returns the bytes written, as a mask of the sector.
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
        lane.value = apply_atomic(word, op, ty, (lane.value, lane.compare));
        written |= ((1 << size) - 1) << (offset % SECTOR);
    }
    written
}

/// The most lanes on one word. The atomic unit serves them one after the other.
pub(super) fn lanes_on_busiest_word(atomics: &AtomicLanes) -> u32 {
    // The smallest word of an atomic has 2 bytes.
    let mut counts = [0; LINE / 2];
    for AtomicLane { offset, .. } in &atomics.lanes[..atomics.n] {
        counts[usize::from(offset / 2)] += 1;
    }
    counts.into_iter().max().unwrap_or(0)
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
    fn second_lane_on_a_word_reads_the_sum_of_the_first() {
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
            (lanes_on_busiest_word(&atomics), bytes[64]),
            (2, 0),
            "lane 2 is on another sector"
        );
    }

    #[test]
    fn carry_crosses_all_eight_bytes_of_a_word() {
        let mut bytes = [0xff; LINE];
        assert_eq!(
            perform(&mut lanes(AtomOp::Add, Ty::U64, &[24]), 0, &mut bytes),
            0xff00_0000
        );
        assert_eq!(bytes[23..33], [0xff, 9, 0, 0, 0, 0, 0, 0, 0, 0xff]);
    }
}
