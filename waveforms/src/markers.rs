//! Finds the cycles that get a named marker in the views.
//!
//! | marker | cycle |
//! |---|---|
//! | `launch` | the first warp is resident |
//! | `miss` | the first miss in an L1 |
//! | `barrier` | the first warp waits at a barrier |
//! | `slowest` | the start of the memory request with the longest latency |
//! | `stall` | the start of the longest stall of one warp, in one state |
//!
//! Only recorded signals count. The recorded window bounds all of them.

use bitvec::vec::BitVec;
use warpwave_hw::time::Cycle;

use crate::derived::{NOT_STALLED, is_warp_state};
use crate::signal::{Kind, Signal};

/// A named cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Marker {
    /// The event, as one word.
    pub name: String,
    /// The cycle of the event.
    pub at: Cycle,
}

/// The use of a recorded signal.
#[derive(Clone, Copy)]
enum Input {
    Unused,
    /// The number of resident warps.
    LiveWarps,
    /// The tag pipeline of an L1, with its state for a miss.
    L1Tag(u64),
    /// The state of a warp slot: the state for a barrier, if it has one, and the index in `since`.
    WarpState(Option<u64>, usize),
    /// The latency of a completed request, in cycles.
    Latency,
}

/// Finds the markers while a run is recorded.
pub struct MarkerFinder {
    /// The use of each recorded signal.
    inputs: Vec<Input>,
    launch: Option<Cycle>,
    miss: Option<Cycle>,
    barrier: Option<Cycle>,
    /// For each warp slot, the first cycle of its state, and whether the state is a stall.
    since: Vec<(Cycle, bool)>,
    /// For each warp slot, whether it has held a warp.
    was_used: BitVec,
    /// For each state of a warp slot, whether it is a stall.
    is_stall: BitVec,
    /// The state of a warp slot without a warp.
    empty: Option<u64>,
    /// First cycle and length of the longest stall.
    longest_wait: (Cycle, u64),
    /// First cycle and latency of the slowest request.
    worst_request: (Cycle, u64),
}

impl MarkerFinder {
    /// Creates a finder for these signals. Recording begins in cycle `start`.
    pub fn new(signals: &[Signal], start: Cycle) -> MarkerFinder {
        let mut finder = MarkerFinder {
            inputs: Vec::with_capacity(signals.len()),
            launch: None,
            miss: None,
            barrier: None,
            since: Vec::new(),
            was_used: BitVec::new(),
            is_stall: BitVec::new(),
            empty: None,
            longest_wait: (Cycle::ZERO, 0),
            worst_request: (Cycle::ZERO, 0),
        };
        for signal in signals {
            let input = finder.input(signal, start);
            finder.inputs.push(input);
        }
        finder
    }

    fn input(&mut self, signal: &Signal, start: Cycle) -> Input {
        let index_of = |names: &[&str], name| names.iter().position(|&n| n == name).map(|n| n as u64);
        match (signal.name.as_str(), signal.kind) {
            ("live_warps", _) => Input::LiveWarps,
            ("response_age", _) => Input::Latency,
            ("tag", Kind::State(names)) if signal.scope.last().is_some_and(|scope| scope == "l1") => {
                index_of(names, "miss").map_or(Input::Unused, Input::L1Tag)
            }
            (_, Kind::State(names)) if is_warp_state(signal) => {
                self.is_stall = names.iter().map(|name| !NOT_STALLED.contains(name)).collect();
                self.empty = index_of(names, "empty");
                self.since.push((start, false));
                self.was_used.push(false);
                Input::WarpState(index_of(names, "barrier"), self.since.len() - 1)
            }
            _ => Input::Unused,
        }
    }

    /// True if a marker depends on the recorded signal of this index.
    pub fn reads(&self, signal: usize) -> bool {
        !matches!(self.inputs[signal], Input::Unused)
    }

    /// Notes a change of a recorded signal.
    #[inline]
    pub fn on_change(&mut self, now: Cycle, signal: u32, to: Option<u64>) {
        match self.inputs[signal as usize] {
            Input::Unused => {}
            Input::LiveWarps => set_first(&mut self.launch, now, to > Some(0)),
            Input::L1Tag(miss) => set_first(&mut self.miss, now, to == Some(miss)),
            Input::Latency => {
                if let Some(latency) = to.filter(|&latency| latency > self.worst_request.1) {
                    // The latency is shown in the cycle of the response. The marker is on the request.
                    self.worst_request = (Cycle(now.0.saturating_sub(latency)), latency);
                }
            }
            Input::WarpState(barrier, warp) => {
                set_first(&mut self.barrier, now, barrier.is_some() && to == barrier);
                if to.is_some() && to != self.empty {
                    self.was_used.set(warp, true);
                }
                let is_stall = to.is_some_and(|state| self.is_stall[state as usize]);
                let (since, was_stall) = std::mem::replace(&mut self.since[warp], (now, is_stall));
                // A stall counts when it ends, so one that lasts to the end of the run gets no marker.
                if was_stall && now.since(since) > self.longest_wait.1 {
                    self.longest_wait = (since, now.since(since));
                }
            }
        }
    }

    /// Indices of the states of warp slots that never held a warp.
    pub fn empty_slots(&self) -> Vec<usize> {
        let is_empty = |input: &Input| matches!(input, Input::WarpState(_, warp) if !self.was_used[*warp]);
        let inputs = self.inputs.iter().enumerate();
        inputs.filter(|(_, input)| is_empty(input)).map(|(n, _)| n).collect()
    }

    /// The markers found so far, in the order of their letters in GTKWave.
    pub fn markers(&self) -> Vec<Marker> {
        let longest = |(at, cycles): (Cycle, u64)| (cycles > 0).then_some(at);
        let found = [
            ("launch", self.launch),
            ("miss", self.miss),
            ("barrier", self.barrier),
            ("slowest", longest(self.worst_request)),
            ("stall", longest(self.longest_wait)),
        ];
        let marker = |(name, at): (&str, Option<Cycle>)| Some(Marker::new(name, at?));
        found.into_iter().filter_map(marker).collect()
    }
}

impl Marker {
    /// Creates a marker.
    pub fn new(name: &str, at: Cycle) -> Marker {
        Marker { name: name.into(), at }
    }
}

/// Sets `first` to `now` if `holds` is true for the first time.
fn set_first(first: &mut Option<Cycle>, now: Cycle, holds: bool) {
    if holds {
        first.get_or_insert(now);
    }
}
