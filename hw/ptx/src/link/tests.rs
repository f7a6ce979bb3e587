//! Links short texts and compiles the result.

use super::*;
use crate::Module;

const HEAD: &str = ".version 7.8\n.target sm_80\n";

fn texts(bodies: &[&str]) -> Vec<String> {
    bodies.iter().map(|body| format!("{HEAD}{body}\n")).collect()
}

fn linked(bodies: &[&str]) -> Linked {
    let texts = texts(bodies);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    link(&texts).unwrap_or_else(|findings| panic!("{findings:?}"))
}

fn module(bodies: &[&str]) -> Module {
    let text = linked(bodies).text;
    crate::compile(&text).unwrap_or_else(|findings| panic!("{findings:?}\n{text}"))
}

/// Returns the text and the message of each finding.
fn findings(bodies: &[&str]) -> Vec<(usize, String)> {
    let texts = texts(bodies);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = link(&texts).err().unwrap_or_default();
    found
        .into_iter()
        .map(|found| (found.text, found.finding.message))
        .collect()
}

/// Returns name and first byte of each global variable.
fn globals(bodies: &[&str]) -> Vec<(String, u8)> {
    let globals = module(bodies).globals.into_iter();
    globals.map(|global| (global.name, global.bytes[0])).collect()
}

fn pair(name: &str, byte: u8) -> (String, u8) {
    (name.to_owned(), byte)
}

const CALLER: &str = ".extern .func (.param .b32 r) f();
.entry k(.param .u64 out) {
    .reg .b64 %rd1; .reg .b32 %r1;
    .param .b32 got;
    ld.param.u64 %rd1, [out];
    call (got), f, ();
    ld.param.b32 %r1, [got];
    st.global.u32 [%rd1], %r1;
    ret;
}";

/// Returns a function `f` that returns `value`.
fn function(linkage: &str, value: u32) -> String {
    format!("{linkage} .func (.param .b32 r) f() {{ st.param.b32 [r], {value}; ret; }}")
}

/// Returns the code of kernel `k`.
fn code(bodies: &[&str]) -> String {
    let module = module(bodies);
    let entry = module.entry("k").unwrap();
    entry
        .program()
        .as_ref()
        .unwrap_or_else(|found| panic!("{found:?}"))
        .to_string()
}

#[test]
fn call_reaches_function_of_later_and_earlier_text() {
    let function = function(".visible", 42);
    let own = CALLER.replace(".extern .func (.param .b32 r) f();", &function);
    // The linked kernel is the kernel of a single text with the function.
    for order in [[CALLER, &function], [&function, CALLER]] {
        assert_eq!(code(&order), code(&[&own]));
    }
    assert!(
        code(&[CALLER, &function]).contains("0x2a"),
        "{}",
        code(&[CALLER, &function])
    );
}

#[test]
fn function_that_no_text_defines_is_unsupported_as_in_a_single_text() {
    let module = module(&[CALLER, ".entry other() { ret; }"]);
    assert!(module.entry("k").unwrap().program().is_err());
    assert!(module.entry("other").unwrap().program().is_ok());
}

#[test]
fn alias_is_another_name_of_its_function() {
    let function = function("", 42).replace(" f()", " real()");
    let text = |call: &str| {
        CALLER
            .replace(".extern .func (.param .b32 r) f();", &function)
            .replace("(got), f,", call)
    };
    let plain = code(&[&text("(got), real,")]);
    for declaration in ["", ".func (.param .b32 r) f();\n"] {
        let aliased = format!("{declaration}{}\n.alias f, real;", text("(got), f,"));
        assert_eq!(code(&[&aliased]), plain, "{declaration}");
    }
    // Both names have one address.
    let pointer = "mov.u64 %rd1, f; proto: .callprototype (.param .b32 _) _ (); call (got), %rd1, (), proto;";
    let by_pointer = |name: &str| {
        let call = pointer.replace(", f;", &format!(", {name};"));
        text("(got), f,").replace("call (got), f, ();", &call) + "\n.alias f, real;"
    };
    assert_eq!(code(&[&by_pointer("f")]), code(&[&by_pointer("real")]));
    let wrong = |alias: &str| {
        let text = format!("{HEAD}{function}\n.entry k() {{ ret; }}\n{alias}");
        crate::compile(&text).map(|_| ()).unwrap_err()[0].message.clone()
    };
    for (alias, name) in [(".alias f, k;", "k"), (".alias f, nothing;", "nothing")] {
        assert_eq!(
            wrong(alias),
            format!("`{name}` is not a function with a body in this text")
        );
    }
    assert_eq!(wrong(".alias real, real;"), "function `real` is defined twice");
    assert_eq!(
        wrong(".alias f, real;\n.alias f, real;"),
        "function `f` is defined twice"
    );
}

/// Returns the message and the text of the span of each finding of kernel `k`.
fn kernel_findings(text: &str) -> Vec<(String, String)> {
    let text = format!("{HEAD}{text}");
    let module = crate::compile(&text).unwrap_or_else(|findings| panic!("{findings:?}"));
    let found = module.entry("k").unwrap().program().clone().err().unwrap_or_default();
    let named = |finding: &Diagnostic| text[finding.span.start as usize..finding.span.end as usize].to_owned();
    found
        .iter()
        .map(|finding| (finding.message.clone(), named(finding)))
        .collect()
}

#[test]
fn declaration_without_a_definition_is_one_finding_for_all_uses() {
    let one = |name: &str| vec![(format!("`{name}` is declared, but no PTX defines it"), name.to_owned())];
    let twice = "ld.global.u32 %r1, [x]; st.global.u32 [x+4], %r1;";
    let kernel = |data: &str, code: &str| format!("{data}\n.entry k() {{ .reg .b64 %d1; .reg .b32 %r1; {code} ret; }}");
    for data in [".extern .global .align 4 .b8 x[8];", ".extern .global .u32 x[];"] {
        assert_eq!(kernel_findings(&kernel(data, twice)), one("x"), "{data}");
        assert_eq!(kernel_findings(&kernel(data, "")), [], "no kernel names it");
    }
    let constant = kernel(".extern .const .u32 x[2];", "ld.const.u32 %r1, [x];");
    assert_eq!(kernel_findings(&constant), one("x"));
    let in_data = kernel(".extern .global .u32 x; .global .u64 p = x;", "ld.global.u64 %d1, [p];");
    assert_eq!(kernel_findings(&in_data), one("x"));
    let calls = kernel(".extern .func f();", "call f, (); call f, (); mov.u64 %d1, f;");
    assert_eq!(kernel_findings(&calls), one("f"));
    let table = kernel(
        ".extern .func f(); .global .u64 t[2] = {f, f};",
        "ld.global.u64 %d1, [t];",
    );
    assert_eq!(kernel_findings(&table), one("f"));
    let defined = kernel(".extern .global .u32 x[2]; .global .u32 x[2] = {1, 2};", twice);
    assert_eq!(kernel_findings(&defined), []);
    let dynamic = kernel(".extern .shared .align 16 .b8 x[];", "ld.shared.u32 %r1, [x];");
    assert_eq!(kernel_findings(&dynamic), [], "dynamic shared memory has no definition");
}

#[test]
fn extern_variable_is_the_visible_one() {
    let user = ".extern .global .align 4 .b8 t[];\n.entry k() { .reg .b32 %r1; ld.global.u32 %r1, [t]; ret; }";
    let owner = ".visible .global .align 4 .b8 t[8] = {5};";
    assert_eq!(globals(&[user, owner]), [pair("t", 5)]);
    assert_eq!(globals(&[owner, user]), [pair("t", 5)]);
}

#[test]
fn private_names_of_two_texts_are_two_variables() {
    let text = |value: u32, kernel: &str| {
        format!(".global .u32 seed = {value};\n.entry {kernel}() {{ .reg .b64 %rd1; mov.u64 %rd1, seed; ret; }}")
    };
    let (a, b) = (text(1, "a"), text(2, "b"));
    assert_eq!(globals(&[&a, &b]), [pair("seed", 1), pair("seed$2", 2)]);
    // A visible variable keeps its name, and a new name is one that no text uses.
    let visible = ".visible .global .u32 seed = 3; .visible .global .u32 seed$1 = 4;";
    let expected = [pair("seed$2", 1), pair("seed", 3), pair("seed$1", 4)];
    assert_eq!(globals(&[&a, visible]), expected);
}

#[test]
fn strong_definition_replaces_weak_and_common_ones() {
    let weak = |value: u32| format!(".weak .global .u32 x = {value};");
    let strong = ".visible .global .u32 x = 9;";
    assert_eq!(globals(&[&weak(1), &weak(2)]), [pair("x", 1)]);
    assert_eq!(globals(&[&weak(1), strong, &weak(2)]), [pair("x", 9)]);
    assert_eq!(globals(&[".common .global .u32 x;", strong]), [pair("x", 9)]);
    assert_eq!(globals(&[&weak(1), ".common .global .u32 x = 2;"]), [pair("x", 2)]);
    let (first, second) = (function(".weak", 11), function(".weak", 12));
    assert_eq!(code(&[CALLER, &first, &second]), code(&[CALLER, &first]));
    assert_eq!(
        code(&[CALLER, &first, &function(".visible", 13)]),
        code(&[CALLER, &function(".visible", 13)])
    );
}

#[test]
fn largest_common_variable_counts() {
    let sizes =
        |bodies: &[&str]| -> Vec<usize> { module(bodies).globals.iter().map(|global| global.bytes.len()).collect() };
    let (small, large) = (".common .global .b8 x[4];", ".common .global .b8 x[12];");
    assert_eq!(sizes(&[small, large]), [12]);
    assert_eq!(sizes(&[large, small]), [12]);
    assert_eq!(
        findings(&[".common .global .b8 x[4] = {1};", large]),
        [(
            1,
            "`.common` variable `x` is larger than the one with the initial value".to_owned()
        )]
    );
    assert_eq!(
        findings(&[".common .global .b8 x[4] = {1};", ".common .global .b8 x[4] = {2};"]),
        [(1, "`.common` variable `x` has two initial values".to_owned())]
    );
}

#[test]
fn replaced_variable_of_a_list_leaves_the_others() {
    let list = ".weak .global .u32 a = 1, b = 2, c = 3;";
    let strong = ".visible .global .u32 b = 9;";
    let expected = [pair("a", 1), pair("b$1", 2), pair("c", 3), pair("b", 9)];
    assert_eq!(globals(&[list, strong]), expected);
}

#[test]
fn clashes_name_the_text_and_the_symbol() {
    let kernel = ".entry k() { ret; }";
    assert_eq!(
        findings(&[kernel, kernel]),
        [(1, "`k` is defined by two texts".to_owned())]
    );
    let (int, long) = (".visible .global .u32 x;", ".extern .global .u64 x;");
    let mismatch = "`x` does not match its definition in another text".to_owned();
    assert_eq!(findings(&[int, long]), [(1, mismatch.clone())]);
    assert_eq!(findings(&[long, int]), [(0, mismatch.clone())]);
    assert_eq!(findings(&[int, ".extern .const .u32 x;"]), [(1, mismatch.clone())]);
    assert_eq!(findings(&[int, ".extern .func x();"]), [(1, mismatch)]);
    let caller = ".extern .func (.param .b64 r) f();";
    assert_eq!(
        findings(&[&function(".visible", 1), caller]),
        [(1, "`f` does not match its definition in another text".to_owned())]
    );
    // A malformed text is reported alone, before anything is linked.
    assert_eq!(findings(&[kernel, ".entry k() { bra L; }"])[0].0, 1);
}

#[test]
fn program_has_newest_version_and_target() {
    let old = ".version 7.8\n.target sm_80, debug\n.address_size 64\n.entry a() { ret; }";
    let new = "\u{feff}.version 8.3\n.target sm_90a\n.address_size 64\n.entry b() { ret; }";
    for order in [[old, new], [new, old]] {
        let linked = link(&order).unwrap();
        let module = crate::parse(&linked.text).unwrap();
        assert_eq!((module.version, module.target), ((8, 3), vec!["sm_90a", "debug"]));
        assert_eq!(linked.text.matches(".version").count(), 1);
    }
    let modes = ["texmode_unified", "texmode_independent"].map(|mode| format!(".version 7.8\n.target sm_80, {mode}\n"));
    assert_eq!(link(&[&modes[0], &modes[1]]).unwrap_err()[0].text, 1);
}

#[test]
fn source_lines_name_the_files_of_their_text() {
    let text =
        |name: &str, file: &str| format!(".file 1 \"{file}\"\n.visible .entry {name}() {{\n.loc 1 7 3\nret;\n}}");
    let (a, b) = (text("a", "a.cu"), text("b", "b.cu"));
    let module = module(&[&a, &b]);
    let file_of = |name: &str| {
        let program = module.entry(name).unwrap().program().as_ref().unwrap();
        program.source(0).map(|line| (line.file.to_owned(), line.line))
    };
    assert_eq!(file_of("a"), Some(("a.cu".to_owned(), 7)));
    assert_eq!(file_of("b"), Some(("b.cu".to_owned(), 7)));
}

#[test]
fn lines_and_findings_of_linked_text_have_an_origin() {
    let clash = ".global .u32 x;\n.entry a() {\n.reg .b32 %r1;\nld.global.u32 %r1, [x];\n\nret; }";
    let unsupported =
        ".global .u32 x;\n.entry b() {\n.reg .b32 %r1;\nld.global.u32 %r1, [x]; multimem.red.add.u32 [x], %r1;\nret; }";
    let linked = linked(&[clash, unsupported]);
    // Each text has two lines of head; the first text has eight lines.
    assert_eq!(
        [1, 8, 9, 14].map(|line| linked.origin_of_line(line)),
        [(0, 1), (0, 8), (1, 1), (1, 6)]
    );
    let module = crate::compile(&linked.text).unwrap();
    let found: Vec<_> = module.unsupported().map(|finding| linked.origin(finding)).collect();
    let text = &texts(&[unsupported])[0];
    assert_eq!(found[0].text, 1);
    let span = found[0].finding.span;
    assert!(text[span.start as usize..].starts_with("multimem"), "{span:?}");
    assert_eq!(found[0].finding.line(text), 6);
}

/// `r1` is the private variable of each text, and a register where a family declares it.
#[test]
fn register_of_a_family_keeps_its_name_beside_a_renamed_variable() {
    let text = |value: u32| {
        format!(
            ".global .u8 r1 = {value};\n.entry k{value}(.param .u64 out) {{ .reg .b64 %d1, %d2; ld.param.u64 %d1, [out];\n\
             mov.u64 %d2, r1; st.global.u64 [%d1], %d2;\n\
             {{ .reg .b32 r<4>; mov.u32 r1, 7; st.global.u32 [%d1], r1; }}\n\
             mov.u64 %d2, r1; st.global.u64 [%d1], %d2; ret; }}"
        )
    };
    let linked = linked(&[&text(3), &text(4)]).text;
    assert_eq!(globals(&[&text(3), &text(4)]), [pair("r1", 3), pair("r1$2", 4)]);
    assert_eq!(
        linked.matches("mov.u32 r1, 7; st.global.u32 [%d1], r1;").count(),
        2,
        "{linked}"
    );
    assert_eq!(linked.matches("mov.u64 %d2, r1$2;").count(), 2, "{linked}");
}
