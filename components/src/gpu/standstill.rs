//! Finds launches that can never end although warps run: every warp repeats a loop that changes nothing.
//!
//! | Phase | Ends when |
//! |---|---|
//! | watch | a period of `gigathread.standstill_cycles` passes without a sign of progress |
//! | compare | every warp is stuck: a standstill; or there is progress, a warp computes, or there are [`SAMPLES`] samples: watch again |
//!
//! Signs of progress are the [`PROGRESS`] counters: CTAs begin or end, stores are sent, atomics change a word, or bulk copies and products
//! write shared memory.
//! In the second phase the host samples the state of each warp every [`STRIDE`] cycles: program counters, registers and predicates. A
//! warp is stuck if it returns to its first state after another one, waits at a barrier, or branches to itself.
//!
//! Memory and every stuck warp are as they were before. So each warp would do the same again, and none could be woken: the launch cannot
//! end. A warp that reads a clock never returns to a state.
//!
//! The samples are at fixed cycles, so a run with another quantum or more threads ends alike.

use std::any::Any;

use warpwave_hw::component::Component;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;
use warpwave_isa::flow::Flow;

use super::hang::{Poll, Polls, find_poll};
use crate::sm::subcore::dispatch::Dispatch;
use crate::sm::subcore::regfile::RegFile;
use crate::sm::subcore::scheduler::Scheduler;
use crate::sm::subcore::warp::Warp;

/// Counters that grow when a launch makes progress.
const PROGRESS: [&str; 11] = [
    "ctas",
    "ctas_done",
    "global_st_inst",
    "surface_st_inst",
    "remote_st_inst",
    "shared_st_inst",
    "cluster_lines",
    "products",
    "atomic_sectors_changed",
    "atomic_words_changed",
    "atomic_lines_changed",
];

/// Cycles between two samples: a prime, so that samples fall on all parts of a loop.
const STRIDE: u64 = 97;

/// Maximum number of samples of a period.
const SAMPLES: u32 = 2048;

/// Samples that search for the value that a warp polls. A register may hold it for a short time only.
const LOOKS: u32 = 64;

/// Samples of a warp at its first program counters, each with other registers, after which its loop counts as progress.
const CHANGES: u32 = 8;

/// The search for a standstill during a launch.
pub(super) struct StandstillSearch {
    /// Cycles of a period, 0 to search never.
    period: u64,
    progress: u64,
    /// The last check with progress.
    since: Cycle,
    next: Cycle,
    /// Samples taken in this period.
    samples: u32,
    /// Samples in which every warp was stuck.
    looks: u32,
    suspects: Vec<Suspect>,
}

/// A warp in the second phase.
struct Suspect {
    /// Number of its sub-core, and its slot.
    place: (usize, usize),
    /// Its first state: control flow, and a hash of its registers.
    first: (Flow, u64),
    has_left: bool,
    is_stuck: bool,
    /// Samples at the first program counters with other registers.
    changes: u32,
    /// Its poll, once one is found.
    poll: Option<Poll>,
}

/// The parts of a sub-core with the state of its warps.
type Subcore<'a> = (&'a Scheduler, &'a Dispatch);

impl StandstillSearch {
    /// A search with periods of `period` cycles. With 0 it finds nothing.
    pub(super) fn new(period: u32, start: Cycle) -> Self {
        let period = u64::from(period);
        StandstillSearch {
            period,
            progress: 0,
            since: start,
            next: if period == 0 { Cycle::NEVER } else { start + period },
            samples: 0,
            looks: 0,
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
        let progress = progress(components.clone());
        if progress != self.progress {
            self.progress = progress;
            self.watch(now);
            return None;
        }
        let subcores = subcores(components);
        self.sample(&subcores);
        // A standstill is certain here. More samples only look for the values that the warps poll.
        if !self.suspects.is_empty() && self.suspects.iter().all(|suspect| suspect.is_stuck) {
            self.looks += 1;
            if self.looks == LOOKS || self.suspects.iter().all(|suspect| suspect.poll.is_some()) {
                return Some(self.since);
            }
        }
        self.samples += 1;
        match self.samples {
            SAMPLES => self.watch(now),
            _ => self.next = now + STRIDE,
        }
        None
    }

    /// Begins another period.
    fn watch(&mut self, now: Cycle) {
        (self.since, self.next, self.samples, self.looks) = (now, now + self.period, 0, 0);
        self.suspects.clear();
    }

    /// Compares the state of each warp with its first one, or stores the first ones.
    fn sample(&mut self, subcores: &[Subcore<'_>]) {
        if self.samples == 0 {
            self.suspects = each_warp(subcores)
                .map(|(place, warp, file)| Suspect {
                    place,
                    first: (warp.flow.clone(), state(place.1, warp, file)),
                    has_left: false,
                    is_stuck: is_blocked(warp),
                    changes: 0,
                    poll: None,
                })
                .collect();
            return;
        }
        let mut suspects = self.suspects.iter_mut();
        for (place, warp, file) in each_warp(subcores) {
            // No CTA has begun or ended, but a warp of a CTA may have ended.
            let Some(suspect) = suspects.find(|suspect| suspect.place == place) else {
                // Without suspects this period finds nothing. The next one begins with the warps that are left.
                return self.suspects.clear();
            };
            if suspect.poll.is_none() {
                suspect.poll = find_poll(place.1, warp, file).filter(Poll::is_complete);
            }
            if suspect.is_stuck {
                continue;
            }
            // The hash takes the host long, so it is left out where the control flow differs.
            let is_there = warp.flow == suspect.first.0;
            let is_first = is_there && state(place.1, warp, file) == suspect.first.1;
            suspect.is_stuck = is_blocked(warp) || is_first && suspect.has_left;
            suspect.has_left |= !is_first;
            suspect.changes += u32::from(is_there && !is_first);
            if suspect.changes == CHANGES {
                // The last sample of the period: `check` goes back to the first phase.
                self.samples = SAMPLES - 1;
                return self.suspects.clear();
            }
        }
        if suspects.next().is_some() || self.suspects.len() != each_warp(subcores).count() {
            self.suspects.clear();
        }
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
fn subcores<'a>(components: impl Iterator<Item = &'a dyn Component> + Clone) -> Vec<Subcore<'a>> {
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
fn each_warp<'s>(subcores: &'s [Subcore<'_>]) -> impl Iterator<Item = ((usize, usize), &'s Warp, &'s RegFile)> {
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

/// True if the warp waits at a barrier, or branches to itself for ever. A warp whose stores are in flight is not blocked: memory answers.
fn is_blocked(warp: &Warp) -> bool {
    let is_in_a_loop = || warp.grid.program.branches_to_itself(warp.flow.pc());
    warp.is_held_at_barrier() && warp.stores == 0 || !warp.flow.active().is_empty() && is_in_a_loop()
}
