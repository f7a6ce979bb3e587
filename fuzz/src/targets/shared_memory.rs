//! Target: shared memory between an LSU, its sub-cores and other SMs.
//!
//! Oracle: the accesses of the LSU take effect in order of arrival, lane by lane, as in a memory without time. Lines of other SMs do so in
//! a region of their own. Each access returns once, to its sub-core.

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::proto::cluster::remote_address;
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
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
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
    lines: Vec<Request>,
    #[arbitrary(with = up_to(30))]
    accesses: Vec<AccessSpec>,
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

/// Another SM: its accesses, their responses, and what it expects.
type LineSource = (Source<Box<Packet>>, Sink<Box<Packet>>, Owed);

struct Neighbours {
    input: Input,
    lsu: Source<Box<WarpInst>>,
    subcores: Vec<Sink<Box<WarpInst>>>,
    /// Results of each access that has not returned, by its number.
    expected: Vec<Option<Vec<[u32; WARP_SIZE]>>>,
    n_expected: usize,
    lines: Vec<LineSource>,
    remote: PlainMemory,
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
    }

    /// Each source has lines of its own: the order between sources is free.
    fn start_lines(&mut self) {
        let (mut at, n) = (0, self.lines.len());
        self.lines.iter_mut().for_each(|(.., owed)| *owed = Owed::default());
        for (tag, request) in self.input.lines.iter().enumerate().filter(|_| n > 0) {
            at += request.gap;
            let source = tag % n;
            let (to, _, owed) = &mut self.lines[source];
            let mut packet = request.packet(0, tag as u32);
            let line = u32::from(request.line / 4) * n as u32 + source as u32;
            // After the bytes of the CTA, which only the LSU accesses.
            packet.line = remote_address(0, CTA_BYTES + line * 128);
            owed.request(&mut self.remote, &packet);
            to.push(at, packet);
        }
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
        for (source, sink, owed) in &mut self.lines {
            source.tick(now);
            if let Some(response) = sink.take(now) {
                owed.response(&response);
            }
        }
        let is_done = self.n_expected == 0 && self.lines.iter().all(|(.., owed)| owed.is_empty());
        !is_done
    }

    fn reset(&mut self) {
        self.lsu.clear();
        self.subcores.iter_mut().for_each(Sink::clear);
        for (source, sink, _) in &mut self.lines {
            source.clear();
            sink.clear();
        }
        self.traps.clear();
        self.start();
    }

    fn digest(&self) -> u64 {
        let lines = self.lines.iter().map(|(_, sink, _)| sink.digest());
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
            lines.push((
                Source::new(source),
                Sink::new(sink, input.paces[4 + n]),
                Owed::default(),
            ));
        }
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
            residence: None,
            trap,
        };
        let mut world = Neighbours {
            lsu: Source::new(lsu),
            subcores: sinks.map(|(port, pace)| Sink::new(port, pace)).collect(),
            expected: Vec::new(),
            n_expected: 0,
            lines,
            remote: PlainMemory::default(),
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
