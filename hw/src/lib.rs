//! The simulation kernel of the GPU model: time, components, links, tiles and the clock. It contains no GPU block.
//!
//! # Modules, in reading order
//! - [`time`]: cycles of the global clock, and slower or faster clock domains.
//! - [`path`]: instance names such as `gpu.gpc[0].sm[1]`.
//! - [`component`]: the trait of a clocked block.
//! - [`invariant`]: collects the broken invariants of a component.
//! - [`link`]: a bounded channel between two components, with a latency and a depth.
//! - [`tile`]: components that one host thread runs as a unit, with a timing wheel.
//! - [`clock`]: runs all tiles, on one or more host threads.
//! - [`bits`], [`grow`]: parts for use inside a component.
//! - [`mod@warm`]: prefetches a component's state into the host's caches.
//! - [`probe`]: the interface between a component's signals and a waveform.
//! - [`stats`]: latency distributions, and the visitor that collects counters.
//! - [`error`]: errors that end a simulation early.
//! - [`rig`]: a test bench for one component, which checks the contract of components.
//!
//! # Promises
//! - A message sent in one cycle is visible in a later one. The order in which components tick does not change a result.
//! - Quantum, threads, idle-skipping and watching change nothing: same bits, same cycles. `hw/docs/time.md` has the proof.
//!
//! # Example
//! A sender and a receiver are joined by a link with a latency of 3 cycles. A number sent in cycle 0 arrives in cycle 3.
//! ```
//! use std::sync::{Arc, Mutex};
//! use warpwave_hw::clock::{Clock, Stop};
//! use warpwave_hw::component::{Activity, Component};
//! use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
//! use warpwave_hw::{path::Path, probe::Probe, stats::Report, tile::TileBuilder, time::Cycle};
//!
//! struct Sender(Path, OutPort<u32>);
//! struct Receiver(Path, InPort<u32>, Arc<Mutex<Vec<(Cycle, u32)>>>);
//!
//! impl Component for Sender {
//!     fn path(&self) -> &Path { &self.0 }
//!     fn tick(&mut self, now: Cycle) -> Activity {
//!         if now == Cycle(0) && self.1.has_room(now) {
//!             self.1.send(now, 42);
//!         }
//!         Activity::Idle
//!     }
//!     fn reset(&mut self) {}
//!     fn is_quiescent(&self) -> bool { true }
//!     fn probe(&self, _: &mut dyn Probe) {}
//!     fn stats(&self, _: &mut dyn Report) {}
//! }
//!
//! impl Component for Receiver {
//!     fn path(&self) -> &Path { &self.0 }
//!     fn tick(&mut self, now: Cycle) -> Activity {
//!         if let Some(number) = self.1.recv(now) {
//!             self.2.lock().unwrap().push((now, number));
//!         }
//!         // With a message left in the link, the next tick must come in the next cycle.
//!         Activity::busy_if(self.1.is_ready(now))
//!     }
//!     fn reset(&mut self) { self.1.clear() }
//!     fn is_quiescent(&self) -> bool { self.1.is_empty() }
//!     fn probe(&self, _: &mut dyn Probe) {}
//!     fn stats(&self, _: &mut dyn Report) {}
//! }
//! warpwave_hw::warm!(Sender);
//! warpwave_hw::warm!(Receiver);
//!
//! let mut tile = TileBuilder::new();
//! let (from, to) = (tile.slot(), tile.slot());
//! let config = LinkConfig { path: Path::root("numbers"), latency: 3, depth: 2 };
//! let (output, input) = link(&config, &from, &to);
//! let received = Arc::default();
//! tile.fill(&from, Sender(Path::root("sender"), output));
//! tile.fill(&to, Receiver(Path::root("receiver"), input, Arc::clone(&received)));
//! let mut clock = Clock::new(vec![tile.build()]);
//! assert_eq!(clock.run(Cycle(100), |_| false), Stop::Idle);
//! assert_eq!(received.lock().unwrap()[..], [(Cycle(3), 42)]);
//! ```

pub mod time;

pub mod path;

pub mod component;

pub mod invariant;

pub mod link;

pub mod tile;

pub mod clock;

mod sync;

pub mod bits;

pub mod grow;

pub mod warm;

pub mod probe;

pub mod stats;

pub mod error;

pub mod rig;

#[cfg(all(test, loom))]
mod loom_tests;
