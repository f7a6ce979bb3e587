//! The rows of the table but for the stall states, part by part.

mod launch;

mod memory;

mod below;

mod sm;

use super::{Compute, Inputs, Metric, Value};

/// Name, unit, component, definition, formula, how to compute it.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    fn(&Inputs<'_>) -> Value,
);

/// All rows in the order of reports.
pub(super) fn rows() -> Vec<Metric> {
    let parts = [
        launch::TIME,
        sm::THROUGHPUT,
        sm::SCHEDULER,
        sm::PIPE_USE,
        memory::L1,
        memory::SHARED,
        below::BELOW,
        launch::SHAPE,
    ];
    parts.into_iter().flatten().map(metric).collect()
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

/// A metric of the profiler that no component counts yet.
fn not_modelled(_: &Inputs<'_>) -> Value {
    Value::NotModelled
}
