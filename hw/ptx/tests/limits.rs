//! Texts that would cost much host time or memory: each is refused, or compiles fast in little memory.
//!
//! No test measures time: a busy host would fail it. With the growth that a comment names, the tests here take minutes instead of seconds.
//! The benchmark `load` has the figures.

use warpwave_ptx::diag::{Diagnostic, render_all};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Returns a kernel with some registers.
fn kernel(body: &str) -> String {
    format!("{HEAD}.entry k(.param .u64 p) {{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>;\n{body}\nret;\n}}\n")
}

/// Returns the findings of the text, or of its last entry.
fn findings(text: &str) -> Vec<Diagnostic> {
    match warpwave_ptx::compile(text) {
        Err(findings) => findings,
        Ok(module) => {
            let entry = module.entries.into_iter().next_back();
            entry
                .and_then(|entry| entry.program().clone().err())
                .unwrap_or_default()
        }
    }
}

/// Returns the only finding, rendered.
fn only_finding(text: &str) -> String {
    let found = findings(text);
    assert_eq!(found.len(), 1, "{:?}", found.iter().take(3).collect::<Vec<_>>());
    found[0].render("k.ptx", text)
}

fn repeated(n: usize, each: impl Fn(usize) -> String) -> String {
    (0..n).map(each).collect()
}

/// Compiles without findings.
fn compiles(text: &str) {
    let found = findings(text);
    assert!(found.is_empty(), "{:?}", found.first());
}

#[test]
fn register_limit_counts_all_declarations_of_a_function() {
    let declared = |n| repeated(n, |n| format!(".reg .b32 %a{n}_<524288>;\n"));
    assert!(findings(&format!("{HEAD}.entry k() {{\n{}ret; }}", declared(2))).is_empty());
    assert_eq!(
        only_finding(&format!("{HEAD}.entry k() {{\n{}ret; }}", declared(3))),
        "error: more than 1048576 registers in one function\n  \
         --> k.ptx:7:11\n  |\n7 | .reg .b32 %a2_<524288>;\n  |           ^^^^\n"
    );
    // Without a limit these would take 7 GB.
    assert_eq!(
        findings(&format!("{HEAD}.entry k() {{\n{}ret; }}", declared(14_000))).len(),
        1
    );
}

#[test]
fn calls_that_multiply_the_code_are_refused() {
    let line = repeated(5000, |_| "add.u32 %r1, %r1, 1;".to_owned());
    let call = |n| {
        format!(
            "{HEAD}.func f() {{ .reg .b32 %r<4>; {line} ret; }}\n.entry k() {{\n{}ret; }}",
            "call f;\n".repeat(n)
        )
    };
    assert!(findings(&call(100)).is_empty());
    let refused = only_finding(&call(1000));
    assert!(
        refused.starts_with(
            "unsupported: kernel `k` has more than 1048576 operations, including the functions that it calls\n"
        ),
        "{refused}"
    );
}

/// Debug code of libcu++ has some thousand calls in a kernel. One kernel with too many has one finding, wherever its calls are.
#[test]
fn empty_calls_that_multiply_are_refused_once() {
    let nested = |n: usize| {
        let calls = |name: &str| format!("call {name};\n").repeat(n);
        format!(
            "{HEAD}.func f() {{ ret; }}\n.func g() {{\n{}ret; }}\n.entry k() {{\n{}ret; }}",
            calls("f"),
            calls("g")
        )
    };
    assert!(findings(&nested(90)).is_empty());
    let refused = only_finding(&nested(91));
    assert!(
        refused
            .starts_with("unsupported: kernel `k` has more than 8192 calls, including the functions that it calls\n"),
        "{refused}"
    );
}

#[test]
fn calls_that_multiply_registers_are_refused() {
    let text = format!(
        "{HEAD}.func f() {{ .reg .b32 %r<1000000>; ret; }}\n.entry k() {{\n{}ret; }}",
        "call f;\n".repeat(1000)
    );
    let refused = only_finding(&text);
    assert!(
        refused.starts_with(
            "unsupported: kernel `k` has more than 4194304 registers, including the functions that it calls\n"
        ),
        "{refused}"
    );
}

#[test]
fn jump_tables_that_multiply_the_code_are_refused() {
    let table = |n: usize| {
        let labels: Vec<String> = (0..n).map(|n| format!("L{n}")).collect();
        let places = repeated(n, |n| format!("L{n}: add.u32 %r1, %r1, {n};\n"));
        kernel(&format!(
            "t: .branchtargets {};\n{}{places}",
            labels.join(", "),
            "brx.idx %r1, t;\n".repeat(n)
        ))
    };
    assert!(findings(&table(100)).is_empty());
    assert!(only_finding(&table(1500)).starts_with("unsupported: kernel `k` has more than 1048576 operations"));
}

#[test]
fn call_parameter_of_gigabytes_is_refused() {
    let call = |bytes: u64| {
        format!(
            "{HEAD}.func f(.param .align 4 .b8 p[{bytes}]) {{ ret; }}\n\
             .entry k() {{ .param .align 4 .b8 q[{bytes}];\ncall f, (q); ret; }}"
        )
    };
    assert!(findings(&call(65_536)).is_empty());
    for bytes in [65_537, 1 << 30] {
        let found = findings(&call(bytes));
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0].message,
            "`p` has more than 65536 bytes, the limit of a call parameter"
        );
    }
}

#[test]
fn global_variable_limit_counts_the_whole_module() {
    let text = |n| {
        format!(
            "{HEAD}{}.entry k() {{ ret; }}",
            repeated(n, |n| format!(".global .b8 g{n}[1073741824];\n"))
        )
    };
    assert!(findings(&text(2)).is_empty());
    let refused = only_finding(&text(3));
    assert!(
        refused.starts_with("unsupported: the module's global variables are larger than 2 GiB\n  --> k.ptx:6:"),
        "{refused}"
    );
}

#[test]
fn long_names_are_shortened_in_messages() {
    let name = "x".repeat(2_000_000);
    for text in [
        kernel(&format!("mov.u32 %r1, {name};")),
        kernel(&format!("{name}.u32 %r1;")),
        kernel(&format!("mov.u32 %r1, %tid.{name};")),
        format!("{HEAD}.entry {name}() {{ ret; }} .entry {name}() {{ ret; }}"),
        format!("{HEAD}{name}"),
        kernel(&format!("mov.u32 %r1, %{name};")),
    ] {
        let found = findings(&text);
        assert!(!found.is_empty());
        let shown = render_all(&found, "k.ptx", &text);
        assert!(shown.len() < 2000, "{} bytes", shown.len());
        assert!(shown.contains("xxx…"), "{shown}");
    }
}

/// Every digit of a name was once tried as the start of the number.
#[test]
fn register_name_with_many_digits_is_resolved() {
    let text = kernel(&format!("mov.u32 %r{}, 1;", "1".repeat(1_000_000)));
    assert_eq!(findings(&text).len(), 1);
    // The largest number has 7 digits, and the name of a family can end in digits.
    let lines = |lines: &str| findings(&format!("{HEAD}.entry k() {{ {lines} ret; }}")).len();
    assert_eq!(lines(".reg .b32 %q<1048576>; mov.u32 %q1048575, %q0;"), 0);
    assert_eq!(lines(".reg .b32 %q<1048576>; mov.u32 %q1048575, %q1048576;"), 1);
    assert_eq!(lines(".reg .b32 %z9<12>; mov.u32 %z911, %z90;"), 0);
    assert_eq!(lines(".reg .b32 %z9<12>; mov.u32 %z911, %z912;"), 1);
}

/// 3,000 divisions are 350,000 instructions. Liveness with a cost of blocks times registers took minutes and gigabytes.
#[test]
fn kernel_of_hundreds_of_thousands_of_instructions_compiles() {
    compiles(&kernel(&"div.rn.f64 %d1, %d2, %d3;\n".repeat(3000)));
}

/// 8,000 values are live at once, with 255 registers. The time to choose spilled values once grew with the cube of their number.
#[test]
fn thousands_of_live_values_are_spilled() {
    let load = repeated(8000, |n| format!("ld.global.u32 %a{n}, [%d1+{}];\n", 4 * n));
    let store = repeated(8000, |n| format!("st.global.u32 [%d1+{}], %a{n};\n", 4 * n));
    compiles(&kernel(&format!(".reg .b32 %a<8000>;\n{load}{store}")));
}

/// Each of 300 functions calls all of them. The saved values were once recomputed for every call.
#[test]
fn functions_that_all_call_each_other_are_refused() {
    let heads = repeated(300, |n| format!(".func f{n}();\n"));
    let calls = repeated(300, |n| format!("call f{n};\n"));
    let bodies = repeated(300, |n| format!(".func f{n}() {{ {calls} ret; }}\n"));
    let text = format!("{HEAD}{heads}{bodies}.entry k() {{ call f0; ret; }}");
    let found = findings(&text);
    assert!(found[0].message.contains("calls"), "{:?}", found[0]);
}

/// Facts of the whole module are computed once, and not once per kernel.
#[test]
fn thousands_of_kernels_compile() {
    let kernels = repeated(10_000, |n| {
        format!(".entry k{n}() {{ .reg .b32 %r<4>; mov.u32 %r1, {n}; ret; }}\n")
    });
    compiles(&format!("{HEAD}{kernels}"));
    let functions = repeated(3000, |n| {
        format!(".func f{n}() {{ ret; }}\n.entry k{n}() {{ call f{n}; ret; }}\n")
    });
    compiles(&format!("{HEAD}{functions}"));
}
