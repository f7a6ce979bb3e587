//! `div.full.f32` and `div.approx.f32` on numbers of any exponent: at most 2 ulp from the quotient, as the PTX ISA says of `div`.

use crate::pairs;

const PAIRS: usize = 1 << 16;

fn kernel(instruction: &str) -> String {
    let block = pairs::BLOCK;
    format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, .param .u64 out)\n{{\n.reg .b32 %t, %u, %v, %a, %b;\n.reg .f32 %f<4>;\n\
         .reg .b64 %p, %q, %x, %y;\nld.param.u64 %p, [in];\nld.param.u64 %q, [out];\nmov.u32 %u, %ctaid.x;\nmov.u32 %v, %tid.x;\n\
         mad.lo.u32 %t, %u, {block}, %v;\nmad.wide.u32 %p, %t, 16, %p;\nmad.wide.u32 %q, %t, 8, %q;\nld.global.v2.u64 {{%x, %y}}, [%p];\n\
         cvt.u32.u64 %a, %x;\ncvt.u32.u64 %b, %y;\nmov.b32 %f1, %a;\nmov.b32 %f2, %b;\n{instruction} %f3, %f1, %f2;\nmov.b32 %a, %f3;\n\
         cvt.u64.u32 %x, %a;\nst.global.u64 [%q], %x;\nret;\n}}\n"
    )
}

/// Finite numbers, uniform over bit patterns, from a fixed seed.
fn numbers() -> impl Iterator<Item = u32> {
    let mut state = 88_172_645_463_325_252u64;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some((state >> 32) as u32)
    };
    std::iter::from_fn(next).filter(|bits| f32::from_bits(*bits).is_finite())
}

/// The rank of a float among all floats: neighbours differ by one.
fn rank(bits: u32) -> i64 {
    let magnitude = i64::from(bits & 0x7fff_ffff);
    if bits >> 31 == 0 { magnitude } else { -magnitude }
}

/// Checks [`PAIRS`] pairs for which `is_meant` is true: the result is at most 2 ulp from the rounded quotient.
fn check(instruction: &str, is_meant: impl Fn(f32, f32) -> bool) {
    let mut numbers = numbers();
    let pairs = std::iter::from_fn(|| Some([numbers.next()?, numbers.next()?]));
    let meant = pairs.filter(|[a, b]| is_meant(f32::from_bits(*a), f32::from_bits(*b)));
    let pairs: Vec<[u64; 2]> = meant.take(PAIRS).map(|pair| pair.map(u64::from)).collect();
    let found = pairs::results(instruction, &kernel(instruction), &pairs);
    for (pair, found) in pairs.iter().zip(found) {
        let [a, b] = pair.map(|bits| f32::from_bits(bits as u32));
        let wanted = (f64::from(a) / f64::from(b)) as f32;
        let far = (rank(found as u32) - rank(wanted.to_bits())).abs();
        assert!(
            far <= 2,
            "{instruction} of {a:e} and {b:e}: {:e}, not {wanted:e}",
            f32::from_bits(found as u32)
        );
    }
}

#[test]
fn full_range_quotients_are_at_most_two_ulp_off_for_every_divisor() {
    check("div.full.f32", |_, b| b != 0.0);
}

#[test]
fn ftz_quotients_are_at_most_two_ulp_off_without_subnormals() {
    check("div.full.ftz.f32", |a, b| {
        a.is_normal() && b.is_normal() && (a.abs() / b.abs() > 2.0 * f32::MIN_POSITIVE)
    });
}

#[test]
fn approximate_quotients_are_at_most_two_ulp_off_for_divisors_up_to_2_to_126() {
    let largest = f32::from_bits(0x7e80_0000);
    check("div.approx.f32", |_, b| b.is_normal() && b.abs() <= largest);
    check("div.approx.ftz.f32", |a, b| {
        a.is_normal() && b.is_normal() && b.abs() <= largest && (a.abs() / b.abs() > 2.0 * f32::MIN_POSITIVE)
    });
}
