//! Line table: `.file` and `.loc` as a [`SourceMap`]. A `.loc` applies up to the next one, or to the end of the function.

use crate::ast::{Block, Module, Statement};
use crate::diag::Lines;
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
