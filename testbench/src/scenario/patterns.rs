//! Index patterns of buffers: permutations, rings for pointer chasing, sparse matrices.
//!
//! | pattern | elements |
//! |---|---|
//! | permutation | 0 to n - 1, each once, in the order of a Fisher-Yates shuffle |
//! | ring | the successor of each element, in one circle of Sattolo's algorithm |
//! | matrix | row offsets and column indices in compressed sparse row form (CSR) |
//!
//! Random choice *k* takes output *k* of [`super::data::split_mix`], so patterns are the same on every host.

use std::collections::BTreeSet;

use super::data::split_mix;
use super::error::Fault;
use super::format::{self, RowLengths};
use super::quantity::Constants;

/// Most rows, and most stored elements, of a matrix.
const MAX_MATRIX: u64 = 1 << 27;

/// A random number below `n`, at least 1: the upper half of a product of 128 bits.
fn below(seed: u64, k: u64, n: u64) -> u64 {
    ((u128::from(split_mix(seed, k)) * u128::from(n)) >> 64) as u64
}

/// The numbers from 0 to `n` - 1 in random order.
pub(super) fn permutation(n: u64, seed: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..n).collect();
    for k in (1..n).rev() {
        order.swap(k as usize, below(seed, k, k + 1) as usize);
    }
    order
}

/// The successor of each of `n` elements: one circle through all.
pub(super) fn ring(n: u64, seed: u64) -> Vec<u64> {
    let mut next: Vec<u64> = (0..n).collect();
    for k in (1..n).rev() {
        // An element never stays where it is, so the circles do not part.
        next.swap(k as usize, below(seed, k, k) as usize);
    }
    next
}

/// A sparse matrix without its values.
pub(super) struct Matrix {
    rows: u64,
    columns: u64,
    nonzeros: u64,
    lengths: RowLengths,
    seed: u64,
}

impl Matrix {
    /// Evaluates the sizes of a matrix.
    ///
    /// # Errors
    /// If a size is not a whole number above 0, or if the matrix has fewer cells than `nonzeros`.
    pub fn new(text: &format::Matrix, constants: &Constants) -> Result<Matrix, Fault> {
        let rows = constants.size(&text.rows, 1, MAX_MATRIX)?;
        let columns = constants.size(&text.columns, 1, u32::MAX.into())?;
        Ok(Matrix {
            rows,
            columns,
            nonzeros: constants.size(&text.nonzeros, 1, MAX_MATRIX.min(rows * columns))?,
            lengths: text.lengths,
            seed: constants.size(&text.seed, 0, u64::MAX)?,
        })
    }

    /// Number of rows, and of stored elements.
    pub fn sizes(&self) -> [u64; 2] {
        [self.rows, self.nonzeros]
    }

    /// Index of the first stored element of each row, and the number of all.
    pub fn offsets(&self) -> Vec<u64> {
        let mut offsets = vec![0];
        let mut end = 0;
        for length in self.lengths() {
            end += length;
            offsets.push(end);
        }
        offsets
    }

    /// Stored elements of each row.
    fn lengths(&self) -> Vec<u64> {
        // Rounded-down shares of the rows before: neighbouring rows differ by at most one element.
        let end = |row: u64| (u128::from(row) * u128::from(self.nonzeros) / u128::from(self.rows)) as u64;
        if self.lengths == RowLengths::Even {
            return (0..self.rows).map(|row| end(row + 1) - end(row)).collect();
        }
        let mut lengths = vec![0; self.rows as usize];
        for k in 0..self.nonzeros {
            let mut row = below(self.seed, k, self.rows) as usize;
            // A full row passes the element on. Some row has room: `new` bounds `nonzeros` by the number of cells.
            while lengths[row] == self.columns {
                row = (row + 1) % lengths.len();
            }
            lengths[row] += 1;
        }
        lengths
    }

    /// The column of each stored element, in ascending order within a row.
    pub fn columns(&self) -> Vec<u64> {
        let mut columns = Vec::new();
        // The choices of columns follow those of rows.
        let mut k = self.nonzeros;
        for length in self.lengths() {
            // Floyd's sample of distinct numbers.
            let mut row = BTreeSet::new();
            for last in self.columns - length..self.columns {
                let column = below(self.seed, k, last + 1);
                k += 1;
                if !row.insert(column) {
                    row.insert(last);
                }
            }
            columns.extend(row);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_has_each_number_once_in_another_order() {
        let found = permutation(1000, 7);
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        assert_ne!(found, sorted);
        assert_ne!(found, permutation(1000, 8));
        // The shuffle by hand: k = 2 takes output 2 of seed 1234567 (9817491932198370423 of 2^64, times 3 is 1), k = 1 takes
        // output 1 (3203168211198807973, times 2 is 0).
        assert_eq!(permutation(3, 1234567), [2, 0, 1]);
    }

    #[test]
    fn ring_visits_every_element_before_it_returns() {
        for n in [1, 2, 3, 17, 1000] {
            let next = ring(n, 3);
            let visited = std::iter::successors(Some(0), |&at| Some(next[at as usize]));
            let visited: Vec<u64> = visited.take(n as usize + 1).collect();
            assert_eq!(visited[..n as usize].iter().collect::<BTreeSet<_>>().len() as u64, n);
            assert_eq!(visited[n as usize], 0, "{n} elements");
        }
    }

    #[test]
    fn rows_of_a_matrix_have_distinct_sorted_columns() {
        for lengths in [RowLengths::Even, RowLengths::Random] {
            let matrix = Matrix {
                rows: 10,
                columns: 6,
                nonzeros: 45,
                lengths,
                seed: 5,
            };
            let (offsets, columns) = (matrix.offsets(), matrix.columns());
            assert_eq!((offsets.len(), offsets[0], offsets[10]), (11, 0, 45));
            assert_eq!(columns.len(), 45);
            for row in offsets.windows(2) {
                let columns = &columns[row[0] as usize..row[1] as usize];
                assert!(columns.is_sorted_by(|a, b| a < b) && columns.iter().all(|&column| column < 6));
                assert!(lengths == RowLengths::Random || matches!(columns.len(), 4 | 5));
            }
        }
    }

    #[test]
    fn full_matrix_stores_every_cell() {
        let matrix = Matrix {
            rows: 3,
            columns: 2,
            nonzeros: 6,
            lengths: RowLengths::Random,
            seed: 0,
        };
        assert_eq!(matrix.offsets(), [0, 2, 4, 6]);
        assert_eq!(matrix.columns(), [0, 1, 0, 1, 0, 1]);
    }
}
