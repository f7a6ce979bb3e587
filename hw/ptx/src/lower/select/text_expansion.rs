//! Expansions into PTX text: `set`, `lop3` with a predicate, and video instructions.
//!
//! A video operation computes on 64-bit integers. They hold every intermediate value that PTX defines.

use super::compare::comparison_of;
use super::qualifiers::COMPARISON_QUALIFIERS;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use std::fmt::Write;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Expands `set`: all ones or 1.0 where a comparison holds, in each half for a packed type.
    pub(super) fn set(&mut self, form: &Form<'t, 'a>) -> Selected {
        comparison_of(form)?;
        form.only(COMPARISON_QUALIFIERS)?;
        let (to, from) = match *form.types.as_slice() {
            [to, from] if from.bits() >= 16 => (to, from),
            _ => return Err(form.unsupported()),
        };
        let words: String = form
            .qualifiers()
            .map(|name| name.text)
            .filter(|word| Type::from_dotted(word).is_none())
            .collect();
        let third = if form.operands().len() > 3 { ", %c" } else { "" };
        let [result, source] = [to, from].map(|ty| format!(".b{}", ty.bits()));
        // The bits of 1.0, or all ones.
        let one: u64 = match to {
            Type::F32 => 0x3f80_0000,
            Type::F16 | Type::F16x2 => 0x3c00,
            Type::Bf16 | Type::Bf16x2 => 0x3f80,
            // One result for each half.
            Type::U32 | Type::S32 if is_pair(from) => 0xffff,
            Type::U32 | Type::S32 => 0xffff_ffff,
            Type::U16 | Type::S16 => 0xffff,
            _ => return Err(form.unsupported()),
        };
        let mut code = format!(".reg {result} %d; .reg {source} %a, %b; .reg .pred %c, %p, %q; .reg .b32 %high;\n");
        let from = from.dotted();
        code += &match is_pair(form.ty()) {
            true => format!(
                "setp{words}{from} %p|%q, %a, %b{third};\nselp.b32 %d, {one}, 0, %p;\nselp.b32 %high, {}, 0, %q;\nor.b32 %d, %d, %high;\n",
                one << 16
            ),
            false => format!("setp{words}{from} %p, %a, %b{third};\nselp{result} %d, {one}, 0, %p;\n"),
        };
        self.expand(form, &code)
    }

    /// Expands `lop3.or.b32 d|p, a, b, c, table, q`.
    pub(super) fn lop3_predicate(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".and", ".or", ".xor"])?;
        let [Value::Pair(..), _, _, _, Value::Int(table), _] = form.operands() else {
            return Err(form.malformed("`lop3` with a predicate takes `d|p`, three words, a table and a predicate"));
        };
        let join = form.qualifiers().next().map_or(".or", |name| name.text);
        let code = format!(
            ".reg .b32 %d; .reg .pred %p; .reg .b32 %a, %b, %c, %table; .reg .pred %q;\n\
             lop3.b32 %d, %a, %b, %c, {table};\nsetp.ne{join}.u32 %p, %d, 0, %q;\n"
        );
        self.expand(form, &code)
    }

    /// Expands scalar video instructions such as `vadd`, `vmad` and `vset`.
    pub(super) fn scalar_video(&mut self, form: &Form<'t, 'a>) -> Selected {
        const KNOWN: &[&str] = &[
            ".sat", ".add", ".min", ".max", ".clamp", ".wrap", ".po", ".shr7", ".shr15", ".eq", ".ne", ".lt", ".le",
            ".gt", ".ge",
        ];
        form.only(KNOWN)?;
        let multiplies = form.opcode() == "vmad";
        let compares = form.opcode() == "vset";
        let (result, a, b) = match *form.types.as_slice() {
            [a, b] if compares => (Type::U32, a, b),
            [result, a, b] if !compares => (result, a, b),
            _ => return Err(form.unsupported()),
        };
        let [d, first, second, rest @ ..] = form.operands() else {
            return Err(form.unsupported());
        };
        let mut code = ".reg .b32 %d, %a, %b, %c, %s; .reg .b64 %x, %y, %z, %t, %h; .reg .pred %p, %q;\n".to_owned();
        load_source(&mut code, form, 'x', 'a', first, a)?;
        load_source(&mut code, form, 'y', 'b', second, b)?;
        if multiplies {
            let c = rest
                .first()
                .ok_or_else(|| form.malformed("`vmad` takes three sources"))?;
            append_multiply(&mut code, form, [first, second, c], [a, b]);
            return self.expand(form, &code);
        }
        append_operation(&mut code, form)?;
        let part = selected_field(form, d)?;
        if form.has(".sat") && form.opcode() != "vset" {
            let bits = part.map_or(32, |(_, bits)| bits);
            append_clamp(&mut code, result.is_signed(), bits);
        }
        let second = [".add", ".min", ".max"].into_iter().find(|word| form.has(word));
        match (second, part, rest) {
            (Some(word), None, [_]) => {
                let _ = writeln!(
                    code,
                    "cvt.s64{} %z, %c;\n{}.s64 %t, %t, %z;\ncvt.u32.u64 %d, %t;",
                    result.dotted(),
                    &word[1..]
                );
            }
            (None, Some((at, bits)), [_]) => {
                let _ = writeln!(code, "cvt.u32.u64 %d, %t;\nbfi.b32 %d, %d, %c, {at}, {bits};");
            }
            (None, None, []) => code += "cvt.u32.u64 %d, %t;\n",
            _ => {
                return Err(form.malformed("a third source needs a second operation or a partial result"));
            }
        }
        self.expand(form, &code)
    }

    /// Expands packed video instructions with selectors, a mask or comparisons, part by part.
    pub(super) fn selected_video(&mut self, form: &Form<'t, 'a>, parts: u32) -> Selected {
        form.only(&[".sat", ".add", ".eq", ".ne", ".lt", ".le", ".gt", ".ge"])?;
        let (result, a, b) = match *form.types.as_slice() {
            [a, b] if form.opcode().starts_with("vset") => (Type::U32, a, b),
            [result, a, b] if !form.opcode().starts_with("vset") => (result, a, b),
            _ => return Err(form.unsupported()),
        };
        let [d, first, second, _] = form.operands() else {
            return Err(form.malformed("a packed video instruction takes three sources"));
        };
        let bits = 32 / parts;
        let mask = mask(form, d, parts)?;
        let from = [lanes(form, first, 0, parts)?, lanes(form, second, parts, parts)?];
        let mut code =
            ".reg .b32 %d, %a, %b, %c; .reg .b64 %x, %y, %t; .reg .b32 %r; .reg .pred %p;\nmov.b32 %d, %c;\n"
                .to_owned();
        for n in 0..parts as usize {
            if mask >> n & 1 == 0 {
                continue;
            }
            for (name, from, ty) in [('x', &from[0], a), ('y', &from[1], b)] {
                let word = if from[n] < parts { 'a' } else { 'b' };
                let (sign, at) = (sign(ty), from[n] % parts * bits);
                let _ = writeln!(
                    code,
                    "bfe.{sign}32 %r, %{word}, {at}, {bits};\ncvt.s64.{sign}32 %{name}, %r;"
                );
            }
            append_operation(&mut code, form)?;
            if form.has(".sat") {
                append_clamp(&mut code, result.is_signed(), bits);
            }
            code += "cvt.u32.u64 %r, %t;\n";
            let _ = match form.has(".add") {
                true => writeln!(code, "add.u32 %d, %d, %r;"),
                false => writeln!(code, "bfi.b32 %d, %r, %d, {}, {bits};", n as u32 * bits),
            };
        }
        self.expand(form, &code)
    }
}

/// True for a packed pair of halves.
fn is_pair(ty: Type) -> bool {
    matches!(ty, Type::F16x2 | Type::Bf16x2)
}

fn sign(ty: Type) -> char {
    if ty.is_signed() { 's' } else { 'u' }
}

/// Returns the first bit and the width of the byte or half that an operand selects.
fn selected_field(form: &Form<'_, '_>, value: &Value<'_>) -> Result<Option<(u32, u32)>, Diagnostic> {
    let part = match value {
        Value::Part(_, part) => *part,
        Value::Minus(inner) => return selected_field(form, inner),
        _ => return Ok(None),
    };
    let bits = if part.starts_with(".b") { 8 } else { 16 };
    match part[2..].parse::<u32>() {
        Ok(n) if part.len() == 3 && n < 32 / bits => Ok(Some((n * bits, bits))),
        _ => Err(form.malformed("a selector names one byte or half: `.b0` to `.b3`, `.h0`, `.h1`")),
    }
}

/// Loads the selected part of a source, extended by its type, into a 64-bit register.
fn load_source(code: &mut String, form: &Form<'_, '_>, to: char, from: char, value: &Value<'_>, ty: Type) -> Selected {
    let (at, bits) = selected_field(form, value)?.unwrap_or((0, 32));
    let sign = sign(ty);
    let _ = writeln!(
        code,
        "bfe.{sign}32 %s, %{from}, {at}, {bits};\ncvt.s64.{sign}32 %{to}, %s;"
    );
    Ok(())
}

/// Appends the operation itself: t = x op y.
fn append_operation(code: &mut String, form: &Form<'_, '_>) -> Selected {
    let text = match form.opcode().trim_end_matches(['2', '4']) {
        "vadd" => "add.s64 %t, %x, %y;\n",
        "vsub" => "sub.s64 %t, %x, %y;\n",
        "vabsdiff" => "sub.s64 %t, %x, %y;\nabs.s64 %t, %t;\n",
        "vmin" => "min.s64 %t, %x, %y;\n",
        "vmax" => "max.s64 %t, %x, %y;\n",
        // Rounds up for a sum of zero or more, and down below.
        "vavrg" => {
            "add.s64 %t, %x, %y;\nshr.s64 %y, %t, 63;\nadd.s64 %t, %t, %y;\nadd.s64 %t, %t, 1;\nshr.s64 %t, %t, 1;\n"
        }
        "vset" => {
            let cmp = [".eq", ".ne", ".lt", ".le", ".gt", ".ge"]
                .into_iter()
                .find(|word| form.has(word));
            let cmp = cmp.ok_or_else(|| form.malformed("this comparison has no operator"))?;
            let _ = writeln!(code, "setp{cmp}.s64 %p, %x, %y;");
            "selp.b64 %t, 1, 0, %p;\n"
        }
        "vshl" | "vshr" => return append_shift(code, form),
        _ => return Err(form.unsupported()),
    };
    *code += text;
    Ok(())
}

/// Appends a shift. The count clamps at 32 or wraps at 32.
fn append_shift(code: &mut String, form: &Form<'_, '_>) -> Selected {
    *code += "cvt.u32.u64 %s, %y;\n";
    *code += match (form.has(".clamp"), form.has(".wrap")) {
        (true, false) => "min.u32 %s, %s, 32;\n",
        (false, true) => "and.b32 %s, %s, 31;\n",
        _ => return Err(form.malformed("a shift needs `.clamp` or `.wrap`")),
    };
    *code += match (form.opcode(), form.has(".sat")) {
        ("vshr", _) => "shr.s64 %t, %x, %s;\n",
        (_, false) => "shl.b64 %t, %x, %s;\n",
        (_, true) => {
            // Values far beyond 32 bits are clamped between two shifts, so that no bit is lost before `.sat`.
            "shr.u32 %b, %s, 1;\nsub.u32 %s, %s, %b;\nshl.b64 %t, %x, %b;\nmax.s64 %t, %t, -8589934592;\nmin.s64 %t, %t, 8589934592;\nshl.b64 %t, %t, %s;\n"
        }
    };
    Ok(())
}

/// Clamps t to the range of a `bits`-bit integer.
fn append_clamp(code: &mut String, signed: bool, bits: u32) {
    let (min, max) = match signed {
        true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
        false => (0, (1i64 << bits) - 1),
    };
    let _ = writeln!(code, "max.s64 %t, %t, {min};\nmin.s64 %t, %t, {max};");
}

/// Appends `vmad`: product plus addend.
fn append_multiply(code: &mut String, form: &Form<'_, '_>, sources: [&Value<'_>; 3], types: [Type; 2]) {
    let [minus_a, minus_b, minus_c] = sources.map(|value| matches!(value, Value::Minus(_)));
    let minus = minus_a != minus_b;
    // The sum is signed if any part of it is.
    let signed = types.iter().any(|ty| ty.is_signed()) || minus || minus_c;
    *code += "mul.lo.s64 %t, %x, %y;\n";
    if form.has(".sat") && signed && !types.iter().any(|ty| ty.is_signed()) {
        // Beyond 2^62 the result saturates, and a signed product would be negative.
        *code += "min.u64 %t, %t, 4611686018427387904;\n";
    }
    let mut one = form.has(".po");
    if minus {
        // Negation is inversion plus one.
        *code += "not.b64 %t, %t;\n";
        one = true;
    } else if minus_c {
        *code += "not.b32 %c, %c;\n";
        one = true;
    }
    let sign = if signed { 's' } else { 'u' };
    let _ = writeln!(
        code,
        "cvt.{sign}64.{sign}32 %z, %c;\nadd.s64 %t, %t, %z;\nadd.s64 %t, %t, {};",
        u8::from(one)
    );
    for (word, bits) in [(".shr7", 7), (".shr15", 15)] {
        if form.has(word) {
            let _ = writeln!(code, "shr.{sign}64 %t, %t, {bits};");
        }
    }
    if form.has(".sat") && signed {
        append_clamp(code, true, 32);
    } else if form.has(".sat") {
        *code += "min.u64 %t, %t, 4294967295;\n";
    }
    *code += "cvt.u32.u64 %d, %t;\n";
}

/// Returns a bit mask of the parts of a packed result to write.
fn mask(form: &Form<'_, '_>, value: &Value<'_>, parts: u32) -> Result<u32, Diagnostic> {
    let Value::Part(_, part) = value else {
        return Ok((1 << parts) - 1);
    };
    let wrong = || form.malformed("a mask names parts of the result from high to low: `.h10`, `.b320`");
    let digits: Vec<u32> = part[2..].bytes().map(|digit| u32::from(digit - b'0')).collect();
    let fits = part.starts_with(if parts == 2 { ".h" } else { ".b" }) && digits.is_sorted_by(|a, b| a > b);
    if !fits || digits.iter().any(|&n| n >= parts) {
        return Err(wrong());
    }
    Ok(digits.iter().fold(0, |mask, n| mask | 1 << n))
}

/// Returns for each part of a source its part of (b:a), lowest first.
fn lanes(form: &Form<'_, '_>, value: &Value<'_>, first: u32, parts: u32) -> Result<Vec<u32>, Diagnostic> {
    let Value::Part(_, part) = value else {
        return Ok((first..first + parts).collect());
    };
    // The digits begin with the highest part.
    let lanes: Vec<u32> = part[2..].bytes().rev().map(|digit| u32::from(digit - b'0')).collect();
    let fits = part.starts_with(if parts == 2 { ".h" } else { ".b" }) && lanes.len() == parts as usize;
    if !fits || lanes.iter().any(|&n| n >= 2 * parts) {
        return Err(form.malformed("a selector names one source part per result part: `.h10`, `.b7610`"));
    }
    Ok(lanes)
}
