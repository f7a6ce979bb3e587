//! The progress line of a run, and the stop request by Ctrl-C.

use std::io::{Write, stderr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use warpwave::bench::{Activity, Progress};

/// Least host time between two updates of the line.
const INTERVAL: Duration = Duration::from_millis(200);

/// Host time after Ctrl-C in which a run looks for spinning warps. Assumed: a user notices no delay below it.
const SEARCH: Duration = Duration::from_millis(400);

/// Times that Ctrl-C was pressed.
static PRESSES: AtomicU32 = AtomicU32::new(0);

/// The time of the first press.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// Makes Ctrl-C stop the run instead of the process. So the run writes its summary and files.
pub fn catch_interrupt() {
    static CAUGHT: OnceLock<bool> = OnceLock::new();
    // If no handler can be set, Ctrl-C ends the process as usual.
    CAUGHT.get_or_init(|| {
        ctrlc::set_handler(|| {
            FIRST.get_or_init(Instant::now);
            PRESSES.fetch_add(1, Ordering::Relaxed);
        })
        .is_ok()
    });
}

/// A line on standard error: launch, cycle, finished blocks, speed, time left, and the top stall state since the last update.
pub struct Line {
    /// The drawn line. Hidden if standard error is not a terminal.
    bar: ProgressBar,
    begin: Instant,
    updated: Instant,
    first_cycle: Option<u64>,
    /// Counters at the last update.
    earlier: Activity,
}

impl Line {
    /// Creates the line. It is shown if `is_wanted`, and only on a terminal.
    pub fn new(is_wanted: bool) -> Self {
        let bar = match is_wanted {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{wide_msg}").expect("the template is valid");
        bar.set_style(style);
        let now = Instant::now();
        Line {
            bar,
            begin: now,
            updated: now,
            first_cycle: None,
            earlier: Activity::default(),
        }
    }

    /// Updates the line when it is due. Returns false if the run must stop.
    pub fn observe(&mut self, scenario: &str, progress: Progress<'_>) -> bool {
        self.first_cycle.get_or_insert(progress.now.0);
        // Reading the counters costs time, so a hidden line reads none.
        if self.updated.elapsed() >= INTERVAL && !self.bar.is_hidden() {
            self.update(scenario, progress);
        }
        !is_stopped()
    }

    fn update(&mut self, scenario: &str, progress: Progress<'_>) {
        let activity = progress.activity();
        // Since the line began, as the time below.
        let cycles = progress.now.0 - self.first_cycle.unwrap_or(progress.now.0);
        let elapsed = self.begin.elapsed();
        let speed = rate(cycles as f64 / elapsed.as_secs_f64());
        let left = left(elapsed, progress.share_done(&activity));
        let stall = activity
            .top_stall(&self.earlier)
            .map_or(String::new(), |state| format!(", stall {state}"));
        self.bar.set_message(format!(
            "{scenario} {}/{}: cycle {}, blocks {}/{}, {speed}{left}{stall}",
            progress.launch + 1,
            progress.n_launches,
            progress.now,
            activity.ctas_done,
            progress.ctas
        ));
        // The cursor is at the end of the full row. A `^C` shown there would begin a second row, which is not cleared.
        let _ = write!(stderr(), "\r");
        self.earlier = activity;
        self.updated = Instant::now();
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Formats a rate with three or four digits: `850 cycles/s`, `12.5 k cycles/s`.
fn rate(per_second: f64) -> String {
    let (scale, unit) = match per_second {
        rate if rate < 1e3 => return format!("{rate:.0} cycles/s"),
        rate if rate < 1e6 => (1e3, "k"),
        _ => (1e6, "M"),
    };
    format!("{:.1} {unit} cycles/s", per_second / scale)
}

/// The time left if all blocks take the same time. Empty before the first block has ended.
fn left(elapsed: Duration, share_done: f64) -> String {
    if share_done <= 0.0 {
        return String::new();
    }
    let seconds = (elapsed.as_secs_f64() * (1.0 - share_done) / share_done).ceil() as u64;
    match seconds {
        0..60 => format!(", about {seconds} s left"),
        60..3600 => format!(", about {} min left", seconds.div_ceil(60)),
        _ => format!(", about {:.1} h left", seconds as f64 / 3600.0),
    }
}

/// Times that Ctrl-C was pressed.
pub fn presses() -> u32 {
    PRESSES.load(Ordering::Relaxed)
}

/// True if Ctrl-C was pressed.
pub fn is_stopped() -> bool {
    presses() > 0
}

/// True for a short time after Ctrl-C: the run may go on to find what its warps poll. A second press ends it.
pub fn may_search() -> bool {
    presses() == 1 && FIRST.get().is_some_and(|first| first.elapsed() < SEARCH)
}

/// A bar on standard error: parts done of all, with the time left.
pub struct Count(ProgressBar);

impl Count {
    /// A bar over `all` parts, shown on a terminal alone and only if it `is_wanted`.
    pub fn new(all: usize, is_wanted: bool) -> Self {
        let bar = match is_wanted {
            true => ProgressBar::new(all as u64),
            false => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{pos}/{len}, {eta} left: {wide_msg}");
        bar.set_style(style.expect("the template is valid"));
        Count(bar)
    }

    /// Counts one part. Returns false if the run must stop.
    pub fn add(&self, part: &str) -> bool {
        self.0.set_message(part.to_owned());
        self.0.inc(1);
        !is_stopped()
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_rate_is_not_rounded_to_zero() {
        assert_eq!(rate(8.0), "8 cycles/s");
        assert_eq!(rate(12_540.0), "12.5 k cycles/s");
        assert_eq!(rate(3.2e6), "3.2 M cycles/s");
    }

    #[test]
    fn time_left_follows_from_the_blocks_done() {
        let after = |seconds, share| left(Duration::from_secs(seconds), share);
        assert_eq!(after(10, 0.0), "");
        assert_eq!(after(10, 0.25), ", about 30 s left");
        assert_eq!(after(60, 0.1), ", about 9 min left");
        assert_eq!(after(3600, 0.25), ", about 3.0 h left");
    }
}
