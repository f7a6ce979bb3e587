//! The progress line of long runs, and the wish to stop.

use std::io::{IsTerminal, Write, stderr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warpwave::bench::Progress;

/// How often the line is drawn.
const INTERVAL: Duration = Duration::from_millis(200);

static STOP: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C asks runs to stop instead of ending the program.
pub fn catch_interrupt() {
    static CAUGHT: OnceLock<bool> = OnceLock::new();
    // Where signals cannot be caught, Ctrl-C ends the program as ever.
    CAUGHT.get_or_init(|| ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed)).is_ok());
}

/// A line on standard error that says where a run is.
pub struct Line {
    shown: bool,
    begin: Instant,
    drawn: Instant,
    first_cycle: Option<u64>,
    dirty: bool,
}

impl Line {
    /// A line that is drawn only on a terminal, and only where it is wanted.
    pub fn new(wanted: bool) -> Self {
        let now = Instant::now();
        Line {
            shown: wanted && stderr().is_terminal(),
            begin: now,
            drawn: now,
            first_cycle: None,
            dirty: false,
        }
    }

    /// Draws the line from time to time; false when the run is to stop.
    pub fn observe(&mut self, scenario: &str, progress: Progress) -> bool {
        self.first_cycle.get_or_insert(progress.now.0);
        if self.shown && self.drawn.elapsed() >= INTERVAL {
            self.draw(scenario, progress);
        }
        !STOP.load(Ordering::Relaxed)
    }

    fn draw(&mut self, scenario: &str, progress: Progress) {
        let Progress {
            now,
            launch,
            n_launches,
        } = progress;
        let first = self.first_cycle.unwrap_or(now.0);
        let rate = (now.0 - first) as f64 / self.begin.elapsed().as_secs_f64() / 1e6;
        let line = format!(
            "{scenario}: launch {} of {n_launches}, cycle {now}, {rate:.2} M cycles/s",
            launch + 1
        );
        let _ = write!(stderr(), "\r\x1b[K{line}");
        self.drawn = Instant::now();
        self.dirty = true;
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.dirty {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
