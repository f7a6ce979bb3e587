//! The PTX front end: reads PTX text, checks it, and lowers each kernel to a [`Program`] of machine instructions.
//!
//! ```text
//! text ──> lex ──> parse ──> check ──> lower ──> one Program per kernel
//!           │        │         │         │
//!           └────────┴─────────┴─────────┴──> diagnostics, each with its span of the text
//! ```
//!
//! [`parse()`] accepts every PTX text. [`compile`] makes programs from it. Malformed text is not PTX. Unsupported text is PTX
//! that this machine does not run. All findings of a text are reported at once, as [`Diagnostic`]s. An unsupported kernel has no
//! program; the other kernels still run. The crate has no simulated time and does no I/O.
//!
//! Modules in reading order:
//!
//! | module | holds |
//! |---|---|
//! | [`diag`] | diagnostics with spans, and their rendering as text |
//! | [`ast`] | the syntax tree, with nothing resolved |
//! | `lex` | text to tokens |
//! | `parse` | tokens to the syntax tree |
//! | `check` | names, operand types and modifiers |
//! | `directives` | versions, targets, alignments and sizes |
//! | `capability` | minimum compute capability of each instruction |
//! | `lower` | instruction selection, optimisation and register allocation |
//! | [`printf`] | layout of the `printf` buffer |
//! | `line_table` | `.file` and `.loc` as a source map |
//! | `parallel` | parallel map over the kernels of a module |
//!
//! ```
//! let text = "
//!     .version 7.8
//!     .target sm_80
//!     .entry answer(.param .u64 out) {
//!         .reg .b64 %rd1;
//!         ld.param.u64 %rd1, [out];
//!         st.global.u32 [%rd1], 42;
//!         ret;
//!     }";
//! let module = warpwave_ptx::compile(text).unwrap();
//! let program = module.entry("answer").unwrap().program.as_ref().unwrap();
//! assert_eq!(program.requirements().params[0].bytes, 8);
//! assert_eq!(program.code().last().unwrap().to_string(), "EXIT");
//! ```

pub mod diag;

pub mod ast;

mod lex;

mod parse;

mod check;

mod directives;

mod capability;

mod lower;

pub mod printf;

mod line_table;

mod parallel;

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

/// A compiled module, ready to load.
#[derive(Clone, Debug)]
pub struct Module {
    /// Kernels in text order.
    pub entries: Vec<Entry>,
    /// Initial bytes of constant bank [`CONST_BANK`], with the module's `.const` variables.
    pub constant_image: Vec<u8>,
    /// Offsets of the `.const` variables in `constant_image`.
    pub constants: Vec<Constant>,
    /// Addresses of global variables in `constant_image`. The host writes them when it loads the module.
    pub constant_relocations: Vec<Relocation>,
    /// The module's `.global` variables. The host allocates them. It writes the address of variable `n`, 8 bytes little-endian, to
    /// byte `8 * n` of constant bank [`ADDRESS_BANK`].
    pub globals: Vec<Global>,
    /// Findings that do not stop the program.
    pub warnings: Vec<Diagnostic>,
    /// Unsupported initial values. A kernel that can reach such a variable has the same finding and no program.
    pub unsupported_data: Vec<Diagnostic>,
    /// Minimum compute capabilities of the text's instructions and target.
    requirements: Vec<capability::Requirement>,
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the kernel.
    pub name: String,
    /// The kernel's program, or a finding for each unsupported instruction.
    pub program: Result<Program, Vec<Diagnostic>>,
}

impl Module {
    /// Returns the kernel named `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns a finding for each part of the text that needs a newer GPU than `capability` (80 for 8.0).
    pub fn too_new_for(&self, capability: u32) -> Vec<Diagnostic> {
        capability::unmet(&self.requirements, capability)
    }

    /// Iterates over all unsupported findings: of the kernels first, then of data that no kernel reaches.
    pub fn unsupported(&self) -> impl Iterator<Item = &Diagnostic> {
        let of_entries = || {
            let findings = self.entries.iter().filter_map(|entry| entry.program.as_ref().err());
            findings.flatten()
        };
        let unused = self.unsupported_data.iter();
        of_entries().chain(unused.filter(move |finding| of_entries().all(|other| other != *finding)))
    }
}

/// Parses and checks a PTX text. Every opcode is accepted.
///
/// # Errors
///
/// Returns every malformed part of the text, in text order.
///
/// ```
/// let module = warpwave_ptx::parse(".version 7.8\n.target sm_80\n.entry k(.param .u64 p) { ret; }").unwrap();
/// assert_eq!(module.functions[0].name.text, "k");
/// assert_eq!(module.functions[0].params.len(), 1);
/// ```
pub fn parse(text: &str) -> Result<ast::Module<'_>, Vec<Diagnostic>> {
    let output = parse::parse(text);
    let mut findings = output.findings;
    // After a lost declaration, its names would be reported as undefined.
    if !output.lost_declarations {
        findings.extend(check::check(&output.module).1);
    }
    findings.sort_by_key(|finding| finding.span.start);
    if findings.is_empty() {
        Ok(output.module)
    } else {
        Err(findings)
    }
}

/// Compiles each kernel of a PTX text to a program.
///
/// # Errors
///
/// Returns every malformed part of the text, in text order. Unsupported instructions are not errors here: see
/// [`Entry::program`].
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

/// Compiles a PTX text as [`compile`] does, and keeps every `bar.warp.sync`.
///
/// [`compile`] removes a `bar.warp.sync` where all lanes are together. A race detector needs them all, because they order memory
/// accesses. Results are the same.
///
/// # Errors
///
/// Returns the same errors as [`compile`].
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
    let sources = Arc::new(line_table::build(&module, &lines));
    let entry = |body: &Body<'_, '_>| Entry {
        name: body.function.name.text.to_owned(),
        program: lower::lower(&checked, &layout, body, &lines, keep_syncs)
            .map(|program| program.with_sources(Arc::clone(&sources))),
    };
    let entries = parallel::map(&kernels(&checked).collect::<Vec<_>>(), |body| entry(body));
    if let Some(begin) = begin {
        info!(
            entries = entries.len(),
            us = begin.elapsed().as_micros(),
            "PTX compiled"
        );
    }
    Ok(Module {
        entries,
        constant_image: layout.constant_image,
        constants: layout.constants,
        constant_relocations: layout.constant_relocations,
        unsupported_data: layout.unsupported.into_iter().map(|(_, finding)| finding).collect(),
        globals: layout.globals,
        warnings,
        requirements: capability::requirements(&module),
    })
}

/// Returns the code of kernel `entry` as text after each lowering pass, with the name of the pass.
///
/// The list is empty if the module has no such kernel.
///
/// # Errors
///
/// Returns the errors of [`compile`], or the kernel's unsupported instructions.
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
