//! System calls: `vprintf`, and the trap of a failed assertion.
//!
//! `vprintf` reserves space in a buffer with one atomic and copies its arguments there. The host prints them after the launch
//! ([`crate::printf`]).

use super::{Form, Selected, Selector};
use crate::ast::Init;
use crate::check::{RegId, Step, SymbolId, Value};
use crate::lower::code::{Arg, Bits, Op, VGuard, VReg};
use crate::lower::layout::ADDRESS_BANK;
use crate::printf;
use warpwave_isa::inst::{AtomOp, Cmp, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Assertion;
use warpwave_isa::reg::Special;
use warpwave_isa::space::{Access, Space, bank0};

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects a call of a function without a body; `None` if it is not a system call.
    pub(super) fn system_call(
        &mut self,
        form: &Form<'t, 'a>,
        name: &str,
        given: (&[Value<'a>], &[Value<'a>]),
    ) -> Option<Selected> {
        match name {
            "vprintf" => Some(self.print(form, given)),
            "__assertfail" => {
                self.assertion_failed(given.1);
                Some(Ok(()))
            }
            _ => None,
        }
    }

    /// Selects a failed assertion: a trap, with its message recorded in the program.
    fn assertion_failed(&mut self, given: &[Value<'a>]) {
        let text = |n: usize| self.text_of(given.get(n)?);
        let assertion = Assertion {
            line: self.line,
            message: text(0).unwrap_or_default(),
            remedy: None,
            file: text(1).unwrap_or_default(),
            source_line: given.get(2).and_then(|value| self.number_of(value)).unwrap_or(0),
            function: text(3).unwrap_or_default(),
        };
        self.code.assertions.push(assertion);
        self.emit(Op::machine(Opcode::Trap));
    }

    /// Selects `vprintf`: reserves a record, then writes its header and arguments.
    fn print(&mut self, form: &Form<'t, 'a>, (results, given): (&[Value<'a>], &[Value<'a>])) -> Selected {
        let unknown = || {
            crate::diag::Diagnostic::unsupported(
                form.op.instruction.span,
                "`vprintf` with a format that is not a string of the module",
            )
        };
        let [Value::Symbol(format, _), Value::Symbol(list, _)] = given else {
            return Err(form.malformed("`vprintf` takes a format and its arguments"));
        };
        let text = self.text_of(&given[0]).ok_or_else(unknown)?;
        let arguments = printf::arguments(text.as_bytes());
        let n_words = printf::bytes(&arguments) / 4;
        // A multiple of 16, so that each header can be stored as two vectors.
        let record = (printf::HEADER_BYTES + 4 * n_words).next_multiple_of(16);
        let buffer = self.layout.print_buffer().ok_or_else(unknown)?;
        // The host writes the address of the buffer into the bank, as of any global variable.
        let buffer = Arg::of(Bits::Const {
            bank: ADDRESS_BANK,
            offset: (8 * buffer) as u16,
        });
        let (format, list) = (self.param_pair(*format), self.param_pair(*list));
        let reserved = Op::machine(Opcode::Atom)
            .src(&[buffer, Arg::imm(record.into())])
            .mods(|mods| {
                (mods.atom, mods.ty, mods.access) = (AtomOp::Add, Ty::U32, Access::one(4));
            });
        let reserved = self.compute(reserved);
        let count = self.temp();
        // The result if the buffer is full.
        self.emit(Op::machine(Opcode::Mov).dst(count).src(&[Arg::imm(0xffff_ffff)]));
        let full = self.code.new_pred();
        // The last offset at which the record fits.
        let last = printf::BUFFER_BYTES - printf::FIRST_RECORD - record;
        // Offsets are unsigned, and so is the comparison.
        let compare = Op::machine(Opcode::Isetp)
            .src(&[reserved, Arg::imm(last.into())])
            .pdst(full);
        self.emit(compare.mods(|mods| mods.cmp = Cmp::Gt));
        let skip_label = self.branch_if(VGuard::pred(full));
        // Adds a 32-bit offset to a 64-bit address in one instruction.
        let address = self.compute(Op::machine(Opcode::ImadWide).src(&[reserved, Arg::imm(1), buffer]));
        let thread = self.thread_number();
        let block = [Special::CtaidX, Special::CtaidY, Special::CtaidZ].map(|axis| self.special_word(axis));
        let header = [Arg::imm(record.into()), thread, format.part(0), format.part(1)];
        self.store_words(address, printf::FIRST_RECORD, header);
        self.store_words(
            address,
            printf::FIRST_RECORD + 16,
            [block[0], block[1], block[2], Arg::ZERO],
        );
        for n in 0..n_words {
            let load = Op::machine(Opcode::Ld).src(&[list]).mods(|mods| {
                // The text passes a generic address of its argument buffer.
                (mods.space, mods.access, mods.offset) = (Space::Generic, Access::one(4), 4 * n as i32);
            });
            let word = self.compute(load);
            let store = Op::machine(Opcode::St).src(&[address, word]);
            self.emit(store.mods(|mods| {
                (mods.access, mods.offset) = (
                    Access::one(4),
                    (printf::FIRST_RECORD + printf::HEADER_BYTES + 4 * n) as i32,
                );
            }));
        }
        let given = Arg::imm(arguments.len() as u64);
        self.emit(Op::machine(Opcode::Mov).dst(count).src(&[given]));
        self.label(skip_label);
        match results {
            [result] => self.write_result(form, result, &[Arg::vreg(count)]),
            _ => Ok(()),
        }
    }

    /// Stores four consecutive words in global memory.
    fn store_words(&mut self, address: Arg, offset: u32, words: [Arg; 4]) {
        let group = self.code.new_group(4);
        for (n, word) in (0..).zip(words) {
            self.emit(Op::machine(Opcode::Mov).dst(group.offset(n)).src(&[word]));
        }
        let store = Op::machine(Opcode::St).src(&[address, Arg::vreg(group)]).mods(|mods| {
            mods.access = Access {
                bytes: 4,
                count: 4,
                signed: false,
            };
            mods.offset = offset as i32;
        });
        self.emit(store);
    }

    /// Returns the linear thread index in the block: x first, then y, then z.
    fn thread_number(&mut self) -> Arg {
        let size = |axis: u16| {
            Arg::of(Bits::Const {
                bank: 0,
                offset: bank0::BLOCK_SIZE + 4 * axis,
            })
        };
        let [x, y, z] = [Special::TidX, Special::TidY, Special::TidZ].map(|axis| self.special_word(axis));
        let layer = self.compute(Op::machine(Opcode::Imad).src(&[z, size(1), y]));
        self.compute(Op::machine(Opcode::Imad).src(&[layer, size(0), x]))
    }

    /// Copies a 64-bit call parameter into one pair of registers.
    fn param_pair(&mut self, symbol: SymbolId) -> Arg {
        let first = self.param_vregs(symbol);
        let pair = self.temp_pair();
        for n in 0..2 {
            let word = Arg::vreg(VReg(first.0 + u32::from(n)));
            self.emit(Op::machine(Opcode::Mov).dst(pair.offset(n)).src(&[word]));
        }
        Arg::vreg(pair)
    }

    /// Returns the module string that an argument of the current call points to, if it is known.
    fn text_of(&self, argument: &Value<'a>) -> Option<String> {
        let Value::Symbol(variable, 0) = *self.origin(self.stored(argument)?)? else {
            return None;
        };
        let Init::List(items, _) = self.checked.symbols[variable.0 as usize].init.as_ref()? else {
            return None;
        };
        let byte = |item: &Init<'_>| match item {
            Init::Int(value, _) => u8::try_from(*value).ok(),
            _ => None,
        };
        let bytes: Vec<u8> = items.iter().map_while(byte).take_while(|&byte| byte != 0).collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn number_of(&self, argument: &Value<'a>) -> Option<u32> {
        match self.origin(self.stored(argument)?)? {
            Value::Int(number) => u32::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns the value stored last in an argument of the current call.
    fn stored(&self, argument: &Value<'a>) -> Option<&'t Value<'a>> {
        let Value::Symbol(sought, _) = argument else {
            return None;
        };
        self.find_before(self.frame().step, |op| match op.operands.as_slice() {
            [Value::Address(base, 0), value] if **base == Value::Symbol(*sought, 0) => Some(value),
            _ => None,
        })
        .map(|(_, value)| value)
    }

    /// Follows the moves before the call to the original of a value.
    fn origin(&self, value: &'t Value<'a>) -> Option<&'t Value<'a>> {
        let (mut value, mut before) = (value, self.frame().step);
        while let Value::Register(reg) = value {
            // Each search begins before the move found last, so moves in a circle end it.
            (before, value) = self.move_source(*reg, before)?;
        }
        Some(value)
    }

    /// Returns the last move to a register before a step: its step and its source.
    fn move_source(&self, sought: RegId, before: usize) -> Option<(usize, &'t Value<'a>)> {
        self.find_before(before, |op| match op.operands.as_slice() {
            [Value::Register(reg), value] if *reg == sought => {
                matches!(op.instruction.opcode.text, "mov" | "cvta").then_some(value)
            }
            _ => None,
        })
    }

    /// Searches backward from a step for an operation with an answer. Returns the step of the operation, and the answer.
    fn find_before<T>(
        &self,
        step: usize,
        answer: impl Fn(&'t crate::check::Op<'t, 'a>) -> Option<T>,
    ) -> Option<(usize, T)> {
        let body = self.frame().body;
        (0..step).rev().find_map(|at| match &body.code[at] {
            Step::Op(op) => answer(op).map(|found| (at, found)),
            Step::Label(_) | Step::Param(_) | Step::KeepLoop => None,
        })
    }
}
