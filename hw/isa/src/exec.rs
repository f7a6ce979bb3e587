//! The meaning of an instruction: bits in, bits out, for a whole warp at once. No clock, no memory.

use crate::lane::{LaneMask, Lanes};
use crate::program::{MAX_RESULT_WORDS, MAX_SOURCE_WORDS};

/// What an instruction reads, gathered: source words in the order of [`crate::program::Decoded::sources`], before negation and the like.
#[derive(Clone, PartialEq, Debug)]
pub struct Operands {
    /// Source words.
    pub words: [Lanes; MAX_SOURCE_WORDS],
    /// Lanes in which each predicate source holds, negation applied.
    pub preds: [LaneMask; 2],
    /// All seven predicates as they are (P2R alone reads them).
    pub file: [LaneMask; 7],
}

/// What an instruction writes.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// Result words.
    pub words: [Lanes; MAX_RESULT_WORDS],
    /// Result predicates (R2P: all seven).
    pub preds: [LaneMask; 7],
}
