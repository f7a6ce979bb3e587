//! Random programs as plans for a real GPU, which judges the machine's values.

use std::fs;
use std::io;
use std::path::Path;

use super::{LIMIT, RandomProgram};
use crate::bench::{Bench, Options};
use crate::lockstep;
use crate::plan::{self, Plan};
use crate::scenario::Arg;

/// Text of a program, and text with one result on all GPUs: the vendor's assembler contracts sums of products that have no rounding.
/// Approximations differ in their last bits.
const EXACT: [(&str, &str); 11] = [
    ("\tadd.f", "\tadd.rn.f"),
    ("\tsub.f", "\tsub.rn.f"),
    ("\tmul.f", "\tmul.rn.f"),
    (" add.f", " add.rn.f"),
    (" sub.f", " sub.rn.f"),
    (" mul.f", " mul.rn.f"),
    ("add.ftz.sat.f32", "add.rn.ftz.sat.f32"),
    ("ex2.approx.f32", "rcp.rn.f32"),
    ("rsqrt.approx.f32", "sqrt.rn.f32"),
    (".version 8.0", ".version 8.5"),
    (".target sm_90", ".target sm_90a"),
];

/// Runs a program on a small H100, and writes it with its results as a plan: `FOLDER/NAME`. `measure.py` compares them with those of
/// a GPU. Returns false for a program that fetches textures: a plan has none.
///
/// # Errors
/// If a file cannot be written.
///
/// # Panics
/// If the program does not compile or does not end.
pub fn write_plan(program: &RandomProgram, folder: &Path, name: &str) -> io::Result<bool> {
    let mut program = program.clone();
    program.machine = "h100-sxm5";
    let mut scenario = program.scenario();
    if scenario.ptx.contains("tex.") {
        return Ok(false);
    }
    name.clone_into(&mut scenario.name);
    for (from, to) in EXACT {
        scenario.ptx = scenario.ptx.replace(from, to);
    }
    for launch in &mut scenario.launches {
        // The handle of the image, which no statement uses.
        launch.args.pop();
        launch.args.push(Arg::Bytes(vec![0; 8]));
    }
    let mut bench = Bench::new(&scenario, program.config()).unwrap_or_else(|error| panic!("{error:?}"));
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let run = bench.run(options, &mut |_| true);
    assert!(
        run.stopped.is_none(),
        "{:?} of this program:\n{}",
        run.stopped,
        scenario.ptx
    );
    let folder = folder.join(name);
    plan::write(&folder, &[Plan::of(&scenario).expect("no textures")])?;
    for (buffer, address) in bench.data() {
        let bytes = lockstep::bytes_of(buffer, address, bench.gpu().storage());
        fs::write(folder.join(format!("{name}.{}.model", buffer.name)), bytes)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use arbitrary::{Arbitrary, Unstructured};

    use super::*;

    #[test]
    fn plan_has_its_program_and_the_results_of_each_buffer() {
        // No bytes are left for statements: the program has none, so no texture either.
        let program = RandomProgram::arbitrary(&mut Unstructured::new(&[])).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(write_plan(&program, folder.path(), "p0").unwrap());
        let text = fs::read_to_string(folder.path().join("p0/plan.json")).unwrap();
        assert!(text.contains("\"name\": \"p0\""), "{text}");
        // Four words for each of eight operations, and two of tickets: 136 bytes.
        for (buffer, bytes) in [("input", 1024), ("counters", 136)] {
            let results = fs::read(folder.path().join(format!("p0/p0.{buffer}.model"))).unwrap();
            assert_eq!(results.len(), bytes, "{buffer}");
        }
    }
}
