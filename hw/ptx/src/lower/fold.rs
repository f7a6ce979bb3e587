//! Copy propagation: operands read the original of a copy or a known value directly.
//!
//! PTX text has many moves. An operand that reads a copy reads the original instead, if both are fixed ([`Values`]). Sign
//! changes of 32-bit floats become operand modifiers. The copies themselves are left for `dead`.

use super::code::{Arg, Bits, Code, Flag, Op, What, When, Wide, Word};
use super::graph::{Graph, Values, places};
use warpwave_isa::inst::Join;
use warpwave_isa::opcode::Opcode;

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let values = Values::of(code, &graph);
    loop {
        let mut changed = false;
        for block in 0..code.blocks.len() {
            for index in 0..code.blocks[block].ops.len() {
                let op = code.blocks[block].ops[index];
                let src = fold(code, &values, &op);
                if src != op.src {
                    code.blocks[block].ops[index].src = src;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    predicates(code);
}

/// Returns the operands that an operation can read instead.
fn fold(code: &Code, values: &Values, op: &Op) -> [Arg; 4] {
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
    let def = values.definition(code, arg.as_word()?)?;
    if let Some(bits) = copy_of(def).filter(|&bits| values.is_fixed_bits(bits, 1)) {
        return Some(Arg { bits, ..arg });
    }
    let source = def.src[0];
    if !values.is_fixed_bits(source.bits, 1) {
        return None;
    }
    match def.what {
        What::Row(Opcode::Lop3) if takes_float_signs(op) && source.is_plain() => with_sign(def, arg),
        _ => None,
    }
}

/// True if the operation's 32-bit operands have float sign modifiers.
fn takes_float_signs(op: &Op) -> bool {
    matches!(
        op.what,
        What::Row(Opcode::Fadd | Opcode::Fmul | Opcode::Ffma | Opcode::Fmnmx | Opcode::Fsetp)
    )
}

/// Turns a logic operation on the sign bit into a modifier of the operand.
fn with_sign(def: &Op, arg: Arg) -> Option<Arg> {
    let bits = def.src[0].bits;
    match (def.mods.lut, def.src[1].known()?) {
        (0x3c, 0x8000_0000) if arg.abs => Some(Arg { bits, ..arg }),
        (0x3c, 0x8000_0000) => Some(Arg { bits, ..arg }.negated()),
        (0xc0, 0x7fff_ffff) => Some(Arg { bits, abs: true, ..arg }),
        _ => None,
    }
}

/// Returns the source of a copy: a move, or an addition of zero.
fn copy_of(def: &Op) -> Option<Bits> {
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
    let source = match (def.what, def.src) {
        (What::Wide(Wide::Mov), [source, ..]) => source,
        (What::Wide(Wide::Add), [source, Arg::ZERO, ..] | [Arg::ZERO, source, ..]) => source,
        _ => return None,
    };
    source.is_plain().then_some(source.bits)
}

/// Returns the replacement of an operand of several words: the group that it is a copy of.
fn group(code: &Code, values: &Values, arg: Arg, words: u8) -> Option<Arg> {
    let word = arg.as_word()?;
    if words == 2
        && let Some(def) = values.pair_definition(code, word)
    {
        let bits = wide_copy_of(def).filter(|&bits| values.is_fixed_bits(bits, 2))?;
        return Some(Arg { bits, ..arg });
    }
    let first = copied(code, values, word)?;
    let mut rest = 1..words;
    let bits = match first {
        Bits::Word(low) => {
            let follows = |n: u8| copied(code, values, word.offset(n)) == Some(Bits::Word(low.offset(n)));
            (rest.all(follows) && is_group(code, low, words)).then_some(first)?
        }
        Bits::Const { bank, offset } if words == 2 && offset % 8 == 0 => {
            let next = Bits::Const {
                bank,
                offset: offset + 4,
            };
            (copied(code, values, word.offset(1))? == next).then_some(first)?
        }
        _ if words == 2 => {
            let high = copied(code, values, word.offset(1))?;
            Arg::imm(Arg::of(first).known()? | Arg::of(high).known()? << 32).bits
        }
        _ => return None,
    };
    Some(Arg { bits, ..arg })
}

/// Returns the source that a register is a copy of.
fn copied(code: &Code, values: &Values, word: Word) -> Option<Bits> {
    let def = values.definition(code, word).filter(|def| def.dst == Some(word))?;
    copy_of(def).filter(|&bits| values.is_fixed_bits(bits, 1))
}

/// True if `words` registers from `low` are one value with the alignment of a group.
fn is_group(code: &Code, low: Word, words: u8) -> bool {
    let (first, length) = code.groups[low.0 as usize];
    let at = low.0 - first.0;
    at.is_multiple_of(u32::from(words).next_power_of_two()) && at + u32::from(words) <= u32::from(length)
}

/// Propagates copies of predicates, and merges an `and` or `or` into the comparison before it.
fn predicates(code: &mut Code) {
    let graph = Graph::of(code);
    let flags = Flags::of(code, &graph);
    let values = Values::of(code, &graph);
    for block in 0..code.blocks.len() {
        for index in 0..code.blocks[block].ops.len() {
            let mut op = code.blocks[block].ops[index];
            let n = op.shape().psrc;
            op.guard = flags.original(code, op.guard);
            for when in &mut op.psrc[..n] {
                *when = flags.original(code, *when);
            }
            code.blocks[block].ops[index] = flags.joined(code, &values, &op).unwrap_or(op);
        }
    }
}

/// Single definitions and read counts of predicates.
pub(super) struct Flags {
    places: Vec<Option<(usize, usize)>>,
    reads: Vec<u32>,
}

impl Flags {
    pub fn of(code: &Code, graph: &Graph) -> Flags {
        let n = code.n_flags as usize;
        let mut flags = Flags {
            places: vec![None; n],
            reads: vec![0; n],
        };
        let mut several = vec![false; n];
        for (block, index, op) in places(code) {
            for flag in op.flag_defs() {
                let place = &mut flags.places[flag.0 as usize];
                several[flag.0 as usize] |= place.is_some() || op.guard != When::ALWAYS;
                *place = Some((block, index));
            }
        }
        for (block, index, op) in places(code) {
            for flag in op.flag_uses() {
                flags.reads[flag.0 as usize] += 1;
                let Some((at, n)) = flags.places[flag.0 as usize] else {
                    continue;
                };
                let before = if at == block {
                    n < index
                } else {
                    graph.dominates(at, block)
                };
                several[flag.0 as usize] |= !before;
            }
        }
        for (place, several) in flags.places.iter_mut().zip(several) {
            *place = place.filter(|_| !several);
        }
        flags
    }

    /// True if the predicate has the same value at every use.
    pub fn is_fixed(&self, flag: Flag) -> bool {
        self.places[flag.0 as usize].is_some()
    }

    fn definition<'c>(&self, code: &'c Code, when: When) -> Option<&'c Op> {
        let (block, index) = self.places[when.flag?.0 as usize]?;
        code.blocks[block].ops.get(index)
    }

    /// Returns the predicate that `when` is a copy of.
    fn original(&self, code: &Code, mut when: When) -> When {
        // Chains of copies are short. The bound is for unreachable code, where a definition may read itself.
        for _ in 0..16 {
            let Some(def) = self.definition(code, when) else {
                return when;
            };
            let source = def.psrc[0];
            let fixed = source.flag.is_none_or(|flag| self.places[flag.0 as usize].is_some());
            let inverts = match def.mods.lut & 0xf {
                0b1100 => false,
                0b0011 => true,
                _ => return when,
            };
            if !def.is(Opcode::Plop3) || !fixed || when.flag != def.pdst[0] {
                return when;
            }
            when = When {
                flag: source.flag,
                negated: when.negated ^ source.negated ^ inverts,
            };
        }
        when
    }

    /// Returns a comparison that computes `a and b` at once, if b is a comparison with a free join input.
    fn joined(&self, code: &Code, values: &Values, op: &Op) -> Option<Op> {
        let join = match op.mods.lut & 0xf {
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
            let plain = def.psrc[0] == When::ALWAYS && def.mods.join == Join::And && !compared.negated;
            let compares = matches!(def.what, What::Row(Opcode::Isetp | Opcode::Fsetp | Opcode::Dsetp));
            let first = def.pdst[0] == compared.flag && self.reads[compared.flag?.0 as usize] == 1;
            let fixed = def.uses().all(|word| values.is_fixed(word)) && !def.mods.extended;
            if !(plain && compares && first && fixed) {
                return None;
            }
            let mut fused = *def;
            fused.guard = op.guard;
            fused.pdst = op.pdst;
            fused.psrc[0] = other;
            fused.mods.join = join;
            Some(fused)
        })
    }
}
