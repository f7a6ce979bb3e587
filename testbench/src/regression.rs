//! Regression tests of scenario files: which files are scenarios, the baseline of their metrics, and JUnit XML.
//!
//! ```text
//! folder, glob, file ── find ──> scenarios ── run, one process each ──> Case ── Baseline::check ──> lines, JUnit XML, exit code
//! ```

mod files;

mod baseline;

mod junit;

pub use baseline::{Baseline, BaselineError};
pub use files::{FilesError, find};
pub use junit::{Case, Failed, junit};
