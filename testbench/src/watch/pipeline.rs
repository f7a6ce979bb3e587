//! The stages of every warp instruction in its sub-core, for pipeline diagrams. It has the stalls of the warp before the issue, and the
//! producers of its operands.
//!
//! Takes events of one run, and keeps the instructions issued in a window of cycles, up to a limit. Promises rows in order of issue,
//! within a cycle by SM and sub-core, whatever the quantum.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use warpwave_components::proto::event::{Event, EventKind, Request};
use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;
use warpwave_isa::program::{Decoded, Program};
use warpwave_isa::reg::RegSet;

use super::Listener;

/// Stages of an instruction, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Step {
    /// Asked for by the fetch unit.
    Fetch,
    /// Chosen by the scheduler.
    Issue,
    /// Reads its operands.
    Gather,
    /// Sent into its pipe.
    Send,
    /// Taken by the LSU.
    Take,
    /// At the banks of shared memory.
    Access,
    /// Its results are stored, or it is known to be over.
    Store,
}

/// Number of steps.
const STEPS: usize = Step::Store as usize + 1;

/// A stretch of cycles that a warp spent in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The state, an index into the scheduler's names.
    pub state: u8,
    /// Its first cycle.
    pub from: Cycle,
    /// The cycle after its last.
    pub to: Cycle,
}

/// One warp instruction. The sub-core and the cycle of issue name it: a sub-core issues one a cycle.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// SM of the machine.
    pub sm: u16,
    /// Sub-core of the SM.
    pub subcore: u8,
    /// Slot in the sub-core.
    pub slot: u8,
    /// Number of the launch.
    pub grid: u32,
    /// Position of the CTA.
    pub block: [u32; 3],
    /// Index of the warp in the CTA.
    pub warp: u32,
    /// The instruction.
    pub pc: u32,
    /// Running lanes.
    pub lanes: u32,
    steps: [Cycle; STEPS],
    /// Passes at the banks of shared memory.
    pub passes: u32,
    /// What the warp did between its last instruction and this one; after its very last one, what it did until its end.
    pub waits: Vec<Wait>,
    /// Cycles of issue of the warp's instructions whose results it found pending.
    pub needs: Vec<Cycle>,
}

impl Row {
    /// When a step was reached, if it was.
    pub fn at(&self, step: Step) -> Option<Cycle> {
        let at = self.steps[step as usize];
        (at != Cycle::NEVER).then_some(at)
    }

    /// The cycle of issue.
    pub fn issued(&self) -> Cycle {
        self.steps[Step::Issue as usize]
    }

    /// Its first cycle in the picture.
    pub fn begin(&self) -> Cycle {
        let fetched = self.steps[Step::Fetch as usize].min(self.issued());
        self.waits.first().map_or(fetched, |wait| wait.from.min(fetched))
    }

    /// The cycle after its last in the picture.
    pub fn end(&self) -> Cycle {
        let known = self.steps.iter().filter(|at| **at != Cycle::NEVER);
        let last = known.max().map_or(self.issued(), |at| *at) + 1;
        self.waits.last().map_or(last, |wait| wait.to.max(last))
    }
}

/// Registers and predicates, as one list.
const WRITERS: usize = 256 + 8;

/// A resident warp.
struct Warp {
    grid: u32,
    block: [u32; 3],
    index: u32,
    fetched: VecDeque<Cycle>,
    waits: Vec<Wait>,
    /// The place of its last row, and the cycle of its issue.
    last: Option<usize>,
    issued: Cycle,
    /// Place of the row that writes each register and predicate.
    writers: Vec<Option<usize>>,
}

#[derive(Default)]
struct Subcore {
    warps: BTreeMap<u8, Warp>,
    /// Issued, and not yet gathered: places of rows, none for those not kept.
    issued: VecDeque<Option<usize>>,
    numbered: BTreeMap<u64, usize>,
}

/// Collects rows, and the requests of their time.
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
    /// Keeps what is issued in `window`, at most `limit` instructions and as many requests.
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

    /// The instructions, in order of issue, and the requests in order of answers, each with its SM and its number there.
    pub fn finish(mut self) -> Picture {
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
        self.left_out += u64::from(window && !keeps);
        let subcore = self.subcores.entry((sm, event.subcore)).or_default();
        let Some(warp) = subcore.warps.get_mut(&event.warp) else {
            return;
        };
        let mut steps = [Cycle::NEVER; STEPS];
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
            needs: decoded.map_or(Vec::new(), |decoded| warp.needs(decoded, &self.rows)),
        };
        let place = keeps.then_some(self.rows.len());
        warp.last = place;
        warp.issued = at;
        if let Some(decoded) = decoded {
            written(decoded).for_each(|n| warp.writers[n] = place);
        }
        if goes_on {
            subcore.issued.push_back(place);
        }
        self.rows.extend(keeps.then_some(row));
    }

    fn gather(&mut self, sm: u16, event: &Event, number: u64) {
        let subcore = self.subcores.entry((sm, event.subcore)).or_default();
        if let Some(Some(place)) = subcore.issued.pop_front() {
            subcore.numbered.insert(number, place);
            self.rows[place].steps[Step::Gather as usize] = event.at;
        }
    }

    fn step(&mut self, sm: u16, event: &Event, number: u64, step: Step) -> Option<&mut Row> {
        let subcore = self.subcores.get_mut(&(sm, event.subcore))?;
        let place = *subcore.numbered.get(&number)?;
        if step == Step::Store {
            subcore.numbered.remove(&number);
        }
        let row = &mut self.rows[place];
        let at = &mut row.steps[step as usize];
        *at = event.at.min(*at);
        Some(row)
    }

    fn warp(&mut self, sm: u16, event: &Event) -> Option<&mut Warp> {
        self.subcores.get_mut(&(sm, event.subcore))?.warps.get_mut(&event.warp)
    }

    /// A warp has ended: what it did since its last instruction stays with that one.
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
        let from = Cycle(to.0 - cycles);
        match self.waits.last_mut() {
            _ if cycles == 0 => {}
            Some(last) if last.state == state && last.to == from => last.to = to,
            _ => self.waits.push(Wait { state, from, to }),
        }
    }

    /// Issues of the instructions whose results an instruction meets, if they were still pending when it was next.
    fn needs(&self, decoded: &Decoded, rows: &[Row]) -> Vec<Cycle> {
        let touched = touched(&decoded.uses, decoded.pred_uses).chain(written(decoded));
        let writers = touched.filter_map(|n| rows.get(self.writers[n]?));
        let pending = writers.filter(|row| row.steps[Step::Store as usize] > self.issued);
        let mut needs: Vec<Cycle> = pending.map(Row::issued).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }
}

fn written(decoded: &Decoded) -> impl Iterator<Item = usize> {
    touched(&decoded.defs, decoded.pred_defs)
}

/// Places of registers and predicates in the list of writers.
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
                    writers: vec![None; WRITERS],
                };
                let subcore = self.subcores.entry((sm, event.subcore)).or_default();
                subcore.warps.insert(event.warp, warp);
            }
            EventKind::Fetch => self
                .warp(sm, event)
                .into_iter()
                .for_each(|warp| warp.fetched.push_back(event.at)),
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
        let number = self.numbers.entry(sm).or_default();
        if self.window.contains(&super::requests::begin(request)) && self.requests.len() < self.limit {
            self.requests.push((sm, *number, *request));
        }
        *number += 1;
    }
}

/// What was collected.
pub struct Picture {
    /// Programs of the launches.
    pub programs: Vec<Arc<Program>>,
    /// Instructions, in order of issue.
    pub rows: Vec<Row>,
    /// Requests with their SM and number there.
    pub requests: Vec<(u16, u64, Request)>,
    /// Instructions beyond the limit.
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
