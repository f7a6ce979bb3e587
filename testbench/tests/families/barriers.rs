//! Barriers among the warps of a block.

use super::{Kernel, one_word_each};
use warpwave_components::proto::launch::TrapKind;

const NVCC: &str = include_str!("named_barriers.ptx");

#[test]
fn named_barriers_producer_and_consumer_take_turns() {
    let input: Vec<u32> = (0..7 * 32).map(|n| n * n + 1).collect();
    let sums: Vec<u32> = (0..32)
        .map(|lane| (0..7).map(|round| input[32 * round + 31 - lane]).sum())
        .collect();
    let kernel = Kernel::of(NVCC).entry("named_barriers").sizes(1, 64);
    kernel.input(&input).output(&sums).number(7).holds();
}

#[test]
fn mbarrier_phase_makes_earlier_stores_visible() {
    let input: Vec<f32> = (0..5 * 64).map(|n| n as f32 * 0.5).collect();
    let sum = |thread: usize| (0..5).fold(0.0f32, |sum, phase| sum + input[64 * phase + (thread ^ 1)]);
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
    let sums: Vec<f32> = (0..64).map(sum).collect();
    let kernel = Kernel::of(NVCC).entry("mbarrier_phases").sizes(1, 64);
    kernel.input(&bits(&input)).output(&bits(&sums)).number(5).holds();
}

/// Thread 96 arrives last and late. The first warp waits by parity through a generic address, without a spin loop.
#[test]
fn mbarrier_try_wait_holds_until_the_last_arrival() {
    let body = "\
        .shared .align 8 .b64 bar;\n.shared .align 4 .b32 word;\n\
        setp.ne.u32 %p1, %t, 0;\nmov.u64 %d1, bar;\ncvta.shared.u64 %d2, %d1;\n\
        @!%p1 mbarrier.init.shared::cta.b64 [bar], 2;\nbar.sync 0;\nmov.u32 %r, 0;\n\
        setp.eq.u32 %p2, %t, 96;\nsetp.eq.u32 %p3, %t, 40;\nsetp.lt.u32 %p4, %t, 32;\n\
        @%p3 mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];\n\
        @%p2 nanosleep.u32 3000;\n@%p2 st.shared.u32 [word], 77;\n@%p2 mbarrier.arrive.b64 %d3, [%d2];\n\
        @!%p4 bra done;\n\
        again: mbarrier.try_wait.parity.acquire.cta.b64 %p5, [%d2], 0;\n@!%p5 bra again;\n\
        ld.shared.u32 %r, [word];\ndone:";
    let expected: Vec<u32> = (0..128).map(|thread| if thread < 32 { 77 } else { 0 }).collect();
    Kernel::of(&one_word_each("sm_90", body))
        .sizes(1, 128)
        .output(&expected)
        .holds();
}

/// A thread that drops out is not expected in the second phase. A token has the number of pending arrivals.
#[test]
fn mbarrier_tokens_count_what_is_pending() {
    let body = "\
        .shared .align 8 .b64 bar;\n\
        setp.ne.u32 %p1, %t, 0;\n@%p1 bra done;\n\
        mbarrier.init.shared.b64 [bar], 5;\n\
        mbarrier.arrive.noComplete.shared.b64 %d1, [bar], 3;\n\
        mbarrier.arrive_drop.shared.b64 %d2, [bar];\n\
        mbarrier.test_wait.shared.b64 %p2, [bar], %d2;\n\
        mbarrier.arrive.shared.b64 %d3, [bar];\n\
        mbarrier.test_wait.shared.b64 %p3, [bar], %d2;\n\
        mbarrier.arrive.shared.b64 %d4, [bar];\n\
        mbarrier.pending_count.b64 %a1, %d1;\nmbarrier.pending_count.b64 %a2, %d2;\n\
        mbarrier.pending_count.b64 %a3, %d4;\n\
        selp.b32 %a4, 1, 0, %p2;\nselp.b32 %a5, 1, 0, %p3;\n\
        mad.lo.u32 %r, %a1, 10, %a2;\nmad.lo.u32 %r, %r, 10, %a3;\nmad.lo.u32 %r, %r, 10, %a4;\nmad.lo.u32 %r, %r, 10, %a5;\n\
        mbarrier.inval.shared.b64 [bar];\ndone:";
    // Pending arrivals: five, then two. In the second phase four, since one thread has dropped out.
    Kernel::of(&one_word_each("sm_80", body))
        .sizes(1, 1)
        .output(&[52401])
        .holds();
}

/// 70 threads in three warps, the last one with six lanes. The second barrier is under a branch that one warp skips.
#[test]
fn counting_barriers_count_all_and_any() {
    let body = "\
        and.b32 %a1, %t, 3;\nsetp.eq.u32 %p1, %a1, 1;\nsetp.lt.u32 %p2, %t, 70;\nsetp.gt.u32 %p3, %t, 70;\n\
        bar.red.popc.u32 %a2, 0, %p1;\n\
        bar.red.and.pred %p4, 0, %p2;\nbar.red.and.pred %p5, 0, !%p1;\n\
        bar.red.or.pred %p6, 0, %p3;\nbar.red.or.pred %p7, 0, %p1;\n\
        selp.b32 %a3, 1, 0, %p4;\nselp.b32 %a4, 1, 0, %p5;\nselp.b32 %a5, 1, 0, %p6;\nselp.b32 %a6, 1, 0, %p7;\n\
        mov.u32 %a7, 0;\nsetp.ge.u32 %p2, %t, 64;\n@%p2 bra over;\n\
        barrier.cta.red.popc.aligned.u32 %a7, 1, 64, %p1;\nover:\n\
        mad.lo.u32 %r, %a2, 10, %a3;\nmad.lo.u32 %r, %r, 10, %a4;\nmad.lo.u32 %r, %r, 10, %a5;\nmad.lo.u32 %r, %r, 10, %a6;\n\
        mad.lo.u32 %r, %r, 100, %a7;";
    // Threads 1, 5, ..., 69 are 18; 16 of them in the first two warps.
    let expected: Vec<u32> = (0..70)
        .map(|thread| 18_100_100 + if thread < 64 { 16 } else { 0 })
        .collect();
    Kernel::of(&one_word_each("sm_80", body))
        .sizes(2, 70)
        .output(&expected)
        .holds();
}

/// Barrier number and thread count in registers. Traps: barrier 16, a count of half a warp, an arrival without a count.
#[test]
fn wrong_barrier_number_or_count_in_a_register_traps() {
    let cases = [
        ("bar.sync %a1", 16, 0),
        ("bar.sync %a1", u32::MAX, 0),
        ("bar.sync %a1, %a2", 0, 48),
        ("bar.sync 1, %a2", 0, 33),
        ("barrier.sync %a1, %a2", 15, 1),
        ("bar.arrive 1, %a2", 0, 48),
        ("bar.arrive 1, %a2", 0, 0),
        ("bar.red.popc.u32 %a3, 2, %a2, %p1", 0, 31),
        ("bar.red.or.pred %p2, %a1, %p1", 17, 0),
    ];
    for (barrier, number, threads) in cases {
        let body = format!(
            "setp.eq.u32 %p1, %t, 0;\nmov.u32 %a1, {number};\nmov.u32 %a2, {threads};\nmov.u32 %r, 0;\n{barrier};"
        );
        let text = one_word_each("sm_80", &body);
        let line = 1 + text.lines().position(|line| line.starts_with(barrier)).unwrap() as u32;
        Kernel::of(&text)
            .sizes(1, 64)
            .output(&[0; 64])
            .traps(TrapKind::Barrier, line);
    }
}

/// Count of an mbarrier in a register. Traps: no arrival, and more than the 20 bits of a count hold. Only thread 3 executes the instruction.
#[test]
fn wrong_count_of_an_mbarrier_in_a_register_traps() {
    let body = |count: u32| {
        format!(
            ".shared .align 8 .b64 gate;\nsetp.eq.u32 %p1, %t, 3;\nmov.u32 %r, 5;\nsub.u32 %a1, %t, 3;\n\
             add.u32 %a1, %a1, {count};\n@%p1 mbarrier.init.shared.b64 [gate], %a1;"
        )
    };
    for count in [0, 1 << 20, 1 << 31, u32::MAX] {
        let text = one_word_each("sm_80", &body(count));
        let line = 1 + text.lines().position(|line| line.contains("mbarrier.init")).unwrap() as u32;
        Kernel::of(&text)
            .sizes(1, 64)
            .output(&[0; 64])
            .traps(TrapKind::MbarrierCount, line);
    }
    // Other threads have a count of 0 or above the largest one, and skip the instruction.
    for count in [1, (1 << 20) - 1] {
        Kernel::of(&one_word_each("sm_80", &body(count)))
            .sizes(1, 64)
            .output(&[5; 64])
            .holds();
    }
}

/// Both warps arrive at barrier 15 with a count of 64 threads. Lanes with a false guard do not give a number.
#[test]
fn valid_barrier_number_and_count_in_registers_release_the_block() {
    let body = "mov.u32 %a1, 15;\nmov.u32 %a2, 64;\nsetp.gt.u32 %p1, %t, 64;\nmov.u32 %a3, 16;\n\
        @%p1 bar.sync %a3, %a1;\nbar.sync %a1, %a2;\nbar.sync %a1;\nmov.u32 %r, 7;";
    Kernel::of(&one_word_each("sm_80", body))
        .sizes(1, 64)
        .output(&[7; 64])
        .holds();
}

/// Each half of warp 0 arrives at barrier 1 in a branch of its own. The two arrivals count as one warp of 32 threads, so warp 2 also waits for
/// warp 1, which writes the word 3000 ns later.
#[test]
fn arrivals_of_diverged_lanes_count_once_for_the_warp() {
    let text = "
        .version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 out) {\n\
        .reg .b32 %t, %warp, %lane, %s, %r;\n.reg .b64 %o;\n.reg .pred %p;\n.shared .align 4 .b32 word;\n\
        ld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nand.b32 %lane, %t, 31;\nshr.u32 %warp, %t, 5;\nmov.u32 %s, word;\n\
        mov.u32 %r, 0;\nst.shared.u32 [%s], %r;\nbar.sync 0;\n\
        setp.eq.u32 %p, %warp, 1;\n@%p bra writer;\nsetp.eq.u32 %p, %warp, 2;\n@%p bra reader;\n\
        setp.lt.u32 %p, %lane, 16;\n@%p bra low;\n\
        add.u32 %r, %r, 5;\nbarrier.arrive 1, 96;\nmul.lo.u32 %r, %r, %r;\nbra done;\n\
        low:\nbarrier.arrive 1, 96;\nadd.u32 %r, %r, 3;\nbra done;\n\
        writer:\nnanosleep.u32 3000;\nmov.u32 %r, 11;\nst.shared.u32 [%s], %r;\nbarrier.arrive 1, 96;\nbra done;\n\
        reader:\nbarrier.sync 1, 96;\nld.shared.u32 %r, [%s];\n\
        done:\nmad.wide.u32 %o, %t, 4, %o;\nst.global.u32 [%o], %r;\nret;\n}\n";
    let expected: Vec<u32> = (0..96)
        .map(|thread| match thread {
            0..16 => 3,
            16..32 => 25,
            _ => 11,
        })
        .collect();
    Kernel::of(text).sizes(1, 96).output(&expected).holds();
}

/// Warp 0 writes late, warp 1 reads behind a barrier of 64 threads. The guard is false in all of warp 2, so warp 2 does not arrive.
#[test]
fn warp_with_a_false_guard_does_not_arrive_at_a_block_barrier() {
    for barrier in [
        "bar.sync 1, 64",
        "barrier.sync 1, 64",
        "bar.red.popc.u32 %a1, 1, 64, %p1",
    ] {
        let body = format!(
            ".shared .align 4 .b32 word;\nsetp.lt.u32 %p1, %t, 64;\nsetp.lt.u32 %p2, %t, 32;\nmov.u32 %r, 5;\n\
             @%p2 nanosleep.u32 3000;\n@%p2 st.shared.u32 [word], 77;\n@%p1 {barrier};\n@%p1 ld.shared.u32 %r, [word];"
        );
        let expected: Vec<u32> = (0..96).map(|thread| if thread < 64 { 77 } else { 5 }).collect();
        let kernel = Kernel::of(&one_word_each("sm_80", &body)).sizes(1, 96);
        kernel.output(&expected).holds();
    }
}

/// The guard of `bar.arrive` is true in the late writer and false in warp 2.
#[test]
fn warp_with_a_false_guard_does_not_pass_as_a_producer() {
    let body = ".shared .align 4 .b32 word;\nsetp.lt.u32 %p1, %t, 32;\nshr.u32 %a1, %t, 5;\nsetp.eq.u32 %p2, %a1, 1;\nmov.u32 %r, 5;\n\
        @%p1 nanosleep.u32 3000;\n@%p1 st.shared.u32 [word], 77;\n@%p1 bar.arrive 1, 64;\n\
        @%p2 bar.sync 1, 64;\n@%p2 ld.shared.u32 %r, [word];";
    let expected: Vec<u32> = (0..96).map(|thread| if thread / 32 == 1 { 77 } else { 5 }).collect();
    let kernel = Kernel::of(&one_word_each("sm_80", body)).sizes(1, 96);
    kernel.output(&expected).holds();
}

/// The upper lanes wait for all threads of their warp (PTX ISA, `barrier`). The lower lanes store first and come later.
#[test]
fn lanes_with_a_false_guard_go_on_and_arrive_later() {
    let body = ".shared .align 4 .b32 word;\nsetp.ge.u32 %p1, %t, 16;\nmov.u32 %r, 5;\n\
        @%p1 barrier.sync 1, 32;\n@%p1 ld.shared.u32 %r, [word];\n\
        @!%p1 st.shared.u32 [word], 77;\n@!%p1 barrier.sync 1, 32;";
    let expected: Vec<u32> = (0..32).map(|thread| if thread < 16 { 5 } else { 77 }).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

/// In warp 0 half of the lanes arrive and half wait, in either order of the branches. Warp 1 writes only after a sign of the lanes that
/// have arrived, so these must not wait, and the others must not pass.
#[test]
fn lanes_of_one_warp_arrive_and_wait_at_one_barrier() {
    for (arrives, waits) in [("ge", 16..32), ("lt", 0..16)] {
        let body = format!(
            ".shared .align 4 .b32 word;\n.shared .align 4 .b32 sign;\n\
             mov.u32 %r, 5;\nmov.u32 %a1, 0;\nst.shared.u32 [sign], %a1;\nbar.sync 0;\n\
             setp.ge.u32 %p1, %t, 32;\n@%p1 bra writer;\nsetp.{arrives}.u32 %p2, %t, 16;\n@%p2 bra reader;\n\
             barrier.arrive 1, 64;\nmov.u32 %a1, 1;\nst.volatile.shared.u32 [sign], %a1;\nbra done;\n\
             reader:\nbarrier.sync 1, 64;\nld.shared.u32 %r, [word];\nbra done;\n\
             writer:\nld.volatile.shared.u32 %a1, [sign];\nsetp.eq.u32 %p1, %a1, 0;\n@%p1 bra writer;\n\
             mov.u32 %a1, 77;\nst.shared.u32 [word], %a1;\nbarrier.arrive 1, 64;\ndone:"
        );
        let expected: Vec<u32> = (0..64)
            .map(|thread| if waits.contains(&thread) { 77 } else { 5 })
            .collect();
        let kernel = Kernel::of(&one_word_each("sm_80", &body)).sizes(1, 64);
        kernel.output(&expected).holds();
    }
}

/// In block 0 the upper lanes skip the wait of the cluster barrier and give a sign. Block 1 arrives only after the sign: its first arrival
/// has a false guard.
#[test]
fn guarded_lanes_alone_arrive_and_wait_at_the_cluster_barrier() {
    let body = "mov.u32 %a1, %cluster_ctarank;\nsetp.eq.u32 %p1, %a1, 1;\nmov.u32 %r, 5;\nld.param.u64 %d1, [out];\n\
        mad.wide.u32 %o, %a1, 128, %o;\nsetp.lt.u32 %p2, %t, 16;\n@!%p1 barrier.cluster.arrive;\n@%p1 bra other;\n\
        @%p2 barrier.cluster.wait;\n@%p2 ld.volatile.global.u32 %r, [%d1+256];\n@!%p2 st.volatile.global.u32 [%d1+256], 1;\nbra done;\n\
        other:\nld.volatile.global.u32 %a2, [%d1+256];\nsetp.eq.u32 %p3, %a2, 0;\n@%p3 bra other;\n\
        st.volatile.global.u32 [%d1+256], 2;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\ndone:";
    let text = one_word_each("sm_90", body).replace(
        "(.param .u64 out)\n",
        "(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1\n",
    );
    let mut expected: Vec<u32> = vec![5; 64];
    expected[..16].fill(2);
    expected.push(2);
    Kernel::of(&text).sizes(2, 32).output(&expected).holds();
}
