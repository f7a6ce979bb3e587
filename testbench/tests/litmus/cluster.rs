//! Cluster scope: the CTAs of a cluster are on several SMs, so an acquire invalidates the L1, as one of GPU scope does.

use warpwave_components::preset;

use super::kernel::{finished, scenario};

/// Block 0 of a cluster of two writes `X` in global memory, then runs `tell`. Block 1 has the old line of `X` in its L1. It waits by
/// `learn`, then loads `X` and stores what it found. `%f` is a flag in global memory, `%remote` the word `flag` in block 1's
/// shared memory and `%bar` an mbarrier beside it.
fn message(tell: &str, learn: &str) {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 vars) .explicitcluster .reqnctapercluster 2, 1, 1 {{\n\
         .reg .pred %p, %q;\n.reg .b32 %r, %t, %rank, %remote, %there, %n;\n.reg .b64 %x, %f, %state;\n\
         .shared .align 8 .b64 bar;\n.shared .align 4 .u32 flag;\n\
         ld.param.u64 %x, [vars];\nadd.u64 %f, %x, 256;\nmov.u32 %rank, %cluster_ctarank;\nmov.u32 %t, 0;\nst.shared.u32 [flag], %t;\n\
         mbarrier.init.shared.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\nld.global.u32 %r, [%x];\nst.global.u32 [%x+512], %r;\n\
         mov.u32 %there, flag;\nmapa.shared::cluster.u32 %remote, %there, 1;\nmov.u32 %there, bar;\nmapa.shared::cluster.u32 %there, %there, 1;\n\
         barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\nld.global.u32 %r, [%x];\nst.global.u32 [%x+512], %r;\n\
         setp.ne.u32 %p, %rank, 0;\n@%p bra READER;\n\
         mov.u32 %n, 50;\nDELAY:\nsub.u32 %n, %n, 1;\nsetp.ne.u32 %q, %n, 0;\n@%q bra DELAY;\n\
         st.global.u32 [%x], 7;\n{tell}\nbra END;\n\
         READER:\n{learn}\nld.global.u32 %r, [%x];\nst.global.u32 [%x+1024], %r;\nEND:\n\
         barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}}\n"
    );
    for gpu in ["h100-sxm5", "h100-pcie", "h200"] {
        let config = preset::load(gpu, &[]).unwrap_or_else(|error| panic!("{error}")).config;
        let mut scenario = scenario(text.clone(), [2, 1], vec![vec![0; 2048]]);
        scenario.launches[0].cluster = Some([2, 1, 1]);
        let (_, memory) = finished(&scenario, config);
        let word = |at: usize| u32::from_le_bytes(memory[0][at..at + 4].try_into().expect("four bytes"));
        assert_eq!([word(512), word(1024)], [0, 7], "on {gpu}: {tell} / {learn}");
    }
}

/// A loop that repeats an access until `%t` is not 0.
fn spin(access: &str) -> String {
    format!("WAIT:\n{access};\nsetp.eq.u32 %q, %t, 0;\n@%q bra WAIT;\n")
}

#[test]
fn flag_in_global_memory_makes_the_data_visible() {
    let relaxed = spin("ld.relaxed.cluster.global.u32 %t, [%f]");
    for fence in ["fence.acq_rel.cluster;", "fence.sc.cluster;"] {
        message(
            &format!("{fence}\nst.relaxed.cluster.global.u32 [%f], 1;"),
            &format!("{relaxed}{fence}"),
        );
    }
    message(
        "st.release.cluster.global.u32 [%f], 1;",
        &spin("ld.acquire.cluster.global.u32 %t, [%f]"),
    );
    message(
        "atom.acq_rel.cluster.global.exch.b32 %t, [%f], 1;",
        &spin("atom.acquire.cluster.global.add.u32 %t, [%f], 0"),
    );
}

#[test]
fn flag_in_the_readers_shared_memory_makes_the_data_visible() {
    message(
        "st.release.cluster.shared::cluster.u32 [%remote], 1;",
        &spin("ld.acquire.cluster.shared::cta.u32 %t, [flag]"),
    );
    message(
        "fence.acq_rel.cluster;\nst.relaxed.cluster.shared::cluster.u32 [%remote], 1;",
        &format!(
            "{}fence.acq_rel.cluster;",
            spin("ld.relaxed.cluster.shared::cta.u32 %t, [flag]")
        ),
    );
}

#[test]
fn cluster_barrier_makes_the_data_visible() {
    message(
        "barrier.cluster.arrive;\nbarrier.cluster.wait;",
        "barrier.cluster.arrive;\nbarrier.cluster.wait;",
    );
    message(
        "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;",
        "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;",
    );
}

#[test]
fn mbarrier_of_cluster_scope_makes_the_data_visible() {
    for wait in ["try_wait", "test_wait"] {
        message(
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%there];",
            &format!("WAIT:\nmbarrier.{wait}.parity.acquire.cluster.shared::cta.b64 %q, [bar], 0;\n@!%q bra WAIT;"),
        );
    }
}
