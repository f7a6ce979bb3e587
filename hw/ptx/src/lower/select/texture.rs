//! Textures and surfaces, by handles in registers, or by references that the host binds at launch.
//!
//! An image has one level, so levels and derivatives have no effect.

use super::convert::isa_type;
use super::integer::parts;
use super::memory::vector_parts;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Bits, Op, VGuard};
use crate::lower::layout::VarLoc;
use warpwave_isa::inst::{Mods, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Access;

/// Image geometries of PTX: dimensions, and true for a layered image.
const GEOMETRIES: [(&str, u8, bool); 7] = [
    (".1d", 1, false),
    (".2d", 2, false),
    (".3d", 3, false),
    (".a1d", 1, true),
    (".a2d", 2, true),
    (".cube", 3, false),
    (".acube", 3, true),
];

/// Queries, in the order of `warpwave_isa::exec::texture::query`.
const QUERIES: [&str; 13] = [
    ".width",
    ".height",
    ".depth",
    ".channel_data_type",
    ".channel_order",
    ".normalized_coords",
    ".array_size",
    ".num_mipmap_levels",
    ".num_samples",
    ".filter_mode",
    ".addr_mode_0",
    ".addr_mode_1",
    ".addr_mode_2",
];

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn texture(&mut self, form: &Form<'t, 'a>) -> Selected {
        match form.opcode() {
            "tex" | "tld4" => self.fetch(form),
            "suld" => self.surface_load(form),
            "sust" => self.surface_store(form),
            "txq" | "suq" => self.query(form),
            _ => Err(form.unsupported()),
        }
    }

    /// Returns the handle and the group of coordinates, with the layer last.
    fn handle(&mut self, form: &Form<'t, 'a>, n: usize, ty: Type) -> Result<[Arg; 2], Diagnostic> {
        let (handle, coordinates) = match handle_parts(form.operand(n)?) {
            [image, coordinates] => (self.image_handle(form, image)?, coordinates),
            [image, sampler, coordinates] if form.opcode() == "tex" || form.opcode() == "tld4" => {
                let parts = [self.image_handle(form, image)?, self.image_handle(form, sampler)?];
                (self.with_sampler(parts), coordinates)
            }
            _ => return Err(form.unsupported()),
        };
        let (dimensions, layered) = geometry(form)?;
        let words = dimensions + u8::from(layered);
        // TEX reads at least two coordinates.
        let group = self.code.new_group(words.max(2));
        let mut coordinates = parts(coordinates).to_vec();
        // A `.v4` of PTX may have unused elements behind these.
        coordinates.truncate(words.into());
        if coordinates.len() < words.into() {
            return Err(form.malformed("fewer coordinates than the image has dimensions"));
        }
        if layered {
            // PTX writes the layer first, TEX reads it last.
            coordinates.rotate_left(1);
        }
        for n in 0..words.max(2) {
            let place = match coordinates.get(usize::from(n)) {
                Some(value) => self.arg(form, value, ty)?,
                None => Arg::ZERO,
            };
            self.emit(Op::machine(Opcode::Mov).dst(group.offset(n)).src(&[place]));
        }
        Ok([handle, Arg::vreg(group)])
    }

    /// Selects `tex` and `tld4`. `tld4` returns one channel of four texels.
    fn fetch(&mut self, form: &Form<'t, 'a>) -> Selected {
        let gathers = form.opcode() == "tld4";
        let known: &[&str] = match gathers {
            true => &[".2d", ".a2d", ".cube", ".acube", ".v4", ".r", ".g", ".b", ".a"],
            false => &[
                ".1d", ".2d", ".3d", ".a1d", ".a2d", ".cube", ".acube", ".v4", ".level", ".grad", ".base",
            ],
        };
        let is_cube = form.has(".cube") || form.has(".acube");
        form.only(known)?;
        let &[ty, coordinates @ (Type::F32 | Type::S32)] = form.types.as_slice() else {
            return Err(form.unsupported());
        };
        // A level or derivatives are accepted and not read: an image has one level.
        let more = match () {
            () if form.has(".grad") => 2,
            () if form.has(".level") => 1,
            () => 0,
        };
        if form.operands().len() != 2 + more || ((gathers || is_cube) && coordinates != Type::F32) {
            return Err(form.unsupported());
        }
        let args = self.handle(form, 1, coordinates)?;
        // TEX writes four registers, even if the text reads fewer.
        let group = self.code.new_group(4);
        let op = Op::machine(Opcode::Tex).dst(group).src(&args).guard(self.guard);
        let channel = [".r", ".g", ".b", ".a"].iter().position(|&word| form.has(word));
        let (dimensions, layered) = geometry(form)?;
        self.emit(op.mods(|mods| {
            mods.ty = isa_type(ty).unwrap_or_default();
            mods.from = if coordinates == Type::F32 { Ty::F32 } else { Ty::S32 };
            (mods.count, mods.high, mods.trans) = (dimensions, layered, is_cube);
            // 0 samples, and 1 to 4 gather a channel.
            mods.lut = channel.map_or(0, |channel| channel as u8 + 1);
        }));
        let results = match form.operand(0)? {
            // The whole image is always resident.
            Value::Pair(results, resident) => {
                let pred = self.dst_pred(form, resident)?;
                self.copy_pred(pred, VGuard::ALWAYS);
                results
            }
            results => results,
        };
        if parts(results).len() != 4 {
            return Err(form.malformed("a fetch returns four values; write `_` for unused ones"));
        }
        for (n, target) in (0..).zip(parts(results)) {
            if *target != Value::Sink {
                let register = self.dst_of(form, target, Type::B32)?;
                self.copy(register, Arg::vreg(group.offset(n)), Type::B32);
            }
        }
        Ok(())
    }

    /// Returns the handle of an image: in a register, of a reference, or in a parameter.
    fn image_handle(&mut self, form: &Form<'t, 'a>, image: &Value<'a>) -> Result<Arg, Diagnostic> {
        match image {
            Value::Symbol(symbol, 0) => match self.layout.location(*symbol) {
                Some(VarLoc::Handle(_) | VarLoc::Sampler(_)) => self.address_of(form, *symbol, 0),
                Some(VarLoc::Param(offset)) => Ok(Arg::of(Bits::Const {
                    bank: 0,
                    offset: offset as u16,
                })),
                _ => Err(form.malformed("this variable is no texture, surface or sampler reference")),
            },
            Value::Register(_) | Value::Int(_) => self.arg(form, image, Type::B64),
            _ => Err(form.unsupported()),
        }
    }

    /// Returns the handle of an image whose sampler is that of another one: the upper word names the sampler.
    fn with_sampler(&mut self, [image, sampler]: [Arg; 2]) -> Arg {
        let group = self.temp_pair();
        self.emit(Op::machine(Opcode::Mov).dst(group).src(&[image.part(0)]));
        self.emit(Op::machine(Opcode::Mov).dst(group.offset(1)).src(&[sampler.part(0)]));
        Arg::vreg(group)
    }

    /// Selects `txq` and `suq`: properties of an image.
    fn query(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&QUERIES)?;
        let index = QUERIES.iter().position(|&word| form.has(word));
        let index = index.ok_or_else(|| form.unsupported())?;
        let [result, Value::Address(handle, 0)] = form.operands() else {
            return Err(form.unsupported());
        };
        // A sampler of the text has no image to query.
        if let Value::Symbol(symbol, _) = **handle
            && let Some(VarLoc::Sampler(_)) = self.layout.location(symbol)
        {
            return Err(form.unsupported());
        }
        let handle = self.image_handle(form, handle)?;
        let result = self.dst_of(form, result, Type::B32)?;
        let group = self.code.new_group(4);
        let no_coordinates = self.temp_pair();
        for n in 0..2 {
            self.emit(Op::machine(Opcode::Mov).dst(no_coordinates.offset(n)));
        }
        let op = Op::machine(Opcode::Tex)
            .dst(group)
            .src(&[handle, Arg::vreg(no_coordinates)])
            .guard(self.guard);
        self.emit(op.mods(|mods| {
            // From 16 on, `lut` numbers a query.
            (mods.count, mods.from, mods.lut) = (1, Ty::S32, 16 + index as u8);
        }));
        self.copy(result, Arg::vreg(group), Type::B32);
        Ok(())
    }

    fn surface_load(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(SURFACE_QUALIFIERS)?;
        let targets = vector_parts(form, 0)?;
        let access = surface_access(form, targets.len());
        let args = self.handle(form, 1, Type::S32)?;
        let op = on_surface(form, Op::machine(Opcode::Suld).src(&args), access)?;
        self.load_into(form, op, targets, access)
    }

    fn surface_store(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(SURFACE_QUALIFIERS)?;
        let values = vector_parts(form, 1)?;
        let access = surface_access(form, values.len());
        let [handle, place] = self.handle(form, 0, Type::S32)?;
        let value = self.gather(form, values, access)?;
        let op = on_surface(form, Op::machine(Opcode::Sust).src(&[handle, place, value]), access)?;
        self.emit(op);
        Ok(())
    }
}

const SURFACE_QUALIFIERS: &[&str] = &[
    ".b", ".1d", ".2d", ".3d", ".a1d", ".a2d", ".v2", ".v4", ".trap", ".clamp", ".zero", ".ca", ".cg", ".cs", ".cv",
    ".wb", ".wt",
];

fn handle_parts<'v, 'a>(value: &'v Value<'a>) -> &'v [Value<'a>] {
    match value {
        Value::Handle(parts) => parts,
        _ => &[],
    }
}

fn geometry(form: &Form<'_, '_>) -> Result<(u8, bool), Diagnostic> {
    let known = GEOMETRIES.into_iter().find(|(word, ..)| form.has(word));
    known
        .map(|(_, dimensions, layered)| (dimensions, layered))
        .ok_or_else(|| form.unsupported())
}

fn on_surface(form: &Form<'_, '_>, op: Op, access: Access) -> Result<Op, Diagnostic> {
    let (dimensions, layered) = geometry(form)?;
    Ok(op.mods(|mods: &mut Mods| {
        mods.access = access;
        (mods.count, mods.high) = (dimensions, layered);
        mods.lut = boundary_mode(form);
    }))
}

/// Returns the boundary mode as in `warpwave_isa::exec::texture::BoundaryMode`.
fn boundary_mode(form: &Form<'_, '_>) -> u8 {
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
