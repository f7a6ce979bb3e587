//! Diagnostics: findings with a span of the text, and their rendering.
//!
//! [`Diagnostic::render`] shows the file, line, column, source line and a marker below the span. A long source line is shortened
//! around the span. [`render_all`] shows at most [`MAX_FINDINGS`] findings, so the output stays small for every text.

use std::fmt::Write;

use crate::lex::first_byte;

/// Maximum number of findings that [`render_all`] shows.
pub const MAX_FINDINGS: usize = 100;

/// Maximum number of characters shown of a source line.
const MAX_LINE_CHARS: usize = 160;

/// Characters shown before the span in a shortened source line.
const CHARS_BEFORE_SPAN: usize = 60;

/// Maximum bytes of a message.
const MAX_MESSAGE_BYTES: usize = 300;
/// Bytes kept of the end of a shortened message.
const MESSAGE_END_BYTES: usize = 80;

/// A range of bytes in the PTX text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the range from the start of `self` to the end of `last`.
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end.max(self.start),
        }
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The text is not PTX, or it contradicts itself.
    Malformed,
    /// The text is PTX, but this machine does not run it.
    Unsupported,
    /// The program runs. The finding may interest the author.
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

/// A finding: severity, span, message and help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity of the finding.
    pub severity: Severity,
    /// Span of the text that the finding is about.
    pub span: Span,
    /// The problem in one line, in lower case and without a full stop.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates a finding for malformed text.
    pub fn malformed(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Malformed, span, message)
    }

    /// Creates a finding for PTX that this machine does not run.
    pub fn unsupported(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Unsupported, span, message)
    }

    /// Creates a finding that does not stop the program.
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

    /// Adds a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shortened(help.into()));
        self
    }

    /// Renders the finding as a few lines of text, with a line feed at the end.
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
        let pos = TextPos::of(self.span, text);
        let number = pos.line.to_string();
        let gutter = " ".repeat(number.len());
        let mut out = format!("{}: {}\n", self.severity.word(), self.message);
        let _ = writeln!(out, "{gutter} --> {file_name}:{}:{}", pos.line, pos.column);
        let _ = writeln!(out, "{gutter} |");
        let _ = writeln!(out, "{number} | {}", pos.source);
        let _ = writeln!(out, "{gutter} | {}{}", pos.indent, "^".repeat(pos.width));
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{gutter} = help: {help}");
        }
        out
    }

    /// Returns the line number, counted from 1.
    pub fn line(&self, text: &str) -> usize {
        TextPos::of(self.span, text).line
    }
}

/// Shortens a long message in the middle, for example one that quotes a long name.
fn shortened(message: String) -> String {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message;
    }
    let start = floor_char(&message, MAX_MESSAGE_BYTES - MESSAGE_END_BYTES);
    let end = floor_char(&message, message.len() - MESSAGE_END_BYTES);
    format!("{}{ELLIPSIS}{}", &message[..start], &message[end..])
}

/// Renders the first [`MAX_FINDINGS`] findings as text, then the number of the others.
///
/// ```
/// use warpwave_ptx::diag::{Diagnostic, Span, render_all};
/// let findings = vec![Diagnostic::malformed(Span::default(), "unknown opcode"); 103];
/// let text = render_all(&findings, "k.ptx", "foo;");
/// assert_eq!(text.matches("unknown opcode").count(), 100);
/// assert!(text.ends_with("\nand 3 more findings\n"));
/// ```
pub fn render_all(findings: &[Diagnostic], file_name: &str, text: &str) -> String {
    let shown = &findings[..findings.len().min(MAX_FINDINGS)];
    let shown: Vec<_> = shown.iter().map(|finding| finding.render(file_name, text)).collect();
    let mut out = shown.join("\n");
    if findings.len() > MAX_FINDINGS {
        let _ = write!(out, "\nand {} more findings\n", findings.len() - MAX_FINDINGS);
    }
    out
}

/// Line, column and excerpt for one span.
struct TextPos {
    line: usize,
    column: usize,
    source: String,
    indent: String,
    width: usize,
}

impl TextPos {
    /// Returns the position of a span. Bytes beyond the text or inside a character are moved back.
    fn of(span: Span, text: &str) -> Self {
        let start = floor_char(text, span.start as usize);
        let line_start = text[..start]
            .rfind('\n')
            .map_or(first_byte(text).min(start), |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        // The marker covers the first line of a longer span.
        let end = floor_char(text, span.end as usize).clamp(start, line_end);
        let column = text[line_start..start].chars().count() + 1;
        let source = text[line_start..line_end].trim_end();
        let shown = Excerpt::of(source, column - 1);
        TextPos {
            line: text[..line_start].matches('\n').count() + 1,
            column,
            // A tab stays a tab: the marker lines up for every tab width of the terminal.
            indent: shown.before().map(|c| if c == '\t' { '\t' } else { ' ' }).collect(),
            width: text[start..end].chars().take(shown.visible_from_span()).count().max(1),
            source: shown.text,
        }
    }
}

/// The visible part of a source line.
struct Excerpt {
    text: String,
    /// Number of characters before the span.
    before: usize,
}

impl Excerpt {
    /// Returns the part around character `at`, or the whole line if it is short.
    fn of(source: &str, at: usize) -> Self {
        let n = source.chars().count();
        if n <= MAX_LINE_CHARS {
            return Excerpt {
                text: source.to_owned(),
                before: at,
            };
        }
        // The excerpt has its full length at the end of a line too.
        let first = at.saturating_sub(CHARS_BEFORE_SPAN).min(n - MAX_LINE_CHARS);
        let part: String = source.chars().skip(first).take(MAX_LINE_CHARS).collect();
        let (left, right) = (
            if first > 0 { ELLIPSIS } else { "" },
            if first + MAX_LINE_CHARS < n { ELLIPSIS } else { "" },
        );
        Excerpt {
            text: format!("{left}{part}{right}"),
            before: at - first + left.chars().count(),
        }
    }

    /// Returns the characters before the span. The span can start after the last character of the line.
    fn before(&self) -> impl Iterator<Item = char> {
        self.text.chars().chain(std::iter::repeat(' ')).take(self.before)
    }

    /// Returns the number of visible characters from the start of the span.
    fn visible_from_span(&self) -> usize {
        self.text.chars().count().saturating_sub(self.before)
    }
}

/// Mark for an omitted part of a line or message.
const ELLIPSIS: &str = "…";

fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Byte offsets of all line starts, for a fast conversion of offsets to line numbers.
pub struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    /// Indexes the lines of `text`.
    pub fn new(text: &str) -> Self {
        let feeds = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0).chain(feeds.map(|(at, _)| at as u32 + 1)).collect();
        Lines { starts }
    }

    /// Returns the line number of byte offset `at`, counted from 1.
    pub fn line(&self, at: u32) -> u32 {
        self.starts.partition_point(|&start| start <= at) as u32
    }
}
