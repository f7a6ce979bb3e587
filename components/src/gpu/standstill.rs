//! Finds launches that can never end although warps run: every warp repeats a loop that changes nothing.
//!
//! | Phase | Ends when |
//! |---|---|
//! | watch | a period of `gigathread.standstill_cycles` passes without a sign of progress; up to [`MOST_PERIODS`] after a warp computed |
//! | compare | every warp is stuck: a standstill; or there is progress, a warp computes, or there are [`SAMPLES`] samples: watch again |
//!
//! Signs of progress are the [`PROGRESS`] counters: CTAs begin or end, stores are sent, atomics change a word, bulk copies move data,
//! products write shared memory, or a clock is read.
//! In the second phase the host samples the state of each warp every [`STRIDE`] cycles: program counters, registers and predicates. A
//! warp is stuck in one of these cases:
//!
//! - It returns to its first state after another one.
//! - It waits at a barrier, and the same wait has gone on since before the first state of every other warp.
//! - It branches to itself, and nothing writes the guard of that branch.
//! - It runs code without an end that changes nothing but registers, such as a loop around a sleep.
//! - A polled value alone can end its loop. One turn that began in this phase has stayed in the loop.
//!
//! Memory and every stuck warp are as they were before. So each warp would do the same again, and none could be woken: the launch cannot
//! end. A barrier that opens ends the wait of its warps, so they are not stuck.
//!
//! A warp that reads a clock may return to a state: the time may be in no register. It can leave its loop later. So each read of a clock
//! counts as progress.
//!
//! The samples are at fixed cycles, so a run with another quantum or more threads ends alike. While every warp sleeps or waits at a
//! barrier, no state changes. Samples up to the first end of a sleep are left out, and count as taken.

use std::any::Any;

use warpwave_hw::component::Component;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;
use warpwave_isa::flow::Flow;

use super::hang::{Poll, Polls, Turn, branches_to_itself, copies_to_shared, find_poll, is_in_endless_code, turn};
use crate::config::GpuConfig;
use crate::sm::subcore::dispatch::Dispatch;
use crate::sm::subcore::regfile::RegFile;
use crate::sm::subcore::scheduler::Scheduler;
use crate::sm::subcore::scheduler::longest_sleep;
use crate::sm::subcore::stall::WarpState;
use crate::sm::subcore::warp::Warp;

/// Counters that grow when a launch makes progress.
const PROGRESS: [&str; 14] = [
    "ctas",
    "ctas_done",
    "global_st_inst",
    "surface_st_inst",
    "remote_st_inst",
    "shared_st_inst",
    "local_st_inst",
    "cluster_lines_stored",
    "tma_pieces",
    "products",
    "atomic_sectors_changed",
    "atomic_words_changed",
    "atomic_lines_changed",
    "clock_reads",
];

/// Cycles between two samples: a prime, so that samples fall on all parts of a loop.
const STRIDE: u64 = 97;

/// Samples of a period, unless sleeps need more.
const SAMPLES: u32 = 2048;

/// Sleeps of the longest time that a period holds: a poll returns to its first state after two.
const SLEEPS: u64 = 3;

/// Most periods between two searches. Samples take the host longer than the cycles of a lone warp.
const MOST_PERIODS: u64 = 16;

/// Samples between two sums of the counters of progress. A sum takes the host longer than a sample. Another sum precedes each verdict.
const SAMPLES_PER_SUM: u32 = 32;

/// Samples that search for the value that a warp polls. A register may hold it for a short time only.
const LOOKS: u32 = 64;

/// Samples of a warp at its first program counters, each with other registers, after which its loop counts as progress.
const CHANGES: u32 = 8;

/// The search for a standstill during a launch.
pub(super) struct StandstillSearch {
    /// Cycles of a period, 0 to search never.
    period: u64,
    /// Periods to watch before the next samples. It doubles while warps compute without a sign of progress.
    periods: u64,
    /// Most samples of a period.
    most_samples: u32,
    progress: u64,
    /// The last check with progress.
    since: Cycle,
    next: Cycle,
    /// Samples taken in this period.
    samples: u32,
    /// Samples before the next sum of the counters of progress.
    next_sum: u32,
    /// Samples in which every warp was stuck.
    looks: u32,
    /// Most cycles from the last arrival at a barrier to its opening.
    opening: u64,
    /// The last sample that made every warp return once more.
    last_wait: Cycle,
    suspects: Vec<Suspect>,
}

/// A warp in the second phase.
struct Suspect {
    /// Number of its sub-core, and its slot.
    place: (usize, usize),
    /// Its first state: control flow, and a hash of its registers.
    first: (Flow, u64),
    /// Start of the wait at a barrier in its first state. `None` if it did not wait.
    held_since: Option<Cycle>,
    /// True once it was in its first state in a sample since the last wait of another warp began.
    has_been_there: bool,
    /// True once it has left its first state after that.
    has_left: bool,
    /// True once it has returned to its first state after that.
    has_returned: bool,
    /// True once it is in code that it never leaves, or leaves only after a change of memory.
    is_endless: bool,
    /// True once a sample has shown the begin of a turn of a closed loop.
    has_begun: bool,
    is_stuck: bool,
    /// End of the sleep in the last sample, if no result of the warp was in flight. The warp changes nothing before it.
    asleep_until: Option<Cycle>,
    /// Samples at the first program counters with other registers.
    changes: u32,
    /// Its poll, once one is found.
    poll: Option<Poll>,
}

/// The parts of a sub-core with the state of its warps.
pub(super) type Subcore<'a> = (&'a Scheduler, &'a Dispatch);

impl StandstillSearch {
    /// A search with periods of `gigathread.standstill_cycles`. With 0 it finds nothing.
    pub(super) fn new(config: &GpuConfig, start: Cycle) -> Self {
        let period = u64::from(config.gigathread.standstill_cycles);
        StandstillSearch {
            period,
            periods: 1,
            most_samples: SAMPLES.max((SLEEPS * longest_sleep(config.clocks.core_khz) / STRIDE) as u32),
            progress: 0,
            since: start,
            next: if period == 0 { Cycle::NEVER } else { start + period },
            samples: 0,
            next_sum: 0,
            looks: 0,
            opening: opening(config),
            last_wait: start,
            suspects: Vec::new(),
        }
    }

    /// The cycle of the next check.
    pub(super) fn next(&self) -> Cycle {
        self.next
    }

    /// The polls found so far.
    pub(super) fn polls(&self) -> Polls {
        let polls = self.suspects.iter();
        polls
            .filter_map(|suspect| Some((suspect.place, suspect.poll.clone()?)))
            .collect()
    }

    /// Checks the machine in the cycle [`StandstillSearch::next`]. Returns the last check with progress if the warps stand still.
    pub(super) fn check<'a>(
        &mut self,
        now: Cycle,
        components: impl Iterator<Item = &'a dyn Component> + Clone,
    ) -> Option<Cycle> {
        if self.samples >= self.next_sum {
            self.next_sum = self.samples + SAMPLES_PER_SUM;
            if self.is_progress(components.clone()) {
                self.periods = 1;
                self.watch(now);
                return None;
            }
        }
        let subcores = subcores(components.clone());
        if self.sample(now, &subcores) {
            self.last_wait = now;
        }
        // The last arrival at a barrier may be counted, and the barrier not yet open.
        let may_open = now.since(self.last_wait) <= self.opening;
        let are_stuck = !self.suspects.is_empty() && self.suspects.iter().all(|suspect| suspect.is_stuck);
        // A standstill is certain here. More samples only look for the values that the warps poll.
        if !may_open && are_stuck {
            self.looks += 1;
            if self.looks == LOOKS || self.suspects.iter().all(|suspect| suspect.poll.is_some()) {
                if self.is_progress(components) {
                    self.periods = 1;
                    self.watch(now);
                    return None;
                }
                return Some(self.since);
            }
        }
        let wake = if may_open || are_stuck {
            now
        } else {
            first_change(now, &subcores)
        };
        let strides = strides(now, wake, self.most_samples - self.samples);
        self.samples += strides;
        if self.samples == self.most_samples {
            self.watch(now);
        } else {
            self.next = now + u64::from(strides) * STRIDE;
        }
        None
    }

    /// Adds up the counters of progress. Returns true if they have grown since the last sum.
    fn is_progress<'a>(&mut self, components: impl Iterator<Item = &'a dyn Component>) -> bool {
        let before = std::mem::replace(&mut self.progress, progress(components));
        self.progress != before
    }

    /// Begins another period.
    fn watch(&mut self, now: Cycle) {
        let next = now + self.periods * self.period;
        (self.since, self.next, self.samples, self.looks) = (now, next, 0, 0);
        self.next_sum = 0;
        self.suspects.clear();
    }

    /// Compares the state of each warp with its first one, or stores the first ones. Returns true if every warp must return once more.
    /// That is so if a warp may have begun to wait at a barrier, or was found in a closed loop.
    fn sample(&mut self, now: Cycle, subcores: &[Subcore<'_>]) -> bool {
        if self.samples == 0 {
            self.suspects = each_warp(subcores)
                .map(|(place, warp, file)| Suspect::new(place, warp, file))
                .collect();
            return true;
        }
        let (mut suspects, mut restarts) = (self.suspects.iter_mut(), false);
        for (place, warp, file) in each_warp(subcores) {
            // No CTA has begun or ended, but a warp of a CTA may have ended.
            let Some(suspect) = suspects.find(|suspect| suspect.place == place) else {
                // Without suspects this period finds nothing. The next one begins with the warps that are left.
                self.suspects.clear();
                return false;
            };
            let asleep_until = sleeps_until(now, warp);
            if asleep_until.is_some() && asleep_until == suspect.asleep_until {
                continue;
            }
            suspect.asleep_until = asleep_until;
            if suspect.poll.is_none() {
                suspect.poll = find_poll(place.1, warp, file, false).filter(Poll::is_complete);
            }
            restarts |= suspect.look(warp, file);
            if suspect.changes == CHANGES {
                // The last sample of the period: `check` goes back to the first phase.
                self.samples = self.most_samples - 1;
                self.periods = MOST_PERIODS.min(2 * self.periods);
                self.suspects.clear();
                return false;
            }
        }
        if suspects.next().is_some() || self.suspects.len() != each_warp(subcores).count() {
            self.suspects.clear();
        }
        if restarts {
            // A loop of another warp may open that barrier, and a fence in a closed loop drops lines of the L1. So other warps must return
            // once more from here on.
            self.suspects.iter_mut().for_each(Suspect::forget_return);
        }
        restarts
    }
}

impl Suspect {
    /// A warp in its first state.
    fn new(place: (usize, usize), warp: &Warp, file: &RegFile) -> Self {
        let held_since = held_since(warp);
        let is_endless = is_in_endless_code(warp);
        Suspect {
            place,
            first: (warp.flow.clone(), state(place.1, warp, file)),
            held_since,
            has_been_there: true,
            has_left: false,
            has_returned: false,
            is_endless,
            has_begun: false,
            is_stuck: is_endless || held_since.is_some() || branches_to_itself(place.1, warp, file),
            asleep_until: None,
            changes: 0,
            poll: None,
        }
    }

    /// Compares the warp with its first state. Returns true if every warp must return once more. That is so if this one has begun to wait
    /// at a barrier, or if its loop is found to be closed. The begin of a wait becomes its first state.
    fn look(&mut self, warp: &Warp, file: &RegFile) -> bool {
        let was_endless = self.is_endless;
        let is_closed = self.look_at_turn(warp, file);
        let held_since = held_since(warp);
        let goes_on_waiting = held_since.is_some() && held_since == self.held_since;
        let is_first_stuck = self.is_endless || self.has_returned || goes_on_waiting;
        self.is_stuck = is_first_stuck || branches_to_itself(self.place.1, warp, file);
        if self.is_stuck {
            return self.is_endless != was_endless;
        }
        // The hash takes the host long, so it is left out where the control flow differs.
        let is_there = warp.flow == self.first.0;
        let is_first = is_there && state(self.place.1, warp, file) == self.first.1;
        // The barrier of the first wait has opened, and the warp waits in the same state.
        let waits_once_more = held_since.is_some() && self.held_since.is_some();
        self.has_returned = is_first && (self.has_left || waits_once_more);
        self.is_stuck = self.has_returned;
        self.has_left |= self.has_been_there && !is_first;
        self.has_been_there |= is_first;
        // A closed loop may count its turns.
        self.changes += u32::from(is_there && !is_first && !is_closed);
        let begins_to_wait = !self.is_stuck && held_since.is_some() && self.held_since.is_none();
        if begins_to_wait {
            let (poll, changes) = (self.poll.take(), self.changes);
            let first = Suspect::new(self.place, warp, file);
            *self = Suspect { poll, changes, ..first };
        }
        begins_to_wait
    }

    /// Follows the turns of a closed loop. Returns true if the warp is in one.
    fn look_at_turn(&mut self, warp: &Warp, file: &RegFile) -> bool {
        if self.is_endless {
            return true;
        }
        let turn = turn(self.place.1, warp, file);
        // A turn that began earlier may have loaded before the last store.
        if turn == Some(Turn::Stays) && self.has_begun {
            self.is_endless = !copies_to_shared(&warp.grid.program);
        }
        self.has_begun |= turn == Some(Turn::Begins);
        turn.is_some()
    }

    /// Starts the search for a return to the first state from here.
    fn forget_return(&mut self) {
        self.is_stuck &= !self.has_returned;
        (self.has_been_there, self.has_left, self.has_returned) = (false, false, false);
        self.asleep_until = None;
    }
}

/// The sum of the counters of progress.
fn progress<'a>(components: impl Iterator<Item = &'a dyn Component>) -> u64 {
    // A report that adds up some counters, so no block needs a method for this search.
    struct Sum(u64);
    impl Report for Sum {
        fn count(&mut self, name: &'static str, value: u64) {
            if PROGRESS.contains(&name) {
                self.0 += value;
            }
        }

        fn latency(&mut self, _name: &'static str, _latency: &Latency) {}
    }
    let mut sum = Sum(0);
    components.for_each(|component| component.stats(&mut sum));
    sum.0
}

/// All sub-cores. Schedulers and dispatch units are built in the same order.
pub(super) fn subcores<'a>(components: impl Iterator<Item = &'a dyn Component> + Clone) -> Vec<Subcore<'a>> {
    let schedulers = components.clone().filter_map(|component| {
        let block: &dyn Any = component;
        block.downcast_ref::<Scheduler>()
    });
    let dispatches = components.filter_map(|component| {
        let block: &dyn Any = component;
        block.downcast_ref::<Dispatch>()
    });
    schedulers.zip(dispatches).collect()
}

/// Every resident warp, with the number of its sub-core and its slot.
pub(super) fn each_warp<'s>(
    subcores: &'s [Subcore<'_>],
) -> impl Iterator<Item = ((usize, usize), &'s Warp, &'s RegFile)> {
    let of_subcore = |(n, &(scheduler, dispatch)): (usize, &'s Subcore<'_>)| {
        let warps = scheduler.resident_warps();
        warps.map(move |(slot, warp)| ((n, slot), warp, dispatch.registers()))
    };
    subcores.iter().enumerate().flat_map(of_subcore)
}

/// A hash of the registers and predicates of a warp.
fn state(slot: usize, warp: &Warp, file: &RegFile) -> u64 {
    file.hash(slot, warp.grid.registers as usize)
}

/// Most cycles from the last arrival at a barrier of a block or a cluster to its opening.
fn opening(config: &GpuConfig) -> u64 {
    let barrier = &config.sm.barrier;
    // One unit counts the warps of an SM, one after the other.
    let count = u64::from(config.limits.max_warps_per_sm) * u64::from(barrier.per_warp);
    count + u64::from(barrier.base_latency.max(config.cluster.barrier_latency))
}

/// End of the warp's sleep, if nothing of the warp is in flight: its state is the same until then.
fn sleeps_until(now: Cycle, warp: &Warp) -> Option<Cycle> {
    let is_asleep = warp.pause == Some(WarpState::Sleeping) && warp.resume_at > now;
    (is_asleep && warp.in_flight == 0 && warp.queued == 0).then_some(warp.resume_at)
}

/// The first cycle in which a warp can change its state: the end of a sleep. `now` if a warp neither sleeps nor waits at a barrier.
fn first_change(now: Cycle, subcores: &[Subcore<'_>]) -> Cycle {
    let mut first = Cycle::NEVER;
    for (_, warp, _) in each_warp(subcores) {
        match sleeps_until(now, warp) {
            Some(end) => first = first.min(end),
            None if held_since(warp).is_some() => {}
            None => return now,
        }
    }
    first
}

/// Strides from a sample to the next one: one, or all that are over before the cycle `wake`. At most `left`.
fn strides(now: Cycle, wake: Cycle, left: u32) -> u32 {
    let asleep = wake.0.saturating_sub(now.0) / STRIDE;
    asleep.clamp(1, u64::from(left)) as u32
}

/// Start of the warp's wait at a barrier. `None` for a warp whose stores are in flight: memory answers.
fn held_since(warp: &Warp) -> Option<Cycle> {
    (warp.is_held_at_barrier() && warp.stores == 0).then_some(warp.since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_left_out_up_to_the_last_one_before_a_warp_wakes() {
        let now = Cycle(1000);
        assert_eq!(strides(now, now, 100), 1, "a warp runs");
        assert_eq!(strides(now, now + (2 * STRIDE - 1), 100), 1);
        assert_eq!(strides(now, now + 2 * STRIDE, 100), 2);
        assert_eq!(strides(now, now + 50 * STRIDE + 3, 100), 50);
        // A period has no more samples, also if no warp ever wakes.
        assert_eq!(strides(now, now + 500 * STRIDE, 100), 100);
        assert_eq!(strides(now, Cycle::NEVER, 100), 100);
        // A sleep that has just ended.
        assert_eq!(strides(now, Cycle(990), 100), 1);
    }
}
