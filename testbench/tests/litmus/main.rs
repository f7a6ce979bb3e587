//! Litmus tests of the memory model: threads on different SMs exchange values through flags, fences, acquires and releases.
//!
//! Each test has the outcomes that the PTX memory consistency model forbids (PTX ISA, "Memory Consistency Model").
//! Before each round every thread has loaded every variable, so that its L1 holds the old lines. The final loads are plain: they may hit
//! these lines unless an acquire or a fence has invalidated them. Threads start a round together and wait for a random time each.

mod axioms;
mod barriers;
mod block;
mod cluster;
mod execution;
mod kernel;
mod machine;
mod presets;
mod program;
mod races;
mod random;
mod reader;
mod relation;
mod suite;

use kernel::{Outcome, Round, run, run_with_l1};

/// Fences of GPU and system scope.
const FENCES: [&str; 6] = [
    "membar.gl",
    "membar.sys",
    "fence.acq_rel.gpu",
    "fence.acq_rel.sys",
    "fence.sc.gpu",
    "fence.sc.sys",
];

/// Fences that also order a store before a later load of another variable.
const SC_FENCES: [&str; 4] = ["membar.gl", "membar.sys", "fence.sc.gpu", "fence.sc.sys"];

/// Ways to set the flag `y` after all earlier stores.
fn releases() -> Vec<String> {
    let fenced = FENCES.map(|fence| format!("{fence};\nst.relaxed.gpu.global.u32 [Y], 1;\n"));
    let direct = [
        "membar.gl;\nst.volatile.global.u32 [Y], 1;\n",
        "membar.gl;\natom.global.exch.b32 %t, [Y], 1;\n",
        "st.release.gpu.global.u32 [Y], 1;\n",
        "st.release.sys.global.u32 [Y], 1;\n",
        "red.release.gpu.global.add.u32 [Y], 1;\n",
        "red.release.sys.global.or.b32 [Y], 1;\n",
        "atom.release.gpu.global.exch.b32 %t, [Y], 1;\n",
        "atom.acq_rel.gpu.global.add.u32 %t, [Y], 1;\n",
        "atom.acq_rel.sys.global.cas.b32 %t, [Y], 0, 1;\n",
    ];
    fenced.into_iter().chain(direct.map(str::to_owned)).collect()
}

/// A loop that repeats an access until `%t` is not 0. `n` makes the label unique.
fn spin(access: &str, n: usize) -> String {
    format!("W{n}:\n{access};\nsetp.eq.u32 %p, %t, 0;\n@%p bra W{n};\n")
}

/// Ways to wait for the flag `y` that make earlier stores of its writer visible to later loads.
fn acquires(n: usize) -> Vec<String> {
    let fenced = FENCES.map(|fence| format!("{}{fence};\n", spin("ld.relaxed.gpu.global.u32 %t, [Y]", n)));
    let volatile = format!("{}membar.gl;\n", spin("ld.volatile.global.u32 %t, [Y]", n));
    let direct = [
        "ld.acquire.gpu.global.u32 %t, [Y]",
        "ld.acquire.sys.global.u32 %t, [Y]",
        "ld.acquire.gpu.u32 %t, [Y]",
        "atom.acquire.gpu.global.add.u32 %t, [Y], 0",
        "atom.acquire.sys.global.or.b32 %t, [Y], 0",
        "atom.acq_rel.gpu.global.cas.b32 %t, [Y], 7, 7",
    ];
    let direct = direct.map(|access| spin(access, n));
    fenced.into_iter().chain([volatile]).chain(direct).collect()
}

#[test]
fn message_passing_shows_the_data_after_the_flag() {
    let mut rounds = Vec::new();
    for release in releases() {
        for acquire in 0..acquires(0).len() {
            let acquire = &acquires(rounds.len())[acquire];
            rounds.push(Round {
                name: format!("{release} / {acquire}"),
                threads: vec![
                    format!("st.global.u32 [X], 1;\n{release}"),
                    format!("{acquire}ld.global.u32 %r0, [X];\n"),
                ],
                forbids: |outcome| outcome.loads[1][0] != 1,
            });
        }
    }
    run(&rounds);
}

#[test]
fn message_passing_without_a_fence_hits_the_stale_line() {
    let rounds: Vec<Round> = (0..8)
        .map(|n| Round {
            name: "no fence".to_owned(),
            threads: vec![
                "st.global.u32 [X], 1;\nmembar.gl;\nst.relaxed.gpu.global.u32 [Y], 1;\n".to_owned(),
                format!(
                    "{}ld.global.u32 %r0, [X];\nmembar.cta;\nld.global.u32 %r1, [X];\n",
                    spin("ld.relaxed.gpu.global.u32 %t, [Y]", n)
                ),
            ],
            // The memory model allows this, and a non-coherent L1 gives it. Otherwise the other tests would test nothing.
            forbids: |outcome| outcome.loads[1] != [0, 0],
        })
        .collect();
    run_with_l1(&rounds);
}

#[test]
fn coherence_of_a_plain_load_after_an_acquire_of_the_same_word() {
    let rounds: Vec<Round> = (0..acquires(0).len())
        .map(|n| Round {
            name: acquires(n)[n].clone(),
            threads: vec![
                "st.relaxed.gpu.global.u32 [Y], 1;\n".to_owned(),
                format!("{}ld.global.u32 %r0, [Y];\n", acquires(n)[n]),
            ],
            forbids: |outcome| outcome.loads[1][0] != 1,
        })
        .collect();
    run(&rounds);
}

/// Repeats a round for each fence with several delays. `F` in the text is replaced by the fence.
fn with_fences(fences: &[&str], threads: &[&str], forbids: fn(&Outcome) -> bool) -> Vec<Round> {
    let rounds = fences.iter().flat_map(|fence| [*fence; 8]).enumerate();
    let round = |(n, fence): (usize, &str)| Round {
        name: format!("{fence}, {threads:?}"),
        threads: threads
            .iter()
            .enumerate()
            .map(|(thread, text)| {
                text.replace("F;", &format!("{fence};"))
                    .replace("SPIN", &format!("S{n}T{thread}"))
            })
            .collect(),
        forbids,
    };
    rounds.map(round).collect()
}

#[test]
fn store_buffering_is_forbidden_with_sc_fences() {
    run(&with_fences(
        &SC_FENCES,
        &[
            "st.relaxed.gpu.global.u32 [X], 1;\nF;\nld.global.u32 %r0, [Y];\n",
            "st.relaxed.gpu.global.u32 [Y], 1;\nF;\nld.global.u32 %r0, [X];\n",
        ],
        |outcome| outcome.loads[0][0] == 0 && outcome.loads[1][0] == 0,
    ));
}

#[test]
fn load_buffering_gives_no_out_of_thin_air_value() {
    run(&with_fences(
        &FENCES,
        &[
            "ld.relaxed.gpu.global.u32 %r0, [X];\nF;\nst.relaxed.gpu.global.u32 [Y], 1;\n",
            "ld.relaxed.gpu.global.u32 %r0, [Y];\nF;\nst.relaxed.gpu.global.u32 [X], 1;\n",
        ],
        |outcome| outcome.loads[0][0] == 1 && outcome.loads[1][0] == 1,
    ));
}

#[test]
fn independent_readers_agree_on_the_order_of_two_stores() {
    run(&with_fences(
        &SC_FENCES,
        &[
            "st.relaxed.gpu.global.u32 [X], 1;\n",
            "st.relaxed.gpu.global.u32 [Y], 1;\n",
            "ld.relaxed.gpu.global.u32 %r0, [X];\nF;\nld.global.u32 %r1, [Y];\n",
            "ld.relaxed.gpu.global.u32 %r0, [Y];\nF;\nld.global.u32 %r1, [X];\n",
        ],
        |outcome| outcome.loads[2] == [1, 0] && outcome.loads[3] == [1, 0],
    ));
}

#[test]
fn write_to_read_causality_reaches_the_third_thread() {
    run(&with_fences(
        &FENCES,
        &[
            "st.relaxed.gpu.global.u32 [X], 1;\n",
            "SPIN: ld.relaxed.gpu.global.u32 %t, [X];\nsetp.eq.u32 %p, %t, 0;\n@%p bra SPIN;\nF;\nst.relaxed.gpu.global.u32 [Y], 1;\n",
            "SPIN: ld.relaxed.gpu.global.u32 %t, [Y];\nsetp.eq.u32 %p, %t, 0;\n@%p bra SPIN;\nF;\nld.global.u32 %r0, [X];\n",
        ],
        |outcome| outcome.loads[2][0] != 1,
    ));
}

#[test]
fn store_after_an_observed_store_is_last_in_coherence_order() {
    run(&with_fences(
        &FENCES,
        &[
            "st.relaxed.gpu.global.u32 [X], 2;\nF;\nst.relaxed.gpu.global.u32 [Y], 1;\n",
            "ld.relaxed.gpu.global.u32 %r0, [Y];\nF;\nst.relaxed.gpu.global.u32 [X], 1;\n",
        ],
        |outcome| outcome.loads[1][0] == 1 && outcome.finally[0] == 2,
    ));
}

#[test]
fn two_plus_two_writes_do_not_end_with_both_first_stores() {
    run(&with_fences(
        &SC_FENCES,
        &[
            "st.relaxed.gpu.global.u32 [X], 1;\nF;\nst.relaxed.gpu.global.u32 [Y], 2;\n",
            "st.relaxed.gpu.global.u32 [Y], 1;\nF;\nst.relaxed.gpu.global.u32 [X], 2;\n",
        ],
        |outcome| outcome.finally == [1, 1],
    ));
}
