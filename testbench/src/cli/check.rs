//! `warpwave check`: reads a PTX file and lists what keeps it from running.

use std::fmt::Write;
use std::path::Path;

use warpwave_components::config::GpuConfig;
use warpwave_components::preset;
use warpwave_components::sm::timing;
use warpwave_components::text_file;
use warpwave_isa::program::Program;
use warpwave_ptx::{Entry, Module, compile};

use super::failure::{Failure, INPUT, render};
use super::print;

/// Lists findings, unsupported instructions and what each kernel needs; for a GPU that is named, each kernel's instructions.
pub fn check(file: &Path, gpu: Option<&String>) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let text = text_file::read(file).map_err(|error| Failure::input(format!("cannot read {shown}: {error}")))?;
    let module = compile(&text).map_err(|findings| {
        let findings_text = render(&findings, &shown, &text);
        Failure::input(format!(
            "{shown} is not PTX; findings: {}\n{findings_text}",
            findings.len()
        ))
    })?;
    print(&render(&module.warnings, &shown, &text))?;
    print(&needs(&module))?;
    if let Some(gpu) = gpu {
        let preset = preset::load(gpu, &[]).map_err(Failure::input)?;
        let programs = module.entries.iter().filter_map(|entry| entry.program.as_ref().ok());
        programs
            .map(|program| listing(program, &preset.config))
            .try_for_each(|listing| print(&listing))?;
    }
    let unsupported: Vec<_> = module.unsupported().cloned().collect();
    if unsupported.is_empty() {
        return Ok(());
    }
    print(&format!("\n{}", render(&unsupported, &shown, &text)))?;
    Err(Failure {
        code: INPUT,
        text: format!("{shown}: {} statements are not supported", unsupported.len()),
    })
}

fn needs(module: &Module) -> String {
    let mut out = format!(
        "{:<40} {:>9} {:>12} {:>11} {:>7} {:>13}\n",
        "kernel", "registers", "shared bytes", "local bytes", "params", "instructions"
    );
    for Entry { name, program } in &module.entries {
        let _ = match program {
            Ok(program) => {
                let needs = program.needs();
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
            Err(findings) => writeln!(
                out,
                "{name:<40} cannot run: {} statements are not supported",
                findings.len()
            ),
        };
    }
    out
}

/// A kernel's instructions, each behind its control word.
fn listing(program: &Program, config: &GpuConfig) -> String {
    let mut out = format!(
        "\n{} on {}\nB counters waited for, R counter of its reads, W of its result, Y yields, S cycles to the next, operands kept\n",
        program.name(),
        config.name
    );
    let words = timing::controls(program, &config.sm);
    for (pc, (word, inst)) in words.iter().zip(program.code()).enumerate() {
        let _ = writeln!(out, "{pc:4}: [{word}] {inst}");
    }
    out
}
