//! Target: the L1.5 constant cache of an SM between its sub-cores and its LSU.
//!
//! Oracle: a list of lines per set, least recently used first, and one lookup per cycle in turn. It gives the due cycle of each fill.
//! Each request gets one fill. The fills of a requester come in the order of their due cycles, none before its own.

use std::collections::{BTreeMap, VecDeque};

use arbitrary::Arbitrary;
use warpwave_components::config;
use warpwave_components::proto::constant::ConstantLine;
use warpwave_components::sm::constant::{ConstantCache, Ports};
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::H100;

/// Bytes of a line of the requesters.
const LINE: u32 = 64;

/// Cycles of a sub-core's miss in two links of one cycle, and of a constant load outside the cache. The doc of the component has them.
const OUTSIDE: [u64; 2] = [2, 7];

/// A cache and its requests.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    /// Sub-cores. The LSU is one more requester.
    #[arbitrary(with = within(0..=4))]
    subcores: u8,
    #[arbitrary(with = within(1..=4))]
    latency: u32,
    #[arbitrary(with = one_of(&[4, 1, 2, 8]))]
    depth: u32,
    paces: [Pace; 5],
    #[arbitrary(with = one_of(&[4, 1, 2, 3]))]
    sets: u32,
    #[arbitrary(with = one_of(&[2, 1, 4]))]
    ways: u32,
    /// Bytes of a line of the cache.
    #[arbitrary(with = one_of(&[256, 64, 128]))]
    line: u32,
    /// A hit of a sub-core and of the LSU, and the further cycles of a miss.
    #[arbitrary(with = one_of(&[79, 3, 20]))]
    immediate: u32,
    #[arbitrary(with = one_of(&[89, 8, 30]))]
    load: u32,
    #[arbitrary(with = one_of(&[156, 0, 1, 40]))]
    more: u32,
    #[arbitrary(with = up_to(60))]
    requests: Vec<Request>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Request {
    requester: u8,
    /// Cycles after the request before it.
    #[arbitrary(with = one_of(&[0, 1, 5, 90, 300]))]
    wait: u64,
    #[arbitrary(with = one_of(&[0, 3]))]
    bank: u8,
    /// The line of 64 bytes.
    #[arbitrary(with = within(0..=40))]
    line: u32,
    /// True if another launch begins with this request.
    #[arbitrary(with = one_of(&[false, false, false, false, false, false, false, true]))]
    launches: bool,
}

/// A line in the model.
#[derive(Clone, Copy)]
struct Held {
    line: u32,
    arrives: u64,
}

/// The cache without links.
#[derive(Default)]
struct Model {
    grid: Option<u32>,
    /// By set: the least recently used line first.
    sets: BTreeMap<u32, Vec<Held>>,
    /// The requester served last.
    last: usize,
    /// The first cycle without a lookup.
    next: u64,
    hits: u64,
    merged: u64,
    misses: u64,
}

struct Neighbours {
    input: Input,
    sources: Vec<Source<ConstantLine>>,
    sinks: Vec<Sink<ConstantLine>>,
    model: Model,
    /// By requester: the cycle from which the cache sees each request.
    visible: Vec<VecDeque<(u64, ConstantLine)>>,
    /// By requester: due cycles and lines of the fills to come.
    due: Vec<VecDeque<(u64, ConstantLine)>>,
}

impl Neighbours {
    fn start(&mut self) {
        let n = self.sources.len();
        self.model = Model::default();
        (self.visible, self.due) = (vec![VecDeque::new(); n], vec![VecDeque::new(); n]);
        let (mut at, mut grid) = (0, 0);
        for request in self.input.requests.clone() {
            at += request.wait;
            grid += u32::from(request.launches);
            let line = ConstantLine::number(request.bank, request.line * LINE, LINE);
            self.sources[usize::from(request.requester) % n].push(at, ConstantLine { grid, line });
        }
    }

    /// Looks requests up until cycle `now`. The cache sees a request one latency after it was sent.
    fn look_up(&mut self, now: u64) {
        let n = self.visible.len();
        for cycle in self.model.next..=now {
            let is_visible = |of: &VecDeque<(u64, ConstantLine)>| of.front().is_some_and(|&(at, _)| at <= cycle);
            let turns = (1..=n).map(|k| (self.model.last + k) % n);
            let Some(requester) = turns.into_iter().find(|&at| is_visible(&self.visible[at])) else {
                continue;
            };
            let (_, line) = self.visible[requester].pop_front().expect("it is visible");
            self.model.last = requester;
            let is_lsu = requester + 1 == n;
            let hit = match is_lsu {
                true => u64::from(self.input.load) - OUTSIDE[1],
                false => u64::from(self.input.immediate) - OUTSIDE[0],
            };
            let due = self.model.due(&self.input, line, cycle, hit);
            let fills = &mut self.due[requester];
            let at = fills.iter().filter(|fill| fill.0 <= due).count();
            fills.insert(at, (due, line));
        }
        self.model.next = now + 1;
    }
}

impl Model {
    /// The cycle in which the fill of a line leaves at the earliest.
    fn due(&mut self, input: &Input, ConstantLine { grid, line }: ConstantLine, now: u64, hit: u64) -> u64 {
        if self.grid != Some(grid) {
            self.grid = Some(grid);
            self.sets.clear();
        }
        // Numbers of lines begin with 1. Bank 0 has the addresses below 2^18. The launch has written it.
        let is_parameter = u64::from(line - 1) * u64::from(LINE) < 1 << 18;
        let line = (line - 1) / (input.line / LINE) + 1;
        let set = self.sets.entry(line % input.sets).or_default();
        let held = match set.iter().position(|held| held.line == line) {
            Some(at) => {
                let held = set.remove(at);
                *(if held.arrives > now {
                    &mut self.merged
                } else {
                    &mut self.hits
                }) += 1;
                held
            }
            None => {
                self.misses += 1;
                if set.len() == input.ways as usize {
                    set.remove(0);
                }
                let arrives = match is_parameter {
                    true => now,
                    false => now + hit + u64::from(input.more),
                };
                Held { line, arrives }
            }
        };
        set.push(held);
        held.arrives.max(now + hit)
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.look_up(now.0);
        for requester in 0..self.sources.len() {
            if let Some(line) = self.sinks[requester].take(now) {
                let Some((due, expected)) = self.due[requester].pop_front() else {
                    panic!("requester {requester} gets {line:?}, which no request needs");
                };
                assert_eq!(line, expected, "the fill of requester {requester} in cycle {now:?}");
                let earliest = due + u64::from(self.input.latency);
                assert!(now.0 >= earliest, "{line:?} comes in cycle {now:?}, not {earliest}");
            }
            let visible = &mut self.visible[requester];
            let latency = u64::from(self.input.latency);
            self.sources[requester].tick_with(now, |&line| visible.push_back((now.0 + latency, line)));
        }
        let waits = |lists: &[VecDeque<(u64, ConstantLine)>]| lists.iter().any(|list| !list.is_empty());
        waits(&self.visible) || waits(&self.due) || !self.sources.iter().all(Source::is_empty)
    }

    fn reset(&mut self) {
        self.sources.iter_mut().for_each(Source::clear);
        self.sinks.iter_mut().for_each(Sink::clear);
        self.start();
    }

    fn check_end(&self) {
        let Model {
            hits, merged, misses, ..
        } = self.model;
        assert_eq!(hits + merged + misses, self.input.requests.len() as u64, "lookups");
        features::note((hits.ilog2_or_zero(), merged.ilog2_or_zero(), misses.ilog2_or_zero()));
    }

    fn digest(&self) -> u64 {
        combine(self.sinks.iter().map(Sink::digest))
    }
}

/// Orders of magnitude, for features.
trait Magnitude {
    fn ilog2_or_zero(self) -> u32;
}

impl Magnitude for u64 {
    fn ilog2_or_zero(self) -> u32 {
        self.checked_ilog2().map_or(0, |log| log + 1)
    }
}

/// Runs the cache.
///
/// # Panics
/// If a fill is missing, doubled, early or out of order. If the cache breaks the contract.
pub fn check(input: Input) {
    let config = config::Constant {
        line: LINE,
        l15_size: input.sets * input.ways * input.line,
        l15_line: input.line,
        l15_ways: input.ways,
        immediate_miss_latency: input.immediate,
        l15_latency: input.load,
        l2_latency: input.load + input.more,
        ..H100.sm.constant
    };
    let build = |wiring: &Wiring| {
        let (mut sources, mut sinks, mut requests, mut fills) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for requester in 0..=usize::from(input.subcores) {
            let (source, port) = wiring.input(input.latency, input.depth);
            sources.push(Source::new(source));
            requests.push(port);
            let (port, sink) = wiring.output(input.latency, input.depth);
            fills.push(port);
            sinks.push(Sink::new(sink, input.paces[requester]));
        }
        let mut world = Neighbours {
            input: input.clone(),
            sources,
            sinks,
            model: Model::default(),
            visible: Vec::new(),
            due: Vec::new(),
        };
        world.start();
        let ports = Ports { requests, fills };
        (ConstantCache::new(Path::root("constant"), config, ports), world)
    };
    check_component(build, input.second, 200_000);
}
