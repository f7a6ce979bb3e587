//! Errors of waveforms: files, patterns and cycle ranges.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a waveform cannot be created or written.
#[derive(Debug, Error)]
pub enum WaveError {
    /// A file cannot be created or written.
    #[error("cannot write {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason given by the system.
        #[source]
        error: io::Error,
    },
    /// The pattern selects no signal.
    #[error("{}", no_match(.pattern, .exists, .nearest))]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// The longest prefix that exists.
        exists: String,
        /// Existing names in place of the rest, the most similar first.
        nearest: Vec<String>,
    },
    /// The pattern selects only signals below the depth shown.
    #[error("no signal within {depth} levels of `{pattern}`; show more levels, or name a scope further down")]
    TooShallow {
        /// The pattern.
        pattern: String,
        /// Levels shown.
        depth: usize,
    },
    /// The text is not a pattern.
    #[error("`{pattern}` is not a pattern: write names with dots between them, such as `gpu.gpc[0].**`")]
    BadPattern {
        /// The text.
        pattern: String,
    },
    /// The text is not a range of cycles.
    #[error("`{window}` is not a range of cycles: write A..B with A below B, or A.., ..B, ..")]
    BadWindow {
        /// The text.
        window: String,
    },
    /// The machine shows no signals.
    #[error("the machine shows no signals")]
    NoSignals,
}

impl WaveError {
    /// A file that cannot be created or written.
    pub fn io(path: &Path, error: io::Error) -> WaveError {
        WaveError::Io {
            path: path.into(),
            error,
        }
    }
}

fn no_match(pattern: &str, exists: &str, nearest: &[String]) -> String {
    let nearest = nearest.join(", ");
    if exists.is_empty() {
        return format!("no signal matches `{pattern}`; the nearest: {nearest}");
    }
    format!("no signal matches `{pattern}`; `{exists}` exists; the nearest: {nearest}")
}
