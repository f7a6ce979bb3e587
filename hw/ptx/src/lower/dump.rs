//! Text dump of intermediate code, for tests and for inspecting a pass.
//!
//! `b0:` is a block, `%3` a register, `%3:2` a value of two registers, and `p1` a predicate. Only modifiers that an operation
//! uses are shown.

use super::code::{Arg, Bits, Code, Op, OpKind, VGuard, Wide};
use std::fmt::Write;
use warpwave_isa::inst::{Mods, Round, Ty};
use warpwave_isa::opcode::Opcode;

/// Renders the whole code. Each block name and each operation has its own line.
pub(super) fn text(code: &Code) -> String {
    let mut out = String::new();
    for (block, body) in code.blocks.iter().enumerate() {
        let _ = writeln!(out, "b{block}:");
        for op in &body.ops {
            let _ = writeln!(out, "    {}", line(op));
        }
    }
    out
}

fn line(op: &Op) -> String {
    let guard = if op.guard == VGuard::ALWAYS {
        String::new()
    } else {
        format!("@{} ", predicate_text(op.guard))
    };
    let results = results(op);
    let arrow = if results.is_empty() { "" } else { " = " };
    let sources = sources(op);
    let gap = if sources.is_empty() { "" } else { " " };
    format!("{guard}{results}{arrow}{}{gap}{sources}", name(op))
}

fn results(op: &Op) -> String {
    let shape = op.shape();
    let vreg = op
        .dst
        .filter(|_| shape.dst > 0)
        .map(|vreg| sized(format!("%{}", vreg.0), shape.dst));
    let preds = op.pdst.iter().flatten().map(|pred| format!("p{}", pred.0));
    vreg.into_iter().chain(preds).collect::<Vec<_>>().join(", ")
}

fn sources(op: &Op) -> String {
    let shape = op.shape();
    let mut parts: Vec<String> = (0..4)
        .filter(|&slot| shape.src[slot] > 0)
        .map(|slot| arg(op, slot, shape.src[slot]))
        .collect();
    parts.extend(op.psrc[..shape.psrc].iter().map(|&source| predicate_text(source)));
    parts.extend(op.target.map(|block| format!("b{block}")));
    if matches!(op.kind, OpKind::Machine(Opcode::Bssy | Opcode::Bsync)) {
        parts.insert(0, op.conv.to_string());
    }
    parts.join(", ")
}

fn arg(op: &Op, slot: usize, words: u8) -> String {
    let arg = op.src[slot];
    let text = modified(arg, bits(arg.bits, words));
    let is_address = matches!(
        (op.kind, slot),
        (
            OpKind::Machine(
                Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red | Opcode::Cctl | Opcode::Ldc | Opcode::Ldsm
            ),
            0
        ) | (OpKind::Machine(Opcode::Ldgsts), 1)
    );
    match op.mods.offset {
        0 if is_address => format!("[{text}]"),
        offset if is_address => format!("[{text}{offset:+}]"),
        _ => text,
    }
}

fn bits(bits: Bits, words: u8) -> String {
    match bits {
        Bits::Zero => "0".to_owned(),
        Bits::VReg(vreg) => sized(format!("%{}", vreg.0), words),
        Bits::Imm(value) => format!("{value:#x}"),
        Bits::Const { bank, offset } => sized(format!("c[{bank:#x}][{offset:#x}]"), words),
        Bits::Special(special) => format!("{special:?}"),
    }
}

fn sized(name: String, words: u8) -> String {
    if words == 1 { name } else { format!("{name}:{words}") }
}

fn modified(arg: Arg, text: String) -> String {
    let text = if arg.abs { format!("|{text}|") } else { text };
    let text = if arg.not { format!("~{text}") } else { text };
    if arg.neg { format!("-{text}") } else { text }
}

fn predicate_text(predicate: VGuard) -> String {
    let sign = if predicate.negated { "!" } else { "" };
    match predicate.pred {
        Some(pred) => format!("{sign}p{}", pred.0),
        None => format!("{sign}true"),
    }
}

fn name(op: &Op) -> String {
    let opcode = match op.kind {
        OpKind::Machine(opcode) => opcode.info().name.to_owned(),
        OpKind::Wide(wide) => format!("{}.64", wide_name(wide)),
    };
    opcode + &modifiers(op.kind, &op.mods)
}

fn wide_name(wide: Wide) -> &'static str {
    match wide {
        Wide::Mov => "MOV",
        Wide::Add => "ADD",
        Wide::Sub => "SUB",
        Wide::Lop => "LOP",
        Wide::Shl => "SHL",
        Wide::Shr => "SHR",
        Wide::Sel => "SEL",
        Wide::Setp => "SETP",
        Wide::Mad => "MAD",
    }
}

/// Renders modifiers that differ from their defaults, with the names of [`Mods`].
fn modifiers(kind: OpKind, mods: &Mods) -> String {
    let mut out = String::new();
    let mut add = |shown: bool, text: String| {
        if shown {
            out.push('.');
            out += &text;
        }
    };
    let compares = matches!(
        kind,
        OpKind::Wide(Wide::Setp) | OpKind::Machine(Opcode::Isetp | Opcode::Fsetp | Opcode::Dsetp | Opcode::Hsetp2)
    );
    let moves_data = matches!(
        kind,
        OpKind::Machine(
            Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red | Opcode::Cctl | Opcode::Ldc | Opcode::Ldgsts
        )
    );
    add(compares, format!("{:?}", mods.cmp));
    add(compares && mods.unordered, "U".to_owned());
    add(compares && mods.join != Default::default(), format!("{:?}", mods.join));
    add(moves_data, format!("{:?}", mods.space));
    add(moves_data, access(mods));
    add(
        moves_data && mods.cache != Default::default(),
        format!("{:?}", mods.cache),
    );
    add(
        matches!(kind, OpKind::Machine(Opcode::Atom | Opcode::Red | Opcode::Redux)),
        format!("{:?}", mods.atom),
    );
    add(
        matches!(kind, OpKind::Machine(Opcode::Mufu)),
        format!("{:?}", mods.mufu),
    );
    add(
        matches!(kind, OpKind::Machine(Opcode::Shfl)),
        format!("{:?}", mods.shfl),
    );
    add(
        matches!(kind, OpKind::Machine(Opcode::Vote | Opcode::Match)),
        format!("{:?}", mods.vote),
    );
    add(
        matches!(kind, OpKind::Machine(Opcode::Mma | Opcode::MmaSp)),
        format!("{:?}", mods.mma),
    );
    add(
        matches!(
            kind,
            OpKind::Machine(Opcode::I2f | Opcode::F2i | Opcode::F2f | Opcode::I2i)
        ),
        format!("{:?}", mods.from),
    );
    add(mods.ty != Ty::U32, format!("{:?}", mods.ty));
    add(mods.round != Round::Nearest, format!("{:?}", mods.round));
    for (set, text) in [
        (mods.extended, "X"),
        (mods.integral, "INT"),
        (mods.ftz, "FTZ"),
        (mods.sat, "SAT"),
        (mods.high, "HI"),
        (mods.right, "R"),
        (mods.wrap, "W"),
        (mods.trans, "T"),
        (mods.neg, "NEG"),
    ] {
        add(set, text.to_owned());
    }
    add(mods.lut != 0, format!("{:#04x}", mods.lut));
    add(mods.count != 0, mods.count.to_string());
    out
}

fn access(mods: &Mods) -> String {
    let sign = if mods.access.signed { "S" } else { "" };
    let bits = 8 * u32::from(mods.access.bytes);
    match mods.access.count {
        1 => format!("{sign}{bits}"),
        count => format!("{count}x{sign}{bits}"),
    }
}
