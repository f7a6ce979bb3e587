//! One bank: its open row, and from which edge of the command clock on each command may come.

/// State of a bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bank {
    /// Its group.
    pub(super) group: u32,
    /// The open row.
    pub(super) row: Option<u32>,
    /// Earliest activate.
    pub(super) activate_at: u64,
    /// Earliest precharge.
    pub(super) precharge_at: u64,
    /// Earliest column command to the open row.
    pub(super) column_at: u64,
}

impl Bank {
    /// A bank of a group: no row open, ready for one.
    pub(super) fn closed(group: u32) -> Bank {
        Bank {
            group,
            row: None,
            activate_at: 0,
            precharge_at: 0,
            column_at: 0,
        }
    }
}

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

/// Deals the lines of a channel to rows of banks.
///
/// From the lowest digit on: bank group, so that consecutive lines alternate between groups; line in the row; bank of the
/// group; row. The bank is rotated by a hash of the row, so that streams a power of two apart seldom meet in one bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) banks: u32,
    pub(super) groups: u32,
    pub(super) lines_per_row: u32,
}

impl Layout {
    /// The row of line number `local` of the channel. Lines are counted in 32 bits, of which division is quick.
    #[inline]
    pub(super) fn locate(&self, local: u64) -> Location {
        let (local, per_group) = (local as u32, self.banks / self.groups);
        let (in_rows, group) = (local / self.groups, local % self.groups);
        let (rest, column) = (in_rows / self.lines_per_row, in_rows % self.lines_per_row);
        let row = rest / per_group;
        let turn = (u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32;
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

    #[test]
    fn consecutive_lines_fill_one_row_of_each_group_then_the_next_banks() {
        let layout = Layout {
            banks: 16,
            groups: 4,
            lines_per_row: 8,
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
