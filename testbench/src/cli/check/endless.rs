//! Branches to themselves: a warp that takes one never ends.

use std::collections::BTreeSet;

use warpwave_isa::program::Program;
use warpwave_isa::reg::Guard;
use warpwave_ptx::diag::Span;
use warpwave_ptx::{Diagnostic, Module};

/// The PTX line of each such branch, with a sentence.
pub fn branches<'p>(programs: impl Iterator<Item = &'p Program>) -> BTreeSet<(u32, &'static str)> {
    let of_program = |program: &'p Program| {
        let pcs = (0..program.code().len() as u32).filter(|&pc| program.branches_to_itself(pc));
        pcs.map(|pc| {
            let inst = &program.code()[pc as usize];
            (inst.line, sentence(inst.guard == Guard::ALWAYS))
        })
    };
    programs.flat_map(of_program).collect()
}

fn sentence(is_always: bool) -> &'static str {
    match is_always {
        true => "this branch to itself has no exit: a warp that gets there never ends",
        false => "this branch to itself does not change its predicate: a thread that takes it never ends",
    }
}

/// A warning for each such branch in a kernel of the module.
pub fn warnings(module: &Module, text: &str) -> Vec<Diagnostic> {
    let programs = module.entries.iter().filter_map(|entry| entry.program().as_ref().ok());
    let found = branches(programs.map(AsRef::as_ref));
    found
        .into_iter()
        .map(|(line, why)| Diagnostic::warning(span_of(line, text), why))
        .collect()
}

/// The text of a line, without the spaces around it.
fn span_of(line: u32, text: &str) -> Span {
    let index = (line as usize).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(index).map(str::len).sum();
    let of_line = text[start..].lines().next().unwrap_or("");
    let first = start + of_line.len() - of_line.trim_start().len();
    Span {
        start: first as u32,
        end: (first + of_line.trim().len()) as u32,
    }
}
