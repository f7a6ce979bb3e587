//! The rows of the metric table, without the stall states, in groups.

mod launch;

mod memory;

mod l2_dram;

mod sm;

mod math;

pub(in crate::report) use math::all_flops;

use super::{Compute, Inputs, Metric, Value};

/// Name, unit, component, definition, formula, and the formula as code.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    fn(&Inputs<'_>) -> Value,
);

/// The parts of the table in the order of reports, each with its title.
const PARTS: [(&str, &[Row]); 10] = [
    ("Time", launch::TIME),
    ("Throughput of the SMs", sm::THROUGHPUT),
    ("Warps and instructions", sm::SCHEDULER),
    ("Instruction mix and operations", math::MATH),
    ("Pipes", sm::PIPE_USE),
    ("L1 and global memory", memory::L1),
    ("Local memory and constants", memory::LOCAL),
    ("Shared memory", memory::SHARED),
    ("L2 and device memory", l2_dram::L2_AND_DRAM),
    ("Shape of a launch", launch::SHAPE),
];

/// The metrics of each part, with its title, in the order of reports.
pub(super) fn parts() -> impl Iterator<Item = (&'static str, Vec<Metric>)> {
    PARTS
        .into_iter()
        .map(|(title, rows)| (title, rows.iter().map(metric).collect()))
}

fn metric(&(name, unit, component, definition, formula, compute): &Row) -> Metric {
    Metric {
        name: name.to_owned(),
        unit,
        component,
        definition: definition.to_owned(),
        formula: formula.to_owned(),
        compute: Compute::With(compute),
    }
}

/// The value of a profiler metric that no component counts.
fn not_modelled(_: &Inputs<'_>) -> Value {
    Value::NotModelled
}
