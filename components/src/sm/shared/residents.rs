//! The CTAs of clusters on the SM. An access of another CTA to one that has ended is refused.

use crate::proto::cluster::{CtaResidence, MAX_CTA_SLOTS, MAX_START, RemoteByte};

/// The last CTA of each slot, as the CTA manager has told.
#[derive(Clone, Debug)]
pub(super) struct Residents {
    /// Start number of the last CTA of each slot. 0 before the first.
    starts: [u32; MAX_CTA_SLOTS],
    /// Slots with a CTA, bit i for slot i.
    used_slots: u64,
    /// Bytes of a CTA slot. All CTAs on an SM belong to one grid.
    slot_bytes: u32,
}

impl Residents {
    /// No CTA yet.
    pub(super) fn new() -> Self {
        Residents {
            starts: [0; MAX_CTA_SLOTS],
            used_slots: 0,
            slot_bytes: 1,
        }
    }

    /// Records the start or the end of a CTA.
    pub(super) fn change(&mut self, residence: CtaResidence) {
        let slot = usize::from(residence.slot);
        self.starts[slot] = residence.start;
        self.used_slots = self.used_slots & !(1 << slot) | u64::from(residence.is_resident) << slot;
        // At least 1, because it divides below.
        self.slot_bytes = residence.slot_bytes.max(1);
    }

    /// True if an access names a CTA that has ended.
    pub(super) fn has_ended(&self, to: RemoteByte) -> bool {
        // Beyond the slots in use: the grid of this CTA has not begun on the SM.
        let slot = (to.byte / self.slot_bytes) as usize;
        let Some(&last) = self.starts.get(slot).filter(|_| to.start != 0) else {
            return false;
        };
        match last == to.start {
            true => self.used_slots >> slot & 1 == 0,
            // Start numbers wrap. A CTA that is placed and has not started yet has a later one.
            false => last != 0 && last.wrapping_sub(to.start) & MAX_START < MAX_START / 2,
        }
    }
}
