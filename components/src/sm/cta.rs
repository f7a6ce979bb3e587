//! The CTA manager of an SM: admits CTAs, hands their warps to the sub-cores, keeps their barriers, reports their end.
//!
//! ```text
//!   GigaThread --CtaLaunch--> [cta] --WarpCommand--> scheduler (and dispatch) of each sub-core
//!              <--SmEvent----       <--WarpEvent----
//!                                   <--Trap--------- lsu
//! ```
//!
//! | what | cycles |
//! |---|---|
//! | a CTA admitted | one per cycle at most; its warps start in the next |
//! | barrier, from the last arrival to the release | `base_latency` + `per_warp` x warps, less the way there and back |
//!
//! A warp goes to the sub-core with the most free slots, the lowest first. Registers need no manager: all warps on an SM are of
//! one grid, so slot i's registers begin at i times the registers of a warp.
//!
//! Invariants: CTAs resident never exceed what GigaThread was told; a CTA's slot is free only when all its warps have ended.

mod cluster;
mod counts;
mod opening;
mod tell;

pub use cluster::ClusterPorts;
pub use counts::Stats;
use tell::{trapped, warp_start};

use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::bits::bits;
use crate::config;
use crate::proto::launch::{CtaLaunch, Grid, SmEvent, Trap};
use crate::proto::warp::{WarpCommand, WarpEvent, WarpInfo};
use crate::sm::barrier::{Arrival, Barriers};
use cluster::{Clusters, Member};
use opening::Opening;

/// Most warp slots of one sub-core.
pub const MAX_WARPS: usize = 32;

/// Numbers of a CTA manager.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sub-cores of the SM.
    pub subcores: usize,
    /// Warp slots of each.
    pub warps_per_subcore: usize,
    /// CTA slots of the SM.
    pub max_ctas: usize,
    /// Barrier latencies.
    pub barrier: config::Barrier,
    /// A CTA's shared memory is rounded up to this many bytes.
    pub shared_unit: u32,
}

/// The links of a CTA manager.
pub struct Ports {
    /// CTAs to run.
    pub launch: InPort<CtaLaunch>,
    /// What became of them.
    pub event: OutPort<SmEvent>,
    /// To each sub-core's scheduler.
    pub command: Vec<OutPort<WarpCommand>>,
    /// To each sub-core's dispatch unit.
    pub start: Vec<OutPort<WarpInfo>>,
    /// From each sub-core's scheduler.
    pub warp: Vec<InPort<WarpEvent>>,
    /// From the LSU.
    pub trap: InPort<Box<Trap>>,
    /// What clusters need, where there are any.
    pub cluster: Option<ClusterPorts>,
}

warpwave_hw::show_ports!(Ports: launch, event, command, start, warp, trap, cluster);

/// A CTA on the SM.
#[derive(Clone, Debug)]
struct Resident {
    grid: Arc<Grid>,
    index: u64,
    /// Warps handed to sub-cores so far.
    started: u32,
    live: u32,
    barriers: Barriers,
    /// Sub-core and slot of each warp.
    places: [(u8, u8); 64],
    since: Cycle,
    /// Its part in a cluster.
    member: Option<Member>,
}

/// The CTA manager.
pub struct CtaManager {
    path: Path,
    config: Config,
    ports: Ports,
    residents: Vec<Option<Resident>>,
    /// CTA slots whose warps have not all started, and those whose warps have all ended, bit i for slot i.
    starting: u64,
    ended: u64,
    /// CTA slots taken.
    taken: u64,
    /// Free warp slots of each sub-core, bit i for slot i.
    free: Vec<u32>,
    /// CTA slot and warp index of each warp slot of each sub-core.
    owners: Vec<[(u8, u8); MAX_WARPS]>,
    openings: Vec<Opening>,
    clusters: Clusters,
    active_since: Option<Cycle>,
    stats: Stats,
}

impl CtaManager {
    /// A manager without CTAs.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert!(
            config.warps_per_subcore <= MAX_WARPS && config.subcores <= 8 && config.max_ctas <= 64,
            "{path}: too many warps, sub-cores or CTAs"
        );
        let free = vec![(u64::MAX >> (64 - config.warps_per_subcore)) as u32; config.subcores];
        CtaManager {
            residents: vec![None; config.max_ctas],
            starting: 0,
            ended: 0,
            taken: 0,
            owners: vec![[(0, 0); MAX_WARPS]; config.subcores],
            openings: Vec::with_capacity(config.max_ctas),
            free,
            clusters: Clusters::default(),
            active_since: None,
            stats: Stats::default(),
            path,
            config,
            ports,
        }
    }

    fn take_events(&mut self, now: Cycle) {
        for subcore in 0..self.config.subcores {
            while let Some(event) = self.ports.warp[subcore].recv(now) {
                self.on_event(subcore, event, now);
            }
        }
    }

    fn on_event(&mut self, subcore: usize, event: WarpEvent, now: Cycle) {
        let slot = match event {
            WarpEvent::Arrive { warp, .. }
            | WarpEvent::ArriveCluster { warp }
            | WarpEvent::Done { warp }
            | WarpEvent::Trap { warp, .. } => warp,
        };
        let (cta, index) = self.owners[subcore][slot as usize];
        let resident = self.residents[cta as usize].as_mut().expect("a warp's CTA is resident");
        match event {
            WarpEvent::Arrive {
                barrier,
                threads,
                pass,
                count,
                ..
            } => resident.barriers.arrive(Arrival {
                number: barrier,
                warp: u32::from(index),
                threads,
                pass,
                count,
            }),
            WarpEvent::ArriveCluster { .. } => self.clusters.arrive(resident, index),
            WarpEvent::Done { .. } => {
                resident.live -= 1;
                self.ended |= u64::from(resident.live == 0) << cta;
                self.free[subcore] |= 1 << slot;
                self.clusters.ended(resident, index);
            }
            WarpEvent::Trap { pc, lanes, .. } => {
                let trap = trapped(resident, u32::from(index), pc, lanes);
                self.report_trap(trap, now);
                return;
            }
        }
        self.open_barriers(cta as usize, now);
    }

    fn finish(&mut self, now: Cycle) {
        for slot in bits(self.ended) {
            if !self.ports.event.has_room(now) {
                return;
            }
            let resident = self.residents[slot].take().expect("a CTA that ends is resident");
            self.ended &= !(1 << slot);
            self.taken &= !(1 << slot);
            self.stats.cta_latency.record(now.since(resident.since));
            let (index, slot) = (resident.index, slot as u8);
            self.ports.event.send(now, SmEvent::CtaDone { index, slot });
        }
    }

    fn has_free_slot(&self) -> bool {
        (self.taken.count_ones() as usize) < self.config.max_ctas
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
        self.stats.ctas += 1;
        self.stats.threads += u64::from(grid.threads());
        self.taken |= 1 << slot;
        self.starting |= 1 << slot;
        self.residents[slot] = Some(Resident {
            live: grid.warps(),
            grid,
            index,
            started: 0,
            barriers: Barriers::default(),
            places: [(0, 0); 64],
            since: now,
            member,
        });
        self.clusters.placed(slot, placement);
    }

    /// Starts as many warps as sub-cores have room for commands: one each per cycle.
    fn start_warps(&mut self, now: Cycle) {
        let mut used = 0u32;
        for cta in bits(self.starting) {
            while let Some(resident) = &mut self.residents[cta] {
                if resident.started == resident.grid.warps() {
                    self.starting &= !(1 << cta);
                    break;
                }
                let free = |s: &usize| self.free[*s].count_ones();
                let emptiest = (0..self.config.subcores).max_by_key(|s| (free(s), self.config.subcores - s));
                let Some(subcore) = emptiest.filter(|s| self.free[*s] != 0) else {
                    return;
                };
                if used >> subcore & 1 == 1
                    || !self.ports.command[subcore].has_room(now)
                    || !self.ports.start[subcore].has_room(now)
                {
                    return;
                }
                used |= 1 << subcore;
                let slot = self.free[subcore].trailing_zeros() as u8;
                self.free[subcore] &= !(1 << slot);
                let index = resident.started;
                resident.places[index as usize] = (subcore as u8, slot);
                resident.started += 1;
                self.owners[subcore][slot as usize] = (cta as u8, index as u8);
                let start = warp_start(resident, cta, slot, index, self.config.shared_unit);
                self.stats.warps += 1;
                self.ports.start[subcore].send(now, WarpInfo::Start(start.clone()));
                self.ports.command[subcore].send(now, WarpCommand::Start(start));
            }
        }
    }

    fn report_trap(&mut self, trap: Trap, now: Cycle) {
        if self.ports.event.has_room(now) {
            self.ports.event.send(now, SmEvent::Trap(Box::new(trap)));
        }
    }

    fn count_activity(&mut self, now: Cycle) {
        let busy = self.taken != 0;
        match (self.active_since, busy) {
            (None, true) => self.active_since = Some(now),
            (Some(since), false) => {
                self.stats.active_cycles += now.since(since);
                self.active_since = None;
            }
            _ => {}
        }
    }
}

warpwave_hw::warm!(CtaManager);

impl Component for CtaManager {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        if let Some(trap) = self.ports.trap.recv(now) {
            self.report_trap(*trap, now);
        }
        self.take_events(now);
        self.release(now);
        self.finish(now);
        self.start_warps(now);
        self.admit(now);
        self.run_clusters(now);
        self.count_activity(now);
        let openings = self.openings.iter().map(|o| o.at);
        let next_opening = openings.min().map_or(Activity::Idle, Activity::Until);
        let waiting = self.has_free_slot() && self.ports.launch.is_ready(now);
        let busy = self.starting != 0 || waiting || self.ended != 0 || self.clusters.is_busy();
        Activity::busy_if(busy).or(next_opening)
    }

    fn reset(&mut self) {
        self.residents.fill(None);
        self.starting = 0;
        self.ended = 0;
        self.taken = 0;
        self.free
            .fill((u64::MAX >> (64 - self.config.warps_per_subcore)) as u32);
        self.openings.clear();
        self.clear_clusters();
        self.active_since = None;
        self.stats = Stats::default();
        self.ports.launch.clear();
        self.ports.trap.clear();
        self.ports.warp.iter_mut().for_each(InPort::clear);
    }

    fn is_quiescent(&self) -> bool {
        self.taken == 0 && self.openings.is_empty() && !self.clusters.is_busy()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let resident = self.residents.iter().flatten();
        probe.vector("ctas", 6, Some(resident.clone().count() as u64));
        probe.vector("live_warps", 7, Some(resident.map(|r| u64::from(r.live)).sum()));
        probe.vector("barriers_opening", 10, Some(self.openings.len() as u64));
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        for resident in self.residents.iter().flatten() {
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
