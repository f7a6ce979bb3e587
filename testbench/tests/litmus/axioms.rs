//! The axioms of the PTX memory consistency model, and the outcomes that they allow for a litmus program.
//!
//! Names of relations and axioms are those of the PTX ISA, "Memory Consistency Model": morally strong, observation order, Fence-SC
//! order, base causality order, causality order, coherence order. Every access here has the same size, so accesses of one location
//! overlap completely. Every access uses the generic proxy. An atomic is one event that reads and writes.
//! "The paper" is Lustig, Sahasrabuddhe, Giroux, "A Formal Analysis of the NVIDIA PTX Memory Consistency Model" (ASPLOS 2019).
//!
//! The end of the grid synchronizes with the host. So the host finds a write that no other write follows in coherence order.

use std::collections::BTreeSet;

use super::execution::{Event, Events, Kind};
use super::program::{Order, Outcome, Program, Scope};
use super::relation::{MOST, Relation};

/// The outcomes that the model allows.
pub fn allowed(program: &Program) -> BTreeSet<Outcome> {
    let mut outcomes = BTreeSet::new();
    for path in Events::of_paths(program) {
        let judge = Judge::new(program, &path);
        path.for_each_source(|sources, reads_from| {
            let Some(values) = path.values(sources) else {
                return;
            };
            for Execution { finals, .. } in judge.executions(sources, reads_from) {
                let mut prefixes = vec![values.registers.clone()];
                for writes in &finals {
                    let longer = prefixes.iter().flat_map(|prefix| {
                        writes.iter().map(|&write| {
                            let mut outcome = prefix.clone();
                            outcome.push(values.written[write]);
                            outcome
                        })
                    });
                    prefixes = longer.collect();
                }
                outcomes.extend(prefixes);
            }
        });
    }
    outcomes
}

/// An instruction of a program: thread, and place in its code.
pub type Place = (usize, usize);

/// The races of the executions with one outcome.
#[derive(Debug, Default)]
pub struct Races {
    /// Pairs of instructions that race in one of these executions. The first of a pair is the one of the lower thread.
    pub any: BTreeSet<[Place; 2]>,
    /// True if each of these executions has a race, and none of its races is between two writes of one value.
    pub in_all: bool,
}

/// The races of the executions that the model allows with `outcome`. Two accesses by different threads to one location race under three
/// conditions (PTX ISA, "Conflict and data-races"). At least one writes. They are not morally strong. Base causality order does not order
/// them.
pub fn races(program: &Program, outcome: &Outcome) -> Races {
    let mut races = Races {
        in_all: true,
        ..Races::default()
    };
    let mut n_executions = 0;
    for path in Events::of_paths(program) {
        let judge = Judge::new(program, &path);
        path.for_each_source(|sources, reads_from| {
            let Some(values) = path.values(sources) else {
                return;
            };
            let (registers, finals) = outcome.split_at(values.registers.len());
            if values.registers != registers {
                return;
            }
            for execution in judge.executions(sources, reads_from) {
                let ends_with =
                    |(writes, end): (&BTreeSet<usize>, &u32)| writes.iter().any(|&write| values.written[write] == *end);
                if !execution.finals.iter().zip(finals).all(ends_with) {
                    continue;
                }
                n_executions += 1;
                let mut has_race = false;
                for (a, b) in judge.pairs().filter(|&(a, b)| judge.is_race(&execution.base, a, b)) {
                    let [first, second] = [a, b].map(|event| judge.events[event]);
                    has_race |= !(first.writes && second.writes) || values.written[a] != values.written[b];
                    races.any.insert([path.place(a), path.place(b)]);
                }
                races.in_all &= has_race;
            }
        });
    }
    assert!(
        n_executions > 0,
        "{}: no execution has {}",
        program.name,
        program.show(outcome)
    );
    races
}

/// An execution that the axioms allow, with one of its Fence-SC orders.
struct Execution {
    /// Base causality order.
    base: Relation,
    /// Over all coherence orders: the last writes of each location.
    finals: Vec<BTreeSet<usize>>,
}

/// What the axioms need of the events of a path.
struct Judge<'a> {
    events: &'a [Event],
    program_order: Relation,
    morally_strong: Relation,
    /// First and last event of the release patterns, with the write: `[first, write]`.
    releases: Vec<[usize; 2]>,
    /// Acquire patterns: `[read, last]`.
    acquires: Vec<[usize; 2]>,
    /// What barriers synchronize.
    barriers: Relation,
    /// Pairs of morally strong `fence.sc` events of different threads.
    fence_pairs: Vec<[usize; 2]>,
    n_locations: usize,
}

impl<'a> Judge<'a> {
    fn new(program: &Program, path: &'a Events<'_>) -> Self {
        let events = &path.events[..];
        let mut judge = Self {
            events,
            program_order: path.program_order,
            morally_strong: Relation::EMPTY,
            releases: Vec::new(),
            acquires: Vec::new(),
            barriers: Relation::EMPTY,
            fence_pairs: Vec::new(),
            n_locations: program.locations.len(),
        };
        for (a, b) in judge.pairs() {
            judge.add_pair(program, a, b);
        }
        for (n, event) in events.iter().enumerate().filter(|(_, event)| event.thread.is_some()) {
            if event.writes && event.order.releases() {
                judge.releases.push([n, n]);
            }
            if event.returns && event.order.acquires() {
                judge.acquires.push([n, n]);
            }
        }
        for (a, b) in judge.pairs().filter(|&(a, b)| path.program_order.has(a, b)) {
            let [first, last] = [events[a], events[b]];
            let same_place = |fence: Event| fence.kind == Kind::Fence || first.at == last.at;
            let is_source = first.kind == Kind::Fence || first.writes;
            if is_source && first.order.releases() && last.writes && last.is_strong() && same_place(first) {
                judge.releases.push([a, b]);
            }
            let is_end = last.kind == Kind::Fence || last.returns;
            if is_end && last.order.acquires() && first.returns && first.is_strong() && same_place(last) {
                judge.acquires.push([a, b]);
            }
        }
        judge
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let n = self.events.len();
        (0..n)
            .flat_map(move |a| (0..n).map(move |b| (a, b)))
            .filter(|(a, b)| a != b)
    }

    /// Adds a pair of events to the relations that all candidates share.
    fn add_pair(&mut self, program: &Program, a: usize, b: usize) {
        let [one, other] = [self.events[a], self.events[b]];
        let (Some(p), Some(q)) = (one.thread, other.thread) else {
            return;
        };
        let meets = |kind: Kind| matches!(kind, Kind::Access | Kind::Fence);
        if meets(one.kind) && meets(other.kind) {
            let both_in_scope = program.is_in_scope(one.scope, p, q) && program.is_in_scope(other.scope, q, p);
            let overlaps = one.at.is_none() || other.at.is_none() || one.at == other.at;
            if overlaps && (p == q || one.is_strong() && other.is_strong() && both_in_scope) {
                self.morally_strong.add(a, b);
                let both_sc = [one, other]
                    .iter()
                    .all(|e| e.kind == Kind::Fence && e.order == Order::Sc);
                if both_sc && p < q {
                    self.fence_pairs.push([a, b]);
                }
            }
            return;
        }
        let meet = match (one.kind, other.kind) {
            (Kind::Barrier(n), Kind::Barrier(m)) => n == m && program.is_in_scope(Scope::Cta, p, q),
            (Kind::ClusterArrive(n), Kind::ClusterWait(m)) => n == m && program.is_in_scope(Scope::Cluster, p, q),
            _ => false,
        };
        if meet {
            self.barriers.add(a, b);
        }
    }

    /// True if two accesses race, the first of a lower thread.
    fn is_race(&self, base: &Relation, a: usize, b: usize) -> bool {
        let [first, second] = [a, b].map(|event| self.events[event]);
        let conflict = first.at.is_some() && first.at == second.at && (first.writes || second.writes);
        let is_ordered = base.has(a, b) || base.has(b, a) || self.morally_strong.has(a, b);
        first.thread.is_some() && first.thread < second.thread && conflict && !is_ordered
    }

    /// The executions with these sources that the axioms allow.
    fn executions(&self, sources: &[usize; MOST], reads_from: &Relation) -> Vec<Execution> {
        let mut observation = *reads_from;
        observation.retain(|write, read| self.morally_strong.has(write, read));
        observation.close();
        let mut synchronizes = self.barriers;
        for &[first, write] in &self.releases {
            for &[read, last] in &self.acquires {
                let is_other = self.events[first].thread != self.events[last].thread;
                if is_other && observation.has(write, read) && self.morally_strong.has(first, last) {
                    synchronizes.add(first, last);
                }
            }
        }
        let mut found = Vec::new();
        for order in 0..1u32 << self.fence_pairs.len() {
            let Some(base) = self.base_causality(order, &synchronizes) else {
                continue;
            };
            // Only accesses of one location precede each other in proxy-preserved base causality order.
            let mut preserved = base;
            preserved.retain(|a, b| self.events[a].at.is_some() && self.events[a].at == self.events[b].at);
            // Axiom Causality, first part: no read takes its value from a write that it precedes. Observation order begins with writes.
            // So the read of an atomic precedes an event only in base causality order, as in the paper's model.
            let mut reads = (0..self.events.len()).filter(|&event| self.events[event].reads);
            if reads.any(|read| preserved.has(read, sources[read])) {
                continue;
            }
            let causality = self.causality(&preserved, &observation);
            let finals = (0..self.n_locations).map(|at| self.last_writes(at, sources, reads_from, &causality));
            let finals: Vec<BTreeSet<usize>> = finals.collect();
            if finals.iter().all(|writes| !writes.is_empty()) {
                found.push(Execution { base, finals });
            }
        }
        found
    }

    /// Base causality order with one of the Fence-SC orders. `None` if they contradict each other (axiom Fence-SC).
    fn base_causality(&self, order: u32, synchronizes: &Relation) -> Option<Relation> {
        let mut fence_sc = Relation::EMPTY;
        for (n, &[a, b]) in self.fence_pairs.iter().enumerate() {
            match order >> n & 1 {
                0 => fence_sc.add(a, b),
                _ => fence_sc.add(b, a),
            }
        }
        let mut base = self.program_order;
        base.join(synchronizes);
        base.join(&fence_sc);
        base.close();
        let agrees = |&[a, b]: &[usize; 2]| !(base.has(a, b) && base.has(b, a));
        let is_sc = |event: &Event| event.kind == Kind::Fence && event.order == Order::Sc;
        let mut fences = (0..self.events.len()).filter(|&event| is_sc(&self.events[event]));
        let is_order = fences.all(|fence| !base.has(fence, fence));
        (is_order && self.fence_pairs.iter().all(agrees)).then_some(base)
    }

    /// Causality order between accesses of one location.
    fn causality(&self, preserved: &Relation, observation: &Relation) -> Relation {
        let mut causality = *preserved;
        causality.join(&observation.then(preserved));
        // The start of the grid follows the first writes.
        for (first, b) in self.pairs() {
            if self.events[first].thread.is_none() && self.events[first].at == self.events[b].at {
                causality.add(first, b);
            }
        }
        causality
    }

    /// The writes of a location that may be last, over all coherence orders that the axioms allow.
    fn last_writes(
        &self,
        at: usize,
        sources: &[usize; MOST],
        reads_from: &Relation,
        causality: &Relation,
    ) -> BTreeSet<usize> {
        let here = |&event: &usize| self.events[event].at == Some(at);
        let events: Vec<usize> = (0..self.events.len()).filter(here).collect();
        let writes: Vec<usize> = events
            .iter()
            .copied()
            .filter(|&event| self.events[event].writes)
            .collect();
        let mut fixed = *causality;
        fixed.retain(|a, b| writes.contains(&a) && writes.contains(&b));
        fixed.close();
        let mut open = Vec::new();
        for (n, &a) in writes.iter().enumerate() {
            for &b in &writes[..n] {
                if self.morally_strong.has(a, b) && !fixed.has(a, b) && !fixed.has(b, a) {
                    open.push([a, b]);
                }
            }
        }
        let mut last = BTreeSet::new();
        for order in 0..1u32 << open.len() {
            let mut coherence = fixed;
            for (n, &[a, b]) in open.iter().enumerate() {
                match order >> n & 1 {
                    0 => coherence.add(a, b),
                    _ => coherence.add(b, a),
                }
            }
            coherence.close();
            if self.is_allowed(&events, sources, reads_from, causality, &coherence) {
                let is_last = |&&write: &&usize| writes.iter().all(|&other| !coherence.has(write, other));
                last.extend(writes.iter().filter(is_last));
            }
        }
        last
    }

    /// The axioms Coherence, Atomicity, Sequential Consistency per Location and Causality for the events of one location.
    fn is_allowed(
        &self,
        events: &[usize],
        sources: &[usize; MOST],
        reads_from: &Relation,
        causality: &Relation,
        coherence: &Relation,
    ) -> bool {
        // Coherence contains causality between writes, so it holds if coherence is an order.
        let is_order = events.iter().all(|&event| !coherence.has(event, event));
        let reads = || events.iter().copied().filter(|&event| self.events[event].reads);
        // Causality, second part: no read takes a value that a write before the read has replaced.
        let is_stale = |read: usize| {
            let replaced = |&write: &usize| causality.has(write, read) && coherence.has(sources[read], write);
            events.iter().any(replaced)
        };
        // Atomicity: no morally strong write lies between the write that an atomic reads and the atomic's own.
        let is_split = |atomic: usize| {
            let lies_between = |&write: &usize| {
                self.morally_strong.has(atomic, write)
                    && coherence.has(sources[atomic], write)
                    && coherence.has(write, atomic)
            };
            self.events[atomic].writes && events.iter().any(lies_between)
        };
        // Sequential Consistency per Location: program order agrees with morally strong communication.
        let mut order = *reads_from;
        order.retain(|_, read| events.contains(&read));
        order.join(coherence);
        for read in reads() {
            let later = events
                .iter()
                .filter(|&&write| coherence.has(sources[read], write) && write != read);
            later.for_each(|&write| order.add(read, write));
        }
        order.retain(|a, b| self.morally_strong.has(a, b));
        for &a in events {
            let later = events.iter().filter(|&&b| self.program_order.has(a, b));
            later.for_each(|&b| order.add(a, b));
        }
        is_order && reads().all(|read| !is_stale(read) && !is_split(read)) && order.is_acyclic()
    }
}
