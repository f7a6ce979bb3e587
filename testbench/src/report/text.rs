//! The text summary of a run. Its first line is the headline of the diagnosis.
//!
//! ```text
//! diagnosis | launches | each launch: phases, speed of light, occupancy, causes, warp states, metrics | totals | latencies | words
//! ```

use std::io::{self, Write};

use super::counts::Counts;
use super::diagnosis::{self, Diagnosis};
use super::metrics::{Inputs, Metric, Value};
use super::units::count;
use super::{glossary, latency, metrics, stalls, units};
use crate::bench::{LaunchRun, Run, StopReason};

/// Title and name of each metric in the summary.
pub(crate) const HEADLINES: [(&str, &str); 15] = [
    ("instructions executed", "smsp__inst_executed.sum"),
    ("IPC per active SM", "sm__inst_executed.avg.per_cycle_active"),
    ("issue slots used", "sm__inst_issued.avg.pct_of_peak_sustained_active"),
    (
        "achieved occupancy",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
    ),
    (
        "lanes per instruction",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
    ),
    (
        "warp-cycles per issue",
        "smsp__average_warp_latency_per_inst_issued.ratio",
    ),
    ("SM throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
    (
        "sectors per load",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    ),
    (
        "sectors per store",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    ),
    ("L1 hit rate", "l1tex__t_sector_hit_rate.pct"),
    ("L2 hit rate", "lts__t_sector_hit_rate.pct"),
    ("bank conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    ("read from memory", "dram__bytes_read.sum"),
    ("written to memory", "dram__bytes_write.sum"),
    ("memory bandwidth", "dram__bytes.sum.per_second"),
];

/// Length of a bar of 100 %, in characters.
const BAR: f64 = 40.0;

/// Maximum number of launches with a section of their own. Of more launches, the longest ones have it.
const SECTIONS: usize = 8;

/// Width of a line of text, in characters.
const WIDTH: usize = 118;

/// Writes the summary.
///
/// # Errors
/// If `to` cannot be written.
pub fn summary(to: &mut dyn Write, scenario: &str, run: &Run) -> io::Result<()> {
    let config = &run.config;
    let diagnoses = diagnosis::of_run(run);
    if let Some(headline) = diagnosis::headline(run, &diagnoses) {
        writeln!(to, "{scenario}: {headline}\n")?;
    }
    let clock = f64::from(config.clocks.core_khz) / 1e3;
    writeln!(
        to,
        "{scenario} on {}: {} at {clock:.0} MHz\n",
        config.name,
        count(config.n_sms().into(), "SM")
    )?;
    launches(to, run)?;
    sampled(to, run)?;
    stopped(to, run)?;
    if run.launches.is_empty() {
        return Ok(());
    }
    let table = metrics::all();
    sections(to, run, &diagnoses, table)?;
    // A single launch is its own total.
    if run.launches.len() > 1 {
        writeln!(to, "\nall launches")?;
        figures(to, &run.totals, &run.inputs(), table)?;
    }
    writeln!(to)?;
    if run.totals.latencies().next().is_some() {
        let paths = run.totals.latencies();
        latency::table(to, paths.map(|(path, latency)| (path.to_owned(), latency)))?;
        writeln!(to)?;
    }
    words(to, run, &diagnoses)
}

/// A section for each of the longest launches, in order.
fn sections(to: &mut dyn Write, run: &Run, diagnoses: &[Diagnosis], table: &[Metric]) -> io::Result<()> {
    let mut longest: Vec<_> = (0..run.launches.len()).collect();
    longest.sort_by_key(|&index| std::cmp::Reverse(run.launches[index].cycles));
    // A launch outside of a sample has nothing to show.
    longest.retain(|&index| run.launches[index].cycles > 0);
    let rest = longest.len().saturating_sub(SECTIONS);
    longest.truncate(SECTIONS);
    // The longest are chosen. Now in the order of the run.
    longest.sort_unstable();
    for index in longest {
        let launch = &run.launches[index];
        let name = launch.name.as_ref().unwrap_or(&launch.entry);
        writeln!(to, "\nlaunch {index}, {name}: {}", diagnoses[index].bound.sentence())?;
        diagnosed(to, &diagnoses[index])?;
        figures(to, &launch.counts, &launch.inputs(&run.config), table)?;
    }
    if rest > 0 {
        writeln!(to, "\n{rest} shorter launches are not shown; --json writes all of them")?;
    }
    Ok(())
}

/// Phases, speed of light, occupancy and causes.
fn diagnosed(to: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let phases = &diagnosis.phases;
    let shares = phases
        .each()
        .map(|(name, cycles)| format!("{name} {:.1} %", phases.share(cycles) * 100.0));
    writeln!(to, "{:<10} {}", "time", shares.join(", "))?;
    let speed = &diagnosis.speed_of_light;
    for (name, percent) in [("SM", speed.sm), ("memory", speed.memory)] {
        let row = format!("{name:<10} {percent:>5.1} % of the peak  {}", bar(percent));
        writeln!(to, "{}", row.trim_end())?;
    }
    let occupancy = &diagnosis.occupancy;
    writeln!(
        to,
        "{:<10} {:.1} % achieved, {:.1} % in theory (limit: {})",
        "occupancy", occupancy.achieved, occupancy.theoretical, occupancy.limiter
    )?;
    for (nth, cause) in diagnosis.causes.iter().enumerate() {
        writeln!(to, "{:>8}.  {}", nth + 1, cause.text)?;
        for (line, text) in wrapped(&cause.advice, WIDTH - 16).iter().enumerate() {
            writeln!(to, "{:>15} {text}", if line == 0 { "try:" } else { "" })?;
        }
    }
    Ok(())
}

/// A text in lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            // Less, not equal: the space between takes a character.
            Some(line) if line.len() + word.len() < width => *line = format!("{line} {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn bar(percent: f64) -> String {
    "#".repeat((percent / 100.0 * BAR).round() as usize)
}

/// Warp states and metrics, of one launch or of all together.
fn figures(to: &mut dyn Write, counts: &Counts, inputs: &Inputs<'_>, table: &[Metric]) -> io::Result<()> {
    writeln!(to)?;
    stall_table(to, counts)?;
    writeln!(to)?;
    headlines(to, inputs, table)
}

/// The meaning of each unusual word that the summary contains.
fn words(to: &mut dyn Write, run: &Run, diagnoses: &[Diagnosis]) -> io::Result<()> {
    let causes = diagnoses.iter().flat_map(|diagnosis| &diagnosis.causes);
    let causes: String = causes
        .map(|cause| format!("{} {} ", cause.text, cause.advice))
        .collect();
    let states = stalls::table(&run.totals);
    // A rare state is not worth a line.
    let states = states.iter().filter(|stall| stall.percent >= 1.0);
    // An issue needs no explanation.
    let states = states.map(|stall| stall.state).filter(|state| *state != "selected");
    let paths = run.totals.latencies().map(|(path, _)| path);
    let words = glossary::terms_in(&causes).chain(glossary::phases());
    let words = words.chain(states.filter_map(glossary::state));
    for (word, meaning) in words.chain(paths.filter_map(glossary::path)) {
        writeln!(to, "{word:<20} {meaning}")?;
    }
    Ok(())
}

fn launches(to: &mut dyn Write, run: &Run) -> io::Result<()> {
    writeln!(
        to,
        "{:<7} {:<28} {:<16} {:<14} {:>12} {:>12}",
        "launch", "kernel", "grid", "block", "cycles", "time"
    )?;
    let khz = f64::from(run.config.clocks.core_khz);
    for (index, launch) in run.launches.iter().enumerate() {
        let LaunchRun {
            entry,
            grid,
            block,
            cycles,
            is_warm_up,
            is_sampled,
            ..
        } = launch;
        // Cycles over kHz are milliseconds.
        let micros = *cycles as f64 * 1e3 / khz;
        writeln!(
            to,
            "{index:<7} {entry:<28} {:<16} {:<14} {cycles:>12} {micros:>9.2} us{}{}",
            by(grid),
            by(block),
            if *is_warm_up { "  warm-up" } else { "" },
            if *is_sampled { "  sampled" } else { "" }
        )?;
    }
    Ok(())
}

/// Writes the cycles that a sampled run has counted.
fn sampled(to: &mut dyn Write, run: &Run) -> io::Result<()> {
    match &run.sample {
        Some(sample) => writeln!(to, "\nsample: {sample}"),
        None => Ok(()),
    }
}

/// Writes where and why a run stopped early.
fn stopped(to: &mut dyn Write, run: &Run) -> io::Result<()> {
    let (Some((launch, _)), Some(why)) = (&run.stopped, run.stopped_by()) else {
        return Ok(());
    };
    match why {
        StopReason::Refused => writeln!(to, "\nlaunch {launch} was refused: it did not begin"),
        // The line of the sample says so.
        StopReason::Sampled => Ok(()),
        _ => writeln!(
            to,
            "\nstopped in launch {launch} by {}: its numbers end there",
            why.phrase()
        ),
    }
}

/// Formats sizes as in `4096x1x1`.
fn by([x, y, z]: &[u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

fn stall_table(to: &mut dyn Write, counts: &Counts) -> io::Result<()> {
    writeln!(to, "{:<20} {:>14} {:>8}", "state of warps", "warp-cycles", "share")?;
    for stall in stalls::table(counts) {
        if stall.warp_cycles > 0 {
            let row = format!(
                "{:<20} {:>14} {:>6.1} %  {}",
                stall.state,
                stall.warp_cycles,
                stall.percent,
                bar(stall.percent)
            );
            writeln!(to, "{}", row.trim_end())?;
        }
    }
    Ok(())
}

fn headlines(to: &mut dyn Write, inputs: &Inputs<'_>, table: &[Metric]) -> io::Result<()> {
    for (title, name) in HEADLINES {
        let metric = table.iter().find(|metric| metric.name == name);
        let metric = metric.expect("a headline is a row of the table");
        let (value, unit) = with_unit(metric, inputs);
        writeln!(to, "{title:<26} {value:>14} {unit:<15} {name}")?;
    }
    Ok(())
}

/// The value of a metric and its unit. Bytes have a prefix.
fn with_unit(metric: &Metric, inputs: &Inputs<'_>) -> (String, String) {
    let value = metric.value(inputs);
    match value {
        Value::Number(number) if units::is_scaled(metric.unit) => {
            let scaled = units::scaled(number, metric.unit);
            let (number, unit) = scaled.split_once(' ').unwrap_or((&scaled, ""));
            (number.to_owned(), unit.to_owned())
        }
        Value::Number(_) => (value.to_string(), metric.unit.to_owned()),
        _ => (value.to_string(), String::new()),
    }
}
