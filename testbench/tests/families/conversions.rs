//! Conversions and wide products whose result depends on a modifier, a literal or the width of a register.

use super::{Kernel, one_word_each};

/// Runs code that leaves a word in `%r`, in each thread `%t`.
fn check(code: &str, expected: impl Fn(u32) -> u32) {
    println!("{code}");
    let body = format!(".reg .b16 %h<4>;\n.reg .f64 %g;\nadd.s32 %a1, %t, -16;\ncvt.s64.s32 %d1, %a1;\n{code}");
    let words: Vec<u32> = (0..32).map(expected).collect();
    Kernel::of(&one_word_each("sm_90", &body)).output(&words).holds();
}

/// PTX ISA, `atom`: f32 addition flushes subnormal numbers in global memory, and keeps them in shared memory.
#[test]
fn f32_atomics_flush_subnormal_numbers_in_global_memory_only() {
    let shared = ".shared .b32 tile[32];\nmov.u32 %a2, tile;\nmad.lo.u32 %a2, %t, 4, %a2;\n";
    let subnormal = "mov.b32 %f1, %t;\n";
    for access in [
        "atom.global.add.f32 %f2, [%o], %f1;",
        "red.global.add.f32 [%o], %f1;",
        "red.add.f32 [%o], %f1;",
    ] {
        check(
            &format!("{subnormal}st.global.u32 [%o], 3;\n{access}\nld.global.u32 %r, [%o];"),
            |_| 0,
        );
    }
    for access in [
        "atom.shared.add.f32 %f2, [%a2], %f1;",
        "red.shared.add.f32 [%a2], %f1;",
        "cvt.u64.u32 %d2, %a2;\ncvta.shared.u64 %d2, %d2;\natom.add.f32 %f2, [%d2], %f1;",
    ] {
        check(
            &format!("{shared}{subnormal}st.shared.u32 [%a2], 3;\n{access}\nld.shared.u32 %r, [%a2];"),
            |t| t + 3,
        );
    }
}
