//! Maps the lines of a channel to banks and rows: preset key `hbm.mapping`.
//!
//! The number of a line in the channel has these digits, from the lowest to the highest:
//!
//! | Digit | Reason |
//! |---|---|
//! | bank group | consecutive lines alternate between groups, where tCCD_S applies instead of the longer tCCD_L |
//! | line in the row | a stream stays in the open rows |
//! | bank of the group | |
//! | row | |
//!
//! `modulo` uses the digits as they are. `hash` and `scatter` rotate the bank by a hash of the row.

use crate::config::Mapping;

/// Bank, row and column of a line. No two lines of a channel share a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Location {
    /// Row of the bank.
    pub(super) row: u32,
    /// Bank of the channel. Its group is this number modulo the number of groups.
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
    /// The location of line number `local` of the channel.
    #[inline]
    pub(super) fn locate(&self, local: u64) -> Location {
        // Line numbers have 32 bits, and the host divides 32-bit numbers faster.
        let (local, per_group) = (local as u32, self.banks / self.groups);
        let (in_rows, group) = (local / self.groups, local % self.groups);
        let (rest, column) = (in_rows / self.lines_per_row, in_rows % self.lines_per_row);
        let row = rest / per_group;
        // A stream with a distance of a power of two would stay in one bank without the hash.
        let rotation = match self.mapping {
            Mapping::Hash | Mapping::Scatter => (u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32,
            Mapping::Modulo => 0,
        };
        // The remainder of the rotation turns the bank in its group, the quotient turns the group.
        let in_group = ((u64::from(rest) + u64::from(rotation)) % u64::from(per_group)) as u32;
        Location {
            row,
            bank: in_group * self.groups + (group + rotation / per_group) % self.groups,
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
    fn modulo_fills_groups_then_rows_then_banks() {
        // 4 groups times 8 lines of a row, then the next bank of each group. After 4 banks of each group comes row 1.
        let at = [0, 1, 3, 4, 32, 127, 128].map(|n| MODULO.locate(n));
        assert_eq!(at.map(|at| at.bank), [0, 1, 3, 0, 4, 15, 0]);
        assert_eq!(at.map(|at| at.row), [0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(at.map(|at| at.column), [0, 0, 0, 1, 0, 7, 0]);
    }

    #[test]
    fn stride_of_all_banks_uses_one_bank_with_modulo_and_several_with_hash() {
        let banks = |mapping| {
            let layout = Layout { mapping, ..MODULO };
            let banks: HashSet<_> = (0..16).map(|n| layout.locate(128 * n).bank).collect();
            banks.len()
        };
        assert_eq!(banks(Mapping::Modulo), 1);
        assert!(banks(Mapping::Hash) > 6, "{}", banks(Mapping::Hash));
    }

    #[test]
    fn consecutive_lines_fill_one_row_of_each_group_first() {
        let layout = Layout {
            mapping: Mapping::Hash,
            ..MODULO
        };
        let row_of = |n: u64| (layout.locate(n).bank, layout.locate(n).row);
        let first: Vec<_> = (0..32).map(row_of).collect();
        assert!((0..32).all(|n| first[n] == first[n % 4]), "8 lines of 4 rows, in turn");
        let mut lines_of_row: HashMap<_, HashSet<u32>> = HashMap::new();
        for n in 0..16 * 8 * 100 {
            let columns = lines_of_row.entry(row_of(n)).or_default();
            assert!(columns.insert(layout.locate(n).column), "line {n} shares its location");
        }
        assert_eq!(lines_of_row.len(), 16 * 100);
        assert!(lines_of_row.values().all(|columns| columns.len() == 8));
    }
}
