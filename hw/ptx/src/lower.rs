//! The lowering: checked PTX to a machine program, pass by pass.
//!
//! [`PASSES`] lists the passes in order; each pass is one file. `layout` gives variables their locations before the passes.
//! `predicates` and `registers` allocate physical registers after them, and `emit` writes the [`Program`].

mod arg;

mod code;

mod callgraph;

pub(crate) mod init;

pub(crate) mod layout;

mod select;

mod graph;

mod copy_prop;

mod addresses;

mod dce;

mod legalize;

mod cse;

mod operands;

mod jumps;

mod if_convert;

mod spin;

mod divergence;

mod reconverge;

mod schedule;

mod live;

mod predicates;

mod registers;

mod limits;

mod spill;

mod emit;

mod dump;

use crate::check::{Body, Checked};
use crate::diag::{Diagnostic, Lines};
use code::Code;
use layout::{Layout, ModuleLayout};
use spill::SpillSlots;
use std::time::Instant;
use tracing::{Level, debug, debug_span, enabled};
use warpwave_isa::program::Program;

/// Name and function of a pass.
type Pass = (&'static str, fn(&mut Code));

/// The passes over selected code, in order.
const PASSES: &[Pass] = &[
    ("copy_prop", copy_prop::run),
    ("addresses", addresses::run),
    ("dce", dce::run),
    ("legalize", legalize::run),
    ("copy_prop 2", copy_prop::run),
    ("cse", cse::run),
    ("copy_prop 3", copy_prop::run),
    ("dce 2", dce::run),
    ("jumps", jumps::run),
    ("if_convert", if_convert::run),
    ("operands", operands::run),
    ("reconverge", reconverge::run),
    ("schedule", schedule::run),
];

/// Callback that sees the code after each pass.
type Look<'l> = &'l mut dyn FnMut(&'static str, &Code);

/// Log of the host time of each pass of a kernel. Reads the host clock only if the log is enabled.
struct Stopwatch<'k> {
    kernel: &'k str,
    begin: Option<Instant>,
}

impl<'k> Stopwatch<'k> {
    fn start(kernel: &'k str) -> Self {
        Stopwatch {
            kernel,
            begin: enabled!(Level::DEBUG).then(Instant::now),
        }
    }

    /// Logs the pass that just ended.
    fn lap(&mut self, pass: &str) {
        if let Some(begin) = &mut self.begin {
            let now = Instant::now();
            let us = (now - *begin).as_micros();
            *begin = now;
            debug!(us, "pass `{pass}` of {}", self.kernel);
        }
    }
}

/// Compiles a kernel to a program, or returns every reason why it cannot run.
pub(crate) fn lower<'t, 'a>(
    checked: &'t Checked<'t, 'a>,
    module: &ModuleLayout,
    body: &'t Body<'t, 'a>,
    lines: &Lines,
    keep_syncs: bool,
) -> Result<Program, Vec<Diagnostic>> {
    let name = body.function.name.text;
    let _span = debug_span!("kernel", name).entered();
    let mut watch = Stopwatch::start(name);
    let layout = Layout::of(checked, module, body);
    let mut findings = module.unsupported_for(checked, body);
    let mut code = match select::run(checked, body, &layout, lines) {
        Ok(code) if findings.is_empty() => code,
        Ok(_) => return Err(findings),
        Err(more) => {
            findings.extend(more);
            return Err(findings);
        }
    };
    code.keep_syncs = keep_syncs;
    watch.lap("select");
    let program = finish(&mut code, body, &layout, &mut |pass, _| watch.lap(pass))?;
    watch.lap("emit");
    Ok(program)
}

/// Returns the code as text after selection and after each pass, and the program last.
pub(crate) fn stages<'t, 'a>(
    checked: &'t Checked<'t, 'a>,
    module: &ModuleLayout,
    body: &'t Body<'t, 'a>,
    lines: &Lines,
) -> Result<Vec<(&'static str, String)>, Vec<Diagnostic>> {
    let layout = Layout::of(checked, module, body);
    let mut code = select::run(checked, body, &layout, lines)?;
    let mut stages = vec![("select", dump::text(&code))];
    let program = finish(&mut code, body, &layout, &mut |name, code| {
        stages.push((name, dump::text(code)));
    })?;
    stages.push(("program", program.to_string()));
    Ok(stages)
}

/// Runs all passes on selected code, allocates registers, and emits the program.
fn finish(
    code: &mut Code,
    body: &Body<'_, '_>,
    layout: &Layout<'_>,
    look: Look<'_>,
) -> Result<Program, Vec<Diagnostic>> {
    code.max_registers = limits::max_registers(body.function);
    for (name, pass) in PASSES {
        pass(code);
        look(name, code);
    }
    let preds = predicates::run(code);
    look("predicates", code);
    let mut spilled = SpillSlots::new(code, layout.local_bytes);
    let allocation = registers::allocate(code, code.max_registers, &mut spilled)
        .map_err(|needed| vec![too_few_registers(body, needed, code.max_registers)])?;
    look("registers", code);
    let local_bytes = spilled.local_bytes;
    Ok(emit::run(code, body.function, layout, &allocation, &preds, local_bytes))
}

fn too_few_registers(body: &Body<'_, '_>, needed: usize, allowed: usize) -> Diagnostic {
    let name = body.function.name;
    let message = format!(
        "`{}` needs {needed} registers per thread; the limit is {allowed}",
        name.text
    );
    Diagnostic::unsupported(name.span, message).help("relax `.maxnreg`, `.maxntid` or `.minnctapersm`")
}
