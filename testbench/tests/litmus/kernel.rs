//! Generates the kernels of litmus tests, and runs them on every preset.

use warpwave::bench::{Bench, Options, Run};
use warpwave::lockstep::bytes_of;
use warpwave::scenario::dtype::Dtype;
use warpwave::scenario::{Arg, Buffer, Launch, Layout, Scenario};
use warpwave_components::config::GpuConfig;
use warpwave_components::preset;

/// Distance of two variables in bytes: each has its own L1 line.
const LINE: usize = 128;
/// Bytes of the variables of a round: X and Y.
const ROUND: usize = 2 * LINE;
/// Cycle limit. Every run here needs fewer.
const LIMIT: u64 = 20_000_000;

/// One litmus test: what each thread does with the variables `[X]` and `[Y]`, both 0 at first. Threads leave what they load in `%r0` and
/// `%r1`, may use `%t` and `%p`, and have labels of their own.
pub struct Round {
    pub name: String,
    pub threads: Vec<String>,
    pub forbids: fn(&Outcome) -> bool,
}

/// The outcome of a round.
#[derive(Debug)]
pub struct Outcome {
    /// `%r0` and `%r1` of each thread.
    pub loads: Vec<[u32; 2]>,
    /// X and Y at the end.
    pub finally: [u32; 2],
}

/// Runs the rounds on every preset with three sets of delays. Each thread is in a block of its own.
pub fn run(rounds: &[Round]) {
    run_on(&preset::names(), rounds, "%ctaid.x", false);
}

/// Runs the rounds in the same way, on the presets with an L1. `toy` has none: no line is stale.
pub fn run_with_l1(rounds: &[Round]) {
    let mut gpus = preset::names();
    gpus.retain(|&gpu| gpu != "toy");
    run_on(&gpus, rounds, "%ctaid.x", false);
}

/// Runs the rounds in the same way. Each thread is in its own warp of one block.
pub fn run_in_a_block(rounds: &[Round]) {
    run_on(&preset::names(), rounds, "%tid.x", true);
}

fn run_on(gpus: &[&str], rounds: &[Round], thread: &str, in_a_block: bool) {
    for gpu in gpus {
        let config = preset::load(gpu, &[]).unwrap_or_else(|error| panic!("{error}")).config;
        for seed in 1..=3 {
            let outcomes = outcomes(rounds, thread, in_a_block, config.clone(), seed);
            for (round, outcome) in rounds.iter().zip(&outcomes) {
                let fails = (round.forbids)(outcome);
                assert!(!fails, "on {gpu}, delays {seed}: {}\n{outcome:?}", round.name);
            }
        }
    }
}

/// A kernel of all rounds, one after the other.
fn text(rounds: &[Round], thread: &str, in_a_block: bool) -> String {
    let n_threads = rounds[0].threads.len();
    let number = if in_a_block { "shr.u32 %i, %i, 5;\n" } else { "" };
    // The delay of a round is a loop of short turns, so loops stay rolled.
    let mut text = format!(
        ".version 7.8\n.target sm_70\n.address_size 64\n.pragma \"nounroll\";\n.visible .entry k(.param .u64 vars, .param .u64 delays, .param .u64 out, .param .u64 count) {{\n\
         .reg .pred %p, %q;\n.reg .b32 %r0, %r1, %t, %i, %n, %w, %lane;\n.reg .b64 %v, %d, %o, %c, %x, %y;\n\
         mov.u32 %lane, %laneid;\nsetp.ne.u32 %q, %lane, 0;\n@%q exit;\nmov.u32 %i, {thread};\n{number}\
         ld.param.u64 %v, [vars];\nld.param.u64 %d, [delays];\nld.param.u64 %o, [out];\nld.param.u64 %c, [count];\n\
         mad.wide.u32 %d, %i, 4, %d;\nmad.wide.u32 %o, %i, 16, %o;\n"
    );
    for (n, round) in rounds.iter().enumerate() {
        // The first loads bring both lines into the L1. Relaxed accesses alone let the threads meet: they invalidate nothing.
        text += &format!(
            "add.u64 %x, %v, {};\nadd.u64 %y, %x, {LINE};\nld.global.u32 %w, [%x];\nld.global.u32 %n, [%y];\nadd.u32 %w, %w, %n;\n\
             mov.u32 %r0, 0;\nmov.u32 %r1, 0;\n\
             setp.ne.u32 %q, %w, 0;\n@%q trap;\nred.relaxed.gpu.global.add.u32 [%c], 1;\n\
             M{n}:\nld.relaxed.gpu.global.u32 %n, [%c];\nsetp.lt.u32 %q, %n, {};\n@%q bra M{n};\n\
             ld.global.u32 %n, [%d+{}];\nD{n}:\nsub.u32 %n, %n, 1;\nsetp.ne.u32 %q, %n, 0;\n@%q bra D{n};\n",
            n * ROUND,
            (n + 1) * n_threads,
            4 * n * n_threads
        );
        for (thread, body) in round.threads.iter().enumerate() {
            let body = body.replace("[X]", "[%x]").replace("[Y]", "[%y]");
            text += &format!("setp.ne.u32 %q, %i, {thread};\n@%q bra B{n}T{thread};\n{body}B{n}T{thread}:\n");
        }
        let at = 16 * n * n_threads;
        text += &format!("st.global.v2.u32 [%o+{at}], {{%r0, %r1}};\n");
    }
    text + "ret;\n}\n"
}

/// Runs the rounds on one machine.
fn outcomes(rounds: &[Round], thread: &str, in_a_block: bool, config: GpuConfig, seed: u32) -> Vec<Outcome> {
    let n_threads = rounds[0].threads.len();
    let mut random = seed;
    let delays = (0..rounds.len() * n_threads).flat_map(|_| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (1 + (random >> 16) % 40).to_le_bytes()
    });
    let buffers = [
        vec![0; rounds.len() * ROUND],
        delays.collect(),
        vec![0; rounds.len() * n_threads * 16],
        vec![0; LINE],
    ];
    let (grid, block) = match in_a_block {
        true => (1, 32 * n_threads as u32),
        false => (n_threads as u32, 1),
    };
    let scenario = scenario(text(rounds, thread, in_a_block), [grid, block], buffers.to_vec());
    let (_, memory) = finished(&scenario, config);
    let word = |buffer: usize, at: usize| {
        let bytes = &memory[buffer][at..at + 4];
        u32::from_le_bytes(bytes.try_into().expect("four bytes"))
    };
    let outcome = |n: usize| Outcome {
        loads: (0..n_threads)
            .map(|thread| [0, 4].map(|at| word(2, 16 * (n * n_threads + thread) + at)))
            .collect(),
        finally: [word(0, n * ROUND), word(0, n * ROUND + LINE)],
    };
    (0..rounds.len()).map(outcome).collect()
}

/// A scenario of one launch, whose arguments are the buffers.
pub fn scenario(ptx: String, shape: [u32; 2], buffers: Vec<Vec<u8>>) -> Scenario {
    launch(ptx, shape, None, buffers)
}

/// A scenario of one launch, with the number of CTAs per cluster.
pub fn launch(ptx: String, [grid, block]: [u32; 2], cluster: Option<u32>, buffers: Vec<Vec<u8>>) -> Scenario {
    let args = (0..buffers.len()).map(Arg::Buffer).collect();
    let buffer = |(n, init): (usize, Vec<u8>)| Buffer {
        name: format!("b{n}"),
        layout: Layout {
            dtype: Dtype::U32,
            shape: vec![init.len() as u64 / 4],
        },
        init,
        expect: None,
    };
    Scenario {
        name: "litmus".to_owned(),
        ptx_path: "litmus.ptx".to_owned(),
        ptx,
        buffers: buffers.into_iter().enumerate().map(buffer).collect(),
        globals: Vec::new(),
        launches: vec![Launch {
            entry: None,
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            dynamic_shared_bytes: 0,
            cluster: cluster.map(|ctas| [ctas, 1, 1]),
            args,
            ..Launch::default()
        }],
        ..Scenario::default()
    }
}

/// Runs a scenario to its end. Returns the run and the bytes of each buffer.
pub fn finished(scenario: &Scenario, config: GpuConfig) -> (Run, Vec<Vec<u8>>) {
    let mut bench = Bench::new(scenario, config).unwrap_or_else(|error| panic!("{error}: {error:?}"));
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let run = bench.run(options, &mut |_| true);
    assert!(run.stopped.is_none(), "{:?}", run.stopped);
    let storage = bench.gpu().storage();
    let memory = bench.data().map(|(buffer, address)| bytes_of(buffer, address, storage));
    let memory = memory.collect();
    (run, memory)
}
