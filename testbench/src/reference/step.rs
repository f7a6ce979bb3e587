//! Executes one warp instruction of the reference.

use warpwave_components::proto::launch::{Trap, TrapKind};
use warpwave_isa::barrier;
use warpwave_isa::exec::{self, Operands, Results};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::Decoded;

use super::access::{self, Lsu};
use super::cta::Cta;
use super::memory::Memory;
use super::race_detector::Group;

/// Executes the next instruction of a warp with active lanes.
pub(super) fn step(cta: &mut Cta<'_>, warp: usize, memory: &mut Memory) -> Result<(), Box<Trap>> {
    let grid = cta.grid;
    let state = &mut cta.warps[warp];
    if let Some(detector) = &mut cta.detector {
        detector.begin(warp, state.flow.pc(), state.flow.active());
    }
    if let Some(detector) = &mut cta.global {
        detector.begin(warp, state.flow.pc(), state.flow.active());
    }
    let pc = state.flow.pc() as usize;
    let inst = &grid.program.code()[pc];
    let decoded = &grid.program.decoded()[pc];
    let lanes = state.guard(inst);
    let operands = state.operands(grid, inst, decoded);
    if decoded.pipe == Pipe::Control {
        return control(cta, warp, inst, decoded, lanes, &operands);
    }
    let mut results = Results::default();
    if access::is_access(inst.op) {
        let lsu = Lsu {
            cta,
            warp,
            memory,
            inst,
            decoded,
            operands: &operands,
        };
        lsu.run(lanes, &mut results)?;
    } else {
        exec::execute(inst, decoded, lanes, &operands, &mut results);
    }
    let state = &mut cta.warps[warp];
    state.write(inst, decoded, lanes, &results);
    state.flow.step();
    Ok(())
}

/// Executes an instruction of the control pipe: branches, convergence, barriers, exit, trap.
fn control(
    cta: &mut Cta<'_>,
    warp: usize,
    inst: &Inst,
    decoded: &Decoded,
    lanes: LaneMask,
    operands: &Operands,
) -> Result<(), Box<Trap>> {
    let flow = &mut cta.warps[warp].flow;
    if let Some(detector) = &mut cta.detector {
        match inst.op {
            // Count 1 is `bar.warp.sync`, which orders memory. A WARPSYNC before an exchange does not.
            Opcode::Warpsync if inst.mods.count == 1 => detector.on_warpsync(warp, flow.active()),
            Opcode::ClusterArrive if !lanes.is_empty() => detector.cluster_arrive(warp),
            Opcode::BulkCommit => detector.close(Group::Bulk, warp, lanes),
            Opcode::GmmaCommit => detector.close(Group::Products, warp, lanes),
            Opcode::Depbar => detector.wait(Group::Copies, warp, lanes, inst.mods.count.into()),
            Opcode::BulkWait => detector.wait(Group::Bulk, warp, lanes, inst.mods.count.into()),
            Opcode::GmmaWait => detector.wait(Group::Products, warp, lanes, inst.mods.count.into()),
            _ => {}
        }
    }
    if let Some(detector) = &mut cta.global {
        match inst.op {
            Opcode::Warpsync if inst.mods.count == 1 => detector.on_warpsync(warp, flow.active()),
            Opcode::ClusterArrive if !lanes.is_empty() => detector.cluster_arrive(warp),
            _ => {}
        }
    }
    // Masks and barrier numbers must be uniform, so the lowest lane gives them.
    let uniform = |slot: usize| {
        let lane = lanes.lowest().unwrap_or(0);
        operands.words[decoded.first_word[slot] as usize].0[lane]
    };
    match inst.op {
        Opcode::Bra => flow.branch(lanes, inst.target),
        Opcode::Brx => flow.branch_indirect(lanes, &operands.words[0].0),
        Opcode::Bssy => flow.bssy(inst.conv),
        Opcode::Bsync => flow.bsync(inst.conv),
        Opcode::Break => flow.break_from(inst.conv, lanes),
        Opcode::Warpsync if !lanes.is_empty() => {
            let (mask, words) = (uniform(0), &operands.words[decoded.first_word[0] as usize]);
            // Lanes with another mask wait for their own group.
            let apart = lanes.filter(|lane| words.0[lane] != mask);
            flow.warpsync(LaneMask(mask), apart, inst.mods.count == 0);
        }
        Opcode::Exit => {
            // If the last lanes outside the barrier end, the warp arrives with the others.
            if flow.exit(lanes) {
                arrive(cta, warp);
            }
            // A barrier of all live warps expects one warp less after the end of a warp.
            cta.open();
        }
        Opcode::Bar | Opcode::BarRed if !lanes.is_empty() => {
            let (number, threads) = (uniform(0), uniform(1));
            let passes = inst.mods.count == 1;
            if !barrier::is_valid(number, threads, passes) {
                return Err(trap(cta, warp, inst, lanes, TrapKind::Barrier));
            }
            bar(
                cta,
                warp,
                inst,
                (number as usize, threads),
                [lanes, lanes & operands.preds[0]],
            );
        }
        Opcode::ClusterArrive => cta.warps[warp].arrive_in_cluster(lanes),
        Opcode::ClusterWait => {
            let passes = cta.warps[warp].wait_for_cluster(lanes);
            note_cluster_wait(cta, warp, passes);
        }
        Opcode::Trap if !lanes.is_empty() => return Err(trap(cta, warp, inst, lanes, TrapKind::of(inst))),
        _ => flow.step(),
    }
    // Lanes of one mask exchange at different instructions: each group would see only its own values.
    match cta.warps[warp].flow.take_split_exchange() {
        None => Ok(()),
        Some((pc, lanes)) => {
            let inst = &cta.grid.program.code()[pc as usize];
            Err(Box::new(Trap {
                pc,
                ..*trap(cta, warp, inst, lanes, TrapKind::SplitExchange)
            }))
        }
    }
}

/// Tells the race detectors that a warp continues after its cluster barrier.
fn note_cluster_wait(cta: &mut Cta<'_>, warp: usize, passes: bool) {
    if let Some(detector) = cta.global.as_mut().filter(|_| passes) {
        detector.cluster_wait(warp);
    }
    if let Some(detector) = cta.detector.as_mut().filter(|_| passes) {
        detector.cluster_wait(warp);
    }
}

/// Executes BAR or BAR.RED with its number and thread count in `lanes`. `counted` are the lanes with a true predicate.
fn bar(cta: &mut Cta<'_>, warp: usize, inst: &Inst, barrier: (usize, u32), [lanes, counted]: [LaneMask; 2]) {
    let state = &mut cta.warps[warp];
    state.barrier = barrier;
    if inst.op == Opcode::BarRed {
        state.counted += counted.count();
    }
    // Count 1 is BAR.ARV: its lanes continue at the warp's arrival.
    if state.flow.arrive(lanes, inst.mods.count != 1) {
        arrive(cta, warp);
    }
}

/// Counts a warp's arrival at its block barrier: all its live lanes have come.
fn arrive(cta: &mut Cta<'_>, warp: usize) {
    let state = &mut cta.warps[warp];
    let (number, threads) = state.barrier;
    state.waits_at = state.flow.waits_at_block_barrier().then_some(number);
    let counted = std::mem::take(&mut state.counted);
    cta.arrive(warp, number, threads, counted);
}

/// A trap in the lowest lane of `lanes`, without an address.
pub(super) fn trap(cta: &Cta<'_>, warp: usize, inst: &Inst, lanes: LaneMask, kind: TrapKind) -> Box<Trap> {
    let state = &cta.warps[warp];
    let lane = lanes.lowest().unwrap_or(WARP_SIZE - 1);
    Box::new(Trap {
        kind,
        pc: state.flow.pc(),
        line: inst.line,
        block: cta.position,
        thread: state.thread(lane),
        address: None,
        bytes: 0,
        space: "",
    })
}
