//! Cycles worth a look, found while a run is recorded: each becomes a named marker of the view.

use warpwave_hw::time::Cycle;

use crate::curves::{NOT_STALLED, is_warp_state};
use crate::signal::{Kind, Signal};

/// A named cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// What happened, in one word.
    pub name: String,
    /// When.
    pub at: Cycle,
}

/// What a signal tells.
#[derive(Clone, Copy)]
enum Role {
    Nothing,
    /// Blocks or warps are there.
    Launch,
    /// An L1 tag: this state is a miss.
    Tag(u64),
    /// A warp: the state of waiting at a barrier, if it has one, and its place in `since`.
    Warp(Option<u64>, usize),
    /// Cycles that a request took which is answered.
    Age,
}

/// Looks for them.
pub struct Marks {
    roles: Vec<Role>,
    launch: Option<Cycle>,
    miss: Option<Cycle>,
    barrier: Option<Cycle>,
    /// Of each warp, since when it is in its state, and whether it waits.
    since: Vec<(Cycle, bool)>,
    /// Names of the states, to tell those that wait.
    waits: Vec<bool>,
    /// Begin and cycles of the longest wait and the longest request.
    longest_wait: (Cycle, u64),
    worst_request: (Cycle, u64),
}

impl Marks {
    /// Looks at these signals.
    pub fn new(signals: &[Signal], start: Cycle) -> Marks {
        let mut marks = Marks {
            roles: Vec::with_capacity(signals.len()),
            launch: None,
            miss: None,
            barrier: None,
            since: Vec::new(),
            waits: Vec::new(),
            longest_wait: (Cycle::ZERO, 0),
            worst_request: (Cycle::ZERO, 0),
        };
        for signal in signals {
            let role = marks.role(signal, start);
            marks.roles.push(role);
        }
        marks
    }

    fn role(&mut self, signal: &Signal, start: Cycle) -> Role {
        let place = |names: &[&str], name| names.iter().position(|&n| n == name).map(|n| n as u64);
        match (signal.name.as_str(), signal.kind) {
            ("live_warps", _) => Role::Launch,
            ("answer_age", _) => Role::Age,
            ("tag", Kind::State(names)) if signal.scope.last().is_some_and(|scope| scope == "l1") => {
                place(names, "miss").map_or(Role::Nothing, Role::Tag)
            }
            (_, Kind::State(names)) if is_warp_state(signal) => {
                self.waits = names.iter().map(|name| !NOT_STALLED.contains(name)).collect();
                self.since.push((start, false));
                Role::Warp(place(names, "barrier"), self.since.len() - 1)
            }
            _ => Role::Nothing,
        }
    }

    /// A signal changes.
    #[inline]
    pub fn see(&mut self, now: Cycle, signal: u32, to: Option<u64>) {
        match self.roles[signal as usize] {
            Role::Nothing => {}
            Role::Launch => set(&mut self.launch, now, to > Some(0)),
            Role::Tag(miss) => set(&mut self.miss, now, to == Some(miss)),
            Role::Age => {
                if let Some(age) = to.filter(|&age| age > self.worst_request.1) {
                    self.worst_request = (Cycle(now.0.saturating_sub(age)), age);
                }
            }
            Role::Warp(barrier, warp) => {
                set(&mut self.barrier, now, barrier.is_some() && to == barrier);
                let waits = to.is_some_and(|state| self.waits[state as usize]);
                let (since, waited) = std::mem::replace(&mut self.since[warp], (now, waits));
                if waited && now.since(since) > self.longest_wait.1 {
                    self.longest_wait = (since, now.since(since));
                }
            }
        }
    }

    /// What was found, in the order of the letters that the markers get.
    pub fn found(&self) -> Vec<Mark> {
        let longest = |(at, cycles): (Cycle, u64)| (cycles > 0).then_some(at);
        let found = [
            ("launch", self.launch),
            ("first_miss", self.miss),
            ("first_barrier", self.barrier),
            ("worst_request", longest(self.worst_request)),
            ("longest_wait", longest(self.longest_wait)),
        ];
        let mark = |(name, at): (&str, Option<Cycle>)| Some(Mark::new(name, at?));
        found.into_iter().filter_map(mark).collect()
    }
}

impl Mark {
    /// A mark.
    pub fn new(name: &str, at: Cycle) -> Mark {
        Mark { name: name.into(), at }
    }
}

fn set(mark: &mut Option<Cycle>, now: Cycle, holds: bool) {
    if holds {
        mark.get_or_insert(now);
    }
}
