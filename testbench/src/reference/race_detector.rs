//! Race detectors: one for the shared memory of each CTA, and one for global memory (module [`global`]).
//!
//! The detector of shared memory also finds reads of unwritten bytes.
//!
//! ```text
//! step ── begin, on_warpsync ──> Order (happens-before)
//! access ── on_access ─────────> Shadow (past accesses of each word) ──> Findings
//! ```
//!
//! Two accesses by different threads to the same byte race under three conditions. At least one writes. At least one is weak: it is not
//! an atomic, `.volatile`, `.relaxed` or stronger. No synchronization orders them (module [`order`]). A `cp.async` is in flight until
//! its thread waits for it. A write that does not change the value races with no other write.
//!
//! It finds only races of this run: other data may take other paths. A doubtful pair counts as ordered, so every reported race is real.

pub(super) mod global;

mod order;

mod shadow;

use warpwave_components::proto::launch::Grid;
use warpwave_components::proto::trap::thread_position;
use warpwave_isa::inst::{CacheOp, Inst};
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Program;
use warpwave_isa::space::Space;

use order::Order;
use shadow::{PastAccess, Shadow};

/// The checks to run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Checks {
    /// Unordered accesses to shared and global memory.
    pub races: bool,
    /// Reads of unwritten bytes of shared memory.
    pub uninit: bool,
    /// Words of global memory that a launch checks. `None` is 4,194,304 (16 MiB).
    pub max_words: Option<u64>,
}

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes atomically.
    Atomic,
    /// Writes at any time until its thread waits for it (`cp.async`).
    Copy,
}

impl Kind {
    fn writes(self) -> bool {
        self != Kind::Read
    }
}

/// The strength of an access in the memory model: weak, or strong with a scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Strength {
    /// Weak.
    Weak,
    /// Strong at CTA scope.
    Cta,
    /// Strong at a wider scope.
    Gpu,
}

/// One access to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Its kind.
    pub kind: Kind,
    /// Index of the instruction in the program.
    pub pc: u32,
    /// Block in the grid, x, y, z.
    pub block: [u32; 3],
    /// Thread in the block, x, y, z.
    pub thread: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
    /// Executions of the instruction by this warp so far. Includes this one.
    pub nth: u32,
}

/// The memory of a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RaceSpace {
    /// Shared memory of the block.
    Shared,
    /// Global memory.
    Global,
}

/// What would order the accesses of a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// `bar.warp.sync`: both are in one warp.
    WarpBarrier,
    /// A barrier of the block.
    Barrier,
    /// Both accesses are strong, and the scope of one excludes the other's block.
    AccessScope,
    /// Fences are present, and the scope of a fence or a flag excludes the other's block.
    FenceScope,
    /// The later thread reads a flag, and needs an acquire after it.
    Acquire,
    /// The earlier thread writes a flag, and needs a release before it.
    Release,
    /// Anything between two blocks: nothing orders them.
    Synchronization,
}

/// Two accesses that no synchronization orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// Shared or global memory.
    pub space: RaceSpace,
    /// First byte of the word.
    pub address: u64,
    /// The access that the reference performed first.
    pub first: Access,
    /// The later access.
    pub second: Access,
    /// What would order them.
    pub missing: Missing,
    /// Number of races of these two instructions, over words and threads. Includes this one.
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
    /// Number of such reads by this instruction, over words and threads. Includes this one.
    pub count: u64,
}

/// The findings of a race detector: the first case of each instruction or pair of instructions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Findings {
    /// In the order in which they were found.
    pub races: Vec<Race>,
    /// In the order in which they were found.
    pub unwritten: Vec<Unwritten>,
    /// Accesses to words of global memory beyond [`Checks::max_words`]. They are not checked.
    pub unchecked: u64,
}

impl Findings {
    /// True if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.races.is_empty() && self.unwritten.is_empty()
    }

    /// Adds the findings of another CTA.
    pub(super) fn add(&mut self, other: Findings) {
        other.races.into_iter().for_each(|race| self.add_race(race));
        other.unwritten.into_iter().for_each(|read| self.add_read(read));
        self.unchecked += other.unchecked;
    }

    fn add_race(&mut self, race: Race) {
        let of = |race: &Race| {
            (
                race.space,
                [race.first, race.second].map(|access| (access.pc, access.kind)),
            )
        };
        // A loop or a grid repeats a race. One report per pair of instructions is enough to find it.
        match self.races.iter_mut().find(|known| of(known) == of(&race)) {
            Some(known) => known.count += race.count,
            None => self.races.push(race),
        }
    }

    /// Joins findings of the same lines: an unrolled loop has several copies of an instruction.
    pub fn join_copies(&mut self, program: &Program) {
        let line = |access: Access| {
            let inst = &program.code()[access.pc as usize];
            // An instruction without a line is no copy of another one.
            (inst.line, if inst.line == 0 { access.pc } else { 0 }, access.kind)
        };
        let of = |race: &Race| (race.space, [race.first, race.second].map(line));
        let mut races: Vec<Race> = Vec::new();
        for race in std::mem::take(&mut self.races) {
            match races.iter_mut().find(|known| of(known) == of(&race)) {
                Some(known) => known.count += race.count,
                None => races.push(race),
            }
        }
        let mut unwritten: Vec<Unwritten> = Vec::new();
        for read in std::mem::take(&mut self.unwritten) {
            match unwritten
                .iter_mut()
                .find(|known| line(known.access) == line(read.access))
            {
                Some(known) => known.count += read.count,
                None => unwritten.push(read),
            }
        }
        (self.races, self.unwritten) = (races, unwritten);
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

/// An access by one lane.
pub(super) struct LaneAccess<'a> {
    pub warp: usize,
    pub lane: usize,
    pub pc: u32,
    pub inst: &'a Inst,
    pub space: Space,
    pub address: u64,
    /// The bytes before the access.
    pub old: &'a [u8],
    /// The bytes to write, if known. Same length as `old`.
    pub new: Option<&'a [u8]>,
}

/// The race detector of one CTA.
pub(super) struct RaceDetector {
    checks: Checks,
    block: [u32; 3],
    block_size: [u32; 3],
    order: Order,
    shadow: Shadow,
    /// Executions of each instruction, by warp and program counter.
    executions: Vec<Vec<u32>>,
    pub findings: Findings,
}

impl RaceDetector {
    /// The detector of the CTA `block` of a grid.
    pub fn new(checks: Checks, block: [u32; 3], grid: &Grid) -> Self {
        let (block_size, shared_bytes) = (grid.block, grid.shared_bytes);
        let warps = block_size.iter().product::<u32>().div_ceil(32) as usize;
        RaceDetector {
            checks,
            block,
            block_size,
            order: Order::new(warps),
            shadow: Shadow::new(shared_bytes),
            executions: vec![vec![0; grid.program.code().len()]; warps],
            findings: Findings::default(),
        }
    }

    /// A warp begins its next instruction, at `pc`, with these active lanes.
    pub fn begin(&mut self, warp: usize, pc: u32, active: LaneMask) {
        self.executions[warp][pc as usize] += 1;
        self.order.begin(warp, active);
    }

    /// Lanes arrive at a WARPSYNC.
    pub fn on_warpsync(&mut self, warp: usize, lanes: LaneMask) {
        self.order.on_warpsync(warp, lanes);
    }

    /// A warp arrives at a block barrier.
    pub fn arrive(&mut self, warp: usize, barrier: usize) {
        self.order.arrive(warp, barrier);
    }

    /// A block barrier releases its waiting warps.
    pub fn open(&mut self, barrier: usize, waiting: impl Iterator<Item = usize>) {
        self.order.open(barrier, waiting);
    }

    /// Lanes commit their open copies as a group.
    pub fn close_copies(&mut self, warp: usize, lanes: LaneMask) {
        lanes.iter().for_each(|lane| self.shadow.close_copies(warp, lane));
    }

    /// Lanes wait until at most `left` of their copy groups are in flight.
    pub fn wait_copies(&mut self, warp: usize, lanes: LaneMask, left: usize) {
        let step = self.order.step(warp);
        for lane in lanes.iter() {
            self.shadow.wait_copies(warp, lane, left, step);
        }
    }

    /// A bulk copy of a warp arrives at the mbarrier at this address. It orders the copy before the threads that wait.
    pub fn complete_copy(&mut self, warp: usize, mbarrier: u32) {
        self.order.release(warp, (true, mbarrier.into()));
    }

    /// Checks an access if it is to shared memory. Updates the order with an access of any space.
    pub fn on_access(&mut self, access: &LaneAccess<'_>) {
        let strong = is_strong(access.inst);
        if access.space == Space::Shared {
            self.check_shared(access, strong);
        }
        // Acquire and release happen after the race check: an access cannot order itself.
        if strong {
            // A strong access of global memory orders shared memory too.
            let location = (access.space == Space::Shared, access.address);
            let (reads, writes) = match kind(access.inst) {
                Kind::Read => (true, false),
                Kind::Write => (false, true),
                _ => (true, true),
            };
            if reads {
                self.order.acquire(access.warp, access.lane, location);
            }
            if writes {
                self.order.release(access.warp, location);
            }
        }
    }

    /// Checks an access to shared memory, word by word.
    fn check_shared(&mut self, access: &LaneAccess<'_>, strong: bool) {
        let kind = kind(access.inst);
        let seen = PastAccess {
            bytes: 0,
            kind,
            // Shared memory belongs to one CTA: every scope includes all its threads.
            strength: if strong { Strength::Gpu } else { Strength::Weak },
            // A copy writes at any time until its thread waits for it.
            pending: kind == Kind::Copy,
            cta: 0,
            warp: access.warp as u32,
            lanes: LaneMask::lane(access.lane),
            step: self.order.step(access.warp),
            pc: access.pc,
            nth: self.executions[access.warp][access.pc as usize],
        };
        let (first, n) = (access.address as u32, access.old.len() as u32);
        if kind == Kind::Copy {
            self.shadow.begin_copy(access.warp, access.lane, first, n);
        }
        for word in first / 4..(first + n).div_ceil(4) {
            let covered = (first.max(4 * word), (first + n).min(4 * word + 4));
            let bytes = (covered.0..covered.1).fold(0, |bytes, at| bytes | 1 << (at % 4));
            let range = (covered.0 - first) as usize..(covered.1 - first) as usize;
            // Without the new bytes (atomics), assume a change.
            let changes = access.new.is_none_or(|new| new[range.clone()] != access.old[range]);
            self.check_word(word, PastAccess { bytes, ..seen }, changes);
        }
    }

    /// Checks the bytes of an access in one word. `changes` is false if the word keeps its value.
    fn check_word(&mut self, word: u32, seen: PastAccess, changes: bool) {
        let is_unwritten = self.shadow.write(word, &seen);
        if self.checks.uninit && is_unwritten {
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
        if let Some(first) = self.shadow.add(word, seen, changes, &self.order) {
            self.findings.add_race(Race {
                space: RaceSpace::Shared,
                address: u64::from(4 * word),
                first: self.access(&first),
                second: self.access(&seen),
                missing: match first.warp == seen.warp {
                    true => Missing::WarpBarrier,
                    false => Missing::Barrier,
                },
                count: 1,
            });
        }
    }

    fn access(&self, seen: &PastAccess) -> Access {
        let lane = seen.lanes.lowest().unwrap_or(0) as u32;
        Access {
            kind: seen.kind,
            pc: seen.pc,
            block: self.block,
            thread: thread_position(self.block_size, seen.warp * 32 + lane),
            warp: seen.warp,
            lane,
            nth: seen.nth,
        }
    }
}

/// The kind of an access to shared memory. A test of an mbarrier counts as atomic.
fn kind(inst: &Inst) -> Kind {
    match inst.op {
        Opcode::Ld | Opcode::Ldsm => Kind::Read,
        Opcode::St => Kind::Write,
        Opcode::Ldgsts => Kind::Copy,
        // A bulk copy reads shared memory, or writes it, as one that its thread performs at once.
        Opcode::Ublkcp | Opcode::Ublkred if inst.mods.high => Kind::Read,
        Opcode::Ublkcp | Opcode::Ublkred => Kind::Write,
        _ => Kind::Atomic,
    }
}

/// True for a strong access: it does not race with other strong ones, and it orders its threads with theirs.
fn is_strong(inst: &Inst) -> bool {
    kind(inst) == Kind::Atomic || (kind(inst) != Kind::Copy && inst.mods.cache == CacheOp::Volatile)
}
