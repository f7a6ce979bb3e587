//! Branches, ends, barriers, fences.

use super::memory::scope_of;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::lower::code::{Arg, Op};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn control(&mut self, form: &Form<'t, 'a>) -> Selected {
        match form.opcode() {
            "bra" => self.branch(form),
            "ret" | "exit" => {
                form.only(&[".uni"])?;
                let mut op = Op::row(Opcode::Exit);
                if form.opcode() == "ret" && self.frames.len() > 1 {
                    op = Op::row(Opcode::Bra);
                    op.target = Some(self.frame().end());
                }
                self.emit(op);
                Ok(())
            }
            "trap" => {
                self.emit(Op::row(Opcode::Trap));
                Ok(())
            }
            "bar" | "barrier" => self.barrier(form),
            "membar" | "fence" => self.fence(form),
            "nanosleep" => {
                let time = self.src32(form, 0)?;
                self.emit(Op::row(Opcode::Nanosleep).src(&[time]));
                Ok(())
            }
            "call" => self.call(form),
            _ => Err(form.unsupported()),
        }
    }

    /// Labels become blocks when all of them are known; until then the target is the label.
    fn branch(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".uni"])?;
        let Some(Value::Label(label)) = form.operands().first() else {
            return Err(form.unsupported());
        };
        let mut op = Op::row(Opcode::Bra);
        op.target = Some(self.frame().labels + label.0 as usize);
        op.uniform = form.has(".uni");
        self.emit(op);
        Ok(())
    }

    fn barrier(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".sync", ".arrive", ".warp", ".cta", ".aligned"])?;
        let mut args = [Arg::ZERO; 2];
        for (arg, value) in args.iter_mut().zip(form.operands()) {
            *arg = self.arg(form, value, Type::U32)?;
        }
        let op = match form.has(".warp") {
            true => Op::row(Opcode::Warpsync).src(&args[..1]),
            false => Op::row(Opcode::Bar).src(&args),
        };
        self.emit(op.mods(|mods| mods.count = u8::from(form.has(".arrive"))));
        Ok(())
    }

    fn fence(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".cta", ".gl", ".sys", ".gpu", ".cluster", ".sc", ".acq_rel"])?;
        self.emit(Op::row(Opcode::Membar).mods(|mods| mods.scope = scope_of(form)));
        Ok(())
    }
}
