//! Scenarios with several PTX files.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::{Answer, assert_fails, scenario, warpwave};

/// Calls `twice` and reads `base`, both from another file. Line 12 is the call, line 14 the load.
const MAIN: &str = "\
.version 7.8
.target sm_80
.address_size 64
.extern .global .u32 base;
.extern .func (.param .b32 result) twice(.param .b32 value);
.visible .entry k(.param .u64 out) {
    .reg .b64 %rd<4>; .reg .b32 %r<5>;
    .param .b32 value; .param .b32 result;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    st.param.b32 [value], %r1;
    call (result), twice, (value);
    ld.param.b32 %r2, [result];
    ld.global.u32 %r3, [base];
    add.s32 %r4, %r2, %r3;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    ret;
}
";

/// Defines both. Line 6 is the shift.
const LIBRARY: &str = "\
.version 7.8
.target sm_80
.visible .global .u32 base = 100;
.visible .func (.param .b32 result) twice(.param .b32 value) {
    .reg .b32 %r<3>; ld.param.b32 %r1, [value];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [result], %r2;
    ret;
}
";

/// A scenario with these files, in which thread t writes 100 + 2 t.
fn linked(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let text = format!(
        "ptx = {names:?}\n\
         buffers.out = {{ dtype = \"u32\", shape = [32], expect = {{ iota = {{ start = 100, step = 2 }} }} }}\n\
         launch = [{{ grid = 1, block = 32, args = [\"out\"] }}]\n"
    );
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    scenario(&text, &files)
}

fn run(files: &[(&str, &str)]) -> Answer {
    let (_folder, path) = linked(files);
    warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"])
}

#[test]
fn kernel_calls_a_function_and_reads_a_variable_of_another_file() {
    for order in [
        [("main.ptx", MAIN), ("lib.ptx", LIBRARY)],
        [("lib.ptx", LIBRARY), ("main.ptx", MAIN)],
    ] {
        let answer = run(&order);
        assert_eq!(answer.code, 0, "{}", answer.err);
    }
}

#[test]
fn other_value_in_the_second_file_gives_other_results() {
    let other = LIBRARY.replace("= 100", "= 101");
    let answer = run(&[("main.ptx", MAIN), ("lib.ptx", &other)]);
    assert_fails(&answer, 1, &["out"]);
}

#[test]
fn each_error_names_its_file_and_line() {
    let with = |library: &str| run(&[("main.ptx", MAIN), ("lib.ptx", library)]);
    let syntax = with(&LIBRARY.replace("%r1, 1;", "%r1, 1"));
    assert_fails(
        &syntax,
        2,
        &[
            "s.toml: ptx: the files do not form a valid program: 1 error",
            "lib.ptx:6:",
        ],
    );
    let register = with(&LIBRARY.replace("%r2, %r1, 1", "%r2, %r9, 1"));
    assert_fails(
        &register,
        2,
        &[
            "do not form a valid program: 1 error",
            "undefined register `%r9`",
            "lib.ptx:6:",
        ],
    );
    let trap = with(&LIBRARY.replace("shl.b32 %r2, %r1, 1", "trap"));
    assert_fails(&trap, 3, &["of lib.ptx:6: trap;"]);
}

#[test]
fn name_that_two_files_define_and_function_that_none_defines_are_refused() {
    let twice = run(&[("main.ptx", MAIN), ("lib.ptx", LIBRARY), ("lib2.ptx", LIBRARY)]);
    let says = [
        "`base` is defined by two texts",
        "lib2.ptx:3:",
        "`.weak`",
        "`twice` is defined by two texts",
        "lib2.ptx:4:",
    ];
    assert_fails(&twice, 2, &says);
    let (variable, _) = LIBRARY.split_once(".visible .func").unwrap();
    let missing = run(&[("main.ptx", MAIN), ("lib.ptx", variable)]);
    let says = [
        "`twice` is declared, but no PTX defines it",
        "main.ptx:5:",
        "link the PTX that defines it",
        "`ptx` takes a list",
    ];
    assert_fails(&missing, 2, &says);
    let function = LIBRARY.replace(".visible .global .u32 base = 100;\n", "");
    let missing = run(&[("main.ptx", MAIN), ("lib.ptx", &function)]);
    let says = [
        "1 of its statements",
        "`base` is declared, but no PTX defines it",
        "main.ptx:4:",
        "`ptx` takes a list",
    ];
    assert_fails(&missing, 2, &says);
    assert_fails(
        &run(&[]),
        2,
        &["s.toml: ptx: an empty list; name at least one PTX file"],
    );
}

#[test]
fn report_lists_each_file_and_no_output_may_replace_one() {
    let (folder, path) = linked(&[("main.ptx", MAIN), ("lib.ptx", LIBRARY)]);
    let path = path.to_str().unwrap();
    let page = folder.path().join("page.html");
    let answer = warpwave(&["run", path, "--gpu", "tiny", "--html", page.to_str().unwrap()]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let text = std::fs::read_to_string(page).unwrap();
    for line in ["id=\"ptx-main.ptx-14\"", "id=\"ptx-lib.ptx-6\""] {
        assert!(text.contains(line), "{line}");
    }
    let library = folder.path().join("lib.ptx");
    let answer = warpwave(&["run", path, "--gpu", "tiny", "--html", library.to_str().unwrap()]);
    assert_fails(&answer, 2, &["lib.ptx", "is read by this run"]);
    assert_eq!(std::fs::read_to_string(library).unwrap(), LIBRARY);
}
