//! The lexer: splits a text into tokens.
//!
//! Every byte outside comments and blanks belongs to one token or to a finding. The last token is [`Kind::End`]. An opcode is
//! several tokens: `ld.global.f32` is one word and two dotted words. So qualifiers can come in any order.

use crate::diag::{Diagnostic, Span};

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `add`, `%r1`, `$L__BB0_1`, `_`.
    Word,
    /// `.global`, `.shared::cta`, `.2d`: a dot and its word.
    Dotted,
    /// `12`, `0x1F`, `0b101`, `017`, each with an optional `U`.
    Int,
    /// `0f3F800000`, `0d3FF0000000000000`, `1.5e3`, `1e3`, `1.`.
    Float,
    /// A string: `"nounroll"`.
    Text,
    /// One punctuation character, such as `,`, `;`, `[` or `@`.
    Punct(u8),
    /// The end of the text.
    End,
}

/// A token and its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// Splits `text` into tokens. A byte that starts no token becomes a finding.
pub(crate) fn lex(text: &str, findings: &mut Vec<Diagnostic>) -> Vec<Token> {
    // A guess: with shorter tokens the vector grows once.
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut lexer = Lexer {
        bytes: text.as_bytes(),
        at: first_byte(text),
        findings,
    };
    loop {
        lexer.skip_blanks();
        let start = lexer.at;
        let Some(kind) = lexer.token() else { continue };
        tokens.push(Token {
            kind,
            span: lexer.span(start),
        });
        if kind == Kind::End {
            return tokens;
        }
    }
}

/// Returns the offset of the first byte after a UTF-8 byte-order mark.
pub(crate) fn first_byte(text: &str) -> usize {
    text.len() - text.trim_start_matches('\u{feff}').len()
}

struct Lexer<'a, 'f> {
    bytes: &'a [u8],
    at: usize,
    findings: &'f mut Vec<Diagnostic>,
}

impl Lexer<'_, '_> {
    fn peek(&self, ahead: usize) -> u8 {
        // No token contains a zero byte, so the end of the text needs no case of its own.
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn span(&self, start: usize) -> Span {
        Span {
            start: start as u32,
            end: self.at as u32,
        }
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) {
        while self.at < self.bytes.len() && belongs(self.bytes[self.at]) {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(|byte| byte.is_ascii_whitespace());
            match (self.peek(0), self.peek(1)) {
                (b'/', b'/') => self.take_while(|byte| byte != b'\n'),
                (b'/', b'*') => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let start = self.at;
        self.at += 2;
        match self.bytes[self.at..].windows(2).position(|pair| pair == b"*/") {
            Some(length) => self.at += length + 2,
            None => {
                let opening = self.span(start);
                self.at = self.bytes.len();
                self.findings
                    .push(Diagnostic::malformed(opening, "unterminated comment").help("close it with `*/`"));
            }
        }
    }

    /// Takes the next token; `None` if it became a finding.
    fn token(&mut self) -> Option<Kind> {
        if self.at >= self.bytes.len() {
            return Some(Kind::End);
        }
        let start = self.at;
        match self.peek(0) {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'%' => {
                self.at += 1;
                self.take_while(is_word);
                Some(Kind::Word)
            }
            b'.' if is_word(self.peek(1)) => {
                self.at += 1;
                self.take_while(|byte| is_word(byte) || byte == b':');
                self.give_back_label_colon();
                Some(Kind::Dotted)
            }
            b'0'..=b'9' => Some(self.number()),
            b'"' => self.text(start),
            byte @ (b',' | b';' | b':' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'<' | b'>' | b'=' | b'|') => {
                self.at += 1;
                Some(Kind::Punct(byte))
            }
            byte @ (b'@' | b'!' | b'+' | b'-' | b'*' | b'/' | b'~' | b'&' | b'^' | b'?' | b'.') => {
                self.at += 1;
                Some(Kind::Punct(byte))
            }
            _ => self.stray(start),
        }
    }

    /// Gives back a single trailing colon of a dotted word. Only `::` belongs to the word.
    fn give_back_label_colon(&mut self) {
        if self.bytes[self.at - 1] == b':' {
            self.at -= 1;
        }
    }

    /// Takes a number: an integer, the bits of a float, or a decimal float.
    fn number(&mut self) -> Kind {
        // `0f` and `0d` begin the bits of a float. A hexadecimal integer begins with `0x`.
        let hex_float = self.peek(0) == b'0' && matches!(self.peek(1), b'f' | b'F' | b'd' | b'D');
        let start = self.at;
        self.take_while(is_word);
        if hex_float {
            return Kind::Float;
        }
        let digits = self.bytes[start..self.at]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let exponent = self.bytes.get(start + digits.count());
        // A point before a name begins a qualifier.
        let has_point = self.peek(0) == b'.' && (!is_word(self.peek(1)) || self.peek(1).is_ascii_digit());
        if !has_point && !matches!(exponent, Some(b'e' | b'E')) {
            return Kind::Int;
        }
        if has_point {
            self.at += 1;
            self.take_while(is_word);
        }
        // The sign of an exponent is no character of a word.
        if matches!(self.bytes[self.at - 1], b'e' | b'E') && matches!(self.peek(0), b'+' | b'-') {
            self.at += 1;
            self.take_while(is_word);
        }
        Kind::Float
    }

    fn text(&mut self, start: usize) -> Option<Kind> {
        self.at += 1;
        self.take_while(|byte| byte != b'"' && byte != b'\n');
        if self.peek(0) == b'"' {
            self.at += 1;
            return Some(Kind::Text);
        }
        let span = self.span(start);
        self.findings
            .push(Diagnostic::malformed(span, "unterminated string").help("close it with `\"` on the same line"));
        None
    }

    /// Reports a character that starts no token, and skips it.
    fn stray(&mut self, start: usize) -> Option<Kind> {
        self.at += 1;
        // The whole UTF-8 character, so that it gives one finding.
        while self.at < self.bytes.len() && self.bytes[self.at] & 0xC0 == 0x80 {
            self.at += 1;
        }
        let shown = String::from_utf8_lossy(&self.bytes[start..self.at])
            .escape_debug()
            .to_string();
        let span = self.span(start);
        self.findings
            .push(Diagnostic::malformed(span, format!("unexpected character `{shown}`")));
        None
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte == b'%'
}
