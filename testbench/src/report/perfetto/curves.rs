//! The curves of a timeline, per SM: instructions per cycle, resident warps, and requests in flight at each level.

use std::collections::BTreeMap;
use std::io::{self, Write};

use warpwave_components::proto::mem::Stage;
use warpwave_hw::time::Cycle;
use warpwave_waveforms::perfetto::PerfettoWriter;

use super::units::Units;
use crate::watch::pipeline::Picture;

/// Interval of the IPC curve, in cycles.
const INTERVAL: u64 = 64;

/// Levels of the memory path: name of the curve, and the stages in which a request enters and leaves the level.
const LEVELS: [(&str, Stage, Stage); 3] = [
    ("requests from LSU to response", Stage::Lsu, Stage::Return),
    ("requests below the L1", Stage::Request, Stage::Response),
    ("requests at memory", Stage::Hbm, Stage::L2Data),
];

/// A curve as its changes by cycle.
type Steps = BTreeMap<Cycle, i64>;

/// Writes all curves.
pub fn write<W: Write>(to: &mut PerfettoWriter<W>, picture: &Picture) -> io::Result<()> {
    let mut issued = BTreeMap::<u16, BTreeMap<u64, u64>>::new();
    let mut resident = BTreeMap::<u16, Steps>::new();
    for row in &picture.rows {
        let intervals = issued.entry(row.sm).or_default();
        *intervals.entry(row.issued().0 / INTERVAL).or_default() += 1;
    }
    for (sm, from, until) in residences(picture) {
        let steps = resident.entry(sm).or_default();
        *steps.entry(from).or_default() += 1;
        *steps.entry(until).or_default() -= 1;
    }
    for (sm, intervals) in issued {
        let mut zero_from = None;
        for (n, count) in intervals {
            // A counter keeps its value until the next one, so a gap needs a 0.
            if let Some(zero_from) = zero_from.filter(|zero_from| *zero_from < n) {
                to.counter(Units::sm_group(sm), "IPC", Cycle(zero_from * INTERVAL), 0.0)?;
            }
            let ipc = count as f64 / INTERVAL as f64;
            to.counter(Units::sm_group(sm), "IPC", Cycle(n * INTERVAL), ipc)?;
            zero_from = Some(n + 1);
        }
        let end = zero_from.unwrap_or(0) * INTERVAL;
        to.counter(Units::sm_group(sm), "IPC", Cycle(end), 0.0)?;
    }
    for (sm, steps) in resident {
        curve(to, sm, "resident warps", &steps)?;
    }
    requests(to, picture)
}

/// The residence of each warp: SM, first cycle, and the cycle after its last one, as far as its rows show it.
fn residences(picture: &Picture) -> Vec<(u16, Cycle, Cycle)> {
    let mut open = BTreeMap::new();
    for row in &picture.rows {
        // A slot holds several warps in turn. Grid, block and index tell them apart.
        let warp = (row.sm, row.subcore, row.slot, row.grid, row.block, row.warp);
        // A warp's first wait begins when it becomes resident, and its last wait ends with it.
        let first = row
            .waits
            .first()
            .map_or(row.issued(), |wait| wait.from.min(row.issued()));
        let last = row
            .waits
            .last()
            .map_or(row.issued() + 1, |wait| wait.to.max(row.issued() + 1));
        let stay = open.entry(warp).or_insert((first, last));
        *stay = (first.min(stay.0), last.max(stay.1));
    }
    open.into_iter()
        .map(|(warp, (from, until))| (warp.0, from, until))
        .collect()
}

fn requests<W: Write>(to: &mut PerfettoWriter<W>, picture: &Picture) -> io::Result<()> {
    for (name, enter, leave) in LEVELS {
        let mut curves = BTreeMap::<u16, Steps>::new();
        for (sm, _, request) in &picture.requests {
            if let (Some(from), Some(until)) = (request.stamps.at(enter), request.stamps.at(leave)) {
                let steps = curves.entry(*sm).or_default();
                *steps.entry(from).or_default() += 1;
                *steps.entry(until).or_default() -= 1;
            }
        }
        for (sm, steps) in curves {
            curve(to, sm, name, &steps)?;
        }
    }
    Ok(())
}

fn curve<W: Write>(to: &mut PerfettoWriter<W>, sm: u16, name: &str, steps: &Steps) -> io::Result<()> {
    let mut value = 0;
    // One request that leaves and one that enters in the same cycle cancel.
    for (at, change) in steps.iter().filter(|(_, change)| **change != 0) {
        value += change;
        to.counter(Units::sm_group(sm), name, *at, value as f64)?;
    }
    Ok(())
}
