//! PTX arithmetic on the reference, against the same operations in Rust.
//!
//! A case is a PTX snippet and a Rust function. The snippet reads `%x` and `%y`, of 64 bits. `%a` and `%b` are their lower words, and `%c`
//! is the upper word of `%x`. The result is in `%z`.

use crate::pairs;

/// The result in Rust, from x and y.
type Expected = fn(u64, u64) -> u64;

/// Numbers at borders: signs, carries, shift counts.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    31,
    33,
    63,
    64,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0001,
    0xffff_ffff_ffff_fffe,
];

fn module(snippet: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .pred %p<4>;\n.reg .b16 %h<8>;\n.reg .f32 %f<8>, %e;\n.reg .f64 %d<8>;\n.reg .b32 %a, %b, %c, %t, %r<8>;\n.reg .b64 %x, %y, %z, %rd<8>;\n\
         ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nmov.u32 %t, %tid.x;\n\
         mad.wide.u32 %rd3, %t, 16, %rd1;\nld.global.v2.u64 {{%x, %y}}, [%rd3];\nmad.wide.u32 %rd4, %t, 8, %rd2;\n\
         cvt.u32.u64 %a, %x;\ncvt.u32.u64 %b, %y;\nmov.b64 {{_, %c}}, %x;\n{snippet}\nst.global.u64 [%rd4], %z;\nret;\n}}\n"
    )
}

/// The results of the snippet for every pair of numbers.
fn results(snippet: &str) -> Vec<u64> {
    let with_all = |x: &u64| NUMBERS.map(|y| [*x, y]);
    let all: Vec<[u64; 2]> = NUMBERS.iter().flat_map(with_all).collect();
    pairs::results(snippet, &module(snippet), &all)
}

fn check(cases: &[(&str, Expected)]) {
    for (snippet, expected) in cases {
        let found = results(snippet);
        let pairs = NUMBERS.iter().flat_map(|&x| NUMBERS.iter().map(move |&y| (x, y)));
        for ((x, y), found) in pairs.zip(found) {
            let wanted = expected(x, y);
            assert_eq!(
                found, wanted,
                "{snippet} of {x:#x} and {y:#x}: {found:#x}, not {wanted:#x}"
            );
        }
    }
}

/// The low word of an expression as the 64-bit result.
fn low(word: u32) -> u64 {
    word.into()
}

#[test]
fn sums_and_products_of_64_bits_match_rust() {
    check(&[
        ("add.s64 %z, %x, %y;", |x, y| x.wrapping_add(y)),
        ("sub.s64 %z, %x, %y;", |x, y| x.wrapping_sub(y)),
        ("sub.s64 %z, 5, %y;", |_, y| 5u64.wrapping_sub(y)),
        ("neg.s64 %z, %x;", |x, _| x.wrapping_neg()),
        ("add.s64 %z, %x, -4294967297;", |x, _| x.wrapping_sub(0x1_0000_0001)),
        ("mul.lo.s64 %z, %x, %y;", |x, y| x.wrapping_mul(y)),
        ("mul.lo.u64 %z, %x, 12884901891;", |x, _| x.wrapping_mul(0x3_0000_0003)),
        ("mad.lo.s64 %z, %x, %y, %y;", |x, y| x.wrapping_mul(y).wrapping_add(y)),
        ("mul.hi.u64 %z, %x, %y;", |x, y| {
            ((u128::from(x) * u128::from(y)) >> 64) as u64
        }),
        ("mul.hi.s64 %z, %x, %y;", |x, y| {
            ((i128::from(x as i64) * i128::from(y as i64)) >> 64) as u64
        }),
        ("mul.wide.s32 %z, %a, %b;", |x, y| {
            (i64::from(x as i32) * i64::from(y as i32)) as u64
        }),
        ("mad.wide.u32 %z, %a, %b, %y;", |x, y| {
            (u64::from(x as u32) * u64::from(y as u32)).wrapping_add(y)
        }),
        ("abs.s64 %z, %x;", |x, _| (x as i64).unsigned_abs()),
        ("min.s64 %z, %x, %y;", |x, y| (x as i64).min(y as i64) as u64),
        ("max.u64 %z, %x, %y;", |x, y| x.max(y)),
    ]);
}

#[test]
fn logic_and_shifts_of_64_bits_match_rust() {
    check(&[
        ("and.b64 %z, %x, %y;", |x, y| x & y),
        ("xor.b64 %z, %x, %y;", |x, y| x ^ y),
        ("not.b64 %z, %x;", |x, _| !x),
        ("shl.b64 %z, %x, %b;", |x, y| x.checked_shl(y as u32).unwrap_or(0)),
        ("shr.u64 %z, %x, %b;", |x, y| x.checked_shr(y as u32).unwrap_or(0)),
        ("shr.s64 %z, %x, %b;", |x, y| (x as i64 >> (y as u32).min(63)) as u64),
        ("shl.b64 %x, %x, 33; mov.u64 %z, %x;", |x, _| x << 33),
        ("shr.s64 %x, %x, 3; mov.u64 %z, %x;", |x, _| (x as i64 >> 3) as u64),
        (
            "cvt.s64.s32 %rd5, %a; shl.b64 %rd6, %rd5, 2; add.s64 %z, %rd6, %y;",
            |x, y| ((x as i32 as i64) << 2).wrapping_add(y as i64) as u64,
        ),
        (
            "cvt.s64.s32 %rd5, %a; shl.b64 %rd6, %rd5, 31; add.s64 %z, %rd6, %y;",
            |x, y| ((x as i32 as i64) << 31).wrapping_add(y as i64) as u64,
        ),
        ("clz.b64 %r1, %x; cvt.u64.u32 %z, %r1;", |x, _| x.leading_zeros().into()),
        ("popc.b64 %r1, %x; cvt.u64.u32 %z, %r1;", |x, _| x.count_ones().into()),
        ("brev.b64 %z, %x;", |x, _| x.reverse_bits()),
        ("bfind.u64 %r1, %x; cvt.u64.u32 %z, %r1;", |x, _| {
            low(63u32.wrapping_sub(x.leading_zeros()))
        }),
        ("bfe.u64 %z, %x, 8, 20;", |x, _| x >> 8 & 0xf_ffff),
        ("bfe.s64 %z, %x, 40, 24;", |x, _| (x as i64 >> 40) as u64),
        ("bfi.b64 %z, %x, %y, 30, 10;", |x, y| {
            (x & 0x3ff) << 30 | (y & !(0x3ff << 30))
        }),
    ]);
}

#[test]
fn comparisons_of_64_bits_match_rust() {
    check(&[
        ("setp.lt.s64 %p1, %x, %y; selp.b64 %z, 1, 0, %p1;", |x, y| {
            u64::from((x as i64) < y as i64)
        }),
        ("setp.le.u64 %p1, %x, %y; selp.b64 %z, 1, 0, %p1;", |x, y| {
            u64::from(x <= y)
        }),
        ("setp.gt.u64 %p1, 33, %y; selp.b64 %z, 1, 0, %p1;", |_, y| {
            u64::from(33 > y)
        }),
        ("setp.ge.s64 %p1, %x, -1; selp.b64 %z, %x, %y, %p1;", |x, y| {
            if x as i64 >= -1 { x } else { y }
        }),
        ("setp.eq.b64 %p1|%p2, %x, %y; selp.b64 %z, 5, %x, %p2;", |x, y| {
            if x != y { 5 } else { x }
        }),
        (
            "setp.ne.s64 %p1, %x, %y; setp.gt.and.u32 %p2, %a, 31, %p1; selp.b64 %z, 1, 0, %p2;",
            |x, y| u64::from(x != y && x as u32 > 31),
        ),
        (
            "setp.ne.u32 %p1, %b, 31; setp.lt.u64 %p2, %x, %y; and.pred %p3, %p1, %p2; selp.b64 %z, 1, 0, %p3;",
            |x, y| u64::from(y as u32 != 31 && x < y),
        ),
        (
            "setp.eq.u32 %p1, %b, 31; setp.ge.s64 %p2, %x, %y; or.pred %p3, %p2, %p1; selp.b64 %z, 1, 0, %p3;",
            |x, y| u64::from(y as u32 == 31 || x as i64 >= y as i64),
        ),
        (
            "setp.lt.u32 %p1, %a, %b; setp.gt.s32 %p2, %a, %b; xor.pred %p3, %p1, %p2; selp.b64 %z, 1, 0, %p3;",
            |x, y| u64::from((x as u32) < y as u32) ^ u64::from(x as i32 > y as i32),
        ),
    ]);
}

#[test]
fn words_and_halves_match_rust() {
    check(&[
        ("sub.s32 %r1, %a, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x as u32).wrapping_sub(y as u32))
        }),
        ("sub.s32 %r1, 7, %b; cvt.s64.s32 %z, %r1;", |_, y| {
            7i32.wrapping_sub(y as i32) as i64 as u64
        }),
        ("mad.lo.s32 %r1, %a, %b, %c; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x as u32).wrapping_mul(y as u32).wrapping_add((x >> 32) as u32))
        }),
        ("mul.hi.s32 %r1, %a, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low(((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32)
        }),
        ("shr.s32 %r1, %a, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x as i32 >> (y as u32).min(31)) as u32)
        }),
        ("shl.b32 %r1, %a, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x as u32).checked_shl(y as u32).unwrap_or(0))
        }),
        ("shf.l.wrap.b32 %r1, %a, %c, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x << (y & 31) >> 32) as u32)
        }),
        ("shf.r.wrap.b32 %r1, %a, %c, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x >> (y & 31)) as u32)
        }),
        ("sad.s32 %r1, %a, %b, %c; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x as i32).abs_diff(y as i32).wrapping_add((x >> 32) as u32))
        }),
        ("bmsk.clamp.b32 %r1, 4, 8; cvt.u64.u32 %z, %r1;", |_, _| 0xff0),
        ("clz.b32 %r1, %a; cvt.u64.u32 %z, %r1;", |x, _| {
            (x as u32).leading_zeros().into()
        }),
        ("cvt.u16.u32 %h1, %a; cvt.s64.s16 %z, %h1;", |x, _| x as i16 as u64),
        // A result narrower than its register is extended by the sign of its own type.
        ("cvt.u32.s64 %z, %x;", |x, _| u64::from(x as u32)),
        ("cvt.s32.u64 %z, %x;", |x, _| x as i32 as u64),
        ("cvt.u32.s32 %z, %a;", |x, _| u64::from(x as u32)),
        ("cvt.s32.u32 %z, %a;", |x, _| x as i32 as u64),
        ("cvt.u16.u32 %h1, %a; cvt.u32.s16 %z, %h1;", |x, _| {
            u64::from(x as i16 as u32)
        }),
        ("cvt.s16.u64 %z, %x;", |x, _| x as i16 as u64),
        (
            "cvt.u16.u32 %h1, %a; cvt.u16.u32 %h2, %b; setp.lt.s16 %p1, %h1, %h2; selp.b64 %z, 1, 0, %p1;",
            |x, y| u64::from((x as i16) < y as i16),
        ),
        (
            "cvt.u16.u64 %h1, %x; shr.u16 %h2, %h1, 4; cvt.u64.u16 %z, %h2;",
            |x, _| (x as u16 >> 4).into(),
        ),
        (
            "cvt.u16.u32 %h1, %a; cvt.u16.u32 %h2, %b; setp.lt.u16 %p1, %h1, %h2; selp.b64 %z, 1, 0, %p1;",
            |x, y| u64::from((x as u16) < y as u16),
        ),
        (
            "cvt.u16.u32 %h1, %a; cvt.u16.u32 %h2, %b; mul.wide.u16 %r1, %h1, %h2; cvt.u64.u32 %z, %r1;",
            |x, y| low(u32::from(x as u16) * u32::from(y as u16)),
        ),
        (
            "cvt.u16.u32 %h1, %a; cvt.u16.u32 %h2, %b; max.u16 %h3, %h1, %h2; cvt.u64.u16 %z, %h3;",
            |x, y| u64::from((x as u16).max(y as u16)),
        ),
        ("min.u32 %r1, %a, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x as u32).min(y as u32))
        }),
        ("max.u32 %r1, %a, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x as u32).max(y as u32))
        }),
        ("min.s32 %r1, %a, %b; cvt.u64.u32 %z, %r1;", |x, y| {
            low((x as i32).min(y as i32) as u32)
        }),
        ("min.u64 %z, %x, %y;", |x, y| x.min(y)),
        ("cvt.s8.u32 %r1, %a; cvt.s64.s32 %z, %r1;", |x, _| x as i8 as u64),
        ("cvt.u8.s32 %r1, %a; cvt.u64.u32 %z, %r1;", |x, _| x as u8 as u64),
        ("cvt.s8.s32 %r1, %a; cvt.s64.s32 %z, %r1;", |x, _| x as i8 as u64),
        ("cvt.u32.u8 %r1, %a; cvt.u64.u32 %z, %r1;", |x, _| x as u8 as u64),
        ("mov.b32 {%h1, %h2}, %a; mov.b64 %z, {%h2, %h1, %h1, %h2};", |x, _| {
            let (l, h) = (x & 0xffff, x >> 16 & 0xffff);
            h | l << 16 | l << 32 | h << 48
        }),
        ("mov.b64 %z, {%b, %a};", |x, y| u64::from(y as u32) | x << 32),
        (
            "and.b32 %r1, %a, 1; setp.eq.s32 %p1, %r1, 1; @%p1 mov.u64 %z, %y; @!%p1 mov.u64 %z, %x;",
            |x, y| {
                if x & 1 == 1 { y } else { x }
            },
        ),
    ]);
}

#[test]
fn carry_chains_are_sums_of_128_bits() {
    check(&[
        (
            "mov.b64 {%r1, %r2}, %y; add.cc.u32 %r3, %a, %r1; addc.u32 %r4, %c, %r2; mov.b64 %z, {%r3, %r4};",
            |x, y| x.wrapping_add(y),
        ),
        (
            "mov.b64 {%r1, %r2}, %y; sub.cc.u32 %r3, %a, %r1; subc.u32 %r4, %c, %r2; mov.b64 %z, {%r3, %r4};",
            |x, y| x.wrapping_sub(y),
        ),
        ("add.cc.u64 %rd5, %x, %y; addc.u64 %z, 0, 0;", |x, y| {
            x.checked_add(y).is_none().into()
        }),
        ("sub.cc.u64 %rd5, %x, %y; subc.u64 %z, 0, 0;", |x, y| {
            if x < y { u64::MAX } else { 0 }
        }),
        (
            "mad.lo.cc.u32 %r1, %a, %b, %c; madc.hi.u32 %r2, %a, %b, 0; mov.b64 %z, {%r1, %r2};",
            |x, y| u64::from(x as u32) * u64::from(y as u32) + (x >> 32),
        ),
    ]);
}

/// Floats at borders: the low word of each number is an f32, which is also converted to an f64.
fn single(word: u64) -> f32 {
    f32::from_bits(word as u32)
}

fn double(word: u64) -> f64 {
    f64::from_bits(word)
}

/// The bits of an f32, with one canonical NaN.
fn bits(value: f32) -> u64 {
    if value.is_nan() {
        0x7fff_ffff
    } else {
        value.to_bits().into()
    }
}

/// Wraps a snippet that reads `%f1` and `%f2`. Stores `%f3`, with NaN as the canonical one.
fn of_singles(snippet: &str) -> String {
    format!(
        "mov.b32 %f1, %a; mov.b32 %f2, %b; mov.b64 %d1, %x; mov.b64 %d2, %y; {snippet} \
         setp.nan.f32 %p3, %f3, %f3; selp.f32 %f3, 0f7FFFFFFF, %f3, %p3; mov.b32 %r7, %f3; cvt.u64.u32 %z, %r7;"
    )
}

/// Wraps a snippet that reads `%d1` and `%d2`. Stores `%d3`, with NaN as zero.
fn of_doubles(snippet: &str) -> String {
    format!(
        "mov.b64 %d1, %x; mov.b64 %d2, %y; mov.b32 %f1, %a; {snippet} \
         setp.nan.f64 %p3, %d3, %d3; selp.f64 %d3, 0d0000000000000000, %d3, %p3; mov.b64 %z, %d3;"
    )
}

fn double_bits(value: f64) -> u64 {
    if value.is_nan() { 0 } else { value.to_bits() }
}

#[test]
fn f32_operations_match_rust() {
    let cases: [(&str, Expected); 16] = [
        ("add.f32 %f3, %f1, %f2;", |x, y| bits(single(x) + single(y))),
        ("sub.f32 %f3, %f1, %f2;", |x, y| bits(single(x) - single(y))),
        ("mul.f32 %f3, %f1, %f2;", |x, y| bits(single(x) * single(y))),
        ("fma.rn.f32 %f3, %f1, %f2, 0f3F800000;", |x, y| {
            bits(single(x).mul_add(single(y), 1.0))
        }),
        // Without a rounding, the product and the sum are one operation, as with the option `-fmad=true` of the assembler.
        ("mul.f32 %f4, %f1, %f2; sub.f32 %f3, 0f3F800000, %f4;", |x, y| {
            bits((-single(x)).mul_add(single(y), 1.0))
        }),
        ("mul.rn.f32 %f4, %f1, %f2; sub.f32 %f3, 0f3F800000, %f4;", |x, y| {
            bits(1.0 - single(x) * single(y))
        }),
        ("neg.f32 %f4, %f2; abs.f32 %f5, %f1; add.f32 %f3, %f5, %f4;", |x, y| {
            bits(single(x).abs() - single(y))
        }),
        ("div.rn.f32 %f3, %f1, %f2;", |x, y| bits(single(x) / single(y))),
        ("sqrt.rn.f32 %f3, %f1;", |x, _| bits(single(x).sqrt())),
        ("copysign.f32 %f3, %f1, %f2;", |x, y| {
            bits(single(y).copysign(single(x)))
        }),
        (
            "setp.ltu.f32 %p1, %f1, %f2; selp.f32 %f3, 0f3F800000, 0f00000000, %p1;",
            |x, y| bits(if single(x) >= single(y) { 0.0 } else { 1.0 }),
        ),
        ("cvt.rn.f32.s32 %f3, %a;", |x, _| bits(x as i32 as f32)),
        ("cvt.rn.f32.u64 %f3, %x;", |x, _| bits(x as f32)),
        ("cvt.rn.f32.f64 %f3, %d1;", |x, _| bits(double(x) as f32)),
        ("cvt.rzi.s32.f32 %r1, %f1; cvt.rn.f32.s32 %f3, %r1;", |x, _| {
            bits(single(x) as i32 as f32)
        }),
        ("cvt.rmi.f32.f32 %f3, %f1;", |x, _| bits(single(x).floor())),
    ];
    for (snippet, expected) in cases {
        check(&[(&of_singles(snippet), expected)]);
    }
}

#[test]
fn f64_operations_match_rust() {
    let cases: [(&str, Expected); 8] = [
        ("add.f64 %d3, %d1, %d2;", |x, y| double_bits(double(x) + double(y))),
        ("sub.f64 %d3, 0d3FF0000000000000, %d2;", |_, y| {
            double_bits(1.0 - double(y))
        }),
        ("fma.rn.f64 %d3, %d1, %d2, %d1;", |x, y| {
            double_bits(double(x).mul_add(double(y), double(x)))
        }),
        ("mul.f64 %d4, %d1, %d2; add.f64 %d3, %d2, %d4;", |x, y| {
            double_bits(double(x).mul_add(double(y), double(y)))
        }),
        ("mul.f64 %d3, %d1, 0d3FB999999999999A;", |x, _| {
            double_bits(double(x) * 0.1)
        }),
        ("neg.f64 %d4, %d1; abs.f64 %d5, %d2; mul.f64 %d3, %d4, %d5;", |x, y| {
            double_bits(-double(x) * double(y).abs())
        }),
        ("div.rn.f64 %d3, %d1, %d2;", |x, y| double_bits(double(x) / double(y))),
        ("cvt.f64.f32 %d3, %f1;", |x, _| double_bits(single(x).into())),
    ];
    for (snippet, expected) in cases {
        check(&[(&of_doubles(snippet), expected)]);
    }
}

#[test]
fn approximate_functions_are_near_the_functions_of_rust() {
    /// The snippet, and the function that it approximates.
    type Case = (&'static str, fn(f32) -> f32);
    let cases: [Case; 6] = [
        ("rcp.approx.f32 %f3, %f1;", |a| 1.0 / a),
        ("rsqrt.approx.f32 %f3, %f1;", |a| 1.0 / a.sqrt()),
        ("sqrt.approx.f32 %f3, %f1;", f32::sqrt),
        ("ex2.approx.f32 %f3, %f1;", f32::exp2),
        ("lg2.approx.f32 %f3, %f1;", f32::log2),
        ("div.full.f32 %f3, 0f40400000, %f1;", |a| 3.0 / a),
    ];
    for (snippet, function) in cases {
        let found = results(&of_singles(snippet));
        for (&x, found) in NUMBERS.iter().zip(found.chunks(NUMBERS.len())) {
            let (found, wanted) = (single(found[0]), function(single(x)));
            let near =
                found == wanted || (found.is_nan() && wanted.is_nan()) || ((found - wanted) / wanted).abs() < 1e-6;
            assert!(near, "{snippet} of {x:#x}: {found:e}, not {wanted:e}");
        }
    }
}
