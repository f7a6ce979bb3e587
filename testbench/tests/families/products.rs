//! `mma` in every shape and type, against products computed element by element.
//!
//! The layout of elements in registers is that of the PTX ISA ("Matrix fragments for mma.m..."), in one formula for all shapes.
//! Group g = lane / 4, position p = lane % 4, and a register has e elements:
//!
//! | Register r of | Row or column | First index along the depth |
//! |---|---|---|
//! | A | row g, or g + 8 where r is odd | e (p + 4 (r / 2)) |
//! | B | column g | e (p + 4 r) |
//! | accumulators | columns 2p and 2p + 1 in row g, then in row g + 8 | |
//!
//! The numbers are small and whole, so sums are exact in every type and any order.

use half::{bf16, f16};

use super::Kernel;

/// The type of an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Element {
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
    S8,
    U8,
    S4,
    U4,
    B1,
    S32,
}

use Element::*;

impl Element {
    pub fn bits(self) -> usize {
        match self {
            B1 => 1,
            S4 | U4 => 4,
            E4m3 | E5m2 | S8 | U8 => 8,
            F16 | Bf16 => 16,
            F64 => 64,
            _ => 32,
        }
    }

    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub fn encode(self, value: i64) -> u64 {
        match self {
            F16 => f16::from_f32(value as f32).to_bits().into(),
            Bf16 => bf16::from_f32(value as f32).to_bits().into(),
            F32 | Tf32 => (value as f32).to_bits().into(),
            F64 => (value as f64).to_bits(),
            E4m3 => small(value, 3, 7),
            E5m2 => small(value, 2, 15),
            _ => value as u64 & (u64::MAX >> (64 - self.bits())),
        }
    }

    /// A value that depends on its position, so that a swap is noticed.
    pub fn value(self, salt: usize, x: usize, y: usize) -> i64 {
        let hash = ((x * 7 + y * 13 + salt * 5 + x * y) % 11) as i64;
        match self {
            B1 => hash & 1,
            U8 => 11 * hash,
            U4 => hash,
            S8 => 11 * (hash - 5),
            _ => hash - 5,
        }
    }
}

/// An integer as an 8-bit float: sign, exponent, fraction.
fn small(value: i64, fraction: u32, bias: u32) -> u64 {
    let magnitude = value.unsigned_abs();
    let Some(exponent) = magnitude.checked_ilog2() else {
        return 0;
    };
    let mantissa = (magnitude << fraction >> exponent) & ((1 << fraction) - 1);
    u64::from(value < 0) << 7 | u64::from(exponent + bias) << fraction | mantissa
}

/// The registers of a fragment, lane by lane. Built from the position of each element.
pub struct Registers {
    pub words: Vec<u32>,
    each: usize,
}

impl Registers {
    pub fn new(each: usize) -> Registers {
        Registers {
            words: vec![0; 32 * each],
            each,
        }
    }

    /// Element `n` of a lane.
    pub fn put(&mut self, element: Element, lane: usize, n: usize, value: i64) {
        let (bit, coded) = (n * element.bits(), element.encode(value));
        let word = lane * self.each + bit / 32;
        self.words[word] |= (coded << (bit % 32)) as u32;
        if element == F64 {
            self.words[word + 1] = (coded >> 32) as u32;
        }
    }
}

struct Form {
    m: usize,
    k: usize,
    types: [Element; 2],
    sums: Element,
    /// The text after the types.
    tail: &'static str,
}

/// A list of `n` registers: `{%a0, %a1}`.
pub fn list(letter: char, n: usize) -> String {
    let names: Vec<String> = (0..n).map(|i| format!("%{letter}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// A kernel in which each lane loads its registers, multiplies and stores the result.
fn kernel(mnemonic: &str, counts: [usize; 4], is_wide: bool) -> String {
    let (ty, bytes) = if is_wide { ("b64", 8) } else { ("b32", 4) };
    let [a, b, c, d] = counts;
    let mut text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{\n\
         .reg .b32 %l;\n.reg .{ty} %a<8>, %b<4>, %c<8>, %d<8>;\n.reg .b64 %p;\nmov.u32 %l, %laneid;\n"
    );
    for (letter, n) in [('a', a), ('b', b), ('c', c)] {
        text += &format!(
            "ld.param.u64 %p, [{letter}];\nmad.wide.u32 %p, %l, {}, %p;\n",
            n * bytes
        );
        text.extend((0..n).map(|i| format!("ld.global.{ty} %{letter}{i}, [%p+{}];\n", i * bytes)));
    }
    let [a, b, c, results] = [list('a', a), list('b', b), list('c', c), list('d', d)];
    text += &format!(
        "{mnemonic} {results}, {a}, {b}, {c};\nld.param.u64 %p, [d];\nmad.wide.u32 %p, %l, {}, %p;\n",
        d * bytes
    );
    text.extend((0..d).map(|i| format!("st.global.{ty} [%p+{}], %d{i};\n", i * bytes)));
    text + "ret;\n}\n"
}

impl Form {
    fn holds(&self) {
        let Form {
            m,
            k,
            types: [left, right],
            sums,
            tail,
        } = *self;
        let mnemonic = format!(
            "mma.sync.aligned.m{m}n8k{k}.row.col.{}.{}.{}.{}{tail}",
            sums.name(),
            left.name(),
            right.name(),
            sums.name()
        );
        let rows = m / 8;
        let per_register = (32 / left.bits()).max(1);
        let lines = k / (4 * per_register);
        let words = left.bits().max(32) / 32;
        let sum_words = 2 * rows * sums.bits() / 32;
        let mut a = Registers::new(rows * lines * words);
        let mut b = Registers::new(lines * words);
        let [mut c, mut d] = [(); 2].map(|()| Registers::new(sum_words));
        let one = |row: usize, at: usize, column: usize| {
            let (x, y) = (left.value(0, row, at), right.value(1, at, column));
            if tail.starts_with(".xor") { x ^ y } else { x * y }
        };
        for lane in 0..32 {
            let (g, p) = (lane / 4, lane % 4);
            for (r, j) in (0..rows * lines).flat_map(|r| (0..per_register).map(move |j| (r, j))) {
                let (row, place) = (g + 8 * (r % rows), per_register * (p + 4 * (r / rows)) + j);
                a.put(left, lane, r * per_register + j, left.value(0, row, place));
            }
            for (r, j) in (0..lines).flat_map(|r| (0..per_register).map(move |j| (r, j))) {
                b.put(
                    right,
                    lane,
                    r * per_register + j,
                    right.value(1, per_register * (p + 4 * r) + j, g),
                );
            }
            for i in 0..2 * rows {
                let (row, column) = (g + 8 * (i / 2), 2 * p + i % 2);
                let start = S32.value(2, row, column);
                c.put(sums, lane, i, start);
                d.put(
                    sums,
                    lane,
                    i,
                    start + (0..k).map(|at| one(row, at, column)).sum::<i64>(),
                );
            }
        }
        let registers = [a.each, b.each, c.each, d.each].map(|n| n / words);
        let text = kernel(&mnemonic, registers, left == F64);
        Kernel::of(&text)
            .input(&a.words)
            .input(&b.words)
            .input(&c.words)
            .output(&d.words)
            .holds();
    }
}

fn check(m: usize, depths: &[usize], pairs: &[[Element; 2]], sums: Element, tails: &[&'static str]) {
    for &k in depths {
        for &types in pairs {
            for &tail in tails {
                Form {
                    m,
                    k,
                    types,
                    sums,
                    tail,
                }
                .holds();
            }
        }
    }
}

const BYTES: [[Element; 2]; 4] = [[S8, S8], [U8, U8], [S8, U8], [U8, S8]];
const NIBBLES: [[Element; 2]; 4] = [[S4, S4], [U4, U4], [S4, U4], [U4, S4]];

#[test]
fn products_of_floats_of_every_shape_are_exact() {
    check(16, &[8, 16], &[[F16, F16], [Bf16, Bf16]], F32, &[""]);
    check(16, &[8, 16], &[[F16, F16]], F16, &[""]);
    check(16, &[4, 8], &[[Tf32, Tf32]], F32, &[""]);
    check(
        16,
        &[32],
        &[[E4m3, E4m3], [E5m2, E5m2], [E4m3, E5m2], [E5m2, E4m3]],
        F32,
        &[""],
    );
    check(8, &[4], &[[F64, F64]], F64, &["", ".rn"]);
    check(16, &[4, 8, 16], &[[F64, F64]], F64, &["", ".rn"]);
}

/// 1 + 2^-54 lies between 1 and 1 + 2^-52, nearer to 1. 1 - 2^-54 is half-way between 1 and 1 - 2^-53, and 1 is the even one.
#[test]
fn products_of_doubles_round_as_they_say() {
    let one = 1f64.to_bits();
    // Column 0 of A is -2^-27 or 2^-27, and row 0 of B is 2^-27. All other elements are 0.
    for (rounding, up, down) in [
        ("", one, one),
        ("rn", one, one),
        ("rz", one, one - 1),
        ("rm", one, one - 1),
        ("rp", one + 1, one),
    ] {
        for (sign, want) in [(1.0, up), (-1.0, down)] {
            let factor = |value: f64| {
                let lane = |lane: usize| if lane.is_multiple_of(4) { value.to_bits() } else { 0 };
                (0..32)
                    .flat_map(|n| [lane(n) as u32, (lane(n) >> 32) as u32])
                    .collect::<Vec<u32>>()
            };
            let sums = |bits: u64| [bits as u32, (bits >> 32) as u32].repeat(64);
            let step = (-27f64).exp2();
            for mnemonic in [
                "mma.sync.aligned.m8n8k4.row.col",
                "wmma.mma.sync.aligned.row.col.m8n8k4",
            ] {
                let types = ".f64.f64.f64.f64";
                let dotted = if rounding.is_empty() {
                    String::new()
                } else {
                    format!(".{rounding}")
                };
                for text in [
                    format!("{mnemonic}{dotted}{types}"),
                    format!("{mnemonic}{types}{dotted}"),
                ] {
                    Kernel::of(&kernel(&text, [1, 1, 2, 2], true))
                        .input(&factor(sign * step))
                        .input(&factor(step))
                        .input(&sums(one))
                        .output(&sums(want))
                        .holds();
                }
            }
        }
    }
}

#[test]
fn products_of_integers_of_every_shape_are_exact() {
    check(8, &[16], &BYTES, S32, &[""]);
    check(16, &[16, 32], &BYTES, S32, &[""]);
    check(8, &[32], &NIBBLES, S32, &[""]);
    check(16, &[32, 64], &NIBBLES, S32, &[""]);
    check(8, &[128], &[[B1, B1]], S32, &[".and.popc", ".xor.popc"]);
    check(16, &[128, 256], &[[B1, B1]], S32, &[".and.popc", ".xor.popc"]);
}

/// Each quarter of a warp multiplies its own matrices. Quarter 0 has lanes 0 to 3 and 16 to 19, and so on. Its lane t holds row t of A
/// (the upper lanes row t + 4), or a column and four of its rows. B has the same layout. Accumulators in singles follow the PTX ISA;
/// in halves each lane has a row. Sums in halves can have results in singles.
#[test]
fn quarter_warps_multiply_matrices_of_their_own() {
    for layout in 0..12 {
        let [a_by_column, b_by_row] = [layout & 1 == 1, layout & 2 == 2];
        let [sums, result] = [[F32, F32], [F16, F16], [F16, F32]][layout / 4];
        let [mut a, mut b] = [(); 2].map(|()| Registers::new(2));
        let [mut c, mut d] = [sums, result].map(|element| Registers::new(element.bits() / 4));
        for lane in 0..32 {
            let (quarter, upper) = (lane % 16 / 4, lane / 16 * 4);
            for i in 0..4 {
                let (row, at) = if a_by_column {
                    (i + upper, lane % 4)
                } else {
                    (lane % 4 + upper, i)
                };
                a.put(F16, lane, i, F16.value(quarter, row, at));
                let (at, column) = if b_by_row {
                    (lane % 4, i + upper)
                } else {
                    (i, lane % 4 + upper)
                };
                b.put(F16, lane, i, F16.value(quarter + 4, at, column));
            }
            for i in 0..8 {
                let place = |element| match element {
                    F16 => (lane % 4 + upper, i),
                    _ => ((lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)),
                };
                let start = |(row, column)| S32.value(8 + quarter, row, column);
                c.put(sums, lane, i, start(place(sums)));
                let (row, column) = place(result);
                let product = |at| F16.value(quarter, row, at) * F16.value(quarter + 4, at, column);
                d.put(result, lane, i, start((row, column)) + (0..4).map(product).sum::<i64>());
            }
        }
        let mnemonic = format!(
            "mma.sync.aligned.m8n8k4.{}.{}.{}.f16.f16.{}",
            if a_by_column { "col" } else { "row" },
            if b_by_row { "row" } else { "col" },
            result.name(),
            sums.name()
        );
        let text = kernel(&mnemonic, [2, 2, c.each, d.each], false);
        Kernel::of(&text)
            .input(&a.words)
            .input(&b.words)
            .input(&c.words)
            .output(&d.words)
            .holds();
    }
}

/// Lane l has line l / 4, elements 2 (l % 4) and the next one.
#[test]
fn movmatrix_transposes_a_matrix() {
    let element = |line: usize, place: usize| (line * 8 + place) as u32 * 257;
    let words = |at: &dyn Fn(usize, usize) -> u32| -> Vec<u32> {
        (0..32)
            .map(|lane| at(lane / 4, 2 * (lane % 4)) | at(lane / 4, 2 * (lane % 4) + 1) << 16)
            .collect()
    };
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 a, .param .u64 d) {\n\
        .reg .b32 %l, %x;\n.reg .b64 %p, %q;\nmov.u32 %l, %laneid;\nld.param.u64 %p, [a];\nld.param.u64 %q, [d];\n\
        mad.wide.u32 %p, %l, 4, %p;\nmad.wide.u32 %q, %l, 4, %q;\nld.global.b32 %x, [%p];\n\
        movmatrix.sync.aligned.m8n8.trans.b16 %x, %x;\nst.global.b32 [%q], %x;\nret;\n}\n";
    Kernel::of(text)
        .input(&words(&element))
        .output(&words(&|line, place| element(place, line)))
        .holds();
}
