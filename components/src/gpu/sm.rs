//! Wires one SM: its blocks into one tile, and the links among them.

use std::sync::Arc;

use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Slot, TileBuilder};

use crate::config::{GpuConfig, OUTSIDE_L1};
use crate::gpu::engine;
use crate::gpu::gpc::SmCluster;
use crate::proto::launch::{CtaLaunch, SmEvent};
use crate::proto::mem::Packet;
use crate::proto::noc::AddressMap;
use crate::proto::warp::{Flight, MemoryNote, PlaceNote, WarpCommand, WarpEvent};
use crate::sm::lsu::{shared, unit};
use crate::sm::pipe::{branch, math};
use crate::sm::subcore::{dispatch, scheduler};
use crate::sm::{cta, l1};

/// Messages of a link inside an SM that may wait, where nothing else bounds them.
const DEPTH: u32 = 4;

/// Results that may be under way to a sub-core from a unit that starts one in several cycles.
const RESULTS: u32 = 24;

/// Joins two slots by a link named after its receiver.
pub(super) fn join<T: Send>(path: Path, latency: u32, depth: u32, from: &Slot, to: &Slot) -> (OutPort<T>, InPort<T>) {
    link(&LinkConfig { path, latency, depth }, from, to)
}

/// Where an SM meets the rest of the chip.
pub(super) struct Outside {
    /// From GigaThread.
    pub launch: InPort<CtaLaunch>,
    /// To GigaThread.
    pub event: OutPort<SmEvent>,
    /// To the crossbar.
    pub below: OutPort<Box<Packet>>,
    /// From the crossbar.
    pub returns: InPort<Box<Packet>>,
    /// What joins it to the other SMs of its GPC, where there are clusters.
    pub cluster: Option<SmCluster>,
}

/// The slots that links from outside end at, reserved before those links are made.
pub(super) struct SmSlots {
    pub tile: TileBuilder,
    pub cta: Slot,
    pub l1: Slot,
    pub lsu: Slot,
    pub shared: Slot,
}

impl SmSlots {
    pub(super) fn new() -> Self {
        let mut tile = TileBuilder::new();
        // The LSU before the L1, which so knows in each cycle what comes in the next.
        let (cta, lsu, l1, shared) = (tile.slot(), tile.slot(), tile.slot(), tile.slot());
        SmSlots {
            tile,
            cta,
            l1,
            lsu,
            shared,
        }
    }
}

/// One sub-core's slots.
struct SubcoreSlots {
    scheduler: Slot,
    dispatch: Slot,
    math: Vec<Slot>,
    branch: Slot,
}

/// Names of the math pipes, in the order of [`warpwave_isa::opcode::Pipe`].
const MATH_PIPES: [&str; 6] = ["int", "fp32", "half", "fp64", "sfu", "tensor"];

/// The tensor pipe among them.
const TENSOR: usize = 5;

/// What a sub-core's blocks share with the rest of the SM, by sub-core.
#[derive(Default)]
struct Shared {
    command: Vec<OutPort<WarpCommand>>,
    start: Vec<OutPort<PlaceNote>>,
    event: Vec<InPort<WarpEvent>>,
    memory: Vec<InPort<Box<Flight>>>,
    memory_done: Vec<OutPort<Box<Flight>>>,
    shared_done: Vec<OutPort<Box<Flight>>>,
    products: Vec<InPort<Box<Flight>>>,
    bulk_done: Vec<OutPort<Box<Flight>>>,
    note: Vec<OutPort<MemoryNote>>,
}

/// Builds an SM in its tile.
pub(super) fn fill(
    config: &GpuConfig,
    path: &Path,
    sm: u16,
    map: &Arc<AddressMap>,
    slots: SmSlots,
    outside: Outside,
) -> TileBuilder {
    let SmSlots {
        mut tile,
        cta,
        l1,
        lsu,
        shared: shared_memory,
    } = slots;
    let cluster = outside.cluster.map(|ports| ports.split(path, &cta, &lsu));
    let tma = cluster.is_some().then(|| tile.slot());
    let (of_cta, of_lsu, lines) = cluster.map_or((None, None, None), |(cta, lsu, lines)| {
        (Some(cta), Some(lsu), Some(lines))
    });
    let mut lines: Vec<_> = lines.into_iter().collect();
    let n_subcores = config.sm.subcores as usize;
    let subcores: Vec<SubcoreSlots> = (0..n_subcores).map(|_| subcore_slots(&mut tile)).collect();
    let mut shared = Shared::default();
    for (n, slots) in subcores.iter().enumerate() {
        let path = path.at("subcore", n);
        let meets = Meets {
            cta: &cta,
            lsu: &lsu,
            shared_memory: &shared_memory,
            tma: tma.as_ref(),
        };
        fill_subcore(config, &path, (sm, n as u8), slots, &meets, &mut tile, &mut shared);
    }
    let (to_shared, from_lsu) = join(path.child("shared"), 1, 2, &lsu, &shared_memory);
    let (to_l1, requests) = join(path.child("l1.request"), 1, 2, &lsu, &l1);
    let (answers, answer) = join(path.child("lsu.answer"), 1, DEPTH, &l1, &lsu);
    let (trap, traps) = join(path.child("cta.trap"), 1, DEPTH, &lsu, &cta);
    let engine = tma.map(|tma| {
        engine::fill(
            config,
            path,
            &mut tile,
            [&tma, &lsu, &l1, &shared_memory],
            shared.bulk_done,
        )
    });
    let (to_engine, bulk) = engine.map_or((None, None), |engine| {
        lines.push(engine.lines);
        (Some(engine.input), Some(engine.l1))
    });
    let ports = cta::Ports {
        launch: outside.launch,
        event: outside.event,
        command: shared.command,
        start: shared.start,
        warp: shared.event,
        trap: traps,
        cluster: of_cta,
    };
    tile.fill(&cta, cta::CtaManager::new(path.child("cta"), cta_config(config), ports));
    let ports = unit::Ports {
        input: shared.memory,
        output: shared.memory_done,
        note: shared.note,
        shared: to_shared,
        l1: to_l1,
        answer,
        trap,
        cluster: of_lsu,
        bulk: to_engine,
    };
    let lsu_config = unit::Config {
        sm,
        sm_in_gpc: config.place_in_gpc(sm).1,
        cta_slots: config.limits.max_blocks_per_sm,
        shared_unit: config.limits.shared_unit,
        lsu: config.sm.lsu,
        constant_latency: config.sm.constant.latency,
        fence: config.sm.fence,
        first_local_slot: u32::from(sm) * config.limits.max_warps_per_sm,
        warps_per_subcore: config.limits.max_warps_per_sm / config.sm.subcores,
    };
    tile.fill(&lsu, unit::Lsu::new(path.child("lsu"), lsu_config, ports));
    let ports = shared::Ports {
        input: from_lsu,
        output: shared.shared_done,
        products: shared.products,
        lines,
    };
    let largest = config.limits.shared_carveouts.iter().copied().max().unwrap_or(0);
    let shared_config = shared::Config {
        bytes: largest,
        shared: config.sm.shared,
    };
    tile.fill(
        &shared_memory,
        shared::SharedMemory::new(path.child("shared"), shared_config, ports),
    );
    let ports = l1::Ports {
        requests,
        answers,
        below: outside.below,
        returns: outside.returns,
        bulk,
    };
    tile.fill(&l1, l1::L1::new(path.child("l1"), l1_config(config, sm, map), ports));
    tile
}

fn subcore_slots(tile: &mut TileBuilder) -> SubcoreSlots {
    SubcoreSlots {
        scheduler: tile.slot(),
        dispatch: tile.slot(),
        math: MATH_PIPES.iter().map(|_| tile.slot()).collect(),
        branch: tile.slot(),
    }
}

/// Blocks of the SM that a sub-core is joined to.
struct Meets<'a> {
    cta: &'a Slot,
    lsu: &'a Slot,
    shared_memory: &'a Slot,
    tma: Option<&'a Slot>,
}

fn fill_subcore(
    config: &GpuConfig,
    path: &Path,
    (sm, subcore): (u16, u8),
    slots: &SubcoreSlots,
    meets: &Meets<'_>,
    tile: &mut TileBuilder,
    shared: &mut Shared,
) {
    let SubcoreSlots {
        scheduler,
        dispatch,
        branch,
        ..
    } = slots;
    let warps = config.limits.max_warps_per_sm / config.sm.subcores;
    let (command, commands) = join(path.child("command"), 1, DEPTH, meets.cta, scheduler);
    let (start, starts) = join(path.child("start"), 1, DEPTH, meets.cta, dispatch);
    let (event, events) = join(path.child("event"), 1, DEPTH, scheduler, meets.cta);
    let (issue, issued) = join(path.child("issue"), 1, 2, scheduler, dispatch);
    let (release, releases) = join(path.child("release"), 1, 2 * DEPTH, dispatch, scheduler);
    let (resolved, branches) = join(path.child("resolved"), 1, RESULTS, branch, scheduler);
    let (note, notes) = join(path.child("note"), 1, 8 * DEPTH, meets.lsu, scheduler);
    let (to_branch, branch_input) = join(path.child("branch.in"), 1, DEPTH, dispatch, branch);
    let (spent, branch_spent) = join(path.child("branch.spent"), 1, DEPTH, branch, dispatch);
    let queue = config.sm.lsu.queue_depth;
    let (to_lsu, memory) = join(path.child("memory"), 1, queue + 2, dispatch, meets.lsu);
    let (memory_done, from_lsu) = join(path.child("memory_done"), 1, RESULTS, meets.lsu, dispatch);
    let (shared_done, from_shared) = join(path.child("shared_done"), 1, RESULTS, meets.shared_memory, dispatch);
    let mut pipes = Vec::new();
    let mut results = Vec::new();
    for (n, (name, slot)) in MATH_PIPES.iter().zip(&slots.math).enumerate() {
        let (to_pipe, input) = join(path.child(name).child("in"), 1, DEPTH, dispatch, slot);
        let (output, result) = join(path.child(name).child("out"), 1, pipe_depth(config, n), slot, dispatch);
        let group = (n == TENSOR && config.cluster.max_ctas > 0).then(|| {
            let (group, products) = join(path.child("products"), 1, DEPTH, slot, meets.shared_memory);
            shared.products.push(products);
            group
        });
        let ports = math::Ports { input, output, group };
        tile.fill(slot, math::MathPipe::new(path.child(name), ports));
        pipes.push(to_pipe);
        results.push(result);
    }
    pipes.extend([to_lsu, to_branch]);
    results.push(branch_spent);
    let ports = branch::Ports {
        input: branch_input,
        resolved,
        spent,
    };
    tile.fill(branch, branch::BranchUnit::new(path.child("branch"), ports));
    let ports = scheduler::Ports {
        command: commands,
        event,
        issue,
        release: releases,
        resolved: branches,
        note: notes,
    };
    tile.fill(
        scheduler,
        scheduler::Scheduler::new(path.child("scheduler"), scheduler_config(config, subcore, warps), ports),
    );
    let mut queued = vec![from_lsu, from_shared];
    if let Some(tma) = meets.tma {
        let (done, from_tma) = join(path.child("bulk_done"), 1, DEPTH, tma, dispatch);
        shared.bulk_done.push(done);
        queued.push(from_tma);
    }
    let ports = dispatch::Ports {
        start: starts,
        issue: issued,
        release,
        pipes,
        results,
        queued,
    };
    let dispatch_config = dispatch_config(config, (sm, subcore), warps);
    tile.fill(
        dispatch,
        dispatch::Dispatch::new(path.child("dispatch"), dispatch_config, ports),
    );
    shared.command.push(command);
    shared.start.push(start);
    shared.event.push(events);
    shared.memory.push(memory);
    shared.memory_done.push(memory_done);
    shared.shared_done.push(shared_done);
    shared.note.push(note);
}

/// Results under way in a pipe at once, so that it never waits for its own stages: as many as can start in the longest latency.
/// Rings that are no longer than need be stay in the cache of the machine that simulates.
fn pipe_depth(config: &GpuConfig, pipe: usize) -> u32 {
    let pipes = &config.sm.pipes;
    let (latency, interval) = match pipe {
        0 => (pipes.int.latency.max(pipes.predicate_latency), pipes.int.interval),
        1 => (
            pipes.fp32.latency.max(pipes.imad_latency),
            pipes.fp32.interval.min(pipes.imad_interval),
        ),
        2 => (pipes.half.latency.max(pipes.predicate_latency), pipes.half.interval),
        3 => (pipes.fp64.latency.max(pipes.predicate_latency), pipes.fp64.interval),
        4 => (pipes.sfu.latency, pipes.sfu.interval),
        _ => (pipes.tensor.latency, 1),
    };
    latency / interval + DEPTH
}

fn cta_config(config: &GpuConfig) -> cta::Config {
    cta::Config {
        subcores: config.sm.subcores as usize,
        warps_per_subcore: (config.limits.max_warps_per_sm / config.sm.subcores) as usize,
        max_ctas: config.limits.max_blocks_per_sm as usize,
        barrier: config.sm.barrier,
        shared_unit: config.limits.shared_unit,
    }
}

fn scheduler_config(config: &GpuConfig, subcore: u8, warps: u32) -> scheduler::Config {
    scheduler::Config {
        subcore,
        warps: warps as usize,
        policy: config.sm.scheduler,
        ibuffer_entries: config.sm.ibuffer_entries,
        fetch_latency: config.sm.fetch_latency,
        branch_latency: config.sm.branch_latency,
        memory_queue: config.sm.lsu.queue_depth,
        core_khz: config.clocks.core_khz,
    }
}

fn dispatch_config(config: &GpuConfig, (sm, subcore): (u16, u8), warps: u32) -> dispatch::Config {
    dispatch::Config {
        subcore,
        subcores: config.sm.subcores,
        warps: warps as usize,
        rows: (config.limits.registers_per_sm / config.sm.subcores / 32) as usize,
        sm: (u32::from(sm), config.n_sms()),
        core_khz: config.clocks.core_khz,
    }
}

pub(super) fn l1_config(config: &GpuConfig, sm: u16, map: &Arc<AddressMap>) -> l1::Config {
    let l1 = config.sm.l1;
    l1::Config {
        sm,
        bytes: l1.size,
        associativity: l1.associativity,
        latency: l1.hit_latency - OUTSIDE_L1,
        mshr_entries: l1.mshr_entries,
        mshr_merges: l1.mshr_merges,
        waiting: config.sm.lsu.pending_requests * 8,
        data_bytes_per_cycle: l1.data_bytes_per_cycle,
        store_queue: l1.store_queue,
        map: map.clone(),
    }
}
