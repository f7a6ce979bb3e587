//! Atomics: the operation, its type, and the number of operands.

use super::forms::{Kind, types_of};
use super::{Modifiers, either, exclude, list};
use crate::ast::{Instruction, Name, Type};
use crate::check::Value;
use crate::diag::Diagnostic;

impl Modifiers<'_, '_> {
    /// Checks `atom` and `red`: the operation, its type, and `.noftz` on half types.
    pub(super) fn atomic(&self, operands: &[Value<'_>]) -> Option<Diagnostic> {
        let Some(operation) = self.of(Kind::Operation) else {
            let finding = self.wrong(format!("`{}` without an operation", self.form.name));
            return Some(finding.help(format!("write {}", either(&self.form.words(Kind::Operation)))));
        };
        let types = self.types();
        if let [_, (_, second), ..] = types[..] {
            return Some(self.two_types(second));
        }
        let &(ty, name) = types.first()?;
        let expected = types_of(operation.text);
        // Newer forms take more float types, also as vectors. The lowering decides if it supports them.
        let newer = ty.is_float() && matches!(operation.text, ".add" | ".min" | ".max");
        if !expected.contains(&ty) && !newer {
            let message = format!("`{}{}` takes no `{}`", self.form.name, operation.text, name.text);
            let words: Vec<String> = expected.iter().map(|ty| ty.dotted()).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            return Some(Diagnostic::malformed(name.span, message).help(format!("its types are {}", list(&words))));
        }
        self.half(ty, name)
            .or_else(|| self.atomic_operands(operation, operands))
    }

    fn half(&self, ty: Type, name: Name<'_>) -> Option<Diagnostic> {
        let is_half = matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
        match (self.named(".noftz"), is_half) {
            (Some(noftz), false) => Some(exclude(noftz, name)),
            (None, true) => {
                let message = format!("`{}` on `{}` without `.noftz`", self.form.name, name.text);
                Some(Diagnostic::malformed(name.span, message).help("write `.noftz` after the operation"))
            }
            _ => None,
        }
    }

    fn atomic_operands(&self, operation: Name<'_>, operands: &[Value<'_>]) -> Option<Diagnostic> {
        let sources = if operation.text == ".cas" { 2 } else { 1 };
        let result = usize::from(self.form.name == "atom");
        // A cache policy is one more operand.
        let hint = usize::from(self.has(".L2::cache_hint"));
        let expected = result + 1 + sources + hint;
        let message = format!(
            "`{}{}` takes {expected} operands, found {}",
            self.form.name,
            operation.text,
            operands.len()
        );
        (operands.len() != expected).then(|| Diagnostic::malformed(self.instruction.span, message))
    }
}

/// Checks that `red.async` has its only order and scope: relaxed, cluster. A vector of `st.async` has at most 128 bits.
pub(super) fn asynchronous(instruction: &Instruction<'_>) -> Option<Diagnostic> {
    let has = |word: &str| instruction.qualifiers.iter().any(|name| name.text == word);
    let is_wide = |name: &Name<'_>| Type::from_dotted(name.text).is_some_and(|ty| ty.bits() == 64);
    if instruction.opcode.text == "st" && has(".async") && has(".v4") && instruction.qualifiers.iter().any(is_wide) {
        let finding = Diagnostic::malformed(instruction.opcode.span, "a vector of 256 bits in `st.async`");
        return Some(finding.help("write accesses of at most 128 bits"));
    }
    if instruction.opcode.text != "red" || !has(".async") || (has(".relaxed") && has(".cluster")) {
        return None;
    }
    let message = "`red.async` without a memory order and a scope";
    Some(Diagnostic::malformed(instruction.opcode.span, message).help("write `red.async.relaxed.cluster`"))
}
