//! How runs end that do not end well.

use crate::{Answer, assert_fails, error_scenario, run_error};

#[test]
fn trap_of_the_program_is_named_by_line_block_thread_and_address() {
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
fn trap_in_inlined_code_is_named_by_its_source_line_and_by_those_of_the_calls() {
    let says = [
        "thread (120, 0, 0)",
        "at instruction ",
        ", ST.B32 [",
        "inlined.ptx:19: st.global.u32 	[%rd2], %r1;",
        "\n  from store.cuh:12:7",
        "\n  inlined at fill.cu:5:5",
        "\n  inlined at fill.cu:9:3",
        "\n  the nearest buffer is `out`",
    ];
    assert_fails(&run_error("inlined"), 3, &says);
}

#[test]
fn program_without_an_end_is_stopped_with_who_waits_for_what() {
    assert_fails(
        &run_error("endless"),
        4,
        &["the limit of cycles is reached", "warp 0", "raise --max-cycles"],
    );
    let says = [
        "deadlock: nothing can happen after cycle",
        "barrier 0 has 1 of 2 warps",
        "reach the same barriers",
    ];
    assert_fails(&run_error("barrier"), 4, &says);
}

#[test]
fn wrong_result_is_reported_with_its_first_element_and_the_failed_assertion() {
    let answer = run_error("wrong_result");
    let says = [
        "expect: out[5] is 5, not 6; 1 of 8 elements differ",
        "assert: smsp__inst_executed.sum is ",
        "not at most 1",
    ];
    assert_fails(&answer, 1, &says);
    assert!(
        answer.out.contains("kernel"),
        "the summary is printed all the same: {}",
        answer.out
    );
}

#[cfg(unix)]
#[test]
fn interrupt_from_the_keyboard_ends_the_run_with_what_is_known() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let vcd = folder.path().join("run.vcd");
    let run = Command::new(env!("CARGO_BIN_EXE_warpwave"))
        .args([
            "run",
            &error_scenario("endless"),
            "--gpu",
            "tiny",
            "--trace-cycles",
            "0..10",
            "--vcd",
        ])
        .arg(&vcd)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The waveform is made just before the run begins.
    while !vcd.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let killed = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let answer = Answer::of(run.wait_with_output().unwrap());
    assert_fails(&answer, 130, &["endless: launch[0]: interrupted in cycle "]);
    assert!(answer.out.starts_with("endless on tiny"), "{}", answer.out);
}
