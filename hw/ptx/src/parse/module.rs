//! Parser of module scope: directives, variables and function heads.

use super::{Parsed, Parser};
use crate::ast::{Function, Linkage, Module, Name, Variable};
use crate::diag::{Diagnostic, Span};
use crate::lex::Kind;

/// The items of module scope, as a finding names them.
const ITEM: &str = "a directive such as `.entry`, `.func`, `.global` or `.version`";

impl<'a> Parser<'a> {
    pub(super) fn module(&mut self) -> Module<'a> {
        let mut module = Module {
            address_size: 64,
            ..Module::default()
        };
        while self.token().kind != Kind::End {
            let start = self.at;
            if let Err(finding) = self.item(&mut module) {
                self.lost_declarations = true;
                self.recover_item(start, finding);
            }
        }
        module
    }

    /// Parses one directive or definition into `module`.
    fn item(&mut self, module: &mut Module<'a>) -> Parsed<()> {
        if self.eat(b';') {
            return Ok(());
        }
        let Some(directive) = self.dotted() else {
            return Err(self.unexpected(ITEM));
        };
        match directive {
            ".version" => {
                let start = self.token().span;
                module.version = self.version()?;
                module.version_span = start.to(self.last_span());
            }
            ".target" => {
                let start = self.token().span;
                module.target = self.target()?;
                module.target_span = start.to(self.last_span());
            }
            ".address_size" => module.address_size = self.address_size()?,
            ".file" => module.files.push(self.file()?),
            ".section" => self.section()?,
            ".pragma" => module.keeps_loops |= self.pragma()?,
            ".alias" => module.aliases.push(self.alias()?),
            _ => self.definition(module)?,
        }
        Ok(())
    }

    fn version(&mut self) -> Parsed<(u32, u32)> {
        self.next();
        let token = self.next();
        // The lexer reads `7.8` as a float.
        let halves = self.slice(token.span).split_once('.');
        let version = halves.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        version.ok_or_else(|| {
            Diagnostic::malformed(token.span, "not a PTX version").help("write major and minor: `.version 7.8`")
        })
    }

    fn target(&mut self) -> Parsed<Vec<&'a str>> {
        self.next();
        let mut names = vec![self.word("a target such as `sm_80`")?.text];
        while self.eat(b',') {
            names.push(self.word("a target option")?.text);
        }
        Ok(names)
    }

    fn address_size(&mut self) -> Parsed<u32> {
        self.next();
        let span = self.token().span;
        match self.small_integer("an address size")? {
            64 => Ok(64),
            32 => Err(Diagnostic::unsupported(span, "32-bit addresses").help("compile for `.address_size 64`")),
            _ => Err(Diagnostic::malformed(span, "an address has 32 or 64 bits")),
        }
    }

    /// Parses `.file 1 "saxpy.cu"`, with an optional time and size.
    fn file(&mut self) -> Parsed<(u32, &'a str)> {
        self.next();
        let index = self.small_integer("a file index")?;
        let name = self.string("a file name in quotes")?;
        while self.eat(b',') {
            self.integer("a time or a size")?;
        }
        Ok((index, name))
    }

    /// Skips a section of debug data. No instruction reads it.
    fn section(&mut self) -> Parsed<()> {
        self.next();
        self.next();
        self.expect(b'{')?;
        while !self.is(b'}') {
            if self.token().kind == Kind::End {
                return Err(self.unexpected("`}`"));
            }
            self.next();
        }
        self.next();
        Ok(())
    }

    /// Parses `.pragma "nounroll";`. True if the list names `nounroll`.
    pub(super) fn pragma(&mut self) -> Parsed<bool> {
        self.next();
        let mut keeps_loops = self.string("a pragma in quotes")? == "nounroll";
        while self.eat(b',') {
            keeps_loops |= self.string("a pragma in quotes")? == "nounroll";
        }
        self.expect(b';')?;
        Ok(keeps_loops)
    }

    fn alias(&mut self) -> Parsed<(Name<'a>, Name<'a>)> {
        self.next();
        let alias = self.word("a function name")?;
        self.expect(b',')?;
        let function = self.word("a function name")?;
        self.expect(b';')?;
        Ok((alias, function))
    }

    /// Parses a function or variables, with their linkage.
    fn definition(&mut self, module: &mut Module<'a>) -> Parsed<()> {
        let linkage = self.linkage();
        match self.dotted() {
            Some(".entry") => {
                self.next();
                let function = self.function(linkage, true)?;
                module.functions.push(function);
            }
            Some(".func") => {
                self.next();
                let function = self.function(linkage, false)?;
                module.functions.push(function);
            }
            Some(".const" | ".global" | ".shared" | ".local" | ".tex") => {
                let variables = self.variables(linkage)?;
                module.variables.extend(variables);
            }
            _ => return Err(self.unexpected(ITEM)),
        }
        Ok(())
    }

    pub(super) fn linkage(&mut self) -> Linkage {
        let mut linkage = Linkage::Internal;
        loop {
            linkage = match self.dotted() {
                Some(".visible") => Linkage::Visible,
                Some(".extern") => Linkage::Extern,
                Some(".weak") => Linkage::Weak,
                Some(".common") => Linkage::Common,
                _ => return linkage,
            };
            self.next();
        }
    }

    fn function(&mut self, linkage: Linkage, is_entry: bool) -> Parsed<Function<'a>> {
        // A kernel returns nothing. A `.func` writes its results before its name.
        let returns = if is_entry { Vec::new() } else { self.parameters()? };
        let name = self.word("the function's name")?;
        let params = self.parameters()?;
        let mut keeps_loops = false;
        let limits = self.limits(&mut keeps_loops)?;
        let body = if self.eat(b';') {
            None
        } else {
            Some(self.function_body(name)?)
        };
        Ok(Function {
            linkage,
            is_entry,
            name,
            returns,
            params,
            limits,
            keeps_loops,
            body,
        })
    }

    fn function_body(&mut self, name: Name<'a>) -> Parsed<crate::ast::Block<'a>> {
        if !self.is(b'{') {
            return Err(self.unexpected(&format!("`{{` to open the body of `{}`", name.text)));
        }
        self.block()
    }

    pub(super) fn parameters(&mut self) -> Parsed<Vec<Variable<'a>>> {
        if !self.eat(b'(') {
            return Ok(Vec::new());
        }
        self.list(b')', Self::parameter)
    }

    /// Parses performance directives such as `.maxntid 256, 1, 1`, and pragmas, between head and body.
    fn limits(&mut self, keeps_loops: &mut bool) -> Parsed<Vec<(&'a str, Vec<u64>)>> {
        let mut limits: Vec<(&str, Vec<u64>)> = Vec::new();
        while let Some(directive) = self.dotted() {
            if directive == ".pragma" {
                *keeps_loops |= self.pragma()?;
                continue;
            }
            let span = self.next().span;
            let mut numbers = Vec::new();
            while self.token().kind == Kind::Int {
                numbers.push(u64::from(self.small_integer("a limit")?));
                self.eat(b',');
            }
            let span = span.to(self.last_span());
            let wrong = limit_fault(directive, &numbers, span);
            let excludes = BLOCK_SIZES.contains(&directive)
                && limits
                    .iter()
                    .any(|(other, _)| *other != directive && BLOCK_SIZES.contains(other));
            let excluded = || {
                let message = "`.maxntid` and `.reqntid` exclude each other";
                Diagnostic::malformed(span, message).help("leave out one of them")
            };
            // Recorded and not returned, because the body can be parsed in any case.
            self.findings.extend(wrong.or_else(|| excludes.then(excluded)));
            limits.push((directive, numbers));
        }
        Ok(limits)
    }
}

/// Directives that set the block size of a kernel.
const BLOCK_SIZES: [&str; 2] = [".maxntid", ".reqntid"];

/// Returns the finding for a wrong performance directive.
fn limit_fault(directive: &str, numbers: &[u64], span: Span) -> Option<Diagnostic> {
    let (min, max) = match directive {
        ".maxntid" | ".reqntid" | ".reqnctapercluster" => (1, 3),
        ".minnctapersm"
        | ".maxnctapersm"
        | ".maxnreg"
        | ".maxclusterrank"
        | ".abi_preserve"
        | ".abi_preserve_control" => (1, 1),
        ".noreturn" | ".explicitcluster" | ".blocksareclusters" => (0, 0),
        _ => {
            let message = format!("unknown directive `{directive}`");
            return Some(Diagnostic::malformed(span, message));
        }
    };
    if !(min..=max).contains(&numbers.len()) {
        let expected = match max {
            0 => "no number",
            1 => "1 number",
            _ => "1 to 3 numbers",
        };
        let message = format!("`{directive}` takes {expected}, found {}", numbers.len());
        return Some(Diagnostic::malformed(span, message));
    }
    let positive = !directive.starts_with(".abi") && directive != ".maxclusterrank";
    (positive && numbers.contains(&0))
        .then(|| Diagnostic::malformed(span, format!("`{directive}` is 0")).help("write 1 or more"))
}
