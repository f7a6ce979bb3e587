//! Pipeline diagrams for the viewer Konata: one row per instruction, with its stages and the instructions it depends on.
//!
//! The format is Kanata 0004: one command per line, with tabs between the fields.
//!
//! | command | meaning |
//! |---|---|
//! | `C=`, `C` | sets the cycle; advances by a number of cycles |
//! | `I`, `L` | begins an instruction; gives its label or tooltip |
//! | `S`, `E` | a stage begins; a stage ends |
//! | `W` | the instruction depends on an earlier one |
//! | `R` | the instruction retires or is flushed |
//!
//! Instructions must come in the order of their first cycles, and are numbered from 0. In the file, cycles never go back, every stage
//! ends, and every instruction retires or is flushed once.
//!
//! ```
//! use warpwave_hw::time::Cycle;
//! use warpwave_waveforms::kanata::{Instruction, KanataWriter, Stage};
//! let stage = Stage { lane: 0, name: "X", from: Cycle(5), to: Cycle(7) };
//! let mut writer = KanataWriter::new(Vec::new())?;
//! writer.instruction(Instruction { label: "add".into(), stages: vec![stage], ..Instruction::default() })?;
//! let text = String::from_utf8(writer.finish()?)?;
//! assert!(text.ends_with("S\t0\t0\tX\nC\t2\nE\t0\t0\tX\nR\t0\t0\t0\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use warpwave_hw::time::Cycle;

/// A stage of an instruction: a range of cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// The lane. Lane 0 is the pipeline. Konata draws other lanes over it.
    pub lane: u8,
    /// The name. Konata chooses the colour by it.
    pub name: &'static str,
    /// The first cycle.
    pub from: Cycle,
    /// The cycle after the last one.
    pub to: Cycle,
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Instruction {
    /// The number of its hardware thread, such as a warp slot.
    pub thread: u64,
    /// The text beside the row.
    pub label: String,
    /// The text that appears when the mouse is over the row.
    pub tooltip: String,
    /// The stages. Stages of one lane must not overlap.
    pub stages: Vec<Stage>,
    /// The numbers of earlier instructions that produce its operands.
    pub producers: Vec<u64>,
    /// True if the instruction was flushed and did not retire.
    pub flushed: bool,
}

impl Instruction {
    fn begin(&self) -> Cycle {
        self.stages.iter().map(|stage| stage.from).min().unwrap_or_default()
    }

    fn end(&self) -> Cycle {
        self.stages.iter().map(|stage| stage.to).max().unwrap_or_default()
    }
}

/// A command that is not written yet. Within a cycle commands are written in this order, ends first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Command {
    End(u64, u8, &'static str),
    Retire(u64, bool),
    Begin(u64, u8, &'static str),
}

/// A Kanata file or stream.
pub struct KanataWriter<W> {
    to: W,
    /// Commands of later cycles.
    pending: BinaryHeap<Reverse<(Cycle, Command)>>,
    /// The cycle of the last command.
    now: Option<Cycle>,
    instructions: u64,
    retired: u64,
}

impl<W: Write> KanataWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn new(mut to: W) -> io::Result<Self> {
        writeln!(to, "Kanata\t0004")?;
        Ok(KanataWriter {
            to,
            pending: BinaryHeap::new(),
            now: None,
            instructions: 0,
            retired: 0,
        })
    }

    /// Adds an instruction and returns its number. An instruction without stages begins and ends in cycle 0.
    ///
    /// # Errors
    /// If the file cannot be written.
    ///
    /// # Panics
    /// If the instruction begins before the previous one.
    pub fn instruction(&mut self, instruction: Instruction) -> io::Result<u64> {
        let (number, begin) = (self.instructions, instruction.begin());
        assert!(
            self.now.is_none_or(|now| now <= begin),
            "instruction {number} begins in cycle {begin}, before the previous one"
        );
        // Earlier rows may have commands before this cycle. In the file, cycles never go back.
        self.write_until(begin)?;
        self.go_to(begin)?;
        self.instructions += 1;
        writeln!(self.to, "I\t{number}\t{number}\t{}", instruction.thread)?;
        writeln!(self.to, "L\t{number}\t0\t{}", one_line(&instruction.label))?;
        if !instruction.tooltip.is_empty() {
            writeln!(self.to, "L\t{number}\t1\t{}", one_line(&instruction.tooltip))?;
        }
        // Later rows are not in the file yet, so no arrow can lead to them.
        for producer in instruction.producers.iter().filter(|producer| **producer < number) {
            writeln!(self.to, "W\t{number}\t{producer}\t0")?;
        }
        for stage in instruction.stages.iter().filter(|stage| stage.from < stage.to) {
            let Stage { lane, name, from, to } = *stage;
            self.pending.push(Reverse((from, Command::Begin(number, lane, name))));
            self.pending.push(Reverse((to, Command::End(number, lane, name))));
        }
        let retire = Command::Retire(number, instruction.flushed);
        self.pending.push(Reverse((instruction.end(), retire)));
        Ok(number)
    }

    /// Writes the remaining commands and returns the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_until(Cycle::NEVER)?;
        self.to.flush()?;
        Ok(self.to)
    }

    /// Writes the pending commands of all cycles before `end`.
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
                    // Konata numbers the rows in the order in which they retire.
                    self.retired += 1;
                }
            }
        }
        Ok(())
    }

    /// Advances the cycle of the file to `at`.
    fn go_to(&mut self, at: Cycle) -> io::Result<()> {
        match self.now {
            None => writeln!(self.to, "C=\t{at}")?,
            // After the first `C=` all cycles are relative.
            Some(now) if now < at => writeln!(self.to, "C\t{}", at - now)?,
            Some(_) => {}
        }
        self.now = Some(at);
        Ok(())
    }
}

/// Replaces tabs and line ends, which separate fields and commands.
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
    fn overlapping_instructions_are_written_by_cycle() {
        let mut writer = KanataWriter::new(Vec::new()).unwrap();
        let first = Instruction {
            thread: 7,
            label: "LD R2".into(),
            tooltip: "line\t3".into(),
            stages: vec![stage(0, "F", 100, 102), stage(0, "X", 102, 110)],
            ..Instruction::default()
        };
        let second = Instruction {
            thread: 7,
            label: "ADD R3".into(),
            stages: vec![stage(1, "wait", 101, 109), stage(0, "X", 109, 111)],
            // Its own number is no producer: the format has no arrow from an instruction to itself.
            producers: vec![0, 1],
            ..Instruction::default()
        };
        assert_eq!(writer.instruction(first).unwrap(), 0);
        assert_eq!(writer.instruction(second).unwrap(), 1);
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
    #[should_panic(expected = "instruction 1 begins in cycle 4, before the previous one")]
    fn instruction_before_the_previous_one_panics() {
        let mut writer = KanataWriter::new(Vec::new()).unwrap();
        for from in [5, 4] {
            let instruction = Instruction {
                stages: vec![stage(0, "X", from, 9)],
                ..Instruction::default()
            };
            writer.instruction(instruction).unwrap();
        }
    }
}
