//! What a run showed: profiler-named metrics, stall tables, latencies; as text and as JSON.
//!
//! Components report counters ([`counts`]); [`metrics`] says in one table how each metric follows from them. A metric is a
//! number, "not modelled" (no component counts it) or "not reached" (nothing happened that it could be a share of).

pub mod counts;

pub mod metrics;

pub mod stalls;

pub mod latency;

pub mod hist;

pub mod svg;

pub mod kanata;

pub mod perfetto;

pub mod html;

pub mod text;

pub mod json;
