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
            Kind::Word => self.named()?,
            Kind::Float => OperandKind::Float(self.float()?),
            Kind::Int => OperandKind::Int(self.integer("an integer")?),
            Kind::Punct(b'-') if self.peek(1).kind == Kind::Word => {
                self.next();
                OperandKind::Minus(Box::new(self.nested(Self::single)?))
            }
            Kind::Punct(b'-' | b'+') => self.signed()?,
            Kind::Punct(b'!') => {
                self.next();
                OperandKind::Not(Box::new(self.nested(Self::single)?))
            }
            Kind::Punct(b'[') => self.nested(Self::address)?,
            Kind::Punct(b'{') => {
                self.next();
                OperandKind::Vector(self.nested(|parser| parser.list(b'}', Self::operand))?)
            }
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

    fn signed(&mut self) -> Parsed<OperandKind<'a>> {
        if self.peek(1).kind != Kind::Float {
            return Ok(OperandKind::Int(self.integer("an integer")?));
        }
        // The sign is a bit of the literal, so a zero or a NaN has it too.
        let negative = self.next().kind == Kind::Punct(b'-');
        Ok(OperandKind::Float(match self.float()? {
            Float::Single(bits) => Float::Single(bits ^ (u32::from(negative) << 31)),
            Float::Double(bits) => Float::Double(bits ^ (u64::from(negative) << 63)),
        }))
    }

    /// Parses `+8`, `-4` or `+-4`.
    pub(super) fn byte_offset(&mut self) -> Parsed<i64> {
        let span = self.token().span;
        let value = self.integer("an offset in bytes")?;
        i64::try_from(value)
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
