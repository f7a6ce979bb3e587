//! How the machine was used over time: resident warps by state, and instructions per cycle.

use std::fmt::Write;

use warpwave_components::sm::subcore::stall::NAMES;

use super::{Page, chart, section, words};
use crate::report::svg::{Axis, Plot, Scale};
use crate::watch::profile::{SELECTED, States};

/// Size of the charts, in pixels.
const SIZES: [(u32, u32); 2] = [(1040, 320), (1040, 220)];

pub(super) fn write(out: &mut String, page: &Page<'_>) {
    section(
        out,
        "Over time",
        "Above, how many warps were resident on an SM and what they did; the top edge is the occupancy. Below, instructions per cycle.",
    );
    let stretches = page.profile.stretches();
    // What lies before the first warp is the launch's way to the SMs: it is part of the time.
    let length = page.profile.stretch();
    let edges: Vec<f64> = (0..=stretches.len()).map(|n| (n as u64 * length) as f64).collect();
    let per_sm = 1.0 / (f64::from(page.run.config.n_sms()) * length as f64);
    let end = edges.last().copied().unwrap_or(1.0);
    let x = || Axis::new("cycle", Scale::Linear, 0.0, end);
    let order = order(stretches);
    out.push_str("<div class=\"legend\">");
    for &state in &order {
        let (name, colour) = (NAMES[state], words::of(NAMES[state]).colour);
        let _ = write!(out, "<span><i style=\"background:{colour}\"></i>{name}</span>");
    }
    out.push_str("</div>\n");
    let layer = |&state: &usize| {
        let heights = stretches.iter().map(|states| states[state] as f64 * per_sm);
        (NAMES[state], words::of(NAMES[state]).colour, heights.collect())
    };
    let layers: Vec<_> = order.iter().map(layer).collect();
    let limit = page.run.config.limits.max_warps_per_sm;
    let resident = stretches
        .iter()
        .map(|states| states.iter().sum::<u64>() as f64 * per_sm);
    let y = Axis::new("warps", Scale::Linear, 0.0, top(resident, f64::from(limit)));
    let mut plot = Plot::new(&format!("Warps per SM (at most {limit})"), SIZES[0], x(), y);
    plot.layers(&layers, &edges);
    chart(out, &plot.finish());
    let ipc: Vec<_> = stretches
        .iter()
        .map(|states| states[SELECTED] as f64 * per_sm)
        .collect();
    let peak = f64::from(page.run.config.sm.subcores);
    let y = Axis::new("instructions", Scale::Linear, 0.0, top(ipc.iter().copied(), peak));
    let mut plot = Plot::new(
        &format!("Instructions per cycle and SM (at most {peak})"),
        SIZES[1],
        x(),
        y,
    );
    let points: Vec<_> = edges.iter().copied().zip(ipc).collect();
    plot.steps("issued", words::of("selected").colour, &points, end);
    chart(out, &plot.finish());
}

/// Where an axis ends: at the limit where a curve comes near it, else a little above the curve, which would never leave the floor.
fn top(curve: impl Iterator<Item = f64>, limit: f64) -> f64 {
    let highest = curve.fold(0.0, f64::max);
    if highest > limit / 3.0 { limit } else { highest * 1.3 }
}

/// States that occurred: work at the bottom, then by their share.
fn order(stretches: &[States]) -> Vec<usize> {
    let total = |state: usize| stretches.iter().map(|states| states[state]).sum::<u64>();
    let mut order: Vec<_> = (0..NAMES.len()).filter(|state| total(*state) > 0).collect();
    order.sort_by_key(|state| (*state != SELECTED, std::cmp::Reverse(total(*state))));
    order
}
