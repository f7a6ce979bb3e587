//! Rows with a timeout: a row is closed when no command has used it for `hbm.row_timeout` command cycles. Preset word `timeout`.

use super::CloseRows;
use crate::hbm::bank::Bank;

/// The policy.
pub struct Timeout {
    /// Command cycles from the last command to a row until the row is closed.
    cycles: u64,
}

impl Timeout {
    pub(super) fn new(cycles: u32) -> Self {
        Timeout {
            cycles: u64::from(cycles),
        }
    }
}

impl CloseRows for Timeout {
    #[inline]
    fn closes_at(&self, bank: &Bank) -> Option<u64> {
        // The timing of the bank can outlast a short timeout.
        Some(bank.precharge_at.max(bank.used_at + self.cycles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_is_closed_after_its_timeout_but_not_before_a_precharge_is_allowed() {
        let bank = Bank {
            row: Some(3),
            precharge_at: 40,
            used_at: 21,
            ..Bank::closed(0)
        };
        assert_eq!(Timeout::new(30).closes_at(&bank), Some(51));
        assert_eq!(Timeout::new(10).closes_at(&bank), Some(40));
    }
}
