//! `div.approx.f32` and `div.full.f32` with divisors or quotients outside the normal range (PTX ISA, notes on `div`).

use super::{Kernel, one_word_each};

/// 2 to this power, in bits.
const fn power(exponent: i32) -> u32 {
    if exponent >= -126 {
        ((exponent + 127) as u32) << 23
    } else {
        1 << (exponent + 149)
    }
}

const MINUS: u32 = 1 << 31;
const INFINITY: u32 = power(128);
const NAN: u32 = 0x7fff_ffff;
const LARGEST: u32 = INFINITY - 1;

/// Divides the first by the second number of each case, all as bits. Any NaN counts as [`NAN`].
fn hold(instruction: &str, cases: &[(u32, u32, u32)]) {
    let body = format!(
        "mad.wide.u32 %d1, %t, 4, %o;\nld.global.f32 %f1, [%d1+{first}];\nld.global.f32 %f2, [%d1+{second}];\n{instruction} %f3, %f1, %f2;\n\
         mov.b32 %r, %f3;\ntestp.notanumber.f32 %p1, %f3;\nselp.u32 %r, 0x7fffffff, %r, %p1;",
        first = 4 * cases.len(),
        second = 4 * cases.len() + 4,
    );
    let numbers: Vec<u32> = cases.iter().flat_map(|&(a, b, _)| [a, b]).collect();
    let results: Vec<u32> = cases.iter().map(|&(.., quotient)| quotient).collect();
    let before: Vec<u32> = results.iter().map(|_| 0).chain(numbers.iter().copied()).collect();
    let after: Vec<u32> = results.iter().chain(&numbers).copied().collect();
    println!("{instruction}: {results:x?}");
    Kernel::of(&one_word_each("sm_80", &body))
        .sizes(1, cases.len() as u32)
        .changed(&before, &after)
        .holds();
}

/// Divisors in [2^-126, 2^126], zero and infinity. The quotients of powers of two are exact in every form.
const PLAIN: [(u32, u32, u32); 14] = [
    (power(0), power(2), power(-2)),
    (power(3) | MINUS, power(1), power(2) | MINUS),
    (power(126), power(126), power(0)),
    (power(0), power(126), power(-126)),
    (power(127), power(126) | MINUS, power(1) | MINUS),
    (power(-126), power(-126), power(0)),
    (power(100), power(-100), INFINITY),
    (power(0), 0, INFINITY),
    (power(0) | MINUS, 0, INFINITY | MINUS),
    (0, 0, NAN),
    (LARGEST, INFINITY, 0),
    (power(0), INFINITY | MINUS, MINUS),
    (INFINITY, INFINITY, NAN),
    (INFINITY, power(126), INFINITY),
];

/// `div.approx` by divisors between 2^126 and 2^128: NaN if the dividend is infinity, otherwise a sign-preserving zero.
const LARGE_APPROXIMATE: [(u32, u32, u32); 14] = [
    (power(126), power(126) + 1, 0),
    (power(126) | MINUS, power(126) + 1, MINUS),
    (power(126), (power(126) + 1) | MINUS, MINUS),
    (power(127) | MINUS, power(127) | MINUS, 0),
    (power(127), power(127), 0),
    (LARGEST, power(127), 0),
    (LARGEST, LARGEST, 0),
    (power(0), LARGEST | MINUS, MINUS),
    (0, power(127), 0),
    (MINUS, power(127), MINUS),
    (INFINITY, power(126) + 1, NAN),
    (INFINITY | MINUS, power(127), NAN),
    (INFINITY, LARGEST | MINUS, NAN),
    (NAN, power(127), NAN),
];

/// `div.full` by divisors between 2^126 and 2^128: the quotient.
const LARGE_FULL: [(u32, u32, u32); 9] = [
    (power(127), power(127), power(0)),
    (power(127) | MINUS, power(127), power(0) | MINUS),
    (power(126), power(127), power(-1)),
    (power(100), power(127) | MINUS, power(-27) | MINUS),
    (power(1), power(127), power(-126)),
    (0, power(127), 0),
    (INFINITY, power(127), INFINITY),
    (INFINITY | MINUS, LARGEST, INFINITY | MINUS),
    (NAN, power(127), NAN),
];

/// Subnormal divisors and quotients, without `.ftz`.
const SMALL: [(u32, u32, u32); 7] = [
    (power(0), power(-127), power(127)),
    (power(0) | MINUS, power(-127), power(127) | MINUS),
    (power(-127), power(-127), power(0)),
    (power(0), power(-149), INFINITY),
    (INFINITY, power(-127), INFINITY),
    (power(-127), power(1), power(-128)),
    (power(-126), power(3) | MINUS, power(-129) | MINUS),
];

/// Subnormal divisors and quotients with `.ftz`: inputs and results become zeros of their sign.
const SMALL_FLUSHED: [(u32, u32, u32); 7] = [
    (power(0), power(-127), INFINITY),
    (power(0) | MINUS, power(-127), INFINITY | MINUS),
    (power(-127), power(-127), NAN),
    (power(0), power(-149) | MINUS, INFINITY | MINUS),
    (power(-127), power(1), 0),
    (power(-126), power(3) | MINUS, MINUS),
    (power(-127) | MINUS, power(-10), MINUS),
];

#[test]
fn approximate_quotient_by_a_large_divisor_is_zero_or_nan() {
    for instruction in ["div.approx.f32", "div.approx.ftz.f32"] {
        hold(instruction, &LARGE_APPROXIMATE);
    }
}

#[test]
fn full_range_quotient_by_a_large_divisor_is_the_quotient() {
    for instruction in ["div.full.f32", "div.full.ftz.f32"] {
        hold(instruction, &LARGE_FULL);
    }
    hold("div.full.f32", &[(power(0), power(127), power(-127))]);
    hold("div.full.ftz.f32", &[(power(0) | MINUS, power(127), MINUS)]);
}

#[test]
fn quotients_of_normal_numbers_zeros_and_infinities_match_ieee() {
    for form in [".approx", ".approx.ftz", ".full", ".full.ftz"] {
        hold(&format!("div{form}.f32"), &PLAIN);
    }
}

#[test]
fn subnormal_divisors_and_quotients_are_kept_or_flushed() {
    for form in [".approx", ".full"] {
        hold(&format!("div{form}.f32"), &SMALL);
        hold(&format!("div{form}.ftz.f32"), &SMALL_FLUSHED);
    }
}
