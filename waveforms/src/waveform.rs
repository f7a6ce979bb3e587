//! The waveform of a run: records all tiles, merges their changes and writes them to every output.
//!
//! ```text
//! tile -> recorder -> buffer \            / links, derived signals \    / outputs: VCD, FST or another sink
//! tile -> recorder -> buffer -> merge -> <                          > -<
//! tile -> recorder -> buffer /            \ markers, trigger       /    \ flight recorder
//! ```
//!
//! Changes are ordered by cycle and then by signal. Signals are numbered by tile and component. A quantum is collected when all tiles
//! have run it. So the bytes of a file do not depend on threads, quantum, tick order or idle-skipping.

mod process;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use warpwave_hw::clock::Clock;
use warpwave_hw::tile::Tile;
use warpwave_hw::time::Cycle;

use crate::attach::attach;
use crate::derived::DerivedSignals;
use crate::error::WaveError;
use crate::file::{self, RunInfo};
use crate::flight::FlightRecorder;
use crate::links::LinkSignals;
use crate::markers::{Marker, MarkerFinder};
use crate::merge::Merge;
use crate::recorder::Change;
use crate::scheduled::{Schedule, ScheduledSignal};
use crate::select::Selection;
use crate::signal::Signal;
use crate::sink::Sink;
use crate::trigger::TriggerDetector;
use crate::view::{self, ViewRange};

/// The contents of a finished waveform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// The number of signals.
    pub signals: usize,
    /// Value changes written. Initial values do not count.
    pub changes: u64,
    /// Size of the first file, in bytes.
    pub bytes: u64,
    /// True if the run reached the window and the trigger fired. If not, no signal has a value.
    pub reached: bool,
    /// The markers found.
    pub markers: Vec<Marker>,
}

/// A waveform that is being recorded.
///
/// If it is dropped before [`finish`](Waveform::finish), its files are valid up to the last cycle collected.
pub struct Waveform {
    run: RunInfo,
    selection: Selection,
    /// Signals of components by tile, then signals of links, then derived signals, then scheduled signals.
    signals: Vec<Signal>,
    /// The current value of each signal.
    values: Vec<Option<u64>>,
    merge: Merge,
    links: LinkSignals,
    derived: DerivedSignals,
    schedule: Schedule,
    markers: MarkerFinder,
    /// Whether markers or derived signals read a signal: most signals need no look at their tables, which no cache holds.
    is_read: Vec<bool>,
    trigger: Option<TriggerDetector>,
    outputs: Vec<Output>,
    flight: Option<FlightRecorder>,
    /// The changes of one cycle, kept for its memory.
    changes: Vec<Change>,
    /// The recorded cycles: the window, or all cycles for the flight recorder.
    recorded: Range<Cycle>,
    /// The first cycle that is not collected.
    now: Cycle,
    /// True once the initial values are known.
    begun: bool,
    /// The first cycle in the outputs.
    first_shown: Option<Cycle>,
    /// The last cycle with a value in the outputs.
    last_written: Cycle,
    /// Changes written to the outputs.
    n_changes: u64,
    /// Most bytes of an output.
    limit: u64,
    /// The first cycle that is not in the outputs because of the limit.
    limited_at: Option<Cycle>,
    /// True if the outputs take no more changes.
    closed: bool,
}

/// An output file.
struct Output {
    path: PathBuf,
    sink: Box<dyn Sink>,
}

impl Waveform {
    /// Records the selected signals of the tiles of `clock`, without an output. [`Waveform::add_vcd`] adds one.
    ///
    /// # Errors
    /// If a pattern matches no signal.
    pub fn watch(selection: &Selection, run: &RunInfo, clock: &mut Clock) -> Result<Waveform, WaveError> {
        Self::record(selection, run, clock, selection.window())
    }

    /// Records like [`Waveform::watch`], with a flight recorder of the last `cycles` cycles. The window does not limit the recorder.
    ///
    /// # Errors
    /// If a pattern matches no signal.
    pub fn watch_flight(
        selection: &Selection,
        run: &RunInfo,
        clock: &mut Clock,
        cycles: u64,
    ) -> Result<Waveform, WaveError> {
        let mut waveform = Self::record(selection, run, clock, Cycle::ZERO..Cycle::NEVER)?;
        waveform.flight = Some(FlightRecorder::new(cycles));
        Ok(waveform)
    }

    /// Records the selected signals to a VCD at `path`, with the view files beside it.
    ///
    /// # Errors
    /// If a pattern matches no signal, or a file cannot be created.
    pub fn create(path: &Path, selection: &Selection, run: &RunInfo, clock: &mut Clock) -> Result<Waveform, WaveError> {
        let mut waveform = Self::watch(selection, run, clock)?;
        waveform.add_vcd(path)?;
        Ok(waveform)
    }

    fn record(
        selection: &Selection,
        run: &RunInfo,
        clock: &mut Clock,
        recorded: Range<Cycle>,
    ) -> Result<Waveform, WaveError> {
        // Markers and trigger read recorded signals only, so they are made before derived signals are appended.
        let (mut signals, merge, links) = attach(selection, clock, &recorded)?;
        let trigger = (selection.trigger()).map(|trigger| TriggerDetector::new(trigger, &signals, recorded.start));
        let markers = MarkerFinder::new(&signals, recorded.start);
        let n_recorded = signals.len();
        let derived = DerivedSignals::new(&mut signals, recorded.start, run.clock_khz);
        let is_read = (0..n_recorded).map(|n| markers.reads(n) || derived.reads(n));
        Ok(Waveform {
            run: run.clone(),
            selection: selection.clone(),
            values: vec![None; signals.len()],
            signals,
            merge,
            links,
            is_read: is_read.collect(),
            derived,
            schedule: Schedule::default(),
            markers,
            trigger,
            outputs: Vec::new(),
            flight: None,
            changes: Vec::new(),
            recorded,
            now: clock.now(),
            begun: false,
            first_shown: None,
            last_written: Cycle::ZERO,
            n_changes: 0,
            limit: u64::MAX,
            limited_at: None,
            closed: false,
        })
    }

    /// The signals of the outputs. A sink names a signal by its index here.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// The comment lines of a dump's header.
    pub fn header(&self) -> Vec<String> {
        file::header(&self.selection, &self.run)
    }

    /// Adds signals with known changes. The views open on them. Call it once, before the first output is added.
    ///
    /// # Panics
    /// If there is an output.
    pub fn schedule(&mut self, scheduled: Vec<ScheduledSignal>) {
        assert!(self.outputs.is_empty(), "signals are added before the first output");
        self.schedule = Schedule::new(scheduled, &mut self.signals);
        self.values.resize(self.signals.len(), None);
    }

    /// Adds a VCD at `path`, with the view files beside it. The VCD is compressed if the name ends in `.gz`.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn add_vcd(&mut self, path: &Path) -> Result<(), WaveError> {
        let sink = file::create_vcd(path, &self.header(), &self.run, &self.signals)?;
        // With an empty range, so that a run that breaks off has views too.
        view::write_views(path, &self.signals, &self.run, &ViewRange::EMPTY)?;
        self.add_sink(path, sink);
        Ok(())
    }

    /// Adds an output. `path` is the file that `sink` writes.
    pub fn add_sink(&mut self, path: &Path, sink: Box<dyn Sink>) {
        self.outputs.push(Output {
            path: path.into(),
            sink,
        });
    }

    /// Ends all outputs before the first one has more than `bytes` bytes. The run goes on, and so does the flight recorder.
    ///
    /// The last cycle is whole, so that a file has at most its initial values and the changes of one cycle more. A compressed
    /// file counts with its uncompressed text.
    pub fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// The first cycle that is not in the outputs, if they have ended at the limit.
    pub fn limited_at(&self) -> Option<Cycle> {
        self.limited_at
    }

    /// True if the outputs have a change behind their initial values.
    pub fn has_changes(&self) -> bool {
        self.n_changes > 0
    }

    /// Bytes of the largest output so far.
    pub fn bytes(&self) -> u64 {
        self.outputs.iter().map(|output| output.sink.bytes()).max().unwrap_or(0)
    }

    /// Collects and writes all changes before cycle `now`. Call it between quanta, best after each one.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn collect(&mut self, now: Cycle) -> Result<(), WaveError> {
        // An earlier cycle than in the last call changes nothing.
        self.now = self.now.max(now);
        let result = self.process();
        self.close_on_error(result)
    }

    /// Collects all changes before cycle `now`, ends the outputs, and writes the view files with the markers found.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(&mut self, now: Cycle) -> Result<Summary, WaveError> {
        self.collect(now)?;
        let result = self.close();
        self.close_on_error(result)?;
        // The range and the markers are known only now. This replaces the views that `add_vcd` has written.
        let range = self.view_range(self.first_shown.unwrap_or(self.end()), self.end());
        for output in &self.outputs {
            view::write_views(&output.path, &self.signals, &self.run, &range)?;
        }
        Ok(Summary {
            signals: self.signals.len(),
            changes: self.n_changes,
            bytes: self.outputs.first().map_or(0, |output| output.sink.bytes()),
            reached: self.first_shown.is_some(),
            markers: self.markers(),
        })
    }

    /// Writes the flight recorder to a VCD at `path`. The view shows the cycles before `event`, the last cycle collected.
    ///
    /// Returns the cycles written. `None` if there is no flight recorder or it is empty.
    ///
    /// # Errors
    /// If a file cannot be created or written.
    pub fn write_flight(&self, path: &Path, event: &str) -> Result<Option<Range<Cycle>>, WaveError> {
        let Some(flight) = self.flight.as_ref().filter(|_| self.begun) else {
            return Ok(None);
        };
        // `now` is the first cycle that is not collected.
        let last = Cycle(self.now.0.saturating_sub(1));
        let mut header = self.header();
        header.push(format!("flight recorder: the cycles before {event} in cycle {last}"));
        let mut sink = file::create_vcd(path, &header, &self.run, &self.signals)?;
        let failed = |error| WaveError::io(path, error);
        flight.write(sink.as_mut(), self.now).map_err(failed)?;
        let range = ViewRange {
            event: Some(Marker::new(event, last)),
            ..self.view_range(flight.oldest_cycle(self.now), self.now)
        };
        view::write_views(path, &self.signals, &self.run, &range)?;
        Ok(Some(range.start..range.end))
    }

    fn view_range(&self, start: Cycle, end: Cycle) -> ViewRange {
        ViewRange {
            start,
            end,
            markers: self.markers(),
            event: None,
            focus: self.schedule.range(),
            empty_slots: self.markers.empty_slots(),
        }
    }

    /// The markers found, and one on the last cycle of the outputs if they have ended at the limit.
    fn markers(&self) -> Vec<Marker> {
        let limit = self.limited_at.map(|end| Marker::new("size_limit", Cycle(end.0 - 1)));
        self.markers.markers().into_iter().chain(limit).collect()
    }

    /// Closes the waveform if `result` is an error: nothing more is written.
    fn close_on_error(&mut self, result: Result<(), WaveError>) -> Result<(), WaveError> {
        self.closed |= result.is_err();
        result
    }

    /// The first cycle that is not in the outputs.
    fn end(&self) -> Cycle {
        let end = self.now.min(self.selection.window().end);
        self.limited_at.map_or(end, |at| end.min(at))
    }

    fn close(&mut self) -> Result<(), WaveError> {
        self.closed = true;
        let end = self.end();
        // The outputs have ended at the limit.
        if self.limited_at.is_some() {
            return Ok(());
        }
        if self.first_shown.is_none() {
            // A dump needs initial values, even if the run did not reach the window.
            let no_values = vec![None; self.signals.len()];
            self.each_output(|sink| sink.begin(end.0, &no_values))?;
        }
        self.each_output(|sink| sink.finish(end.0))
    }

    fn each_output(&mut self, mut act: impl FnMut(&mut dyn Sink) -> io::Result<()>) -> Result<(), WaveError> {
        for output in &mut self.outputs {
            act(output.sink.as_mut()).map_err(|error| WaveError::io(&output.path, error))?;
        }
        Ok(())
    }

    /// Collects the last changes after a panic in the machine, up to the middle of a quantum. Returns the last cycle with a change.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn collect_after_panic(&mut self, clock: &mut Clock) -> Result<Cycle, WaveError> {
        clock.tiles_mut().iter_mut().for_each(Tile::flush_after_panic);
        self.read_buffers();
        // A tile that has run further shows changes of cycles that another tile has not run. They help to find the cause.
        let last = self.merge.last().unwrap_or(self.now);
        self.now = self.now.max(last + 1);
        let result = self.process_cycles();
        self.close_on_error(result)?;
        Ok(last)
    }
}

impl Drop for Waveform {
    fn drop(&mut self) {
        if !self.closed {
            // A drop cannot return the error.
            let _ = self.process().and_then(|()| self.close());
        }
    }
}
