//! Race detector for the shared memory of a CTA: unordered accesses, and reads of unwritten bytes.
//!
//! ```text
//! step ── begin, meet ──> Order (happens-before)
//! access ── touch ──────> Shadow (the last accesses of each word) ──> Findings
//! ```
//!
//! Two accesses of different threads to the same byte race under three conditions. One of them writes. Not both are strong (an atomic,
//! `.volatile`, `.relaxed` or stronger). Nothing orders them (module [`order`]). A `cp.async` writes at some time until its thread waits
//! for it. A write of the value that is already there races with no other write.
//!
//! It finds races of this run. Other data may take other paths. In doubt it takes accesses as ordered, so every reported race is one.

mod order;

mod shadow;

use warpwave_components::proto::warp::thread_position;
use warpwave_isa::inst::{CacheOp, Inst};
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

use order::Order;
use shadow::{Seen, Shadow};

/// The checks to run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Checks {
    /// Unordered accesses to shared memory.
    pub races: bool,
    /// Reads of unwritten bytes of shared memory.
    pub uninit: bool,
}

/// What an access does to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes at once.
    Atomic,
    /// Writes later, at the latest when its thread waits for it.
    Copy,
}

impl Kind {
    fn writes(self) -> bool {
        self != Kind::Read
    }
}

/// One access to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// What it does.
    pub kind: Kind,
    /// Index of the instruction in the program.
    pub pc: u32,
    /// Thread in the block, x, y, z.
    pub thread: [u32; 3],
}

/// Two accesses that nothing orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// Block in the grid, x, y, z.
    pub block: [u32; 3],
    /// First byte of the word in shared memory.
    pub address: u32,
    /// The one that the reference did first.
    pub first: Access,
    /// The other one.
    pub second: Access,
    /// Words and threads for which these two instructions raced, this one among them.
    pub count: u64,
}

/// A read of unwritten bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwritten {
    /// Block in the grid, x, y, z.
    pub block: [u32; 3],
    /// First byte of the word in shared memory.
    pub address: u32,
    /// The read.
    pub access: Access,
    /// Words and threads for which this instruction read so, this one among them.
    pub count: u64,
}

/// All that a watch found: for each instruction, or pair of them, the first case.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Findings {
    /// In the order in which they were found.
    pub races: Vec<Race>,
    /// In the order in which they were found.
    pub unwritten: Vec<Unwritten>,
}

impl Findings {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.races.is_empty() && self.unwritten.is_empty()
    }

    /// Adds those of another CTA.
    pub(super) fn add(&mut self, other: Findings) {
        other.races.into_iter().for_each(|race| self.add_race(race));
        other.unwritten.into_iter().for_each(|read| self.add_read(read));
    }

    fn add_race(&mut self, race: Race) {
        let of = |race: &Race| [race.first, race.second].map(|access| (access.pc, access.kind));
        match self.races.iter_mut().find(|known| of(known) == of(&race)) {
            Some(known) => known.count += race.count,
            None => self.races.push(race),
        }
    }

    fn add_read(&mut self, read: Unwritten) {
        match self
            .unwritten
            .iter_mut()
            .find(|known| known.access.pc == read.access.pc)
        {
            Some(known) => known.count += read.count,
            None => self.unwritten.push(read),
        }
    }
}

/// An access of one lane, as the instruction makes it.
pub(super) struct Touch<'a> {
    pub warp: usize,
    pub lane: usize,
    pub pc: u32,
    pub inst: &'a Inst,
    pub space: Space,
    pub address: u64,
    /// What is there.
    pub old: &'a [u8],
    /// What is written; as many bytes as `old`.
    pub new: Option<&'a [u8]>,
}

/// The watch over one CTA.
pub(super) struct Watch {
    checks: Checks,
    block: [u32; 3],
    block_size: [u32; 3],
    order: Order,
    shadow: Shadow,
    pub findings: Findings,
}

impl Watch {
    pub fn new(checks: Checks, block: [u32; 3], block_size: [u32; 3], shared_bytes: u32) -> Self {
        let warps = block_size.iter().product::<u32>().div_ceil(32) as usize;
        Watch {
            checks,
            block,
            block_size,
            order: Order::new(warps),
            shadow: Shadow::new(shared_bytes),
            findings: Findings::default(),
        }
    }

    /// A warp comes to its next instruction with these lanes running.
    pub fn begin(&mut self, warp: usize, active: LaneMask) {
        self.order.begin(warp, active);
    }

    /// Lanes come to a WARPSYNC.
    pub fn meet(&mut self, warp: usize, lanes: LaneMask) {
        self.order.meet(warp, lanes);
    }

    /// A warp comes to a block barrier.
    pub fn arrive(&mut self, warp: usize, barrier: usize) {
        self.order.arrive(warp, barrier);
    }

    /// A block barrier opens for the warps that wait at it.
    pub fn open(&mut self, barrier: usize, waiting: impl Iterator<Item = usize>) {
        self.order.open(barrier, waiting);
    }

    /// Lanes close the group of their copies so far.
    pub fn close_copies(&mut self, warp: usize, lanes: LaneMask) {
        lanes.iter().for_each(|lane| self.shadow.close_copies(warp, lane));
    }

    /// Lanes wait until at most `left` groups of their copies are under way.
    pub fn wait_copies(&mut self, warp: usize, lanes: LaneMask, left: usize) {
        let step = self.order.step(warp);
        for lane in lanes.iter() {
            self.shadow.wait_copies(warp, lane, left, step);
        }
    }

    /// A bulk copy has written a byte. Its mbarrier orders the write before the readers.
    pub fn fill(&mut self, byte: u32) {
        self.shadow.fill(byte);
    }

    /// A lane accesses memory of any space.
    pub fn touch(&mut self, touch: &Touch<'_>) {
        let strong = is_strong(touch.inst);
        if touch.space == Space::Shared {
            self.touch_shared(touch, strong);
        }
        if strong {
            let place = (touch.space == Space::Shared, touch.address);
            let (reads, writes) = match kind(touch.inst) {
                Kind::Read => (true, false),
                Kind::Write => (false, true),
                _ => (true, true),
            };
            if reads {
                self.order.acquire(touch.warp, touch.lane, place);
            }
            if writes {
                self.order.release(touch.warp, place);
            }
        }
    }

    fn touch_shared(&mut self, touch: &Touch<'_>, strong: bool) {
        let kind = kind(touch.inst);
        let seen = Seen {
            bytes: 0,
            kind,
            strong,
            pending: kind == Kind::Copy,
            warp: touch.warp,
            lanes: LaneMask::lane(touch.lane),
            step: self.order.step(touch.warp),
            pc: touch.pc,
        };
        let (first, n) = (touch.address as u32, touch.old.len() as u32);
        if kind == Kind::Copy {
            self.shadow.begin_copy(touch.warp, touch.lane, first, n);
        }
        for word in first / 4..(first + n).div_ceil(4) {
            let covered = (first.max(4 * word), (first + n).min(4 * word + 4));
            let bytes = (covered.0..covered.1).fold(0, |bytes, at| bytes | 1 << (at % 4));
            let range = (covered.0 - first) as usize..(covered.1 - first) as usize;
            let changes = touch.new.is_none_or(|new| new[range.clone()] != touch.old[range]);
            self.touch_word(word, Seen { bytes, ..seen }, changes);
        }
    }

    fn touch_word(&mut self, word: u32, seen: Seen, changes: bool) {
        let is_fresh = self.shadow.write(word, &seen);
        if self.checks.uninit && is_fresh {
            self.findings.add_read(Unwritten {
                block: self.block,
                address: 4 * word,
                access: self.access(&seen),
                count: 1,
            });
        }
        if !self.checks.races {
            return;
        }
        if let Some(first) = self.shadow.touch(word, seen, changes, &self.order) {
            self.findings.add_race(Race {
                block: self.block,
                address: 4 * word,
                first: self.access(&first),
                second: self.access(&seen),
                count: 1,
            });
        }
    }

    fn access(&self, seen: &Seen) -> Access {
        let linear = seen.warp as u32 * 32 + seen.lanes.lowest().unwrap_or(0) as u32;
        Access {
            kind: seen.kind,
            pc: seen.pc,
            thread: thread_position(self.block_size, linear),
        }
    }
}

fn kind(inst: &Inst) -> Kind {
    match inst.op {
        Opcode::Ld | Opcode::Ldsm => Kind::Read,
        Opcode::St => Kind::Write,
        Opcode::Ldgsts => Kind::Copy,
        _ => Kind::Atomic,
    }
}

/// Whether an access may meet others of its kind without a race, and orders its threads with theirs.
fn is_strong(inst: &Inst) -> bool {
    kind(inst) == Kind::Atomic || (kind(inst) != Kind::Copy && inst.mods.cache == CacheOp::Volatile)
}
