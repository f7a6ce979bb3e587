//! Signals that are derived from the signals of components.
//!
//! | signal of an SM | value |
//! |---|---|
//! | `ipc` | instructions issued per cycle, mean of the last [`INTERVAL`] cycles |
//! | `occupancy` | resident warps per warp slot, mean of the last [`INTERVAL`] cycles |
//! | `lanes` | active lanes per issued instruction, mean of the last [`INTERVAL`] cycles |
//! | `top_stall` | the most frequent stall reason among the warps; the states of [`NOT_STALLED`] do not count |
//! | `n_stalled` | warps with that stall reason |
//! | `l1_lookups` | cycles in which the L1 looked up tags, per cycle of the last [`INTERVAL`] |
//! | `l1_hit_rate` | the share of those cycles with a hit |
//!
//! | signal of the scope `memory` | value |
//! |---|---|
//! | `xbar_requests`, `xbar_responses` | inputs of the crossbar that sent, per cycle of the last [`INTERVAL`] |
//! | `l2_lookups` | slices that looked up tags, per slice and cycle of the last [`INTERVAL`] |
//! | `l2_hit_rate` | the share of those lookups with a hit |
//! | `dram_gb_per_s` | bytes read and written by all channels, in units of 10^9 bytes per second |
//! | `dram_commands` | reads and writes on the column buses, per channel and cycle of the last [`INTERVAL`] |

use std::collections::HashMap;

use warpwave_hw::time::Cycle;

use crate::recorder::Change;
use crate::signal::{Kind, Signal};

/// Length of the interval of a mean, in cycles. A power of two, so that means are exact.
pub const INTERVAL: u64 = 64;

/// States of a warp slot that are no stall. `empty` is a slot without a warp.
pub const NOT_STALLED: [&str; 3] = ["not_selected", "selected", "empty"];

/// The mean of a sum of signals over an interval.
struct Mean {
    /// Index of the derived signal.
    signal: u32,
    /// The sum of the input signals now.
    sum: u64,
    /// The sum over all cycles of the interval before `since`.
    area: u64,
    since: u64,
    /// The sum at the end of the last interval.
    old_sum: u64,
    denominator: Denominator,
    /// The last value, as the bits of an `f64`.
    value: u64,
}

/// The divisor of an area.
#[derive(Clone, Copy)]
enum Denominator {
    /// The largest possible area: cycles of the interval times the largest sum.
    Constant(f64),
    /// The area of the mean before this one in the list.
    PreviousArea,
    /// No area: the growth of the sum, times this factor. The inputs are counters.
    Growth(f64),
}

impl Mean {
    fn change(&mut self, now: u64, from: Option<u64>, to: Option<u64>) {
        // The sum held from `since` to before this cycle.
        self.area += self.sum * (now - self.since);
        self.since = now;
        self.sum = self.sum + to.unwrap_or(0) - from.unwrap_or(0);
    }

    /// Ends the interval. Returns its area, and the growth of the sum.
    fn end_interval(&mut self, now: u64) -> (u64, u64) {
        self.change(now, None, None);
        // A reset of the machine sets its counters to 0.
        let growth = self.sum.saturating_sub(self.old_sum);
        self.old_sum = self.sum;
        (std::mem::take(&mut self.area), growth)
    }
}

/// The most frequent stall reason of one SM.
struct TopStall {
    /// Index of `top_stall`. The next index is `n_stalled`.
    signal: u32,
    /// A bit for each state that is a stall.
    stalls: u64,
    /// Warps in each state.
    counts: Vec<u32>,
    /// The last values of both signals.
    values: (Option<u64>, Option<u64>),
}

impl TopStall {
    fn change(&mut self, from: Option<u64>, to: Option<u64>) {
        if let Some(state) = from {
            self.counts[state as usize] -= 1;
        }
        if let Some(state) = to {
            self.counts[state as usize] += 1;
        }
    }

    /// The most frequent stall reason and its count. Of equal counts the first state wins.
    fn top(&self) -> (Option<u64>, Option<u64>) {
        let is_stall = |state: &usize| self.counts[*state] > 0 && self.stalls >> *state & 1 == 1;
        let states = (0..self.counts.len()).filter(is_stall);
        // `Reverse`, because `max_by_key` would take the last of equal ones.
        let top = states.max_by_key(|&state| (self.counts[state], std::cmp::Reverse(state)));
        (
            top.map(|state| state as u64),
            Some(top.map_or(0, |state| u64::from(self.counts[state]))),
        )
    }
}

/// The use of a recorded signal.
#[derive(Clone, Copy)]
enum Input {
    Unused,
    /// A term of the sum of this mean.
    Mean(usize),
    /// The state of a warp slot, for this top stall.
    WarpState(usize),
    /// A term of the sums of two means: 1 while the state is in the set.
    States([StateSet; 2]),
}

/// States that count for a mean.
#[derive(Clone, Copy)]
struct StateSet {
    /// A bit for each state.
    states: u64,
    mean: usize,
}

impl StateSet {
    /// 1 if `value` is in the set, else 0.
    fn count(self, value: Option<u64>) -> u64 {
        value.map_or(0, |value| self.states >> value & 1)
    }
}

/// All derived signals.
pub struct DerivedSignals {
    /// The use of each recorded signal.
    inputs: Vec<Input>,
    means: Vec<Mean>,
    stalls: Vec<TopStall>,
    /// Indices of the top stalls with a change in this cycle.
    changed_stalls: Vec<usize>,
    /// The end of the current interval.
    interval_end: Cycle,
}

impl DerivedSignals {
    /// Appends each derived signal that has an input among `signals`. The first interval begins in cycle `start`.
    ///
    /// `clock_khz` is the frequency of the core clock, in kHz.
    pub fn new(signals: &mut Vec<Signal>, start: Cycle, clock_khz: u64) -> DerivedSignals {
        let mut derived = DerivedSignals {
            inputs: vec![Input::Unused; signals.len()],
            means: Vec::new(),
            stalls: Vec::new(),
            changed_stalls: Vec::new(),
            interval_end: Cycle::NEVER,
        };
        for (sm, inside) in signals_by_sm(signals) {
            derived.add_sm(&sm, &inside, signals);
        }
        derived.add_memory(signals, clock_khz);
        derived.means.iter_mut().for_each(|mean| mean.since = start.0);
        if !derived.means.is_empty() {
            derived.interval_end = start + INTERVAL;
        }
        derived
    }

    /// Adds the signals of an SM. `inside` has the indices of its signals.
    fn add_sm(&mut self, sm: &[String], inside: &[usize], signals: &mut Vec<Signal>) {
        let n_before = self.means.len();
        let slots = find_signals(signals, inside, is_warp_state).len();
        let constant = |largest: usize| Denominator::Constant((INTERVAL * largest.max(1) as u64) as f64);
        for (name, input, denominator) in [
            ("ipc", "issue_valid", constant(1)),
            ("lanes", "issue_lanes", Denominator::PreviousArea),
            ("occupancy", "live_warps", constant(slots)),
        ] {
            let inputs = find_signals(signals, inside, |signal| signal.name == input);
            let is_possible = match denominator {
                Denominator::Constant(_) => slots > 0 || name == "ipc",
                Denominator::Growth(_) => true,
                // Lanes are per issued instruction, so `ipc` must come before.
                Denominator::PreviousArea => self.means.len() > n_before,
            };
            if !inputs.is_empty() && is_possible {
                inputs
                    .iter()
                    .for_each(|&n| self.inputs[n] = Input::Mean(self.means.len()));
                self.add_mean(signals, sm, name, denominator);
            }
        }
        self.add_stalls(sm, inside, signals);
        let tags = find_signals(signals, inside, |signal| is_part(signal, "tag", "l1"));
        self.add_lookups(&tags, sm, ["l1_lookups", "l1_hit_rate"], signals);
    }

    /// Adds the signals of the crossbar, the L2 and the HBM.
    fn add_memory(&mut self, signals: &mut Vec<Signal>, clock_khz: u64) {
        let Some(top) = signals.first().and_then(|signal| signal.scope.first()).cloned() else {
            return;
        };
        let scope = [top, "memory".to_owned()];
        let all: Vec<usize> = (0..signals.len()).collect();
        for (name, direction) in [("xbar_requests", "request"), ("xbar_responses", "response")] {
            let is_input = |signal: &Signal| {
                let mut outer = signal.scope.iter().rev().skip(1);
                signal.name == "sends" && outer.next().is_some_and(|scope| scope == direction)
            };
            let inputs = find_signals(signals, &all, is_input);
            if !inputs.is_empty() {
                inputs
                    .iter()
                    .for_each(|&n| self.inputs[n] = Input::Mean(self.means.len()));
                self.add_mean(signals, &scope, name, Denominator::Constant(INTERVAL as f64));
            }
        }
        let tags = find_signals(signals, &all, |signal| is_part(signal, "tag", "l2_slice["));
        self.add_lookups(&tags, &scope, ["l2_lookups", "l2_hit_rate"], signals);
        let moved = find_signals(signals, &all, |signal| is_part(signal, "bytes_moved", "channel["));
        if !moved.is_empty() {
            moved
                .iter()
                .for_each(|&n| self.inputs[n] = Input::Mean(self.means.len()));
            // Bytes in an interval, times its rate in kHz, are thousands of bytes per second.
            let factor = clock_khz as f64 / (INTERVAL as f64 * 1e6);
            self.add_mean(signals, &scope, "dram_gb_per_s", Denominator::Growth(factor));
        }
        let commands = find_signals(signals, &all, |signal| is_part(signal, "column_command", "channel["));
        if let Some(&first) = commands.first() {
            let mean = self.means.len();
            let states = state_set(&signals[first], &["read", "write"]);
            // The second set is unused: it counts nothing.
            let sets = [StateSet { states, mean }, StateSet { states: 0, mean }];
            commands.iter().for_each(|&n| self.inputs[n] = Input::States(sets));
            let largest = INTERVAL * commands.len() as u64;
            self.add_mean(signals, &scope, "dram_commands", Denominator::Constant(largest as f64));
        }
    }

    /// Adds the lookups and the hit rate of these tag pipelines.
    fn add_lookups(&mut self, tags: &[usize], scope: &[String], names: [&str; 2], signals: &mut Vec<Signal>) {
        let Some(&first) = tags.first() else { return };
        let mean = self.means.len();
        let set = |states: &[&str], mean| StateSet {
            states: state_set(&signals[first], states),
            mean,
        };
        // The mean of the lookups comes first: the hit rate divides by its area.
        let sets = [set(&["hit", "miss"], mean), set(&["hit"], mean + 1)];
        tags.iter().for_each(|&n| self.inputs[n] = Input::States(sets));
        let largest = INTERVAL * tags.len() as u64;
        self.add_mean(signals, scope, names[0], Denominator::Constant(largest as f64));
        self.add_mean(signals, scope, names[1], Denominator::PreviousArea);
    }

    fn add_mean(&mut self, signals: &mut Vec<Signal>, scope: &[String], name: &str, denominator: Denominator) {
        self.means.push(Mean {
            signal: add_signal(signals, scope, name, Kind::Real),
            sum: 0,
            area: 0,
            since: 0,
            old_sum: 0,
            denominator,
            value: 0f64.to_bits(),
        });
    }

    fn add_stalls(&mut self, sm: &[String], inside: &[usize], signals: &mut Vec<Signal>) {
        let inputs = find_signals(signals, inside, is_warp_state);
        let Some(names) = inputs.first().and_then(|&n| signals[n].kind.states()) else {
            return;
        };
        inputs
            .iter()
            .for_each(|&n| self.inputs[n] = Input::WarpState(self.stalls.len()));
        self.stalls.push(TopStall {
            signal: add_signal(signals, sm, "top_stall", Kind::State(names)),
            stalls: !state_set(&signals[inputs[0]], &NOT_STALLED),
            counts: vec![0; names.len()],
            values: (None, Some(0)),
        });
        add_signal(signals, sm, "n_stalled", Kind::Vector(8));
    }

    /// Reads the initial values of the inputs, and stores those of the derived signals. A mean begins with 0.
    pub fn begin(&mut self, values: &mut [Option<u64>]) {
        for (&input, &value) in self.inputs.iter().zip(values.iter()) {
            match input {
                Input::Unused => {}
                Input::Mean(mean) => self.means[mean].sum += value.unwrap_or(0),
                Input::WarpState(stall) => self.stalls[stall].change(None, value),
                Input::States(sets) => {
                    for set in sets {
                        self.means[set.mean].sum += set.count(value);
                    }
                }
            }
        }
        for mean in &mut self.means {
            // Counters may have counted before the recording.
            mean.old_sum = mean.sum;
            values[mean.signal as usize] = Some(mean.value);
        }
        for stall in &mut self.stalls {
            stall.values = stall.top();
            (values[stall.signal as usize], values[stall.signal as usize + 1]) = stall.values;
        }
    }

    /// True if a derived signal depends on the recorded signal of this index.
    pub fn reads(&self, signal: usize) -> bool {
        !matches!(self.inputs[signal], Input::Unused)
    }

    /// The next cycle in which a mean may change without a change of its inputs.
    pub fn next(&self) -> Cycle {
        self.interval_end
    }

    /// Notes a change of a recorded signal.
    #[inline]
    pub fn on_change(&mut self, now: Cycle, signal: u32, from: Option<u64>, to: Option<u64>) {
        match self.inputs[signal as usize] {
            Input::Unused => {}
            Input::Mean(mean) => self.means[mean].change(now.0, from, to),
            Input::WarpState(stall) => {
                self.stalls[stall].change(from, to);
                self.changed_stalls.push(stall);
            }
            Input::States(sets) => {
                for set in sets {
                    let (from, to) = (set.count(from), set.count(to));
                    self.means[set.mean].change(now.0, Some(from), Some(to));
                }
            }
        }
    }

    /// Appends the changes of derived signals, after [`on_change`](Self::on_change) for all changes of the cycle.
    pub fn take(&mut self, now: Cycle, changes: &mut Vec<Change>) {
        let before = changes.len();
        // Several warps of an SM may change in one cycle.
        self.changed_stalls.sort_unstable();
        self.changed_stalls.dedup();
        for stall in self.changed_stalls.drain(..) {
            let stall = &mut self.stalls[stall];
            let (state, count) = stall.top();
            let (old_state, old_count) = std::mem::replace(&mut stall.values, (state, count));
            changes.extend((state != old_state).then_some((stall.signal, state)));
            changes.extend((count != old_count).then_some((stall.signal + 1, count)));
        }
        if now == self.interval_end {
            self.interval_end = now + INTERVAL;
            let mut previous_area = 0;
            for mean in &mut self.means {
                let (area, growth) = mean.end_interval(now.0);
                let value = match mean.denominator {
                    Denominator::Constant(largest) => area as f64 / largest,
                    Denominator::Growth(factor) => growth as f64 * factor,
                    Denominator::PreviousArea if previous_area == 0 => 0.0,
                    Denominator::PreviousArea => area as f64 / previous_area as f64,
                };
                previous_area = area;
                let value = value.to_bits();
                if std::mem::replace(&mut mean.value, value) != value {
                    changes.push((mean.signal, Some(value)));
                }
            }
        }
        // A sink takes the signals of a cycle in rising order.
        changes[before..].sort_unstable_by_key(|change| change.0);
    }
}

/// The scopes of all SMs in the order of their first signals, each with the indices of its signals.
fn signals_by_sm(signals: &[Signal]) -> Vec<(Vec<String>, Vec<usize>)> {
    let mut sms: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    let mut places: HashMap<&[String], usize> = HashMap::new();
    for (index, signal) in signals.iter().enumerate() {
        let Some(n) = signal.scope.iter().position(|name| name.starts_with("sm[")) else {
            continue;
        };
        let sm = &signal.scope[..=n];
        let place = *places.entry(sm).or_insert_with(|| {
            sms.push((sm.to_vec(), Vec::new()));
            sms.len() - 1
        });
        sms[place].1.push(index);
    }
    sms
}

/// True for the state of a warp slot.
pub fn is_warp_state(signal: &Signal) -> bool {
    signal.name == "state" && signal.scope.last().is_some_and(|scope| scope.starts_with("warp["))
}

/// True for the signal `name` of a component with a scope that begins with `part`.
fn is_part(signal: &Signal, name: &str, part: &str) -> bool {
    signal.name == name && signal.scope.last().is_some_and(|scope| scope.starts_with(part))
}

/// The set of these states of a signal, with a bit for each.
fn state_set(signal: &Signal, states: &[&str]) -> u64 {
    let names = signal.kind.states().unwrap_or_default();
    let bits = names.iter().enumerate().filter(|(_, name)| states.contains(name));
    bits.fold(0, |set, (n, _)| set | 1 << n)
}

/// The indices of the signals among `inside` for which `matches` holds.
fn find_signals(signals: &[Signal], inside: &[usize], matches: impl Fn(&Signal) -> bool) -> Vec<usize> {
    inside.iter().copied().filter(|&n| matches(&signals[n])).collect()
}

/// Appends a derived signal and returns its index.
fn add_signal(signals: &mut Vec<Signal>, scope: &[String], name: &str, kind: Kind) -> u32 {
    signals.push(Signal {
        scope: scope.into(),
        name: name.into(),
        kind,
        alias_scope: None,
    });
    signals.len() as u32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_rates_are_shares_of_an_interval() {
        let tag = Kind::State(&["idle", "hit", "miss"]);
        let mut signals = vec![
            Signal::new("gpu.l2_slice[0].tag", tag),
            Signal::new("gpu.l2_slice[1].tag", tag),
            Signal::new("gpu.channel[0].column_command", Kind::State(&["none", "read", "write"])),
            Signal::new("gpu.xbar.request.in[0].sends", Kind::Bit),
        ];
        let mut derived = DerivedSignals::new(&mut signals, Cycle(0), 1_000_000);
        let names: Vec<&str> = signals[4..].iter().map(|signal| signal.name.as_str()).collect();
        assert_eq!(names, ["xbar_requests", "l2_lookups", "l2_hit_rate", "dram_commands"]);
        let mut values = vec![Some(0); signals.len()];
        derived.begin(&mut values);
        // Slice 0 hits in 16 cycles, slice 1 misses in 48. The channel reads in 8 cycles, an input sends in 32.
        for (now, signal, from, to) in [
            (0, 0, 0, 1),
            (0, 2, 0, 1),
            (8, 2, 1, 0),
            (16, 0, 1, 0),
            (16, 1, 0, 2),
            (32, 3, 0, 1),
        ] {
            derived.on_change(Cycle(now), signal, Some(from), Some(to));
        }
        let mut changes = Vec::new();
        derived.take(Cycle(INTERVAL), &mut changes);
        let values: Vec<f64> = changes
            .iter()
            .map(|(_, value)| f64::from_bits(value.unwrap()))
            .collect();
        assert_eq!(values, [0.5, 0.5, 0.25, 0.125]);
    }

    #[test]
    fn dram_rate_is_the_growth_of_the_byte_counters_at_the_core_clock() {
        let mut signals = [0, 1]
            .map(|n| Signal::new(&format!("gpu.channel[{n}].bytes_moved"), Kind::Vector(48)))
            .to_vec();
        // 1.5 GHz: an interval of 64 cycles lasts 42.67 ns.
        let mut derived = DerivedSignals::new(&mut signals, Cycle(0), 1_500_000);
        assert_eq!(signals[2].path(), "gpu.memory.dram_gb_per_s");
        let mut values = vec![Some(1_000), Some(64), None];
        derived.begin(&mut values);
        let mut rate = |end: u64, counts: [(u64, u64); 2]| {
            for (signal, (from, to)) in (0..).zip(counts) {
                derived.on_change(Cycle(end - 1), signal, Some(from), Some(to));
            }
            let mut changes = Vec::new();
            derived.take(Cycle(end), &mut changes);
            changes.first().map(|(_, value)| f64::from_bits(value.unwrap()))
        };
        // 2,048 bytes of one channel and 2,048 of the other, in 64 cycles: 64 bytes a cycle.
        assert_eq!(rate(64, [(1_000, 3_048), (64, 2_112)]), Some(96.0));
        // After a reset the counters are 0.
        assert_eq!(rate(128, [(3_048, 0), (2_112, 0)]), Some(0.0));
        assert_eq!(rate(192, [(0, 1_024), (0, 0)]), Some(24.0));
    }

    #[test]
    fn top_stall_is_the_commonest_reason_and_the_first_of_equal_ones() {
        let states = Kind::State(&["membar", "wait", "barrier", "selected", "empty"]);
        let [membar, wait, barrier, selected, empty] = [0, 1, 2, 3, 4].map(Some);
        let mut signals: Vec<Signal> = (0..4)
            .map(|slot| Signal::new(&format!("gpu.sm[0].warp[{slot}].state"), states))
            .collect();
        let mut derived = DerivedSignals::new(&mut signals, Cycle(0), 1_000_000);
        let names: Vec<&str> = signals[4..].iter().map(|signal| signal.name.as_str()).collect();
        assert_eq!(names, ["top_stall", "n_stalled"]);
        let mut values = vec![barrier, wait, selected, empty, None, None];
        derived.begin(&mut values);
        // One warp waits and one is at a barrier. The state `wait` is the first of the two.
        assert_eq!(values[4..], [wait, Some(1)]);
        let mut change = |now, warp: u32, from, to| {
            derived.on_change(Cycle(now), warp, from, to);
            let mut changes = Vec::new();
            derived.take(Cycle(now), &mut changes);
            changes
        };
        // Two warps at a barrier, then two of each, then a third that waits.
        assert_eq!(change(1, 2, selected, barrier), [(4, barrier), (5, Some(2))]);
        assert_eq!(change(2, 3, empty, wait), [(4, wait)]);
        assert_eq!(change(3, 0, barrier, membar), []);
        assert_eq!(change(4, 2, barrier, wait), [(5, Some(3))]);
    }
}
