//! Edits of a text: spans with their replacements, applied together.

use crate::diag::Span;
use std::collections::BTreeMap;

/// A run of bytes of the linked text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// First byte in the linked text.
    pub at: u32,
    /// Index of the text that it comes from.
    pub unit: usize,
    /// The bytes of that text. A replaced span may have another length.
    from: Span,
}

impl Piece {
    /// Returns the byte of the origin for byte `at` of the linked text.
    pub fn origin(&self, at: u32) -> u32 {
        (self.from.start + (at - self.at)).min(self.from.end)
    }
}

/// The edits of one text, by first byte.
#[derive(Debug, Default)]
pub(super) struct Edits {
    replaced: BTreeMap<u32, (Span, String)>,
}

impl Edits {
    /// Replaces a span. A later edit of the same first byte wins.
    pub fn replace(&mut self, span: Span, with: impl Into<String>) {
        self.replaced.insert(span.start, (span, with.into()));
    }

    /// Replaces every byte of a span by a blank, and keeps its line feeds.
    pub fn blank(&mut self, span: Span, text: &str) {
        let slice = &text[span.start as usize..span.end as usize];
        let blanks = slice.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' });
        self.replace(span, blanks.collect::<String>());
    }

    /// Appends the edited text to `out`, and its pieces to `pieces`. An edit inside an earlier one has no effect.
    pub fn apply(self, unit: usize, text: &str, out: &mut String, pieces: &mut Vec<Piece>) {
        let mut at = 0;
        let mut append = |from: Span, slice: &str, out: &mut String| {
            pieces.push(Piece {
                at: out.len() as u32,
                unit,
                from,
            });
            out.push_str(slice);
        };
        for (span, with) in self.replaced.into_values() {
            // A span inside a replaced one is gone from the text.
            if span.start < at {
                continue;
            }
            let kept = Span {
                start: at,
                end: span.start,
            };
            append(kept, &text[kept.start as usize..kept.end as usize], out);
            append(span, &with, out);
            at = span.end;
        }
        let end = text.len() as u32;
        append(Span { start: at, end }, &text[at as usize..], out);
    }
}
