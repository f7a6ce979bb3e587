//! The stamps of a link's slots: from which cycle each end may act on a slot.
//!
//! A link of depth n has n slots, used in turn. Each end keeps its own index, so there is no shared index. A stamp is one word. One
//! load of it tells an end whether it may act:
//!
//! | slot | stamp |
//! |---|---|
//! | holds a message | [`FULL`], the cycle from which the message is visible, its sideband |
//! | is empty | the cycle from which the sender may use it |

use std::sync::Arc;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tile::HORIZON;
use crate::time::Cycle;

/// The stamp of one slot.
pub(crate) struct Stamp(AtomicU64);

/// The stamps of a link, shared by both ends. The first is the link's header.
pub(crate) type Stamps = Arc<[Stamp]>;

/// The index of the header among the stamps. Inside a tile the header holds [`WAITED_FOR`] and [`LINK_NUMBER`].
pub(crate) const HEADER: usize = 0;

/// The index of the first slot.
pub(crate) const FIRST_SLOT: u32 = HEADER as u32 + 1;

/// The slot holds a message.
const FULL: u64 = 1 << 63;

/// The width of a sideband, in bits. Its bits are below those of the cycle.
const SIDEBAND_BITS: u32 = u16::BITS - 1;

/// The largest sideband of a message.
pub const MAX_SIDEBAND: u16 = (1 << SIDEBAND_BITS) - 1;

// A message sent in the last cycle is visible before the cycle's bits end.
const _: () = assert!(Cycle::LAST.0 + HORIZON < FULL >> SIDEBAND_BITS);

/// In the header: the sender waits for a free slot.
pub(crate) const WAITED_FOR: u64 = 1 << 63;

/// In the header: the link's number in the receiver's [`arrivals`](super::arrivals), counted from 1. 0 is no number.
pub(crate) const LINK_NUMBER: u64 = WAITED_FOR - 1;

/// A header and `depth` empty slots.
pub(crate) fn stamps(depth: u32) -> Stamps {
    (0..=depth).map(|_| Stamp(AtomicU64::new(0))).collect()
}

/// The slot after `slot`. The last is followed by the first.
#[inline]
pub(crate) fn next_slot(slot: u32, stamps: &[Stamp]) -> u32 {
    let next = slot + 1;
    if next as usize == stamps.len() {
        FIRST_SLOT
    } else {
        next
    }
}

impl Stamp {
    /// True if the slot holds a message.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::Acquire) & FULL != 0
    }

    /// True if the sender may use the slot.
    #[inline]
    pub(crate) fn is_free(&self, now: Cycle) -> bool {
        // The word of a full slot is greater than any cycle.
        self.0.load(Ordering::Acquire) >> SIDEBAND_BITS <= now.0
    }

    /// The cycle from which the sender may use the slot. `None` if it holds a message.
    #[inline]
    pub(crate) fn free_from(&self) -> Option<Cycle> {
        let word = self.0.load(Ordering::Acquire);
        (word & FULL == 0).then_some(Cycle(word >> SIDEBAND_BITS))
    }

    /// True if the slot holds a visible message.
    #[inline]
    pub(crate) fn is_ready(&self, now: Cycle) -> bool {
        is_ready(self.0.load(Ordering::Acquire), now)
    }

    /// The cycle from which the message of a full slot is visible.
    pub(crate) fn visible_from(&self) -> Cycle {
        Cycle((self.0.load(Ordering::Acquire) & !FULL) >> SIDEBAND_BITS)
    }

    /// The sideband of the message, if it is visible.
    #[inline]
    pub(crate) fn sideband(&self, now: Cycle) -> Option<u16> {
        let word = self.0.load(Ordering::Acquire);
        is_ready(word, now).then_some(word as u16 & MAX_SIDEBAND)
    }

    /// Marks the slot as full. The receiver may take the message from cycle `visible` on.
    #[inline]
    pub(crate) fn fill(&self, visible: Cycle, sideband: u16) {
        let word = FULL | visible.0 << SIDEBAND_BITS | u64::from(sideband);
        self.0.store(word, Ordering::Release);
    }

    /// Marks the slot as empty. The sender may use it from cycle `from` on.
    #[inline]
    pub(crate) fn free(&self, from: Cycle) {
        self.0.store(from.0 << SIDEBAND_BITS, Ordering::Release);
    }

    /// The word of the header.
    #[inline]
    pub(crate) fn header(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes the header. Both ends are on one thread, so a plain store is enough.
    #[inline]
    pub(crate) fn set_header(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }
}

#[inline]
fn is_ready(word: u64, now: Cycle) -> bool {
    // The word of an empty slot is below FULL. The difference wraps to a number greater than any cycle.
    word.wrapping_sub(FULL) >> SIDEBAND_BITS <= now.0
}
