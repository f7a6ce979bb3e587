//! Candidate executions of a litmus program: its events, where each read takes its value, and the values.
//!
//! A path fixes which guarded instructions run and which compare-and-swaps succeed. Each path has its own events. A candidate gives a
//! source to each read. Its values may then contradict the path, and it is no execution.

use super::program::{Inst, Op, Order, Program, Scope, Update, Value};
use super::relation::{MOST, Relation};

/// An event: an access, a fence or a barrier of a thread, or the first write of a location.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// `None` for a first write.
    pub thread: Option<usize>,
    /// The location of an access.
    pub at: Option<usize>,
    pub reads: bool,
    pub writes: bool,
    /// True if the value goes to a register. A reduction reads, but it is no part of an acquire pattern.
    pub returns: bool,
    pub kind: Kind,
    pub order: Order,
    pub scope: Scope,
}

/// The kind of an event. A barrier has its number in the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Access,
    Fence,
    Barrier(usize),
    ClusterArrive(usize),
    ClusterWait(usize),
}

impl Event {
    pub fn is_strong(&self) -> bool {
        self.order != Order::Weak
    }
}

/// The events of a program on one path.
pub struct Events<'a> {
    program: &'a Program,
    /// For each instruction of each thread: whether it runs.
    runs: Vec<Vec<bool>>,
    /// For each instruction of each thread: its event.
    event_of: Vec<Vec<Option<usize>>>,
    pub events: Vec<Event>,
    /// Program order.
    pub program_order: Relation,
    /// A read precedes an event that needs its value.
    pub dependency: Relation,
}

/// Number of binary choices of a path: guarded instructions and compare-and-swaps.
fn choices(program: &Program) -> u32 {
    let insts = program.threads.iter().flat_map(|thread| &thread.code);
    insts
        .map(|inst| u32::from(inst.guard.is_some()) + u32::from(is_swap(inst)))
        .sum()
}

fn is_swap(inst: &Inst) -> bool {
    let swap = |update| matches!(update, Update::CompareAndSwap(_));
    matches!(inst.op, Op::Atomic { update, .. } if swap(update))
}

/// The values of a candidate: the outcome's registers, and what each event writes.
pub struct Values {
    pub registers: Vec<u32>,
    pub written: [u32; MOST],
}

impl<'a> Events<'a> {
    /// The events of each path.
    pub fn of_paths(program: &'a Program) -> impl Iterator<Item = Self> {
        (0..1u32 << choices(program)).map(move |path| Self::new(program, path))
    }

    fn new(program: &'a Program, path: u32) -> Self {
        let mut events = Self {
            program,
            runs: Vec::new(),
            event_of: Vec::new(),
            events: Vec::new(),
            program_order: Relation::EMPTY,
            dependency: Relation::EMPTY,
        };
        for at in 0..program.locations.len() {
            events.events.push(Event {
                thread: None,
                at: Some(at),
                reads: false,
                writes: true,
                returns: false,
                kind: Kind::Access,
                order: Order::Weak,
                scope: Scope::Sys,
            });
        }
        let mut path = path;
        let mut choose = |is_choice: bool| {
            let chosen = !is_choice || path & 1 != 0;
            path >>= u32::from(is_choice);
            chosen
        };
        for thread in 0..program.threads.len() {
            events.add_thread(thread, &mut choose);
        }
        assert!(events.events.len() <= MOST, "{}: more than {MOST} events", program.name);
        events
    }

    /// The instruction of an event of a thread: thread, and place in its code.
    pub fn place(&self, event: usize) -> (usize, usize) {
        let in_thread = |thread: usize| self.event_of[thread].iter().position(|&of| of == Some(event));
        let place = (0..self.event_of.len()).find_map(|thread| Some((thread, in_thread(thread)?)));
        place.expect("an event of a thread")
    }

    fn add_thread(&mut self, thread: usize, choose: &mut impl FnMut(bool) -> bool) {
        let first = self.events.len();
        let code = &self.program.threads[thread].code;
        // The reads that each register needs.
        let mut needs = vec![0u32; self.program.threads[thread].registers.len()];
        let (mut runs, mut event_of) = (Vec::new(), Vec::new());
        let mut passed = [0; 3];
        let mut number = |kind: usize| {
            passed[kind] += 1;
            passed[kind] - 1
        };
        for inst in code {
            let does_run = choose(inst.guard.is_some());
            let swaps = choose(is_swap(inst));
            let guard = inst.guard.map_or(0, |guard| needs[guard.predicate]);
            let need = |value: Value| match value {
                Value::Const(_) => 0,
                Value::Register(n) => needs[n],
            };
            let access = |at, reads, writes, returns| (Some(at), reads, writes, returns, Kind::Access);
            let (event, needed) = match inst.op {
                Op::Load { at, .. } => (Some(access(at, true, false, true)), 0),
                Op::Store { at, value } => (Some(access(at, false, true, false)), need(value)),
                Op::Atomic { to, at, update, value } => {
                    let compared = match update {
                        Update::CompareAndSwap(compared) => need(compared),
                        _ => 0,
                    };
                    (Some(access(at, true, swaps, to.is_some())), need(value) | compared)
                }
                Op::Fence => (Some((None, false, false, false, Kind::Fence)), 0),
                Op::Barrier => (Some((None, false, false, false, Kind::Barrier(number(0)))), 0),
                Op::ClusterArrive => (Some((None, false, false, false, Kind::ClusterArrive(number(1)))), 0),
                Op::ClusterWait => (Some((None, false, false, false, Kind::ClusterWait(number(2)))), 0),
                Op::Add { terms, .. } => (None, need(terms[0]) | need(terms[1])),
                Op::Test { values, .. } => (None, need(values[0]) | need(values[1])),
            };
            let n = self.events.len();
            let mut result = guard | needed;
            if let Some((at, reads, writes, returns, kind)) = event.filter(|_| does_run) {
                for read in (0..n).filter(|read| result >> read & 1 != 0) {
                    self.dependency.add(read, n);
                }
                result |= 1 << n;
                self.events.push(Event {
                    thread: Some(thread),
                    at,
                    reads,
                    writes,
                    returns,
                    kind,
                    order: inst.order,
                    scope: inst.scope,
                });
            }
            event_of.push((self.events.len() > n).then_some(n));
            runs.push(does_run);
            if let Some(to) = written_register(&inst.op) {
                // A register keeps its value if the instruction does not run. Which one depends on the guard.
                needs[to] = result | if inst.guard.is_some() { needs[to] } else { 0 };
            }
        }
        for a in first..self.events.len() {
            (a + 1..self.events.len()).for_each(|b| self.program_order.add(a, b));
        }
        self.runs.push(runs);
        self.event_of.push(event_of);
    }

    /// Calls `visit` with each choice of sources: for each event that reads, the write that it reads from.
    /// No read takes its value from itself or from a later write of its thread (axiom Causality). No value depends on itself (axiom No
    /// Thin Air).
    pub fn for_each_source(&self, mut visit: impl FnMut(&[usize; MOST], &Relation)) {
        let reads: Vec<usize> = (0..self.events.len()).filter(|&e| self.events[e].reads).collect();
        let options = |read: usize| -> Vec<usize> {
            let is_source = |write: usize| {
                let event = self.events[write];
                event.writes
                    && event.at == self.events[read].at
                    && write != read
                    && !self.program_order.has(read, write)
            };
            (0..self.events.len()).filter(|&write| is_source(write)).collect()
        };
        let options: Vec<Vec<usize>> = reads.iter().map(|&read| options(read)).collect();
        let mut chosen = vec![0; reads.len()];
        loop {
            let (mut sources, mut reads_from) = ([0; MOST], Relation::EMPTY);
            for (n, &read) in reads.iter().enumerate() {
                sources[read] = options[n][chosen[n]];
                reads_from.add(sources[read], read);
            }
            let mut flow = reads_from;
            flow.join(&self.dependency);
            if flow.is_acyclic() {
                visit(&sources, &reads_from);
            }
            let Some(next) = (0..reads.len()).find(|&n| chosen[n] + 1 < options[n].len()) else {
                return;
            };
            chosen[..next].fill(0);
            chosen[next] += 1;
        }
    }

    /// The values of a candidate. `None` if they contradict the path.
    pub fn values(&self, sources: &[usize; MOST]) -> Option<Values> {
        let mut written = [0; MOST];
        for (write, (_, first)) in self.program.locations.iter().enumerate() {
            written[write] = *first;
        }
        // The flow of values has no cycle. So each pass settles at least one more event.
        for _ in 0..=self.events.len() {
            let (before, mut registers, mut holds) = (written, Vec::new(), true);
            for thread in 0..self.program.threads.len() {
                holds &= self.pass(thread, sources, &mut written, &mut registers);
            }
            if written == before {
                return holds.then_some(Values { registers, written });
            }
        }
        unreachable!("{}: the values do not settle", self.program.name)
    }

    /// Runs a thread with the values of the last pass. Returns whether it takes the path.
    fn pass(&self, thread: usize, sources: &[usize; MOST], written: &mut [u32; MOST], outcome: &mut Vec<u32>) -> bool {
        let code = &self.program.threads[thread];
        let mut registers = vec![0u32; code.registers.len()];
        let mut holds = true;
        for (n, inst) in code.code.iter().enumerate() {
            let runs = self.runs[thread][n];
            if let Some(guard) = inst.guard {
                holds &= runs == ((registers[guard.predicate] != 0) == guard.is);
            }
            if !runs {
                continue;
            }
            let get = |value: Value| match value {
                Value::Const(value) => value,
                Value::Register(n) => registers[n],
            };
            let event = self.event_of[thread][n].unwrap_or(0);
            let read = written[sources[event]];
            match inst.op {
                Op::Load { to, .. } => registers[to] = read,
                Op::Store { value, .. } => written[event] = get(value),
                Op::Atomic { to, update, value, .. } => {
                    let new = match update {
                        Update::Add => read.wrapping_add(get(value)),
                        Update::Exchange => get(value),
                        Update::CompareAndSwap(compared) => {
                            holds &= self.events[event].writes == (read == get(compared));
                            get(value)
                        }
                    };
                    written[event] = new;
                    if let Some(to) = to {
                        registers[to] = read;
                    }
                }
                Op::Add { to, terms } => registers[to] = get(terms[0]).wrapping_add(get(terms[1])),
                Op::Test { to, equal, values } => {
                    registers[to] = u32::from((get(values[0]) == get(values[1])) == equal);
                }
                Op::Fence | Op::Barrier | Op::ClusterArrive | Op::ClusterWait => {}
            }
        }
        let values = (0..registers.len()).filter(|&n| !code.is_predicate(n));
        outcome.extend(values.map(|n| registers[n]));
        holds
    }
}

fn written_register(op: &Op) -> Option<usize> {
    match *op {
        Op::Load { to, .. } | Op::Add { to, .. } | Op::Test { to, .. } => Some(to),
        Op::Atomic { to, .. } => to,
        _ => None,
    }
}
