//! Row policies: close open rows that no request in the queue needs. Preset key `hbm.row_policy`.
//!
//! | Preset word | Module | The row is closed |
//! |---|---|---|
//! | `open` | `open` | when a request of the bank needs another row |
//! | `closed` | `closed` | as soon as the timing of the bank allows a precharge |
//! | `timeout` | `timeout` | `hbm.row_timeout` command cycles after the last command to it |
//!
//! A refresh closes every row under each policy. The precharge of a policy is sent at an edge without another row command.
//!
//! Sources: JEDEC JESD235 (HBM) for auto-precharge, which `closed` stands for; Rixner et al., "Memory access scheduling" (ISCA 2000),
//! for open and closed rows.

mod closed;
mod open;
mod timeout;

use super::bank::Bank;
use super::queue::Queue;
use crate::config::{self, Hbm};
use closed::Closed;
use open::Open;
use timeout::Timeout;

/// A row policy.
pub(super) trait CloseRows: Send {
    /// First edge at which the open row of a bank is closed, if no request needs it then. `None` for never.
    fn closes_at(&self, bank: &Bank) -> Option<u64>;
}

/// The policy of one channel.
pub(super) enum RowPolicy {
    Open(Open),
    Closed(Closed),
    Timeout(Timeout),
}

impl RowPolicy {
    /// The policy that the preset names.
    pub(super) fn new(hbm: &Hbm) -> Self {
        match hbm.row_policy {
            config::RowPolicy::Open => RowPolicy::Open(Open),
            config::RowPolicy::Closed => RowPolicy::Closed(Closed),
            config::RowPolicy::Timeout => RowPolicy::Timeout(Timeout::new(hbm.row_timeout)),
        }
    }

    /// Edge and bank of the row to close next. Of rows due at one edge, the lowest bank is first.
    #[inline]
    pub(super) fn next(&self, banks: &[Bank], queue: &Queue) -> Option<(u64, usize)> {
        match self {
            RowPolicy::Open(policy) => next(policy, banks, queue),
            RowPolicy::Closed(policy) => next(policy, banks, queue),
            RowPolicy::Timeout(policy) => next(policy, banks, queue),
        }
    }
}

#[inline]
fn next(policy: &impl CloseRows, banks: &[Bank], queue: &Queue) -> Option<(u64, usize)> {
    // A hit is an entry that needs the open row.
    let is_idle = |n: usize| banks[n].row.is_some() && queue.hits() & queue.of_bank(n) == 0;
    let closes = (0..banks.len()).filter_map(|n| Some((policy.closes_at(&banks[n])?, n)));
    closes.filter(|&(_, n)| is_idle(n)).min()
}
