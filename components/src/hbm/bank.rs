//! One bank: its open row, and from which edge of the command clock on each command may come.

/// State of a bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bank {
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
    /// No row open, ready for one.
    pub(super) const CLOSED: Bank = Bank {
        row: None,
        activate_at: 0,
        precharge_at: 0,
        column_at: 0,
    };
}

/// Where a line lies in a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Location {
    /// Bank; its group is this modulo the number of groups.
    pub(super) bank: u32,
    /// Row of the bank.
    pub(super) row: u32,
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
    /// The row of line number `local` of the channel.
    pub(super) fn locate(&self, local: u64) -> Location {
        let (groups, per_group) = (u64::from(self.groups), u64::from(self.banks / self.groups));
        let group = local % groups;
        let rest = local / groups / u64::from(self.lines_per_row);
        let row = rest / per_group;
        let turn = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let in_group = (rest + turn) % per_group;
        Location {
            bank: (in_group * groups + (group + turn / per_group) % groups) as u32,
            row: row as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn consecutive_lines_fill_one_row_of_each_group_then_the_next_banks() {
        let layout = Layout {
            banks: 16,
            groups: 4,
            lines_per_row: 8,
        };
        let first: Vec<_> = (0..32).map(|n| layout.locate(n)).collect();
        assert!(
            (0..32).all(|n| first[n] == first[n % 4]),
            "eight lines of four rows, taken in turn"
        );
        let mut lines_of_row = HashMap::new();
        for n in 0..16 * 8 * 100 {
            *lines_of_row
                .entry((layout.locate(n).bank, layout.locate(n).row))
                .or_insert(0) += 1;
        }
        assert_eq!(lines_of_row.len(), 16 * 100);
        assert!(lines_of_row.values().all(|&lines| lines == 8));
    }
}
