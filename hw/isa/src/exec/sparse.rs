//! Sparse matrix products (`mma.sp`): each row of A has zeros in half of its columns. The other half is stored, with metadata.
//!
//! The stored half of A has the fragments of a dense product of half the depth (see `tensor`). B and the accumulators have the fragments
//! of the whole depth. Four bits of metadata give the columns of a chunk ([`Sparsity`]). Group g of four lanes holds the metadata of rows
//! g and g + 8:
//!
//! | elements | bits of metadata | lane of the group |
//! |---|---|---|
//! | 16 or 32 bits | chunk c of row g at 4 (c % 4), of row g + 8 from bit 16 on | c / 4 |
//! | 4 or 8 bits | chunk c at 4 (c % 8) | 2 (c / 8), one more for row g + 8 |
//!
//! The selector gives the first of the lanes, in units of their number.
//!
//! The sum adds the stored products like a dense product of the stored half. A zero adds nothing: B is not read beside it, so
//! an infinity or NaN there has no effect.
//!
//! Source: PTX ISA 9.0, "Matrix multiply-accumulate operation using mma.sp instruction with sparse matrix A". The figures of its metadata
//! agree with the metadata layout of CUTLASS for 16-bit and 8-bit elements.

use super::tensor::aligned::aligned_sum;
use super::tensor::{
    Element, M, N, add_floats, add_integers, are_bytes, bf16, e4m3, e5m2, f16, in_two_halves, rule_of, s4, s8, tf32,
    u4, u8,
};
use super::{ExecInput, Results};
use crate::inst::MmaShape;
use crate::lane::WARP_SIZE;
use crate::shape::Sparsity;

/// Most stored elements of a row, and most rows of B.
const MAX_STORED: usize = 64;
const MAX_DEPTH: usize = 2 * MAX_STORED;

/// A sparse A and the B that it meets.
struct Factors {
    /// Stored elements of each row.
    stored: usize,
    a: [[f32; MAX_STORED]; M],
    /// Column of each stored element, in rising order.
    columns: [[u8; MAX_STORED]; M],
    b: [[f32; N]; MAX_DEPTH],
}

/// Executes MMA.SP.
///
/// # Panics
///
/// If the shape has no sparse form.
pub(super) fn mma(input: &ExecInput, results: &mut Results) {
    let shape = input.inst.mods.mma;
    let Some(sparsity) = shape.sparsity() else {
        panic!("{} has no sparse form of {shape:?}", input.inst);
    };
    let (each, is_integer, [a, b]) = elements(shape);
    let mut factors = Factors {
        stored: shape.multiply_adds() as usize / (M * N),
        a: [[0.0; MAX_STORED]; M],
        columns: [[0; MAX_STORED]; M],
        b: [[0.0; N]; MAX_DEPTH],
    };
    factors.gather(input, each, a, b);
    factors.find_columns(input, sparsity, each);
    if is_integer {
        let mut sums = [[0.0; N]; M];
        factors.accumulate(&mut sums);
        // Exact, as for the dense product of the stored elements.
        add_integers(input, results, |row, column| sums[row][column] as i32);
    } else {
        let rule = rule_of(input);
        let exponents = factors.b.map(|row| rule.of_row(&row));
        // The stored elements of a row.
        let terms = |row: usize| {
            let stored = factors.a[row].iter().zip(&factors.columns[row]).take(factors.stored);
            stored.map(|(&a, &column)| (a, &factors.b[usize::from(column)], &exponents[usize::from(column)]))
        };
        add_floats(input, results, |row, c| {
            match are_bytes(shape) && !input.inst.mods.high {
                true => in_two_halves(c, |half| {
                    let of_half = move |(k, term)| (k % 4 / 2 == half).then_some(term);
                    terms(row).enumerate().filter_map(of_half)
                }),
                false => aligned_sum(rule, c, terms(row)),
            }
        });
    }
}

/// Returns the elements of a register, whether they are integers, and the functions that extract those of A and B.
fn elements(shape: MmaShape) -> (usize, bool, [Element; 2]) {
    use MmaShape::*;
    match shape {
        M16n8k8Bf16 | M16n8k16Bf16 => (2, false, [bf16, bf16]),
        M16n8k4Tf32 | M16n8k8Tf32 => (1, false, [tf32, tf32]),
        M16n8k32E4m3 => (4, false, [e4m3, e4m3]),
        M16n8k32E5m2 => (4, false, [e5m2, e5m2]),
        M16n8k32E4m3E5m2 => (4, false, [e4m3, e5m2]),
        M16n8k32E5m2E4m3 => (4, false, [e5m2, e4m3]),
        M16n8k16S8 | M16n8k32S8 => (4, true, [s8, s8]),
        M16n8k16U8 | M16n8k32U8 => (4, true, [u8, u8]),
        M16n8k16S8U8 | M16n8k32S8U8 => (4, true, [s8, u8]),
        M16n8k16U8S8 | M16n8k32U8S8 => (4, true, [u8, s8]),
        M16n8k32S4 | M16n8k64S4 => (8, true, [s4, s4]),
        M16n8k32U4 | M16n8k64U4 => (8, true, [u4, u4]),
        M16n8k32S4U4 | M16n8k64S4U4 => (8, true, [s4, u4]),
        M16n8k32U4S4 | M16n8k64U4S4 => (8, true, [u4, s4]),
        _ => (2, false, [f16, f16]),
    }
}

impl Factors {
    /// Reads the stored elements of A, and B, from the lanes' words.
    fn gather(&mut self, input: &ExecInput, each: usize, a: Element, b: Element) {
        let n_words = self.stored / (4 * each);
        for lane in 0..WARP_SIZE {
            let (group, first) = (lane / 4, lane % 4 * each);
            // A and B have the same number of words: A has two rows per lane, B twice the depth.
            for (word, n) in (0..2 * n_words).flat_map(|word| (0..each).map(move |n| (word, n))) {
                let k = first + word * 4 * each + n;
                self.b[k][group] = b(input.word(1, word).0[lane], n);
                // Words of A alternate between rows g and g + 8.
                let k = first + word / 2 * 4 * each + n;
                self.a[group + word % 2 * 8][k] = a(input.word(0, word).0[lane], n);
            }
        }
    }

    /// Reads the columns from the metadata, and sorts each row by them.
    fn find_columns(&mut self, input: &ExecInput, sparsity: Sparsity, each: usize) {
        let lanes = usize::from(input.inst.mods.mma.metadata_lanes());
        // The selector counts groups of `lanes` lanes.
        let first = usize::from(input.inst.mods.lut) * lanes % 4;
        let stored = self.stored;
        for (row, (a, columns)) in self.a.iter_mut().zip(&mut self.columns).enumerate() {
            let (group, is_lower) = (row % 8, row / 8);
            let index = |chunk: usize| {
                let (lane, bit) = match each {
                    1 | 2 => (chunk / 4, 16 * is_lower + 4 * (chunk % 4)),
                    _ => (2 * (chunk / 8) + is_lower, 4 * (chunk % 8)),
                };
                input.word(3, 0).0[4 * group + first + lane] >> bit
            };
            for (n, column) in columns[..stored].iter_mut().enumerate() {
                *column = sparsity.column(n, index) as u8;
            }
            // Two pairs of neighbours, or two elements, change places. So rows are sorted chunk by chunk.
            let width = if sparsity == Sparsity::TwoPairsOfFour { 2 } else { 1 };
            for n in (0..stored).step_by(2 * width) {
                if sparsity != Sparsity::OneOfTwo && columns[n] > columns[n + width] {
                    for n in n..n + width {
                        columns.swap(n, n + width);
                        a.swap(n, n + width);
                    }
                }
            }
        }
    }

    /// Adds the products of the stored elements to the sums.
    fn accumulate(&self, sums: &mut [[f32; N]; M]) {
        for ((sums, a), columns) in sums.iter_mut().zip(&self.a).zip(&self.columns) {
            for (a, column) in a.iter().zip(columns).take(self.stored) {
                for (sum, b) in sums.iter_mut().zip(&self.b[usize::from(*column)]) {
                    *sum += *a * *b;
                }
            }
        }
    }
}
