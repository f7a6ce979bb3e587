//! Races in global memory: small kernels with one fault or none.

use warpwave::lockstep;
use warpwave::reference::{Checks, Findings, Kind, Missing, RaceSpace};
use warpwave::scenario::{Launch, Scenario};
use warpwave_components::preset;

/// The kinds of the two accesses of a race, and what is missing.
type Found = (Kind, Kind, Missing);

const MESSAGE: (Kind, Kind) = (Kind::Write, Kind::Read);

/// A kernel with the arrays `data`, `flag` and `out` of 256 words. `%mine` and `%next` are the addresses of the word of this thread in
/// `data`, and of the next thread in its block. `%all` is the thread in the grid.
fn scenario(body: &str, [blocks, threads]: [u32; 2], cluster: Option<u32>, launches: usize) -> Scenario {
    let ptx = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.global .align 8 .b8 data[1024];\n.global .align 8 .b8 flag[1024];\n\
         .global .align 8 .b8 out[1024];\n.shared .align 8 .b8 s[256];\n.entry k() {{\n\
         .reg .b32 %r<9>, %tid, %cta, %n, %all; .reg .b64 %rd<9>, %mine, %next; .reg .pred %p<9>;\n\
         mov.u32 %tid, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %all, %cta, %n, %tid;\n\
         mov.u64 %rd1, data; mad.wide.u32 %mine, %all, 4, %rd1;\n\
         add.u32 %r1, %tid, 1; rem.u32 %r1, %r1, %n; mad.lo.u32 %r1, %cta, %n, %r1; mad.wide.u32 %next, %r1, 4, %rd1;\n\
         mov.u32 %r1, 0; mov.u32 %r2, 0;\n{body}\nmov.u64 %rd1, out; mad.wide.u32 %rd1, %all, 4, %rd1;\n\
         st.global.u32 [%rd1], %r2; ret; }}"
    );
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster: cluster.map(|n| [n, 1, 1]),
        ..Launch::default()
    };
    Scenario {
        name: "k".to_owned(),
        ptx_path: "k.ptx".to_owned(),
        ptx,
        launches: vec![launch; launches],
        ..Scenario::default()
    }
}

fn check(scenario: &Scenario, max_words: Option<u64>) -> Vec<Findings> {
    let config = preset::load("h100-sxm5", &[]).unwrap().config;
    let checks = Checks {
        races: true,
        max_words,
        ..Checks::default()
    };
    let checked = lockstep::check_memory(scenario, &config, checks, 1 << 20);
    let checked = checked.unwrap_or_else(|error| panic!("{error}\n{}", scenario.ptx));
    checked.into_iter().map(|launch| launch.findings).collect()
}

fn found(scenario: &Scenario) -> Vec<Found> {
    let findings = check(scenario, None);
    let races = findings.iter().flat_map(|findings| &findings.races);
    races
        .map(|race| {
            assert_eq!(race.space(), RaceSpace::Global, "{race:?}");
            (race.first.kind, race.second.kind, race.missing)
        })
        .collect()
}

fn races(sizes: [u32; 2], body: &str) -> Vec<Found> {
    found(&scenario(body, sizes, None, 1))
}

/// Block 0 writes a word and then a flag. Block 1 waits for the flag and reads the word.
fn message(write: &str, wait: &str, then: &str) -> Vec<Found> {
    let body = format!(
        "setp.ne.u32 %p1, %tid, 0;\n@%p1 bra OVER;\nsetp.ne.u32 %p1, %cta, 0;\n@%p1 bra WAIT;\n\
         st.global.u32 [data], 42;\n{write}\nbra OVER;\nWAIT:\n{wait};\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra WAIT;\n\
         {then}\nld.global.u32 %r2, [data];\nOVER:"
    );
    races([2, 32], &body)
}

const SET: &str = "st.relaxed.gpu.global.u32 [flag], 1;";
const GET: &str = "ld.relaxed.gpu.global.u32 %r1, [flag]";
const FENCE: &str = "fence.acq_rel.gpu;";

fn lacks(missing: Missing) -> Vec<Found> {
    vec![(MESSAGE.0, MESSAGE.1, missing)]
}

#[test]
fn message_needs_a_fence_on_both_sides() {
    let fenced = format!("{FENCE}\n{SET}");
    assert_eq!(message(&fenced, GET, FENCE), []);
    assert_eq!(message(SET, GET, FENCE), lacks(Missing::Release));
    assert_eq!(message(&fenced, GET, ""), lacks(Missing::Acquire));
    assert_eq!(message(SET, GET, ""), lacks(Missing::Release));
}

#[test]
fn release_and_acquire_of_every_form_order_a_message() {
    let releases = [
        "st.release.gpu.global.u32 [flag], 1;",
        "st.release.sys.u32 [flag], 1;",
        "red.release.gpu.global.add.u32 [flag], 1;",
        "atom.acq_rel.gpu.global.exch.b32 %r3, [flag], 1;",
        "membar.gl;\nst.volatile.global.u32 [flag], 1;",
        "membar.gl;\natom.global.add.u32 %r3, [flag], 1;",
        "fence.release.gpu;\nst.relaxed.gpu.global.u32 [flag], 1;",
    ];
    let acquires = [
        ("ld.acquire.gpu.global.u32 %r1, [flag]", ""),
        ("ld.acquire.sys.u32 %r1, [flag]", ""),
        ("atom.acquire.gpu.global.or.b32 %r1, [flag], 0", ""),
        ("ld.volatile.global.u32 %r1, [flag]", "membar.gl;"),
        ("ld.relaxed.gpu.global.u32 %r1, [flag]", "fence.acquire.gpu;"),
    ];
    for release in releases {
        for (wait, then) in acquires {
            assert_eq!(message(release, wait, then), [], "{release} / {wait} {then}");
        }
    }
}

#[test]
fn scope_of_a_block_does_not_order_two_blocks() {
    let [narrow, wide] = ["fence.acq_rel.cta;", FENCE].map(|fence| format!("{fence}\n{SET}"));
    assert_eq!(message(&narrow, GET, FENCE), lacks(Missing::FenceScope));
    assert_eq!(message(&wide, GET, "fence.acq_rel.cta;"), lacks(Missing::FenceScope));
    // The flag itself races too: one of its accesses has a scope without the other block.
    let flag = [(MESSAGE.0, MESSAGE.1, Missing::AccessScope)];
    let found = message(
        "st.release.cta.global.u32 [flag], 1;",
        "ld.acquire.gpu.global.u32 %r1, [flag]",
        "",
    );
    assert_eq!(found, [&flag[..], &lacks(Missing::FenceScope)].concat());
    let found = message(&wide, "ld.relaxed.cta.global.u32 %r1, [flag]", FENCE);
    assert_eq!(found, [&flag[..], &lacks(Missing::FenceScope)].concat());
}

#[test]
fn weak_flag_orders_nothing() {
    let found = message("st.global.u32 [flag], 1;", "ld.global.u32 %r1, [flag]", "");
    let both = [lacks(Missing::Synchronization), lacks(Missing::Synchronization)].concat();
    assert_eq!(found, both);
}

#[test]
fn flag_that_another_store_replaced_releases_nothing() {
    // Block 0 releases its word with a flag of 1. Block 1 replaces the flag by 2. Block 2 sees the 2 alone.
    let body = |replace: &str| {
        format!(
            "setp.ne.u32 %p1, %tid, 0;\n@%p1 bra OVER;\nsetp.eq.u32 %p1, %cta, 1;\n@%p1 bra SECOND;\nsetp.eq.u32 %p1, %cta, 2;\n@%p1 bra THIRD;\n\
             st.global.u32 [data], 42;\n{FENCE}\n{SET}\nbra OVER;\n\
             SECOND:\n{GET};\nsetp.ne.u32 %p1, %r1, 1;\n@%p1 bra SECOND;\n{replace}\nbra OVER;\n\
             THIRD:\n{GET};\nsetp.ne.u32 %p1, %r1, 2;\n@%p1 bra THIRD;\n{FENCE}\nld.global.u32 %r2, [data];\nOVER:"
        )
    };
    let replaced = races([3, 32], &body("st.relaxed.gpu.global.u32 [flag], 2;"));
    assert_eq!(replaced, lacks(Missing::Release));
    // An atomic keeps what the value before it releases (release sequence).
    assert_eq!(races([3, 32], &body("atom.global.add.u32 %r3, [flag], 1;")), []);
    assert_eq!(races([3, 32], &body("red.global.add.u32 [flag], 1;")), []);
}

#[test]
fn histogram_needs_atomics() {
    let bin = "and.b32 %r3, %tid, 7;\nmov.u64 %rd2, data;\nmad.wide.u32 %rd2, %r3, 4, %rd2;\n";
    let plain = format!("{bin}ld.global.u32 %r4, [%rd2];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%rd2], %r4;");
    let found = races([2, 64], &plain);
    assert!(
        found.contains(&(Kind::Read, Kind::Write, Missing::WarpBarrier)),
        "{found:?}"
    );
    assert!(
        found.contains(&(Kind::Write, Kind::Read, Missing::Barrier)),
        "{found:?}"
    );
    assert_eq!(races([2, 64], &format!("{bin}red.global.add.u32 [%rd2], 1;")), []);
    // With one thread per block, only blocks meet.
    let found = races([2, 1], &plain);
    assert_eq!(
        found,
        [
            (Kind::Write, Kind::Read, Missing::Synchronization),
            (Kind::Write, Kind::Write, Missing::Synchronization),
        ]
    );
}

#[test]
fn atomics_of_two_blocks_need_a_scope_with_both() {
    let [cta, gpu] = ["cta", "gpu"].map(|scope| races([2, 64], &format!("red.{scope}.global.add.u32 [data], 1;")));
    assert_eq!(gpu, []);
    assert_eq!(cta, [(Kind::Atomic, Kind::Atomic, Missing::AccessScope)]);
    assert_eq!(races([1, 64], "red.cta.global.add.u32 [data], 1;"), []);
    let mixed = "setp.eq.u32 %p1, %cta, 0;\n@%p1 st.global.u32 [data], %all;\n@!%p1 red.global.add.u32 [data], 1;";
    let found = races([2, 1], mixed);
    assert_eq!(found, [(Kind::Write, Kind::Atomic, Missing::Synchronization)]);
}

#[test]
fn writes_of_equal_values_and_of_different_bytes_do_not_race() {
    assert_eq!(races([2, 64], "st.global.u32 [data], 7;"), []);
    let found = races([2, 1], "st.global.u32 [data], %all;");
    assert_eq!(found, [(Kind::Write, Kind::Write, Missing::Synchronization)]);
    let byte = "mov.u64 %rd2, data;\ncvt.u64.u32 %rd3, %all;\nadd.u64 %rd2, %rd2, %rd3;\nst.global.u8 [%rd2], %all;";
    assert_eq!(races([2, 64], byte), []);
}

/// Each block writes a partial result. The last block to count itself adds them up.
fn reduction(before: &str, after: &str) -> Vec<Found> {
    let body = format!(
        "st.global.u32 [%mine], %all;\nbar.sync 0;\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra COUNTED;\n{before}\n\
         atom.global.add.u32 %r3, [flag], 1;\n{after}\nst.shared.u32 [s], %r3;\nCOUNTED:\nbar.sync 0;\nld.shared.u32 %r3, [s];\n\
         setp.ne.u32 %p1, %r3, 2;\n@%p1 bra OVER;\nmov.u64 %rd2, data;\nmad.wide.u32 %rd2, %tid, 4, %rd2;\n\
         ld.global.u32 %r4, [%rd2];\nadd.u32 %r2, %r2, %r4;\nld.global.u32 %r4, [%rd2+256];\nadd.u32 %r2, %r2, %r4;\nOVER:"
    );
    races([3, 64], &body)
}

#[test]
fn reduction_needs_a_fence_before_and_after_its_counter() {
    let twice = |missing| [lacks(missing), lacks(missing)].concat();
    assert_eq!(reduction("membar.gl;", "membar.gl;"), []);
    assert_eq!(reduction("", "membar.gl;"), twice(Missing::Release));
    assert_eq!(reduction("membar.gl;", ""), twice(Missing::Acquire));
    assert_eq!(reduction("membar.cta;", "membar.gl;"), twice(Missing::FenceScope));
}

#[test]
fn grid_barrier_orders_all_blocks() {
    let body = |arrive: &str, wait: &str, before: &str| {
        format!(
            "st.global.u32 [%mine], %all;\n{before}\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra MET;\n{arrive}\n\
             WAIT:\n{wait};\nsetp.lt.u32 %p1, %r1, 4;\n@%p1 bra WAIT;\nMET:\nbar.sync 0;\n\
             add.u32 %r3, %all, 64;\nand.b32 %r3, %r3, 255;\nmov.u64 %rd2, data;\nmad.wide.u32 %rd2, %r3, 4, %rd2;\nld.global.u32 %r2, [%rd2];"
        )
    };
    let (arrive, wait) = (
        "red.release.gpu.global.add.u32 [flag], 1;",
        "ld.acquire.gpu.global.u32 %r1, [flag]",
    );
    assert_eq!(races([4, 64], &body(arrive, wait, "bar.sync 0;")), []);
    let relaxed = races([4, 64], &body("red.global.add.u32 [flag], 1;", wait, "bar.sync 0;"));
    assert_eq!(relaxed, lacks(Missing::Release));
    // Without a barrier of the block, thread 0 releases nothing of warp 1.
    let early = races([4, 64], &body(arrive, wait, ""));
    assert_eq!(early, lacks(Missing::Synchronization));
}

#[test]
fn barriers_of_a_block_a_warp_and_an_mbarrier_order_its_threads() {
    let body = |between: &str| format!("st.global.u32 [%mine], %tid;\n{between}\nld.global.u32 %r2, [%next];");
    assert_eq!(races([1, 64], &body("bar.sync 0;")), []);
    let found = races([1, 64], &body(""));
    assert!(
        found.contains(&(Kind::Write, Kind::Read, Missing::WarpBarrier)),
        "{found:?}"
    );
    assert_eq!(races([1, 32], &body("bar.warp.sync 0xffffffff;")), []);
    let across = races([1, 64], &body("bar.warp.sync 0xffffffff;"));
    assert!(across.iter().all(|found| found.2 == Missing::Barrier), "{across:?}");
    assert!(!across.is_empty());
    let mbarrier = "setp.eq.u32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [s], 64;\nbar.sync 1;\n\
                    st.global.u32 [%mine], %all;\nmbarrier.arrive.shared.b64 %rd2, [s];\n\
                    MEET:\nmbarrier.test_wait.shared.b64 %p2, [s], %rd2;\n@!%p2 bra MEET;\nld.global.u32 %r2, [%next];";
    assert_eq!(races([1, 64], mbarrier), []);
    let unmet = mbarrier.replace("@!%p2 bra MEET;", "");
    assert!(!races([1, 64], &unmet).is_empty());
}

#[test]
fn cluster_barrier_orders_its_blocks_unless_the_arrival_is_relaxed() {
    let body = |arrive: &str| {
        format!(
            "st.global.u32 [%mine], %all;\n{arrive};\nbarrier.cluster.wait;\nxor.b32 %r3, %all, 64;\nmov.u64 %rd2, data;\n\
             mad.wide.u32 %rd2, %r3, 4, %rd2;\nld.global.u32 %r2, [%rd2];"
        )
    };
    let run = |arrive, cluster| found(&scenario(&body(arrive), [2, 64], cluster, 1));
    assert_eq!(run("barrier.cluster.arrive", Some(2)), []);
    assert_eq!(run("barrier.cluster.arrive.relaxed", Some(2)), lacks(Missing::Release));
    let apart = run("barrier.cluster.arrive", None);
    assert_eq!(
        apart,
        [
            (Kind::Read, Kind::Write, Missing::Synchronization),
            (Kind::Write, Kind::Read, Missing::Synchronization),
        ]
    );
}

/// CUDA's `malloc` and `free` are safe for threads. A block of memory that one thread frees goes to another, which writes it.
#[test]
fn free_orders_a_block_of_memory_for_the_next_thread() {
    let mut scenario = scenario("", [1, 64], None, 1);
    scenario.ptx = ".version 8.0\n.target sm_80\n.address_size 64\n\
         .extern .func (.param .b64 func_retval0) malloc (.param .b64 malloc_param_0);\n\
         .extern .func free (.param .b64 free_param_0);\n\
         .entry k() {\n.reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;\nmov.u32 %r1, %tid.x; mov.u32 %r2, 0;\n\
         AGAIN:\n{ .param .b64 param0; st.param.b64 [param0], 64; .param .b64 retval0;\n\
         call.uni (retval0), malloc, (param0);\nld.param.b64 %rd1, [retval0]; }\n\
         st.u32 [%rd1], %r1;\n\
         { .param .b64 param0; st.param.b64 [param0], %rd1;\ncall.uni free, (param0); }\n\
         add.u32 %r2, %r2, 1; add.u32 %r1, %r1, 64; setp.lt.u32 %p1, %r2, 3;\n@%p1 bra AGAIN;\nret; }\n"
        .to_owned();
    assert_eq!(found(&scenario), []);
    // A store after `free` races with the next owner of the block.
    let late = scenario
        .ptx
        .replace("add.u32 %r2, %r2, 1;", "st.u32 [%rd1], %r2;\nadd.u32 %r2, %r2, 1;");
    scenario.ptx = late;
    assert!(!found(&scenario).is_empty());
}

#[test]
fn launch_orders_all_before_it() {
    let body = "add.u32 %r3, %all, 64;\nand.b32 %r3, %r3, 127;\nmov.u64 %rd2, data;\nmad.wide.u32 %rd2, %r3, 4, %rd2;\n\
                ld.global.u32 %r2, [%rd2];\nst.global.u32 [out+1000], 1;";
    let write = format!("st.global.u32 [%mine], %all;\n{body}");
    assert_eq!(found(&scenario(&write, [2, 64], None, 1)).len(), 2);
    // The first launch finds zeros and writes. The second one reads the words of other threads.
    let split = "ld.global.u32 %r3, [%mine];\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra SECOND;\nadd.u32 %r3, %all, 1;\nst.global.u32 [%mine], %r3;\n\
                 bra OVER;\nSECOND:\nxor.b32 %r3, %all, 64;\nmov.u64 %rd2, data;\nmad.wide.u32 %rd2, %r3, 4, %rd2;\nld.global.u32 %r2, [%rd2];\nOVER:";
    assert_eq!(found(&scenario(split, [2, 64], None, 2)), []);
}

#[test]
fn race_names_both_threads_and_the_word() {
    let body = "setp.eq.u32 %p1, %all, 37;\n@%p1 st.global.u32 [data+12], 9;\nsetp.eq.u32 %p1, %all, 70;\n@%p1 ld.global.u32 %r2, [data+12];";
    let findings = check(&scenario(body, [2, 64], None, 1), None).remove(0);
    let [race] = &findings.races[..] else {
        panic!("one race, not {findings:?}")
    };
    assert_eq!((race.address % 256, race.count), (12, 1));
    let place = |access: &warpwave::reference::Access| (access.block, access.thread, access.warp, access.lane);
    assert_eq!(place(&race.first), ([0, 0, 0], [37, 0, 0], 1, 5));
    assert_eq!(place(&race.second), ([1, 0, 0], [6, 0, 0], 0, 6));
}

#[test]
fn words_beyond_the_limit_are_counted_and_not_checked() {
    let body = "st.global.u32 [data], %all;\nst.global.u32 [data+4], %all;";
    let limited = |words| check(&scenario(body, [2, 1], None, 1), Some(words)).remove(0);
    // Each block accesses two words of `data` and one of `out`.
    let all = limited(4);
    assert_eq!((all.races.len(), all.unchecked), (2, 0));
    let one = limited(1);
    assert_eq!((one.races.len(), one.unchecked), (1, 4));
}

#[test]
fn copies_and_bulk_copies_read_global_memory() {
    let copy = "setp.eq.u32 %p1, %all, 0;\n@%p1 st.global.u32 [data+64], 5;\nsetp.eq.u32 %p1, %all, 64;\nmov.u64 %rd2, data;\nmov.u32 %r3, s;\n\
                @%p1 cp.async.ca.shared.global [%r3], [%rd2+64], 4;\ncp.async.wait_all;";
    assert_eq!(races([2, 64], copy), lacks(Missing::Synchronization));
    let bulk = "setp.ne.u32 %p1, %tid, 0;\n@%p1 bra OVER;\nsetp.eq.u32 %p1, %cta, 0;\n@%p1 st.global.u32 [data+64], 5;\n@%p1 bra OVER;\n\
                mov.u64 %rd2, data;\nmov.u32 %r3, s;\nadd.u32 %r4, %r3, 128;\nmbarrier.init.shared.b64 [%r4], 1;\n\
                mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 64;\n\
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2+64], 64, [%r4];\n\
                MEET:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n@!%p2 bra MEET;\nOVER:";
    assert_eq!(races([2, 64], bulk), lacks(Missing::Synchronization));
    // The threads that wait for the copy come after its reads.
    let reused = "setp.eq.u32 %p1, %tid, 0;\nmov.u64 %rd2, data;\nmov.u32 %r3, s;\nadd.u32 %r4, %r3, 128;\n\
                  @%p1 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 64;\n\
                  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 64, [%r4];\n\
                  MEET:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n@!%p2 bra MEET;\nst.global.u32 [%mine], %tid;";
    assert_eq!(races([1, 64], reused), []);
}
