//! The top of the page: scenario and GPU, the diagnosis with advice, and the most important metrics.

use maud::{Markup, html};

use super::source::{hottest, ptx_anchor};
use super::{Page, capitalized, percent, thousands};
use crate::bench::StopReason;
use crate::report::diagnosis::{self, Diagnosis};
use crate::report::metrics;
use crate::report::units::count;

/// Name and metric of each card.
const CARDS: [(&str, &str); 10] = [
    (
        "of issue slots used",
        "sm__inst_issued.avg.pct_of_peak_sustained_active",
    ),
    (
        "instructions per cycle and SM",
        "sm__inst_executed.avg.per_cycle_active",
    ),
    (
        "achieved occupancy",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
    ),
    (
        "lanes per instruction",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
    ),
    (
        "cycles between issues of a warp",
        "smsp__average_warp_latency_per_inst_issued.ratio",
    ),
    (
        "sectors per global load",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    ),
    ("bank conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    ("L1 hit rate", "l1tex__t_sector_hit_rate.pct"),
    ("L2 hit rate", "lts__t_sector_hit_rate.pct"),
    (
        "of memory bandwidth used",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
];

pub(super) fn markup(page: &Page<'_>, diagnoses: &[Diagnosis]) -> Markup {
    let (scenario, run) = (page.scenario, page.run);
    let config = &run.config;
    html! {
        header {
            h1 { (scenario.title.as_deref().unwrap_or(&scenario.name)) }
            @if let Some(claim) = &scenario.claim {
                p.claim { (claim) }
            }
            p.soft {
                b { (scenario.name) } " on " b { (config.name) }
                ": " (count(config.n_sms().into(), "SM")) " at " (config.clocks.core_khz / 1000) " MHz, " (scenario.ptx_path)
            }
        }
        @if let Some(sample) = run.sample {
            p.verdict { b { "Sample" } ": " (sample.to_string()) }
        }
        @if let Some((launch, error)) = &run.stopped && run.stopped_by() != Some(StopReason::Sampled) {
            p.verdict { b { "Stopped" } " in launch " (launch) ": " (error.to_string()) }
        }
        @if !run.launches.is_empty() {
            (verdict(page, diagnoses))
            (cards(page))
            (launches(page))
        }
    }
}

/// The headline of the run, and the line with the highest cost.
fn verdict(page: &Page<'_>, diagnoses: &[Diagnosis]) -> Markup {
    let run = page.run;
    let Some(headline) = diagnosis::headline(run, diagnoses) else {
        return Markup::default();
    };
    let total = run.totals.sum("scheduler", "warp_cycles").unwrap_or(0);
    html! {
        p.verdict {
            b { (capitalized(&headline)) } "."
            @if let Some(line) = hottest(page) {
                " The line where warps spent most of their time, " (format_args!("{:.0} %", percent(line.cost.total(), total)))
                ", is " a href={ "#" (ptx_anchor(line.file)) "-" (line.number) } {
                    "line " (line.number)
                    @if let Some(file) = line.file { " of " (file) }
                }
                ": " code { (line.text.trim()) }
            }
        }
    }
}

fn cards(page: &Page<'_>) -> Markup {
    let inputs = page.run.inputs();
    let instructions = page.run.totals.sum("scheduler", "inst_issued").unwrap_or(0);
    html! {
        div.cards {
            (card(&thousands(page.run.cycles()), "cycles", "core cycles of all launches"))
            (card(&thousands(instructions), "warp instructions", "smsp__inst_executed.sum"))
            @for (name, metric) in CARDS {
                @let found = metrics::find(metric).expect("a card is a row of the table");
                // A metric without a number has no card.
                @if let Some(number) = found.value(&inputs).number() {
                    @let unit = if found.unit == "%" { " %" } else { "" };
                    (card(&format!("{}{unit}", figures(number)), name, &format!("{metric}\n{}", found.definition)))
                }
            }
        }
    }
}

fn card(value: &str, name: &str, tooltip: &str) -> Markup {
    html! {
        div.card title=(tooltip) { b { (value) } span { (name) } }
    }
}

/// A number with three digits, or all digits of a large number.
fn figures(number: f64) -> String {
    match number.abs() {
        n if n >= 1000.0 => thousands(number.round() as u64),
        n if n >= 100.0 || n == n.round() => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// A table of the launches, with their shapes.
fn launches(page: &Page<'_>) -> Markup {
    html! {
        div.scroll {
            table {
                tr {
                    th.n { "launch" } th { "kernel" } th { "grid" } th { "block" } th.n { "registers" } th.n { "shared bytes" }
                    th.n { "theoretical occupancy" } th.n { "cycles" }
                }
                @for (n, launch) in page.run.launches.iter().enumerate() {
                    @let shape = &launch.shape;
                    @let occupancy = &shape.occupancy;
                    tr {
                        td.n { (n) }
                        td { (launch.entry) }
                        td { (sizes(launch.grid)) }
                        td { (sizes(launch.block)) }
                        td.n { (shape.registers) }
                        td.n { (shape.shared_bytes) }
                        td.n { (format_args!("{:.0} %, by {}", occupancy.percent, occupancy.limiter)) }
                        td.n { (thousands(launch.cycles)) }
                    }
                }
            }
        }
    }
}

fn sizes([x, y, z]: [u32; 3]) -> String {
    format!("{x} × {y} × {z}")
}
