//! The last accesses to each word of shared memory that a later access can race with.

use std::collections::{HashMap, VecDeque};

use warpwave_isa::lane::LaneMask;

use super::Kind;
use super::order::Order;

/// Access of lanes of one warp to a word, by one instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Bytes of the word, one bit each.
    pub bytes: u8,
    pub kind: Kind,
    pub strong: bool,
    /// True for a copy in flight.
    pub pending: bool,
    pub warp: usize,
    pub lanes: LaneMask,
    pub step: u32,
    pub pc: u32,
}

/// First byte and number of bytes.
type Range = (u32, u32);

/// Copies of a thread in flight: closed groups, then the open group.
#[derive(Default)]
struct Copies {
    groups: VecDeque<Vec<Range>>,
    open: Vec<Range>,
}

/// All words of a CTA's shared memory.
pub(super) struct Shadow {
    words: Vec<Vec<Seen>>,
    /// Bytes of each word that have been written.
    written: Vec<u8>,
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

    /// Stores the bytes that an access writes. Returns true if it reads an unwritten byte.
    pub fn write(&mut self, word: u32, new: &Seen) -> bool {
        let written = &mut self.written[word as usize];
        let reads = matches!(new.kind, Kind::Read | Kind::Atomic);
        let is_fresh = reads && new.bytes & !*written != 0;
        if new.kind.writes() {
            *written |= new.bytes;
        }
        is_fresh
    }

    /// Adds an access of one lane, which changes what the word holds or not; what it races with, if anything.
    pub fn touch(&mut self, word: u32, new: Seen, changes: bool, order: &Order) -> Option<Seen> {
        let lane = new.lanes.lowest().unwrap_or(0);
        let mut race = None;
        let seen = &mut self.words[word as usize];
        seen.retain_mut(|old| {
            let both = old.bytes & new.bytes;
            if both == 0 {
                return true;
            }
            let before =
                |&first: &usize| !old.pending && order.is_before((old.warp, first), old.step, (new.warp, lane));
            let ordered = old
                .lanes
                .iter()
                .filter(before)
                .fold(LaneMask::NONE, |all, lane| all | LaneMask::lane(lane));
            let open = old.lanes & !ordered;
            let harmless = (old.strong && new.strong) || (old.kind.writes() && new.kind.writes() && !changes);
            let conflicts = old.kind.writes() || new.kind.writes();
            if conflicts && !harmless && !open.is_empty() {
                race.get_or_insert(Seen { lanes: open, ..*old });
            }
            // What is behind `new` is behind `old`, and what races with `old` races with `new`: `old` may be forgotten.
            let says_as_much = old.strong || !new.strong;
            if new.kind.writes() && says_as_much && (open.is_empty() || (conflicts && !harmless)) {
                old.bytes &= !new.bytes;
            } else if old.kind == Kind::Read && says_as_much && both == old.bytes {
                old.lanes = open;
            }
            old.bytes != 0 && !old.lanes.is_empty()
        });
        let is_same = |old: &&mut Seen| {
            (old.warp, old.step, old.kind, old.bytes, old.pending) == (new.warp, new.step, new.kind, new.bytes, false)
        };
        match seen.last_mut().filter(is_same) {
            Some(last) => last.lanes |= new.lanes,
            None => seen.push(new),
        }
        race
    }

    /// Marks a byte as written, by an access that cannot race.
    pub fn fill(&mut self, byte: u32) {
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

    /// All but the last `left` groups of a lane's copies have written when the wait of this step is over.
    pub fn wait_copies(&mut self, warp: usize, lane: usize, left: usize, step: u32) {
        let Some(copies) = self.copies.get_mut(&(warp, lane)) else {
            return;
        };
        let over = copies.groups.len().saturating_sub(left);
        for (first, bytes) in copies.groups.drain(..over).flatten() {
            for word in first / 4..(first + bytes).div_ceil(4) {
                for seen in &mut self.words[word as usize] {
                    if seen.pending && seen.warp == warp && seen.lanes.contains(lane) {
                        seen.pending = false;
                        seen.step = step;
                    }
                }
            }
        }
    }
}
