//! Target: the bulk copy engine (TMA) between an LSU, an L1 and shared memory.
//!
//! Oracle: own loops over the bytes of a copy and over the elements of a tile. When the engine arrives at an mbarrier, some copy of this
//! barrier has all its bytes in shared memory. When a copy to global memory ends, its bytes are in the L1, and no other byte has changed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::config;
use warpwave_components::proto::cluster::remote;
use warpwave_components::proto::launch::Grid;
use warpwave_components::proto::mem::{Packet, PacketKind};
use warpwave_components::proto::warp::WarpInst;
use warpwave_components::sm::tma::{Ports, Tma};
use warpwave_components::storage::BASE;
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::bulk::TensorMap;
use warpwave_isa::inst::AtomOp;
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::space::PARAM_WINDOW;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::warp_access::grid;

/// An engine and its copies.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = one_of(&[4, 0, 1, 40]))]
    latency: u32,
    #[arbitrary(with = within(1..=8))]
    pieces: u32,
    /// Cycles of the L1 for lines of even and of odd numbers, and of shared memory.
    delays: [Delay; 3],
    #[arbitrary(with = within(1..=3))]
    depth: u32,
    paces: [Pace; 4],
    #[arbitrary(with = up_to(8))]
    copies: Vec<CopySpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Delay(#[arbitrary(with = one_of(&[3, 1, 25, 90]))] u64);

/// One instruction: a copy of each lane.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct CopySpec {
    #[arbitrary(with = one_of(&[0, 0, 1, 9, 100]))]
    gap: u64,
    to_global: bool,
    #[arbitrary(with = one_of(&[1, 0, 1 << 31 | 1, 6]))]
    lanes: u32,
    subcore: bool,
    /// The second CTA of the SM.
    second_cta: bool,
    #[arbitrary(with = within(0..=2))]
    barrier: u8,
    /// Position of the copy in its lines of shared and of global memory, in units of 16 bytes.
    shared_at: u8,
    global_at: u8,
    tile: Option<TileSpec>,
    /// Units of 16 bytes of a plain copy.
    #[arbitrary(with = one_of(&[4, 0, 1, 8, 9, 40]))]
    units: u32,
}

/// A tensor, and a tile of it.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct TileSpec {
    #[arbitrary(with = one_of(&[4, 1, 2, 8]))]
    element: u8,
    #[arbitrary(with = one_of(&[2, 1, 3, 5]))]
    rank: u8,
    #[arbitrary(with = within(0..=3))]
    swizzle: u8,
    #[arbitrary(with = one_of(&[[9, 5, 2, 1, 2], [40, 3, 1, 2, 1], [1, 1, 1, 1, 1], [16, 8, 4, 2, 2]]))]
    sizes: [u32; 5],
    #[arbitrary(with = one_of(&[[8, 2, 1, 1, 1], [16, 4, 1, 1, 1], [3, 5, 2, 1, 2], [32, 1, 1, 1, 1], [2, 2, 2, 2, 2]]))]
    tile: [u32; 5],
    /// Coordinates of its first element, less 3.
    at: [u8; 5],
}

const PROGRAM: &str = "UBLKCP R0, R2, R4, R5
    UBLKCP.N1 R0, R2, R4, R5
    UBLKCP.N2 R0, R2, R4, R6
    UBLKCP.N3 R0, R2, R4, R7
    UBLKCP.N5 R0, R2, R4, R9
    UBLKCP.HI R0, R2, R4, R5
    UBLKCP.HI.N1 R0, R2, R4, R5
    UBLKCP.HI.N2 R0, R2, R4, R6
    UBLKCP.HI.N3 R0, R2, R4, R7
    UBLKCP.HI.N5 R0, R2, R4, R9";

/// Program counters of the copies with 0, 1, 2, 3 and 5 coordinates to shared memory. Those to global memory follow.
const RANKS: [u8; 5] = [0, 1, 2, 3, 5];

/// Bytes of shared memory of a copy: it uses a part of them.
const SLOT: u32 = 2048;
/// Bytes of shared memory of a CTA: one slot per copy of the largest input, then its mbarriers.
const CTA_BYTES: u32 = 25 * SLOT;
const BARRIERS: u32 = 24 * SLOT;
/// Bytes of global memory of a copy.
const REGION: u64 = 1 << 17;

static GRID: LazyLock<Grid> = LazyLock::new(|| grid(PROGRAM));

/// A move of a byte. `global` is `None` outside of the tensor.
#[derive(Clone, Copy, Debug)]
struct Move {
    shared: u32,
    global: Option<u64>,
}

/// The copy of one lane.
#[derive(Clone, Debug)]
struct Copy {
    to_global: bool,
    /// Address of its mbarrier in shared memory.
    barrier: u32,
    /// Bytes that its mbarrier counts.
    bytes: u32,
    moves: Vec<Move>,
}

impl TileSpec {
    /// The tensor at `base`, with a tile of at most `SLOT` bytes.
    fn map(&self, base: u64) -> TensorMap {
        let used = |all: [u32; 5]| std::array::from_fn(|n| if n < usize::from(self.rank) { all[n] } else { 1 });
        let (sizes, tile) = (used(self.sizes), used(self.tile));
        let mut strides = [u64::from(self.element); 5];
        // Rows are 16 bytes apart or more.
        strides[1] = (u64::from(sizes[0]) * strides[0]).next_multiple_of(16) + 16;
        for n in 2..5 {
            strides[n] = strides[n - 1] * u64::from(sizes[n - 1]);
        }
        TensorMap {
            base,
            rank: self.rank,
            element: self.element,
            swizzle: self.swizzle,
            sizes,
            strides,
            tile,
        }
    }

    fn coordinates(&self) -> [i32; 5] {
        std::array::from_fn(|n| match n < usize::from(self.rank) {
            true => i32::from(self.at[n] % 12) - 3,
            false => 0,
        })
    }
}

/// The moves of a tile, element by element. `shared` is its first byte in the CTA.
fn tile_moves(map: &TensorMap, at: [i32; 5], shared: u32) -> Vec<Move> {
    let n_elements: u32 = map.tile.iter().product();
    let mut moves = Vec::new();
    for n in 0..n_elements {
        let mut rest = n;
        let mut global = Some(map.base);
        for axis in 0..5 {
            let position = i64::from(at[axis]) + i64::from(rest % map.tile[axis]);
            rest /= map.tile[axis];
            let is_inside = position >= 0 && position < i64::from(map.sizes[axis]);
            global = global
                .filter(|_| is_inside)
                .map(|base| base + position as u64 * map.strides[axis]);
        }
        for byte in 0..u32::from(map.element) {
            let at = shared + n * u32::from(map.element) + byte;
            let (line, chunk) = (at / 128, at % 128 / 16);
            let chunk = chunk ^ line % (1 << map.swizzle);
            moves.push(Move {
                shared: line * 128 + chunk * 16 + at % 16,
                global: global.map(|global| global + u64::from(byte)),
            });
        }
    }
    moves
}

/// The first bytes of global and of shared memory.
fn initial(address: u64) -> u8 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Lines of memory, with the first bytes where none is written.
#[derive(Clone, Default)]
struct Lines(HashMap<u64, [u8; 128]>);

impl Lines {
    fn line(&mut self, number: u64) -> &mut [u8; 128] {
        let first = |at: usize| initial(128 * number + at as u64);
        self.0.entry(number).or_insert_with(|| std::array::from_fn(first))
    }

    fn get(&self, address: u64) -> u8 {
        let line = self.0.get(&(address / 128));
        line.map_or_else(|| initial(address), |line| line[address as usize % 128])
    }

    fn set(&mut self, address: u64, byte: u8) {
        self.line(address / 128)[address as usize % 128] = byte;
    }
}

/// All copies of an input: instructions, and what each does.
struct Plan {
    grid: Arc<Grid>,
    insts: Vec<(u64, Box<WarpInst>)>,
    /// Copies of each instruction.
    copies: Vec<Vec<Copy>>,
}

impl Plan {
    fn new(input: &Input) -> Plan {
        let mut maps = Vec::new();
        let mut drafts = Vec::new();
        let (mut at, mut slot) = (0, 0);
        for spec in &input.copies {
            at += spec.gap;
            let mut lanes = Vec::new();
            for lane in LaneMask(spec.lanes).iter() {
                lanes.push((lane, draft(spec, slot, &mut maps)));
                slot += 1;
            }
            drafts.push((at, *spec, lanes));
        }
        let words = |map: &TensorMap| {
            let bytes = map.to_bytes();
            bytes
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")))
                .collect::<Vec<_>>()
        };
        let grid = Arc::new(Grid {
            constants: vec![maps.iter().flat_map(words).collect()],
            shared_bytes: CTA_BYTES,
            ..GRID.clone()
        });
        let mut plan = Plan {
            grid,
            insts: Vec::new(),
            copies: Vec::new(),
        };
        drafts
            .into_iter()
            .for_each(|(at, spec, lanes)| plan.add(at, &spec, lanes));
        plan
    }

    fn add(&mut self, at: u64, spec: &CopySpec, lanes: Vec<(usize, Draft)>) {
        let mut inst = Box::new(WarpInst::blank(spec.subcore.into(), self.grid.clone()));
        let rank = spec.tile.map_or(0, |tile| tile.rank);
        let pc = RANKS.iter().position(|&n| n == rank).expect("a listed rank");
        inst.pc = pc as u32 + if spec.to_global { RANKS.len() as u32 } else { 0 };
        inst.lanes = LaneMask(spec.lanes);
        inst.index = self.insts.len() as u32;
        inst.shared_base = base_of(spec);
        let mut copies = Vec::new();
        for (lane, draft) in lanes {
            for (n, word) in draft.operands.iter().enumerate() {
                let Lanes(words) = &mut inst.operands.words[n];
                words[lane] = *word;
            }
            copies.push(draft.copy);
        }
        self.insts.push((at, inst));
        self.copies.push(copies);
    }
}

/// First byte of the CTA of a copy.
fn base_of(spec: &CopySpec) -> u32 {
    if spec.second_cta { CTA_BYTES } else { 0 }
}

/// Operand words and moves of a copy.
struct Draft {
    operands: Vec<u32>,
    copy: Copy,
}

/// The copy in shared memory slot `slot`. Adds its tensor map to `maps`.
fn draft(spec: &CopySpec, slot: u32, maps: &mut Vec<TensorMap>) -> Draft {
    let shared = slot * SLOT + 16 * (u32::from(spec.shared_at) % 16);
    let global = BASE + u64::from(slot) * REGION + 16 * (u64::from(spec.global_at) % 16);
    let barrier = BARRIERS + 8 * u32::from(spec.barrier);
    let (extent, source, moves, bytes) = match spec.tile {
        Some(tile) => {
            let map = tile.map(global);
            let at = tile.coordinates();
            let address = PARAM_WINDOW + 128 * maps.len() as u64;
            maps.push(map);
            let words = at[..usize::from(tile.rank)].iter().map(|&at| at as u32).collect();
            let bytes = map.tile.iter().product::<u32>() * u32::from(map.element);
            (words, address, tile_moves(&map, at, shared), bytes)
        }
        None => {
            let bytes = 16 * spec.units;
            let moves = (0..bytes).map(|n| Move {
                shared: shared + n,
                global: Some(global + u64::from(n)),
            });
            (vec![bytes], global, moves.collect(), bytes)
        }
    };
    let operands = [
        vec![shared, source as u32, (source >> 32) as u32],
        extent,
        vec![barrier],
    ]
    .concat();
    features::note((
        spec.to_global,
        spec.tile.map(|tile| (tile.rank, tile.swizzle)),
        moves.len().checked_ilog2(),
    ));
    Draft {
        operands,
        copy: Copy {
            to_global: spec.to_global,
            barrier: base_of(spec) + barrier,
            bytes,
            moves: moves
                .into_iter()
                .map(|byte| Move {
                    shared: base_of(spec) + byte.shared,
                    ..byte
                })
                .collect(),
        },
    }
}

struct Neighbours {
    input: Input,
    lsu: Source<Box<WarpInst>>,
    subcores: Vec<Sink<Box<WarpInst>>>,
    to_l1: Sink<Box<Packet>>,
    from_l1: OutPort<Box<Packet>>,
    to_shared: Sink<Box<Packet>>,
    from_shared: OutPort<Box<Packet>>,
    /// Responses of even and odd lines, and of shared memory, with the cycle in which each is due.
    responses: [VecDeque<(u64, Box<Packet>)>; 3],
    global: Lines,
    shared: Lines,
    /// Memories after all copies.
    expected: [Lines; 2],
    copies: Vec<Vec<Copy>>,
    /// Copies to shared memory whose barrier has not been told.
    arriving: Vec<Copy>,
    returned: Vec<bool>,
    /// Pieces in flight between engine and memories.
    pieces: u32,
}

impl Neighbours {
    fn start(&mut self) {
        let plan = Plan::new(&self.input);
        (self.global, self.shared, self.expected) = Default::default();
        self.pieces = 0;
        self.returned = vec![false; plan.insts.len()];
        for (at, inst) in plan.insts {
            self.lsu.push(at, inst);
        }
        let [global, shared] = &mut self.expected;
        for copy in plan.copies.iter().flatten() {
            for &Move {
                shared: here,
                global: there,
            } in &copy.moves
            {
                match (copy.to_global, there) {
                    (true, Some(there)) => global.set(there, initial(here.into())),
                    (true, None) => {}
                    (false, there) => shared.set(here.into(), there.map_or(0, initial)),
                }
            }
        }
        self.arriving = plan
            .copies
            .iter()
            .flatten()
            .filter(|copy| !copy.to_global)
            .cloned()
            .collect();
        self.copies = plan.copies;
    }

    /// True if the bytes of a copy are at their end.
    fn is_there(&self, copy: &Copy) -> bool {
        copy.moves.iter().all(|byte| match (copy.to_global, byte.global) {
            (true, Some(there)) => self.global.get(there) == initial(byte.shared.into()),
            (true, None) => true,
            (false, there) => self.shared.get(byte.shared.into()) == there.map_or(0, initial),
        })
    }

    fn take_back(&mut self, now: Cycle) {
        for n in 0..self.subcores.len() {
            let Some(inst) = self.subcores[n].take(now) else {
                continue;
            };
            assert_eq!(usize::from(inst.subcore), n, "the sub-core of a copy");
            let number = inst.index as usize;
            assert!(
                !std::mem::replace(&mut self.returned[number], true),
                "copy {number} ends twice"
            );
            for copy in self.copies[number].iter().filter(|copy| copy.to_global) {
                assert!(
                    self.is_there(copy),
                    "copy {number} ends before its bytes are in global memory"
                );
            }
        }
    }

    /// Performs a packet in the L1, and answers it later.
    fn run_l1(&mut self, now: Cycle) {
        if let Some(mut packet) = self.to_l1.take(now) {
            let line = self.global.line(packet.line / 128);
            if packet.kind == PacketKind::Load {
                self.pieces += 1;
                packet.bytes = *line;
            } else {
                let written = (0..128).filter(|at| packet.byte_mask >> at & 1 == 1);
                written.for_each(|at| line[at] = packet.bytes[at]);
            }
            let bank = (packet.line / 128 % 2) as usize;
            self.responses[bank].push_back((now.0 + self.input.delays[bank].0, packet));
        }
        let first = (now.0 % 2) as usize;
        for bank in [first, 1 - first] {
            if self.from_l1.has_room(now)
                && let Some((_, packet)) = self.responses[bank].pop_front_if(|(at, _)| *at <= now.0)
            {
                self.pieces -= 1;
                self.from_l1.send(now, packet);
            }
        }
    }

    /// Performs a packet in shared memory, in order, and answers it later.
    fn run_shared(&mut self, now: Cycle) {
        if let Some(mut packet) = self.to_shared.take(now) {
            let (_, first) = remote(packet.line).expect("an address in shared memory");
            let first = first as u64;
            match packet.kind {
                PacketKind::Load => {
                    self.pieces += 1;
                    packet.bytes = std::array::from_fn(|at| self.shared.get(first + at as u64));
                }
                PacketKind::Store => {
                    let written = (0..128).filter(|at| packet.byte_mask >> at & 1 == 1);
                    written.for_each(|at| self.shared.set(first + at as u64, packet.bytes[at]));
                }
                _ => self.arrive(&packet, first as u32),
            }
            self.responses[2].push_back((now.0 + self.input.delays[2].0, packet));
        }
        if self.from_shared.has_room(now)
            && let Some((_, packet)) = self.responses[2].pop_front_if(|(at, _)| *at <= now.0)
        {
            self.from_shared.send(now, packet);
        }
    }

    /// An arrival: some copy of the barrier is complete.
    fn arrive(&mut self, packet: &Packet, line: u32) {
        let atomics = packet.atomic.as_ref().expect("an arrival has a lane");
        assert_eq!(
            (atomics.op, atomics.n),
            (AtomOp::Arrive, 1),
            "the arrival at an mbarrier"
        );
        let lane = &atomics.lanes[0];
        let (barrier, bytes) = (
            line + u32::from(lane.offset),
            ((lane.value >> 32) as u32).wrapping_neg(),
        );
        let is_it = |copy: &Copy| (copy.barrier, copy.bytes) == (barrier, bytes) && self.is_there(copy);
        let found = self.arriving.iter().position(is_it);
        let found = found.unwrap_or_else(|| panic!("no complete copy has {bytes} bytes at mbarrier {barrier:#x}"));
        self.arriving.remove(found);
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.lsu.tick(now);
        self.take_back(now);
        self.run_l1(now);
        self.run_shared(now);
        assert!(self.pieces <= self.input.pieces, "{} pieces are in flight", self.pieces);
        let is_done = self.returned.iter().all(|&returned| returned) && self.arriving.is_empty();
        !is_done || self.responses.iter().any(|waiting| !waiting.is_empty())
    }

    fn reset(&mut self) {
        self.lsu.clear();
        self.subcores.iter_mut().for_each(Sink::clear);
        self.to_l1.clear();
        self.to_shared.clear();
        self.responses = Default::default();
        self.start();
    }

    fn check_end(&self) {
        for (name, found, expected) in [
            ("global", &self.global, &self.expected[0]),
            ("shared", &self.shared, &self.expected[1]),
        ] {
            for &line in found.0.keys().chain(expected.0.keys()) {
                let bytes = |lines: &Lines| {
                    [(); 128]
                        .iter()
                        .enumerate()
                        .map(|(n, ())| lines.get(128 * line + n as u64))
                        .collect::<Vec<_>>()
                };
                assert_eq!(bytes(found), bytes(expected), "line {:#x} of {name} memory", 128 * line);
            }
        }
    }

    fn digest(&self) -> u64 {
        let subcores = self.subcores.iter().map(Sink::digest);
        combine(subcores.chain([self.to_l1.digest(), self.to_shared.digest()]))
    }
}

/// Runs the engine.
///
/// # Panics
/// If a byte is wrong, or a copy is lost. If a barrier is told early, twice or never. If the engine breaks the contract.
pub fn check(input: Input) {
    let build = |wiring: &Wiring| {
        let (lsu, insts) = wiring.input(1, 2);
        let (outputs, sinks): (Vec<_>, Vec<_>) = (0..2).map(|_| wiring.output(1, input.depth)).unzip();
        let (l1, to_l1) = wiring.output(1, input.depth);
        let (from_l1, l1_response) = wiring.input(1, input.depth);
        let (shared, to_shared) = wiring.output(1, input.depth);
        let (from_shared, shared_response) = wiring.input(1, input.depth);
        let ports = Ports {
            input: insts,
            output: outputs,
            l1,
            l1_response,
            shared,
            shared_response,
        };
        let subcores = sinks.into_iter().zip(input.paces);
        let mut world = Neighbours {
            lsu: Source::new(lsu),
            subcores: subcores.map(|(port, pace)| Sink::new(port, pace)).collect(),
            to_l1: Sink::new(to_l1, input.paces[2]),
            from_l1,
            to_shared: Sink::new(to_shared, input.paces[3]),
            from_shared,
            responses: Default::default(),
            global: Lines::default(),
            shared: Lines::default(),
            expected: Default::default(),
            copies: Vec::new(),
            arriving: Vec::new(),
            returned: Vec::new(),
            pieces: 0,
            input: input.clone(),
        };
        world.start();
        let config = config::Tma {
            latency: input.latency,
            pieces: input.pieces,
        };
        (Tma::new(Path::root("tma"), config, ports), world)
    };
    check_component(build, input.second, 200_000);
}
