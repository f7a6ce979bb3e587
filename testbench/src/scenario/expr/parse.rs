//! Parses the text of an expression by precedence climbing.

use warpwave_components::preset::BYTE_UNITS;

use super::{Binary, ExprError, MAX_DEPTH, MAX_TEXT, Node, Unary};
use crate::scenario::dtype::Number;

/// Operators with two operands by their symbol, each after the symbols that begin with it, and their precedence.
const OPERATORS: [(&str, Binary, u8); 22] = [
    ("||", Binary::Or, 1),
    ("or", Binary::Or, 1),
    ("&&", Binary::And, 2),
    ("and", Binary::And, 2),
    ("<<", Binary::ShiftLeft, 7),
    (">>", Binary::ShiftRight, 7),
    ("<=", Binary::LessEqual, 3),
    (">=", Binary::GreaterEqual, 3),
    ("==", Binary::Equal, 3),
    ("!=", Binary::NotEqual, 3),
    ("<", Binary::Less, 3),
    (">", Binary::Greater, 3),
    ("|", Binary::BitOr, 4),
    ("^", Binary::BitXor, 5),
    ("&", Binary::BitAnd, 6),
    ("+", Binary::Add, 8),
    ("-", Binary::Subtract, 8),
    ("**", Binary::Power, 11),
    ("*", Binary::Multiply, 9),
    ("//", Binary::FloorDivide, 9),
    ("/", Binary::Divide, 9),
    ("%", Binary::Remainder, 9),
];

/// What may stand behind a number.
const UNITS: &str = "a unit (kB, MB, GB, KiB, MiB, GiB) or an operator";

/// Precedence of an operator with one operand: below `**`.
const UNARY: u8 = 10;

/// Precedence of comparisons.
const COMPARISON: u8 = 3;

/// Parses a whole text.
pub(super) fn parse(text: &str) -> Result<Node, ExprError> {
    if text.len() > MAX_TEXT {
        return Err(ExprError::TooLarge);
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let node = parser.expression(1)?;
    parser.skip_spaces();
    match parser.rest() {
        "" => Ok(node),
        _ => Err(parser.expected("an operator or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Offset of the next character.
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn expected(&self, expected: &'static str) -> ExprError {
        ExprError::Syntax {
            text: self.text.to_owned(),
            column: self.text[..self.at].chars().count() + 1,
            expected,
        }
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips spaces and this symbol. False if another one follows.
    fn take(&mut self, symbol: &str) -> bool {
        self.skip_spaces();
        let follows = self.rest().starts_with(symbol);
        if follows {
            self.at += symbol.len();
        }
        follows
    }

    fn require(&mut self, symbol: &str, expected: &'static str) -> Result<(), ExprError> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.expected(expected))
        }
    }

    /// The operator that follows, with its precedence and its length.
    fn operator(&mut self) -> Option<(Binary, u8, usize)> {
        self.skip_spaces();
        let word = word(self.rest());
        // A word must match in full: the name `order` is not the operator `or`.
        let is_it = |symbol: &str| match word {
            "" => self.rest().starts_with(symbol),
            word => word == symbol,
        };
        let (symbol, operator, precedence) = OPERATORS.into_iter().find(|(symbol, ..)| is_it(symbol))?;
        Some((operator, precedence, symbol.len()))
    }

    /// Parses operands that are joined by operators of at least this precedence.
    fn expression(&mut self, least: u8) -> Result<Node, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExprError::TooLarge);
        }
        let mut left = self.operand()?;
        let mut has_compared = false;
        while let Some((operator, precedence, length)) = self.operator() {
            if precedence < least {
                break;
            }
            if has_compared && precedence == COMPARISON {
                return Err(self.expected("`and`, or the end: comparisons do not chain, so an operator"));
            }
            has_compared |= precedence == COMPARISON;
            self.at += length;
            // Powers group from right to left.
            let next = if operator == Binary::Power {
                UNARY
            } else {
                precedence + 1
            };
            let right = self.expression(next)?;
            left = Node::Binary(operator, left.into(), right.into());
        }
        // After an error the parser ends, so only this path counts back.
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Node, ExprError> {
        for (symbol, operator) in [("-", Unary::Negate), ("!", Unary::Not), ("~", Unary::Invert)] {
            if self.take(symbol) {
                // `**` binds tighter, so `-2 ** 2` is -4, as in Python.
                let operand = self.expression(UNARY)?;
                return Ok(match (operator, operand) {
                    // A literal is not negative, so this cannot overflow.
                    (Unary::Negate, Node::Number(Number::Int(value))) => Node::Number(Number::Int(-value)),
                    (operator, operand) => Node::Unary(operator, operand.into()),
                });
            }
        }
        let mut node = self.primary()?;
        while self.take("[") {
            let index = self.expression(1)?;
            self.require("]", "`]`")?;
            node = Node::Index(node.into(), index.into());
        }
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, ExprError> {
        self.skip_spaces();
        match self.rest().chars().next() {
            Some('(') => {
                self.at += 1;
                let inner = self.expression(1)?;
                self.require(")", "`)`")?;
                Ok(inner)
            }
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            Some(first) if first.is_ascii_digit() => self.number().map(Node::Number),
            Some(first) if begins_name(first) => self.name(),
            _ => Err(self.expected("a number, a name or `(`")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Node, ExprError> {
        let inner = &self.rest()[1..];
        let end = inner.find(quote).ok_or_else(|| self.expected("a closed text"))?;
        let text = inner[..end].to_owned();
        // The text and both quotes.
        self.at += end + 2;
        Ok(Node::Text(text))
    }

    /// A name, or the call of a function.
    fn name(&mut self) -> Result<Node, ExprError> {
        let name = word(self.rest()).to_owned();
        self.at += name.len();
        if !self.take("(") {
            return Ok(Node::Name(name));
        }
        let mut args = Vec::new();
        if self.take(")") {
            return Ok(Node::Call(name, args));
        }
        loop {
            args.push(self.expression(1)?);
            if self.take(")") {
                return Ok(Node::Call(name, args));
            }
            self.require(",", "`,` or `)`")?;
        }
    }

    /// A number with its unit. A power of ten as in `1e6` is an integer if it has no fraction.
    fn number(&mut self) -> Result<Number, ExprError> {
        let length = number_length(self.rest());
        let digits = self.rest()[..length].replace('_', "");
        let number = read_number(&digits).ok_or_else(|| self.expected("an integer below 2^127, or a finite number"))?;
        self.at += length;
        self.skip_spaces();
        let unit = word(self.rest());
        let Some((name, factor)) = BYTE_UNITS.into_iter().find(|(name, _)| *name == unit) else {
            let is_operator = OPERATORS.iter().any(|(operator, ..)| *operator == unit);
            return match unit.is_empty() || is_operator {
                true => Ok(number),
                false => Err(self.expected(UNITS)),
            };
        };
        let number = match number {
            Number::Int(value) => value.checked_mul(factor.into()).map(Number::Int),
            Number::Float(value) => Some(Number::Float(value * factor as f64)),
        };
        let number = number.ok_or_else(|| self.expected("a smaller unit"))?;
        self.at += name.len();
        Ok(number)
    }
}

/// The characters of a number at the start of `text`.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if text.starts_with("0x") {
        let is_hex = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b'_';
        return 2 + bytes[2..].iter().take_while(is_hex).count();
    }
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'_')
            .count()
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        // An `e` without digits is not part of the number.
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}

fn read_number(digits: &str) -> Option<Number> {
    if let Some(hex) = digits.strip_prefix("0x") {
        return i128::from_str_radix(hex, 16).ok().map(Number::Int);
    }
    if digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return digits.parse().ok().map(Number::Int);
    }
    if let Some((mantissa, exponent)) = digits.split_once(['e', 'E']).filter(|(m, _)| !m.contains('.')) {
        // A negative exponent does not parse as u32, so that number becomes a float.
        let power = exponent.parse().ok().and_then(|exponent| 10i128.checked_pow(exponent));
        let product = power.and_then(|power| mantissa.parse::<i128>().ok()?.checked_mul(power));
        if let Some(value) = product {
            return Some(Number::Int(value));
        }
    }
    // Beyond the range of f64, `parse` gives infinity.
    digits
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .map(Number::Float)
}

/// The name at the start of `text`. Empty if there is none. The names of metrics have dots.
fn word(text: &str) -> &str {
    if !text.starts_with(begins_name) {
        return "";
    }
    let is_part = |c: char| begins_name(c) || c.is_ascii_digit() || c == '.';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}
