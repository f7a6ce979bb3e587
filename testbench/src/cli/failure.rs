//! Failures of the command: exit code and error text.

use std::fmt::Display;
use std::io::Write;

use warpwave::bench::BenchError;
use warpwave::host::HostError;
use warpwave::scenario::Scenario;
use warpwave_ptx::diag::render_all;

/// An `expect` failed.
pub const WRONG: u8 = 1;
/// Bad input or usage.
pub const INPUT: u8 = 2;
/// The simulated program trapped.
pub const TRAP: u8 = 3;
/// Deadlock or cycle limit.
pub const STUCK: u8 = 4;
/// Every `expect` passed, but an `assert` failed.
pub const UNMET: u8 = 5;
/// A fault that `--fault` injected was found.
pub const FAULT: u8 = 6;
/// Interrupted from the keyboard, by the convention of shells.
pub const INTERRUPTED: u8 = 130;

/// An exit code and an error text. The text is empty if it has been printed.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub text: String,
}

impl Failure {
    pub fn input(text: impl Display) -> Self {
        Failure {
            code: INPUT,
            text: text.to_string(),
        }
    }

    /// A failure whose text has been printed.
    pub fn printed(code: u8) -> Self {
        Failure {
            code,
            text: String::new(),
        }
    }

    /// Prints the text to standard error.
    pub fn print(&self) {
        if !self.text.is_empty() {
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "error: {}", self.text.trim_end());
        }
    }

    /// The failure for a file that cannot be written.
    pub fn write(path: &std::path::Path, error: std::io::Error) -> Self {
        Self::input(format!(
            "cannot write {}: {error}; choose an existing folder with write permission",
            path.display()
        ))
    }

    /// The failure for a scenario that cannot run. It shows the PTX lines of its findings.
    pub fn bench(scenario: &Scenario, error: &BenchError) -> Self {
        let findings = match error {
            BenchError::Ptx(findings) => findings,
            BenchError::Launch {
                error: HostError::Unsupported { findings, .. },
                ..
            } => findings,
            _ => return Self::input(format!("{}: {error}", scenario.name)),
        };
        let findings = render_all(findings, &scenario.ptx_path, &scenario.ptx);
        Self::input(format!("{}: {error}\n{findings}", scenario.name))
    }
}

/// Prints a warning to standard error.
pub fn warn(text: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "warning: {text}");
}

/// Combines two results: prints the first failure and returns the second with the greater code.
pub fn worse(first: Result<(), Failure>, second: Result<(), Failure>) -> Result<(), Failure> {
    match (first, second) {
        (Err(first), Err(second)) => {
            first.print();
            Err(Failure {
                code: first.code.max(second.code),
                text: second.text,
            })
        }
        (first, second) => first.and(second),
    }
}
