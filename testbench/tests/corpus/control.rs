//! Checks control words: follows each result and each read along every path of control flow, until stall cycles or counters make it
//! safe. An earlier use of the register is a fault.

use std::collections::HashMap;
use std::sync::Arc;

use warpwave_components::config::GpuConfig;
use warpwave_components::preset;
use warpwave_components::sm::timing;
use warpwave_isa::control::{ControlWord, Latency};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Decoded, Program};
use warpwave_isa::reg::Guard;
use warpwave_isa::reg::RegSet;

use crate::texts;

/// A program with its control words.
struct Listing<'p> {
    program: &'p Program,
    words: Vec<ControlWord>,
    latencies: Vec<Latency>,
    guard_latency: u32,
}

/// The state of a pending result or read at an instruction of the walk.
enum Step {
    /// It is complete from here on.
    Safe,
    /// It is still pending: the walk continues.
    Pending,
    /// The instruction uses it too early.
    Fault,
}

impl<'p> Listing<'p> {
    fn of(program: &'p Program, config: &GpuConfig) -> Self {
        let latency = |inst| timing::latency(inst, &config.sm);
        Listing {
            program,
            words: timing::controls(program, &config.sm),
            latencies: program.code().iter().map(latency).collect(),
            guard_latency: config.sm.pipes.guard_latency,
        }
    }

    fn decoded(&self, pc: usize) -> &Decoded {
        &self.program.decoded()[pc]
    }

    fn next(&self, pc: usize) -> Vec<usize> {
        let inst = &self.program.code()[pc];
        let always = inst.guard == Guard::ALWAYS;
        match inst.op {
            Opcode::Exit | Opcode::Trap if always => Vec::new(),
            Opcode::Bra if always => vec![inst.target as usize],
            Opcode::Bra => vec![pc + 1, inst.target as usize],
            _ => vec![pc + 1],
        }
    }

    /// The first instruction that faults on a walk from `from`. `step` gets each instruction, with the cycles since `from`.
    fn walk(&self, from: usize, step: impl Fn(usize, u32) -> Step) -> Option<usize> {
        let mut soonest: HashMap<usize, u32> = HashMap::new();
        let mut open: Vec<(usize, u32)> = vec![(from, 0)];
        while let Some((pc, cycles)) = open.pop() {
            let then = cycles + u32::from(self.words[pc].stall);
            for next in self.next(pc) {
                if soonest.get(&next).is_some_and(|&before| before <= then) {
                    continue;
                }
                soonest.insert(next, then);
                match step(next, then) {
                    Step::Safe => {}
                    Step::Pending => open.push((next, then)),
                    Step::Fault => return Some(next),
                }
            }
        }
        None
    }

    /// The state after an instruction that waits for a counter. A fault if the counter may not be visible yet.
    fn waits(&self, pc: usize, barrier: Option<u8>, cycles: u32) -> Option<Step> {
        let waits = barrier.is_some_and(|barrier| self.words[pc].wait >> barrier & 1 != 0);
        waits.then_some(if cycles < 2 { Step::Fault } else { Step::Safe })
    }

    /// The instruction that uses the result of `producer` too early, if any.
    fn early_use(&self, producer: usize) -> Option<usize> {
        let result = self.decoded(producer);
        if result.defs.is_empty() && result.pred_defs == 0 {
            return None;
        }
        let touches =
            |registers: &RegSet, preds: u8| registers.intersects(&result.defs) || preds & result.pred_defs != 0;
        let write = self.words[producer].write;
        self.walk(producer, |pc, cycles| {
            let user = self.decoded(pc);
            let reads = touches(&user.uses, user.pred_uses);
            let writes = touches(&user.defs, user.pred_defs);
            let overwrites_guard = user.pred_defs & result.pred_defs != 0;
            let is_guarded = user.pred_guard & result.pred_defs != 0;
            // A guard is read earlier in the pipeline than data.
            let all_ready = |latency: u32| match result.pred_defs {
                0 => latency,
                _ => latency.max(self.guard_latency),
            };
            match (self.latencies[producer], write) {
                (Latency::Fixed(latency), None) if cycles >= all_ready(latency) => Step::Safe,
                (Latency::Fixed(latency), None) if is_guarded || (reads && cycles < latency) => Step::Fault,
                (Latency::Fixed(latency), None) if writes && (cycles < latency || overwrites_guard) => {
                    match self.latencies[pc] {
                        Latency::Fixed(own) if cycles + own > latency => Step::Pending,
                        _ => Step::Fault,
                    }
                }
                (Latency::Fixed(_), None) => Step::Pending,
                _ => match self.waits(pc, write, cycles) {
                    Some(step) => step,
                    None if reads || writes => Step::Fault,
                    None => Step::Pending,
                },
            }
        })
    }

    /// The instruction that overwrites a source of `reader` too early, if any.
    fn early_write(&self, reader: usize) -> Option<usize> {
        let sources = self.decoded(reader).uses;
        if matches!(self.latencies[reader], Latency::Fixed(_)) || sources.is_empty() {
            return None;
        }
        let ControlWord { read, write, .. } = self.words[reader];
        self.walk(reader, |pc, cycles| {
            let waits = self.waits(pc, read, cycles).or_else(|| self.waits(pc, write, cycles));
            match waits {
                Some(step) => step,
                None if self.decoded(pc).defs.intersects(&sources) => Step::Fault,
                None => Step::Pending,
            }
        })
    }

    /// All faults, as texts.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (pc, word) in self.words.iter().enumerate() {
            let is_well_formed = (1..=15).contains(&word.stall) && word.yields == (word.stall >= 12);
            if !is_well_formed {
                faults.push(format!("{pc}: {word}"));
            }
            let early = [("result", self.early_use(pc)), ("source", self.early_write(pc))];
            faults.extend(early.into_iter().filter_map(|(what, by)| {
                let code = self.program.code();
                by.map(|by| format!("{pc}: {}: its {what} is touched by {by}: {}", code[pc], code[by]))
            }));
        }
        faults
    }
}

/// All programs of the corpus, with their names.
fn programs() -> Vec<(String, Arc<Program>)> {
    let texts = texts::all();
    let of_text = |text: &texts::Text| -> Vec<(String, Arc<Program>)> {
        let module = warpwave_ptx::compile(&text.ptx).expect("checked by another test");
        let entries = module.entries.iter();
        let program = |entry: &warpwave_ptx::Entry| {
            Some((format!("{}/{}", text.path(), entry.name), entry.program().clone().ok()?))
        };
        entries.filter_map(program).collect()
    };
    texts.iter().flat_map(of_text).collect()
}

fn config(gpu: &str) -> GpuConfig {
    preset::load(gpu, &[]).expect("built in").config
}

#[test]
fn control_words_of_every_kernel_prevent_register_hazards() {
    let programs = programs();
    assert!(programs.len() >= 400, "{} programs", programs.len());
    for config in ["v100-sxm2", "h100-sxm5"].map(config) {
        for (place, program) in &programs {
            let faults = Listing::of(program, &config).faults();
            assert!(faults.is_empty(), "{place} on {}: {}", config.name, faults.join("\n"));
        }
    }
}

#[test]
fn shorter_stall_or_missing_counter_is_a_fault() {
    let config = config("h100-sxm5");
    let text = texts::all()
        .into_iter()
        .find(|text| text.path() == "triton3.9.0-sm_80/softmax");
    let module = warpwave_ptx::compile(&text.expect("stored").ptx).expect("PTX");
    let program = module.entries[0].program().as_ref().expect("runs");
    let mut listing = Listing::of(program, &config);
    assert_eq!(listing.faults(), Vec::<String>::new());
    let targets: Vec<u32> = program
        .code()
        .iter()
        .filter(|inst| inst.op == Opcode::Bra)
        .map(|inst| inst.target)
        .collect();
    let (mut stalls, mut waits) = (0, 0);
    for pc in 0..program.code().len() {
        let word = listing.words[pc];
        // At the end of a basic block every result is complete, with or without a reader.
        let ends = program.code()[pc].op == Opcode::Bra || targets.contains(&(pc as u32 + 1));
        if word.stall > 1 && !ends {
            listing.words[pc].stall = word.stall - 1;
            assert_ne!(listing.faults(), Vec::<String>::new(), "{pc}: {word}");
            stalls += 1;
        }
        listing.words[pc] = word;
        for barrier in (0..6).filter(|barrier| word.wait >> barrier & 1 != 0) {
            listing.words[pc].wait = word.wait & !(1 << barrier);
            // A result that has been written tells that its sources have been read.
            let is_read_by = |reader: &ControlWord| {
                reader.read == Some(barrier) && reader.write.is_some_and(|write| word.wait >> write & 1 != 0)
            };
            let is_covered = listing.words[..pc].iter().any(is_read_by);
            assert!(!listing.faults().is_empty() || is_covered, "{pc}: {word}");
            waits += u32::from(!is_covered);
        }
        listing.words[pc] = word;
    }
    assert!(stalls > 20 && waits > 20, "{stalls} stalls, {waits} waits");
}
