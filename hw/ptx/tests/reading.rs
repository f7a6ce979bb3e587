//! Parsing: PTX that is accepted (`tests/ok`), and PTX that is refused (`tests/err`, with the rendered findings beside it).

use std::fs;
use std::path::{Path, PathBuf};
use warpwave_ptx::diag::render_all;

fn texts(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

fn rendered(path: &Path, text: &str) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    let findings = warpwave_ptx::compile(text).err().unwrap_or_default();
    findings
        .iter()
        .map(|finding| finding.render(name, text))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn compiler_output_is_accepted() {
    for path in texts("ok") {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(rendered(&path, &text), "", "{}", path.display());
    }
}

#[test]
fn malformed_texts_are_refused_with_all_findings() {
    for path in texts("err") {
        let text = fs::read_to_string(&path).unwrap();
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        assert_eq!(rendered(&path, &text), expected, "{}", path.display());
    }
}

#[test]
fn parser_never_panics_on_a_prefix() {
    let text = fs::read_to_string(&texts("ok")[0]).unwrap();
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        let _ = warpwave_ptx::parse(&text[..end]);
    }
}

#[test]
fn deep_nesting_is_refused_without_stack_overflow() {
    let text = format!(".entry k() {}", "{".repeat(100_000));
    let findings = warpwave_ptx::parse(&text).unwrap_err();
    assert!(
        findings
            .iter()
            .any(|finding| finding.message.contains("nested more than"))
    );
}

#[test]
fn nesting_of_200_levels_is_accepted() {
    let text = format!(".entry k() {}ret;{}", "{".repeat(200), "}".repeat(200));
    assert!(warpwave_ptx::parse(&text).is_ok());
}

#[test]
fn findings_on_a_long_line_are_limited_and_shortened() {
    // Each of 30,000 statements is one finding, and the line has 240 KB of text.
    let text = format!(
        ".version 7.8\n.target sm_80\n.entry k() {{ {}}}",
        "ret %x; ".repeat(30_000)
    );
    let findings = warpwave_ptx::parse(&text).unwrap_err();
    assert_eq!(findings.len(), 30_000);
    let shown = render_all(&findings, "k.ptx", &text);
    assert!(shown.len() < 100 * 600, "{} bytes", shown.len());
    assert!(shown.ends_with("\nand 29900 more findings\n"));
    // The first span is near the start of the line, and the hundredth is not.
    assert!(shown.contains("3 | .entry k() { ret %x; ret %x;"), "{}", &shown[..400]);
    let last = findings[99].render("k.ptx", &text);
    let lines: Vec<&str> = last.lines().collect();
    let place = lines[4].find('^').expect("a marker");
    let column = |line: &str, byte: usize| line[..byte].chars().count();
    let marked: String = lines[3].chars().skip(column(lines[4], place)).take(6).collect();
    assert_eq!(marked, "ret %x", "{last}");
    assert!(lines[3].starts_with("3 | …") && lines[3].ends_with('…'), "{last}");
    assert!(last.contains(&format!("k.ptx:3:{}", 14 + 8 * 99)), "{last}");
}

#[test]
fn byte_order_mark_is_skipped() {
    let text = "\u{feff}.version 7.8\n.target sm_80\n.entry k() { ret; }";
    assert!(warpwave_ptx::parse(text).is_ok());
    let wrong = "\u{feff}.entry k() { foo; }";
    let finding = warpwave_ptx::parse(wrong).unwrap_err()[0].render("k.ptx", wrong);
    assert!(
        finding.contains("k.ptx:1:14\n") && finding.contains("1 | .entry k()"),
        "{finding}"
    );
    // A byte-order mark inside the text is not PTX.
    assert!(warpwave_ptx::parse(".entry k() { \u{feff} ret; }").is_err());
}

/// Returns a kernel that calls the last of `n` functions. Each function calls the one before it.
fn chain(n: usize) -> String {
    let call = |f: usize| format!(".func f{f}() {{ call f{}; ret; }}\n", f - 1);
    let functions: String = (1..n).map(call).collect();
    let last = n - 1;
    format!(".version 7.8\n.target sm_80\n.func f0() {{ ret; }}\n{functions}.entry k() {{ call f{last}; ret; }}")
}

#[test]
fn calls_nest_at_most_128_deep() {
    let program = |n| {
        warpwave_ptx::compile(&chain(n))
            .expect("it is PTX")
            .entries
            .remove(0)
            .program()
            .clone()
    };
    assert!(program(128).is_ok());
    let findings = program(129).expect_err("one call too many");
    assert!(
        findings[0].message.contains("calls nested more than 128 deep"),
        "{findings:?}"
    );
}

#[test]
fn chain_of_thousands_of_functions_is_refused() {
    // With a time that grows with the cube of the functions, this would take minutes.
    let entry = warpwave_ptx::compile(&chain(8000))
        .expect("it is PTX")
        .entries
        .remove(0);
    assert!(entry.program().is_err());
}

#[test]
fn four_megabytes_parse() {
    let body = "\tadd.s32 %r1, %r2, %r3;\n\tld.global.f32 %f1, [%rd1+4];\n".repeat(70_000);
    let text = format!(".entry k() {{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n{body}ret; }}");
    assert!(text.len() > 3_500_000);
    assert!(warpwave_ptx::parse(&text).is_ok());
}

/// Each text has one fault, and gives one finding, with its line.
#[test]
fn one_fault_gives_one_finding() {
    let body = "{\n.reg .u32 x;\nL: add.u32 x, x, 1;\n{ add.u32 x, x, 2; }\n@p bra L;\nret;\n}\n";
    let vector = ".entry k() {\n.reg .u32 %r<4>;\n.reg .u64 %d;\nld.global.v2.u32 {%r1 %r2}, [%d];\nst.global.v2.u32 [%d], {%r1, %r2};\nret;\n}";
    let texts = [
        (
            3,
            format!(".func f(.reg .v3 .u32 a) {body}.entry k() {{ call f; ret; }}"),
        ),
        (
            3,
            format!(".func f(.param .u33 a)\n{body}.global .u32 y;\n.entry k() {{ ret; }}"),
        ),
        (3, format!(".entry k(.param .u64 a .param .u64 b)\n{body}")),
        (4, format!(".entry k()\n.maxntid 1, 2, x\n{body}.entry l() {{ ret; }}")),
        (
            3,
            format!(".extern .func (.param .b32 r) f(.param .b33 x);\n.entry k() {body}"),
        ),
        (3, ".alias f, g;\n.entry k() { call f; ret; }".to_owned()),
        (
            3,
            ".global .u33 t[2] = {1, 2};\n.entry k() { .reg .u32 x; ld.global.u32 x, [t]; ret; }".to_owned(),
        ),
        (
            3,
            ".global .u32 t[2] = {{1, , 2}, {3}};\n.entry k() { .reg .u32 x; ld.global.u32 x, [t]; ret; }".to_owned(),
        ),
        (
            5,
            ".entry k() {\n.reg .u32 %r<4>;\nt: .branchtargets {a, b};\nbrx.idx %r1, t;\na: ret;\nb: ret;\n}"
                .to_owned(),
        ),
        (6, vector.to_owned()),
        (
            5,
            ".entry k() {\n.reg .u32 %r<4>;\nmov.u32 %r1 %r2\n{ mov.u32 %r1, 3; }\nret;\n}\n.entry l() { ret; }"
                .to_owned(),
        ),
        (
            4,
            ".entry k() {\n.reg .b33 %r<4>;\nmov.u32 %r1, %r2;\nret;\n}\n.entry l() { ret; }".to_owned(),
        ),
        (
            3,
            ".extern .global .u32 t[4];\n.entry k() {\n.reg .b32 %r<5>;\nld.global.u32 %r1, [t];\nst.global.u32 [t+4], %r1;\nret;\n}\n\
             .entry l() {\n.reg .b64 %d;\nmov.u64 %d, t;\nret;\n}"
                .to_owned(),
        ),
        (
            4,
            ".func f() {\ntcgen05.wait::st;\nret;\n}\n.entry k() { call f; call f; ret; }\n.entry l() { call f; ret; }"
                .to_owned(),
        ),
    ];
    for (line, text) in texts {
        let text = format!(".version 8.0\n.target sm_80\n{text}\n");
        let findings = match warpwave_ptx::compile(&text) {
            Err(findings) => findings,
            Ok(module) => module.unsupported().cloned().collect(),
        };
        let lines: Vec<usize> = findings.iter().map(|finding| finding.line(&text)).collect();
        assert_eq!(lines, [line], "{text}{findings:#?}");
    }
}
