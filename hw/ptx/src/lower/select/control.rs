//! Control flow: branches, exits, barriers and fences.

use super::memory::scope_of;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::lower::code::{Arg, Op, VGuard};
use warpwave_isa::inst::{Cmp, Scope};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Special;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn control(&mut self, form: &Form<'t, 'a>) -> Selected {
        match form.opcode() {
            "bra" => self.branch(form),
            "ret" | "exit" => {
                form.only(&[".uni"])?;
                let mut op = Op::machine(Opcode::Exit);
                // `ret` of an inlined function goes on after its code.
                if form.opcode() == "ret" && self.frames.len() > 1 {
                    op = Op::machine(Opcode::Bra);
                    op.target = Some(self.frame().end());
                }
                self.emit(op);
                Ok(())
            }
            "trap" => {
                form.only(&[])?;
                self.emit(Op::machine(Opcode::Trap));
                Ok(())
            }
            "bar" | "barrier" => self.barrier(form),
            "membar" | "fence" => self.fence(form),
            "nanosleep" => {
                form.only(&[])?;
                let time = self.src32(form, 0)?;
                self.emit(Op::machine(Opcode::Nanosleep).src(&[time]));
                Ok(())
            }
            "call" => self.call(form),
            "brx" => self.branch_by_index(form),
            _ => Err(form.unsupported()),
        }
    }

    /// Selects `bra`. The target is a label number until all blocks are known.
    fn branch(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".uni"])?;
        let Some(Value::Label(label)) = form.operands().first() else {
            return Err(form.unsupported());
        };
        let mut op = Op::machine(Opcode::Bra);
        op.target = Some(self.frame().labels + label.0 as usize);
        // `divergence` trusts this promise.
        op.uniform = form.has(".uni");
        self.emit(op);
        Ok(())
    }

    /// Selects `brx.idx`: a binary search over the table of targets.
    fn branch_by_index(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".idx", ".uni"])?;
        let Some(&Value::Targets(table)) = form.operands().get(1) else {
            return Err(form.malformed("expected a table of targets"));
        };
        let index = self.src32(form, 0)?;
        let frame = self.frame();
        let targets: Vec<usize> = frame.body.tables[table as usize]
            .iter()
            .map(|label| frame.labels + label.0 as usize)
            .collect();
        let skip_label = self.skip_if_guarded();
        self.select_target(index, 0, &targets, form.has(".uni"));
        self.end_skip(skip_label);
        Ok(())
    }

    /// Branches to target `index - first` of `targets`.
    fn select_target(&mut self, index: Arg, first: u32, targets: &[usize], uniform: bool) {
        let jump = |target: usize| {
            let mut op = Op::machine(Opcode::Bra);
            op.target = Some(target);
            op.uniform = uniform;
            op
        };
        let [lower @ .., last] = targets else { return };
        // Equal targets in a row need no further comparison. An index beyond the table is undefined in PTX.
        if lower.iter().all(|target| target == last) {
            self.emit(jump(*last));
            return;
        }
        let middle = targets.len() / 2;
        let border = Arg::imm(u64::from(first) + middle as u64);
        let below = self.code.new_pred();
        let compare = Op::machine(Opcode::Isetp).src(&[index, border]).pdst(below);
        self.emit(compare.mods(|mods| mods.cmp = Cmp::Lt));
        let label = self.new_label();
        self.emit(jump(label).guard(VGuard::pred(below)));
        self.select_target(index, first + middle as u32, &targets[middle..], uniform);
        self.label(label);
        self.select_target(index, first, &targets[..middle], uniform);
    }

    /// Selects `bar.red`: the barrier counts true predicates, or false ones for `.and`.
    fn reduction_barrier(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".red", ".cta", ".aligned", ".popc", ".and", ".or"])?;
        let [result, numbers @ .., pred] = form.operands() else {
            return Err(form.unsupported());
        };
        let mut args = [Arg::ZERO; 2];
        for (arg, value) in args.iter_mut().zip(numbers) {
            *arg = self.arg(form, value, Type::U32)?;
        }
        let source = self.src_pred(form, pred)?;
        let counted = if form.has(".and") { source.negated() } else { source };
        self.emit(Op::machine(Opcode::BarRed).src(&args).psrc(counted));
        let count = self.special_word(Special::BarrierCount);
        if form.has(".popc") {
            let result = self.dst_of(form, result, Type::U32)?;
            self.copy(result, count, Type::U32);
            return Ok(());
        }
        let mut op = Op::machine(Opcode::Isetp).src(&[count, Arg::ZERO]).mods(|mods| {
            // All are true if the count of false ones is 0.
            mods.cmp = if form.has(".and") { Cmp::Eq } else { Cmp::Ne };
        });
        op.pdst[0] = self.dst_pred(form, result)?;
        self.emit(op);
        Ok(())
    }

    /// Selects `bar` and `barrier`.
    fn barrier(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.has(".red") {
            return self.reduction_barrier(form);
        }
        if form.has(".cluster") {
            return self.cluster_barrier(form);
        }
        form.only(&[".sync", ".arrive", ".warp", ".cta", ".aligned"])?;
        let mut args = [Arg::ZERO; 2];
        for (arg, value) in args.iter_mut().zip(form.operands()) {
            *arg = self.arg(form, value, Type::U32)?;
        }
        let (op, count) = match form.has(".warp") {
            // `count` 1 marks a sync of the text, which `reconverge` keeps.
            true => (Op::machine(Opcode::Warpsync).src(&args[..1]), 1),
            false => (Op::machine(Opcode::Bar).src(&args), u8::from(form.has(".arrive"))),
        };
        self.emit(op.mods(|mods| mods.count = count));
        Ok(())
    }

    /// Selects `barrier.cluster`. An arrival releases unless relaxed; a wait acquires.
    fn cluster_barrier(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[
            ".cluster", ".arrive", ".wait", ".release", ".acquire", ".relaxed", ".aligned",
        ])?;
        // The wait acquires at device scope, because a cluster spans SMs.
        if form.has(".wait") {
            self.emit(Op::machine(Opcode::ClusterWait));
            self.acquire(Scope::Gpu);
            return Ok(());
        }
        if !form.has(".relaxed") {
            self.release(Scope::Gpu);
        }
        self.emit(Op::machine(Opcode::ClusterArrive));
        Ok(())
    }

    /// Selects `membar` and `fence`: both release and acquire, unless one is named. A fence restricted to shared memory orders all
    /// memory.
    fn fence(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[
            ".cta",
            ".gl",
            ".sys",
            ".gpu",
            ".cluster",
            ".sc",
            ".acq_rel",
            ".acquire",
            ".release",
            ".proxy",
            ".async",
            ".async::generic",
            ".alias",
            ".tensormap::generic",
            ".sync_restrict::shared::cta",
            ".sync_restrict::shared::cluster",
            ".global",
            ".shared::cta",
            ".shared::cluster",
            ".mbarrier_init",
        ])?;
        if form.has(".proxy") {
            self.emit(Op::machine(Opcode::FenceView));
            return Ok(());
        }
        // The initialization is in shared memory, so the fence needs no wider scope.
        let scope = if form.has(".mbarrier_init") {
            Scope::Cta
        } else {
            scope_of(form)
        };
        match () {
            () if form.has(".acquire") => self.acquire(scope),
            // At CTA scope a MEMBAR both releases and acquires.
            () if form.has(".release") || scope == Scope::Cta => self.release(scope),
            () => {
                self.release(scope);
                self.acquire(scope);
            }
        }
        Ok(())
    }
}
