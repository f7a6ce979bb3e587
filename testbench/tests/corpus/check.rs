//! Runs a case on one compiler's build. Reference and machine must both pass the checks, with the same bits.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warpwave::bench::{Bench, Options};
use warpwave::lockstep;
use warpwave::reference::{Checks, RaceSpace, ReferenceError};
use warpwave::scenario::{Arg, Buffer, Expect, Image, Launch, Layout, Scenario, Tiles};
use warpwave_components::config::GpuConfig;
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset;
use warpwave_components::proto::launch::TrapKind;
use warpwave_ptx::{OPTIONAL_PASSES, PassSet, VALUE_PASS};

use crate::case::{Case, Check, Data, Ending, Param};
use crate::texts::Text;

/// Limit of warp instructions, and of cycles. Every case needs fewer.
const LIMIT: u64 = 2_000_000;

/// A case, laid out as a scenario.
struct Layouted<'a> {
    scenario: Scenario,
    checks: Vec<&'a Check>,
}

/// Runs a case on an entry of a text.
///
/// # Errors
/// The first failed check.
pub fn run(case: &Case, text: &Text, entry: &str) -> Result<(), String> {
    let run = || run_unguarded(case, text, entry);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("the simulator panicked".into()))
}

fn run_unguarded(case: &Case, text: &Text, entry: &str) -> Result<(), String> {
    let Layouted { scenario, checks } = layout(case, text, entry);
    let mut bench = Bench::new(&scenario, machine()).map_err(|error| error.to_string())?;
    let reference = lockstep::reference(&bench, LIMIT);
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let run = bench.run(options, &mut |_| true);
    if case.ending == Ending::Trapped {
        let without_time = matches!(&reference, Err((_, ReferenceError::Trap(trap))) if trap.kind == TrapKind::Trapped);
        let timed = matches!(&run.stopped, Some((_, LaunchError::Trap(trap))) if trap.kind == TrapKind::Trapped);
        return match without_time && timed {
            true => Ok(()),
            false => Err(format!("no trap: {:?}, {:?}", reference.err(), run.stopped)),
        };
    }
    let reference = reference.map_err(|(_, error)| format!("reference: {error}"))?;
    if let Some((_, error)) = &run.stopped {
        return Err(format!("machine: {error}"));
    }
    quiet(&scenario, entry)?;
    for ((buffer, address), check) in bench.data().zip(checks) {
        let timed = lockstep::bytes_of(buffer, address, bench.gpu().storage());
        let without_time = reference.get(address, timed.len()).expect("the buffer is allocated");
        accept(buffer, check, without_time).map_err(|fault| format!("reference: {fault}"))?;
        accept(buffer, check, &timed).map_err(|fault| format!("machine: {fault}"))?;
        if matches!(check, Check::Near { .. }) && timed != without_time {
            return Err(format!("{}: machine and reference differ", buffer.name));
        }
    }
    let printed = [&bench.printed_in(&reference), &run.launches[0].printed];
    match printed.iter().find(|text| ***text != case.printed) {
        Some(text) => Err(format!("printed {text:?}, not {:?}", case.printed)),
        None => Ok(()),
    }
}

/// Runs a case on the reference, with all passes of the compiler, without each of the optional ones, and with 24 registers.
///
/// # Errors
/// The first of these builds that changes a bit of a result.
pub fn without_passes(case: &Case, text: &Text, entry: &str) -> Result<(), String> {
    let results = |skipped_passes: PassSet, max_registers: Option<u8>| {
        let Layouted { mut scenario, checks } = layout(case, text, entry);
        scenario.skipped_passes = skipped_passes;
        scenario.max_registers = max_registers;
        let bench = Bench::new(&scenario, machine()).map_err(|error| error.to_string())?;
        let memory = lockstep::reference(&bench, LIMIT).map_err(|(_, error)| error.to_string())?;
        let exact = bench.data().zip(checks);
        let exact = exact.filter(|(_, check)| matches!(check, Check::Near { .. }));
        let bytes = exact.map(|((buffer, address), _)| memory.get(address, buffer.init.len()).map(<[u8]>::to_vec));
        Ok::<_, String>((bytes.collect::<Vec<_>>(), bench.printed_in(&memory)))
    };
    let want = results(PassSet::EMPTY, None)?;
    for pass in OPTIONAL_PASSES.into_iter().filter(|pass| *pass != VALUE_PASS) {
        let skipped = PassSet::EMPTY.with(pass).expect("an optional pass");
        // Constants move only if registers run out.
        let max_registers = (pass == "remat").then_some(24);
        let found = results(skipped, max_registers).map_err(|error| format!("without {pass}: {error}"))?;
        if found != want {
            return Err(format!("other values without {pass}"));
        }
    }
    let spilled = results(PassSet::EMPTY, Some(24)).map_err(|error| format!("with 24 registers: {error}"))?;
    match spilled == want {
        true => Ok(()),
        false => Err("other values with 24 registers".into()),
    }
}

fn machine() -> GpuConfig {
    let name = std::env::var("CORPUS_GPU");
    let preset = preset::load(name.as_deref().unwrap_or("tiny"), &[]);
    preset.unwrap_or_else(|error| panic!("{error}")).config
}

fn accept(buffer: &Buffer, check: &Check, found: &[u8]) -> Result<(), String> {
    match check {
        Check::Near { want, rtol, atol } => {
            let want = Expect {
                bytes: want.clone(),
                rtol: *rtol,
                atol: *atol,
            };
            let difference = lockstep::compare(&buffer.name, buffer.layout.dtype, found, &want);
            difference.map_or(Ok(()), |difference| Err(difference.to_string()))
        }
        Check::Free => Ok(()),
        Check::Holds(holds) => holds(found).map_err(|fault| format!("{}: {fault}", buffer.name)),
    }
}

fn layout<'a>(case: &'a Case, text: &Text, entry: &str) -> Layouted<'a> {
    let (mut buffers, mut checks) = (Vec::new(), Vec::new());
    let args = case
        .args
        .iter()
        .map(|param| place(param, &mut buffers, &mut checks))
        .collect();
    let globals = case.globals.iter().map(|(name, data)| buffer(name, data)).collect();
    let scenario = Scenario {
        name: text.stem.clone(),
        ptx_path: text.path(),
        ptx: text.ptx.clone(),
        buffers,
        globals,
        launches: vec![Launch {
            entry: Some(entry.to_owned()),
            grid: case.grid,
            block: case.block,
            dynamic_shared_bytes: case.dynamic_shared_bytes,
            cluster: (case.cluster != [1; 3]).then_some(case.cluster),
            is_cooperative: case.is_cooperative,
            args,
            ..Launch::default()
        }],
        ..Scenario::default()
    };
    Layouted { scenario, checks }
}

/// Kernels with a race in global memory, each with the reason.
const RACES: [(&str, &str); 2] = [
    (
        "cas_float_max",
        "the loop begins with a plain load of the word that other threads change; the compare-and-swap checks the value",
    ),
    (
        "atomic_zoo",
        "every thread writes its sums of old values to the same two words, and the last write stays",
    ),
];

/// Checks that the race detector finds no read of unwritten bytes, and no race but those listed.
fn quiet(scenario: &Scenario, entry: &str) -> Result<(), String> {
    let checks = Checks {
        races: true,
        uninit: true,
        ..Checks::default()
    };
    let checked = lockstep::check_memory(scenario, &machine(), checks, LIMIT).map_err(|error| error.to_string())?;
    let races: Vec<_> = checked.iter().flat_map(|launch| &launch.findings.races).collect();
    let is_listed = RACES.iter().any(|(name, _)| *name == entry);
    let is_expected = races.iter().all(|race| is_listed && race.space() == RaceSpace::Global);
    match checked
        .iter()
        .find(|launch| !is_expected || !launch.findings.unwritten.is_empty())
    {
        Some(launch) => Err(format!("the race detector finds {:?}", launch.findings)),
        // A thread alone has no race.
        None if is_listed && races.is_empty() && scenario.launches.iter().any(|launch| launch.block != [1; 3]) => {
            Err("listed as a race, and has none".into())
        }
        None => Ok(()),
    }
}

/// Converts an argument. Appends its buffers, which are named in order of appearance.
fn place<'a>(param: &'a Param, buffers: &mut Vec<Buffer>, checks: &mut Vec<&'a Check>) -> Arg {
    match param {
        Param::Scalar(dtype, bytes) => Arg::Scalar(*dtype, bytes.clone()),
        Param::Struct(fields) => Arg::Struct(fields.iter().map(|field| place(field, buffers, checks)).collect()),
        Param::Buffer(data, check) => Arg::Buffer(place_buffer(data, check, buffers, checks)),
        Param::Image(texture, data, check) => Arg::Image(Image {
            buffer: place_buffer(data, check, buffers, checks),
            texture: *texture,
        }),
        Param::Tiles(data, check, shape, tile) => Arg::TensorMap(Tiles {
            buffer: place_buffer(data, check, buffers, checks),
            shape: shape.to_vec(),
            tile: tile.to_vec(),
            swizzle: 0,
            element: data.dtype.element(),
            steps: Vec::new(),
            nan_fill: false,
            im2col: None,
        }),
    }
}

/// Appends a buffer and returns its index.
fn place_buffer<'a>(data: &Data, check: &'a Check, buffers: &mut Vec<Buffer>, checks: &mut Vec<&'a Check>) -> usize {
    buffers.push(buffer(&format!("buffer {}", buffers.len()), data));
    checks.push(check);
    buffers.len() - 1
}

fn buffer(name: &str, data: &Data) -> Buffer {
    Buffer {
        name: name.to_owned(),
        layout: Layout {
            dtype: data.dtype,
            shape: vec![(data.bytes.len() / data.dtype.bytes()) as u64],
        },
        init: data.bytes.clone(),
        expect: None,
    }
}
