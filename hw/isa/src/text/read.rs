//! Reader of assembly text: opcode, modifiers, then operands in text order.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use super::*;
use crate::reg::{ConvBarrier, Pred, Reg};

/// Error in the text of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextError {
    /// The opcode is not in the instruction table.
    UnknownOpcode(String),
    /// The suffix is not a modifier.
    UnknownModifier(String),
    /// An operand is missing or of another kind.
    Operand {
        /// Expected kind of operand.
        expected: &'static str,
        /// Text of the operand, or empty at the end of the text.
        found: String,
    },
    /// The instruction takes no further operand.
    TooManyOperands(String),
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::UnknownOpcode(name) => write!(f, "unknown instruction `{name}`: see the instruction table"),
            TextError::UnknownModifier(name) => write!(f, "unknown modifier `.{name}`"),
            TextError::Operand { expected, found } if found.is_empty() => write!(f, "expected {expected} at the end"),
            TextError::Operand { expected, found } => write!(f, "expected {expected}, found `{found}`"),
            TextError::TooManyOperands(rest) => write!(f, "surplus operand `{rest}`"),
        }
    }
}

impl Error for TextError {}

impl FromStr for Inst {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let text = text.trim();
        let (guard, text) = match text.strip_prefix('@') {
            Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
            None => ("PT", text),
        };
        let (head, rest) = text.trim_start().split_once(' ').unwrap_or((text, ""));
        let op = opcode(head)?;
        let mut inst = Inst::new(op);
        inst.guard = predicate(guard)?;
        // Empty, or it begins with a dot: see `opcode`.
        let suffixes = &head[op.info().name.len()..];
        read_modifiers(&mut inst, suffixes)?;
        read_operands(&mut inst, rest)?;
        check_groups(&inst)?;
        Ok(inst)
    }
}

/// Finds the opcode with the longest name that starts `head`. A name ends at a dot.
fn opcode(head: &str) -> Result<Opcode, TextError> {
    let begins = |op: &&Opcode| {
        head.strip_prefix(op.info().name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    // IMAD.WIDE is an opcode, not IMAD with a modifier.
    let longest = Opcode::ALL.iter().filter(begins).max_by_key(|op| op.info().name.len());
    longest
        .copied()
        .ok_or_else(|| TextError::UnknownOpcode(head.to_owned()))
}

fn value_of<T: Copy>(names: Names<T>, name: &str) -> Option<T> {
    names.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
}

fn read_modifiers(inst: &mut Inst, suffixes: &str) -> Result<(), TextError> {
    // The first type is `ty`, the second `from`. All other suffixes are found by name, in any order.
    let mut n_types = 0;
    for name in suffixes.split('.').skip(1) {
        if let Some(ty) = value_of(TYPES, name) {
            let field = if n_types == 0 {
                &mut inst.mods.ty
            } else {
                &mut inst.mods.from
            };
            *field = ty;
            n_types += 1;
        } else if read_modifier(inst.op, &mut inst.mods, name).is_none() {
            return Err(TextError::UnknownModifier(name.to_owned()));
        }
    }
    Ok(())
}

/// Sets the modifier with this suffix. `None` if there is no such modifier.
fn read_modifier(op: Opcode, mods: &mut Mods, name: &str) -> Option<()> {
    // AND, OR and XOR are also joins of comparisons, so the opcode decides first.
    if op.is_atomic()
        && let Some(atom) = value_of(ATOMICS, name)
    {
        mods.atom = atom;
    } else if let Some((_, field)) = FLAGS.iter().find(|(known, _)| *known == name) {
        *field(mods) = true;
    } else if let Some(comparison) = value_of(COMPARISONS, name) {
        (mods.cmp, mods.unordered) = comparison;
    } else if name == NAN_WINS {
        mods.unordered = true;
    } else if let Some(lut) = name.strip_prefix("0x") {
        mods.lut = u8::from_str_radix(lut, 16).ok()?;
    } else if let Some(access) = read_access(name) {
        mods.access = access;
    } else {
        read_word(mods, name)?;
    }
    Some(())
}

/// Sets a modifier with a table of values.
fn read_word(mods: &mut Mods, name: &str) -> Option<()> {
    /// Sets the field if the table has the word.
    fn set<T: Copy>(names: Names<T>, name: &str, field: &mut T) -> bool {
        value_of(names, name).map(|value| *field = value).is_some()
    }
    let known = set(JOINS, name, &mut mods.join)
        || set(SHUFFLES, name, &mut mods.shfl)
        || set(VOTES, name, &mut mods.vote)
        || set(FUNCTIONS, name, &mut mods.mufu)
        || set(SHAPES, name, &mut mods.mma)
        || set(SPACES, name, &mut mods.space)
        || set(CACHE_OPS, name, &mut mods.cache)
        || set(SCOPES, name, &mut mods.scope)
        || set(ROUNDINGS, name, &mut mods.round);
    if !known {
        // Last, because other names begin with N too (NC).
        mods.count = name.strip_prefix('N')?.parse().ok()?;
    }
    Some(())
}

fn read_access(name: &str) -> Option<Access> {
    let (signed, rest) = match name.strip_prefix("SB") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix('B')?),
    };
    let (bits, count) = rest.split_once('X').unwrap_or((rest, "1"));
    let bits: u32 = bits.parse().ok()?;
    Some(Access {
        bytes: (bits / 8).try_into().ok()?,
        count: count.parse().ok()?,
        signed,
    })
}

fn read_operands(inst: &mut Inst, text: &str) -> Result<(), TextError> {
    let info = inst.op.info();
    let mut rest = text.split(',').map(str::trim).filter(|operand| !operand.is_empty());
    let mut next = || rest.next().unwrap_or("");
    if inst.op.has_result() {
        inst.dst = register(next())?;
    }
    for pred in &mut inst.pdst[..info.pdst as usize] {
        *pred = plain_predicate(next())?;
    }
    for slot in 0..info.src.len() {
        read_source(inst, slot, next())?;
    }
    for guard in &mut inst.psrc[..info.psrc as usize] {
        *guard = predicate(next())?;
    }
    if inst.op == Opcode::Bra {
        let word = next();
        inst.target = word
            .parse()
            .map_err(|_| unexpected("the index of an instruction", word))?;
    }
    if inst.op.has_barrier() {
        inst.conv = barrier(next())?;
    }
    match rest.next() {
        Some(more) => Err(TextError::TooManyOperands(more.to_owned())),
        None => Ok(()),
    }
}

/// Checks that each operand of several registers ends by the last register, R254.
fn check_groups(inst: &Inst) -> Result<(), TextError> {
    let info = inst.op.info();
    let sources = info.src.iter().zip(&inst.src);
    let sources = sources.filter_map(|(width, operand)| match operand.source {
        Source::Reg(first) => Some((first, width.of(&inst.mods))),
        _ => None,
    });
    for (first, words) in sources.chain([(inst.dst, info.dst.of(&inst.mods))]) {
        if !first.is_zero() && usize::from(first.0) + usize::from(words) > Reg::COUNT {
            return Err(unexpected("registers up to R254", &first.to_string()));
        }
    }
    Ok(())
}

fn unexpected(expected: &'static str, found: &str) -> TextError {
    TextError::Operand {
        expected,
        found: found.to_owned(),
    }
}

/// Parses the number after a prefix, which must be below `end`.
fn numbered(word: &str, prefix: char, end: usize) -> Option<u8> {
    let number: u8 = word.strip_prefix(prefix)?.parse().ok()?;
    (usize::from(number) < end).then_some(number)
}

fn register(word: &str) -> Result<Reg, TextError> {
    match word {
        "RZ" => Ok(Reg::ZERO),
        _ => numbered(word, 'R', Reg::COUNT)
            .map(Reg)
            .ok_or_else(|| unexpected("a register", word)),
    }
}

fn plain_predicate(word: &str) -> Result<Pred, TextError> {
    match word {
        "PT" => Ok(Pred::TRUE),
        _ => numbered(word, 'P', Pred::COUNT)
            .map(Pred)
            .ok_or_else(|| unexpected("a predicate", word)),
    }
}

fn predicate(word: &str) -> Result<Guard, TextError> {
    match word.strip_prefix('!') {
        Some(rest) => plain_predicate(rest).map(Guard::unless),
        None => plain_predicate(word).map(Guard::when),
    }
}

fn barrier(word: &str) -> Result<ConvBarrier, TextError> {
    numbered(word, 'B', ConvBarrier::COUNT)
        .map(ConvBarrier)
        .ok_or_else(|| unexpected("a convergence barrier", word))
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn read_source(inst: &mut Inst, slot: usize, word: &str) -> Result<(), TextError> {
    if inst.op.address_slot() == Some(slot) {
        return read_address(inst, slot, word).ok_or_else(|| unexpected("an address", word));
    }
    inst.src[slot] = operand(word).ok_or_else(|| unexpected("a source", word))?;
    Ok(())
}

/// Parses `[source]` or `[source+0x10]`, after `c[3]` for LDC.
fn read_address(inst: &mut Inst, slot: usize, word: &str) -> Option<()> {
    let mut word = word;
    if inst.op == Opcode::Ldc {
        let (bank, rest) = word.strip_prefix("c[")?.split_once(']')?;
        inst.mods.bank = bank.parse().ok()?;
        word = rest;
    }
    let inside = word.strip_prefix('[')?.strip_suffix(']')?;
    // A leading sign belongs to the source, not to the offset.
    let at = inside
        .rfind(['+', '-'])
        .filter(|&at| at > 0 && inside[at + 1..].starts_with("0x"));
    let (base, offset) = match at {
        Some(at) if !inside[..at].ends_with(['-', '~']) => (&inside[..at], signed_offset(&inside[at..])?),
        _ => (inside, 0),
    };
    inst.src[slot] = operand(base)?;
    inst.mods.offset = offset;
    Some(())
}

fn signed_offset(word: &str) -> Option<i32> {
    let magnitude = i64::try_from(hexadecimal(&word[1..])?).ok()?;
    i32::try_from(if word.starts_with('-') { -magnitude } else { magnitude }).ok()
}

fn operand(word: &str) -> Option<Operand> {
    let (neg, word) = strip(word, '-');
    let (not, word) = strip(word, '~');
    let (abs, word) = strip(word, '|');
    let word = if abs { word.strip_suffix('|')? } else { word };
    let source = bare_source(word)?;
    Some(Operand { source, neg, abs, not })
}

fn strip(word: &str, mark: char) -> (bool, &str) {
    word.strip_prefix(mark).map_or((false, word), |rest| (true, rest))
}

fn bare_source(word: &str) -> Option<Source> {
    if let Some(special) = value_of(SPECIALS, word) {
        return Some(Source::Special(special));
    }
    if let Some(rest) = word.strip_prefix("c[") {
        let (bank, offset) = rest.strip_suffix(']')?.split_once("][")?;
        return Some(Source::Const {
            bank: bank.parse().ok()?,
            offset: hexadecimal(offset)?.try_into().ok()?,
        });
    }
    match hexadecimal(word) {
        Some(bits) => Some(Source::Imm(bits)),
        None => register(word).ok().map(Source::Reg),
    }
}
