//! Target: one CTA manager with its barriers, between GigaThread and the schedulers of an SM.
//!
//! Oracle: every warp starts once, in a free slot, with its lanes. A barrier releases a warp only after all live warps of its CTA have
//! arrived, with the right count. Each CTA ends once, after its last warp.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::config::Barrier;
use warpwave_components::proto::launch::{CtaLaunch, Grid, SmEvent, Trap};
use warpwave_components::proto::warp::{WarpCommand, WarpEvent, WarpInfo, WarpStart};
use warpwave_components::sm::cta::{Config, CtaManager, Ports};
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::warp_access::grid;

/// A CTA manager and its CTAs.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = within(1..=4))]
    subcores: usize,
    #[arbitrary(with = one_of(&[4, 1, 2, 16, 32]))]
    warps_per_subcore: usize,
    #[arbitrary(with = within(1..=6))]
    max_ctas: usize,
    #[arbitrary(with = within(1..=200))]
    threads: u32,
    #[arbitrary(with = within(1..=6))]
    ctas: u64,
    #[arbitrary(with = one_of(&[(0, 1), (12, 1), (1, 3)]))]
    latency: (u32, u32),
    command_pace: Pace,
    event_pace: Pace,
    /// What the warps of a CTA do: rounds at a barrier, then the end.
    #[arbitrary(with = up_to(6))]
    rounds: Vec<Round>,
    /// Cycles of work before a barrier, chosen by warp and round.
    work: [Work; 4],
    /// For each warp of a CTA, modulo 4: the rounds that it takes part in.
    ends_after: [Ends; 4],
    /// Cycles from the end of a warp to the end of its stores, by its index modulo 4.
    store_time: [StoreTime; 4],
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct StoreTime(#[arbitrary(with = one_of(&[0, 1, 30, 300]))] u64);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Work(#[arbitrary(with = one_of(&[1, 2, 9, 60]))] u64);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Ends(#[arbitrary(with = one_of(&[16, 0, 1, 3]))] usize);

/// One barrier. Its number is that of the round, so no warp is two rounds ahead at one barrier.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Round {
    /// True for a barrier that counts predicates.
    counts: bool,
    /// Warps with a set bit (modulo 8) continue without a wait. Not at a counting barrier.
    #[arbitrary(with = one_of(&[0, 0, 1, 0xff]))]
    passes: u8,
}

/// A running warp.
struct Running {
    cta: u64,
    index: u32,
    /// The round that it is in.
    round: usize,
    /// The cycle of its next arrival or end. `None` while it waits.
    acts_at: Option<u64>,
}

/// A CTA of the model.
struct Cta {
    live: u32,
    /// Arrivals and predicates of each round.
    arrived: Vec<(u32, u32)>,
}

struct Subcore {
    command: Sink<WarpCommand>,
    info: Sink<WarpInfo>,
    event: OutPort<WarpEvent>,
    warps: BTreeMap<u8, Running>,
    /// Starts that one of the two receivers has seen, by slot and index.
    starts: [Vec<(u8, u32, u64)>; 2],
    /// Counts that came before their release, by slot.
    counts: BTreeMap<u8, u32>,
    /// End of the stores of ended warps, by slot.
    stores: BTreeMap<u8, u64>,
}

struct Neighbours {
    input: Input,
    grid: Arc<Grid>,
    launch: Source<CtaLaunch>,
    ends: Sink<SmEvent>,
    _trap: OutPort<Box<Trap>>,
    subcores: Vec<Subcore>,
    ctas: BTreeMap<u64, Cta>,
    n_launched: u64,
    n_started: u64,
    n_ended: u64,
    /// True between an end with stores in flight and the end of these stores.
    is_storing: bool,
}

static EXIT: LazyLock<Grid> = LazyLock::new(|| grid("EXIT"));

/// Threads of a warp with a true predicate.
fn predicates(cta: u64, warp: u32) -> u32 {
    (cta as u32 * 7 + warp * 3) % 33
}

impl Neighbours {
    fn n_warps(&self) -> u32 {
        self.grid.warps()
    }

    /// Warps of a CTA that take part in a round.
    fn n_in_round(&self, round: usize) -> u32 {
        let takes_part = |warp: &u32| self.input.ends_after[*warp as usize % 4].0 > round;
        (0..self.n_warps()).filter(takes_part).count() as u32
    }

    /// Warps that continue without a wait: bit n for the warps n modulo 8. The instruction needs a thread count, so no warp
    /// may
    /// be absent.
    fn passes(&self, round: usize) -> u8 {
        let spec = self.input.rounds[round];
        if spec.counts || self.n_in_round(round) < self.n_warps() {
            0
        } else {
            spec.passes
        }
    }

    /// CTAs that fit at a time.
    fn most_ctas(&self) -> u64 {
        let slots = self.input.subcores * self.input.warps_per_subcore;
        (slots / self.n_warps() as usize).min(self.input.max_ctas) as u64
    }

    fn launch_next(&mut self, now: Cycle) {
        // As GigaThread does: no launch to a full SM.
        let resident = self.n_launched - self.n_ended;
        if self.n_launched < self.input.ctas && resident < self.most_ctas() {
            let (grid, index) = (self.grid.clone(), self.n_launched);
            self.launch.push(
                now.0,
                CtaLaunch {
                    grid,
                    index,
                    placement: None,
                },
            );
            let rounds = vec![(0, 0); self.input.rounds.len()];
            let live = self.n_warps();
            self.ctas.insert(index, Cta { live, arrived: rounds });
            self.n_launched += 1;
        }
        self.launch.tick(now);
    }

    /// Checks the start of a warp. Both receivers must see it.
    fn start(&mut self, n: usize, receiver: usize, start: &WarpStart, now: Cycle) {
        let cta = u64::from(start.block[0]);
        let first = start.index * 32;
        assert_eq!(
            start.lanes,
            LaneMask::first(self.grid.threads() - first),
            "lanes of warp {}",
            start.index
        );
        assert!(
            self.ctas.contains_key(&cta),
            "a warp of CTA {cta}, which is not resident"
        );
        // Scheduler and dispatch unit get the same start, in either order.
        let seen = (start.warp, start.index, cta);
        let other = &mut self.subcores[n].starts[1 - receiver];
        match other.iter().position(|of_other| *of_other == seen) {
            Some(at) => drop(other.remove(at)),
            None => self.subcores[n].starts[receiver].push(seen),
        }
        // The scheduler's start begins the warp of the model.
        if receiver == 1 {
            return;
        }
        self.n_started += 1;
        let mut warp = Running {
            cta,
            index: start.index,
            round: 0,
            acts_at: None,
        };
        self.plan(&mut warp, now);
        let before = self.subcores[n].warps.insert(start.warp, warp);
        assert!(before.is_none(), "slot {} of sub-core {n} is in use", start.warp);
    }

    fn plan(&self, warp: &mut Running, now: Cycle) {
        let work = self.input.work[(warp.index as usize + warp.round) % 4].0;
        warp.acts_at = Some(now.0 + work);
    }

    fn on_command(&mut self, n: usize, command: WarpCommand, now: Cycle) {
        let slots = match command {
            WarpCommand::Start(start) => return self.start(n, 0, &start, now),
            WarpCommand::Release(slots) => slots,
            WarpCommand::OpenCluster(_) => panic!("the grid has no clusters"),
        };
        for slot in (0..64).filter(|slot| slots >> slot & 1 == 1) {
            let mut warp = self.subcores[n].warps.remove(&slot).expect("a released warp runs");
            assert!(warp.acts_at.is_none(), "a warp that does not wait is released");
            let cta = &self.ctas[&warp.cta];
            let (arrived, count) = cta.arrived[warp.round];
            assert_eq!(arrived, self.n_in_round(warp.round), "arrivals at round {}", warp.round);
            // The dispatch unit gets the count no later than the scheduler gets the release.
            let counted = self.subcores[n].counts.remove(&slot);
            let expected = self.input.rounds[warp.round].counts.then_some(count);
            assert_eq!(counted, expected, "the count of round {}", warp.round);
            warp.round += 1;
            self.plan(&mut warp, now);
            self.subcores[n].warps.insert(slot, warp);
        }
    }

    fn on_info(&mut self, n: usize, info: WarpInfo, now: Cycle) {
        match info {
            WarpInfo::Start(start) => self.start(n, 1, &start, now),
            WarpInfo::Counted { warps, count } => {
                for slot in (0..64).filter(|slot| warps >> slot & 1 == 1) {
                    self.subcores[n].counts.insert(slot, count);
                }
            }
        }
    }

    /// Lets at most one warp of a sub-core arrive or end.
    fn act(&mut self, n: usize, now: Cycle) {
        let due = |warp: &Running| warp.acts_at.is_some_and(|at| at <= now.0);
        let mut warps = self.subcores[n].warps.iter();
        let Some((&slot, _)) = warps.find(|(_, warp)| due(warp)) else {
            return;
        };
        if !self.subcores[n].event.has_room(now) {
            return;
        }
        let mut warp = self.subcores[n].warps.remove(&slot).expect("a due warp runs");
        let ends = self.input.ends_after[warp.index as usize % 4]
            .0
            .min(self.input.rounds.len());
        let event = if warp.round < ends {
            self.arrive(&mut warp, slot, now)
        } else {
            self.ctas
                .get_mut(&warp.cta)
                .expect("the CTA of a warp is resident")
                .live -= 1;
            let stores = &mut self.subcores[n].stores;
            let cycles = self.input.store_time[warp.index as usize % 4].0;
            if cycles > 0 {
                let end = stores.entry(slot).or_default();
                *end = (*end).max(now.0 + cycles);
            }
            let is_storing = stores.contains_key(&slot);
            WarpEvent::Done { warp: slot, is_storing }
        };
        self.subcores[n].event.send(now, event);
        if !matches!(event, WarpEvent::Done { .. }) {
            self.subcores[n].warps.insert(slot, warp);
        }
    }

    /// Ends at most one store of a sub-core. Without a warp in its slot the CTA manager is told.
    fn end_store(&mut self, n: usize, now: Cycle) {
        let subcore = &mut self.subcores[n];
        let Some(slot) = subcore
            .stores
            .iter()
            .find(|(_, end)| **end <= now.0)
            .map(|(slot, _)| *slot)
        else {
            return;
        };
        if !subcore.warps.contains_key(&slot) {
            if !subcore.event.has_room(now) {
                return;
            }
            subcore.event.send(now, WarpEvent::StoresDone { warp: slot });
        }
        subcore.stores.remove(&slot);
    }

    fn arrive(&mut self, warp: &mut Running, slot: u8, now: Cycle) -> WarpEvent {
        let counts = self.input.rounds[warp.round].counts;
        let passes = self.passes(warp.round);
        let pass = passes >> (warp.index % 8) & 1 == 1;
        let predicates = predicates(warp.cta, warp.index);
        let n_warps = self.n_warps();
        let cta = self.ctas.get_mut(&warp.cta).expect("the CTA of a warp is resident");
        cta.arrived[warp.round].0 += 1;
        cta.arrived[warp.round].1 += predicates;
        // A barrier per round: no warp arrives twice at one before it opens.
        let barrier = warp.round as u8;
        warp.acts_at = pass.then_some(now.0 + 1);
        warp.round += usize::from(pass);
        WarpEvent::Arrive {
            warp: slot,
            barrier,
            // 0 stands for all threads of the CTA.
            threads: if passes == 0 { 0 } else { 32 * n_warps },
            pass,
            count: counts.then_some(predicates),
        }
    }

    fn take_end(&mut self, now: Cycle) {
        let Some(event) = self.ends.take(now) else { return };
        let stores = || self.subcores.iter().flat_map(|subcore| &subcore.stores);
        let (index, is_storing) = match event {
            SmEvent::CtaDone { index, is_storing, .. } => (index, is_storing),
            SmEvent::StoresDone => {
                assert!(self.is_storing, "stores end that were never announced");
                // After the last CTA no new store begins.
                let has_ended = self.n_ended == self.input.ctas;
                assert!(
                    !has_ended || stores().count() == 0,
                    "GigaThread is told of the end of stores too early"
                );
                self.is_storing = false;
                return;
            }
            SmEvent::Trap(_) => panic!("no warp traps: {event:?}"),
        };
        // After the last CTA nothing else announces its stores.
        let is_last = self.n_ended + 1 == self.input.ctas;
        assert!(
            is_storing || !is_last || stores().count() == 0,
            "stores that GigaThread does not know"
        );
        self.is_storing |= is_storing;
        let cta = self.ctas.remove(&index).expect("a CTA ends once");
        assert_eq!(cta.live, 0, "CTA {index} ends with live warps");
        features::note(("rounds", cta.arrived.len()));
        self.n_ended += 1;
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        // Ends first: they free the room that the next launch needs.
        self.take_end(now);
        self.launch_next(now);
        for n in 0..self.subcores.len() {
            // Before the commands: a release needs the count of its barrier.
            if let Some(info) = self.subcores[n].info.take(now) {
                self.on_info(n, info, now);
            }
            if let Some(command) = self.subcores[n].command.take(now) {
                self.on_command(n, command, now);
            }
            self.act(n, now);
            self.end_store(n, now);
        }
        // A message to the dispatch unit may be left. The end checks that both units saw each start.
        let sees_info = self.subcores.iter().any(|subcore| subcore.info.is_ready(now));
        self.n_ended < self.input.ctas || self.is_storing || sees_info
    }

    fn reset(&mut self) {
        for subcore in &mut self.subcores {
            subcore.command.clear();
            subcore.info.clear();
            subcore.warps.clear();
            subcore.counts.clear();
            subcore.stores.clear();
            subcore.starts.iter_mut().for_each(Vec::clear);
        }
        self.launch.clear();
        self.ends.clear();
        self.ctas.clear();
        (self.n_launched, self.n_started, self.n_ended) = (0, 0, 0);
        self.is_storing = false;
    }

    fn check_end(&self) {
        assert_eq!(
            self.n_started,
            self.input.ctas * u64::from(self.n_warps()),
            "warps started"
        );
        let starts = self.subcores.iter().flat_map(|subcore| &subcore.starts);
        assert_eq!(starts.flatten().count(), 0, "starts that one receiver has not seen");
    }

    fn digest(&self) -> u64 {
        let subcores = self.subcores.iter().flat_map(|s| [s.command.digest(), s.info.digest()]);
        combine(subcores.chain([self.ends.digest()]))
    }
}

/// Runs the CTA manager.
///
/// # Panics
/// If a warp or CTA is lost or doubled, if a barrier opens early or never, or if the manager breaks the contract.
pub fn check(mut input: Input) {
    // At least one CTA fits.
    let most = (32 * input.subcores * input.warps_per_subcore) as u32;
    input.threads = input.threads.min(most);
    let build = |wiring: &Wiring| {
        let (launch, launches) = wiring.input(2, 2);
        let (event, ends) = wiring.output(2, 2);
        let (_trap, trap) = wiring.input(1, 1);
        let (mut subcores, mut command, mut warp_info, mut warp) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..input.subcores {
            let (to_scheduler, commands) = wiring.output(1, 2);
            let (to_dispatch, info) = wiring.output(1, 2);
            let (event, events) = wiring.input(1, 2);
            command.push(to_scheduler);
            warp_info.push(to_dispatch);
            warp.push(events);
            subcores.push(Subcore {
                command: Sink::new(commands, input.command_pace),
                info: Sink::new(info, Pace::ALWAYS),
                event,
                warps: BTreeMap::new(),
                starts: Default::default(),
                counts: BTreeMap::new(),
                stores: BTreeMap::new(),
            });
        }
        let config = Config {
            subcores: input.subcores,
            warps_per_subcore: input.warps_per_subcore,
            max_ctas: input.max_ctas,
            barrier: Barrier {
                base_latency: input.latency.0,
                per_warp: input.latency.1,
                warp_latency: 1,
            },
            shared_unit: 128,
        };
        let ports = Ports {
            launch: launches,
            event,
            command,
            warp_info,
            warp,
            traps: vec![trap],
            cluster: None,
        };
        let world = Neighbours {
            grid: Arc::new(Grid {
                grid: [input.ctas as u32, 1, 1],
                block: [input.threads, 1, 1],
                ..EXIT.clone()
            }),
            launch: Source::new(launch),
            ends: Sink::new(ends, input.event_pace),
            _trap,
            subcores,
            ctas: BTreeMap::new(),
            n_launched: 0,
            n_started: 0,
            n_ended: 0,
            is_storing: false,
            input: input.clone(),
        };
        (CtaManager::new(Path::root("cta"), config, ports), world)
    };
    check_component(build, input.second, 500_000);
}
