//! `--fault`: the report of a fault, wrong texts, and a fault that does not act.

use crate::warpwave;

/// Runs saxpy with a fault.
fn run(fault: &str) -> crate::Answer {
    warpwave(&["run", "saxpy", "--gpu", "tiny", "--no-progress", "--fault", fault])
}

#[test]
fn lost_message_ends_the_run_with_its_link_and_number() {
    let answer = run("gpu.l2_slice[0].response:drop@cycle=700");
    assert_eq!(answer.code, 6, "{}", answer.err);
    assert!(
        answer.err.contains("gpu.l2_slice[0].response, cycle "),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("the results are not valid"), "{}", answer.err);
    assert!(answer.out.contains("stopped in launch 0 by a fault"), "{}", answer.out);
}

#[test]
fn delay_gives_the_right_result_and_says_when_it_acted() {
    let answer = run("gpu.l2_slice[0].response:delay@cycle=700,cycles=9");
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(
        answer
            .out
            .contains("gpu.l2_slice[0].response: the fault acted in cycle "),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("all held"), "{}", answer.out);
}

#[test]
fn fault_that_does_not_act_is_an_error() {
    let answer = run("gpu.l2_slice[0].response:drop@cycle=100000000");
    assert_eq!(answer.code, 2, "{}", answer.out);
    assert!(answer.err.contains("did not act"), "{}", answer.err);
}

#[test]
fn wrong_fault_says_what_is_expected() {
    for (fault, says) in [
        (
            "gpu.l2_slice[0].respond:drop",
            "did you mean `gpu.l2_slice[0].response`",
        ),
        ("gpu.l2_slice[0].response", "a fault is LINK:KIND"),
        ("gpu.l2_slice[0].response:melt", "the kinds are delay, stall"),
        ("gpu.l2_slice[0].response:drop@when=3", "write cycle=N"),
    ] {
        let answer = run(fault);
        assert_eq!(answer.code, 2, "{fault}: {}", answer.out);
        assert!(answer.err.contains(says), "{fault}: {}", answer.err);
    }
}

#[test]
fn late_start_of_a_later_warp_is_a_broken_invariant() {
    for cycle in [900, 1700, 2900] {
        let answer = run(&format!(
            "gpu.gpc[0].sm[0].subcore[0].start:delay@cycle={cycle},cycles=62"
        ));
        assert_eq!(answer.code, 6, "{cycle}: {}", answer.out);
        assert!(
            answer.err.contains("is of another generation of its slot"),
            "{}",
            answer.err
        );
        assert!(
            answer.err.contains("gpu.gpc[0].sm[0].subcore[0].dispatch"),
            "{}",
            answer.err
        );
    }
}

#[test]
fn fault_in_the_write_back_after_a_launch_is_reported() {
    let fault = "gpu.l2_slice[0].fetch[0]:duplicate@cycle=2000";
    let answer = warpwave(&[
        "run",
        "cluster_histogram",
        "--gpu",
        "tiny",
        "--no-progress",
        "--fault",
        fault,
    ]);
    assert_eq!(answer.code, 6, "{}", answer.err);
    assert!(answer.err.contains("gpu.l2_slice[0].fetch[0], "), "{}", answer.err);
}
