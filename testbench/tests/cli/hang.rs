//! Programs that hang: each run ends with exit code 4, and says what waits for what, and why it cannot come.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::{Answer, assert_fails, warpwave, warpwave_in};

/// The scenarios of `tests/hangs`, with parts of their error texts in order.
const HANGS: [(&str, &[&str]); 22] = [
    (
        "ended",
        &[
            "deadlock",
            "block (0, 0, 0): barrier 1 has 2 of 4 warps (warps 0 and 1 in line 14); it waits for 2 more, but no warp is left: it waits \
             for warps 2 and 3, which have ended at line 13",
            "ended.ptx:14: bar.sync \t1, 128;",
        ],
    ),
    (
        "cycle",
        &[
            "barrier 1 has 1 of 2 warps (warp 0 in line 14); it waits for 1 of: warp 1, which waits at barrier 2 in line 18",
            "a cycle: barrier 1 needs warp 1, which waits at barrier 2; barrier 2 needs warp 0, which waits at barrier 1",
        ],
    ),
    (
        "count",
        &["barrier 1 has 2 of 3 warps (warps 0 and 1 in line 8); it waits for 1 more, but the block has no other warp"],
    ),
    (
        "elsewhere",
        &[
            "standstill: the warps run, but nothing has changed since cycle",
            "1 warp polls memory at 0x10000004 (value 0) in line 17: block (0, 0, 0) warp 1",
            "the kernel's stores and atomics of global memory are in line 23",
            "of 2 warps, 1 waits at barrier 0 in line 21 and 1 polls in line 17",
            "barrier 0 has 1 of 2 warps (warp 0 in line 21); it waits for warp 1, which polls in line 17",
            "memory at 0x10000004 (`data` + 4): no kernel has written it",
        ],
    ),
    (
        "cluster",
        &[
            "block (1, 0, 0): barrier 3 has 1 of 3 warps (warp 1 in line 17); it waits for 2 of: warp 0, which waits at the cluster \
             barrier in line 20",
            "block (0, 0, 0): the barrier of its cluster waits for warp 1 of block (1, 0, 0), which waits at barrier 3 in line 17",
        ],
    ),
    (
        "mbarrier",
        &[
            "1 warp polls the mbarrier at 0x40 of shared memory in line 22: block (0, 0, 0) warp 0",
            "block (0, 0, 0): mbarrier at 0x40: 32 of 33 arrivals",
            "the kernel's arrivals at mbarriers are in line 20",
        ],
    ),
    (
        "bytes",
        &[
            "mbarrier at 0x100: 1 of 1 arrivals, and 128 bytes have not come",
            "the kernel's arrivals at mbarriers are in lines 19 and 22",
        ],
    ),
    (
        "grid",
        &[
            "4 warps poll memory at 0x10000000 (value 4) in line 18, the first of them block (0, 0, 0) warp 0",
            "of 128 warps, 124 wait at barrier 0 in line 22 and 4 poll in line 18",
            "4 blocks, the first of them (0, 0, 0): barrier 0 has 31 of 32 warps (warps 1 to 31 in line 22); it waits for warp 0",
            "4 of 6 blocks are resident; the 2 others wait for room that these never give",
            "memory at 0x10000000 (`data`): block (",
            "wrote it last, in cycle",
            " by line 16",
        ],
    ),
    (
        "cooperative",
        &[
            "standstill",
            "2 warps poll memory at 0x10000104",
            " in line 27, the first of them block (0, 0, 0) warp 0",
            "memory at 0x10000104 (`workspace of cooperative launches` + 4): block (1, 0, 0) warp 0 wrote it last, in cycle",
            " by line 25",
        ],
    ),
    (
        "lock",
        &[
            "1 warp polls memory at 0x10000008 (value 1) in line 17: block (1, 0, 0) warp 0",
            "memory at 0x10000008 (`data` + 8): block (0, 0, 0) warp 0 wrote it last, in cycle",
            " by line 17",
        ],
    ),
    (
        "lanes",
        &[
            "1 warp polls memory at 0x10000000 (value 1) in line 14: block (0, 0, 0) warp 0",
            "warp 0: lane ",
            " to reconverge with lanes ",
        ],
    ),
    (
        "flag",
        &[
            "1 warp polls memory at 0x10000000 (value 0) in line 14",
            "the kernel does not write global memory",
            "memory at 0x10000000 (`data`): no kernel has written it",
        ],
    ),
    (
        "shared_flag",
        &[
            "1 warp polls shared memory at 0x0 (value 0) in line 19: block (0, 0, 0) warp 0",
            "the kernel's stores and atomics of shared memory are in line 14",
            "of 2 warps, 1 polls in line 19 and 1 has ended at line 17",
        ],
    ),
    (
        "stale",
        &[
            "1 warp polls memory at 0x10000000 (value 0) in line 17: block (1, 0, 0) warp 0",
            "the load in line 17 may read an old copy in the L1: use ld.volatile, ld.relaxed or ld.acquire",
            "memory at 0x10000000 (`data`): block (0, 0, 0) warp 0 wrote it last, in cycle",
            " by line 27",
        ],
    ),
    (
        "itself",
        &[
            "itself.ptx:9: this branch to itself has no exit",
            "standstill",
            "of 1 warp, 1 branches to itself for ever in line 9",
        ],
    ),
    (
        "guard",
        &[
            "guard.ptx:15: this branch to itself does not change its predicate: a thread that takes it never ends",
            "standstill",
            "of 1 warp, 1 branches to itself for ever in line 15",
        ],
    ),
    (
        "remote_flag",
        &[
            "1 warp polls shared memory at 0x0 of the block with rank 0 in the cluster (value 0) in line 21: block \
             (1, 0, 0) warp 0",
            "1 warp polls shared memory at 0x0 of the block with rank 1 in the cluster (value 0) in line 21: block \
             (0, 0, 0) warp 0",
            "the kernel's stores and atomics of shared memory are in line 17",
        ],
    ),
    (
        "sleep",
        &[
            "1 warp polls memory at 0x10000000 in line 15: block (0, 0, 0) warp 0",
            "the kernel does not write global memory",
            "memory at 0x10000000 (`data`): no kernel has written it",
        ],
    ),
    (
        "constant",
        &[
            "1 warp polls constant memory at 0x0 (value 7) in line 20: block (0, 0, 0) warp 0",
            "constant memory does not change during a launch",
        ],
    ),
    (
        "idle",
        &["of 1 warp, 1 repeats the loop in lines 11 to 12, which polls nothing"],
    ),
    (
        "turns",
        &[
            "standstill: the warps run, but nothing has changed since cycle",
            "4 warps poll memory at 0x10000000 (value 0) in line 15, the first of them block (0, 0, 0) warp 0",
            "the kernel's stores and atomics of global memory are in line 19",
            "memory at 0x10000000 (`data`): no kernel has written it",
        ],
    ),
    (
        "asleep",
        &[
            "standstill: the warps run, but nothing has changed since cycle",
            "of 4 warps, 4 repeat the loop in lines 9 to 10, which polls nothing",
        ],
    ),
];

/// The scenarios that run until Ctrl-C, with parts of their error texts in order.
const INTERRUPTED: [(&str, &[&str]); 1] = [(
    "beat",
    &[
        "beat: launch[0]: interrupted in cycle ",
        "1 warp polls memory at 0x10000080 (value 1) in line 17: block (0, 0, 0) warp 1",
        "1 warp polls memory at 0x10000000 (value 0) in line 25: block (0, 0, 0) warp 0",
        "the kernel's stores and atomics of global memory are in lines 23 and 26",
        "memory at 0x10000000 (`data`): no kernel has written it",
        "memory at 0x10000080 (`data` + 128): block (0, 0, 0) warp 0 wrote it last, in cycle ",
        " by line 23",
    ],
)];

fn path(name: &str) -> String {
    format!("{}/tests/hangs/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_hang_says_what_waits_for_what_and_why_it_cannot_come() {
    for (name, says) in HANGS {
        let answer = warpwave(&["run", &path(name), "--quiet", "--no-flight"]);
        assert_fails(&answer, 4, says);
    }
}

/// Starts a scenario of `tests/hangs`, and waits until it has run for some time.
#[cfg(unix)]
fn begin(name: &str, folder: &Path) -> Child {
    let run = Command::new(env!("CARGO_BIN_EXE_warpwave"))
        .current_dir(folder)
        .args([
            "run",
            &path(name),
            "--quiet",
            "--no-flight",
            "--vcd",
            "run.vcd",
            "--trace-cycles",
            "0..10",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The waveform file is created just before the run begins.
    while !folder.join("run.vcd").exists() {
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_secs(1));
    run
}

#[cfg(unix)]
fn interrupt(run: &Child) {
    let killed = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
    assert!(killed.unwrap().success());
}

#[cfg(unix)]
#[test]
fn interrupted_run_says_what_its_warps_poll() {
    for (name, says) in INTERRUPTED {
        let folder = tempfile::tempdir().unwrap();
        let run = begin(name, folder.path());
        interrupt(&run);
        assert_fails(&Answer::of(run.wait_with_output().unwrap()), 130, says);
    }
}

#[cfg(unix)]
#[test]
fn second_interrupt_ends_the_search_for_the_last_writes() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = begin("beat", folder.path());
    interrupt(&run);
    let mut err = BufReader::new(run.stderr.take().unwrap());
    let mut note = String::new();
    err.read_line(&mut note).unwrap();
    assert_eq!(
        note,
        "note: repeats the run for the last writes, at most 5 s; Ctrl-C ends it\n"
    );
    interrupt(&run);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    for says in [
        "1 warp polls memory at 0x10000000 (value 0)",
        "Ctrl-C stopped the repeated run before that cycle: the last writes are not known",
    ] {
        assert!(rest.contains(says), "{rest}");
    }
}

#[test]
fn every_program_that_hangs_is_tested_and_listed() {
    let folder = format!("{}/tests/hangs", env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(format!("{folder}/README.md")).unwrap();
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names
        .filter_map(|name| Some(name.to_str()?.strip_suffix(".toml")?.to_owned()))
        .collect();
    assert_eq!(names.len(), HANGS.len() + INTERRUPTED.len());
    for name in names {
        let mut tested = HANGS.iter().chain(&INTERRUPTED);
        assert!(tested.any(|(tested, _)| *tested == name), "{name}: add its text");
        assert!(readme.contains(&format!("| `{name}` |")), "{name}: describe it");
    }
}

#[test]
fn flight_recorder_keeps_the_sm_that_hangs() {
    let folder = tempfile::tempdir().unwrap();
    // Block 0 ends on SM 0, which is recorded by default. Block 1 hangs on SM 1.
    let answer = warpwave_in(folder.path(), &["run", &path("lock"), "--quiet"]);
    assert_fails(
        &answer,
        4,
        &["of gpu.gpc[0].sm[1] gpu.gigathread before the standstill are in lock.flight.vcd"],
    );
    let waveform = std::fs::read_to_string(folder.path().join("lock.flight.vcd")).unwrap();
    assert!(
        waveform.contains("sm[1]") && !waveform.contains("sm[0]"),
        "{}",
        &waveform[..2000]
    );
    // An option that names scopes wins.
    let answer = warpwave_in(
        folder.path(),
        &["run", &path("lock"), "--quiet", "--trace", "gpu.gigathread"],
    );
    assert_fails(&answer, 4, &["of gpu.gigathread before the standstill"]);
}

#[test]
fn report_of_a_hang_is_the_same_with_two_threads() {
    let err = |options: &[&str]| {
        let scenario = path("grid");
        let args = [&["run", &scenario, "--quiet", "--no-flight"], options].concat();
        warpwave(&args).err
    };
    assert_eq!(err(&[]), err(&["--threads", "2"]));
}

#[test]
fn deadlock_ends_in_the_same_cycle_for_any_watcher_and_thread_count() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = format!("{}/tests/hangs/cycle.toml", env!("CARGO_MANIFEST_DIR"));
    let run = |options: &[&str]| {
        let answer = warpwave_in(folder.path(), &[&["run", &scenario, "--no-progress"], options].concat());
        let error = answer.err.lines().find(|line| line.contains("deadlock: no component"));
        (answer.code, answer.out, error.map(str::to_owned))
    };
    let bare = run(&["--no-flight"]);
    assert_eq!(bare.0, 4);
    for options in [&[][..], &["--no-flight", "--threads", "2"], &["--vcd", "all.vcd"]] {
        assert_eq!(run(options), bare, "{options:?}");
    }
}
