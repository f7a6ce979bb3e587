//! One bank: its open row, and the first edge of the command clock for each command.

/// State of a bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bank {
    /// Its bank group.
    pub(super) group: u32,
    /// The open row.
    pub(super) row: Option<u32>,
    /// First edge for an activate.
    pub(super) activate_at: u64,
    /// First edge for a precharge.
    pub(super) precharge_at: u64,
    /// First edge for a column command to the open row.
    pub(super) column_at: u64,
    /// Edge of the last activate or column command.
    pub(super) used_at: u64,
}

impl Bank {
    /// A bank without an open row, ready for an activate.
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
