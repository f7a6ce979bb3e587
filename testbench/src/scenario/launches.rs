//! Resolves the launches of a scenario: sizes, arguments, host steps, repetitions.

use super::dtype::Number;
use super::format::{self, LaunchName};
use super::quantity::Constants;
use super::resolve::Resolved;
use super::similar::nearest;
use super::{Arg, Buffer, Fault, Launch, Prints, ScenarioError, Step, data, resolve};

/// Most repetitions of one launch.
const MAX_REPEAT: u64 = 1000;

/// Most launches with all repetitions. Each keeps its results for the report.
const MAX_LAUNCHES: usize = 100_000;

/// The `[[launch]]` tables with their repetitions.
#[derive(Default)]
pub(super) struct LaunchIndex(Vec<Row>);

struct Row {
    name: Option<String>,
    entry: Option<String>,
    /// Index of the last repetition among all launches.
    last: usize,
}

impl LaunchIndex {
    /// The index among all launches of a table's last repetition.
    pub fn find(&self, launch: &LaunchName) -> Result<usize, Fault> {
        let name = match launch {
            LaunchName::Index(index) => {
                let n = self.0.len();
                let missing = Fault::NoSuchLaunch { launch: *index, n };
                return self.0.get(*index).map(|row| row.last).ok_or(missing);
            }
            LaunchName::Name(name) => name,
        };
        // A launch with a name is not found by its kernel.
        let is_it = |row: &&Row| row.name.as_ref().or(row.entry.as_ref()) == Some(name);
        let mut found = self.0.iter().filter(is_it);
        match (found.next(), found.next()) {
            (Some(row), None) => Ok(row.last),
            (Some(_), Some(_)) => Err(Fault::AmbiguousLaunch { name: name.clone() }),
            (None, _) => {
                let names = self
                    .0
                    .iter()
                    .filter_map(|row| row.name.as_deref().or(row.entry.as_deref()));
                Err(Fault::UnknownLaunch {
                    nearest: nearest(name, names),
                    name: name.clone(),
                })
            }
        }
    }
}

/// Resolves all launches. Each repetition is a launch of its own.
pub(super) fn read<F: FnOnce(Fault) -> ScenarioError>(
    tables: Vec<format::Launch>,
    (buffers, resolved): (&[Buffer], &[Resolved]),
    constants: &Constants,
    at: impl Fn(&str) -> F,
) -> Result<(Vec<Launch>, LaunchIndex), ScenarioError> {
    let (mut launches, mut index) = (Vec::new(), LaunchIndex::default());
    for (n, text) in tables.into_iter().enumerate() {
        let repeat = constants.size(&text.repeat, 1, MAX_REPEAT);
        let repeat = repeat.map_err(at(&format!("launch[{n}].repeat")))?;
        // Checked before the copies are made, so that a large `repeat` costs no memory.
        if launches.len() + repeat as usize > MAX_LAUNCHES {
            let limit = MAX_LAUNCHES;
            return Err(at(&format!("launch[{n}]"))(Fault::TooManyLaunches { limit }));
        }
        let warm = text.warm;
        let launch = read_launch(n, text, (buffers, resolved), constants, &at)?;
        let repetition = |k| Launch {
            // The last repetition is the one measured.
            is_warm_up: warm && k + 1 < repeat,
            ..launch.clone()
        };
        launches.extend((0..repeat).map(repetition));
        index.0.push(Row {
            name: launch.name,
            entry: launch.entry,
            last: launches.len() - 1,
        });
    }
    Ok((launches, index))
}

fn read_launch<F: FnOnce(Fault) -> ScenarioError>(
    table: usize,
    text: format::Launch,
    (buffers, resolved): (&[Buffer], &[Resolved]),
    constants: &Constants,
    at: &impl Fn(&str) -> F,
) -> Result<Launch, ScenarioError> {
    let key = |key: &str| format!("launch[{table}].{key}");
    let sizes = |name: &str, sizes: &format::Dim3| constants.sizes(&sizes.0).map_err(at(&key(name)));
    let shared = constants.size(&text.dynamic_shared_bytes, 0, u32::MAX.into());
    let step = |step: &format::Step| read_step(step, (buffers, resolved), constants);
    let before = text.before.iter().map(step).collect::<Result<_, _>>();
    let prints = |prints: format::Prints| {
        Ok(match prints {
            format::Prints::Whole(text) => Prints::Whole(text),
            format::Prints::Part { contains } => Prints::Part(contains),
            format::Prints::Lines { lines } => Prints::Lines(constants.size(&lines, 0, u64::MAX)?),
        })
    };
    let prints = text.prints.map(prints).transpose();
    Ok(Launch {
        name: text.name,
        table,
        // `read` sets it: only `read` knows the repetition.
        is_warm_up: false,
        before: before.map_err(at(&key("before")))?,
        entry: text.entry,
        grid: sizes("grid", &text.grid)?,
        block: sizes("block", &text.block)?,
        dynamic_shared_bytes: shared.map_err(at(&key("dynamic_shared_bytes")))? as u32,
        cluster: text.cluster.map(|cluster| sizes("cluster", &cluster)).transpose()?,
        is_cooperative: text.cooperative,
        prints: prints.map_err(at(&key("prints")))?,
        args: resolve::args(text.args, buffers, constants).map_err(at(&key("args")))?,
    })
}

fn read_step(
    step: &format::Step,
    (buffers, resolved): (&[Buffer], &[Resolved]),
    constants: &Constants,
) -> Result<Step, Fault> {
    let find = |name: &str| -> Result<usize, Fault> {
        match resolve::find_buffer(name.to_owned(), buffers)? {
            Arg::Buffer(index) => Ok(index),
            _ => unreachable!("a buffer's name gives a buffer"),
        }
    };
    let pair = |a: &str, b: &str| {
        let (first, second) = (find(a)?, find(b)?);
        let bytes = |index: usize| buffers[index].layout.bytes();
        // The types may differ: the host moves bytes.
        if bytes(first) == bytes(second) {
            return Ok((first, second));
        }
        Err(Fault::StepSizes {
            names: [a.to_owned(), b.to_owned()],
            bytes: [bytes(first), bytes(second)],
        })
    };
    Ok(match step {
        format::Step::Copy { from, to } => {
            let (from, to) = pair(from, to)?;
            Step::Copy { from, to }
        }
        format::Step::Swap([a, b]) => {
            let (first, second) = pair(a, b)?;
            Step::Swap(first, second)
        }
        format::Step::Reset(name) => Step::Reset(find(name)?),
        format::Step::Fill { buffer, value } => {
            let index = find(buffer)?;
            let element = filled(&buffers[index], &resolved[index], constants.number(value)?)?;
            Step::Fill { buffer: index, element }
        }
    })
}

/// The bytes that a fill repeats: an element, or a structure with this number in all its fields. Its padding is zero.
fn filled(buffer: &Buffer, resolved: &Resolved, number: Number) -> Result<Vec<u8>, Fault> {
    let mut element = Vec::new();
    let Some((first, _)) = resolved.fields.first() else {
        data::append(buffer.layout.dtype, &mut element, number)?;
        return Ok(element);
    };
    let mut structure = vec![0; first.stride as usize];
    for (field, _) in &resolved.fields {
        element.clear();
        data::append(field.dtype, &mut element, number)?;
        field.scatter(&element.repeat(field.count as usize), &mut structure);
    }
    Ok(structure)
}
