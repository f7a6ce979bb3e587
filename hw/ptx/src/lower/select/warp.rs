//! Data exchange between the lanes of a warp.
//!
//! The lanes of a mask must be converged. So a WARPSYNC comes first, and the `reconverge` pass drops it where it is redundant.

use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::lower::code::{Arg, Op, VGuard};
use warpwave_isa::inst::{AtomOp, ShflMode, Ty, VoteMode};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn warp(&mut self, form: &Form<'t, 'a>) -> Selected {
        match form.opcode() {
            "shfl" => self.shuffle(form),
            "vote" => self.vote(form),
            "match" => self.matching(form),
            "redux" => self.reduction(form),
            "activemask" => {
                form.only(&[])?;
                let result = self.dst(form, 0)?;
                // A ballot of true has a bit for each active lane.
                self.emit(Op::machine(Opcode::Vote).dst(result).psrc(VGuard::ALWAYS));
                Ok(())
            }
            "elect" => self.elect(form),
            _ => Err(form.unsupported()),
        }
    }

    /// Emits the WARPSYNC for the mask in operand `mask`.
    pub(super) fn gather_lanes(&mut self, form: &Form<'t, 'a>, mask: usize) -> Selected {
        // Forms from before PTX 6.0 have no mask and wait for no lane.
        let Some(value) = form.operands().get(mask) else {
            return Ok(());
        };
        let mask = self.arg(form, value, Type::U32)?;
        self.emit(Op::machine(Opcode::Warpsync).src(&[mask]));
        Ok(())
    }

    /// Selects `shfl`, with its optional predicate.
    fn shuffle(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".sync", ".up", ".down", ".bfly", ".idx"])?;
        self.gather_lanes(form, 4)?;
        let args = [self.src(form, 1)?, self.src32(form, 2)?, self.src32(form, 3)?];
        let mode = match () {
            () if form.has(".up") => ShflMode::Up,
            () if form.has(".down") => ShflMode::Down,
            () if form.has(".bfly") => ShflMode::Bfly,
            () => ShflMode::Idx,
        };
        let mut op = Op::machine(Opcode::Shfl).src(&args).mods(|mods| mods.shfl = mode);
        if let Value::Pair(_, in_range) = form.operand(0)? {
            op.pdst[0] = self.dst_pred(form, in_range)?;
        }
        op.dst = Some(self.dst(form, 0)?);
        self.emit(op);
        Ok(())
    }

    /// Selects `vote`. Only a ballot has a number as its result.
    fn vote(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".sync", ".all", ".any", ".uni", ".ballot"])?;
        self.gather_lanes(form, 2)?;
        let source = self.src_pred(form, form.operand(1)?)?;
        let mode = match () {
            () if form.has(".all") => VoteMode::All,
            () if form.has(".any") => VoteMode::Any,
            () if form.has(".uni") => VoteMode::Uni,
            () => VoteMode::Ballot,
        };
        let mut op = Op::machine(Opcode::Vote).psrc(source).mods(|mods| mods.vote = mode);
        if mode == VoteMode::Ballot {
            op.dst = Some(self.dst(form, 0)?);
        } else {
            op.pdst[0] = self.dst_pred(form, form.operand(0)?)?;
        }
        self.emit(op);
        Ok(())
    }

    /// Selects `match`.
    fn matching(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".sync", ".any", ".all"])?;
        self.gather_lanes(form, 2)?;
        let value = self.src(form, 1)?;
        let all = form.has(".all");
        let mut op = Op::machine(Opcode::Match).src(&[value]).mods(|mods| {
            mods.vote = if all { VoteMode::All } else { VoteMode::Any };
            mods.ty = super::integer::sign(form.ty());
        });
        if let Value::Pair(_, same) = form.operand(0)? {
            op.pdst[0] = self.dst_pred(form, same)?;
        }
        op.dst = Some(self.dst_of(form, form.operand(0)?, Type::U32)?);
        self.emit(op);
        Ok(())
    }

    /// Selects `redux`.
    fn reduction(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".sync", ".add", ".min", ".max", ".and", ".or", ".xor", ".NaN"])?;
        let is_float = form.ty() == Type::F32;
        // REDUX adds integers only. For floats it has minimum and maximum.
        if is_float && !form.has(".min") && !form.has(".max") {
            return Err(form.unsupported());
        }
        self.gather_lanes(form, 2)?;
        let operations = [
            (".min", AtomOp::Min),
            (".max", AtomOp::Max),
            (".and", AtomOp::And),
            (".or", AtomOp::Or),
            (".xor", AtomOp::Xor),
        ];
        let found = operations.into_iter().find(|(name, _)| form.has(name));
        let result = self.dst(form, 0)?;
        let value: Arg = self.src(form, 1)?;
        let op = Op::machine(Opcode::Redux).dst(result).src(&[value]).mods(|mods| {
            mods.atom = found.map_or(AtomOp::Add, |(_, op)| op);
            mods.ty = if is_float {
                Ty::F32
            } else {
                super::integer::sign(form.ty())
            };
            mods.unordered = form.has(".NaN");
        });
        self.emit(op);
        Ok(())
    }
}
