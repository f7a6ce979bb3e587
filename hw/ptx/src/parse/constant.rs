//! Parser of constant expressions: integers of 64 bits with the operators of C (PTX ISA, "Constant Expressions").
//!
//! A literal is signed. With a `U`, or above 2^63 - 1, it is unsigned. An operation on two signed values is signed. There are four
//! exceptions. `~` and `%` are unsigned. A shift has the type of its first operand. A comparison gives a signed 0 or 1. `a ? b : c` has the
//! type of the chosen operand. The rules were compared with the vendor's assembler (ptxas 11.8). The assembler computes an overflow and a
//! long shift in the host's arithmetic. Here both are findings.

use super::{Parsed, Parser, integer_value};
use crate::diag::{Diagnostic, Span};
use crate::lex::Kind;

/// A value: its bits, and its type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Constant {
    bits: u64,
    is_unsigned: bool,
}

impl Constant {
    fn signed(value: i64) -> Self {
        Constant {
            bits: value as u64,
            is_unsigned: false,
        }
    }

    fn unsigned(bits: u64) -> Self {
        Constant {
            bits,
            is_unsigned: true,
        }
    }

    fn truth(value: bool) -> Self {
        Constant::signed(value.into())
    }

    /// Returns the number, which can be negative only if it is signed.
    fn number(self) -> i128 {
        if self.is_unsigned {
            self.bits.into()
        } else {
            (self.bits as i64).into()
        }
    }
}

/// Levels of the binary operators. A higher level binds tighter.
// `operator` takes the first match, so `<=` and `<<` come before `<`.
const LEVELS: [(&str, u32); 18] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", PRODUCT),
    ("/", PRODUCT),
    ("%", PRODUCT),
];

/// Level of products and quotients.
const PRODUCT: u32 = 10;

impl<'a> Parser<'a> {
    /// Parses an expression. `expected` names it in a finding.
    pub(super) fn constant(&mut self, expected: &str) -> Parsed<i128> {
        Ok(self.choice(expected)?.number())
    }

    /// Parses one term of a sum of offsets: a product, or a single operand.
    pub(super) fn constant_product(&mut self, expected: &str) -> Parsed<i128> {
        Ok(self.binary(expected, PRODUCT)?.number())
    }

    /// True if the token after the first one is an operator with two or three operands.
    pub(super) fn is_operator_next(&self) -> bool {
        matches!(self.peek(1).kind, Kind::Punct(byte) if b"|&=!<>^+-*/?".contains(&byte))
            || self.slice(self.peek(1).span) == "%"
    }

    /// Parses `a ? b : c` or a simpler expression.
    fn choice(&mut self, expected: &str) -> Parsed<Constant> {
        let condition = self.binary(expected, 1)?;
        if !self.eat(b'?') {
            return Ok(condition);
        }
        let chosen = self.nested(|parser| parser.choice("an integer"))?;
        self.expect(b':')?;
        let other = self.nested(|parser| parser.choice("an integer"))?;
        Ok(if condition.bits != 0 { chosen } else { other })
    }

    /// Parses operators of at least `level`.
    fn binary(&mut self, expected: &str, level: u32) -> Parsed<Constant> {
        let start = self.token().span;
        let mut left = self.unary(expected)?;
        while let Some((operator, found)) = self.operator().filter(|&(_, found)| found >= level) {
            // Each punctuation character is a token.
            operator.bytes().for_each(|_| _ = self.next());
            let right = self.nested(|parser| parser.binary("an integer", found + 1))?;
            let span = start.to(self.last_span());
            left = apply(operator, left, right).map_err(|message| Diagnostic::malformed(span, message))?;
        }
        Ok(left)
    }

    /// Returns the operator at the current token, with its level.
    fn operator(&self) -> Option<(&'static str, u32)> {
        let first = self.token().span;
        let starts = |&&(operator, _): &&(&str, u32)| {
            let end = first.start as usize + operator.len();
            self.text.get(first.start as usize..end) == Some(operator)
        };
        // A lone `%` is an operator. `%3` is a name, as in the vendor's assembler.
        let is_operator = match self.token().kind {
            Kind::Punct(_) => true,
            Kind::Word => self.slice(first) == "%",
            _ => false,
        };
        is_operator.then(|| LEVELS.iter().find(starts).copied())?
    }

    fn unary(&mut self, expected: &str) -> Parsed<Constant> {
        let start = self.token().span;
        match self.token().kind {
            Kind::Punct(sign @ (b'-' | b'+' | b'!' | b'~')) => {
                self.next();
                let value = self.nested(|parser| parser.unary(expected))?;
                Ok(match sign {
                    b'-' if value.is_unsigned => Constant::unsigned(value.bits.wrapping_neg()),
                    b'-' => {
                        let negated = (value.bits as i64).checked_neg();
                        Constant::signed(negated.ok_or_else(|| overflow(start.to(self.last_span())))?)
                    }
                    b'!' => Constant::truth(value.bits == 0),
                    b'~' => Constant::unsigned(!value.bits),
                    _ => value,
                })
            }
            Kind::Punct(b'(') => {
                self.next();
                let Some(cast @ (".s64" | ".u64")) = self.dotted() else {
                    let value = self.nested(|parser| parser.choice("an integer"))?;
                    self.expect(b')')?;
                    return Ok(value);
                };
                self.next();
                self.expect(b')')?;
                let value = self.nested(|parser| parser.unary("an integer"))?;
                Ok(Constant {
                    is_unsigned: cast == ".u64",
                    ..value
                })
            }
            Kind::Word if self.slice(start) == "WARP_SZ" => {
                self.next();
                Ok(Constant::signed(32))
            }
            Kind::Int => {
                self.next();
                self.literal(start)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn literal(&self, span: Span) -> Parsed<Constant> {
        let text = self.slice(span);
        let value = integer_value(text).and_then(|value| u64::try_from(value).ok());
        let bits = value.ok_or_else(|| {
            Diagnostic::malformed(span, "not an integer of at most 64 bits")
                .help("write decimal, `0x` hexadecimal, `0b` binary or `0` octal digits, with an optional `U`")
        })?;
        Ok(Constant {
            bits,
            is_unsigned: text.ends_with(['U', 'u']) || i64::try_from(bits).is_err(),
        })
    }
}

fn overflow(span: Span) -> Diagnostic {
    Diagnostic::malformed(span, OVERFLOW)
}

const OVERFLOW: &str = "the value does not fit the type `.s64` of this expression";

/// Returns the result of a binary operator. The error is the message of a finding.
fn apply(operator: &str, left: Constant, right: Constant) -> Result<Constant, String> {
    let is_unsigned = left.is_unsigned || right.is_unsigned;
    let (a, b) = (left.bits, right.bits);
    let (signed_a, signed_b) = (a as i64, b as i64);
    // Wraps if unsigned, as in C.
    let arithmetic = |unsigned: u64, signed: Option<i64>| match is_unsigned {
        true => Ok(Constant::unsigned(unsigned)),
        false => signed.map(Constant::signed).ok_or_else(|| OVERFLOW.to_owned()),
    };
    let is_less = if is_unsigned { a < b } else { signed_a < signed_b };
    let is_shift = matches!(operator, "<<" | ">>");
    if is_shift && b > 63 {
        return Err("a value of 64 bits is shifted by at most 63".to_owned());
    }
    if matches!(operator, "/" | "%") && b == 0 {
        let ty = if is_unsigned || operator == "%" { ".u64" } else { ".s64" };
        return Err(format!("division by zero in an expression of type `{ty}`"));
    }
    match operator {
        "+" => arithmetic(a.wrapping_add(b), signed_a.checked_add(signed_b)),
        "-" => arithmetic(a.wrapping_sub(b), signed_a.checked_sub(signed_b)),
        "*" => arithmetic(a.wrapping_mul(b), signed_a.checked_mul(signed_b)),
        "/" => arithmetic(a / b, signed_a.checked_div(signed_b)),
        "%" => Ok(Constant::unsigned(a % b)),
        "<<" => Ok(Constant { bits: a << b, ..left }),
        ">>" if left.is_unsigned => Ok(Constant::unsigned(a >> b)),
        ">>" => Ok(Constant::signed(signed_a >> b)),
        "&" | "|" | "^" => {
            let bits = match operator {
                "&" => a & b,
                "|" => a | b,
                _ => a ^ b,
            };
            Ok(Constant { bits, is_unsigned })
        }
        "&&" => Ok(Constant::truth(a != 0 && b != 0)),
        "||" => Ok(Constant::truth(a != 0 || b != 0)),
        "==" => Ok(Constant::truth(a == b)),
        "!=" => Ok(Constant::truth(a != b)),
        "<" => Ok(Constant::truth(is_less)),
        ">=" => Ok(Constant::truth(!is_less)),
        ">" => Ok(Constant::truth(!is_less && a != b)),
        _ => Ok(Constant::truth(is_less || a == b)),
    }
}

#[cfg(test)]
mod tests {
    use crate::ast::Init;

    /// Returns the bits of an initial value, or the message of the finding.
    fn value(expression: &str) -> Result<u64, String> {
        let text = format!(".version 7.8\n.target sm_80\n.global .u64 g = {expression};\n");
        let parsed = super::super::parse(&text);
        if let Some(finding) = parsed.findings.first() {
            return Err(finding.message.clone());
        }
        match parsed.module.variables[0].init {
            Some(Init::Int(value, _)) => Ok(value as u64),
            ref other => panic!("{other:?}"),
        }
    }

    /// Values of ptxas 11.8 for an initial value of type `.u64`.
    #[test]
    fn expressions_have_the_values_of_the_vendor() {
        const HALF: u64 = u64::MAX >> 1;
        let cases = [
            ("4+8*2", 20),
            ("~0>>1", HALF),
            ("(-1&-1)>>1", u64::MAX),
            ("(-1+0U)>>1", HALF),
            ("-1>>0U", u64::MAX),
            ("-(1U)>>1", HALF),
            ("(-1/1U)/2", HALF),
            ("(0?1U:-1)>>1", u64::MAX),
            ("(.s64)-1U>>1", u64::MAX),
            ("(.u64)(1-2)>>1", HALF),
            ("-7 % 3", 0),
            ("1<<63>>1", 3 << 62),
            ("5- 3-1", 1),
            ("100/10/5", 2),
            ("1+2<<3", 24),
            ("1<<3+1", 16),
            ("6&3==3", 0),
            ("1|2^3&4", 3),
            ("1||0&&0", 1),
            ("0?1:0?2:3", 3),
            ("-1 >= 1", 0),
            ("-1>=1U", 1),
            ("1<2>1", 0),
            ("!5", 0),
            ("!!5", 1),
            ("- -5", 5),
            ("(((5)))", 5),
            ("010+1", 9),
            ("0x10U+1", 17),
            ("WARP_SZ/3", 10),
            ("1?2:3+1", 2),
            ("-5/2", -2_i64 as u64),
            ("9223372036854775808/2", 1 << 62),
        ];
        for (expression, expected) in cases {
            assert_eq!(value(expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn expressions_without_a_value_are_refused() {
        for (expression, message) in [
            ("1/0", "division by zero in an expression of type `.s64`"),
            ("1U/0", "division by zero in an expression of type `.u64`"),
            ("1 % (2-2)", "division by zero in an expression of type `.u64`"),
            ("(-9223372036854775807-1)/-1", super::OVERFLOW),
            ("-(-9223372036854775807-1)", super::OVERFLOW),
            ("9223372036854775807+1", super::OVERFLOW),
            ("1<<64", "a value of 64 bits is shifted by at most 63"),
            ("1>>-1", "a value of 64 bits is shifted by at most 63"),
            ("4*", "expected an integer, found `;`"),
            ("(4", "expected `)`, found `;`"),
            ("1?2", "expected `:`, found `;`"),
        ] {
            assert_eq!(value(expression), Err(message.to_owned()), "{expression}");
        }
        // Unsigned values wrap.
        assert_eq!(value("0xffffffffffffffff+2"), Ok(1));
    }
}
