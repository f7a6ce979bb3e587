//! The lowering: checked PTX to a machine program, pass by pass.
//!
//! 1. `layout` gives variables their locations.
//! 2. `select` turns PTX instructions into operations on virtual registers.
//! 3. The [`PASSES`] rewrite this code, each in its own file.
//! 4. `predicates` and `registers` allocate physical registers. `spill` keeps values in local memory if registers are too few.
//! 5. `emit` writes the [`Program`].
//!
//! `code` and `arg` define the intermediate code. `graph`, `live`, `alignment`, `divergence` and `spin` analyse it, and `dump` prints it.
//! `init` computes the initial values of variables.

// The modules are roughly in pipeline order. The blank lines keep rustfmt from sorting them.

mod arg;

mod code;

mod callgraph;

pub(crate) mod init;

pub(crate) mod layout;

mod select;

mod graph;

mod contract;

mod fold;

mod copy_prop;

mod addresses;

mod dce;

mod legalize;

mod cse;

mod alignment;

mod join;

mod unroll;

mod operands;

mod jumps;

mod if_convert;

mod spin;

mod divergence;

mod reconverge;

mod min_max;

mod narrow;

mod guards;

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
use crate::{Options, PassSet, VALUE_PASS};
use code::Code;
use layout::{Layout, ModuleLayout};
use spill::SpillSlots;
use std::time::Instant;
use tracing::{Level, debug, debug_span, enabled};
use warpwave_isa::program::Program;

/// Name and function of a pass. A pass that runs more than once has a number after its name.
type Pass = (&'static str, fn(&mut Code));

/// The passes between instruction selection and register allocation, in order.
const PASSES: &[Pass] = &[
    // First, so that every build has the same values.
    (VALUE_PASS, contract::run),
    // Selection copies every call parameter and every half of a pair.
    ("copy_prop", copy_prop::run),
    ("addresses", addresses::run),
    // `addresses` leaves unread results.
    ("dce", dce::run),
    // Before `legalize`, so that a counter of 64 bits is one value. After `dce`, so that the size of a body is known.
    ("unroll", unroll::run),
    // After `addresses`, which finds sums of whole 64-bit values.
    ("legalize", legalize::run),
    // A 64-bit move is now two 32-bit copies.
    ("copy_prop 2", copy_prop::run),
    // After `legalize`, so that equal words of different 64-bit values are found.
    ("cse", cse::run),
    // `cse` leaves a copy for each removed operation.
    ("copy_prop 3", copy_prop::run),
    ("dce 2", dce::run),
    // After `addresses` and `cse`, which give neighbouring accesses one base.
    ("join", join::run),
    // `join` copies each word of a wide access.
    ("copy_prop 4", copy_prop::run),
    ("dce 3", dce::run),
    // Gives each loop one entry and one back edge. `reconverge` needs both.
    ("jumps", jumps::run),
    ("if_convert", if_convert::run),
    // After the last pass that puts a literal or a constant into an operand.
    ("operands", operands::run),
    ("reconverge", reconverge::run),
    // The order within blocks comes last: no later pass changes the graph.
    ("narrow", narrow::run),
    // Before `schedule`, which moves loads up as far as predicates last.
    ("guards", guards::run),
    // A comparison that only such stores read has no reader left.
    ("dce 4", dce::run),
    ("schedule", schedule::run),
];

/// Callback with the name of each pass, and the code after it.
type Observer<'o> = &'o mut dyn FnMut(&'static str, &Code);

/// Logs the host time of each pass of a kernel. Reads the host clock only if debug events are enabled.
struct Stopwatch<'k> {
    kernel: &'k str,
    /// The start of the current pass. `None` without debug events.
    pass_start: Option<Instant>,
}

impl<'k> Stopwatch<'k> {
    fn start(kernel: &'k str) -> Self {
        Stopwatch {
            kernel,
            pass_start: enabled!(Level::DEBUG).then(Instant::now),
        }
    }

    /// Logs the host time since the last lap, under the name of the pass that has ended.
    fn lap(&mut self, pass: &str) {
        if let Some(start) = &mut self.pass_start {
            let now = Instant::now();
            let us = (now - *start).as_micros();
            *start = now;
            debug!(us, "pass `{pass}` of {}", self.kernel);
        }
    }
}

/// Compiles a kernel to a program.
///
/// # Errors
///
/// Returns a diagnostic for each unsupported variable and instruction of the kernel. A kernel without these gets one if it exceeds the
/// limit of registers.
pub(crate) fn lower<'t, 'a>(
    checked: &'t Checked<'t, 'a>,
    module: &ModuleLayout,
    body: &'t Body<'t, 'a>,
    lines: &Lines,
    options: Options,
) -> Result<Program, Vec<Diagnostic>> {
    let name = body.function.name.text;
    let _span = debug_span!("kernel", name).entered();
    let mut stopwatch = Stopwatch::start(name);
    let layout = Layout::of(checked, module, body);
    let mut findings = module.unsupported_for(checked, body);
    // Selection runs despite findings, so that the caller gets all of them at once.
    let mut code = match select::run(checked, body, &layout, lines) {
        Ok(code) if findings.is_empty() => code,
        Ok(_) => return Err(select::distinct(findings)),
        Err(more) => {
            findings.extend(more);
            return Err(select::distinct(findings));
        }
    };
    code.capability = checked.capability;
    code.reconvergence = options.reconvergence;
    code.max_registers = limits::max_registers(body.function, options.max_registers);
    code.keeps_loops = keeps_loops(checked, body, &layout);
    stopwatch.lap("select");
    let skipped = options.skipped_passes;
    let program = lower_selected(&mut code, body, &layout, skipped, &mut |pass, _| stopwatch.lap(pass))?;
    stopwatch.lap("emit");
    Ok(program)
}

/// True if no loop of the kernel may be unrolled: the text says so, or the loop may be a recursion. On a GPU that is a call.
fn keeps_loops(checked: &Checked<'_, '_>, body: &Body<'_, '_>, layout: &Layout<'_>) -> bool {
    checked.keeps_loops || body.function.keeps_loops || layout.has_stack()
}

/// Returns pairs of pass name and code as text: after `select`, after each pass and allocation, and last the program.
pub(crate) fn stages<'t, 'a>(
    checked: &'t Checked<'t, 'a>,
    module: &ModuleLayout,
    body: &'t Body<'t, 'a>,
    lines: &Lines,
) -> Result<Vec<(&'static str, String)>, Vec<Diagnostic>> {
    let layout = Layout::of(checked, module, body);
    let mut code = select::run(checked, body, &layout, lines)?;
    code.capability = checked.capability;
    code.max_registers = limits::max_registers(body.function, None);
    code.keeps_loops = keeps_loops(checked, body, &layout);
    let mut stages = vec![("select", dump::text(&code))];
    let program = lower_selected(&mut code, body, &layout, PassSet::EMPTY, &mut |name, code| {
        stages.push((name, dump::text(code)));
    })?;
    stages.push(("program", program.to_string()));
    Ok(stages)
}

/// Runs the passes on the code from instruction selection, allocates registers, and emits the program.
fn lower_selected(
    code: &mut Code,
    body: &Body<'_, '_>,
    layout: &Layout<'_>,
    skipped: PassSet,
    observe: Observer<'_>,
) -> Result<Program, Vec<Diagnostic>> {
    code.skipped = skipped;
    code.all_diverge = skipped.contains("uniformity");
    code.spills_to_memory = skipped.contains("remat");
    code.keeps_products = skipped.contains(VALUE_PASS);
    // `copy_prop 2` is left out with `copy_prop`. `contract` runs in any case: it clears its marks.
    let is_wanted = |name: &str| name == VALUE_PASS || !skipped.contains(name.split(' ').next().unwrap_or(name));
    for (name, pass) in PASSES.iter().filter(|(name, _)| is_wanted(name)) {
        pass(code);
        observe(name, code);
    }
    // Before the registers: a predicate without a place moves to a general register.
    let preds = predicates::run(code);
    observe("predicates", code);
    let mut spill_slots = SpillSlots::new(code, layout.local_bytes);
    let allocation = registers::allocate(code, code.max_registers, &mut spill_slots)
        .map_err(|needed| vec![too_few_registers(body, needed, code.max_registers)])?;
    observe("registers", code);
    let local_bytes = spill_slots.local_bytes;
    Ok(emit::run(code, body.function, layout, &allocation, &preds, local_bytes))
}

fn too_few_registers(body: &Body<'_, '_>, needed: usize, allowed: usize) -> Diagnostic {
    let name = body.function.name;
    let message = format!(
        "`{}` needs {needed} registers per thread; the limit is {allowed}",
        name.text
    );
    Diagnostic::unsupported(name.span, message)
        .help("raise `.maxnreg` or --maxrregcount, or lower `.maxntid`, `.reqntid` or `.minnctapersm`")
}
