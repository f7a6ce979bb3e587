//! Errors that end a simulation early.

use std::fmt::Display;

use thiserror::Error;

use crate::time::Cycle;

/// A simulation that stopped before its work was done.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SimError {
    /// No component will ever be due again, and work is left.
    #[error("deadlock: nothing can happen after cycle {at}{}", lines(.waits))]
    Deadlock {
        /// The last cycle with a tick.
        at: Cycle,
        /// What each component waits for, one sentence each.
        waits: Vec<String>,
    },
    /// Work goes on, but it repeats itself: nothing will ever change.
    #[error("standstill: nothing has changed since cycle {since}{}", lines(.waits))]
    Standstill {
        /// The last cycle with a sign of progress, or a later one.
        since: Cycle,
        /// What repeats, and what each component waits for, one sentence each.
        waits: Vec<String>,
    },
    /// The cycle limit was reached.
    #[error("the limit of {limit} cycles is reached{}", lines(.waits))]
    CycleLimit {
        /// The limit.
        limit: Cycle,
        /// What each component waits for, one sentence each.
        waits: Vec<String>,
    },
}

/// Each item on an indented line of its own, below an error's first line.
///
/// ```
/// assert_eq!(warpwave_hw::error::lines(&[1, 2]), "\n  1\n  2");
/// ```
pub fn lines(items: &[impl Display]) -> String {
    items.iter().map(|item| format!("\n  {item}")).collect()
}
