//! The names of a comparison: constants, metrics of launches and of other runs, and cells of CSV files.
//!
//! | text | value |
//! |---|---|
//! | `cycles` or a metric's name | over all launches, without warm-ups |
//! | `cycles[tiled]` | of one launch: its name, its kernel or its index |
//! | `cycles(other)`, `cycles(other)[0]` | of another run: a table `[runs.other]`, or a scenario |
//! | `csv("file.csv", "column", "key=value")` | the cell of the only row with this value in column `key` |
//! | `gpu.sms`, `gpu.core_khz` | of the GPU |

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::bench::Run;
use crate::report::metrics;
use crate::scenario::dtype::Number;
use crate::scenario::expr::{ExprError, Node, Scope};
use crate::scenario::{Draft, LaunchName, OtherRun, Scenario, nearest};

/// Runs another scenario.
type RunOther<'a> = &'a mut dyn FnMut(&OtherRun) -> Result<Run, String>;

/// The scope of a comparison.
pub(super) struct Figures<'a> {
    scenario: &'a Scenario,
    /// The run. `None` before it: every figure is then 1, and only names are checked.
    run: Option<&'a Run>,
    // In cells, since a scope evaluates with `&self` and keeps the runs that it made.
    run_other: Option<RefCell<RunOther<'a>>>,
    /// Other runs by the name in the text.
    others: RefCell<BTreeMap<String, Rc<Run>>>,
}

impl<'a> Figures<'a> {
    pub fn of(scenario: &'a Scenario, run: &'a Run, run_other: RunOther<'a>) -> Self {
        Figures {
            run: Some(run),
            run_other: Some(RefCell::new(run_other)),
            ..Figures::without_run(scenario)
        }
    }

    pub fn without_run(scenario: &'a Scenario) -> Self {
        Figures {
            scenario,
            run: None,
            run_other: None,
            others: RefCell::default(),
        }
    }

    /// The value of a metric in a run.
    fn figure(&self, name: &str, run: Option<&Run>, launch: Option<&LaunchName>) -> Result<Number, ExprError> {
        let metric = metrics::find(name);
        if metric.is_none() && name != "cycles" {
            let known = metrics::all();
            let names = known.iter().map(|metric| metric.name.as_str());
            return Err(ExprError::UnknownName {
                nearest: nearest(name, names.chain(["cycles", "gpu.sms", "gpu.core_khz"])),
                name: name.to_owned(),
            });
        }
        // 1 and not 0, so that most quotients of figures exist.
        let Some(run) = run else { return Ok(Number::Int(1)) };
        let one = launch.map(|launch| {
            let found = run.launch(launch);
            found.ok_or_else(|| ExprError::Misplaced(format!("the run has no launch `{launch}`")))
        });
        let one = one.transpose()?;
        let Some(metric) = metric else {
            return Ok(Number::Int(
                one.map_or_else(|| run.cycles(), |launch| launch.cycles).into(),
            ));
        };
        let value = one.map_or_else(
            || metric.value(&run.inputs()),
            |launch| metric.value(&launch.inputs(&run.config)),
        );
        let number = value.number().map(Number::Float);
        number.ok_or_else(|| ExprError::Misplaced(format!("{name} is {value}")))
    }

    /// Another run, by its name. Each runs once. `None` if this run has not begun.
    fn other(&self, args: &[Node]) -> Result<Option<Rc<Run>>, ExprError> {
        let [Node::Name(name) | Node::Text(name)] = args else {
            return Err(ExprError::Misplaced(
                "a metric takes the name of another run: a table [runs.NAME] or a scenario".to_owned(),
            ));
        };
        if let Some(run) = self.others.borrow().get(name) {
            return Ok(Some(Rc::clone(run)));
        }
        let other = self.scenario.runs.get(name).cloned().unwrap_or_else(|| OtherRun {
            scenario: name.clone(),
            ..OtherRun::default()
        });
        // Before the run, only the scenario and its constants are looked up.
        let Some(run_other) = &self.run_other else {
            let draft = Draft::find(&other.scenario).and_then(|draft| draft.with_constants(&other.constants));
            return match draft {
                Ok(_) => Ok(None),
                Err(error) => Err(ExprError::Misplaced(error.to_string())),
            };
        };
        let run = (run_other.borrow_mut())(&other).map_err(ExprError::Misplaced)?;
        let run = Rc::new(run);
        self.others.borrow_mut().insert(name.clone(), Rc::clone(&run));
        Ok(Some(run))
    }
}

impl Scope for Figures<'_> {
    fn name(&self, name: &str) -> Result<Number, ExprError> {
        if let Some(constant) = self.scenario.constants.get(name) {
            return Ok(*constant);
        }
        match (name, self.run) {
            ("gpu.sms" | "gpu.core_khz", None) => Ok(Number::Int(1)),
            ("gpu.sms", Some(run)) => Ok(Number::Int(run.config.n_sms().into())),
            ("gpu.core_khz", Some(run)) => Ok(Number::Int(run.config.clocks.core_khz.into())),
            (name, run) => self.figure(name, run, None),
        }
    }

    fn index(&self, base: &Node, index: &Node) -> Result<Number, ExprError> {
        let launch = LaunchName::of(index);
        match base {
            Node::Name(name) => self.figure(name, self.run, launch.as_ref()),
            Node::Call(name, args) => {
                let other = self.other(args)?;
                self.figure(name, other.as_deref(), launch.as_ref())
            }
            _ => Err(ExprError::Misplaced("only a metric has launches".to_owned())),
        }
    }

    fn call(&self, name: &str, args: &[Node]) -> Result<Number, ExprError> {
        if name == "csv" {
            return cell(&self.scenario.tables, args).map_err(ExprError::Misplaced);
        }
        if name != "cycles" && metrics::find(name).is_none() {
            // The error for a function that does not exist.
            return ().call(name, args);
        }
        let other = self.other(args)?;
        self.figure(name, other.as_deref(), None)
    }
}

/// The number in a cell of a CSV file: file, column, then conditions `key=value` that one row meets.
fn cell(tables: &BTreeMap<String, String>, args: &[Node]) -> Result<Number, String> {
    let texts: Option<Vec<&str>> = args
        .iter()
        .map(|arg| match arg {
            Node::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let texts = texts.unwrap_or_default();
    let [path, column, conditions @ ..] = &texts[..] else {
        return Err("csv takes a file, a column and conditions, each in quotes".to_owned());
    };
    // The scenario has read every file that a comparison names.
    let text = tables.get(*path).map_or("", String::as_str);
    let mut reader = csv::ReaderBuilder::new()
        // Comments hold the source of a figure.
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| format!("{path}: {error}"))?.clone();
    let find = |column: &str| {
        let found = headers.iter().position(|header| header == column);
        found.ok_or_else(|| {
            let names = headers.iter().collect::<Vec<_>>().join(", ");
            format!("{path} has no column `{column}`; it has {names}")
        })
    };
    let wanted = find(column)?;
    let conditions = conditions.iter().map(|condition| {
        let pair = condition.split_once('=');
        let (key, value) = pair.ok_or_else(|| format!("write key=value, not `{condition}`"))?;
        Ok((find(key.trim())?, value.trim()))
    });
    let conditions = conditions.collect::<Result<Vec<_>, String>>()?;
    let mut found = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| format!("{path}: {error}"))?;
        if conditions.iter().all(|&(at, value)| record.get(at) == Some(value)) {
            found.push(record.get(wanted).unwrap_or_default().to_owned());
        }
    }
    match &found[..] {
        [cell] => {
            // Every value is below `inf`, and none is equal to `nan`.
            let number = cell.parse().ok().filter(|number: &f64| number.is_finite());
            number
                .map(Number::Float)
                .ok_or_else(|| format!("{path} has `{cell}` in column `{column}`, which is no finite number"))
        }
        rows => Err(format!("{} rows of {path} meet the conditions; one must", rows.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Number, String> {
        let text =
            "# Made by hand.\ngpu, size, cycles\nv100, 1, 28\na100, 1, 33\na100, 2, 200\nt4, 1, inf\nt4, 2, NaN\n";
        let tables = BTreeMap::from([("t.csv".to_owned(), text.to_owned())]);
        let args: Vec<_> = args.iter().map(|arg| Node::Text((*arg).to_owned())).collect();
        cell(&tables, &args)
    }

    #[test]
    fn cell_is_found_by_its_row() {
        assert_eq!(read(&["t.csv", "cycles", "gpu=v100"]), Ok(Number::Float(28.0)));
        assert_eq!(
            read(&["t.csv", "cycles", "gpu=a100", "size=2"]),
            Ok(Number::Float(200.0))
        );
    }

    #[test]
    fn missing_cell_is_refused_with_its_reason() {
        for (args, says) in [
            (
                &["t.csv", "cycles", "gpu=a100"][..],
                "2 rows of t.csv meet the conditions; one must",
            ),
            (
                &["t.csv", "cycles", "gpu=h100"],
                "0 rows of t.csv meet the conditions; one must",
            ),
            (
                &["t.csv", "cicles", "gpu=v100"],
                "t.csv has no column `cicles`; it has gpu, size, cycles",
            ),
            (
                &["t.csv", "gpu", "gpu=v100"],
                "t.csv has `v100` in column `gpu`, which is no finite number",
            ),
            (
                &["t.csv", "cycles", "gpu=t4", "size=1"],
                "t.csv has `inf` in column `cycles`, which is no finite number",
            ),
            (
                &["t.csv", "cycles", "gpu=t4", "size=2"],
                "t.csv has `NaN` in column `cycles`, which is no finite number",
            ),
            (&["t.csv", "cycles", "v100"], "write key=value, not `v100`"),
            (&["t.csv"], "csv takes a file, a column and conditions, each in quotes"),
        ] {
            assert_eq!(read(args).unwrap_err(), says);
        }
    }
}
