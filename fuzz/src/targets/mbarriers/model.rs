//! A second definition of an mbarrier.

use warpwave_isa::exec::mbarrier::Fault;

/// Largest byte count (PTX ISA, mbarrier: range of the tx-count).
pub(super) const MOST_BYTES: i64 = (1 << 20) - 1;

/// An mbarrier as the PTX ISA describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mbarrier {
    pub phase: u64,
    pub count: u32,
    pub pending: u32,
    pub bytes: i64,
}

impl Mbarrier {
    pub(super) fn new(count: u32) -> Self {
        Mbarrier {
            phase: 0,
            count,
            pending: count,
            bytes: 0,
        }
    }

    pub(super) fn arrive(&mut self, arrivals: u32, bytes: i64, drop: bool) {
        self.pending -= arrivals;
        self.bytes += bytes;
        self.count -= if drop { arrivals } else { 0 };
        // A phase needs all arrivals and all bytes.
        if self.pending == 0 && self.bytes == 0 {
            self.phase += 1;
            self.pending = self.count;
        }
    }

    /// What an arrival exceeds.
    pub(super) fn fault(&self, arrivals: u32, bytes: i64) -> Option<Fault> {
        let (pending, count, bytes) = (self.pending, self.count, self.bytes + bytes);
        if arrivals > pending {
            return Some(Fault::Arrivals {
                arrivals,
                pending,
                count,
            });
        }
        (!(-MOST_BYTES..=MOST_BYTES).contains(&bytes)).then_some(Fault::Bytes { bytes })
    }

    /// The 64 bits of the barrier (`warpwave_isa::exec::mbarrier` documents the layout).
    pub(super) fn bits(self) -> u64 {
        let bytes = self.bytes as u64 & 0x3f_ffff;
        u64::from(self.pending) | u64::from(self.count) << 20 | bytes << 40 | (self.phase & 1) << 63
    }
}
