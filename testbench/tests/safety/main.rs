//! The race detector: findings in small kernels with one fault or none, and no findings in the built-in scenarios.

mod cluster;
mod global;
mod proxy;

use warpwave::bench::{Bench, Options};
use warpwave::lockstep;
use warpwave::lockstep::race_cycles::race_cycles;
use warpwave::reference::{Checks, Findings, Kind};
use warpwave::scenario::{Launch, Scenario, builtin};
use warpwave::watch::pipeline::{Pipeline, Row};
use warpwave_components::preset;
use warpwave_hw::time::Cycle;

const BOTH: Checks = Checks {
    races: true,
    uninit: true,
    max_words: None,
};

fn check(scenario: &Scenario) -> Vec<Findings> {
    check_on("tiny", scenario)
}

fn check_on(gpu: &str, scenario: &Scenario) -> Vec<Findings> {
    let config = preset::load(gpu, &[]).unwrap().config;
    let checked = lockstep::check_memory(scenario, &config, BOTH, 1 << 24);
    let checked = checked.unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
    checked.into_iter().map(|launch| launch.findings).collect()
}

/// A kernel of 64 threads. `%tid` is the thread index, `%mine` is 4 times the index, `%next` is 4 times the next index modulo 64.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 s[1024];\n.global .align 4 .b8 data[256];\n.entry k() {{\n\
         .reg .b32 %r<9>, %tid, %mine, %next; .reg .b64 %rd<4>; .reg .pred %p<4>;\n\
         mov.u32 %tid, %tid.x; shl.b32 %mine, %tid, 2; add.u32 %next, %mine, 4; and.b32 %next, %next, 255;\n\
         mov.u32 %r8, s; add.u32 %mine, %mine, %r8; add.u32 %next, %next, %r8;\n\
         mov.u32 %r1, 0; mov.u32 %r2, 0;\n{body}\nadd.u32 %r2, %r2, %r1; st.shared.u32 [%mine+768], %r2; ret; }}"
    )
}

fn findings(body: &str) -> Findings {
    check(&scenario(body)).remove(0)
}

fn scenario(body: &str) -> Scenario {
    Scenario {
        name: "k".to_owned(),
        ptx_path: "k.ptx".to_owned(),
        ptx: kernel(body),
        buffers: Vec::new(),
        globals: Vec::new(),
        launches: vec![Launch {
            entry: None,
            grid: [1; 3],
            block: [64, 1, 1],
            dynamic_shared_bytes: 0,
            cluster: None,
            args: Vec::new(),
            ..Launch::default()
        }],
        ..Scenario::default()
    }
}

/// The pipeline diagram of a run on the machine, one row per issued instruction.
fn rows(scenario: &Scenario) -> Vec<Row> {
    let mut bench = Bench::new(scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let mut pipeline = Pipeline::new(bench.programs().to_vec(), Cycle::ZERO..Cycle::NEVER, 10_000);
    let options = Options {
        threads: 1,
        max_cycles: None,
    };
    bench.run_with_events(options, &mut [&mut pipeline], &mut |_| true);
    pipeline.finish().rows
}

/// The kinds of each pair of accesses that race.
fn races(body: &str) -> Vec<(Kind, Kind)> {
    let kinds = |race: &warpwave::reference::Race| (race.first.kind, race.second.kind);
    findings(body).races.iter().map(kinds).collect()
}

#[test]
fn reading_the_neighbours_value_races_without_a_barrier() {
    let body = |between: &str| {
        format!("st.shared.u32 [%mine], %tid;\n{between}\nld.shared.u32 %r1, [%next];\nst.shared.u32 [%mine+512], %r1;")
    };
    let found = findings(&body(""));
    let [race, other] = &found.races[..] else {
        panic!("two races, not {found:?}")
    };
    // Thread 0 is the first to read a word of another thread. All threads race except 31: its neighbour has not stored yet.
    assert_eq!((race.address, race.count), (4, 63));
    assert_eq!((race.first.kind, race.first.thread), (Kind::Write, [1, 0, 0]));
    assert_eq!((race.second.kind, race.second.thread), (Kind::Read, [0, 0, 0]));
    assert_eq!(
        (other.first.kind, other.first.thread, other.count),
        (Kind::Read, [31, 0, 0], 1)
    );
    assert_eq!((other.second.kind, other.second.thread), (Kind::Write, [32, 0, 0]));
    assert_eq!(
        found.unwritten.iter().map(|read| read.address).collect::<Vec<_>>(),
        [128]
    );
    assert_eq!(findings(&body("bar.sync 0;")), Findings::default());
}

#[test]
fn race_names_warp_turn_and_cycle_of_both_accesses() {
    // Three turns. The barrier between store and load is missing in the second one.
    let body = "mov.u32 %r3, 0;\nTURN:\n.pragma \"nounroll\";\nadd.u32 %r4, %tid, %r3;\nst.shared.u32 [%mine], %r4;\nsetp.eq.u32 %p1, %r3, 1;\n\
                @%p1 bra OVER;\nbar.sync 0;\nOVER:\nld.shared.u32 %r5, [%next];\nadd.u32 %r1, %r1, %r5;\nbar.sync 0;\n\
                add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 3;\n@%p2 bra TURN;";
    let scenario = scenario(body);
    let config = preset::load("tiny", &[]).unwrap().config;
    let checked = lockstep::check_memory(&scenario, &config, BOTH, 1 << 24).unwrap();
    let races = &checked[0].findings.races;
    // Warp 0 loads what its own lanes and warp 1 store. Warp 1 stores after the load by lane 31, or loads what warp 0 stored.
    assert_eq!(races.len(), 2, "{races:?}");
    let cycles = race_cycles(&scenario, &config, &checked, None).unwrap();
    let (rows, line) = (rows(&scenario), |pc: u32| checked[0].program.code()[pc as usize].line);
    let machine = Bench::new(&scenario, config).unwrap();
    for (race, cycles) in races.iter().zip(&cycles[0]) {
        for (access, cycle) in [race.first, race.second].iter().zip(cycles) {
            assert_eq!((access.nth, access.warp), (2, access.thread[0] / 32), "{race:?}");
            let of_line = |row: &&Row| machine.programs()[0].code()[row.pc as usize].line == line(access.pc);
            let mut issued: Vec<Cycle> = rows
                .iter()
                .filter(|row| row.warp == access.warp)
                .filter(of_line)
                .map(Row::issued)
                .collect();
            issued.sort_unstable();
            assert_eq!(issued.len(), 3, "one issue per turn");
            assert_eq!(*cycle, Some(issued[1]), "{access:?}");
        }
    }
}

/// The scan of Hillis and Steele in one buffer. Each step needs a barrier between its loads and its stores, and one after them.
fn scan(behind_loads: &str, behind_stores: &str) -> String {
    let step = |distance: u32| {
        format!(
            "setp.lt.u32 %p1, %tid, {distance};\n@!%p1 ld.shared.u32 %r2, [%mine-{bytes}];\n{behind_loads}\n\
             @!%p1 add.u32 %r1, %r1, %r2;\n@!%p1 st.shared.u32 [%mine], %r1;\n{behind_stores}\n",
            bytes = 4 * distance
        )
    };
    let steps: String = [1, 2, 4, 8, 16, 32].map(step).concat();
    format!("mov.u32 %r1, 1;\nst.shared.u32 [%mine], %r1;\nbar.sync 0;\n{steps}")
}

#[test]
fn scan_in_place_races_if_a_barrier_is_missing() {
    assert_eq!(races(&scan("bar.sync 0;", "bar.sync 0;")), []);
    let written_while_read = races(&scan("", "bar.sync 0;"));
    assert!(
        written_while_read.contains(&(Kind::Read, Kind::Write)),
        "{written_while_read:?}"
    );
    let read_while_written = races(&scan("bar.sync 0;", ""));
    assert!(
        read_while_written.contains(&(Kind::Write, Kind::Read)),
        "{read_while_written:?}"
    );
}

#[test]
fn only_a_bar_warp_sync_of_both_lanes_orders_them() {
    // Within each warp, lane l takes the value of lane l xor 1.
    let body = |between: &str| {
        format!("xor.b32 %r1, %mine, 4;\nst.shared.u32 [%mine], %tid;\n{between}\nld.shared.u32 %r2, [%r1];")
    };
    assert_eq!(races(&body("bar.warp.sync -1;")), []);
    assert_eq!(races(&body("")), [(Kind::Write, Kind::Read)]);
    assert_eq!(
        races(&body("shfl.sync.bfly.b32 %r3, %tid, 1, 31, -1;")),
        [(Kind::Write, Kind::Read)]
    );
    // Each half of the warp synchronizes by itself. No pair of lanes is in both halves.
    let halves = "setp.lt.u32 %p1, %r7, 16;\n@%p1 bra LOW;\nbar.warp.sync 0xffff0000;\nbra MET;\nLOW:\nbar.warp.sync 0xffff;\nMET:";
    let by_half = |other: u32| {
        let lane = "mov.u32 %r7, %laneid;";
        format!(
            "{lane}\nxor.b32 %r1, %mine, {};\nst.shared.u32 [%mine], %tid;\n{halves}\nld.shared.u32 %r2, [%r1];",
            4 * other
        )
    };
    assert_eq!(races(&by_half(1)), []);
    assert_eq!(races(&by_half(16)), [(Kind::Write, Kind::Read)]);
}

#[test]
fn warp_barrier_does_not_order_two_warps_but_a_named_barrier_does() {
    let across = |between: &str| {
        format!("xor.b32 %r1, %mine, 128;\nst.shared.u32 [%mine], %tid;\n{between}\nld.shared.u32 %r2, [%r1];")
    };
    assert!(races(&across("bar.warp.sync -1;")).contains(&(Kind::Write, Kind::Read)));
    assert_eq!(races(&across("bar.sync 3, 64;")), []);
    // Warp 0 writes, arrives and continues. Warp 1 waits and reads.
    let handed_over = "setp.ge.u32 %p1, %tid, 32;\n@%p1 bra TAKE;\nst.shared.u32 [%mine], %tid;\nbar.arrive 1, 64;\nbra OVER;\n\
                       TAKE:\nbar.sync 1, 64;\nld.shared.u32 %r2, [%mine-128];\nOVER:";
    assert_eq!(findings(handed_over), Findings::default());
    let taken_back = handed_over.replace("bra OVER;", "st.shared.u32 [%mine], %mine;\nbra OVER;");
    assert_eq!(races(&taken_back), [(Kind::Write, Kind::Read)]);
}

#[test]
fn atomics_race_with_plain_accesses_but_not_with_each_other() {
    let count = "atom.shared.add.u32 %r1, [s], 1;";
    let zero = "setp.eq.u32 %p1, %tid, 0;\n@%p1 st.shared.u32 [s], 0;";
    assert_eq!(
        findings(&format!(
            "{zero}\nbar.sync 0;\n{count}\nred.shared.add.u32 [s], 1;\nbar.sync 0;\nld.shared.u32 %r2, [s];"
        )),
        Findings::default()
    );
    assert_eq!(
        races(&format!("{zero}\nst.shared.u32 [s], %tid;\nbar.sync 0;\n{count}")),
        [(Kind::Write, Kind::Write)]
    );
    let early = races(&format!("{zero}\n{count}"));
    assert_eq!(early, [(Kind::Write, Kind::Atomic)]);
}

#[test]
fn lock_of_atomics_orders_accesses_under_it() {
    // One lane of each of the two warps.
    let body = "setp.ne.u32 %p2, %tid, 0;\n@!%p2 st.shared.u32 [s], 0;\n@!%p2 st.shared.u32 [s+4], 0;\nbar.sync 0;\n\
                mov.u32 %r7, %laneid;\nsetp.ne.u32 %p3, %r7, 0;\n@%p3 bra OVER;\n\
                TRY:\natom.shared.cas.b32 %r1, [s], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra TRY;\nmembar.cta;\n\
                ld.shared.u32 %r2, [s+4];\nadd.u32 %r2, %r2, 1;\nst.shared.u32 [s+4], %r2;\nmembar.cta;\n\
                atom.shared.exch.b32 %r1, [s], 0;\nOVER:";
    assert_eq!(findings(body), Findings::default());
    let not_given_back = body
        .replace("@%p1 bra TRY;", "")
        .replace("atom.shared.exch.b32 %r1, [s], 0;", "");
    assert_eq!(
        races(&not_given_back),
        [(Kind::Write, Kind::Read), (Kind::Write, Kind::Write)]
    );
}

#[test]
fn volatile_flag_orders_earlier_writes() {
    let body = |flag: &str| {
        format!(
            "setp.eq.u32 %p1, %tid, 0;\n@%p1 st.shared.u32 [s], 0;\nbar.sync 0;\nsetp.ge.u32 %p2, %tid, 32;\n@%p2 bra SET;\n\
             WAIT:\nld{flag}.shared.u32 %r1, [s];\nsetp.eq.u32 %p3, %r1, 0;\n@%p3 bra WAIT;\nld.shared.u32 %r2, [%mine+640];\nbra OVER;\n\
             SET:\nst.shared.u32 [%mine+512], %tid;\nbar.warp.sync -1;\nsetp.eq.u32 %p1, %tid, 32;\n@%p1 st{flag}.shared.u32 [s], 1;\nOVER:"
        )
    };
    assert_eq!(findings(&body(".volatile")), Findings::default());
    assert!(races(&body("")).contains(&(Kind::Write, Kind::Read)));
}

#[test]
fn flag_is_ordered_before_the_weak_reads_of_a_lane_that_has_seen_it() {
    let body = "setp.eq.u32 %p1, %tid, 0;\n@%p1 st.volatile.shared.u32 [s], 7;\nbar.sync 1;\n@%p1 st.volatile.shared.u32 [s], 8;\n\
                setp.ne.u32 %p2, %tid, 1;\n@%p2 bra OVER;\nld.volatile.shared.u32 %r1, [s];\nld.shared.u32 %r2, [s];\nOVER:";
    assert_eq!(findings(body), Findings::default());
    let unseen = body.replace("ld.volatile.shared.u32 %r1, [s];", "");
    assert_eq!(races(&unseen), [(Kind::Write, Kind::Read)]);
}

#[test]
fn mbarrier_orders_arriving_threads_before_waiting_ones() {
    let body = |wait: &str| {
        format!(
            ".shared .align 8 .b64 gate;\nsetp.eq.u32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [gate], 64;\nbar.sync 0;\n\
             st.shared.u32 [%mine], %tid;\nmbarrier.arrive.shared.b64 %rd1, [gate];\n{wait}\nld.shared.u32 %r2, [%next];"
        )
    };
    let wait = "WAIT:\nmbarrier.test_wait.shared.b64 %p2, [gate], %rd1;\n@!%p2 bra WAIT;";
    assert_eq!(findings(&body(wait)), Findings::default());
    assert!(races(&body("")).contains(&(Kind::Write, Kind::Read)));
}

#[test]
fn different_bytes_of_a_word_and_writes_of_equal_values_do_not_race() {
    let bytes = "add.u32 %r1, %tid, %r8;\nst.shared.u8 [%r1], %tid;\nbar.sync 0;\nld.shared.u8 %r2, [%r1];";
    assert_eq!(findings(bytes), Findings::default());
    assert_eq!(races("st.shared.u32 [s], 7;"), []);
    assert_eq!(races("st.shared.u32 [s], %tid;"), [(Kind::Write, Kind::Write)]);
}

#[test]
fn copy_in_flight_races_even_with_its_own_thread() {
    let body = |wait: &str| {
        format!(
            "mov.u64 %rd1, data;\nmul.wide.u32 %rd2, %tid, 4;\nadd.u64 %rd1, %rd1, %rd2;\n\
             cp.async.ca.shared.global [%mine], [%rd1], 4;\ncp.async.commit_group;\n\
             cp.async.ca.shared.global [%mine+256], [%rd1], 4;\ncp.async.commit_group;\n{wait}\nld.shared.u32 %r1, [%mine];"
        )
    };
    let run = |wait: &str| races(&body(wait));
    assert_eq!(run(""), [(Kind::Copy, Kind::Read)]);
    assert_eq!(run("cp.async.wait_group 2;"), [(Kind::Copy, Kind::Read)]);
    assert_eq!(run("cp.async.wait_group 1;"), []);
    assert_eq!(run("cp.async.wait_all;"), []);
}

#[test]
fn reads_of_unwritten_bytes_are_found_and_reads_of_copied_bytes_are_not() {
    let found = findings("st.shared.u16 [%mine], 1;\nld.shared.u32 %r1, [%mine];");
    let [read] = &found.unwritten[..] else {
        panic!("one read, not {found:?}")
    };
    assert_eq!((read.address, read.count, read.access.thread), (0, 64, [0, 0, 0]));
    assert_eq!(found.races, []);
    let counted = findings("atom.shared.add.u32 %r1, [s], 1;");
    assert_eq!(counted.unwritten.len(), 1);
}

/// Lessons with a race that changes no result, each with the reason.
const RACES: [(&str, &str); 1] = [(
    "cluster",
    "both blocks store their last value to one word, so that no load is dead; nothing reads the word",
)];

/// Each launch has a limit of warp instructions, so that the lessons together take seconds.
const LESSON_LIMIT: u64 = 1 << 16;

#[test]
fn lessons_have_no_race_and_no_read_of_unwritten_bytes_but_those_listed() {
    let mut names = builtin::in_folder("lessons");
    names.retain(|name| {
        let scenario = builtin::load(name).unwrap();
        let config = preset::load(scenario.gpu.as_deref().unwrap_or("h100-sxm5"), &scenario.set);
        let config = config.unwrap_or_else(|error| panic!("{name}: {error}")).config;
        match lockstep::check_memory(&scenario, &config, BOTH, LESSON_LIMIT) {
            Ok(checked) => !checked.iter().all(|launch| launch.findings.is_empty()),
            Err(error) => {
                assert!(scenario.expect_failure.is_some(), "{name}: {error}");
                false
            }
        }
    });
    assert_eq!(names, RACES.map(|(name, _)| name));
}

#[test]
fn bulk_copy_to_global_memory_reads_what_the_threads_have_written() {
    let copy = "mov.u64 %rd1, data;\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra END;\n\
                cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r8], 256;\ncp.async.bulk.commit_group;\n\
                cp.async.bulk.wait_group 0;\nEND:";
    let body = |order: &str| format!("st.shared.u32 [%mine], %tid;\nfence.proxy.async;\n{order}\n{copy}");
    assert_eq!(findings_of_sm_90(&body("bar.sync 0;")), Findings::default());
    let races = findings_of_sm_90(&body("")).races;
    assert!(!races.is_empty());
    for race in races {
        // The stores and the copy, in either order.
        assert_ne!(
            race.first.kind == Kind::Read,
            race.second.kind == Kind::Read,
            "{race:?}"
        );
    }
    // Without the stores, the copy reads 64 unwritten words.
    let unwritten = findings_of_sm_90(copy).unwritten;
    assert!(matches!(&unwritten[..], [read] if read.count == 64), "{unwritten:?}");
}

#[test]
fn bulk_copy_to_shared_memory_is_ordered_by_its_mbarrier() {
    let body = |before: &str, wait: &str| {
        format!(
            ".shared .align 8 .b64 gate;\nmov.u64 %rd1, data;\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra INIT;\n\
             mbarrier.init.shared.b64 [gate], 1;\nINIT:\nbar.sync 0;\n{before}\n@%p1 bra READ;\n\
             mbarrier.arrive.expect_tx.shared::cta.b64 _, [gate], 256;\n\
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%rd1], 256, [gate];\nREAD:\n{wait}\n\
             ld.shared.u32 %r2, [%next];"
        )
    };
    let wait = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [gate], 0;\n@!%p2 bra WAIT;";
    assert_eq!(findings_of_sm_90(&body("", wait)), Findings::default());
    // A thread reads without a wait, or has written what the copy overwrites.
    assert!(!findings_of_sm_90(&body("", "")).races.is_empty());
    assert!(
        !findings_of_sm_90(&body("st.shared.u32 [%mine], 7;", wait))
            .races
            .is_empty()
    );
    assert_eq!(
        findings_of_sm_90(&body(
            "st.shared.u32 [%mine], 7;\nfence.proxy.async;\nbar.sync 0;",
            wait
        )),
        Findings::default()
    );
}

/// Findings of a kernel with instructions of sm_90.
fn findings_of_sm_90(body: &str) -> Findings {
    let mut scenario = scenario(body);
    scenario.ptx = scenario.ptx.replace(".target sm_80", ".target sm_90");
    check(&scenario).remove(0)
}

#[test]
fn built_in_scenarios_have_no_race_and_no_read_of_unwritten_bytes() {
    let found = |name: &&str| {
        let found = check(&builtin::load(name).unwrap());
        (!found.iter().all(Findings::is_empty)).then(|| format!("{name}: {found:#?}"))
    };
    let findings: Vec<_> = builtin::names().iter().filter_map(found).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
