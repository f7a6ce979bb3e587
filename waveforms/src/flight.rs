//! The flight recorder: the last cycles of the recorded signals, always in memory, to be written when something goes wrong.
//!
//! Changes lie in a ring of blocks; each block begins with a copy of all values, so that the oldest can be dropped at any time.

use std::collections::VecDeque;
use std::io;

use warpwave_hw::time::Cycle;

use crate::recorder::Change;
use crate::sink::Sink;

/// Changes of a block, of 16 bytes each, and blocks of the ring: 16 MiB when full.
const BLOCK: usize = 1 << 16;
const BLOCKS: usize = 16;

/// Set in a record whose signal has no value now.
const NO_VALUE: u32 = 1 << 31;

/// A change, with the cycles since the block's first one.
#[derive(Clone, Copy)]
struct Record {
    after: u32,
    signal: u32,
    value: u64,
}

/// Values at its first cycle, and the changes from it on.
struct Block {
    start: Cycle,
    first: Vec<Option<u64>>,
    records: Vec<Record>,
}

/// The ring.
pub struct Flight {
    cycles: u64,
    blocks: VecDeque<Block>,
}

impl Flight {
    /// Keeps the last `cycles` cycles, or fewer where more changes than the ring holds.
    pub fn new(cycles: u64) -> Flight {
        Flight {
            cycles,
            blocks: VecDeque::new(),
        }
    }

    /// Keeps the changes of a cycle. `values` are those before.
    pub fn keep(&mut self, now: Cycle, step: &[Change], values: &[Option<u64>]) {
        let fits = |block: &Block| {
            block.records.len() + step.len() <= BLOCK && now.since(block.start) <= self.cycles.min(u64::from(u32::MAX))
        };
        if !self.blocks.back().is_some_and(fits) {
            self.open(now, values);
        }
        let block = self.blocks.back_mut().expect("one is open");
        let after = now.since(block.start) as u32;
        block.records.extend(step.iter().map(|&(signal, value)| Record {
            after,
            signal: signal | if value.is_none() { NO_VALUE } else { 0 },
            value: value.unwrap_or(0),
        }));
    }

    /// A new block, in the memory of one that is too old or too many.
    fn open(&mut self, now: Cycle, values: &[Option<u64>]) {
        let is_spare = self.blocks.len() >= BLOCKS
            || self
                .blocks
                .get(1)
                .is_some_and(|second| second.start + self.cycles < now);
        let spare = if is_spare { self.blocks.pop_front() } else { None };
        let mut block = spare.unwrap_or_else(|| Block {
            start: now,
            first: Vec::with_capacity(values.len()),
            records: Vec::with_capacity(BLOCK),
        });
        block.start = now;
        block.first.clear();
        block.first.extend_from_slice(values);
        block.records.clear();
        self.blocks.push_back(block);
    }

    /// The first cycle that it still has of those before `now`.
    pub fn start(&self, now: Cycle) -> Cycle {
        let oldest = self.blocks.front().map_or(now, |block| block.start);
        oldest.max(Cycle(now.0.saturating_sub(self.cycles)))
    }

    /// Writes what it has of the cycles before `now`.
    pub fn write(&self, sink: &mut dyn Sink, now: Cycle) -> io::Result<()> {
        let start = self.start(now);
        let mut values: Vec<Option<u64>> = self.blocks.front().map_or(Vec::new(), |block| block.first.clone());
        let mut begun = false;
        for block in &self.blocks {
            for record in &block.records {
                let at = block.start + u64::from(record.after);
                let signal = record.signal & !NO_VALUE;
                let value = (record.signal & NO_VALUE == 0).then_some(record.value);
                if at > start && !begun {
                    sink.begin(start.0, &values)?;
                    begun = true;
                }
                if begun {
                    sink.change(at.0, signal, value)?;
                } else {
                    values[signal as usize] = value;
                }
            }
        }
        if !begun && !values.is_empty() {
            sink.begin(start.0, &values)?;
        }
        sink.finish(now.0)
    }
}
