//! The CTA manager of an SM: admits CTAs, starts their warps on the sub-cores, runs their barriers, and reports their end.
//!
//! ```text
//!   GigaThread --CtaLaunch--> [cta] --WarpCommand--> scheduler of each sub-core
//!              <--SmEvent----       --WarpInfo-----> dispatch unit of each sub-core
//!                                   <--WarpEvent---- scheduler of each sub-core
//!                                   <--Trap--------- lsu, shared memory, bulk copy engine
//! ```
//!
//! | Stage of `tick` | What it does | Cycles |
//! |---|---|---|
//! | take | takes traps of the memory units, then arrivals and ends of warps | 0 |
//! | count | counts the arrivals at barriers, one after the other over all CTAs; take computes the cycle of each count | `per_warp` each |
//! | release | releases barriers whose latency is over | `base_latency` after the count of the last arrival |
//! | finish | frees the slots of CTAs whose warps have all ended; reports the end of the last stores of ended warps | 0 |
//! | start | starts at most one warp per sub-core, lowest CTA slot first | 1 to the scheduler |
//! | admit | admits at most one CTA; its warps start from the next cycle on | 1 |
//! | clusters | sends placements to the LSU, starts and ends to shared memory, arrivals to the cluster barrier; passes on at most one release | 1 |
//!
//! A warp goes to the sub-core with the most free slots, the lowest among equals. Registers need no allocator: all warps on an SM belong
//! to one grid. The registers of slot i start at i times the registers of a warp.
//!
//! # Invariants
//! - The SM never holds more CTAs than it has slots: GigaThread sends a CTA only for a free slot.
//! - A CTA's slot is free only when all its warps have ended. Their stores may be in flight; GigaThread waits for them before it ends the
//!   grid.

mod barrier_release;
mod cluster;
mod counts;
mod ends;
mod events;
mod warp_messages;

pub use cluster::ClusterPorts;
pub use counts::Stats;

use std::sync::Arc;

use tracing::debug;
use warpwave_hw::bits::ones;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::barrier::BLOCK_BARRIERS;

use crate::config;
use crate::proto::launch::{CtaLaunch, Grid, SmEvent, Trap};
use crate::proto::warp::{MAX_SLOTS, SlotMask, WarpCommand, WarpEvent, WarpInfo};
use crate::sm::barrier::Barriers;
use barrier_release::PendingRelease;
use cluster::{Clusters, Member};
use warp_messages::{shared_base, slot_bytes, warp_start};

/// Parameters of a CTA manager.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sub-cores of the SM.
    pub subcores: usize,
    /// Warp slots of each sub-core.
    pub warps_per_subcore: usize,
    /// CTA slots of the SM.
    pub max_ctas: usize,
    /// Barrier latencies.
    pub barrier: config::Barrier,
    /// Allocation unit for the shared memory of a CTA, bytes.
    pub shared_unit: u32,
}

/// The links of a CTA manager.
pub struct Ports {
    /// CTAs to run.
    pub launch: InPort<CtaLaunch>,
    /// Ends of CTAs, and traps.
    pub event: OutPort<SmEvent>,
    /// To each sub-core's scheduler.
    pub command: Vec<OutPort<WarpCommand>>,
    /// To each sub-core's dispatch unit.
    pub warp_info: Vec<OutPort<WarpInfo>>,
    /// From each sub-core's scheduler.
    pub warp: Vec<InPort<WarpEvent>>,
    /// From the LSU, shared memory, and the bulk copy engine of a GPU with clusters.
    pub traps: Vec<InPort<Box<Trap>>>,
    /// Links of clusters, on a GPU that has clusters.
    pub cluster: Option<ClusterPorts>,
}

warpwave_hw::show_ports!(Ports: launch, event, command, warp_info, warp, traps, cluster);

/// A resident CTA.
#[derive(Clone, Debug)]
pub(crate) struct Cta {
    pub(crate) grid: Arc<Grid>,
    /// Linear index in the grid.
    index: u64,
    /// Warps started so far.
    pub(crate) started: u32,
    /// Warps that have not ended.
    pub(crate) live: u32,
    pub(crate) barriers: Barriers,
    /// Sub-core and warp slot of each warp.
    pub(crate) warp_slots: [(u8, u8); 64],
    /// Cycle of its admission.
    admitted: Cycle,
    /// Rank and arrivals in its cluster, for a CTA of a cluster.
    pub(crate) member: Option<Member>,
}

impl Cta {
    /// Position in the grid.
    pub(crate) fn block(&self) -> [u32; 3] {
        self.grid.cta_position(self.index)
    }

    /// Warp slots of these warps (bit i for warp i), as a mask for each sub-core.
    fn slots_of(&self, warps: u64) -> [SlotMask; 8] {
        let mut slots = [0; 8];
        for (subcore, slot) in ones(warps).map(|warp| self.warp_slots[warp]) {
            slots[subcore as usize] |= 1 << slot;
        }
        slots
    }
}

/// The CTA manager.
pub struct CtaManager {
    path: Path,
    config: Config,
    ports: Ports,
    state: State,
}

/// State that `reset` clears.
struct State {
    /// The CTA in each CTA slot.
    ctas: Vec<Option<Cta>>,
    /// CTA slots in use, bit i for slot i.
    used_slots: u64,
    /// CTA slots with warps still to start.
    starting: u64,
    /// CTA slots whose warps have all ended, not yet reported.
    ended: u64,
    /// Free warp slots of each sub-core, bit i for slot i.
    free_warps: Vec<SlotMask>,
    /// Generation of each warp slot of each sub-core, bit i for slot i. It changes with each start.
    generations: Vec<SlotMask>,
    /// Warp slots of each sub-core whose ended warps have stores in flight, bit i for slot i.
    storing: Vec<SlotMask>,
    /// True if GigaThread has been told of stores in flight, and waits for their end.
    owes_stores: bool,
    /// CTA slot and warp index of each warp slot of each sub-core.
    owners: Vec<[(u8, u8); MAX_SLOTS]>,
    /// First cycle in which the barrier unit is free to count one more arrival.
    count_free: Cycle,
    /// Complete barriers whose latency is not over.
    releases: Vec<PendingRelease>,
    /// Cluster messages that wait for a link.
    clusters: Clusters,
    /// The first trap, while the link to GigaThread is full.
    trap: Option<Trap>,
    /// First cycle of the current interval with a CTA on the SM.
    active_since: Option<Cycle>,
    stats: Stats,
}

impl State {
    fn new(config: &Config) -> Self {
        State {
            ctas: vec![None; config.max_ctas],
            used_slots: 0,
            starting: 0,
            ended: 0,
            free_warps: vec![SlotMask::MAX >> (MAX_SLOTS - config.warps_per_subcore); config.subcores],
            generations: vec![0; config.subcores],
            storing: vec![0; config.subcores],
            owes_stores: false,
            owners: vec![[(0, 0); MAX_SLOTS]; config.subcores],
            count_free: Cycle::ZERO,
            releases: Vec::with_capacity(config.max_ctas),
            clusters: Clusters::default(),
            trap: None,
            active_since: None,
            stats: Stats::default(),
        }
    }
}

impl CtaManager {
    /// A manager without CTAs.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert!(
            config.warps_per_subcore <= MAX_SLOTS && config.subcores <= 8 && config.max_ctas <= 64,
            "{path}: too many warps, sub-cores or CTAs"
        );
        CtaManager {
            state: State::new(&config),
            path,
            config,
            ports,
        }
    }

    /// The resident CTAs, each with the first byte of its shared memory.
    pub(crate) fn residents(&self) -> impl Iterator<Item = (&Cta, u32)> {
        let slots = self.state.ctas.iter().enumerate();
        slots.filter_map(|(slot, cta)| {
            let cta = cta.as_ref()?;
            Some((cta, shared_base(&cta.grid, slot, self.config.shared_unit)))
        })
    }

    fn has_free_slot(&self) -> bool {
        (self.state.used_slots.count_ones() as usize) < self.config.max_ctas
    }

    fn admit(&mut self, now: Cycle) {
        if !self.has_free_slot() {
            return;
        }
        let Some(launch) = self.ports.launch.recv(now) else {
            return;
        };
        let (slot, member) = self.slot_of(&launch, now);
        let CtaLaunch { grid, index, placement } = launch;
        let slot_bytes = slot_bytes(&grid, self.config.shared_unit);
        debug!(cycle = now.0, path = %self.path, slot, warps = grid.warps(), "cta {index} starts");
        let state = &mut self.state;
        state.stats.ctas += 1;
        state.stats.threads += u64::from(grid.threads());
        state.used_slots |= 1 << slot;
        state.starting |= 1 << slot;
        state.ctas[slot] = Some(Cta {
            // Warps that have not started count as live, so a CTA cannot end during its start.
            live: grid.warps(),
            grid,
            index,
            started: 0,
            barriers: Barriers::default(),
            // The entry of a warp has no meaning before its start.
            warp_slots: [(0, 0); 64],
            admitted: now,
            member,
        });
        state.clusters.changed(slot, member, slot_bytes, true);
        state.clusters.placed(slot, placement);
    }

    /// Starts warps in order. Stops when the next warp's sub-core already got a warp in this cycle, has no free slot, or has a full link.
    fn start_warps(&mut self, now: Cycle) {
        let (state, n_subcores) = (&mut self.state, self.config.subcores);
        // Sub-cores that got a warp in this cycle.
        let mut used = 0u32;
        for cta in ones(state.starting) {
            while let Some(resident) = &mut state.ctas[cta] {
                if resident.started == resident.grid.warps() {
                    state.starting &= !(1 << cta);
                    break;
                }
                let n_free = |s: &usize| state.free_warps[*s].count_ones();
                // The sub-core with the most free slots, the lowest among equals.
                // `max_by_key` returns the last of equals, so the second key grows towards sub-core 0.
                let emptiest = (0..n_subcores).max_by_key(|s| (n_free(s), n_subcores - s));
                let Some(subcore) = emptiest.filter(|s| state.free_warps[*s] != 0) else {
                    return;
                };
                if used >> subcore & 1 == 1
                    || !self.ports.command[subcore].has_room(now)
                    || !self.ports.warp_info[subcore].has_room(now)
                {
                    return;
                }
                used |= 1 << subcore;
                let slot = state.free_warps[subcore].trailing_zeros() as u8;
                state.free_warps[subcore] &= !(1 << slot);
                let index = resident.started;
                resident.warp_slots[index as usize] = (subcore as u8, slot);
                resident.started += 1;
                state.owners[subcore][slot as usize] = (cta as u8, index as u8);
                state.generations[subcore] ^= 1 << slot;
                let generation = state.generations[subcore] >> slot & 1 == 1;
                let start = warp_start(resident, cta, slot, index, self.config.shared_unit, generation);
                state.stats.warps += 1;
                // Both messages in one cycle: the dispatch unit knows the warp before the scheduler can issue.
                self.ports.warp_info[subcore].send(now, WarpInfo::Start(start.clone()));
                self.ports.command[subcore].send(now, WarpCommand::Start(start));
            }
        }
    }

    fn count_activity(&mut self, now: Cycle) {
        let state = &mut self.state;
        let busy = state.used_slots != 0;
        match (state.active_since, busy) {
            (None, true) => state.active_since = Some(now),
            (Some(since), false) => {
                state.stats.active_cycles += now.since(since);
                state.active_since = None;
            }
            _ => {}
        }
    }

    /// Busy while CTAs, warps or cluster messages wait; else until the next release of a barrier.
    fn activity(&self, now: Cycle) -> Activity {
        let state = &self.state;
        let next_release = state.releases.iter().map(|release| release.at).min();
        let can_admit = self.has_free_slot() && self.ports.launch.is_ready(now);
        let can_send = state.ended != 0 || state.trap.is_some() || self.stores_have_ended();
        let busy = state.starting != 0 || can_admit || can_send || state.clusters.is_busy();
        Activity::busy_if(busy).or(next_release.map_or(Activity::Idle, Activity::Until))
    }
}

warpwave_hw::warm!(CtaManager);

impl Component for CtaManager {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // Traps first: they end the launch, so they take room in the link to GigaThread before any end of a CTA.
        self.send_trap(now);
        for n in 0..self.ports.traps.len() {
            if let Some(trap) = self.ports.traps[n].recv(now) {
                self.report_trap(*trap, now);
            }
        }
        // Before the releases: a barrier with a short latency opens in the cycle of its last arrival.
        self.take_events(now);
        self.release_barriers(now);
        // Slots of ended warps and CTAs are free from this cycle on.
        self.finish(now);
        self.end_stores(now);
        // Before `admit`, so a CTA starts its first warps in the cycle after its admission.
        self.start_warps(now);
        self.admit(now);
        // In the cycle of the admission: the LSU has the placement before any warp of the CTA runs.
        self.run_clusters(now);
        self.count_activity(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config);
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.used_slots == 0
            && !state.owes_stores
            && state.releases.is_empty()
            && state.trap.is_none()
            && !state.clusters.is_busy()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let resident = self.state.ctas.iter().flatten();
        let (ctas, warps) = (
            self.config.max_ctas,
            self.config.subcores * self.config.warps_per_subcore,
        );
        let count = |most: usize| count_width(most as u64);
        probe.vector("ctas", count(ctas), Some(resident.clone().count() as u64));
        probe.vector(
            "live_warps",
            count(warps),
            Some(resident.map(|r| u64::from(r.live)).sum()),
        );
        let opening = self.state.releases.len() as u64;
        probe.vector("barriers_opening", count(ctas * BLOCK_BARRIERS), Some(opening));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// CTA slots and warp slots in use are those of the resident CTAs. A warp waits at one barrier at most, after its arrival.
    fn invariants(&self, check: &mut Invariants) {
        let State { ctas, free_warps, .. } = &self.state;
        let used = ctas.iter().enumerate().filter(|(_, cta)| cta.is_some());
        check.equal(
            "used CTA slots",
            self.state.used_slots,
            used.fold(0, |mask, (slot, _)| mask | 1 << slot),
        );
        check.within("ended CTAs", self.state.ended, self.state.used_slots);
        check.within("starting CTAs", self.state.starting, self.state.used_slots);
        let mut running = 0;
        for cta in ctas.iter().flatten() {
            let (index, warps) = (cta.index, cta.grid.warps());
            check.at_most(
                format_args!("started warps of CTA {index}"),
                cta.started.into(),
                warps.into(),
            );
            check.at_most(format_args!("live warps of CTA {index}"), cta.live.into(), warps.into());
            // Live warps without the `warps - started` ones that have no slot yet.
            running += u64::from(cta.started + cta.live).saturating_sub(warps.into());
            cta.barriers.invariants(warps, check);
        }
        let slots = self.config.subcores * self.config.warps_per_subcore;
        let free: u32 = free_warps.iter().map(|free| free.count_ones()).sum();
        check.equal("warp slots in use", slots as u64 - u64::from(free), running);
    }

    fn stats(&self, report: &mut dyn Report) {
        let mut stats = self.state.stats.clone();
        // A stopped run ends while CTAs are on the SM.
        if let (Some(until), Some(since)) = (report.until(), self.state.active_since) {
            stats.active_cycles += until.since(since);
        }
        stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        for resident in self.state.ctas.iter().flatten() {
            let [x, y, z] = resident.grid.cta_position(resident.index);
            for (number, arrived, expected) in resident.barriers.pending() {
                let wanted = if expected == 0 { resident.live } else { expected };
                say(format!(
                    "{}: block ({x}, {y}, {z}): barrier {number} has {arrived} of {wanted} warps",
                    self.path
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests;
