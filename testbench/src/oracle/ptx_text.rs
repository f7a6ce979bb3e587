//! Oracle: any text as input of the PTX front end.

use arbitrary::Arbitrary;
use warpwave_isa::inst::Inst;
use warpwave_isa::program::Program;
use warpwave_ptx::{Diagnostic, Module};

use super::Reached;

/// PTX text: the longest prefix of the input that is UTF-8.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct PtxText<'a>(&'a str);

/// Compiles any text as PTX.
///
/// # Panics
/// If the front end panics, or a second run gives another result. If a finding lies outside the text or cannot be rendered. If a program
/// jumps out of its code, or changes when it is printed and read.
///
/// ```
/// use warpwave::oracle;
/// oracle::replay(b".version 7.8 .target sm_80 .entry k() { bra k; }", oracle::ptx_text);
/// ```
pub fn ptx_text(PtxText(text): PtxText<'_>) -> Reached {
    let result = warpwave_ptx::compile(text);
    // A second run in one process shows state that is kept between runs, and an order that depends on hashes.
    let again = warpwave_ptx::compile(text);
    assert_eq!(
        format!("{result:?}"),
        format!("{again:?}"),
        "the same text compiled twice"
    );
    match &result {
        Ok(module) => check_module(module, text),
        Err(findings) => {
            assert!(!findings.is_empty(), "refused without a finding");
            check_findings(findings, text);
        }
    }
    reached(&result)
}

/// Instructions of the programs, and kinds of the findings.
fn reached(result: &Result<Module, Vec<Diagnostic>>) -> Reached {
    let mut reached = Reached::default();
    match result {
        Err(findings) => reached.note_findings(findings),
        Ok(module) => {
            reached.note_findings(&module.warnings);
            for entry in &module.entries {
                match entry.program() {
                    Ok(program) => reached.note_code(program),
                    Err(findings) => reached.note_findings(findings),
                }
            }
        }
    }
    reached
}

fn check_module(module: &Module, text: &str) {
    check_findings(&module.warnings, text);
    for entry in &module.entries {
        match entry.program() {
            Ok(program) => check_program(program),
            Err(findings) => {
                assert!(!findings.is_empty(), "{}: unsupported without a finding", entry.name);
                check_findings(findings, text);
            }
        }
    }
}

fn check_findings(findings: &[Diagnostic], text: &str) {
    for finding in findings {
        let (start, end) = (finding.span.start as usize, finding.span.end as usize);
        assert!(
            start <= end && end <= text.len(),
            "{start}..{end} is not in the text: {}",
            finding.message
        );
        let rendered = finding.render("text.ptx", text);
        assert!(rendered.contains(&finding.message), "not in the rendering: {rendered}");
    }
}

fn check_program(program: &Program) {
    let end = program.code().len();
    assert!(end > 0, "{}: a program without code", program.name());
    for inst in program.code() {
        assert!(
            // An instruction without a target has 0, which is inside.
            (inst.target as usize) < end,
            "{}: {inst} leaves the code of {end} instructions",
            program.name()
        );
        // Printing and reading are inverses: the assembler accepts all of the machine's code.
        let written = inst.to_string();
        let read = written.parse::<Inst>().map(|read| read.to_string());
        assert_eq!(read, Ok(written), "{}: written and read", program.name());
    }
}
