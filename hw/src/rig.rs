//! A bench for one component alone, and the contract that every component keeps.
//!
//! ```text
//!   traffic --> feeder ---> [ component ] ---> drain --> events
//!                                ^  |
//!                                |  +-------> responder
//!                                +------------'
//! ```
//!
//! A test builds the component on the rig's links, once for each way of running it; [`check`] compares.
//!
//! # The contract
//! - Without idle-skipping, or with the ticks of a cycle in another order, the same messages pass in the same cycles, and every
//!   signal has the same value after every cycle: a tick with nothing to do changes nothing.
//! - After a reset at any time the component does, shows and counts what it did after construction.
//! - It shows the same signals every time, and they change in its own ticks alone. Its counters never fall.
//! - When all traffic is sent and it has come to rest, it is quiescent; and once it was, with nothing under way, it sends
//!   nothing more.
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
use crate::tile::{Slot, TileBuilder};
use crate::time::Cycle;
use ports::{Count, Drain, Feeder, Responder};
use record::{Life, Look, Sampled};

/// A message that passed: sent by a feeder, or taken by a drain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event {
    /// When.
    pub at: Cycle,
    /// The name of the link.
    pub link: &'static str,
    /// The message as `Debug` writes it.
    pub message: String,
}

/// Where feeders and drains write.
type Events = Arc<Mutex<Vec<Event>>>;

/// Links around a component that is being built.
pub struct Rig {
    tile: TileBuilder,
    slot: Slot,
    events: Events,
    in_flight: Arc<AtomicUsize>,
}

impl Rig {
    fn new() -> Rig {
        let mut tile = TileBuilder::new();
        let slot = tile.slot();
        Rig {
            tile,
            slot,
            events: Events::default(),
            in_flight: Arc::default(),
        }
    }

    /// The component's own place, for links that it holds both ends of.
    pub fn slot(&self) -> Slot {
        self.slot.clone()
    }

    /// A link into the component. Its traffic is sent in order, a message a cycle, none before the cycle named with it.
    pub fn input<T>(&mut self, name: &'static str, latency: u32, depth: u32, traffic: Vec<(u64, T)>) -> InPort<T>
    where
        T: Clone + Debug + Send + 'static,
    {
        self.sideband_input(name, latency, depth, traffic, |_| 0)
    }

    /// The same with a sideband beside each message ([`OutPort::send_sideband`]).
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
        output.watch(Box::new(Count(self.in_flight.clone())));
        input.watch(Box::new(Count(self.in_flight.clone())));
        self.tile
            .fill(&slot, Feeder::new(name, output, traffic, sideband, self.events.clone()));
        input
    }

    /// A link out of the component. A message is taken in each cycle for which `takes` holds.
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
        output.watch(Box::new(Count(self.in_flight.clone())));
        input.watch(Box::new(Count(self.in_flight.clone())));
        self.tile
            .fill(&slot, Drain::new(name, input, takes, self.events.clone()));
        output
    }

    /// A pair of links of one cycle: traffic that answers what the component sends. One message is taken per cycle, and `respond`
    /// gives the responses to it, each with the cycles until it is sent. Responses keep the order of their messages.
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
        output.watch(Box::new(Count(self.in_flight.clone())));
        taken.watch(Box::new(Count(self.in_flight.clone())));
        response.watch(Box::new(Count(self.in_flight.clone())));
        input.watch(Box::new(Count(self.in_flight.clone())));
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

/// How a machine is run.
struct Mode {
    name: &'static str,
    skip: bool,
    /// How far the order of ticks is turned, backwards.
    turn: Option<usize>,
}

const PLAIN: Mode = Mode {
    name: "plainly",
    skip: true,
    turn: None,
};

const OTHERS: [Mode; 4] = [
    Mode {
        name: "without idle-skipping",
        skip: false,
        turn: None,
    },
    Mode {
        name: "with ticks in reverse order",
        skip: true,
        turn: Some(0),
    },
    Mode {
        name: "with ticks in turned order",
        skip: true,
        turn: Some(1),
    },
    Mode {
        name: "without idle-skipping and with ticks in turned order",
        skip: false,
        turn: Some(2),
    },
];

/// Runs the component for so many cycles in every way, and says what the contract does not allow; else what passed.
///
/// # Panics
/// As the component does.
pub fn check<C: Component + 'static>(build: impl Fn(&mut Rig) -> C, cycles: u64) -> Result<Vec<Event>, String> {
    let plain = Machine::new(&build, &PLAIN).live(cycles);
    plain.is_sound()?;
    for mode in &OTHERS {
        let other = Machine::new(&build, mode).live(cycles);
        plain.same_as(&other, mode.name)?;
    }
    for at in [1, 2, 10, cycles / 4, cycles / 2, cycles] {
        let mut machine = Machine::new(&build, &PLAIN);
        machine.live(at);
        machine.reset();
        plain.same_as(&machine.live(cycles), &format!("after a reset in cycle {at}"))?;
    }
    Ok(plain.events)
}

/// A component with its feeders and drains, ready to run.
struct Machine {
    clock: Clock,
    events: Events,
    in_flight: Arc<AtomicUsize>,
}

impl Machine {
    fn new<C: Component + 'static>(build: &impl Fn(&mut Rig) -> C, mode: &Mode) -> Machine {
        let mut rig = Rig::new();
        let component = build(&mut rig);
        rig.tile.fill(&rig.slot, component);
        let mut tile = rig.tile.build();
        tile.set_skipping(mode.skip);
        if let Some(turn) = mode.turn {
            let n = tile.components().len();
            tile.set_order((0..n).rev().map(|index| (index + turn) % n).collect());
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

    /// Runs from cycle 0 on, and looks at the component after every cycle.
    fn live(&mut self, cycles: u64) -> Life {
        let mut life = Life::new(Look::at(self.component()));
        let sampled = Sampled::default();
        let always = Cycle::ZERO..Cycle::NEVER;
        self.clock.tiles_mut()[0].watch(Box::new(sampled.clone()), 1, always);
        for now in (0..cycles).map(Cycle) {
            self.clock.run(now + 1, |_| false);
            // A quiet machine stays where it is; time passes all the same.
            self.clock.wait_until(now + 1);
            let is_at_rest = self.in_flight.load(Ordering::Relaxed) == 0 && self.all_sent();
            life.look(now, self.component(), &sampled.last(), is_at_rest);
        }
        let events = self.events.lock().expect("no feeder or drain panics").clone();
        life.end(events, self.component())
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
