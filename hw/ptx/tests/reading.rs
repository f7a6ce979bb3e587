//! PTX accepted (`tests/ok`) and refused (`tests/err`, each text beside the whole rendered findings).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    let findings = warpwave_ptx::parse(text).err().unwrap_or_default();
    findings
        .iter()
        .map(|finding| finding.render(name, text))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn texts_of_real_compilers_are_accepted() {
    for path in texts("ok") {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(rendered(&path, &text), "", "{}", path.display());
    }
}

#[test]
fn faulty_texts_are_refused_with_every_finding() {
    for path in texts("err") {
        let text = fs::read_to_string(&path).unwrap();
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        assert_eq!(rendered(&path, &text), expected, "{}", path.display());
    }
}

#[test]
fn any_prefix_of_a_text_is_read_without_a_panic() {
    let text = fs::read_to_string(&texts("ok")[0]).unwrap();
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        let _ = warpwave_ptx::parse(&text[..end]);
    }
}

#[test]
fn deeply_nested_text_is_refused_and_not_overflowing() {
    let text = format!(".entry k() {}", "{".repeat(100_000));
    let findings = warpwave_ptx::parse(&text).unwrap_err();
    assert!(
        findings
            .iter()
            .any(|finding| finding.message.contains("nested more than"))
    );
}

#[test]
fn four_megabytes_are_read_in_a_second() {
    let body = "\tadd.s32 %r1, %r2, %r3;\n\tld.global.f32 %f1, [%rd1+4];\n".repeat(70_000);
    let text = format!(".entry k() {{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n{body}ret; }}");
    assert!(text.len() > 3_500_000);
    let start = Instant::now();
    assert!(warpwave_ptx::parse(&text).is_ok());
    assert!(start.elapsed() < Duration::from_secs(1));
}
