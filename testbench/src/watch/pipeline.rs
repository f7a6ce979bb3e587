//! Collects the pipeline steps of every warp instruction, for diagrams and timelines. A row also has the stalls before the issue, and the
//! producers of the operands.
//!
//! Input: the events of one run. Output: the instructions issued in a window of cycles, up to a limit. Rows are in order of issue,
//! within a cycle by SM and sub-core. The order does not depend on the quantum.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use warpwave_components::proto::event::{Event, EventKind, Request};
use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;
use warpwave_isa::program::{Decoded, Program};
use warpwave_isa::reg::RegSet;

use super::Listener;

/// Steps of an instruction, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Step {
    /// Requested by the fetch unit.
    Fetch,
    /// Issued by the scheduler.
    Issue,
    /// Enters an operand collector.
    Gather,
    /// Sent into its pipe.
    Send,
    /// Accepted by the LSU.
    Take,
    /// At the banks of shared memory.
    Access,
    /// Writes its results back. Without results, it completes.
    Store,
}

/// Number of steps.
const STEPS: usize = Step::Store as usize + 1;

/// Consecutive cycles of a warp in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The state, as an index into the scheduler's state names.
    pub state: u8,
    /// Its first cycle.
    pub from: Cycle,
    /// The cycle after its last.
    pub to: Cycle,
}

/// One warp instruction. Its key is sub-core and cycle of issue, since a sub-core issues one instruction per cycle.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// SM of the machine.
    pub sm: u16,
    /// Sub-core of the SM.
    pub subcore: u8,
    /// Warp slot in the sub-core.
    pub slot: u8,
    /// Number of the launch.
    pub grid: u32,
    /// Position of the CTA in the grid.
    pub block: [u32; 3],
    /// Index of the warp in the CTA.
    pub warp: u32,
    /// Index of the instruction in the program.
    pub pc: u32,
    /// Mask of the active lanes.
    pub lanes: u32,
    steps: [Cycle; STEPS],
    /// Passes of the shared-memory banks.
    pub passes: u32,
    /// States of the warp between its previous instruction and this one. Its last row also has the states up to its end.
    pub waits: Vec<Wait>,
    /// Issue cycles of earlier instructions of the warp. Their results were pending when this one was next.
    pub producers: Vec<Cycle>,
}

impl Row {
    /// The cycle of a step, if the instruction reached it.
    pub fn at(&self, step: Step) -> Option<Cycle> {
        let at = self.steps[step as usize];
        (at != Cycle::NEVER).then_some(at)
    }

    /// The cycle of issue.
    pub fn issued(&self) -> Cycle {
        self.steps[Step::Issue as usize]
    }

    /// Its first cycle in a diagram.
    pub fn begin(&self) -> Cycle {
        let fetched = self.steps[Step::Fetch as usize].min(self.issued());
        self.waits.first().map_or(fetched, |wait| wait.from.min(fetched))
    }

    /// The cycle after its last one in a diagram.
    pub fn end(&self) -> Cycle {
        let known = self.steps.iter().filter(|at| **at != Cycle::NEVER);
        let last = known.max().map_or(self.issued(), |at| *at) + 1;
        self.waits.last().map_or(last, |wait| wait.to.max(last))
    }
}

/// Number of registers and predicates, which share one index range.
const N_WRITERS: usize = 256 + 8;

/// A resident warp.
struct Warp {
    grid: u32,
    block: [u32; 3],
    index: u32,
    fetched: VecDeque<Cycle>,
    waits: Vec<Wait>,
    /// Index of its last row. `None` if that row is not kept.
    last: Option<usize>,
    issued: Cycle,
    /// For each register and predicate, the index of the last row that writes it.
    writers: Vec<Option<usize>>,
}

#[derive(Default)]
struct Subcore {
    warps: BTreeMap<u8, Warp>,
    /// Indices of issued rows that have not reached a collector. `None` for a row that is not kept.
    issued: VecDeque<Option<usize>>,
    rows_by_number: BTreeMap<u64, usize>,
}

/// Collects rows, and the memory requests in the window.
pub struct Pipeline {
    programs: Vec<Arc<Program>>,
    window: Range<Cycle>,
    limit: usize,
    rows: Vec<Row>,
    requests: Vec<(u16, u64, Request)>,
    numbers: BTreeMap<u16, u64>,
    subcores: BTreeMap<(u16, u8), Subcore>,
    left_out: u64,
}

impl Pipeline {
    /// Keeps at most `limit` instructions, and `limit` requests, that are issued in `window`.
    pub fn new(programs: Vec<Arc<Program>>, window: Range<Cycle>, limit: usize) -> Self {
        Pipeline {
            programs,
            window,
            limit,
            rows: Vec::new(),
            requests: Vec::new(),
            numbers: BTreeMap::new(),
            subcores: BTreeMap::new(),
            left_out: 0,
        }
    }

    /// Returns the instructions in order of issue, and the requests by SM in order of their responses.
    pub fn finish(mut self) -> Picture {
        // The collector delivers SM after SM, one quantum at a time.
        self.rows.sort_by_key(|row| (row.issued(), row.sm, row.subcore));
        self.requests.sort_by_key(|(sm, number, _)| (*sm, *number));
        Picture {
            programs: self.programs,
            rows: self.rows,
            requests: self.requests,
            left_out: self.left_out,
        }
    }

    fn issue(&mut self, sm: u16, event: &Event, (pc, lanes, goes_on): (u32, u32, bool)) {
        let (at, window) = (event.at, self.window.contains(&event.at));
        let keeps = window && self.rows.len() < self.limit;
        // An instruction that is not kept replaces the writers of its registers too, below.
        self.left_out += u64::from(window && !keeps);
        let subcore = self.subcores.entry((sm, event.subcore)).or_default();
        let Some(warp) = subcore.warps.get_mut(&event.warp) else {
            return;
        };
        let mut steps = [Cycle::NEVER; STEPS];
        // A warp issues in the order of its fetches.
        steps[Step::Fetch as usize] = warp.fetched.pop_front().unwrap_or(Cycle::NEVER);
        steps[Step::Issue as usize] = at;
        let decoded = self.programs.get(warp.grid as usize);
        let decoded = decoded.and_then(|program| program.decoded().get(pc as usize));
        let row = Row {
            sm,
            subcore: event.subcore,
            slot: event.warp,
            grid: warp.grid,
            block: warp.block,
            warp: warp.index,
            pc,
            lanes,
            steps,
            passes: 0,
            waits: std::mem::take(&mut warp.waits),
            producers: decoded.map_or(Vec::new(), |decoded| warp.producers(decoded, &self.rows)),
        };
        let place = keeps.then_some(self.rows.len());
        warp.last = place;
        warp.issued = at;
        if let Some(decoded) = decoded {
            written(decoded).for_each(|n| warp.writers[n] = place);
        }
        // An instruction resolved at issue never reaches a collector.
        if goes_on {
            subcore.issued.push_back(place);
        }
        self.rows.extend(keeps.then_some(row));
    }

    fn gather(&mut self, sm: u16, event: &Event, number: u64) {
        let subcore = self.subcores.entry((sm, event.subcore)).or_default();
        // Instructions reach the collectors of a sub-core in the order of issue.
        if let Some(Some(place)) = subcore.issued.pop_front() {
            subcore.rows_by_number.insert(number, place);
            self.rows[place].steps[Step::Gather as usize] = event.at;
        }
    }

    fn step(&mut self, sm: u16, event: &Event, number: u64, step: Step) -> Option<&mut Row> {
        let subcore = self.subcores.get_mut(&(sm, event.subcore))?;
        let place = *subcore.rows_by_number.get(&number)?;
        // The number is free after the last step, and a later instruction may have it.
        if step == Step::Store {
            subcore.rows_by_number.remove(&number);
        }
        let row = &mut self.rows[place];
        // A step may be reported more than once. The first report counts.
        let at = &mut row.steps[step as usize];
        *at = event.at.min(*at);
        Some(row)
    }

    fn warp(&mut self, sm: u16, event: &Event) -> Option<&mut Warp> {
        self.subcores.get_mut(&(sm, event.subcore))?.warps.get_mut(&event.warp)
    }

    /// Ends a warp. Its states since the last instruction go to the row of that instruction.
    fn end(&mut self, sm: u16, event: &Event) {
        let subcore = self.subcores.entry((sm, event.subcore)).or_default();
        if let Some(warp) = subcore.warps.remove(&event.warp)
            && let Some(last) = warp.last
        {
            self.rows[last].waits.extend(warp.waits);
        }
    }
}

impl Warp {
    fn wait(&mut self, state: u8, cycles: u64, to: Cycle) {
        // The event has the cycle after the wait, and the length.
        let from = Cycle(to.0 - cycles);
        match self.waits.last_mut() {
            _ if cycles == 0 => {}
            // A wait may be reported in parts, one per quantum.
            Some(last) if last.state == state && last.to == from => last.to = to,
            _ => self.waits.push(Wait { state, from, to }),
        }
    }

    /// Issue cycles of the producers with results that were pending when the instruction was next.
    fn producers(&self, decoded: &Decoded, rows: &[Row]) -> Vec<Cycle> {
        let touched = touched(&decoded.uses, decoded.pred_uses).chain(written(decoded));
        let writers = touched.filter_map(|n| rows.get(self.writers[n]?));
        // The instruction is next after the previous issue. Results stored by then caused no stall.
        let pending = writers.filter(|row| row.steps[Step::Store as usize] > self.issued);
        let mut producers: Vec<Cycle> = pending.map(Row::issued).collect();
        producers.sort_unstable();
        producers.dedup();
        producers
    }
}

fn written(decoded: &Decoded) -> impl Iterator<Item = usize> {
    touched(&decoded.defs, decoded.pred_defs)
}

/// Indices of registers and predicates in the list of writers.
fn touched(registers: &RegSet, predicates: u8) -> impl Iterator<Item = usize> {
    registers.iter().chain(ones(predicates).map(|n| 256 + n))
}

impl Listener for Pipeline {
    fn event(&mut self, sm: u16, event: &Event) {
        match event.kind {
            EventKind::Start { grid, block, index } => {
                let warp = Warp {
                    grid,
                    block,
                    index,
                    fetched: VecDeque::new(),
                    waits: Vec::new(),
                    last: None,
                    issued: event.at,
                    writers: vec![None; N_WRITERS],
                };
                let subcore = self.subcores.entry((sm, event.subcore)).or_default();
                subcore.warps.insert(event.warp, warp);
            }
            EventKind::Fetch => self
                .warp(sm, event)
                .into_iter()
                .for_each(|warp| warp.fetched.push_back(event.at)),
            // A jump drops the instructions that were fetched behind it.
            EventKind::Jump => self.warp(sm, event).into_iter().for_each(|warp| warp.fetched.clear()),
            EventKind::Wait { state, cycles } => {
                let warp = self.warp(sm, event);
                warp.into_iter().for_each(|warp| warp.wait(state, cycles, event.at));
            }
            EventKind::Issue { pc, lanes, goes_on } => self.issue(sm, event, (pc, lanes, goes_on)),
            EventKind::Collect { number } => self.gather(sm, event, number),
            EventKind::Dispatch { number } => {
                self.step(sm, event, number, Step::Send);
            }
            EventKind::Take { number } => {
                self.step(sm, event, number, Step::Take);
            }
            EventKind::Access { number, passes } => {
                let row = self.step(sm, event, number, Step::Access);
                row.into_iter().for_each(|row| row.passes = passes);
            }
            EventKind::Complete { number } => {
                self.step(sm, event, number, Step::Store);
            }
            EventKind::End => self.end(sm, event),
        }
    }

    fn request(&mut self, sm: u16, request: &Request) {
        let Some(_) = super::requests::path(request) else {
            return;
        };
        // Requests outside the window count too: a number means the same request in all reports.
        let number = self.numbers.entry(sm).or_default();
        if self.window.contains(&super::requests::begin(request)) && self.requests.len() < self.limit {
            self.requests.push((sm, *number, *request));
        }
        *number += 1;
    }
}

/// The collected instructions and requests.
pub struct Picture {
    /// Programs of the launches.
    pub programs: Vec<Arc<Program>>,
    /// Instructions, in order of issue.
    pub rows: Vec<Row>,
    /// Requests, each with its SM and its number in that SM.
    pub requests: Vec<(u16, u64, Request)>,
    /// Number of instructions beyond the limit.
    pub left_out: u64,
}

impl Picture {
    /// The instruction of a row, as text.
    pub fn text(&self, grid: u32, pc: u32) -> String {
        let code = self
            .programs
            .get(grid as usize)
            .map_or(&[][..], |program| program.code());
        code.get(pc as usize).map_or(String::new(), ToString::to_string)
    }
}
