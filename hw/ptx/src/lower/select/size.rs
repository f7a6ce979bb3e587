//! The size of a kernel's code, with the code of all functions that it calls. A short text can ask for gigabytes of it.

use super::Selector;
use crate::diag::Diagnostic;

/// Operations of a kernel. Each takes some hundred bytes of the host's memory in each pass.
const MAX_OPS: usize = 1 << 20;

/// 32-bit registers of a kernel before registers are shared.
const MAX_WORDS: usize = 1 << 22;

impl Selector<'_, '_, '_> {
    /// Whether the code is too large. Reports it once.
    pub(super) fn outgrows(&mut self) -> bool {
        if self.is_too_large {
            return true;
        }
        let what = match () {
            () if self.n_ops > MAX_OPS => format!("{MAX_OPS} operations"),
            () if self.code.groups.len() > MAX_WORDS => format!("{MAX_WORDS} registers"),
            () => return false,
        };
        self.is_too_large = true;
        let name = self.frames[0].body.function.name;
        let message = format!(
            "kernel `{}` has more than {what}, with those of the functions that it calls",
            name.text
        );
        self.findings.push(Diagnostic::unsupported(name.span, message));
        true
    }
}
