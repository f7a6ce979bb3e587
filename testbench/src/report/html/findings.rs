//! Known performance problems that are visible in the counters of a run.

use super::{Page, percent, thousands};
use crate::report::metrics;

/// Name and description of a problem.
pub(super) type Finding = (&'static str, String);

/// All problems found, the most certain ones first.
pub(super) fn all(page: &Page<'_>) -> Vec<Finding> {
    [
        conflicts(page),
        coalescing(page, "loads", "global_ld_lane_bytes", "global_ld_sectors"),
        coalescing(page, "stores", "global_st_lane_bytes", "global_st_sectors"),
        lanes(page),
        bandwidth(page),
        occupancy(page),
        issue(page),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn sum(page: &Page<'_>, block: &str, name: &'static str) -> u64 {
    page.run.totals.sum(block, name).unwrap_or(0)
}

fn metric(page: &Page<'_>, name: &str) -> Option<f64> {
    metrics::find(name)?.value(&page.run.inputs()).number()
}

fn conflicts(page: &Page<'_>) -> Option<Finding> {
    let [passes, conflicts] = [
        ["shared_ld_passes", "shared_st_passes", "shared_atom_passes"],
        ["shared_ld_conflicts", "shared_st_conflicts", "shared_atom_conflicts"],
    ]
    .map(|names| names.into_iter().map(|name| sum(page, "shared", name)).sum::<u64>());
    (percent(conflicts, passes) >= 20.0).then(|| {
        let times = passes as f64 / (passes - conflicts).max(1) as f64;
        let text = format!(
            "shared memory took {} passes, {} of them because of bank conflicts: {times:.1} times as many as \
             without conflicts. The LSU queue fills up, also for global accesses.",
            thousands(passes),
            thousands(conflicts)
        );
        ("Bank conflicts", text)
    })
}

fn coalescing(page: &Page<'_>, what: &str, bytes: &'static str, sectors: &'static str) -> Option<Finding> {
    let (used, moved) = (sum(page, "lsu", bytes), 32 * sum(page, "lsu", sectors));
    let share = percent(used, moved);
    (moved > 0 && share <= 60.0).then(|| {
        let text = format!(
            "global {what} use {share:.0} % of the bytes in the sectors that they access: neighbouring lanes should access \
             neighbouring bytes."
        );
        ("Scattered accesses", text)
    })
}

fn lanes(page: &Page<'_>) -> Option<Finding> {
    let lanes = metric(page, "smsp__thread_inst_executed_per_inst_executed.ratio")?;
    (lanes <= 24.0).then(|| {
        let text = format!(
            "an instruction runs in {lanes:.1} of 32 lanes on average: warps diverge, or blocks have partial warps."
        );
        ("Divergence", text)
    })
}

fn bandwidth(page: &Page<'_>) -> Option<Finding> {
    let used = metric(page, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")?;
    (used >= 60.0).then(|| {
        let text =
            format!("{used:.0} % of the memory bandwidth is used: the kernel must move fewer bytes to be much faster.");
        ("Memory bandwidth", text)
    })
}

fn occupancy(page: &Page<'_>) -> Option<Finding> {
    let reached = metric(page, "sm__warps_active.avg.pct_of_peak_sustained_active")?;
    (reached <= 40.0).then(|| {
        let text = format!("the achieved occupancy is {reached:.0} %: there may be too few warps to hide latencies.");
        ("Few warps", text)
    })
}

fn issue(page: &Page<'_>) -> Option<Finding> {
    let used = metric(page, "sm__inst_issued.avg.pct_of_peak_sustained_active")?;
    (used >= 60.0).then(|| {
        let text = format!(
            "{used:.0} % of the issue slots are used: the kernel must issue fewer instructions to be much faster."
        );
        ("Busy schedulers", text)
    })
}
