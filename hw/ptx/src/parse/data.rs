//! Parser of variables, parameters and initial values.

use super::{Parsed, Parser};
use crate::ast::{Init, Linkage, Name, Space, Type, Variable};
use crate::diag::Diagnostic;
use crate::lex::Kind;

/// The part of a declaration before its names.
struct Head {
    linkage: Linkage,
    space: Space,
    align: Option<u32>,
    vector: u32,
    ty: Type,
}

impl<'a> Parser<'a> {
    /// Parses `.global .align 4 .b8 table[4] = {1, 2}, other;`.
    pub(super) fn variables(&mut self, linkage: Linkage) -> Parsed<Vec<Variable<'a>>> {
        let space = self.space()?;
        let head = self.head(linkage, space)?;
        let mut variables = Vec::new();
        loop {
            let mut variable = self.declarator(&head)?;
            if self.eat(b'=') {
                variable.init = Some(self.init()?);
                set_size_from_init(&mut variable);
            }
            variables.push(variable);
            if !self.eat(b',') {
                self.expect(b';')?;
                return Ok(variables);
            }
        }
    }

    /// Parses `.param .u64 .ptr .global .align 1 name`, or `.reg .u32 name` in a `.func`.
    pub(super) fn parameter(&mut self) -> Parsed<Variable<'a>> {
        if self.dotted() == Some(".reg") {
            return self.register_parameter();
        }
        let space = self.space()?;
        let head = self.head(Linkage::Internal, space)?;
        self.declarator(&head)
    }

    fn register_parameter(&mut self) -> Parsed<Variable<'a>> {
        self.next();
        let head = self.head(Linkage::Internal, Space::Reg)?;
        let variable = self.declarator(&head)?;
        if variable.align.is_none() && variable.dims.is_empty() {
            return Ok(variable);
        }
        let message = "a parameter in a register takes no alignment and no array size";
        Err(Diagnostic::malformed(variable.name.span, message).help("use `.param`"))
    }

    /// Parses a declaration up to its names.
    fn head(&mut self, linkage: Linkage, space: Space) -> Parsed<Head> {
        let mut head = Head {
            linkage,
            space,
            align: None,
            vector: 1,
            ty: Type::B8,
        };
        let mut typed = false;
        while let Some(word) = self.dotted() {
            let span = self.next().span;
            match word {
                ".align" => self.alignment(&mut head, typed)?,
                ".v2" | ".v4" if head.vector > 1 => return Err(duplicate("vector width", word, span)),
                ".v2" => head.vector = 2,
                ".v4" => head.vector = 4,
                ".attribute" => self.attribute()?,
                // The space of a pointer is only a promise to an optimiser.
                ".ptr" | ".const" | ".global" | ".local" | ".shared" if typed => {}
                _ => {
                    head.ty = Type::from_dotted(word).ok_or_else(|| unknown_type(word, span))?;
                    if typed {
                        return Err(duplicate("type", word, span));
                    }
                    typed = true;
                }
            }
        }
        if !typed {
            return Err(self.unexpected("a type such as `.b32`"));
        }
        Ok(head)
    }

    fn space(&mut self) -> Parsed<Space> {
        let space = match self.dotted() {
            Some(".const") => Space::Const,
            Some(".global") => Space::Global,
            Some(".local") => Space::Local,
            Some(".param") => Space::Param,
            Some(".shared") => Space::Shared,
            Some(".tex") => Space::Tex,
            _ => return Err(self.unexpected("a state space such as `.global`")),
        };
        self.next();
        Ok(space)
    }

    /// Parses an alignment. Before the type it applies to the variable; after `.ptr` it applies to the target and is ignored.
    fn alignment(&mut self, head: &mut Head, typed: bool) -> Parsed<()> {
        let span = self.token().span;
        let align = self.small_integer("an alignment")?;
        if !align.is_power_of_two() {
            return Err(Diagnostic::malformed(span, "the alignment is not a power of two"));
        }
        if !typed {
            head.align = Some(align);
        }
        Ok(())
    }

    fn attribute(&mut self) -> Parsed<()> {
        self.expect(b'(')?;
        // Attributes such as `.managed` change no instruction.
        while !self.eat(b')') {
            if self.token().kind == Kind::End {
                return Err(self.unexpected("`)`"));
            }
            self.next();
        }
        Ok(())
    }

    /// Parses a name with its array sizes.
    fn declarator(&mut self, head: &Head) -> Parsed<Variable<'a>> {
        let name = self.word("a name")?;
        let mut dims = Vec::new();
        while self.eat(b'[') {
            if self.eat(b']') {
                dims.push(None);
                continue;
            }
            dims.push(Some(u64::from(self.small_integer("an array size")?)));
            self.expect(b']')?;
        }
        Ok(Variable {
            linkage: head.linkage,
            space: head.space,
            align: head.align,
            vector: head.vector,
            ty: head.ty,
            name,
            dims,
            init: None,
        })
    }

    /// Parses an initial value or a list in braces.
    fn init(&mut self) -> Parsed<Init<'a>> {
        let start = self.token();
        match start.kind {
            Kind::Punct(b'{') => {
                self.next();
                if self.token().kind == Kind::Word && self.peek(1).kind == Kind::Punct(b'=') {
                    let fields = self.list(b'}', Self::init_field)?;
                    return Ok(Init::Fields(fields, start.span.to(self.last_span())));
                }
                let items = self.nested(|parser| parser.list(b'}', Self::init))?;
                Ok(Init::List(items, start.span.to(self.last_span())))
            }
            Kind::Float => Ok(Init::Float(self.float()?, start.span)),
            Kind::Punct(b'-' | b'+') if self.peek(1).kind == Kind::Float => {
                Ok(Init::Float(self.signed_float()?, start.span.to(self.last_span())))
            }
            Kind::Word if self.slice(start.span) != "WARP_SZ" => self.init_symbol(),
            // A mask before parentheses: one byte of an address.
            Kind::Int if self.peek(1).kind == Kind::Punct(b'(') => self.init_byte(),
            _ => Ok(Init::Int(
                self.constant("an initial value")?,
                start.span.to(self.last_span()),
            )),
        }
    }

    /// Parses `filter_mode = nearest`.
    fn init_field(&mut self) -> Parsed<(Name<'a>, Init<'a>)> {
        let name = self.word("a field")?;
        self.expect(b'=')?;
        let value = match self.token().kind {
            Kind::Word => Init::Symbol(self.word("a value")?, 0, false),
            _ => self.init_integer()?,
        };
        Ok((name, value))
    }

    /// Parses `name`, `name+8`, `generic(name)+8` or `generic(name+8)`.
    fn init_symbol(&mut self) -> Parsed<Init<'a>> {
        let mut name = self.word("a symbol")?;
        // Without parentheses `generic` is a symbol like any other.
        let generic = name.text == "generic" && self.eat(b'(');
        let mut offset = 0i64;
        if generic {
            name = self.word("a symbol")?;
            offset = self.init_offset()?;
            self.expect(b')')?;
        }
        offset = offset.wrapping_add(self.init_offset()?);
        Ok(Init::Symbol(name, offset, generic))
    }

    fn init_offset(&mut self) -> Parsed<i64> {
        let signed = self.is(b'+') || self.is(b'-');
        if signed { self.byte_offset() } else { Ok(0) }
    }

    /// Parses `0xFF00(name+8)` or `0xFF(1000 + 546)`: the byte under the mask.
    fn init_byte(&mut self) -> Parsed<Init<'a>> {
        let start = self.token().span;
        let mask = self.integer("a mask")?;
        let shift = (0..64).step_by(8).find(|shift| mask == 0xff << shift).ok_or_else(|| {
            Diagnostic::malformed(start, "a mask must select one whole byte")
                .help("write `0xFF`, `0xFF00` and so on, up to `0xFF00000000000000`")
        })?;
        self.expect(b'(')?;
        let inner = if self.token().kind == Kind::Word {
            self.init_symbol()?
        } else {
            self.init_integer()?
        };
        self.expect(b')')?;
        Ok(Init::Byte(Box::new(inner), shift, start.to(self.last_span())))
    }

    fn init_integer(&mut self) -> Parsed<Init<'a>> {
        let start = self.token().span;
        let value = self.constant("an integer or a symbol")?;
        Ok(Init::Int(value, start.to(self.last_span())))
    }
}

/// Sets an omitted array size to the number of initial values: `.u8 x[] = {1, 2, 3}` has three elements.
fn set_size_from_init(variable: &mut Variable<'_>) {
    if let (Some(size @ None), Some(Init::List(items, _))) = (variable.dims.first_mut(), &variable.init) {
        *size = Some(items.len() as u64);
    }
}

/// Creates the finding for a repeated type or vector width.
pub(super) fn duplicate(what: &str, word: &str, span: crate::diag::Span) -> Diagnostic {
    Diagnostic::malformed(span, format!("duplicate {what} `{word}`")).help("keep one of them")
}

fn unknown_type(word: &str, span: crate::diag::Span) -> Diagnostic {
    Diagnostic::malformed(span, format!("unknown type `{word}`"))
}
