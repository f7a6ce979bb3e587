//! Target: mbarriers in shared memory, between an LSU and a copy engine.
//!
//! Oracle: a barrier as the PTX ISA describes it, with its phase, its pending arrivals and its pending bytes. Arrivals of
//! the LSU return the state before them. A test is true exactly if its phase is complete. A `try_wait` may be either if its
//! phase ends later. An arrival that exceeds a count traps, and changes neither its mbarrier nor those of higher lanes.

mod model;

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::proto::cluster::remote_address;
use warpwave_components::proto::launch::{Grid, Trap, TrapKind};
use warpwave_components::proto::mem::{AtomicLane, AtomicLanes, Packet, PacketKind};
use warpwave_components::proto::warp::{IssueInfo, WarpInst};
use warpwave_components::sm::shared::{Config, LinePorts, Ports, SharedMemory};
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::mbarrier::Fault;
use warpwave_isa::inst::{AtomOp, Ty};
use warpwave_isa::lane::LaneMask;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{Late, SecondRun, Sink, Wiring, World, check as check_component, combine};
use crate::parts::TINY;
use crate::warp_access::grid;
use model::{MOST_BYTES, Mbarrier};

/// Shared memory and its mbarriers.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = one_of(&[100, 0, 1, 1000]))]
    try_wait_cycles: u32,
    #[arbitrary(with = within(1..=40))]
    latency: u32,
    #[arbitrary(with = within(1..=3))]
    depth: u32,
    paces: [Pace; 3],
    /// Arrivals that the first mbarriers wait for.
    counts: [Count; OWN],
    #[arbitrary(with = up_to(30))]
    ops: Vec<OpSpec>,
    #[arbitrary(with = up_to(4))]
    rounds: Vec<RoundSpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Count(#[arbitrary(with = within(1..=5))] u32);

/// An instruction of the LSU on the first mbarriers. Lane n uses the mbarrier of number `first` + n.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct OpSpec {
    #[arbitrary(with = one_of(&[0, 0, 1, 7, 60]))]
    gap: u64,
    #[arbitrary(with = one_of(&[ARRIVE, DROP, TEST, TRY]))]
    pc: u32,
    #[arbitrary(with = one_of(&[1, 3, 0xff, 0, 0x11]))]
    lanes: u32,
    first: u8,
    #[arbitrary(with = within(0..=2))]
    arrivals: u32,
    /// Bytes that an arrival adds. If bytes are missing, it takes them all away.
    #[arbitrary(with = one_of(&[0, 0, 16, 4096, MOST_BYTES, MOST_BYTES + 1]))]
    bytes: i64,
    /// Arrivals beyond the pending ones.
    #[arbitrary(with = one_of(&[0, 0, 0, 0, 0, 0, 1, 0xfffff]))]
    beyond: u32,
    /// The parity that a test names, against that of the phase.
    is_over: bool,
    subcore: bool,
}

/// A phase of the last mbarrier, which a copy engine uses too. Its count is `CONSUMERS`.
#[derive(Arbitrary, Clone, Debug)]
struct RoundSpec {
    /// Cycles from the start of the round to each arrival of the LSU. The first one adds the bytes of the round.
    arrivals: [Wait; CONSUMERS as usize],
    /// Bytes of each copy, and cycles to its arrival.
    #[arbitrary(with = up_to(4))]
    copies: Vec<CopySpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Wait(#[arbitrary(with = one_of(&[0, 1, 5, 40, 300]))] u64);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct CopySpec {
    wait: Wait,
    #[arbitrary(with = one_of(&[16, 1024, 65_536]))]
    bytes: u32,
}

const PROGRAM: &str = "ATOM.ARRIVE.SHARED.U64.B64 R0, [R2], R4, RZ
    ATOM.ARRIVEDROP.SHARED.U64.B64 R0, [R2], R4, RZ
    SYNCS.PHASECHK.SHARED.B64 P0, [R2], R4
    SYNCS.PHASECHK.SHARED.B64.N1 P0, [R2], R4
    LD.SHARED.B64 R0, [R2]
    ST.SHARED.B64 [R2], R4";
const ARRIVE: u32 = 0;
const DROP: u32 = 1;
const TEST: u32 = 2;
const TRY: u32 = 3;
const LOAD: u32 = 4;
const STORE: u32 = 5;

/// Mbarriers that the LSU alone uses. One more is shared with the copy engine.
const OWN: usize = 3;
/// Arrivals per phase of the shared mbarrier.
const CONSUMERS: u32 = 2;
/// First byte of the CTA.
const CTA: u32 = 1024;

static GRID: LazyLock<Arc<Grid>> = LazyLock::new(|| {
    Arc::new(Grid {
        shared_bytes: 1024,
        ..grid(PROGRAM)
    })
});

/// The result that an instruction of the LSU must return.
#[derive(Clone, Debug)]
enum Owed {
    /// The bits of the mbarrier of each lane, before an arrival or at a load.
    Bits(Vec<(usize, u64)>),
    /// True or false for each lane. `None`: either.
    Tests(Vec<(usize, Option<bool>)>),
    /// The end of a round, or false.
    EndOfRound,
    /// Nothing: a store.
    Nothing,
}

/// A lane of a test that may wait.
struct Waiting {
    /// Number of the instruction.
    index: usize,
    lane: usize,
    barrier: usize,
    /// The phase that it waits for.
    phase: u64,
}

struct Neighbours {
    input: Input,
    lsu: Late<Box<WarpInst>>,
    subcores: Vec<Sink<Box<WarpInst>>>,
    copies: Late<Box<Packet>>,
    copied: Sink<Box<Packet>>,
    barriers: [Mbarrier; OWN + 1],
    owed: Vec<Option<Owed>>,
    n_owed: usize,
    traps: Sink<Box<Trap>>,
    /// The traps that shared memory owes, in order: instruction, lane, mbarrier, fault.
    owed_traps: VecDeque<(u32, usize, usize, Fault)>,
    /// Rounds begun, and arrivals of the round that no source has sent.
    round: usize,
    unsent: usize,
    n_copies: usize,
    last_load: bool,
}

/// The instruction at `pc`, with address and operand of each lane.
fn inst(pc: u32, subcore: bool, index: usize, lanes: &[(usize, usize, u64)]) -> Box<WarpInst> {
    let mut inst = Box::new(WarpInst::blank(subcore.into(), GRID.clone()));
    (inst.pc, inst.index, inst.shared_base) = (pc, index as u32, CTA);
    inst.info = IssueInfo::of(inst.inst(), inst.decoded(), &inst.timing());
    inst.lanes = LaneMask(lanes.iter().fold(0, |mask, (lane, ..)| mask | 1 << lane));
    inst.shared_lanes = inst.lanes;
    let mut addresses = [0; 32];
    for &(lane, barrier, operand) in lanes {
        addresses[lane] = 8 * barrier as u64;
        let words = [addresses[lane] as u32, operand as u32, (operand >> 32) as u32];
        for (n, word) in words.into_iter().enumerate() {
            let row = &mut inst.operands.words[n].0;
            row[lane] = word;
        }
    }
    inst.addresses.set_all(|all| *all = addresses);
    inst
}

impl Neighbours {
    fn start(&mut self) {
        self.owed.clear();
        self.owed_traps.clear();
        (self.n_owed, self.round, self.unsent, self.n_copies, self.last_load) = (0, 0, 0, 0, false);
        let counts: Vec<u32> = self
            .input
            .counts
            .iter()
            .map(|count| count.0)
            .chain([CONSUMERS])
            .collect();
        self.barriers = std::array::from_fn(|n| Mbarrier::new(counts[n]));
        let stores: Vec<_> = (0..=OWN).map(|n| (n, n, self.barriers[n].bits())).collect();
        self.push(0, STORE, false, &stores, Owed::Nothing);
        let mut at = 0;
        let mut tests = Vec::new();
        for spec in self.input.ops.clone() {
            at += spec.gap;
            self.push_op(at, &spec, &mut tests);
        }
        self.settle_tests(&tests);
    }

    fn push(&mut self, at: u64, pc: u32, subcore: bool, lanes: &[(usize, usize, u64)], owed: Owed) {
        self.lsu.push(at, inst(pc, subcore, self.owed.len(), lanes));
        self.owed.push(Some(owed));
        self.n_owed += 1;
    }

    /// Adds an instruction on the mbarriers of the LSU. `tests` collects the tests that may wait.
    fn push_op(&mut self, at: u64, spec: &OpSpec, tests: &mut Vec<Waiting>) {
        let mut lanes = Vec::new();
        let (mut before, mut results) = (Vec::new(), Vec::new());
        let mut has_trapped = false;
        for lane in LaneMask(spec.lanes).iter() {
            let number = (usize::from(spec.first) + lane) % OWN;
            let barrier = &mut self.barriers[number];
            if spec.pc == TEST || spec.pc == TRY {
                let phase = barrier.phase + u64::from(!spec.is_over) + 1;
                lanes.push((lane, number, phase & 1));
                // The test names the phase before this one, or this one.
                // A `try_wait` on an open phase may see its end, so both results can be right.
                let waits = spec.pc == TRY && !spec.is_over;
                results.push((lane, (!waits).then_some(spec.is_over)));
                if waits {
                    tests.push(Waiting {
                        index: self.owed.len(),
                        lane,
                        barrier: number,
                        phase: barrier.phase,
                    });
                }
                continue;
            }
            let is_drop = spec.pc == DROP;
            // A drop lowers the count of later phases too. It must leave at least one.
            let most = if is_drop {
                barrier.pending.min(barrier.count - 1)
            } else {
                barrier.pending
            };
            let arrivals = match spec.beyond {
                0 => spec.arrivals.min(most),
                beyond => barrier.pending + beyond,
            };
            // Takes back missing bytes, so that phases complete without a copy.
            let bytes = if barrier.bytes > 0 { -barrier.bytes } else { spec.bytes };
            lanes.push((lane, number, u64::from(arrivals) | (bytes as u32 as u64) << 32));
            if has_trapped {
                continue;
            }
            if let Some(fault) = barrier.fault(arrivals, bytes) {
                features::note(("fault", arrivals > barrier.pending, before.len()));
                self.owed_traps.push_back((spec.pc, lane, number, fault));
                has_trapped = true;
                continue;
            }
            before.push((lane, barrier.bits()));
            barrier.arrive(arrivals, bytes, is_drop);
            features::note((is_drop, arrivals, bytes.signum(), barrier.pending == barrier.count));
        }
        let owed = if spec.pc == TEST || spec.pc == TRY {
            Owed::Tests(results)
        } else {
            Owed::Bits(before)
        };
        self.push(at, spec.pc, spec.subcore, &lanes, owed);
    }

    /// A test of a phase that no later instruction completes is false.
    fn settle_tests(&mut self, tests: &[Waiting]) {
        for test in tests
            .iter()
            .filter(|test| self.barriers[test.barrier].phase == test.phase)
        {
            let Some(Owed::Tests(results)) = &mut self.owed[test.index] else {
                continue;
            };
            let result = results.iter_mut().find(|(lane, _)| *lane == test.lane);
            result.expect("the lane of a test").1 = Some(false);
        }
    }

    /// Begins the next round: arrivals of both sources, and a test of the phase.
    fn begin_round(&mut self, now: Cycle) {
        let Some(round) = self.input.rounds.get(self.round).cloned() else {
            return self.load_all(now);
        };
        self.round += 1;
        let total: u32 = round.copies.iter().map(|copy| copy.bytes).sum();
        for (n, wait) in round.arrivals.iter().enumerate() {
            let bytes = if n == 0 { total } else { 0 };
            let operand = 1 | u64::from(bytes) << 32;
            // The state before an arrival depends on the copy engine.
            self.push(now.0 + 1 + wait.0, ARRIVE, false, &[(0, OWN, operand)], Owed::Nothing);
        }
        for copy in &round.copies {
            self.copies
                .push(now.0 + 1 + copy.wait.0, arrival(copy.bytes, self.n_copies as u32));
            self.n_copies += 1;
        }
        self.unsent = round.arrivals.len() + round.copies.len();
        let barrier = &mut self.barriers[OWN];
        // A round completes exactly one phase. The order of its arrivals is open.
        barrier.phase += 1;
        features::note((round.copies.len(), total.checked_ilog2()));
        self.test_round(now);
    }

    fn test_round(&mut self, now: Cycle) {
        // Round n completes phase n - 1. The other sub-core asks for its parity.
        let parity = (self.round as u64 + 1) & 1;
        self.push(now.0 + 1, TRY, true, &[(5, OWN, parity)], Owed::EndOfRound);
    }

    /// Loads all mbarriers at the end.
    fn load_all(&mut self, now: Cycle) {
        if !std::mem::replace(&mut self.last_load, true) {
            let lanes: Vec<_> = (0..=OWN).map(|n| (n, n, 0)).collect();
            let bits = (0..=OWN).map(|n| (n, self.barriers[n].bits())).collect();
            let end = self.input.ops.iter().map(|spec| spec.gap).sum::<u64>().max(now.0);
            self.push(end + 1, LOAD, false, &lanes, Owed::Bits(bits));
        }
    }

    fn take_back(&mut self, found: &WarpInst, now: Cycle) {
        let owed = self.owed[found.index as usize].take().expect("an access returns once");
        self.n_owed -= 1;
        match owed {
            Owed::Nothing => {}
            Owed::Bits(lanes) => {
                for (lane, bits) in lanes {
                    let [low, high] = [0, 1].map(|n| u64::from(found.results.words[n].0[lane]));
                    assert_eq!(
                        high << 32 | low,
                        bits,
                        "lane {lane} of {} number {}",
                        found.inst(),
                        found.index
                    );
                }
            }
            Owed::Tests(lanes) => {
                for (lane, expected) in lanes {
                    let result = found.results.preds[0].contains(lane);
                    assert!(
                        expected.is_none_or(|expected| expected == result),
                        "lane {lane} of {} number {} is {result}",
                        found.inst(),
                        found.index
                    );
                }
            }
            Owed::EndOfRound => {
                let is_over = found.results.preds[0].contains(5);
                assert!(
                    !is_over || self.unsent == 0,
                    "round {} ends before its last arrival",
                    self.round
                );
                features::note(("round", is_over));
                match is_over {
                    true => self.begin_round(now),
                    false => self.test_round(now),
                }
            }
        }
    }
}

/// The arrival of a copy engine, after a copy of some bytes.
fn arrival(bytes: u32, tag: u32) -> Box<Packet> {
    let mut atomic = AtomicLanes {
        op: AtomOp::Arrive,
        ty: Ty::U64,
        n: 1,
        ..AtomicLanes::default()
    };
    atomic.lanes[0] = AtomicLane {
        // The high half takes away the bytes that have arrived. The low half, the number of arrivals, is 0.
        value: u128::from(bytes.wrapping_neg()) << 32,
        ..AtomicLane::default()
    };
    Box::new(Packet {
        kind: PacketKind::Reduction,
        line: remote_address(0, CTA + 8 * OWN as u32),
        tag,
        atomic: Some(Box::new(atomic)),
        ..Packet::blank()
    })
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        if now.0 == 8 {
            // The store of all mbarriers is in shared memory.
            self.begin_round(now);
        }
        let round = |inst: &WarpInst| inst.pc == ARRIVE && inst.addresses.get(0) == 8 * OWN as u64;
        let mut sent = 0;
        self.lsu.tick(now, |inst| sent += usize::from(round(inst)));
        self.copies.tick(now, |_| sent += 1);
        self.unsent -= sent;
        for subcore in 0..self.subcores.len() {
            if let Some(inst) = self.subcores[subcore].take(now) {
                assert_eq!(usize::from(inst.subcore), subcore, "the sub-core of an access");
                self.take_back(&inst, now);
            }
        }
        if let Some(trap) = self.traps.take(now) {
            let (pc, lane, barrier, fault) = self.owed_traps.pop_front().expect("an owed trap");
            // A row of a block has 32 threads, so x is the lane.
            let found = (trap.kind, trap.address, trap.thread[0] as usize, trap.pc);
            let address = Some(8 * barrier as u64);
            assert_eq!(found, (TrapKind::Mbarrier(fault), address, lane, pc));
        }
        if let Some(packet) = self.copied.take(now) {
            assert_eq!(packet.kind, PacketKind::Reduction);
            self.n_copies -= 1;
        }
        !self.last_load || self.n_owed > 0 || self.n_copies > 0 || !self.owed_traps.is_empty()
    }

    fn reset(&mut self) {
        self.lsu.clear();
        self.copies.clear();
        self.copied.clear();
        self.traps.clear();
        self.subcores.iter_mut().for_each(Sink::clear);
        self.start();
    }

    fn digest(&self) -> u64 {
        combine(
            self.subcores
                .iter()
                .map(Sink::digest)
                .chain([self.copied.digest(), self.traps.digest()]),
        )
    }
}

/// Runs the shared memory.
///
/// # Panics
/// If a phase ends early or never, or a state is wrong. If an access is lost or doubled. If shared memory breaks the contract.
pub fn check(input: Input) {
    let build = |wiring: &Wiring| {
        let (lsu, from_lsu) = wiring.input(1, 2);
        let (outputs, sinks): (Vec<_>, Vec<_>) = (0..2).map(|_| wiring.output(1, input.depth)).unzip();
        let (copies, requests) = wiring.input(1, 2);
        let (responses, copied) = wiring.output(1, input.depth);
        let (trap, traps) = wiring.output(1, 4);
        let mut shared = TINY.sm.shared;
        shared.latency = input.latency;
        shared.try_wait_cycles = input.try_wait_cycles;
        let ports = Ports {
            input: from_lsu,
            output: outputs,
            products: Vec::new(),
            lines: vec![LinePorts {
                input: requests,
                output: responses,
                latency: input.latency,
            }],
            residence: None,
            trap,
        };
        let subcores = sinks.into_iter().zip(input.paces);
        let mut world = Neighbours {
            lsu: Late::new(lsu),
            subcores: subcores.map(|(port, pace)| Sink::new(port, pace)).collect(),
            copies: Late::new(copies),
            copied: Sink::new(copied, input.paces[2]),
            barriers: [Mbarrier::new(1); OWN + 1],
            owed: Vec::new(),
            n_owed: 0,
            traps: Sink::new(traps, Pace::ALWAYS),
            owed_traps: VecDeque::new(),
            round: 0,
            unsent: 0,
            n_copies: 0,
            last_load: false,
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
