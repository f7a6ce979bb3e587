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
    /// Edge of the last activate or column command.
    pub(super) used_at: u64,
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
            used_at: 0,
        }
    }
}
