//! The SM's first-level data cache.
