//! Failures of the command: exit code and error text.
//!
//! A text may quote any input. So control characters are escaped and long lines are cut before a terminal gets them.

use std::fmt::Display;
use std::io::Write;

use warpwave::bench::BenchError;
use warpwave::host::HostError;
use warpwave::scenario::Scenario;

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
            tell(&format!("error: {}", self.text.trim_end()));
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
        let findings = scenario.render(findings);
        Self::input(format!("{}: {error}\n{findings}", scenario.name))
    }
}

/// Prints a warning to standard error.
pub fn warn(text: &str) {
    tell(&format!("warning: {text}"));
}

/// Prints lines to standard error, which may be closed.
pub fn tell(text: &str) {
    // Nothing is left to report an error to.
    let _ = writeln!(std::io::stderr(), "{}", shown(text));
}

/// Maximum number of characters of a line, and the ones kept of its end when it is cut. The end of an error has the remedy.
const MAX_LINE: usize = 600;
const LINE_END: usize = 200;

/// The text with its control characters escaped, and the middle of its long lines cut out.
pub fn shown(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(shown_line).collect();
    lines.join("\n")
}

fn shown_line(line: &str) -> String {
    let n = line.chars().count();
    let escaped = |part: &mut dyn Iterator<Item = char>| -> String {
        part.map(|c| match c {
            // Quoted source lines may have tabs, which do no harm.
            '\t' => c.to_string(),
            c if c.is_control() => c.escape_default().to_string(),
            c => c.to_string(),
        })
        .collect()
    };
    if n <= MAX_LINE {
        return escaped(&mut line.chars());
    }
    let start = escaped(&mut line.chars().take(MAX_LINE - LINE_END));
    let end = escaped(&mut line.chars().skip(n - LINE_END));
    format!("{start}[... {} characters ...]{end}", n - MAX_LINE)
}

/// Combines two results: prints the first failure and returns the second with the greater code.
pub fn worse(first: Result<(), Failure>, second: Result<(), Failure>) -> Result<(), Failure> {
    match (first, second) {
        (Err(first), Err(second)) => {
            first.print();
            Err(Failure {
                // Both texts are shown, but a process has one exit code.
                code: first.code.max(second.code),
                text: second.text,
            })
        }
        (first, second) => first.and(second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_except_tabs_and_line_ends() {
        assert_eq!(
            shown("a\u{1b}[31mb\0\tc\nd\u{9b}e\u{fc}"),
            "a\\u{1b}[31mb\\u{0}\tc\nd\\u{9b}e\u{fc}"
        );
    }

    #[test]
    fn long_line_keeps_its_start_and_its_end() {
        let fits = "x".repeat(MAX_LINE);
        assert_eq!(shown(&fits), fits);
        let long = format!("start{}\u{fc}end\nnext", "x".repeat(1_000_000));
        let text = shown(&long);
        assert!(
            text.starts_with("startxxx") && text.ends_with("x\u{fc}end\nnext"),
            "{text}"
        );
        assert!(text.contains("[... 999409 characters ...]"), "{text}");
    }
}
