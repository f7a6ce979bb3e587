//! Parser of function bodies: scopes, declarations, labels and instructions.

use super::data::duplicate;
use super::{Parsed, Parser};
use crate::ast::{Block, Instruction, Loc, Name, Registers, Statement, Type};
use crate::diag::Diagnostic;
use crate::lex::Kind;
use warpwave_isa::source::SourcePos;

impl<'a> Parser<'a> {
    /// Parses `{ … }` and records every finding inside.
    pub(super) fn block(&mut self) -> Parsed<Block<'a>> {
        self.nested(|parser| {
            let open = parser.expect(b'{')?;
            let mut statements = Vec::new();
            loop {
                match parser.token().kind {
                    Kind::Punct(b'}') => {
                        let end = parser.next().span;
                        return Ok(Block { statements, end });
                    }
                    Kind::Punct(b';') => {
                        parser.next();
                    }
                    Kind::End => {
                        return Err(Diagnostic::malformed(open, "this `{` is never closed"));
                    }
                    first => {
                        let start = parser.at;
                        let is_label = parser.peek(1).kind == Kind::Punct(b':');
                        if let Err(finding) = parser.statement(&mut statements) {
                            // After a lost register or label, its uses would be reported as undefined.
                            parser.lost_declarations |= first == Kind::Dotted || is_label;
                            parser.recover(start, finding);
                        }
                    }
                }
            }
        })
    }

    fn statement(&mut self, out: &mut Vec<Statement<'a>>) -> Parsed<()> {
        match self.token().kind {
            Kind::Punct(b'{') => out.push(Statement::Block(self.block()?)),
            Kind::Punct(b'@') => out.push(self.instruction()?),
            Kind::Dotted => self.directive(out)?,
            // The lexer keeps `::` inside its dotted word, so a colon here ends a label.
            Kind::Word if self.peek(1).kind == Kind::Punct(b':') => {
                let label = self.word("a label")?;
                self.next();
                out.push(self.labelled(label)?);
            }
            Kind::Word => out.push(self.instruction()?),
            _ => return Err(self.unexpected("an instruction, a label or a directive")),
        }
        Ok(())
    }

    fn directive(&mut self, out: &mut Vec<Statement<'a>>) -> Parsed<()> {
        let word = self.dotted().unwrap_or_default();
        match word {
            ".reg" => out.push(self.registers()?),
            ".loc" => out.push(self.loc()?),
            ".pragma" => out.extend(self.pragma()?.then_some(Statement::KeepLoop)),
            ".const" | ".global" | ".local" | ".param" | ".shared" | ".tex" | ".extern" | ".visible" | ".weak" => {
                let linkage = self.linkage();
                let variables = self.variables(linkage)?;
                out.extend(variables.into_iter().map(Statement::Variable));
            }
            _ => {
                let message = format!("unknown directive `{word}`");
                return Err(Diagnostic::malformed(self.token().span, message));
            }
        }
        Ok(())
    }

    /// Parses the statement after a label: a call prototype, a target table, or nothing.
    fn labelled(&mut self, label: Name<'a>) -> Parsed<Statement<'a>> {
        match self.dotted() {
            Some(".callprototype") => {
                self.next();
                self.prototype()?;
                Ok(Statement::Prototype(label))
            }
            Some(".branchtargets") => {
                self.next();
                let targets = self.list(b';', |parser| parser.word("a label"))?;
                if targets.is_empty() {
                    let finding = Diagnostic::malformed(label.span, "`.branchtargets` without a label");
                    return Err(finding.help("write the labels that the branch may take"));
                }
                Ok(Statement::Targets(label, targets))
            }
            Some(".calltargets") => {
                self.next();
                let targets = self.list(b';', |parser| parser.word("a function"))?;
                Ok(Statement::CallTargets(label, targets))
            }
            _ => Ok(Statement::Label(label)),
        }
    }

    fn prototype(&mut self) -> Parsed<()> {
        self.parameters()?;
        self.word("`_`")?;
        self.parameters()?;
        // Directives such as `.noreturn` change nothing here.
        while self.dotted().is_some() {
            self.next();
        }
        self.expect(b';')?;
        Ok(())
    }

    /// Parses `.loc 1 17 9, function_name $L__info_string0, inlined_at 1 18 5`. No semicolon ends it.
    fn loc(&mut self) -> Parsed<Statement<'a>> {
        self.next();
        let span = self.token().span;
        let at = self.source_pos()?;
        let mut inlined_at = None;
        while self.eat(b',') {
            match self.word("`function_name` or `inlined_at`")?.text {
                "function_name" => self.info_label()?,
                "inlined_at" => inlined_at = Some(self.source_pos()?),
                _ => {
                    return Err(Diagnostic::malformed(
                        self.last_span(),
                        "neither `function_name` nor `inlined_at`",
                    ));
                }
            }
        }
        Ok(Statement::Loc(Loc { at, inlined_at, span }))
    }

    /// Parses a source position: `1 17 9`.
    fn source_pos(&mut self) -> Parsed<SourcePos> {
        Ok(SourcePos {
            file: self.small_integer("a file index")?,
            line: self.small_integer("a line")?,
            column: self.small_integer("a column")?,
        })
    }

    /// Parses a label of the debug data: `$L__info_string0+8`.
    fn info_label(&mut self) -> Parsed<()> {
        self.word("a label of the debug data")?;
        if self.eat(b'+') {
            self.small_integer("an offset")?;
        }
        Ok(())
    }

    /// Parses `.reg .b32 %r<8>, x;`.
    fn registers(&mut self) -> Parsed<Statement<'a>> {
        self.next();
        let mut vector = 1;
        let mut ty = None;
        while let Some(word) = self.dotted() {
            let span = self.next().span;
            match word {
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                _ => {
                    let found = Type::from_dotted(word);
                    let unknown = || Diagnostic::malformed(span, format!("unknown type `{word}`"));
                    if ty.replace(found.ok_or_else(unknown)?).is_some() {
                        return Err(duplicate("type", word, span));
                    }
                }
            }
        }
        let ty = ty.ok_or_else(|| self.unexpected("a type such as `.b32`"))?;
        let names = self.list(b';', Self::register_name)?;
        Ok(Statement::Registers(Registers { ty, vector, names }))
    }

    fn register_name(&mut self) -> Parsed<(Name<'a>, Option<u32>)> {
        let name = self.word("a register name")?;
        if !self.eat(b'<') {
            return Ok((name, None));
        }
        let span = self.token().span;
        let count = self.small_integer("a number of registers")?;
        if count > MAX_REGISTERS {
            let message = format!("more than {MAX_REGISTERS} registers in one declaration");
            return Err(Diagnostic::malformed(span, message));
        }
        self.expect(b'>')?;
        Ok((name, Some(count)))
    }

    /// Parses `@!%p1 ld.global.f32 %f1, [%rd1+4];`.
    fn instruction(&mut self) -> Parsed<Statement<'a>> {
        let start = self.token().span;
        let guard = if self.eat(b'@') {
            let negated = self.eat(b'!');
            Some((self.word("a predicate register")?, negated))
        } else {
            None
        };
        let opcode = self.word("an opcode")?;
        let mut qualifiers = Vec::new();
        while let Some(text) = self.dotted() {
            let span = self.next().span;
            qualifiers.push(Name { text, span });
        }
        self.in_call = opcode.text == "call";
        let operands = self.operands()?;
        let instruction = Instruction {
            guard,
            opcode,
            qualifiers,
            operands,
            span: start.to(self.last_span()),
        };
        self.expect_end(&instruction)?;
        Ok(Statement::Instruction(instruction))
    }

    fn operands(&mut self) -> Parsed<Vec<crate::ast::Operand<'a>>> {
        let mut operands = Vec::new();
        // `expect_end` reports a brace in place of the semicolon.
        if self.is(b';') || self.is(b'}') {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand()?);
            if !self.eat(b',') {
                return Ok(operands);
            }
        }
    }

    /// Takes the semicolon. A missing one at a line end is reported, and parsing goes on with the next line.
    fn expect_end(&mut self, instruction: &Instruction<'a>) -> Parsed<()> {
        if self.eat(b';') {
            return Ok(());
        }
        let finding = self.unexpected("`,` or `;`");
        let between = &self.text[instruction.span.end as usize..self.token().span.start as usize];
        if !between.contains('\n') {
            return Err(finding);
        }
        let span = crate::diag::Span {
            start: instruction.span.end,
            end: instruction.span.end,
        };
        let missing = Diagnostic::malformed(span, "missing `;` after this instruction");
        self.findings
            .push(missing.help("every instruction ends with a semicolon"));
        Ok(())
    }
}

/// Maximum count of one register declaration. No real kernel comes near. It bounds the memory that a typing error can take.
const MAX_REGISTERS: u32 = 1 << 20;
