//! PTX arithmetic, from text through the lowering, on the reference without time.

mod operations;
mod pairs;
mod quotients;
mod slow_operations;
