//! Past accesses to each word of shared memory. Keeps only accesses that a later one can race with.
//!
//! The rule for a word ([`add`]) is the same for global memory.

use std::collections::{HashMap, VecDeque};

use warpwave_isa::lane::LaneMask;

use super::order::{Order, all_if};
use super::{Group, Kind, Strength};

/// A past access to a word: by lanes of one warp, in one instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct PastAccess {
    /// Mask of the bytes in the word.
    pub bytes: u8,
    pub kind: Kind,
    pub strength: Strength,
    /// The kind of its group, as long as it is in flight.
    pub pending: Option<Group>,
    /// True for an access by the asynchronous proxy.
    pub is_async: bool,
    /// True if the lanes of the warp perform it together.
    pub is_collective: bool,
    /// Linear index of the CTA; 0 in shared memory.
    pub cta: u32,
    /// Index of the warp in its CTA; in shared memory, in its cluster.
    pub warp: u32,
    pub lanes: LaneMask,
    pub step: u32,
    pub pc: u32,
    /// Executions of the instruction by the warp so far. Includes this one.
    pub nth: u32,
}

/// In-flight accesses of a thread, by word: committed groups, then the open group.
#[derive(Default)]
struct InFlight {
    groups: VecDeque<Vec<usize>>,
    open: Vec<usize>,
}

/// Past accesses to all words of a cluster's shared memory.
pub(super) struct Shadow {
    words: Vec<Vec<PastAccess>>,
    /// For each word, the mask of written bytes.
    written: Vec<u8>,
    /// Accesses in flight, by kind of group, warp and lane.
    in_flight: HashMap<(Group, usize, usize), InFlight>,
}

impl Shadow {
    pub fn new(words: usize) -> Self {
        Shadow {
            words: vec![Vec::new(); words],
            written: vec![0; words],
            in_flight: HashMap::new(),
        }
    }

    /// Marks the bytes that an access writes. Returns true if it reads an unwritten byte.
    pub fn write(&mut self, word: usize, new: &PastAccess) -> bool {
        let written = &mut self.written[word];
        let reads = matches!(new.kind, Kind::Read | Kind::Atomic);
        let is_unwritten = reads && new.bytes & !*written != 0;
        if new.kind.writes() {
            *written |= new.bytes;
        }
        is_unwritten
    }

    /// Adds an access by one lane. Returns the past access that it races with, if any. `changes` is false if the value stays the same.
    pub fn add(&mut self, word: usize, new: PastAccess, changes: bool, order: &Order) -> Option<PastAccess> {
        if let Some(group) = new.pending {
            let lane = new.lanes.lowest().unwrap_or(0);
            let of_lane = self.in_flight.entry((group, new.warp as usize, lane)).or_default();
            of_lane.open.push(word);
        }
        let before = |old: &PastAccess| {
            // An asynchronous access comes after a write of a thread only with a proxy fence between the two.
            let needs_fence = new.is_async && !old.is_async && old.kind.writes();
            let is_fenced = !needs_fence || order.is_fenced(old.warp as usize, old.step, new.warp as usize);
            before(old, &new, order) & all_if(is_fenced)
        };
        add(&mut self.words[word], new, changes, before)
    }

    /// A lane commits its open accesses as a group.
    pub fn close(&mut self, group: Group, warp: usize, lane: usize) {
        if let Some(of_lane) = self.in_flight.get_mut(&(group, warp, lane)) {
            of_lane.groups.push_back(std::mem::take(&mut of_lane.open));
        }
    }

    /// Completes all groups of a lane except the last `left`. They count as performed in `step`.
    pub fn wait(&mut self, group: Group, (warp, lane): (usize, usize), left: usize, step: u32) {
        let Some(of_lane) = self.in_flight.get_mut(&(group, warp, lane)) else {
            return;
        };
        let over = of_lane.groups.len().saturating_sub(left);
        for word in of_lane.groups.drain(..over).flatten() {
            for seen in &mut self.words[word] {
                if seen.pending == Some(group) && seen.warp as usize == warp && seen.lanes.contains(lane) {
                    // Until now no access was ordered after this one. From here on the thread's order counts.
                    seen.pending = None;
                    seen.step = step;
                }
            }
        }
    }
}

/// The lanes of the access `old` that are ordered before `new`. Proxies are not looked at.
pub(super) fn before(old: &PastAccess, new: &PastAccess, order: &Order) -> LaneMask {
    let ((from, to), lane) = ((old.warp as usize, new.warp as usize), new.lanes.lowest().unwrap_or(0));
    match old.pending {
        // An access in flight is ordered before nothing, not even its own thread.
        Some(_) => LaneMask::NONE,
        // What the lanes of a warp do together is in the program order of each.
        None if from == to && (old.is_collective || new.is_collective) => LaneMask::ALL,
        None => order.before(from, old.step, (to, lane)),
    }
}

/// Adds an access by one lane to the past accesses of a word. Returns the past access that it races with, if any. `changes` is false if
/// the value stays the same. `before` gives the lanes of a past access that are ordered before the new access.
pub(super) fn add(
    seen: &mut Vec<PastAccess>,
    new: PastAccess,
    changes: bool,
    before: impl Fn(&PastAccess) -> LaneMask,
) -> Option<PastAccess> {
    let mut race = None;
    seen.retain_mut(|old| {
        let both = old.bytes & new.bytes;
        if both == 0 {
            return true;
        }
        let open = old.lanes & !before(old);
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
    let is_over = |old: &PastAccess| old.pending.or(new.pending).is_none();
    match seen.last_mut().filter(|old| is_over(old) && place(old) == place(&new)) {
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
