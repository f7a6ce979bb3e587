//! Hazards in flight: registers behind dependency barriers, and results with a fixed latency.

use super::{ControlWord, DEP_BARRIERS};
use crate::program::Decoded;

/// Cycles until a dependency barrier is visible after issue.
const VISIBLE_AFTER: u32 = 2;

/// First item of the predicates as guards. Items 0 to 255 are registers, 256 to 263 are predicates as data.
const GUARDS: usize = 4 * 64 + 8;

/// A set of registers and predicates. A predicate has two items: one as data, one as guard.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RegPredSet([u64; 5]);

/// Latency of a result that stalls cover, in cycles.
#[derive(Clone, Copy)]
pub(super) struct StallLatency {
    /// For a register, and for a predicate as data.
    pub data: u32,
    /// For a predicate as guard, at least `data`.
    pub guard: u32,
}

impl StallLatency {
    fn of(self, item: usize) -> u32 {
        if item < GUARDS { self.data } else { self.guard }
    }
}

impl RegPredSet {
    pub fn read(decoded: &Decoded) -> RegPredSet {
        let [a, b, c, d] = decoded.uses.0;
        RegPredSet([
            a,
            b,
            c,
            d,
            u64::from(decoded.pred_uses) | u64::from(decoded.pred_guard) << 8,
        ])
    }

    pub fn written(decoded: &Decoded) -> RegPredSet {
        let [a, b, c, d] = decoded.defs.0;
        // Bits 0 to 7 are predicates as data, bits 8 to 15 the same predicates as guards.
        RegPredSet([a, b, c, d, u64::from(decoded.pred_defs) * 0x101])
    }

    /// Drops the predicates, because an instruction reads them at issue.
    pub fn registers(self) -> RegPredSet {
        let [a, b, c, d, _] = self.0;
        RegPredSet([a, b, c, d, 0])
    }

    pub fn with(self, other: RegPredSet) -> RegPredSet {
        RegPredSet(std::array::from_fn(|n| self.0[n] | other.0[n]))
    }

    pub fn intersects(self, other: RegPredSet) -> bool {
        (0..5).any(|n| self.0[n] & other.0[n] != 0)
    }

    pub fn is_empty(self) -> bool {
        self == RegPredSet::default()
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        let items = |mut word: u64| {
            std::iter::from_fn(move || {
                let item = (word != 0).then(|| word.trailing_zeros() as usize);
                word &= word.wrapping_sub(1);
                item
            })
        };
        (0..5).flat_map(move |n| items(self.0[n]).map(move |item| 64 * n + item))
    }
}

/// The next instruction of a basic block that uses each item.
pub(super) struct NextUses([Option<usize>; 5 * 64]);

impl Default for NextUses {
    fn default() -> Self {
        NextUses([None; 5 * 64])
    }
}

impl NextUses {
    /// Returns the first instruction that uses an item of the set.
    pub fn first(&self, items: RegPredSet) -> Option<usize> {
        items.iter().filter_map(|item| self.0[item]).min()
    }

    /// Adds an instruction before the others.
    pub fn add(&mut self, items: RegPredSet, pc: usize) {
        items.iter().for_each(|item| self.0[item] = Some(pc));
    }
}

/// State of the dependency barriers at one instruction: for each, registers to be written and registers to be read.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pending([(RegPredSet, RegPredSet); DEP_BARRIERS]);

impl Pending {
    /// Returns the mask of barriers that an instruction has to wait for.
    pub fn wait(&self, decoded: &Decoded) -> u8 {
        let (reads, writes) = (RegPredSet::read(decoded), RegPredSet::written(decoded));
        let hinders = |&(written, read): &(RegPredSet, RegPredSet)| {
            written.intersects(reads.with(writes)) || read.intersects(writes)
        };
        let mask = |(n, pending)| u8::from(hinders(pending)) << n;
        self.0.iter().enumerate().map(mask).sum()
    }

    /// Returns the state after an instruction with this control word.
    pub fn after(mut self, word: &ControlWord, decoded: &Decoded) -> Pending {
        for (n, pending) in self.0.iter_mut().enumerate() {
            if word.wait >> n & 1 != 0 {
                *pending = Default::default();
            }
        }
        self.raise(word, decoded);
        self
    }

    /// Adds the hazards of an instruction to the barriers of its control word.
    pub fn raise(&mut self, word: &ControlWord, decoded: &Decoded) {
        if let Some(barrier) = word.write {
            let (written, _) = &mut self.0[usize::from(barrier)];
            // Added, not replaced: results can share a barrier.
            *written = written.with(RegPredSet::written(decoded));
        }
        if let Some(barrier) = word.read {
            let (_, read) = &mut self.0[usize::from(barrier)];
            *read = read.with(RegPredSet::read(decoded).registers());
        }
    }

    /// Merges the state of another path. True if this added a hazard.
    pub fn join(&mut self, other: &Pending) -> bool {
        let before = *self;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (mine.0.with(theirs.0), mine.1.with(theirs.1));
        }
        *self != before
    }

    /// Returns the mask of barriers that are held.
    pub fn all(&self) -> u8 {
        let is_up = |&(written, read): &(RegPredSet, RegPredSet)| !written.is_empty() || !read.is_empty();
        let mask = |(n, pending)| u8::from(is_up(pending)) << n;
        self.0.iter().enumerate().map(mask).sum()
    }
}

/// Issue cycles in one basic block, and the cycles in which results and barriers are ready.
pub(super) struct BlockTimer {
    pub now: u32,
    ready: [u32; 5 * 64],
    visible: [u32; DEP_BARRIERS],
}

impl BlockTimer {
    pub fn new() -> Self {
        BlockTimer {
            now: 0,
            ready: [0; 5 * 64],
            visible: [0; DEP_BARRIERS],
        }
    }

    pub fn issue(&mut self, word: &ControlWord, decoded: &Decoded, latency: Option<StallLatency>) {
        for barrier in word.write.into_iter().chain(word.read) {
            // An instruction that tested the barrier earlier would find it free.
            self.visible[usize::from(barrier)] = self.now + VISIBLE_AFTER;
        }
        for item in RegPredSet::written(decoded).iter() {
            // A result behind a barrier has no fixed latency: its waits are in the wait mask.
            self.ready[item] = self.now + latency.map_or(0, |latency| latency.of(item));
        }
    }

    /// Returns the first cycle in which an instruction may issue.
    pub fn first_issue(&self, word: &ControlWord, decoded: &Decoded, latency: Option<StallLatency>) -> u32 {
        let read = RegPredSet::read(decoded).iter().map(|item| self.ready[item]);
        // A younger write to the same register must not finish before the older one.
        let sooner = |item| latency.map_or(0, |latency| latency.of(item).saturating_sub(1));
        let written = RegPredSet::written(decoded)
            .iter()
            .map(|item| self.ready[item].saturating_sub(sooner(item)));
        let waits = |&barrier: &usize| word.wait >> barrier & 1 != 0;
        let shown = (0..DEP_BARRIERS).filter(waits).map(|barrier| self.visible[barrier]);
        read.chain(written).chain(shown).max().unwrap_or(0)
    }

    /// Returns the cycle in which all results and barriers are ready.
    pub fn all_ready(&self) -> u32 {
        self.ready.iter().chain(&self.visible).copied().max().unwrap_or(0)
    }
}
