//! The linker: several PTX texts become one text, which the compiler reads as any other.
//!
//! ```text
//! texts ──> parse, check each ──> symbols ──> resolve ──> edits ──> Linked: text, origin of each byte
//! ```
//!
//! | linkage | meaning here (PTX ISA 9.0, "Linking Directives") |
//! |---|---|
//! | none | private to its text; renamed if another text has the name |
//! | `.visible` | one definition in the program; replaces `.weak` and `.common` definitions |
//! | `.common` | the largest definition counts; at most one has an initial value |
//! | `.weak` | the first definition counts |
//! | `.extern` | a definition of another text |
//!
//! A kernel is visible with and without a directive. An `.extern` symbol that no text defines means what it means in a single text.
//!
//! Invariants:
//! - The texts keep their order and their lines: line `n` of the linked text is a line of one text.
//! - Only a private name that clashes is changed, so the host finds variables and kernels by their names.
//! - The program has the newest `.version` and the newest `.target` of the texts.

mod edits;
mod headers;
mod symbols;

use crate::diag::{Diagnostic, Span};
use crate::lex::{Token, lex};
use crate::{ast, directives};
use edits::{Edits, Piece};

/// Several PTX texts as one.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The linked text.
    pub text: String,
    /// Runs of bytes with a common origin, in order.
    pieces: Vec<Piece>,
    /// Line of the linked text where each text begins, counted from 1.
    first_lines: Vec<u32>,
}

/// A finding, and the index of the text that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFinding {
    /// Index of the text.
    pub text: usize,
    /// The finding. Its span is one of that text.
    pub finding: Diagnostic,
}

/// A text to link, read without findings.
struct Unit<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    module: ast::Module<'a>,
}

impl<'a> Unit<'a> {
    fn read(text: &'a str) -> Result<Unit<'a>, Vec<Diagnostic>> {
        let module = crate::parse(text)?;
        let findings = directives::check(&module);
        if !findings.is_empty() {
            return Err(findings);
        }
        // Names are replaced by token, and the tree keeps no tokens.
        let tokens = lex(text, &mut Vec::new());
        Ok(Unit { text, tokens, module })
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }
}

/// Links PTX texts to one program. Pass [`Linked::text`] to [`compile`](crate::compile) or [`load`](crate::load).
///
/// # Errors
///
/// Returns every malformed part of the texts. If there is none, returns each clash between them: a symbol defined twice, and a
/// declaration that does not match its definition.
///
/// ```
/// let kernel = "
///     .version 7.8
///     .target sm_80
///     .extern .func (.param .b32 r) answer();
///     .entry k(.param .u64 out) {
///         .reg .b64 %rd1;
///         .reg .b32 %r1;
///         .param .b32 got;
///         ld.param.u64 %rd1, [out];
///         call (got), answer, ();
///         ld.param.b32 %r1, [got];
///         st.global.u32 [%rd1], %r1;
///         ret;
///     }";
/// let library = "
///     .version 8.0
///     .target sm_80
///     .visible .func (.param .b32 r) answer() { st.param.b32 [r], 42; ret; }";
/// let linked = warpwave_ptx::link(&[kernel, library]).unwrap();
/// let module = warpwave_ptx::compile(&linked.text).unwrap();
/// assert!(module.entry("k").unwrap().program().is_ok());
/// assert_eq!(linked.origin_of_line(16), (1, 2));
/// ```
pub fn link(texts: &[&str]) -> Result<Linked, Vec<LinkFinding>> {
    let mut units = Vec::new();
    let mut findings = Vec::new();
    for (text, source) in texts.iter().enumerate() {
        match Unit::read(source) {
            Ok(unit) => units.push(unit),
            Err(found) => findings.extend(found.into_iter().map(|finding| LinkFinding { text, finding })),
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut edits: Vec<Edits> = units.iter().map(|_| Edits::default()).collect();
    headers::merge(&units, &mut edits, &mut findings);
    symbols::resolve(&units, &mut edits, &mut findings);
    match findings.is_empty() {
        true => Ok(Linked::new(&units, edits)),
        false => Err(findings),
    }
}

impl Linked {
    fn new(units: &[Unit<'_>], edits: Vec<Edits>) -> Linked {
        let mut linked = Linked {
            text: String::new(),
            pieces: Vec::new(),
            first_lines: Vec::new(),
        };
        let mut line = 1;
        for (n, (unit, edits)) in units.iter().zip(edits).enumerate() {
            let begin = linked.text.len();
            linked.first_lines.push(line);
            edits.apply(n, unit.text, &mut linked.text, &mut linked.pieces);
            // No line may hold parts of two texts.
            if !linked.text.ends_with('\n') {
                linked.text.push('\n');
            }
            line += linked.text[begin..].matches('\n').count() as u32;
        }
        linked
    }

    /// Returns the index of the text and the line in it, both lines counted from 1.
    ///
    /// # Panics
    ///
    /// Panics if `line` is 0 or no text was linked.
    pub fn origin_of_line(&self, line: u32) -> (usize, u32) {
        let text = self.first_lines.partition_point(|&first| first <= line) - 1;
        (text, line - self.first_lines[text] + 1)
    }

    /// Returns the finding of the text that a finding of the linked text is about.
    pub fn origin(&self, finding: &Diagnostic) -> LinkFinding {
        let (text, start) = self.origin_of_byte(finding.span.start);
        let end = match self.origin_of_byte(finding.span.end) {
            (last, end) if last == text => end,
            _ => start,
        };
        LinkFinding {
            text,
            finding: Diagnostic {
                span: Span { start, end },
                ..finding.clone()
            },
        }
    }

    fn origin_of_byte(&self, at: u32) -> (usize, u32) {
        let after = self.pieces.partition_point(|piece| piece.at <= at);
        self.pieces[..after]
            .last()
            .map_or((0, 0), |piece| (piece.unit, piece.origin(at)))
    }
}

#[cfg(test)]
mod tests;
