//! The commands that simulate nothing: `list`, `gpus`, `occupancy`, `check`, `explain`.

use std::path::Path;

use crate::{assert_fails, warpwave};

#[test]
fn list_shows_every_built_in_scenario_with_its_claim() {
    let answer = warpwave(&["list"]);
    assert_eq!(answer.code, 0);
    let names: Vec<_> = answer
        .out
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    // After the scenarios come the lessons, in the order of the course.
    assert_eq!(
        names,
        [&warpwave::scenario::builtin::names()[..], &warpwave::lesson::NAMES].concat()
    );
    for line in answer.out.lines() {
        assert!(line.split_whitespace().count() > 3, "says what it is: {line}");
    }
}

#[test]
fn gpus_are_listed_and_one_is_shown_with_all_sources() {
    let answer = warpwave(&["gpus"]);
    assert!(
        answer.code == 0
            && answer
                .out
                .lines()
                .any(|line| line.starts_with("v100-sxm2 ") && line.contains("80 SMs"))
    );
    let answer = warpwave(&["gpus", "v100-sxm2"]);
    assert!(answer.code == 0 && answer.out.contains("clocks.core_khz") && answer.out.contains("assumed"));
}

#[test]
fn occupancy_of_a_block_is_shown_with_its_limiter() {
    // 64 registers x 256 threads: 4 blocks fill the 65536 registers of an SM. That is 32 of 64 warps, or 50 %.
    let answer = warpwave(&[
        "occupancy",
        "--gpu",
        "v100-sxm2",
        "--block",
        "256",
        "--regs",
        "64",
        "--smem",
        "0",
    ]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    for line in [
        "blocks per SM        4",
        "warps per SM        32 of 64",
        "occupancy         50.0 %",
        "limiter         registers",
    ] {
        assert!(answer.out.contains(line), "`{line}` in\n{}", answer.out);
    }
    let answer = warpwave(&["occupancy", "--gpu", "v100-sxm2", "--block", "2048", "--regs", "32"]);
    assert_fails(&answer, 2, &["threads: a block needs 2048, the limit is 1024"]);
}

#[test]
fn occupancy_uses_the_changed_numbers_of_the_gpu() {
    let occupancy = |set: &str| {
        let args = [
            "occupancy",
            "--gpu",
            "v100-sxm2",
            "--block",
            "64",
            "--regs",
            "32",
            "--set",
            set,
        ];
        warpwave(&args)
    };
    // 8 blocks of 2 warps: 16 of 64.
    let answer = occupancy("limits.max_blocks_per_sm=8");
    assert_eq!(answer.code, 0, "{}", answer.err);
    for line in [
        "blocks per SM        8",
        "warps per SM        16 of 64",
        "occupancy         25.0 %",
    ] {
        assert!(answer.out.contains(line), "`{line}` in\n{}", answer.out);
    }
    assert_fails(&occupancy("limits.max_block=8"), 2, &["limits.max_block"]);
}

#[test]
fn check_lists_requirements_of_kernels_or_unsupported_statements() {
    let errors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let check = |name: &str| warpwave(&["check", errors.join(name).to_str().unwrap()]);
    let answer = check("out_of_bounds.ptx");
    assert!(
        answer.code == 0 && answer.out.lines().any(|line| line.starts_with("fill ")),
        "{}",
        answer.out
    );
    let answer = check("unsupported.ptx");
    assert_fails(&answer, 2, &["2 statements are not supported"]);
    assert!(answer.out.contains("`multimem.ld_reduce.global.add.f32`"));
    assert_fails(&check("syntax.ptx"), 2, &["is not valid PTX: 3 errors", "missing `;`"]);
    assert_fails(&check("missing.ptx"), 2, &["cannot read"]);
}

#[test]
fn explain_knows_warp_states_and_preset_keys() {
    let answer = warpwave(&["explain", "long_scoreboard"]);
    for part in [
        "long_scoreboard (state of a warp)",
        "waited for a value from global or local memory",
        "what helps",
        "smsp__warps_issue_stalled_long_scoreboard.sum",
    ] {
        assert!(answer.out.contains(part), "`{part}` in\n{}", answer.out);
    }
    let answer = warpwave(&["explain", "sm.lsu.queue_depth"]);
    for part in ["preset key", "--set sm.lsu.queue_depth=VALUE", "tiny", "h100-sxm5"] {
        assert!(answer.out.contains(part), "`{part}` in\n{}", answer.out);
    }
    // One line of text, the unit, then a line for each preset with value, source and grade.
    let answer = warpwave(&["explain", "sm.l1.size"]);
    for part in [
        "\n\nBytes of the unified array.\n\nunit  bytes\n\n",
        "\nv100-sxm2            131072  ",
        "\nh100-sxm5            262144  ",
        " (",
    ] {
        assert!(answer.out.contains(part), "`{part}` in\n{}", answer.out);
    }
    assert_fails(
        &warpwave(&["explain", "sm.l1.sizes"]),
        2,
        &["no metric, warp state, preset key or word of a report is named `sm.l1.sizes`; did you mean `sm.l1.size`?"],
    );
    assert_fails(
        &warpwave(&["explain", "long_scorebord"]),
        2,
        &[
            "no metric, warp state, preset key or word of a report is named `long_scorebord`; did you mean `long_scoreboard`?",
        ],
    );
}

#[test]
fn explain_knows_every_label_of_a_summary() {
    let summary = warpwave(&["run", "saxpy", "--gpu", "tiny"]).out;
    // A row with a metric: its label, two blanks, the value, and the metric at the end.
    let rows = summary.lines().filter(|line| line.contains("__"));
    let rows: Vec<_> = rows
        .filter_map(|line| Some((line.split_once("  ")?.0, line.split_whitespace().last()?)))
        .collect();
    assert!(rows.len() > 10, "{summary}");
    for (label, metric) in rows {
        let answer = warpwave(&["explain", label]);
        assert!(
            answer.out.starts_with(&format!("{metric}\n")),
            "{label}: {}{}",
            answer.out,
            answer.err
        );
    }
}

#[test]
fn explain_knows_the_words_of_a_report() {
    for (word, says) in [
        ("cta", "cta (latency: a thread block"),
        (
            "waves",
            "waves (blocks of the grid per blocks that the SMs hold at once)",
        ),
        ("l1_hit", "l1_hit (latency: a load whose data were in the L1)"),
        ("occupancy", "resident warps in per cent of the warp slots"),
        ("cycles", "cycles of the core clock"),
        ("tail", "tail (phase: blocks end"),
        ("mshrs", "entries of the L1"),
        ("LONG_SCOREBOARD", "long_scoreboard (state of a warp)"),
        ("IPC", "sm__inst_executed.avg.per_cycle_active"),
        ("registers", "registers of 32 bits of each thread"),
        ("L1 hit rate", "l1tex__t_sector_hit_rate.pct\n"),
        ("issue slots used", "sm__inst_issued.avg.pct_of_peak_sustained_active\n"),
        ("speed of light", "in per cent of the most that the hardware can do"),
        ("p99", "99 % of the requests took at most this number of cycles"),
        ("block", "also called CTA"),
        ("wave", "the blocks that all SMs hold at once"),
        ("MSHR", "an entry of the L1"),
    ] {
        let answer = warpwave(&["explain", word]);
        assert!(
            answer.code == 0 && answer.out.contains(says),
            "{word}: {}{}",
            answer.out,
            answer.err
        );
    }
    let barrier = warpwave(&["explain", "barrier"]).out;
    assert!(
        barrier.contains("barrier (state of a warp)") && barrier.contains("barrier (latency: "),
        "{barrier}"
    );
    assert_fails(&warpwave(&["explain", "wavs"]), 2, &["did you mean `wave`?"]);
    assert_fails(
        &warpwave(&["explain", "sm__throughput.avg"]),
        2,
        &["word of a report is named `sm__throughput.avg`"],
    );
}

#[test]
fn explain_gives_definition_formula_unit_and_component() {
    let answer = warpwave(&["explain", "l1tex__t_sector_hit_rate.pct"]);
    assert_eq!(answer.code, 0);
    for part in [
        "L1 hit rate of all accesses, by sectors.",
        "unit       %",
        "formula    ",
        "component  l1",
    ] {
        assert!(answer.out.contains(part), "`{part}` in\n{}", answer.out);
    }
}
