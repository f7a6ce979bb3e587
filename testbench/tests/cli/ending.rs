//! Runs that fail or stop early: error text, exit code and report.

use crate::dump::Dump;
use crate::{Answer, assert_fails, error_scenario, run_error, scenario, warpwave, warpwave_in};

#[test]
fn trap_is_reported_with_line_block_thread_and_address() {
    let says = [
        "launch[0]: out-of-bounds access: 4 bytes of global memory at 0x",
        "by block (1, 0, 0), thread (100, 0, 0)",
        "out_of_bounds.ptx:18: st.global.u32",
        "the nearest buffer is `out`, 912 bytes at 0x",
    ];
    assert_fails(&run_error("out_of_bounds"), 3, &says);
    let says = [
        "launch[0]: misaligned access: 4 bytes",
        "thread (0, 0, 0)",
        "misaligned.ptx:12",
        "a multiple of 4",
    ];
    assert_fails(&run_error("misaligned"), 3, &says);
    assert_fails(
        &run_error("trap"),
        3,
        &["launch[0]: trap instruction", "thread (7, 0, 0)", "trap.ptx:14: trap;"],
    );
}

#[test]
fn failed_assert_is_reported_with_its_text_file_line_and_function() {
    let says = [
        "launch[0]: assertion failed: `j >= 0 && j < n`",
        "\n  at assert_trap.cu:16, in `void assert_index(const int *, const float *, float *, int)`",
        "\n  by block (0, 0, 0), thread (20, 0, 0)",
    ];
    assert_fails(&run_error("assertion"), 3, &says);
}

#[test]
fn trap_in_inlined_code_has_its_source_line_and_the_lines_of_the_calls() {
    let expected = "\
error: inlined: launch[0]: out-of-bounds access: 4 bytes of global memory at 0x100001e0
  by block (0, 0, 0), thread (120, 0, 0)
  at instruction 4, ST.B32 [R_], R_
  of inlined.ptx:19: st.global.u32 	[%rd2], %r1;
  from store.cuh:12:7
  inlined at fill.cu:5:5
  inlined at fill.cu:9:3
  the nearest buffer is `out`, 480 bytes at 0x10000000: the access is right behind it; check the index, or enlarge the memory
";
    let answer = run_error("inlined");
    // A note with the flight recorder's file comes before the error.
    let error = answer.err.find("error: ").map(|at| unnumbered(&answer.err[at..]));
    assert_eq!((answer.code, error.as_deref()), (3, Some(expected)));
}

/// A call through a pointer that is null, or that is no address of a function. Each has one candidate with its parameters, or none.
#[test]
fn call_through_a_pointer_that_names_no_function_says_so() {
    let function = ".func (.param .b32 r) f (.param .b32 p) { st.param.b32 [r], 7; ret; }\n.global .u64 other = f;\n";
    for (functions, pointer) in [("", "0"), (function, "0"), (function, "5")] {
        let ptx = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n{functions}.global .u64 pointer = {pointer};\n.visible .entry k() {{\n\
             .reg .b32 %r<2>; .reg .b64 %rd<2>;\nld.global.u64 %rd1, [pointer];\n\
             {{ .param .b32 a; .param .b32 b; st.param.b32 [a], 3;\nproto: .callprototype (.param .b32 _) _ (.param .b32 _);\n\
             call (b), %rd1, (a), proto;\nld.param.b32 %r1, [b]; }}\nst.global.u32 [pointer], %r1;\nret; }}"
        );
        let text = "ptx = \"k.ptx\"\n[[launch]]\ngrid = 1\nblock = 1\nargs = []\n";
        let (_folder, path) = scenario(text, &[("k.ptx", ptx.as_bytes())]);
        let answer = warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"]);
        let says = [
            "launch[0]: the pointer of the call names no function\n",
            ": call (b), %rd1, (a), proto;\n  it is null, or not the address of a function",
        ];
        assert_fails(&answer, 3, &says);
        assert!(!answer.err.contains("assert"), "{}", answer.err);
    }
}

/// Runs 8 threads that each load or store at an address of their own: `%a` and `%w` are four times the thread index. `outside` declares
/// module variables, `body` the kernel's own.
fn access(outside: &str, body: &str) -> Answer {
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n{outside}\n.visible .entry k(.param .align 4 .b8 k_table[16]) {{\n\
         .reg .b32 %r<4>, %a; .reg .b64 %rd<4>, %w;\n\
         mov.u32 %a, %tid.x; shl.b32 %a, %a, 2; cvt.u64.u32 %w, %a;\n{body}\nret; }}"
    );
    let bytes = "00".repeat(16);
    let text = format!("ptx = \"k.ptx\"\n[[launch]]\ngrid = 1\nblock = 8\nargs = [{{ bytes = \"{bytes}\" }}]\n");
    let (_folder, path) = scenario(&text, &[("k.ptx", ptx.as_bytes())]);
    warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"])
}

#[test]
fn bad_access_is_reported_with_the_nearest_variable_in_every_space() {
    let shared = ".shared .align 16 .b8 tile[16];";
    let global = ".global .align 4 .b8 box[16];";
    let behind = |name: &str| format!("the nearest variable is `{name}`, 16 bytes at ");
    let behind_box = "the nearest buffer is `box`, 16 bytes at 0x10000000: the access is right behind it".to_owned();
    let cases = [
        (
            ".const .align 4 .b8 table[16] = {1};",
            "mov.u64 %rd1, table; add.u64 %rd1, %rd1, %w; ld.const.u32 %r1, [%rd1]; st.global.u32 [%w], %r1;",
            "out-of-bounds access: 4 bytes of constant memory at 0x10",
            behind("table"),
        ),
        (
            ".const .align 4 .b8 table[16] = {1};",
            "ld.const.u32 %r1, [table+60000]; st.global.u32 [%w], %r1;",
            "out-of-bounds access: 4 bytes of constant memory at 0xea60",
            format!("{}0x0: the access is 59984 bytes behind it", behind("table")),
        ),
        (
            ".const .align 4 .b8 table[16] = {1};",
            "ld.const.u32 %r1, [table-4]; st.global.u32 [%w], %r1;",
            "out-of-bounds access: 4 bytes of constant memory at 0xfffffffc",
            format!("{}0x0: the access is 4 bytes before it", behind("table")),
        ),
        (
            ".const .align 8 .b8 table[16] = {1};",
            "ld.const.v2.u32 {%r1, %r2}, [table+4]; st.global.u32 [%w], %r1;",
            "misaligned access: 8 bytes of constant memory at 0x4",
            format!(
                "{}0x0: the access is 4 bytes from its start; the address must be a multiple of 8",
                behind("table")
            ),
        ),
        (
            shared,
            "st.shared.u32 [tile+4], %a; mov.u32 %r1, tile; add.u32 %r1, %r1, %a; st.shared.u32 [%r1], %a;",
            "out-of-bounds access: 4 bytes of shared memory at 0x10",
            behind("tile"),
        ),
        (
            shared,
            "mov.u32 %r1, tile; add.u32 %r1, %r1, %a; ld.shared.v2.u32 {%r1, %r2}, [%r1]; st.shared.u32 [tile], %r2;",
            "misaligned access: 8 bytes of shared memory at 0x4",
            format!(
                "{}0x0: the access is 4 bytes from its start; the address must be a multiple of 8",
                behind("tile")
            ),
        ),
        (
            "",
            ".local .align 4 .b8 own[16]; mov.u64 %rd1, own; add.u64 %rd1, %rd1, %w; st.local.u32 [%rd1+8], %a;",
            "out-of-bounds access: 4 bytes of local memory at 0x10",
            behind("own"),
        ),
        (
            "",
            "mov.b64 %rd1, k_table; add.u64 %rd1, %rd1, %w; ld.param.u32 %r1, [%rd1]; st.global.u32 [%w], %r1;",
            "out-of-bounds access: 4 bytes of parameter memory at 0x170",
            behind("k_table"),
        ),
        (
            global,
            "mov.u64 %rd1, box; add.u64 %rd1, %rd1, %w; st.global.u32 [%rd1], %a;",
            "out-of-bounds access: 4 bytes of global memory at 0x10000010",
            behind_box.clone(),
        ),
        (
            global,
            "mov.u64 %rd1, box; add.u64 %rd1, %rd1, %w; atom.global.add.u32 %r1, [%rd1], %a; st.global.u32 [%w], %r1;",
            "out-of-bounds access: 4 bytes of global memory at 0x10000010",
            behind_box,
        ),
        (
            shared,
            "cvta.shared.u64 %rd1, tile; add.u64 %rd1, %rd1, %w; st.u32 [%rd1], %a;",
            "out-of-bounds access: 4 bytes of shared memory at 0x10",
            behind("tile"),
        ),
        (
            ".const .align 8 .b8 table[16] = {1};",
            "mov.u64 %rd1, table; add.u64 %rd1, %rd1, %w; ld.const.v2.u32 {%r1, %r2}, [%rd1]; st.global.u32 [%w], %r1;",
            "misaligned access: 8 bytes of constant memory at 0x4",
            format!("{}0x0: the access is 4 bytes from its start", behind("table")),
        ),
        (
            "",
            ".local .align 8 .b8 own[16]; mov.u64 %rd1, own; add.u64 %rd1, %rd1, %w; st.local.u64 [%rd1], %w;",
            "misaligned access: 8 bytes of local memory at 0x4",
            format!("{}0x0: the access is 4 bytes from its start", behind("own")),
        ),
        (
            global,
            "mov.u64 %rd1, box; add.u64 %rd1, %rd1, %w; st.global.u64 [%rd1], %w;",
            "misaligned access: 8 bytes of global memory at 0x10000004",
            "the nearest buffer is `box`, 16 bytes at 0x10000000: the access is 4 bytes from its start".to_owned(),
        ),
    ];
    for (outside, body, fault, near) in cases {
        assert_fails(
            &access(outside, body),
            3,
            &[fault, "by block (0, 0, 0)", "k.ptx:", &near],
        );
    }
    let copy =
        "mov.u64 %rd1, box; mov.u32 %r1, tile; cp.async.ca.shared.global [%r1+16], [%rd1], 4; cp.async.wait_all;";
    let answer = access(&format!("{global}\n{shared}"), copy);
    let says = [
        "out-of-bounds access: 4 bytes of shared memory at 0x10",
        "thread (0, 0, 0)",
        "`tile`, 16 bytes at 0x0: the access is right behind it",
    ];
    assert_fails(&answer, 3, &says);
}

#[test]
fn tensor_map_in_local_memory_is_refused_with_a_remedy() {
    let root = env!("CARGO_MANIFEST_DIR");
    let ptx = std::fs::read(format!("{root}/corpus/ptx/clang19-sm_90/tma_bulk.ptx")).unwrap();
    let text = "ptx = \"k.ptx\"\n[buffers.matrix]\ndtype = \"f32\"\nshape = [100, 72]\ninit = \"zeros\"\n\
                [buffers.out]\ndtype = \"f32\"\nshape = [32, 32]\ninit = \"zeros\"\n\
                [[launch]]\nentry = \"tma_tensor2d\"\ngrid = 1\nblock = 128\n\
                args = [{ tensor_map = { buffer = \"matrix\", tile = [32, 32] } }, \"out\", { i32 = 2 }, { i32 = 3 }]\n";
    let (_folder, path) = scenario(text, &[("k.ptx", &ptx)]);
    let answer = warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"]);
    let says = [
        "out-of-bounds access: 128 bytes of tensor map memory",
        "thread (0, 0, 0)",
        "cp.async.bulk.tensor.2d",
        "takes its tensor map from a kernel parameter",
        "pass the map as a parameter, not in local memory",
    ];
    assert_fails(&answer, 3, &says);
}

#[test]
fn race_fails_a_run_with_check_and_passes_without_it() {
    let plain = run_error("race");
    assert_eq!((plain.code, plain.err.as_str()), (0, ""));
    let checked = |checks| warpwave(&["run", &error_scenario("race"), "--gpu", "tiny", "--check", checks]);
    let races = "\
error: race: 2 pairs of instructions race in shared memory
race: launch[0]: race for the word at 0x4 of shared memory (`tile` + 4), block (0, 0, 0) of `turn`
  written by thread (1, 0, 0) of warp 0 in cycle _ at ST.SHARED.B32 [R_], R_
    of race.ptx:19: st.shared.u32 	[%r3], %r1;
    from race.cu:7:5
  read by thread (0, 0, 0) of warp 0 in cycle _ at LD.SHARED.B32 R_, [R_]
    of race.ptx:23: ld.shared.u32 	%r6, [%r5];
    from race.cu:8:24
  63 cases in all, without an order: put a barrier between the accesses (bar.sync; bar.warp.sync within a warp)
race: launch[0]: race for the word at 0x80 of shared memory (`tile` + 128), block (0, 0, 0) of `turn`
  read by thread (31, 0, 0) of warp 0 in cycle _ at LD.SHARED.B32 R_, [R_]
    of race.ptx:23: ld.shared.u32 	%r6, [%r5];
    from race.cu:8:24
  written by thread (32, 0, 0) of warp 1 in cycle _ at ST.SHARED.B32 [R_], R_
    of race.ptx:19: st.shared.u32 	[%r3], %r1;
    from race.cu:7:5
  1 case in all, without an order: put a barrier between the accesses (bar.sync; bar.warp.sync within a warp)
";
    let answer = checked("races");
    assert_eq!((answer.code, unnumbered(&uncycled(&answer.err)).as_str()), (1, races));
    let unwritten = "\
warning: race: launch[0]: the word at 0x80 of shared memory (`tile` + 128), block (0, 0, 0), is read before all of it is written
  read by thread (31, 0, 0) of warp 0 at LD.SHARED.B32 R_, [R_]
    of race.ptx:23: ld.shared.u32 	%r6, [%r5];
    from race.cu:8:24
  1 case in all; on a real GPU its value is undefined
";
    let answer = checked("uninit");
    assert_eq!((answer.code, unnumbered(&answer.err).as_str()), (0, unwritten));
    assert_eq!(
        unnumbered(&uncycled(&checked("races,uninit").err)),
        format!("{unwritten}{races}")
    );
    let answer = warpwave(&["run", "transpose_tiled", "--gpu", "tiny", "--check", "races,uninit"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("\n--check found nothing\n"), "{}", answer.out);
}

#[test]
fn race_in_global_memory_names_both_threads_the_buffer_and_the_missing_fence() {
    assert_eq!(run_error("lost_fence").code, 0);
    let run = |options: &[&str]| {
        let path = error_scenario("lost_fence");
        warpwave(&[&["run", &path, "--gpu", "tiny", "--check", "races"][..], options].concat())
    };
    let race = "\
error: lost_fence: 1 pair of instructions races in global memory
lost_fence: launch[0]: race for the word at 0x10000200 of global memory (`part`) in `sum`
  written by thread (0, 0, 0) of warp 0, lane 0, of block (0, 0, 0) in cycle _ at ST.B32 [R_], R_
    of lost_fence.ptx:20: st.global.u32 	[%rd4], %r3;
  read by thread (0, 0, 0) of warp 0, lane 0, of block (3, 0, 0) in cycle _ at LD.B32 R_, [R_]
    of lost_fence.ptx:31: ld.global.u32 	%r7, [%rd5];
  3 cases in all, without an order: the first thread writes a flag without a release; use st.release.gpu, or fence.acq_rel.gpu \
(__threadfence) before the write of the flag
";
    let answer = run(&[]);
    assert_eq!((answer.code, unnumbered(&uncycled(&answer.err)).as_str()), (1, race));
    let limited = run(&["--check-words", "1"]);
    let says = "accesses of global memory are not checked for races: the limit of words is reached";
    assert!(limited.code == 1 && limited.err.contains(says), "{}", limited.err);
    assert!(
        limited.err.contains("set a higher limit with --check-words"),
        "{}",
        limited.err
    );
}

#[test]
fn limit_of_checked_words_must_be_a_positive_number_and_needs_a_check() {
    let run = |options: &[&str]| warpwave(&[&["run", "saxpy", "--gpu", "tiny"][..], options].concat());
    for wrong in ["0", "-1", "many", "1.5", "99999999999999999999"] {
        let answer = run(&["--check", "races", "--check-words", wrong]);
        assert_fails(&answer, 2, &[wrong, "--check-words"]);
    }
    let answer = run(&["--check-words", "100"]);
    assert_fails(&answer, 2, &["--check"]);
}

#[test]
fn missing_fence_shows_with_check_weak_alone() {
    let run = |settings: &[&str]| {
        let path = error_scenario("no_fence");
        warpwave(&[&["run", &path, "--gpu", "tiny"][..], settings].concat())
    };
    assert_eq!(run(&[]).code, 0);
    let answer = run(&["--set", "check.weak=2000"]);
    assert_fails(&answer, 1, &["out[", "is 0, not 42"]);
    let other = run(&["--set", "check.weak=2000", "--threads", "2"]);
    assert_eq!((other.code, other.err), (answer.code, answer.err));
}

/// Removes cycles from a text: the test does not depend on timing.
fn uncycled(text: &str) -> String {
    let mut parts = text.split("in cycle ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        assert!(rest.len() < part.len(), "a number of a cycle in {text}");
        format!("{out}in cycle _{rest}")
    })
}

/// Removes register numbers from a text: the test does not depend on register allocation.
fn unnumbered(text: &str) -> String {
    let mut parts = text.split('R');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        match part.trim_start_matches(|c: char| c.is_ascii_digit()) {
            rest if rest.len() < part.len() => format!("{out}R_{rest}"),
            _ => format!("{out}R{part}"),
        }
    })
}

#[test]
fn endless_program_is_stopped_with_the_waits_of_its_components() {
    assert_fails(
        &run_error("endless"),
        4,
        &["the cycle limit is reached", "warp 0", "raise --max-cycles"],
    );
    let says = [
        "deadlock: no component can make progress after cycle",
        "barrier 0 has 1 of 2 warps",
        "reaches the same barriers",
    ];
    assert_fails(&run_error("barrier"), 4, &says);
}

#[test]
fn wrong_result_is_reported_with_its_first_element_and_failed_assertion() {
    let answer = run_error("wrong_result");
    let says = [
        "expect: out[5] is 5, not 6; 1 of 8 elements differ",
        "assert: smsp__inst_executed.sum is ",
        "not at most 1",
    ];
    assert_fails(&answer, 1, &says);
    assert!(
        answer.out.contains("kernel"),
        "the summary is printed too: {}",
        answer.out
    );
}

/// Runs one of the failing programs with `--json`. Returns the answer and the report.
fn reported(name: &str, options: &[&str]) -> (Answer, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", &error_scenario(name), "--gpu", "tiny", "--json", "run.json"];
    let answer = warpwave_in(folder.path(), &[&run[..], options].concat());
    let text = std::fs::read(folder.path().join("run.json")).unwrap();
    (answer, serde_json::from_slice(&text).unwrap())
}

/// Asserts that the report of a stopped run has the reason, the launch and its counters.
fn assert_stopped(report: &serde_json::Value, why: &str) {
    assert_eq!(report["stopped"], why);
    assert_eq!(report["launches"].as_array().unwrap().len(), 1);
    let launch = &report["launches"][0];
    assert_eq!(launch["stopped"], why);
    let cycles = launch["cycles"].as_u64().unwrap();
    assert!(cycles > 0, "{launch}");
    assert_eq!(report["totals"]["cycles"], cycles);
    for metrics in [&launch["metrics"], &report["totals"]["metrics"]] {
        assert_eq!(metrics["gpc__cycles_elapsed.max"], cycles);
        assert!(metrics["smsp__inst_executed.sum"].as_u64().unwrap() > 0, "{metrics}");
    }
}

#[test]
fn csv_has_the_profilers_columns_and_the_reason_of_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.csv");
    let lines = |scenario: &str, options: &[&str]| {
        let file = file.to_str().unwrap();
        warpwave_in(
            folder.path(),
            &[&["run", scenario, "--gpu", "tiny", "--csv", file], options].concat(),
        );
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(file).unwrap();
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), 3);
        lines
    };
    let [names, units, values] = &lines("saxpy", &[])[..] else {
        panic!()
    };
    let column = |name: &str| names.iter().position(|found| found == name).unwrap();
    let head: Vec<&str> = names.iter().take(11).collect();
    assert_eq!(
        head,
        [
            "ID",
            "Process ID",
            "Process Name",
            "Host Name",
            "Kernel Name",
            "Context",
            "Stream",
            "Block Size",
            "Grid Size",
            "Device",
            "CC"
        ]
    );
    assert_eq!(&values[column("Kernel Name")], "saxpy");
    assert_eq!(&values[column("Block Size")], "(256, 1, 1)");
    assert_eq!(&values[column("launch__grid_size")], "40");
    assert_eq!(&units[column("dram__bytes_read.sum")], "B");
    assert_eq!(&values[column("sm__icc_request_hit_rate.pct")], "n/a");
    assert_eq!(&values[column("Stopped")], "");
    let lines = lines(&error_scenario("endless"), &["--max-cycles", "20000", "--no-flight"]);
    assert_eq!(&lines[2][column("Stopped")], "limit");
    assert_eq!(&lines[2][column("gpc__cycles_elapsed.max")], "20000");
}

#[test]
fn stopped_run_reports_the_reason_and_its_launch() {
    for (name, code, why, says) in [
        (
            "out_of_bounds",
            3,
            "trap",
            "\nstopped in launch 0 by a trap: its numbers end there\n",
        ),
        (
            "barrier",
            4,
            "deadlock",
            "\nstopped in launch 0 by a deadlock: its numbers end there\n",
        ),
        (
            "endless",
            4,
            "limit",
            "\nstopped in launch 0 by the cycle limit: its numbers end there\n",
        ),
    ] {
        let (answer, report) = reported(name, &["--max-cycles", "20000"]);
        assert_eq!(answer.code, code, "{}", answer.err);
        assert!(answer.out.contains(says), "{}", answer.out);
        assert!(answer.out.contains("state of warps"), "{}", answer.out);
        assert_stopped(&report, why);
        if why == "limit" {
            assert_eq!(report["totals"]["cycles"], 20_000);
        }
        let (_, mut twice) = reported(name, &["--max-cycles", "20000", "--threads", "2"]);
        let mut once = report;
        for report in [&mut once, &mut twice] {
            report.as_object_mut().unwrap().remove("host");
        }
        assert_eq!(once, twice, "{name} on one thread and on two");
    }
    let (answer, report) = reported("wrong_result", &[]);
    assert_eq!(answer.code, 1);
    assert!(!answer.out.contains("stopped"), "{}", answer.out);
    assert_eq!(report["stopped"], serde_json::Value::Null);
    assert!(report.as_object().unwrap().contains_key("stopped"));
    assert_eq!(report["launches"][0].get("stopped"), None);
}

#[test]
fn launch_that_cannot_begin_is_reported_as_refused_without_counters() {
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out) {\n\
               .local .align 4 .b8 own[262144]; .reg .b64 %rd<3>; .reg .b32 %r<2>;\n\
               ld.param.u64 %rd1, [out]; mov.u64 %rd2, own; st.local.u32 [%rd2], 1; ld.local.u32 %r1, [%rd2];\n\
               st.global.u32 [%rd1], %r1; ret; }\n";
    let text = "ptx = \"k.ptx\"\n[buffers.out]\ndtype = \"u32\"\nshape = [1]\n[[launch]]\ngrid = 1\nblock = 1\nargs = [\"out\"]\n";
    let (folder, path) = scenario(text, &[("k.ptx", ptx.as_bytes())]);
    let json = folder.path().join("run.json");
    let answer = warpwave(&[
        "run",
        path.to_str().unwrap(),
        "--gpu",
        "tiny",
        "--json",
        json.to_str().unwrap(),
    ]);
    assert_fails(&answer, 2, &["launch[0]: device memory has no room for "]);
    assert!(answer.out.contains("launch 0 was refused"), "{}", answer.out);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(
        (&report["stopped"], report["launches"].as_array().unwrap().len()),
        (&"refused".into(), 0)
    );
}

/// Runs `saxpy` on the smallest machine with `--sample`, and returns the JSON report too.
fn sampled(cycles: &str, more: &[&str]) -> (Answer, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let run = ["run", "saxpy", "--gpu", "tiny", "--sample", cycles, "--json"];
    let answer = warpwave(&[&run[..], &[json.to_str().unwrap()], more].concat());
    let report = std::fs::read(json).map_or(serde_json::Value::Null, |text| serde_json::from_slice(&text).unwrap());
    (answer, report)
}

#[test]
fn sample_counts_its_cycles_stops_and_is_marked_in_every_output() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (csv, page, vcd) = (at("run.csv"), at("run.html"), at("run.vcd"));
    let (answer, report) = sampled("1e3..2_000", &["--csv", &csv, "--html", &page, "--vcd", &vcd]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    for says in [
        "     1000      1.00 us  sampled\n",
        "\nsample: all numbers count cycles 1000 to 1999\n",
        "\nsaxpy: stopped on purpose before cycle 2000: expectations and assertions are not checked\n",
    ] {
        assert!(answer.out.contains(says), "{says}: {}", answer.out);
    }
    assert_eq!(report["stopped"], "sampled");
    assert_eq!(report["sample"], serde_json::json!({ "first": 1000, "end": 2000 }));
    assert_eq!(report["launches"][0]["stopped"], "sampled");
    assert_eq!(report["totals"]["cycles"], 1000);
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.trim_end().ends_with("\"sampled\""), "{csv}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("all numbers count cycles 1000 to 1999"));
    // The waveform has the same cycles.
    let dump = Dump::read(&std::fs::read_to_string(vcd).unwrap()).by_cycle();
    assert_eq!((dump.start, dump.end), (1000, 2000));
}

#[test]
fn sample_that_ends_after_the_run_counts_the_rest_and_compares_buffers() {
    let (_, whole) = sampled("0..", &[]);
    assert_eq!(
        (&whole["stopped"], &whole["launches"][0]["stopped"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    let end = whole["sample"]["end"].as_u64().unwrap();
    let (answer, rest) = sampled("2000..1e9", &[]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert_eq!(rest["sample"], serde_json::json!({ "first": 2000, "end": end }));
    assert_eq!(
        (&rest["stopped"], &rest["totals"]["cycles"]),
        (&"sampled".into(), &(end - 2000).into())
    );
    assert!(
        answer.out.contains("\nall held (buffers expected: 1, assertions: 0)\n"),
        "{}",
        answer.out
    );
    // An assertion holds for a whole run alone.
    let says = "\nassertions are not checked: the sample leaves out cycles\n";
    let answer = warpwave(&["run", "copy_coalesced", "--gpu", "tiny", "--sample", "1000.."]);
    assert!(
        answer.code == 0 && answer.out.contains(says),
        "{}{}",
        answer.out,
        answer.err
    );
}

#[test]
fn launch_without_a_cycle_in_the_sample_has_no_causes_and_no_metric_is_lost() {
    let text = "ptx = \"k.ptx\"\nbuffers.out = { dtype = \"u32\", shape = [8] }\n\
                [[launch]]\ngrid = 1\nblock = 8\nargs = [\"out\"]\nrepeat = 2\n";
    let (folder, _) = crate::scenario(text, &[("k.ptx", crate::FILL.as_bytes())]);
    let report = |sample: &str| {
        let args = ["run", "s.toml", "--gpu", "tiny", "--sample", sample, "--json", "r.json"];
        let answer = crate::warpwave_in(folder.path(), &args);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
        let text = std::fs::read(folder.path().join("r.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()["launches"][0].clone()
    };
    let whole = report("0..");
    let first = whole["cycles"].as_u64().unwrap();
    // The host copies the buffer before: a launch begins some 100 cycles after the run.
    let silent = report(&format!("{}..", first + 200));
    assert_eq!(
        (
            silent["cycles"].as_u64(),
            silent["diagnosis"]["causes"].as_array().map(Vec::len)
        ),
        (Some(0), Some(0))
    );
    assert_eq!(silent["diagnosis"]["headline"], "no cycle of the launch is counted");
    let not_modelled = |launch: &serde_json::Value| {
        let metrics = launch["metrics"].as_object().unwrap().iter();
        let names = metrics
            .filter(|(_, value)| *value == "not modelled")
            .map(|(name, _)| name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(not_modelled(&silent), not_modelled(&whole));
}

#[test]
fn sample_is_refused_if_it_is_empty_or_begins_after_the_run() {
    for cycles in ["2000..1000", "5..5", "1000", "a..b", "1.5..2"] {
        assert_fails(&sampled(cycles, &[]).0, 2, &["invalid value", "for '--sample <A..B>'"]);
    }
    let says = ["saxpy: --sample begins in cycle 1000000, but the last launch ended in cycle "];
    assert_fails(&sampled("1e6..2e6", &[]).0, 2, &says);
}

#[test]
fn run_that_fails_before_its_sample_ends_fails_as_without_it() {
    for cycles in ["0..1e6", "1e5..1e6"] {
        let answer = warpwave(&[
            "run",
            &error_scenario("trap"),
            "--gpu",
            "tiny",
            "--no-flight",
            "--sample",
            cycles,
        ]);
        assert_fails(&answer, 3, &["launch[0]: trap instruction"]);
    }
    // The flight recorder has the cycles before the trap, which are not in the sample.
    let answer = warpwave(&["run", &error_scenario("trap"), "--gpu", "tiny", "--sample", "1e5..1e6"]);
    assert_fails(
        &answer,
        3,
        &["note: cycles 0..", "before the trap are in trap.flight.vcd"],
    );
}

#[cfg(unix)]
#[test]
fn keyboard_interrupt_stops_the_run_and_keeps_its_reports() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = Command::new(env!("CARGO_BIN_EXE_warpwave"))
        .current_dir(folder.path())
        .args([
            "run",
            &error_scenario("endless"),
            "--gpu",
            "tiny",
            "--trace-cycles",
            "0..10",
            "--set",
            "gigathread.standstill_cycles=0",
        ])
        .args(["--vcd", "run.vcd", "--json", "run.json", "--html", "run.html"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The waveform file is created just before the run begins.
    while !at("run.vcd").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_secs(1));
    let killed = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let answer = Answer::of(run.wait_with_output().unwrap());
    assert_fails(&answer, 130, &["endless: launch[0]: interrupted in cycle "]);
    assert!(answer.out.contains("\nendless on tiny"), "{}", answer.out);
    let says = "\nstopped in launch 0 by an interrupt: its numbers end there\n";
    assert!(answer.out.contains(says), "{}", answer.out);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(at("run.json")).unwrap()).unwrap();
    assert_stopped(&report, "interrupted");
    let (_, cycle) = answer.err.split_once("interrupted in cycle ").unwrap();
    let (cycle, rest) = cycle.split_once(';').unwrap();
    assert!(rest.starts_with(" the summary covers the cycles before it"), "{rest}");
    // The launch begins some cycles after cycle 0, after the latency of the launch command.
    let before = cycle.parse::<u64>().unwrap() - report["totals"]["cycles"].as_u64().unwrap();
    assert!(before < 200, "{before} cycles before the launch");
    let page = std::fs::read_to_string(at("run.html")).unwrap();
    assert!(page.contains("<b>Stopped</b> in launch 0"), "{page}");
}

#[test]
fn invariants_hold_in_runs_with_every_unit_and_change_no_result() {
    let totals = |options: &[&str], scenario: &str, gpu: &str| {
        let folder = tempfile::tempdir().unwrap();
        let run = ["run", scenario, "--gpu", gpu, "--json", "run.json"];
        let answer = warpwave_in(folder.path(), &[&run[..], options].concat());
        assert_eq!(answer.code, 0, "{scenario} on {gpu}: {}", answer.err);
        let text = std::fs::read_to_string(folder.path().join("run.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["totals"].clone()
    };
    for (scenario, gpu) in [
        ("saxpy", "tiny"),
        ("transpose_tiled", "toy"),
        ("sgemm_tiled", "v100-sxm2"),
        ("tma_bulk_scale", "tiny"),
    ] {
        assert_eq!(
            totals(&["--check", "invariants"], scenario, gpu),
            totals(&[], scenario, gpu)
        );
    }
}

#[test]
fn arrival_beyond_the_pending_count_is_reported_with_the_count_of_the_mbarrier() {
    let errors = format!("{}/tests/errors", env!("CARGO_MANIFEST_DIR"));
    let expected = warpwave(&["run", &format!("{errors}/arrivals.toml")]);
    assert_eq!(expected.code, 0, "{}", expected.err);
    let ptx = std::fs::read(format!("{errors}/arrivals.ptx")).unwrap();
    let text = std::fs::read_to_string(format!("{errors}/arrivals.toml")).unwrap();
    let (text, _) = text.split_once("[expect_failure]").unwrap();
    let (_folder, path) = scenario(text, &[("arrivals.ptx", &ptx)]);
    assert_fails(
        &warpwave(&["run", path.to_str().unwrap()]),
        3,
        &[
            "1 arrival at an mbarrier that waits for 0 of 1: 8 bytes of shared memory at 0x80",
            "by block (0, 0, 0), thread (1, 0, 0)",
            "arrivals.ptx:20: mbarrier.arrive.expect_tx.shared.b64",
            "each phase waits for 1 arrival: check the count of `mbarrier.init`",
        ],
    );
}

#[test]
fn access_to_a_block_that_has_ended_is_reported_with_its_rank_and_what_to_do() {
    // The first five threads do not read. The word of thread 5 is at byte 20.
    let says = [
        "launch[0]: block 1 of the cluster has ended: 4 bytes of shared::cluster memory at 0x14\n",
        "  by block (0, 0, 0), thread (5, 0, 0)\n",
        "LD.CLUSTER.B32",
        "ended_block.ptx:28: ld.shared::cluster.u32",
        "synchronise the cluster before a block leaves: put a cluster barrier",
    ];
    assert_fails(&run_error("ended_block"), 3, &says);
}

#[test]
fn trap_of_an_mbarrier_says_what_to_check() {
    let bytes = "mbarrier.init.shared.b64 [gate], 1;\nmbarrier.expect_tx.relaxed.cta.shared.b64 [gate], 1048576;";
    for (body, says) in [
        (bytes, "check the bytes of `expect_tx` against those of the copies"),
        (
            "mbarrier.arrive.shared.b64 %token, [gate];",
            "no `mbarrier.init` has set its count",
        ),
        (
            ".reg .b32 %n;\nmov.u32 %n, %tid.y;\nmbarrier.init.shared.b64 [gate], %n;",
            "count of an mbarrier outside 1 to 1048575",
        ),
        (
            ".reg .b32 %n;\nmov.u32 %n, %tid.y;\nmbarrier.init.shared.b64 [gate], %n;",
            "pass the number of threads that arrive",
        ),
    ] {
        let ptx = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n.reg .b64 %token;\n\
             .shared .align 8 .b64 gate;\n{body}\nret;\n}}\n"
        );
        let text = "ptx = \"k.ptx\"\ngpu = \"tiny\"\nlaunch = [{ grid = 1, block = 1, args = [] }]\n";
        let (_folder, path) = scenario(text, &[("k.ptx", ptx.as_bytes())]);
        assert_fails(&warpwave(&["run", path.to_str().unwrap()]), 3, &[says]);
    }
}

#[test]
fn trap_of_a_copy_without_a_tensor_map_says_where_maps_are_taken_from() {
    let ptx = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b64 %map;\n.reg .b32 %zero;\n\
               .shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 gate;\nmov.b64 %map, 0;\nmov.b32 %zero, 0;\n\
               cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%map, {%zero, %zero}], [gate];\n\
               ret;\n}\n";
    let text = "ptx = \"k.ptx\"\ngpu = \"tiny\"\nlaunch = [{ grid = 1, block = 1, args = [] }]\n";
    let (_folder, path) = scenario(text, &[("k.ptx", ptx.as_bytes())]);
    let says = [
        "128 bytes of tensor map memory at 0x0",
        "give it the rank of the copy and no interleaved layout",
    ];
    assert_fails(&warpwave(&["run", path.to_str().unwrap()]), 3, &says);
}

#[test]
fn endless_recursion_names_the_function_and_its_stack() {
    // `f` calls itself without a condition. Its stack has 4096 bytes (`STACK_BYTES`).
    let ptx = ".version 8.0\n.target sm_70\n.address_size 64\n.func (.param .b32 r) f(.param .b32 n) {\n.reg .b32 %n, %m;\n\
               ld.param.b32 %n, [n];\nadd.u32 %m, %n, 1;\n{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], %m;\n\
               call.uni (y), f, (x);\nld.param.b32 %m, [y];\n}\nadd.u32 %m, %m, %n;\nst.param.b32 [r], %m;\nret;\n}\n\
               .visible .entry k() {\n.reg .b32 %m;\n.shared .u32 seen;\n{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], 1;\n\
               call.uni (y), f, (x);\nld.param.b32 %m, [y];\n}\nst.shared.u32 [seen], %m;\nret;\n}\n";
    let text = "ptx = \"k.ptx\"\ngpu = \"tiny\"\nlaunch = [{ grid = 1, block = 1 }]\n";
    let (_folder, path) = scenario(text, &[("k.ptx", ptx.as_bytes())]);
    let says = [
        "out-of-bounds access",
        "the kernel has a recursive function (`f`) with a stack of 4096 bytes for each thread, which may be used up",
    ];
    assert_fails(&warpwave(&["run", path.to_str().unwrap()]), 3, &says);
}

#[test]
fn trap_of_a_number_used_as_a_texture_says_to_pass_a_handle() {
    let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 handle) {\n.reg .b64 %handle;\n\
               .reg .b32 %zero;\n.reg .f32 %a<4>;\n.shared .f32 seen;\nld.param.u64 %handle, [handle];\nmov.b32 %zero, 0;\n\
               tex.2d.v4.f32.s32 {%a0, %a1, %a2, %a3}, [%handle, {%zero, %zero}];\nst.shared.f32 [seen], %a0;\nret;\n}\n";
    let text = "ptx = \"k.ptx\"\ngpu = \"tiny\"\nlaunch = [{ grid = 1, block = 1, args = [{ u64 = 1234 }] }]\n";
    let (_folder, path) = scenario(text, &[("k.ptx", ptx.as_bytes())]);
    let says = [
        "no texture has the handle 0x4d2\n",
        "pass a texture as an argument of the launch",
    ];
    assert_fails(&warpwave(&["run", path.to_str().unwrap()]), 3, &says);
}

/// Warp 1 waits until warp 0 has counted to three, and warp 0 counts to sixteen. On the machine warp 0 sleeps between two counts. The
/// reference has no time, so there warp 1 finds sixteen.
const MISSED_COUNT: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b64 %out; .reg .b32 %t, %n, %v; .reg .pred %p;
.shared .b32 seen;
mov.u32 %t, %tid.x;
st.shared.u32 [seen], 0;
bar.sync 0;
setp.ge.u32 %p, %t, 32;
@%p bra WAIT;
mov.u32 %n, 0;
COUNT:
add.u32 %n, %n, 1;
st.volatile.shared.u32 [seen], %n;
nanosleep.u32 1000;
setp.lt.u32 %p, %n, 16;
@%p bra COUNT;
ret;
WAIT:
ld.volatile.shared.u32 %v, [seen];
setp.ne.u32 %p, %v, 3;
@%p bra WAIT;
ld.param.u64 %out, [out];
st.global.u32 [%out], %v;
ret;
}
";

#[test]
fn reference_that_polls_without_an_end_is_ended_by_a_limit() {
    let text = "ptx = \"k.ptx\"\ngpu = \"tiny\"\nlaunch = [{ grid = 1, block = 64, args = [\"out\"] }]\n\
                buffers.out = { dtype = \"u32\", shape = [1], expect = ";
    let run = |expect: &str, options: &[&str]| {
        let text = format!("{text}{expect} }}\n");
        let (_folder, path) = scenario(&text, &[("k.ptx", MISSED_COUNT.as_bytes())]);
        warpwave(&[&["run", path.to_str().unwrap()], options].concat())
    };
    let checked = run("{ fill = 3 }", &["--check", "uninit"]);
    assert_eq!(checked.code, 0, "{}", checked.err);
    assert!(
        checked
            .err
            .contains("launch[0]: --check ends early: the limit of 16777216 warp instructions"),
        "{}",
        checked.err
    );
    assert!(
        checked.err.contains("look for a wait that is missing"),
        "{}",
        checked.err
    );
    assert!(!checked.out.contains("--check found nothing"), "{}", checked.out);
    let compared = run("\"reference\"", &["--max-cycles", "1e5"]);
    assert_eq!(compared.code, 1, "{}", compared.out);
    let says = "the reference model stopped in launch 0: the limit of 800000 warp instructions is reached";
    assert!(compared.err.contains(says), "{}", compared.err);
}

#[test]
fn race_in_a_cluster_names_both_blocks_and_what_is_missing() {
    let run = |name: &str, options: &[&str]| {
        let path = error_scenario(name);
        warpwave(&[&["run", &path, "--gpu", "h100-sxm5", "--no-flight"][..], options].concat())
    };
    for name in ["left_early", "no_proxy_fence"] {
        assert_eq!(run(name, &[]).code, 0, "{name}");
    }
    let answer = run("left_early", &["--check", "races"]);
    let early = "\
error: left_early: 2 pairs of instructions race in shared memory
left_early: launch[0]: race for the word at 0x0 of shared memory (`words`), block (0, 0, 0) of `swap`
  freed by the end of thread (0, 0, 0) of warp 0, lane 0, of block (0, 0, 0) in cycle _ at EXIT
    of left_early.ptx:29: ret;
  read by thread (0, 0, 0) of warp 0, lane 0, of block (1, 0, 0) in cycle _ at LD.CLUSTER.B32 R_, [R_]
    of left_early.ptx:25: ld.shared::cluster.u32 	%r8, [%r7];
  32 cases in all, without an order: a block must not end before the last access to its shared memory; put a cluster barrier \
(barrier.cluster.arrive and barrier.cluster.wait) before its end
";
    let said = unnumbered(&uncycled(&answer.err));
    assert!(answer.code == 1 && said.starts_with(early), "{said}");
    let answer = run("no_proxy_fence", &["--check", "races,uninit"]);
    let unfenced = "\
error: no_proxy_fence: 1 pair of instructions races in shared memory
no_proxy_fence: launch[0]: race for the word at 0x0 of shared memory (`tile`), block (0, 0, 0) of `fill`
  written by thread (0, 0, 0) of warp 0 in cycle _ at ST.SHARED.B32 [R_], R_
    of no_proxy_fence.ptx:18: st.shared.u32 	[%r3], %r1;
  read by thread (0, 0, 0) of warp 0 in cycle _ at UBLKCP.HI RZ, R_, R_, RZ
    of no_proxy_fence.ptx:22: cp.async.bulk.global.shared::cta.bulk_group 	[%rd1], [%r2], 256;
  64 cases in all, without an order: the second access is asynchronous; put fence.proxy.async between the write and the barrier \
before that access
";
    assert_eq!(
        (answer.code, unnumbered(&uncycled(&answer.err)).as_str()),
        (1, unfenced)
    );
}

#[test]
fn races_of_the_copies_of_an_unrolled_loop_are_one_pair() {
    let path = error_scenario("lost_fence");
    let answer = warpwave(&["run", &path, "--check", "races", "--no-flight"]);
    let says = [
        "1 pair of instructions races in global memory",
        "  3 cases in all, without an order",
    ];
    assert_fails(&answer, 1, &says);
}

#[test]
fn assertion_that_fails_on_another_gpu_names_its_own() {
    let answer = warpwave(&["run", "transpose", "--gpu", "tiny", "--no-flight"]);
    let says = [
        "transpose: 3 did not hold",
        "the assertions are for v100-sxm2, and this run is on tiny",
    ];
    assert_fails(&answer, 5, &says);
}
