//! A test bench for one component, and the contract that every component keeps.
//!
//! ```text
//!   traffic --> feeder ---> [ component ] ---> drain --> events
//!                                ^  |
//!                                |  +-------> responder
//!                                +------------'
//! ```
//!
//! A test builds the component on the rig's links. [`check`] runs it in several ways and compares.
//!
//! # The contract
//! - Messages and signals do not depend on idle-skipping or on the order of ticks in a cycle. A tick without work changes nothing.
//! - A reset in any cycle returns the component to the state after construction.
//! - The component always shows the same signals. They change only in its own ticks. Counters never fall.
//! - When all traffic is sent and no message is in flight, the component becomes quiescent. Then it sends nothing more.
//!
//! ```
//! use warpwave_hw::rig::{Rig, check};
//! # use warpwave_hw::{component::{Activity, Component}, link::{InPort, OutPort}, path::Path, probe::Probe, stats::Report, time::Cycle};
//! # struct Adder(Path, InPort<u32>, OutPort<u32>);
//! # impl warpwave_hw::warm::Warm for Adder {}
//! # impl Component for Adder {
//! #     fn path(&self) -> &Path { &self.0 }
//! #     fn tick(&mut self, now: Cycle) -> Activity {
//! #         if self.2.has_room(now) && let Some(n) = self.1.recv(now) { self.2.send(now, n + 1) }
//! #         Activity::busy_if(self.1.is_ready(now))
//! #     }
//! #     fn reset(&mut self) { self.1.clear() }
//! #     fn is_quiescent(&self) -> bool { self.1.is_empty() }
//! #     fn probe(&self, _: &mut dyn Probe) {}
//! #     fn stats(&self, _: &mut dyn Report) {}
//! # }
//! let build = |rig: &mut Rig| {
//!     let numbers = rig.input("numbers", 1, 2, vec![(0, 10), (7, 20)]);
//!     let sums = rig.output("sums", 1, 2, |now| now.0 % 2 == 0);
//!     Adder(Path::root("adder"), numbers, sums)
//! };
//! let events = check(build, 100).unwrap();
//! let sums: Vec<_> = events.iter().filter(|event| event.link == "sums").map(|event| (event.at.0, &event.message[..])).collect();
//! assert_eq!(sums, [(2, "11"), (10, "21")]);
//! ```

mod ports;
mod record;

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::clock::Clock;
use crate::component::Component;
use crate::link::{InPort, LinkConfig, OutPort, link};
use crate::path::Path;
use crate::tile::{TileBuilder, TileSlot};
use crate::time::Cycle;
use ports::{Drain, Feeder, InFlightCounter, Responder};
use record::{LastSample, RunRecord, Snapshot};

/// A message sent by a feeder or taken by a drain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event {
    /// The cycle.
    pub at: Cycle,
    /// The name of the link.
    pub link: &'static str,
    /// The message, as `Debug` formats it.
    pub message: String,
}

/// The events of all feeders and drains.
type Events = Arc<Mutex<Vec<Event>>>;

/// The links around the component under test, while it is built.
pub struct Rig {
    tile: TileBuilder,
    slot: TileSlot,
    events: Events,
    in_flight: Arc<AtomicUsize>,
}

impl Rig {
    fn new() -> Rig {
        let mut tile = TileBuilder::new();
        // The component under test has the first slot, so its index is 0.
        let slot = tile.slot();
        Rig {
            tile,
            slot,
            events: Events::default(),
            in_flight: Arc::default(),
        }
    }

    /// The component's own slot, for links with both ends in the component.
    pub fn slot(&self) -> TileSlot {
        self.slot.clone()
    }

    /// Creates a link into the component. A feeder sends `traffic` in order, at most one message per cycle. No message is sent before the
    /// cycle given with it.
    pub fn input<T>(&mut self, name: &'static str, latency: u32, depth: u32, traffic: Vec<(u64, T)>) -> InPort<T>
    where
        T: Clone + Debug + Send + 'static,
    {
        self.sideband_input(name, latency, depth, traffic, |_| 0)
    }

    /// Creates a link into the component, with a sideband for each message ([`OutPort::send_sideband`]).
    pub fn sideband_input<T>(
        &mut self,
        name: &'static str,
        latency: u32,
        depth: u32,
        traffic: Vec<(u64, T)>,
        sideband: fn(&T) -> u16,
    ) -> InPort<T>
    where
        T: Clone + Debug + Send + 'static,
    {
        let slot = self.tile.slot();
        let (mut output, mut input) = link(&config(name, latency, depth), &slot, &self.slot);
        output.watch(Box::new(InFlightCounter(self.in_flight.clone())));
        input.watch(Box::new(InFlightCounter(self.in_flight.clone())));
        self.tile
            .fill(&slot, Feeder::new(name, output, traffic, sideband, self.events.clone()));
        input
    }

    /// Creates a link out of the component. A drain takes a message in each cycle for which `takes` is true.
    pub fn output<T>(
        &mut self,
        name: &'static str,
        latency: u32,
        depth: u32,
        takes: impl Fn(Cycle) -> bool + Send + 'static,
    ) -> OutPort<T>
    where
        T: Debug + Send + 'static,
    {
        let slot = self.tile.slot();
        let (mut output, mut input) = link(&config(name, latency, depth), &self.slot, &slot);
        output.watch(Box::new(InFlightCounter(self.in_flight.clone())));
        input.watch(Box::new(InFlightCounter(self.in_flight.clone())));
        self.tile
            .fill(&slot, Drain::new(name, input, takes, self.events.clone()));
        output
    }

    /// Creates two links with a latency of one cycle, to a responder and back. It takes one message per cycle. `respond` returns the
    /// responses to a message, each with the cycles until it is sent. Responses keep the order of their messages.
    pub fn responder<T, R>(
        &mut self,
        names: [&'static str; 2],
        depth: u32,
        respond: impl Fn(T) -> Vec<(u64, R)> + Send + 'static,
    ) -> (OutPort<T>, InPort<R>)
    where
        T: Debug + Send + 'static,
        R: Debug + Send + 'static,
    {
        let slot = self.tile.slot();
        let (mut output, mut taken) = link(&config(names[0], 1, depth), &self.slot, &slot);
        let (mut response, mut input) = link(&config(names[1], 1, depth), &slot, &self.slot);
        output.watch(Box::new(InFlightCounter(self.in_flight.clone())));
        taken.watch(Box::new(InFlightCounter(self.in_flight.clone())));
        response.watch(Box::new(InFlightCounter(self.in_flight.clone())));
        input.watch(Box::new(InFlightCounter(self.in_flight.clone())));
        let responder = Responder::new(names, taken, response, respond, self.events.clone());
        self.tile.fill(&slot, responder);
        (output, input)
    }
}

fn config(name: &str, latency: u32, depth: u32) -> LinkConfig {
    LinkConfig {
        path: Path::root("rig").child(name),
        latency,
        depth,
    }
}

/// A way to run the machine.
struct Mode {
    name: &'static str,
    skip: bool,
    /// The rotation of the tick order, which is reversed too. `None` keeps the order of slots.
    rotation: Option<usize>,
}

const PLAIN: Mode = Mode {
    name: "plain",
    skip: true,
    rotation: None,
};

const OTHERS: [Mode; 4] = [
    Mode {
        name: "without idle-skipping",
        skip: false,
        rotation: None,
    },
    Mode {
        name: "with ticks in reverse order",
        skip: true,
        rotation: Some(0),
    },
    Mode {
        name: "with ticks in rotated order",
        skip: true,
        rotation: Some(1),
    },
    Mode {
        name: "without idle-skipping and with ticks in rotated order",
        skip: false,
        rotation: Some(2),
    },
];

/// Runs the component for `cycles` cycles in several ways. Returns the events, or the first violation of the contract.
///
/// # Panics
/// If the component panics.
pub fn check<C: Component + 'static>(build: impl Fn(&mut Rig) -> C, cycles: u64) -> Result<Vec<Event>, String> {
    let plain = Machine::new(&build, &PLAIN).run(cycles);
    plain.is_sound()?;
    for mode in &OTHERS {
        let other = Machine::new(&build, mode).run(cycles);
        plain.same_as(&other, mode.name)?;
    }
    // Early resets find the first messages in flight, late ones the end of the traffic.
    for at in [1, 2, 10, cycles / 4, cycles / 2, cycles] {
        let mut machine = Machine::new(&build, &PLAIN);
        machine.run(at);
        machine.reset();
        plain.same_as(&machine.run(cycles), &format!("after a reset in cycle {at}"))?;
    }
    Ok(plain.events)
}

/// The component with its feeders and drains.
struct Machine {
    clock: Clock,
    events: Events,
    in_flight: Arc<AtomicUsize>,
}

impl Machine {
    fn new<C: Component + 'static>(build: &impl Fn(&mut Rig) -> C, mode: &Mode) -> Machine {
        let mut rig = Rig::new();
        let mut component = build(&mut rig);
        component.arm_invariants();
        rig.tile.fill(&rig.slot, component);
        let mut tile = rig.tile.build();
        tile.set_skipping(mode.skip);
        if let Some(rotation) = mode.rotation {
            let n = tile.components().len();
            tile.set_order((0..n).rev().map(|index| (index + rotation) % n).collect());
        }
        Machine {
            clock: Clock::new(vec![tile]),
            events: rig.events,
            in_flight: rig.in_flight,
        }
    }

    fn component(&self) -> &dyn Component {
        self.clock.tiles()[0].components()[0].as_ref()
    }

    /// Runs from cycle 0 on and takes a snapshot of the component after every cycle.
    fn run(&mut self, cycles: u64) -> RunRecord {
        let mut record = RunRecord::new(Snapshot::of(self.component()));
        let sampled = LastSample::default();
        let always = Cycle::ZERO..Cycle::NEVER;
        // Mask 1: the component under test alone.
        self.clock.tiles_mut()[0].watch(Box::new(sampled.clone()), 1, always);
        for now in (0..cycles).map(Cycle) {
            self.clock.run(now + 1, |_| false);
            // `run` does not advance the clock if no component is due.
            self.clock.skip_to(now + 1);
            // Messages in links of the rig count, the component's own state does not: `is_quiescent` speaks of that.
            let is_at_rest = self.in_flight.load(Ordering::Relaxed) == 0 && self.all_sent();
            record.add(now, self.component(), &sampled.get(), is_at_rest);
        }
        let events = self.events.lock().expect("no feeder or drain panics").clone();
        record.finish(events, self.component())
    }

    fn all_sent(&self) -> bool {
        self.clock.tiles()[0].components()[1..]
            .iter()
            .all(|port| port.is_quiescent())
    }

    fn reset(&mut self) {
        self.clock.reset(Cycle::ZERO);
        self.events.lock().expect("no feeder or drain panics").clear();
        self.in_flight.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
