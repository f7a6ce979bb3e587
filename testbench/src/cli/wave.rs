//! The waveforms of `--vcd` and `--fst`. Without them, the flight recorder keeps the last cycles for a failed run.

use std::path::{Path, PathBuf};

use warpwave::bench::Bench;
use warpwave::report::units::scaled;
use warpwave::scenario::Scenario;
use warpwave_hw::time::Cycle;
use warpwave_waveforms::error::WaveError;
#[cfg(feature = "fst")]
use warpwave_waveforms::file::create_fst;
use warpwave_waveforms::file::{RunInfo, stem};
use warpwave_waveforms::scheduled::ScheduledSignal;
use warpwave_waveforms::select::Selection;
use warpwave_waveforms::vcd::TimeAxis;
use warpwave_waveforms::waveform::Waveform;

use super::args::{self, TraceTime};
use super::failure::{Failure, tell, warn};
use super::trigger;
use super::write::await_reader;

/// Cycles that the flight recorder keeps.
const FLIGHT_CYCLES: u64 = 20_000;

/// The SM that the flight recorder records by default: one, to limit the cost.
pub const FLIGHT_SM: &str = "gpu.gpc[0].sm[0]";

/// Size of a file that is worth a note. Each further note doubles it.
const LARGE: u64 = 1 << 30;

/// The waveform that is being recorded, if any.
pub struct Wave {
    waveform: Option<Waveform>,
    error: Option<WaveError>,
    /// File of the flight recorder, if it is on.
    flight: Option<PathBuf>,
    /// True if an option names the flight-recorder file.
    is_asked: bool,
    /// True if an option names a waveform file.
    has_files: bool,
    /// True if the waveform file is compressed, so that it is smaller than its text.
    is_compressed: bool,
    scopes: String,
    /// Size of the file at which the next note is printed, in bytes.
    next_note: u64,
    /// True once the limit has been reported.
    is_limited: bool,
}

impl Wave {
    /// Starts recording. The flight recorder's file is that of `--flight`, or else `record`. It records `sm`, or else [`FLIGHT_SM`].
    /// `transaction` has the signals of `--transaction`.
    pub fn begin(
        args: &args::Run,
        scenario: &Scenario,
        record: Option<PathBuf>,
        bench: &mut Bench<'_>,
        sm: Option<&str>,
        transaction: Vec<ScheduledSignal>,
    ) -> Result<Self, Failure> {
        let written = waveforms(args).next();
        let flight = args.flight.clone().or(record);
        let selection = selection(args, scenario, bench, sm)?;
        let about = about(args, scenario, bench);
        let clock = bench.gpu_mut().clock_mut();
        let watched = match (&flight, &written) {
            // The recorder is part of the waveform: files and recorder share one recording.
            (Some(_), _) => Some(Waveform::watch_flight(&selection, &about, clock, FLIGHT_CYCLES)),
            (None, Some(_)) => Some(Waveform::watch(&selection, &about, clock)),
            (None, None) => None,
        };
        let mut waveform = watched.transpose().map_err(failure)?;
        if let Some(waveform) = &mut waveform {
            waveform.set_limit(args.trace_limit.unwrap_or(u64::MAX));
            waveform.schedule(transaction);
            add_files(args, &about, waveform)?;
        }
        Ok(Wave {
            waveform,
            error: None,
            flight,
            is_asked: args.flight.is_some(),
            has_files: written.is_some(),
            is_compressed: args.vcd.as_deref().is_some_and(is_gzip),
            scopes: selection.patterns().collect::<Vec<_>>().join(" "),
            next_note: LARGE,
            is_limited: false,
        })
    }

    /// Writes the signal changes before cycle `now`. Returns false if a file cannot be written.
    pub fn collect(&mut self, now: Cycle) -> bool {
        let result = self.waveform.as_mut().map_or(Ok(()), |waveform| waveform.collect(now));
        self.error = result.err();
        // After the write, which may have reached the limit.
        self.tell_size(now);
        self.error.is_none()
    }

    /// Notes each doubling of a large file, and warns once when the limit ends the files.
    fn tell_size(&mut self, now: Cycle) {
        let Some(waveform) = &self.waveform else { return };
        match waveform.limited_at() {
            Some(at) if !self.is_limited => {
                self.is_limited = true;
                let begin = Some(waveform.bytes()).filter(|_| !waveform.has_changes());
                warn(&limited(at, begin, self.is_compressed));
            }
            None if waveform.bytes() >= self.next_note => {
                tell(&large(waveform.bytes(), self.is_compressed, now));
                self.next_note *= 2;
            }
            _ => {}
        }
    }

    /// True if a waveform could not be written, which stops the run.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Writes the flight recorder after the failure `what`, and prints the name of its file.
    /// If no option names the file, a write error is only a warning.
    pub fn write_flight(&mut self, what: &str) -> Result<(), Failure> {
        match self.try_write_flight(what) {
            Err(failure) if !self.is_asked => {
                warn(&format!("the last cycles are not recorded: {}", failure.text));
                Ok(())
            }
            result => result,
        }
    }

    fn try_write_flight(&mut self, what: &str) -> Result<(), Failure> {
        let (Some(waveform), Some(file)) = (&mut self.waveform, &self.flight) else {
            return Ok(());
        };
        let _reader = await_reader(file).map_err(|error| Failure::write(file, error))?;
        let written = waveform.write_flight(file, what).map_err(failure)?;
        if let Some(span) = written {
            tell(&format!(
                "note: cycles {}..{} of {} before the {what} are in {}; look at them with: gtkwave {}.gtkw",
                span.start,
                span.end,
                self.scopes,
                file.display(),
                stem(file).display()
            ));
        }
        Ok(())
    }

    /// Writes the flight recorder after a panic of the machine, with the incomplete quantum.
    /// Write errors are only printed, so that the panic remains the error of the command.
    pub fn rescue(&mut self, bench: &mut Bench<'_>) {
        let waveform = self.waveform.as_mut();
        let rescued = waveform.map_or(Ok(()), |waveform| {
            waveform.collect_after_panic(bench.gpu_mut().clock_mut()).map(drop)
        });
        let written = rescued
            .map_err(failure)
            .and_then(|()| self.write_flight("broken_invariant"));
        if let Err(failure) = written {
            failure.print();
        }
    }

    /// Ends the files at cycle `now`. `None` ends them at the last cycle collected, for a run that stopped early.
    pub fn finish(&mut self, now: Option<Cycle>) -> Result<(), Failure> {
        if let Some(error) = self.error.take() {
            return Err(failure(error));
        }
        let Some(waveform) = &mut self.waveform else {
            return Ok(());
        };
        // Cycle 0 collects nothing more: `finish` ends the files with the last cycle collected.
        let now = now.unwrap_or(Cycle::ZERO);
        let summary = waveform.finish(now).map_err(failure)?;
        // The default flight recorder is no concern of a run that did not fail.
        if !summary.reached && (self.has_files || self.is_asked) {
            tell(
                "note: the waveform is empty: the run ended before the cycles of --trace-cycles or the event of --trace-on",
            );
        }
        Ok(())
    }
}

/// The warning when the limit ends the files. `begin` has the bytes of a file without a change, if nothing else had room.
fn limited(at: Cycle, begin: Option<u64>, is_compressed: bool) -> String {
    let before = before_compression(is_compressed);
    let begin = begin.map_or(String::new(), |bytes| {
        let size = scaled(bytes as f64, "B");
        format!("; the names and first values of the signals alone have {size}, so no change has room")
    });
    format!(
        "the waveform ends before cycle {at}, at the size of --trace-limit{before}{begin}; the run goes on; \
         select signals with --trace or cycles with --trace-cycles"
    )
}

/// The note on a large file.
fn large(bytes: u64, is_compressed: bool, now: Cycle) -> String {
    let per_cycle = bytes / now.0.max(1);
    let before = before_compression(is_compressed);
    format!(
        "note: the waveform has {:.1} GiB{before} in cycle {now}, about {per_cycle} bytes a cycle; \
         end it with --trace-limit, or select signals with --trace or cycles with --trace-cycles",
        bytes as f64 / (1u64 << 30) as f64
    )
}

/// True if the flight recorder is on by default: no option names a waveform or its file, or disables it.
pub fn keeps_record(args: &args::Run) -> bool {
    !args.no_flight && args.flight.is_none() && waveforms(args).next().is_none()
}

/// True if the flight recorder records one SM: no option names scopes or a waveform.
pub fn records_sm(args: &args::Run) -> bool {
    args.trace.is_empty() && waveforms(args).next().is_none()
}

/// The paths of `--vcd` and `--fst`.
fn waveforms(args: &args::Run) -> impl Iterator<Item = &PathBuf> {
    #[cfg(feature = "fst")]
    let binary = args.fst.iter();
    #[cfg(not(feature = "fst"))]
    let binary = std::iter::empty();
    args.vcd.iter().chain(binary)
}

#[cfg_attr(
    not(feature = "fst"),
    allow(unused_variables, reason = "the other format needs no more than the waveform knows")
)]
fn add_files(args: &args::Run, about: &RunInfo, waveform: &mut Waveform) -> Result<(), Failure> {
    // Held until the files are open, so the readers of pipes stay.
    let reader = |file: &PathBuf| await_reader(file).map_err(|error| Failure::write(file, error));
    let _readers: Vec<_> = waveforms(args).map(reader).collect::<Result<_, _>>()?;
    if let Some(file) = &args.vcd {
        waveform.add_vcd(file).map_err(failure)?;
    }
    #[cfg(feature = "fst")]
    if let Some(file) = &args.fst {
        let sink = create_fst(file, about, waveform.signals()).map_err(failure)?;
        waveform.add_sink(file, sink);
    }
    Ok(())
}

fn selection(args: &args::Run, scenario: &Scenario, bench: &Bench<'_>, sm: Option<&str>) -> Result<Selection, Failure> {
    let default: Vec<String> = match waveforms(args).next() {
        // No pattern selects all signals.
        Some(_) => Vec::new(),
        None => vec![sm.unwrap_or(FLIGHT_SM).to_owned(), "gpu.gigathread".to_owned()],
    };
    let patterns = if args.trace.is_empty() { &default } else { &args.trace };
    // A run may fail before its sample, and the flight recorder has the cycles before that.
    let cycles = match waveforms(args).next() {
        Some(_) => args.recorded_cycles(),
        None => args.trace_cycles.clone().unwrap_or_else(|| "..".to_owned()),
    };
    let mut selection = Selection::new(patterns, &cycles).map_err(failure)?;
    if let Some(depth) = args.trace_depth {
        selection = selection.with_depth(depth.into());
    }
    if let Some(event) = &args.trace_on {
        selection = selection.with_trigger(trigger::parse(event, scenario, bench)?);
    }
    Ok(selection)
}

fn about(args: &args::Run, scenario: &Scenario, bench: &Bench<'_>) -> RunInfo {
    let config = bench.gpu().config();
    let khz = config.clocks.core_khz.into();
    let mut run = vec![format!("{} on {}", scenario.name, config.name)];
    for (index, grid) in bench.grids().iter().enumerate() {
        let (name, blocks, threads) = (grid.program.name(), grid.grid, grid.block);
        run.push(format!("launch {index}: {name}, grid {blocks:?}, block {threads:?}"));
    }
    // Lines of the header must not depend on the host, so dates and paths are left out.
    run.extend(args.set.iter().map(|(key, value)| format!("set {key} = {value}")));
    RunInfo {
        code: bench.instructions().into(),
        axis: match args.trace_time {
            TraceTime::Cycles => TimeAxis::Cycles,
            TraceTime::Real => TimeAxis::Real { khz },
        },
        ..RunInfo::new(khz, run)
    }
}

/// The words behind a size, which is that of the text: a compressed file is smaller.
fn before_compression(is_compressed: bool) -> &'static str {
    if is_compressed { " before compression" } else { "" }
}

/// True if a VCD at this path is compressed.
fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

fn failure(error: WaveError) -> Failure {
    Failure::input(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_tells_size_pace_and_remedies() {
        for (is_compressed, size) in [(false, "1.5 GiB"), (true, "1.5 GiB before compression")] {
            let note = large(3 << 29, is_compressed, Cycle(1_000_000));
            let says = format!(
                "note: the waveform has {size} in cycle 1000000, about 1610 bytes a cycle; end it with --trace-limit, "
            );
            assert!(note.starts_with(&says), "{note}");
        }
    }
}
