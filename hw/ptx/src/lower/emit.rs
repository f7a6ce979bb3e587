//! Emission: turns allocated code into a [`Program`].

use super::arg::source;
use super::code::{Arg, Bits, Code, Op, OpKind, VGuard};
use super::layout::Layout;
use super::limits;
use super::registers::Allocation;
use crate::ast::Function;
use warpwave_isa::inst::{Inst, Operand, Source};
use warpwave_isa::program::{ClusterRequirement, Program, Requirements};
use warpwave_isa::reg::{Guard, Pred, Reg};

pub(super) fn run(
    code: &Code,
    function: &Function<'_>,
    layout: &Layout<'_>,
    allocation: &Allocation,
    preds: &[Pred],
    local_bytes: u32,
) -> Program {
    // Program address of each block, in instructions.
    let starts: Vec<u32> = code
        .blocks
        .iter()
        .scan(0, |at, block| {
            *at += block.ops.len() as u32;
            Some(*at - block.ops.len() as u32)
        })
        .collect();
    let emitter = Emitter {
        registers: &allocation.registers,
        preds,
        starts: &starts,
    };
    let insts = code.ops().map(|op| emitter.inst(op)).collect();
    let limit = |name| limits::block_size(function, name);
    let requirements = Requirements {
        registers: allocation.count,
        shared_bytes: layout.shared_bytes,
        local_bytes,
        stack_bytes: layout.stack_bytes(),
        recursive: layout.recursive_functions(),
        params: layout.params.clone(),
        variables: layout.variables.clone(),
        module_variables: layout.module_variables(),
        required_block: limit(".reqntid"),
        max_block: limit(".maxntid"),
        cluster: cluster_requirement(function),
    };
    Program::new(function.name.text, insts, requirements)
        .with_assertions(code.assertions.clone())
        .with_reconvergence(code.reconvergence)
}

/// Returns the cluster size of `.reqnctapercluster 4, 1, 1`, or the requirement of `.explicitcluster`.
fn cluster_requirement(function: &Function<'_>) -> ClusterRequirement {
    let is_explicit = function.limits.iter().any(|(limit, _)| *limit == ".explicitcluster");
    match limits::block_size(function, ".reqnctapercluster") {
        Some(size) => ClusterRequirement::Exact(size),
        None if is_explicit => ClusterRequirement::Explicit,
        None => ClusterRequirement::Any,
    }
}

struct Emitter<'e> {
    registers: &'e [Reg],
    preds: &'e [Pred],
    starts: &'e [u32],
}

impl Emitter<'_> {
    /// Encodes an operation. An absent result becomes RZ or PT.
    fn inst(&self, op: &Op) -> Inst {
        let OpKind::Machine(opcode) = op.kind else {
            panic!("a 64-bit operation reached the end of lowering: {op:?}");
        };
        let mut inst = Inst::new(opcode);
        inst.guard = self.guard(op.guard);
        // RZ and PT take results that nothing reads.
        inst.dst = op.dst.map_or(Reg::ZERO, |vreg| self.registers[vreg.0 as usize]);
        inst.pdst = op
            .pdst
            .map(|pred| pred.map_or(Pred::TRUE, |pred| self.preds[pred.0 as usize]));
        inst.src = op.src.map(|arg| self.operand(arg));
        inst.psrc = op.psrc.map(|guard| self.guard(guard));
        inst.mods = op.mods;
        inst.target = op.target.map_or(0, |block| self.starts[block]);
        inst.conv = op.conv;
        inst.line = op.line;
        inst
    }

    fn operand(&self, arg: Arg) -> Operand {
        let found = match arg.bits {
            Bits::VReg(vreg) => Source::Reg(self.registers[vreg.0 as usize]),
            bits => source(bits).unwrap_or(Source::Reg(Reg::ZERO)),
        };
        Operand {
            source: found,
            neg: arg.neg,
            abs: arg.abs,
            not: arg.not,
        }
    }

    fn guard(&self, guard: VGuard) -> Guard {
        Guard {
            pred: guard.pred.map_or(Pred::TRUE, |pred| self.preds[pred.0 as usize]),
            negated: guard.negated,
        }
    }
}
