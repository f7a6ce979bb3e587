//! Two charts over time: resident warps by state, and instructions per cycle.

use maud::{Markup, html};
use warpwave_components::sm::subcore::stall::NAMES;

use super::{Page, chart, heading, stall_text};
use crate::report::svg::{Axis, Plot, Scale};
use crate::watch::profile::{SELECTED, States};

/// Size of the charts, in pixels.
const SIZES: [(u32, u32); 2] = [(1040, 320), (1040, 220)];

pub(super) fn markup(page: &Page<'_>) -> Markup {
    let order = order(page.profile.intervals());
    html! {
        (heading(
            "Over time",
            "Above: resident warps per SM by state; the top edge is the occupancy. Below: instructions per cycle.",
        ))
        div.legend {
            @for &state in &order {
                span { i style={ "background:" (stall_text::of(NAMES[state]).colour) } {} (NAMES[state]) }
            }
        }
        (chart(&warps(page, &order)))
        (chart(&instructions(page)))
    }
}

/// Edges of the intervals in cycles, from cycle 0 on. There is one edge more than intervals.
fn edges(page: &Page<'_>) -> Vec<f64> {
    let length = page.profile.interval();
    (0..=page.profile.intervals().len())
        .map(|n| (n as u64 * length) as f64)
        .collect()
}

/// Factor that converts an interval's warp-cycles over all SMs to warps per SM.
fn per_sm(page: &Page<'_>) -> f64 {
    1.0 / (f64::from(page.run.config.n_sms()) * page.profile.interval() as f64)
}

/// Resident warps per SM, by state.
fn warps(page: &Page<'_>, order: &[usize]) -> Markup {
    let (edges, per_sm, intervals) = (edges(page), per_sm(page), page.profile.intervals());
    let layer = |&state: &usize| {
        let heights = intervals.iter().map(|states| states[state] as f64 * per_sm);
        (NAMES[state], stall_text::of(NAMES[state]).colour, heights.collect())
    };
    let layers: Vec<_> = order.iter().map(layer).collect();
    let limit = page.run.config.limits.max_warps_per_sm;
    let resident = intervals
        .iter()
        .map(|states| states.iter().sum::<u64>() as f64 * per_sm);
    let x = Axis::new("cycle", Scale::Linear, 0.0, edges.last().copied().unwrap_or(1.0));
    let y = Axis::new("warps", Scale::Linear, 0.0, top(resident, f64::from(limit)));
    // A stack of layers: its top is the number of resident warps.
    let mut plot = Plot::new(&format!("Warps per SM (at most {limit})"), SIZES[0], x, y);
    plot.layers(&layers, &edges);
    plot.finish()
}

/// Instructions per cycle and SM.
fn instructions(page: &Page<'_>) -> Markup {
    let (edges, per_sm) = (edges(page), per_sm(page));
    let ipc: Vec<_> = page
        .profile
        .intervals()
        .iter()
        .map(|states| states[SELECTED] as f64 * per_sm)
        .collect();
    // A scheduler issues at most one instruction in a cycle.
    let peak = f64::from(page.run.config.sm.subcores);
    let end = edges.last().copied().unwrap_or(1.0);
    let x = Axis::new("cycle", Scale::Linear, 0.0, end);
    let y = Axis::new("instructions", Scale::Linear, 0.0, top(ipc.iter().copied(), peak));
    let title = format!("Instructions per cycle and SM (at most {peak})");
    let mut plot = Plot::new(&title, SIZES[1], x, y);
    let points: Vec<_> = edges.iter().copied().zip(ipc).collect();
    plot.steps("issued", stall_text::of("selected").colour, &points, end);
    plot.finish()
}

/// The upper end of an axis: the limit if the curve exceeds a third of it. Otherwise slightly above the curve.
fn top(curve: impl Iterator<Item = f64>, limit: f64) -> f64 {
    let highest = curve.fold(0.0, f64::max);
    if highest > limit / 3.0 { limit } else { highest * 1.3 }
}

/// The states that occur, in the order of the layers from the bottom: `selected`, then by share.
fn order(intervals: &[States]) -> Vec<usize> {
    let total = |state: usize| intervals.iter().map(|states| states[state]).sum::<u64>();
    let mut order: Vec<_> = (0..NAMES.len()).filter(|state| total(*state) > 0).collect();
    order.sort_by_key(|state| (*state != SELECTED, std::cmp::Reverse(total(*state))));
    order
}
