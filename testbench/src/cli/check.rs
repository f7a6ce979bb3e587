//! `warpwave check`: lists the errors, unsupported instructions and warnings of a PTX file.

mod cooperative;
pub mod endless;
mod unwritten;

use std::fmt::Write;
use std::path::Path;

use warpwave::bench::refusal;
use warpwave_components::config::GpuConfig;
use warpwave_components::preset;
use warpwave_components::sm::timing;
use warpwave_components::text_file;
use warpwave_isa::program::Program;
use warpwave_ptx::diag::render_all;
use warpwave_ptx::{Diagnostic, Module, ast, compile, parse};

use super::failure::{Failure, INPUT, worse};
use super::print;

/// Lists warnings, the requirements of each kernel, then errors and unsupported instructions. With `gpu`, also lists each kernel's machine code.
pub fn check(file: &Path, gpu: Option<&String>) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let text = text_file::read(file).map_err(|error| Failure::input(format!("cannot read {shown}: {error}")))?;
    let module = compile(&text).map_err(|findings| {
        let findings_text = render_all(&findings, &shown, &text);
        Failure::input(format!("{shown} {}\n{findings_text}", refusal(&findings)))
    })?;
    // The module compiles, so its text parses.
    let of_tree = |tree: ast::Module<'_>| [unwritten::warnings(&tree), cooperative::warnings(&tree)].concat();
    let mut warnings = [
        module.warnings.clone(),
        parse(&text).map_or_else(|_| Vec::new(), of_tree),
        endless::warnings(&module, &text),
    ]
    .concat();
    warnings.sort_by_key(|warning| warning.span.start);
    // Warnings do not change the exit code.
    print(&render_all(&warnings, &shown, &text))?;
    print(&needs(&module))?;
    let refuse = |findings: &[Diagnostic], why: String| {
        if findings.is_empty() {
            return Ok(());
        }
        print(&format!("\n{}", render_all(findings, &shown, &text)))?;
        Err(Failure {
            code: INPUT,
            text: format!("{shown}{why}"),
        })
    };
    // The listing is printed before the refusal: code of a too new program can be read.
    let unmet = match gpu {
        Some(gpu) => {
            let config = preset::load(gpu, &[]).map_err(Failure::input)?.config;
            list(&module, &config)?;
            let unmet = module.unmet_requirements(config.compute_capability());
            refuse(&unmet, format!(" is too new for {}", config.name))
        }
        None => Ok(()),
    };
    let unsupported: Vec<_> = module.unsupported().cloned().collect();
    let count = unsupported.len();
    worse(
        unmet,
        refuse(&unsupported, format!(": {}; see the list above", not_supported(count))),
    )
}

/// Prints the machine code of each kernel without unsupported statements.
fn list(module: &Module, gpu: &GpuConfig) -> Result<(), Failure> {
    let programs = module.entries.iter().filter_map(|entry| entry.program().as_ref().ok());
    programs
        .map(|program| listing(program, gpu))
        .try_for_each(|listing| print(&listing))
}

fn not_supported(n: usize) -> String {
    match n {
        1 => "1 statement is not supported".to_owned(),
        n => format!("{n} statements are not supported"),
    }
}

fn needs(module: &Module) -> String {
    let mut out = format!(
        "{:<40} {:>9} {:>12} {:>11} {:>7} {:>13}\n",
        "kernel", "registers", "shared bytes", "local bytes", "params", "instructions"
    );
    for entry in &module.entries {
        let name = &entry.name;
        let _ = match entry.program() {
            Ok(program) => {
                let needs = program.requirements();
                writeln!(
                    out,
                    "{name:<40} {:>9} {:>12} {:>11} {:>7} {:>13}",
                    needs.registers,
                    needs.shared_bytes,
                    needs.local_bytes,
                    needs.params.len(),
                    program.code().len()
                )
            }
            Err(findings) => writeln!(out, "{name:<40} cannot run: {}", not_supported(findings.len())),
        };
    }
    out
}

/// The machine code of a kernel: one control word and one instruction per line.
fn listing(program: &Program, config: &GpuConfig) -> String {
    let mut out = format!(
        "\n{} on {}\nB: counters it waits for. R, W: counters for its reads and its result. Y: yield. S: cycles to the next. Then reused operands\n",
        program.name(),
        config.name
    );
    let words = timing::controls(program, &config.sm);
    for (pc, (word, inst)) in words.iter().zip(program.code()).enumerate() {
        let _ = writeln!(out, "{pc:4}: [{word}] {inst}");
    }
    out
}
