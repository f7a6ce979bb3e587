//! Creates dump files, and writes what their headers say of the run.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use warpwave_hw::time::Cycle;

use crate::error::WaveError;
use crate::select::Selection;
use crate::signal::Signal;
use crate::sink::Sink;
use crate::vcd::TimeAxis;
use crate::vcd::writer::VcdWriter;

/// A description of the run, for the header of a dump.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunInfo {
    /// The frequency of the core clock, in kHz.
    pub clock_khz: u64,
    /// Lines about the kernel, the GPU and the seed. They must not depend on the host.
    pub run: Vec<String>,
    /// The text of every instruction, by number.
    pub code: Arc<[String]>,
    /// The unit of the dump's times.
    pub axis: TimeAxis,
}

impl RunInfo {
    /// Describes a run with times in cycles and without instruction texts. `clock_khz` is the frequency of the core clock, in kHz.
    pub fn new(clock_khz: u64, run: Vec<String>) -> RunInfo {
        RunInfo {
            clock_khz,
            run,
            code: Arc::default(),
            axis: TimeAxis::Cycles,
        }
    }
}

/// The comment lines of a header: the clock, the selection and the run.
pub fn header(selection: &Selection, about: &RunInfo) -> Vec<String> {
    let window = selection.window();
    let end = match window.end {
        Cycle::NEVER => String::new(),
        end => end.to_string(),
    };
    let patterns: Vec<&str> = selection.patterns().collect();
    let mut lines = vec![
        "a value holds from the rising edge of the clock on, after the tick of that cycle".into(),
        format!("core clock {} kHz", about.clock_khz),
        format!("signals {} in cycles {}..{end}", patterns.join(" "), window.start),
    ];
    lines.extend(selection.trigger().map(|trigger| format!("from {trigger} on")));
    lines.extend(about.run.iter().cloned());
    lines
}

/// Creates a VCD file. It is compressed if the name ends in `.gz`.
///
/// # Errors
/// If the file cannot be created.
pub fn create_vcd(
    path: &Path,
    header: &[String],
    about: &RunInfo,
    signals: &[Signal],
) -> Result<Box<dyn Sink>, WaveError> {
    let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
    let made = File::create(path).and_then(|file| -> io::Result<Box<dyn Sink>> {
        Ok(if is_gzip {
            let file = GzipFile(GzEncoder::new(file, Compression::fast()));
            Box::new(VcdWriter::new(file, header, about.axis, signals)?)
        } else {
            Box::new(VcdWriter::new(file, header, about.axis, signals)?)
        })
    });
    made.map_err(|error| WaveError::io(path, error))
}

/// Creates a dump in GTKWave's binary format FST.
///
/// # Errors
/// If the file cannot be created.
#[cfg(feature = "fst")]
pub fn create_fst(path: &Path, about: &RunInfo, signals: &[Signal]) -> Result<Box<dyn Sink>, WaveError> {
    let made = File::create(path).and_then(|file| crate::fst::FstSink::new(file, about.axis, signals));
    match made {
        Ok(sink) => Ok(Box::new(sink)),
        Err(error) => Err(WaveError::io(path, error)),
    }
}

/// The path without `.vcd` and `.gz`. The names of the view files begin with it. `.fst` stays, so that a VCD and an FST file of the same
/// name have views of their own.
pub fn stem(path: &Path) -> PathBuf {
    let mut stem = path.to_path_buf();
    // In this order: `run.vcd.gz` loses both.
    for ending in ["gz", "vcd"] {
        if stem.extension().is_some_and(|extension| extension == ending) {
            stem.set_extension("");
        }
    }
    stem
}

/// A compressed file. `write_all` makes all text so far readable. `flush` ends the file.
struct GzipFile(GzEncoder<File>);

impl Write for GzipFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        // A run that breaks off leaves whole compressed blocks.
        self.0.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.try_finish()
    }
}
