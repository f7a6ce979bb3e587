//! What each instruction cost, and how the machine was used over time: issues and waits by instruction and by stretch of cycles.
//!
//! A warp's cycles between two of its issues are the price of the later one; what it does after its last one is that one's. So the
//! cycles of all instructions add up to the warps' resident cycles, and so do those of all stretches.

use std::collections::BTreeMap;

use warpwave_components::proto::event::{Event, EventKind};
use warpwave_components::sm::subcore::stall;

use super::Listener;

/// Warp-cycles by state, in the scheduler's order of states.
pub type States = [u64; stall::STATES];

/// Place of the state of a warp that issues.
pub const SELECTED: usize = stall::WarpState::Selected as usize;

/// Stretches that a run is cut into, at most.
const STRETCHES: usize = 240;

/// What one instruction cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Running lanes over all issues.
    pub lanes: u64,
    /// Warp-cycles of waits for it, and its issues as the state `selected`.
    pub states: States,
}

impl Cost {
    /// How often it was issued.
    pub fn issues(&self) -> u64 {
        self.states[SELECTED]
    }

    /// Warp-cycles spent waiting for it.
    pub fn waits(&self) -> u64 {
        self.total() - self.issues()
    }

    /// All of its warp-cycles.
    pub fn total(&self) -> u64 {
        self.states.iter().sum()
    }

    /// Adds another instruction's cost.
    pub fn add(&mut self, other: &Cost) {
        self.lanes += other.lanes;
        add(&mut self.states, &other.states);
    }
}

fn add(to: &mut States, from: &States) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// A warp that is resident.
#[derive(Default)]
struct Warp {
    grid: u32,
    waits: States,
    last: Option<u32>,
}

/// Collects costs.
pub struct Profile {
    costs: BTreeMap<(u32, u32), Cost>,
    warps: BTreeMap<(u16, u8, u8), Warp>,
    stretch: u64,
    stretches: Vec<States>,
}

impl Default for Profile {
    fn default() -> Self {
        Profile {
            costs: BTreeMap::new(),
            warps: BTreeMap::new(),
            stretch: 16,
            stretches: Vec::new(),
        }
    }
}

impl Profile {
    /// The cost of every instruction that was issued, by launch and program counter.
    pub fn costs(&self) -> impl Iterator<Item = ((u32, u32), &Cost)> {
        self.costs.iter().map(|(at, cost)| (*at, cost))
    }

    /// Cycles of a stretch.
    pub fn stretch(&self) -> u64 {
        self.stretch
    }

    /// Warp-cycles of each stretch from cycle 0 on.
    pub fn stretches(&self) -> &[States] {
        &self.stretches
    }

    /// Charges the cycles from `from` until before `to` to a state.
    fn spend(&mut self, state: usize, from: u64, to: u64) {
        while to > self.stretch * STRETCHES as u64 {
            self.fold();
        }
        let mut at = from;
        while at < to {
            let n = (at / self.stretch) as usize;
            let end = to.min((n as u64 + 1) * self.stretch);
            if self.stretches.len() <= n {
                self.stretches.resize(n + 1, States::default());
            }
            self.stretches[n][state] += end - at;
            at = end;
        }
    }

    /// Makes stretches twice as long.
    fn fold(&mut self) {
        let pairs = self.stretches.chunks(2).map(|pair| {
            let mut sum = pair[0];
            pair[1..].iter().for_each(|second| add(&mut sum, second));
            sum
        });
        self.stretches = pairs.collect();
        self.stretch *= 2;
    }
}

impl Listener for Profile {
    fn event(&mut self, sm: u16, event: &Event) {
        let slot = (sm, event.subcore, event.warp);
        let at = event.at.0;
        match event.kind {
            EventKind::Start { grid, .. } => {
                let warp = Warp {
                    grid,
                    ..Warp::default()
                };
                self.warps.insert(slot, warp);
            }
            EventKind::Wait { state, cycles } => {
                if let Some(warp) = self.warps.get_mut(&slot) {
                    warp.waits[state as usize] += cycles;
                }
                self.spend(state as usize, at - cycles, at);
            }
            EventKind::Issue { pc, lanes, .. } => {
                if let Some(warp) = self.warps.get_mut(&slot) {
                    let cost = self.costs.entry((warp.grid, pc)).or_default();
                    add(&mut cost.states, &std::mem::take(&mut warp.waits));
                    cost.states[SELECTED] += 1;
                    cost.lanes += u64::from(lanes.count_ones());
                    warp.last = Some(pc);
                }
                self.spend(SELECTED, at, at + 1);
            }
            EventKind::End => {
                if let Some(warp) = self.warps.remove(&slot)
                    && let Some(last) = warp.last
                {
                    let cost = self.costs.entry((warp.grid, last)).or_default();
                    add(&mut cost.states, &warp.waits);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_hw::time::Cycle;

    fn emit(profile: &mut Profile, at: u64, kind: EventKind) {
        let event = Event {
            at: Cycle(at),
            subcore: 0,
            warp: 3,
            kind,
        };
        profile.event(0, &event);
    }

    /// A warp that starts in cycle 10, issues 7 in 14 after 4 cycles of `wait`, 8 in 20, and is over in 30.
    fn one_warp() -> Profile {
        let mut profile = Profile::default();
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
    fn waits_are_the_price_of_the_next_instruction_and_the_rest_that_of_the_last() {
        let profile = one_warp();
        let costs: Vec<_> = profile
            .costs()
            .map(|(at, cost)| (at, cost.issues(), cost.waits(), cost.lanes))
            .collect();
        assert_eq!(costs, [((2, 7), 1, 4, 8), ((2, 8), 1, 5 + 9, 8)]);
    }

    #[test]
    fn stretches_hold_every_warp_cycle_once_however_often_they_are_folded() {
        let mut profile = one_warp();
        let total = |profile: &Profile| -> u64 { profile.stretches().iter().flatten().sum() };
        assert_eq!((profile.stretch(), total(&profile)), (16, 20));
        assert_eq!(profile.stretches()[0].iter().sum::<u64>(), 6);
        profile.spend(1, 100_000, 100_001);
        assert_eq!((profile.stretch(), total(&profile)), (512, 21));
        assert_eq!(profile.stretches()[0].iter().sum::<u64>(), 20);
        assert_eq!(profile.stretches()[195][1], 1);
    }
}
