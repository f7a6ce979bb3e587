//! Error texts for wrong input.

use crate::{FILL, assert_fails, run_error, run_text, scenario, warpwave, warpwave_in};

#[test]
fn unknown_names_are_refused_with_the_nearest_name() {
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
    assert_fails(&answer, 2, &["error: no/such/file.toml: cannot read it: "]);
    let answer = warpwave(&["explain", "smsp__inst_executed.sun"]);
    assert_fails(
        &answer,
        2,
        &[
            "no metric, warp state, preset key or word of a report is named `smsp__inst_executed.sun`",
            "did you mean `smsp__inst_executed.sum`?",
        ],
    );
    let answer = warpwave(&["run", "saxpy", "--gpu", "tiny", "--vcd", "/dev/null/x.vcd"]);
    assert_fails(&answer, 2, &["cannot write /dev/null/x."]);
}

#[test]
fn faulty_scenario_is_refused_with_key_and_remedy() {
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
    assert_fails(
        &answer,
        2,
        &["s: assert: `cycles` is no metric of the profiler; write that = \"cycles < 1000\" instead"],
    );
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
fn integer_for_a_float_parameter_is_refused() {
    let ptx = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .f32 factor, .param .b32 bits) { ret; }\n";
    let run = |args: &str| {
        let text = format!("ptx = \"k.ptx\"\ngpu = \"tiny\"\nlaunch = [{{ grid = 1, block = 32, args = {args} }}]\n");
        let (_folder, path) = scenario(&text, &[("k.ptx", ptx.as_bytes())]);
        warpwave(&["run", path.to_str().unwrap()])
    };
    let says = "argument 0 of kernel `k` is a scalar i32, but its parameter `factor` is a float; give a float, such as { f32 = 2.0 }";
    assert_fails(&run("[{ i32 = 2 }, { i32 = 2 }]"), 2, &[says]);
    // A parameter of bits takes both.
    for bits in ["i32 = 2", "f32 = 2.0"] {
        assert_eq!(run(&format!("[{{ f32 = 2.0 }}, {{ {bits} }}]")).code, 0, "{bits}");
    }
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

#[cfg(unix)]
#[test]
fn endless_text_file_is_refused_with_the_limit() {
    let says = "/dev/zero: larger than 64 MiB, the limit of a text";
    assert_fails(&warpwave(&["check", "/dev/zero"]), 2, &[says]);
    let launch = "[[launch]]\ngrid = 1\nblock = 8\nargs = [\"out\"]\n[buffers.out]\ndtype = \"u32\"\nshape = [8]\n";
    let run = |text: &str| run_text(&format!("{text}{launch}"));
    assert_fails(&run("ptx = \"/dev/zero\"\n"), 2, &["s.toml: ptx: cannot read", says]);
    let npy = run("ptx = \"k.ptx\"\n[buffers.x]\ndtype = \"u32\"\nshape = [8]\ninit = { npy = \"/dev/zero\" }\n");
    assert_fails(&npy, 2, &["s.toml: buffers.x.init: /dev/zero is not an npy array"]);

    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("endless.toml");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    let link = link.to_str().unwrap();
    let says = "endless.toml: cannot read it: larger than 64 MiB";
    assert_fails(&warpwave(&["run", link]), 2, &[says]);
    let says = "endless.toml`: larger than 64 MiB";
    assert_fails(
        &warpwave(&["run", "saxpy", "--gpu", link]),
        2,
        &["cannot read preset", says],
    );
    assert_fails(&warpwave(&["gpus", link]), 2, &["cannot read preset", says]);
    assert_fails(
        &warpwave(&["bench", "chase", "--gpu", link]),
        2,
        &["cannot read preset", says],
    );
}

#[cfg(unix)]
#[test]
fn pipe_is_read_to_its_end_and_an_oversized_sparse_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, FILL).unwrap()
    });
    let answer = warpwave(&["check", pipe.to_str().unwrap()]);
    writer.join().unwrap();
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));

    let answer = warpwave_in(folder.path(), &["run", "saxpy", "--gpu", "pipe"]);
    let says = ["no preset `pipe`, and this is no regular file; a preset file is named by its path, ending in .toml"];
    assert_fails(&answer, 2, &says);

    let huge = folder.path().join("huge.ptx");
    std::fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    let says = ["cannot read", "huge.ptx: larger than 64 MiB, the limit of a text"];
    assert_fails(&warpwave(&["check", huge.to_str().unwrap()]), 2, &says);
}

#[test]
fn data_larger_than_the_gpu_memory_are_refused_before_they_are_generated() {
    let text = |tables: &str| {
        run_text(&format!(
            "ptx = \"k.ptx\"\n{tables}[[launch]]\ngrid = 1\nblock = 8\nargs = [\"out\"]\n"
        ))
    };
    let table = |name: &str, shape: &str| {
        let rest = "init = { fill = 1 }\nexpect = { fill = 1 }";
        format!("[{name}]\ndtype = \"u32\"\nshape = {shape}\n{rest}\n")
    };
    // The GPU `tiny` has 256 MiB.
    let limit = "tiny has 268435456 bytes of memory; take smaller shapes or another --gpu";
    let one = text(&table("buffers.out", "[12_000_000_000]"));
    assert_fails(&one, 2, &["s.toml: buffers.out.shape: has 48000000000 bytes", limit]);
    let sum = text(
        &[
            table("buffers.a", "[40_000_000]"),
            table("buffers.out", "[4, 10_000_000]"),
        ]
        .concat(),
    );
    let says = "s.toml: buffers.out.shape: has 160000000 bytes, 320000000 with all data before it, but ";
    assert_fails(&sum, 2, &[says, limit]);
    let variable = text(&[table("buffers.out", "[8]"), table("globals.v", "[1_000_000_000]")].concat());
    assert_fails(&variable, 2, &["s.toml: globals.v.shape: has 4000000000 bytes", limit]);
    for shape in ["[4294967296, 4294967296, 4]", "[9223372036854775807]", "[0]", "[]"] {
        let says = "s.toml: buffers.out.shape: a shape is a list of sizes above 0, in all at most 64 GiB, not [";
        assert_fails(&text(&table("buffers.out", shape)), 2, &[says]);
    }
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
fn text_that_is_not_ptx_is_refused_with_all_findings() {
    let says = [
        "syntax: the program is not valid PTX: 3 errors",
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
        "`multimem.ld_reduce.global.add.f32`",
        "unsupported.ptx:15:",
        "unsupported.ptx:16:",
    ];
    assert_fails(&run_error("unsupported"), 2, &says);
}

#[test]
fn launch_that_does_not_fit_an_sm_is_refused_with_resource_need_and_limit() {
    assert_fails(
        &run_error("too_many_threads"),
        2,
        &["launch[0]: threads of a block", "2048", "the limit is 1024"],
    );
    let says = ["kernel `fill` cannot be launched on tiny: shared memory: a block needs 1048576 bytes, the limit is "];
    assert_fails(&run_error("too_much_shared"), 2, &says);
}

#[test]
fn preset_value_out_of_range_is_refused_with_key_and_range() {
    let launch = "[[launch]]\ngrid = 1\nblock = 8\nargs = [\"out\"]\n[buffers.out]\ndtype = \"u32\"\nshape = [8]\n";
    let (_folder, path) = scenario(&format!("ptx = \"k.ptx\"\n{launch}"), &[("k.ptx", FILL.as_bytes())]);
    let run = |set: &str| warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny", "--set", set]);
    for (set, says) in [
        (
            "sm.l1.hit_latency=4",
            "`sm.l1.hit_latency` is 4: it must be at least 8, ",
        ),
        (
            "sm.l1.hit_latency=7",
            "`sm.l1.hit_latency` is 7: it must be at least 8, ",
        ),
        ("sm.subcores=8", "`sm.subcores` is 8: it must be at most 6, "),
        (
            "clocks.core_khz=1",
            "it must be at most 1000, a thousand times `clocks.core_khz`",
        ),
        ("sm.subcores=-1", "`sm.subcores` cannot have this value: "),
        ("sm.subcores=2.5", "`sm.subcores` cannot have this value: "),
        ("sm.subcores=many", "`sm.subcores` cannot have this value: "),
        (
            "memory_bytes=99999999999999999999",
            "`memory_bytes` cannot have this value: ",
        ),
    ] {
        assert_fails(&run(set), 2, &["preset `tiny` has ", says]);
    }
    assert_eq!(run("sm.l1.hit_latency=8").code, 0);
}

#[test]
fn wrong_usage_exits_with_code_2() {
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
    assert_fails(&answer, 2, &["`9..1` is not a range of cycles"]);
}

#[test]
fn program_newer_than_the_gpu_is_refused_unless_ignore_target_is_set() {
    let kernel = |target: &str, body: &str| {
        format!(
            ".version 8.0\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n.reg .b32 %r<4>; .reg .b64 %d;\n\
             ld.param.u64 %d, [out];\nmov.u32 %r1, 1;\n{body}\nst.global.u32 [%d], %r2;\nret;\n}}\n"
        )
    };
    let text = "ptx = \"k.ptx\"\n[buffers.out]\ndtype = \"u32\"\nshape = [1]\nexpect = { fill = 32 }\n\
                [[launch]]\ngrid = 1\nblock = 32\nargs = [\"out\"]\n";
    let redux = "redux.sync.add.u32 %r2, %r1, 0xffffffff;";
    let cases = [
        (
            kernel("sm_90", "mov.u32 %r2, 32;"),
            "`.target sm_90` needs compute capability 9.0, the GPU has 7.0",
            2,
        ),
        (
            kernel("sm_70", redux),
            "`redux.sync.add.u32` needs compute capability 8.0, the GPU has 7.0",
            8,
        ),
    ];
    for (ptx, message, line) in cases {
        let (_folder, path) = scenario(text, &[("k.ptx", ptx.as_bytes())]);
        let path = path.to_str().unwrap();
        let answer = warpwave(&["run", path, "--gpu", "v100-sxm2"]);
        let place = format!("k.ptx:{line}:1");
        assert_fails(
            &answer,
            2,
            &["too new for v100-sxm2", "--ignore-target", message, &place],
        );
        assert_eq!(
            warpwave(&["run", path, "--gpu", "v100-sxm2", "--ignore-target"]).code,
            0
        );
        assert_eq!(warpwave(&["run", path, "--gpu", "h100-sxm5"]).code, 0);
    }
}

#[test]
fn empty_text_and_text_without_target_are_not_ptx() {
    let text = "ptx = \"k.ptx\"\n[[launch]]\ngrid = 1\nblock = 32\nargs = []\n";
    for (ptx, message) in [
        ("", "the text has no `.version`"),
        (".version 7.8\n", "the text has no `.target`"),
    ] {
        let (folder, path) = scenario(text, &[("k.ptx", ptx.as_bytes())]);
        assert_fails(
            &warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"]),
            2,
            &[message],
        );
        let file = folder.path().join("k.ptx");
        assert_fails(&warpwave(&["check", file.to_str().unwrap()]), 2, &[message]);
    }
}
