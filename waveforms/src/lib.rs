//! Waveforms of a run: select signals, record their changes, write dumps and the views that open them.
//!
//! # Modules, in reading order
//! - [`signal`]: the signals that components declare, and the tree of their scopes.
//! - [`select`]: patterns and a window of cycles, which choose what is recorded.
//! - [`trigger`]: an event in the machine that starts the dump.
//! - [`recorder`]: records the changes of one tile, on the tile's thread.
//! - [`waveform`]: joins the recorders of all tiles and writes every output. A bench needs this module, [`select`] and [`mod@file`].
//! - [`scheduled`]: signals with changes that are known before the run.
//! - [`sink`]: the interface of an output. [`vcd`] and `fst` (feature `fst`) implement it.
//! - [`flight`]: the flight recorder, which keeps the last cycles in memory.
//! - [`markers`]: finds the cycles that get a named marker in the views.
//! - [`mod@file`]: creates dump files and writes what their headers say of the run.
//! - [`view`]: layouts, value names and colours for GTKWave and Surfer.
//! - [`kanata`]: pipeline diagrams for Konata. [`perfetto`]: timelines for Perfetto. Both are written from events, not from signals.
//! - [`error`]: what can fail.
//!
//! The pages in `waveforms/docs/` explain how to read the views.
//!
//! # Promises
//! - The same run gives the same bytes, for any threads, quantum and tick order, and with or without idle-skipping.
//! - Recording changes no result. Outside the window it costs one branch per tick.
//! - The dump begins with the value of every signal.
//! - If a run breaks off, its dump can be read up to the last quantum collected.
//!
//! # Example
//! A counter is recorded from cycle 15 on. The dump has its value in cycle 15, and its change in cycle 20.
//! ```
//! use warpwave_hw::component::{Activity, Component};
//! use warpwave_hw::{clock::Clock, path::Path, probe::Probe, stats::Report, tile::TileBuilder, time::Cycle};
//! use warpwave_waveforms::{file::RunInfo, select::Selection, waveform::Waveform};
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
//! let info = RunInfo::new(1_980_000, vec!["counts by threes".into()]);
//! let mut waveform = Waveform::create(&file, &Selection::new(&["gpu.sm[0]"], "15..")?, &info, &mut clock)?;
//! clock.run(Cycle(25), |now| waveform.collect(now).is_err());
//! let summary = waveform.finish(clock.now())?;
//!
//! let mut dump = wellen::simple::read(&file)?;
//! let count = dump.hierarchy().lookup_var(&["gpu", "sm[0]"], "count").expect("it is selected");
//! let count = dump.hierarchy()[count].signal_ref();
//! dump.load_signals(&[count]);
//! let changes = dump.get_signal(count).expect("it is loaded").iter_changes();
//! let changes = changes.map(|(at, value)| (dump.time_table()[at as usize], value.to_bit_string().unwrap()));
//! // A cycle is ten time units long.
//! assert_eq!(changes.collect::<Vec<_>>(), [(150, "00000011".into()), (200, "00000110".into())]);
//! assert_eq!(summary.changes, 1);
//! assert!(folder.path().join("run.gtkw").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod signal;

pub mod select;

pub mod trigger;

pub mod recorder;

mod attach;

mod merge;

mod links;

mod derived;

pub mod scheduled;

pub mod waveform;

pub mod sink;

pub mod vcd;

#[cfg(feature = "fst")]
pub mod fst;

pub mod flight;

pub mod markers;

pub mod file;

pub mod view;

pub mod kanata;

pub mod perfetto;

pub mod error;
