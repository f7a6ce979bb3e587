//! Pipeline diagrams in the format of the viewer Konata: a row per instruction, its stages in lanes, arrows between rows.
//!
//! Takes rows in the order of their first cycles. Promises a file with rising time, numbered from 0 in that order, in which every
//! stage that begins ends, and every row retires or is flushed once.
//!
//! ```text
//! Kanata 0004 | C= start | C advance | I row | L label | S, E stage begins, ends | W arrow | R row is over
//! ```
//!
//! ```
//! use warpwave_hw::time::Cycle;
//! use warpwave_waveforms::kanata::{Row, Stage, Writer};
//! let stage = Stage { lane: 0, name: "X", from: Cycle(5), to: Cycle(7) };
//! let mut writer = Writer::new(Vec::new()).unwrap();
//! writer.row(Row { thread: 0, label: "add".into(), stages: vec![stage], ..Row::default() }).unwrap();
//! let text = String::from_utf8(writer.finish().unwrap()).unwrap();
//! assert!(text.ends_with("S\t0\t0\tX\nC\t2\nE\t0\t0\tX\nR\t0\t0\t0\n"));
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use warpwave_hw::time::Cycle;

/// A stretch of cycles of one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Lane: 0 is the pipeline itself, further ones lie over it.
    pub lane: u8,
    /// Its name, by which the viewer chooses a colour.
    pub name: &'static str,
    /// First cycle.
    pub from: Cycle,
    /// The cycle after its last.
    pub to: Cycle,
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Rows of a thread belong together.
    pub thread: u64,
    /// What the viewer writes beside the row.
    pub label: String,
    /// What it shows when pointed at.
    pub tooltip: String,
    /// Stages; those of a lane follow each other.
    pub stages: Vec<Stage>,
    /// Numbers of earlier rows whose results it uses.
    pub needs: Vec<u64>,
    /// Whether it was given up.
    pub flushed: bool,
}

impl Row {
    fn begin(&self) -> Cycle {
        self.stages.iter().map(|stage| stage.from).min().unwrap_or_default()
    }

    fn end(&self) -> Cycle {
        self.stages.iter().map(|stage| stage.to).max().unwrap_or_default()
    }
}

/// What is still to be written of the rows so far, in the order in which it must stand: within a cycle ends come first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Command {
    End(u64, u8, &'static str),
    Retire(u64, bool),
    Begin(u64, u8, &'static str),
}

/// Writes a diagram.
pub struct Writer<W> {
    to: W,
    pending: BinaryHeap<Reverse<(Cycle, Command)>>,
    now: Option<Cycle>,
    rows: u64,
    retired: u64,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// What `to` gives.
    pub fn new(mut to: W) -> io::Result<Self> {
        writeln!(to, "Kanata\t0004")?;
        Ok(Writer {
            to,
            pending: BinaryHeap::new(),
            now: None,
            rows: 0,
            retired: 0,
        })
    }

    /// Adds a row; gives its number. A row without stages is an instant at cycle 0.
    ///
    /// # Errors
    /// What the file gives.
    ///
    /// # Panics
    /// If the row begins before the one before it.
    pub fn row(&mut self, row: Row) -> io::Result<u64> {
        let (number, begin) = (self.rows, row.begin());
        assert!(
            self.now.is_none_or(|now| now <= begin),
            "row {number} begins in cycle {begin}, before the row before it"
        );
        self.write_until(begin)?;
        self.go_to(begin)?;
        self.rows += 1;
        writeln!(self.to, "I\t{number}\t{number}\t{}", row.thread)?;
        writeln!(self.to, "L\t{number}\t0\t{}", one_line(&row.label))?;
        if !row.tooltip.is_empty() {
            writeln!(self.to, "L\t{number}\t1\t{}", one_line(&row.tooltip))?;
        }
        for producer in row.needs.iter().filter(|producer| **producer < number) {
            writeln!(self.to, "W\t{number}\t{producer}\t0")?;
        }
        for stage in row.stages.iter().filter(|stage| stage.from < stage.to) {
            let Stage { lane, name, from, to } = *stage;
            self.pending.push(Reverse((from, Command::Begin(number, lane, name))));
            self.pending.push(Reverse((to, Command::End(number, lane, name))));
        }
        self.pending
            .push(Reverse((row.end(), Command::Retire(number, row.flushed))));
        Ok(number)
    }

    /// Writes what is left; gives back what it wrote to.
    ///
    /// # Errors
    /// What the file gives.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_until(Cycle::NEVER)?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn write_until(&mut self, end: Cycle) -> io::Result<()> {
        while self.pending.peek().is_some_and(|Reverse((at, _))| *at < end) {
            let Some(Reverse((at, command))) = self.pending.pop() else {
                break;
            };
            self.go_to(at)?;
            match command {
                Command::Begin(row, lane, name) => writeln!(self.to, "S\t{row}\t{lane}\t{name}")?,
                Command::End(row, lane, name) => writeln!(self.to, "E\t{row}\t{lane}\t{name}")?,
                Command::Retire(row, flushed) => {
                    writeln!(self.to, "R\t{row}\t{}\t{}", self.retired, u8::from(flushed))?;
                    self.retired += 1;
                }
            }
        }
        Ok(())
    }

    fn go_to(&mut self, at: Cycle) -> io::Result<()> {
        match self.now {
            None => writeln!(self.to, "C=\t{at}")?,
            Some(now) if now < at => writeln!(self.to, "C\t{}", at - now)?,
            Some(_) => {}
        }
        self.now = Some(at);
        Ok(())
    }
}

/// Tabs and line ends separate fields and commands.
fn one_line(text: &str) -> String {
    text.replace('\t', " ").replace('\n', "\\n").replace('\r', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(lane: u8, name: &'static str, from: u64, to: u64) -> Stage {
        Stage {
            lane,
            name,
            from: Cycle(from),
            to: Cycle(to),
        }
    }

    #[test]
    fn two_rows_that_overlap_are_written_by_cycle() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let first = Row {
            thread: 7,
            label: "LD R2".into(),
            tooltip: "line\t3".into(),
            stages: vec![stage(0, "F", 100, 102), stage(0, "X", 102, 110)],
            ..Row::default()
        };
        let second = Row {
            thread: 7,
            label: "ADD R3".into(),
            stages: vec![stage(1, "wait", 101, 109), stage(0, "X", 109, 111)],
            needs: vec![0],
            ..Row::default()
        };
        assert_eq!(writer.row(first).unwrap(), 0);
        assert_eq!(writer.row(second).unwrap(), 1);
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        let lines = [
            "Kanata\t0004",
            "C=\t100",
            "I\t0\t0\t7",
            "L\t0\t0\tLD R2",
            "L\t0\t1\tline 3",
            "S\t0\t0\tF",
            "C\t1",
            "I\t1\t1\t7",
            "L\t1\t0\tADD R3",
            "W\t1\t0\t0",
            "S\t1\t1\twait",
            "C\t1",
            "E\t0\t0\tF",
            "S\t0\t0\tX",
            "C\t7",
            "E\t1\t1\twait",
            "S\t1\t0\tX",
            "C\t1",
            "E\t0\t0\tX",
            "R\t0\t0\t0",
            "C\t1",
            "E\t1\t0\tX",
            "R\t1\t1\t0",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    #[should_panic(expected = "row 1 begins in cycle 4, before the row before it")]
    fn row_that_comes_too_late_is_refused() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for from in [5, 4] {
            let row = Row {
                stages: vec![stage(0, "X", from, 9)],
                ..Row::default()
            };
            writer.row(row).unwrap();
        }
    }
}
