//! The memory chart: bytes moved between adjacent levels, in each direction.

use maud::{Markup, html};

use super::{Page, heading, percent, thousands};
use crate::report::counts::Counts;
use crate::report::metrics::{self, Inputs};
use crate::report::units::scaled;

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Bytes that the banks of shared memory move in one pass.
const PASS: u64 = 128;

/// Bytes between two levels.
struct Flow {
    read: u64,
    write: u64,
}

pub(super) fn markup(page: &Page<'_>) -> Markup {
    let title = match page.run.launches.len() {
        1 => "Memory",
        _ => "Memory, in all launches",
    };
    html! {
        (heading(
            title,
            "Bytes moved between the levels: blue towards the warps, orange away from them. Two more pixels of thickness mean ten \
             times the bytes. The first arrows count only the bytes that lanes use. All others count whole sectors, and 128 bytes for each \
             pass of shared memory.",
        ))
        (levels(&page.run.totals, &page.run.inputs()))
    }
}

/// The chart of one launch, or of all together.
pub(super) fn levels(counts: &Counts, inputs: &Inputs<'_>) -> Markup {
    let sum = |block, name| counts.sum(block, name).unwrap_or(0);
    let all = |block, names: &[&'static str]| names.iter().map(|name| sum(block, name)).sum::<u64>();
    let lanes = Flow {
        // An atomic moves its operand one way and the old value the other way. A reduction moves an operand alone.
        read: all(
            "lsu",
            &["global_ld_lane_bytes", "local_ld_lane_bytes", "global_atom_lane_bytes"],
        ) - sum("lsu", "global_red_lane_bytes"),
        write: all(
            "lsu",
            &["global_st_lane_bytes", "local_st_lane_bytes", "global_atom_lane_bytes"],
        ),
    };
    let read = ["l2_sectors_read", "texture_sectors_read", "bulk_sectors_read"];
    let written = [
        "l2_sectors_written",
        "surface_sectors_written",
        "bulk_sectors_written",
        "reduction_sectors",
    ];
    let l2 = Flow {
        read: SECTOR * (all("l1", &read) + sum("l1", "atomic_sectors")),
        write: SECTOR * (all("l1", &written) + sum("l1", "atomic_sectors")),
    };
    let dram = Flow {
        read: sum("channel", "bytes_read"),
        write: sum("channel", "bytes_written"),
    };
    let shared = Flow {
        // A pass serves all 32 banks, whether or not lanes use them. Atomics count as reads: their passes are not told apart.
        read: PASS * (sum("shared", "shared_ld_passes") + sum("shared", "shared_atom_passes")),
        write: PASS * sum("shared", "shared_st_passes"),
    };
    let conflicts = ["shared_ld_conflicts", "shared_st_conflicts", "shared_atom_conflicts"];
    let conflicts: u64 = conflicts.iter().map(|name| sum("shared", name)).sum();
    html! {
        div.levels {
            (level("Warps", "bytes that lanes use"))
            (flow(&lanes))
            (level("L1", &hit_rate(inputs, "l1tex__t_sector_hit_rate.pct")))
            (flow(&l2))
            (level("L2", &hit_rate(inputs, "lts__t_sector_hit_rate.pct")))
            (flow(&dram))
            (level("Memory", &row_hits(counts)))
        }
        @if shared.read + shared.write > 0 {
            div.levels {
                (level("Warps", ""))
                (flow(&shared))
                (level("Shared memory", &format!("{} conflicts", thousands(conflicts))))
            }
        }
    }
}

/// The value of a hit-rate metric. Empty if there were no accesses.
fn hit_rate(inputs: &Inputs<'_>, metric: &str) -> String {
    let rate = metrics::find(metric).and_then(|metric| metric.value(inputs).number());
    rate.map_or(String::new(), |rate| format!("{rate:.0} % hits"))
}

/// Share of DRAM accesses to an open row.
fn row_hits(counts: &Counts) -> String {
    let sum = |name| counts.sum("channel", name).unwrap_or(0);
    let hits = sum("row_hits");
    let all = hits + sum("row_misses") + sum("row_conflicts");
    if all == 0 {
        return String::new();
    }
    format!("{:.0} % in open rows", percent(hits, all))
}

fn level(name: &str, text: &str) -> Markup {
    html! {
        div.level { b { (name) } span { (text) } }
    }
}

fn flow(flow: &Flow) -> Markup {
    html! {
        div.flow {
            @for (bytes, class, arrow) in [(flow.read, "read", "←"), (flow.write, "write", "→")] {
                div {
                    (arrow) " " (scaled(bytes as f64, "B"))
                    i class=(class) title={ (thousands(bytes)) " bytes" } style={ "height:" (format_args!("{:.1}", thickness(bytes))) "px" } {}
                }
            }
        }
    }
}

/// Thickness of a line in pixels: two more per power of ten.
fn thickness(bytes: u64) -> f64 {
    if bytes == 0 {
        0.5
    } else {
        // Levels differ by orders of magnitude: a linear scale would hide the small flows.
        1.0 + 2.0 * (bytes as f64).log10()
    }
}
