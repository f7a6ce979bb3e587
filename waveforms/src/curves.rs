//! Signals that no component shows, worked out from those that do: how much an SM issues and holds over time, and what most of
//! its warps wait for.
//!
//! | signal of an SM | is |
//! |---|---|
//! | `ipc` | instructions issued per cycle, over the [`BUCKET`] cycles before |
//! | `occupancy` | resident warps per warp slot, over the same cycles |
//! | `lanes` | running lanes of an issued instruction, over the same cycles |
//! | `top_stall` | the state of most of its warps, those aside that issue or could |
//! | `n_stalled` | how many are in it |

use warpwave_hw::time::Cycle;

use crate::recorder::Change;
use crate::signal::{Kind, Signal};

/// Cycles that a curve's value covers. A power of two, so that values are exact.
pub const BUCKET: u64 = 64;

/// A warp in one of these states waits for nothing; an empty slot has the last.
pub const NOT_STALLED: [&str; 3] = ["not_selected", "selected", "empty"];

/// A mean over time of a sum of signals.
struct Curve {
    place: u32,
    sum: u64,
    /// The sum over the bucket's cycles so far, up to `since`.
    area: u64,
    since: u64,
    over: Over,
    shown: u64,
}

/// What the area of a curve is divided by.
#[derive(Clone, Copy)]
enum Over {
    /// So many cycles times the most that the sum can be.
    All(f64),
    /// The area of the curve before it.
    CurveBefore,
}

impl Curve {
    fn change(&mut self, now: u64, from: Option<u64>, to: Option<u64>) {
        self.area += self.sum * (now - self.since);
        self.since = now;
        self.sum = self.sum + to.unwrap_or(0) - from.unwrap_or(0);
    }

    /// The area of the bucket that ends now.
    fn end_bucket(&mut self, now: u64) -> u64 {
        self.change(now, None, None);
        std::mem::take(&mut self.area)
    }
}

/// The state that most warps wait in.
struct TopStall {
    place: u32,
    names: &'static [&'static str],
    counts: Vec<u32>,
    shown: (Option<u64>, Option<u64>),
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

    /// The first of the most frequent states and its count.
    fn top(&self) -> (Option<u64>, Option<u64>) {
        let waits = |state: &usize| self.counts[*state] > 0 && !NOT_STALLED.contains(&self.names[*state]);
        let states = (0..self.names.len()).filter(waits);
        let top = states.max_by_key(|&state| (self.counts[state], std::cmp::Reverse(state)));
        (
            top.map(|state| state as u64),
            Some(top.map_or(0, |state| u64::from(self.counts[state]))),
        )
    }
}

/// What a signal adds to.
#[derive(Clone, Copy)]
enum Role {
    Nothing,
    Curve(usize),
    /// A warp's state: the SM's top stall.
    State(usize),
}

/// All signals that are worked out.
pub struct Curves {
    roles: Vec<Role>,
    curves: Vec<Curve>,
    stalls: Vec<TopStall>,
    /// Stalls with a change in this cycle.
    touched: Vec<usize>,
    next: Cycle,
}

impl Curves {
    /// What can be worked out from these signals; it is added to them.
    pub fn new(signals: &mut Vec<Signal>, start: Cycle) -> Curves {
        let mut curves = Curves {
            roles: vec![Role::Nothing; signals.len()],
            curves: Vec::new(),
            stalls: Vec::new(),
            touched: Vec::new(),
            next: Cycle::NEVER,
        };
        for sm in scopes_of_sms(signals) {
            curves.add_sm(&sm, signals);
        }
        curves.curves.iter_mut().for_each(|curve| curve.since = start.0);
        if !curves.curves.is_empty() {
            curves.next = start + BUCKET;
        }
        curves
    }

    fn add_sm(&mut self, sm: &[String], signals: &mut Vec<Signal>) {
        let in_sm = |signal: &&Signal| signal.scope.starts_with(sm);
        let n_before = self.curves.len();
        let slots = signals.iter().filter(in_sm).filter(|s| is_warp_state(s)).count();
        let whole = |most: usize| Over::All((BUCKET * most.max(1) as u64) as f64);
        for (name, input, over) in [
            ("ipc", "issue_valid", whole(1)),
            ("lanes", "issue_lanes", Over::CurveBefore),
            ("occupancy", "live_warps", whole(slots)),
        ] {
            let inputs = places(signals, sm, |signal| signal.name == input);
            let is_possible = match over {
                Over::All(_) => slots > 0 || name == "ipc",
                Over::CurveBefore => self.curves.len() > n_before,
            };
            if !inputs.is_empty() && is_possible {
                inputs
                    .iter()
                    .for_each(|&n| self.roles[n] = Role::Curve(self.curves.len()));
                self.curves.push(Curve {
                    place: push(signals, sm, name, Kind::Real),
                    sum: 0,
                    area: 0,
                    since: 0,
                    over,
                    shown: 0f64.to_bits(),
                });
            }
        }
        let inputs = places(signals, sm, is_warp_state);
        let Some(names) = inputs.first().and_then(|&n| signals[n].kind.states()) else {
            return;
        };
        inputs
            .iter()
            .for_each(|&n| self.roles[n] = Role::State(self.stalls.len()));
        self.stalls.push(TopStall {
            place: push(signals, sm, "top_stall", Kind::State(names)),
            names,
            counts: vec![0; names.len()],
            shown: (None, Some(0)),
        });
        push(signals, sm, "n_stalled", Kind::Vector(8));
    }

    /// The first values, those of the signals given: nothing is worked out yet but what they already say.
    pub fn begin(&mut self, values: &mut [Option<u64>]) {
        for (&role, &value) in self.roles.iter().zip(values.iter()) {
            match role {
                Role::Nothing => {}
                Role::Curve(curve) => self.curves[curve].sum += value.unwrap_or(0),
                Role::State(stall) => self.stalls[stall].change(None, value),
            }
        }
        for curve in &self.curves {
            values[curve.place as usize] = Some(curve.shown);
        }
        for stall in &mut self.stalls {
            stall.shown = stall.top();
            (values[stall.place as usize], values[stall.place as usize + 1]) = stall.shown;
        }
    }

    /// The next cycle in which a curve may change by itself.
    pub fn next(&self) -> Cycle {
        self.next
    }

    /// A signal changes.
    #[inline]
    pub fn see(&mut self, now: Cycle, signal: u32, from: Option<u64>, to: Option<u64>) {
        match self.roles[signal as usize] {
            Role::Nothing => {}
            Role::Curve(curve) => self.curves[curve].change(now.0, from, to),
            Role::State(stall) => {
                self.stalls[stall].change(from, to);
                self.touched.push(stall);
            }
        }
    }

    /// Adds what changes in this cycle, once all of its changes are seen.
    pub fn take(&mut self, now: Cycle, step: &mut Vec<Change>) {
        let before = step.len();
        for stall in self.touched.drain(..) {
            let stall = &mut self.stalls[stall];
            let (state, count) = stall.top();
            let (old_state, old_count) = std::mem::replace(&mut stall.shown, (state, count));
            step.extend((state != old_state).then_some((stall.place, state)));
            step.extend((count != old_count).then_some((stall.place + 1, count)));
        }
        if now == self.next {
            self.next = now + BUCKET;
            let mut area_before = 0;
            for curve in &mut self.curves {
                let area = curve.end_bucket(now.0);
                let mean = match curve.over {
                    Over::All(most) => area as f64 / most,
                    Over::CurveBefore if area_before == 0 => 0.0,
                    Over::CurveBefore => area as f64 / area_before as f64,
                };
                area_before = area;
                let mean = mean.to_bits();
                if std::mem::replace(&mut curve.shown, mean) != mean {
                    step.push((curve.place, Some(mean)));
                }
            }
        }
        step[before..].sort_unstable_by_key(|change| change.0);
    }
}

/// The scopes of all SMs, in order.
fn scopes_of_sms(signals: &[Signal]) -> Vec<Vec<String>> {
    let mut sms: Vec<Vec<String>> = Vec::new();
    for signal in signals {
        if let Some(n) = signal.scope.iter().position(|name| name.starts_with("sm["))
            && !sms.iter().any(|sm| sm[..] == signal.scope[..=n])
        {
            sms.push(signal.scope[..=n].to_vec());
        }
    }
    sms
}

/// Whether this is the state of a warp slot.
pub fn is_warp_state(signal: &Signal) -> bool {
    signal.name == "state" && signal.scope.last().is_some_and(|scope| scope.starts_with("warp["))
}

fn places(signals: &[Signal], sm: &[String], wanted: impl Fn(&Signal) -> bool) -> Vec<usize> {
    let wanted = |n: &usize| signals[*n].scope.starts_with(sm) && wanted(&signals[*n]);
    (0..signals.len()).filter(wanted).collect()
}

fn push(signals: &mut Vec<Signal>, sm: &[String], name: &str, kind: Kind) -> u32 {
    signals.push(Signal {
        scope: sm.to_vec(),
        name: name.into(),
        kind,
        also_in: None,
    });
    signals.len() as u32 - 1
}
