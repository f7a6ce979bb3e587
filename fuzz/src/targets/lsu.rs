//! Target: one LSU with its coalescer, between sub-cores and an L1.
//!
//! Oracle: each warp has memory of its own, and its accesses take effect in program order, lane by lane. Each instruction
//! returns once, with one credit. A store or reduction is acknowledged once. A fence returns once the L1 has performed every
//! earlier store of its warp.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::proto::launch::{Grid, Trap};
use warpwave_components::proto::mem::{Packet, PacketKind};
use warpwave_components::proto::warp::{LsuAck, WarpInst};
use warpwave_components::sm::lsu::{Config, Lsu, Ports};
use warpwave_components::storage::BASE;
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::WARP_SIZE;

use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{PlainMemory, TINY};
use crate::warp_access::{AccessSpec, check_results, grid, perform};

/// An LSU and its traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = within(1..=4))]
    subcores: usize,
    #[arbitrary(with = within(1..=3))]
    issue_interval: u32,
    #[arbitrary(with = within(1..=3))]
    accept_interval: u32,
    #[arbitrary(with = within(1..=6))]
    pending_requests: u32,
    #[arbitrary(with = one_of(&[32, 128]))]
    load_unit: u32,
    #[arbitrary(with = one_of(&[1, 2, 4]))]
    tag_banks: u32,
    /// Cycles of the L1, for lines of even and of odd numbers.
    delays: [Delay; 2],
    paces: [Pace; 10],
    #[arbitrary(with = up_to(10))]
    accesses: Vec<AccessSpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Delay(#[arbitrary(with = one_of(&[3, 1, 25, 90]))] u64);

/// Bytes of the memory of each warp: 32 lines and one more, so that the regions of two warps differ in their first bank.
const REGION: u64 = 33 * 128;
/// Warps of a sub-core.
const WARPS: usize = 4;

const PROGRAM: &str = "LD.B32 R0, [R2]
    ST.B32 [R2], R4
    LD.B64 R0, [R2]
    LD.B32X4 R0, [R2]
    ST.B32X2 [R2], R4
    LD.SB16 R0, [R2]
    ST.B8 [R2], R4
    RED.ADD.U32.B32 [R2], R4
    ATOM.ADD.U32.B32 R0, [R2], R4, RZ
    ATOM.CAS.U64.B64 R0, [R2], R4, R6
    MEMBAR.GPU
    LD.SHARED.B32 R0, [R2]
    ST.SHARED.B32 [R2], R4";

/// Instructions of the program from this one on go to shared memory.
const SHARED: u32 = 11;
const FENCE: u32 = 10;

static GRID: LazyLock<Arc<Grid>> = LazyLock::new(|| {
    Arc::new(Grid {
        allocations: vec![(BASE, 1 << 20)],
        shared_bytes: 4096,
        ..grid(PROGRAM)
    })
});

/// One instruction that has not returned.
struct Owed {
    results: Vec<[u32; WARP_SIZE]>,
    goes_to_shared: bool,
    /// For a fence: its warp on the SM, and the memory of this warp.
    fence: Option<(usize, Vec<u8>)>,
}

/// A sub-core: the instructions that it sends, and the messages that it expects.
struct Subcore {
    input: Source<Box<WarpInst>>,
    /// A fence has not returned. The sub-core sends nothing before, as a scheduler would for its warp.
    waits: bool,
    output: Sink<Box<WarpInst>>,
    ack: Sink<LsuAck>,
    /// Credits and acknowledgements of stores that each warp expects.
    credits: [u32; WARPS],
    stores: [u32; WARPS],
}

struct Neighbours {
    input: Input,
    subcores: Vec<Subcore>,
    owed: Vec<Option<Owed>>,
    n_owed: usize,
    shared: Sink<Box<WarpInst>>,
    to_l1: Sink<Box<Packet>>,
    from_l1: OutPort<Box<Packet>>,
    trap: Sink<Box<Trap>>,
    l1: PlainMemory,
    /// Responses of even and of odd lines, with the cycle in which each is due.
    responses: [VecDeque<(u64, Box<Packet>)>; 2],
}

impl Neighbours {
    fn start(&mut self) {
        self.l1 = PlainMemory::default();
        self.owed.clear();
        let n = self.subcores.len();
        let mut memories = vec![vec![0; REGION as usize]; n * WARPS];
        let mut at = vec![0; n];
        for spec in self.input.accesses.clone() {
            let subcore = usize::from(spec.first_choice()) % n;
            let warp = subcore * WARPS + usize::from(spec.warp);
            at[subcore] += spec.gap;
            let pc = u32::from(spec.op) % GRID.program.code().len() as u32;
            let is_shared = pc >= SHARED;
            // Memory of its own for each warp: the order between warps does not matter.
            let region = if is_shared { 0 } else { BASE + warp as u64 * REGION };
            let bytes = if is_shared { 4096 } else { REGION };
            let mut inst = spec.inst(&GRID, pc, region, bytes);
            inst.subcore = subcore as u8;
            inst.issued = Cycle(at[subcore]);
            // The index names the instruction when it returns.
            inst.index = self.owed.len() as u32;
            let results = match is_shared || pc == FENCE {
                true => Vec::new(),
                false => perform(&inst, &mut memories[warp], region),
            };
            // A fence without lanes orders nothing.
            let orders = pc == FENCE && !inst.lanes.is_empty();
            // The bytes that all earlier accesses of the warp leave.
            let fence = orders.then(|| (warp, memories[warp].clone()));
            let ports = &mut self.subcores[subcore];
            ports.credits[usize::from(spec.warp)] += 1;
            ports.stores[usize::from(spec.warp)] += u32::from(inst.info.is_posted);
            self.owed.push(Some(Owed {
                results,
                goes_to_shared: is_shared,
                fence,
            }));
            ports.input.push(at[subcore], inst);
        }
        self.n_owed = self.owed.len();
    }

    fn take_back(&mut self, inst: &WarpInst, from_shared: bool) {
        let owed = self.owed[inst.index as usize].take();
        let owed = owed.expect("an instruction returns once");
        self.n_owed -= 1;
        assert_eq!(owed.goes_to_shared, from_shared, "the unit of {:?}", inst.inst().op);
        // There is no shared memory here, so its accesses come back without results.
        if !from_shared {
            check_results(inst, &owed.results);
        }
        if let Some((warp, expected)) = owed.fence {
            self.subcores[usize::from(inst.subcore)].waits = false;
            self.check_memory(warp, &expected);
        }
    }

    /// Checks the memory of a warp in the L1.
    fn check_memory(&mut self, warp: usize, expected: &[u8]) {
        let first = BASE + warp as u64 * REGION;
        for (line, expected) in (first..).step_by(128).zip(expected.chunks(128)) {
            assert_eq!(
                self.l1.line(line),
                expected,
                "line {line:#x} of warp {warp} after a fence"
            );
        }
    }

    /// Performs a packet at its arrival, and answers it later.
    fn run_l1(&mut self, now: Cycle) {
        if let Some(mut packet) = self.to_l1.take(now) {
            // An invalidation changes no byte.
            if !matches!(packet.kind, PacketKind::Invalidate { .. }) {
                self.l1.perform(&mut packet);
            }
            let bank = (packet.line / 128 % 2) as usize;
            self.responses[bank].push_back((now.0 + self.input.delays[bank].0, packet));
        }
        // The banks take turns, so responses overtake each other.
        let first = (now.0 % 2) as usize;
        for bank in [first, 1 - first] {
            if self.from_l1.has_room(now)
                && let Some((_, packet)) = self.responses[bank].pop_front_if(|(at, _)| *at <= now.0)
            {
                self.from_l1.send(now, packet);
            }
        }
    }

    fn run_subcores(&mut self, now: Cycle) {
        for n in 0..self.subcores.len() {
            let subcore = &mut self.subcores[n];
            if !subcore.waits {
                let waits = &mut subcore.waits;
                subcore
                    .input
                    // A later access would change the bytes that the fence is checked against.
                    .tick_with(now, |inst| *waits = inst.pc == FENCE && !inst.lanes.is_empty());
            }
            if let Some(ack) = subcore.ack.take(now) {
                let left = match ack {
                    LsuAck::QueueCredit { warp } => &mut subcore.credits[usize::from(warp)],
                    LsuAck::StoreDone { warp } => &mut subcore.stores[usize::from(warp)],
                };
                *left = left.checked_sub(1).unwrap_or_else(|| panic!("{ack:?} is one too many"));
            }
            if let Some(inst) = subcore.output.take(now) {
                assert_eq!(usize::from(inst.subcore), n, "the sub-core of an instruction");
                self.take_back(&inst, false);
            }
        }
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.run_subcores(now);
        if let Some(inst) = self.shared.take(now) {
            self.take_back(&inst, true);
        }
        assert!(self.trap.take(now).is_none(), "no access leaves its allocation");
        self.run_l1(now);
        let expects_ack = |subcore: &Subcore| (subcore.credits, subcore.stores) != ([0; WARPS], [0; WARPS]);
        let is_busy = self.n_owed > 0 || self.subcores.iter().any(expects_ack);
        is_busy || self.to_l1.is_ready(now) || self.responses.iter().any(|waiting| !waiting.is_empty())
    }

    fn reset(&mut self) {
        for subcore in &mut self.subcores {
            subcore.input.clear();
            subcore.waits = false;
            subcore.output.clear();
            subcore.ack.clear();
            (subcore.credits, subcore.stores) = Default::default();
        }
        self.shared.clear();
        self.to_l1.clear();
        self.trap.clear();
        self.responses = Default::default();
        self.start();
    }

    fn digest(&self) -> u64 {
        let subcores = self.subcores.iter().flat_map(|s| [s.output.digest(), s.ack.digest()]);
        combine(subcores.chain([self.shared.digest(), self.to_l1.digest()]))
    }
}

fn config(input: &Input) -> Config {
    let mut lsu = TINY.sm.lsu;
    lsu.issue_interval = input.issue_interval;
    lsu.accept_interval = input.accept_interval;
    lsu.pending_requests = input.pending_requests;
    lsu.load_unit = input.load_unit;
    Config {
        sm: 0,
        sm_in_gpc: 0,
        cta_slots: 2,
        shared_unit: 128,
        lsu,
        tag_banks: input.tag_banks,
        constant: TINY.sm.constant,
        fence: TINY.sm.fence,
        first_local_slot: 0,
        warps_per_subcore: WARPS as u32,
    }
}

/// Runs the LSU.
///
/// # Panics
/// If a result is wrong, if an instruction, credit or acknowledgement is lost or doubled, or if the LSU breaks the contract.
pub fn check(input: Input) {
    let build = |wiring: &Wiring| {
        let (mut subcores, mut inputs, mut outputs, mut acks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for n in 0..input.subcores {
            let (source, to_lsu) = wiring.input(1, 2);
            let (output, sink) = wiring.output(1, 2);
            // The link has room for the acknowledgement of every store: a response cannot wait.
            let (ack, acknowledged) = wiring.output(1, 64);
            inputs.push(to_lsu);
            outputs.push(output);
            acks.push(ack);
            subcores.push(Subcore {
                input: Source::new(source),
                waits: false,
                output: Sink::new(sink, input.paces[n]),
                ack: Sink::new(acknowledged, input.paces[4 + n]),
                credits: [0; WARPS],
                stores: [0; WARPS],
            });
        }
        let (to_shared, shared) = wiring.output(1, 2);
        let (l1, to_l1) = wiring.output(1, 2);
        let (from_l1, response) = wiring.input(1, 4);
        let (trap, traps) = wiring.output(1, 1);
        let ports = Ports {
            input: inputs,
            output: outputs,
            ack: acks,
            shared: to_shared,
            l1,
            response,
            trap,
            constant: None,
            cluster: None,
            bulk: None,
        };
        let mut world = Neighbours {
            subcores,
            owed: Vec::new(),
            n_owed: 0,
            shared: Sink::new(shared, input.paces[8]),
            to_l1: Sink::new(to_l1, input.paces[9]),
            from_l1,
            trap: Sink::new(traps, Pace::ALWAYS),
            l1: PlainMemory::default(),
            responses: Default::default(),
            input: input.clone(),
        };
        world.start();
        (Lsu::new(Path::root("lsu"), config(&input), ports), world)
    };
    check_component(build, input.second, 200_000);
}
