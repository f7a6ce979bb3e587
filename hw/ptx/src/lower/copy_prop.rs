//! Copy propagation: operands read the original of a copy or a known value directly.
//!
//! PTX text has many moves. An operand that reads a copy reads the original instead, if both are fixed ([`Values`]). Sign
//! changes of 32-bit floats become operand modifiers. A logic operation that its known sources make a copy becomes a move. The copies themselves are left for `dce`.

use super::code::{Arg, Bits, Code, Op, OpKind, VGuard, VPred, VReg, Wide};
use super::fold;
use super::graph::{Graph, Values, indexed_ops};
use warpwave_isa::inst::Join;
use warpwave_isa::opcode::Opcode;

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let values = Values::of(code, &graph);
    // The original of a copy may be a copy too. Only sources change, so `values` stays valid.
    loop {
        let mut changed = false;
        for block in 0..code.blocks.len() {
            for index in 0..code.blocks[block].ops.len() {
                let op = code.blocks[block].ops[index];
                let src = propagated_operands(code, &values, &op);
                let new = fold::logic_as_move(Op { src, ..op });
                if new.src != op.src || new.kind != op.kind {
                    code.blocks[block].ops[index] = new;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    propagate_predicates(code);
}

/// Returns the operands that an operation can read instead.
fn propagated_operands(code: &Code, values: &Values, op: &Op) -> [Arg; 4] {
    let shape = op.shape();
    let mut src = op.src;
    for (arg, words) in src.iter_mut().zip(shape.src) {
        let new = match words {
            1 => single(code, values, op, *arg),
            0 => None,
            words => group(code, values, *arg, words),
        };
        *arg = new.unwrap_or(*arg);
    }
    src
}

/// Returns the replacement of a one-word operand.
fn single(code: &Code, values: &Values, op: &Op, arg: Arg) -> Option<Arg> {
    let def = values.definition(code, arg.as_vreg()?)?;
    // Legal because a fixed source has the same value here as at the copy.
    if let Some(bits) = copy_of(def).filter(|&bits| values.is_fixed_bits(bits, 1)) {
        return Some(Arg { bits, ..arg });
    }
    let source = def.src[0];
    if !values.is_fixed_bits(source.bits, 1) {
        return None;
    }
    match def.kind {
        OpKind::Machine(Opcode::Lop3) if takes_float_signs(op) && source.is_plain() => with_sign(def, arg),
        _ => None,
    }
}

/// True if the operation's 32-bit operands have float sign modifiers.
fn takes_float_signs(op: &Op) -> bool {
    matches!(
        op.kind,
        OpKind::Machine(Opcode::Fadd | Opcode::Fmul | Opcode::Ffma | Opcode::Fmnmx | Opcode::Fsetp)
    )
}

/// Turns a logic operation on the sign bit into a modifier of the operand.
fn with_sign(def: &Op, arg: Arg) -> Option<Arg> {
    let bits = def.src[0].bits;
    match (def.mods.lut, def.src[1].known()?) {
        // 0x3c is xor, 0xc0 is and. The absolute value of -x is that of x.
        (0x3c, 0x8000_0000) if arg.abs => Some(Arg { bits, ..arg }),
        (0x3c, 0x8000_0000) => Some(Arg { bits, ..arg }.negated()),
        (0xc0, 0x7fff_ffff) => Some(Arg { bits, abs: true, ..arg }),
        _ => None,
    }
}

/// Returns the source of a copy: a move, or an addition of zero.
fn copy_of(def: &Op) -> Option<Bits> {
    // An extended addition adds a carry to its zeros.
    let adds = def.is(Opcode::Iadd3) && !def.mods.extended && def.pdst[0].is_none();
    let source = match def.src {
        [source, ..] if def.is(Opcode::Mov) => source,
        [source, Arg::ZERO, Arg::ZERO, _] | [Arg::ZERO, source, Arg::ZERO, _] if adds => source,
        _ => return None,
    };
    source.is_plain().then_some(source.bits)
}

/// Returns the source of a 64-bit copy.
fn wide_copy_of(def: &Op) -> Option<Bits> {
    let source = match (def.kind, def.src) {
        (OpKind::Wide(Wide::Mov), [source, ..]) => source,
        (OpKind::Wide(Wide::Add), [source, Arg::ZERO, ..] | [Arg::ZERO, source, ..]) => source,
        _ => return None,
    };
    source.is_plain().then_some(source.bits)
}

/// Returns the replacement of an operand of several words: the group that it is a copy of.
fn group(code: &Code, values: &Values, arg: Arg, words: u8) -> Option<Arg> {
    let vreg = arg.as_vreg()?;
    if words == 2
        && let Some(def) = values.pair_definition(code, vreg)
    {
        // One operation wrote both words, so only a 64-bit copy can be replaced.
        let bits = wide_copy_of(def).filter(|&bits| values.is_fixed_bits(bits, 2))?;
        return Some(Arg { bits, ..arg });
    }
    // Each word has a definition of its own: all of them must copy one group, in order.
    let first = copied_from(code, values, vreg)?;
    let mut rest = 1..words;
    let bits = match first {
        Bits::VReg(low) => {
            let follows = |n: u8| copied_from(code, values, vreg.offset(n)) == Some(Bits::VReg(low.offset(n)));
            (rest.all(follows) && is_group(code, low, words)).then_some(first)?
        }
        // A 64-bit constant operand must be aligned to 8 bytes.
        Bits::Const { bank, offset } if words == 2 && offset % 8 == 0 => {
            let next = Bits::Const {
                bank,
                offset: offset + 4,
            };
            (copied_from(code, values, vreg.offset(1))? == next).then_some(first)?
        }
        // Two known words are one 64-bit literal.
        _ if words == 2 => {
            let high = copied_from(code, values, vreg.offset(1))?;
            Arg::imm(Arg::of(first).known()? | Arg::of(high).known()? << 32).bits
        }
        _ => return None,
    };
    Some(Arg { bits, ..arg })
}

/// Returns the source that a register is a copy of.
fn copied_from(code: &Code, values: &Values, vreg: VReg) -> Option<Bits> {
    let def = values.definition(code, vreg).filter(|def| def.dst == Some(vreg))?;
    copy_of(def).filter(|&bits| values.is_fixed_bits(bits, 1))
}

/// True if `words` registers from `low` are one value with the alignment of a group.
fn is_group(code: &Code, low: VReg, words: u8) -> bool {
    let (first, length) = code.groups[low.0 as usize];
    let at = low.0 - first.0;
    at.is_multiple_of(u32::from(words).next_power_of_two()) && at + u32::from(words) <= u32::from(length)
}

/// Propagates copies of predicates, and merges an `and` or `or` into the comparison before it.
fn propagate_predicates(code: &mut Code) {
    let graph = Graph::of(code);
    let preds = PredDefs::of(code, &graph);
    let values = Values::of(code, &graph);
    for block in 0..code.blocks.len() {
        for index in 0..code.blocks[block].ops.len() {
            let mut op = code.blocks[block].ops[index];
            let n = op.shape().psrc;
            op.guard = preds.original(code, op.guard);
            for guard in &mut op.psrc[..n] {
                *guard = preds.original(code, *guard);
            }
            code.blocks[block].ops[index] = preds.with_join(code, &values, &op).unwrap_or(op);
        }
    }
}

/// Single definitions and read counts of predicates.
pub(super) struct PredDefs {
    positions: Vec<Option<(usize, usize)>>,
    reads: Vec<u32>,
}

impl PredDefs {
    /// Finds the predicates with one unguarded definition that comes before all uses.
    pub fn of(code: &Code, graph: &Graph) -> PredDefs {
        let n = code.n_preds as usize;
        let mut preds = PredDefs {
            positions: vec![None; n],
            reads: vec![0; n],
        };
        let mut redefined = vec![false; n];
        for (block, index, op) in indexed_ops(code) {
            for pred in op.pred_defs() {
                let position = &mut preds.positions[pred.0 as usize];
                // A guarded write keeps the old value in other lanes, as a second definition would.
                redefined[pred.0 as usize] |= position.is_some() || op.guard != VGuard::ALWAYS;
                *position = Some((block, index));
            }
        }
        for (block, index, op) in indexed_ops(code) {
            for pred in op.pred_uses() {
                preds.reads[pred.0 as usize] += 1;
                let Some((at, n)) = preds.positions[pred.0 as usize] else {
                    continue;
                };
                let before = if at == block {
                    n < index
                } else {
                    graph.dominates(at, block)
                };
                redefined[pred.0 as usize] |= !before;
            }
        }
        for (position, redefined) in preds.positions.iter_mut().zip(redefined) {
            *position = position.filter(|_| !redefined);
        }
        preds
    }

    /// True if the predicate has the same value at every use.
    pub fn is_fixed(&self, pred: VPred) -> bool {
        self.positions[pred.0 as usize].is_some()
    }

    fn definition<'c>(&self, code: &'c Code, guard: VGuard) -> Option<&'c Op> {
        let (block, index) = self.positions[guard.pred?.0 as usize]?;
        code.blocks[block].ops.get(index)
    }

    /// Returns the predicate that `guard` is a copy of.
    fn original(&self, code: &Code, mut guard: VGuard) -> VGuard {
        // Chains of copies are short. The bound is for unreachable code, where a definition may read itself.
        for _ in 0..16 {
            let Some(def) = self.definition(code, guard) else {
                return guard;
            };
            let source = def.psrc[0];
            let fixed = source.pred.is_none_or(|pred| self.positions[pred.0 as usize].is_some());
            // The table of a PLOP3 that ignores its second input: 0b1100 is the first input, 0b0011 its inverse.
            let inverts = match def.mods.lut & 0xf {
                0b1100 => false,
                0b0011 => true,
                _ => return guard,
            };
            if !def.is(Opcode::Plop3) || !fixed || guard.pred != def.pdst[0] {
                return guard;
            }
            guard = VGuard {
                pred: source.pred,
                negated: guard.negated ^ source.negated ^ inverts,
            };
        }
        guard
    }

    /// Returns one comparison for `a and b` or `a or b`, if b is a comparison with a free join input.
    fn with_join(&self, code: &Code, values: &Values, op: &Op) -> Option<Op> {
        let join = match op.mods.lut & 0xf {
            // The table of `and`, then that of `or`, with index 2p + q.
            0b1000 => Join::And,
            0b1110 => Join::Or,
            _ => return None,
        };
        if !op.is(Opcode::Plop3) || op.pdst[1].is_some() {
            return None;
        }
        let candidates = [(op.psrc[1], op.psrc[0]), (op.psrc[0], op.psrc[1])];
        candidates.into_iter().find_map(|(compared, other)| {
            let def = self.definition(code, compared)?;
            let plain = def.psrc[0] == VGuard::ALWAYS && def.mods.join == Join::And && !compared.negated;
            let compares = matches!(def.kind, OpKind::Machine(Opcode::Isetp | Opcode::Fsetp | Opcode::Dsetp));
            // With one reader, the old comparison is dead and `dce` removes it.
            let first = def.pdst[0] == compared.pred && self.reads[compared.pred?.0 as usize] == 1;
            // The merged comparison runs later, so its sources must be the same there. An extended one also reads the predicate
            // of the low words.
            let fixed = def.uses().all(|vreg| values.is_fixed(vreg)) && !def.mods.extended;
            if !(plain && compares && first && fixed) {
                return None;
            }
            let mut joined = *def;
            joined.guard = op.guard;
            joined.pdst = op.pdst;
            joined.psrc[0] = other;
            joined.mods.join = join;
            Some(joined)
        })
    }
}
