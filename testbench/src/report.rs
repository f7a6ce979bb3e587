//! Reports of a run: metrics with the profiler's names, stall tables, latencies, charts and timelines.
//!
//! Components report counters ([`counts`]). One table in [`metrics`] defines each metric by these counters. A metric is a number,
//! "not modelled" (no component counts it) or "not reached" (its formula divides by zero).

pub mod counts;

pub mod metrics;

pub mod stalls;

pub mod latency;

pub mod hist;

pub mod svg;

pub mod kanata;

pub mod perfetto;

pub mod transaction;

pub mod html;

pub mod units;

pub mod diagnosis;

pub mod glossary;

pub mod text;

pub mod json;

pub mod csv;

pub mod saved;
