//! The log that `--log` or `RUST_LOG` asks for, on standard error.
//!
//! During a run the lines are held back until the clock has passed their cycle, and come in the order of cycles (module `in_order`).

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

/// Starts the log. The option wins over the variable. Without both there is no log.
pub fn start(option: Option<&str>) -> Result<(), Failure> {
    let Some(filter) = filter::find(option)? else {
        return Ok(());
    };
    let log = LOG.get_or_init(|| InOrder::new(stderr()));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(log.clone())
        // Standard error may be gone.
        .log_internal_errors(false)
        .event_format(CycleFormat)
        .init();
    Ok(())
}

/// True if something is logged.
pub fn is_on() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

/// Holds lines back until the guard releases them.
pub fn hold() -> Held {
    LOG.get().inspect(|log| log.hold());
    Held(())
}

/// Lines wait for their cycle. They are all written when it is dropped.
pub struct Held(());

impl Held {
    /// Writes the lines whose cycles are over. Every tile has run the cycles before `now`.
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
