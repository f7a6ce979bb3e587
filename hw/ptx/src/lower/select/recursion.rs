//! Recursive functions.
//!
//! The code of a recursive function occurs once in the kernel, as a loop. A recursive call saves live values on a stack in
//! local memory. Then it records its number and jumps to the start of the function. The end of the function jumps back to the
//! recorded call.
//!
//! The saved values are the registers and parameter words that are live across the call (`call_liveness`). They belong to the
//! function and to functions inlined between it and the call. Local variables are on the stack too, so each activation has its
//! own. `alloca` takes stack memory until its function ends.

use super::call::CALL_REGISTERS;
use super::call_liveness::CallLiveness;
use super::integer::lop;
use super::stack::StackLocals;
use super::{Form, Selected, Selector, VLoc};
use crate::check::{SymbolId, Value};
use crate::lower::code::{Arg, Op, VGuard, VPred, VReg};
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space};

/// State of a recursive function.
pub(super) struct Recursion {
    /// Label at the start of its code.
    entry: usize,
    /// Register with the call to return to: 0 for the outer call, then the index in [`Recursion::sites`] plus 1.
    return_site: VReg,
    /// Label after each recursive call.
    sites: Vec<usize>,
    /// Local variables on the stack.
    pub(super) locals: Option<StackLocals>,
}

/// Predicates that one stack word holds.
const PREDS_PER_WORD: usize = 32;

/// Values that a call saves.
#[derive(Default)]
struct SavedState {
    words: Vec<VReg>,
    preds: Vec<VPred>,
}

impl SavedState {
    /// Returns the number of stack words.
    fn n_words(&self) -> u32 {
        (self.words.len() + self.preds.len().div_ceil(PREDS_PER_WORD)) as u32
    }
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Starts the code of a recursive function.
    pub(super) fn begin_recursion(&mut self) {
        self.code.min_registers = CALL_REGISTERS;
        let return_site = self.temp();
        // Zero: the outer call enters from above.
        self.emit(Op::machine(Opcode::Mov).dst(return_site));
        let entry = self.new_label();
        self.label(entry);
        let locals = self.begin_locals();
        let frame = self.frames.last_mut().expect("a function is being selected");
        frame.recursion = Some(Recursion {
            entry,
            return_site,
            sites: Vec::new(),
            locals,
        });
    }

    /// Ends the code of a recursive function: returns to the recorded call, or continues for the outer call.
    pub(super) fn end_recursion(&mut self) {
        let Some(Recursion {
            return_site,
            sites,
            locals,
            ..
        }) = &self.frame().recursion
        else {
            return;
        };
        let (return_site, sites) = (*return_site, sites.clone());
        if let Some(outer) = locals.as_ref().map(|locals| locals.outer) {
            let stack = self.stack();
            self.emit(Op::machine(Opcode::Mov).dst(stack).src(&[Arg::vreg(outer)]));
        }
        // Without a match the outer call falls through. Calls from different lanes may diverge here.
        for (number, site) in (1..).zip(sites) {
            let is_site = self.code.new_pred();
            self.emit(
                Op::machine(Opcode::Isetp)
                    .src(&[Arg::vreg(return_site), Arg::imm(number)])
                    .pdst(is_site),
            );
            let mut back = Op::machine(Opcode::Bra).guard(VGuard::pred(is_site));
            back.target = Some(site);
            self.emit(back);
        }
    }

    /// Selects a recursive call of the function in frame `depth`.
    pub(super) fn recursive_call(
        &mut self,
        form: &Form<'t, 'a>,
        depth: usize,
        given: (&[Value<'a>], &[Value<'a>]),
    ) -> Selected {
        let body = self.frames[depth].body;
        let (returns, params) = body.params.split_at(body.function.returns.len());
        self.check_results(form, returns, given.0)?;
        let saved = self.live_state(depth);
        self.push(&saved);
        self.pass_arguments(form, params, given.1)?;
        let site = self.new_label();
        let recursion = self.frames[depth].recursion.as_mut().expect("the call graph found it");
        recursion.sites.push(site);
        let (return_site, entry, number) = (recursion.return_site, recursion.entry, recursion.sites.len() as u64);
        self.emit(Op::machine(Opcode::Mov).dst(return_site).src(&[Arg::imm(number)]));
        let mut jump = Op::machine(Opcode::Bra);
        jump.target = Some(entry);
        self.emit(jump);
        self.label(site);
        // Copied before `pop`, which may restore the words of the results.
        let results: Vec<(SymbolId, Vec<Arg>)> = returns
            .iter()
            .map(|&result| (result, self.param_copy(result)))
            .collect();
        self.pop(&saved);
        for ((_, words), value) in results.into_iter().zip(given.0) {
            self.write_result(form, value, &words)?;
        }
        Ok(())
    }

    /// Copies the words of a parameter to new registers.
    fn param_copy(&mut self, symbol: SymbolId) -> Vec<Arg> {
        let first = self.param_vregs(symbol);
        let words = self.param_bytes(symbol).div_ceil(4);
        (0..words)
            .map(|n| self.compute(Op::machine(Opcode::Mov).src(&[Arg::vreg(VReg(first.0 + n))])))
            .collect()
    }

    /// Returns the values to save for a call of the function in frame `depth`.
    fn live_state(&mut self, depth: usize) -> SavedState {
        let mut saved = SavedState::default();
        for at in depth..self.frames.len() {
            let frame = &self.frames[at];
            let solved = self
                .call_liveness
                .entry(frame.body.number)
                .or_insert_with(|| CallLiveness::of(self.checked, frame.body));
            let live = solved.after(frame.step);
            for reg in live.registers {
                match (
                    frame.locations[reg.0 as usize],
                    frame.body.registers[reg.0 as usize].bits(),
                ) {
                    (VLoc::VPred(pred), _) => saved.preds.push(pred),
                    (VLoc::VReg(word), bits) => {
                        saved.words.extend((0..bits.div_ceil(32) as u8).map(|n| word.offset(n)));
                    }
                }
            }
            if let Some(recursion) = &frame.recursion {
                // The inner activation overwrites its caller's return site and frame pointers.
                saved.words.push(recursion.return_site);
                saved
                    .words
                    .extend(recursion.locals.iter().flat_map(|locals| [locals.outer, locals.base]));
            }
            for (param, n) in live.param_words {
                let first = self.param_vregs(param);
                saved.words.push(VReg(first.0 + n));
            }
        }
        saved
    }

    /// Saves values on the stack.
    fn push(&mut self, saved: &SavedState) {
        let mut values: Vec<Arg> = saved.words.iter().map(|&word| Arg::vreg(word)).collect();
        values.extend(
            saved
                .preds
                .chunks(PREDS_PER_WORD)
                .map(|preds| self.preds_as_word(preds)),
        );
        let stack = self.stack();
        for (n, value) in (0..).zip(values) {
            self.emit(on_stack(Op::machine(Opcode::St).src(&[Arg::vreg(stack), value]), n));
        }
        // The stack grows upwards.
        let grown = Op::machine(Opcode::Iadd3).src(&[Arg::vreg(stack), Arg::imm(4 * u64::from(saved.n_words()))]);
        self.emit(grown.dst(stack));
    }

    /// Restores values from the stack.
    fn pop(&mut self, saved: &SavedState) {
        let stack = self.stack();
        let bytes = 4 * saved.n_words() as i32;
        let shrunk = Op::machine(Opcode::Iadd3).src(&[Arg::vreg(stack), Arg::imm(u64::from(-bytes as u32))]);
        self.emit(shrunk.dst(stack));
        for (n, &word) in (0..).zip(&saved.words) {
            self.emit(on_stack(Op::machine(Opcode::Ld).dst(word).src(&[Arg::vreg(stack)]), n));
        }
        for (at, preds) in (saved.words.len() as i32..).zip(saved.preds.chunks(PREDS_PER_WORD)) {
            let word = self.temp();
            self.emit(on_stack(Op::machine(Opcode::Ld).dst(word).src(&[Arg::vreg(stack)]), at));
            for (n, &pred) in preds.iter().enumerate() {
                let bit = self.compute(lop(Arg::vreg(word), Arg::imm(1 << n), Arg::ZERO, 0xc0));
                let is_set = Op::machine(Opcode::Isetp).src(&[bit, Arg::ZERO]).pdst(pred);
                self.emit(is_set.mods(|mods| mods.cmp = Cmp::Ne));
            }
        }
    }

    /// Packs up to 32 predicates into a word, the first in bit 0.
    fn preds_as_word(&mut self, preds: &[VPred]) -> Arg {
        let mut word = Arg::ZERO;
        for (n, &pred) in preds.iter().enumerate() {
            let bit = Op::machine(Opcode::Sel)
                .src(&[Arg::imm(1 << n), Arg::ZERO])
                .psrc(VGuard::pred(pred));
            let bit = self.compute(bit);
            // 0xfc is the truth table of a | b.
            word = self.compute(lop(word, bit, Arg::ZERO, 0xfc));
        }
        word
    }

    pub(super) fn new_label(&mut self) -> usize {
        self.label_blocks.push(None);
        self.label_blocks.len() - 1
    }
}

fn on_stack(op: Op, n: i32) -> Op {
    op.mods(|mods| {
        mods.space = Space::Local;
        mods.access = Access::one(4);
        mods.offset = 4 * n;
    })
}
