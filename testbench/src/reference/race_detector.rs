//! Race detectors: one for the shared memory of each cluster, and one for global memory (module [`global`]).
//!
//! The detector of shared memory also finds reads of unwritten bytes. In a launch without clusters, each CTA is a cluster of one.
//!
//! ```text
//! step ── begin, barriers, fences ──> Order (happens-before)
//! access ── on_access ──────────────> Shadow (past accesses of each word) ──> Findings
//! ```
//!
//! Two accesses by different threads to the same byte race under three conditions. At least one writes. At least one is weak: it is not
//! an atomic, `.volatile`, `.relaxed` or stronger. No synchronization orders them (module [`order`]). A `cp.async`, a bulk copy from
//! shared memory and a product of a warp group are in flight until their thread waits for them. A write that does not change the value
//! races with no other write. A block that ends races with accesses of other blocks to its shared memory.
//!
//! It finds only races of this run: other data may take other paths. A doubtful pair counts as ordered, so every reported race is real.

pub(super) mod global;

mod findings;

mod order;

mod shadow;

use warpwave_components::proto::launch::Grid;
use warpwave_components::proto::trap::thread_position;
use warpwave_isa::barrier::BLOCK_BARRIERS;
use warpwave_isa::inst::{AtomOp, CacheOp, Inst, Scope};
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

pub use findings::{Access, Checks, Findings, Group, Kind, Missing, Race, RaceSpace, Unwritten};
use order::Order;
use shadow::{PastAccess, Shadow};

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

/// An access by one lane.
pub(super) struct LaneAccess<'a> {
    pub warp: usize,
    pub lane: usize,
    pub pc: u32,
    pub inst: &'a Inst,
    /// Rank of the CTA with the shared memory. `None` in other spaces.
    pub rank: Option<usize>,
    /// Address in the space, or in the shared memory of the CTA.
    pub address: u64,
    /// The bytes before the access.
    pub old: &'a [u8],
    /// The bytes to write, if known. Same length as `old`.
    pub new: Option<&'a [u8]>,
}

/// A CTA of the cluster.
struct Member {
    block: [u32; 3],
    /// For each warp of another CTA, its last access to the shared memory of this one, with the word.
    foreign: Vec<(usize, PastAccess)>,
    /// Warp and program counter of the last instruction.
    last: (usize, u32),
    /// The end of the CTA.
    end: Option<PastAccess>,
}

/// The race detector of one cluster. One CTA runs at a time, and gives its own index of a warp.
pub(super) struct RaceDetector<'a> {
    checks: Checks,
    grid: &'a Grid,
    /// Rank of the running CTA.
    rank: usize,
    members: Vec<Member>,
    order: Order,
    shadow: Shadow,
    /// Executions of each instruction, by warp of the cluster and program counter.
    executions: Vec<Vec<u32>>,
    pub findings: Findings,
}

impl<'a> RaceDetector<'a> {
    /// The detector of a cluster of a grid.
    pub fn new(checks: Checks, grid: &'a Grid, cluster: u64) -> Self {
        let ranks = grid.cluster_ctas();
        let warps = (ranks * grid.warps()) as usize;
        let member = |rank| Member {
            block: grid.cta_position(grid.cluster_cta(cluster, rank)),
            foreign: Vec::new(),
            last: (0, 0),
            end: None,
        };
        RaceDetector {
            checks,
            grid,
            rank: 0,
            members: (0..ranks).map(member).collect(),
            order: Order::new(warps),
            shadow: Shadow::new(ranks as usize * shared_words(grid)),
            executions: vec![vec![0; grid.program.code().len()]; warps],
            findings: Findings::default(),
        }
    }

    /// The CTA with this rank begins a turn.
    pub fn enter(&mut self, rank: usize) {
        self.rank = rank;
    }

    /// A warp begins its next instruction, at `pc`, with these active lanes.
    pub fn begin(&mut self, warp: usize, pc: u32, active: LaneMask) {
        let warp = self.warp(warp);
        self.members[self.rank].last = (warp, pc);
        self.executions[warp][pc as usize] += 1;
        self.order.begin(warp, active);
    }

    /// Lanes arrive at a WARPSYNC.
    pub fn on_warpsync(&mut self, warp: usize, lanes: LaneMask) {
        self.order.on_warpsync(self.warp(warp), lanes);
    }

    /// A warp arrives at a block barrier.
    pub fn arrive(&mut self, warp: usize, barrier: usize) {
        self.order.arrive(self.warp(warp), self.rank * BLOCK_BARRIERS + barrier);
    }

    /// A block barrier releases its waiting warps.
    pub fn open(&mut self, barrier: usize, waiting: impl Iterator<Item = usize>) {
        let first = self.warp(0);
        self.order
            .open(self.rank * BLOCK_BARRIERS + barrier, waiting.map(|warp| first + warp));
    }

    /// Lanes execute a fence.
    pub fn fence(&mut self, warp: usize, lanes: LaneMask, inst: &Inst) {
        let warp = self.warp(warp);
        match inst.op {
            _ if lanes.is_empty() => {}
            Opcode::FenceView => self.order.fence_proxy(warp),
            Opcode::Membar if inst.mods.scope != Scope::Cta => self.order.fence(warp),
            _ => {}
        }
    }

    /// A warp arrives at the barrier of the cluster.
    pub fn cluster_arrive(&mut self, warp: usize) {
        self.order.cluster_arrive(self.warp(warp));
    }

    /// The barrier of the cluster opens.
    pub fn cluster_open(&mut self) {
        self.order.cluster_open();
    }

    /// A warp continues after the barrier of the cluster.
    pub fn cluster_wait(&mut self, warp: usize) {
        self.order.cluster_wait(self.warp(warp));
    }

    /// Lanes commit their open operations as a group.
    pub fn close(&mut self, group: Group, warp: usize, lanes: LaneMask) {
        let warp = self.warp(warp);
        lanes.iter().for_each(|lane| self.shadow.close(group, warp, lane));
    }

    /// Lanes wait until at most `left` of their groups are in flight.
    pub fn wait(&mut self, group: Group, warp: usize, lanes: LaneMask, left: usize) {
        let warp = self.warp(warp);
        let step = self.order.step(warp);
        for lane in lanes.iter() {
            self.shadow.wait(group, (warp, lane), left, step);
        }
    }

    /// A bulk copy of a warp arrives at the mbarrier at this address. It orders the copy before the threads that wait.
    pub fn complete_copy(&mut self, warp: usize, rank: usize, mbarrier: u32) {
        self.order.release(self.warp(warp), (Some(rank), mbarrier.into()));
    }

    /// A test of an mbarrier in the own shared memory finds that the phase is over.
    pub fn pass_mbarrier(&mut self, warp: usize, lane: usize, mbarrier: u32) {
        self.order
            .acquire(self.warp(warp), lane, (Some(self.rank), mbarrier.into()));
    }

    /// Checks an access if it is to shared memory. Updates the order with an access of any space.
    pub fn on_access(&mut self, access: &LaneAccess<'_>) {
        let strong = is_strong(access.inst);
        if let Some(rank) = access.rank {
            self.check_shared(access, rank, strong);
        }
        // Acquire and release happen after the race check: an access cannot order itself. A test of an mbarrier orders only if its
        // phase is over (`pass_mbarrier`).
        if strong && access.inst.op != Opcode::Syncs {
            // A strong access of global memory orders shared memory too.
            let (warp, location) = (self.warp(access.warp), (access.rank, access.address));
            let kind = kind(access.inst);
            // An arrival at an mbarrier acquires nothing.
            let arrives = matches!(access.inst.mods.atom, AtomOp::Arrive | AtomOp::ArriveDrop);
            if kind != Kind::Write && !arrives {
                self.order.acquire(warp, access.lane, location);
            }
            if kind != Kind::Read {
                self.order.release(warp, location);
            }
        }
    }

    /// The running CTA has ended: accesses of other CTAs to its shared memory must be ordered before its end.
    pub fn end(&mut self) {
        let member = &self.members[self.rank];
        if member.end.is_some() {
            return;
        }
        let (warp, pc) = member.last;
        let end = self.event(Kind::End, (warp, 0), pc);
        let first = self.warp(0);
        let member = &mut self.members[self.rank];
        member.end = Some(end);
        for (word, seen) in std::mem::take(&mut member.foreign) {
            // The CTA ends with its last warp, so after each of its warps.
            let is_before = |warp| self.order.before(seen.warp as usize, seen.step, (warp, 0)).contains(0);
            if !(first..first + self.grid.warps() as usize).any(is_before) {
                self.add_race(word, &seen, &end, Missing::ClusterBarrier);
            }
        }
    }

    /// Checks an access to shared memory, word by word.
    fn check_shared(&mut self, access: &LaneAccess<'_>, rank: usize, strong: bool) {
        let warp = self.warp(access.warp);
        let is_product = matches!(access.inst.op, Opcode::Hgmma | Opcode::HgmmaSp);
        let seen = PastAccess {
            // Every scope includes the threads of the CTA. `.cluster` counts as `.gpu`.
            strength: if strong { Strength::Gpu } else { Strength::Weak },
            pending: group(access.inst),
            is_async: is_product || is_bulk(access.inst),
            is_collective: is_product,
            ..self.event(kind(access.inst), (warp, access.lane), access.pc)
        };
        let (first, n) = (access.address as usize, access.old.len());
        let base = rank * shared_words(self.grid);
        if rank != self.rank && self.checks.races {
            self.note_foreign(rank, base + first / 4, seen);
        }
        for word in first / 4..(first + n).div_ceil(4) {
            let covered = (first.max(4 * word), (first + n).min(4 * word + 4));
            let bytes = (covered.0..covered.1).fold(0, |bytes, at| bytes | 1 << (at % 4));
            let range = covered.0 - first..covered.1 - first;
            // Without the new bytes (atomics), assume a change.
            let changes = access.new.is_none_or(|new| new[range.clone()] != access.old[range]);
            self.check_word(base + word, PastAccess { bytes, ..seen }, changes);
        }
    }

    /// A weak event of a lane in its current step, by index of the warp in the cluster. It has no bytes yet.
    fn event(&self, kind: Kind, (warp, lane): (usize, usize), pc: u32) -> PastAccess {
        PastAccess {
            bytes: 0,
            kind,
            strength: Strength::Weak,
            pending: None,
            is_async: false,
            is_collective: false,
            cta: 0,
            warp: warp as u32,
            lanes: LaneMask::lane(lane),
            step: self.order.step(warp),
            pc,
            nth: self.executions[warp][pc as usize],
        }
    }

    /// Notes an access to the shared memory of another CTA. It races with the end of that CTA.
    fn note_foreign(&mut self, rank: usize, word: usize, seen: PastAccess) {
        let member = &mut self.members[rank];
        if let Some(end) = member.end {
            self.add_race(word, &end, &seen, Missing::ClusterBarrier);
            return;
        }
        // A later access of the warp covers the earlier ones.
        match member.foreign.iter_mut().find(|(_, old)| old.warp == seen.warp) {
            Some(last) => *last = (word, seen),
            None => member.foreign.push((word, seen)),
        }
    }

    /// Checks the bytes of an access in one word of the cluster. `changes` is false if the word keeps its value.
    fn check_word(&mut self, word: usize, seen: PastAccess, changes: bool) {
        let is_unwritten = self.shadow.write(word, &seen);
        if self.checks.uninit && is_unwritten {
            let (rank, address) = self.place(word);
            self.findings.add_read(Unwritten {
                block: self.members[rank].block,
                address,
                access: self.access(&seen),
                count: 1,
            });
        }
        if !self.checks.races {
            return;
        }
        if let Some(first) = self.shadow.add(word, seen, changes, &self.order) {
            let missing = self.missing(&first, &seen);
            self.add_race(word, &first, &seen, missing);
        }
    }

    /// What would order a race of `first` with the current access `second`.
    fn missing(&self, first: &PastAccess, second: &PastAccess) -> Missing {
        let lane = first.lanes.lowest().unwrap_or(0);
        let rank = |access: &PastAccess| access.warp / self.grid.warps();
        match first.pending {
            Some(group) => Missing::Wait(group),
            None if shadow::before(first, second, &self.order).contains(lane) => Missing::ProxyFence,
            None if first.warp == second.warp => Missing::WarpBarrier,
            None if rank(first) == rank(second) => Missing::Barrier,
            None => Missing::ClusterBarrier,
        }
    }

    fn add_race(&mut self, word: usize, first: &PastAccess, second: &PastAccess, missing: Missing) {
        let (rank, address) = self.place(word);
        let race = Race {
            owner: Some(self.members[rank].block),
            address: address.into(),
            first: self.access(first),
            second: self.access(second),
            missing,
            count: 1,
        };
        self.findings.add_race(race);
    }

    fn access(&self, seen: &PastAccess) -> Access {
        let lane = seen.lanes.lowest().unwrap_or(0) as u32;
        let (rank, warp) = (seen.warp / self.grid.warps(), seen.warp % self.grid.warps());
        Access {
            kind: seen.kind,
            pc: seen.pc,
            block: self.members[rank as usize].block,
            thread: thread_position(self.grid.block, warp * 32 + lane),
            warp,
            lane,
            nth: seen.nth,
        }
    }

    /// The index in the cluster of a warp of the running CTA.
    fn warp(&self, warp: usize) -> usize {
        self.rank * self.grid.warps() as usize + warp
    }

    /// The rank of the CTA and the byte address in its shared memory of a word of the cluster.
    fn place(&self, word: usize) -> (usize, u32) {
        let words = shared_words(self.grid);
        (word / words, 4 * (word % words) as u32)
    }
}

/// Words of the shared memory of a CTA.
fn shared_words(grid: &Grid) -> usize {
    grid.shared_bytes.div_ceil(4) as usize
}

/// The kind of an access to shared memory. A test of an mbarrier counts as atomic.
fn kind(inst: &Inst) -> Kind {
    match inst.op {
        Opcode::Ld | Opcode::Ldsm | Opcode::Hgmma | Opcode::HgmmaSp => Kind::Read,
        Opcode::St => Kind::Write,
        Opcode::Ldgsts => Kind::Copy,
        // A bulk copy reads shared memory, or writes it, as one that its thread performs at once.
        _ if is_bulk(inst) && inst.mods.high => Kind::Read,
        _ if is_bulk(inst) => Kind::Write,
        _ => Kind::Atomic,
    }
}

fn is_bulk(inst: &Inst) -> bool {
    matches!(inst.op, Opcode::Ublkcp | Opcode::Ublkred)
}

/// The kind of the group that an access is in. A bulk copy to shared memory has an mbarrier instead.
fn group(inst: &Inst) -> Option<Group> {
    match inst.op {
        Opcode::Ldgsts => Some(Group::Copies),
        Opcode::Hgmma | Opcode::HgmmaSp => Some(Group::Products),
        _ if is_bulk(inst) && inst.mods.high => Some(Group::Bulk),
        _ => None,
    }
}

/// True for a strong access: it does not race with other strong ones, and it orders its threads with theirs.
fn is_strong(inst: &Inst) -> bool {
    kind(inst) == Kind::Atomic || (kind(inst) != Kind::Copy && inst.mods.cache == CacheOp::Volatile)
}
