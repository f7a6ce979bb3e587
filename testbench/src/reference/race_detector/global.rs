//! Race detector for the global memory of a launch.
//!
//! ```text
//! step ── begin, fences, barriers ──> Causality (happens-before)
//! access ── on_access ──────────────> words (past accesses) ──> Findings
//! ```
//!
//! Two accesses by different threads to the same byte race under four conditions. At least one writes. They are not morally strong (strong,
//! each with a scope that includes the other thread). No synchronization orders them (module [`causality`]). If both write, the later one
//! changes the value.
//!
//! The reference performs accesses in one order. A race that it finds is a race of the program. A run without findings says nothing about
//! other orders.
//!
//! A word keeps at most [`MAX_PAST`] past accesses, and a launch at most a given number of words. So some races are not found.

mod causality;

mod clock;

use std::collections::HashMap;

use warpwave_components::proto::launch::Grid;
use warpwave_components::proto::trap::thread_position;
use warpwave_isa::inst::{AtomOp, CacheOp, Inst, Scope};
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use super::shadow::{self, PastAccess};
use super::{Access, Checks, Findings, Kind, LaneAccess, Missing, Race, Strength};
use causality::{Causality, Rule};

/// Maximum number of past accesses of a word.
const MAX_PAST: usize = 8;

/// Words of a page of the shadow memory.
const PAGE: usize = 64;

/// Default of [`Checks::max_words`]: 16 MiB of global memory. The past accesses then fill about 1 GB at most.
const MAX_WORDS: u64 = 1 << 22;

/// An access by one lane to global memory.
pub(in super::super) struct GlobalAccess<'a> {
    pub warp: usize,
    pub lane: usize,
    pub pc: u32,
    pub kind: Kind,
    pub strength: Strength,
    pub address: u64,
    /// The bytes before the access.
    pub old: &'a [u8],
    /// The bytes to write, if known. Same length as `old`.
    pub new: Option<&'a [u8]>,
}

/// The race detector of one launch.
pub(in super::super) struct GlobalDetector<'a> {
    grid: &'a Grid,
    /// Linear index of the running CTA, its cluster and its rank there.
    cta: u32,
    cluster: u64,
    rank: usize,
    /// The order under each [`Rule`]. The first decides if a pair races. The others explain the race.
    orders: [Causality; 3],
    /// Past accesses by page, then by word.
    pages: HashMap<u64, Box<[Vec<PastAccess>; PAGE]>>,
    /// Number of words with past accesses.
    words: u64,
    max_words: u64,
    /// For each CTA that has begun and not ended: executions of each instruction, by warp and program counter.
    executions: HashMap<u32, Vec<Vec<u32>>>,
    pub findings: Findings,
}

impl<'a> GlobalDetector<'a> {
    pub fn new(grid: &'a Grid, checks: Checks) -> Self {
        let warps = grid.warps() as usize;
        GlobalDetector {
            grid,
            cta: 0,
            cluster: 0,
            rank: 0,
            orders: [Rule::Model, Rule::AnyScope, Rule::NoFence].map(|rule| Causality::new(rule, warps)),
            pages: HashMap::new(),
            words: 0,
            max_words: checks.max_words.unwrap_or(MAX_WORDS),
            executions: HashMap::new(),
            findings: Findings::default(),
        }
    }

    /// The CTA `rank` of a cluster begins a turn.
    pub fn enter(&mut self, cta: u32, cluster: u64, rank: usize) {
        (self.cta, self.cluster, self.rank) = (cta, cluster, rank);
        self.orders.iter_mut().for_each(|order| order.enter(cta));
        let (warps, code) = (self.grid.warps() as usize, self.grid.program.code().len());
        self.executions.entry(cta).or_insert_with(|| vec![vec![0; code]; warps]);
    }

    /// The running CTA ends its turn. `ended` if it ends altogether.
    pub fn leave(&mut self, ended: bool) {
        self.orders.iter_mut().for_each(|order| order.leave(ended));
        if ended {
            self.executions.remove(&self.cta);
        }
    }

    /// A warp begins its next instruction, at `pc`, with these active lanes.
    pub fn begin(&mut self, warp: usize, pc: u32, active: LaneMask) {
        if let Some(executions) = self.executions.get_mut(&self.cta) {
            executions[warp][pc as usize] += 1;
        }
        self.orders.iter_mut().for_each(|order| order.begin(warp, active));
    }

    /// Lanes arrive at a WARPSYNC.
    pub fn on_warpsync(&mut self, warp: usize, lanes: LaneMask) {
        self.orders.iter_mut().for_each(|order| order.on_warpsync(warp, lanes));
    }

    /// A warp arrives at a block barrier.
    pub fn arrive(&mut self, warp: usize, barrier: usize) {
        self.orders.iter_mut().for_each(|order| order.arrive(warp, barrier));
    }

    /// A block barrier releases its waiting warps.
    pub fn open(&mut self, barrier: usize, waiting: impl Iterator<Item = usize> + Clone) {
        self.orders
            .iter_mut()
            .for_each(|order| order.open(barrier, waiting.clone()));
    }

    /// A warp arrives at the barrier of its cluster.
    pub fn cluster_arrive(&mut self, warp: usize) {
        let cluster = self.cluster;
        self.orders
            .iter_mut()
            .for_each(|order| order.cluster_arrive(warp, cluster));
    }

    /// The barrier of a cluster opens.
    pub fn cluster_open(&mut self, cluster: u64) {
        self.orders.iter_mut().for_each(|order| order.cluster_open(cluster));
    }

    /// A warp continues after its cluster barrier.
    pub fn cluster_wait(&mut self, warp: usize) {
        let cluster = self.cluster;
        self.orders
            .iter_mut()
            .for_each(|order| order.cluster_wait(warp, cluster));
    }

    /// Lanes execute a fence. MEMBAR releases, and CCTL.IVALL acquires. MEMBAR of CTA scope does both.
    pub fn fence(&mut self, warp: usize, lanes: LaneMask, inst: &Inst) {
        if lanes.is_empty() {
            return;
        }
        // An acquire is a CCTL.IVALL beyond CTA scope. Inside a CTA it is a MEMBAR, since all warps share one L1.
        let is_membar = inst.op == Opcode::Membar;
        let wide = inst.mods.scope != Scope::Cta;
        let acquires = !is_membar || !wide;
        for order in &mut self.orders {
            order.fence(warp, lanes, wide, is_membar, acquires);
        }
    }

    /// A bulk copy arrives at an mbarrier: its accesses come before those of the threads that wait.
    pub fn arrive_at_mbarrier(&mut self, warp: usize, rank: usize, at: u32) {
        let word = (self.cluster, rank, at);
        self.orders.iter_mut().for_each(|order| order.write_shared(warp, word));
    }

    /// A test of an mbarrier in the CTA's shared memory finds that the phase is over.
    pub fn pass_mbarrier(&mut self, warp: usize, lane: usize, at: u32) {
        let word = (self.cluster, self.rank, at);
        self.orders
            .iter_mut()
            .for_each(|order| order.read_shared(warp, lane, word));
    }

    /// Updates the order with an access to the shared memory of the CTA with this rank.
    pub fn on_shared(&mut self, access: &LaneAccess<'_>, rank: usize) {
        let strong = super::is_strong(access.inst);
        // A test of an mbarrier orders only if its phase is over (`pass_mbarrier`).
        if !strong || access.inst.op == Opcode::Syncs {
            return;
        }
        let (warp, word) = (access.warp, (self.cluster, rank, access.address as u32));
        let arrives = matches!(access.inst.mods.atom, AtomOp::Arrive | AtomOp::ArriveDrop);
        let kind = super::kind(access.inst);
        for order in &mut self.orders {
            // An arrival at an mbarrier acquires nothing.
            if kind != Kind::Write && !arrives {
                order.read_shared(warp, access.lane, word);
            }
            if kind != Kind::Read {
                order.write_shared(warp, word);
            }
        }
    }

    /// Checks an access of a load, store or atomic to global memory, and updates the order.
    pub fn on_access(&mut self, access: &LaneAccess<'_>) {
        let (kind, strength) = (global_kind(access.inst), strength(access.inst));
        self.check(&GlobalAccess {
            warp: access.warp,
            lane: access.lane,
            pc: access.pc,
            kind,
            strength,
            address: access.address,
            old: access.old,
            new: access.new,
        });
        // Acquire and release happen after the race check: an access cannot order itself. Each element of a vector is an access.
        let element = u64::from(access.inst.mods.access.bytes).max(1);
        for address in (access.address..access.address + access.old.len() as u64).step_by(element as usize) {
            for order in &mut self.orders {
                let is_atomic = kind == Kind::Atomic;
                match strength {
                    Strength::Weak if kind == Kind::Write => order.overwrite(address),
                    Strength::Weak => {}
                    _ => {
                        // The read of a reduction is no part of an acquire pattern.
                        if kind != Kind::Write && access.inst.op != Opcode::Red {
                            order.read(access.warp, access.lane, address, strength);
                        }
                        if kind != Kind::Read {
                            order.write(access.warp, address, strength, is_atomic);
                        }
                    }
                }
            }
        }
    }

    /// Checks an access to global memory. The order does not change.
    pub fn check(&mut self, access: &GlobalAccess<'_>) {
        let nth = self.executions.get(&self.cta);
        let seen = PastAccess {
            bytes: 0,
            kind: access.kind,
            strength: access.strength,
            pending: None,
            is_async: false,
            is_collective: false,
            cta: self.cta,
            warp: access.warp as u32,
            lanes: LaneMask::lane(access.lane),
            step: self.orders[0].step(access.warp),
            pc: access.pc,
            nth: nth.map_or(0, |executions| executions[access.warp][access.pc as usize]),
        };
        let (first, end) = (access.address, access.address + access.old.len() as u64);
        for word in first / 4..end.div_ceil(4) {
            let covered = (first.max(4 * word), end.min(4 * word + 4));
            let bytes = (covered.0..covered.1).fold(0, |bytes, at| bytes | 1 << (at % 4));
            let range = (covered.0 - first) as usize..(covered.1 - first) as usize;
            // Without the new bytes (atomics), assume a change.
            let changes = access.new.is_none_or(|new| new[range.clone()] != access.old[range]);
            self.check_word(word, PastAccess { bytes, ..seen }, changes);
        }
    }

    /// Checks the bytes of an access in one word. `changes` is false if the word keeps its value.
    fn check_word(&mut self, word: u64, new: PastAccess, changes: bool) {
        let page = self.pages.entry(word / PAGE as u64);
        let page = page.or_insert_with(|| Box::new([const { Vec::new() }; PAGE]));
        let past = &mut page[word as usize % PAGE];
        // A word that was ever checked keeps its allocation, so this counts each word once.
        if past.capacity() == 0 {
            if self.words == self.max_words {
                self.findings.unchecked += 1;
                return;
            }
            self.words += 1;
        }
        let (warp, lane) = (new.warp as usize, new.lanes.lowest().unwrap_or(0));
        let order = &self.orders[0];
        let before = |old: &PastAccess| order.before((old.cta, old.warp as usize), old.step, (warp, lane));
        // Only the order of the model decides. The other orders explain a race.
        let race = shadow::add(past, new, changes, before);
        if past.len() > MAX_PAST {
            // The oldest access and the new one stay. Of the others a read goes first, since reads race with fewer accesses.
            let read = past[1..MAX_PAST].iter().position(|old| old.kind == Kind::Read);
            past.remove(1 + read.unwrap_or(0));
        }
        if let Some(first) = race {
            let missing = self.missing(&first, &new);
            let (first, second) = (self.access(&first), self.access(&new));
            self.findings.add_race(Race {
                owner: None,
                address: 4 * word,
                first,
                second,
                missing,
                count: 1,
            });
        }
    }

    /// What would order a race of `first` with the current access `second`.
    fn missing(&self, first: &PastAccess, second: &PastAccess) -> Missing {
        if (first.cta, first.warp) == (second.cta, second.warp) {
            return Missing::WarpBarrier;
        }
        // Both are strong and race: so the scope of one is too narrow.
        if first.strength != Strength::Weak && second.strength != Strength::Weak {
            return Missing::AccessScope;
        }
        let (of_first, lane) = ((first.cta, first.warp as usize), first.lanes.lowest().unwrap_or(0));
        let of_second = (second.warp as usize, second.lanes.lowest().unwrap_or(0));
        let orders = |order: &Causality| order.before(of_first, first.step, of_second).contains(lane);
        let has_seen = self.orders[0].has_seen(of_first, first.step);
        // The mildest rule that orders the pair names what is missing under the model.
        match () {
            () if orders(&self.orders[1]) => Missing::FenceScope,
            () if orders(&self.orders[2]) && has_seen => Missing::Acquire,
            () if orders(&self.orders[2]) => Missing::Release,
            () if first.cta == second.cta => Missing::Barrier,
            () => Missing::Synchronization,
        }
    }

    fn access(&self, seen: &PastAccess) -> Access {
        let lane = seen.lanes.lowest().unwrap_or(0) as u32;
        Access {
            kind: seen.kind,
            pc: seen.pc,
            block: self.grid.cta_position(seen.cta.into()),
            thread: thread_position(self.grid.block, seen.warp * 32 + lane),
            warp: seen.warp,
            lane,
            nth: seen.nth,
        }
    }
}

/// The kind of an access to global memory. A copy to shared memory reads.
fn global_kind(inst: &Inst) -> Kind {
    match inst.op {
        Opcode::Ld | Opcode::Ldgsts => Kind::Read,
        Opcode::St => Kind::Write,
        _ => Kind::Atomic,
    }
}

/// The scope of a strong access.
fn strength(inst: &Inst) -> Strength {
    let is_strong = match inst.op {
        Opcode::Ld | Opcode::St => inst.mods.cache == CacheOp::Volatile,
        Opcode::Ldgsts => false,
        _ => true,
    };
    match inst.mods.scope {
        _ if !is_strong => Strength::Weak,
        Scope::Cta => Strength::Cta,
        Scope::Gpu | Scope::Sys => Strength::Gpu,
    }
}
