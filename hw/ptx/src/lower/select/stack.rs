//! Stack memory: local variables of recursive functions, and `alloca`.

use super::integer::lop;
use super::{Form, Selected, Selector};
use crate::ast::Space;
use crate::check::{Body, SymbolId, Value};
use crate::lower::callgraph;
use crate::lower::code::{Arg, Op, VReg};
use crate::lower::layout::append_variable;
use warpwave_isa::opcode::Opcode;

/// Local variables of one activation.
pub(super) struct StackLocals {
    /// Stack pointer of the caller.
    pub outer: VReg,
    /// Address of the variables.
    pub base: VReg,
    /// Offset of each variable from `base`, in bytes.
    pub offsets: Vec<(SymbolId, u32)>,
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    fn is_local(&self, symbol: SymbolId) -> bool {
        self.checked.symbols[symbol.0 as usize].space == Space::Local
    }

    fn has_locals(&self, body: &Body<'t, 'a>) -> bool {
        body.symbols.iter().any(|&symbol| self.is_local(symbol))
    }

    /// Allocates stack memory for the local variables of the current function, if it uses the stack.
    pub(super) fn begin_locals(&mut self) -> Option<StackLocals> {
        let body = self.frame().body;
        if !self.has_locals(body) && !callgraph::uses_stack(body) {
            return None;
        }
        let (mut bytes, mut align) = (0, 8);
        let mut offsets = Vec::new();
        for &symbol in body.symbols.iter().filter(|&&symbol| self.is_local(symbol)) {
            let variable = self.checked.symbols[symbol.0 as usize];
            align = align.max(variable.alignment() as u32);
            offsets.push((symbol, append_variable(&mut bytes, variable)));
        }
        let [outer, base] = [(); 2].map(|()| self.temp());
        let stack = self.stack();
        self.emit(Op::machine(Opcode::Mov).dst(outer).src(&[Arg::vreg(stack)]));
        self.allocate_stack(base, Arg::imm(bytes.into()), align);
        Some(StackLocals { outer, base, offsets })
    }

    /// Allocates `bytes` bytes of the stack at a multiple of `align`.
    fn allocate_stack(&mut self, first: VReg, bytes: Arg, align: u32) {
        let stack = self.stack();
        let up = Op::machine(Opcode::Iadd3).src(&[Arg::vreg(stack), Arg::imm(u64::from(align - 1))]);
        let up = self.compute(up);
        // 0xc0 is `and`: the start, rounded up to the alignment.
        self.emit(lop(up, Arg::imm(u64::from(!(align - 1))), Arg::ZERO, 0xc0).dst(first));
        self.emit(Op::machine(Opcode::Iadd3).dst(stack).src(&[Arg::vreg(first), bytes]));
    }

    /// Returns base and offset of a variable on the stack.
    pub(super) fn stack_location(&self, symbol: SymbolId) -> Option<(VReg, u32)> {
        let frames = self.frames.iter().rev().filter_map(|frame| frame.recursion.as_ref());
        let mut locals = frames.filter_map(|recursion| recursion.locals.as_ref());
        locals.find_map(|locals| {
            let found = locals.offsets.iter().find(|(known, _)| *known == symbol);
            found.map(|&(_, offset)| (locals.base, offset))
        })
    }

    /// Selects `alloca`, `stacksave` and `stackrestore`.
    pub(super) fn stack_operation(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let stack = self.stack();
        match (form.opcode(), form.operands()) {
            ("alloca", [_, _, rest @ ..]) => {
                let align = match rest {
                    [] => 8,
                    // Zero is no power of two, so it is refused below.
                    [Value::Int(align)] => u32::try_from(*align).unwrap_or(0),
                    _ => 0,
                };
                if !align.is_power_of_two() || align > 1 << 16 {
                    return Err(form.malformed("the alignment must be a power of two"));
                }
                let (result, bytes) = (self.dst(form, 0)?, self.src(form, 1)?);
                let first = self.temp();
                self.allocate_stack(first, bytes.part(0), align);
                // A local address has 32 bits and is zero-extended.
                self.widen(result, (form.ty().bits() / 32) as u8, Arg::vreg(first), false, false);
            }
            ("stacksave", [_]) => {
                let result = self.dst(form, 0)?;
                self.widen(result, (form.ty().bits() / 32) as u8, Arg::vreg(stack), false, false);
            }
            ("stackrestore", [_]) => {
                let saved = self.src(form, 0)?;
                self.emit(Op::machine(Opcode::Mov).dst(stack).src(&[saved.part(0)]));
            }
            _ => {
                return Err(form.malformed(
                    "`alloca` takes a result, a size and an optional alignment; `stacksave` and `stackrestore` take one operand",
                ));
            }
        }
        Ok(())
    }
}
