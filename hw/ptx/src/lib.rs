//! PTX text to a program that the machine runs.
//!
//! ```text
//! text ── lex ── parse ── check ──> syntax tree, names resolved, or findings
//! ```
//!
//! Unsupported and malformed are different words: malformed text is not PTX, unsupported text is PTX that this machine
//! does not run. Both are found when a text is loaded, all at once, each with its place ([`diag::Diagnostic`]).
//! No clock and no I/O in here.

pub mod diag;

pub mod ast;

mod lex;

mod parse;

#[expect(dead_code, reason = "the resolved form is what the lowering starts from")]
mod check;

use diag::Diagnostic;

/// Reads a PTX text of any kind, whatever its instructions.
///
/// # Errors
///
/// Every place where the text is not PTX, in text order.
///
/// ```
/// let module = warpwave_ptx::parse(".version 7.8\n.target sm_80\n.entry k(.param .u64 p) { ret; }").unwrap();
/// assert_eq!(module.functions[0].name.text, "k");
/// assert_eq!(module.functions[0].params.len(), 1);
/// ```
pub fn parse(text: &str) -> Result<ast::Module<'_>, Vec<Diagnostic>> {
    let reading = parse::parse(text);
    let mut findings = reading.findings;
    // Names would seem undefined whose declaration could not be read.
    if !reading.lost_declarations {
        findings.extend(check::check(&reading.module).1);
    }
    findings.sort_by_key(|finding| finding.span.start);
    if findings.is_empty() {
        Ok(reading.module)
    } else {
        Err(findings)
    }
}
