//! The results of assertions.

use serde::Serialize;

/// An assertion with its result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Checked {
    /// The assertion as text.
    pub that: String,
    /// True if it holds.
    pub holds: bool,
    /// The value on the left of a comparison, or the value of the metric. `None` if there is none.
    pub left: Option<f64>,
    /// The value on the right of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<f64>,
    /// The found value beside the wanted one, in words.
    pub values: String,
}
