//! Atomics of halves and vectors, asynchronous copies, and remote accesses that complete on an mbarrier of another CTA.

use half::f16;
use warpwave::gpu::{Factory, Gpu, Shape};
use warpwave_components::preset;
use warpwave_components::proto::launch::TrapKind;
use warpwave_isa::exec::mbarrier::Fault;

use super::Kernel;

fn pair(low: f32, high: f32) -> u32 {
    u32::from(f16::from_f32(low).to_bits()) | u32::from(f16::from_f32(high).to_bits()) << 16
}

/// A kernel in which each thread accesses element `%t` mod 8, of `bytes` bytes. `%r` is 1, `%f` 1.0, `%h` 0.5 in f16, `%hx` a pair of them.
fn on_places(space: &str, bytes: u32, body: &str) -> String {
    let to_shared = "ld.global.b32 %x, [%p];\nst.shared.b32 [%s], %x;\nbar.sync 0;\n";
    let back = "bar.sync 0;\nld.shared.b32 %x, [%s];\nst.global.b32 [%p], %x;\n";
    let (before, behind) = if space == "shared" { (to_shared, back) } else { ("", "") };
    let at = if space == "shared" { "%at" } else { "%q" };
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 a) {{\n\
         .reg .b32 %t, %x, %s, %at, %r, %r1, %hx;\n.reg .f32 %f, %f<5>;\n.reg .b16 %h, %h<4>;\n.reg .b64 %p, %q;\n.shared .align 16 .b8 tile[128];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %s, tile;\nld.param.u64 %p, [a];\nand.b32 %x, %t, 7;\nmad.lo.u32 %at, %x, {bytes}, %s;\n\
         mad.wide.u32 %q, %x, {bytes}, %p;\nmad.lo.u32 %s, %t, 4, %s;\nmad.wide.u32 %p, %t, 4, %p;\n\
         mov.u32 %r, 1;\nmov.f32 %f, 0f3f800000;\nmov.b16 %h, 0x3800;\nmov.b32 %hx, 0x38003800;\n{before}{}\n{behind}ret;\n}}\n",
        body.replace("AT", at).replace("SPACE", space)
    )
}

#[test]
fn halves_are_added_without_touching_their_neighbours() {
    // The other half is a NaN and must not change.
    let before: Vec<u32> = (0..32)
        .map(|n| pair(n as f32, 0.0) | (0x7c01_0000 * u32::from(n >= 4)))
        .collect();
    for space in ["global", "shared"] {
        let two_bytes = on_places(space, 4, "atom.SPACE.add.noftz.f16 %h1, [AT], %h;");
        let after: Vec<u32> = (0..32)
            .map(|n| {
                if n < 8 {
                    pair(n as f32 + 2.0, 0.0) | before[n] & 0xffff_0000
                } else {
                    before[n]
                }
            })
            .collect();
        Kernel::of(&two_bytes).changed(&before, &after).holds();
        let compared = on_places(
            space,
            2,
            "mov.b16 %h1, 0;\nmov.b16 %h2, 77;\natom.SPACE.cas.b16 %h3, [AT], %h1, %h2;",
        );
        let zeros = vec![0; 32];
        let filled: Vec<u32> = (0..32).map(|n| if n < 4 { 77 | 77 << 16 } else { 0 }).collect();
        Kernel::of(&compared).changed(&zeros, &filled).holds();
        let reduced = on_places(space, 4, "red.SPACE.add.noftz.f16x2 [AT], %hx;");
        let start: Vec<u32> = (0..32).map(|n| pair(n as f32, -(n as f32))).collect();
        let end: Vec<u32> = (0..32)
            .map(|n| {
                if n < 8 {
                    pair(n as f32 + 2.0, 2.0 - n as f32)
                } else {
                    start[n]
                }
            })
            .collect();
        Kernel::of(&reduced).changed(&start, &end).holds();
    }
}

#[test]
fn vectors_of_atomics_change_every_element() {
    let ones = |n: usize| f32::to_bits(n as f32);
    let zeros = vec![0; 32];
    for (n, mnemonic, operands) in [
        (2, "red.global.v2.f32.add [AT], {%f, %f};", 4.0),
        (4, "red.global.v4.f32.add [AT], {%f, %f, %f, %f};", 4.0),
        (
            4,
            "atom.global.v4.f32.add {%f1, _, %f2, %f3}, [AT], {%f, %f, %f, %f};",
            4.0,
        ),
    ] {
        let text = on_places("global", 4 * n, mnemonic);
        let after: Vec<u32> = (0..32)
            .map(|at| if at < 8 * n { f32::to_bits(operands) } else { 0 })
            .collect();
        Kernel::of(&text).changed(&zeros, &after).holds();
    }
    // The atomics return the old values: with one thread per element, these are the initial ones.
    let text = on_places(
        "global",
        8,
        "mov.u32 %x, %tid.x;\nsetp.gt.u32 %p1, %x, 7;\n@%p1 ret;\natom.global.v2.f32.add {%f1, %f2}, [AT], {%f, %f};\nst.global.v2.f32 [AT+64], {%f2, %f1};",
    )
    .replace(".reg .b64 %p, %q;", ".reg .b64 %p, %q;\n.reg .pred %p1;");
    let before: Vec<u32> = (0..32).map(|n| if n < 16 { ones(n) } else { 0 }).collect();
    let after: Vec<u32> = (0..32)
        .map(|n| if n < 16 { ones(n + 1) } else { ones((n - 16) ^ 1) })
        .collect();
    Kernel::of(&text).changed(&before, &after).holds();
    let least = on_places(
        "global",
        8,
        "mov.b32 %x, 0xc0003c00;\nred.global.v2.f16x2.min.noftz [AT], {%x, %hx};",
    );
    let before = vec![pair(0.25, f32::NAN); 32];
    let after: Vec<u32> = (0..32)
        .map(|n| match n {
            16.. => before[n],
            _ if n % 2 == 0 => pair(0.25, -2.0),
            _ => pair(0.25, 0.5),
        })
        .collect();
    Kernel::of(&least).changed(&before, &after).holds();
}

/// Two blocks: each sends words, sums and arrivals to the other one, and waits for its own.
#[test]
fn remote_stores_and_sums_complete_on_the_mbarrier() {
    let text = "\
        .version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1 {\n\
        .reg .b32 %t, %rank, %peer, %x, %s, %far, %farbar;\n.reg .b64 %o, %g, %h;\n.reg .pred %p, %done;\n\
        .shared .align 16 .b32 words[48];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 arrivals;\n\
        mov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nxor.b32 %peer, %rank, 1;\nmov.u32 %s, words;\nmad.lo.u32 %s, %t, 4, %s;\n\
        mov.u32 %x, 1000;\nst.shared.u32 [%s], %x;\nsetp.lt.u32 %p, %t, 16;\n@%p st.shared.u32 [%s+128], %x;\n\
        setp.eq.u32 %p, %t, 0;\n@%p mbarrier.init.shared.b64 [bar], 1;\n@%p mbarrier.init.shared.b64 [arrivals], 32;\n\
        fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
        @%p mbarrier.arrive.expect_tx.shared.b64 %g, [bar], 160;\n\
        mapa.shared::cluster.u32 %far, %s, %peer;\nmov.u32 %x, bar;\nmapa.shared::cluster.u32 %farbar, %x, %peer;\n\
        mad.lo.u32 %x, %rank, 100, %t;\n\
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%far], %x, [%farbar];\n\
        setp.lt.u32 %p, %t, 8;\n\
        @%p red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%far+128], %x, [%farbar];\n\
        mov.u32 %x, arrivals;\nmapa.shared::cluster.u32 %far, %x, %peer;\n\
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far];\n\
        poll:\nmbarrier.try_wait.parity.shared.b64 %done, [bar], 0;\n@!%done bra poll;\n\
        poll2:\nmbarrier.try_wait.parity.shared.b64 %done, [arrivals], 0;\n@!%done bra poll2;\n\
        ld.param.u64 %o, [out];\nmad.wide.u32 %o, %rank, 128, %o;\nmad.wide.u32 %o, %t, 4, %o;\nld.shared.u32 %x, [%s];\n\
        setp.ge.u32 %p, %t, 24;\n@%p ld.shared.u32 %x, [%s+32];\nst.global.u32 [%o], %x;\n\
        barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n";
    let expected: Vec<u32> = (0..64)
        .map(|n| {
            let (rank, t) = (n / 32, n % 32);
            let from = 100 * (1 - rank);
            if t < 24 { from + t } else { 1000 + from + (t - 24) }
        })
        .collect();
    Kernel::of(text).sizes(2, 32).output(&expected).holds();
}

#[test]
fn isspacep_and_getctarank_give_space_and_block_of_an_address() {
    let text = "\
        .version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1 {\n\
        .reg .b32 %rank, %peer, %r, %b;\n.reg .b64 %o, %own, %far, %at, %mine;\n.reg .pred %p;\n.local .align 4 .b32 mine;\n.shared .align 4 .b32 word;\n\
        mov.u32 %rank, %cluster_ctarank;\nxor.b32 %peer, %rank, 1;\nmov.u64 %own, word;\ncvta.shared.u64 %own, %own;\nmapa.u64 %far, %own, %peer;\n\
        mov.u64 %mine, mine;\ncvta.local.u64 %mine, %mine;\n\
        ld.param.u64 %o, [out];\nmov.u32 %r, 0;\n";
    let spaces = [
        "global",
        "shared",
        "shared::cta",
        "shared::cluster",
        "local",
        "const",
        "param",
    ];
    let mut text = text.to_owned();
    for address in ["%o", "%own", "%far", "%mine"] {
        for space in spaces {
            text += &format!("isspacep.{space} %p, {address};\nshl.b32 %r, %r, 1;\n@%p or.b32 %r, %r, 1;\n");
        }
    }
    text += "mad.wide.u32 %at, %rank, 12, %o;\nst.global.u32 [%at], %r;\ngetctarank.u64 %b, %far;\nst.global.u32 [%at+4], %b;\n\
        cvt.u32.u64 %b, %own;\ngetctarank.shared::cluster.u32 %b, %b;\nst.global.u32 [%at+8], %b;\nret;\n}\n";
    let bits = 0b1000000_0111000_0001000_0000100;
    Kernel::of(&text).sizes(2, 32).output(&[bits, 1, 0, bits, 0, 1]).holds();
}

/// 128-bit values, and hints, which change nothing.
#[test]
fn values_of_128_bits_and_hints_leave_bytes_as_they_are() {
    let text = "\
        .version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) {\n\
        .reg .b64 %i, %o, %x, %y, %policy;\n.reg .b128 %q, %r;\n.reg .b32 %t, %w;\n.reg .b16 %h;\n.reg .b8 %a, %b;\n\
        mov.u32 %t, %tid.x;\nld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmad.wide.u32 %i, %t, 16, %i;\nmad.wide.u32 %o, %t, 16, %o;\n\
        createpolicy.fractional.L2::evict_last.b64 %policy, 0f3F000000;\nprefetch.global.L2 [%i];\n\
        ld.global.b128 %q, [%i];\nmov.b128 {%x, %y}, %q;\nmov.b128 %q, {%y, %x};\nmov.b128 %r, %q;\nst.global.b128 [%o], %r;\n\
        applypriority.global.L2::evict_normal [%o], 128;\nbrkpt;\npmevent 3;\n\
        ld.global.L2::cache_hint.b32 %w, [%o], %policy;\nmov.b32 {%a, %b, _, _}, %w;\nmov.b16 %h, {%b, %a};\ncvt.u32.u16 %w, %h;\n\
        st.global.L2::cache_hint.b32 [%o], %w, %policy;\natom.global.add.L2::cache_hint.u32 %w, [%o], 5, %policy;\nret;\n}\n";
    let input: Vec<u32> = (0..128).map(|n: u32| n.wrapping_mul(0x9e37_79b9)).collect();
    let output: Vec<u32> = (0..128)
        .map(|n| match (n % 4, input[n / 4 * 4 + (n % 4 + 2) % 4]) {
            (0, word) => (word >> 8 & 0xff | (word & 0xff) << 8) + 5,
            (_, word) => word,
        })
        .collect();
    Kernel::of(text).input(&input).output(&output).holds();
}

/// Bulk copies to the other block, bulk additions there, and bulk additions to global memory. Adjacent halves are not changed.
#[test]
fn bulk_copies_between_blocks_and_bulk_sums_change_every_element() {
    let text = "\
        .version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out, .param .u64 sums) .explicitcluster .reqnctapercluster 2, 1, 1 {\n\
        .reg .b32 %t, %rank, %peer, %x, %s, %from, %to, %bar;\n.reg .b64 %o, %g, %h;\n.reg .pred %p, %done;\n\
        .shared .align 16 .b32 own[32];\n.shared .align 16 .b32 given[32];\n.shared .align 8 .b64 full;\n\
        mov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nxor.b32 %peer, %rank, 1;\nmov.u32 %from, own;\nmad.lo.u32 %s, %t, 4, %from;\n\
        mad.lo.u32 %x, %rank, 100, %t;\nst.shared.u32 [%s], %x;\nmov.u32 %to, given;\n\
        setp.eq.u32 %p, %t, 0;\n@%p mbarrier.init.shared.b64 [full], 1;\n\
        fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
        @%p mbarrier.arrive.expect_tx.shared.b64 %g, [full], 192;\n\
        mapa.shared::cluster.u32 %to, %to, %peer;\nmov.u32 %bar, full;\nmapa.shared::cluster.u32 %bar, %bar, %peer;\n\
        @%p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%to], [%from], 128, [%bar];\n\
        @%p cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%to+64], [%from], 64, [%bar];\n\
        ld.param.u64 %g, [sums];\n\
        @%p cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%g], [%from], 64;\n\
        @%p cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%g+64], [%from+64], 64;\n\
        @%p cp.async.bulk.commit_group;\n@%p cp.async.bulk.wait_group 0;\n\
        poll:\nmbarrier.try_wait.parity.shared.b64 %done, [full], 0;\n@!%done bra poll;\n\
        ld.param.u64 %o, [out];\nmad.wide.u32 %o, %rank, 128, %o;\nmad.wide.u32 %o, %t, 4, %o;\nld.shared.u32 %x, [%s+128];\nst.global.u32 [%o], %x;\n\
        barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n";
    let copied: Vec<u32> = (0..64)
        .map(|n| {
            let (from, t) = (100 * (1 - n / 32), n % 32);
            if t < 16 { from + t } else { 2 * from + t + (t - 16) }
        })
        .collect();
    let summed: Vec<u32> = (0..32).map(|n| if n < 16 { 2 * n + 100 } else { 100 + n }).collect();
    Kernel::of(text).sizes(2, 32).output(&copied).output(&summed).holds();
}

/// `cp.async` with a source size: the rest of the destination is filled with zeros.
#[test]
fn asynchronous_copy_of_fewer_bytes_fills_the_rest_with_zeros() {
    for (size, cache) in [(4, "ca"), (8, "ca"), (16, "cg")] {
        // Thread t copies t mod (size + 1) bytes, and writes four words.
        let text = format!(
            ".version 8.6\n.target sm_80\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) {{\n\
             .reg .b32 %t, %s, %n, %r<4>;\n.reg .b64 %i, %o;\n.shared .align 16 .b8 room[512];\n\
             ld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %s, room;\nmad.lo.u32 %s, %t, 16, %s;\n\
             mad.wide.u32 %i, %t, 16, %i;\nmad.wide.u32 %o, %t, 16, %o;\nrem.u32 %n, %t, {};\n\
             mov.u32 %r0, 0xeeeeeeee;\nst.shared.v4.u32 [%s], {{%r0, %r0, %r0, %r0}};\n\
             cp.async.{cache}.shared.global [%s], [%i], {size}, %n;\ncp.async.wait_all;\n\
             ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%s];\nst.global.v4.u32 [%o], {{%r0, %r1, %r2, %r3}};\nret;\n}}\n",
            size + 1
        );
        let input: Vec<u8> = (0..512).map(|n| (n * 37 % 251 + 1) as u8).collect();
        let byte = |n: usize| match (n / 16 % (size + 1), n % 16) {
            (copied, at) if at < copied => input[n],
            (_, at) if at < size => 0,
            _ => 0xee,
        };
        let words = |byte: &dyn Fn(usize) -> u8| -> Vec<u32> {
            (0..128)
                .map(|word| u32::from_le_bytes(std::array::from_fn(|n| byte(4 * word + n))))
                .collect()
        };
        let kernel = Kernel::of(&text).input(&words(&|n| input[n]));
        kernel.output(&words(&byte)).holds();
    }
}

/// Sixteen stores with 32 bank conflicts each, through addresses from `mapa`: of the own block, then of the other one. The other block
/// reads the last words behind the barrier. With the shortest latencies the fence alone would not cover the stores.
#[test]
fn cluster_barrier_waits_for_stores_to_shared_memory_of_the_cluster() {
    let shortest = [
        "cluster.barrier_latency=4",
        "cluster.load_latency=27",
        "sm.fence.gpu_exclusive=0",
        "sm.fence.gpu_latency=1",
    ];
    for flip in [0, 1] {
        let stores: String = (0..16)
            .map(|n| format!("st.shared::cluster.u32 [%far+{}], %x;\n", 4 * n))
            .collect();
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1 {{\n\
             .reg .b32 %t, %rank, %to, %reader, %x, %s, %far;\n.reg .b64 %o;\n.shared .align 16 .b32 words[1024];\n\
             mov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nxor.b32 %to, %rank, {flip};\nxor.b32 %reader, %to, 1;\n\
             mov.u32 %s, words;\nmad.lo.u32 %s, %t, 128, %s;\nmad.lo.u32 %x, %rank, 100, %t;\nadd.u32 %x, %x, 1;\n\
             barrier.cluster.arrive;\nbarrier.cluster.wait;\nmapa.shared::cluster.u32 %far, %s, %to;\n{stores}\
             barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n\
             xor.b32 %to, %rank, 1;\nmapa.shared::cluster.u32 %far, %s, %to;\nld.shared::cluster.u32 %x, [%far+60];\n\
             ld.param.u64 %o, [out];\nmad.wide.u32 %o, %rank, 128, %o;\nmad.wide.u32 %o, %t, 4, %o;\nst.global.u32 [%o], %x;\n\
             barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}}\n"
        );
        // A block reads the words in the other block: its own ones, if that is where it stored.
        let expected: Vec<u32> = (0..64).map(|n| 100 * ((n / 32) ^ 1 ^ flip) + n % 32 + 1).collect();
        Kernel::of(&text).sizes(2, 32).output(&expected).set(&shortest).holds();
    }
}

/// PTX ISA, `min`: a NaN loses, two give the canonical NaN, and -0 is less than +0.
#[test]
fn bulk_minima_and_maxima_of_halves_follow_the_rules_for_nans_and_zeros() {
    for (ty, nan, one, canonical) in [("f16", 0x7e01, 0x3c00, 0x7fff), ("bf16", 0x7fc1, 0x3f80, 0x7fff)] {
        for (operation, zero, least) in [("min", 0x8000, true), ("max", 0, false)] {
            let (old, new) = (
                [nan, one, 0, 0x8000, nan, 0x8000 | one, one, 0],
                [one, nan, 0x8000, 0, nan, one, 0x8000 | one, 0],
            );
            let bound = if least { 0x8000 | one } else { one };
            let after = [one, one, zero, zero, canonical, bound, bound, 0];
            let words = |halves: [u32; 8]| {
                halves
                    .chunks(2)
                    .map(|pair| pair[0] | pair[1] << 16)
                    .collect::<Vec<u32>>()
            };
            let text = format!(
                ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 new, .param .u64 old) {{\n\
                 .reg .b32 %t, %x, %s;\n.reg .b64 %n, %o;\n.reg .pred %p;\n.shared .align 16 .b32 own[4];\n\
                 ld.param.u64 %n, [new];\nld.param.u64 %o, [old];\nmov.u32 %t, %tid.x;\nmov.u32 %s, own;\nmad.lo.u32 %x, %t, 4, %s;\n\
                 mad.wide.u32 %n, %t, 4, %n;\nsetp.eq.u32 %p, %t, 0;\nld.global.u32 %t, [%n];\nst.shared.u32 [%x], %t;\nbar.sync 0;\n\
                 @%p cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.{ty} [%o], [%s], 16;\n\
                 @%p cp.async.bulk.commit_group;\n@%p cp.async.bulk.wait_group 0;\nret;\n}}\n"
            );
            let kernel = Kernel::of(&text).sizes(1, 4).input(&words(new));
            kernel.changed(&words(old), &words(after)).holds();
        }
    }
}

/// A rank outside the cluster of two: an access through the address is a fault, in another block or memory it would be a silent error.
#[test]
fn access_through_an_address_of_a_rank_outside_the_cluster_traps() {
    // 31 and 47 are the distances to the windows of local memory and of parameters.
    for rank in [2, 15, 16, 31, 47, 255, 256, 257, u32::MAX] {
        let (operand, load) = (
            format!("{rank}"),
            "mapa.shared::cluster.u32 %far, %s, RANK;\nld.shared::cluster.u32 %x, [%far];",
        );
        let generic = "cvt.u64.u32 %d, %s;\ncvta.shared.u64 %d, %d;\nmapa.u64 %d, %d, RANK;\nld.u32 %x, [%d];";
        for (rank, load) in [
            (&operand[..], load),
            ("%r", load),
            (&operand[..], generic),
            ("%r", generic),
        ] {
            let load = load.replace("RANK", rank);
            let text = format!(
                ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1 {{\n\
                 .reg .b32 %r, %x, %s, %far;\n.reg .b64 %o, %d;\n.shared .align 16 .b32 word;\n\
                 ld.param.u64 %o, [out];\nmov.u32 %s, word;\nld.global.u32 %r, [%o];\n{load}\nst.global.u32 [%o], %x;\nret;\n}}\n"
            );
            let line = 1 + text
                .lines()
                .position(|line| line.contains("ld.shared") || line.contains("ld.u32"))
                .unwrap() as u32;
            let rank: u32 = operand.parse().unwrap();
            Kernel::of(&text)
                .sizes(2, 32)
                .input(&[rank])
                .traps(TrapKind::OutOfBounds, line);
        }
    }
}

/// Two blocks of a cluster read each other's shared memory. A load takes the distances of both SMs more, whichever block loads.
#[test]
fn remote_load_takes_the_distances_of_both_its_sms() {
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) {\n\
        .reg .b32 %r<8>;\n.reg .b64 %o;\n.shared .align 16 .b32 words[4];\n\
        ld.param.u64 %o, [out];\nmov.u32 %r0, %cluster_ctarank;\nmad.wide.u32 %o, %r0, 4, %o;\nxor.b32 %r1, %r0, 1;\n\
        mov.u32 %r2, words;\nmapa.shared::cluster.u32 %r2, %r2, %r1;\nmov.u32 %r3, 0;\n\
        st.shared.u32 [words], %r3;\n\
        barrier.cluster.arrive;\nbarrier.cluster.wait;\n\
        mov.u32 %r4, %clock;\nld.shared::cluster.u32 %r5, [%r2];\nadd.u32 %r2, %r2, %r5;\n\
        ld.shared::cluster.u32 %r5, [%r2];\nadd.u32 %r4, %r4, %r5;\nmov.u32 %r6, %clock;\nsub.u32 %r6, %r6, %r4;\n\
        st.global.u32 [%o], %r6;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n";
    let cycles = |distances: &str| {
        let set = ("cluster.sm_distances".to_owned(), distances.to_owned());
        let config = preset::load("tiny", &[set]).unwrap().config;
        let mut gpu = Gpu::with_factory(config, &Factory::new()).unwrap();
        let module = gpu.load(text).unwrap();
        let out = gpu.buffer(&[0u32; 2]).unwrap();
        gpu.launch(&module, "k", Shape::from((2, 1)).cluster(2), &[&out])
            .unwrap();
        gpu.read(&out)
    };
    let near = cycles("[0]");
    // Two loads, one after the other.
    assert_eq!(cycles("[0, 9]"), near.iter().map(|n| n + 18).collect::<Vec<_>>());
    assert_eq!(cycles("[7, 9]"), near.iter().map(|n| n + 32).collect::<Vec<_>>());
    assert_eq!(cycles("[3]"), near.iter().map(|n| n + 12).collect::<Vec<_>>());
}

/// PTX ISA, `mbarrier`: an arrival takes no more than is pending, and the tx-count has the range -(2^20 - 1) to 2^20 - 1.
#[test]
fn arrival_beyond_the_counts_of_an_mbarrier_traps() {
    let arrivals = |arrivals, pending, count| Fault::Arrivals {
        arrivals,
        pending,
        count,
    };
    let announced = "mbarrier.arrive.expect_tx.shared.b64 %g, [bar], 64;\n".repeat(3);
    let dropped = "mbarrier.arrive_drop.shared.b64 %g, [bar];\n".repeat(3);
    // The mbarrier waits for three arrivals. `far` is that of the other block.
    let cases = [
        ("", "mbarrier.arrive.shared.b64 %g, [bar], 4;", arrivals(4, 3, 3)),
        (
            "",
            "mbarrier.arrive.shared.b64 %g, [bar], 1048575;",
            arrivals(0xf_ffff, 3, 3),
        ),
        (
            "",
            "mbarrier.arrive.shared.b64 %g, [bar], 1048577;",
            arrivals(0x10_0001, 3, 3),
        ),
        (
            &announced,
            "mbarrier.arrive.release.cta.shared.b64 %g, [bar];",
            arrivals(1, 0, 3),
        ),
        (
            &dropped,
            "mbarrier.arrive.release.cta.shared.b64 %g, [bar];",
            arrivals(1, 0, 0),
        ),
        (
            "",
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far], 5;",
            arrivals(5, 3, 3),
        ),
        (
            "",
            "mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 1048576;",
            Fault::Bytes { bytes: 1 << 20 },
        ),
        (
            "mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 1048575;\nmbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 1048575;\n\
             mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 1048575;\n",
            "mbarrier.complete_tx.shared.b64 [bar], 2;",
            Fault::Bytes { bytes: -(1 << 20) - 1 },
        ),
        (
            "mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 1048512;\n",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%i], 128, [bar];",
            Fault::Bytes { bytes: -1048640 },
        ),
    ];
    for (before, instruction, fault) in cases {
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n\
             .entry k(.param .u64 in) .explicitcluster .reqnctapercluster 2, 1, 1 {{\n\
             .reg .b32 %rank, %far;\n.reg .b64 %i, %g;\n.reg .pred %p;\n\
             .shared .align 16 .b8 room[128];\n.shared .align 8 .b64 bar;\n\
             ld.param.u64 %i, [in];\nmov.u32 %rank, %cluster_ctarank;\nmov.u32 %far, bar;\nmapa.shared::cluster.u32 %far, %far, 1;\n\
             mbarrier.init.shared.b64 [bar], 3;\nfence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
             setp.eq.u32 %p, %rank, 1;\n@%p bra END;\n{before}{instruction}\nnanosleep.u32 2000;\nEND:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}}\n"
        );
        let line = 1 + text.lines().position(|line| line == instruction).unwrap() as u32;
        // The block sleeps until a copy has ended: a launch may end before its copies.
        let kernel = Kernel::of(&text).sizes(2, 1).input(&[0; 32]);
        kernel.traps(TrapKind::Mbarrier(fault), line);
    }
}
