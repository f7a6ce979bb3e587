//! The memory chart: how many bytes went between the levels, in each direction.

use std::fmt::Write;

use super::{Page, section};
use crate::report::metrics;

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Bytes that the banks of shared memory move in a pass.
const PASS: u64 = 128;

/// What passes between two levels.
struct Flow {
    read: u64,
    write: u64,
}

pub(super) fn write(out: &mut String, page: &Page<'_>) {
    section(
        out,
        "Memory",
        "Bytes between the levels: blue towards the warps, orange away from them; a thicker line is ten times as much. \
         What lanes asked for is on the left, what had to be moved for it on the right.",
    );
    let sum = |block, name| page.run.totals.sum(block, name).unwrap_or(0);
    let lanes = Flow {
        read: sum("lsu", "global_ld_lane_bytes") + sum("lsu", "global_atom_lane_bytes"),
        write: sum("lsu", "global_st_lane_bytes"),
    };
    let l2 = Flow {
        read: SECTOR * sum("l1", "sectors_read_below"),
        write: SECTOR * sum("l1", "sectors_written_below"),
    };
    let dram = Flow {
        read: sum("channel", "bytes_read"),
        write: sum("channel", "bytes_written"),
    };
    let shared = Flow {
        read: PASS * sum("shared", "shared_ld_passes"),
        write: PASS * sum("shared", "shared_st_passes"),
    };
    let hits = |metric| metrics::find(metric).and_then(|metric| metric.value(&page.run.inputs()).number());
    let hits = |metric| hits(metric).map_or(String::new(), |rate| format!("{rate:.0} % hits"));
    out.push_str("<div class=\"levels\">\n");
    level(out, "Warps", "what lanes ask for");
    flow(out, &lanes);
    level(out, "L1", &hits("l1tex__t_sector_hit_rate.pct"));
    flow(out, &l2);
    level(out, "L2", &hits("lts__t_sector_hit_rate.pct"));
    flow(out, &dram);
    level(out, "Memory", &hits_of_rows(page));
    out.push_str("</div>\n");
    if shared.read + shared.write > 0 {
        out.push_str("<div class=\"levels\">\n");
        level(out, "Warps", "");
        flow(out, &shared);
        let conflicts = ["shared_ld_conflicts", "shared_st_conflicts", "shared_atom_conflicts"];
        let conflicts: u64 = conflicts.iter().map(|name| sum("shared", name)).sum();
        level(
            out,
            "Shared memory",
            &format!("{} conflicts", super::thousands(conflicts)),
        );
        out.push_str("</div>\n");
    }
}

/// How often a memory row was open already.
fn hits_of_rows(page: &Page<'_>) -> String {
    let sum = |name| page.run.totals.sum("channel", name).unwrap_or(0);
    let hits = sum("row_hits");
    let all = hits + sum("row_misses") + sum("row_conflicts");
    if all == 0 {
        return String::new();
    }
    format!("{:.0} % in open rows", super::percent(hits, all))
}

fn level(out: &mut String, name: &str, says: &str) {
    let _ = writeln!(out, "<div class=\"level\"><b>{name}</b><span>{says}</span></div>");
}

fn flow(out: &mut String, flow: &Flow) {
    out.push_str("<div class=\"flow\">");
    for (bytes, class, arrow) in [(flow.read, "read", "←"), (flow.write, "write", "→")] {
        let _ = write!(
            out,
            "<div>{arrow} {}<i class=\"{class}\" style=\"height:{:.1}px\"></i></div>",
            size(bytes),
            thickness(bytes)
        );
    }
    out.push_str("</div>\n");
}

/// Pixels of a line: two more for each power of ten.
fn thickness(bytes: u64) -> f64 {
    if bytes == 0 {
        0.5
    } else {
        1.0 + 2.0 * (bytes as f64).log10()
    }
}

/// Bytes as people write them.
fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{size:.1} {unit}")
            };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}
