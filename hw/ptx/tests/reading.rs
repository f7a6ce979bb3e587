//! Parsing: PTX that is accepted (`tests/ok`), and PTX that is refused (`tests/err`, with the rendered findings beside it).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
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
fn four_megabytes_parse_within_a_second() {
    let body = "\tadd.s32 %r1, %r2, %r3;\n\tld.global.f32 %f1, [%rd1+4];\n".repeat(70_000);
    let text = format!(".entry k() {{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n{body}ret; }}");
    assert!(text.len() > 3_500_000);
    let start = Instant::now();
    assert!(warpwave_ptx::parse(&text).is_ok());
    assert!(start.elapsed() < Duration::from_secs(1));
}
