//! One tab per launch: its diagnosis, phases, speed of light, occupancy, warp states and memory chart.

use maud::{Markup, html};

use super::source::ptx_anchor;
use super::{Page, calculator, heading, memory, stalls, thousands};
use crate::bench::LaunchRun;
use crate::report::diagnosis::{Diagnosis, Phases};

/// Maximum number of tabs. Of more launches, the longest ones have one.
const TABS: usize = 12;

/// Colour and meaning of each phase, in the order of [`Phases::each`].
const PHASES: [(&str, &str); 4] = [
    ("#8d939b", "no block was sent yet, or the host was told of the end"),
    (
        "#e69f00",
        "blocks were sent until no slot was free or no block was left",
    ),
    ("#009e73", "each block that ended made room for the next one"),
    ("#d55e00", "blocks ended and none was left to follow"),
];

pub(super) fn markup(page: &Page<'_>, diagnoses: &[Diagnosis]) -> Markup {
    let launches = &page.run.launches;
    let mut shown: Vec<_> = (0..launches.len()).collect();
    shown.sort_by_key(|&index| std::cmp::Reverse(launches[index].cycles));
    // The tab of the longest launch is open.
    let first = shown.first().copied();
    // Sorted by length before the cut, and by index after it.
    shown.truncate(TABS);
    shown.sort_unstable();
    html! {
        (heading(
            "Each launch",
            "Choose a launch. Speed of light is the use of the busiest unit in per cent of its peak, over the whole launch.",
        ))
        div.tabs {
            @for &index in &shown {
                @let launch = &launches[index];
                @let id = format!("launch-{index}");
                input type="radio" name="launch" id=(id) checked[Some(index) == first];
                label for=(id) { (index) ": " (launch.name.as_ref().unwrap_or(&launch.entry)) }
                div.pane {
                    h3.print { "Launch " (index) ": " (launch.entry) }
                    (pane(page, launch, &diagnoses[index]))
                }
            }
        }
        @if launches.len() > TABS {
            p.soft { "The " (TABS) " longest of " (launches.len()) " launches have a tab." }
        }
    }
}

fn pane(page: &Page<'_>, launch: &LaunchRun, diagnosis: &Diagnosis) -> Markup {
    let config = &page.run.config;
    html! {
        p { (super::capitalized(&diagnosis.bound.sentence())) ". " (thousands(launch.cycles)) " cycles." }
        (causes(diagnosis))
        (phases(&diagnosis.phases))
        (speed(diagnosis))
        h3 { "Occupancy" }
        @let occupancy = &diagnosis.occupancy;
        p {
            b { (format_args!("{:.1} %", occupancy.achieved)) } " achieved, "
            b { (format_args!("{:.1} %", occupancy.theoretical)) } " in theory. The limit is " b { (occupancy.limiter) }
            ". The dots below are this launch."
        }
        (calculator::markup(launch, config))
        h3 { "Warp states" }
        (stalls::bars(&launch.counts))
        h3 { "Memory" }
        (memory::levels(&launch.counts, &launch.inputs(config)))
    }
}

fn causes(diagnosis: &Diagnosis) -> Markup {
    html! {
        ol.findings {
            @for cause in &diagnosis.causes {
                li title=(format_args!("explains {:.0} % of the time", cause.share * 100.0)) {
                    b { (super::capitalized(&cause.text)) } ". "
                    @if let Some(place) = &cause.at { a href={ "#" (ptx_anchor(place.file.as_deref())) "-" (place.line) } { "Go to the line" } ". " }
                    "Try: " (cause.advice) "."
                }
            }
        }
    }
}

/// A bar with the share of each phase.
fn phases(phases: &Phases) -> Markup {
    html! {
        h3 { "Phases" }
        div.stage {
            @for ((name, cycles), (colour, means)) in phases.each().into_iter().zip(PHASES) {
                @let share = phases.share(cycles) * 100.0;
                i style={ "width:" (format_args!("{share:.2}")) "%;background:" (colour) }
                    title={ (name) ": " (thousands(cycles)) " cycles, " (format_args!("{share:.1} %")) ": " (means) } {}
            }
        }
        div.legend {
            @for ((name, cycles), (colour, means)) in phases.each().into_iter().zip(PHASES) {
                span title=(means) {
                    i style={ "background:" (colour) } {}
                    (name) " " (format_args!("{:.1} %", phases.share(cycles) * 100.0))
                }
            }
        }
    }
}

/// A bar for each unit of the speed of light, with a mark at 60 %.
fn speed(diagnosis: &Diagnosis) -> Markup {
    let speed = &diagnosis.speed_of_light;
    let rows = [
        (
            "SM",
            speed.sm,
            "the SMs' busiest resource: issue slots, a pipe or the LSU",
        ),
        ("memory", speed.memory, "the busiest stage of the memory path"),
        ("L1", speed.l1, "the L1s"),
        ("L2", speed.l2, "the L2 slices"),
        ("device memory", speed.dram, "the data buses of the memory channels"),
    ];
    html! {
        h3 { "Speed of light" }
        div.lights {
            @for (name, percent, means) in rows {
                span title=(means) { (name) }
                div.light title={ (means) ": " (format_args!("{percent:.1} %")) } {
                    i style={ "width:" (format_args!("{:.1}", percent.min(100.0))) "%" } {}
                }
                span.n { (format_args!("{percent:.1} %")) }
            }
        }
        p.soft { "The line is at 60 %: a launch with both SM and memory below it is bound by latency." }
    }
}
