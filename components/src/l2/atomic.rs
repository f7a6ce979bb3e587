//! Atomics on the bytes of a line, applied in lane order.

use warpwave_isa::exec::atomic::AtomicUnit;
use warpwave_isa::inst::AtomOp;

use crate::proto::mem::{AtomicLanes, LINE, SECTOR, apply_atomic};

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
        lane.value = apply_atomic(AtomicUnit::L2, word, op, ty, (lane.value, lane.compare));
        written |= ((1 << size) - 1) << (offset % SECTOR);
    }
    written
}

/// Pace of the atomic unit, in hundredths of a slice-clock cycle.
///
/// The unit serves a packet in rounds. A round is of one sector, with one lane of each of its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicPace {
    /// A round. Preset key `l2.atomic_centicycles`.
    pub round: u32,
    /// A round of floating-point additions, after another one of the same sector. Preset key `l2.float_add_centicycles`.
    pub float_add: u32,
}

/// The line and the sectors of the last floating-point addition, whose sums the next one may wait for.
pub(super) type LastFloatAdd = Option<(u64, u8)>;

impl AtomicPace {
    /// Time of one packet in the atomic unit, in hundredths of a cycle.
    pub(super) fn centicycles(&self, atomics: &AtomicLanes, line: u64, last: &mut LastFloatAdd) -> u32 {
        let rounds = atomics.rounds();
        if atomics.op != AtomOp::Add || !atomics.ty.is_float() {
            return self.round * rounds.into_iter().sum::<u32>();
        }
        let (mut time, mut sectors) = (0, 0);
        for (sector, n) in rounds.into_iter().enumerate().filter(|&(_, n)| n > 0) {
            sectors |= 1 << sector;
            let waits = last.is_some_and(|(of, known)| of == line && known >> sector & 1 == 1);
            let first = if waits { self.float_add } else { self.round };
            time += first + (n - 1) * self.float_add;
        }
        *last = Some((line, sectors));
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::mem::AtomicLane;
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
            (atomics.rounds(), bytes[64]),
            ([0, 2, 1, 0], 0),
            "lane 2 is on another sector"
        );
    }

    #[test]
    fn packet_takes_a_round_for_each_sector_and_lane_on_its_busiest_word() {
        // burtchell24, A100: 1.305 cycles per exchange or addition of integers, 3.13 of floats.
        let pace = AtomicPace {
            round: 130,
            float_add: 313,
        };
        let mut last = None;
        let mut of = |op, ty, line, offsets: &[u8]| pace.centicycles(&lanes(op, ty, offsets), line, &mut last);
        assert_eq!(of(AtomOp::Exch, Ty::U32, 0, &[4, 4, 8]), 260, "two lanes on one word");
        assert_eq!(of(AtomOp::Cas, Ty::U64, 0, &[8]), 130);
        assert_eq!(of(AtomOp::Add, Ty::S32, 0, &[4, 8, 12]), 130, "one sector");
        // 108 warps of 32 words in a row take 32.2 cycles: up to six lines on a slice, 5.2 cycles each.
        assert_eq!(of(AtomOp::Add, Ty::S32, 0, &[0, 32, 36, 64, 96]), 520, "four sectors");
        assert_eq!(of(AtomOp::Add, Ty::F32, 0, &[4, 4, 32]), 130 + 313 + 130);
        assert_eq!(of(AtomOp::Max, Ty::F32, 0, &[4]), 130, "a comparison");
        assert_eq!(
            of(AtomOp::Add, Ty::F32, 0, &[36, 64]),
            313 + 130,
            "sector 1 waits for the sum before"
        );
        assert_eq!(of(AtomOp::Add, Ty::F32, 128, &[36, 64]), 260, "another line");
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
