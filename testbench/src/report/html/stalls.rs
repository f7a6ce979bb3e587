//! The section on stall states: a bar per state, with the share of all warp-cycles.

use maud::{Markup, html};

use super::{Page, heading, stall_text, thousands};
use crate::report::counts::Counts;
use crate::report::stalls;

/// Least share in per cent of a state with an explanation below its bar.
const EXPLAINED: f64 = 5.0;

/// Width of the longest bar, in per cent of the column. The rest holds its number.
const LONGEST_BAR: f64 = 78.0;

pub(super) fn markup(page: &Page<'_>) -> Markup {
    let title = match page.run.launches.len() {
        1 => "Where warps spent their cycles",
        _ => "Where warps spent their cycles, in all launches",
    };
    html! {
        (heading(
            title,
            "A resident warp is in one state in each cycle. The names are the profiler's. The bars add up to 100 %.",
        ))
        (bars(&page.run.totals))
    }
}

/// A bar per state, the longest one first.
pub(super) fn bars(counts: &Counts) -> Markup {
    let mut table = stalls::table(counts);
    table.retain(|stall| stall.warp_cycles > 0);
    table.sort_by_key(|stall| std::cmp::Reverse(stall.warp_cycles));
    // The longest bar fills the column, so small shares stay visible.
    let widest = table.first().map_or(1.0, |stall| stall.percent);
    html! {
        div.bars {
            @for stall in &table { (bar(stall, widest)) }
        }
    }
}

fn bar(stall: &stalls::Stall, widest: f64) -> Markup {
    let text = stall_text::of(stall.state);
    let width = stall.percent / widest * LONGEST_BAR;
    html! {
        div.name { (stall.state) }
        div.bar title={ (thousands(stall.warp_cycles)) " warp-cycles: the warp " (text.means) } {
            i style={ "width:" (format_args!("{width:.1}")) "%;background:" (text.colour) } {}
            span { (format_args!("{:.1} %", stall.percent)) }
        }
        @if stall.percent >= EXPLAINED {
            div.why { (text.means) ": " (text.advice) }
        }
    }
}
