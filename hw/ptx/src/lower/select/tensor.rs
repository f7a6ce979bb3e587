//! Matrix products on the tensor cores. Other shapes are expanded by the library (`routines/forms.txt`).

use super::convert::rounding;
use super::integer::parts;
use super::value::byte_permute;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VReg};
use warpwave_isa::inst::{MmaShape, Ty};
use warpwave_isa::opcode::Opcode;

/// Shapes and types as `mma` writes them.
const SHAPES: &[(&str, MmaShape)] = &[
    (".m16n8k16.f32.f16.f16.f32", MmaShape::M16n8k16F16),
    (".m16n8k8.f32.f16.f16.f32", MmaShape::M16n8k8F16),
    (".m16n8k16.f16.f16.f16.f16", MmaShape::M16n8k16F16),
    (".m16n8k8.f16.f16.f16.f16", MmaShape::M16n8k8F16),
    (".m16n8k16.f32.bf16.bf16.f32", MmaShape::M16n8k16Bf16),
    (".m16n8k8.f32.bf16.bf16.f32", MmaShape::M16n8k8Bf16),
    (".m16n8k8.f32.tf32.tf32.f32", MmaShape::M16n8k8Tf32),
    (".m16n8k4.f32.tf32.tf32.f32", MmaShape::M16n8k4Tf32),
    (".m16n8k32.f32.e4m3.e4m3.f32", MmaShape::M16n8k32E4m3),
    (".m16n8k32.f32.e5m2.e5m2.f32", MmaShape::M16n8k32E5m2),
    (".m16n8k32.f32.e4m3.e5m2.f32", MmaShape::M16n8k32E4m3E5m2),
    (".m16n8k32.f32.e5m2.e4m3.f32", MmaShape::M16n8k32E5m2E4m3),
    (".m16n8k32.s32.s8.s8.s32", MmaShape::M16n8k32S8),
    (".m16n8k32.s32.u8.u8.s32", MmaShape::M16n8k32U8),
    (".m16n8k32.s32.s8.u8.s32", MmaShape::M16n8k32S8U8),
    (".m16n8k32.s32.u8.s8.s32", MmaShape::M16n8k32U8S8),
    (".m16n8k16.s32.s8.s8.s32", MmaShape::M16n8k16S8),
    (".m16n8k16.s32.u8.u8.s32", MmaShape::M16n8k16U8),
    (".m16n8k16.s32.s8.u8.s32", MmaShape::M16n8k16S8U8),
    (".m16n8k16.s32.u8.s8.s32", MmaShape::M16n8k16U8S8),
    (".m16n8k32.s32.s4.s4.s32", MmaShape::M16n8k32S4),
    (".m16n8k32.s32.u4.u4.s32", MmaShape::M16n8k32U4),
    (".m16n8k32.s32.s4.u4.s32", MmaShape::M16n8k32S4U4),
    (".m16n8k32.s32.u4.s4.s32", MmaShape::M16n8k32U4S4),
    (".m16n8k64.s32.s4.s4.s32", MmaShape::M16n8k64S4),
    (".m16n8k64.s32.u4.u4.s32", MmaShape::M16n8k64U4),
    (".m16n8k64.s32.s4.u4.s32", MmaShape::M16n8k64S4U4),
    (".m16n8k64.s32.u4.s4.s32", MmaShape::M16n8k64U4S4),
    (".m16n8k128.s32.b1.b1.s32.and.popc", MmaShape::M16n8k128And),
    (".m16n8k128.s32.b1.b1.s32.xor.popc", MmaShape::M16n8k128Xor),
    (".m16n8k256.s32.b1.b1.s32.and.popc", MmaShape::M16n8k256And),
    (".m16n8k256.s32.b1.b1.s32.xor.popc", MmaShape::M16n8k256Xor),
    (".m8n8k4.f64.f64.f64.f64", MmaShape::M8n8k4F64),
    (".m8n8k4.f32.f16.f16.f32", MmaShape::M8n8k4F16),
    (".m8n8k4.f32.f16.f16.f16", MmaShape::M8n8k4F16),
    (".m8n8k4.f16.f16.f16.f16", MmaShape::M8n8k4F16),
];

/// Shapes and types as `mma.sp` writes them, with the shape of the stored half of A.
const SPARSE_SHAPES: &[(&str, MmaShape)] = &[
    (".m16n8k16.f32.f16.f16.f32", MmaShape::M16n8k8F16),
    (".m16n8k32.f32.f16.f16.f32", MmaShape::M16n8k16F16),
    (".m16n8k16.f16.f16.f16.f16", MmaShape::M16n8k8F16),
    (".m16n8k32.f16.f16.f16.f16", MmaShape::M16n8k16F16),
    (".m16n8k16.f32.bf16.bf16.f32", MmaShape::M16n8k8Bf16),
    (".m16n8k32.f32.bf16.bf16.f32", MmaShape::M16n8k16Bf16),
    (".m16n8k8.f32.tf32.tf32.f32", MmaShape::M16n8k4Tf32),
    (".m16n8k16.f32.tf32.tf32.f32", MmaShape::M16n8k8Tf32),
    (".m16n8k64.f32.e4m3.e4m3.f32", MmaShape::M16n8k32E4m3),
    (".m16n8k64.f32.e4m3.e5m2.f32", MmaShape::M16n8k32E4m3E5m2),
    (".m16n8k64.f32.e5m2.e4m3.f32", MmaShape::M16n8k32E5m2E4m3),
    (".m16n8k64.f32.e5m2.e5m2.f32", MmaShape::M16n8k32E5m2),
    (".m16n8k32.s32.s8.s8.s32", MmaShape::M16n8k16S8),
    (".m16n8k32.s32.s8.u8.s32", MmaShape::M16n8k16S8U8),
    (".m16n8k32.s32.u8.s8.s32", MmaShape::M16n8k16U8S8),
    (".m16n8k32.s32.u8.u8.s32", MmaShape::M16n8k16U8),
    (".m16n8k64.s32.s8.s8.s32", MmaShape::M16n8k32S8),
    (".m16n8k64.s32.s8.u8.s32", MmaShape::M16n8k32S8U8),
    (".m16n8k64.s32.u8.s8.s32", MmaShape::M16n8k32U8S8),
    (".m16n8k64.s32.u8.u8.s32", MmaShape::M16n8k32U8),
    (".m16n8k64.s32.s4.s4.s32", MmaShape::M16n8k32S4),
    (".m16n8k64.s32.s4.u4.s32", MmaShape::M16n8k32S4U4),
    (".m16n8k64.s32.u4.s4.s32", MmaShape::M16n8k32U4S4),
    (".m16n8k64.s32.u4.u4.s32", MmaShape::M16n8k32U4),
    (".m16n8k128.s32.s4.s4.s32", MmaShape::M16n8k64S4),
    (".m16n8k128.s32.s4.u4.s32", MmaShape::M16n8k64S4U4),
    (".m16n8k128.s32.u4.s4.s32", MmaShape::M16n8k64U4S4),
    (".m16n8k128.s32.u4.u4.s32", MmaShape::M16n8k64U4),
];

/// Qualifiers of a sparse A. Unordered metadata may name the columns of a chunk in any order.
const SPARSE: [&str; 2] = [".sp", ".sp::ordered_metadata"];

/// Roundings of a product of f64.
pub(super) const ROUNDINGS: [&str; 4] = [".rn", ".rz", ".rm", ".rp"];

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `mma`, dense or sparse.
    pub(super) fn mma(&mut self, form: &Form<'t, 'a>) -> Selected {
        let shape_and_types = shape_and_types(form);
        let is_sparse = SPARSE.iter().any(|word| form.has(word));
        let shapes = if is_sparse { SPARSE_SHAPES } else { SHAPES };
        let shape = shapes.iter().find(|(known, _)| *known == shape_and_types);
        let (_, shape) = shape.ok_or_else(|| form.unsupported())?;
        let sums = *form.types.last().unwrap_or(&Type::F32);
        // Only integer sums saturate.
        if form.has(".satfinite") && sums != Type::S32 {
            return Err(form.unsupported());
        }
        if *shape == MmaShape::M8n8k4F16 {
            return self.mma_m8n8k4(form);
        }
        // MMA has one layout: A by rows, B by columns.
        let layouts = form.qualifiers().filter(|name| matches!(name.text, ".row" | ".col"));
        if !layouts.map(|name| name.text).eq([".row", ".col"]) {
            return Err(form.unsupported());
        }
        let [results, a, b, c, rest @ ..] = form.operands() else {
            return Err(form.unsupported());
        };
        let mut op = Op::machine(if is_sparse { Opcode::MmaSp } else { Opcode::Mma });
        for (slot, value) in [a, b, c].into_iter().enumerate() {
            op.src[slot] = self.fragment(form, value)?;
        }
        match rest {
            [metadata, selector] if is_sparse => {
                op.src[3] = self.arg(form, metadata, Type::B32)?;
                op.mods.lut = metadata_selector(form, *shape, selector)?;
            }
            [] if !is_sparse => {}
            _ => return Err(form.unsupported()),
        }
        let op = op.mods(|mods| {
            mods.mma = *shape;
            mods.ty = accumulator(sums);
            mods.sat = form.has(".satfinite");
            mods.round = rounding(form);
        });
        // A new group, because a result register may be a source of the product.
        let Some(group) = self.compute(op).as_vreg() else {
            return Ok(());
        };
        let mut at = 0;
        for result in parts(results) {
            let words = self.word_count(result);
            let ty = if words == 2 { Type::B64 } else { Type::B32 };
            let register = self.dst_of(form, result, ty)?;
            self.copy(register, Arg::vreg(group.offset(at)), ty);
            at += words;
        }
        Ok(())
    }

    /// Selects `mma.m8n8k4` of halves: two operations with four accumulators of a lane each.
    fn mma_m8n8k4(&mut self, form: &Form<'t, 'a>) -> Selected {
        let [results, a, b, c] = form.operands() else {
            return Err(form.unsupported());
        };
        let [ty, of_sum] = [form.types.first(), form.types.last()].map(|ty| accumulator(*ty.unwrap_or(&Type::F32)));
        let each = MmaShape::M8n8k4F16.accumulator_words(ty);
        // Half accumulators of other lanes are part of a lane's f32 results, so both operations read all of them.
        let is_mixed = ty != of_sum;
        // This shape takes any layout of A and B.
        let mut layouts = form.qualifiers().filter(|name| matches!(name.text, ".row" | ".col"));
        let [a_transposed, b_transposed] =
            [".row", ".col"].map(|usual| layouts.next().is_none_or(|name| name.text != usual));
        let factors = [self.fragment(form, a)?, self.fragment(form, b)?];
        let mut accumulators = Vec::new();
        for n in 0..2 {
            let chunk = if is_mixed { 0 } else { n.into() };
            let words = parts(c).chunks(each.into()).nth(chunk).unwrap_or_default();
            let start = self.gather_registers(form, words)?;
            let op = Op::machine(Opcode::Mma).src(&[factors[0], factors[1], start]);
            accumulators.push(self.compute(op.mods(|mods| {
                (mods.mma, mods.ty, mods.count) = (MmaShape::M8n8k4F16, ty, n);
                (mods.right, mods.trans) = (a_transposed, b_transposed);
                if is_mixed {
                    mods.from = of_sum;
                }
            })));
        }
        for (n, register) in parts(results).iter().enumerate() {
            let result = self.dst_of(form, register, Type::B32)?;
            let (sums, at) = (accumulators[n / usize::from(each)], n as u8 % each);
            self.copy(result, sums.part(at), Type::B32);
        }
        Ok(())
    }

    /// Widens the halves of two words to four consecutive f32.
    pub(super) fn widened(&mut self, pairs: [Arg; 2]) -> VReg {
        let group = self.code.new_group(4);
        for n in 0..4 {
            let pair = pairs[usize::from(n / 2)];
            let half = match n % 2 {
                0 => pair,
                // The upper half, moved down.
                _ => self.compute(byte_permute(pair, Arg::ZERO, 0x4432)),
            };
            let widen = Op::machine(Opcode::F2f).dst(group.offset(n)).src(&[half]);
            self.emit(widen.mods(|mods| (mods.ty, mods.from) = (Ty::F32, Ty::F16)));
        }
        group
    }

    /// Copies the registers of a fragment into one group.
    pub(super) fn fragment(&mut self, form: &Form<'t, 'a>, value: &Value<'a>) -> Result<Arg, Diagnostic> {
        self.gather_registers(form, parts(value))
    }

    /// Copies registers into one new group, in order.
    fn gather_registers(&mut self, form: &Form<'t, 'a>, values: &[Value<'a>]) -> Result<Arg, Diagnostic> {
        // MMA reads aligned registers. `copy_prop` and the allocator remove most of these moves.
        let group = self
            .code
            .new_group(values.iter().map(|part| self.word_count(part)).sum());
        let mut at = 0;
        for part in values {
            let words = self.word_count(part);
            let ty = if words == 2 { Type::B64 } else { Type::B32 };
            let source = self.arg(form, part, ty)?;
            for n in 0..words {
                self.emit(
                    Op::machine(Opcode::Mov)
                        .dst(group.offset(at + n))
                        .src(&[source.part(n)]),
                );
            }
            at += words;
        }
        Ok(Arg::vreg(group))
    }
}

/// Rounds pair `n` of four f32 to halves.
pub(super) fn narrowed(sums: Arg, n: u8) -> Op {
    let pack = Op::machine(Opcode::F2fp).src(&[sums.part(2 * n + 1), sums.part(2 * n)]);
    pack.mods(|mods| mods.ty = Ty::F16x2)
}

/// Returns the qualifiers for shape, types and bit operation.
fn shape_and_types(form: &Form<'_, '_>) -> String {
    let has_doubles = form.has(".f64");
    let words = form.qualifiers().map(|name| name.text);
    words
        .filter(|word| !matches!(*word, ".sync" | ".aligned" | ".row" | ".col" | ".satfinite"))
        // nvcc writes the rounding of f64 behind the types, the PTX ISA before them.
        .filter(|word| !has_doubles || !ROUNDINGS.contains(word))
        .filter(|word| !SPARSE.contains(word))
        .collect()
}

/// Returns the selector of the lanes with metadata: a literal that names one of the groups of lanes.
pub(super) fn metadata_selector(form: &Form<'_, '_>, shape: MmaShape, value: &Value<'_>) -> Result<u8, Diagnostic> {
    let groups = 4 / shape.metadata_lanes().max(1);
    let selector = match value {
        Value::Int(selector) => u8::try_from(*selector).ok(),
        _ => None,
    };
    selector
        .filter(|selector| *selector < groups)
        .ok_or_else(|| match groups {
            1 => form.malformed("the sparsity selector of this shape must be 0"),
            _ => form.malformed(&format!(
                "the sparsity selector of this shape must be 0 to {}",
                groups - 1
            )),
        })
}

fn accumulator(ty: Type) -> Ty {
    match ty {
        Type::S32 => Ty::S32,
        Type::F64 => Ty::F64,
        Type::F16 => Ty::F16,
        _ => Ty::F32,
    }
}
