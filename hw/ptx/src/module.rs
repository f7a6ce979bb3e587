//! A module and its kernels. Each kernel is compiled on first use.
//!
//! ```text
//! text ──> read ──> Module: variables, names of kernels ──> Entry::program ──> lower ──> Program
//! ```
//!
//! [`read`] parses and checks the whole text, and compiles the kernels that its caller wants. The syntax tree borrows from the
//! text, so a module does not keep it. A kernel compiled later parses the text again.

use crate::check::{self, Body, Checked};
use crate::diag::{Diagnostic, Lines, Severity};
use crate::lower::init::Relocation;
use crate::lower::layout::{Constant, Global, ModuleLayout};
use crate::{Options, ast, capability, directives, heap, line_table, lower, parallel, parse};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tracing::{Level, enabled, info};
use warpwave_isa::program::Program;
use warpwave_isa::source::SourceMap;

/// A checked PTX text, ready to load.
#[derive(Clone, Debug)]
pub struct Module {
    /// Kernels in text order.
    pub entries: Vec<Entry>,
    /// Initial bytes of constant bank [`CONST_BANK`](crate::CONST_BANK), with the module's `.const` variables.
    pub constant_image: Vec<u8>,
    /// Offsets of the `.const` variables in `constant_image`.
    pub constants: Vec<Constant>,
    /// Addresses of global variables in `constant_image`. The host writes them when it loads the module.
    pub constant_relocations: Vec<Relocation>,
    /// The module's `.global` variables. The host allocates them. It writes the address of variable `n`, 8 bytes little-endian, to
    /// byte `8 * n` of constant bank [`ADDRESS_BANK`](crate::ADDRESS_BANK).
    pub globals: Vec<Global>,
    /// Names of texture, surface and sampler references (`.texref` and its siblings). The host writes their handles behind the addresses
    /// of `globals`, in bank [`ADDRESS_BANK`](crate::ADDRESS_BANK).
    pub references: Vec<String>,
    /// Findings that do not stop the program.
    pub warnings: Vec<Diagnostic>,
    /// Unsupported initial values. A kernel that can reach such a variable has the same finding and no program.
    pub unsupported_data: Vec<Diagnostic>,
    /// Minimum compute capabilities of the text's instructions and target.
    requirements: Vec<capability::Requirement>,
    source: Arc<Source>,
}

/// A compiled kernel, or a finding for each unsupported instruction.
type Compiled = Result<Arc<Program>, Vec<Diagnostic>>;

/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the kernel.
    pub name: String,
    /// Index of the kernel in [`Module::entries`].
    number: usize,
    program: OnceLock<Compiled>,
    source: Arc<Source>,
}

impl Entry {
    /// Returns the kernel's program, or a finding for each unsupported instruction. The first call compiles the kernel and the
    /// functions that it calls.
    pub fn program(&self) -> &Compiled {
        // Of several callers the first compiles, and the others wait.
        self.program.get_or_init(|| {
            self.source.with_front(|front| {
                let begin = enabled!(Level::INFO).then(Instant::now);
                let program = front.compile(self.number);
                log(begin, 1);
                program
            })
        })
    }

    /// True if the kernel is compiled.
    pub fn is_compiled(&self) -> bool {
        self.program.get().is_some()
    }
}

impl Module {
    /// Returns the kernel named `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns a finding for each part of the text that needs a newer GPU than `capability` (80 for 8.0).
    pub fn unmet_requirements(&self, capability: u32) -> Vec<Diagnostic> {
        capability::unmet(&self.requirements, capability)
    }

    /// Iterates over all unsupported findings, each once: of the kernels first, then of data that no kernel reaches. Compiles all kernels.
    pub fn unsupported(&self) -> impl Iterator<Item = &Diagnostic> {
        self.compile(|_| true);
        let of_entries = self.entries.iter().filter_map(|entry| entry.program().as_ref().err());
        let mut seen = HashSet::new();
        of_entries
            .flatten()
            .chain(&self.unsupported_data)
            .filter(move |finding| seen.insert((finding.span, finding.message.as_str())))
    }

    /// Compiles the kernels with the names that `is_wanted` accepts, unless they are compiled. Several kernels parse the text once.
    pub fn compile(&self, is_wanted: impl Fn(&str) -> bool) {
        let entries = self.entries.iter();
        let missing: Vec<&Entry> = entries
            .filter(|entry| !entry.is_compiled() && is_wanted(&entry.name))
            .collect();
        if missing.is_empty() {
            return;
        }
        let begin = enabled!(Level::INFO).then(Instant::now);
        self.source.with_front(|front| front.compile_all(&missing));
        log(begin, missing.len());
    }

    /// True if this is the module of `text`, compiled with `options`.
    pub(crate) fn is_of(&self, text: &str, options: Options) -> bool {
        // Compared without the library, which the caller's text does not have.
        self.source.options == options && self.source.own_text() == text
    }

    /// Returns the size of the text in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.source.own_bytes
    }
}

fn log(begin: Option<Instant>, entries: usize) {
    if let Some(begin) = begin {
        info!(entries, us = begin.elapsed().as_micros(), "PTX compiled");
    }
}

/// A text without malformed parts, from which kernels are compiled.
struct Source {
    /// The text, and the library if the text needs it.
    text: String,
    /// Bytes of the text without the library.
    own_bytes: usize,
    options: Options,
    lines: Arc<SourceMap>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("bytes", &self.text.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Source {
    fn own_text(&self) -> &str {
        &self.text[..self.own_bytes]
    }

    /// Parses and checks the text again, and calls `apply` with the result.
    fn with_front<R>(&self, apply: impl FnOnce(&Front<'_, '_, '_>) -> R) -> R {
        let module = parse::parse(&self.text).module;
        let (checked, _) = check::check(&module);
        let layout = ModuleLayout::of(&checked, &mut Vec::new());
        apply(&Front::new(self, &checked, &layout, &Lines::new(&self.text)))
    }
}

/// A parsed and checked text, while its kernels are compiled.
struct Front<'f, 't, 'a> {
    source: &'f Source,
    checked: &'f Checked<'t, 'a>,
    layout: &'f ModuleLayout,
    lines: &'f Lines,
    kernels: Vec<&'f Body<'t, 'a>>,
}

impl<'f, 't, 'a> Front<'f, 't, 'a> {
    fn new(
        source: &'f Source,
        checked: &'f Checked<'t, 'a>,
        layout: &'f ModuleLayout,
        lines: &'f Lines,
    ) -> Front<'f, 't, 'a> {
        Front {
            source,
            checked,
            layout,
            lines,
            kernels: kernels(checked).collect(),
        }
    }

    fn compile(&self, number: usize) -> Compiled {
        let Source { options, lines, .. } = self.source;
        let program = lower::lower(self.checked, self.layout, self.kernels[number], self.lines, *options)?;
        Ok(Arc::new(program.with_sources(Arc::clone(lines))))
    }

    fn compile_all(&self, entries: &[&Entry]) {
        parallel::map(entries, |entry| {
            _ = entry.program.get_or_init(|| self.compile(entry.number))
        });
    }
}

pub(crate) fn kernels<'c, 't, 'a>(checked: &'c Checked<'t, 'a>) -> impl Iterator<Item = &'c Body<'t, 'a>> {
    checked.bodies.iter().filter(|body| body.function.is_entry)
}

/// Returns the findings of the parser and of the checker in text order.
pub(crate) fn in_text_order(mut parser: Vec<Diagnostic>, checker: Vec<Diagnostic>) -> Vec<Diagnostic> {
    parser.extend(checker);
    parser.sort_by_key(|finding| finding.span.start);
    parser
}

/// Parses and checks a text. Compiles the kernels with the names that `is_wanted` accepts.
pub(crate) fn read(text: &str, options: Options, is_wanted: impl Fn(&str) -> bool) -> Result<Module, Vec<Diagnostic>> {
    let output = parse::parse(text);
    let module = &output.module;
    // After a lost declaration, its names would be reported as undefined.
    if output.lost_declarations {
        return Err(in_text_order(output.findings, Vec::new()));
    }
    let (checked, findings) = check::check(module);
    let findings = in_text_order(output.findings, findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    // After the checker, so that one mistake is not reported by both.
    let directives = directives::check(module);
    if !directives.is_empty() {
        return Err(directives);
    }
    match heap::with_library(text, module, options.heap_bytes) {
        Cow::Borrowed(_) => build((text, text.len()), module, &checked, options, is_wanted),
        Cow::Owned(whole) => {
            let module = parse::parse(&whole).module;
            // The text had no findings before, and the library has none.
            let (checked, _) = check::check(&module);
            build((&whole, text.len()), &module, &checked, options, is_wanted)
        }
    }
}

/// Builds the module of a checked text. The library begins after `own_bytes`. Compiles the wanted kernels.
fn build<'t, 'a>(
    (text, own_bytes): (&str, usize),
    module: &'t ast::Module<'a>,
    checked: &Checked<'t, 'a>,
    options: Options,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Module, Vec<Diagnostic>> {
    let begin = enabled!(Level::INFO).then(Instant::now);
    let lines = Lines::new(text);
    let mut findings = Vec::new();
    let layout = ModuleLayout::of(checked, &mut findings);
    let (errors, mut warnings): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| finding.severity == Severity::Malformed);
    if !errors.is_empty() {
        return Err(errors);
    }
    warnings.extend(line_table::undefined_files(module));
    let source = Arc::new(Source {
        text: text.to_owned(),
        own_bytes,
        options,
        lines: Arc::new(line_table::build(module, &lines)),
    });
    let front = Front::new(&source, checked, &layout, &lines);
    let entry = |(number, body): (usize, &&Body<'_, '_>)| Entry {
        name: body.function.name.text.to_owned(),
        number,
        program: OnceLock::new(),
        source: Arc::clone(&source),
    };
    let entries: Vec<Entry> = front.kernels.iter().enumerate().map(entry).collect();
    // The other kernels parse the text a second time if they are launched.
    let wanted: Vec<&Entry> = entries.iter().filter(|entry| is_wanted(&entry.name)).collect();
    front.compile_all(&wanted);
    log(begin, wanted.len());
    Ok(Module {
        requirements: capability::requirements(module),
        entries,
        source,
        constant_image: layout.constant_image,
        constants: layout.constants,
        constant_relocations: layout.constant_relocations,
        unsupported_data: layout.unsupported.into_iter().map(|(_, finding)| finding).collect(),
        globals: layout.globals,
        references: layout.references,
        warnings,
    })
}
