//! Waveforms of a run: which signals in which cycles ([`select`]), from which event on ([`trigger`]), recording ([`recorder`]), a
//! dump for viewers ([`vcd`]) or any other [`sink`], the last cycles in memory ([`flight`]), layouts for viewers ([`view`]).
//! [`waveform`] joins them; a bench needs it, [`select`] and [`mod@file`] alone.
//!
//! # Promises
//! - The same run gives the same bytes, whatever the threads, the quantum, the tick order, and with or without idle-skipping.
//! - Watching changes no result. With nothing watched, or outside the window, it costs one branch per tick.
//! - The state at the window's start is complete.
//! - A file left behind by a run that broke off can be read up to the last quantum collected.
//!
//! # Example
//! ```
//! use warpwave_hw::component::{Activity, Component};
//! use warpwave_hw::{clock::Clock, path::Path, probe::Probe, stats::Report, tile::TileBuilder, time::Cycle};
//! use warpwave_waveforms::{select::Selection, file::About, waveform::Waveform};
//!
//! struct Counter(Path, u64);
//!
//! impl warpwave_hw::warm::Warm for Counter {}
//!
//! impl Component for Counter {
//!     fn path(&self) -> &Path { &self.0 }
//!     fn tick(&mut self, now: Cycle) -> Activity {
//!         self.1 = now.0 / 10 * 3;
//!         Activity::Until(now + 10)
//!     }
//!     fn reset(&mut self) { self.1 = 0 }
//!     fn is_quiescent(&self) -> bool { true }
//!     fn probe(&self, probe: &mut dyn Probe) { probe.vector("count", 8, Some(self.1)) }
//!     fn stats(&self, _: &mut dyn Report) {}
//! }
//!
//! let mut tile = TileBuilder::new();
//! let slot = tile.slot();
//! tile.fill(&slot, Counter(Path::root("gpu").at("sm", 0), 0));
//! let mut clock = Clock::new(vec![tile.build()]);
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("run.vcd");
//! let about = About::new(1_980_000, vec!["counts by threes".into()]);
//! let mut waveform = Waveform::create(&file, &Selection::new(&["gpu.sm[0]"], "15..")?, &about, &mut clock)?;
//! clock.run(Cycle(25), |now| waveform.collect(now).is_err());
//! waveform.finish(clock.now())?;
//!
//! let mut dump = wellen::simple::read(&file)?;
//! let count = dump.hierarchy().lookup_var(&["gpu", "sm[0]"], "count").expect("it is selected");
//! let count = dump.hierarchy()[count].signal_ref();
//! dump.load_signals(&[count]);
//! let changes = dump.get_signal(count).expect("it is loaded").iter_changes();
//! let changes = changes.map(|(at, value)| (dump.time_table()[at as usize], value.to_bit_string().unwrap()));
//! // A cycle is ten time units long.
//! assert_eq!(changes.collect::<Vec<_>>(), [(150, "00000011".into()), (200, "00000110".into())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod select;

pub mod trigger;

pub mod signal;

pub mod recorder;

mod attach;

mod merge;

mod links;

mod curves;

pub mod marks;

pub mod sink;

pub mod vcd;

pub mod flight;

pub mod file;

pub mod view;

pub mod waveform;

#[cfg(feature = "fst")]
pub mod fst;

pub mod kanata;

pub mod perfetto;

pub mod error;
