//! Findings with a place in the text, rendered for people.
//!
//! Takes: a [`Span`] of bytes and what is to be said about it. Promises: [`Diagnostic::render`] shows file, line,
//! column, the source line and a marker below the place, and nothing else of the text. Of a long line it shows the part around the place.
//! [`render_all`] shows at most [`MOST_FINDINGS`], so no text makes much more output than its own length.

use std::fmt::Write;

use crate::lex::first_byte;

/// Findings that [`render_all`] shows.
pub const MOST_FINDINGS: usize = 100;

/// Characters of a source line that are shown.
const LONGEST_LINE: usize = 160;

/// Characters of [`LONGEST_LINE`] before the place.
const BEFORE: usize = 60;

/// Bytes of a message, and of these the bytes of its end.
const LONGEST_MESSAGE: usize = 300;
const MESSAGE_END: usize = 80;

/// A range of bytes in the PTX text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range from the start of `self` to the end of `last`.
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end.max(self.start),
        }
    }
}

/// What a finding means for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The text is not PTX, or contradicts itself.
    Malformed,
    /// The text is PTX, but this machine does not run it.
    Unsupported,
    /// The program runs; its author may want to know.
    Warning,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Severity::Malformed => "error",
            Severity::Unsupported => "unsupported",
            Severity::Warning => "warning",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it means for the program.
    pub severity: Severity,
    /// Where it is.
    pub span: Span,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding that the text is malformed.
    pub fn malformed(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Malformed, span, message)
    }

    /// A finding that the machine cannot run this.
    pub fn unsupported(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Unsupported, span, message)
    }

    /// A finding that does not stop the program.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, span, message)
    }

    fn new(severity: Severity, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity,
            span,
            message: shortened(message.into()),
            help: None,
        }
    }

    /// Adds what the reader may do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shortened(help.into()));
        self
    }

    /// The finding as text of a few lines, ending with a line feed.
    ///
    /// ```
    /// let text = ".version 7.0\n.target sm_80\n.entry k() { mov.u32 %r1, 0; }\n";
    /// let findings = warpwave_ptx::parse(text).unwrap_err();
    /// assert_eq!(findings[0].render("k.ptx", text), "\
    /// error: undefined register `%r1`
    ///   --> k.ptx:3:22
    ///   |
    /// 3 | .entry k() { mov.u32 %r1, 0; }
    ///   |                      ^^^
    ///   = help: declare it in this function: `.reg .b32 %r1;`
    /// ");
    /// ```
    pub fn render(&self, file_name: &str, text: &str) -> String {
        let place = Place::of(self.span, text);
        let number = place.line.to_string();
        let gutter = " ".repeat(number.len());
        let mut out = format!("{}: {}\n", self.severity.word(), self.message);
        let _ = writeln!(out, "{gutter} --> {file_name}:{}:{}", place.line, place.column);
        let _ = writeln!(out, "{gutter} |");
        let _ = writeln!(out, "{number} | {}", place.source);
        let _ = writeln!(out, "{gutter} | {}{}", place.indent, "^".repeat(place.width));
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{gutter} = help: {help}");
        }
        out
    }

    /// Line, counted from 1.
    pub fn line(&self, text: &str) -> usize {
        Place::of(self.span, text).line
    }
}

/// A message that quotes a long word shows its beginning and the end of the message.
fn shortened(message: String) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message;
    }
    let start = floor_char(&message, LONGEST_MESSAGE - MESSAGE_END);
    let end = floor_char(&message, message.len() - MESSAGE_END);
    format!("{}{CUT}{}", &message[..start], &message[end..])
}

/// All findings as text, one after the other: the first [`MOST_FINDINGS`], then how many are left.
///
/// ```
/// use warpwave_ptx::diag::{Diagnostic, Span, render_all};
/// let findings = vec![Diagnostic::malformed(Span::default(), "unknown opcode"); 103];
/// let text = render_all(&findings, "k.ptx", "foo;");
/// assert_eq!(text.matches("unknown opcode").count(), 100);
/// assert!(text.ends_with("\nand 3 findings more\n"));
/// ```
pub fn render_all(findings: &[Diagnostic], file_name: &str, text: &str) -> String {
    let shown = &findings[..findings.len().min(MOST_FINDINGS)];
    let shown: Vec<_> = shown.iter().map(|finding| finding.render(file_name, text)).collect();
    let mut out = shown.join("\n");
    if findings.len() > MOST_FINDINGS {
        let _ = write!(out, "\nand {} findings more\n", findings.len() - MOST_FINDINGS);
    }
    out
}

struct Place {
    line: usize,
    column: usize,
    source: String,
    indent: String,
    width: usize,
}

impl Place {
    fn of(span: Span, text: &str) -> Self {
        let start = floor_char(text, span.start as usize);
        let line_start = text[..start]
            .rfind('\n')
            .map_or(first_byte(text).min(start), |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = floor_char(text, span.end as usize).clamp(start, line_end);
        let column = text[line_start..start].chars().count() + 1;
        let source = text[line_start..line_end].trim_end();
        let shown = Shown::of(source, column - 1);
        Place {
            line: text[..line_start].matches('\n').count() + 1,
            column,
            // A tab stays a tab, so that the marker lines up however wide the terminal draws it.
            indent: shown.before().map(|c| if c == '\t' { '\t' } else { ' ' }).collect(),
            width: text[start..end].chars().take(shown.most_behind()).count().max(1),
            source: shown.text,
        }
    }
}

/// The part of a source line that is shown.
struct Shown {
    text: String,
    /// Characters of it before the place.
    before: usize,
}

impl Shown {
    /// The part around character `at`; all of a line that is short enough.
    fn of(source: &str, at: usize) -> Self {
        let n = source.chars().count();
        if n <= LONGEST_LINE {
            return Shown {
                text: source.to_owned(),
                before: at,
            };
        }
        let first = at.saturating_sub(BEFORE).min(n - LONGEST_LINE);
        let part: String = source.chars().skip(first).take(LONGEST_LINE).collect();
        let (left, right) = (
            if first > 0 { CUT } else { "" },
            if first + LONGEST_LINE < n { CUT } else { "" },
        );
        Shown {
            text: format!("{left}{part}{right}"),
            before: at - first + left.chars().count(),
        }
    }

    /// The characters before the place. A place may lie behind the line's last visible character.
    fn before(&self) -> impl Iterator<Item = char> {
        self.text.chars().chain(std::iter::repeat(' ')).take(self.before)
    }

    /// Characters from the place on, at most as many as are shown.
    fn most_behind(&self) -> usize {
        self.text.chars().count().saturating_sub(self.before)
    }
}

/// Stands where a part of a line is left out.
const CUT: &str = "…";

fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Where each line of a text begins, to turn many byte offsets into line numbers quickly.
pub struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    /// Indexes `text`.
    pub fn new(text: &str) -> Self {
        let feeds = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0).chain(feeds.map(|(at, _)| at as u32 + 1)).collect();
        Lines { starts }
    }

    /// The line of a byte offset, counted from 1.
    pub fn line(&self, at: u32) -> u32 {
        self.starts.partition_point(|&start| start <= at) as u32
    }
}
