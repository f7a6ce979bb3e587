//! What can go wrong with a waveform.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A waveform cannot be made, or not be written on.
#[derive(Debug)]
pub enum WaveError {
    /// A file cannot be created or written.
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A pattern selects no signal.
    NoMatch {
        /// The pattern.
        pattern: String,
        /// The start of it that does exist.
        exists: String,
        /// What there is instead of the rest, the nearest first.
        nearest: Vec<String>,
    },
    /// A pattern that selects only what lies too deep.
    TooShallow {
        /// The pattern.
        pattern: String,
        /// The levels shown.
        depth: usize,
    },
    /// A pattern that is not one.
    BadPattern {
        /// The pattern.
        pattern: String,
    },
    /// A window that is not one.
    BadWindow {
        /// The window as written.
        window: String,
    },
    /// The machine shows no signals at all.
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

impl fmt::Display for WaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaveError::Io { path, error } => write!(f, "cannot write {}: {error}", path.display()),
            WaveError::NoMatch {
                pattern,
                exists,
                nearest,
            } => {
                write!(f, "no signal matches `{pattern}`")?;
                if !exists.is_empty() {
                    write!(f, "; `{exists}` exists")?;
                }
                write!(f, "; the nearest: {}", nearest.join(", "))
            }
            WaveError::TooShallow { pattern, depth } => write!(
                f,
                "no signal within {depth} levels of `{pattern}`; show more levels, or name a scope further down"
            ),
            WaveError::BadPattern { pattern } => write!(
                f,
                "`{pattern}` is no pattern: write names with dots between them, such as `gpu.gpc[0].**`"
            ),
            WaveError::BadWindow { window } => write!(
                f,
                "`{window}` is no window of cycles: write A..B with A below B, or A.., ..B, .."
            ),
            WaveError::NoSignals => f.write_str("the machine shows no signals"),
        }
    }
}

impl std::error::Error for WaveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WaveError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
