//! Branches, loops with data-dependent trip counts, local arrays, named barriers, votes.

use super::numba_2d;
use crate::case::{Case, Source, ceil, input, int, output, scalar};
use crate::draw::{bits, floats, ints, whole, words};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        diverge_nested(),
        diverge_switch(),
        divide_and_root(),
        loop_collatz(),
        mandelbrot(),
        numba_mandel(),
        local_array(),
        spill_many(),
        warp_votes(),
        named_barriers(),
        mbarrier_phases(),
        interpret(),
        bigrams(),
        gather_checked(),
        gather_beyond_the_end(),
    ]
}

fn diverge_nested() -> Case {
    let n = 300;
    let values = ints(1, n, -100, 9999);
    let at = |i: usize| values[i % n];
    let result = |i: usize| match values[i] {
        v if v & 1 == 0 && v < 0 => -1,
        v if v & 1 == 0 => v / 7,
        v if v & 2 == 0 => (0..).find(|r| r * r >= v).expect("some square is large enough"),
        v if v & 4 == 0 => v * 3 - at(i + 3),
        v => (v * 3) ^ at(i + 1),
    };
    let results: Vec<_> = (0..n).map(result).collect();
    Case::cuda("diverge_nested", "diverge_nested")
        .launch(ceil(n, 128), 128)
        .args([input(&values), output(&vec![0; n], &results), int(n)])
}

/// Case 7 falls through to the default case. Other numbers go to the default case directly.
fn switch(op: i32, x: f32, y: f32) -> f32 {
    let halves = std::iter::successors(Some(x), |x| Some(x * 0.5));
    match op {
        0 => x + y,
        1 => x - y,
        2 => x * y,
        3 => x / y,
        4 => x.sqrt(),
        5 => x.max(y),
        6 => halves.into_iter().find(|x| *x <= y).expect("halving ends"),
        7 => x.floor() + 1.0,
        _ => 1.0,
    }
}

fn diverge_switch() -> Case {
    let n = 300;
    let (ops, x, y) = (ints(2, n, -1, 9), floats(3, n, 0.0, 99.0), floats(4, n, 0.1, 9.0));
    switched(&ops, &x, &y).about("every case")
}

/// Quotients and roots of random bit patterns, with subnormals, infinities and NaNs. Results must agree bit by bit.
fn divide_and_root() -> Case {
    let n = 3001;
    let number = |bits: &u32| f32::from_bits(*bits);
    let (mut x, mut y): (Vec<_>, Vec<_>) = (
        bits(15, n).iter().map(number).collect(),
        bits(16, n).iter().map(number).collect(),
    );
    // Most random quotients overflow or underflow. So a third of the divisors is near the dividend.
    for i in (0..n).step_by(3) {
        y[i] = f32::from_bits(x[i].to_bits() ^ (y[i].to_bits() & 0x03ff_ffff));
    }
    let edges = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::from_bits(1),
        f32::MIN_POSITIVE,
        f32::MAX,
        1.0,
        -1.0,
        f32::NAN,
    ];
    for (at, (a, b)) in edges
        .iter()
        .flat_map(|a| edges.iter().map(move |b| (*a, *b)))
        .enumerate()
    {
        (x[at], y[at]) = (a, b);
    }
    let ops: Vec<_> = (0..n).map(|i| if i < 81 || i % 4 > 0 { 3 } else { 4 }).collect();
    switched(&ops, &x, &y).about("quotients and roots of random bit patterns")
}

fn switched(ops: &[i32], x: &[f32], y: &[f32]) -> Case {
    let n = ops.len();
    let results: Vec<_> = (0..n).map(|i| switch(ops[i], x[i], y[i])).collect();
    Case::cuda("diverge_nested", "diverge_switch")
        .launch(ceil(n, 256), 256)
        .args([input(ops), input(x), input(y), output(&vec![0.0; n], &results), int(n)])
}

fn loop_collatz() -> Case {
    let (n, cap) = (200, 90);
    let mut starts: Vec<u64> = words(5, n).into_iter().map(|word| word >> 44).collect();
    starts[..3].copy_from_slice(&[0, 1, 1 << 40]);
    let next = |v: &u64| (*v > 1).then(|| if v.is_multiple_of(2) { v / 2 } else { 3 * v + 1 });
    let steps = |start: &u64| (std::iter::successors(Some(*start), next).count() - 1).min(cap) as i32;
    let steps: Vec<_> = starts.iter().map(steps).collect();
    Case::cuda("loop_collatz", "loop_collatz")
        .launch(ceil(n, 64), 64)
        .args([input(&starts), output(&vec![0; n], &steps), int(n), int(cap)])
}

/// Steps until z = z^2 + c leaves the circle of radius 2, in f64. An f32 kernel counts the same steps: the assertion below bounds its
/// error. A step multiplies the error by at most 2 |z| and adds a rounding.
fn escape(cr: f64, ci: f64, limit: i32) -> i32 {
    let (mut re, mut im, mut error) = (0.0f64, 0.0f64, 0.0);
    for step in 0..limit {
        let size = re.hypot(im);
        let off = 2.0 * size * error + error * error + 4.0 * f64::from(f32::EPSILON);
        assert!(
            (size * size - 4.0).abs() > off,
            "({cr}, {ci}) comes too near to the circle"
        );
        if size > 2.0 {
            return step;
        }
        error = off + f64::from(f32::EPSILON) * (2.0 * size * size + cr.hypot(ci));
        (re, im) = (re * re - im * im + cr, 2.0 * re * im + ci);
    }
    limit
}

fn mandelbrot() -> Case {
    let (w, h, limit) = (37, 21, 12);
    let (x0, y0, scale) = (-2.02f32, -1.01f32, 0.0713f32);
    let at = |from: f32, n: usize| f64::from(from) + f64::from(scale) * n as f64;
    let pixel = |k: usize| (255 * escape(at(x0, k % w), at(y0, k / w), limit) / limit) as u8;
    let picture: Vec<_> = (0..w * h).map(pixel).collect();
    Case::cuda("mandelbrot", "mandelbrot")
        .launch_3d([3, 2, 1], [16, 16, 1])
        .args([output(&vec![0u8; w * h], &picture), int(w), int(h)])
        .args([scalar(x0), scalar(y0), scalar(scale), scalar(limit)])
}

fn numba_mandel() -> Case {
    let (w, h, limit) = (37, 21, 12);
    let (x0, y0, dx, dy) = (-2.02, -1.01, 0.0713, 0.0957);
    let pixel = |k: usize| escape(x0 + (k % w) as f64 * dx, y0 + (k / w) as f64 * dy, limit) as u8;
    let picture: Vec<_> = (0..w * h).map(pixel).collect();
    Case::new(Source::Numba("mandel"), "mandel")
        .launch_3d([3, 2, 1], [16, 16, 1])
        .args(numba_2d(&picture, h, output(&vec![0u8; w * h], &picture)))
        .args([x0, y0, dx, dy].map(scalar))
        .args([scalar(limit)])
}

/// The most frequent number from 0 to 31 in a row. Of equally frequent numbers, the least.
fn local_array() -> Case {
    let (threads, n) = (50, 40);
    let values = ints(6, threads * n, 0, 99);
    let best = |row: &[i32]| {
        let count = |k: i32| row.iter().filter(|v| **v & 31 == k).count();
        (0..32).rev().max_by_key(|&k| count(k)).expect("there are some")
    };
    let results: Vec<_> = values.chunks(n).map(best).collect();
    Case::cuda("local_spill", "local_array").launch(2, threads / 2).args([
        input(&values),
        output(&vec![0; threads], &results),
        int(n),
    ])
}

/// 48 values per thread, mixed in place by fused multiply-adds. Successive values of a thread are 4096 elements apart.
fn spill_many() -> Case {
    let threads = 70;
    let values = floats(7, 47 * 4096 + threads, -1.0, 1.0);
    let mut after = vec![0.0; values.len()];
    for thread in 0..threads {
        let mut r: Vec<f32> = (0..48).map(|k| values[thread + k * 4096]).collect();
        for step in [1, 3, 9, 27] {
            for k in 0..48 {
                r[k] = r[(k + step) % 48].mul_add(r[(k * 5 + 1) % 48], r[k]);
            }
        }
        (0..48).for_each(|k| after[thread + k * 4096] = r[k]);
    }
    Case::cuda("local_spill", "spill_many")
        .launch(1, threads)
        .args([input(&values), output(&vec![0.0; values.len()], &after)])
}

/// Few distinct values, so that lanes match. One warp has only ones and one only zeros, so that all of its lanes agree.
fn warp_votes() -> Case {
    let mut values = ints(8, 256, -2, 2);
    values[64..96].fill(1);
    values[128..160].fill(0);
    let results: Vec<_> = values.chunks(32).flat_map(votes_of_warp).collect();
    Case::cuda("warp_vote_match", "warp_votes").launch(2, 128).args([
        input(&values),
        output(&[0u32; 256], &results),
        int(256),
    ])
}

fn votes_of_warp(warp: &[i32]) -> Vec<u32> {
    let lanes = |holds: &dyn Fn(i32) -> bool| {
        let lane = |(lane, v): (usize, &i32)| u32::from(holds(*v)) << lane;
        warp.iter().enumerate().map(lane).sum::<u32>()
    };
    let is_all = |mask: u32| u32::from(mask == u32::MAX);
    let ballot = lanes(&|v| v > 0);
    let (any, zeros) = (u32::from(lanes(&|v| v < 0) != 0), lanes(&|v| v == 0));
    let uniform = u32::from(zeros == 0 || zeros == u32::MAX);
    let common = ballot ^ (is_all(ballot) << 1) ^ (any << 2) ^ (uniform << 3);
    let odd = lanes(&|v| v & 1 != 0);
    let of_lane = |v: &i32| {
        let same = lanes(&|other| other == *v);
        let all_same = if same == u32::MAX { same } else { 0 };
        let active = if v & 1 != 0 { odd } else { 0 };
        common ^ same ^ all_same ^ (is_all(same) << 4) ^ active
    };
    warp.iter().map(of_lane).collect()
}

fn named_barriers() -> Case {
    let rounds = 7;
    let values = ints(9, 32 * rounds, -99, 99);
    let sum = |lane: usize| (0..rounds).map(|round| values[round * 32 + 31 - lane]).sum();
    let sums: Vec<i32> = (0..32).map(sum).collect();
    Case::cuda("named_barriers", "named_barriers").launch(1, 64).args([
        input(&values),
        output(&[0; 32], &sums),
        int(rounds),
    ])
}

fn mbarrier_phases() -> Case {
    let phases = 5;
    let values = whole(10, 64 * phases, -99, 99);
    let sum = |thread: usize| (0..phases).map(|phase| values[phase * 64 + (thread ^ 1)]).sum();
    let sums: Vec<f32> = (0..64).map(sum).collect();
    Case::cuda("named_barriers", "mbarrier_phases").launch(1, 64).args([
        input(&values),
        output(&[0.0; 64], &sums),
        int(phases),
    ])
}

/// Operations in the compiler's layout: a word of operation code, a word of exponent, and a 64-bit operand.
fn interpret() -> Case {
    let ops: [(u32, u32, i64); 6] = [(0, 0, -7), (1, 0, 3), (2, 5, 0), (3, 0, 0), (0, 0, 1 << 40), (2, 0, 0)];
    let laid_out =
        |(op, exponent, operand): &(u32, u32, i64)| [u64::from(*op) | u64::from(*exponent) << 32, *operand as u64];
    let code: Vec<u64> = ops[..5].iter().flat_map(laid_out).collect();
    let values: Vec<i64> = words(11, 70).into_iter().map(|word| word as i64).collect();
    let step = |v: i64, (op, exponent, operand): &(u32, u32, i64)| match op {
        0 => v.wrapping_add(*operand),
        1 => v.wrapping_mul(*operand),
        2 => v.wrapping_pow(*exponent),
        _ => v,
    };
    let results: Vec<_> = values.iter().map(|v| ops[..5].iter().fold(*v, step)).collect();
    Case::new(Source::Rust, "interpret")
        .launch(2, 35)
        .args([input(&code), scalar(5u64), output(&values, &results)])
}

/// Pieces of 64 bytes, one per thread. Threads beyond the end of the text have none.
fn bigrams() -> Case {
    let n = 64 * 9 + 17;
    let letter = |byte: u8| if byte < 60 { b' ' } else { byte };
    let text: Vec<u8> = crate::draw::bytes(12, n).into_iter().map(letter).collect();
    let hash = |thread: usize| {
        let (start, end) = (64 * thread, n.min(64 * thread + 64));
        let (mut hash, mut words) = (2166136261u32, 0);
        for pair in text.get(start..end).unwrap_or_default().windows(2) {
            hash = (hash ^ u32::from(pair[0])).wrapping_mul(16777619).rotate_left(5);
            words += u32::from(pair[0].is_ascii_whitespace() && !pair[1].is_ascii_whitespace());
        }
        hash ^ words
    };
    let hashes: Vec<_> = (0..14).map(hash).collect();
    Case::new(Source::Rust, "bigrams")
        .launch(2, 7)
        .args([scalar(n as u64), input(&text), output(&[0; 14], &hashes)])
}

fn gather(indices: Vec<u32>) -> Case {
    let n = indices.len();
    let values = floats(13, n, -9.0, 9.0);
    let gathered: Vec<_> = indices
        .iter()
        .map(|&i| *values.get(i as usize).unwrap_or(&0.0))
        .collect();
    Case::new(Source::Rust, "gather_checked").launch(3, n / 3).args([
        scalar(n as u64),
        input(&values),
        input(&indices),
        output(&vec![0.0; n], &gathered),
    ])
}

fn gather_checked() -> Case {
    gather(ints(14, 99, 0, 98).into_iter().map(|i| i as u32).collect()).about("every index is in range")
}

fn gather_beyond_the_end() -> Case {
    let mut indices: Vec<_> = ints(14, 99, 0, 98).into_iter().map(|i| i as u32).collect();
    indices[40] = 99;
    gather(indices).about("one index is not in range").traps()
}
