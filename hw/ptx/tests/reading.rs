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

/// Returns the rendered findings of a text with this header: errors, then unsupported parts.
fn found(header: &str, text: &str) -> Vec<String> {
    let text = format!("{header}\n.address_size 64\n{text}\n");
    let findings = match warpwave_ptx::compile(&text) {
        Err(findings) => findings,
        Ok(module) => module.unsupported().cloned().collect(),
    };
    findings.iter().map(|finding| finding.render("k.ptx", &text)).collect()
}

fn kernel(body: &str) -> String {
    let registers = ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>; .shared .align 32 .b8 tile[64];";
    format!(".entry k(.param .u64 p) {{ {registers}\n{body}\nret; }}")
}

/// Asserts one finding of a kernel, at its line, with these words.
fn one(header: &str, body: &str, words: &[&str]) {
    let all = found(header, &kernel(body));
    assert!(all.len() == 1 && all[0].contains("k.ptx:5:"), "{body}: {all:?}");
    for word in words {
        assert!(all[0].contains(word), "{body}: `{word}` in {}", all[0]);
    }
}

const HOPPER: &str = ".version 8.6\n.target sm_90a";

#[test]
fn call_targets_are_functions() {
    let functions = ".func f() { ret; }\n.func g() { ret; }\n";
    let call = "mov.u64 %d1, f; mov.u64 %d2, g; t: .calltargets f, g; call %d1, t;";
    assert!(found(HOPPER, &format!("{functions}{}", kernel(call))).is_empty());
    // The words of the vendor's assembler: a device function expected.
    one(
        HOPPER,
        "t: .calltargets nothing;",
        &["error: undefined function `nothing`"],
    );
    one(
        HOPPER,
        "t: .calltargets there; there: ret;",
        &["error: `there` is not a function"],
    );
}

#[test]
fn exchange_without_a_mask_is_refused_on_gpus_whose_lanes_diverge() {
    let shuffle = "shfl.bfly.b32 %r1, %r2, 1, 31;";
    one(
        HOPPER,
        shuffle,
        &["error: `shfl` without `.sync`", "write `shfl.sync.bfly.b32`"],
    );
    one(HOPPER, "vote.ballot.b32 %r1, %p1;", &["write `vote.sync.ballot.b32`"]);
    // The vendor's assembler warns in texts before PTX 6.4, and for older GPUs.
    for header in [".version 6.3\n.target sm_70", ".version 8.6\n.target sm_60"] {
        assert!(found(header, &kernel(shuffle)).is_empty(), "{header}");
    }
}

#[test]
fn cache_operations_take_the_size_of_a_line() {
    assert!(found(HOPPER, &kernel("discard.global.L2 [%d1], 128;")).is_empty());
    one(
        HOPPER,
        "discard.global.L2 [%d1], 64;",
        &["error: `discard` takes a size of 128 bytes, not 64"],
    );
    one(
        HOPPER,
        "applypriority.global.L2::evict_normal [%d1], 32;",
        &["a size of 128 bytes, not 32"],
    );
}

#[test]
fn explicit_cluster_is_a_predicate() {
    assert!(found(HOPPER, &kernel("mov.pred %p1, %is_explicit_cluster;")).is_empty());
    one(
        HOPPER,
        "mov.u32 %r1, %is_explicit_cluster;",
        &["error:", "is a predicate", "help: read it with `mov.pred`"],
    );
    one(
        HOPPER,
        "mov.pred %p1, %laneid;",
        &["error: `%laneid` is a number, not a predicate"],
    );
}

/// A kernel that is cut out of a longer text has no `.file`.
#[test]
fn undefined_file_is_a_warning() {
    let text = format!("{HOPPER}\n.entry k() {{\n.loc 1 1 1\n.loc 1 2 1\n{{ .loc 2 3 1 }}\nret; }}\n");
    let module = warpwave_ptx::compile(&text).expect("it is PTX");
    let shown: Vec<String> = module
        .warnings
        .iter()
        .map(|finding| finding.render("k.ptx", &text))
        .collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(
        shown[0].starts_with("warning: undefined file 1\n  --> k.ptx:4:"),
        "{}",
        shown[0]
    );
    assert!(
        shown[1].starts_with("warning: undefined file 2\n  --> k.ptx:6:"),
        "{}",
        shown[1]
    );
}

#[test]
fn sampler_fields_are_checked() {
    let of = |fields: &str| {
        let text = ".reg .b32 %r<4>;\ntex.1d.v4.u32.s32 {%r0, _, _, _}, [pic, smp, {%r1}];\nret;";
        let header = ".version 8.6\n.target sm_90a, texmode_independent";
        let text = format!(".global .texref pic;\n.global .samplerref smp = {{{fields}}};\n.entry k() {{ {text} }}");
        let all = found(header, &text);
        all.first().map_or(String::new(), |first| {
            assert!(all.len() == 1 && first.contains("k.ptx:5:"), "{all:?}");
            first.clone()
        })
    };
    for fields in [
        "addr_mode_0=wrap,filter_mode=nearest",
        "addr_mode_0 = clamp_to_border, addr_mode_1 = clamp_to_border, filter_mode = linear, force_unnormalized_coords = 1",
    ] {
        assert_eq!(of(fields), "");
    }
    for (fields, message) in [
        ("foo=1", "error: a sampler has no field `foo`"),
        ("filter_mode=cubic", "error: unknown filter mode `cubic`"),
        ("addr_mode_0=around", "error: unknown address mode `around`"),
        ("addr_mode_0=1", "error: `addr_mode_0` takes the name of a mode"),
        (
            "force_unnormalized_coords=2",
            "error: `force_unnormalized_coords` is 0 or 1",
        ),
        (
            "filter_mode=linear, filter_mode=nearest",
            "error: two values of the field `filter_mode`",
        ),
        ("addr_mode_0=clamp_ogl", "unsupported: the address mode `clamp_ogl`"),
        (
            "addr_mode_0=wrap, addr_mode_1=mirror",
            "unsupported: a sampler with two address modes",
        ),
    ] {
        let shown = of(fields);
        assert!(shown.starts_with(message), "{fields}: {shown}");
    }
    let other = found(HOPPER, ".global .u32 x = {filter_mode = linear};\n.entry k() { ret; }");
    assert!(
        other.len() == 1 && other[0].starts_with("error: fields in a variable of `.u32`"),
        "{other:?}"
    );
    let sized = ".global .texref pic = {width = 4};\n.entry k() { .reg .b32 %r; txq.width.b32 %r, [pic]; ret; }";
    let sized = found(HOPPER, sized);
    assert!(
        sized.len() == 1 && sized[0].starts_with("unsupported: fields of a texture"),
        "{sized:?}"
    );
}

#[test]
fn findings_name_the_remedy() {
    for (body, message, help) in [
        (
            "st.bulk.weak.shared::cta [%r1], %d1, 0;",
            "unsupported: `st` with `.bulk`",
            "store each word",
        ),
        (
            "multimem.st.global.f32 [%d1], %r1;",
            "unsupported: instruction `multimem",
            "the memory of one GPU",
        ),
        (
            "sured.b.add.1d.u32.trap [%d1, {%r1}], %r2;",
            "unsupported: instruction `sured",
            "`red`",
        ),
        (
            "istypep.texref %p1, %d1;",
            "unsupported: instruction `istypep",
            "declaration",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;",
            "unsupported: instruction `tcgen05",
            "`mma.sync`",
        ),
    ] {
        one(HOPPER, body, &[message, "help: ", help]);
    }
    let field = "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 7, 16;";
    one(
        HOPPER,
        field,
        &["error: dimension 7 of a tensor map that has dimensions 0 to 4"],
    );
}

/// The vendor's assembler takes 256 bits in global memory from `sm_100` on, and nowhere else.
#[test]
fn wide_vectors_have_one_finding() {
    for space in ["shared", "local", "const", "param"] {
        let load = format!("ld.{space}.v4.b64 {{%d1, %d2, %d3, %d4}}, [%d5];");
        let name = format!("error: `ld.{space}` of 256 bits");
        one(
            HOPPER,
            &load,
            &[&name, "help: only `.global` has 256 bits, and needs `sm_100` or later"],
        );
    }
    one(
        HOPPER,
        "st.shared.v4.b64 [tile], {%d1, %d2, %d3, %d4};",
        &["error: `st.shared` of 256 bits"],
    );
    let unmet = |body: &str, capability: u32| {
        let text = format!(".version 8.8\n.target sm_50\n.address_size 64\n{}\n", kernel(body));
        let module = warpwave_ptx::compile(&text).expect("it is PTX");
        assert_eq!(module.unsupported().count(), 0, "{body}");
        let findings = module.unmet_requirements(capability);
        findings
            .iter()
            .map(|finding| finding.render("k.ptx", &text))
            .collect::<Vec<String>>()
    };
    for body in [
        "ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d5];",
        "st.global.v8.b32 [%d5], {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7};",
    ] {
        let all = unmet(body, 90);
        assert!(all.len() == 1 && all[0].contains("k.ptx:5:"), "{all:?}");
        assert!(
            all[0].contains("needs compute capability 10.0, the GPU has 9.0"),
            "{}",
            all[0]
        );
        assert!(unmet(body, 100).is_empty(), "{body}");
    }
}
