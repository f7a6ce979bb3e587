//! A log writer that sorts lines by cycle.
//!
//! A tile runs a window of cycles before the next tile runs the same window, so events arrive out of order. This writer holds a line
//! back until every tile has run its cycle. Then it sorts by cycle and path, and events of one path and cycle keep their order.
//! So the log is the same for any number of threads.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// The writer. Clones share the lines.
pub struct InOrder<W>(Arc<Mutex<State<W>>>);

struct State<W> {
    out: W,
    /// True while lines are held back.
    holds: bool,
    held: Vec<Line>,
}

/// A line with its sort key: the cycle and path columns of `CycleFormat`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    cycle: u64,
    path: String,
    text: Vec<u8>,
}

impl Line {
    /// Splits a line into its columns. A line without a cycle sorts before all others.
    fn new(text: &[u8]) -> Self {
        let text_lossy = String::from_utf8_lossy(text);
        let mut columns = text_lossy.split_whitespace();
        Line {
            cycle: columns.next().and_then(|cycle| cycle.parse().ok()).unwrap_or(0),
            path: columns.next().unwrap_or_default().to_owned(),
            text: text.to_owned(),
        }
    }
}

impl<W: Write> InOrder<W> {
    /// Creates a writer that does not hold lines back yet.
    pub fn new(out: W) -> Self {
        InOrder(Arc::new(Mutex::new(State {
            out,
            holds: false,
            held: Vec::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State<W>> {
        // A panic elsewhere must not lose the log of what led to it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to hold lines back.
    pub fn hold(&self) {
        self.state().holds = true;
    }

    /// Writes the lines of all cycles before `now`.
    pub fn release(&self, now: u64) {
        let mut state = self.state();
        let State { out, held, .. } = &mut *state;
        if held.is_empty() {
            return;
        }
        // A stable sort without the text: events of one path and cycle keep their order.
        held.sort_by(|a, b| (a.cycle, &a.path).cmp(&(b.cycle, &b.path)));
        let end = held.partition_point(|line| line.cycle < now);
        for line in held.drain(..end) {
            // Standard error may be gone.
            let _ = out.write_all(&line.text);
        }
    }

    /// Writes all lines, and holds none back afterwards.
    pub fn release_all(&self) {
        self.release(u64::MAX);
        self.state().holds = false;
    }
}

impl<W> Clone for InOrder<W> {
    fn clone(&self) -> Self {
        InOrder(Arc::clone(&self.0))
    }
}

impl<'a, W: Write> MakeWriter<'a> for InOrder<W> {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Each write is one line.
impl<W: Write> Write for InOrder<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        if state.holds {
            state.held.push(Line::new(line));
        } else {
            state.out.write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.state().out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(log: &mut InOrder<Vec<u8>>, lines: &[&str]) {
        for line in lines {
            log.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
    }

    fn written(log: &InOrder<Vec<u8>>) -> String {
        String::from_utf8(log.state().out.clone()).unwrap()
    }

    #[test]
    fn held_lines_are_sorted_by_cycle_and_path_and_keep_their_order_within_a_path() {
        let mut log = InOrder::new(Vec::new());
        log.hold();
        write(
            &mut log,
            &[
                "  9 sm[1] a",
                " 12 sm[1] b",
                "  9 sm[0] z",
                "  9 sm[0] y",
                " 10 sm[0] x",
            ],
        );
        assert_eq!(written(&log), "");
        log.release(10);
        assert_eq!(written(&log), "  9 sm[0] z\n  9 sm[0] y\n  9 sm[1] a\n");
        log.release_all();
        assert!(written(&log).ends_with("a\n 10 sm[0] x\n 12 sm[1] b\n"));
    }

    #[test]
    fn lines_are_written_at_once_unless_they_are_held() {
        let mut log = InOrder::new(Vec::new());
        write(&mut log, &["  9 gpu a", "  - ptx b"]);
        assert_eq!(written(&log), "  9 gpu a\n  - ptx b\n");
        log.hold();
        write(&mut log, &["  3 gpu c"]);
        log.release_all();
        write(&mut log, &["  2 gpu d"]);
        assert!(written(&log).ends_with("  3 gpu c\n  2 gpu d\n"));
    }
}
