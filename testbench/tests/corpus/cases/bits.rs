//! Integers: bit tricks, packed bytes, wide and extended-precision arithmetic, random numbers, conversions. All results are exact.

use crate::case::{Case, Param, ceil, free, input, int, output, scalar};
use crate::draw::{bits, bytes, doubles, floats, ints, words};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        bit_tricks(),
        dp4a_gemv(),
        byte_simd(),
        mul256(),
        divmod64(),
        add_carry_chain(),
        mod_mul(),
        pi_lcg(),
        pi_philox(),
        convert_zoo(i32::MIN, i32::MAX)
            .about("integers longer than an f32")
            .except("clang19-sm_80", "clang 19 rounds `__int2float_rz` to nearest"),
        convert_zoo(-0x7f_ffff, 0x7f_ffff).about("integers that an f32 holds"),
        convert_beyond_every_range(),
    ]
}

/// Position of the lowest set bit, counted from 1. 0 if no bit is set.
fn first_set(word: u64) -> u32 {
    if word == 0 { 0 } else { word.trailing_zeros() + 1 }
}

/// Position of the highest bit that differs from the sign. All ones if no bit differs.
fn highest_unlike_sign(v: i32) -> u32 {
    let unlike = if v < 0 { !v } else { v };
    (31 - unlike.leading_zeros() as i32) as u32
}

fn tricks(v: u32, q: u64) -> u32 {
    let low = q as u32;
    let mut r = v.count_ones() + q.count_ones() + v.leading_zeros() + q.leading_zeros();
    r += first_set(v.into()) + first_set(q);
    r ^= v.reverse_bits() ^ q.reverse_bits() as u32;
    let funnel = u64::from(low) << 32 | u64::from(v);
    r ^= (funnel << (v & 31) >> 32) as u32 ^ (funnel >> 7) as u32;
    let eight: Vec<u8> = [v.to_le_bytes(), ((q >> 32) as u32).to_le_bytes()].concat();
    r ^= u32::from_le_bytes([2, 4, 1, 6].map(|at: usize| eight[at]));
    r = r.wrapping_add(v >> 5 & 0x1ff);
    r ^= r & !(0x3f << 11) | (v & 0x3f) << 11;
    r ^= v ^ r ^ low;
    r ^= v >> 13 & 0x7f;
    let signed = i64::from(v as i32);
    let products = (signed << 40 >> 40) * 77 + ((signed * 12345) >> 32);
    let means = ((signed + i64::from(r as i32)) >> 1) + ((signed + 3 + 1) >> 1);
    r = r.wrapping_add((products + means) as u32);
    r.wrapping_add(highest_unlike_sign(v as i32))
}

fn bit_tricks() -> Case {
    let n = 201;
    let (mut a, mut b) = (bits(1, n), words(2, n));
    a[..5].copy_from_slice(&[0, u32::MAX, 1, 0x8000_0000, 0x7fff_ffff]);
    b[..5].copy_from_slice(&[0, u64::MAX, 1 << 63, 0, 1]);
    let results: Vec<_> = a.iter().zip(&b).map(|(&v, &q)| tricks(v, q)).collect();
    Case::cuda("bit_tricks", "bit_tricks").launch(ceil(n, 128), 128).args([
        input(&a),
        input(&b),
        output(&vec![0; n], &results),
        int(n),
    ])
}

fn dp4a_gemv() -> Case {
    let (rows, k) = (150, 13);
    let (a, x) = (bytes(3, rows * 4 * k), bytes(4, 4 * k));
    let dot = |row: &[u8]| {
        row.iter()
            .zip(&x)
            .map(|(&a, &x)| i32::from(a as i8) * i32::from(x as i8))
            .sum()
    };
    let y: Vec<i32> = a.chunks(4 * k).map(dot).collect();
    Case::cuda("dp4a_int8", "dp4a_gemv").launch(ceil(rows, 128), 128).args([
        input(&a),
        input(&x),
        output(&vec![0; rows], &y),
        int(rows),
        int(k),
    ])
}

fn byte_simd() -> Case {
    let n = 201;
    let (a, b) = (bits(5, n), bits(6, n));
    let each = |a: u32, b: u32, of: fn(u8, u8) -> u8| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        u32::from_le_bytes(std::array::from_fn(|at| of(a[at], b[at])))
    };
    let sum = |(&a, &b): (&u32, &u32)| {
        let terms = [
            each(a, b, u8::abs_diff),
            each(a, b, u8::max),
            (a as i32).abs_diff(b as i32).wrapping_add(3),
            each(a, b, u8::saturating_add),
        ];
        terms.into_iter().fold(0, u32::wrapping_add)
    };
    let c: Vec<_> = a.iter().zip(&b).map(sum).collect();
    Case::cuda("dp4a_int8", "byte_simd").launch(ceil(n, 128), 128).args([
        input(&a),
        input(&b),
        output(&vec![0; n], &c),
        int(n),
    ])
}

/// The product of two numbers of eight digits in base 2^32, column by column.
fn long_product(a: &[u64], b: &[u64]) -> Vec<u64> {
    let digits = |number: &[u64]| -> Vec<u128> {
        number
            .iter()
            .flat_map(|&word| [u128::from(word as u32), u128::from(word >> 32)])
            .collect()
    };
    let (a, b) = (digits(a), digits(b));
    let mut carry = 0u128;
    let mut column = |at: usize| {
        let pairs = (0..8).filter(|&i| at >= i && at - i < 8);
        carry += pairs.map(|i| a[i] * b[at - i]).sum::<u128>();
        let digit = carry as u32;
        carry >>= 32;
        u64::from(digit)
    };
    (0..8)
        .map(|word| column(2 * word) | column(2 * word + 1) << 32)
        .collect()
}

fn mul256() -> Case {
    let n = 70;
    let (mut a, b) = (words(7, 4 * n), words(8, 4 * n));
    a[..4].fill(u64::MAX);
    let products: Vec<_> = a
        .chunks(4)
        .zip(b.chunks(4))
        .flat_map(|(a, b)| long_product(a, b))
        .collect();
    Case::cuda("wide_int", "mul256").launch(ceil(n, 64), 64).args([
        input(&a),
        input(&b),
        output(&vec![0; 8 * n], &products),
        int(n),
    ])
}

/// Divisors of every bit length.
fn divmod64() -> Case {
    let n = 201;
    let a: Vec<_> = words(9, n).into_iter().map(|word| word as i64).collect();
    let b: Vec<_> = words(10, n)
        .into_iter()
        .zip(0..)
        .map(|(word, i)| word as i64 >> (i % 62) | 1)
        .collect();
    let quotients: Vec<_> = a.iter().zip(&b).map(|(a, b)| a.wrapping_div(*b)).collect();
    let rests: Vec<_> = a.iter().zip(&b).map(|(&a, &b)| a as u64 % b as u64).collect();
    Case::cuda("wide_int", "divmod64")
        .launch(ceil(n, 128), 128)
        .args([input(&a), input(&b), output(&vec![0; n], &quotients)])
        .args([output(&vec![0; n], &rests), int(n)])
}

fn add_carry_chain() -> Case {
    let threads = 45;
    let (mut a, b) = (bits(11, 4 * threads), bits(12, 4 * threads));
    a[..4].fill(u32::MAX);
    let number = |words: &[u32]| {
        words
            .iter()
            .rev()
            .fold(0u128, |number, &word| number << 32 | u128::from(word))
    };
    let sum = |(a, b): (&[u32], &[u32])| {
        let sum = number(a).wrapping_add(number(b));
        [0, 32, 64, 96].map(|shift| (sum >> shift) as u32)
    };
    let c: Vec<_> = a.chunks(4).zip(b.chunks(4)).flat_map(sum).collect();
    Case::cuda("wide_int", "add_carry_chain").launch(1, threads).args([
        input(&a),
        input(&b),
        output(&vec![0; c.len()], &c),
    ])
}

fn mod_mul() -> Case {
    let (n, m) = (201, 1_000_000_007_u64 << 20 | 3);
    let (a, b) = (words(13, n), words(14, n));
    let product = |(&a, &b): (&u64, &u64)| ((u128::from(a) * u128::from(b)) >> 32) as u64 % m;
    let c: Vec<_> = a.iter().zip(&b).map(product).collect();
    Case::cuda("wide_int", "mod_mul").launch(ceil(n, 128), 128).args([
        input(&a),
        input(&b),
        output(&vec![0; n], &c),
        scalar(m),
        int(n),
    ])
}

/// 1 if the point is in the quarter circle, else 0. No point may be so near that rounding to f32 could move it across.
fn hits([x, y]: [f64; 2]) -> u64 {
    let square = x * x + y * y;
    assert!((square - 1.0).abs() > 1e-6, "({x}, {y}) is too close to the circle");
    u64::from(square <= 1.0)
}

fn pi_lcg() -> Case {
    let (seed, iterations, blocks, threads) = (12345u32, 5, 2, 70);
    let of_thread = |id: u32| -> u64 {
        let mut state = seed ^ id.wrapping_mul(2_654_435_761);
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 24)
        };
        (0..iterations).map(|_| hits([draw(), draw()])).sum()
    };
    let total = (0..blocks * threads).map(of_thread).sum::<u64>();
    Case::cuda("monte_carlo_pi", "pi_lcg")
        .launch(blocks as usize, threads as usize)
        .args([scalar(seed), scalar(iterations), output(&[0], &[total])])
}

/// Philox 4x32-10 (Salmon and others, 2011).
pub fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let (first, second) = (0xD251_1F53 * u64::from(c[0]), 0xCD9E_8D57 * u64::from(c[2]));
        let high = |product: u64| (product >> 32) as u32;
        c = [
            high(second) ^ c[1] ^ k[0],
            second as u32,
            high(first) ^ c[3] ^ k[1],
            first as u32,
        ];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// Full warps: each adds up the counts of its lanes.
fn pi_philox() -> Case {
    let (seed, iterations, blocks, threads) = (777u32, 3, 2, 96);
    let of_thread = |id: u32| -> u64 {
        let darts = |i: i32| {
            let [a, b, c, d] = philox([i as u32, id, 0, 0], [seed, 0xCAFE_F00D]).map(|v| f64::from(v) * 2.3283064e-10);
            hits([a, b]) + hits([c, d])
        };
        (0..iterations).map(darts).sum()
    };
    let total = (0..blocks * threads).map(of_thread).sum::<u64>();
    Case::cuda("monte_carlo_pi", "pi_philox")
        .launch(blocks as usize, threads as usize)
        .args([scalar(seed), scalar(iterations), output(&[0], &[total])])
}

/// The nearest f32 that is not above `v`.
fn down(v: f64) -> f32 {
    let nearest = v as f32;
    if f64::from(nearest) > v {
        nearest.next_down()
    } else {
        nearest
    }
}

/// The nearest f32 that is not below `v`.
fn up(v: f64) -> f32 {
    -down(-v)
}

/// The nearest f32 whose magnitude is not above that of `v`.
fn toward_zero(v: f64) -> f32 {
    if v < 0.0 { up(v) } else { down(v) }
}

/// The inputs of one thread of the kernel `convert_zoo`. The methods compute its results.
struct Zoo {
    v: f32,
    w: f64,
    s: i32,
    c: i8,
}

impl Zoo {
    fn sum(&self) -> i32 {
        let (v, w) = (self.v, self.w);
        let of_v = [v.round_ties_even(), v.trunc(), v.ceil(), v.floor()].map(|v| v as i32);
        let others = [
            v as u32 as i32,
            w.round_ties_even() as i64 as i32,
            w.floor() as i32,
            v as i64 as i32,
        ];
        of_v.iter()
            .chain(&others)
            .fold(0, |sum: i32, &term| sum.wrapping_add(term))
    }

    fn out(&self) -> i32 {
        let terms = [
            i32::from(self.c),
            i32::from(self.s as u16),
            i32::from(self.s as i8),
            self.v.to_bits() as i32,
            (self.w.to_bits() >> 32) as i32,
        ];
        terms.iter().fold(self.sum(), |sum, &term| sum.wrapping_add(term))
    }

    fn float(&self) -> f32 {
        let s = f64::from(self.s);
        let terms = [
            toward_zero(s),
            up(f64::from(self.s as u32)),
            self.w as f32,
            down(self.w),
            self.s as f32,
            f32::from(self.c),
            f32::from(self.s as u8),
        ];
        terms.iter().fold(self.s as f32, |sum, term| sum + term)
    }

    fn double(&self) -> f64 {
        let bits = u64::from(self.s as u32) << 32 | u64::from(self.sum() as u32);
        f64::from(self.v) + f64::from(self.s) + f64::from(self.sum()) + f64::from_bits(bits)
    }
}

/// Conversions of floats. Many of them are halfway between two integers.
fn convert_zoo(least: i32, greatest: i32) -> Case {
    let n = 100;
    let halfway = |v: &f32| (v * 2.0).round() / 2.0 + 0.25 * (v % 2.0).trunc();
    let v: Vec<_> = floats(15, n, -9999.0, 9999.0).iter().map(halfway).collect();
    let w: Vec<_> = doubles(16, n, -1e9, 1e9)
        .iter()
        .map(|w| (w * 4.0).round() / 4.0)
        .collect();
    let shorts: Vec<_> = v.iter().map(|&v| v as i16).collect();
    converted(&v, &w, &ints(17, n, least, greatest), output(&vec![0i16; n], &shorts))
}

/// Numbers out of range. PTX converts them to the nearest value of the type. For `short` C leaves the result open, so it is not checked.
fn convert_beyond_every_range() -> Case {
    let v = [
        3e9,
        -3e9,
        1e30,
        -1e30,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e-40,
        -1e-40,
        -0.0,
        2147483648.0,
        5e9,
    ];
    let w = [
        1e20,
        -1e20,
        1e300,
        -1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e-310,
        -1e-310,
        -0.0,
        9.3e18,
        3.4028235e38,
    ];
    converted(&v, &w, &[8_000_000; 11], free(&[0i16; 11])).about("numbers beyond every range")
}

fn converted(v: &[f32], w: &[f64], s: &[i32], shorts: Param) -> Case {
    let n = v.len();
    let c = bytes(18, n);
    let zoo = |i: usize| Zoo {
        v: v[i],
        w: w[i],
        s: s[i],
        c: c[i] as i8,
    };
    let zoo: Vec<_> = (0..n).map(zoo).collect();
    let out: Vec<_> = zoo.iter().map(Zoo::out).collect();
    let floats: Vec<_> = zoo.iter().map(Zoo::float).collect();
    let doubles: Vec<_> = zoo.iter().map(Zoo::double).collect();
    Case::cuda("convert_zoo", "convert_zoo")
        .launch(1, n)
        .args([input(v), input(w), input(s), input(&c), output(&vec![0; n], &out)])
        .args([output(&vec![0.0; n], &floats), output(&vec![0.0; n], &doubles), shorts])
}
