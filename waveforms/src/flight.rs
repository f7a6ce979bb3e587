//! The flight recorder: keeps the last cycles of the recorded signals in memory, for a dump when a run goes wrong.
//!
//! Changes are stored in a ring of blocks. A block begins with a copy of all values, so the oldest block can be dropped at any time.

use std::collections::VecDeque;
use std::io;

use warpwave_hw::time::Cycle;

use crate::recorder::Change;
use crate::sink::Sink;

/// Changes in one block. A change has 16 bytes, so the full ring has 16 MiB.
const BLOCK_CHANGES: usize = 1 << 16;

/// Blocks in the ring.
const BLOCKS: usize = 16;

/// Marks a change to a missing value, in the signal's index.
const NO_VALUE: u32 = 1 << 31;

/// A change in 16 bytes.
#[derive(Clone, Copy)]
struct PackedChange {
    /// Cycles since the block's first cycle.
    offset: u32,
    signal: u32,
    value: u64,
}

/// The changes of consecutive cycles.
struct Block {
    start: Cycle,
    /// The values of all signals before cycle `start`.
    initial: Vec<Option<u64>>,
    changes: Vec<PackedChange>,
}

/// Keeps the last cycles of all recorded signals.
pub struct FlightRecorder {
    cycles: u64,
    blocks: VecDeque<Block>,
}

impl FlightRecorder {
    /// Creates a recorder of the last `cycles` cycles. It keeps fewer if the ring is too small for their changes.
    pub fn new(cycles: u64) -> FlightRecorder {
        FlightRecorder {
            cycles,
            blocks: VecDeque::new(),
        }
    }

    /// Records the changes of a cycle. `values` are the values of all signals before these changes.
    pub fn record(&mut self, now: Cycle, changes: &[Change], values: &[Option<u64>]) {
        // A block spans no more cycles than are kept, so that the oldest one can go. Offsets have 32 bits.
        let fits = |block: &Block| {
            block.changes.len() + changes.len() <= BLOCK_CHANGES
                && now.since(block.start) <= self.cycles.min(u64::from(u32::MAX))
        };
        if !self.blocks.back().is_some_and(fits) {
            self.begin_block(now, values);
        }
        let block = self.blocks.back_mut().expect("a block has begun");
        let offset = now.since(block.start) as u32;
        block
            .changes
            .extend(changes.iter().map(|&(signal, value)| PackedChange {
                offset,
                signal: signal | if value.is_none() { NO_VALUE } else { 0 },
                value: value.unwrap_or(0),
            }));
    }

    /// Begins a block. It uses the memory of the oldest block if the ring is full or that block is too old.
    fn begin_block(&mut self, now: Cycle, values: &[Option<u64>]) {
        // If the second block reaches back far enough, the first one is not needed.
        let is_spare = self.blocks.len() >= BLOCKS
            || self
                .blocks
                .get(1)
                .is_some_and(|second| second.start + self.cycles < now);
        let spare = if is_spare { self.blocks.pop_front() } else { None };
        let mut block = spare.unwrap_or_else(|| Block {
            start: now,
            initial: Vec::with_capacity(values.len()),
            changes: Vec::with_capacity(BLOCK_CHANGES),
        });
        block.start = now;
        block.initial.clear();
        block.initial.extend_from_slice(values);
        block.changes.clear();
        self.blocks.push_back(block);
    }

    /// The oldest cycle in the recorder. `now` is the first cycle that has not run.
    pub fn oldest_cycle(&self, now: Cycle) -> Cycle {
        let oldest = self.blocks.front().map_or(now, |block| block.start);
        oldest.max(Cycle(now.0.saturating_sub(self.cycles)))
    }

    /// Writes all recorded cycles before `now`.
    pub fn write(&self, sink: &mut dyn Sink, now: Cycle) -> io::Result<()> {
        let start = self.oldest_cycle(now);
        let mut values: Vec<Option<u64>> = self.blocks.front().map_or(Vec::new(), |block| block.initial.clone());
        let mut begun = false;
        for block in &self.blocks {
            for change in &block.changes {
                let at = block.start + u64::from(change.offset);
                let signal = change.signal & !NO_VALUE;
                let value = (change.signal & NO_VALUE == 0).then_some(change.value);
                if at > start && !begun {
                    sink.begin(start.0, &values)?;
                    begun = true;
                }
                if begun {
                    sink.change(at.0, signal, value)?;
                } else {
                    // The oldest block may begin before the oldest cycle.
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
