//! Barriers: forms, barrier numbers and thread counts of `bar` and `barrier`, and the count of `mbarrier.init`.
//!
//! [`fault`] finds forms that the PTX ISA does not have, and immediate numbers and counts out of range. A number or count in a
//! register is checked when the instruction runs. That of an mbarrier in a register is not checked.

use super::Value;
use crate::ast::{Instruction, Name};
use crate::diag::Diagnostic;
use warpwave_isa::barrier::BLOCK_BARRIERS;
use warpwave_isa::lane::WARP_SIZE;

const ACTIONS: &[&str] = &[".sync", ".arrive", ".red", ".wait"];

/// Largest count of an mbarrier (PTX ISA, `mbarrier.init`).
const MBARRIER_COUNT: i128 = (1 << 20) - 1;

/// Returns the finding for a malformed barrier instruction.
pub(super) fn fault(instruction: &Instruction<'_>, operands: &[Value<'_>]) -> Option<Diagnostic> {
    let bar = Bar { instruction, operands };
    if bar.opcode() == "mbarrier" {
        return bar.mbarrier_count();
    }
    if !["bar", "barrier"].contains(&bar.opcode()) {
        return None;
    }
    if let Some(finding) = bar.action() {
        return Some(finding);
    }
    match () {
        () if bar.has(".cluster") => bar.cluster(),
        () if bar.has(".warp") => bar.warp(),
        () => bar.block(),
    }
}

struct Bar<'i, 'a> {
    instruction: &'i Instruction<'a>,
    operands: &'i [Value<'a>],
}

impl<'a> Bar<'_, 'a> {
    fn has(&self, word: &str) -> bool {
        self.named(&[word]).next().is_some()
    }

    fn named(&self, words: &[&str]) -> impl Iterator<Item = Name<'a>> {
        let names = self.instruction.qualifiers.iter().copied();
        names.filter(move |name| words.contains(&name.text))
    }

    fn opcode(&self) -> &'a str {
        self.instruction.opcode.text
    }

    /// Returns a finding for the first modifier out of `words`.
    fn forbid(&self, form: &str, words: &[&str]) -> Option<Diagnostic> {
        let name = self.named(words).next()?;
        let message = format!("`{form}` takes no `{}`", name.text);
        Some(Diagnostic::malformed(name.span, message))
    }

    /// Returns a finding if two of a set of modifiers are present.
    fn at_most_one(&self, words: &[&str]) -> Option<Diagnostic> {
        let mut names = self.named(words);
        let (first, second) = (names.next()?, names.next()?);
        let message = format!("`{}` and `{}` exclude each other", first.text, second.text);
        Some(Diagnostic::malformed(second.span, message).help("leave out one of them"))
    }

    fn wrong_count(&self, form: &str, expected: &str) -> Option<Diagnostic> {
        let message = format!("`{form}` takes {expected}, found {}", self.operands.len());
        Some(Diagnostic::malformed(self.instruction.span, message))
    }

    /// Checks that there is exactly one action.
    fn action(&self) -> Option<Diagnostic> {
        if self.named(ACTIONS).next().is_some() {
            // Exactly one: none is refused below.
            return self.at_most_one(ACTIONS);
        }
        let message = format!("`{}` without an action", self.opcode());
        Some(Diagnostic::malformed(self.instruction.opcode.span, message).help("write `.sync`, `.arrive` or `.red`"))
    }

    /// Checks `barrier.cluster.arrive{.release|.relaxed}{.aligned}` and `barrier.cluster.wait{.acquire}{.aligned}`.
    fn cluster(&self) -> Option<Diagnostic> {
        if self.opcode() == "bar" {
            return self
                .forbid("bar", &[".cluster"])
                .map(|finding| finding.help("write `barrier.cluster`"));
        }
        let (form, foreign): (_, &[&str]) = match self.has(".arrive") {
            true => ("barrier.cluster.arrive", &[".acquire", ".acq_rel", ".cta", ".warp"]),
            false => (
                "barrier.cluster.wait",
                &[".release", ".relaxed", ".acq_rel", ".cta", ".warp", ".sync", ".red"],
            ),
        };
        self.forbid(form, foreign)
            .or_else(|| self.at_most_one(&[".release", ".relaxed"]))
            .or_else(|| {
                (!self.operands.is_empty())
                    .then(|| self.wrong_count(form, "no operands"))
                    .flatten()
            })
    }

    /// Checks `bar.warp.sync mask`.
    fn warp(&self) -> Option<Diagnostic> {
        if self.opcode() == "barrier" {
            return self
                .forbid("barrier", &[".warp"])
                .map(|finding| finding.help("write `bar.warp.sync`"));
        }
        let foreign = self.forbid("bar.warp", &[".arrive", ".red", ".wait", ".cta", ".aligned"]);
        foreign.or_else(|| {
            (self.operands.len() != 1)
                .then(|| self.wrong_count("bar.warp.sync", "1 operand"))
                .flatten()
        })
    }

    /// Checks `bar{.cta}.sync a{, b}`, `bar{.cta}.arrive a, b` and `bar{.cta}.red.op d, a{, b}, p`.
    fn block(&self) -> Option<Diagnostic> {
        let opcode = self.opcode();
        let foreign: &[&str] = match opcode {
            "bar" => &[".wait", ".aligned", ".acquire", ".release", ".relaxed"],
            _ => &[".wait", ".acquire", ".release", ".relaxed"],
        };
        if let Some(finding) = self.forbid(opcode, foreign) {
            return Some(finding);
        }
        let n = self.operands.len();
        let (first, count) = match () {
            () if self.has(".red") => {
                if let Some(finding) = self.reduction() {
                    return Some(finding);
                }
                if !(3..=4).contains(&n) {
                    return self.wrong_count(&format!("{opcode}.red"), "3 or 4 operands");
                }
                (1, (n == 4).then_some(2))
            }
            () if self.has(".arrive") && n != 2 => return self.wrong_count(&format!("{opcode}.arrive"), "2 operands"),
            () if !(1..=2).contains(&n) => return self.wrong_count(&format!("{opcode}.sync"), "1 or 2 operands"),
            () => (0, (n == 2).then_some(1)),
        };
        self.number(first)
            .or_else(|| count.and_then(|operand| self.threads(operand)))
    }

    /// Checks the operation and its type: `.popc.u32`, `.and.pred` or `.or.pred`.
    fn reduction(&self) -> Option<Diagnostic> {
        const OPERATIONS: &[&str] = &[".popc", ".and", ".or"];
        let Some(operation) = self.named(OPERATIONS).next() else {
            let message = format!("`{}.red` without an operation", self.opcode());
            let finding = Diagnostic::malformed(self.instruction.opcode.span, message);
            return Some(finding.help("write `.popc.u32`, `.and.pred` or `.or.pred`"));
        };
        let ty = if operation.text == ".popc" { ".u32" } else { ".pred" };
        let untyped = || {
            let message = format!("`{}.red{}` needs the type `{ty}`", self.opcode(), operation.text);
            Diagnostic::malformed(operation.span, message).help(format!("write `{}{ty}`", operation.text))
        };
        self.at_most_one(OPERATIONS).or_else(|| (!self.has(ty)).then(untyped))
    }

    /// Checks the count of `mbarrier.init addr, count`.
    fn mbarrier_count(&self) -> Option<Diagnostic> {
        let Some(&Value::Int(count)) = self.operands.get(1).filter(|_| self.has(".init")) else {
            return None;
        };
        let finding = || {
            let span = self.instruction.operands[1].span;
            Diagnostic::malformed(span, format!("an mbarrier cannot wait for {count} arrivals"))
                .help(format!("write a count from 1 to {MBARRIER_COUNT}"))
        };
        (!(1..=MBARRIER_COUNT).contains(&count)).then(finding)
    }

    fn number(&self, operand: usize) -> Option<Diagnostic> {
        let Value::Int(number) = self.operands[operand] else {
            return None;
        };
        let finding = || {
            let span = self.instruction.operands[operand].span;
            Diagnostic::malformed(span, format!("barrier {number} does not exist")).help("a CTA has barriers 0 to 15")
        };
        (!(0..BLOCK_BARRIERS as i128).contains(&number)).then(finding)
    }

    fn threads(&self, operand: usize) -> Option<Diagnostic> {
        let Value::Int(threads) = self.operands[operand] else {
            return None;
        };
        let find = |message: String| Diagnostic::malformed(self.instruction.operands[operand].span, message);
        match threads {
            0 if self.has(".arrive") => {
                Some(find(format!("`{}.arrive` with 0 threads", self.opcode())).help("the count is at least 32"))
            }
            // A block barrier counts whole warps.
            _ if threads < 0 || threads % WARP_SIZE as i128 != 0 => {
                Some(find(format!("a barrier cannot wait for {threads} threads")).help("write a multiple of 32"))
            }
            _ => None,
        }
    }
}
