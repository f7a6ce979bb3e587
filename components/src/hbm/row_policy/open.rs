//! Open rows: a row stays open until a request needs another row of its bank. Preset word `open`.

use super::CloseRows;
use crate::hbm::bank::Bank;

/// The policy.
pub struct Open;

impl CloseRows for Open {
    #[inline]
    fn closes_at(&self, _bank: &Bank) -> Option<u64> {
        None
    }
}
