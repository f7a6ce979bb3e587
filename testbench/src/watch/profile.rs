//! Collects warp-cycles by state, once per instruction and once per interval of the run.
//!
//! A warp's cycles between two issues are charged to the later instruction. The cycles after its last issue are charged to the last
//! instruction, also if the run stops before the warp ends. So the costs of all instructions add up to the resident cycles, and so do
//! all intervals. Launches that warm up are left out.

use std::collections::BTreeMap;

use warpwave_components::proto::event::{Event, EventKind};
use warpwave_components::sm::subcore::stall;
use warpwave_hw::time::Cycle;

use super::Listener;

/// Warp-cycles by state, in the scheduler's order of states.
pub type States = [u64; stall::STATES];

/// Index of the state of a warp that issues.
pub const SELECTED: usize = stall::WarpState::Selected as usize;

/// Maximum number of intervals of a run. When a run needs more, pairs of intervals are merged.
const MAX_INTERVALS: usize = 240;

/// The cost of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Active lanes, summed over all issues.
    pub lanes: u64,
    /// Warp-cycles by state before its issues. Each issue is one cycle of `selected`.
    pub states: States,
}

impl Cost {
    /// Number of issues.
    pub fn issues(&self) -> u64 {
        self.states[SELECTED]
    }

    /// Warp-cycles in all states but `selected`.
    pub fn waits(&self) -> u64 {
        self.total() - self.issues()
    }

    /// All of its warp-cycles.
    pub fn total(&self) -> u64 {
        self.states.iter().sum()
    }

    /// Adds the cost of another instruction.
    pub fn add(&mut self, other: &Cost) {
        self.lanes += other.lanes;
        add(&mut self.states, &other.states);
    }
}

fn add(to: &mut States, from: &States) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// A resident warp.
#[derive(Default)]
struct Warp {
    grid: u32,
    waits: States,
    last: Option<u32>,
}

/// Collects the costs of a run.
pub struct Profile {
    /// The first cycle that counts.
    first: u64,
    /// True for each launch that only warms up.
    warm_ups: Vec<bool>,
    costs: BTreeMap<(u32, u32), Cost>,
    warps: BTreeMap<(u16, u8, u8), Warp>,
    interval: u64,
    intervals: Vec<States>,
}

impl Default for Profile {
    fn default() -> Self {
        Profile {
            first: 0,
            warm_ups: Vec::new(),
            costs: BTreeMap::new(),
            warps: BTreeMap::new(),
            // Short at first. It doubles whenever the run outgrows the intervals.
            interval: 16,
            intervals: Vec::new(),
        }
    }
}

impl Profile {
    /// Creates an empty profile of the cycles from `first` on.
    pub fn since(first: Cycle) -> Self {
        Profile {
            first: first.0,
            ..Profile::default()
        }
    }

    /// Leaves out the launches that warm up. `warm_ups` has `true` for each of these, by number of the launch.
    pub fn without(self, warm_ups: Vec<bool>) -> Self {
        Profile { warm_ups, ..self }
    }

    /// Charges what the run has left open: the waits of warps that had not ended when it stopped. Call it after the last event.
    pub fn finish(&mut self) {
        for warp in std::mem::take(&mut self.warps).into_values() {
            self.end(&warp);
        }
    }

    /// Charges the waits after a warp's last issue.
    fn end(&mut self, warp: &Warp) {
        // A warp that has issued nothing waits for its first instruction.
        let cost = self.costs.entry((warp.grid, warp.last.unwrap_or(0))).or_default();
        add(&mut cost.states, &warp.waits);
    }

    /// The cost of every issued instruction, by launch and program counter.
    pub fn costs(&self) -> impl Iterator<Item = ((u32, u32), &Cost)> {
        self.costs.iter().map(|(at, cost)| (*at, cost))
    }

    /// Length of an interval, in cycles.
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// Warp-cycles of each interval, from cycle 0 on.
    pub fn intervals(&self) -> &[States] {
        &self.intervals
    }

    /// Adds the cycles `from..to` to a state.
    fn charge(&mut self, state: usize, from: u64, to: u64) {
        // The length of the run is not known before its end.
        while to > self.interval * MAX_INTERVALS as u64 {
            self.merge_pairs();
        }
        let mut at = from;
        while at < to {
            // A wait may span several intervals, each with its own share.
            let n = (at / self.interval) as usize;
            let end = to.min((n as u64 + 1) * self.interval);
            if self.intervals.len() <= n {
                self.intervals.resize(n + 1, States::default());
            }
            self.intervals[n][state] += end - at;
            at = end;
        }
    }

    /// Merges pairs of intervals, which doubles their length.
    fn merge_pairs(&mut self) {
        let pairs = self.intervals.chunks(2).map(|pair| {
            let mut sum = pair[0];
            pair[1..].iter().for_each(|second| add(&mut sum, second));
            sum
        });
        self.intervals = pairs.collect();
        self.interval *= 2;
    }
}

impl Listener for Profile {
    fn event(&mut self, sm: u16, event: &Event) {
        let slot = (sm, event.subcore, event.warp);
        let at = event.at.0;
        match event.kind {
            EventKind::Start { grid, .. } if !self.warm_ups.get(grid as usize).is_some_and(|warms| *warms) => {
                let warp = Warp {
                    grid,
                    ..Warp::default()
                };
                self.warps.insert(slot, warp);
            }
            EventKind::Wait { state, cycles } => {
                let Some(warp) = self.warps.get_mut(&slot) else { return };
                // Only the part of the wait from the first cycle on.
                let cycles = cycles.min(at.saturating_sub(self.first));
                warp.waits[state as usize] += cycles;
                self.charge(state as usize, at - cycles, at);
            }
            EventKind::Issue { pc, lanes, .. } => {
                let Some(warp) = self.warps.get_mut(&slot) else { return };
                // Kept before the first cycle too: the cycles after it may be charged to this instruction.
                warp.last = Some(pc);
                if at < self.first {
                    return;
                }
                let cost = self.costs.entry((warp.grid, pc)).or_default();
                add(&mut cost.states, &std::mem::take(&mut warp.waits));
                cost.states[SELECTED] += 1;
                cost.lanes += u64::from(lanes.count_ones());
                self.charge(SELECTED, at, at + 1);
            }
            EventKind::End => {
                // Its last cycles wait for its stores.
                if let Some(warp) = self.warps.remove(&slot) {
                    self.end(&warp);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emit(profile: &mut Profile, at: u64, kind: EventKind) {
        let event = Event {
            at: Cycle(at),
            subcore: 0,
            warp: 3,
            kind,
        };
        profile.event(0, &event);
    }

    /// A warp that starts in cycle 10 and ends in 30. It issues pc 7 in 14, after 4 cycles of `wait`, and pc 8 in 20.
    fn one_warp(first: u64) -> Profile {
        let mut profile = Profile::since(Cycle(first));
        let wait = stall::WarpState::Wait as u8;
        let issue = |pc| EventKind::Issue {
            pc,
            lanes: 0xff,
            goes_on: true,
        };
        let (grid, block, index) = (2, [0; 3], 0);
        emit(&mut profile, 10, EventKind::Start { grid, block, index });
        emit(&mut profile, 14, EventKind::Wait { state: wait, cycles: 4 });
        emit(&mut profile, 14, issue(7));
        emit(&mut profile, 20, EventKind::Wait { state: wait, cycles: 5 });
        emit(&mut profile, 20, issue(8));
        emit(&mut profile, 30, EventKind::Wait { state: 0, cycles: 9 });
        emit(&mut profile, 30, EventKind::End);
        profile
    }

    #[test]
    fn waits_are_charged_to_the_next_instruction_and_the_rest_to_the_last() {
        let profile = one_warp(0);
        let costs: Vec<_> = profile
            .costs()
            .map(|(at, cost)| (at, cost.issues(), cost.waits(), cost.lanes))
            .collect();
        assert_eq!(costs, [((2, 7), 1, 4, 8), ((2, 8), 1, 5 + 9, 8)]);
    }

    #[test]
    fn cycles_before_the_first_one_are_left_out() {
        // Cycle 17 is within the wait before the second issue: 3 of its 5 cycles count.
        let profile = one_warp(17);
        let costs: Vec<_> = profile
            .costs()
            .map(|(at, cost)| (at, cost.issues(), cost.waits()))
            .collect();
        assert_eq!(costs, [((2, 8), 1, 3 + 9)]);
        assert_eq!(profile.intervals().iter().flatten().sum::<u64>(), 30 - 17);
    }

    #[test]
    fn waits_that_are_open_at_the_end_of_the_run_are_charged_to_the_last_instruction() {
        let mut profile = one_warp(0);
        let barrier = stall::WarpState::Barrier as u8;
        let (grid, block, index) = (2, [0; 3], 0);
        emit(&mut profile, 40, EventKind::Start { grid, block, index });
        let (pc, lanes, goes_on) = (8, 1, false);
        emit(&mut profile, 40, EventKind::Issue { pc, lanes, goes_on });
        // The scheduler closes the wait when the run stops in cycle 50.
        emit(
            &mut profile,
            50,
            EventKind::Wait {
                state: barrier,
                cycles: 9,
            },
        );
        profile.finish();
        let (_, cost) = profile.costs().find(|(at, _)| *at == (2, 8)).unwrap();
        assert_eq!(cost.states[usize::from(barrier)], 9);
        let lines: u64 = profile.costs().map(|(_, cost)| cost.total()).sum();
        assert_eq!(lines, profile.intervals().iter().flatten().sum::<u64>());
        assert_eq!(lines, 20 + 10);
    }

    #[test]
    fn launch_that_warms_up_is_left_out() {
        let mut profile = Profile::default().without(vec![false, false, true]);
        let (grid, block, index) = (2, [0; 3], 0);
        emit(&mut profile, 10, EventKind::Start { grid, block, index });
        let (pc, lanes, goes_on) = (8, 1, false);
        emit(&mut profile, 10, EventKind::Issue { pc, lanes, goes_on });
        emit(&mut profile, 20, EventKind::Wait { state: 0, cycles: 9 });
        emit(&mut profile, 20, EventKind::End);
        assert_eq!(profile.costs().count(), 0);
        assert_eq!(profile.intervals().len(), 0);
    }

    #[test]
    fn intervals_keep_every_warp_cycle_when_they_are_merged() {
        let mut profile = one_warp(0);
        let total = |profile: &Profile| -> u64 { profile.intervals().iter().flatten().sum() };
        assert_eq!((profile.interval(), total(&profile)), (16, 20));
        assert_eq!(profile.intervals()[0].iter().sum::<u64>(), 6);
        profile.charge(1, 100_000, 100_001);
        assert_eq!((profile.interval(), total(&profile)), (512, 21));
        assert_eq!(profile.intervals()[0].iter().sum::<u64>(), 20);
        assert_eq!(profile.intervals()[195][1], 1);
    }
}
