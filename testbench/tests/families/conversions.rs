//! Conversions and wide products whose result depends on a modifier, a literal or the width of a register.

use super::{Kernel, one_word_each};

/// Runs code that leaves a word in `%r`, in each thread `%t`.
fn check(code: &str, expected: impl Fn(u32) -> u32) {
    println!("{code}");
    let body = format!(".reg .b16 %h<4>;\n.reg .f64 %g;\nadd.s32 %a1, %t, -16;\ncvt.s64.s32 %d1, %a1;\n{code}");
    let words: Vec<u32> = (0..32).map(expected).collect();
    Kernel::of(&one_word_each("sm_90", &body)).output(&words).holds();
}

/// `.sat` limits a float result to the range from 0 to 1 (PTX ISA, `cvt`).
#[test]
fn integers_saturate_to_floats_between_zero_and_one() {
    let above = |threshold: u32, one: u32| move |t: u32| if t > threshold { one } else { 0 };
    for (ty, source) in [("s32", "%a1"), ("s64", "%d1")] {
        check(
            &format!("cvt.rn.sat.f32.{ty} %f1, {source};\nmov.b32 %r, %f1;"),
            above(16, 0x3f80_0000),
        );
        check(
            &format!("cvt.rz.sat.f32.{ty} %f1, {source};\nmov.b32 %r, %f1;"),
            above(16, 0x3f80_0000),
        );
        check(
            &format!("cvt.rn.sat.f16.{ty} %h1, {source};\ncvt.u32.u16 %r, %h1;"),
            above(16, 0x3c00),
        );
        check(
            &format!("cvt.rn.sat.f64.{ty} %g, {source};\nmov.b64 {{_, %r}}, %g;"),
            above(16, 0x3ff0_0000),
        );
    }
    check("cvt.rn.sat.f32.u32 %f1, %t;\nmov.b32 %r, %f1;", above(0, 0x3f80_0000));
}

/// A result narrower than its register is extended by its own type: `.u16` with zeros.
#[test]
fn unsigned_halves_of_signed_bytes_leave_no_sign_in_a_wider_register() {
    let half = |t: u32| u32::from((t as i32 - 16) as u16);
    check("cvt.u16.s8 %r, %a1;", half);
    check("cvt.u16.s8 %d2, %a1;\nmov.b64 {%r, _}, %d2;", half);
    check("cvt.u16.s8 %d2, %a1;\nmov.b64 {_, %r}, %d2;", |_| 0);
    check("cvt.s16.s8 %r, %a1;", |t| t.wrapping_sub(16));
    check("cvt.u16.s8 %h1, %a1;\ncvt.u32.u16 %r, %h1;", half);
}

#[test]
fn bf16_to_f32_flushes_subnormal_numbers() {
    // Both signs, and exponents of zero and of more. None is infinite or NaN.
    let bits = |t: u32| (t * 0x0811) & 0xbfff;
    let source = "mul.lo.u32 %a2, %t, 0x0811;\nand.b32 %a2, %a2, 0xbfff;\ncvt.u16.u32 %h1, %a2;\n";
    check(&format!("{source}cvt.f32.bf16 %f1, %h1;\nmov.b32 %r, %f1;"), |t| {
        bits(t) << 16
    });
    check(
        &format!("{source}cvt.ftz.f32.bf16 %f1, %h1;\nmov.b32 %r, %f1;"),
        |t| match bits(t) {
            half if half & 0x7f80 == 0 => (half & 0x8000) << 16,
            half => half << 16,
        },
    );
    let subnormal = "mov.b16 %h1, 0x8041;\n";
    check(
        &format!("{subnormal}cvt.ftz.f32.bf16 %f1, %h1;\nmov.b32 %r, %f1;"),
        |_| 0x8000_0000,
    );
}

#[test]
fn wide_products_of_halves_take_a_literal_addend_of_32_bits() {
    let halves = "cvt.u16.u32 %h1, %t;\n";
    check(&format!("{halves}mad.wide.u16 %r, %h1, 3, 100000;"), |t| {
        3 * t + 100_000
    });
    check(&format!("{halves}mad.wide.s16 %r, %h1, -3, -100000;"), |t| {
        (-3 * t as i32 - 100_000) as u32
    });
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

/// 1 is 0x3f80 as bf16, and 2^-9 is a quarter of the step to the next number. The sum with the negative of it lies half-way to the
/// number below, whose step is half as large.
#[test]
fn fused_bf16_takes_all_roundings() {
    for (form, addend, result) in [
        ("rn", 0x3b00, 0x3f80),
        ("rz", 0x3b00, 0x3f80),
        ("rm", 0x3b00, 0x3f80),
        ("rp", 0x3b00, 0x3f81),
        ("rn", 0xbb00, 0x3f80),
        ("rz", 0xbb00, 0x3f7f),
        ("rm", 0xbb00, 0x3f7f),
        ("rp", 0xbb00, 0x3f80),
        ("rz.relu", 0xc000, 0),
    ] {
        let body = format!(
            ".reg .b16 %h<3>;\nmov.b16 %h0, 0x3f80;\nmov.b16 %h1, {addend:#x};\n\
             fma.{form}.bf16 %h2, %h0, %h0, %h1;\ncvt.u32.u16 %r, %h2;\n\
             mov.b32 %a0, {{%h0, %h0}};\nmov.b32 %a1, {{%h1, %h1}};\nfma.{form}.bf16x2 %a2, %a0, %a0, %a1;\n\
             mad.lo.u32 %a3, %r, 0x10001, 0;\nsetp.ne.u32 %p0, %a2, %a3;\n@%p0 mov.u32 %r, 0xffffffff;"
        );
        Kernel::of(&one_word_each("sm_90", &body)).output(&[result; 32]).holds();
    }
}
