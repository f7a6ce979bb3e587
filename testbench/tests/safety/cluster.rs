//! Races in the shared memory of a cluster: small kernels with one fault or none.

use warpwave::lockstep;
use warpwave::reference::{Findings, Kind, Missing, RaceSpace};
use warpwave::scenario::{Launch, Scenario};
use warpwave_components::preset;

use super::BOTH;

/// A kernel of two blocks of 64 threads in a cluster. `%mine` is the address of the word of this thread, and `%theirs` that of the
/// thread with the same index in the other block.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 s[512];\n.shared .align 8 .b64 gate;\n\
         .global .align 16 .b8 data[256];\n.global .align 4 .b8 out[512];\n.entry k() {{\n\
         .reg .b32 %r<9>, %tid, %rank, %other, %mine, %theirs, %mygate, %theirgate; .reg .b64 %rd<4>; .reg .pred %p<4>;\n\
         mov.u32 %tid, %tid.x; mov.u32 %rank, %cluster_ctarank; xor.b32 %other, %rank, 1;\n\
         mov.u32 %r8, s; mad.lo.u32 %mine, %tid, 4, %r8; mapa.shared::cluster.u32 %theirs, %mine, %other;\n\
         mov.u32 %mygate, gate; mapa.shared::cluster.u32 %theirgate, %mygate, %other;\n\
         mov.u32 %r2, 0;\n{body}\n\
         mov.u64 %rd1, out; mad.lo.u32 %r1, %rank, 64, %tid; mad.wide.u32 %rd1, %r1, 4, %rd1; st.global.u32 [%rd1], %r2; ret; }}"
    )
}

fn findings(body: &str) -> Findings {
    let scenario = Scenario {
        name: "k".to_owned(),
        ptx_path: "k.ptx".to_owned(),
        ptx: kernel(body),
        launches: vec![Launch {
            grid: [2, 1, 1],
            block: [64, 1, 1],
            cluster: Some([2, 1, 1]),
            ..Launch::default()
        }],
        ..Scenario::default()
    };
    let config = preset::load("h100-sxm5", &[]).unwrap().config;
    let checked = lockstep::check_memory(&scenario, &config, BOTH, 1 << 20);
    checked
        .unwrap_or_else(|error| panic!("{error}\n{}", scenario.ptx))
        .remove(0)
        .findings
}

/// Kinds, ranks of the two threads, and what is missing.
fn races(body: &str) -> Vec<(Kind, Kind, [u32; 2], Missing)> {
    let races = findings(body).races;
    let of = |race: &warpwave::reference::Race| {
        assert_eq!(race.space(), RaceSpace::Shared);
        let ranks = [race.first, race.second].map(|access| access.block[0]);
        (race.first.kind, race.second.kind, ranks, race.missing)
    };
    races.iter().map(of).collect()
}

const MEET: &str = "barrier.cluster.arrive;\nbarrier.cluster.wait;";

#[test]
fn reading_the_other_block_needs_a_cluster_barrier_before_it_and_before_the_end() {
    let body = |before: &str, after: &str| {
        format!("st.shared.u32 [%mine], %tid;\n{before}\nld.shared::cluster.u32 %r2, [%theirs];\n{after}")
    };
    assert_eq!(findings(&body(MEET, MEET)), Findings::default());
    // Block 0 runs first: it reads what block 1 has not written yet, and block 1 writes after that.
    let unordered = findings(&body("", MEET));
    assert_eq!((unordered.unwritten.len(), unordered.unwritten[0].count), (1, 64));
    assert_eq!(unordered.unwritten[0].block, [1, 0, 0]);
    assert_eq!(unordered.unwritten[0].access.block, [0, 0, 0]);
    let race = &unordered.races[0];
    assert_eq!((race.owner, race.address, race.count), (Some([1, 0, 0]), 0, 64));
    assert_eq!(
        races(&body("", MEET)),
        [
            (Kind::Read, Kind::Write, [0, 1], Missing::ClusterBarrier),
            (Kind::Write, Kind::Read, [0, 1], Missing::ClusterBarrier)
        ]
    );
    // A barrier of the block orders no other block. A relaxed arrival releases nothing.
    assert_eq!(races(&body("bar.sync 0;", MEET)).len(), 2);
    let relaxed = "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;";
    let found = races(&body(relaxed, MEET));
    assert!(!found.is_empty());
    assert!(found.iter().all(|race| race.3 == Missing::ClusterBarrier), "{found:?}");
}

#[test]
fn relaxed_arrival_passes_on_nothing() {
    // Warp 1 learns of the store of warp 0 at a barrier of the block. Only its arrival could tell the other block.
    let body = |arrive: &str| {
        format!(
            "setp.ge.u32 %p1, %tid, 32;\n@!%p1 st.shared.u32 [%mine], %tid;\n@%p1 st.shared.u32 [%mine], 0;\nbar.sync 0;\n\
             {arrive};\nbarrier.cluster.wait;\nld.shared::cluster.u32 %r2, [%theirs];\n{MEET}"
        )
    };
    assert_eq!(races(&body("barrier.cluster.arrive")), []);
    let relaxed = races(&body("barrier.cluster.arrive.relaxed"));
    assert!(!relaxed.is_empty());
    assert!(
        relaxed.iter().all(|race| race.3 == Missing::ClusterBarrier),
        "{relaxed:?}"
    );
}

#[test]
fn block_that_ends_before_the_last_access_to_its_shared_memory_races_with_it() {
    let body =
        |last: &str| format!("st.shared.u32 [%mine], %tid;\n{MEET}\nld.shared::cluster.u32 %r2, [%theirs];\n{last}");
    assert_eq!(races(&body(MEET)), []);
    let found = races(&body(""));
    // Block 0 reads the memory of block 1, which ends without an order. Block 1 reads the memory of block 0, which has ended.
    assert_eq!(
        found,
        [
            (Kind::End, Kind::Read, [0, 1], Missing::ClusterBarrier),
            (Kind::Read, Kind::End, [0, 1], Missing::ClusterBarrier)
        ]
    );
    // The arrival alone does not keep the block.
    assert_eq!(races(&body("barrier.cluster.arrive;")).len(), 2);
}

#[test]
fn atomics_on_the_other_block_race_with_plain_accesses_alone() {
    let zero = format!("st.shared.u32 [%mine], 0;\n{MEET}");
    let count = "red.shared::cluster.add.u32 [%theirs], 1;\nred.shared.add.u32 [%mine], 1;";
    assert_eq!(
        findings(&format!("{zero}\n{count}\n{MEET}\nld.shared.u32 %r2, [%mine];")),
        Findings::default()
    );
    let early = races(&format!(
        "{zero}\n{count}\nbar.sync 0;\nld.shared.u32 %r2, [%mine];\n{MEET}"
    ));
    assert!(
        early.contains(&(Kind::Read, Kind::Atomic, [0, 1], Missing::ClusterBarrier)),
        "{early:?}"
    );
}

#[test]
fn arrival_at_the_mbarrier_of_the_other_block_orders_a_store() {
    // Each thread stores to the other block and arrives at its mbarrier. That block waits, and reads.
    let body = |store: &str, wait: &str| {
        format!(
            "setp.eq.u32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%mygate], 64;\n{MEET}\n{store}\n\
             mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%theirgate];\n{wait}\n\
             ld.shared.u32 %r2, [%mine];\n{MEET}"
        )
    };
    let wait = "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%mygate], 0;\n@!%p2 bra WAIT;";
    let store = "st.shared::cluster.u32 [%theirs], %tid;";
    assert_eq!(findings(&body(store, wait)), Findings::default());
    let unmet = races(&body(store, ""));
    assert!(!unmet.is_empty());
    assert!(unmet.iter().all(|race| race.3 == Missing::ClusterBarrier), "{unmet:?}");
    // One test without a use of its result orders nothing.
    let once = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%mygate], 0;";
    assert!(!races(&body(store, once)).is_empty());
}

#[test]
fn multicast_writes_the_shared_memory_of_both_blocks() {
    let body = |wait: &str| {
        format!(
            "setp.ne.u32 %p1, %tid, 0;\n@%p1 bra READY;\nmbarrier.init.shared.b64 [%mygate], 1;\n\
             mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mygate], 256;\nREADY:\n{MEET}\n\
             setp.ne.u32 %p2, %rank, 0;\n@%p1 bra COPIED;\n@%p2 bra COPIED;\nmov.u64 %rd1, data;\nmov.u16 %mask, 3;\n\
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r8], [%rd1], 256, [%mygate], %mask;\n\
             COPIED:\n{wait}\n@%p2 ld.shared.u32 %r2, [%mine];\n{MEET}"
        )
        .replacen("setp.ne", ".reg .b16 %mask;\nsetp.ne", 1)
    };
    let wait = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%mygate], 0;\n@!%p3 bra WAIT;";
    assert_eq!(findings(&body(wait)), Findings::default());
    // Block 0 writes, and block 1 reads without a wait.
    assert_eq!(
        races(&body("")),
        [(Kind::Write, Kind::Read, [0, 1], Missing::ClusterBarrier)]
    );
}
