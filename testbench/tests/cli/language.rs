//! Constants, comparisons, repetitions, host steps and expected failures of scenarios.

use crate::{Answer, FILL, assert_fails, json_at, scenario, warpwave};

/// Runs a scenario that launches `fill`, which writes its index to each element of `out`.
fn run(text: &str, args: &[&str]) -> Answer {
    let (folder, path) = scenario(
        &format!("ptx = \"k.ptx\"\n{text}"),
        &[
            ("k.ptx", FILL.as_bytes()),
            ("t.csv", b"size,instructions\n8,6\n64,12\n".as_slice()),
        ],
    );
    let all = [&["run", path.to_str().unwrap(), "--gpu", "tiny"], args].concat();
    let answer = warpwave(&all);
    drop(folder);
    answer
}

/// One launch of `n` threads, and what follows.
fn filled(rest: &str) -> String {
    format!(
        "[constants]\nn = 8\n[buffers.out]\ndtype = \"u32\"\nshape = [\"n\"]\nexpect = \"i\"\n\
         [[launch]]\nentry = \"fill\"\ngrid = 1\nblock = \"n\"\nargs = [\"out\"]\n{rest}"
    )
}

/// Two launches, `one` of one warp and `two` of two warps.
const TWO: &str = "[buffers.out]\ndtype = \"u32\"\nshape = [64]\nexpect = \"i\"\n\
                   [[launch]]\nname = \"one\"\ngrid = 1\nblock = 32\nargs = [\"out\"]\n\
                   [[launch]]\nname = \"two\"\ngrid = 1\nblock = 64\nargs = [\"out\"]\n";

#[test]
fn constant_is_changed_by_option() {
    let answer = run(&filled(""), &["--const", "n=2 * 24"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("48x1x1"), "{}", answer.out);
    assert_fails(
        &run(&filled(""), &["--const", "m=1"]),
        2,
        &["constants.m: the scenario has no such constant; did you mean `n`?; it has n"],
    );
    assert_fails(
        &run(&filled(""), &["--const", "n"]),
        2,
        &["write name=value, such as n=4096"],
    );
}

#[test]
fn comparison_of_launches_is_listed_with_both_values() {
    let that = "smsp__inst_executed.sum[two] == 2 * smsp__inst_executed.sum[one]";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let answer = run(
        &format!("{TWO}[[assert]]\nthat = \"{that}\"\n[[assert]]\nthat = \"cycles[0] <= cycles\"\n"),
        &["--json", file.to_str().unwrap()],
    );
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let value = |launch: &str, report: &serde_json::Value| {
        let path = ["launches", launch, "metrics", "smsp__inst_executed.sum"];
        json_at(report, &path).as_u64().unwrap()
    };
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let (one, two) = (value("0", &report), value("1", &report));
    assert_eq!(two, 2 * one);
    assert!(
        answer.out.contains(&format!("\nheld    {that}: {two} and {two}\n")),
        "{}",
        answer.out
    );
    assert!(
        answer.out.contains("all held (buffers expected: 1, assertions: 2)"),
        "{}",
        answer.out
    );
    let assert = &report["asserts"][0];
    assert_eq!(
        (assert["that"].as_str(), assert["holds"].as_bool()),
        (Some(that), Some(true))
    );
    assert_eq!(
        (assert["left"].as_f64(), assert["right"].as_f64()),
        (Some(two as f64), Some(two as f64))
    );
    assert_eq!(report["launches"][0]["name"], "one");
}

#[test]
fn failed_comparison_ends_with_its_own_code_and_both_values() {
    let that = "smsp__inst_executed.sum[two] < smsp__inst_executed.sum[one]";
    let answer = run(&format!("{TWO}[[assert]]\nthat = \"{that}\"\n"), &[]);
    let says = format!("s: 1 did not hold\n  assert: {that}: ");
    assert_fails(&answer, 5, &[&says, " < "]);
    assert!(answer.out.contains(&format!("\nfailed  {that}: ")), "{}", answer.out);

    // A wrong result is worse than an assertion that does not hold.
    let both = filled("[[assert]]\nthat = \"cycles < 1\"\n").replace("\"i\"", "\"i + 1\"");
    assert_fails(
        &run(&both, &[]),
        1,
        &["2 did not hold", "expect: out[0] is 0, not 1", "assert: cycles < 1: "],
    );
}

#[test]
fn equation_holds_within_its_tolerance() {
    let with = |that: &str, within: &str| {
        let text = filled(&format!("[[assert]]\nthat = \"{that}\"\nwithin = {within}\n"));
        run(&text, &[]).code
    };
    assert_eq!(with("110 * cycles == 100 * cycles", "\"10 %\""), 0);
    assert_eq!(with("111 * cycles == 100 * cycles", "\"10 %\""), 5);
    assert_eq!(with("cycles + 3 == cycles", "3"), 0);
    assert_eq!(with("cycles + 4 == cycles", "3"), 5);
}

#[test]
fn figure_is_compared_with_a_row_of_a_table() {
    let csv = |row: &str| {
        let that = format!("smsp__inst_executed.sum * 0 + 6 == csv('t.csv', 'instructions', '{row}')");
        run(&filled(&format!("[[assert]]\nthat = \"{that}\"\n")), &[])
    };
    assert_eq!(csv("size=8").code, 0);
    assert_eq!(csv("size=64").code, 5);
    assert_fails(&csv("size=9"), 2, &["0 rows of t.csv meet the conditions; one must"]);
}

#[test]
fn run_is_compared_with_another_run() {
    let text = |that: &str| {
        filled(&format!(
            "[runs.twice]\nconstants = {{ n = 64 }}\n[runs.slow]\nset = {{ \"sm.lsu.queue_depth\" = 1 }}\n\
             [[assert]]\nthat = \"{that}\"\n"
        ))
    };
    let metric = "smsp__inst_executed.sum";
    assert_eq!(run(&text(&format!("2 * {metric} == {metric}(twice)")), &[]).code, 0);
    assert_eq!(
        run(&text(&format!("2 * {metric} == {metric}(twice)[fill]")), &[]).code,
        0
    );
    assert_eq!(run(&text(&format!("{metric} == {metric}(slow)")), &[]).code, 0);
    assert_eq!(run(&text("cycles < cycles(vector_add)"), &[]).code, 0);
    assert_fails(
        &run(&text("cycles < cycles(vectr_add)"), &[]),
        2,
        &["did you mean `vector_add`?"],
    );
}

#[test]
fn comparisons_joined_by_and_are_assertions_each() {
    let that = |text: &str| run(&format!("{}[[assert]]\nthat = \"{text}\"\n", filled("")), &[]);
    let answer = that("cycles > 5 and cycles < 1e9 && 2 < cycles");
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(
        answer.out.contains("all held (buffers expected: 1, assertions: 3)"),
        "{}",
        answer.out
    );
    let answer = that("cycles > 5 and cycles < 6");
    assert_fails(&answer, 5, &["1 did not hold", "cycles > 5 and cycles < 6: ", " < 6"]);
}

#[test]
fn wrong_assertion_is_refused_before_the_run() {
    for (assert, says) in [
        (
            "that = \"cycels < 5\"",
            "assert `cycels < 5`: nothing is named `cycels` here; did you mean `cycles`?",
        ),
        (
            "that = \"cycles[thre] < 5\"",
            "assert[0]: no launch is named `thre`; did you mean `three`?",
        ),
        (
            "that = \"cycles[2] < 5\"",
            "assert[0]: launch 2 does not exist; the scenario has 1, counted from 0",
        ),
        (
            "that = \"cycles[n + 1] < 5\"",
            "assert[0]: the index of a metric is a launch: its name, its kernel or its index",
        ),
        (
            "that = \"cycles\"",
            "assert[0]: compares nothing; write two expressions with <, <=, >, >=, == or != between them",
        ),
        (
            "that = \"n < 9\"",
            "assert[0]: measures nothing; name a metric or `cycles`",
        ),
        (
            "that = \"cycles < 9\"\nwithin = 1",
            "assert[0]: `within` needs ==; put the tolerance into the expression instead",
        ),
        (
            "that = \"cycles < 9 or cycles > 90\"",
            "assert[0]: `or` joins comparisons; write one comparison, or several with `and`",
        ),
        (
            "that = \"cycles > 9 and n\"",
            "assert[0]: compares nothing; write two expressions",
        ),
        (
            "that = \"cycles == cycles\"",
            "assert[0]: compares an expression with itself",
        ),
        (
            "that = \"cycles == 4 * n\"\nwithin = 1e9",
            "assert[0]: a tolerance is from 0 % to below 100 %, or a distance from 0 to below the right side",
        ),
        (
            "metric = \"smsp__inst_executed.sum\"\nmin = 5\nmax = 3",
            "assert[0]: cannot hold: min is above max, or equal is outside them",
        ),
        (
            "metric = \"smsp__inst_executed.sum\"\nmax = 3\nequal = 5",
            "assert[0]: cannot hold: min is above max, or equal is outside them",
        ),
        (
            "that = \"cycles == 9\"\nwithin = \"100 %\"",
            "assert[0]: a tolerance is from 0 % to below 100 %",
        ),
        (
            "that = \"cycles == 9\"\nwithin = \"5\"",
            "invalid value: string \"5\", expected a share of the right side",
        ),
        (
            "that = \"cycles == 9\"\nmax = 3",
            "assert[0]: give either metric with min, max or equal, or that",
        ),
        (
            "min = 3",
            "assert[0]: give either metric with min, max or equal, or that",
        ),
    ] {
        let text = filled("").replace("entry = \"fill\"", "name = \"three\"");
        assert_fails(&run(&format!("{text}[[assert]]\n{assert}\n"), &[]), 2, &[says]);
    }
}

#[test]
fn scenario_sets_numbers_of_its_gpu_and_a_limit() {
    let (_folder, path) = scenario(
        &format!(
            "ptx = \"k.ptx\"\nmax_cycles = \"2 * 20\"\n[gpu]\nname = \"tiny\"\nset = {{ \"topology.sms_per_tpc\" = 1, \"sm.scheduler\" = \"oldest-first\" }}\n{}",
            filled("")
        ),
        &[("k.ptx", FILL.as_bytes())],
    );
    let path = path.to_str().unwrap();
    assert_fails(&warpwave(&["run", path]), 4, &["launch[0]: "]);
    let answer = warpwave(&["run", path, "--max-cycles", "100000"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("s on tiny: 1 SM "), "{}", answer.out);
    let wins = warpwave(&["run", path, "--max-cycles", "100000", "--set", "topology.sms_per_tpc=2"]);
    assert!(wins.out.contains("s on tiny: 2 SMs"), "{}", wins.out);
}

#[test]
fn warm_up_does_not_count() {
    let count = |keys: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        let text = filled("").replace("grid = 1", &format!("grid = 1\n{keys}"));
        let answer = run(&text, &["--json", file.to_str().unwrap()]);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{keys}");
        let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let warm_ups = answer.out.matches("us  warm-up\n").count();
        let launches = report["launches"].as_array().unwrap().len();
        let executed = report["totals"]["metrics"]["smsp__inst_executed.sum"].as_u64().unwrap();
        (launches, warm_ups, executed)
    };
    let (_, _, once) = count("");
    assert_eq!(count("repeat = 3"), (3, 0, 3 * once));
    assert_eq!(count("repeat = 3\nwarm = true"), (3, 2, once));
    let refused = filled("").replace("grid = 1", "grid = 1\nrepeat = 0");
    assert_fails(
        &run(&refused, &[]),
        2,
        &["launch[0].repeat: `0` is 0; give a whole number from 1 to 1000"],
    );
}

/// Launches `fill` on `out` twice. The host changes buffers before each launch.
fn stepped(first: &str, second: &str, expect: &str) -> Answer {
    run(
        &format!(
            "buffers.out = {{ dtype = \"u32\", shape = [8], init = {{ fill = 9 }}, {expect} }}\n\
             buffers.other = {{ dtype = \"u32\", shape = [8], init = {{ fill = 7 }}, expect = \"reference\" }}\n\
             [[launch]]\ngrid = 1\nblock = 4\nargs = [\"out\"]\nbefore = [{first}]\n\
             [[launch]]\ngrid = 1\nblock = 2\nargs = [\"out\"]\nbefore = [{second}]\n"
        ),
        &[],
    )
}

#[test]
fn host_steps_run_before_their_launch() {
    let held = |first: &str, second: &str, expect: &str| {
        let answer = stepped(first, second, expect);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{first} {second} {expect}");
    };
    let values = |list: &str| format!("expect = {{ values = [{list}] }}");
    held("", "", &values("0, 1, 2, 3, 9, 9, 9, 9"));
    held("", "{ reset = \"out\" }", &values("0, 1, 9, 9, 9, 9, 9, 9"));
    held(
        "",
        "{ fill = { buffer = \"out\", value = \"2 ** 31\" } }",
        "expect = \"if(i < 2, i, 2 ** 31)\"",
    );
    held(
        "",
        "{ copy = { from = \"other\", to = \"out\" } }",
        &values("0, 1, 7, 7, 7, 7, 7, 7"),
    );
    held(
        "{ swap = [\"out\", \"other\"] }",
        "{ swap = [\"out\", \"other\"] }",
        &values("0, 1, 9, 9, 9, 9, 9, 9"),
    );
    assert_fails(
        &stepped("{ reset = \"aut\" }", "", "expect = \"i\""),
        2,
        &["launch[0].before: no buffer is named `aut`", "did you mean `out`?"],
    );
}

#[test]
fn expectation_names_a_launch_and_a_range() {
    let expect = |list: &str| {
        stepped(
            "",
            "{ fill = { buffer = \"out\", value = 5 } }",
            &format!("expect = {list}"),
        )
    };
    let both = "[{ values = [0, 1, 2, 3], range = [0, 4], after = 0 }, { fill = 9, range = [4, 8], after = 0 }, \
                { expr = \"i\", range = [0, 2] }, { fill = 5, range = [2, 8] }]";
    let answer = expect(both);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(
        answer.out.contains("all held (buffers expected: 5, assertions: 0)"),
        "{}",
        answer.out
    );
    assert_fails(
        &expect("[{ fill = 9, range = [3, 8], after = 0 }, { fill = 6, range = [6, 8] }]"),
        1,
        &[
            "expect: out[3] is 3, not 9; 1 of 5 elements differ after launch 0",
            "expect: out[6] is 5, not 6; 2 of 2",
        ],
    );
    assert_fails(
        &expect("{ fill = 1, range = [4, 9] }"),
        2,
        &["buffers.out.expect: `9` is 9; give a whole number from 5 to 8"],
    );
    assert_fails(
        &expect("{ fill = 1, after = 2 }"),
        2,
        &["buffers.out.expect: launch 2 does not exist"],
    );
}

#[test]
fn nan_agrees_with_every_number_if_allowed() {
    let text = |nan: &str| {
        format!(
            "buffers.out = {{ dtype = \"u32\", shape = [8], expect = \"i\" }}\n\
             buffers.x = {{ dtype = \"f32\", shape = [2], init = {{ values = [nan, 1] }}, expect = {{ fill = 1{nan} }} }}\n\
             launch = [{{ grid = 1, block = 8, args = [\"out\"] }}]\n"
        )
    };
    assert_eq!(run(&text(", nan = true"), &[]).code, 0);
    assert_fails(
        &run(&text(""), &[]),
        1,
        &["expect: x[0] is NaN, not 1.0; 1 of 2 elements differ"],
    );
}

#[test]
fn reference_gives_the_expected_elements() {
    let text = filled("").replace("\"i\"", "\"reference\"");
    let answer = run(&text, &[]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(
        answer.out.contains("all held (buffers expected: 1, assertions: 0)"),
        "{}",
        answer.out
    );
    let init = text.replace("expect = \"reference\"", "init = \"reference\"");
    assert_fails(
        &run(&init, &[]),
        2,
        &["buffers.out.init: the reference model computes results, not initial elements"],
    );
}

#[test]
fn printed_lines_are_compared_with_the_expected_ones() {
    let printed = |prints: &str| {
        let text = format!(
            "ptx = \"p.ptx\"\nbuffers.x = {{ dtype = \"f32\", shape = [2], init = {{ values = [0.5, 2] }} }}\n\
             [[launch]]\ngrid = 1\nblock = 2\nargs = [\"x\", {{ i32 = 2 }}]\nprints = {prints}\n"
        );
        let (folder, path) = scenario(&text, &[("p.ptx", include_bytes!("../families/hello_printf.ptx"))]);
        let answer = warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny", "--no-flight"]);
        drop(folder);
        answer
    };
    let whole = "\"block 0 thread 0 x=0.500000 even\\nblock 0 thread 1 x=2.000000 odd\"";
    for prints in [whole, "{ contains = \"x=2.0\" }", "{ lines = \"1 + 1\" }"] {
        let answer = printed(prints);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
        assert!(
            answer.out.contains("all held (buffers expected: 1, assertions: 0)"),
            "{}",
            answer.out
        );
    }
    for (prints, says) in [
        (
            &whole.replace("odd", "even")[..],
            "line 2 is `block 0 thread 1 x=2.000000 odd`, not `block 0 thread 1 x=2.000000 even`",
        ),
        ("{ contains = \"x=3\" }", "it lacks `x=3`"),
        ("{ lines = 3 }", "it has 2 lines, not 3"),
    ] {
        let says = format!("expect: the output of launch 0: {says}");
        assert_fails(&printed(prints), 1, &[&says]);
    }
    let other = printed("{ line = 3 }");
    assert_fails(&other, 2, &["a text, { contains = \"a text\" } or { lines = 4 }"]);
}

#[test]
fn expected_failure_is_a_success() {
    let text = |exit: u8, message: &str| {
        let large = filled("").replace("grid = 1", "grid = 1\ndynamic_shared_bytes = \"1 MiB\"");
        format!("{large}[expect_failure]\nexit = {exit}\nmessage = \"{message}\"\n")
    };
    let answer = run(&text(2, "shared memory"), &[]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(
        answer
            .out
            .contains("s: failed as expected, with exit code 2 and `shared memory`"),
        "{}",
        answer.out
    );
    assert_fails(
        &run(&text(3, "shared memory"), &[]),
        1,
        &[
            "s: a failure with exit code 3 and `shared memory` was expected, not exit code 2",
            "shared memory",
        ],
    );
    assert_fails(&run(&text(2, "registers"), &[]), 1, &["was expected, not exit code 2"]);
    assert_fails(
        &run(&filled("[expect_failure]\nexit = 3\n"), &[]),
        1,
        &["s: a failure with exit code 3 was expected, but the run did not fail"],
    );
}

/// Copies the word of each of 8 threads from `x` to `y`.
const COPY: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to) {\n\
    .reg .b32 %t, %v; .reg .b64 %a, %b, %o;\nld.param.u64 %a, [from];\nld.param.u64 %b, [to];\nmov.u32 %t, %tid.x;\n\
    mul.wide.u32 %o, %t, 4;\nadd.s64 %a, %a, %o;\nadd.s64 %b, %b, %o;\nld.global.u32 %v, [%a];\nst.global.u32 [%b], %v;\nret;\n}\n";

#[test]
fn element_of_a_range_has_the_value_of_its_index_in_the_buffer() {
    for source in [
        "iota = { start = 10, step = 3 }",
        "uniform = { low = 0, high = 1000, seed = 5 }",
        "permutation = { seed = 3 }",
    ] {
        let text = format!(
            "ptx = \"k.ptx\"\n[buffers.x]\ndtype = \"u32\"\nshape = [8]\ninit = {{ {source} }}\n\
             [buffers.y]\ndtype = \"u32\"\nshape = [8]\n\
             expect = [{{ {source}, range = [2, 5] }}, {{ {source}, range = [5, 8] }}]\n\
             [[launch]]\ngrid = 1\nblock = 8\nargs = [\"x\", \"y\"]\n"
        );
        let (_folder, path) = scenario(&text, &[("k.ptx", COPY.as_bytes())]);
        let answer = warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"]);
        assert_eq!(answer.code, 0, "{source}: {}{}", answer.out, answer.err);
    }
}

#[test]
fn fill_step_sets_each_field_of_a_buffer_of_structures() {
    // struct { float v; short n[2]; } as two words: 1.0 is 0x3f800000, and two shorts of 1 are 0x00010001.
    let text = "ptx = \"k.ptx\"\n[buffers.x]\nshape = [4]\n\
        fields = [{ name = \"v\", dtype = \"f32\" }, { name = \"n\", dtype = \"i16\", count = 2 }]\n\
        [buffers.y]\ndtype = \"u32\"\nshape = [8]\nexpect = \"if(i % 2 == 0, 0x3f800000, 0x00010001)\"\n\
        [[launch]]\nbefore = [{ fill = { buffer = \"x\", value = VALUE } }]\ngrid = 1\nblock = 8\nargs = [\"x\", \"y\"]\n";
    let run = |value: &str| {
        let (_folder, path) = scenario(&text.replace("VALUE", value), &[("k.ptx", COPY.as_bytes())]);
        warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"])
    };
    let answer = run("1");
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert_fails(&run("1.5"), 2, &["launch[0].before: i16 cannot hold 1.5"]);
}
