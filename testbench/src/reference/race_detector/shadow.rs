//! Past accesses to each word of shared memory. Keeps only accesses that a later one can race with.
//!
//! The rule for a word ([`add`]) is the same for global memory.

use std::collections::{HashMap, VecDeque};

use warpwave_isa::lane::LaneMask;

use super::order::Order;
use super::{Kind, Strength};

/// A past access to a word: by lanes of one warp, in one instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct PastAccess {
    /// Mask of the bytes in the word.
    pub bytes: u8,
    pub kind: Kind,
    pub strength: Strength,
    /// True for a copy in flight.
    pub pending: bool,
    /// Linear index of the CTA; 0 in shared memory.
    pub cta: u32,
    pub warp: u32,
    pub lanes: LaneMask,
    pub step: u32,
    pub pc: u32,
    /// Executions of the instruction by the warp so far. Includes this one.
    pub nth: u32,
}

/// First byte address and number of bytes.
type Range = (u32, u32);

/// In-flight copies of a thread: committed groups, then the open group.
#[derive(Default)]
struct Copies {
    groups: VecDeque<Vec<Range>>,
    open: Vec<Range>,
}

/// Past accesses to all words of a CTA's shared memory.
pub(super) struct Shadow {
    words: Vec<Vec<PastAccess>>,
    /// For each word, the mask of written bytes.
    written: Vec<u8>,
    /// Copies in flight by warp and lane.
    copies: HashMap<(usize, usize), Copies>,
}

impl Shadow {
    pub fn new(bytes: u32) -> Self {
        let words = bytes.div_ceil(4) as usize;
        Shadow {
            words: vec![Vec::new(); words],
            written: vec![0; words],
            copies: HashMap::new(),
        }
    }

    /// Marks the bytes that an access writes. Returns true if it reads an unwritten byte.
    pub fn write(&mut self, word: u32, new: &PastAccess) -> bool {
        let written = &mut self.written[word as usize];
        let reads = matches!(new.kind, Kind::Read | Kind::Atomic);
        let is_unwritten = reads && new.bytes & !*written != 0;
        if new.kind.writes() {
            *written |= new.bytes;
        }
        is_unwritten
    }

    /// Adds an access by one lane. Returns the past access that it races with, if any. `changes` is false if the value stays the same.
    pub fn add(&mut self, word: u32, new: PastAccess, changes: bool, order: &Order) -> Option<PastAccess> {
        let lane = new.lanes.lowest().unwrap_or(0);
        let is_before = |old: &PastAccess, first: usize| {
            // A copy in flight is ordered before nothing, not even its own thread.
            !old.pending && order.is_before((old.warp as usize, first), old.step, (new.warp as usize, lane))
        };
        add(&mut self.words[word as usize], new, changes, is_before)
    }

    /// Marks a byte as written by an access that cannot race.
    pub fn mark_written(&mut self, byte: u32) {
        self.written[byte as usize / 4] |= 1 << (byte % 4);
    }

    pub fn begin_copy(&mut self, warp: usize, lane: usize, first: u32, bytes: u32) {
        self.copies.entry((warp, lane)).or_default().open.push((first, bytes));
    }

    pub fn close_copies(&mut self, warp: usize, lane: usize) {
        if let Some(copies) = self.copies.get_mut(&(warp, lane)) {
            copies.groups.push_back(std::mem::take(&mut copies.open));
        }
    }

    /// Completes all copy groups of a lane except the last `left`. They count as written in `step`.
    pub fn wait_copies(&mut self, warp: usize, lane: usize, left: usize, step: u32) {
        let Some(copies) = self.copies.get_mut(&(warp, lane)) else {
            return;
        };
        let over = copies.groups.len().saturating_sub(left);
        for (first, bytes) in copies.groups.drain(..over).flatten() {
            for word in first / 4..(first + bytes).div_ceil(4) {
                for seen in &mut self.words[word as usize] {
                    if seen.pending && seen.warp as usize == warp && seen.lanes.contains(lane) {
                        // Until now no access was ordered after the copy. From here on the thread's order counts.
                        seen.pending = false;
                        seen.step = step;
                    }
                }
            }
        }
    }
}

/// Adds an access by one lane to the past accesses of a word. Returns the past access that it races with, if any. `changes` is false if
/// the value stays the same. `is_before` is true if the given lane of a past access is ordered before the new access.
pub(super) fn add(
    seen: &mut Vec<PastAccess>,
    new: PastAccess,
    changes: bool,
    is_before: impl Fn(&PastAccess, usize) -> bool,
) -> Option<PastAccess> {
    let mut race = None;
    seen.retain_mut(|old| {
        let both = old.bytes & new.bytes;
        if both == 0 {
            return true;
        }
        let ordered = old.lanes.filter(|lane| is_before(old, lane));
        let open = old.lanes & !ordered;
        let harmless = are_morally_strong(old, &new) || (old.kind.writes() && new.kind.writes() && !changes);
        let conflicts = old.kind.writes() || new.kind.writes();
        if conflicts && !harmless && !open.is_empty() {
            race.get_or_insert(PastAccess { lanes: open, ..*old });
        }
        // An access ordered after `new` is also after `old`. An access that races with `old` also races with `new`. So `old` can go.
        let covers_old = old.strength >= new.strength;
        if new.kind.writes() && covers_old && (open.is_empty() || (conflicts && !harmless)) {
            old.bytes &= !new.bytes;
        // A later write that races with an ordered lane of this read races with `new` too.
        } else if old.kind == Kind::Read && covers_old && both == old.bytes {
            old.lanes = open;
        }
        old.bytes != 0 && !old.lanes.is_empty()
    });
    // Lanes of one instruction share an entry, which keeps the lists short.
    let place = |of: &PastAccess| (of.cta, of.warp, of.step, of.kind, of.bytes);
    match seen.last_mut().filter(|old| !old.pending && place(old) == place(&new)) {
        Some(last) => last.lanes |= new.lanes,
        None => {
            if seen.is_empty() {
                // Most words have one past access.
                seen.reserve_exact(1);
            }
            seen.push(new);
        }
    }
    race
}

/// True if two accesses are strong, and the scope of each includes the other.
fn are_morally_strong(a: &PastAccess, b: &PastAccess) -> bool {
    match a.strength.min(b.strength) {
        Strength::Weak => false,
        Strength::Cta => a.cta == b.cta,
        Strength::Gpu => true,
    }
}
