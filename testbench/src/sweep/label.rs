//! The words of a plot: labels of its axes, and names of launches.

use warpwave_components::config::doc::key_doc;

use crate::report::metrics;
use crate::report::saved::{CYCLES, launch_of};
use crate::scenario::Launch;

/// Names of all launches, by index. A launch has the name of its table, or else that of its kernel. Equal names get their index.
pub fn launch_names(launches: &[Launch]) -> Vec<String> {
    let name = |launch: &Launch| launch.name.clone().or(launch.entry.clone()).unwrap_or_default();
    let names: Vec<String> = launches.iter().map(name).collect();
    let is_unique = |name: &String| !name.is_empty() && names.iter().filter(|other| *other == name).count() == 1;
    let numbered = |(n, name): (usize, &String)| match is_unique(name) {
        true => name.clone(),
        false => format!("{name} [{n}]").trim_start().to_owned(),
    };
    names.iter().enumerate().map(numbered).collect()
}

/// The label of a column: the plain name of its metric with the unit, and the launch.
pub fn column_label(column: &str, launches: &[String]) -> String {
    let (launch, name) = launch_of(column).map_or((None, column), |(n, name)| (Some(n), name));
    let label = match metrics::find(name) {
        Some(metric) => format!("{} ({})", metric.plain_name(), metric.unit),
        None if name == CYCLES => "Core cycles".to_owned(),
        None => name.to_owned(),
    };
    match launch {
        // A scenario of one launch has no other to tell it from.
        Some(n) if launches.len() != 1 => {
            let number = n.to_string();
            format!("{label}, launch {}", launches.get(n).unwrap_or(&number))
        }
        _ => label,
    }
}

/// The label of an axis of the sweep: its name with the unit, if it has one.
pub fn axis_label(axis: &str) -> String {
    let setting = launch_of(axis).map_or(axis, |(_, setting)| setting);
    let unit = match setting {
        "block" => "threads",
        "grid" => "blocks",
        "cluster" => "blocks of a cluster",
        "max_registers" => "registers of a thread",
        "dynamic_shared_bytes" => "bytes",
        key => key_doc(key).map_or("", |doc| doc.unit),
    };
    match unit {
        // The units of a count and of a policy tell no more than the values do.
        "" | "count" | "name" => axis.to_owned(),
        unit => format!("{axis} ({unit})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_has_the_plain_name_and_unit_of_its_metric() {
        let launches = ["up".to_owned(), "down".to_owned()];
        let label = |column: &str| column_label(column, &launches);
        assert_eq!(label("cycles"), "Core cycles");
        assert_eq!(label("launch[1].cycles"), "Core cycles, launch down");
        assert_eq!(label("launch[5].cycles"), "Core cycles, launch 5");
        let sectors = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio";
        assert_eq!(label(sectors), "Sectors per global load request (sector/request)");
        assert_eq!(column_label("launch[0].cycles", &launches[..1]), "Core cycles");
    }

    #[test]
    fn axis_has_the_unit_of_its_setting() {
        assert_eq!(axis_label("block"), "block (threads)");
        assert_eq!(
            axis_label("launch[1].dynamic_shared_bytes"),
            "launch[1].dynamic_shared_bytes (bytes)"
        );
        assert_eq!(axis_label("l2.size"), "l2.size (bytes)");
        assert_eq!(axis_label("n"), "n");
        assert_eq!(axis_label("sm.scheduler"), "sm.scheduler");
    }
}
