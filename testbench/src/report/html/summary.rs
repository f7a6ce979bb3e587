//! The top of the page: what ran where, the reason for its time in a sentence, the numbers asked for most.

use std::fmt::Write;

use super::source::hottest;
use super::{Page, findings, percent, thousands, words};
use crate::report::{metrics, stalls, svg::escape};

/// The numbers of the cards, each with a plain name.
const CARDS: [(&str, &str); 10] = [
    (
        "of issue slots used",
        "sm__inst_issued.avg.pct_of_peak_sustained_active",
    ),
    (
        "instructions per cycle and SM",
        "sm__inst_executed.avg.per_cycle_active",
    ),
    ("occupancy reached", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    (
        "lanes per instruction",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
    ),
    (
        "cycles between a warp's instructions",
        "smsp__average_warp_latency_per_inst_issued.ratio",
    ),
    (
        "sectors per global load",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    ),
    ("bank conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    ("hits in the L1", "l1tex__t_sector_hit_rate.pct"),
    ("hits in the L2", "lts__t_sector_hit_rate.pct"),
    (
        "of memory bandwidth used",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
];

pub(super) fn write(out: &mut String, page: &Page<'_>) {
    let (scenario, run) = (page.scenario, page.run);
    let config = &run.config;
    let title = scenario.title.as_deref().unwrap_or(&scenario.name);
    let _ = writeln!(out, "<header>\n<h1>{}</h1>", escape(title));
    if let Some(claim) = &scenario.claim {
        let _ = writeln!(out, "<p class=\"claim\">{}</p>", escape(claim));
    }
    let _ = writeln!(
        out,
        "<p class=\"soft\"><b>{}</b> on <b>{}</b>: {} SMs at {} MHz, {}</p>\n</header>",
        escape(&scenario.name),
        escape(&config.name),
        config.n_sms(),
        config.clocks.core_khz / 1000,
        escape(&scenario.ptx_path)
    );
    if let Some((launch, error)) = &run.stopped {
        let error = escape(&error.to_string());
        let _ = writeln!(
            out,
            "<p class=\"verdict\"><b>Stopped</b> in launch {launch}: {error}</p>"
        );
    }
    if run.launches.is_empty() {
        return;
    }
    verdict(out, page);
    cards(out, page);
    launches(out, page);
}

/// The most frequent wait, and the line that waits most.
fn verdict(out: &mut String, page: &Page<'_>) {
    let table = stalls::table(&page.run.totals);
    let waits = table
        .iter()
        .filter(|stall| stall.state != "selected" && stall.warp_cycles > 0);
    let Some(top) = waits.max_by_key(|stall| stall.warp_cycles) else {
        return;
    };
    let words = words::of(top.state);
    let _ = write!(
        out,
        "<p class=\"verdict\">Warps spent <b>{:.0} %</b> of their time in <b>{}</b>: they {}. What helps: {}.",
        top.percent, top.state, words.means, words.advice
    );
    if let Some(line) = hottest(page) {
        let total: u64 = table.iter().map(|stall| stall.warp_cycles).sum();
        let _ = write!(
            out,
            " The line that costs most, <b>{:.0} %</b> of all time, is <a href=\"#ptx-{}\">line {}</a>: <code>{}</code>",
            percent(line.cost.total(), total),
            line.number,
            line.number,
            escape(line.text.trim())
        );
    }
    out.push_str("</p>\n");
    let findings = findings::all(page);
    if !findings.is_empty() {
        out.push_str("<ul class=\"findings\">\n");
        for (name, text) in findings {
            let _ = writeln!(out, "<li><b>{name}</b>: {text}</li>");
        }
        out.push_str("</ul>\n");
    }
}

fn cards(out: &mut String, page: &Page<'_>) {
    let inputs = page.run.inputs();
    out.push_str("<div class=\"cards\">\n");
    let card = |out: &mut String, value: &str, name: &str, title: &str| {
        let _ = writeln!(
            out,
            "<div class=\"card\" title=\"{}\"><b>{}</b><span>{}</span></div>",
            escape(title),
            escape(value),
            escape(name)
        );
    };
    card(
        out,
        &thousands(page.run.cycles()),
        "cycles",
        "core cycles of all launches",
    );
    let instructions = page.run.totals.sum("scheduler", "inst_issued").unwrap_or(0);
    card(
        out,
        &thousands(instructions),
        "warp instructions",
        "smsp__inst_executed.sum",
    );
    for (name, metric) in CARDS {
        let found = metrics::find(metric).expect("a card is a row of the table");
        if let Some(number) = found.value(&inputs).number() {
            let unit = if found.unit == "%" { " %" } else { "" };
            card(out, &format!("{}{unit}", figures(number)), name, metric);
        }
    }
    out.push_str("</div>\n");
}

/// Three figures, or all of a large number.
fn figures(number: f64) -> String {
    match number.abs() {
        n if n >= 1000.0 => thousands(number.round() as u64),
        n if n >= 100.0 || n == n.round() => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

fn launches(out: &mut String, page: &Page<'_>) {
    out.push_str(
        "<div class=\"scroll\"><table>\n<tr><th class=\"n\">launch</th><th>kernel</th><th>grid</th><th>block</th>\
         <th class=\"n\">registers</th><th class=\"n\">shared bytes</th><th class=\"n\">occupancy possible</th>\
         <th class=\"n\">cycles</th></tr>\n",
    );
    for (n, launch) in page.run.launches.iter().enumerate() {
        let by = |[x, y, z]: [u32; 3]| format!("{x} × {y} × {z}");
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{n}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{:.0} %, by {}</td><td class=\"n\">{}</td></tr>",
            escape(&launch.entry),
            by(launch.grid),
            by(launch.block),
            launch.facts.registers,
            launch.facts.shared_bytes,
            launch.facts.occupancy.percent,
            launch.facts.occupancy.limiter,
            thousands(launch.cycles)
        );
    }
    out.push_str("</table></div>\n");
}
