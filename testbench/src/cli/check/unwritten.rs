//! Registers that are read, but that nothing in the function writes. Their value is undefined; most often a name is misspelt.
//!
//! The search knows no order of execution. It counts the first operand of an instruction as written, unless that is an address. So a
//! register that is written too late, or in one branch alone, has no finding.

use std::collections::{BTreeMap, HashSet};

use warpwave_ptx::Diagnostic;
use warpwave_ptx::ast::{Block, Function, Instruction, Module, Operand, OperandKind, Registers, Statement};
use warpwave_ptx::diag::Span;

/// Number of registers of a function with a warning of their own. The rest share one.
const MAX_WARNINGS: usize = 8;

/// A warning for each such register of each function, at its first read. One warning counts those beyond [`MAX_WARNINGS`].
pub fn warnings(module: &Module<'_>) -> Vec<Diagnostic> {
    module.functions.iter().flat_map(of_function).collect()
}

fn of_function(function: &Function<'_>) -> Vec<Diagnostic> {
    let mut uses = Uses::default();
    function.body.iter().for_each(|body| uses.block(body));
    let what = if function.is_entry { "kernel" } else { "function" };
    let unwritten: Vec<(&&str, &Span)> = uses.read.iter().filter(|(name, _)| uses.is_unwritten(name)).collect();
    let (own, rest) = unwritten.split_at(unwritten.len().min(MAX_WARNINGS));
    let warning = |&(name, span): &(&&str, &Span)| {
        Diagnostic::warning(*span, format!("nothing in the {what} writes register `{name}`"))
            .help("its value is undefined: write it before this line, or correct the name")
    };
    let shared = rest.first().map(|&(name, span)| {
        let all = rest.len();
        Diagnostic::warning(
            *span,
            format!("nothing in the {what} writes {all} more registers, `{name}` first"),
        )
        .help("their values are undefined; if the code is for debugging, it may compute with them and use no result")
    });
    own.iter().map(warning).chain(shared).collect()
}

/// The registers of a function. A name stands for one register, also if an inner scope declares it once more.
#[derive(Default)]
struct Uses<'a> {
    /// Names declared without a count. There may be thousands, so the search for one must not read them all.
    declared: HashSet<&'a str>,
    /// Names with a count: each declares the names with a number below it.
    ranges: Vec<(&'a str, u32)>,
    written: HashSet<&'a str>,
    /// The first read of each name.
    read: BTreeMap<&'a str, Span>,
}

impl<'a> Uses<'a> {
    fn block(&mut self, block: &Block<'a>) {
        for statement in &block.statements {
            match statement {
                Statement::Registers(Registers { names, .. }) => {
                    for (name, count) in names {
                        match count {
                            None => _ = self.declared.insert(name.text),
                            Some(count) => self.ranges.push((name.text, *count)),
                        }
                    }
                }
                Statement::Instruction(inst) => self.instruction(inst),
                Statement::Block(block) => self.block(block),
                _ => {}
            }
        }
    }

    fn instruction(&mut self, inst: &Instruction<'a>) {
        if let Some((guard, _)) = &inst.guard {
            self.read.entry(guard.text).or_insert(guard.span);
        }
        for (n, operand) in inst.operands.iter().enumerate() {
            match &operand.kind {
                // The results of a call. Its first operand is a name if there are none.
                OperandKind::List(results) if n == 0 => results.iter().for_each(|result| self.write(result)),
                _ if n == 0 && inst.opcode.text != "call" => self.write(operand),
                _ => self.read(operand),
            }
        }
    }

    fn write(&mut self, operand: &Operand<'a>) {
        match &operand.kind {
            OperandKind::Name(name) | OperandKind::Component(name, _) => _ = self.written.insert(name),
            OperandKind::Pair(first, second) => [first, second].iter().for_each(|part| self.write(part)),
            OperandKind::Vector(parts) => parts.iter().for_each(|part| self.write(part)),
            _ => self.read(operand),
        }
    }

    fn read(&mut self, operand: &Operand<'a>) {
        match &operand.kind {
            OperandKind::Name(name) | OperandKind::Offset(name, _) | OperandKind::Component(name, _) => {
                self.read.entry(name).or_insert(operand.span);
            }
            OperandKind::Int(_) | OperandKind::Float(_) => {}
            OperandKind::Not(inner) | OperandKind::Minus(inner) | OperandKind::Address(inner, _) => self.read(inner),
            OperandKind::Pair(first, second) => [first, second].iter().for_each(|part| self.read(part)),
            OperandKind::Handle(parts) | OperandKind::Vector(parts) | OperandKind::List(parts) => {
                parts.iter().for_each(|part| self.read(part));
            }
        }
    }

    /// True for a declared register without a write. Symbols, labels and special registers are not declared.
    fn is_unwritten(&self, name: &str) -> bool {
        let is_in = |&(stem, count): &(&str, u32)| {
            let number = name.strip_prefix(stem).and_then(|number| number.parse().ok());
            number.is_some_and(|number: u32| number < count)
        };
        !self.written.contains(name) && (self.declared.contains(name) || self.ranges.iter().any(is_in))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines and messages of the warnings on a body.
    fn found(body: &str) -> Vec<(usize, String)> {
        let text = format!(".version 8.0\n.target sm_80\n.entry k(.param .u64 p)\n{{\n{body}\n}}\n");
        let module = warpwave_ptx::parse(&text).unwrap();
        let found = warnings(&module);
        found
            .into_iter()
            .map(|finding| (finding.line(&text), finding.message))
            .collect()
    }

    #[test]
    fn register_that_is_only_read_is_found_in_every_place_of_an_instruction() {
        for (line, name) in [
            ("add.u32 %r1, %r2, 1;", "%r2"),
            ("st.global.u32 [%rd2+4], 1;", "%rd2"),
            ("shl.b32 %r1, %r1, %r2;", "%r2"),
            ("@!%p2 mov.u32 %r1, 1;", "%p2"),
            ("mov.b64 %rd1, {%r2, 1};", "%r2"),
            ("selp.u32 %r1, 1, 2, %p2;", "%p2"),
        ] {
            let body = format!(".reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<3>;\n{line}\nret;");
            let says = format!("nothing in the kernel writes register `{name}`");
            assert_eq!(found(&body), [(6, says)], "{line}");
        }
    }

    #[test]
    fn registers_beyond_the_eighth_share_a_warning() {
        let reads = |n: usize| -> String { (1..=n).map(|at| format!("add.u32 %r0, %r0, %s{at};\n")).collect() };
        let all = |n: usize| found(&format!(".reg .b32 %r<1>, %s<20>;\n{}ret;", reads(n)));
        assert_eq!(all(8).len(), 8);
        // In order of names: %s1, %s10, %s11, %s2, ... %s6 have their own.
        let many = all(11);
        assert_eq!(many.len(), 9);
        assert_eq!(many[8].1, "nothing in the kernel writes 3 more registers, `%s7` first");
    }

    #[test]
    fn register_with_a_write_of_any_kind_has_no_warning() {
        for body in [
            "mov.u32 %r1, %tid.x;\nadd.u32 %r2, %r1, %r1;",
            "setp.eq.u32 %p1|%p2, 1, 2;\n@%p1 ret;\n@%p2 ret;",
            "mov.b64 {%r1, %r2}, 5;\nadd.u32 %r3, %r1, %r2;",
            // Written below its read: a loop may bring the value there.
            "L:\nadd.u32 %r2, %r1, 1;\nmov.u32 %r1, %r2;\nbra L;",
            "{\n.reg .b32 inner;\nmov.u32 inner, 1;\nmov.u32 %r1, inner;\n}",
            "bar.red.popc.u32 %r1, 0, %p1;\nsetp.eq.u32 %p1, %r1, 0;",
        ] {
            let declared = ".reg .b32 %r<4>; .reg .pred %p<3>;\n";
            assert_eq!(found(&format!("{declared}{body}\nret;")), [], "{body}");
        }
    }
}
