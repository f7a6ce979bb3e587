//! Findings with a place in the text, rendered for people.
//!
//! Takes: a [`Span`] of bytes and what is to be said about it. Promises: [`Diagnostic::render`] shows file, line,
//! column, the source line and a marker below the place, and nothing else of the text.

use std::fmt::Write;

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
            message: message.into(),
            help: None,
        }
    }

    /// Adds what the reader may do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
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

struct Place<'a> {
    line: usize,
    column: usize,
    source: &'a str,
    indent: String,
    width: usize,
}

impl<'a> Place<'a> {
    fn of(span: Span, text: &'a str) -> Self {
        let start = floor_char(text, span.start as usize);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = floor_char(text, span.end as usize).clamp(start, line_end);
        let before = &text[line_start..start];
        Place {
            line: text[..line_start].matches('\n').count() + 1,
            column: before.chars().count() + 1,
            source: text[line_start..line_end].trim_end(),
            // A tab stays a tab, so that the marker lines up however wide the terminal draws it.
            indent: before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect(),
            width: text[start..end].chars().count().max(1),
        }
    }
}

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
