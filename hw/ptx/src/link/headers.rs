//! The directives that a program has once: `.version`, `.target`, `.address_size`, and the numbers of `.file`.

use super::edits::Edits;
use super::{LinkFinding, Unit};
use crate::capability;
use crate::diag::{Diagnostic, Span};
use crate::lex::{Kind, first_byte};
use std::collections::BTreeSet;

/// Ways to bind textures. A program has one.
const TEXTURE_MODES: [&str; 2] = ["texmode_unified", "texmode_independent"];

/// Writes the newest version and target into the first text, and removes both from the others.
pub(super) fn merge(units: &[Unit<'_>], edits: &mut [Edits], findings: &mut Vec<LinkFinding>) {
    let Some(first) = units.first() else { return };
    check_texture_modes(units, findings);
    let newest = units.iter().map(|unit| unit.module.version).max().unwrap_or_default();
    edits[0].replace(first.module.version_span, format!(".version {}.{}", newest.0, newest.1));
    edits[0].replace(
        first.module.target_span,
        format!(".target {}", target(units).join(", ")),
    );
    let mut files = 0;
    for (n, (unit, edits)) in units.iter().zip(edits).enumerate() {
        if n > 0 {
            remove_header(unit, edits);
            renumber_files(unit, files, edits);
        }
        // The files of the next text are numbered after all files so far.
        let last = unit.module.files.iter().map(|&(index, _)| index).max();
        files = files.max(last.map_or(0, |last| last.saturating_add(files)));
    }
}

/// Returns the newest architecture of the texts, then their options.
fn target<'a>(units: &[Unit<'a>]) -> Vec<&'a str> {
    let names = || units.iter().flat_map(|unit| unit.module.target.iter().copied());
    let options: BTreeSet<&str> = names().filter(|name| !capability::is_architecture(name)).collect();
    capability::newest(names()).into_iter().chain(options).collect()
}

/// Reports texts with different texture modes.
fn check_texture_modes(units: &[Unit<'_>], findings: &mut Vec<LinkFinding>) {
    let mode = |unit: &Unit<'_>| {
        TEXTURE_MODES
            .iter()
            .find(|mode| unit.module.target.contains(mode))
            .copied()
    };
    let first = units.iter().find_map(mode);
    for (text, unit) in units.iter().enumerate() {
        if let (Some(first), Some(other)) = (first, mode(unit))
            && first != other
        {
            let message = format!("`{other}` in a program with `{first}`");
            let finding = Diagnostic::malformed(unit.module.target_span, message);
            findings.push(LinkFinding {
                text,
                finding: finding.help("compile all texts with one texture mode"),
            });
        }
    }
}

/// Removes the byte-order mark, the version, the target and the address size.
fn remove_header(unit: &Unit<'_>, edits: &mut Edits) {
    let mark = first_byte(unit.text) as u32;
    if mark > 0 {
        edits.replace(Span { start: 0, end: mark }, "");
    }
    edits.blank(unit.module.version_span, unit.text);
    edits.blank(unit.module.target_span, unit.text);
    for pair in unit.tokens.windows(2) {
        // The tree has no span of this directive.
        if unit.slice(pair[0].span) == ".address_size" {
            edits.blank(pair[0].span.to(pair[1].span), unit.text);
        }
    }
}

/// Adds `offset` to the file numbers of `.file`, `.loc` and `inlined_at`.
fn renumber_files(unit: &Unit<'_>, offset: u32, edits: &mut Edits) {
    for pair in unit.tokens.windows(2).filter(|pair| pair[1].kind == Kind::Int) {
        if [".file", ".loc", "inlined_at"].contains(&unit.slice(pair[0].span))
            && let Ok(index) = unit.slice(pair[1].span).parse::<u32>()
        {
            edits.replace(pair[1].span, index.saturating_add(offset).to_string());
        }
    }
}
