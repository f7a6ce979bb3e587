//! Closed rows: a row is closed once no request needs it and its bank may be precharged. Preset word `closed`.

use super::CloseRows;
use crate::hbm::bank::Bank;

/// The policy.
pub struct Closed;

impl CloseRows for Closed {
    #[inline]
    fn closes_at(&self, bank: &Bank) -> Option<u64> {
        // Stands for the column commands with auto-precharge.
        Some(bank.precharge_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_is_closed_when_its_bank_may_be_precharged() {
        let bank = Bank {
            row: Some(3),
            precharge_at: 40,
            used_at: 21,
            ..Bank::closed(0)
        };
        assert_eq!(Closed.closes_at(&bank), Some(40));
    }
}
