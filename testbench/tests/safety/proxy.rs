//! Accesses of the asynchronous proxy in shared memory: proxy fences, and groups in flight.

use warpwave::reference::{Findings, Group, Kind, Missing};

use super::findings_of_sm_90;

fn missing(body: &str) -> Vec<Missing> {
    let races = findings_of_sm_90(body).races;
    races.iter().map(|race| race.missing).collect()
}

/// Thread 0 copies 256 bytes from shared to global memory.
const COPY: &str = "mov.u64 %rd1, data;\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra COPIED;\n\
                    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r8], 256;\ncp.async.bulk.commit_group;\nCOPIED:";

#[test]
fn bulk_copy_of_written_data_needs_a_proxy_fence() {
    let body = |order: &str| format!("st.shared.u32 [%mine], %tid;\n{order}\n{COPY}");
    // The fence of the writers, as the programming guide has it, or that of the thread with the copy.
    let fence = "fence.proxy.async.shared::cta;";
    assert_eq!(missing(&body(&format!("{fence}\nbar.sync 0;"))), []);
    assert_eq!(missing(&body(&format!("bar.sync 0;\n{fence}"))), []);
    assert_eq!(missing(&body("bar.sync 0;")), [Missing::ProxyFence]);
    // A fence orders threads and no proxies.
    assert_eq!(missing(&body("membar.cta;\nbar.sync 0;")), [Missing::ProxyFence]);
    // A proxy fence of thread 32 covers its own store, and not that of thread 0 after it.
    let late = format!("{fence}\nst.shared.u32 [%mine], 9;\nbar.sync 0;");
    assert_eq!(missing(&body(&late)), [Missing::ProxyFence]);
    // A proxy fence orders no threads. The copy reads what other lanes have written. Warp 1 writes while it is in flight.
    assert_eq!(
        missing(&body(fence)),
        [Missing::WarpBarrier, Missing::Wait(Group::Bulk)]
    );
}

#[test]
fn bulk_copy_into_written_memory_needs_a_proxy_fence() {
    let body = |order: &str| {
        format!(
            ".shared .align 8 .b64 gate;\nmov.u64 %rd1, data;\nsetp.ne.u32 %p1, %tid, 0;\n@!%p1 mbarrier.init.shared.b64 [gate], 1;\n\
             st.shared.u32 [%mine], 7;\n{order}\nbar.sync 0;\n@%p1 bra READ;\n\
             mbarrier.arrive.expect_tx.shared::cta.b64 _, [gate], 256;\n\
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%rd1], 256, [gate];\nREAD:\n\
             WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [gate], 0;\n@!%p2 bra WAIT;\nld.shared.u32 %r2, [%next];"
        )
    };
    assert_eq!(findings_of_sm_90(&body("fence.proxy.async;")), Findings::default());
    assert_eq!(missing(&body("")), [Missing::ProxyFence]);
}

#[test]
fn source_of_a_bulk_copy_is_free_after_the_wait_for_its_group() {
    let body = |wait: &str| {
        format!(
            "st.shared.u32 [%mine], %tid;\nfence.proxy.async;\nbar.sync 0;\n{COPY}\n{wait}\nbar.sync 0;\nst.shared.u32 [%mine], 9;"
        )
    };
    assert_eq!(missing(&body("cp.async.bulk.wait_group.read 0;")), []);
    assert_eq!(missing(&body("cp.async.bulk.wait_group 0;")), []);
    assert_eq!(
        missing(&body("cp.async.bulk.wait_group.read 1;")),
        [Missing::Wait(Group::Bulk)]
    );
    assert_eq!(missing(&body("")), [Missing::Wait(Group::Bulk)]);
}

/// Zeros a tile of A and a tile of B (2,048 and 256 bytes), multiplies them, and stores to both.
fn product(before: &str, after: &str) -> String {
    // Both tiles are without a swizzle: cores of 8 rows by 16 bytes, 128 bytes apart along K, and 256 along M or N. The kernel itself
    // stores to the bytes before them.
    let zero: String = (0..9)
        .map(|n| format!("st.shared.u32 [%at+{}], 0;\n", 256 * n))
        .collect();
    format!(
        ".shared .align 128 .b8 tiles[2816];\n.reg .b32 %at, %f<4>; .reg .b64 %a, %b;\nmov.u32 %at, tiles;\nadd.u32 %at, %at, 512;\n\
         cvt.u64.u32 %a, %at;\nshr.u64 %a, %a, 4;\nadd.u64 %b, %a, 128;\nor.b64 %a, %a, 0x1000080000;\nor.b64 %b, %b, 0x1000080000;\n\
         shl.b32 %r3, %tid, 2;\nand.b32 %r3, %r3, 255;\nadd.u32 %at, %at, %r3;\n{zero}{before}\n\
         mov.b32 %f0, 0;\nmov.b32 %f1, 0;\nmov.b32 %f2, 0;\nmov.b32 %f3, 0;\nwgmma.fence.sync.aligned;\n\
         wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %a, %b, 1, 1, 1, 0, 0;\n\
         wgmma.commit_group.sync.aligned;\n{after}\nst.shared.u32 [%at], 1;\nst.shared.u32 [%at+2048], 1;\n\
         wgmma.wait_group.sync.aligned 0;\nadd.u32 %r2, %r2, %f0;\n"
    )
}

#[test]
fn product_of_a_warp_group_reads_its_tiles_until_the_wait_for_its_group() {
    let (before, after) = (
        "fence.proxy.async;\nbar.sync 0;",
        "wgmma.wait_group.sync.aligned 0;\nbar.sync 0;",
    );
    let found = |before: &str, after: &str| {
        let mut scenario = super::scenario(&product(before, after));
        scenario.ptx = scenario.ptx.replace(".target sm_80", ".target sm_90a");
        scenario.launches[0].block = [128, 1, 1];
        super::check_on("h100-sxm5", &scenario).remove(0)
    };
    assert_eq!(found(before, after), Findings::default());
    let kinds = |before: &str, after: &str| {
        let races = found(before, after).races;
        let of = |race: &warpwave::reference::Race| (race.first.kind, race.second.kind, race.missing);
        races.iter().map(of).collect::<Vec<_>>()
    };
    // A store to A or to B, each with its own line.
    let unfenced = kinds("bar.sync 0;", after);
    assert!(!unfenced.is_empty());
    assert!(
        unfenced
            .iter()
            .all(|race| *race == (Kind::Write, Kind::Read, Missing::ProxyFence)),
        "{unfenced:?}"
    );
    // Other warps read B, so a barrier is needed too.
    let unmet = kinds("fence.proxy.async;", after);
    assert!(
        unmet.contains(&(Kind::Read, Kind::Write, Missing::Barrier)),
        "{unmet:?}"
    );
    let in_flight = kinds(before, "bar.sync 0;");
    let want = (Kind::Read, Kind::Write, Missing::Wait(Group::Products));
    assert_eq!(in_flight, [want, want]);
    let unordered = kinds(before, "wgmma.wait_group.sync.aligned 0;");
    assert!(
        unordered.contains(&(Kind::Read, Kind::Write, Missing::Barrier)),
        "{unordered:?}"
    );
}
