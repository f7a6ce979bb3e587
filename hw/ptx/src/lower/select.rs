//! Instruction selection: PTX instructions to machine operations.
//!
//! Each PTX instruction becomes one to about twelve operations on virtual registers, with 64-bit integers whole. An instruction
//! that the machine cannot run becomes a finding. The guard of an instruction goes to the operations with visible results.
//! Intermediate values are computed without a guard.

mod address;
mod arguments;
mod atomic;
mod bits;
mod bulk;
mod call;
mod carry;
mod compare;
mod control;
mod convert;
mod float;
mod frame;
mod halves;
mod hint;
mod instead;
mod wgmma;

mod call_liveness;
mod integer;
mod library;
mod mbarrier;
mod memory;
mod packed;
mod param;
mod qualifiers;
mod recursion;
mod remote;
mod routine;
mod size;
mod special;
mod stack;
mod system;
mod tensor;
mod tensormap;
mod text_expansion;
mod texture;
mod value;
mod video;
mod warp;
mod wmma;

use super::code::{Arg, Block, BlockId, Code, Op, VGuard, VPred, VReg};
use super::layout::Layout;
use crate::ast::{Name, Type};
use crate::check::{self, Body, Checked, RegId, Step, SymbolId, Value};
use crate::diag::{Diagnostic, Lines};
use call_liveness::CallLiveness;
use frame::Frame;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use warpwave_isa::opcode::Opcode;

/// Selects operations for a kernel, or returns a finding for each unsupported instruction.
pub(super) fn run<'t, 'a>(
    checked: &'t Checked<'t, 'a>,
    body: &'t Body<'t, 'a>,
    layout: &Layout<'_>,
    lines: &Lines,
) -> Result<Code, Vec<Diagnostic>> {
    let mut selector = Selector::new(checked, layout, lines);
    let kernel = Frame::of(body, &mut selector.code, &mut selector.label_blocks);
    selector.frames.push(kernel);
    selector.init_stack();
    selector.select_steps();
    selector.finish()
}

type Selected = Result<(), Diagnostic>;

/// Location of a PTX register: its first virtual register, or a predicate.
#[derive(Clone, Copy)]
enum VLoc {
    VReg(VReg),
    VPred(VPred),
}

/// State of the selection of one kernel.
struct Selector<'s, 't, 'a> {
    checked: &'t Checked<'t, 'a>,
    layout: &'s Layout<'s>,
    lines: &'s Lines,
    /// The kernel, and the functions being inlined, innermost last.
    frames: Vec<Frame<'t, 'a>>,
    /// First register of each call parameter.
    call_params: HashMap<SymbolId, VReg>,
    /// Registers of call parameters, in ascending order. A guarded write must keep their old values.
    param_ranges: Vec<Range<u32>>,
    n_calls: usize,
    n_ops: usize,
    /// Number of the instructions so far that end a region of `contract`.
    region: u32,
    /// True once the code is too large. Selection then stops.
    is_too_large: bool,
    /// Values live across calls in each recursive function, by its number.
    call_liveness: HashMap<usize, CallLiveness>,
    /// Stack pointer, in kernels with recursive functions or stack allocation.
    stack: Option<VReg>,
    code: Code,
    /// Block of each label.
    label_blocks: Vec<Option<BlockId>>,
    guard: VGuard,
    /// Current carry; `None` before the first `.cc`. After a label it is the flag of the frame, if there is one.
    carry: Option<VGuard>,
    line: u32,
    findings: Vec<Diagnostic>,
}

/// An instruction with its qualifiers parsed.
struct Form<'t, 'a> {
    op: &'t check::Op<'t, 'a>,
    types: Vec<Type>,
}

impl<'t, 'a> Form<'t, 'a> {
    fn of(op: &'t check::Op<'t, 'a>) -> Self {
        let qualifiers = &op.instruction.qualifiers;
        Form {
            op,
            types: qualifiers
                .iter()
                .filter_map(|name| Type::from_dotted(name.text))
                .collect(),
        }
    }

    fn opcode(&self) -> &'a str {
        self.op.instruction.opcode.text
    }

    fn has(&self, qualifier: &str) -> bool {
        self.qualifiers().any(|name| name.text == qualifier)
    }

    fn qualifiers(&self) -> impl Iterator<Item = Name<'a>> + '_ {
        self.op.instruction.qualifiers.iter().copied()
    }

    /// Returns the type of the operation: the last one written.
    fn ty(&self) -> Type {
        self.types.last().copied().unwrap_or(Type::B32)
    }

    fn operands(&self) -> &'t [Value<'a>] {
        &self.op.operands
    }

    fn operand(&self, n: usize) -> Result<&'t Value<'a>, Diagnostic> {
        self.operands()
            .get(n)
            .ok_or_else(|| self.malformed("this form of the instruction needs more operands"))
    }

    /// Reports the first qualifier that is neither a type nor in `known`.
    fn only(&self, known: &[&str]) -> Selected {
        let foreign = |name: &Name<'_>| Type::from_dotted(name.text).is_none() && !known.contains(&name.text);
        match self.qualifiers().find(foreign) {
            Some(name) => {
                let message = format!("`{}` with `{}`", self.opcode(), name.text);
                Err(instead::advise(Diagnostic::unsupported(name.span, message), name.text))
            }
            None => Ok(()),
        }
    }

    /// Creates the finding that the machine does not run the instruction.
    fn unsupported(&self) -> Diagnostic {
        let instruction = self.op.instruction;
        let qualifiers: String = self.qualifiers().map(|name| name.text).collect();
        let opcode = instruction.opcode.text;
        let finding = Diagnostic::unsupported(instruction.span, format!("instruction `{opcode}{qualifiers}`"));
        instead::advise(finding, opcode)
    }

    /// Creates the finding that PTX does not allow an operand here.
    fn malformed(&self, message: &str) -> Diagnostic {
        Diagnostic::malformed(self.op.instruction.span, message)
    }
}

impl<'s, 't, 'a> Selector<'s, 't, 'a> {
    fn new(checked: &'t Checked<'t, 'a>, layout: &'s Layout<'s>, lines: &'s Lines) -> Self {
        Selector {
            checked,
            layout,
            lines,
            frames: Vec::new(),
            call_params: HashMap::new(),
            param_ranges: Vec::new(),
            n_calls: 0,
            n_ops: 0,
            region: 0,
            is_too_large: false,
            call_liveness: HashMap::new(),
            stack: None,
            code: Code {
                blocks: vec![Block::default()],
                ..Code::default()
            },
            label_blocks: Vec::new(),
            guard: VGuard::ALWAYS,
            carry: None,
            line: 0,
            findings: Vec::new(),
        }
    }

    fn frame(&self) -> &Frame<'t, 'a> {
        self.frames.last().expect("a function is being selected")
    }

    /// Returns the type of a register of the current function.
    fn register_type(&self, reg: RegId) -> Type {
        self.frame().body.registers[reg.0 as usize]
    }

    /// Selects the code of the innermost frame. The carry of the outer frame is kept.
    fn select_steps(&mut self) {
        let carry = self.frame().carry_flag.map(VGuard::pred);
        let outer_carry = std::mem::replace(&mut self.carry, carry);
        if let Some(flag) = self.frame().carry_flag {
            // Defined on every path: a reader before any writer gets no carry.
            self.copy_pred(Some(flag), VGuard::NEVER);
        }
        self.select_body();
        self.carry = outer_carry;
    }

    /// Selects the steps of the innermost frame. Stops if the code is too large.
    fn select_body(&mut self) {
        let body = self.frame().body;
        let line = self.frame().line;
        for (at, step) in body.code.iter().enumerate() {
            // Library code is short, and its findings are not for the user.
            if line.is_none() && self.is_over_size_limit() {
                return;
            }
            self.frames.last_mut().expect("a function is being selected").step = at;
            match step {
                Step::Label(label) => {
                    self.label(self.frame().labels + label.0 as usize);
                    // A jump to the label may come from code after another writer.
                    self.carry = self.frame().carry_flag.map(VGuard::pred);
                }
                Step::Param(symbol) => {
                    self.guard = VGuard::ALWAYS;
                    self.init_param(*symbol);
                }
                Step::KeepLoop => self.keep_loop(),
                Step::Op(op) => {
                    self.line = line.unwrap_or_else(|| self.lines.line(op.instruction.span.start));
                    self.guard = VGuard::ALWAYS;
                    // Without the guard: the checker made these registers for this instruction alone.
                    op.sums.iter().for_each(|sum| self.sum_register(sum));
                    self.guard = self.guard_of(op);
                    // Library code is part of one instruction.
                    let ends_region = u32::from(line.is_none() && ends_region(op));
                    self.region += ends_region;
                    if let Err(finding) = self.instruction(op) {
                        self.findings.push(finding);
                    }
                    // A call has regions of its own.
                    self.region += ends_region;
                }
            }
        }
        // A routine has no `ret`, so nothing jumps to its end.
        if line.is_none() {
            self.label(self.frame().end());
        }
    }

    fn guard_of(&self, op: &check::Op<'_, '_>) -> VGuard {
        let Some((reg, negated)) = op.guard else {
            return VGuard::ALWAYS;
        };
        VGuard {
            pred: self.pred_of(reg),
            negated,
        }
    }

    fn label(&mut self, label: usize) {
        self.new_block();
        self.label_blocks[label] = Some(self.code.blocks.len() - 1);
    }

    /// Keeps every loop that contains the current block as it is.
    fn keep_loop(&mut self) {
        self.code.kept_loops.push(self.code.blocks.len() - 1);
    }

    /// Starts a new block, unless the current one is empty.
    fn new_block(&mut self) {
        if self.code.blocks.last().is_some_and(|block| !block.ops.is_empty()) {
            self.code.blocks.push(Block::default());
        }
    }

    /// Appends an operation. It gets the instruction's guard if its results or effects are visible.
    fn emit(&mut self, mut op: Op) {
        op.line = self.line;
        // Temporaries run without a guard, because `copy_prop` and `cse` treat only unguarded definitions as fixed.
        let is_visible = op.defs().any(|vreg| self.is_ptx_register(vreg))
            || op.pred_defs().any(|pred| self.frame().preds.contains(&pred.0));
        if op.guard == VGuard::ALWAYS && (is_visible || op.has_effect()) {
            op.guard = self.guard;
        }
        let ends = matches!(
            op.kind,
            super::code::OpKind::Machine(Opcode::Bra | Opcode::Exit | Opcode::Trap)
        );
        self.n_ops += 1;
        if let Some(block) = self.code.blocks.last_mut() {
            block.ops.push(op);
        }
        if ends {
            self.new_block();
        }
    }

    fn is_ptx_register(&self, vreg: VReg) -> bool {
        self.frame().vregs.contains(&vreg.0) || self.is_param_vreg(vreg)
    }

    fn is_param_vreg(&self, vreg: VReg) -> bool {
        // Ranges are appended with new registers, so they are in ascending order.
        let index = self.param_ranges.partition_point(|range| range.end <= vreg.0);
        self.param_ranges
            .get(index)
            .is_some_and(|range| range.contains(&vreg.0))
    }

    /// Sets the stack pointer to the empty stack, in kernels with a stack.
    fn init_stack(&mut self) {
        if self.layout.has_stack() {
            let stack = self.temp();
            self.stack = Some(stack);
            let at = Arg::imm(self.layout.stack_offset.into());
            self.emit(Op::machine(Opcode::Mov).dst(stack).src(&[at]));
        }
    }

    fn stack(&self) -> VReg {
        self.stack.expect("the layout requested a stack")
    }

    fn temp(&mut self) -> VReg {
        self.code.new_group(1)
    }

    fn temp_pair(&mut self) -> VReg {
        self.code.new_group(2)
    }

    /// Emits an operation with a new result register, and returns the result.
    fn compute(&mut self, op: Op) -> Arg {
        let words = op.shape().dst;
        let word = self.code.new_group(words);
        self.emit(op.dst(word));
        Arg::vreg(word)
    }

    /// Selects one PTX instruction: from the library if it has this form, otherwise by its opcode.
    fn instruction(&mut self, op: &'t check::Op<'t, 'a>) -> Selected {
        let form = Form::of(op);
        // The library comes first: it has forms of opcodes that are also selected below.
        if let Some(code) = library::code_of(&form) {
            return self.expand(&form, code);
        }
        match form.opcode() {
            "mov" | "cvta" => self.mov(&form),
            "ld" | "ldu" | "st" | "atom" | "red" | "cp" | "ldmatrix" | "prefetch" | "prefetchu" | "discard"
            | "applypriority" | "createpolicy" => self.memory(&form),
            "cvt" => self.convert(&form),
            "bra" | "ret" | "exit" | "trap" | "bar" | "barrier" | "membar" | "fence" | "nanosleep" | "call" | "brx" => {
                self.control(&form)
            }
            "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => self.warp(&form),
            "mma" => self.mma(&form),
            "stmatrix" => self.store_matrix(&form),
            "wmma" => self.wmma(&form),
            "tex" | "tld4" | "txq" | "suld" | "sust" | "sured" | "suq" => self.texture(&form),
            "mbarrier" => self.mbarrier(&form),
            "tensormap" => self.tensor_map(&form),
            "wgmma" => self.warp_group(&form),
            // No-ops: grids run in order, registers are fixed at launch, and there is no debugger or profiler.
            "griddepcontrol" | "setmaxnreg" | "brkpt" | "pmevent" => form.only(qualifiers::LAUNCH_QUALIFIERS),
            "alloca" | "stacksave" | "stackrestore" => self.stack_operation(&form),
            "set" => self.set(&form),
            "lop3" if form.operands().len() == 6 => self.lop3_predicate(&form),
            "mapa" => self.mapa(&form),
            // `vote` has gone above, so the rest of these are video instructions.
            op if op.starts_with('v') || op == "dp2a" => self.packed_integers(&form),
            _ if self.is_carry_chain(&form) => self.carry_chain(&form),
            _ if form.ty().is_float() => self.float(&form),
            _ => self.integer(&form),
        }
    }

    /// Ends the code, and replaces label numbers by blocks.
    fn finish(mut self) -> Result<Code, Vec<Diagnostic>> {
        self.guard = VGuard::ALWAYS;
        let last = self.code.blocks.last();
        // A thread that reaches the end of the text ends. After a final jump `jumps` clears this EXIT.
        let open = last.is_none_or(|block| !block.ops.last().is_some_and(Op::ends_flow));
        if open {
            self.emit(Op::machine(Opcode::Exit));
        }
        if self.code.blocks.last().is_some_and(|block| block.ops.is_empty()) {
            self.code.blocks.pop();
        }
        // Only now every label has a block: a branch may come before its label.
        for op in self.code.blocks.iter_mut().flat_map(|block| &mut block.ops) {
            op.target = op.target.and_then(|label| self.label_blocks[label]);
        }
        if self.findings.is_empty() {
            Ok(self.code)
        } else {
            Err(distinct(self.findings))
        }
    }
}

/// True if no product before the instruction fuses with a sum after it.
///
/// Read from machine code of ptxas 11.8. Calls, fences and divisions with a call or a jump divide a block. So does any other instruction
/// that a guard makes a jump.
fn ends_region(op: &check::Op<'_, '_>) -> bool {
    let has = |qualifier: &str| op.instruction.qualifiers.iter().any(|name| name.text == qualifier);
    let any = |qualifiers: &[&str]| qualifiers.iter().any(|qualifier| has(qualifier));
    let is_guarded = op.guard.is_some();
    match op.instruction.opcode.text {
        "call" | "membar" | "fence" => true,
        "atom" | "red" => is_guarded || any(&[".release", ".acq_rel"]),
        "div" | "rem" | "rcp" | "sqrt" => any(&[".rn", ".rz", ".rm", ".rp", ".s16", ".u16", ".s32", ".s64", ".u64"]),
        "rsqrt" => has(".f64"),
        // A constant at a known address is an operand, and no load.
        "ld" => {
            let is_known =
                |value: &Value<'_>| matches!(value, Value::Address(base, _) if matches!(**base, Value::Symbol(..)));
            let is_operand = has(".param") || has(".const") && op.operands.iter().any(is_known);
            is_guarded && !is_operand
        }
        "activemask" | "bar" | "barrier" | "brkpt" | "cp" | "exit" | "ldmatrix" | "ldu" | "match" | "nanosleep"
        | "pmevent" | "prefetch" | "prefetchu" | "redux" | "ret" | "st" | "suld" | "sust" | "tex" | "trap" | "vote" => {
            is_guarded
        }
        _ => false,
    }
}

/// Keeps the first of equal findings. An inlined function repeats its findings, and so does each use of an undefined name.
pub(super) fn distinct(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert((finding.span, finding.message.clone())));
    findings
}
