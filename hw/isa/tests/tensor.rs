//! Matrix products against the fragment tables of the PTX ISA ("Matrix fragments for mma.m16n8k..."), written out element by
//! element. The matrices hold small integers, so every sum is exact and the integer product is the reference.

use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::program::Decoded;

/// Row and column of an element, from the lane's group, its position in the group, and the element's index.
type ElementPosition = fn(usize, usize, usize) -> (usize, usize);

/// A shape of the PTX ISA.
struct Shape {
    text: &'static str,
    m: usize,
    k: usize,
    /// Bits of an element of A and B.
    bits: usize,
    /// Elements of A, B and C per lane, and their positions: A by row and k, B by k and column, C by row and column.
    a: (usize, ElementPosition),
    b: (usize, ElementPosition),
    c: (usize, ElementPosition),
    encode: fn(i64) -> u64,
    /// Bits of an accumulator, and its encoding.
    sum_bits: usize,
    encode_sum: fn(i64) -> u64,
}

fn f16(value: i64) -> u64 {
    half::f16::from_f32(value as f32).to_bits().into()
}

fn bf16(value: i64) -> u64 {
    half::bf16::from_f32(value as f32).to_bits().into()
}

fn f32(value: i64) -> u64 {
    (value as f32).to_bits().into()
}

/// Encodes a tf32 with arbitrary bits in the ignored low part.
fn tf32(value: i64) -> u64 {
    f32(value) | 0x1abc
}

fn f64(value: i64) -> u64 {
    (value as f64).to_bits()
}

fn integer(value: i64) -> u64 {
    value as u64
}

const ACCUMULATORS: (usize, ElementPosition) = (4, |g, p, i| (if i < 2 { g } else { g + 8 }, 2 * p + (i & 1)));

/// Writes a fragment of the matrix into the words of an operand, from word `first` on.
fn fill(
    operands: &mut Operands,
    first: usize,
    bits: usize,
    (n, position): (usize, ElementPosition),
    element: impl Fn(usize, usize) -> u64,
) {
    for lane in 0..WARP_SIZE {
        for i in 0..n {
            let (x, y) = position(lane / 4, lane % 4, i);
            let value = element(x, y) & (u64::MAX >> (64 - bits));
            let (word, shift) = (first + i * bits / 32, i * bits % 32);
            operands.words[word].0[lane] |= (value << shift) as u32;
            if bits == 64 {
                operands.words[word + 1].0[lane] = (value >> 32) as u32;
            }
        }
    }
}

fn check(shape: &Shape) {
    let a = |row: usize, k: usize| (3 * row + 5 * k) as i64 % 7 - if shape.text.contains("U8") { 0 } else { 3 };
    let b = |k: usize, column: usize| (2 * k + 11 * column) as i64 % 5;
    let c = |row: usize, column: usize| (8 * row + column) as i64 - 40;
    let inst: Inst = shape.text.parse().expect("an instruction");
    let decoded = Decoded::of(&inst);
    let [first_a, first_b, first_c, _] = decoded.first_word.map(usize::from);
    let mut operands = Operands::default();
    let mut results = Results::default();
    fill(&mut operands, first_a, shape.bits, shape.a, |row, k| {
        (shape.encode)(a(row, k))
    });
    fill(&mut operands, first_b, shape.bits, shape.b, |k, column| {
        (shape.encode)(b(k, column))
    });
    fill(&mut operands, first_c, shape.sum_bits, shape.c, |row, column| {
        (shape.encode_sum)(c(row, column))
    });
    execute(&inst, &decoded, LaneMask::ALL, &operands, &mut results);

    let mut expected = Operands::default();
    fill(&mut expected, 0, shape.sum_bits, shape.c, |row, column| {
        assert!(row < shape.m && column < 8);
        let product: i64 = (0..shape.k).map(|k| a(row, k) * b(k, column)).sum();
        (shape.encode_sum)(product + c(row, column))
    });
    assert_eq!(results.words[..], expected.words[..4], "{}", shape.text);
}

#[test]
fn half_fragments_give_the_matrix_product() {
    let k16 = Shape {
        text: "MMA.16816F16 R0, R4, R8, R12",
        m: 16,
        k: 16,
        bits: 16,
        a: (8, |g, p, i| {
            let row = if i < 2 || (4..6).contains(&i) { g } else { g + 8 };
            (row, 2 * p + (i & 1) + if i >= 4 { 8 } else { 0 })
        }),
        b: (4, |g, p, i| (2 * p + (i & 1) + if i >= 2 { 8 } else { 0 }, g)),
        c: ACCUMULATORS,
        encode: f16,
        sum_bits: 32,
        encode_sum: f32,
    };
    check(&k16);
    check(&Shape {
        text: "MMA.16816BF16 R0, R4, R8, R12",
        encode: bf16,
        ..k16
    });
    check(&Shape {
        text: "MMA.16816F16.F16 R0, R4, R8, R12",
        sum_bits: 16,
        encode_sum: f16,
        ..k16
    });
    let k8 = Shape {
        text: "MMA.1688F16 R0, R4, R8, R12",
        k: 8,
        a: (4, |g, p, i| (if i < 2 { g } else { g + 8 }, 2 * p + (i & 1))),
        b: (2, |g, p, i| (2 * p + (i & 1), g)),
        ..k16
    };
    check(&k8);
    check(&Shape {
        text: "MMA.1688F16.F16 R0, R4, R8, R12",
        sum_bits: 16,
        encode_sum: f16,
        ..k8
    });
}

/// Runs a product, whose registers of A, B and C hold the given words in every lane. Returns the results of lane 0.
fn uniform(text: &str, [a, b, c]: [u32; 3]) -> [u32; 4] {
    let inst: Inst = text.parse().expect("an instruction");
    let decoded = Decoded::of(&inst);
    let [_, first_b, first_c, _] = decoded.first_word.map(usize::from);
    let mut operands = Operands::default();
    for (n, word) in operands.words.iter_mut().enumerate() {
        word.0.fill(if n < first_b { a } else { b });
        if n >= first_c {
            word.0.fill(c);
        }
    }
    let mut results = Results::default();
    execute(&inst, &decoded, LaneMask::ALL, &operands, &mut results);
    results.words.map(|word| word.0[0])
}

#[test]
fn half_accumulators_round_once_after_the_whole_sum() {
    let packed = |value: f32| u32::from(half::f16::from_f32(value).to_bits()) * 0x1_0001;
    for (text, depth) in [
        ("MMA.1688F16.F16", 8.0),
        ("MMA.16816F16.F16", 16.0),
        ("MMA.884F16.F16", 4.0),
    ] {
        let text = format!("{text} R0, R4, R8, R12");
        let run = |a, b, c| uniform(&text, [packed(a), packed(b), c]);
        // The numbers near 2048 are 2 apart: each step of 0.5 alone would be lost.
        assert_eq!(
            run(0.5, 1.0, packed(2048.0))[..2],
            [packed(2048.0 + depth / 2.0); 2],
            "{text}"
        );
        // 65504 is the greatest half. 16 more is a tie, which becomes infinite, and 8 more is rounded down.
        assert_eq!(
            run(depth.recip(), 16.0, packed(65504.0))[..2],
            [packed(f32::INFINITY); 2],
            "{text}"
        );
        assert_eq!(
            run(depth.recip(), 8.0, packed(65504.0))[..2],
            [packed(65504.0); 2],
            "{text}"
        );
        // NaN becomes the canonical one, and the smallest denormal is exact.
        assert_eq!(run(0.0, 1.0, 0xfc01_7c01)[..2], [0x7fff_7fff; 2], "{text}");
        assert_eq!(run(0.0, 1.0, 0x8001_0001)[..2], [0x8001_0001; 2], "{text}");
        // Only two registers are written.
        assert_eq!(run(1.0, 1.0, packed(1.0))[2..], [0; 2], "{text}");
    }
}

/// Random words: half accumulators give the product of the widened accumulators, rounded to nearest. The f32 result has lost the bits
/// below its last one, so the half is that of the f32 or of its neighbour.
#[test]
fn half_accumulators_give_the_rounded_f32_product() {
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    for shape in [
        "1688F16",
        "16816F16",
        "16832E4M3",
        "16832E5M2",
        "16832E4M3E5M2",
        "16832E5M2E4M3",
    ] {
        // Without the top exponent bits the factors are small. With them, many sums are infinite or NaN.
        for mask in [0xbfff_bfff, u32::MAX].repeat(50) {
            let [packed, plain] = ["F16", "F32"].map(|ty| {
                let inst: Inst = format!("MMA.{shape}.{ty} R0, R4, R8, R12")
                    .parse()
                    .expect("an instruction");
                (inst, Decoded::of(&inst))
            });
            let first_c = usize::from(packed.1.first_word[2]);
            let mut operands = Operands::default();
            for word in &mut operands.words[..first_c + 2] {
                word.0 = std::array::from_fn(|_| random() & mask);
            }
            let mut widened = operands.clone();
            for n in 0..4 {
                let halves = operands.words[first_c + n / 2]
                    .0
                    .map(|word| (word >> (16 * (n % 2))) as u16);
                widened.words[first_c + n].0 = halves.map(|bits| half::f16::from_bits(bits).to_f32().to_bits());
            }
            let run = |(inst, decoded): &(Inst, Decoded), operands| {
                let mut results = Results::default();
                execute(inst, decoded, LaneMask::ALL, operands, &mut results);
                results.words
            };
            let (got, sums) = (run(&packed, &operands), run(&plain, &widened));
            let rounded = |bits: u32| match half::f16::from_f32(f32::from_bits(bits)) {
                nan if nan.is_nan() => 0x7fff,
                number => u32::from(number.to_bits()),
            };
            for (lane, n) in (0..WARP_SIZE).flat_map(|lane| (0..2).map(move |n| (lane, n))) {
                for half in 0..2 {
                    let sum = sums[2 * n + half].0[lane];
                    let neighbour = if f32::from_bits(sum).is_finite() { sum + 1 } else { sum };
                    let found = got[n].0[lane] >> (16 * half) & 0xffff;
                    assert!(
                        [sum, neighbour].map(rounded).contains(&found),
                        "{shape}, lane {lane}: {found:x} of {sum:x}"
                    );
                }
            }
        }
    }
}

#[test]
fn tf32_fragments_give_the_matrix_product() {
    let k8 = Shape {
        text: "MMA.1688TF32 R0, R4, R8, R12",
        m: 16,
        k: 8,
        bits: 32,
        a: (4, |g, p, i| {
            (if i == 0 || i == 2 { g } else { g + 8 }, if i < 2 { p } else { p + 4 })
        }),
        b: (2, |g, p, i| (p + 4 * i, g)),
        c: ACCUMULATORS,
        encode: tf32,
        sum_bits: 32,
        encode_sum: f32,
    };
    check(&k8);
    check(&Shape {
        text: "MMA.1684TF32 R0, R4, R8, R12",
        k: 4,
        a: (2, |g, p, i| (g + 8 * i, p)),
        b: (1, |g, p, _| (p, g)),
        ..k8
    });
}

#[test]
fn byte_fragments_give_the_matrix_product() {
    let signed = Shape {
        text: "MMA.16832S8 R0, R4, R8, R12",
        m: 16,
        k: 32,
        bits: 8,
        a: (16, |g, p, i| {
            let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
            (row, 4 * p + (i & 3) + if i < 8 { 0 } else { 16 })
        }),
        b: (8, |g, p, i| (4 * p + (i & 3) + if i < 4 { 0 } else { 16 }, g)),
        c: ACCUMULATORS,
        encode: integer,
        sum_bits: 32,
        encode_sum: integer,
    };
    check(&signed);
    check(&Shape {
        text: "MMA.16832U8 R0, R4, R8, R12",
        ..signed
    });
}

/// Elements of four bits, eight per register, alternately in rows g and g + 8. Then bf16 with a depth of 8.
#[test]
fn smaller_fragments_give_the_matrix_product() {
    let nibbles = Shape {
        text: "MMA.16864S4 R0, R4, R8, R12",
        m: 16,
        k: 64,
        bits: 4,
        a: (32, |g, p, i| {
            let row = if i < 8 || (16..24).contains(&i) { g } else { g + 8 };
            (row, 8 * p + (i & 7) + if i < 16 { 0 } else { 32 })
        }),
        b: (16, |g, p, i| (8 * p + (i & 7) + if i < 8 { 0 } else { 32 }, g)),
        c: ACCUMULATORS,
        encode: integer,
        sum_bits: 32,
        encode_sum: integer,
    };
    check(&nibbles);
    check(&Shape {
        text: "MMA.16832S4U4 R0, R4, R8, R12",
        k: 32,
        a: (16, |g, p, i| (if i < 8 { g } else { g + 8 }, 8 * p + (i & 7))),
        b: (8, |g, p, i| (8 * p + i, g)),
        ..nibbles
    });
    check(&Shape {
        text: "MMA.1688BF16 R0, R4, R8, R12",
        k: 8,
        bits: 16,
        a: (4, |g, p, i| (if i < 2 { g } else { g + 8 }, 2 * p + (i & 1))),
        b: (2, |g, p, i| (2 * p + (i & 1), g)),
        encode: bf16,
        encode_sum: f32,
        ..nibbles
    });
}

#[test]
fn double_fragments_give_the_matrix_product() {
    check(&Shape {
        text: "MMA.884F64 R0, R4, R8, R12",
        m: 8,
        k: 4,
        bits: 64,
        a: (1, |g, p, _| (g, p)),
        b: (1, |g, p, _| (p, g)),
        c: (2, |g, p, i| (g, 2 * p + i)),
        encode: f64,
        sum_bits: 64,
        encode_sum: f64,
    });
}

#[test]
fn byte_sums_out_of_range_clamp_only_with_sat() {
    let run = |text: &str| {
        let inst: Inst = text.parse().expect("an instruction");
        let mut operands = Operands::default();
        for word in 0..6 {
            operands.words[word].0.fill(0x0101_0101);
        }
        for word in 6..10 {
            operands.words[word].0.fill(i32::MAX as u32);
        }
        let mut results = Results::default();
        execute(&inst, &Decoded::of(&inst), LaneMask::ALL, &operands, &mut results);
        results.words[0].0[0]
    };
    assert_eq!(run("MMA.16832S8 R0, R4, R8, R12"), 0x7fff_ffffu32.wrapping_add(32));
    assert_eq!(run("MMA.16832S8.SAT R0, R4, R8, R12"), 0x7fff_ffff);
}

/// CUDA C++ Programming Guide, `mma_sync` with `satf`: infinities become the largest finite number, a NaN becomes +0.
#[test]
fn float_sums_out_of_range_are_finite_with_sat() {
    let half = |value: f32| u32::from(half::f16::from_f32(value).to_bits()) * 0x1_0001;
    let one = half(1.0);
    for (c, sum) in [
        (f32::INFINITY, f32::MAX),
        (f32::NEG_INFINITY, f32::MIN),
        (f32::NAN, 0.0),
        (2.0, 18.0),
    ] {
        let found = uniform("MMA.16816F16.F32.SAT R0, R4, R8, R12", [one, one, c.to_bits()]);
        assert_eq!(found, [sum.to_bits(); 4], "{c}");
    }
    for (c, sum) in [
        (65504.0, 65504.0),
        (f32::NEG_INFINITY, -65504.0),
        (f32::NAN, 0.0),
        (2.0, 18.0),
    ] {
        let found = uniform("MMA.16816F16.F16.SAT R0, R4, R8, R12", [one, one, half(c)]);
        assert_eq!(found[..2], [half(sum); 2], "{c}");
    }
}

/// The largest f32 is 2^128 - 2^104. A sum below 2^128 is cut off to it, because the tensor cores round toward zero.
#[test]
fn sum_between_the_largest_f32_and_its_next_power_is_cut_off() {
    let run = |sign: f32, n_products: usize| {
        let inst: Inst = "MMA.1684TF32.F32 R0, R4, R8, R12".parse().expect("an instruction");
        let decoded = Decoded::of(&inst);
        let [_, b, c, _] = decoded.first_word.map(usize::from);
        let mut operands = Operands::default();
        for lane in 0..WARP_SIZE {
            // Position p of a group holds column p of A.
            let factor = if lane % 4 < n_products { 51f32.exp2() } else { 0.0 };
            operands.words[..b]
                .iter_mut()
                .for_each(|word| word.0[lane] = (sign * factor).to_bits());
            operands.words[b].0[lane] = 51f32.exp2().to_bits();
            operands.words[c..c + 4]
                .iter_mut()
                .for_each(|word| word.0[lane] = (sign * f32::MAX).to_bits());
        }
        let mut results = Results::default();
        execute(&inst, &decoded, LaneMask::ALL, &operands, &mut results);
        results.words[0].0.map(f32::from_bits)[0]
    };
    // Each product is 2^102.
    assert_eq!([1, 2, 3].map(|n| run(1.0, n)), [f32::MAX; 3]);
    assert_eq!(run(1.0, 4), f32::INFINITY);
    assert_eq!([3, 4].map(|n| run(-1.0, n)), [f32::MIN, f32::NEG_INFINITY]);
}
