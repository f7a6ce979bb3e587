//! The waveform of a run: attaches a recorder to every tile concerned, merges what they record, and hands it to every sink.
//!
//! ```text
//! tile -> recorder -> buffer \            / curves, marks, trigger \    / file: VCD, compressed or not, or another sink
//! tile -> recorder -> buffer -> merge -> <                          > -<
//! tile -> recorder -> buffer /            \ values now             /    \ flight recorder
//! ```
//!
//! Changes are handed on by cycle and within a cycle by signal, and signals are numbered by tile and component. A quantum is
//! complete in all tiles before it is collected. So a file is the same, byte for byte, for any number of threads, any quantum,
//! any tick order, and with or without idle-skipping.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use warpwave_hw::clock::Clock;
use warpwave_hw::tile::Tile;
use warpwave_hw::time::Cycle;

use crate::attach::attach;
use crate::curves::Curves;
use crate::error::WaveError;
use crate::file::{self, About};
use crate::flight::Flight;
use crate::links::Links;
use crate::marks::{Mark, Marks};
use crate::merge::Merge;
use crate::recorder::Change;
use crate::select::Selection;
use crate::signal::Signal;
use crate::sink::Sink;
use crate::trigger::Armed;
use crate::view::{self, Span};

/// What a finished waveform holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Signals shown.
    pub signals: usize,
    /// Value changes written, first values left out.
    pub changes: u64,
    /// Bytes of the first file.
    pub bytes: u64,
    /// Whether the run reached the window, and the trigger; if not, no signal has a value.
    pub reached: bool,
    /// Cycles worth a look.
    pub marks: Vec<Mark>,
}

/// A waveform being recorded. Dropped before it is finished, it leaves files that are valid up to the last cycle collected.
pub struct Waveform {
    about: About,
    selection: Selection,
    /// What is recorded, by tile and component, and then what is worked out of it; and the values as of now.
    signals: Vec<Signal>,
    values: Vec<Option<u64>>,
    merge: Merge,
    links: Links,
    curves: Curves,
    marks: Marks,
    trigger: Option<Armed>,
    outputs: Vec<Output>,
    flight: Option<Flight>,
    step: Vec<Change>,
    recorded: Range<Cycle>,
    now: Cycle,
    begun: bool,
    /// From when on files show anything.
    shown_from: Option<Cycle>,
    changes: u64,
    closed: bool,
}

/// A file.
struct Output {
    path: PathBuf,
    sink: Box<dyn Sink>,
}

impl Waveform {
    /// Watches the tiles of `clock`. Changes go nowhere until a file is added.
    ///
    /// # Errors
    /// If a pattern selects nothing.
    pub fn watch(selection: &Selection, about: &About, clock: &mut Clock) -> Result<Waveform, WaveError> {
        Self::record(selection, about, clock, selection.window())
    }

    /// As [`Waveform::watch`], with the last `cycles` cycles in memory at any time, whatever the window is.
    ///
    /// # Errors
    /// If a pattern selects nothing.
    pub fn watch_flight(
        selection: &Selection,
        about: &About,
        clock: &mut Clock,
        cycles: u64,
    ) -> Result<Waveform, WaveError> {
        let mut waveform = Self::record(selection, about, clock, Cycle::ZERO..Cycle::NEVER)?;
        waveform.flight = Some(Flight::new(cycles));
        Ok(waveform)
    }

    /// Creates the dump at `path` and, beside it, what viewers need to show it; then watches the tiles of `clock`.
    ///
    /// # Errors
    /// If a pattern selects nothing, or a file cannot be made.
    pub fn create(path: &Path, selection: &Selection, about: &About, clock: &mut Clock) -> Result<Waveform, WaveError> {
        let mut waveform = Self::watch(selection, about, clock)?;
        waveform.add_vcd(path)?;
        Ok(waveform)
    }

    fn record(
        selection: &Selection,
        about: &About,
        clock: &mut Clock,
        recorded: Range<Cycle>,
    ) -> Result<Waveform, WaveError> {
        let (mut signals, merge, links) = attach(selection, clock, &recorded)?;
        let trigger = (selection.trigger()).map(|trigger| Armed::new(trigger, &signals, recorded.start));
        let marks = Marks::new(&signals, recorded.start);
        let curves = Curves::new(&mut signals, recorded.start);
        Ok(Waveform {
            about: about.clone(),
            selection: selection.clone(),
            values: vec![None; signals.len()],
            signals,
            merge,
            links,
            curves,
            marks,
            trigger,
            outputs: Vec::new(),
            flight: None,
            step: Vec::new(),
            recorded,
            now: clock.now(),
            begun: false,
            shown_from: None,
            changes: 0,
            closed: false,
        })
    }

    /// The signals shown, as sinks number them.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// What the header of a file says of the run and of what is shown.
    pub fn header(&self) -> Vec<String> {
        file::header(&self.selection, &self.about)
    }

    /// Writes the window to a dump at `path`, compressed if its name ends in `.gz`, with what viewers need beside it.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn add_vcd(&mut self, path: &Path) -> Result<(), WaveError> {
        let sink = file::create(path, &self.header(), &self.about, &self.signals)?;
        view::write_beside(path, &self.signals, &self.about, &Span::NONE)?;
        self.add_sink(path, sink);
        Ok(())
    }

    /// Writes the window to `sink` too, whose file is `path`.
    pub fn add_sink(&mut self, path: &Path, sink: Box<dyn Sink>) {
        self.outputs.push(Output {
            path: path.into(),
            sink,
        });
    }

    /// Takes what the tiles recorded before cycle `now`. To be called between quanta, at best after each.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn collect(&mut self, now: Cycle) -> Result<(), WaveError> {
        self.now = self.now.max(now);
        let result = self.merge();
        self.checked(result)
    }

    /// Writes the rest up to cycle `now`, if it is later than what was collected, and the views with the marks found.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(&mut self, now: Cycle) -> Result<Summary, WaveError> {
        self.collect(now)?;
        let result = self.close();
        self.checked(result)?;
        let span = self.span(self.shown_from.unwrap_or(self.last()), self.last());
        for output in &self.outputs {
            view::write_beside(&output.path, &self.signals, &self.about, &span)?;
        }
        Ok(Summary {
            signals: self.signals.len(),
            changes: self.changes,
            bytes: self.outputs.first().map_or(0, |output| output.sink.bytes()),
            reached: self.shown_from.is_some(),
            marks: self.marks.found(),
        })
    }

    /// Writes what the flight recorder has to a dump at `path`, with a view of what led to `event` in the last cycle collected.
    /// The cycles written; none if there is no flight recorder, or nothing in it.
    ///
    /// # Errors
    /// If a file cannot be made or written.
    pub fn write_flight(&self, path: &Path, event: &str) -> Result<Option<Range<Cycle>>, WaveError> {
        let Some(flight) = self.flight.as_ref().filter(|_| self.begun) else {
            return Ok(None);
        };
        let last = Cycle(self.now.0.saturating_sub(1));
        let mut header = self.header();
        header.push(format!("flight recorder: the cycles before {event} in cycle {last}"));
        let mut sink = file::create(path, &header, &self.about, &self.signals)?;
        let failed = |error| WaveError::io(path, error);
        flight.write(sink.as_mut(), self.now).map_err(failed)?;
        let span = Span {
            event: Some(Mark::new(event, last)),
            ..self.span(flight.start(self.now), self.now)
        };
        view::write_beside(path, &self.signals, &self.about, &span)?;
        Ok(Some(span.start..span.end))
    }

    fn span(&self, start: Cycle, end: Cycle) -> Span {
        Span {
            start,
            end,
            marks: self.marks.found(),
            event: None,
        }
    }

    /// After a failure nothing more is written.
    fn checked(&mut self, result: Result<(), WaveError>) -> Result<(), WaveError> {
        self.closed |= result.is_err();
        result
    }

    fn last(&self) -> Cycle {
        self.now.min(self.selection.window().end)
    }

    fn close(&mut self) -> Result<(), WaveError> {
        self.closed = true;
        let last = self.last();
        if self.shown_from.is_none() {
            let nothing = vec![None; self.signals.len()];
            self.each_output(|sink| sink.begin(last.0, &nothing))?;
        }
        self.each_output(|sink| sink.finish(last.0))
    }

    fn each_output(&mut self, mut act: impl FnMut(&mut dyn Sink) -> io::Result<()>) -> Result<(), WaveError> {
        for output in &mut self.outputs {
            act(output.sink.as_mut()).map_err(|error| WaveError::io(&output.path, error))?;
        }
        Ok(())
    }

    fn merge(&mut self) -> Result<(), WaveError> {
        self.refill();
        self.drain()
    }

    fn refill(&mut self) {
        self.links.refill();
        let is_due = self.merge.is_empty() && self.now > self.recorded.start;
        match self.merge.refill(&mut self.values) || is_due {
            _ if self.begun => {}
            true => self.begin(),
            false => self.links.follow(self.now),
        }
    }

    fn drain(&mut self) -> Result<(), WaveError> {
        if !self.begun {
            return Ok(());
        }
        loop {
            let by_itself = self.curves.next().min(self.links.next()).min(self.alarm());
            let by_itself = if by_itself < self.now.min(self.recorded.end) {
                by_itself
            } else {
                Cycle::NEVER
            };
            match self.merge.next().min(by_itself) {
                // Not all tiles have run it.
                cycle if cycle >= self.now => return Ok(()),
                cycle => self.cycle(cycle)?,
            }
        }
    }

    /// When the trigger fires if nothing changes; never, once it has.
    fn alarm(&self) -> Cycle {
        match (&self.trigger, self.shown_from) {
            (Some(trigger), None) => trigger.next().max(self.selection.window().start),
            (None, None) => self.selection.window().start,
            _ => Cycle::NEVER,
        }
    }

    /// The first values are known.
    fn begin(&mut self) {
        self.begun = true;
        self.links.begin(self.recorded.start, &mut self.values);
        self.curves.begin(&mut self.values);
        if let Some(trigger) = &mut self.trigger {
            trigger.begin(self.recorded.start, &self.values);
        }
    }

    /// All that happens in one cycle.
    fn cycle(&mut self, now: Cycle) -> Result<(), WaveError> {
        let mut step = std::mem::take(&mut self.step);
        step.clear();
        self.merge.take(now, &mut step);
        self.links.take(now, &mut step);
        for &(signal, value) in &step {
            self.marks.see(now, signal, value);
            self.curves.see(now, signal, self.values[signal as usize], value);
        }
        self.curves.take(now, &mut step);
        if let Some(flight) = &mut self.flight {
            flight.keep(now, &step, &self.values);
        }
        for &(signal, value) in &step {
            self.values[signal as usize] = value;
        }
        let result = match self.shown_from {
            None => self.start(now, &step),
            Some(_) if now < self.selection.window().end => self.hand_on(now, &step),
            Some(_) => Ok(()),
        };
        self.step = step;
        result
    }

    /// Files begin in this cycle if it is time to.
    fn start(&mut self, now: Cycle, step: &[Change]) -> Result<(), WaveError> {
        let fires = match &mut self.trigger {
            Some(trigger) => {
                step.iter().for_each(|&(signal, value)| trigger.see(now, signal, value));
                trigger.fires(now, &self.values)
            }
            None => true,
        };
        if !fires || !self.selection.window().contains(&now) {
            return Ok(());
        }
        self.shown_from = Some(now);
        let values = std::mem::take(&mut self.values);
        let result = self.each_output(|sink| sink.begin(now.0, &values));
        self.values = values;
        result
    }

    fn hand_on(&mut self, now: Cycle, step: &[Change]) -> Result<(), WaveError> {
        self.changes += step.len() as u64;
        for output in &mut self.outputs {
            for &(signal, value) in step {
                let result = output.sink.change(now.0, signal, value);
                result.map_err(|error| WaveError::io(&output.path, error))?;
            }
        }
        Ok(())
    }

    /// After a panic in the machine: takes what its tiles had recorded of the quantum that broke off. The last cycle recorded.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn rescue(&mut self, clock: &mut Clock) -> Result<Cycle, WaveError> {
        clock.tiles_mut().iter_mut().for_each(Tile::give_up);
        self.refill();
        let last = self.merge.last().unwrap_or(self.now);
        self.now = self.now.max(last + 1);
        let result = self.drain();
        self.checked(result)?;
        Ok(last)
    }
}

impl Drop for Waveform {
    fn drop(&mut self) {
        if !self.closed {
            // Nobody is left to tell of a failure.
            let _ = self.merge().and_then(|()| self.close());
        }
    }
}
