//! Packed integers, reductions over a warp, branches by a table.

use super::{Kernel, one_word_each};

/// Words with bytes and halves at every border of their range.
const A: [u32; 8] = [
    0,
    0x7f80_ff01,
    0x8000_7fff,
    0xdead_beef,
    0xffff_ffff,
    0x0102_0304,
    0x80808080,
    0x7f7f7f7f,
];
const B: [u32; 8] = [
    1,
    0x80_7f01ff,
    0x7fff_8000,
    0x1234_5678,
    0x0000_ffff,
    0xfcfd_feff,
    0x7f7f7f7f,
    0x7f808182,
];

type Operation = fn(i32, i32) -> i32;

/// A packed operation as PTX defines it: `parts` elements are extended, combined, then saturated or truncated.
fn packed(parts: u32, signed: bool, sat: bool, operation: Operation, a: u32, b: u32) -> u32 {
    let bits = 32 / parts;
    let piece = |word: u32, n: u32| {
        let spare = 32 - bits;
        let top = word << (spare - n * bits);
        if signed {
            top as i32 >> spare
        } else {
            (top >> spare) as i32
        }
    };
    let (least, greatest) = if signed {
        (-1 << (bits - 1), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    };
    (0..parts).fold(0, |word, n| {
        let value = operation(piece(a, n), piece(b, n));
        let value = if sat { value.clamp(least, greatest) } else { value };
        word | (value as u32 & (u32::MAX >> (32 - bits))) << (n * bits)
    })
}

fn average(a: i32, b: i32) -> i32 {
    (a + b + i32::from(a + b >= 0)) >> 1
}

#[test]
fn packed_operations_work_element_by_element() {
    let operations: [(&str, Operation); 6] = [
        ("vadd", |a, b| a + b),
        ("vsub", |a, b| a - b),
        ("vavrg", average),
        ("vabsdiff", |a, b| (a - b).abs()),
        ("vmin", i32::min),
        ("vmax", i32::max),
    ];
    for (name, operation) in operations {
        for (parts, signed, sat) in [
            (4, false, false),
            (4, true, false),
            (4, true, true),
            (2, true, true),
            (2, false, true),
        ] {
            let ty = if signed { "s32" } else { "u32" };
            let dots = if sat { ".sat" } else { "" };
            let instruction = format!("{name}{parts}.{ty}.{ty}.{ty}{dots}");
            check(&instruction, |a, b| packed(parts, signed, sat, operation, a, b));
        }
    }
}

/// Checks an instruction on every pair of words, with zero as third source.
fn check(instruction: &str, expected: impl Fn(u32, u32) -> u32) {
    let text = format!(
        ".version 8.6\n.target sm_80\n.address_size 64\n.entry k(.param .u64 a, .param .u64 b, .param .u64 out) {{\n\
         .reg .b32 %t, %x, %y, %z;\n.reg .b64 %a, %b, %o;\nmov.u32 %t, %tid.x;\n\
         ld.param.u64 %a, [a];\nld.param.u64 %b, [b];\nld.param.u64 %o, [out];\n\
         mad.wide.u32 %a, %t, 4, %a;\nmad.wide.u32 %b, %t, 4, %b;\nmad.wide.u32 %o, %t, 4, %o;\n\
         ld.global.u32 %x, [%a];\nld.global.u32 %y, [%b];\nmov.u32 %z, 0;\n\
         {instruction} %z, %x, %y, %z;\nst.global.u32 [%o], %z;\nret;\n}}\n"
    );
    let pairs: Vec<(u32, u32)> = A.iter().flat_map(|&a| B.iter().map(move |&b| (a, b))).collect();
    let (a, b): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    let results: Vec<u32> = pairs.iter().map(|&(a, b)| expected(a, b)).collect();
    let kernel = Kernel::of(&text).sizes(1, pairs.len() as u32);
    kernel.input(&a).input(&b).output(&results).holds();
}

#[test]
fn byte_differences_are_accumulated() {
    check("vabsdiff4.u32.u32.u32.add", |a, b| {
        let bytes = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        bytes.map(|(a, b)| u32::from(a.abs_diff(b))).sum()
    });
}

#[test]
fn dp2a_uses_the_low_or_the_high_bytes() {
    let product = |a: u32, b: u32, first: usize| {
        let halves = [a as u16 as i16, (a >> 16) as u16 as i16].map(i32::from);
        let bytes = b.to_le_bytes().map(|byte| i32::from(byte as i8));
        (halves[0] * bytes[first]).wrapping_add(halves[1] * bytes[first + 1]) as u32
    };
    check("dp2a.lo.s32.s32", |a, b| product(a, b, 0));
    check("dp2a.hi.s32.s32", |a, b| product(a, b, 2));
}

#[test]
fn redux_max_of_floats_ignores_nans() {
    let body = "\
        cvt.rn.f32.u32 %f1, %t;\nsub.f32 %f1, 0f41200000, %f1;\nmov.b32 %a1, %f1;\n\
        setp.eq.u32 %p1, %t, 3;\n@%p1 mov.u32 %a1, 0x7fc00000;\n\
        redux.sync.max.f32 %r, %a1, 0xffffffff;\nredux.sync.min.f32 %a2, %a1, 0xffffffff;\n\
        redux.sync.max.NaN.f32 %a3, %a1, 0xffffffff;\n\
        setp.eq.u32 %p2, %t, 1;\n@%p2 mov.u32 %r, %a2;\nsetp.eq.u32 %p2, %t, 2;\n@%p2 mov.u32 %r, %a3;";
    let expected: Vec<u32> = (0..32)
        .map(|thread| match thread {
            1 => (-21.0f32).to_bits(),
            2 => 0x7fff_ffff,
            _ => 10.0f32.to_bits(),
        })
        .collect();
    Kernel::of(&one_word_each("sm_100", body)).output(&expected).holds();
}

#[test]
fn float_pairs_mixed_sums_and_three_input_minima() {
    let body = "\
        cvt.rn.f32.u32 %f1, %t;\nmov.f32 %f2, 0f3fc00000;\nmov.b64 %d1, {%f1, %f2};\nmov.b64 %d2, {%f2, %f1};\n\
        add.f32x2 %d3, %d1, %d2;\nsub.f32x2 %d4, %d1, %d2;\nmul.f32x2 %d5, %d3, %d4;\nfma.rn.f32x2 %d6, %d1, %d2, %d5;\n\
        mov.b64 {%f3, %f4}, %d6;\n\
        {.reg .b16 %h;\ncvt.rn.f16.f32 %h, %f1;\nsub.rn.f32.f16 %f5, %h, %f2;\nadd.f32.f16 %f6, %h, %f4;}\n\
        max.f32 %f7, %f3, %f5, %f6;\nmin.f32 %f3, %f3, %f5, %f6;\nadd.f32 %f3, %f3, %f7;\nmov.b32 %r, %f3;";
    let expected: Vec<u32> = (0..32)
        .map(|thread| {
            let (x, y) = (thread as f32, 1.5f32);
            let pair = |x: f32, y: f32| x.mul_add(y, (x + y) * (x - y));
            let (low, high) = (pair(x, y), pair(y, x));
            let (five, six) = (x - y, x + high);
            (low.min(five).min(six) + low.max(five).max(six)).to_bits()
        })
        .collect();
    Kernel::of(&one_word_each("sm_100", body)).output(&expected).holds();
}

#[test]
fn elected_lane_is_the_lowest_of_the_mask() {
    let body = "\
        mov.u32 %r, 99;\nsetp.lt.u32 %p1, %t, 7;\n@%p1 bra over;\n\
        elect.sync %a1|%p2, 0xffffff80;\nselp.b32 %a2, 100, 0, %p2;\nadd.u32 %r, %a1, %a2;\nover:";
    let expected: Vec<u32> = (0..32)
        .map(|lane| match lane {
            0..7 => 99,
            7 => 107,
            _ => 7,
        })
        .collect();
    Kernel::of(&one_word_each("sm_90", body)).output(&expected).holds();
}

/// A table of six entries with five targets. Lanes diverge and reconverge.
#[test]
fn branch_by_a_table_takes_each_lane_to_its_target() {
    let body = "\
        rem.u32 %a1, %t, 6;\n\
        table: .branchtargets zero, one, two, three, one, five;\n\
        setp.ge.u32 %p1, %t, 30;\nmov.u32 %r, 7;\n\
        @!%p1 brx.idx %a1, table;\nbra done;\n\
        zero: mov.u32 %r, 10;\nbra done;\none: mov.u32 %r, 11;\nbra done;\ntwo: mov.u32 %r, 12;\nbra done;\n\
        three: mov.u32 %r, 13;\nfive: add.u32 %r, %r, 5;\ndone: shfl.sync.bfly.b32 %a2, %r, 1, 31, 0xffffffff;\n\
        mad.lo.u32 %r, %r, 100, %a2;";
    let value = |lane: usize| {
        if lane < 30 {
            [10, 11, 12, 18, 11, 12][lane % 6]
        } else {
            7
        }
    };
    let expected: Vec<u32> = (0..32).map(|lane| 100 * value(lane) + value(lane ^ 1)).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

#[test]
fn square_roots_have_the_stated_rounding() {
    let body = "\
        add.u32 %a1, %t, 2;\ncvt.rn.f32.u32 %f1, %a1;\n\
        sqrt.rz.f32 %f2, %f1;\nsqrt.rp.f32 %f3, %f1;\nmov.b32 %a2, %f2;\nmov.b32 %a3, %f3;\n\
        sub.u32 %a3, %a3, %a2;\nshl.b32 %a2, %a2, 1;\nor.b32 %r, %a2, %a3;";
    let expected: Vec<u32> = (2..34u32)
        .map(|n| {
            // The greatest f32 whose square, exact in f64, is not above n.
            let near = (n as f32).sqrt();
            let below = if f64::from(near) * f64::from(near) > f64::from(n) {
                near.next_down()
            } else {
                near
            };
            let exact = f64::from(below) * f64::from(below) == f64::from(n);
            below.to_bits() << 1 | u32::from(!exact)
        })
        .collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

/// A sum of eight words in a loop: the carry of one word reaches the next over the label. Thread t adds 2^32 - t to all ones.
#[test]
fn carry_is_kept_over_the_label_of_a_loop() {
    let body = "\
        .reg .b32 %i, %x, %z, %all;\nmov.u32 %i, 0;\nmov.u32 %r, 0;\nsub.u32 %x, 0, %t;\nadd.cc.u32 %z, %i, 0;\n\
        loop:\naddc.cc.u32 %z, %x, 0xffffffff;\nxor.b32 %r, %r, %z;\nmov.u32 %x, 0;\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %p1, %i, 8;\n@%p1 bra loop;\n\
        addc.u32 %all, %i, 0;\nmad.lo.u32 %r, %all, 1000, %r;";
    let expected: Vec<u32> = (0..32u32)
        .map(|t| {
            let mut carry = 0;
            let mut mixed = 0;
            for n in 0..8 {
                let x = if n == 0 { t.wrapping_neg() } else { 0 };
                let sum = u64::from(x) + 0xffff_ffff + carry;
                mixed ^= sum as u32;
                carry = sum >> 32;
            }
            (8 + carry as u32).wrapping_mul(1000).wrapping_add(mixed)
        })
        .collect();
    assert_eq!((expected[0], expected[1]), (8000, 8998));
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

/// A carry is set under a guard, and read under the same register with another value. Lane 5 sets the carry to 0.
#[test]
fn carry_is_kept_where_the_guard_of_its_writer_changes() {
    let body = "\
        .reg .b32 %x;\nmov.u32 %r, 0;\nsetp.eq.u32 %p1, %t, 5;\nadd.cc.u32 %x, %t, 0xffffffff;\n@%p1 add.cc.u32 %x, 0, %t;\n\
        setp.lt.u32 %p1, %t, 16;\n@%p1 addc.u32 %r, %t, 0;";
    let expected: Vec<u32> = (0..32)
        .map(|t| if t < 16 { t + u32::from(t != 0 && t != 5) } else { 0 })
        .collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

/// An address is a sum with a carry. Byte n of shared memory is n.
#[test]
fn carry_counts_in_an_address() {
    let body = "\
        .reg .b32 %x, %s, %y;\n.shared .b8 bytes[64];\nmov.u32 %s, bytes;\nadd.u32 %s, %s, %t;\nadd.u32 %y, %t, 32;\n\
        st.shared.u8 [%s], %t;\nst.shared.u8 [%s+32], %y;\nbar.sync 0;\n\
        add.cc.u32 %x, %t, 0xfffffff0;\naddc.u32 %y, %s, 4;\nld.shared.u8 %r, [%y];";
    let expected: Vec<u32> = (0..32).map(|t| t + 4 + u32::from(t >= 16)).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

/// The carry comes from an addition or a subtraction, by the branch taken. In the machine code of ptxas 11.8, both give the carry of an
/// IADD3, and `subc` adds it to the difference less 1. A false guard leaves the carry alone, and so does a division.
#[test]
fn carry_of_either_branch_and_under_a_guard_reaches_its_reader() {
    let body = "\
        .reg .b32 %x, %y;\nsetp.lt.u32 %p1, %t, 16;\n@%p1 bra adds;\nsub.cc.u32 %x, %t, 20;\nbra.uni join;\n\
        adds:\nadd.cc.u32 %x, %t, 0xfffffff8;\njoin:\naddc.u32 %r, %t, 0;\nsubc.u32 %y, 100, 0;\nmad.lo.u32 %r, %y, 1000, %r;\n\
        setp.eq.u32 %p2, %t, 5;\nadd.cc.u32 %x, %t, 0xffffffff;\n@%p2 add.cc.u32 %x, 0, %t;\ndiv.u32 %x, 100, %y;\naddc.u32 %x, %x, 10;\n\
        mad.lo.u32 %r, %x, 1000000, %r;";
    let expected: Vec<u32> = (0..32)
        .map(|t| {
            let carry = u32::from(if t < 16 { t >= 8 } else { t >= 20 });
            let guarded = u32::from(t != 0 && t != 5);
            let quotient = 100 / (99 + carry);
            (quotient + 10 + guarded) * 1_000_000 + (99 + carry) * 1000 + t + carry
        })
        .collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}
