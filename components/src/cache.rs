//! Parts that the L1 and an L2 slice share. Each cache adds its policy and its ports.
//!
//! ```text
//!   line --> tags: index, valid ways, replacement --> way --> line store (bytes)
//!   miss --> MSHR table: one queue of targets (packets that wait) per sector
//!   request at the head --> tag stage: hit, miss or stall, and since when
//! ```
//!
//! Read in this order: `tags`, [`replacement`], `line_store`, `mshr`, `targets`, `slots`, `tag_stage`.
//!
//! Ways are numbered over the whole cache, not within a set (`tags::Tags`). The same number addresses the line's bytes and state.

pub(crate) mod tags;

pub mod replacement;

pub(crate) mod line_index;

pub(crate) mod line_store;

pub(crate) mod mshr;

pub(crate) mod targets;

pub(crate) mod slots;

pub(crate) mod tag_stage;

pub(crate) mod constant_lines;
