//! The log of `--log` or `RUST_LOG`, on standard error.
//!
//! During a run, a line is held back until the clock has passed its cycle. So lines are in the order of cycles (module `in_order`).

mod filter;
mod in_order;

use std::io::{Stderr, stderr};
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use warpwave::log::CycleFormat;
use warpwave_components::gpu::LAUNCH_ALIGNMENT;
use warpwave_hw::time::Cycle;

use super::failure::Failure;
use in_order::InOrder;

static LOG: OnceLock<InOrder<Stderr>> = OnceLock::new();

/// Starts the log. The option takes precedence over the variable. Without both there is no log.
pub fn start(option: Option<&str>) -> Result<(), Failure> {
    let Some(filter) = filter::find(option)? else {
        return Ok(());
    };
    let log = LOG.get_or_init(|| InOrder::new(stderr()));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(log.clone())
        // Standard error may be closed: a log error must not be logged itself.
        .log_internal_errors(false)
        .event_format(CycleFormat)
        .init();
    Ok(())
}

/// True if the log is on.
pub fn is_on() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

/// Holds lines back. The guard releases them.
pub fn hold() -> Held {
    LOG.get().inspect(|log| log.hold());
    Held(())
}

/// A guard while lines are held back. A drop writes all remaining lines.
pub struct Held(());

impl Held {
    /// Writes the lines of complete cycles. Every tile has run the cycles before `now`.
    pub fn release(&self, now: Cycle) {
        // The host logs the end of a launch when it learns of it, up to this many cycles later.
        LOG.get()
            .inspect(|log| log.release(now.0.saturating_sub(LAUNCH_ALIGNMENT)));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        LOG.get().inspect(|log| log.release_all());
    }
}
