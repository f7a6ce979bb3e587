//! What a channel counts.

use warpwave_hw::stats::Report;

/// Events of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the unit is in the name")]
pub struct Stats {
    pub read_requests: u64,
    pub write_requests: u64,
    pub read_bursts: u64,
    pub write_bursts: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Requests that found their row open, their bank closed, another row open.
    pub row_hits: u64,
    pub row_misses: u64,
    pub row_conflicts: u64,
    pub activates: u64,
    pub precharges: u64,
    /// Command cycles that data held the bus.
    pub bus_cycles: u64,
    /// Changes between reading and writing.
    pub turnarounds: u64,
    /// Cycles in which a request stood before a full queue.
    pub full_cycles: u64,
}

impl Stats {
    /// Gives every counter its name.
    pub(super) fn report(&self, refreshes: u64, report: &mut dyn Report) {
        let s = self;
        for (name, value) in [
            ("read_requests", s.read_requests),
            ("write_requests", s.write_requests),
            ("read_bursts", s.read_bursts),
            ("write_bursts", s.write_bursts),
            ("bytes_read", s.bytes_read),
            ("bytes_written", s.bytes_written),
            ("row_hits", s.row_hits),
            ("row_misses", s.row_misses),
            ("row_conflicts", s.row_conflicts),
            ("activates", s.activates),
            ("precharges", s.precharges),
            ("refreshes", refreshes),
            ("bus_cycles", s.bus_cycles),
            ("turnarounds", s.turnarounds),
            ("full_cycles", s.full_cycles),
        ] {
            report.count(name, value);
        }
    }
}
