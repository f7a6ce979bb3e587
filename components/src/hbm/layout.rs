//! Where a line lies in a channel: preset key `hbm.mapping`.
//!
//! A line's number in the channel has these digits, from the lowest on:
//!
//! | Digit | Why there |
//! |---|---|
//! | bank group | consecutive lines alternate between groups, whose column commands may follow each other sooner |
//! | line in the row | a stream stays in the open rows |
//! | bank of the group | |
//! | row | |
//!
//! `modulo` takes the digits as they are. `hash` rotates the bank by a hash of the row, so that streams a power of two apart seldom
//! meet in one bank.

use crate::config::Mapping;

/// Where a line lies in a channel: no two lines lie in one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Location {
    /// Row of the bank.
    pub(super) row: u32,
    /// Bank; its group is this modulo the number of groups.
    pub(super) bank: u32,
    /// Line of the row.
    pub(super) column: u32,
}

/// Shape of a channel's banks, and the mapping of lines to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) banks: u32,
    pub(super) groups: u32,
    pub(super) lines_per_row: u32,
    pub(super) mapping: Mapping,
}

impl Layout {
    /// The row of line number `local` of the channel. Lines have 32 bits, and their division is fast.
    #[inline]
    pub(super) fn locate(&self, local: u64) -> Location {
        let (local, per_group) = (local as u32, self.banks / self.groups);
        let (in_rows, group) = (local / self.groups, local % self.groups);
        let (rest, column) = (in_rows / self.lines_per_row, in_rows % self.lines_per_row);
        let row = rest / per_group;
        let turn = match self.mapping {
            Mapping::Hash => (u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32,
            Mapping::Modulo => 0,
        };
        let in_group = ((u64::from(rest) + u64::from(turn)) % u64::from(per_group)) as u32;
        Location {
            row,
            bank: in_group * self.groups + (group + turn / per_group) % self.groups,
            column,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    const MODULO: Layout = Layout {
        banks: 16,
        groups: 4,
        lines_per_row: 8,
        mapping: Mapping::Modulo,
    };

    #[test]
    fn modulo_banks_follow_each_other_in_order() {
        // 4 groups x 8 lines of a row; then the next bank of each group; after 4 banks of each, row 1 of the first.
        let at = [0, 1, 3, 4, 32, 127, 128].map(|n| MODULO.locate(n));
        assert_eq!(at.map(|at| at.bank), [0, 1, 3, 0, 4, 15, 0]);
        assert_eq!(at.map(|at| at.row), [0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(at.map(|at| at.column), [0, 0, 0, 1, 0, 7, 0]);
    }

    #[test]
    fn lines_a_round_of_banks_apart_modulo_keeps_one_bank_and_hash_changes_it() {
        let banks = |mapping| {
            let layout = Layout { mapping, ..MODULO };
            let banks: HashSet<_> = (0..16).map(|n| layout.locate(128 * n).bank).collect();
            banks.len()
        };
        assert_eq!(banks(Mapping::Modulo), 1);
        assert!(banks(Mapping::Hash) > 6, "{}", banks(Mapping::Hash));
    }

    #[test]
    fn consecutive_lines_fill_one_row_of_each_group_then_the_next_banks() {
        let layout = Layout {
            mapping: Mapping::Hash,
            ..MODULO
        };
        let row_of = |n: u64| (layout.locate(n).bank, layout.locate(n).row);
        let first: Vec<_> = (0..32).map(row_of).collect();
        assert!(
            (0..32).all(|n| first[n] == first[n % 4]),
            "eight lines of four rows, taken in turn"
        );
        let mut lines_of_row: HashMap<_, HashSet<u32>> = HashMap::new();
        for n in 0..16 * 8 * 100 {
            let columns = lines_of_row.entry(row_of(n)).or_default();
            assert!(
                columns.insert(layout.locate(n).column),
                "line {n} has a place of its own"
            );
        }
        assert_eq!(lines_of_row.len(), 16 * 100);
        assert!(lines_of_row.values().all(|columns| columns.len() == 8));
    }
}
