//! Counters of a dispatch unit.

use warpwave_hw::stats::Report;

/// Counters of a dispatch unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Instructions sent into pipes.
    pub instructions: u64,
    /// Active lanes of these instructions whose guard holds.
    pub thread_instructions: u64,
    /// Cycles lost to register-bank conflicts.
    pub bank_conflict_cycles: u64,
    /// Results written.
    pub writebacks: u64,
}

impl Stats {
    /// Reports every counter.
    pub(super) fn report(&self, report: &mut dyn Report) {
        report.count("inst_executed", self.instructions);
        report.count("thread_inst_pred_on", self.thread_instructions);
        report.count("bank_conflict_cycles", self.bank_conflict_cycles);
        report.count("writebacks", self.writebacks);
    }
}
