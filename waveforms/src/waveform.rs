//! The waveform of a run: attaches a recorder to every tile, and merges what they record into one file.
//!
//! Changes are written by cycle and within a cycle by signal, and signals are numbered by tile and component. A quantum is
//! complete in all tiles before it is collected. So the file is the same, byte for byte, for any number of threads, any quantum,
//! any tick order, and with or without idle-skipping.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use warpwave_hw::clock::Clock;
use warpwave_hw::tile::Tile;
use warpwave_hw::time::Cycle;

use crate::error::WaveError;
use crate::gtkw;
use crate::recorder::{Batch, Recorder, Tray};
use crate::select::Selection;
use crate::signal::{Signal, declare};
use crate::vcd::writer::Writer;

/// What the header says of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Frequency of the core clock, in kHz.
    pub clock_khz: u64,
    /// What ran where: kernel, part, seed; a line each. It must not depend on the host.
    pub run: Vec<String>,
}

/// What a finished waveform holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Signals shown.
    pub signals: usize,
    /// Value changes written, first values left out.
    pub changes: u64,
    /// Bytes of the dump.
    pub bytes: u64,
    /// Whether the run reached the window; if not, all values are unknown.
    pub reached: bool,
}

/// A waveform being written. Dropped before it is finished, it leaves a file that is valid up to the last cycle collected.
pub struct Waveform {
    path: PathBuf,
    writer: Writer<File>,
    feeds: Vec<Feed>,
    first: Vec<Option<u64>>,
    start: Cycle,
    end: Cycle,
    now: Cycle,
    begun: bool,
    changes: u64,
    closed: bool,
}

/// What one tile hands over, and how far it is merged.
struct Feed {
    tray: Tray,
    batch: Batch,
    base: usize,
    next: usize,
}

impl Feed {
    /// The next cycle that has changes.
    fn cycle(&self) -> Option<Cycle> {
        self.batch.cycles.get(self.next).map(|&(cycle, _)| cycle)
    }

    /// The changes of the next cycle.
    fn take(&mut self) -> &[(u32, Option<u64>)] {
        let start = match self.next {
            0 => 0,
            next => self.batch.cycles[next - 1].1,
        };
        let end = self.batch.cycles[self.next].1;
        self.next += 1;
        &self.batch.changes[start..end]
    }
}

impl Waveform {
    /// Creates the dump at `path` and, beside it, what GTKWave needs to show it; then watches the tiles of `clock`.
    pub fn create(path: &Path, selection: &Selection, about: &About, clock: &mut Clock) -> Result<Waveform, WaveError> {
        let declared: Vec<Vec<Vec<Signal>>> = clock.tiles().iter().map(declare_tile).collect();
        let all: Vec<Signal> = declared.iter().flatten().flatten().cloned().collect();
        if all.is_empty() {
            return Err(WaveError::NoSignals);
        }
        selection.check(&all)?;
        let (mut signals, mut feeds) = (Vec::new(), Vec::new());
        for (tile, declared) in clock.tiles_mut().iter_mut().zip(&declared) {
            let feed = watch(tile, declared, selection, &mut signals);
            feeds.extend(feed);
        }
        let failed = |error| WaveError::Io {
            path: path.into(),
            error,
        };
        let writer = File::create(path).and_then(|file| Writer::new(file, &comments(selection, about), &signals));
        let writer = writer.map_err(failed)?;
        gtkw::write_beside(path, &signals)?;
        let window = selection.window();
        Ok(Waveform {
            path: path.into(),
            writer,
            feeds,
            first: vec![None; signals.len()],
            start: window.start,
            end: window.end,
            now: clock.now(),
            begun: false,
            changes: 0,
            closed: false,
        })
    }

    /// Writes what the tiles recorded before cycle `now`. To be called between quanta, at best after each.
    pub fn collect(&mut self, now: Cycle) -> Result<(), WaveError> {
        self.now = self.now.max(now);
        let result = self.merge();
        self.checked(result)
    }

    /// Writes the rest, and the last cycle.
    pub fn finish(mut self, now: Cycle) -> Result<Summary, WaveError> {
        self.collect(now)?;
        let result = self.close();
        self.checked(result)?;
        Ok(Summary {
            signals: self.first.len(),
            changes: self.changes,
            bytes: self.writer.len(),
            reached: self.begun,
        })
    }

    /// After a failure nothing more is written.
    fn checked(&mut self, result: io::Result<()>) -> Result<(), WaveError> {
        result.map_err(|error| {
            self.closed = true;
            WaveError::Io {
                path: self.path.clone(),
                error,
            }
        })
    }

    fn close(&mut self) -> io::Result<()> {
        self.closed = true;
        let last = self.now.min(self.end);
        if !self.begun {
            self.writer.dump(last.0, &self.first)?;
        }
        self.writer.finish(last.0)
    }

    fn merge(&mut self) -> io::Result<()> {
        for feed in &mut self.feeds {
            feed.batch.clear();
            feed.next = 0;
            std::mem::swap(&mut *feed.tray.open(), &mut feed.batch);
        }
        if !self.begun && !self.begin()? {
            return Ok(());
        }
        while let Some(cycle) = self.feeds.iter().filter_map(Feed::cycle).min() {
            for feed in self.feeds.iter_mut().filter(|feed| feed.cycle() == Some(cycle)) {
                let changes = feed.take();
                self.changes += changes.len() as u64;
                for &(signal, value) in changes {
                    self.writer.change(cycle.0, signal, value)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the first values once all tiles have given them: those at the window's start, changes of that cycle included.
    fn begin(&mut self) -> io::Result<bool> {
        for feed in &mut self.feeds {
            if let Some(first) = feed.batch.first.take() {
                self.first[feed.base..][..first.len()].copy_from_slice(&first);
                self.begun = true;
            }
            if feed.cycle().is_some_and(|cycle| cycle <= self.start) {
                for &(signal, value) in feed.take() {
                    self.first[signal as usize] = value;
                }
            }
        }
        if self.begun {
            self.writer.dump(self.start.0, &self.first)?;
        }
        Ok(self.begun)
    }
}

impl Drop for Waveform {
    fn drop(&mut self) {
        if !self.closed {
            // Nobody is left to tell of a failure.
            let _ = self.merge().and_then(|()| {
                self.now = self.now.max(self.writer.at().map_or(Cycle::ZERO, Cycle));
                self.close()
            });
        }
    }
}

fn declare_tile(tile: &Tile) -> Vec<Vec<Signal>> {
    tile.components()
        .iter()
        .map(|component| declare(component.as_ref()))
        .collect()
}

/// Attaches a recorder to the tile if any of its signals is selected, and adds these to `signals`.
fn watch(tile: &mut Tile, declared: &[Vec<Signal>], selection: &Selection, signals: &mut Vec<Signal>) -> Option<Feed> {
    let base = signals.len();
    let (mut selected, mut watched) = (Vec::new(), 0);
    for (index, component) in declared.iter().enumerate() {
        let takes: Vec<bool> = component.iter().map(|signal| selection.takes(signal.names())).collect();
        watched |= u64::from(takes.contains(&true)) << index;
        let taken = component.iter().zip(&takes).filter(|(_, takes)| **takes);
        signals.extend(taken.map(|(signal, _)| signal.clone()));
        // A component without any selected signal is never visited.
        selected.push(if takes.contains(&true) { takes } else { Vec::new() });
    }
    if watched == 0 {
        return None;
    }
    let tray = Tray::default();
    let recorder = Recorder::new(base as u32, &selected, selection.window(), tray.clone());
    tile.watch(Box::new(recorder), watched, selection.window());
    Some(Feed {
        tray,
        batch: Batch::default(),
        base,
        next: 0,
    })
}

fn comments(selection: &Selection, about: &About) -> Vec<String> {
    let window = selection.window();
    let end = if window.end == Cycle::NEVER {
        String::new()
    } else {
        window.end.to_string()
    };
    let patterns: Vec<&str> = selection.patterns().collect();
    let mut lines = vec![
        "one time unit is one core cycle, shown as 1 ns; values are those after the cycle's tick".into(),
        format!("core clock {} kHz", about.clock_khz),
        format!("signals {} in cycles {}..{end}", patterns.join(" "), window.start),
    ];
    lines.extend(about.run.iter().cloned());
    lines
}
