//! Counters of a memory channel.

warpwave_hw::counters! {
    /// Counters of a channel. The writes of dirty lines after a launch have counters of their own: profilers do not see them. Commands to
    /// rows, turnarounds and waits count for all requests.
    pub struct Stats {
        pub read_requests: u64,
        pub write_requests: u64,
        pub read_bursts: u64,
        pub write_bursts: u64,
        pub bytes_read: u64,
        pub bytes_written: u64,
        /// Writes of dirty lines after a launch.
        pub flush_requests: u64,
        pub flush_bursts: u64,
        pub bytes_flushed: u64,
        /// Requests whose row was open.
        pub row_hits: u64,
        /// Requests whose bank had no open row.
        pub row_misses: u64,
        /// Requests whose bank had another row open.
        pub row_conflicts: u64,
        pub activates: u64,
        pub precharges: u64,
        /// Command cycles in which the data bus was busy.
        pub bus_cycles: u64,
        /// Changes between reading and writing.
        pub turnarounds: u64,
        /// Command cycles in which a request waited for a full queue.
        pub full_cycles: u64,
    }
}
