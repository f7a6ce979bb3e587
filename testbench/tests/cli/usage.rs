//! The command's own words: completions, man pages, hints, quiet runs and the forms of numbers.

use crate::{assert_fails, run_text, warpwave};

#[test]
fn completions_and_man_pages_name_the_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let answer = warpwave(&["completions", shell]);
        assert!(
            answer.out.contains("max-cycles") && answer.out.contains("occupancy"),
            "{shell}"
        );
    }
    let page = warpwave(&["man"]).out;
    assert!(page.starts_with(".ie") && page.contains(".TH warpwave 1"), "{page}");
    let page = warpwave(&["man", "run"]).out;
    assert!(
        page.contains(".TH warpwave-run 1") && page.contains("maxrregcount"),
        "{page}"
    );
    assert_fails(
        &warpwave(&["man", "rum"]),
        2,
        &["no command is named `rum`; did you mean `run`?"],
    );
}

#[test]
fn misspelt_commands_and_scenarios_as_commands_get_a_hint() {
    let says = ["unrecognized subcommand 'rnu'", "similar subcommand", "'run'"];
    let answer = warpwave(&["rnu", "saxpy"]);
    assert_fails(&answer, 2, &says);
    assert_eq!(answer.err.matches("similar subcommand").count(), 1, "{}", answer.err);
    let says = [
        "unrecognized subcommand 'saxpy'",
        "`saxpy` is a scenario: warpwave run saxpy",
    ];
    assert_fails(&warpwave(&["saxpy"]), 2, &says);
}

#[test]
fn beginning_of_a_gpu_name_is_answered_with_all_such_gpus() {
    let says = "no preset `h100`: did you mean `h100-pcie`, `h100-sxm5`?";
    assert_fails(&warpwave(&["run", "saxpy", "--gpu", "h100"]), 2, &[says]);
}

#[test]
fn quiet_run_prints_errors_alone() {
    let answer = warpwave(&["run", "--quiet", "saxpy", "--gpu", "tiny"]);
    assert_eq!((answer.out.as_str(), answer.err.as_str(), answer.code), ("", "", 0));
    let answer = warpwave(&["run", "-q", "saxpy", "--gpu", "tiny", "--max-cycles", "1e2"]);
    assert_eq!(answer.out, "");
    assert_fails(&answer, 4, &["error: saxpy: launch[0]: the cycle limit is reached"]);
    let answer = warpwave(&["test", "-q", "vector_add", "--gpu", "tiny"]);
    assert_eq!((answer.out.as_str(), answer.code), ("", 0));
}

#[test]
fn number_of_cycles_may_have_an_exponent() {
    let run = |n: &str| warpwave(&["run", "saxpy", "--gpu", "tiny", "--max-cycles", n]);
    for n in ["1e6", "2.5e5", "1_000_000"] {
        assert_eq!(run(n).code, 0, "{n}");
    }
    for n in ["0", "1.5", "1e30", "many"] {
        assert_fails(
            &run(n),
            2,
            &["write a number of cycles from 1 on, such as 1000000 or 1e6"],
        );
    }
}

#[test]
fn cap_on_registers_spills_and_keeps_the_results() {
    let registers = |options: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("r.json");
        let answer = warpwave(
            &[
                &[
                    "run",
                    "sgemm_regblock",
                    "--gpu",
                    "tiny",
                    "--json",
                    json.to_str().unwrap(),
                ],
                options,
            ]
            .concat(),
        );
        assert_eq!(answer.code, 0, "{}", answer.err);
        let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        report["totals"]["metrics"]["launch__registers_per_thread"]
            .as_u64()
            .unwrap()
    };
    assert!(registers(&[]) > 32);
    assert_eq!(registers(&["--maxrregcount", "32"]), 32);
    // The assembler would raise a smaller cap to 16.
    let answer = warpwave(&["run", "saxpy", "--gpu", "tiny", "--maxrregcount", "15"]);
    assert_fails(&answer, 2, &["--maxrregcount", "16..=255"]);
}

#[test]
fn pass_of_the_compiler_is_left_out() {
    let instructions = |options: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("run.json").display().to_string();
        let answer = warpwave(&[&["run", "saxpy", "--gpu", "tiny", "--json", &json], options].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
        let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        report["totals"]["metrics"]["smsp__inst_executed.sum"].as_u64().unwrap()
    };
    // Without it, `mul.wide` and `add.s64` stay two instructions.
    assert!(instructions(&["--no-pass", "addresses"]) > instructions(&[]));
    let answer = warpwave(&["run", "saxpy", "--gpu", "tiny", "--no-pass", "legalize"]);
    assert_fails(&answer, 2, &["legalize", "schedule"]);
}

#[test]
fn value_of_the_wrong_type_is_described_in_plain_words() {
    let text = "ptx = \"k.ptx\"\n[buffers.out]\ndtype = \"u32\"\nshape = [8]\n\
                [[launch]]\ngrid = 1\nblock = 8\nargs = [\"out\"]\n";
    let answer = run_text(&format!("{text}[expect_failure]\nexit = 2000\n"));
    assert_fails(&answer, 2, &["expected a whole number from 0 to 255"]);
    let answer = run_text(&format!("{text}warm = 1\n"));
    assert_fails(&answer, 2, &["expected true or false"]);
    let answer = warpwave(&["run", "saxpy", "--gpu", "tiny", "--set", "sm.lsu.queue_depth=deep"]);
    assert_fails(
        &answer,
        2,
        &["`sm.lsu.queue_depth` cannot have this value", "a whole number from 0"],
    );
}

#[test]
fn negative_count_is_answered_with_the_range() {
    for (args, range) in [
        (
            &["sweep", "saxpy", "--over", "n=1", "--jobs", "-1"][..],
            "-1 is not in 1..=1024",
        ),
        (&["test", "saxpy", "--jobs", "-1"], "-1 is not in 1..=1024"),
        (&["run", "saxpy", "--threads", "-1"], "-1 is not in 1..=256"),
    ] {
        let option = args[args.len() - 2];
        assert_fails(
            &warpwave(args),
            2,
            &[&format!("invalid value '-1' for '{option} <N>': {range}")],
        );
    }
}
