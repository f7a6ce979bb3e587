//! Files of a run: what their headers say of it, and what they are written by.

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
use crate::vcd::Axis;
use crate::vcd::writer::Writer;

/// What a waveform says of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Frequency of the core clock, in kHz.
    pub clock_khz: u64,
    /// What ran where: kernel, part, seed; a line each. It must not depend on the host.
    pub run: Vec<String>,
    /// The text of every instruction, by its number.
    pub code: Arc<[String]>,
    /// What the times of a file are.
    pub axis: Axis,
}

impl About {
    /// A run on a core clock of so many kHz, shown by cycles, without a list of its instructions.
    pub fn new(clock_khz: u64, run: Vec<String>) -> About {
        About {
            clock_khz,
            run,
            code: Arc::default(),
            axis: Axis::Cycles,
        }
    }
}

/// The lines of a header: the clock, what is shown, what ran.
pub fn header(selection: &Selection, about: &About) -> Vec<String> {
    let window = selection.window();
    let end = match window.end {
        Cycle::NEVER => String::new(),
        end => end.to_string(),
    };
    let patterns: Vec<&str> = selection.patterns().collect();
    let mut lines = vec![
        "values are those after the cycle's tick, from the rising edge of the clock on".into(),
        format!("core clock {} kHz", about.clock_khz),
        format!("signals {} in cycles {}..{end}", patterns.join(" "), window.start),
    ];
    lines.extend(selection.trigger().map(|trigger| format!("from {trigger} on")));
    lines.extend(about.run.iter().cloned());
    lines
}

/// A dump at `path`, compressed if its name ends in `.gz`.
///
/// # Errors
/// If the file cannot be made.
pub fn create(path: &Path, header: &[String], about: &About, signals: &[Signal]) -> Result<Box<dyn Sink>, WaveError> {
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    let made = File::create(path).and_then(|file| -> io::Result<Box<dyn Sink>> {
        Ok(if is_packed {
            let packed = Packed(GzEncoder::new(file, Compression::fast()));
            Box::new(Writer::new(packed, header, about.axis, signals)?)
        } else {
            Box::new(Writer::new(file, header, about.axis, signals)?)
        })
    });
    made.map_err(|error| WaveError::io(path, error))
}

/// A dump in the binary format FST at `path`.
///
/// # Errors
/// If the file cannot be made.
#[cfg(feature = "fst")]
pub fn create_fst(path: &Path, about: &About, signals: &[Signal]) -> Result<Box<dyn Sink>, WaveError> {
    let made = File::create(path).and_then(|file| crate::fst::Fst::new(file, about.axis, signals));
    match made {
        Ok(sink) => Ok(Box::new(sink)),
        Err(error) => Err(WaveError::io(path, error)),
    }
}

/// The path without the endings of a dump: what lies beside it begins with that.
pub fn stem(path: &Path) -> PathBuf {
    let mut stem = path.to_path_buf();
    for ending in ["gz", "vcd", "fst"] {
        if stem.extension().is_some_and(|extension| extension == ending) {
            stem.set_extension("");
        }
    }
    stem
}

/// A compressed file. Every block that is written can be unpacked at once; flushing ends the file.
struct Packed(GzEncoder<File>);

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.try_finish()
    }
}
