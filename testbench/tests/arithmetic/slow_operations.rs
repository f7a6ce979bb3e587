//! Division, roots and reciprocals, which the lowering expands to sequences: bit-exact tests on the reference. Expectations come from exact
//! fractions (`slow_operations.txt`, written by `generate.py` of the vectors), or from IEEE arithmetic of the host and its neighbours.

use std::collections::BTreeMap;

use crate::pairs::{self, BLOCK};

/// A kernel that applies an instruction to pairs of 64-bit numbers.
fn kernel(instruction: &str) -> String {
    let bits = instruction.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap();
    let letter = match bits {
        "64" => "rd",
        "32" => "r",
        _ => "h",
    };
    let second = match &instruction[..3] {
        "div" | "rem" => format!(", %{letter}y"),
        _ => String::new(),
    };
    format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .b16 %hx, %hy, %hz;\n.reg .b32 %rx, %ry, %rz, %t, %u, %v, %w;\n.reg .b64 %rdx, %rdy, %rdz, %p, %q, %rz64;\n\
         ld.param.u64 %p, [in];\nld.param.u64 %q, [out];\nmov.u32 %u, %ctaid.x;\nmov.u32 %v, %tid.x;\nmad.lo.u32 %t, %u, {BLOCK}, %v;\n\
         mad.wide.u32 %p, %t, 16, %p;\nmad.wide.u32 %q, %t, 8, %q;\nld.global.v2.u64 {{%rdx, %rdy}}, [%p];\n\
         cvt.u32.u64 %rx, %rdx;\ncvt.u32.u64 %ry, %rdy;\ncvt.u16.u64 %hx, %rdx;\ncvt.u16.u64 %hy, %rdy;\n\
         mov.b16 %hz, 0;\nmov.b32 %rz, 0;\nmov.b64 %rdz, 0;\n{instruction} %{letter}z, %{letter}x{second};\n\
         cvt.u64.u16 %rz64, %hz;\nor.b64 %rdz, %rdz, %rz64;\ncvt.u64.u32 %rz64, %rz;\nor.b64 %rdz, %rdz, %rz64;\n\
         st.global.u64 [%q], %rdz;\nret;\n}}\n"
    )
}

/// Checks every pair. Panics with the first few that fail.
fn check(instruction: &str, pairs: &[[u64; 2]], expected: impl Fn(u64, u64) -> u64) {
    let found = pairs::results(instruction, &kernel(instruction), pairs);
    let faults: Vec<String> = pairs
        .iter()
        .zip(found)
        .filter(|&(&[x, y], found)| found != expected(x, y))
        .map(|(&[x, y], found)| format!("{x:x} {y:x}: {found:x}, not {:x}", expected(x, y)))
        .collect();
    let few = faults.len().min(12);
    assert!(
        faults.is_empty(),
        "{instruction}, {} cases: {}",
        faults.len(),
        faults[..few].join("\n")
    );
}

/// `INSTRUCTION : words -> words`: pairs and results by instruction.
fn vectors() -> BTreeMap<&'static str, Vec<([u64; 2], u64)>> {
    let mut cases: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let lines = include_str!("slow_operations.txt").lines();
    for line in lines.filter(|line| line.contains(" : ")) {
        let (instruction, rest) = line.split_once(" : ").unwrap();
        let (inputs, result) = rest.split_once("->").unwrap();
        let per_number = if instruction.ends_with("64") { 2 } else { 1 };
        let numbers = |side: &str| -> Vec<u64> {
            let words = side
                .split_whitespace()
                .map(|word| u64::from_str_radix(word, 16).unwrap());
            let words: Vec<u64> = words.collect();
            let number = |words: &[u64]| words.iter().rev().fold(0, |sum, word| sum << 32 | word);
            words.chunks(per_number).map(number).collect()
        };
        let inputs = numbers(inputs);
        let pair = [inputs[0], inputs.get(1).copied().unwrap_or(0)];
        cases.entry(instruction).or_default().push((pair, numbers(result)[0]));
    }
    cases
}

#[test]
fn quotients_and_roots_match_exact_fractions() {
    let vectors = vectors();
    assert_eq!(
        vectors.len(),
        4 * 3 * 3 + 12,
        "roundings of f32, f32.ftz and f64; signs of three integers"
    );
    for (instruction, cases) in vectors {
        let (pairs, wanted): (Vec<_>, Vec<_>) = cases.iter().copied().unzip();
        let by_pair: BTreeMap<[u64; 2], u64> = pairs.iter().copied().zip(wanted).collect();
        check(instruction, &pairs, |x, y| by_pair[&[x, y]]);
    }
}

/// Pseudo-random numbers from a fixed seed.
fn random(n: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x243f_6a88_85a3_08d3u64;
    (0..n).map(move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 32
    })
}

/// Random pairs. Half of them are arbitrary bits. The others have one exponent, so that quotients are near one.
fn pairs(n: usize, exponent: u64, one: u64) -> Vec<[u64; 2]> {
    let numbers: Vec<u64> = random(2 * n).collect();
    let near = |x: u64| x & !exponent | one;
    let pairs = numbers.chunks(2).enumerate();
    pairs
        .map(|(at, pair)| {
            if at % 2 == 0 {
                [pair[0], pair[1]]
            } else {
                [near(pair[0]), near(pair[1])]
            }
        })
        .collect()
}

/// Rounds an f64 quotient or root to an f32 in this mode. The f64 is exact, or its error is far below an f32's precision.
fn toward(mode: &str, exact: f64) -> f32 {
    let nearest = exact as f32;
    let (up, down) = (f64::from(nearest) < exact, f64::from(nearest) > exact);
    match mode {
        "rp" if up => nearest.next_up(),
        "rm" if down => nearest.next_down(),
        "rz" if up && exact < 0.0 => nearest.next_up(),
        "rz" if down && exact > 0.0 => nearest.next_down(),
        _ => nearest,
    }
}

fn single(value: f32) -> u64 {
    u64::from(if value.is_nan() { 0x7fff_ffff } else { value.to_bits() })
}

fn wide(value: u64) -> f64 {
    f64::from(f32::from_bits(value as u32))
}

#[test]
fn f32_results_are_the_rounded_f64_results() {
    let pairs = pairs(1 << 15, 0x7f80_0000, 0x3f80_0000);
    for mode in ["rn", "rz", "rm", "rp"] {
        check(&format!("div.{mode}.f32"), &pairs, |x, y| {
            single(toward(mode, wide(x) / wide(y)))
        });
        check(&format!("rcp.{mode}.f32"), &pairs, |x, _| {
            single(toward(mode, 1.0 / wide(x)))
        });
        check(&format!("sqrt.{mode}.f32"), &pairs, |x, _| {
            single(toward(mode, wide(x).sqrt()))
        });
    }
}

fn double(value: f64) -> u64 {
    if value.is_nan() {
        0xfff8_0000_0000_0000
    } else {
        value.to_bits()
    }
}

#[test]
fn f64_results_to_nearest_match_the_host() {
    let pairs = pairs(1 << 15, 0x7ff0_0000_0000_0000, 0x3ff0_0000_0000_0000);
    let f = f64::from_bits;
    check("div.rn.f64", &pairs, |x, y| double(f(x) / f(y)));
    check("rcp.rn.f64", &pairs, |x, _| double(1.0 / f(x)));
    check("sqrt.rn.f64", &pairs, |x, _| double(f(x).sqrt()));
}

/// The result of a directed rounding: `nearest` or its neighbour, by the sign of the remainder.
fn adjusted(mode: &str, nearest: f64, rest: f64) -> f64 {
    match mode {
        "rp" if rest > 0.0 => nearest.next_up(),
        "rm" if rest < 0.0 => nearest.next_down(),
        "rz" if rest < 0.0 && nearest > 0.0 => nearest.next_down(),
        "rz" if rest > 0.0 && nearest < 0.0 => nearest.next_up(),
        _ => nearest,
    }
}

/// The quotient in a directed rounding, if its remainder is exact.
fn directed_quotient(mode: &str, x: f64, y: f64) -> u64 {
    let q = x / y;
    let rest = (-q).mul_add(y, x);
    double(adjusted(mode, q, if y < 0.0 { -rest } else { rest }))
}

#[test]
fn f64_results_of_directed_roundings_match_the_remainder() {
    let all = pairs(1 << 14, 0x7ff0_0000_0000_0000, 0x3ff0_0000_0000_0000);
    let near: Vec<_> = all.into_iter().skip(1).step_by(2).collect();
    let f = f64::from_bits;
    for mode in ["rz", "rm", "rp"] {
        check(&format!("div.{mode}.f64"), &near, |x, y| {
            directed_quotient(mode, f(x), f(y))
        });
        check(&format!("sqrt.{mode}.f64"), &near, |x, _| {
            let root = f(x).sqrt();
            double(adjusted(mode, root, (-root).mul_add(root, f(x))))
        });
    }
}

/// The inverse of an odd number modulo 2^64.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

/// Tests quotients as near as possible to the midpoint of two doubles. The divisor b is odd and has 53 bits. For an odd midpoint k of 54 bits,
/// k b is a whole number of units of the dividend plus a small rest.
#[test]
fn quotients_next_to_a_midpoint_are_rounded_correctly() {
    let mut hard = Vec::new();
    for number in random(1 << 13) {
        let b = (number & ((1 << 53) - 1)) | 1 << 52 | 1;
        for rest in [1u64, 3, 5, u64::MAX, u64::MAX - 2, u64::MAX - 4] {
            let k = inverse(b).wrapping_mul(rest) & ((1 << 54) - 1) | 1 << 53;
            let product = u128::from(k) * u128::from(b);
            let a = (product.wrapping_sub(rest as i64 as u128) >> 53) as u64;
            let a = a >> (11u32.saturating_sub(a.leading_zeros()));
            let number = |bits: u64| (bits as f64).to_bits();
            hard.push([number(a), number(b)]);
        }
    }
    let f = f64::from_bits;
    check("div.rn.f64", &hard, |x, y| double(f(x) / f(y)));
    check("rcp.rn.f64", &hard, |x, _| double(1.0 / f(x)));
}

/// A number with this sign bit, biased exponent and fraction.
fn parts(sign: u64, exponent: u64, fraction: u64) -> u64 {
    sign << 63 | exponent << 52 | fraction
}

/// The reciprocal of 2 - 2^-52 is just above a midpoint: 2^-1 (1 + 2^-53 + 2^-106 + ...). So an error of the seed shows.
#[test]
fn divisors_whose_fraction_is_all_ones_are_rounded_correctly() {
    const ONES: u64 = (1 << 52) - 1;
    let mut hard: Vec<[u64; 2]> = Vec::new();
    for exponent in 0..0x7ff {
        let sign = exponent & 1;
        // A power of two, subnormal results too.
        for dividend in [1, 0x3ff, exponent, 0x7fe - exponent, 0x7fe] {
            for below in [0, 1, 2, 3, 1 << 32] {
                hard.push([parts(0, dividend, 0), parts(sign, exponent, ONES - below)]);
            }
        }
    }
    for pair in random(1 << 13).collect::<Vec<_>>().chunks(2) {
        let exponent = pair[1] >> 53 & 0x3ff | 0x200;
        hard.push([pair[0], parts(pair[1] >> 63, exponent, ONES - (pair[1] & 7))]);
    }
    let f = f64::from_bits;
    check("div.rn.f64", &hard, |x, y| double(f(x) / f(y)));
    let divisors = |pairs: &[[u64; 2]]| pairs.iter().map(|&[_, y]| [y, 0]).collect::<Vec<_>>();
    check("rcp.rn.f64", &divisors(&hard), |x, _| double(1.0 / f(x)));
    // Only where the remainder is exact: quotients and products far from the ends of the range.
    let inner = |x: u64| (0x100..0x600).contains(&(x >> 52 & 0x7ff));
    let near: Vec<[u64; 2]> = hard
        .iter()
        .copied()
        .filter(|pair| pair.iter().all(|&x| inner(x)))
        .collect();
    assert!(near.len() > 3000, "{}", near.len());
    for mode in ["rz", "rm", "rp"] {
        check(&format!("div.{mode}.f64"), &near, |x, y| {
            directed_quotient(mode, f(x), f(y))
        });
        check(&format!("rcp.{mode}.f64"), &divisors(&near), |x, _| {
            directed_quotient(mode, 1.0, f(x))
        });
    }
}

/// Quotients by hand. The first is 2^372 / -((2 - 2^-52) 2^1023) = -2^-652 (1 + 2^-53 + ...).
/// The second is 1 / (1 - 2^-53) = 1 + 2^-53 + ....
#[test]
fn reciprocals_just_above_a_midpoint_round_up() {
    check(
        "div.rn.f64",
        &[[0x5730_0000_0000_0000, 0xffef_ffff_ffff_ffff]],
        |_, _| 0x9730_0000_0000_0001,
    );
    check("rcp.rn.f64", &[[0x3fef_ffff_ffff_ffff, 0]], |_, _| {
        0x3ff0_0000_0000_0001
    });
}

/// Tests squares with roots next to the midpoint of two doubles: midpoints m of 54 bits with m^2 = c modulo the unit of the square.
/// All such m are tested for small c, so no root is nearer to a midpoint.
#[test]
fn roots_next_to_a_midpoint_are_rounded_correctly() {
    let mut hard = Vec::new();
    for c in (-103i64..100).step_by(8) {
        for bits in [54u32, 55] {
            // A root of c modulo 2^bits, bit by bit; c is 1 modulo 8.
            let modulus = |n: u32| (1u128 << n) - 1;
            let mut root = 1u128;
            for n in 3..bits {
                let square = root.wrapping_mul(root).wrapping_sub(c as i128 as u128) & modulus(n + 1);
                root = if square == 0 { root } else { root + (1 << (n - 1)) };
            }
            let half = 1u128 << (bits - 1);
            for middle in [
                root,
                half + root,
                (2 * half) - root,
                half.wrapping_sub(root) & modulus(bits),
            ] {
                let middle = middle & modulus(bits);
                let square = (middle * middle).wrapping_sub(c as i128 as u128);
                if (1 << 53..1 << 54).contains(&middle) && square & modulus(bits) == 0 {
                    hard.push([
                        ((square >> bits) as u64 as f64).to_bits() + ((u64::from(bits) & 1) << 52),
                        0,
                    ]);
                }
            }
        }
    }
    assert!(hard.len() > 20, "{}", hard.len());
    check("sqrt.rn.f64", &hard, |x, _| double(f64::from_bits(x).sqrt()));
}

#[test]
fn integer_quotients_and_remainders_match_rust() {
    let mut pairs = pairs(1 << 14, 0, 0);
    // Divisors of every length, and quotients one off a whole one.
    for (n, pair) in pairs.iter_mut().enumerate() {
        pair[1] >>= n % 64;
        if n % 3 == 0 {
            pair[0] = (pair[0] >> 32).wrapping_mul(pair[1]).wrapping_sub((n % 5) as u64);
        }
    }
    let by = |y: u64, value: u64| if y == 0 { u64::MAX } else { value };
    check("div.u64", &pairs, |x, y| by(y, x.checked_div(y).unwrap_or(0)));
    check("rem.u64", &pairs, |x, y| by(y, x.checked_rem(y).unwrap_or(0)));
    check("div.s64", &pairs, |x, y| {
        by(y, (x as i64).checked_div(y as i64).unwrap_or(0) as u64)
    });
    check("rem.s64", &pairs, |x, y| {
        by(y, (x as i64).checked_rem(y as i64).unwrap_or(0) as u64)
    });
    let by = |y: u64, value: u32| if y as u32 == 0 { 0xffff_ffff } else { u64::from(value) };
    check("div.u32", &pairs, |x, y| {
        by(y, (x as u32).checked_div(y as u32).unwrap_or(0))
    });
    check("rem.u32", &pairs, |x, y| {
        by(y, (x as u32).checked_rem(y as u32).unwrap_or(0))
    });
    check("div.s32", &pairs, |x, y| {
        by(y, (x as i32).checked_div(y as i32).unwrap_or(0) as u32)
    });
    check("rem.s32", &pairs, |x, y| {
        by(y, (x as i32).checked_rem(y as i32).unwrap_or(0) as u32)
    });
}

#[test]
fn quotients_of_every_u16_match_rust() {
    let divisors = [1u64, 2, 3, 7, 10, 127, 255, 256, 1000, 32767, 32768, 65533, 65535];
    let pairs: Vec<[u64; 2]> = (0..0x1_0000).flat_map(|x| divisors.map(|y| [x, y])).collect();
    check("div.u16", &pairs, |x, y| x / y);
    check("rem.s16", &pairs, |x, y| {
        let (x, y) = (x as u16 as i16, y as u16 as i16);
        u64::from(x.wrapping_rem(y) as u16)
    });
}
