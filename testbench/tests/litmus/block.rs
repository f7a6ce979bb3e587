//! CTA scope: fences and acquires order the threads of a block, and the L1 keeps its lines.

use warpwave_components::preset;

use super::kernel::{Round, finished, run_in_a_block, scenario};
use super::spin;

#[test]
fn message_passing_inside_a_block_shows_the_data_after_the_flag() {
    let releases = [
        "membar.cta;\nst.volatile.global.u32 [Y], 1;\n",
        "fence.acq_rel.cta;\nst.relaxed.cta.global.u32 [Y], 1;\n",
        "fence.sc.cta;\nst.relaxed.cta.global.u32 [Y], 1;\n",
        "st.release.cta.global.u32 [Y], 1;\n",
        "red.release.cta.global.add.u32 [Y], 1;\n",
        "atom.acq_rel.cta.global.exch.b32 %t, [Y], 1;\n",
    ];
    let acquires = [
        ("ld.volatile.global.u32 %t, [Y]", "membar.cta;\n"),
        ("ld.relaxed.cta.global.u32 %t, [Y]", "fence.acq_rel.cta;\n"),
        ("ld.relaxed.cta.global.u32 %t, [Y]", "fence.sc.cta;\n"),
        ("ld.acquire.cta.global.u32 %t, [Y]", ""),
        ("atom.acquire.cta.global.add.u32 %t, [Y], 0", ""),
    ];
    let mut rounds = Vec::new();
    for release in releases {
        for (access, fence) in acquires {
            rounds.push(Round {
                name: format!("{release} / {access} {fence}"),
                threads: vec![
                    format!("st.global.u32 [X], 1;\n{release}"),
                    format!("{}{fence}ld.global.u32 %r0, [X];\n", spin(access, rounds.len())),
                ],
                forbids: |outcome| outcome.loads[1][0] != 1,
            });
        }
    }
    run_in_a_block(&rounds);
}

/// Counts L1 sector hits and misses of two plain loads of one word, before and after `between`, in one thread.
fn hits_and_misses(between: &str) -> (u64, u64) {
    let text = format!(
        ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 vars) {{\n.reg .b32 %r<4>;\n.reg .b64 %x;\n\
         ld.param.u64 %x, [vars];\nld.global.u32 %r0, [%x];\nst.global.u32 [%x+256], %r0;\n{between}\nld.global.u32 %r1, [%x];\n\
         st.global.u32 [%x+256], %r1;\nret;\n}}\n"
    );
    let config = preset::load("tiny", &[]).expect("tiny is built in").config;
    let (run, _) = finished(&scenario(text, [1, 1], vec![vec![0; 512]]), config);
    let sum = |name: &str| run.totals.sum("l1", name).expect("an L1 counts it");
    (
        sum("load_sectors_hit"),
        sum("load_sectors_missed") - sum("load_sectors_bypassed"),
    )
}

#[test]
fn fence_of_cta_scope_keeps_l1_lines() {
    for between in [
        "",
        "membar.cta;",
        "fence.acq_rel.cta;",
        "fence.sc.cta;",
        "ld.acquire.cta.global.u32 %r2, [%x+128];",
        "atom.acquire.cta.global.add.u32 %r2, [%x+128], 1;",
        "atom.acq_rel.cta.global.add.u32 %r2, [%x+128], 1;",
        "st.release.cta.global.u32 [%x+128], 1;",
        // A release alone makes no older line visible to this thread, and relaxed accesses order nothing.
        "st.release.gpu.global.u32 [%x+128], 1;",
        "red.release.sys.global.add.u32 [%x+128], 1;",
        "ld.relaxed.sys.global.u32 %r2, [%x+128];",
        "ld.volatile.global.u32 %r2, [%x+128];",
        "atom.global.add.u32 %r2, [%x+128], 1;",
    ] {
        assert_eq!(hits_and_misses(between), (1, 1), "{between}");
    }
}

#[test]
fn fence_or_acquire_of_gpu_scope_invalidates_l1_lines() {
    for between in [
        "membar.gl;",
        "membar.sys;",
        "fence.acq_rel.gpu;",
        "fence.acq_rel.sys;",
        "fence.sc.gpu;",
        "fence.sc.sys;",
        "ld.acquire.gpu.global.u32 %r2, [%x+128];",
        "ld.acquire.sys.global.u32 %r2, [%x+128];",
        "atom.acquire.gpu.global.add.u32 %r2, [%x+128], 1;",
        "atom.acquire.sys.global.add.u32 %r2, [%x+128], 1;",
        "atom.acq_rel.gpu.global.cas.b32 %r2, [%x+128], 1, 2;",
        "atom.acq_rel.sys.global.exch.b32 %r2, [%x+128], 2;",
    ] {
        assert_eq!(hits_and_misses(between), (0, 2), "{between}");
    }
}
