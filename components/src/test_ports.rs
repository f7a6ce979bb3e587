//! Helpers for tests of one component: links with one end in the test, packets, grids, and times of messages.

use std::sync::Arc;

use warpwave_hw::component::Component;
use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::rig::Event;
use warpwave_hw::tile::TileBuilder;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::program::{Program, Requirements};

use crate::preset;
use crate::proto::launch::Grid;
use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR};
use crate::proto::predecoded;
use crate::proto::warp::{IssueInfo, WarpInst};
use crate::sm::timing;
use crate::storage::BASE;

/// A link with a latency of one cycle and a depth of 8.
pub(crate) fn wire<T: Send>() -> (OutPort<T>, InPort<T>) {
    wire_of(1, 8)
}

/// A link within a tile, of any latency and depth.
pub(crate) fn wire_of<T: Send>(latency: u32, depth: u32) -> (OutPort<T>, InPort<T>) {
    let mut tile = TileBuilder::new();
    let (from, to) = (tile.slot(), tile.slot());
    let path = Path::root("wire");
    link(&LinkConfig { path, latency, depth }, &from, &to)
}

/// Ticks a component in every cycle from `now` to `end`, exclusive.
pub(crate) fn run(component: &mut dyn Component, now: &mut Cycle, end: u64) {
    while now.0 < end {
        component.tick(*now);
        *now += 1;
    }
}

/// Address of line `n` of device memory.
pub(crate) fn line(n: u64) -> u64 {
    BASE + n * LINE as u64
}

/// A load of `sectors` of line `n`.
pub(crate) fn load(n: u64, sectors: u8, tag: u32) -> Box<Packet> {
    Box::new(Packet {
        line: line(n),
        sectors,
        tag,
        ..Packet::blank()
    })
}

/// A store of `value` to the bytes of line `n` whose bit is set in `mask`.
pub(crate) fn store(n: u64, mask: u128, value: u8, tag: u32) -> Box<Packet> {
    let sectors = (0..4).filter(|s| (mask >> (s * SECTOR)) as u32 != 0);
    Box::new(Packet {
        kind: PacketKind::Store,
        byte_mask: mask,
        bytes: [value; LINE],
        ..*load(n, sectors.fold(0, |all, s| all | 1 << s), tag)
    })
}

/// An atomic addition of `value` to the first word of line `n` by each of `lanes` lanes.
pub(crate) fn add(n: u64, lanes: usize, value: u64, tag: u32) -> Box<Packet> {
    let mut atomics = AtomicLanes {
        n: lanes,
        ..AtomicLanes::default()
    };
    atomics.lanes[..lanes].fill(AtomicLane {
        value: value.into(),
        ..AtomicLane::default()
    });
    Box::new(Packet {
        kind: PacketKind::Atomic,
        atomic: Some(Box::new(atomics)),
        ..*load(n, 0b0001, tag)
    })
}

/// A grid of `ctas` CTAs of one warp, two per SM, with the latencies of preset `tiny`. The program has one instruction per line.
pub(crate) fn grid(program: &str, ctas: u32) -> Arc<Grid> {
    let code = program.lines().map(|line| line.trim().parse().expect(line)).collect();
    let program = Arc::new(Program::new("test", code, Requirements::default()));
    let tiny = preset::load("tiny", &[]).expect("tiny is built in").config;
    let timing = timing::table(&program, &tiny.sm);
    Arc::new(Grid {
        id: 0,
        predecoded: predecoded::table(&program, &timing),
        timing,
        program,
        grid: [ctas, 1, 1],
        block: [32, 1, 1],
        cluster: [1; 3],
        shared_bytes: 0,
        dynamic_shared_bytes: 0,
        registers: 32,
        allocations: Vec::new(),
        textures: Vec::new(),
        local_base: 0,
        l1_bytes: 0,
        constants: Vec::new(),
        ctas_per_sm: 2,
    })
}

/// The instruction at `pc` of a grid's program, with these active lanes and zero operands.
pub(crate) fn warp_inst(grid: &Arc<Grid>, subcore: u8, pc: u32, lanes: LaneMask) -> Box<WarpInst> {
    let mut inst = Box::new(WarpInst::blank(subcore, grid.clone()));
    (inst.pc, inst.lanes) = (pc, lanes);
    inst.info = IssueInfo::of(inst.inst(), inst.decoded(), &inst.timing());
    inst
}

/// Boxed packets, as ports carry them.
#[allow(clippy::vec_box, reason = "boxes go on to a port")]
pub(crate) type Packets = Vec<Box<Packet>>;

/// Cycles in which the messages of a link were taken.
pub(crate) fn times(events: &[Event], link: &str) -> Vec<u64> {
    let of_link = events.iter().filter(|event| event.link == link);
    of_link.map(|event| event.at.0).collect()
}

/// All messages visible at a port.
pub(crate) fn all<T>(port: &mut InPort<T>, now: Cycle) -> Vec<T> {
    std::iter::from_fn(|| port.recv(now)).collect()
}
