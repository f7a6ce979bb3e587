//! PTX arithmetic: text, lowering, and execution on the reference.

mod operations;
mod pairs;
mod quotients;
mod slow_operations;
