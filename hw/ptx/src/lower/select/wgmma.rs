//! Warp-group products (`wgmma`): one HGMMA for every eight columns of the result.
//!
//! The scoreboard covers result registers, so `wgmma.fence` needs no operation.

use super::integer::parts;
use super::tensor::metadata_selector;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, OpKind, VGuard};
use warpwave_isa::inst::{MmaShape, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Guard;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `wgmma`, by its operation.
    pub(super) fn warp_group(&mut self, form: &Form<'t, 'a>) -> Selected {
        match () {
            () if form.has(".fence") => form.only(&[".fence", ".sync", ".aligned"]),
            () if form.has(".commit_group") => {
                form.only(&[".commit_group", ".sync", ".aligned"])?;
                self.emit(Op::machine(Opcode::GmmaCommit));
                Ok(())
            }
            () if form.has(".wait_group") => {
                form.only(&[".wait_group", ".sync", ".aligned"])?;
                let Some(Value::Int(groups)) = form.operands().first() else {
                    return Err(form.malformed("the number of groups must be an integer"));
                };
                let groups = u8::try_from(*groups).map_err(|_| form.malformed("at most 255 groups"))?;
                self.emit(Op::machine(Opcode::GmmaWait).mods(|mods| mods.count = groups));
                Ok(())
            }
            () => self.group_product(form),
        }
    }

    /// Selects `wgmma.mma_async`.
    fn group_product(&mut self, form: &Form<'t, 'a>) -> Selected {
        let tile = ColumnTile::of(form).ok_or_else(|| form.unsupported())?;
        let (sparse, [results, a, b], scale, rest) = match form.operands() {
            [results, a, b, metadata, selector, scale, rest @ ..] if form.has(".sp") => {
                (Some([metadata, selector]), [results, a, b], scale, rest)
            }
            [results, a, b, scale, rest @ ..] if !form.has(".sp") => (None, [results, a, b], scale, rest),
            _ => return Err(form.unsupported()),
        };
        let in_shared = !matches!(a, Value::Vector(_));
        let is_float = tile.sums != Type::S32;
        let ints: Vec<i128> = rest.iter().filter_map(int_of).collect();
        // Float products have two scale factors. Those of 16 bits then have the layout of each operand in shared memory.
        let n_signs = if is_float { 2 } else { 0 };
        let n_layouts = match (tile.can_transpose, in_shared) {
            (true, true) => 2,
            (true, false) => 1,
            (false, _) => 0,
        };
        if rest.len() != n_signs + n_layouts {
            let found = rest.len();
            let message = format!("{n_signs} scale factors and {n_layouts} layouts must end this form, found {found}");
            return Err(form.malformed(&message));
        }
        let (signs, layouts) = ints.split_at(n_signs.min(ints.len()));
        let is_layout = |layout: &i128| matches!(layout, 0 | 1);
        if ints.len() != rest.len() || signs.iter().any(|sign| sign.abs() != 1) || !layouts.iter().all(is_layout) {
            return Err(form.malformed("scale factors must be 1 or -1, and layouts 0 or 1"));
        }
        let (right, trans) = match *layouts {
            [a, b] => (a == 1, b == 1),
            [b] => (false, b == 1),
            _ => (false, false),
        };
        let registers = parts(results);
        // The registers of the first eight columns come first, then those of the next eight.
        let a = match in_shared {
            true => self.arg(form, a, Type::B64)?,
            false => self.fragment(form, a)?,
        };
        let b = self.arg(form, b, Type::B64)?;
        let mut product = Op::machine(Opcode::Hgmma).src(&[a, b]).psrc(self.scale(form, scale)?);
        if let Some([metadata, selector]) = sparse {
            product.kind = OpKind::Machine(Opcode::HgmmaSp);
            product.src[3] = self.arg(form, metadata, Type::B32)?;
            product.mods.lut = metadata_selector(form, tile.shape, selector)?;
        }
        for (n, registers) in (0..).zip(registers.chunks(tile.registers().into())) {
            let product = product.mods(|mods| {
                mods.mma = tile.shape;
                mods.ty = match tile.sums {
                    Type::S32 => Ty::S32,
                    Type::F16 => Ty::F16,
                    _ => Ty::F32,
                };
                // A negated A negates every product. Two negations cancel.
                mods.neg = signs.iter().filter(|&&sign| sign == -1).count() == 1;
                mods.high = in_shared;
                mods.right = right;
                mods.trans = trans;
                // Number of the eight columns in the product.
                mods.count = n;
                mods.sat = form.has(".satfinite");
            });
            self.eight_columns(form, product, registers)?;
        }
        Ok(())
    }

    /// Selects eight columns.
    fn eight_columns(&mut self, form: &Form<'t, 'a>, mut product: Op, registers: &[Value<'a>]) -> Selected {
        let sums = self.code.new_group(registers.len() as u8);
        for (n, register) in (0..).zip(registers) {
            let word = self.arg(form, register, Type::B32)?;
            self.emit(Op::machine(Opcode::Mov).dst(sums.offset(n)).src(&[word]));
        }
        product.src[2] = Arg::vreg(sums);
        let Some(group) = self.compute(product).as_vreg() else {
            return Ok(());
        };
        for (n, register) in (0..).zip(registers) {
            let result = self.dst_of(form, register, Type::B32)?;
            self.copy(result, Arg::vreg(group.offset(n)), Type::B32);
        }
        Ok(())
    }

    /// Returns whether the accumulators are added: a predicate, 0 or 1.
    fn scale(&mut self, form: &Form<'t, 'a>, value: &Value<'a>) -> Result<VGuard, Diagnostic> {
        match value {
            Value::Int(0) => Ok(VGuard {
                pred: None,
                negated: Guard::NEVER.negated,
            }),
            Value::Int(_) => Ok(VGuard::ALWAYS),
            value => self.src_pred(form, value),
        }
    }
}

fn int_of(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(value) => Some(*value),
        _ => None,
    }
}

/// Eight columns of a product, with a depth of 32 bytes.
struct ColumnTile {
    shape: MmaShape,
    sums: Type,
    /// True if operands in shared memory can be transposed.
    can_transpose: bool,
}

/// Depth and types of A and B as `wgmma` writes them.
const SHAPES: &[(&str, &str, MmaShape)] = &[
    ("k16", ".f16.f16", MmaShape::M16n8k16F16),
    ("k16", ".bf16.bf16", MmaShape::M16n8k16Bf16),
    ("k8", ".tf32.tf32", MmaShape::M16n8k8Tf32),
    ("k32", ".e4m3.e4m3", MmaShape::M16n8k32E4m3),
    ("k32", ".e5m2.e5m2", MmaShape::M16n8k32E5m2),
    ("k32", ".e4m3.e5m2", MmaShape::M16n8k32E4m3E5m2),
    ("k32", ".e5m2.e4m3", MmaShape::M16n8k32E5m2E4m3),
    ("k32", ".s8.s8", MmaShape::M16n8k32S8),
    ("k32", ".u8.u8", MmaShape::M16n8k32U8),
    ("k32", ".s8.u8", MmaShape::M16n8k32S8U8),
    ("k32", ".u8.s8", MmaShape::M16n8k32U8S8),
    ("k256", ".b1.b1.and.popc", MmaShape::M16n8k256And),
];

impl ColumnTile {
    /// Returns the tile of an instruction; `None` for a shape or types that the machine does not have.
    fn of(form: &Form<'_, '_>) -> Option<ColumnTile> {
        let mut words = form.qualifiers().map(|name| name.text);
        let size = words.by_ref().find_map(|word| word.strip_prefix(".m64n"))?;
        let (columns, depth) = size.split_at(size.find('k')?);
        let columns: usize = columns.parse().ok()?;
        let sums = Type::from_dotted(words.next()?)?;
        let factors: String = words.filter(|word| *word != ".satfinite").collect();
        // A sparse A is twice as deep as its stored half.
        let is_sparse = form.has(".sp");
        let stored = match depth {
            "k16" if is_sparse => "k8",
            "k32" if is_sparse => "k16",
            "k64" if is_sparse => "k32",
            _ if is_sparse => return None,
            _ => depth,
        };
        let &(_, _, shape) = SHAPES
            .iter()
            .find(|(k, types, _)| (*k, *types) == (stored, factors.as_str()))?;
        let is_integer = depth == "k256" || factors.contains('8');
        let fits = match sums {
            Type::S32 => is_integer,
            Type::F16 => !is_integer && !matches!(shape, MmaShape::M16n8k16Bf16 | MmaShape::M16n8k8Tf32),
            Type::F32 => !is_integer,
            _ => false,
        };
        let sized = columns.is_multiple_of(8) && (8..=256).contains(&columns);
        let known = is_integer || !form.has(".satfinite");
        (fits && sized && known).then_some(ColumnTile {
            shape,
            sums,
            can_transpose: stored == "k16",
        })
    }

    /// Returns the number of registers for the sums of eight columns.
    fn registers(&self) -> u8 {
        if self.sums == Type::F16 { 2 } else { 4 }
    }
}
