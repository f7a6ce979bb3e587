//! Recursive functions.
//!
//! The code of a recursive function occurs once in the kernel, as a loop. A recursive call saves live values on a stack in
//! local memory. Then it records its number and jumps to the start of the function. The end of the function jumps back to the
//! recorded call.
//!
//! The saved values are the registers and parameter words that are live across the call ([`live`]). They belong to the
//! function and to functions inlined between it and the call. Local variables are on the stack too, so each activation has its
//! own. `alloca` takes stack memory until its function ends.

use super::call::CALL_REGISTERS;
use super::integer::lop;
use super::live::AcrossCalls;
use super::stack::Locals;
use super::{Form, Home, Selected, Selector};
use crate::check::{SymbolId, Value};
use crate::lower::code::{Arg, Flag, Op, When, Word};
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space};

/// State of a recursive function.
pub(super) struct Recursion {
    /// Label at the start of its code.
    entry: usize,
    /// Register with the call to return to: 0 for the outer call, then the index in [`Recursion::sites`] plus 1.
    origin: Word,
    /// Label after each recursive call.
    sites: Vec<usize>,
    /// Local variables on the stack.
    pub(super) locals: Option<Locals>,
}

/// Predicates that one stack word holds.
const FLAGS: usize = 32;

/// Values that a call saves.
#[derive(Default)]
struct Kept {
    words: Vec<Word>,
    flags: Vec<Flag>,
}

impl Kept {
    /// Returns the number of stack words.
    fn n_words(&self) -> u32 {
        (self.words.len() + self.flags.len().div_ceil(FLAGS)) as u32
    }
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Starts the code of a recursive function.
    pub(super) fn open_recursion(&mut self) {
        self.code.least_registers = CALL_REGISTERS;
        let origin = self.temp();
        self.emit(Op::row(Opcode::Mov).dst(origin));
        let entry = self.new_label();
        self.label(entry);
        let locals = self.open_locals();
        let frame = self.frames.last_mut().expect("a function is being selected");
        frame.recursion = Some(Recursion {
            entry,
            origin,
            sites: Vec::new(),
            locals,
        });
    }

    /// Ends the code of a recursive function: returns to the recorded call, or continues for the outer call.
    pub(super) fn close_recursion(&mut self) {
        let Some(Recursion {
            origin, sites, locals, ..
        }) = &self.frame().recursion
        else {
            return;
        };
        let (origin, sites) = (*origin, sites.clone());
        if let Some(outer) = locals.as_ref().map(|locals| locals.outer) {
            let stack = self.stack();
            self.emit(Op::row(Opcode::Mov).dst(stack).src(&[Arg::word(outer)]));
        }
        for (number, site) in (1..).zip(sites) {
            let is_it = self.code.flag();
            self.emit(
                Op::row(Opcode::Isetp)
                    .src(&[Arg::word(origin), Arg::imm(number)])
                    .flags(is_it),
            );
            let mut back = Op::row(Opcode::Bra).when(When::flag(is_it));
            back.target = Some(site);
            self.emit(back);
        }
    }

    /// Selects a recursive call of the function in frame `depth`.
    pub(super) fn call_again(
        &mut self,
        form: &Form<'t, 'a>,
        depth: usize,
        given: (&[Value<'a>], &[Value<'a>]),
    ) -> Selected {
        let body = self.frames[depth].body;
        let (returns, params) = body.params.split_at(body.function.returns.len());
        self.same_results(form, returns, given.0)?;
        let kept = self.kept(depth);
        self.push(&kept);
        self.hand_over(form, params, given.1)?;
        let site = self.new_label();
        let recursion = self.frames[depth].recursion.as_mut().expect("the call graph found it");
        recursion.sites.push(site);
        let (origin, entry, number) = (recursion.origin, recursion.entry, recursion.sites.len() as u64);
        self.emit(Op::row(Opcode::Mov).dst(origin).src(&[Arg::imm(number)]));
        let mut again = Op::row(Opcode::Bra);
        again.target = Some(entry);
        self.emit(again);
        self.label(site);
        let results: Vec<(SymbolId, Vec<Arg>)> = returns.iter().map(|&result| (result, self.copied(result))).collect();
        self.pop(&kept);
        for ((_, words), value) in results.into_iter().zip(given.0) {
            self.put_result(form, value, &words)?;
        }
        Ok(())
    }

    /// Copies the words of a parameter to new registers.
    fn copied(&mut self, symbol: SymbolId) -> Vec<Arg> {
        let first = self.param_words(symbol);
        let words = self.param_bytes(symbol).div_ceil(4);
        (0..words)
            .map(|n| self.compute(Op::row(Opcode::Mov).src(&[Arg::word(Word(first.0 + n))])))
            .collect()
    }

    /// Returns the values to save for a call of the function in frame `depth`.
    fn kept(&mut self, depth: usize) -> Kept {
        let mut kept = Kept::default();
        for at in depth..self.frames.len() {
            let frame = &self.frames[at];
            let solved = self
                .across_calls
                .entry(frame.body.number)
                .or_insert_with(|| AcrossCalls::of(self.checked, frame.body));
            let live = solved.behind(frame.step);
            for reg in live.registers {
                match (frame.homes[reg.0 as usize], frame.body.registers[reg.0 as usize].bits()) {
                    (Home::Flag(flag), _) => kept.flags.push(flag),
                    (Home::Words(word), bits) => {
                        kept.words.extend((0..bits.div_ceil(32) as u8).map(|n| word.offset(n)));
                    }
                }
            }
            if let Some(recursion) = &frame.recursion {
                kept.words.push(recursion.origin);
                kept.words
                    .extend(recursion.locals.iter().flat_map(|locals| [locals.outer, locals.base]));
            }
            for (param, n) in live.param_words {
                let first = self.param_words(param);
                kept.words.push(Word(first.0 + n));
            }
        }
        kept
    }

    /// Saves values on the stack.
    fn push(&mut self, kept: &Kept) {
        let mut values: Vec<Arg> = kept.words.iter().map(|&word| Arg::word(word)).collect();
        values.extend(kept.flags.chunks(FLAGS).map(|flags| self.flags_as_word(flags)));
        let stack = self.stack();
        for (n, value) in (0..).zip(values) {
            self.emit(on_stack(Op::row(Opcode::St).src(&[Arg::word(stack), value]), n));
        }
        let grown = Op::row(Opcode::Iadd3).src(&[Arg::word(stack), Arg::imm(4 * u64::from(kept.n_words()))]);
        self.emit(grown.dst(stack));
    }

    /// Restores values from the stack.
    fn pop(&mut self, kept: &Kept) {
        let stack = self.stack();
        let bytes = 4 * kept.n_words() as i32;
        let shrunk = Op::row(Opcode::Iadd3).src(&[Arg::word(stack), Arg::imm(u64::from(-bytes as u32))]);
        self.emit(shrunk.dst(stack));
        for (n, &word) in (0..).zip(&kept.words) {
            self.emit(on_stack(Op::row(Opcode::Ld).dst(word).src(&[Arg::word(stack)]), n));
        }
        for (at, flags) in (kept.words.len() as i32..).zip(kept.flags.chunks(FLAGS)) {
            let word = self.temp();
            self.emit(on_stack(Op::row(Opcode::Ld).dst(word).src(&[Arg::word(stack)]), at));
            for (n, &flag) in flags.iter().enumerate() {
                let bit = self.compute(lop(Arg::word(word), Arg::imm(1 << n), Arg::ZERO, 0xc0));
                let is_set = Op::row(Opcode::Isetp).src(&[bit, Arg::ZERO]).flags(flag);
                self.emit(is_set.mods(|mods| mods.cmp = Cmp::Ne));
            }
        }
    }

    fn flags_as_word(&mut self, flags: &[Flag]) -> Arg {
        let mut word = Arg::ZERO;
        for (n, &flag) in flags.iter().enumerate() {
            let bit = Op::row(Opcode::Sel)
                .src(&[Arg::imm(1 << n), Arg::ZERO])
                .psrc(When::flag(flag));
            let bit = self.compute(bit);
            word = self.compute(lop(word, bit, Arg::ZERO, 0xfc));
        }
        word
    }

    pub(super) fn new_label(&mut self) -> usize {
        self.places.push(None);
        self.places.len() - 1
    }
}

fn on_stack(op: Op, n: i32) -> Op {
    op.mods(|mods| {
        mods.space = Space::Local;
        mods.access = Access::one(4);
        mods.offset = 4 * n;
    })
}
