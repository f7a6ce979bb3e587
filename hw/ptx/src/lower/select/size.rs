//! Size limits of a kernel's code, including all functions that it calls.
//!
//! Calls are inlined, so a short text can expand to gigabytes.

use super::Selector;
use crate::diag::Diagnostic;

/// Maximum operations of a kernel. Each one takes some hundred bytes of host memory per pass.
const MAX_OPS: usize = 1 << 20;

/// Maximum virtual registers of a kernel.
const MAX_WORDS: usize = 1 << 22;

/// Maximum inlined calls of a kernel. Calls of empty functions would otherwise multiply without an operation.
///
/// Debug code needs thousands: atomics of libcu++ have 4991 in a kernel (nvcc 13.5, `-G`). `warpwave check` of a release build takes 2.4 s for
/// a module with its barriers and pipes, of up to 1770 calls a kernel. It takes 51 s for a module with its atomics.
const MAX_CALLS: usize = 1 << 13;

impl Selector<'_, '_, '_> {
    /// True if the code is too large. Reports that once.
    pub(super) fn is_over_size_limit(&mut self) -> bool {
        if self.is_too_large {
            return true;
        }
        let limit = match () {
            () if self.n_ops > MAX_OPS => format!("{MAX_OPS} operations"),
            () if self.code.groups.len() > MAX_WORDS => format!("{MAX_WORDS} registers"),
            () if self.n_calls > MAX_CALLS => format!("{MAX_CALLS} calls"),
            () => return false,
        };
        self.is_too_large = true;
        let name = self.frames[0].body.function.name;
        let message = format!(
            "kernel `{}` has more than {limit}, including the functions that it calls",
            name.text
        );
        self.findings.push(Diagnostic::unsupported(name.span, message));
        true
    }
}
