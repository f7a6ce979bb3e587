//! Builds a sub-core: scheduler, dispatch unit, math pipes, branch unit, and their links to the blocks of the SM.

use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{HORIZON, TileBuilder};
use warpwave_isa::opcode::Pipe;

use super::factory::Factory;
use super::wiring::{
    ACK, BRANCH, BRANCH_SPENT, BULK_DONE, Block, Blocks, COMMAND, EVENT, IMMEDIATE, IMMEDIATE_FILL, ISSUE, MEMORY,
    MEMORY_DONE, PIPE, PIPE_DONE, PRODUCTS, RELEASE, RESOLVED, SHARED_DONE, WARP_INFO,
};
use crate::config::{GpuConfig, PIPES, PipePreset, PipeRow};
use crate::proto::constant::ConstantLine;
use crate::proto::warp::{LsuAck, Resolved, WarpCommand, WarpEvent, WarpInfo, WarpInst};
use crate::sm::pipe::branch::{self, BranchUnit};
use crate::sm::pipe::math::{self, MathPipe};
use crate::sm::subcore::dispatch::{self, Dispatch};
use crate::sm::subcore::immediate;
use crate::sm::subcore::scheduler::{self, Scheduler};

/// The SM's ends of the links from and to its sub-cores, by sub-core.
#[derive(Default)]
pub(super) struct SubcorePorts {
    pub command: Vec<OutPort<WarpCommand>>,
    pub warp_info: Vec<OutPort<WarpInfo>>,
    pub event: Vec<InPort<WarpEvent>>,
    pub memory: Vec<InPort<Box<WarpInst>>>,
    pub memory_done: Vec<OutPort<Box<WarpInst>>>,
    pub shared_done: Vec<OutPort<Box<WarpInst>>>,
    pub products: Vec<InPort<Box<WarpInst>>>,
    pub bulk_done: Vec<OutPort<Box<WarpInst>>>,
    pub ack: Vec<OutPort<LsuAck>>,
    pub constant_requests: Vec<InPort<ConstantLine>>,
    pub constant_fills: Vec<OutPort<ConstantLine>>,
}

/// The math pipes: the pipes with numbers in the preset.
fn math_pipes() -> impl Iterator<Item = (&'static PipeRow, PipePreset)> {
    const ROWS: &[PipeRow] = &PIPES;
    ROWS.iter().filter_map(|row| Some((row, row.preset?)))
}

/// The tile slots of a sub-core's blocks.
pub(super) struct SubcoreSlots<'a> {
    blocks: Blocks<'a>,
    math: Vec<Blocks<'a>>,
}

impl<'a> SubcoreSlots<'a> {
    /// Reserves the next slots of the SM's tile.
    pub(super) fn new(config: &'a GpuConfig, path: Path, tile: &mut TileBuilder) -> Self {
        let mut blocks = Blocks::new(config, path);
        blocks.reserve(tile, &[Block::Scheduler, Block::Dispatch]);
        let math = math_pipes().map(|(row, _)| {
            let mut pipe = Blocks::new(config, blocks.path.child(row.name));
            pipe.reserve(tile, &[Block::MathPipe]);
            pipe
        });
        let math = math.collect();
        blocks.reserve(tile, &[Block::BranchUnit]);
        SubcoreSlots { blocks, math }
    }
}

/// Builds sub-core `subcore` of SM `number`.
pub(super) fn build_subcore(
    slots: &SubcoreSlots<'_>,
    sm: &Blocks<'_>,
    (number, subcore): (u16, u8),
    factory: &Factory,
    tile: &mut TileBuilder,
    ends: &mut SubcorePorts,
) {
    let here = &slots.blocks;
    let (issue, issued) = here.join(&ISSUE);
    let (release, releases) = here.join(&RELEASE);
    let (resolved, branches) = here.join(&RESOLVED);
    let (pipes, results) = build_pipes(slots, sm, resolved, tile, ends);
    let ports = scheduler::Ports {
        command: keep_output(&mut ends.command, here.join_to(sm, &COMMAND)),
        event: keep_input(&mut ends.event, here.join_to(sm, &EVENT)),
        issue,
        release: releases,
        resolved: branches,
        ack: keep_output(&mut ends.ack, here.join_to(sm, &ACK)),
        constant: sm.has(Block::Constant).then(|| join_constant(here, sm, ends)),
    };
    let path = here.path.child("scheduler");
    let mut scheduler = Scheduler::new(path.clone(), scheduler_config(here.config, subcore), ports);
    if let Some(own) = factory.build_policy(&path) {
        scheduler.set_policy(own);
    }
    here.fill(tile, Block::Scheduler, scheduler);
    let ports = dispatch::Ports {
        warp_info: keep_output(&mut ends.warp_info, here.join_to(sm, &WARP_INFO)),
        issue: issued,
        release,
        pipes,
        results,
        queued_results: queued_results(here, sm, ends),
    };
    let config = dispatch_config(here.config, (number, subcore));
    here.fill(
        tile,
        Block::Dispatch,
        Dispatch::new(here.path.child("dispatch"), config, ports),
    );
}

/// Links to and from the L1.5 constant cache.
fn join_constant(here: &Blocks<'_>, sm: &Blocks<'_>, ends: &mut SubcorePorts) -> immediate::Ports {
    immediate::Ports {
        request: keep_input(&mut ends.constant_requests, here.join_to(sm, &IMMEDIATE)),
        fill: keep_output(&mut ends.constant_fills, here.join_to(sm, &IMMEDIATE_FILL)),
    }
}

/// Stores the sending end for a block of the SM, and returns the receiving end.
fn keep_output<T>(ends: &mut Vec<OutPort<T>>, (output, input): (OutPort<T>, InPort<T>)) -> InPort<T> {
    ends.push(output);
    input
}

/// Stores the receiving end for a block of the SM, and returns the sending end.
fn keep_input<T>(ends: &mut Vec<InPort<T>>, (output, input): (OutPort<T>, InPort<T>)) -> OutPort<T> {
    ends.push(input);
    output
}

/// Links from the units behind queues: LSU, shared memory, and the bulk copy engine on a part with clusters.
fn queued_results(here: &Blocks<'_>, sm: &Blocks<'_>, ends: &mut SubcorePorts) -> Vec<InPort<Box<WarpInst>>> {
    let mut queued = vec![
        keep_output(&mut ends.memory_done, here.join_to(sm, &MEMORY_DONE)),
        keep_output(&mut ends.shared_done, here.join_to(sm, &SHARED_DONE)),
    ];
    if sm.has(Block::Tma) {
        queued.push(keep_output(&mut ends.bulk_done, here.join_to(sm, &BULK_DONE)));
    }
    queued
}

/// The dispatch unit's links to all pipes, in the order of [`Pipe`], and its links from math pipes and branch unit.
type PipePorts = (Vec<OutPort<Box<WarpInst>>>, Vec<InPort<Box<WarpInst>>>);

/// Builds the math pipes and the branch unit.
fn build_pipes(
    slots: &SubcoreSlots<'_>,
    sm: &Blocks<'_>,
    resolved: OutPort<Resolved>,
    tile: &mut TileBuilder,
    ends: &mut SubcorePorts,
) -> PipePorts {
    let here = &slots.blocks;
    let config = here.config;
    let (mut pipes, mut results) = (Vec::new(), Vec::new());
    for (pipe, (row, preset)) in slots.math.iter().zip(math_pipes()) {
        let (to_pipe, input) = pipe.join_to(here, &PIPE);
        let (output, result) = pipe.join_deep(here, &PIPE_DONE, result_depth(row, preset, config));
        // Warpgroup products came together with clusters.
        let has_groups = row.pipe == Pipe::Tensor && config.cluster.max_ctas > 0;
        let group = has_groups.then(|| keep_input(&mut ends.products, here.join_among(&[pipe, sm], &PRODUCTS)));
        let component = MathPipe::new(pipe.path.clone(), math::Ports { input, output, group });
        let component = match row.pipe {
            Pipe::Sfu => component.with_match_per_value(config.sm.pipes.match_per_value),
            _ => component,
        };
        pipe.fill(tile, Block::MathPipe, component);
        pipes.push(to_pipe);
        results.push(result);
    }
    // The branch unit returns only the boxes here. Its results go to the scheduler.
    let (to_branch, input) = here.join(&BRANCH);
    let (spent, from_branch) = here.join(&BRANCH_SPENT);
    let ports = branch::Ports { input, resolved, spent };
    here.fill(
        tile,
        Block::BranchUnit,
        BranchUnit::new(here.path.child("branch"), ports),
    );
    // In the order of `Pipe`: the math pipes, the LSU, the branch unit.
    pipes.extend([keep_input(&mut ends.memory, here.join_to(sm, &MEMORY)), to_branch]);
    results.push(from_branch);
    (pipes, results)
}

/// Depth of the link from a math pipe: the most instructions in flight in the pipe, and 4 results that wait for the write port.
fn result_depth(row: &PipeRow, preset: PipePreset, config: &GpuConfig) -> u32 {
    let pipes = &config.sm.pipes;
    let timing = (preset.timing)(pipes);
    let (latency, interval) = match row.pipe {
        Pipe::Fp32 => (
            timing.latency.max(pipes.imad_latency),
            timing.interval.min(pipes.imad_interval),
        ),
        // The smallest product has an interval of one cycle.
        Pipe::Tensor => (timing.latency, 1),
        Pipe::Int => (
            timing.latency.max(pipes.vote_latency).max(pipes.fmnmx_latency),
            timing.interval,
        ),
        Pipe::Sfu => (
            timing.latency.max(pipes.popc_latency).max(pipes.match_latency),
            timing.interval,
        ),
        Pipe::Fp64 => (timing.latency.max(pipes.fp64_compare_latency), timing.interval),
        _ => (timing.latency, timing.interval),
    };
    // A deeper link costs host cache. A delay line holds the results that are due after the horizon.
    latency.min(HORIZON as u32) / interval + 4
}

fn scheduler_config(config: &GpuConfig, subcore: u8) -> scheduler::Config {
    scheduler::Config {
        subcore,
        warps: warps(config) as usize,
        policy: config.sm.scheduler,
        slot_release: config.sm.slot_release,
        ibuffer_entries: config.sm.ibuffer_entries,
        fetch_latency: config.sm.fetch_latency,
        branch_latency: config.sm.branch_latency,
        guard_latency: config.sm.pipes.guard_latency,
        warp_barrier_latency: config.sm.barrier.warp_latency,
        memory_queue: config.sm.lsu.queue_depth,
        constant: config.sm.constant,
        core_khz: config.clocks.core_khz,
    }
}

fn dispatch_config(config: &GpuConfig, (sm, subcore): (u16, u8)) -> dispatch::Config {
    dispatch::Config {
        subcore,
        subcores: config.sm.subcores,
        warps: warps(config) as usize,
        // A warp-wide register is one register of each of the 32 lanes.
        warp_registers: (config.limits.registers_per_sm / config.sm.subcores / 32) as usize,
        sm: (config.smid(sm), config.n_sms()),
        core_khz: config.clocks.core_khz,
    }
}

/// Warp slots of a sub-core.
pub(super) fn warps(config: &GpuConfig) -> u32 {
    config.limits.max_warps_per_sm / config.sm.subcores
}
