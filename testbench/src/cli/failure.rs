//! Failures of the command: exit code and error text.
//!
//! A text may quote any input. So control characters are escaped, and long lines and texts are cut, before a terminal gets them.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

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
        let remedy = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on the disk, or choose another folder",
            _ => "choose an existing folder with write permission",
        };
        Self::input(format!("cannot write {}: {error}; {remedy}", path.display()))
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

/// Maximum number of bytes of a text, and the ones kept of its end when it is cut.
const MAX_TEXT: usize = 30 << 10;
const TEXT_END: usize = 8 << 10;

/// The text with its control characters escaped. The middle of a long line is cut out, and the middle lines of a long text.
pub fn shown(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(shown_line).collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    if bytes <= MAX_TEXT {
        return lines.join("\n");
    }
    // Room for the line that tells the cut.
    let start = count_within(lines.iter(), MAX_TEXT - TEXT_END - 100);
    let end = count_within(lines.iter().rev(), TEXT_END).min(lines.len() - start);
    let cut = lines.len() - start - end;
    let told = format!("[... {cut} lines ...]");
    let parts = [&lines[..start], &[told], &lines[lines.len() - end..]];
    parts.concat().join("\n")
}

/// The number of first lines that fit into `bytes`.
fn count_within<'l>(lines: impl Iterator<Item = &'l String>, bytes: usize) -> usize {
    let sums = lines.scan(0, |sum, line| {
        *sum += line.len() + 1;
        Some(*sum)
    });
    sums.take_while(|&sum| sum <= bytes).count()
}

fn shown_line(line: &str) -> String {
    let escape = |c: char| match c {
        // Quoted source lines may have tabs, which do no harm.
        '\t' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    let escaped: Vec<String> = line.chars().map(escape).collect();
    // An escaped character takes several, so the length of the escaped line counts.
    let length = |part: &[String]| part.iter().map(|c| c.chars().count()).sum::<usize>();
    if length(&escaped) <= MAX_LINE {
        return escaped.concat();
    }
    let start = count_fitting(escaped.iter(), MAX_LINE - LINE_END);
    let end = count_fitting(escaped.iter().rev(), LINE_END);
    let cut = escaped.len() - start - end;
    let (start, end) = (escaped[..start].concat(), escaped[escaped.len() - end..].concat());
    format!("{start}[... {cut} characters ...]{end}")
}

/// The number of first escaped characters that fit into `length`.
fn count_fitting<'c>(escaped: impl Iterator<Item = &'c String>, length: usize) -> usize {
    let sums = escaped.scan(0, |sum, c| {
        *sum += c.chars().count();
        Some(*sum)
    });
    sums.take_while(|&sum| sum <= length).count()
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

    #[test]
    fn line_of_control_characters_is_cut_after_they_are_escaped() {
        // Each takes 5 characters, so 80 fit before the cut and 40 after it.
        let nul = "\\u{0}";
        let text = shown(&"\0".repeat(1000));
        let want = format!("{}[... 880 characters ...]{}", nul.repeat(80), nul.repeat(40));
        assert_eq!(text, want);
        assert_eq!(shown(&"\0".repeat(120)), nul.repeat(120));
    }

    #[test]
    fn long_text_keeps_its_first_and_its_last_lines() {
        let lines: Vec<String> = (0..1000).map(|n| format!("{n:0>99}")).collect();
        let text = shown(&lines.join("\n"));
        assert!(text.len() <= MAX_TEXT, "{} bytes", text.len());
        // Lines of 100 bytes: 224 fit into 22,428 bytes and 81 into 8,192.
        let want = [&lines[..224], &["[... 695 lines ...]".to_owned()], &lines[919..]].concat();
        assert!(text == want.join("\n"), "{text}");
        let few = lines[..300].join("\n");
        assert!(shown(&few) == few);
    }
}
