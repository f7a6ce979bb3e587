//! The PTX front end: reads PTX text, checks it, and compiles each kernel to machine instructions.
//!
//! Each kernel becomes a [`Program`](warpwave_isa::program::Program).
//!
//! ```text
//! text ──> lex ──> parse ──> check ──> lower ──> one Program per kernel
//!           │        │         │         │
//!           └────────┴─────────┴─────────┴──> diagnostics, each with its span of the text
//! ```
//!
//! [`parse()`] accepts every opcode of PTX. [`compile`] compiles all kernels of a text, and [`load`] only the kernels of a launch.
//! Malformed text is not PTX. Unsupported text is PTX that this machine does not run. All findings of a text are reported at
//! once, as [`Diagnostic`]s. An unsupported kernel has no program; the other kernels run. The crate has no simulated time and
//! does no I/O.
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
//! | `passes` | passes that can be left out |
//! | [`printf`] | layout of the `printf` buffer |
//! | [`heap`] | device `malloc` and `free` |
//! | `line_table` | `.file` and `.loc` as a source map |
//! | `parallel` | parallel map over the kernels of a module |
//! | `module` | modules, and kernels compiled on demand |
//! | `kept` | modules that the process keeps |
//! | [`link()`] | several texts as one program |
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
//! let program = module.entry("answer").unwrap().program().as_ref().unwrap();
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

pub mod heap;

mod passes;

mod line_table;

mod parallel;

mod module;

mod kept;

mod link;

pub use diag::{Diagnostic, Severity};
pub use link::{LinkFinding, Linked, link};
pub use lower::init::Relocation;
pub use lower::layout::{ADDRESS_BANK, CONST_BANK, CONSTANTS_COPY, Constant, Global};
pub use module::{Entry, Module};
pub use passes::{OPTIONAL_PASSES, PassSet, VALUE_PASS};

use diag::Lines;
use lower::layout::ModuleLayout;
use std::sync::Arc;
use warpwave_isa::flow::Reconvergence;

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
    // After a lost declaration, its names would be reported as undefined.
    let checker = match output.lost_declarations {
        true => Vec::new(),
        false => check::check(&output.module).1,
    };
    let findings = module::in_text_order(output.findings, checker);
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
/// let program = module.entries[0].program().as_ref().unwrap();
/// assert_eq!(program.code().len(), 1);
/// assert_eq!(program.requirements().params[0].bytes, 8);
/// ```
pub fn compile(text: &str) -> Result<Module, Vec<Diagnostic>> {
    module::read(text, Options::default(), |_| true)
}

/// Returns the module of a PTX text, with the kernels compiled that `is_wanted` accepts by name.
///
/// [`Entry::program`] compiles the other kernels. The process keeps modules, so the same text is parsed and compiled once.
///
/// # Errors
///
/// Returns the same errors as [`compile`].
///
/// ```
/// let text = ".version 7.8\n.target sm_80\n.entry a() { ret; }\n.entry b() { ret; }";
/// let module = warpwave_ptx::load(text, |name| name == "a").unwrap();
/// assert!(module.entries[0].is_compiled() && !module.entries[1].is_compiled());
/// assert!(module.entries[1].program().is_ok());
/// let again = warpwave_ptx::load(text, |name| name == "b").unwrap();
/// assert!(std::sync::Arc::ptr_eq(&module, &again));
/// ```
pub fn load(text: &str, is_wanted: impl Fn(&str) -> bool) -> Result<Arc<Module>, Vec<Diagnostic>> {
    kept::load(text, Options::default(), is_wanted)
}

/// The least cap on the registers of a thread. The vendor's assembler raises a smaller cap to it.
pub const MIN_REGISTER_CAP: u8 = 16;

/// Options of the compiler. Results of a kernel depend on `heap_bytes` only, but whether it ends may depend on `reconvergence`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Most registers per thread, as nvcc's `--maxrregcount`. At least [`MIN_REGISTER_CAP`]. Further values are spilled to local memory.
    /// The limits of the kernel's own directives apply too.
    pub max_registers: Option<u8>,
    /// Progress of diverged lanes on the GPU. With a stack, lanes that leave a spin loop wait for the others at its end.
    pub reconvergence: Reconvergence,
    /// Passes left out. Without one, a kernel has more instructions, takes more cycles, or needs more registers.
    pub skipped_passes: PassSet,
    /// Size of the heap of device `malloc` in bytes, clamped to [`heap::HEAP_RANGE`].
    pub heap_bytes: u64,
}

impl Default for Options {
    /// The values of CUDA, with all passes.
    fn default() -> Options {
        Options {
            max_registers: None,
            reconvergence: Reconvergence::default(),
            skipped_passes: PassSet::EMPTY,
            heap_bytes: heap::HEAP_BYTES,
        }
    }
}

/// Returns the module of a PTX text as [`load`] does, compiled with `options`.
///
/// # Errors
///
/// Returns the same errors as [`compile`].
pub fn load_with(
    text: &str,
    options: Options,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Arc<Module>, Vec<Diagnostic>> {
    kept::load(text, options, is_wanted)
}

/// Returns the code of kernel `entry` as text after each lowering pass, with the name of the pass.
///
/// The list is empty if the module has no such kernel.
///
/// # Errors
///
/// Returns the errors of [`compile`], or the kernel's unsupported instructions.
pub fn stages(text: &str, entry: &str) -> Result<Vec<(&'static str, String)>, Vec<Diagnostic>> {
    // The device heap is PTX too. A text that calls `malloc` is parsed a second time, with the heap's code behind it.
    let text = heap::with_library(text, &parse(text)?, heap::HEAP_BYTES);
    let module = parse(&text)?;
    let (checked, _) = check::check(&module);
    let layout = ModuleLayout::of(&checked, &mut Vec::new());
    let body = module::kernels(&checked).find(|body| body.function.name.text == entry);
    body.map_or(Ok(Vec::new()), |body| {
        lower::stages(&checked, &layout, body, &Lines::new(&text))
    })
}
