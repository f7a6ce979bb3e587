//! The findings of the race detectors: pairs of accesses, and reads of unwritten bytes.

use warpwave_isa::program::Program;

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
    /// No access: the block of the shared memory ends.
    End,
}

impl Kind {
    /// True for an access that writes.
    pub(super) fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::Atomic | Kind::Copy)
    }
}

/// Asynchronous operations that a thread waits for in groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// `cp.async`.
    Copies,
    /// Bulk copies from shared memory.
    Bulk,
    /// Products of a warp group (`wgmma.mma_async`).
    Products,
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
    /// Shared memory of a block.
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
    /// A barrier of the cluster.
    ClusterBarrier,
    /// A wait for the groups of the earlier thread.
    Wait(Group),
    /// `fence.proxy.async`: the later access is asynchronous, and all else is in order.
    ProxyFence,
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
    /// Block of the shared memory, x, y, z. `None` in global memory.
    pub owner: Option<[u32; 3]>,
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

impl Race {
    /// The memory of the word.
    pub fn space(&self) -> RaceSpace {
        match self.owner {
            Some(_) => RaceSpace::Shared,
            None => RaceSpace::Global,
        }
    }
}

/// A read of unwritten bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwritten {
    /// Block of the shared memory, x, y, z.
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
    pub(in super::super) fn add(&mut self, other: Findings) {
        other.races.into_iter().for_each(|race| self.add_race(race));
        other.unwritten.into_iter().for_each(|read| self.add_read(read));
        self.unchecked += other.unchecked;
    }

    pub(super) fn add_race(&mut self, race: Race) {
        let of = |race: &Race| {
            (
                race.space(),
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
        let of = |race: &Race| (race.space(), [race.first, race.second].map(line));
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

    pub(super) fn add_read(&mut self, read: Unwritten) {
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
