//! Target: scenarios and presets from any TOML text.
//!
//! Oracle: a text loads, or is refused with an error that names its file, twice the same. A buffer has the bytes of its
//! shape. A preset that loads passes its own check. The text of each number loads to the same number.

use std::fs;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use tempfile::TempDir;
use warpwave::scenario::{Draft, Scenario};
use warpwave_components::config::GpuConfig;
use warpwave_components::preset;

use crate::draw::{one_of, up_to, within};
use crate::features;
use crate::parts::TINY;

/// A text: one of the bases with edits, or any text.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    kind: Kind,
    #[arbitrary(with = up_to(5))]
    edits: Vec<Edit>,
}

#[derive(Arbitrary, Clone, Debug)]
enum Kind {
    Scenario(#[arbitrary(with = within(0..=SCENARIOS.len() - 1))] usize),
    Preset(#[arbitrary(with = within(0..=PRESETS.len() - 1))] usize),
    AnyScenario(String),
    AnyPreset(String),
}

/// A change of one line of a text.
#[derive(Arbitrary, Clone, Debug)]
struct Edit {
    line: u16,
    change: Change,
}

#[derive(Arbitrary, Clone, Debug)]
enum Change {
    /// Replaces what follows the equals sign.
    Value(#[arbitrary(with = one_of(&VALUES))] &'static str),
    /// Replaces the number at the end of the line.
    Number(#[arbitrary(with = one_of(&NUMBERS))] &'static str),
    Delete,
    /// Copies another line to this place.
    Copy(u16),
    /// Replaces the key.
    Key(#[arbitrary(with = one_of(&KEYS))] &'static str),
    Insert(String),
    /// Ends the text within the line.
    Cut(u8),
}

const VALUES: [&str; 28] = [
    "0",
    "1",
    "-1",
    "3",
    "4294967296",
    "18446744073709551616",
    "1e999",
    "nan",
    "-0.0",
    "true",
    "\"\"",
    "\"x\"",
    "\"n\"",
    "\"n / 0\"",
    "\"n ** 99\"",
    "\"((((n\"",
    "[]",
    "{}",
    "[0]",
    "[1, 2, 3, 4]",
    "[[1]]",
    "{ fill = 1e400 }",
    "{ iota = { start = 0, step = 1 } }",
    "1979-05-27",
    "\"f64\"",
    "\"tiny\"",
    "\"reference\"",
    "\"min(i, 2.5) + x[i + 1]\"",
];
const NUMBERS: [&str; 10] = [
    "0",
    "1",
    "2",
    "7",
    "64",
    "65536",
    "65537",
    "4294967295",
    "4294967296",
    "-1",
];
const KEYS: [&str; 12] = [
    "base",
    "name",
    "ptx",
    "dtype",
    "shape",
    "init",
    "expect",
    "grid",
    "args",
    "[[launch]]",
    "[buffers.x]",
    "value",
];

const SCENARIOS: [&str; 4] = [
    "ptx = \"k.ptx\"\ngpu = { name = \"tiny\", set = { \"sm.lsu.queue_depth\" = 4 } }\nmax_cycles = 1000\n[constants]\nn = 8\nm = \"n * 2\"\n\
     [buffers.x]\ndtype = \"f32\"\nshape = [\"n\"]\ninit = { uniform = { low = 0.0, high = 1.0, seed = 7 } }\n[buffers.y]\ndtype = \"i32\"\n\
     shape = [\"m\", 2]\ninit = { iota = { start = 0, step = 1 } }\nexpect = \"i + n\"\n[globals.t]\ndtype = \"u8\"\nshape = [4]\n\
     init = { fill = 1 }\n[[launch]]\nentry = \"k\"\ngrid = [\"n\", 1, 1]\nblock = 32\nrepeat = 2\ndynamic_shared_bytes = 0\n\
     args = [\"x\", \"y\", { f32 = 2.0 }, { u32 = \"n\" }, { bytes = \"00ff\" }, { struct = [\"x\", { u64 = 5 }] }]\n[[assert]]\n\
     metric = \"cycles\"\nmax = \"100 * n\"\nlaunch = 0\n",
    "ptx = \"k.ptx\"\n[buffers.x]\ndtype = \"f32\"\nshape = [4]\ninit = { npy = \"x.npy\" }\nexpect = { npy = \"x.npy\", rtol = 1e-5, atol = 1e-6 }\n\
     [[launch]]\ngrid = 1\nblock = 32\nargs = [\"x\"]\n",
    include_str!("../../../testbench/scenarios/triton/triton_matmul.toml"),
    include_str!("../../../testbench/scenarios/reduce/reduce_interleaved.toml"),
];

const PRESETS: [&str; 3] = [
    include_str!("../../../components/presets/tiny.toml"),
    include_str!("../../../components/presets/h100-pcie.toml"),
    include_str!("../../../components/presets/toy.toml"),
];

/// A folder with the files that the scenarios name.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("the host has a temporary folder");
    fs::write(folder.path().join("k.ptx"), "").expect("the folder can be written");
    let mut array = Vec::new();
    let dtype = warpwave::scenario::dtype::Dtype::F32;
    warpwave::scenario::npy::write(&mut array, dtype, &[4], &[0; 16]).expect("memory has room");
    fs::write(folder.path().join("x.npy"), array).expect("the folder can be written");
    folder
});

/// A GPU with little memory, so that no scenario makes large arrays.
static SMALL: LazyLock<GpuConfig> = LazyLock::new(|| GpuConfig {
    memory_bytes: 1 << 16,
    ..TINY.clone()
});

fn edit(text: &str, edits: &[Edit]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for Edit { line, change } in edits {
        let at = usize::from(*line) % lines.len().max(1);
        // Deletions may have left no line.
        let Some(old) = lines.get(at).cloned() else { break };
        let (key, _) = old.split_once('=').unwrap_or((&old, ""));
        match change {
            Change::Value(value) => lines[at] = format!("{key}= {value}"),
            Change::Number(number) => lines[at] = with_number(&old, number),
            Change::Delete => drop(lines.remove(at)),
            Change::Copy(from) => lines.insert(at, lines[usize::from(*from) % lines.len()].clone()),
            Change::Key(new) => lines[at] = old.replacen(key.trim(), new, 1),
            Change::Insert(text) => lines.insert(at, text.clone()),
            Change::Cut(bytes) => {
                lines.truncate(at + 1);
                lines[at] = old.chars().take((*bytes).into()).collect();
            }
        }
    }
    lines.join("\n")
}

/// The line with its first number after the equals sign replaced.
fn with_number(line: &str, number: &str) -> String {
    let from = line.find('=').unwrap_or(0);
    let Some(first) = line[from..].find(|c: char| c.is_ascii_digit()).map(|at| from + at) else {
        return line.to_owned();
    };
    let end = line[first..].find(|c: char| !c.is_ascii_digit() && c != '_');
    let end = end.map_or(line.len(), |end| first + end);
    [&line[..first], number, &line[end..]].concat()
}

/// Loads the text.
///
/// # Panics
/// If loading panics, if an error does not name the file, or if a loaded scenario or preset contradicts itself.
pub fn check(input: Input) {
    let (text, is_scenario) = match &input.kind {
        Kind::Scenario(base) => (edit(SCENARIOS[*base], &input.edits), true),
        Kind::Preset(base) => (edit(PRESETS[*base], &input.edits), false),
        Kind::AnyScenario(text) => (edit(text, &input.edits), true),
        Kind::AnyPreset(text) => (edit(text, &input.edits), false),
    };
    // A text could name any file of the host.
    if ["/", "..", "~"].iter().any(|part| text.contains(&format!("\"{part}"))) {
        return;
    }
    // A file per thread, since tests run side by side.
    let name = format!("{:?}.toml", std::thread::current().id());
    let path = FOLDER.path().join(name);
    fs::write(&path, text).expect("the folder can be written");
    let shown = path.display().to_string();
    match is_scenario {
        true => check_scenario(&shown),
        false => check_preset(&shown),
    }
}

fn check_scenario(path: &str) {
    let load = || Draft::load(path.as_ref()).and_then(|draft| draft.build(Some(&SMALL)));
    match (load(), load()) {
        (Ok(scenario), Ok(_)) => check_buffers(&scenario),
        (Err(error), Err(again)) => {
            // As texts: an error may hold a NaN.
            assert_eq!(error.to_string(), again.to_string(), "two loads of one text");
            check_error(path, &error.to_string());
        }
        (first, _) => panic!("two loads of one text differ: {:?}", first.err()),
    }
}

fn check_buffers(scenario: &Scenario) {
    features::note((
        "scenario",
        scenario.buffers.len(),
        scenario.launches.len(),
        scenario.expectations(),
    ));
    for buffer in &scenario.buffers {
        let bytes = buffer.layout.bytes();
        assert_eq!(buffer.init.len() as u64, bytes, "bytes of {}", buffer.name);
        let expect = buffer.expect.as_ref().map_or(bytes, |expect| expect.bytes.len() as u64);
        assert_eq!(expect, bytes, "expected bytes of {}", buffer.name);
    }
}

fn check_preset(path: &str) {
    match preset::load(path, &[]) {
        Ok(loaded) => {
            assert_eq!(loaded.config.check(), [], "a preset that loads has no fault");
            let numbers = loaded.sources.into_iter().map(|number| (number.key, number.value));
            let again = preset::load(path, &numbers.collect::<Vec<_>>());
            assert_eq!(
                again.map(|again| again.config).as_ref(),
                Ok(&loaded.config),
                "each number set again"
            );
            features::note("preset");
        }
        Err(error) => check_error(path, &error.to_string()),
    }
}

/// Notes the kind of an error by the words that do not come from the text.
fn check_error(path: &str, message: &str) {
    assert!(!message.trim().is_empty(), "an error without a message");
    let words = message
        .replace(path, "")
        .replace(FOLDER.path().to_str().unwrap_or_default(), "");
    let words = words
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() > 2);
    features::note(words.take(4).collect::<Vec<_>>());
}
