//! Atomics on the bytes of a line, applied in lane order.

use warpwave_isa::inst::AtomOp;

use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, SECTOR, apply_atomic};

/// Applies the lanes with a word in `sector`, in lane order. Each lane's `value` becomes the old value of its word. Returns a mask of the
/// bytes written in the sector.
pub(super) fn perform(atomics: &mut AtomicLanes, sector: usize, bytes: &mut [u8; LINE]) -> u32 {
    let (op, ty) = (atomics.op, atomics.ty);
    let size = usize::from(ty.bytes());
    let mut written = 0;
    for lane in &mut atomics.lanes[..atomics.n] {
        let offset = usize::from(lane.offset);
        // A word is aligned to its size, at most 16 bytes: it lies in one sector.
        if offset / SECTOR != sector {
            continue;
        }
        let word = &mut bytes[offset..offset + size];
        lane.value = apply_atomic(word, op, ty, (lane.value, lane.compare));
        written |= ((1 << size) - 1) << (offset % SECTOR);
    }
    written
}

/// Pace of the atomic unit, in hundredths of a slice-clock cycle for each lane on the busiest word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicPace {
    /// Exchanges and compare-and-swaps. Preset key `l2.atomic_interval`, which counts whole cycles.
    pub swap: u32,
    /// Floating-point additions. Preset key `l2.float_add_centicycles`.
    pub float_add: u32,
    /// All other operations. Preset key `l2.atomic_centicycles`.
    pub other: u32,
}

impl AtomicPace {
    /// Time of one packet in the atomic unit, in hundredths of a cycle.
    pub(super) fn centicycles(&self, atomics: &AtomicLanes) -> u32 {
        let per_lane = match atomics.op {
            AtomOp::Exch | AtomOp::Cas => self.swap,
            AtomOp::Add if atomics.ty.is_float() => self.float_add,
            _ => self.other,
        };
        lanes_on_busiest_word(atomics) * per_lane
    }
}

/// Number of lanes on the word that most lanes access. The unit serves these one after the other, and different words side by side.
fn lanes_on_busiest_word(atomics: &AtomicLanes) -> u32 {
    // The smallest word of an atomic has 2 bytes. A wider one is counted by its first 2: all lanes have words of one size.
    let mut counts = [0; LINE / 2];
    for AtomicLane { offset, .. } in &atomics.lanes[..atomics.n] {
        counts[usize::from(offset / 2)] += 1;
    }
    counts.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_isa::inst::Ty;

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
    fn lane_takes_the_centicycles_of_its_operation() {
        // burtchell24, A100: 2.0 cycles per exchange, 1.3 per addition of integers, 3.13 of floats.
        let pace = AtomicPace {
            swap: 200,
            float_add: 313,
            other: 130,
        };
        let of = |op, ty, offsets: &[u8]| pace.centicycles(&lanes(op, ty, offsets));
        assert_eq!(of(AtomOp::Exch, Ty::U32, &[4, 4, 8]), 400, "two lanes on one word");
        assert_eq!(of(AtomOp::Cas, Ty::U64, &[8]), 200);
        assert_eq!(of(AtomOp::Add, Ty::S32, &[4, 8, 12]), 130, "each lane on its own word");
        assert_eq!(of(AtomOp::Add, Ty::F32, &[4, 4]), 626);
        assert_eq!(of(AtomOp::Max, Ty::F32, &[4]), 130, "a comparison");
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
