//! The host and the laboratory: scenarios, the reference, reports.
