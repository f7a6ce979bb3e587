//! What is said of input that cannot be used.

use crate::{FILL, assert_fails, run_error, run_text, scenario, warpwave};

#[test]
fn names_that_are_none_are_refused_with_the_nearest() {
    let answer = warpwave(&["run", "saxpi", "--gpu", "tiny"]);
    assert_fails(
        &answer,
        2,
        &[
            "error: saxpi: neither a file nor a built-in scenario",
            "did you mean `saxpy`?",
        ],
    );
    let answer = warpwave(&["run", "saxpy", "--gpu", "tini"]);
    assert_fails(&answer, 2, &["error: ", "`tini`", "`tiny`"]);
    let answer = warpwave(&["run", "saxpy", "--gpu", "tiny", "--set", "sm.lsu.queue_dept=8"]);
    assert_fails(&answer, 2, &["sm.lsu.queue_dept", "sm.lsu.queue_depth"]);
    let answer = warpwave(&["run", "no/such/file.toml"]);
    assert_fails(
        &answer,
        2,
        &["error: no/such/file.toml: cannot read no/such/file.toml: "],
    );
    let answer = warpwave(&["explain", "smsp__inst_executed.sun"]);
    assert_fails(
        &answer,
        2,
        &[
            "no metric is named `smsp__inst_executed.sun`",
            "did you mean `smsp__inst_executed.sum`?",
        ],
    );
    let answer = warpwave(&["run", "saxpy", "--gpu", "tiny", "--vcd", "/dev/null/x.vcd"]);
    assert_fails(&answer, 2, &["cannot write /dev/null/x."]);
}

#[test]
fn scenario_that_is_none_is_refused_with_place_and_remedy() {
    let launch = "[[launch]]\ngrid = 1\nblock = 8\nargs = [\"out\"]\n";
    let buffer = "[buffers.out]\ndtype = \"u32\"\nshape = [8]\n";
    let answer = run_text(&format!("ptx = \"k.ptx\"\nptxx = 1\n{buffer}{launch}"));
    assert_fails(
        &answer,
        2,
        &["s.toml: ptxx: TOML parse error at line 2", "did you mean `ptx`?"],
    );
    let answer = run_text(&format!("ptx = \"missing.ptx\"\n{buffer}{launch}"));
    assert_fails(
        &answer,
        2,
        &[
            "s.toml: ptx: cannot read missing.ptx: ",
            "relative to the scenario file",
        ],
    );
    let answer = run_text(&format!(
        "ptx = \"k.ptx\"\n{buffer}init = {{ npy = \"k.ptx\" }}\n{launch}"
    ));
    assert_fails(
        &answer,
        2,
        &["s.toml: buffers.out.init: k.ptx is not an npy array: ", "numpy.save"],
    );
    let answer = run_text(&format!(
        "ptx = \"k.ptx\"\n{buffer}{}",
        launch.replace("[\"out\"]", "[{ u32 = 1 }]")
    ));
    assert_fails(
        &answer,
        2,
        &["argument 0 of kernel `fill` is a scalar u32 (4 bytes), but its parameter `fill_out` takes 8 bytes"],
    );
    let answer = run_text(&format!("ptx = \"k.ptx\"\n{buffer}{launch}entry = \"full\"\n"));
    assert_fails(&answer, 2, &["the program has no kernel `full`; it has fill"]);
    let answer = run_text(&format!(
        "ptx = \"k.ptx\"\n{buffer}{launch}[[assert]]\nmetric = \"cycles\"\nmax = 1\n"
    ));
    assert_fails(&answer, 2, &["no metric is named `cycles`"]);
    let answer = run_text(&format!(
        "ptx = \"k.ptx\"\n{buffer}{launch}[globals.table]\ndtype = \"u32\"\nshape = [8]\n"
    ));
    assert_fails(
        &answer,
        2,
        &["the program has no module variable `table`", "it has none"],
    );
}

#[test]
fn array_of_another_type_or_shape_is_refused() {
    let mut npy = Vec::new();
    warpwave::scenario::npy::write(&mut npy, warpwave::scenario::dtype::Dtype::F64, &[8], &[0; 64]).unwrap();
    let text = |dtype: &str, n: u32| {
        format!(
            "ptx = \"k.ptx\"\n[buffers.out]\ndtype = \"{dtype}\"\nshape = [{n}]\ninit = {{ npy = \"a.npy\" }}\n\
             [[launch]]\ngrid = 1\nblock = 8\nargs = [\"out\"]\n"
        )
    };
    let run = |text: String| {
        let (_folder, path) = scenario(&text, &[("k.ptx", FILL.as_bytes()), ("a.npy", &npy)]);
        warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"])
    };
    assert_fails(
        &run(text("u32", 8)),
        2,
        &["a.npy holds '<f8', but the buffer's dtype is u32"],
    );
    assert_fails(
        &run(text("f64", 9)),
        2,
        &["a.npy has shape [8], but the buffer's is [9]"],
    );
    assert_eq!(run(text("f64", 8)).code, 0);
}

#[test]
fn wrong_argument_count_is_refused_with_the_kernels_parameters() {
    assert_fails(
        &run_error("wrong_arguments"),
        2,
        &["launch[0]: kernel `fill` takes 1 arguments, not 0: fill_out"],
    );
}

#[test]
fn text_that_is_not_ptx_is_refused_with_every_finding() {
    let says = [
        "syntax: the program is not PTX; findings: 3",
        "missing `;`",
        "syntax.ptx:12:",
        "undefined register `%rd7`",
        "undefined label `$L__nowhere`",
    ];
    assert_fails(&run_error("syntax"), 2, &says);
}

#[test]
fn unsupported_instructions_are_listed_with_their_lines() {
    let says = [
        "kernel `sample` cannot run",
        "`tex.2d.v4.f32.f32`",
        "unsupported.ptx:15:",
        "unsupported.ptx:16:",
    ];
    assert_fails(&run_error("unsupported"), 2, &says);
}

#[test]
fn launch_that_cannot_fit_is_refused_with_resource_need_and_limit() {
    assert_fails(
        &run_error("too_many_threads"),
        2,
        &["launch[0]: threads of a block", "2048", "the limit is 1024"],
    );
    let says = ["kernel `fill` cannot be launched on tiny: shared memory: a block needs 1048576 bytes, the limit is "];
    assert_fails(&run_error("too_much_shared"), 2, &says);
}

#[test]
fn usage_that_makes_no_sense_is_refused_by_code_2() {
    for args in [
        &["run"][..],
        &["fly"],
        &["run", "saxpy", "--threads", "0"],
        &["run", "saxpy", "--trace-depth", "0"],
        &["run", "saxpy", "--flight", "a.vcd", "--no-flight"],
    ] {
        let answer = warpwave(args);
        assert_eq!(answer.code, 2, "{args:?}: {}", answer.err);
    }
    let answer = warpwave(&[
        "run",
        "saxpy",
        "--gpu",
        "tiny",
        "--vcd",
        "none.vcd",
        "--trace-cycles",
        "9..1",
    ]);
    assert_fails(&answer, 2, &["`9..1` is no window of cycles"]);
}
