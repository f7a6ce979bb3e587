//! High-bandwidth memory: channels, banks, rows, and their scheduler.
