//! The text summary of a run: launches, warp states, latencies, and the most important metrics.

use std::io::{self, Write};

use super::{latency, metrics, stalls};
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

/// Writes the summary.
///
/// # Errors
/// If `to` cannot be written.
pub fn summary(to: &mut dyn Write, scenario: &str, run: &Run) -> io::Result<()> {
    let config = &run.config;
    let clock = f64::from(config.clocks.core_khz) / 1e3;
    writeln!(
        to,
        "{scenario} on {}: {} SMs at {clock:.0} MHz\n",
        config.name,
        config.n_sms()
    )?;
    launches(to, run)?;
    stopped(to, run)?;
    if run.launches.is_empty() {
        return Ok(());
    }
    writeln!(to)?;
    stall_table(to, run)?;
    writeln!(to)?;
    if run.totals.latencies().next().is_some() {
        let paths = run.totals.latencies();
        latency::table(to, paths.map(|(path, latency)| (path.to_owned(), latency)))?;
        writeln!(to)?;
    }
    headlines(to, run)
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
            ..
        } = launch;
        let micros = *cycles as f64 * 1e3 / khz;
        writeln!(
            to,
            "{index:<7} {entry:<28} {:<16} {:<14} {cycles:>12} {micros:>9.2} us{}",
            by(grid),
            by(block),
            if *is_warm_up { "  warm-up" } else { "" }
        )?;
    }
    Ok(())
}

/// Writes where and why a run stopped early.
fn stopped(to: &mut dyn Write, run: &Run) -> io::Result<()> {
    let (Some((launch, _)), Some(why)) = (&run.stopped, run.stopped_by()) else {
        return Ok(());
    };
    let by = match why {
        StopReason::Refused => return writeln!(to, "\nlaunch {launch} was refused: it did not begin"),
        StopReason::Interrupted => "an interrupt",
        StopReason::Trap => "a trap",
        StopReason::Deadlock => "a deadlock",
        StopReason::Limit => "the cycle limit",
    };
    writeln!(to, "\nstopped in launch {launch} by {by}: its numbers end there")
}

/// Formats sizes as in `4096x1x1`.
fn by([x, y, z]: &[u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

fn stall_table(to: &mut dyn Write, run: &Run) -> io::Result<()> {
    writeln!(to, "{:<20} {:>14} {:>8}", "state of warps", "warp-cycles", "share")?;
    for stall in stalls::table(&run.totals) {
        if stall.warp_cycles > 0 {
            let bar = "#".repeat((stall.percent / 100.0 * BAR).round() as usize);
            let row = format!(
                "{:<20} {:>14} {:>6.1} %  {bar}",
                stall.state, stall.warp_cycles, stall.percent
            );
            writeln!(to, "{}", row.trim_end())?;
        }
    }
    Ok(())
}

fn headlines(to: &mut dyn Write, run: &Run) -> io::Result<()> {
    let inputs = run.inputs();
    for (title, name) in HEADLINES {
        let metric = metrics::find(name).expect("a headline is a row of the table");
        let value = metric.value(&inputs);
        let unit = if value.number().is_some() { metric.unit } else { "" };
        writeln!(to, "{title:<26} {:>14} {unit:<15} {name}", value.to_string())?;
    }
    Ok(())
}
