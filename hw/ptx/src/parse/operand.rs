//! Parser of operands: the twelve forms of PTX, and negation.

use super::{Parsed, Parser};
use crate::ast::{Float, Operand, OperandKind};
use crate::diag::Diagnostic;
use crate::lex::Kind;

impl<'a> Parser<'a> {
    /// Parses any operand, with `d|p` pairs.
    pub(super) fn operand(&mut self) -> Parsed<Operand<'a>> {
        let first = self.single()?;
        if !self.eat(b'|') {
            return Ok(first);
        }
        let second = self.single()?;
        let span = first.span.to(second.span);
        Ok(Operand {
            kind: OperandKind::Pair(Box::new(first), Box::new(second)),
            span,
        })
    }

    fn single(&mut self) -> Parsed<Operand<'a>> {
        let start = self.token().span;
        let kind = match self.token().kind {
            // A sum with an offset is no expression, since it may be an address.
            Kind::Word if self.slice(start) == "WARP_SZ" && self.is_operator_next() && !self.is_sum_next() => {
                OperandKind::Int(self.constant("an integer")?)
            }
            Kind::Word => self.named()?,
            Kind::Float => OperandKind::Float(self.float()?),
            // `.5`, which looks like a qualifier.
            Kind::Dotted if self.slice(start).as_bytes()[1].is_ascii_digit() => OperandKind::Float(self.float()?),
            Kind::Int | Kind::Punct(b'~') => OperandKind::Int(self.constant("an integer")?),
            Kind::Punct(b'-') if self.peek(1).kind == Kind::Word => {
                self.next();
                OperandKind::Minus(Box::new(self.nested(Self::single)?))
            }
            Kind::Punct(b'-' | b'+') if self.peek(1).kind == Kind::Float => OperandKind::Float(self.signed_float()?),
            Kind::Punct(b'-' | b'+') => OperandKind::Int(self.constant("an integer")?),
            Kind::Punct(b'!') if matches!(self.peek(1).kind, Kind::Int | Kind::Punct(b'(' | b'!')) => {
                OperandKind::Int(self.constant("an integer")?)
            }
            Kind::Punct(b'!') => {
                self.next();
                OperandKind::Not(Box::new(self.nested(Self::single)?))
            }
            Kind::Punct(b'[') => self.nested(Self::address)?,
            Kind::Punct(b'{') => {
                self.next();
                OperandKind::Vector(self.nested(|parser| parser.list(b'}', Self::operand))?)
            }
            // Only a call has lists.
            Kind::Punct(b'(') if !self.in_call => OperandKind::Int(self.constant("an integer")?),
            Kind::Punct(b'(') => {
                self.next();
                OperandKind::List(self.nested(|parser| parser.list(b')', Self::operand))?)
            }
            _ => return Err(self.unexpected("an operand")),
        };
        Ok(Operand {
            kind,
            span: start.to(self.last_span()),
        })
    }

    fn named(&mut self) -> Parsed<OperandKind<'a>> {
        let name = self.word("a name")?.text;
        if let Some(component) = self.dotted() {
            self.next();
            return Ok(OperandKind::Component(name, component));
        }
        if self.is(b'+') || self.is(b'-') {
            return Ok(OperandKind::Offset(name, self.byte_offset()?));
        }
        Ok(OperandKind::Name(name))
    }

    fn is_sum_next(&self) -> bool {
        matches!(self.peek(1).kind, Kind::Punct(b'+' | b'-'))
    }

    /// Parses a float after a sign.
    pub(super) fn signed_float(&mut self) -> Parsed<Float> {
        // The sign is a bit of the literal, so a zero or a NaN has it too.
        let negative = self.next().kind == Kind::Punct(b'-');
        Ok(match self.float()? {
            Float::Single(bits) => Float::Single(bits ^ (u32::from(negative) << 31)),
            Float::Double(bits) => Float::Double(bits ^ (u64::from(negative) << 63)),
        })
    }

    /// Parses `+8`, `-4`, `+-4` or `+8-2*2`.
    pub(super) fn byte_offset(&mut self) -> Parsed<i64> {
        let span = self.token().span;
        let mut sum = 0_i128;
        while self.is(b'+') || self.is(b'-') {
            let negative = self.next().kind == Kind::Punct(b'-');
            let term = self.constant_product("an offset in bytes")?;
            // A text has too few terms for an overflow of 128 bits.
            sum += if negative { -term } else { term };
        }
        i64::try_from(sum)
            .map_err(|_| Diagnostic::malformed(span.to(self.last_span()), "the offset does not fit 64 signed bits"))
    }

    /// Parses `[base]`, `[base+offset]`, `[4096]` or `[handle, {x, y}]`.
    fn address(&mut self) -> Parsed<OperandKind<'a>> {
        self.next();
        let mut base = self.single()?;
        if self.eat(b',') {
            let mut parts = vec![base];
            parts.extend(self.list(b']', Self::operand)?);
            return Ok(OperandKind::Handle(parts));
        }
        let mut offset = 0;
        // Inside brackets the offset belongs to the address and needs no sum.
        if let OperandKind::Offset(name, bytes) = base.kind {
            base.kind = OperandKind::Name(name);
            offset = bytes;
        }
        self.expect(b']')?;
        Ok(OperandKind::Address(Box::new(base), offset))
    }

    /// Parses `0f3F800000`, `0d…` or a decimal float. PTX reads a decimal float as a double.
    pub(super) fn float(&mut self) -> Parsed<Float> {
        let span = self.next().span;
        let literal = self.slice(span);
        let value = match literal.as_bytes() {
            [b'0', b'f' | b'F', digits @ ..] if digits.len() == 8 => {
                u32::from_str_radix(&literal[2..], 16).ok().map(Float::Single)
            }
            [b'0', b'd' | b'D', digits @ ..] if digits.len() == 16 => {
                u64::from_str_radix(&literal[2..], 16).ok().map(Float::Double)
            }
            [b'0', b'f' | b'F' | b'd' | b'D', ..] => None,
            _ => literal.parse::<f64>().ok().map(|value| Float::Double(value.to_bits())),
        };
        value.ok_or_else(|| {
            Diagnostic::malformed(span, "not a floating-point literal")
                .help("write `0f` and 8 hexadecimal digits, or `0d` and 16")
        })
    }
}
