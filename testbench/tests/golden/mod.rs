//! The golden table: simulated cycles and warp instructions of every built-in scenario, a file per preset.
//!
//! A change for the simulator's speed must not move any of them. A change to the model may. It writes the table again with
//! `WARPWAVE_WRITE_GOLDEN=1 cargo test --package warpwave --test scenarios`. Its commit says why the figures moved.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The cost of a scenario: cycles and warp instructions of all its launches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    pub cycles: u64,
    pub instructions: u64,
}

/// One line per scenario of a preset with other figures than the table. Writes the table if the environment variable is set.
pub fn differences(preset: &str, taken: &BTreeMap<String, Taken>) -> Vec<String> {
    let path = table(preset);
    if std::env::var_os("WARPWAVE_WRITE_GOLDEN").is_some() {
        fs::write(&path, written(taken)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let golden = read(&path);
    let differs = |name: &&String| golden.get(*name) != taken.get(*name);
    let names: Vec<&String> = golden
        .keys()
        .chain(taken.keys().filter(|name| !golden.contains_key(*name)))
        .collect();
    let line = |name: &String| {
        format!(
            "{name} on {preset}: {:?}, golden {:?}",
            taken.get(name),
            golden.get(name)
        )
    };
    names.into_iter().filter(differs).map(line).collect()
}

fn table(preset: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    folder.join(format!("{preset}.csv"))
}

fn written(taken: &BTreeMap<String, Taken>) -> String {
    let mut text = String::from("scenario,cycles,warp_instructions\n");
    for (name, Taken { cycles, instructions }) in taken {
        writeln!(text, "{name},{cycles},{instructions}").expect("a string takes all");
    }
    text
}

fn read(path: &Path) -> BTreeMap<String, Taken> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row = |line: &str| {
        let [name, cycles, instructions] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{}: `{line}` is no row", path.display())
        };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{}: `{text}`", path.display()));
        let (cycles, instructions) = (number(cycles), number(instructions));
        (name.to_owned(), Taken { cycles, instructions })
    };
    text.lines().skip(1).map(row).collect()
}
