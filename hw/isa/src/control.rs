//! Control words: the waits that compiled code writes into each instruction.
//!
//! ```text
//!   125..122   121..116    115..113      112..110       109          108..105     bits of an instruction (Volta and later)
//!    reuse       wait     read barrier  write barrier  yield (0)      stall
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | stall | cycles until the warp may issue its next instruction, 1 to 15 |
//! | yield | another warp issues in the next cycle; set for a stall of 12 or more |
//! | write barrier | dependency barrier, held from issue until the result is written |
//! | read barrier | dependency barrier, held from issue until the sources are read |
//! | wait | dependency barriers that must be free before this instruction issues |
//! | reuse | source slots with a register that the next instruction reads in the same slot |
//!
//! Input: code, the [`Latency`] of each result, and the guard latency. The guard latency is the number of cycles until a guard sees a
//! predicate with a fixed latency. Guarantee: a machine that obeys the words, without a scoreboard, is free of hazards on every path. It
//! reads no register before its value is written, and overwrites none before it is read.
//! - A fixed-latency result is covered by stalls. It is ready at the end of its basic block.
//! - Any other result takes one of six dependency barriers. Several results may share one (`allocate`).
//! - A barrier becomes visible two cycles after the instruction that takes it.
//!
//! ```
//! use warpwave_isa::control::{self, Latency};
//! use warpwave_isa::program::{Requirements, Program};
//! let code = ["FADD.F32 R0, R1, R2", "FMUL.F32 R3, R0, R2", "EXIT"].map(|text| text.parse().unwrap());
//! let program = Program::new("k", code.to_vec(), Requirements::default());
//! let words = control::words(&program, &[Latency::Fixed(4), Latency::Fixed(4), Latency::Fixed(4)], 13);
//! assert_eq!(words[0].to_string(), "B------:R-:W-:-:S04:---");
//! ```

mod allocate;

mod pending;

use std::fmt;

use crate::inst::{Inst, Source};
use crate::opcode::{Opcode, Pipe};
use crate::program::{Decoded, Program};
use crate::reg::{Guard, Reg};
use allocate::Allocator;
use pending::{BlockTimer, NextUses, Pending, RegPredSet, StallLatency};

/// Dependency barriers of a warp.
pub const DEP_BARRIERS: usize = 6;
/// Longest stall, in cycles.
pub const MAX_STALL: u32 = 15;
/// Shortest stall that yields, in cycles.
const MIN_YIELD_STALL: u32 = 12;
/// Source slots with an operand reuse cache.
const REUSE_SLOTS: usize = 3;

/// Latency of a result for an instruction that reads it as data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Latency {
    /// Fixed number of cycles after issue. The sources are read at issue.
    Fixed(u32),
    /// Unknown when the code is compiled, as is the time when the sources are read. The result comes from a unit of the SM.
    Short,
    /// Unknown too. The result comes from behind the L1.
    Long,
}

/// The control word of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlWord {
    /// Cycles until the warp's next instruction, 1 to 15.
    pub stall: u8,
    /// True if another warp issues in the next cycle.
    pub yields: bool,
    /// Write barrier: held until the result is written.
    pub write: Option<u8>,
    /// Read barrier: held until the sources are read.
    pub read: Option<u8>,
    /// Dependency barriers that must be free, bit i for barrier i.
    pub wait: u8,
    /// Source slots A, B, C that keep their register for the next instruction, bits 0 to 2.
    pub reuse: u8,
}

impl ControlWord {
    /// The word of an instruction without barriers, before a neighbour that may issue in the next cycle.
    const ALONE: ControlWord = ControlWord {
        stall: 1,
        yields: false,
        write: None,
        read: None,
        wait: 0,
        reuse: 0,
    };

    /// Returns the 21 bits of the hardware encoding, the stall lowest.
    ///
    /// ```
    /// use warpwave_isa::control::ControlWord;
    /// let word = ControlWord { stall: 4, yields: true, write: Some(1), read: None, wait: 0b101, reuse: 0b10 };
    /// assert_eq!(word.bits(), 0b0010_000101_111_001_0_0100);
    /// ```
    pub fn bits(&self) -> u32 {
        // 7 means no barrier. The yield bit is inverted: 0 yields.
        let barrier = |barrier: Option<u8>| u32::from(barrier.unwrap_or(7));
        u32::from(self.stall)
            | u32::from(!self.yields) << 4
            | barrier(self.write) << 5
            | barrier(self.read) << 8
            | u32::from(self.wait) << 11
            | u32::from(self.reuse) << 17
    }
}

impl fmt::Display for ControlWord {
    /// Writes wait mask, read and write barrier, yield, stall, and reuse slots. A `-` means none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |mask: u8, names: &str| -> String {
            let shown = |(n, name)| if mask >> n & 1 != 0 { name } else { '-' };
            names.chars().enumerate().map(shown).collect()
        };
        let barrier = |barrier: Option<u8>| barrier.map_or("-".to_owned(), |n| n.to_string());
        let (read, write) = (barrier(self.read), barrier(self.write));
        let yields = if self.yields { 'Y' } else { '-' };
        let (wait, reuse) = (shown(self.wait, "012345"), shown(self.reuse, "ABC"));
        write!(f, "B{wait}:R{read}:W{write}:{yields}:S{:02}:{reuse}", self.stall)
    }
}

/// Computes the control word of each instruction of a program. A guard sees a predicate with a fixed latency `guard_latency` cycles after
/// the issue of its writer, if that is longer than the latency.
///
/// # Panics
///
/// If the number of latencies is not the number of instructions.
pub fn words(program: &Program, latencies: &[Latency], guard_latency: u32) -> Vec<ControlWord> {
    let analysis = Analysis::of(program, latencies, guard_latency);
    let mut words = vec![ControlWord::ALONE; program.code().len()];
    // In this order: waits depend on the barriers, stalls on the waits.
    analysis.assign_barriers(&mut words);
    analysis.set_waits(&mut words);
    analysis.set_stalls(&mut words);
    analysis.set_reuse(&mut words);
    words
}

/// The dependency barriers of an instruction whose reads need none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResultBarriers {
    /// Barrier that the result holds until it is written.
    pub write: Option<u8>,
    /// Barriers that must be free before the instruction issues, bit i for barrier i.
    pub wait: u8,
}

/// Computes the barriers of each instruction of a program for a machine that reads operands in order of issue and tracks fixed latencies
/// itself. Such a machine needs barriers for variable results only. It has `barriers` of them, at most [`DEP_BARRIERS`].
///
/// # Panics
///
/// If the number of latencies is not the number of instructions.
pub fn result_barriers(program: &Program, latencies: &[Latency], barriers: usize) -> Vec<ResultBarriers> {
    let covered = |latency: &Latency| match latency {
        // Any fixed latency is as short as a stall here.
        Latency::Fixed(_) => Latency::Fixed(1),
        &variable => variable,
    };
    let latencies: Vec<Latency> = latencies.iter().map(covered).collect();
    let analysis = Analysis {
        barriers,
        holds_reads: false,
        ..Analysis::of(program, &latencies, 1)
    };
    let mut words = vec![ControlWord::ALONE; program.code().len()];
    analysis.assign_barriers(&mut words);
    analysis.set_waits(&mut words);
    let of_result = |word: ControlWord| ResultBarriers {
        write: word.write,
        wait: word.wait,
    };
    words.into_iter().map(of_result).collect()
}

/// The inputs of the analysis.
struct Analysis<'p> {
    code: &'p [Inst],
    decoded: &'p [Decoded],
    latencies: &'p [Latency],
    guard_latency: u32,
    /// Number of dependency barriers.
    barriers: usize,
    /// True if a source holds a barrier until it is read.
    holds_reads: bool,
}

impl<'p> Analysis<'p> {
    fn of(program: &'p Program, latencies: &'p [Latency], guard_latency: u32) -> Self {
        let code = program.code();
        assert_eq!(
            code.len(),
            latencies.len(),
            "one latency for each instruction of `{}`",
            program.name()
        );
        Analysis {
            code,
            decoded: program.decoded(),
            latencies,
            guard_latency,
            barriers: DEP_BARRIERS,
            holds_reads: true,
        }
    }
}

impl Analysis<'_> {
    /// Iterates over the possible next instructions. The targets of an indirect jump are unknown.
    fn next(&self, pc: usize) -> impl Iterator<Item = usize> + use<> {
        let inst = &self.code[pc];
        let jumps = inst.op == Opcode::Bra;
        // With a guard some lanes may fall through.
        let leaves = inst.guard == Guard::ALWAYS && (jumps || inst.op == Opcode::Brx);
        let goes_on = !leaves && !self.is_end(pc) && pc + 1 < self.code.len();
        let behind = goes_on.then_some(pc + 1);
        behind.into_iter().chain(jumps.then_some(inst.target as usize))
    }

    /// Returns the latency, for data and for guards, if stalls can cover it.
    fn stall_latency(&self, pc: usize) -> Option<StallLatency> {
        let Latency::Fixed(data) = self.latencies[pc] else {
            return None;
        };
        // Only a predicate result has a guard latency.
        let guard = match self.decoded[pc].pred_defs {
            0 => data,
            _ => data.max(self.guard_latency),
        };
        (guard <= MAX_STALL).then_some(StallLatency { data, guard })
    }

    /// Assigns dependency barriers to the results and sources that stalls cannot cover, in text order.
    fn assign_barriers(&self, words: &mut [ControlWord]) {
        let readers = self.first_readers();
        let mut pending = Pending::default();
        let mut allocator = Allocator::new(self.barriers);
        for (pc, word) in words.iter_mut().enumerate() {
            let decoded = &self.decoded[pc];
            // A first wait mask, in text order: it shows which barriers are free. `set_waits` follows every path.
            word.wait = pending.wait(decoded);
            pending = pending.after(word, decoded);
            if self.stall_latency(pc).is_none() && !RegPredSet::written(decoded).is_empty() {
                let is_long = self.latencies[pc] == Latency::Long;
                word.write = Some(allocator.of_result(pending.all(), is_long, readers[pc]));
                pending.raise(word, decoded);
            }
            let is_variable = matches!(self.latencies[pc], Latency::Short | Latency::Long);
            if self.holds_reads && is_variable && self.is_overwritten(pc) {
                word.read = Some(allocator.of_sources(pending.all()));
                pending.raise(word, decoded);
            }
        }
    }

    /// Returns the first instruction that reads or overwrites a result of each instruction, if it is in the same basic block.
    fn first_readers(&self) -> Vec<Option<usize>> {
        let starts = self.block_starts();
        let mut readers = vec![None; self.code.len()];
        let mut next = NextUses::default();
        for pc in (0..self.code.len()).rev() {
            if starts[pc + 1] {
                next = NextUses::default();
            }
            let written = RegPredSet::written(&self.decoded[pc]);
            readers[pc] = next.first(written);
            next.add(RegPredSet::read(&self.decoded[pc]).with(written), pc);
        }
        readers
    }

    /// True if a source may be overwritten before an instruction waits for the result.
    fn is_overwritten(&self, producer: usize) -> bool {
        let sources = RegPredSet::read(&self.decoded[producer]).registers();
        let results = RegPredSet::written(&self.decoded[producer]);
        let mut seen = vec![false; self.code.len()];
        let mut open: Vec<usize> = self.next(producer).collect();
        while let Some(pc) = open.pop() {
            if std::mem::replace(&mut seen[pc], true) {
                continue;
            }
            let (reads, writes) = (
                RegPredSet::read(&self.decoded[pc]),
                RegPredSet::written(&self.decoded[pc]),
            );
            // This instruction waits for the result, and the sources have been read by then.
            if results.intersects(reads.with(writes)) {
                continue;
            }
            // The targets of a BRX are unknown: one may overwrite a source.
            if sources.intersects(writes) || (self.code[pc].op == Opcode::Brx && !sources.is_empty()) {
                return true;
            }
            open.extend(self.next(pc));
        }
        false
    }

    /// Sets the wait masks to the union over all paths, by iteration to a fixed point.
    fn set_waits(&self, words: &mut [ControlWord]) {
        let starts = self.block_starts();
        // The states before the first instructions of blocks. The others follow from the instruction before.
        let mut before = vec![Pending::default(); self.code.len() + 1];
        // The sets only grow, so the iteration ends.
        let mut changed = true;
        while std::mem::take(&mut changed) {
            let mut pending = Pending::default();
            for pc in 0..self.code.len() {
                if starts[pc] {
                    pending = before[pc];
                }
                let jumps_anywhere = self.code[pc].op == Opcode::Brx;
                words[pc].wait = match jumps_anywhere {
                    true => pending.all(),
                    false => pending.wait(&self.decoded[pc]),
                };
                pending = pending.after(&words[pc], &self.decoded[pc]);
                for next in self.next(pc).filter(|&next| starts[next]) {
                    changed |= before[next].join(&pending);
                }
            }
        }
    }

    /// Sets the stalls, basic block by basic block.
    fn set_stalls(&self, words: &mut [ControlWord]) {
        let starts = self.block_starts();
        let mut timer = BlockTimer::new();
        for pc in 0..self.code.len() {
            timer.issue(&words[pc], &self.decoded[pc], self.stall_latency(pc));
            // At the end of a block every result must be ready, because the next block may be entered from elsewhere too.
            let need = match starts[pc + 1] {
                true if self.is_end(pc) => 0,
                true => timer.all_ready(),
                false => timer.first_issue(&words[pc + 1], &self.decoded[pc + 1], self.stall_latency(pc + 1)),
            };
            let stall = need.saturating_sub(timer.now).max(1);
            words[pc].stall = stall as u8;
            words[pc].yields = stall >= MIN_YIELD_STALL;
            timer.now += stall;
            // All results are ready here, so the next block starts without hazards.
            if starts[pc + 1] {
                timer = BlockTimer::new();
            }
        }
    }

    /// Marks the first instruction of each basic block, and the end of the code.
    fn block_starts(&self) -> Vec<bool> {
        let mut starts = vec![false; self.code.len() + 1];
        for (pc, inst) in self.code.iter().enumerate() {
            starts[pc + 1] |= matches!(inst.op, Opcode::Bra | Opcode::Brx) || self.is_end(pc);
            if inst.op == Opcode::Bra {
                starts[inst.target as usize] = true;
            }
        }
        starts[self.code.len()] = true;
        starts
    }

    /// True if no lane continues after the instruction.
    fn is_end(&self, pc: usize) -> bool {
        let inst = &self.code[pc];
        inst.guard == Guard::ALWAYS && matches!(inst.op, Opcode::Exit | Opcode::Trap)
    }

    /// Sets the reuse flags: two neighbours read one register in the same slot, and the first does not overwrite it.
    fn set_reuse(&self, words: &mut [ControlWord]) {
        for pc in 1..self.code.len() {
            let (first, second) = (&self.code[pc - 1], &self.code[pc]);
            let written = RegPredSet::written(&self.decoded[pc - 1]);
            for slot in 0..REUSE_SLOTS {
                let kept = slot_register(first, slot).filter(|&reg| slot_register(second, slot) == Some(reg));
                let is_kept = kept.is_some_and(|reg| !written.iter().any(|item| item == usize::from(reg.0)));
                words[pc - 1].reuse |= u8::from(is_kept) << slot;
            }
        }
    }
}

/// Returns the register in a hardware source slot.
fn slot_register(inst: &Inst, slot: usize) -> Option<Reg> {
    let info = inst.op.info();
    let is_addition = matches!(inst.op, Opcode::Fadd | Opcode::Hadd2);
    let source = match slot {
        // Additions have their second source in the third slot.
        1 if is_addition => return None,
        2 if is_addition => 1,
        slot => slot,
    };
    // Only these pipes have reuse caches here. A register group is not kept.
    let has_cache = matches!(info.pipe, Pipe::Int | Pipe::Fp32 | Pipe::Half) && source < info.src.len();
    match inst.src[source].source {
        Source::Reg(reg) if has_cache && !reg.is_zero() && info.src[source].of(&inst.mods) == 1 => Some(reg),
        _ => None,
    }
}
