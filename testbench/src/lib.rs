//! The host and the laboratory: scenarios, the reference, reports.
//!
//! Read in this order: [`scenario`] (the input), [`host`] (what a driver does), [`reference`](mod@reference) (the program without time),
//! [`lockstep`] (compares the two), [`mod@bench`] (runs a scenario), [`report`] (says what happened).

pub mod scenario;

pub mod reference;

pub mod host;

pub mod lockstep;

pub mod watch;

pub mod report;

pub mod bench;

pub mod suite;

pub mod oracle;
