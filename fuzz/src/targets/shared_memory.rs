//! Target: shared memory between an LSU, its sub-cores and other SMs.
//!
//! Oracle: the accesses of the LSU take effect in order of arrival, lane by lane, as in a memory without time. Lines of other SMs do so in
//! a region of their own. Each access returns once, to its sub-core. A line access for a CTA that has ended changes nothing.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::proto::cluster::{CtaResidence, MAX_START, RemoteByte};
use warpwave_components::proto::launch::{Grid, Route, Trap};
use warpwave_components::proto::mem::Packet;
use warpwave_components::proto::warp::WarpInst;
use warpwave_components::sm::shared::{Config, LinePorts, Ports, SharedMemory};
use warpwave_hw::link::InPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::WARP_SIZE;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{Late, SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{Owed, PlainMemory, Request, TINY};
use crate::warp_access::{AccessSpec, check_results, grid, perform};

/// Shared memory and its traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = within(1..=4))]
    subcores: u8,
    #[arbitrary(with = one_of(&[0, 1, 2]))]
    line_sources: usize,
    #[arbitrary(with = within(1..=40))]
    latency: u32,
    #[arbitrary(with = within(1..=4))]
    conflict_latency: u32,
    #[arbitrary(with = within(1..=80))]
    line_latency: u32,
    #[arbitrary(with = within(1..=3))]
    depth: u32,
    paces: [Pace; 6],
    #[arbitrary(with = up_to(12))]
    lines: Vec<LineSpec>,
    /// Starts and ends of CTAs, in turn for each slot.
    #[arbitrary(with = up_to(8))]
    changes: Vec<Change>,
    /// The start number before the first one of each slot.
    #[arbitrary(with = one_of(&[0, 1, MAX_START - 1, MAX_START - 2, MAX_START]))]
    first_start: u32,
    #[arbitrary(with = up_to(30))]
    accesses: Vec<AccessSpec>,
}

/// A line access.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct LineSpec {
    request: Request,
    /// The CTA that it is for: the number of its start in the slot. None for an access without a check.
    #[arbitrary(with = one_of(&[None, Some(1), Some(2), Some(3)]))]
    start: Option<u32>,
}

/// The next start or end of a CTA in a slot.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Change {
    #[arbitrary(with = one_of(&[3, 40, 200]))]
    gap: u64,
    /// The slot, after those of the LSU's CTA.
    #[arbitrary(with = within(0..=2))]
    slot: u8,
}

/// Bytes of the CTA. The lines of other SMs come after them.
const CTA_BYTES: u32 = 1024;

const PROGRAM: &str = "LD.SHARED.B32 R0, [R2]
    ST.SHARED.B32 [R2], R4
    LD.SHARED.B32X2 R0, [R2]
    ST.SHARED.B32X4 [R2], R4
    LD.SHARED.SB8 R0, [R2]
    ST.SHARED.B8 [R2], R4
    LD.SHARED.B16 R0, [R2]
    LD.SHARED.B64 R0, [R2]
    ATOM.ADD.SHARED.U32.B32 R0, [R2], R4, RZ
    ATOM.CAS.SHARED.U32.B32 R0, [R2], R4, R5
    ATOM.EXCH.SHARED.U64.B64 R0, [R2], R4, RZ";

static GRID: LazyLock<Arc<Grid>> = LazyLock::new(|| {
    let shared_bytes = CTA_BYTES;
    Arc::new(Grid {
        shared_bytes,
        ..grid(PROGRAM)
    })
});

/// Bytes of a CTA slot.
const SLOT_BYTES: u32 = 512;

/// Slots of the CTA of the LSU.
const FIRST_SLOT: u8 = (CTA_BYTES / SLOT_BYTES) as u8;

/// Cycles until shared memory has seen a change, at most.
const CHANGE_CYCLES: u64 = 3;

/// Another SM.
struct LineSource {
    output: Late<Box<Packet>>,
    input: Sink<Box<Packet>>,
    /// Requests without a response, in order.
    open: VecDeque<OpenLine>,
    owed: Owed,
}

/// A line access without a response.
struct OpenLine {
    packet: Box<Packet>,
    /// The outcomes of the cycles in which shared memory may have taken it.
    may_be: Outcomes,
}

/// Correct responses to a line access.
#[derive(Clone, Copy, Default)]
struct Outcomes {
    refused: bool,
    served: bool,
}

/// The CTAs of a slot so far.
#[derive(Clone, Copy, Default)]
struct SlotHistory {
    /// Starts.
    started: u32,
    is_resident: bool,
    /// Cycle of the last change.
    changed: u64,
}

impl SlotHistory {
    fn change(&mut self, now: u64) {
        self.is_resident = !self.is_resident;
        self.started += u32::from(self.is_resident);
        self.changed = now;
    }

    /// True if the CTA with this start has ended.
    fn has_ended(&self, start: u32) -> bool {
        start < self.started || start == self.started && !self.is_resident
    }

    /// Before the last change.
    fn earlier(&self) -> Self {
        SlotHistory {
            started: self.started - u32::from(self.is_resident),
            is_resident: !self.is_resident,
            ..*self
        }
    }

    /// Adds what an access in this cycle may become.
    fn add(&self, start: u32, now: u64, outcomes: &mut Outcomes) {
        let mut add = |history: &Self| match history.has_ended(start) {
            true => outcomes.refused = true,
            false => outcomes.served = true,
        };
        add(self);
        if self.started > 0 && now <= self.changed + CHANGE_CYCLES {
            add(&self.earlier());
        }
    }
}

struct Neighbours {
    input: Input,
    lsu: Source<Box<WarpInst>>,
    subcores: Vec<Sink<Box<WarpInst>>>,
    /// Results of each access that has not returned, by its number.
    expected: Vec<Option<Vec<[u32; WARP_SIZE]>>>,
    n_expected: usize,
    lines: Vec<LineSource>,
    remote: PlainMemory,
    residence: Late<CtaResidence>,
    slots: [SlotHistory; 3],
    traps: InPort<Box<Trap>>,
}

impl Neighbours {
    fn start(&mut self) {
        self.remote = PlainMemory::default();
        let mut memory = vec![0; CTA_BYTES as usize];
        let (mut at, ops) = (0, GRID.program.code().len());
        self.expected.clear();
        for spec in self.input.accesses.clone() {
            at += spec.gap;
            let pc = u32::from(spec.op) % ops as u32;
            let mut inst = spec.inst(&GRID, pc, 0, CTA_BYTES.into());
            inst.shared_lanes = inst.lanes;
            inst.subcore = spec.warp % self.input.subcores;
            inst.issued = Cycle(at);
            inst.index = self.expected.len() as u32;
            features::note((pc, inst.info.route == Route::Shared));
            // Computed ahead: the unit takes accesses in the order of the link.
            self.expected.push(Some(perform(&inst, &mut memory, 0)));
            self.lsu.push(at, inst);
        }
        self.n_expected = self.expected.len();
        self.start_lines();
        self.start_changes();
    }

    /// Each source has lines of its own: the order between sources is free.
    fn start_lines(&mut self) {
        let (mut at, n) = (0, self.lines.len());
        for (tag, spec) in self.input.lines.iter().enumerate().filter(|_| n > 0) {
            at += spec.request.gap;
            let source = tag % n;
            let mut packet = spec.request.packet(0, tag as u32);
            let line = u32::from(spec.request.line / 4) * n as u32 + source as u32;
            // After the bytes of the CTA, which only the LSU accesses.
            packet.line = self.input.address(CTA_BYTES + line * 128, spec.start);
            self.lines[source].output.push(at, packet);
        }
    }

    fn start_changes(&mut self) {
        self.slots = Default::default();
        let (mut at, mut histories) = (0, [SlotHistory::default(); 3]);
        for change in &self.input.changes {
            at += change.gap;
            let history = &mut histories[usize::from(change.slot)];
            history.change(at);
            let residence = CtaResidence {
                slot: FIRST_SLOT + change.slot,
                start: self.input.start_number(history.started),
                slot_bytes: SLOT_BYTES,
                is_resident: history.is_resident,
            };
            self.residence.push(at, residence);
        }
    }

    /// Sends starts and ends of CTAs.
    fn change_slots(&mut self, now: Cycle) {
        let slots = &mut self.slots;
        self.residence
            .tick(now, |sent| slots[usize::from(sent.slot - FIRST_SLOT)].change(now.0));
    }

    /// Sends line accesses, and checks their responses.
    fn run_lines(&mut self, now: Cycle) {
        for source in &mut self.lines {
            let open = &mut source.open;
            source.output.tick(now, |packet| {
                open.push_back(OpenLine {
                    packet: packet.clone(),
                    may_be: Outcomes::default(),
                });
            });
            for line in open.iter_mut() {
                match self.input.named_cta(&line.packet) {
                    Some((slot, start)) => self.slots[slot].add(start, now.0, &mut line.may_be),
                    None => line.may_be.served = true,
                }
            }
            let Some(response) = source.input.take(now) else {
                continue;
            };
            let line = open.pop_front().expect("a response has a request");
            features::note((response.is_refused(), line.may_be.refused, line.may_be.served));
            if response.is_refused() {
                assert!(line.may_be.refused, "refused: {:?}", line.packet);
                assert_eq!(response.tag, line.packet.tag, "responses in the order of the requests");
            } else {
                assert!(line.may_be.served, "served: {:?}", line.packet);
                // A source's lines are its own, so the order of its responses decides what each one finds.
                source.owed.request(&mut self.remote, &without_start(line.packet));
                source.owed.response(&without_start(response));
            }
        }
    }
}

/// The packet, at its byte without a CTA: all CTAs of a slot have the same bytes.
fn without_start(mut packet: Box<Packet>) -> Box<Packet> {
    let to = RemoteByte::of(packet.line).expect("a line has an address in shared memory");
    packet.line = RemoteByte { start: 0, ..to }.address();
    packet
}

impl Input {
    /// The start number of the nth CTA of a slot, from 1 on. Numbers wrap from `MAX_START` to 1.
    fn start_number(&self, n: u32) -> u32 {
        (self.first_start + n - 1) % MAX_START + 1
    }

    /// The address of a byte for the nth CTA of its slot.
    fn address(&self, byte: u32, n: Option<u32>) -> u64 {
        let start = n.map_or(0, |n| self.start_number(n));
        let (sm, rank) = (0, 0);
        RemoteByte { sm, rank, start, byte }.address()
    }

    /// The slot of an access, from 0 on, and the number of its start. None if it is not checked.
    fn named_cta(&self, packet: &Packet) -> Option<(usize, u32)> {
        let to = RemoteByte::of(packet.line).expect("a line has an address in shared memory");
        let start = (1..=3).find(|n| self.start_number(*n) == to.start)?;
        let slot = (to.byte - CTA_BYTES) / SLOT_BYTES;
        // The slots beyond have no CTA yet.
        (slot < 3).then_some((slot as usize, start))
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.lsu.tick(now);
        for (subcore, sink) in self.subcores.iter_mut().enumerate() {
            if let Some(inst) = sink.take(now) {
                assert_eq!(usize::from(inst.subcore), subcore, "the sub-core of an access");
                let expected = self.expected[inst.index as usize].take();
                check_results(&inst, &expected.expect("an access returns once"));
                self.n_expected -= 1;
            }
        }
        assert!(self.traps.recv(now).is_none(), "no access traps");
        self.change_slots(now);
        self.run_lines(now);
        let is_idle = |source: &LineSource| source.output.is_empty() && source.open.is_empty();
        self.n_expected > 0 || !self.lines.iter().all(is_idle) || !self.residence.is_empty()
    }

    fn reset(&mut self) {
        self.lsu.clear();
        self.subcores.iter_mut().for_each(Sink::clear);
        for source in &mut self.lines {
            source.output.clear();
            source.input.clear();
            source.open.clear();
            source.owed = Owed::default();
        }
        self.residence.clear();
        self.traps.clear();
        self.start();
    }

    fn digest(&self) -> u64 {
        let lines = self.lines.iter().map(|source| source.input.digest());
        combine(self.subcores.iter().map(Sink::digest).chain(lines))
    }
}

/// Runs the shared memory.
///
/// # Panics
/// If a result is wrong, if an access is lost or doubled, or if shared memory breaks the contract.
pub fn check(input: Input) {
    let build = |wiring: &Wiring| {
        let (lsu, from_lsu) = wiring.input(1, 2);
        let (outputs, sinks): (Vec<_>, Vec<_>) = (0..input.subcores).map(|_| wiring.output(1, input.depth)).unzip();
        let sinks = sinks.into_iter().zip(input.paces);
        let mut lines = Vec::new();
        let mut line_ports = Vec::new();
        for n in 0..input.line_sources {
            let (source, requests) = wiring.input(1, 2);
            let (responses, sink) = wiring.output(1, input.depth);
            let latency = input.line_latency;
            line_ports.push(LinePorts {
                input: requests,
                output: responses,
                latency,
            });
            lines.push(LineSource {
                output: Late::new(source),
                input: Sink::new(sink, input.paces[4 + n]),
                open: VecDeque::new(),
                owed: Owed::default(),
            });
        }
        let (residence, residents) = wiring.input(1, 2);
        let (trap, traps) = wiring.output(1, 4);
        let mut shared = TINY.sm.shared;
        shared.latency = input.latency;
        // The cost of a bank conflict must not change a result.
        shared.conflict_latency_per_pass = input.conflict_latency;
        let ports = Ports {
            input: from_lsu,
            output: outputs,
            products: Vec::new(),
            lines: line_ports,
            residence: Some(residents),
            trap,
        };
        let mut world = Neighbours {
            lsu: Source::new(lsu),
            subcores: sinks.map(|(port, pace)| Sink::new(port, pace)).collect(),
            expected: Vec::new(),
            n_expected: 0,
            lines,
            remote: PlainMemory::default(),
            residence: Late::new(residence),
            slots: Default::default(),
            traps,
            input: input.clone(),
        };
        world.start();
        let config = Config {
            bytes: 1 << 14,
            shared_unit: 128,
            shared,
        };
        (SharedMemory::new(Path::root("shared"), config, ports), world)
    };
    check_component(build, input.second, 200_000);
}
