//! Directives and declarations: limits beyond the syntax, for versions, targets, alignments and sizes.
//!
//! The size limit of a single variable is in `check`.
//! Sources: PTX ISA 9.0, "PTX Module Directives" and "Kernel Function Parameters"; limits as in the vendor's assembler.

use crate::ast::{Function, Linkage, Module, Space, Statement, Type, Variable};
use crate::capability::is_target;
use crate::diag::{Diagnostic, Span};

/// Newest minor number of each major version, from major version 1.
const NEWEST_MINOR: [u32; 9] = [5, 3, 2, 3, 1, 5, 8, 8, 5];

/// Maximum bytes of a kernel's parameters: before PTX 8.1, and since.
const PARAM_BYTES: [u64; 2] = [4352, 32_764];

/// Maximum bytes of a call parameter. Each of its words needs a register.
const CALL_PARAM_BYTES: u64 = 1 << 16;

/// Maximum bytes of a module's global variables. The host holds them while it loads the module.
const GLOBAL_BYTES: u64 = 1 << 31;

/// Maximum alignment in bytes. No state space of the machine has a larger one.
const MAX_ALIGN: u64 = 1 << 16;

/// Returns a finding for each wrong directive or declaration of a module.
pub(crate) fn check(module: &Module<'_>) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    check_version(module, &mut findings);
    check_target(module, &mut findings);
    for variable in &module.variables {
        check_variable(variable, &mut findings);
        check_size(variable, &mut findings);
    }
    check_globals(module, &mut findings);
    for function in &module.functions {
        check_function(module, function, &mut findings);
    }
    findings
}

/// Reports the first variable that brings the global variables above [`GLOBAL_BYTES`].
fn check_globals(module: &Module<'_>, findings: &mut Vec<Diagnostic>) {
    let mut bytes = 0u64;
    let mut variables: Vec<&Variable<'_>> = module.variables.iter().collect();
    let bodies = module.functions.iter().filter_map(|function| function.body.as_ref());
    bodies.for_each(|body| add_variables(&body.statements, &mut variables));
    let mut globals = variables.into_iter().filter(|variable| variable.space == Space::Global);
    let last = globals.find(|variable| {
        bytes = bytes.saturating_add(variable.bytes());
        bytes > GLOBAL_BYTES
    });
    if let Some(variable) = last {
        let message = "the module's global variables are larger than 2 GiB";
        let finding = Diagnostic::unsupported(variable.name.span, message);
        findings.push(finding.help("pass buffers to the kernel instead"));
    }
}

/// Adds the variables that a function declares.
fn add_variables<'m, 'a>(statements: &'m [Statement<'a>], variables: &mut Vec<&'m Variable<'a>>) {
    for statement in statements {
        match statement {
            Statement::Variable(variable) => variables.push(variable),
            Statement::Block(block) => add_variables(&block.statements, variables),
            _ => {}
        }
    }
}

/// Reports a missing version, and one that no PTX ISA has.
fn check_version(module: &Module<'_>, findings: &mut Vec<Diagnostic>) {
    let (major, minor) = module.version;
    // The parser leaves the default span if there is no directive.
    if module.version_span == Span::default() {
        let finding = Diagnostic::malformed(Span::default(), "the text has no `.version`");
        findings.push(finding.help("begin with `.version 7.8` or the version that the compiler writes"));
        return;
    }
    // The table begins with version 1.
    let newest = (major as usize).checked_sub(1).and_then(|n| NEWEST_MINOR.get(n));
    if newest.is_none_or(|&newest| minor > newest) {
        let message = format!("there is no PTX version {major}.{minor}; the newest known is 9.5");
        findings.push(Diagnostic::malformed(module.version_span, message));
    }
}

/// Reports a missing target, an unknown name, and a target before the version.
fn check_target(module: &Module<'_>, findings: &mut Vec<Diagnostic>) {
    if module.target.is_empty() {
        let span = module.version_span;
        findings.push(Diagnostic::malformed(span, "the text has no `.target`").help("write `.target sm_80` or newer"));
    } else if module.target_span.start < module.version_span.start {
        findings.push(Diagnostic::malformed(
            module.target_span,
            "`.version` must come before `.target`",
        ));
    }
    for name in module.target.iter().filter(|name| !is_target(name)) {
        let message = format!("unknown target `{name}`");
        findings.push(Diagnostic::malformed(module.target_span, message).help("write a target such as `sm_80`"));
    }
}

fn check_function(module: &Module<'_>, function: &Function<'_>, findings: &mut Vec<Diagnostic>) {
    let params = function.returns.iter().chain(&function.params);
    for param in params {
        check_variable(param, findings);
        match function.is_entry {
            true => check_size(param, findings),
            false => check_call_param(param, findings),
        }
    }
    if function.is_entry {
        check_kernel_params(module, function, findings);
    }
    if let Some(body) = &function.body {
        check_statements(&body.statements, findings);
    }
}

fn check_statements(statements: &[Statement<'_>], findings: &mut Vec<Diagnostic>) {
    for statement in statements {
        match statement {
            Statement::Variable(variable) => {
                check_variable(variable, findings);
                check_size(variable, findings);
                check_call_param(variable, findings);
            }
            Statement::Block(block) => check_statements(&block.statements, findings),
            _ => {}
        }
    }
}

fn check_call_param(variable: &Variable<'_>, findings: &mut Vec<Diagnostic>) {
    if variable.space == Space::Param && variable.bytes() > CALL_PARAM_BYTES {
        let message = format!(
            "`{}` has more than {CALL_PARAM_BYTES} bytes, the limit of a call parameter",
            variable.name.text
        );
        findings.push(Diagnostic::unsupported(variable.name.span, message).help("pass a pointer instead"));
    }
}

/// Reports kernel parameters above the limit of the text's PTX version.
fn check_kernel_params(module: &Module<'_>, function: &Function<'_>, findings: &mut Vec<Diagnostic>) {
    let bytes = function.params.iter().fold(0u64, |bytes, param| {
        // As the layout places them: each at a multiple of its alignment.
        let align = param.alignment().clamp(1, MAX_ALIGN);
        bytes.next_multiple_of(align).saturating_add(param.bytes())
    });
    let is_new = module.version >= (8, 1);
    let max = PARAM_BYTES[usize::from(is_new)];
    if bytes > max {
        let message = format!(
            "kernel `{}` has {bytes} bytes of parameters; the limit is {max}",
            function.name.text
        );
        let finding = Diagnostic::malformed(function.name.span, message);
        findings.push(match is_new {
            true => finding.help("pass a pointer instead"),
            false => finding.help(format!("`.version 8.1` and newer allow {} bytes", PARAM_BYTES[1])),
        });
    }
}

/// Reports a missing or zero size. Only an `.extern` variable may omit its first size, as dynamic shared memory does.
fn check_size(variable: &Variable<'_>, findings: &mut Vec<Diagnostic>) {
    let name = variable.name;
    let is_open = variable.dims.contains(&None) && variable.linkage != Linkage::Extern;
    let is_empty = variable.dims.contains(&Some(0));
    let finding = |problem: &str| Diagnostic::malformed(name.span, format!("`{}` {problem}", name.text));
    if is_open && variable.space == Space::Shared {
        findings.push(finding("has no size").help("write `.extern .shared` for dynamic shared memory, or a size"));
    } else if is_open {
        findings.push(finding("has no size").help("write a size, or initial values in braces"));
    } else if is_empty || variable.dims.iter().skip(1).any(Option::is_none) {
        findings.push(finding("has no elements").help("write a size of 1 or more"));
    }
}

fn check_variable(variable: &Variable<'_>, findings: &mut Vec<Diagnostic>) {
    let name = variable.name;
    if variable.vector * variable.ty.bits() > 128 && variable.space != Space::Reg {
        let message = format!("vector `{}` is wider than 128 bits", name.text);
        findings.push(Diagnostic::malformed(name.span, message).help("use `.v2`, or an array"));
    }
    if variable.ty == Type::Pred && variable.space != Space::Reg {
        let message = format!("`{}` is a predicate, and only a register can hold one", name.text);
        findings.push(Diagnostic::malformed(name.span, message).help("use `.b8`, or `.reg .pred`"));
    }
    if variable.alignment() > MAX_ALIGN {
        let message = format!("`{}` is aligned to more than {MAX_ALIGN} bytes", name.text);
        findings.push(Diagnostic::unsupported(name.span, message));
    }
}

#[cfg(test)]
mod tests {
    /// Compiles `text` and returns the messages of all findings.
    fn findings(text: &str) -> Vec<String> {
        let found = crate::compile(text).err().unwrap_or_default();
        found.into_iter().map(|finding| finding.message).collect()
    }

    fn entry(version: &str, params: &str) -> String {
        format!(".version {version}\n.target sm_80\n.entry k({params}) {{ ret; }}")
    }

    #[test]
    fn text_without_version_or_target_is_refused() {
        assert_eq!(
            findings(""),
            ["the text has no `.version`", "the text has no `.target`"]
        );
        assert_eq!(findings("// nothing\n").len(), 2);
        assert_eq!(
            findings(".version 7.8\n.entry k() { ret; }"),
            ["the text has no `.target`"]
        );
        assert_eq!(
            findings(".target sm_80\n.entry k() { ret; }"),
            ["the text has no `.version`"]
        );
        assert_eq!(
            findings(".target sm_80\n.version 7.8\n"),
            ["`.version` must come before `.target`"]
        );
    }

    #[test]
    fn version_that_does_not_exist_is_refused() {
        // The last version of each major number and the one after it, as in the vendor's assembler 13.5.
        for version in [
            "0.1", "1.6", "2.4", "3.3", "4.4", "5.2", "6.6", "7.9", "8.9", "9.6", "10.0", "99.9",
        ] {
            let found = findings(&entry(version, ""));
            assert_eq!(
                found,
                [format!("there is no PTX version {version}; the newest known is 9.5")]
            );
        }
        for version in ["1.0", "1.5", "2.3", "3.2", "4.3", "5.1", "6.5", "7.8", "8.8", "9.5"] {
            assert!(findings(&entry(version, "")).is_empty(), "{version}");
        }
    }

    #[test]
    fn target_that_does_not_exist_is_refused() {
        let of = |target: &str| findings(&format!(".version 8.6\n.target {target}\n.entry k() {{ ret; }}"));
        assert_eq!(of("sm_999"), ["unknown target `sm_999`"]);
        assert_eq!(of("sm_80, foo"), ["unknown target `foo`"]);
        assert!(of("sm_90a").is_empty() && of("sm_80, debug").is_empty());
    }

    #[test]
    fn kernel_parameters_are_limited_by_ptx_version() {
        let of = |version, bytes: u64| findings(&entry(version, &format!(".param .align 4 .b8 x[{bytes}]"))).len();
        assert_eq!([of("8.0", 4352), of("8.0", 4353)], [0, 1]);
        assert_eq!(
            [of("8.1", 32_764), of("8.1", 32_765), of("8.1", 2_147_483_648)],
            [0, 1, 1]
        );
        // The sizes of two parameters are added, with the alignment gap between them.
        assert_eq!(findings(&entry("7.0", ".param .b8 a[4345], .param .u64 b")).len(), 1);
        assert_eq!(findings(&entry("7.0", ".param .b8 a[4344], .param .u64 b")).len(), 0);
    }

    #[test]
    fn alignment_or_size_beyond_any_gpu_is_refused() {
        let module = |text: &str| findings(&format!(".version 7.8\n.target sm_80\n{text}\n.entry k() {{ ret; }}"));
        assert_eq!(module(".global .align 2147483648 .b8 x[4];").len(), 1);
        assert_eq!(module(".global .align 65536 .b8 x[4];").len(), 0);
        assert_eq!(module(".global .b64 x[4294967295][4294967295];").len(), 1);
        let body = |text: &str| {
            findings(&format!(
                ".version 7.8\n.target sm_80\n.entry k() {{ {{ {text} }} ret; }}"
            ))
        };
        assert_eq!(body(".shared .align 131072 .b8 x[4];").len(), 1);
        assert_eq!(body(".local .b8 x[4000000000];").len(), 1);
    }
}
