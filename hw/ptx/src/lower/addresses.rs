//! Address arithmetic: folds it into instructions that include it.
//!
//! Constants added to an address become the displacement of the access, also through later sums (`displacement`). `mul.wide` and
//! `add.s64` become one IMAD.WIDE, `mul.lo` and `add` one IMAD, `shl` and `add` one LEA. From compute capability 9.0 on, `add` and `min`
//! or `max` become one VIADDMNMX, and two `min` or `max` one VIMNMX3. Unread results are left for `dce`. The pass needs code after
//! `copy_prop` with whole 64-bit values.

mod displacement;

use super::code::{Arg, Bits, Code, Op, OpKind, VReg, Wide};
use super::graph::{Graph, Values};
use super::min_max;
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;

/// Limit of a displacement: 24 bits, signed.
pub(super) const MAX_DISPLACEMENT: i64 = 1 << 23;

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let values = Values::of(code, &graph);
    let mut reads = vec![0u32; code.groups.len()];
    for vreg in code.ops().flat_map(Op::uses) {
        reads[vreg.0 as usize] += 1;
    }
    let context = Context { values, reads };
    for block in 0..code.blocks.len() {
        for index in 0..code.blocks[block].ops.len() {
            let op = code.blocks[block].ops[index];
            code.blocks[block].ops[index] = context.rewrite(code, op);
        }
    }
    displacement::run(code, &context);
    if code.capability >= MIN_MAX_OF_THREE {
        min_max::run(code);
    }
}

/// First compute capability with VIADDMNMX and VIMNMX3.
const MIN_MAX_OF_THREE: u32 = 90;

struct Context {
    values: Values,
    reads: Vec<u32>,
}

impl Context {
    fn rewrite(&self, code: &Code, op: Op) -> Op {
        if let Some(slot) = address_slot(&op) {
            return self.with_displacement(code, op, slot);
        }
        match op.kind {
            OpKind::Wide(Wide::Add) => self.wide_sum(code, op),
            OpKind::Machine(Opcode::Iadd3) => self.sum(code, op),
            _ => op,
        }
    }

    /// Moves constants added to the address, one after the other, into the displacement.
    fn with_displacement(&self, code: &Code, mut op: Op, slot: usize) -> Op {
        let words = op.shape().src[slot];
        loop {
            let offset = i64::from(op.mods.offset);
            // A known 32-bit address is a displacement from RZ.
            let (base, more) = match op.src[slot].known() {
                Some(value) if words == 1 && value != 0 => (Arg::ZERO, i64::from(value as i32)),
                _ => match self.sum_with_constant(code, op.src[slot], words) {
                    Some(found) => found,
                    None => return op,
                },
            };
            let total = offset + more;
            if !(-MAX_DISPLACEMENT..MAX_DISPLACEMENT).contains(&total) {
                return op;
            }
            op.src[slot] = base;
            op.mods.offset = total as i32;
        }
    }

    /// Splits an address into a base and a constant, if it is their sum.
    fn sum_with_constant(&self, code: &Code, arg: Arg, words: u8) -> Option<(Arg, i64)> {
        let def = self.definition(code, arg, words)?;
        let adds = match def.kind {
            OpKind::Wide(Wide::Add) => words == 2,
            OpKind::Machine(Opcode::Iadd3) => {
                // An extended sum adds a carry too.
                words == 1 && def.src[2] == Arg::ZERO && def.pdst[0].is_none() && !def.mods.extended
            }
            _ => false,
        };
        // Displacements are signed, so 0xffff_fffc is -4.
        let constant = |arg: Arg| {
            let value = arg.known()?;
            Some(if words == 2 {
                value as i64
            } else {
                i64::from(value as u32 as i32)
            })
        };
        let [a, b, ..] = def.src;
        let (base, more) = match (constant(a), constant(b)) {
            (None, Some(more)) => (a, more),
            (Some(more), None) => (b, more),
            _ => return None,
        };
        let fixed = || base.is_plain() && self.values.is_fixed_bits(base.bits, words);
        (adds && fixed()).then_some((base, more))
    }

    /// Fuses x + y, where x is a product or shift of 32-bit values.
    fn wide_sum(&self, code: &Code, op: Op) -> Op {
        let [a, b, ..] = op.src;
        // The product may have other readers: IMAD.WIDE replaces the two instructions of a 64-bit sum in any case.
        let fused = [(a, b), (b, a)].into_iter().find_map(|(product, addend)| {
            let (x, y, signed) = self.wide_product(code, product)?;
            let mut fused = Op::machine(Opcode::ImadWide).src(&[x, y, addend]).guard(op.guard);
            fused.mods.ty = if signed { Ty::S32 } else { Ty::U32 };
            fused.dst = op.dst;
            fused.line = op.line;
            Some(fused)
        });
        fused.unwrap_or(op)
    }

    /// Returns the factors of a 64-bit product without an addend; true if they are signed.
    fn wide_product(&self, code: &Code, arg: Arg) -> Option<(Arg, Arg, bool)> {
        let def = self.definition(code, arg, 2)?;
        let [a, b, c, _] = def.src;
        let fixed = |arg: Arg| arg.is_plain() && self.values.is_fixed_bits(arg.bits, 1);
        match def.kind {
            OpKind::Machine(Opcode::ImadWide) if c == Arg::ZERO && fixed(a) && fixed(b) => {
                Some((a, b, def.mods.ty.is_signed()))
            }
            OpKind::Wide(Wide::Shl) => {
                // The factor must be positive as a signed word too.
                let shift = b.known().filter(|&shift| shift < 31)?;
                let (vreg, signed) = self.extended_word(code, a)?;
                fixed(vreg).then_some((vreg, Arg::imm(1 << shift), signed))
            }
            _ => None,
        }
    }

    /// Returns the 32-bit value that a 64-bit pair extends; true if sign-extended.
    fn extended_word(&self, code: &Code, pair: Arg) -> Option<(Arg, bool)> {
        let vreg = pair.as_vreg()?;
        let low = self.values.definition(code, vreg)?;
        let high = self.values.definition(code, vreg.offset(1))?;
        if !low.is(Opcode::Mov) || !low.src[0].is_plain() {
            return None;
        }
        let source = low.src[0];
        if high.is(Opcode::Mov) && high.src[0].known() == Some(0) {
            return Some((source, false));
        }
        // A sign extension shifts the low word right by 31: all bits of the upper word are the sign.
        let shift = high.is(Opcode::Shf) && high.mods.right && high.mods.high && high.mods.ty == Ty::S32;
        let whole = high.src[1].known() == Some(31) && high.src[2] == source;
        let copied = high
            .is(Opcode::Mov)
            .then(|| self.definition(code, high.src[0], 1))
            .flatten();
        let via_copy = copied.is_some_and(|def| {
            def.is(Opcode::Shf) && def.mods.ty == Ty::S32 && def.src[1].known() == Some(31) && def.src[2] == source
        });
        ((shift && whole) || via_copy).then_some((source, true))
    }

    /// Fuses x + y, where x is a 32-bit product or shift with no other reader.
    fn sum(&self, code: &Code, op: Op) -> Op {
        let [a, b, c, _] = op.src;
        if c != Arg::ZERO || op.pdst[0].is_some() || op.mods.extended || !a.is_plain() || !b.is_plain() {
            return op;
        }
        let fused = [(a, b), (b, a)]
            .into_iter()
            .find_map(|(part, addend)| self.fused_sum(code, op, part, addend));
        fused.unwrap_or(op)
    }

    /// Fuses `part + addend` into one operation, if `part` is a product or shift with this reader only.
    fn fused_sum(&self, code: &Code, op: Op, part: Arg, addend: Arg) -> Option<Op> {
        // With another reader the part is computed anyway.
        let vreg = part.as_vreg().filter(|vreg| self.reads[vreg.0 as usize] == 1)?;
        let def = self.values.definition(code, vreg)?;
        let fixed = |arg: Arg| arg.is_plain() && self.values.is_fixed_bits(arg.bits, 1);
        let [x, y, z, _] = def.src;
        // The fused operation reads x and y later than the old one did.
        if !fixed(x) || !fixed(y) {
            return None;
        }
        let mut fused = Op {
            guard: op.guard,
            line: op.line,
            ..*def
        };
        match def.kind {
            OpKind::Machine(Opcode::Imad) if z == Arg::ZERO && !def.mods.high => fused.src[2] = addend,
            OpKind::Machine(Opcode::Shf)
                if !def.mods.right && !def.mods.high && z == Arg::ZERO && !addend_is_literal(addend) =>
            {
                // LEA has five bits for its shift. A SHF by 32 or more gives zero.
                let shift = y.known().filter(|&shift| shift < 32)?;
                fused = Op::machine(Opcode::Lea)
                    .src(&[x, addend])
                    .guard(op.guard)
                    // LEA keeps its shift in `lut`.
                    .mods(|mods| mods.lut = shift as u8);
                fused.line = op.line;
            }
            _ => return None,
        }
        fused.dst = op.dst;
        Some(fused)
    }

    fn definition<'c>(&self, code: &'c Code, arg: Arg, words: u8) -> Option<&'c Op> {
        let vreg: VReg = arg.as_vreg().filter(|_| arg.is_plain())?;
        match words {
            1 => self.values.definition(code, vreg),
            _ => self.values.pair_definition(code, vreg),
        }
    }
}

/// Returns the operand that is an address with a displacement.
pub(super) fn address_slot(op: &Op) -> Option<usize> {
    match op.kind {
        OpKind::Machine(
            Opcode::Ld
            | Opcode::St
            | Opcode::Atom
            | Opcode::Red
            | Opcode::Cctl
            | Opcode::Ldsm
            | Opcode::Ldc
            | Opcode::Syncs,
        ) => Some(0),
        // The displacement belongs to the global address. The shared one has none.
        OpKind::Machine(Opcode::Ldgsts) => Some(1),
        _ => None,
    }
}

/// True if the addend is a literal.
fn addend_is_literal(addend: Arg) -> bool {
    // The constant is worth more in the displacement of a later address.
    matches!(addend.bits, Bits::Imm(_))
}
