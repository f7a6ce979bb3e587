//! Target: the GigaThread engine between a host and SMs.
//!
//! Oracle: every CTA of every grid is sent once, in order without clusters. No SM holds more CTAs than fit. The CTAs of a cluster share a
//! GPC and agree on its placement. A grid ends once, after its last CTA, and grids run one after the other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::config::{self, CtaOrder};
use warpwave_components::front::gigathread::{GigaThread, Ports, Sms};
use warpwave_components::proto::cluster::ClusterPlacement;
use warpwave_components::proto::launch::{CtaLaunch, Grid, GridEvent, SmEvent};
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::warp_access::grid;

/// An engine, its SMs and its grids.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = one_of(&[&[3][..], &[1], &[2, 2], &[1, 3, 2], &[4, 1]]))]
    gpcs: &'static [usize],
    #[arbitrary(with = one_of(&CtaOrder::ALL))]
    order: CtaOrder,
    #[arbitrary(with = within(0..=60))]
    launch_latency: u32,
    #[arbitrary(with = within(1..=4))]
    dispatch_interval: u32,
    #[arbitrary(with = within(1..=8))]
    warps_per_cycle: u32,
    #[arbitrary(with = one_of(&[1, 3, 12]))]
    link_latency: u32,
    #[arbitrary(with = within(1..=12))]
    sm_interval: u32,
    #[arbitrary(with = within(1..=3))]
    launch_queue: u32,
    pace: Pace,
    event_pace: Pace,
    /// Cycles of a CTA, by its index.
    run_time: [RunTime; 4],
    /// Cycles from the end of a CTA to the end of its stores, by its index.
    store_time: [StoreTime; 4],
    #[arbitrary(with = up_to(3))]
    grids: Vec<GridSpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct RunTime(#[arbitrary(with = one_of(&[10, 1, 60, 300]))] u64);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct StoreTime(#[arbitrary(with = one_of(&[0, 1, 40, 400]))] u64);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct GridSpec {
    #[arbitrary(with = within(1..=12))]
    clusters: u32,
    /// CTAs of a cluster. 1 for a grid without clusters.
    #[arbitrary(with = one_of(&[1, 1, 2, 3]))]
    cluster: u32,
    #[arbitrary(with = within(1..=3))]
    ctas_per_sm: u32,
    #[arbitrary(with = one_of(&[32, 256, 1024]))]
    threads: u32,
}

/// An SM: its running CTAs with the cycles of their ends.
struct Sm {
    launch: Sink<CtaLaunch>,
    event: OutPort<SmEvent>,
    /// End, grid and index, and slot of each CTA.
    running: Vec<(u64, (u32, u64), u8)>,
    /// End of the stores of ended CTAs, while the engine waits for it.
    stores_end: Option<u64>,
}

struct Neighbours {
    input: Input,
    host: Source<Arc<Grid>>,
    events: Sink<GridEvent>,
    sms: Vec<Sm>,
    gpcs: Vec<Range<usize>>,
    grids: Vec<Arc<Grid>>,
    /// CTAs by grid and index: true for one that has ended.
    ctas: BTreeMap<(u32, u64), bool>,
    /// Placements by grid and cluster.
    placements: BTreeMap<(u32, u64), ClusterPlacement>,
    n_done: u32,
    /// Grid and cycle of the last CTA that an SM took.
    last_launch: Option<(u32, Cycle)>,
}

impl Input {
    /// Five times the latency in half of the inputs, so that many grids wait for it. The corpus keeps its form.
    fn launch_interval(&self) -> u32 {
        5 * (self.launch_latency % 2) * self.launch_latency
    }
}

static EXIT: LazyLock<Grid> = LazyLock::new(|| grid("EXIT"));

impl Neighbours {
    fn start(&mut self) {
        self.grids.clear();
        for (id, spec) in self.input.grids.iter().enumerate() {
            // A cluster fits one GPC.
            let most = self.gpcs.iter().map(|gpc| gpc.len() as u32 * spec.ctas_per_sm).max();
            let cluster = spec.cluster.min(most.unwrap_or(1));
            let grid = Grid {
                id: id as u32,
                grid: [spec.clusters * cluster, 1, 1],
                cluster: [cluster, 1, 1],
                block: [spec.threads, 1, 1],
                ctas_per_sm: spec.ctas_per_sm,
                ..EXIT.clone()
            };
            let grid = Arc::new(grid);
            self.grids.push(grid.clone());
            self.host.push(0, grid);
        }
    }

    fn take_launch(&mut self, n: usize, now: Cycle) {
        let Some(launch) = self.sms[n].launch.take(now) else {
            return;
        };
        let CtaLaunch { grid, index, placement } = launch;
        self.check_interval(grid.id, now);
        // The host may see the end of the last grid later.
        let earlier = grid.id.checked_sub(1);
        assert!(
            earlier.is_none_or(|grid| self.has_ended(grid)),
            "grids run one after the other"
        );
        assert!(index < grid.ctas(), "a CTA of the grid");
        // Without clusters there is no placement, and the SM chooses the slot.
        let slot = match &placement {
            Some(placement) => self.placed_slot(n, index, &grid, placement),
            None => 0,
        };
        assert!(
            self.ctas.insert((grid.id, index), false).is_none(),
            "CTA {index} is sent twice"
        );
        let sm = &mut self.sms[n];
        // Two CTAs of clusters must not share a slot of their SM.
        let same_slot = sm
            .running
            .iter()
            .any(|(.., other)| placement.is_some() && *other == slot);
        assert!(!same_slot, "slot {slot} of SM {n} is in use");
        let end = now.0 + self.input.run_time[index as usize % 4].0;
        sm.running.push((end, (grid.id, index), slot));
        assert!(
            sm.running.len() <= grid.ctas_per_sm as usize,
            "SM {n} has too many CTAs"
        );
    }

    /// Checks the time since the last CTA of the grid before. A full link delays that CTA, so its link must have room for every slot.
    fn check_interval(&mut self, grid: u32, now: Cycle) {
        if let Some((last_grid, at)) = self.last_launch
            && last_grid != grid
            && self.input.pace == Pace::ALWAYS
            && self.grids[last_grid as usize].ctas_per_sm <= self.input.launch_queue
        {
            let least = u64::from(self.input.launch_interval());
            assert!(
                now >= at + least,
                "grid {grid} begins {} cycles after CTAs",
                now.since(at)
            );
        }
        self.last_launch = Some((grid, now));
    }

    /// True if every CTA of a grid was sent and has ended.
    fn has_ended(&self, grid: u32) -> bool {
        let ctas = self.ctas.range((grid, 0)..(grid + 1, 0));
        ctas.filter(|(_, ended)| **ended).count() as u64 == self.grids[grid as usize].ctas()
    }

    /// Checks the placement of a CTA. Returns its slot.
    fn placed_slot(&mut self, sm: usize, index: u64, grid: &Grid, placement: &ClusterPlacement) -> u8 {
        let cluster = index / u64::from(grid.cluster_ctas());
        let first = self
            .placements
            .entry((grid.id, cluster))
            .or_insert_with(|| placement.clone());
        assert_eq!(first, placement, "CTAs of one cluster agree on its placement");
        let own = placement[grid.cluster_rank(index) as usize];
        let gpc = self
            .gpcs
            .iter()
            .find(|gpc| gpc.contains(&sm))
            .expect("every SM has a GPC");
        assert_eq!(gpc.start + usize::from(own.sm), sm, "the SM of CTA {index}");
        // The placement counts SMs within the GPC.
        features::note(("cluster", placement.len()));
        own.slot
    }

    fn end_ctas(&mut self, n: usize, now: Cycle) {
        let sm = &mut self.sms[n];
        // One end per cycle: the link carries one message.
        if sm.event.has_room(now)
            && let Some(at) = sm.running.iter().position(|(end, ..)| *end <= now.0)
        {
            let (_, (grid, index), slot) = sm.running.remove(at);
            let stores_end = now.0 + self.input.store_time[index as usize % 4].0;
            if stores_end > now.0 {
                sm.stores_end = sm.stores_end.max(Some(stores_end));
            }
            let is_storing = sm.stores_end.is_some();
            sm.event.send(
                now,
                SmEvent::CtaDone {
                    index,
                    slot,
                    is_storing,
                },
            );
            self.ctas.insert((grid, index), true);
        }
        if sm.stores_end.is_some_and(|end| end <= now.0) && sm.event.has_room(now) {
            sm.stores_end = None;
            sm.event.send(now, SmEvent::StoresDone);
        }
    }

    fn take_event(&mut self, now: Cycle) {
        let Some(event) = self.events.take(now) else { return };
        let GridEvent::Done { grid, .. } = event else {
            panic!("no CTA traps: {event:?}")
        };
        assert_eq!(grid, self.n_done, "grids end in order");
        assert!(self.has_ended(grid), "grid {grid} ends before its CTAs");
        // The next grid may have ended CTAs already: the host sees the event later.
        let next_runs = self.ctas.range((grid + 1, 0)..).next().is_some();
        let is_storing = self.sms.iter().any(|sm| sm.stores_end.is_some());
        assert!(next_runs || !is_storing, "grid {grid} ends before its stores");
        self.n_done += 1;
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.host.tick(now);
        self.take_event(now);
        for n in 0..self.sms.len() {
            self.take_launch(n, now);
            self.end_ctas(n, now);
        }
        (self.n_done as usize) < self.input.grids.len()
    }

    fn reset(&mut self) {
        self.host.clear();
        self.events.clear();
        for sm in &mut self.sms {
            sm.launch.clear();
            sm.running.clear();
            sm.stores_end = None;
        }
        self.ctas.clear();
        self.placements.clear();
        self.n_done = 0;
        self.last_launch = None;
        self.start();
    }

    fn digest(&self) -> u64 {
        let sms = self.sms.iter().map(|sm| sm.launch.digest());
        combine(sms.chain([self.events.digest()]))
    }
}

/// The SMs of each GPC.
fn ranges(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut first = 0;
    let next = |size: &usize| {
        first += size;
        first - size..first
    };
    sizes.iter().map(next).collect()
}

/// Runs the engine.
///
/// # Panics
/// If a CTA is lost, doubled or sent to a full SM. If a grid ends early or never. If the engine breaks the contract.
pub fn check(input: Input) {
    let gpcs = ranges(input.gpcs);
    let link = input.link_latency.min(3);
    let build = |wiring: &Wiring| {
        let (host, grids) = wiring.input(1, 2);
        let (event, events) = wiring.output(1, 2);
        let (mut sms, mut launch, mut sm) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..input.gpcs.iter().sum() {
            let (to_sm, launches) = wiring.output(link, input.launch_queue);
            let (event, ended) = wiring.input(link, 8);
            launch.push(to_sm);
            sm.push(ended);
            sms.push(Sm {
                launch: Sink::new(launches, input.pace),
                event,
                running: Vec::new(),
                stores_end: None,
            });
        }
        let config = config::GigaThread {
            launch_latency: input.launch_latency,
            launch_interval: input.launch_interval(),
            dispatch_interval: input.dispatch_interval,
            warps_per_cycle: input.warps_per_cycle,
            link_latency: input.link_latency,
            sm_interval: input.sm_interval,
            turnover_latency: 0,
            launch_queue: input.launch_queue,
            order: input.order,
            standstill_cycles: 0,
        };
        let ports = Ports {
            grid: grids,
            event,
            launch,
            sm,
        };
        let mut world = Neighbours {
            host: Source::new(host),
            events: Sink::new(events, input.event_pace),
            sms,
            gpcs: gpcs.clone(),
            grids: Vec::new(),
            ctas: BTreeMap::new(),
            placements: BTreeMap::new(),
            n_done: 0,
            last_launch: None,
            input: input.clone(),
        };
        world.start();
        let sms = Sms {
            gpcs: gpcs.clone(),
            by_smid: (0..input.gpcs.iter().sum()).collect(),
        };
        let engine = GigaThread::new(Path::root("gigathread"), config, sms, ports);
        (engine, world)
    };
    check_component(build, input.second, 500_000);
}
