//! The modules that the process keeps, so that a text launched again is not compiled again.
//!
//! Invariant: a kept module equals a new one of the same text. So no result depends on what is kept.

use crate::Options;
use crate::diag::Diagnostic;
use crate::module::{self, Module};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of modules kept.
const MAX_MODULES: usize = 64;
/// Maximum size of their texts together, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// Modules of the process, the latest used last.
static MODULES: Mutex<VecDeque<Arc<Module>>> = Mutex::new(VecDeque::new());

/// Returns the module of a text with these options, kept or new.
///
/// The kernels that `is_wanted` accepts by name are compiled.
pub(crate) fn load(
    text: &str,
    options: Options,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Arc<Module>, Vec<Diagnostic>> {
    if let Some(module) = with_modules(|modules| find(modules, text, options)) {
        module.compile(is_wanted);
        return Ok(module);
    }
    // Other threads may load while this one compiles.
    let new = Arc::new(module::read(text, options, is_wanted)?);
    Ok(with_modules(|modules| {
        find(modules, text, options).unwrap_or_else(|| {
            keep(modules, &new, MAX_BYTES);
            new
        })
    }))
}

fn with_modules<R>(apply: impl FnOnce(&mut VecDeque<Arc<Module>>) -> R) -> R {
    apply(&mut MODULES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the module of a text, and makes it the latest used.
fn find(modules: &mut VecDeque<Arc<Module>>, text: &str, options: Options) -> Option<Arc<Module>> {
    // From the latest used one: a host usually launches one text many times.
    let at = modules.iter().rposition(|module| module.is_of(text, options))?;
    let module = modules.remove(at)?;
    modules.push_back(Arc::clone(&module));
    Some(module)
}

/// Keeps a module with a text of at most `max_bytes`, and drops the modules not used for longest. The host may still hold them.
fn keep(modules: &mut VecDeque<Arc<Module>>, new: &Arc<Module>, max_bytes: usize) {
    if new.text_bytes() > max_bytes {
        return;
    }
    modules.push_back(Arc::clone(new));
    let mut bytes: usize = modules.iter().map(|module| module.text_bytes()).sum();
    while modules.len() > MAX_MODULES || bytes > max_bytes {
        bytes -= modules.pop_front().map_or(bytes, |module| module.text_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Arc<Module> {
        Arc::new(module::read(text, Options::default(), |_| false).unwrap())
    }

    fn text(n: usize) -> String {
        format!(".version 7.8\n.target sm_80\n.entry k{n}() {{ ret; }}\n")
    }

    fn has(modules: &mut VecDeque<Arc<Module>>, n: usize) -> bool {
        find(modules, &text(n), Options::default()).is_some()
    }

    #[test]
    fn latest_used_modules_are_kept() {
        let mut modules = VecDeque::new();
        for n in 0..MAX_MODULES {
            keep(&mut modules, &module(&text(n)), MAX_BYTES);
        }
        let first = find(&mut modules, &text(0), Options::default()).unwrap();
        keep(&mut modules, &module(&text(MAX_MODULES)), MAX_BYTES);
        assert_eq!(modules.len(), MAX_MODULES);
        assert!(Arc::ptr_eq(
            &find(&mut modules, &text(0), Options::default()).unwrap(),
            &first
        ));
        assert!(!has(&mut modules, 1) && has(&mut modules, 2));
        let other = Options {
            max_registers: Some(32),
            ..Options::default()
        };
        assert!(find(&mut modules, &text(2), other).is_none());
    }

    #[test]
    fn size_of_the_texts_is_limited() {
        let limit = 2 * text(0).len();
        let mut modules = VecDeque::new();
        for n in 0..3 {
            keep(&mut modules, &module(&text(n)), limit);
        }
        assert!(!has(&mut modules, 0) && has(&mut modules, 1) && has(&mut modules, 2));
        // A text above the limit displaces no other.
        let long = format!("{}// {}\n", text(3), "-".repeat(limit));
        keep(&mut modules, &module(&long), limit);
        assert!(has(&mut modules, 1) && has(&mut modules, 2));
        assert!(find(&mut modules, &long, Options::default()).is_none());
    }
}
