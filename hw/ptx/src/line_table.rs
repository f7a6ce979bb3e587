//! Line table: `.file` and `.loc` as a [`SourceMap`]. A `.loc` applies up to the next one, or to the end of the function.

use crate::ast::{Block, Module, Statement};
use crate::diag::{Diagnostic, Lines};
use std::collections::HashSet;
use warpwave_isa::source::SourceMap;

/// Builds the source map of a module.
pub(crate) fn build(module: &Module<'_>, lines: &Lines) -> SourceMap {
    let files = module.files.iter().map(|&(index, name)| (index, name.to_owned()));
    let mut map = SourceMap::new(files);
    for function in &module.functions {
        if let Some(block) = &function.body {
            map.begin_function(lines.line(function.name.span.start));
            add(&mut map, block, lines);
        }
    }
    map
}

fn add(map: &mut SourceMap, block: &Block<'_>, lines: &Lines) {
    for statement in &block.statements {
        match statement {
            Statement::Loc(loc) => map.add(lines.line(loc.span.start), loc.at, loc.inlined_at),
            Statement::Block(inner) => add(map, inner, lines),
            _ => {}
        }
    }
}

/// Returns a warning for each file index without a `.file`. A kernel that is cut out of a longer text has such indices.
pub(crate) fn undefined_files(module: &Module<'_>) -> Vec<Diagnostic> {
    let mut known: HashSet<u32> = module.files.iter().map(|&(index, _)| index).collect();
    let mut warnings = Vec::new();
    for block in module.functions.iter().filter_map(|function| function.body.as_ref()) {
        add_undefined(block, &mut known, &mut warnings);
    }
    warnings
}

fn add_undefined(block: &Block<'_>, known: &mut HashSet<u32>, warnings: &mut Vec<Diagnostic>) {
    for statement in &block.statements {
        match statement {
            Statement::Loc(loc) => {
                let positions = [Some(loc.at), loc.inlined_at].into_iter().flatten();
                for file in positions
                    .map(|position| position.file)
                    .filter(|&file| known.insert(file))
                {
                    let finding = Diagnostic::warning(loc.span, format!("undefined file {file}"));
                    warnings.push(finding.help(format!("name it at module scope: `.file {file} \"name\"`")));
                }
            }
            Statement::Block(inner) => add_undefined(inner, known, warnings),
            _ => {}
        }
    }
}
