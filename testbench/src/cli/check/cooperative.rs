//! Grid barriers of cooperative groups. Their code reads the address of a workspace from `%envreg1` and `%envreg2`, and traps if it is 0.
//! A PTX file does not say how its kernels are launched, so each such read has a warning.

use warpwave_ptx::Diagnostic;
use warpwave_ptx::ast::{Block, Instruction, Module, Operand, OperandKind, Statement};

/// A warning for the first read of the workspace in each function.
pub fn warnings(module: &Module<'_>) -> Vec<Diagnostic> {
    let bodies = module.functions.iter().filter_map(|function| function.body.as_ref());
    bodies.filter_map(first_read).map(warning).collect()
}

fn warning(operand: &Operand<'_>) -> Diagnostic {
    Diagnostic::warning(operand.span, "this register is 0 unless the launch is cooperative")
        .help("set `cooperative = true` in the launch: without it a grid barrier of cooperative groups traps")
}

fn first_read<'b, 'a>(block: &'b Block<'a>) -> Option<&'b Operand<'a>> {
    block.statements.iter().find_map(|statement| match statement {
        Statement::Instruction(inst) => workspace(inst),
        Statement::Block(block) => first_read(block),
        _ => None,
    })
}

fn workspace<'b, 'a>(inst: &'b Instruction<'a>) -> Option<&'b Operand<'a>> {
    let is_part = |operand: &&Operand<'a>| matches!(operand.kind, OperandKind::Name("%envreg1" | "%envreg2"));
    inst.operands.iter().find(is_part)
}
