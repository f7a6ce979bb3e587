//! Vectors that four registers cannot hold: 256 bits of global memory, and eight elements of 2 bytes.

use super::Kernel;
use warpwave_components::proto::launch::TrapKind;

/// A kernel of 32 threads. Each has 32 bytes of both buffers: `%i` and `%o` are their addresses, with `shift` bytes added to `%i`.
fn kernel(shift: u32, body: &str) -> String {
    format!(
        ".version 8.8\n.target sm_100\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .b16 %h<8>;\n.reg .b32 %t, %r<8>;\n.reg .b64 %i, %o, %d<4>;\n.reg .f32 %f<8>;\n.reg .f64 %g<4>;\n.reg .pred %p;\n\
         .shared .align 16 .b8 tile[512];\n\
         ld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nsetp.lt.u32 %p, %t, 5;\n\
         mad.wide.u32 %i, %t, 32, %i;\nmad.wide.u32 %o, %t, 32, %o;\nadd.u64 %i, %i, {shift};\n{body}\nret;\n}}\n"
    )
}

/// Word `n` of the input, different for each `n`.
fn input(n: u32) -> u32 {
    n.wrapping_mul(0x9e37_79b9) ^ 0x8001_7fff
}

fn inputs() -> Vec<u32> {
    (0..256).map(input).collect()
}

#[test]
fn copies_of_256_bits_keep_every_word() {
    let lists: [(&str, &[&str], &str); 4] = [
        ("v8", &["b32", "u32", "s32"], "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"),
        ("v8", &["f32"], "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"),
        ("v4", &["b64", "u64", "s64"], "{%d0, %d1, %d2, %d3}"),
        ("v4", &["f64"], "{%g0, %g1, %g2, %g3}"),
    ];
    for (vector, types, list) in lists {
        for ty in types {
            for space in [".global", ""] {
                let access = format!("{space}.{vector}.{ty}");
                let text = kernel(0, &format!("ld{access} {list}, [%i];\nst{access} [%o], {list};"));
                Kernel::of(&text).input(&inputs()).output(&inputs()).holds();
            }
        }
    }
}

/// The address is a target of the first half, and the second half uses it too.
#[test]
fn address_may_be_a_target() {
    let body =
        "mov.u64 %d0, %i;\nld.global.v4.b64 {%d1, %d0, %d2, %d3}, [%d0];\nst.global.v4.b64 [%o], {%d1, %d0, %d2, %d3};";
    Kernel::of(&kernel(0, body)).input(&inputs()).output(&inputs()).holds();
}

#[test]
fn sinks_guards_and_offsets_select_words() {
    let body = "mov.b32 %r0, 7;\nmov.b32 %r7, 8;\n@%p ld.global.v8.u32 {%r0, _, _, _, _, _, _, %r7}, [%i+-32];\n\
                st.global.v2.u32 [%o+24], {%r0, %r7};";
    // The offset takes the shift back.
    let text = kernel(32, body);
    let expected: Vec<u32> = (0..256)
        .map(|n| match (n % 8, n / 8 < 5) {
            (6, true) => input(n - 6),
            (7, true) => input(n),
            (6, false) => 7,
            (7, false) => 8,
            _ => 0,
        })
        .collect();
    Kernel::of(&text).input(&inputs()).output(&expected).holds();
}

#[test]
fn eight_halves_are_loaded_with_their_sign() {
    // The halves go through shared memory. Each word of the result is the sum of two halves of thread t.
    let list = "{%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}";
    let sums: String = (0..4)
        .map(|n| {
            let (low, high) = (2 * n, 2 * n + 1);
            format!("add.s32 %r{n}, %r{low}, %r{high};\n")
        })
        .collect();
    let body = format!(
        "mad.lo.u32 %t, %t, 16, 0;\nmov.u32 %r0, tile;\nadd.u32 %t, %t, %r0;\nld.global.v8.b16 {list}, [%i];\n\
         st.shared.v8.b16 [%t], {list};\nld.shared.v8.s16 {{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}}, [%t];\n{sums}\
         st.global.v4.u32 [%o], {{%r0, %r1, %r2, %r3}};"
    );
    let sum = |word: u32| i32::from(word as i16) + i32::from((word >> 16) as i16);
    let expected = (0..256).map(|n| if n % 8 < 4 { sum(input(n)) as u32 } else { 0 });
    let expected: Vec<u32> = expected.collect();
    Kernel::of(&kernel(0, &body)).input(&inputs()).output(&expected).holds();
}

/// PTX: an address is a multiple of the size of the whole vector.
#[test]
fn address_that_is_no_multiple_of_the_vector_traps() {
    for (shift, access) in [
        (16, "ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%i];"),
        (16, "ld.global.v4.f64 {%g0, %g1, %g2, %g3}, [%i];"),
        (16, "st.global.v4.b64 [%i], {%d0, %d1, %d2, %d3};"),
        // Eight halves are 16 bytes.
        (8, "ld.global.v8.b16 {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}, [%i];"),
    ] {
        let text = kernel(
            shift,
            &format!(
                "{access}\nst.global.v2.b32 [%o], {{%r0, %r7}};\nst.global.v4.b16 [%o+8], {{%h0, %h1, %h6, %h7}};\n\
                 st.global.v2.f64 [%o+16], {{%g0, %g3}};"
            ),
        );
        let line = 1 + text.lines().position(|line| line == access).expect("it is in the text");
        // Each half is read: the compiler drops an access that nothing reads, and its check. The last thread must stay within the input.
        let mut words = inputs();
        words.extend([0; 16]);
        let kernel = Kernel::of(&text).input(&words).output(&[0; 256]);
        kernel.traps(TrapKind::Misaligned, line as u32);
    }
}
