//! Fuzz targets: random inputs with exact oracles for the components, the front end and the file formats.
//!
//! ```text
//!   bytes --decode--> input: small configuration, traffic, back-pressure
//!                       |
//!                       v
//!     world <--links--> component          the world sends, receives, and knows the right messages
//! ```
//!
//! - [`targets`]: one module per target, with its input and its oracle. [`targets::ALL`] lists them.
//! - [`harness`]: runs one component with its world, and checks the contract that every component keeps.
//! - [`draw`]: draws values of inputs from bytes.
//! - [`parts`]: packets, grids and configurations for the targets.
//! - [`warp_access`]: memory instructions of warps.
//! - [`waves`]: signals and their changes.
//! - [`features`]: what a run reached. The runner keeps an input that reaches something new.
//! - [`runner`]: fuzzes on stable Rust, without libFuzzer.
//! - [`coverage`]: which lines of the sources under test a run reaches.
//!
//! `README.md` has the commands. `corpus/` has the first inputs, `regressions/` every input that once failed. `cargo test` replays both.

pub mod draw;

pub mod features;

pub mod harness;

pub mod parts;

pub mod warp_access;

pub mod waves;

pub mod runner;

pub mod coverage;

pub mod targets;

/// Runs a target on an input.
///
/// # Panics
/// If there is no such target, or if its oracle finds a violation.
pub fn run(target: &str, bytes: &[u8]) {
    let target = targets::find(target).unwrap_or_else(|| panic!("{target} is not in `targets::ALL`"));
    (target.run)(bytes);
}

/// Runs a target on each file of the command line.
///
/// # Panics
/// If a file cannot be read, or if the oracle finds a violation.
pub fn replay(target: &str) {
    for path in std::env::args_os().skip(1) {
        match std::fs::read(&path) {
            Ok(bytes) => run(target, &bytes),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests;
