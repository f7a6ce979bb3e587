//! Errors that end a simulation early.

use std::fmt;

use crate::time::Cycle;

/// The machine stopped before its work was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimError {
    /// No component will ever be due again, and work is left.
    Deadlock {
        /// The last cycle with a tick.
        at: Cycle,
        /// What each component waits for, one sentence each.
        waits: Vec<String>,
    },
    /// The cycle limit was reached.
    CycleLimit {
        /// The limit.
        limit: Cycle,
        /// What each component waits for, one sentence each.
        waits: Vec<String>,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = match self {
            SimError::Deadlock { at, waits } => {
                write!(f, "deadlock: nothing can happen after cycle {at}")?;
                waits
            }
            SimError::CycleLimit { limit, waits } => {
                write!(f, "the limit of {limit} cycles is reached")?;
                waits
            }
        };
        waits.iter().try_for_each(|wait| write!(f, "\n  {wait}"))
    }
}

impl std::error::Error for SimError {}
