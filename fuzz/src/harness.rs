//! Runs one component with its world, and checks the contract that every component keeps. Components that belong together run as a group.
//!
//! ```text
//!   world: sources --> [ component ] --> sinks
//! ```
//!
//! The world is the last component of the tile. It sends random traffic, takes messages at a random pace, and panics at a wrong message.
//! A run takes some microseconds, so a fuzzer can do thousands per second. `warpwave_hw::rig::check` checks the same contract in every
//! cycle, but takes a thousand times longer.
//!
//! # The contract
//! - When the world has sent all and got all, the component is quiescent. Then it sends nothing more, even when it is ticked.
//! - Cycles of messages, and counters, are the same with and without idle-skipping, for either tick order, and after one reset or two.
//! - Counters never fall, and invariants hold: at the end of each run, and after each window of a run without idle-skipping.

mod ports;

pub use ports::{Late, Sink, Source, combine};

use std::any::Any;

use arbitrary::Arbitrary;
use warpwave_hw::clock::{Clock, Stop};
use warpwave_hw::component::{Activity, Component, assert_invariants_of};
use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::tile::{TileBuilder, TileSlot};
use warpwave_hw::time::Cycle;

use crate::draw::within;
use crate::features::CounterFeatures;

// More than the 64 cycles after which a `Pace` repeats. So a sink takes a message that the idle component sends, and the digest differs.
/// Cycles that an idle component is ticked after the end of its work.
const IDLE_CYCLES: u64 = 70;

/// The world of a component: its neighbours, and the oracle.
pub trait World: Send + 'static {
    /// Sends and takes messages in one cycle. Returns false once it has sent all and got all that it expects.
    ///
    /// # Panics
    /// If a message is wrong.
    fn tick(&mut self, now: Cycle) -> bool;

    /// Returns to the state before the first cycle.
    fn reset(&mut self);

    /// Checks what must hold after the last cycle.
    ///
    /// # Panics
    /// If something is missing or wrong.
    fn check_end(&self) {}

    /// A hash of the cycles of all messages taken.
    fn digest(&self) -> u64;
}

/// The second way in which a component is run. All ways must give the same messages and counters.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum SecondRun {
    /// Without a second run.
    None,
    /// Every component is ticked in every cycle, and counters are checked after each window.
    NoSkip,
    /// The world ticks before the component.
    OtherOrder,
    /// After a run of some cycles and a reset.
    Reset(#[arbitrary(with = within(0..=400))] u16),
    /// After a run of some cycles and two resets.
    ResetTwice(#[arbitrary(with = within(0..=400))] u16),
}

/// Creates the links between the components under test and their world.
pub struct Wiring {
    components: Vec<TileSlot>,
    world: TileSlot,
}

impl Wiring {
    /// A link from the world to the component, or to the first of a group.
    pub fn input<T: Send>(&self, latency: u32, depth: u32) -> (OutPort<T>, InPort<T>) {
        self.input_of(0, latency, depth)
    }

    /// A link from the component to the world, or from the first of a group.
    pub fn output<T: Send>(&self, latency: u32, depth: u32) -> (OutPort<T>, InPort<T>) {
        self.output_of(0, latency, depth)
    }

    /// A link from the world to component `n` of a group.
    pub fn input_of<T: Send>(&self, n: usize, latency: u32, depth: u32) -> (OutPort<T>, InPort<T>) {
        link(&config("input", latency, depth), &self.world, &self.components[n])
    }

    /// A link from component `n` of a group to the world.
    pub fn output_of<T: Send>(&self, n: usize, latency: u32, depth: u32) -> (OutPort<T>, InPort<T>) {
        link(&config("output", latency, depth), &self.components[n], &self.world)
    }

    /// A link between two components of a group.
    pub fn between<T: Send>(&self, [from, to]: [usize; 2], latency: u32, depth: u32) -> (OutPort<T>, InPort<T>) {
        link(
            &config("between", latency, depth),
            &self.components[from],
            &self.components[to],
        )
    }
}

fn config(name: &str, latency: u32, depth: u32) -> LinkConfig {
    let path = Path::root("fuzz").child(name);
    LinkConfig { path, latency, depth }
}

/// The world as a component.
struct Driver<W> {
    path: Path,
    world: W,
}

impl<W> warpwave_hw::warm::Warm for Driver<W> {}

impl<W: World> Component for Driver<W> {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        Activity::busy_if(self.world.tick(now))
    }

    fn reset(&mut self) {
        self.world.reset();
    }

    fn is_quiescent(&self) -> bool {
        // The end of a run tests the component alone. The world reports its own faults.
        true
    }

    fn probe(&self, _: &mut dyn Probe) {}

    fn stats(&self, _: &mut dyn Report) {}
}

/// The counters of a component, and the largest value of each latency.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Counters(Vec<(&'static str, u64)>);

impl Counters {
    fn of(component: &dyn Component) -> Counters {
        let mut counters = Counters::default();
        component.stats(&mut counters);
        counters
    }

    fn check_growth(&self, later: &Counters, path: &Path) {
        for ((name, before), (_, after)) in self.0.iter().zip(&later.0) {
            assert!(before <= after, "{path}: counter {name} falls from {before} to {after}");
        }
    }
}

/// What a run gives: a hash of the messages of the world, and the counters of each component.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Results {
    digest: u64,
    counters: Vec<Counters>,
}

impl Results {
    /// The paths of the components whose counters differ. If none differs, those of all: only the messages differ.
    fn differing(&self, other: &Results, components: &[Box<dyn Component>]) -> String {
        let pairs = self.counters.iter().zip(&other.counters);
        let differs: Vec<bool> = pairs.map(|(one, other)| one != other).collect();
        let any = differs.contains(&true);
        paths(components, |n, _| !any || differs[n])
    }
}

/// The paths of the components that are chosen.
fn paths(components: &[Box<dyn Component>], is_chosen: impl Fn(usize, &dyn Component) -> bool) -> String {
    let chosen = components
        .iter()
        .enumerate()
        .filter(|(n, component)| is_chosen(*n, component.as_ref()));
    let paths: Vec<String> = chosen.map(|(_, component)| component.path().to_string()).collect();
    paths.join(" or ")
}

impl Report for Counters {
    fn count(&mut self, name: &'static str, value: u64) {
        self.0.push((name, value));
    }
    fn latency(&mut self, name: &'static str, value: &Latency) {
        self.0.push((name, value.histogram().max()));
    }
}

/// One machine: the components under test, and their world as the last component.
struct Machine {
    clock: Clock,
}

impl Machine {
    fn new<W: World>(n: usize, build: &impl Fn(&Wiring) -> (Group, W)) -> Machine {
        let mut tile = TileBuilder::new();
        let wiring = Wiring {
            components: (0..n).map(|_| tile.slot()).collect(),
            world: tile.slot(),
        };
        let (components, world) = build(&wiring);
        assert_eq!(components.len(), n, "one component for each slot");
        for (slot, mut component) in wiring.components.iter().zip(components) {
            component.arm_invariants();
            tile.fill_boxed(slot, component);
        }
        let path = Path::root("world");
        tile.fill(&wiring.world, Driver { path, world });
        Machine {
            clock: Clock::new(vec![tile.build()]),
        }
    }

    /// The components under test, and the world.
    fn parts<W: World>(&self) -> (&[Box<dyn Component>], &W) {
        let (world, components) = self.clock.tiles()[0]
            .components()
            .split_last()
            .expect("a tile with a world");
        let world: &dyn Any = world.as_ref();
        let driver = world.downcast_ref::<Driver<W>>();
        (components, &driver.expect("the last component is the world").world)
    }

    /// The results so far.
    fn results<W: World>(&self) -> Results {
        let (components, world) = self.parts::<W>();
        Results {
            digest: world.digest(),
            counters: components
                .iter()
                .map(|component| Counters::of(component.as_ref()))
                .collect(),
        }
    }

    /// Returns to the state before the first cycle.
    fn restart(&mut self) {
        self.clock.reset(Cycle::ZERO);
        self.clock.tiles_mut()[0].set_skipping(true);
    }

    /// Checks the end of a run: the components are quiescent, their invariants hold, and the world finds nothing wrong.
    fn check_end<W: World>(&self, cycles: u64) {
        let (components, world) = self.parts::<W>();
        if let Some(component) = components.iter().find(|component| !component.is_quiescent()) {
            panic!(
                "{}: not quiescent after {cycles} cycles: {}",
                component.path(),
                waits(components)
            );
        }
        let now = self.clock.now();
        for component in components {
            assert_invariants_of(component.as_ref(), now);
        }
        world.check_end();
    }

    /// Runs to the end, then ticks the idle machine.
    fn run<W: World>(&mut self, limit: u64) -> Results {
        // With idle-skipping the clock stops as soon as no component is due.
        let stop = self.clock.run(Cycle(limit), |_| false);
        let end = self.clock.now().0;
        let components = self.parts::<W>().0;
        assert!(
            stop == Stop::Idle,
            "{}: no end after {limit} cycles: {}",
            paths(components, |_, component| !component.is_quiescent()),
            waits(components)
        );
        self.check_end::<W>(end);
        // After the end, so that a component that acts on ticks alone is found.
        self.tick_idle::<W>();
        self.results::<W>()
    }

    /// Ticks every component of the idle machine: nothing may be sent, and no counter may change.
    fn tick_idle<W: World>(&mut self) {
        let before = self.results::<W>();
        self.clock.tiles_mut()[0].set_skipping(false);
        let end = self.clock.now() + IDLE_CYCLES;
        self.clock.run(end, |_| false);
        let after = self.results::<W>();
        let components = self.parts::<W>().0;
        assert_eq!(
            before,
            after,
            "{}: it acts without work",
            before.differing(&after, components)
        );
    }

    /// Runs every cycle without idle-skipping, until the world has ended. Checks counters and invariants after each window.
    fn run_unskipped<W: World>(&mut self, end: u64) -> Results {
        self.clock.tiles_mut()[0].set_skipping(false);
        let mut last: Vec<Counters> = Vec::new();
        self.clock.run_observed(Cycle(end), |pause| {
            let mut now = Vec::new();
            // The world is one more component, and has no counters.
            pause.each_component(&mut |component| {
                assert_invariants_of(component, pause.now());
                let counters = Counters::of(component);
                if let Some(before) = last.get(now.len()) {
                    before.check_growth(&counters, component.path());
                }
                now.push(counters);
            });
            last = now;
            false
        });
        self.check_end::<W>(end);
        self.results::<W>()
    }
}

/// What the components say that they wait for.
fn waits(components: &[Box<dyn Component>]) -> String {
    let mut waits = Vec::new();
    components
        .iter()
        .for_each(|component| component.waits(&mut |wait| waits.push(wait)));
    waits.join("; ")
}

/// Runs the component of `build` to its end, then a second time in another way, and compares.
///
/// # Panics
/// If the world finds a wrong answer, if the component does not come to rest within `limit` cycles, or if it breaks the contract.
pub fn check<C: Component, W: World>(build: impl Fn(&Wiring) -> (C, W), second: SecondRun, limit: u64) {
    let build = |wiring: &Wiring| {
        let (component, world) = build(wiring);
        (vec![Box::new(component) as Box<dyn Component>], world)
    };
    check_group(1, build, second, limit);
}

/// Components that run together.
pub type Group = Vec<Box<dyn Component>>;

/// Runs the `n` components of `build` as [`check`] runs one.
///
/// # Panics
/// As [`check`].
pub fn check_group<W: World>(n: usize, build: impl Fn(&Wiring) -> (Group, W), second: SecondRun, limit: u64) {
    let mut machine = Machine::new(n, &build);
    let expected = machine.run::<W>(limit);
    let components = machine.parts::<W>().0;
    components
        .iter()
        .for_each(|component| component.stats(&mut CounterFeatures));
    // As many cycles as the first run took, for a machine that is never idle.
    let end = machine.clock.now().0;
    // The first run is that of a new machine, and the second follows a reset. So a difference may be a fault of the reset. A second
    // machine would take as long to build as a run takes.
    machine.restart();
    let found = match second {
        SecondRun::None => return,
        SecondRun::NoSkip => machine.run_unskipped::<W>(end),
        SecondRun::OtherOrder => {
            machine.clock.tiles_mut()[0].set_order((0..=n).rev().collect());
            machine.run::<W>(limit)
        }
        // The first run may stop anywhere: a reset must clear whatever is in flight.
        SecondRun::Reset(at) | SecondRun::ResetTwice(at) => {
            machine.clock.run(Cycle(at.into()), |_| false);
            machine.restart();
            if matches!(second, SecondRun::ResetTwice(_)) {
                machine.restart();
            }
            machine.run::<W>(limit)
        }
    };
    assert_eq!(
        expected,
        found,
        "{}: the second run differs: {second:?}",
        expected.differing(&found, machine.parts::<W>().0)
    );
}

#[cfg(test)]
mod tests;
