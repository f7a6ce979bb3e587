//! Registers that are wider than the type of a load, store or conversion (PTX ISA, "Operand Size Exceeding Instruction-Type Size").
//!
//! A load or conversion extends its value to the register: with the sign for a signed type, else with zeros. A store takes the low
//! bytes.

use super::{Kernel, one_word_each};

/// The sign bit of every element of these bytes is set.
const BYTES: u64 = 0xC8B7_A695_84C3_82F1;

/// Each type, and [`BYTES`] read as that type, extended to 64 bits.
const LOADS: [(&str, u64); 14] = [
    ("b8", 0xF1),
    ("u8", 0xF1),
    ("s8", 0xFFFF_FFFF_FFFF_FFF1),
    ("b16", 0x82F1),
    ("u16", 0x82F1),
    ("s16", 0xFFFF_FFFF_FFFF_82F1),
    ("b32", 0x84C3_82F1),
    ("u32", 0x84C3_82F1),
    ("s32", 0xFFFF_FFFF_84C3_82F1),
    ("f32", 0x84C3_82F1),
    ("b64", BYTES),
    ("u64", BYTES),
    ("s64", BYTES),
    ("f64", BYTES),
];

fn words(values: &[u64]) -> Vec<u32> {
    let halves = values.iter().flat_map(|&value| [value as u32, (value >> 32) as u32]);
    halves.collect()
}

/// A kernel of one thread, with `%o` for its output and the bytes in every space.
fn kernel(code: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.const .align 16 .b64 fixed = {BYTES};\n\
         .func (.param .align 16 .b8 r[16]) same(.param .align 16 .b8 a[16])\n{{\n.reg .b64 %x;\nld.param.b64 %x, [a];\nst.param.b64 [r], %x;\nret;\n}}\n\
         .entry k(.param .align 8 .u64 in, .param .u64 out)\n{{\n\
         .reg .b64 %i, %o, %w, %x, %y;\n.reg .b128 %q;\n.reg .b32 %r;\n.reg .f32 %f<3>;\n.reg .pred %never;\n.shared .b64 tile;\n.local .b64 own;\n\
         .param .align 16 .b8 given[16];\n.param .align 16 .b8 got[16];\n\
         ld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmov.b64 %w, {BYTES};\nst.shared.b64 [tile], %w;\nst.local.b64 [own], %w;\n\
         st.param.b64 [given], %w;\ncall (got), same, (given);\nsetp.ne.u64 %never, %i, %i;\n{code}ret;\n}}\n"
    )
}

#[test]
fn loads_extend_their_value_to_a_wider_bit_register() {
    for (space, address) in [
        ("global", "%i"),
        ("shared", "tile"),
        ("local", "own"),
        ("const", "fixed"),
        ("param", "got"),
    ] {
        let (mut code, mut expected) = (String::new(), Vec::new());
        for (ty, value) in LOADS {
            let at = 8 * expected.len();
            code += &format!(
                "mov.b64 %w, -1;\nld.{space}.{ty} %w, [{address}];\nst.global.b64 [%o+{at}], %w;\n\
                 mov.b64 %w, -1;\nmov.b128 %q, {{%w, %w}};\nld.{space}.{ty} %q, [{address}];\nmov.b128 {{%x, %y}}, %q;\n\
                 st.global.b64 [%o+{}], %x;\nst.global.b64 [%o+{}], %y;\n\
                 @%never ld.{space}.{ty} %w, [{address}];\nst.global.b64 [%o+{}], %w;\n",
                at + 8,
                at + 16,
                at + 24
            );
            let is_signed = ty.starts_with('s');
            let upper = if is_signed { u64::MAX } else { 0 };
            expected.extend([value, value, upper, u64::MAX]);
        }
        println!("{space}");
        Kernel::of(&kernel(&code))
            .sizes(1, 1)
            .input(&words(&[BYTES]))
            .output(&words(&expected))
            .holds();
    }
}

#[test]
fn vector_loads_and_stores_take_wider_registers() {
    let code = "\
        ld.global.v2.f32 {%w, %x}, [%i];\nst.global.b64 [%o], %w;\nst.global.b64 [%o+8], %x;\nst.global.v2.f32 [%o+16], {%x, %w};\n\
        ld.global.v4.s16 {%r, %w, %x, %y}, [%i];\nst.global.b32 [%o+24], %r;\nst.global.b64 [%o+32], %y;\nmov.b64 %y, -1;\nst.global.b64 [%o+40], %y;\n\
        st.global.v4.b8 [%o+40], {%w, %x, %r, %w};\n";
    let expected = [
        0x84C3_82F1,
        0xC8B7_A695,
        0x84C3_82F1_C8B7_A695,
        0xFFFF_82F1,
        0xFFFF_FFFF_FFFF_C8B7,
        0xFFFF_FFFF_C3F1_95C3,
    ];
    Kernel::of(&kernel(code))
        .sizes(1, 1)
        .input(&words(&[BYTES]))
        .output(&words(&expected))
        .holds();
}

#[test]
fn stores_take_the_low_bytes_of_a_wider_register() {
    let mut code = format!("mov.b64 %w, {BYTES};\nmov.b64 %x, 0;\nmov.b128 %q, {{%w, %x}};\n");
    let mut expected = Vec::new();
    for (ty, _) in LOADS {
        let bits: u32 = ty[1..].parse().unwrap();
        let at = 8 * expected.len();
        code += &format!(
            "mov.b64 %x, 0;\nst.global.b64 [%o+{at}], %x;\nst.global.{ty} [%o+{at}], %w;\n\
             st.global.b64 [%o+{0}], %x;\nst.global.{ty} [%o+{0}], %q;\n",
            at + 8
        );
        expected.extend([BYTES & (u64::MAX >> (64 - bits)); 2]);
    }
    Kernel::of(&kernel(&code))
        .sizes(1, 1)
        .input(&words(&[BYTES]))
        .output(&words(&expected))
        .holds();
}

/// Floats: 1.0, 1.5, 2.0, 2.5 and 3e9 in single precision are 3F800000, 3FC00000, 40000000, 40200000 and 4F32D05E.
#[test]
fn conversions_extend_their_result_to_a_wider_register() {
    let cases: [(&str, u64); 17] = [
        ("cvt.rn.f32.u32 %w, 3;", 0x4040_0000),
        ("cvt.rn.f32.u32 %w, %x;", 0x4040_0000),
        ("mov.b32 %f1, 0fC0200000;\ncvt.rzi.s32.f32 %w, %f1;", -2i64 as u64),
        ("mov.b32 %f1, 0fC0200000;\ncvt.rzi.s8.f32 %w, %f1;", -2i64 as u64),
        ("mov.b32 %f1, 0f4F32D05E;\ncvt.rzi.u32.f32 %w, %f1;", 3_000_000_000),
        ("mov.b32 %f1, 0f3F800000;\ncvt.rn.f16.f32 %w, %f1;", 0x3C00),
        (
            "mov.b32 %f1, 0f3F800000;\nmov.b32 %r, -1;\ncvt.rn.f16.f32 %r, %f1;\ncvt.u64.u32 %w, %r;",
            0x3C00,
        ),
        (
            "mov.b32 %f1, 0f3F800000;\nmov.b32 %f2, 0f40000000;\ncvt.rn.f16x2.f32 %w, %f1, %f2;",
            0x3C00_4000,
        ),
        ("mov.b32 %r, 300;\ncvt.sat.u8.s32 %w, %r;", 255),
        ("mov.b32 %r, -300;\ncvt.sat.s8.s32 %w, %r;", -128i64 as u64),
        (
            "mov.b32 %r, -300;\ncvt.sat.s8.s32 %r, %r;\ncvt.u64.u32 %w, %r;",
            0xFFFF_FF80,
        ),
        (
            "mov.b64 %y, 0xFFFFFFFF3FC00000;\ncvt.f64.f32 %w, %y;",
            0x3FF8_0000_0000_0000,
        ),
        ("mov.b64 %y, 0d3FF8000000000000;\ncvt.rn.f32.f64 %w, %y;", 0x3FC0_0000),
        ("mov.b32 %f1, 0f40200000;\ncvt.rni.f32.f32 %w, %f1;", 0x4000_0000),
        (
            "mov.b32 %r, -5;\ncvt.s64.s32 %q, %r;\nmov.b128 {%x, %w}, %q;\nand.b64 %w, %w, %x;",
            -5i64 as u64,
        ),
        ("mov.b64 %y, -1;\ncvt.u16.u32 %w, %y;", 0xFFFF),
        ("mov.b64 %y, 0x7FFF;\ncvt.s8.s32 %w, %y;", u64::MAX),
    ];
    let mut code = "mov.b64 %x, 0xFFFFFFFF00000003;\n".to_owned();
    for (n, (conversion, _)) in cases.iter().enumerate() {
        code += &format!(
            "mov.b64 %w, 0x5555555555555555;\n{conversion}\nst.global.b64 [%o+{}], %w;\n",
            8 * n
        );
    }
    Kernel::of(&kernel(&code))
        .sizes(1, 1)
        .input(&words(&[BYTES]))
        .output(&words(&cases.map(|(_, value)| value)))
        .holds();
}

/// Where the guard is false the whole register keeps its value.
#[test]
fn guarded_conversion_leaves_a_wider_register_alone() {
    let body = "setp.lt.u32 %p1, %t, 5;\nmov.b64 %d1, 0x700000009;\n@%p1 cvt.rn.f32.u32 %d1, %t;\nshr.u64 %d2, %d1, 32;\n\
                add.u64 %d1, %d1, %d2;\ncvt.u32.u64 %r, %d1;";
    let expected: Vec<u32> = (0..32).map(|t| if t < 5 { (t as f32).to_bits() } else { 16 }).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

/// A vendor's assembler refuses these reads. Here a 32-bit special register is zero-extended, whatever lies beside its value.
#[test]
fn special_register_in_a_wide_read_is_zero_extended() {
    for (register, value) in [("%ntid.x", 32), ("%nctaid.x", 1), ("%envreg1", 0), ("%tid.y", 0)] {
        let body = format!("mov.u64 %d0, {register};\nmov.b64 {{%a0, %a1}}, %d0;\nmad.lo.u32 %r, %a1, 1000, %a0;");
        // In a cooperative launch the word behind `%envreg1` is not 0.
        let kernel = Kernel::of(&one_word_each("sm_80", &body)).cooperative();
        kernel.output(&[value; 32]).holds();
    }
}
