//! Oracles for fuzzing: each takes any input and panics if a guarantee is broken.
//!
//! An input derives [`Arbitrary`], so libFuzzer can decode it from any bytes and print it. The tests of `fuzz` replay
//! the corpus and every input that once failed.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use warpwave_components::gpu::Gpu;
use warpwave_hw::stats::{Latency, Report};
use warpwave_isa::program::Program;
use warpwave_ptx::Diagnostic;

mod draw;

mod memory_traffic;

mod ptx_text;

mod random_programs;

mod ptx_lowering;

pub use memory_traffic::{MemoryTraffic, memory_traffic};
pub use ptx_lowering::{PtxLowering, ptx_lowering};
pub use ptx_text::{PtxText, ptx_text};
pub use random_programs::{RandomProgram, random_programs, write_plan};

/// Decodes an input from `bytes` as libFuzzer does, and passes it to the oracle. Bytes that decode to no input give `None`.
pub fn replay<'a, T: Arbitrary<'a>, R>(bytes: &'a [u8], oracle: impl Fn(T) -> R) -> Option<R> {
    let input = T::arbitrary_take_rest(Unstructured::new(bytes));
    input.ok().map(oracle)
}

/// Names and counts of what a run reached. A fuzzer keeps an input with a new name, or with a count of a new magnitude.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reached(pub Vec<(String, u64)>);

impl Reached {
    fn note(&mut self, name: impl Into<String>, count: u64) {
        self.0.push((name.into(), count));
    }

    /// Counters and latencies of each kind of component.
    fn note_counters(&mut self, gpu: &Gpu) {
        for component in gpu.components() {
            // `gpu.l2_slice[3]` is of the kind `gpu.l2_slice`.
            let path = component.path().as_str();
            let kind = path.split(['[', ']']).step_by(2).collect();
            component.stats(&mut KindCounters { kind, reached: self });
        }
    }

    /// Mnemonics of a program, each with the number of its instructions.
    fn note_code(&mut self, program: &Program) {
        let mut counts = BTreeMap::new();
        for inst in program.code() {
            let text = inst.to_string();
            // A guard comes before the mnemonic.
            let mnemonic = text.split_whitespace().find(|word| !word.starts_with('@'));
            *counts.entry(mnemonic.unwrap_or_default().to_owned()).or_insert(0) += 1;
        }
        for (mnemonic, count) in counts {
            self.note(mnemonic, count);
        }
        self.note("registers", program.requirements().registers.into());
    }

    /// Kinds of messages: their words without numbers and quoted names.
    fn note_findings(&mut self, findings: &[Diagnostic]) {
        for finding in findings {
            let outside_quotes: String = finding.message.split('`').step_by(2).collect();
            self.note(outside_quotes.replace(|c: char| c.is_ascii_digit(), ""), 1);
        }
    }
}

/// Notes the statistics of one component.
struct KindCounters<'a> {
    kind: String,
    reached: &'a mut Reached,
}

impl Report for KindCounters<'_> {
    fn count(&mut self, name: &'static str, value: u64) {
        self.reached.note(format!("{} {name}", self.kind), value);
    }

    fn latency(&mut self, name: &'static str, value: &Latency) {
        self.count(name, value.histogram().max());
    }
}
