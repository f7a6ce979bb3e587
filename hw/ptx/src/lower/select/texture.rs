//! Textures and surfaces, by the handles that a launch gives.

use super::convert::isa_type;
use super::integer::parts;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op};
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Access;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn texture(&mut self, form: &Form<'t, 'a>) -> Selected {
        match form.opcode() {
            "tex" => self.fetch(form),
            "suld" => self.surface_load(form),
            "sust" => self.surface_store(form),
            _ => Err(form.unsupported()),
        }
    }

    /// The handle, and the coordinates side by side.
    fn handle(&mut self, form: &Form<'t, 'a>, n: usize, ty: Type) -> Result<[Arg; 2], Diagnostic> {
        let [handle @ (Value::Register(_) | Value::Int(_)), coordinates] = handle_parts(&form.operands()[n]) else {
            return Err(form
                .unsupported()
                .help("give the kernel the handle of a texture or surface object as a parameter"));
        };
        let handle = self.arg(form, handle, Type::B64)?;
        let group = self.code.group(2);
        let coordinates = parts(coordinates);
        for n in 0..2 {
            let place = match coordinates.get(usize::from(n)) {
                Some(value) => self.arg(form, value, ty)?,
                None => Arg::ZERO,
            };
            self.emit(Op::row(Opcode::Mov).dst(group.offset(n)).src(&[place]));
        }
        Ok([handle, Arg::word(group)])
    }

    fn fetch(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".1d", ".2d", ".v4"])?;
        let &[ty, coordinates @ (Type::F32 | Type::S32)] = form.types.as_slice() else {
            return Err(form.unsupported());
        };
        let args = self.handle(form, 1, coordinates)?;
        let group = self.code.group(4);
        let op = Op::row(Opcode::Tex).dst(group).src(&args).when(self.guard);
        self.emit(op.mods(|mods| {
            mods.ty = isa_type(ty).unwrap_or_default();
            mods.from = if coordinates == Type::F32 { Ty::F32 } else { Ty::S32 };
            mods.count = dimensions(form);
        }));
        for (n, target) in (0..).zip(parts(&form.operands()[0])) {
            if *target != Value::Sink {
                let register = self.dst_of(form, target, Type::B32)?;
                self.copy(register, Arg::word(group.offset(n)), Type::B32);
            }
        }
        Ok(())
    }

    fn surface_load(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(SURFACE_WORDS)?;
        let targets = parts(&form.operands()[0]);
        let access = surface_access(form, targets.len());
        let args = self.handle(form, 1, Type::S32)?;
        let op = Op::row(Opcode::Suld).src(&args).mods(|mods| {
            mods.access = access;
            mods.count = dimensions(form);
            mods.lut = outside(form);
        });
        self.load_into(form, op, targets, access)
    }

    fn surface_store(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(SURFACE_WORDS)?;
        let values = parts(&form.operands()[1]);
        let access = surface_access(form, values.len());
        let [handle, place] = self.handle(form, 0, Type::S32)?;
        let value = self.gather(form, values, access)?;
        let op = Op::row(Opcode::Sust).src(&[handle, place, value]);
        self.emit(op.mods(|mods| {
            mods.access = access;
            mods.count = dimensions(form);
            mods.lut = outside(form);
        }));
        Ok(())
    }
}

const SURFACE_WORDS: &[&str] = &[
    ".b", ".1d", ".2d", ".v2", ".v4", ".trap", ".clamp", ".zero", ".ca", ".cg", ".cs", ".cv", ".wb", ".wt",
];

fn handle_parts<'v, 'a>(value: &'v Value<'a>) -> &'v [Value<'a>] {
    match value {
        Value::Handle(parts) => parts,
        _ => &[],
    }
}

fn dimensions(form: &Form<'_, '_>) -> u8 {
    if form.has(".2d") { 2 } else { 1 }
}

/// The order of `warpwave_isa::exec::texture::Outside`.
fn outside(form: &Form<'_, '_>) -> u8 {
    match () {
        () if form.has(".clamp") => 1,
        () if form.has(".zero") => 2,
        () => 0,
    }
}

fn surface_access(form: &Form<'_, '_>, count: usize) -> Access {
    Access {
        bytes: form.ty().bytes() as u8,
        count: count as u8,
        signed: false,
    }
}
