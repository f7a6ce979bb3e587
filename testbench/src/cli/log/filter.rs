//! The filter of the log: parses and checks the option or the environment variable.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{Directive, EnvFilter};

use crate::cli::failure::Failure;

/// The environment variable with the filter if there is no option.
const VARIABLE: &str = "RUST_LOG";

/// The packages that emit log events.
const PACKAGES: [&str; 3] = ["warpwave_components", "warpwave_hw", "warpwave_ptx"];

/// The syntax of a filter, for error texts.
const ADVICE: &str =
    "write a level (info, debug or trace), or MODULE=LEVEL, or several of them, such as info,warpwave_ptx=debug";

/// The filter of the option, or else of the variable.
pub fn find(option: Option<&str>) -> Result<Option<EnvFilter>, Failure> {
    if let Some(text) = option {
        refuse_foreign(text)?;
        return parse("--log", text).map(Some);
    }
    match std::env::var_os(VARIABLE) {
        // An empty variable counts as none.
        Some(text) if !text.is_empty() => parse(VARIABLE, &text.to_string_lossy()).map(Some),
        _ => Ok(None),
    }
}

fn directives(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|directive| !directive.is_empty())
}

/// Parses a filter. `origin` is its name in errors.
fn parse(origin: &str, text: &str) -> Result<EnvFilter, Failure> {
    if directives(text).next().is_none() {
        return Err(Failure::input(format!("{origin}: the filter is empty; {ADVICE}")));
    }
    let mut filter = EnvFilter::default();
    for text in directives(text) {
        let directive: Directive = text
            .parse()
            .map_err(|error| Failure::input(format!("{origin}: `{text}`: {error}; {ADVICE}")))?;
        filter = filter.add_directive(directive);
    }
    Ok(filter)
}

/// Refuses a module that emits no events: most likely a misspelled level or module.
/// Only `--log` is checked: `RUST_LOG` may name modules of other programs.
fn refuse_foreign(text: &str) -> Result<(), Failure> {
    let is_own = |module: &str| {
        PACKAGES
            .iter()
            // A prefix of a package selects it, and a module path begins with one.
            .any(|package| package.starts_with(module) || module.starts_with(package))
    };
    for directive in directives(text) {
        let module = directive.split(['=', '[']).next().unwrap_or_default();
        if module.parse::<LevelFilter>().is_err() && !is_own(module) {
            return Err(Failure::input(format!(
                "--log: `{module}` is neither a level nor a module that emits events; modules begin with {}; {ADVICE}",
                PACKAGES.join(", ")
            )));
        }
    }
    Ok(())
}
