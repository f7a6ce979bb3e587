//! Accesses to the shared memory of a block of the cluster that has ended. On silicon they are faults.

use warpwave_components::proto::launch::TrapKind;

use super::Kernel;

/// A kernel for clusters of two blocks of 32 threads. Block 1 leaves at `leave`, and block 0 performs `access` 3 microseconds later.
/// `%far` and `%fargate` are the addresses of the word of the thread and of the mbarrier in the other block.
fn kernel(leave: &str, access: &str) -> Kernel {
    let text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 data) .explicitcluster .reqnctapercluster 2, 1, 1 {{\n\
         .reg .b32 %r<3>, %tid, %rank, %other, %x, %mine, %far, %fargate;\n.reg .b64 %data, %generic;\n.reg .b16 %mask;\n\
         .reg .pred %p, %first;\n.shared .align 128 .b8 words[512];\n.shared .align 8 .b64 gate;\n\
         ld.param.u64 %data, [data];\nmov.u32 %tid, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nxor.b32 %other, %rank, 1;\n\
         mov.u32 %mine, words;\nmad.lo.u32 %mine, %tid, 16, %mine;\nmapa.shared::cluster.u32 %far, %mine, %other;\n\
         mov.u32 %fargate, gate;\nmapa.shared::cluster.u32 %fargate, %fargate, %other;\n\
         cvt.u64.u32 %generic, %mine;\ncvta.shared.u64 %generic, %generic;\nmapa.u64 %generic, %generic, %other;\n\
         mov.u32 %x, 7;\nst.shared.u32 [%mine], %x;\nsetp.eq.u32 %first, %tid, 0;\n\
         @%first mbarrier.init.shared.b64 [gate], 64;\nfence.mbarrier_init.release.cluster;\n\
         barrier.cluster.arrive;\nbarrier.cluster.wait;\nsetp.eq.u32 %p, %rank, 1;\n@%p {leave};\nnanosleep.u32 3000;\n\
         {access}\nEND:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}}\n"
    );
    Kernel::of(&text).sizes(2, 32).input(&[1; 64])
}

/// Accesses of each kind.
const ACCESSES: [&str; 12] = [
    "ld.shared::cluster.u32 %x, [%far];",
    "ld.shared::cluster.v4.u32 {%x, %r0, %r1, %r2}, [%far];",
    "ld.u32 %x, [%generic];",
    "st.shared::cluster.u32 [%far], %tid;",
    "st.u32 [%generic], %tid;",
    "atom.shared::cluster.add.u32 %x, [%far], 1;",
    "red.shared::cluster.add.u32 [%far], 1;",
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%fargate];",
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%far], %x, [%fargate];",
    "@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%far], [%mine], 128, [%fargate];",
    "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%far], [%data], 128, [%fargate];",
    "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%mine], [%data], 128, [gate], 3;",
];

/// A copy may be in flight when its block has nothing left to do.
const PAUSE: &str = "nanosleep.u32 3000;";

#[test]
fn access_to_a_block_that_has_ended_traps_and_names_its_rank() {
    for access in ACCESSES {
        for access in [access.to_owned(), format!("{access}\n{PAUSE}")] {
            let trap = kernel("ret", &access).trap_of_machine();
            assert_eq!(trap.kind, TrapKind::EndedCta(1), "{access}");
            assert_eq!((trap.block, trap.thread), ([0; 3], [0; 3]), "{access}");
        }
    }
}

#[test]
fn access_to_a_block_that_waits_at_a_cluster_barrier_is_performed() {
    for access in ACCESSES {
        kernel("bra END", &format!("{access}\n{PAUSE}")).holds();
    }
}

/// Blocks 1 and 3 end at once. Their slots go to a later cluster. Then block 0 reads the word of block 1, and would find that of a later block.
#[test]
fn access_to_a_slot_with_a_later_block_traps() {
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1 {\n\
        .reg .b32 %block, %x, %far;\n.reg .b64 %out;\n.reg .pred %p;\n.shared .align 4 .b32 word[4096];\n\
        mov.u32 %block, %ctaid.x;\nst.shared.u32 [word], %block;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
        setp.eq.u32 %p, %block, 1;\n@%p ret;\nsetp.eq.u32 %p, %block, 3;\n@%p ret;\nsetp.eq.u32 %p, %block, 0;\n@%p bra FIRST;\n\
        nanosleep.u32 40000;\nret;\nFIRST:\nnanosleep.u32 20000;\nmov.u32 %far, word;\nmapa.shared::cluster.u32 %far, %far, 1;\n\
        ld.shared::cluster.u32 %x, [%far];\nld.param.u64 %out, [out];\nst.global.u32 [%out], %x;\nret;\n}\n";
    let kernel = Kernel::of(text).sizes(64, 32).output(&[0]);
    assert_eq!(kernel.trap_of_machine().kind, TrapKind::EndedCta(1));
}
