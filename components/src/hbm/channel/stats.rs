//! What a channel counts.

warpwave_hw::counters! {
    /// Events of a channel.
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
}
