//! PTX text to programs that the machine runs.
//!
//! ```text
//! text ── lex ── parse ── check ──> names resolved ── lower ──> one Program an entry
//! ```
//!
//! [`parse`] reads any PTX; [`compile`] makes programs of it. Unsupported and malformed are different words: malformed
//! text is not PTX, unsupported text is PTX that this machine does not run. Both are found when a text is loaded, all at
//! once, each with its place ([`Diagnostic`]). An entry that is unsupported does not keep the others from running.
//! No simulated time and no I/O in here.

pub mod diag;

pub mod ast;

mod lex;

mod parse;

mod check;

mod directives;

mod capability;

mod lower;

pub mod print;

mod places;

mod share;

pub use diag::{Diagnostic, Severity};
pub use lower::init::Relocation;
pub use lower::layout::{ADDRESS_BANK, CONST_BANK, Constant, Global};

use check::{Body, Checked};
use diag::Lines;
use lower::layout::ModuleLayout;
use std::sync::Arc;
use std::time::Instant;
use tracing::{Level, enabled, info};
use warpwave_isa::program::Program;

/// A module ready to be loaded.
#[derive(Clone, Debug)]
pub struct Module {
    /// Kernels in text order.
    pub entries: Vec<Entry>,
    /// The image of constant bank [`CONST_BANK`]: the module's `.const` variables.
    pub constant: Vec<u8>,
    /// Where each of them is.
    pub constants: Vec<Constant>,
    /// Addresses of global variables in `constant`, which the host writes.
    pub constant_relocations: Vec<Relocation>,
    /// The module's `.global` variables. The host places them, and writes the address of number `n`, 8 bytes, little-endian,
    /// to byte `8 * n` of constant bank [`ADDRESS_BANK`].
    pub globals: Vec<Global>,
    /// What the author may want to know.
    pub warnings: Vec<Diagnostic>,
    /// Initial values that are unsupported. An entry that can reach such a variable has the finding too, and no program.
    pub unsupported_data: Vec<Diagnostic>,
    /// What not every GPU has.
    needs: Vec<capability::Need>,
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its program, or every instruction of it that cannot run.
    pub program: Result<Program, Vec<Diagnostic>>,
}

impl Module {
    /// The entry of a name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Why a GPU of a compute capability, such as 80 for 8.0, cannot run this text: its `.target` and its instructions.
    pub fn too_new_for(&self, capability: u32) -> Vec<Diagnostic> {
        capability::unmet(&self.needs, capability)
    }

    /// Everything that is unsupported: what keeps entries from running, then data that no entry reaches.
    pub fn unsupported(&self) -> impl Iterator<Item = &Diagnostic> {
        let of_entries = || {
            let faults = self.entries.iter().filter_map(|entry| entry.program.as_ref().err());
            faults.flatten()
        };
        let unused = self.unsupported_data.iter();
        of_entries().chain(unused.filter(move |finding| of_entries().all(|other| other != *finding)))
    }
}

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

/// Makes programs of a PTX text.
///
/// # Errors
///
/// Every place where the text is not PTX, in text order. Unsupported instructions are not errors here: each entry has its
/// own ([`Entry::program`]).
///
/// ```
/// let text = ".version 7.8\n.target sm_80\n.entry k(.param .u64 p) { ret; }";
/// let module = warpwave_ptx::compile(text).unwrap();
/// let program = module.entries[0].program.as_ref().unwrap();
/// assert_eq!(program.code().len(), 1);
/// assert_eq!(program.requirements().params[0].bytes, 8);
/// ```
pub fn compile(text: &str) -> Result<Module, Vec<Diagnostic>> {
    compile_as(text, false)
}

/// As [`compile`], but every `bar.warp.sync` stays, also where lanes are together anyway: for who wants to know what orders
/// memory. Such a program computes the same, in a few instructions more.
///
/// # Errors
///
/// As [`compile`].
pub fn compile_with_syncs(text: &str) -> Result<Module, Vec<Diagnostic>> {
    compile_as(text, true)
}

fn compile_as(text: &str, keep_syncs: bool) -> Result<Module, Vec<Diagnostic>> {
    let begin = enabled!(Level::INFO).then(Instant::now);
    let module = parse(text)?;
    let directives = directives::check(&module);
    if !directives.is_empty() {
        return Err(directives);
    }
    let (checked, _) = check::check(&module);
    let lines = Lines::new(text);
    let mut findings = Vec::new();
    let layout = ModuleLayout::of(&checked, &mut findings);
    let (errors, warnings): (Vec<_>, _) = findings
        .into_iter()
        .partition(|finding| finding.severity == Severity::Malformed);
    if !errors.is_empty() {
        return Err(errors);
    }
    let sources = Arc::new(places::map(&module, &lines));
    let entry = |body: &Body<'_, '_>| Entry {
        name: body.function.name.text.to_owned(),
        program: lower::lower(&checked, &layout, body, &lines, keep_syncs)
            .map(|program| program.with_sources(Arc::clone(&sources))),
    };
    let entries = share::each(&kernels(&checked).collect::<Vec<_>>(), |body| entry(body));
    if let Some(begin) = begin {
        info!(
            entries = entries.len(),
            us = begin.elapsed().as_micros(),
            "PTX compiled"
        );
    }
    Ok(Module {
        entries,
        constant: layout.constant,
        constants: layout.constants,
        constant_relocations: layout.constant_relocations,
        unsupported_data: layout.unsupported.into_iter().map(|(_, finding)| finding).collect(),
        globals: layout.globals,
        warnings,
        needs: capability::needs(&module),
    })
}

/// The code of an entry behind each pass of the lowering, as text, with the pass's name: to see how it comes about.
///
/// # Errors
///
/// As [`compile`]; or the entry's unsupported instructions; nothing where there is no such entry.
pub fn stages(text: &str, entry: &str) -> Result<Vec<(&'static str, String)>, Vec<Diagnostic>> {
    let module = parse(text)?;
    let (checked, _) = check::check(&module);
    let layout = ModuleLayout::of(&checked, &mut Vec::new());
    let body = kernels(&checked).find(|body| body.function.name.text == entry);
    body.map_or(Ok(Vec::new()), |body| {
        lower::stages(&checked, &layout, body, &Lines::new(text))
    })
}

fn kernels<'c, 't, 'a>(checked: &'c Checked<'t, 'a>) -> impl Iterator<Item = &'c Body<'t, 'a>> {
    checked.bodies.iter().filter(|body| body.function.is_entry)
}
