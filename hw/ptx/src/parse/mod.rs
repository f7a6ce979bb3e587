//! The parser: builds the syntax tree from tokens.
//!
//! The parser accepts any opcode with any qualifiers and operands. Text that is not PTX becomes a finding. Parsing then resumes
//! after the statement or the item of module scope, with its braces. So one run reports several findings, each with its own cause.
//!
//! It is written by hand for its error recovery: one pass finds every error, each with its position.
//!
//! [`Parser`] is the cursor. `module`, `body`, `operand`, `constant` and `data` each parse one part of the grammar.

mod body;
mod constant;
mod data;
mod module;
mod operand;

use crate::ast::{Module, Name};
use crate::diag::{Diagnostic, Span};
use crate::lex::{Kind, Token, lex};

/// Result of parsing a text.
pub(crate) struct ParseOutput<'a> {
    /// The tree, without skipped parts.
    pub module: Module<'a>,
    /// One finding for each skipped part.
    pub findings: Vec<Diagnostic>,
    /// True if a declaration was skipped, so that declared names can seem undefined.
    pub lost_declarations: bool,
}

/// Parses a module.
pub(crate) fn parse(text: &str) -> ParseOutput<'_> {
    // Spans are byte offsets of 32 bits.
    if u32::try_from(text.len()).is_err() {
        let too_long = Diagnostic::malformed(Span::default(), "the text is longer than 4 GiB");
        return ParseOutput {
            module: Module::default(),
            findings: vec![too_long],
            lost_declarations: true,
        };
    }
    let mut findings = Vec::new();
    let tokens = lex(text, &mut findings);
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        depth: 0,
        in_call: false,
        findings,
        lost_declarations: false,
    };
    let module = parser.module();
    ParseOutput {
        module,
        findings: parser.findings,
        lost_declarations: parser.lost_declarations,
    }
}

/// A part of the tree, or the finding that explains its absence.
type Parsed<T> = Result<T, Diagnostic>;

/// Maximum nesting of blocks, vectors and initial values. It keeps the recursive parser within the host stack.
const MAX_DEPTH: u32 = 256;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    /// True in a `call`, where parentheses enclose a list of operands.
    in_call: bool,
    findings: Vec<Diagnostic>,
    lost_declarations: bool,
}

impl<'a> Parser<'a> {
    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn peek(&self, ahead: usize) -> Token {
        // The last token is `End`, and stays in place.
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Returns the span of the token taken last.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn is(&self, punct: u8) -> bool {
        self.token().kind == Kind::Punct(punct)
    }

    fn eat(&mut self, punct: u8) -> bool {
        let found = self.is(punct);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, punct: u8) -> Parsed<Span> {
        if self.is(punct) {
            return Ok(self.next().span);
        }
        Err(self.unexpected(&format!("`{}`", punct as char)))
    }

    /// Creates the finding that the current token is not `expected`.
    fn unexpected(&self, expected: &str) -> Diagnostic {
        let token = self.token();
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", self.slice(token.span)),
        };
        Diagnostic::malformed(token.span, format!("expected {expected}, found {found}"))
    }

    fn word(&mut self, expected: &str) -> Parsed<Name<'a>> {
        if self.token().kind != Kind::Word {
            return Err(self.unexpected(expected));
        }
        let span = self.next().span;
        Ok(Name {
            text: self.slice(span),
            span,
        })
    }

    /// Returns the current token if it is a dotted word, without taking it.
    fn dotted(&self) -> Option<&'a str> {
        let token = self.token();
        (token.kind == Kind::Dotted).then(|| self.slice(token.span))
    }

    /// Parses an integer with an optional sign. `expected` names it in a finding.
    fn integer(&mut self, expected: &str) -> Parsed<i128> {
        // Compilers write the address `[%rd1+-4]`.
        let negative = if self.eat(b'-') {
            true
        } else {
            self.eat(b'+') && self.eat(b'-')
        };
        if self.token().kind != Kind::Int {
            return Err(self.unexpected(expected));
        }
        let span = self.next().span;
        let value = integer_value(self.slice(span)).ok_or_else(|| {
            Diagnostic::malformed(span, "not an integer of at most 64 bits")
                .help("write decimal, `0x` hexadecimal, `0b` binary or `0` octal digits, with an optional `U`")
        })?;
        Ok(if negative { -value } else { value })
    }

    /// Parses an integer from 0 to `u32::MAX`.
    fn small_integer(&mut self, expected: &str) -> Parsed<u32> {
        let span = self.token().span;
        let value = self.integer(expected)?;
        u32::try_from(value).map_err(|_| Diagnostic::malformed(span, format!("{expected} does not fit 32 bits")))
    }

    fn string(&mut self, expected: &str) -> Parsed<&'a str> {
        if self.token().kind != Kind::Text {
            return Err(self.unexpected(expected));
        }
        let span = self.next().span;
        Ok(self.slice(span).trim_matches('"'))
    }

    /// Parses items separated by commas, up to and including `close`.
    fn list<T>(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(b',') {
                self.expect(close)?;
                return Ok(items);
            }
        }
    }

    /// Runs `inner` one nesting level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(Diagnostic::malformed(self.token().span, message));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// True if the current token is the first of its line and one of `words`.
    fn starts_line(&self, words: &[&str]) -> bool {
        let (last, next) = (self.last_span(), self.token().span);
        let between = &self.text[last.end as usize..next.start as usize];
        between.contains('\n') && words.contains(&self.slice(next))
    }

    /// Records a finding of the statement that starts at token `start`, and skips the rest of the statement.
    ///
    /// The statement ends at its `;`, before the `}` of its block, or before a line that starts with a directive. Braces of a
    /// vector or of an inner block are skipped as a whole.
    fn recover(&mut self, start: usize, finding: Diagnostic) {
        let span = finding.span.start;
        self.findings.push(finding);
        // Braces of a vector that is open where the error is, and braces opened after it.
        let mut open = self.open_braces(start);
        let (mut inner, mut is_block) = (0, false);
        loop {
            match self.token().kind {
                Kind::End => return,
                // A directive at the finding itself is the one that failed, not a new statement.
                Kind::Dotted if inner == 0 && self.token().span.start > span && self.starts_line(&LINE_STARTS) => {
                    return;
                }
                Kind::Dotted if self.starts_line(&ITEM_STARTS) && self.token().span.start > span => return,
                Kind::Punct(b'{') => inner += 1,
                Kind::Punct(b'}') if inner > 0 => {
                    inner -= 1;
                    if inner == 0 && is_block {
                        self.next();
                        return;
                    }
                }
                Kind::Punct(b'}') if open > 0 => open -= 1,
                Kind::Punct(b'}') => return,
                Kind::Punct(b';') if inner == 0 => {
                    self.next();
                    return;
                }
                // A vector has no `;`, so these braces are a block.
                Kind::Punct(b';') => is_block = true,
                _ => {}
            }
            self.next();
        }
    }

    /// Returns the number of braces open between token `start` and the current token.
    fn open_braces(&self, start: usize) -> i32 {
        let count = |punct| move |token: &&Token| token.kind == Kind::Punct(punct);
        let taken = self.tokens[start..self.at].iter();
        taken.clone().filter(count(b'{')).count() as i32 - taken.filter(count(b'}')).count() as i32
    }

    /// Records a finding of the module-scope item that starts at token `start`, and skips the rest of the item.
    ///
    /// The item ends after its body or its initial values.
    fn recover_item(&mut self, start: usize, finding: Diagnostic) {
        let span = finding.span.start;
        self.findings.push(finding);
        let mut depth = self.open_braces(start);
        loop {
            let token = self.token();
            // A directive at the finding itself is the one that failed, not a new item.
            let is_later = token.span.start > span;
            match token.kind {
                Kind::End => return,
                Kind::Dotted if depth == 0 && is_later && self.starts_line(&LINE_STARTS) => return,
                Kind::Dotted if is_later && self.starts_line(&ITEM_STARTS) => return,
                Kind::Punct(b'{') => depth += 1,
                // This brace ends the item, or it closes nothing and belongs to it.
                Kind::Punct(b'}') if depth <= 1 => {
                    self.next();
                    self.eat(b';');
                    return;
                }
                Kind::Punct(b'}') => depth -= 1,
                Kind::Punct(b';') if depth == 0 => {
                    self.next();
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }
}

/// Directives that start a statement. No other statement has one of them at the start of a line.
const LINE_STARTS: [&str; 16] = [
    ".version",
    ".target",
    ".address_size",
    ".file",
    ".section",
    ".pragma",
    ".visible",
    ".extern",
    ".weak",
    ".entry",
    ".func",
    ".global",
    ".const",
    ".shared",
    ".reg",
    ".loc",
];

/// Directives that start an item of module scope, and nothing inside a function.
const ITEM_STARTS: [&str; 9] = [
    ".version",
    ".target",
    ".address_size",
    ".visible",
    ".extern",
    ".weak",
    ".common",
    ".entry",
    ".func",
];

/// Parses an integer literal. `None` for other text and for values above 64 bits.
fn integer_value(literal: &str) -> Option<i128> {
    let digits = literal.strip_suffix(['U', 'u']).unwrap_or(literal);
    let value = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => u64::from_str_radix(&digits[2..], 2),
        // A leading zero means octal, as in C.
        [b'0', _, ..] => u64::from_str_radix(&digits[1..], 8),
        _ => digits.parse(),
    };
    value.ok().map(i128::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_literals_of_each_base_have_their_value() {
        assert_eq!(integer_value("42"), Some(42));
        assert_eq!(integer_value("0x1F"), Some(31));
        assert_eq!(integer_value("0b101U"), Some(5));
        assert_eq!(integer_value("017"), Some(15));
        assert_eq!(integer_value("0"), Some(0));
        assert_eq!(integer_value("0xFFFFFFFFFFFFFFFF"), Some(u64::MAX.into()));
        assert_eq!(integer_value("18446744073709551616"), None);
        assert_eq!(integer_value("12ab"), None);
    }
}
