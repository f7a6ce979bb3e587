//! Atomics, asynchronous copies, and matrix loads and stores.

use super::convert::isa_type;
use super::integer::parts;
use super::memory::{cache_of, scope_of};
use super::qualifiers::MEMORY_QUALIFIERS;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::lower::code::{Arg, Op};
use warpwave_isa::inst::{AtomOp, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space};

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `atom` and `red`, with the fences of their memory order.
    pub(super) fn atomic(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.has(".async") {
            return self.reduce_async(form);
        }
        form.only(MEMORY_QUALIFIERS)?;
        if self.access_space(form, usize::from(form.opcode() == "atom")) == Space::Local {
            return Err(form.malformed("an atomic on a `.local` variable, which only one thread can reach"));
        }
        let op = atomic_operation(form).ok_or_else(|| form.unsupported())?;
        let ty = match form.ty() {
            Type::B128 => Some(Ty::U128),
            ty => isa_type(ty),
        };
        let ty = ty.filter(|ty| is_ptx_atomic(op, *ty));
        let ty = ty.ok_or_else(|| form.unsupported())?;
        // As PTX defines them: a release is a fence and then the access, an acquire the reverse.
        if form.has(".release") || form.has(".acq_rel") {
            self.release(scope_of(form));
        }
        match vector(form) {
            Some(n) => self.atomic_vector(form, n)?,
            None => self.atomic_scalar(form, op, ty)?,
        }
        if form.has(".acquire") || form.has(".acq_rel") {
            self.acquire(scope_of(form));
        }
        Ok(())
    }

    /// Selects an atomic on one element.
    fn atomic_scalar(&mut self, form: &Form<'t, 'a>, op: AtomOp, ty: Ty) -> Selected {
        let returns = form.opcode() == "atom";
        let address = usize::from(returns);
        let mem = self.mem_operand(form, address, self.access_space(form, address))?;
        let mut args = [mem.base, Arg::ZERO, Arg::ZERO];
        // A cache policy is the last operand, and has no effect.
        let hints = usize::from(form.has(".L2::cache_hint"));
        for n in address + 1..(form.operands().len().saturating_sub(hints)).min(address + 3) {
            args[n - address] = self.src(form, n)?;
        }
        let opcode = if returns { Opcode::Atom } else { Opcode::Red };
        let mut atomic = Op::machine(opcode).src(&args).mods(|mods| {
            mods.atom = op;
            mods.ty = ty;
            mods.access = Access::one(ty.bytes());
            mods.space = mem.space;
            mods.offset = mem.offset as i32;
            mods.scope = scope_of(form);
        });
        if returns {
            atomic.dst = Some(self.dst(form, 0)?);
        }
        self.emit(atomic);
        Ok(())
    }

    /// Selects `cp.async` and its groups. Bulk copies and mbarrier arrivals are selected elsewhere.
    pub(super) fn copy_async(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.has(".mbarrier") {
            return self.mbarrier_after_copies(form);
        }
        if form.has(".bulk") {
            return self.bulk_copy(form);
        }
        if !form.has(".async") {
            return Err(form.unsupported());
        }
        if form.has(".commit_group") {
            form.only(&[".async", ".commit_group"])?;
            self.emit(Op::machine(Opcode::Ldgdepbar));
            return Ok(());
        }
        if form.has(".wait_group") || form.has(".wait_all") {
            form.only(&[".async", ".wait_group", ".wait_all"])?;
            return self.wait_for_copies(form);
        }
        form.only(MEMORY_QUALIFIERS)?;
        let operands = form.operands();
        let size = match operands.get(2) {
            Some(Value::Int(size @ (4 | 8 | 16))) => *size as u8,
            _ => return Err(form.malformed("the size of a copy must be 4, 8 or 16 bytes")),
        };
        let to = self.mem_operand(form, 0, Space::Shared)?;
        let from = self.mem_operand(form, 1, Space::Global)?;
        // The displacement of LDGSTS belongs to the global address.
        let to_address = match to.offset {
            0 => to.base,
            offset => self.compute(Op::machine(Opcode::Iadd3).src(&[to.base, Arg::imm(u64::from(offset as u32))])),
        };
        let hints = usize::from(form.has(".L2::cache_hint"));
        let valid = match operands[..operands.len().saturating_sub(hints)].get(3) {
            Some(Value::Register(reg)) if self.register_type(*reg) == Type::Pred => {
                // A copy with an ignored source reads 0 bytes, and writes zeros.
                let ignored = self.src_pred(form, form.operand(3)?)?;
                self.compute(
                    Op::machine(Opcode::Sel)
                        .src(&[Arg::ZERO, Arg::imm(size.into())])
                        .psrc(ignored),
                )
            }
            Some(value) => self.arg(form, value, Type::U32)?,
            None => Arg::imm(size.into()),
        };
        self.emit(
            Op::machine(Opcode::Ldgsts)
                .src(&[to_address, from.base, valid])
                .mods(|mods| {
                    mods.access = Access::one(size);
                    mods.offset = from.offset as i32;
                    mods.cache = cache_of(form);
                }),
        );
        Ok(())
    }

    /// Selects `cp.async.wait_group` and `cp.async.wait_all`.
    fn wait_for_copies(&mut self, form: &Form<'t, 'a>) -> Selected {
        let pending = match form.operands().first() {
            Some(Value::Int(pending)) => u8::try_from(*pending).map_err(|_| form.malformed("at most 255 groups"))?,
            _ => {
                // `wait_all` also waits for copies without a group, so it commits them.
                self.emit(Op::machine(Opcode::Ldgdepbar));
                0
            }
        };
        self.emit(Op::machine(Opcode::Depbar).mods(|mods| mods.count = pending));
        Ok(())
    }

    /// Selects `ldmatrix`: one LDSM, and a copy to each target register.
    pub(super) fn load_matrix(&mut self, form: &Form<'t, 'a>) -> Selected {
        let targets = parts(form.operand(0)?);
        check_matrix_count(form, targets.len())?;
        let mem = self.mem_operand(form, 1, Space::Shared)?;
        let count = targets.len() as u8;
        // LDSM writes consecutive registers. The copies to the targets are usually removed.
        let group = self.code.new_group(count);
        self.emit(
            Op::machine(Opcode::Ldsm)
                .dst(group)
                .src(&[mem.base.part(0)])
                .mods(|mods| {
                    mods.space = Space::Shared;
                    mods.offset = mem.offset as i32;
                    mods.count = count;
                    mods.trans = form.has(".trans");
                }),
        );
        for (n, target) in (0..).zip(targets) {
            let result = self.dst_of(form, target, Type::B32)?;
            self.copy(result, Arg::vreg(group.offset(n)), Type::B32);
        }
        Ok(())
    }

    /// Expands `stmatrix`: each lane stores its elements at addresses shuffled from other lanes.
    ///
    /// Lane l holds two elements of row l / 4 of each matrix, from element 2 (l % 4) on. With `.trans` a row is a column.
    pub(super) fn store_matrix(&mut self, form: &Form<'t, 'a>) -> Selected {
        let n = parts(form.operand(1)?).len();
        check_matrix_count(form, n)?;
        let registers: String = (0..n).map(|n| format!("%v{n}, ")).collect();
        let mut code = format!(".reg .b32 %at, {registers}%l, %from, %in, %line, %x;\nmov.u32 %l, %laneid;\n");
        // Lane `%from` has the address of the row, and `%in` is the offset in it.
        let line = "shfl.sync.idx.b32 %line, %at, %from, 31, 0xffffffff;\nadd.u32 %line, %line, %in;\n";
        if form.has(".trans") {
            code += "and.b32 %from, %l, 3;\nshl.b32 %from, %from, 1;\nshr.u32 %in, %l, 2;\nshl.b32 %in, %in, 1;\n";
            for n in 0..n {
                code += &format!("{line}st.shared.b16 [%line], %v{n};\nadd.u32 %from, %from, 1;\n");
                code +=
                    &format!("{line}shr.u32 %x, %v{n}, 16;\nst.shared.b16 [%line], %x;\nadd.u32 %from, %from, 7;\n");
            }
        } else {
            code += "shr.u32 %from, %l, 2;\nand.b32 %in, %l, 3;\nshl.b32 %in, %in, 2;\n";
            for n in 0..n {
                code += &format!("{line}st.shared.b32 [%line], %v{n};\nadd.u32 %from, %from, 8;\n");
            }
        }
        self.expand(form, &code)
    }
}

/// Checks the number of matrices against the number of registers.
fn check_matrix_count(form: &Form<'_, '_>, registers: usize) -> Selected {
    const KNOWN: &[&str] = &[
        ".sync",
        ".aligned",
        ".m8n8",
        ".x1",
        ".x2",
        ".x4",
        ".trans",
        ".shared",
        ".shared::cta",
    ];
    form.only(KNOWN)?;
    let known = [(".x1", 1), (".x2", 2), (".x4", 4)]
        .into_iter()
        .find(|(word, _)| form.has(word));
    match known {
        Some((_, count)) if form.types == [Type::B16] && form.has(".m8n8") => match count == registers {
            true => Ok(()),
            false => Err(form.malformed("each matrix needs one register: `.x1`, `.x2` and `.x4` set the count")),
        },
        _ => Err(form.unsupported()),
    }
}

/// Returns the number of elements of a vector atomic.
fn vector(form: &Form<'_, '_>) -> Option<usize> {
    [(".v2", 2), (".v4", 4), (".v8", 8)]
        .into_iter()
        .find(|(word, _)| form.has(word))
        .map(|(_, n)| n)
}

/// True if PTX has this atomic operation for the type.
fn is_ptx_atomic(op: AtomOp, ty: Ty) -> bool {
    let whole = !ty.is_float() && matches!(ty.bytes(), 4 | 8);
    let half = matches!(ty, Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2);
    match op {
        AtomOp::Add => whole || half || matches!(ty, Ty::F32 | Ty::F64),
        AtomOp::Min | AtomOp::Max => whole || half,
        AtomOp::Inc | AtomOp::Dec => ty == Ty::U32,
        AtomOp::Cas => whole || matches!(ty, Ty::U16 | Ty::U128),
        AtomOp::Exch => whole || matches!(ty, Ty::F32 | Ty::F64 | Ty::U128),
        _ => whole,
    }
}

fn atomic_operation(form: &Form<'_, '_>) -> Option<AtomOp> {
    let operations = [
        (".add", AtomOp::Add),
        (".min", AtomOp::Min),
        (".max", AtomOp::Max),
        (".inc", AtomOp::Inc),
        (".dec", AtomOp::Dec),
        (".and", AtomOp::And),
        (".or", AtomOp::Or),
        (".xor", AtomOp::Xor),
        (".exch", AtomOp::Exch),
        (".cas", AtomOp::Cas),
    ];
    operations
        .into_iter()
        .find(|(name, _)| form.has(name))
        .map(|(_, op)| op)
}
