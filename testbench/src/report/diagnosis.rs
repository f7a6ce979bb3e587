//! The diagnosis of a launch: where its time went, what bounds it, and the causes that its counters name.
//!
//! ```text
//! LaunchRun + GpuConfig --> Facts --> phases | speed of light | occupancy | causes, most important first
//! ```
//!
//! | Threshold | Use | Source |
//! |---|---|---|
//! | 60 % | a unit below it is not the bound | the profiler's rule `SOLBottleneck`: below 60 % of both peaks a kernel is bound by latency |
//! | 50 % | a lower occupancy is a problem | lesson `speed-of-light`: `sm__warps_active` below 50 % |
//! | 20 % | a larger share of stalls is a cause | lesson `speed-of-light`: `long_scoreboard` above 20 % |
//!
//! A cause has a share: the part of the warps' time, or of the launch, that it explains. It ranks causes; it is no promise of a speed-up.

mod access;
mod facts;
mod launch;
mod phases;
mod sites;
mod speed;
mod stall;

use serde::Serialize;

use self::facts::Facts;
use super::metrics;
use super::stalls::Stall;
use crate::bench::{LaunchRun, Run, StopReason};

pub use phases::Phases;
pub use sites::Place;
pub use speed::{Bound, SpeedOfLight};

/// Least use of a unit that bounds a kernel, in per cent (the profiler's rule `SOLBottleneck`).
const BUSY: f64 = 60.0;
/// Least occupancy that is no problem, in per cent (lesson `speed-of-light`).
const OCCUPIED: f64 = 50.0;
/// Least share of a cause in the time of warps (lesson `speed-of-light`).
const MATTERS: f64 = 0.2;
/// Least share of a cause in a report. Assumed.
const NOTICED: f64 = 0.1;
/// Maximum number of causes in a report.
const CAUSES: usize = 3;

/// The occupancy that the limits allow, and the one reached.
#[derive(Clone, Debug, Serialize)]
pub struct OccupancyReached {
    /// Warps that the limits allow, in per cent of an SM's warp slots.
    pub theoretical: f64,
    /// Resident warps in per cent of the warp slots, in cycles in which an SM held warps.
    pub achieved: f64,
    /// The resource that limits the theoretical occupancy.
    pub limiter: String,
}

/// A reason for the time of a launch.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    /// The kind, such as `bank_conflict`.
    pub kind: &'static str,
    /// One line with its figures.
    pub text: String,
    /// The change that may help.
    pub advice: String,
    /// The instruction that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
    /// Share of the time that it explains, 0 to 1.
    pub share: f64,
    /// The warp states that it explains. If it explains at least half of a state, that state is no cause of its own.
    #[serde(skip)]
    states: &'static [&'static str],
    /// True if the code of the kernel is at fault. Such a cause ranks before the others if it [matters](MATTERS).
    #[serde(skip)]
    is_fault: bool,
}

/// The diagnosis of one launch.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// The first cause as one line.
    pub headline: String,
    /// Cycles of the launch by phase.
    pub phases: Phases,
    /// Use of the SMs and of the memory path.
    pub speed_of_light: SpeedOfLight,
    /// What bounds the launch.
    pub bound: Bound,
    /// Theoretical and achieved occupancy.
    pub occupancy: OccupancyReached,
    /// At most three causes, the most important one first.
    pub causes: Vec<Cause>,
}

impl Diagnosis {
    /// `failed_by` is why the launch failed, if it did. Its time then has no causes.
    fn of(facts: &Facts<'_>, failed_by: Option<StopReason>) -> Self {
        let speed_of_light = SpeedOfLight::of(facts);
        // A launch before or after a sample has no cycle, so nothing took its time.
        let is_counted = facts.launch.cycles > 0;
        let causes = match is_counted && failed_by.is_none() {
            true => causes(facts),
            false => Vec::new(),
        };
        let bound = speed_of_light.bound();
        let headline = match (failed_by, causes.first()) {
            (Some(why), _) => format!("stopped by {}", why.phrase()),
            (None, Some(cause)) => cause.text.clone(),
            (None, None) if is_counted => bound.sentence(),
            (None, None) => "no cycle of the launch is counted".to_owned(),
        };
        Diagnosis {
            headline,
            phases: facts.phases,
            bound,
            occupancy: OccupancyReached {
                theoretical: facts.launch.shape.occupancy.percent,
                achieved: facts.achieved(),
                limiter: facts.launch.shape.occupancy.limiter.to_string(),
            },
            speed_of_light,
            causes,
        }
    }
}

/// The diagnoses of all launches of a run, in order.
pub fn of_run(run: &Run) -> Vec<Diagnosis> {
    let metrics = metrics::all();
    let diagnose = |(index, launch): (usize, &LaunchRun)| {
        let failed_by = run.launch_stopped_by(index).filter(|why| why.is_failure());
        Diagnosis::of(&Facts::new(launch, &run.config, metrics), failed_by)
    };
    run.launches.iter().enumerate().map(diagnose).collect()
}

/// The headline of a run, as one line. `None` without launches.
///
/// A launch is a candidate if its first cause is a fault of the code that matters. It also takes at least half the cycles of the longest
/// launch. The headline is that of the candidate with the most cycles lost to its fault. Without a candidate, it is that of the longest
/// launch. Warm-up launches count only if there are no others.
///
/// The headline of a run that stopped begins with the reason. That of a launch which failed has nothing else.
pub fn headline(run: &Run, diagnoses: &[Diagnosis]) -> Option<String> {
    let (Some((launch, _)), Some(why)) = (&run.stopped, run.stopped_by()) else {
        return main_cause(run, diagnoses);
    };
    let stopped = format!("stopped in launch {launch} by {}", why.phrase());
    match (why, main_cause(run, diagnoses)) {
        (StopReason::Sampled, cause) => cause,
        (StopReason::Interrupted | StopReason::Limit, Some(cause)) => Some(format!("{stopped}; until then: {cause}")),
        _ => Some(stopped),
    }
}

/// The first cause of the launch that the headline is about.
fn main_cause(run: &Run, diagnoses: &[Diagnosis]) -> Option<String> {
    let (index, diagnosis) = worst(run, diagnoses)?;
    let launch = &run.launches[index];
    Some(match run.launches.len() {
        1 => diagnosis.headline.clone(),
        _ => format!(
            "launch {index} ({}): {}",
            launch.name.as_ref().unwrap_or(&launch.entry),
            diagnosis.headline
        ),
    })
}

/// The launch that the headline is about, with its index. Of equal launches it is the first one.
fn worst<'a>(run: &Run, diagnoses: &'a [Diagnosis]) -> Option<(usize, &'a Diagnosis)> {
    // A warm-up is diagnosed only if there is no other launch.
    let only_warm_ups = run.launches.iter().all(|launch| launch.is_warm_up);
    let counts = |index: usize| only_warm_ups || !run.launches[index].is_warm_up;
    let cycles = |index: usize| run.launches[index].cycles;
    let all = || diagnoses.iter().enumerate().filter(|(index, _)| counts(*index));
    let longest = all().map(|(index, _)| cycles(index)).max()?;
    let cost = |&(index, diagnosis): &(usize, &Diagnosis)| {
        let fault = diagnosis.causes.first().filter(|cause| cause.comes_first());
        let is_long = cycles(index) * 2 >= longest;
        let lost = fault
            .filter(|_| is_long)
            .map_or(0.0, |cause| cause.share * cycles(index) as f64);
        (lost, cycles(index))
    };
    // Of equal launches, `max_by` would take the last one.
    all().rev().max_by(|a, b| {
        let (a, b) = (cost(a), cost(b));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    })
}

impl Cause {
    /// True for a fault that matters. It ranks before all other causes.
    fn comes_first(&self) -> bool {
        self.is_fault && self.share >= MATTERS
    }
}

/// The causes with a noticeable share: faults that matter, then all others by share.
fn causes(facts: &Facts<'_>) -> Vec<Cause> {
    let mut causes: Vec<Cause> = [access::all(facts), launch::all(facts), stall::saturated(facts)].concat();
    // A cause explains a stall if it covers at least half of it: a share is 0 to 1, and `percent` is 0 to 100.
    let explains =
        |cause: &Cause, stall: &Stall| cause.states.contains(&stall.state) && cause.share * 200.0 >= stall.percent;
    // The largest stall comes last, since the other causes may explain it.
    causes.extend(stall::top(facts, |stall| {
        causes.iter().any(|cause| explains(cause, stall))
    }));
    causes.retain(|cause| cause.share >= NOTICED);
    causes.sort_by(|a, b| {
        let by_fault = b.comes_first().cmp(&a.comes_first());
        by_fault.then(b.share.total_cmp(&a.share))
    });
    causes.truncate(CAUSES);
    causes
}
