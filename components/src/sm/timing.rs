//! Timing of an instruction: latency, issue interval and stall class, from its opcode row and the preset.

use warpwave_isa::control::{self, ControlWord, Latency, ResultBarriers};
use warpwave_isa::inst::{Inst, MmaShape, Ty};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::{Decoded, Program};
use warpwave_isa::reg::RegSet;
use warpwave_isa::space::Space;

use crate::config::{I2fPipe, PipeTiming, Pipes, Sm, pipe_row};
use crate::proto::launch::{ResultWait, Route, Timing};

/// Timing of every instruction of a program, by program counter.
pub fn table(program: &Program, sm: &Sm) -> Vec<Timing> {
    let code = program.code().iter().zip(program.decoded());
    let mut rows: Vec<Timing> = code.map(|(inst, decoded)| timing(inst, decoded, sm)).collect();
    if sm.dependency_barriers > 0 {
        let barriers = control::result_barriers(program, &latencies(program, sm), sm.dependency_barriers as usize);
        for (row, barriers) in rows.iter_mut().zip(barriers) {
            row.barriers = barriers;
        }
    }
    rows
}

/// Control words for every instruction of a program, as a compiler for this machine would set them. The machine reads the dependency
/// barriers of results. Its scoreboard replaces the rest.
pub fn controls(program: &Program, sm: &Sm) -> Vec<ControlWord> {
    control::words(program, &latencies(program, sm), sm.pipes.guard_latency)
}

fn latencies(program: &Program, sm: &Sm) -> Vec<Latency> {
    program.code().iter().map(|inst| latency(inst, sm)).collect()
}

/// Latency of an instruction's result for a reader that takes it as data: variable for units behind a queue, else fixed.
pub fn latency(inst: &Inst, sm: &Sm) -> Latency {
    match result(inst, &sm.pipes) {
        ResultWait::Long => Latency::Long,
        ResultWait::Short => Latency::Short,
        ResultWait::Fixed => Latency::Fixed(cycles(inst, sm).latency),
    }
}

/// Timing of one instruction.
fn timing(inst: &Inst, decoded: &Decoded, sm: &Sm) -> Timing {
    let PipeTiming { latency, interval } = cycles(inst, sm);
    Timing {
        latency,
        interval,
        operand_cycles: bank_cycles(&decoded.uses, sm.register_banks, sm.register_read_ports),
        pipe: pipe(inst, &sm.pipes),
        result: result(inst, &sm.pipes),
        is_posted: is_posted(inst),
        is_local_or_global: is_local_or_global(inst),
        route: route(inst),
        barriers: ResultBarriers::default(),
    }
}

/// Latency and interval of one instruction.
fn cycles(inst: &Inst, sm: &Sm) -> PipeTiming {
    let pipes = &sm.pipes;
    let pipe = pipe(inst, pipes);
    match (pipe, pipe_row(pipe).preset) {
        (Pipe::Fp32, _) if is_imad(inst.op) => pipes.imad(),
        // A comparison returns earlier than arithmetic (`jia18`).
        (Pipe::Fp64, _) if inst.op == Opcode::Dsetp => PipeTiming {
            latency: pipes.fp64_compare_latency,
            ..pipes.fp64
        },
        (Pipe::Int, _) => PipeTiming {
            latency: int_latency(inst.op, pipes),
            ..pipes.int
        },
        (Pipe::Sfu, _) => PipeTiming {
            latency: sfu_latency(inst.op, pipes),
            ..pipes.sfu
        },
        (Pipe::Tensor, _) => PipeTiming {
            latency: pipes.tensor.latency,
            interval: tensor_interval(inst, pipes),
        },
        (_, Some(preset)) => (preset.timing)(pipes),
        (Pipe::Control, None) => PipeTiming {
            latency: sm.branch_latency,
            interval: 1,
        },
        (_, None) => PipeTiming {
            latency: memory_latency(inst, sm),
            interval: 1,
        },
    }
}

/// Pipe of an instruction: that of its opcode. A conversion of a 32-bit integer to a 32-bit float has that of the preset.
pub fn pipe(inst: &Inst, pipes: &Pipes) -> Pipe {
    let is_word = inst.mods.ty == Ty::F32 && matches!(inst.mods.from, Ty::S32 | Ty::U32);
    match pipes.i2f_pipe {
        I2fPipe::Int if inst.op == Opcode::I2f && is_word => Pipe::Int,
        _ => inst.op.info().pipe,
    }
}

/// Cycles to read these registers: those of the bank with the most registers, at least 1.
fn bank_cycles(registers: &RegSet, banks: u32, ports: u32) -> u16 {
    // A set: a register that two operands name is read once.
    let in_bank = |bank: u32| registers.iter().filter(|&n| n as u32 % banks == bank).count() as u32;
    let fullest = (0..banks).map(in_bank).max().unwrap_or(0);
    fullest.div_ceil(ports).max(1) as u16
}

/// Issue to dependent issue of an instruction of the integer pipe.
fn int_latency(op: Opcode, pipes: &Pipes) -> u32 {
    match op {
        Opcode::Vote => pipes.vote_latency,
        Opcode::Fmnmx => pipes.fmnmx_latency,
        _ => pipes.int.latency,
    }
}

/// Issue to dependent issue of an instruction of the SFU.
fn sfu_latency(op: Opcode, pipes: &Pipes) -> u32 {
    match op {
        Opcode::Popc => pipes.popc_latency,
        Opcode::Match => pipes.match_latency,
        _ => pipes.sfu.latency,
    }
}

fn is_imad(op: Opcode) -> bool {
    matches!(op, Opcode::Imad | Opcode::ImadWide | Opcode::Idp4a)
}

/// Issue interval of a matrix product, by the unit, the type of its sums, and its shape.
fn tensor_interval(inst: &Inst, pipes: &Pipes) -> u32 {
    // Of a product of 32 bytes of k: 16 elements of 16 bits, or 32 of 8 bits.
    let shape = inst.mods.mma;
    let interval = match inst.op {
        Opcode::Hgmma | Opcode::HgmmaSp => pipes.tensor.interval,
        _ if shape == MmaShape::M8n8k4F64 => return pipes.mma_fp64_interval,
        _ if shape.has_half_accumulators(inst.mods.ty) => pipes.mma_f16_interval,
        _ if shape.has_integers() => pipes.mma_int_interval,
        _ => pipes.mma_interval,
    };
    // A has 4 words for 32 bytes of k, and 2 for 16 bytes.
    let (words_of_a, ..) = shape.words();
    (interval * u32::from(words_of_a) / 4).max(1)
}

/// Issue to dependent issue of an instruction of the LSU. Accesses to local and global memory take at least an L1 hit.
fn memory_latency(inst: &Inst, sm: &Sm) -> u32 {
    match (inst.op, inst.mods.space) {
        (Opcode::Shfl, _) => sm.pipes.shuffle_latency,
        (Opcode::Ldc, _) => sm.constant.latency,
        // Only its way through the LSU and shared memory. Assumed.
        (Opcode::FenceView | Opcode::Membar, _) => 1,
        (Opcode::Atom, Space::Shared | Space::Cluster) => sm.shared.atomic_latency,
        (Opcode::Ldsm, _) | (_, Space::Shared | Space::Cluster) => sm.shared.latency,
        _ => sm.l1.hit_latency,
    }
}

fn result(inst: &Inst, pipes: &Pipes) -> ResultWait {
    if is_long(inst) {
        ResultWait::Long
    } else if is_short(inst, pipes) {
        ResultWait::Short
    } else {
        ResultWait::Fixed
    }
}

/// True if the result comes from behind the L1: it stalls its reader as long scoreboard.
fn is_long(inst: &Inst) -> bool {
    matches!(inst.op, Opcode::Ld | Opcode::Atom | Opcode::Tex | Opcode::Suld)
        && matches!(
            inst.mods.space,
            Space::Global | Space::Generic | Space::Local | Space::Cluster
        )
}

/// True if the result comes from a unit of the SM with a queue: it stalls its reader as short scoreboard.
fn is_short(inst: &Inst, pipes: &Pipes) -> bool {
    // Profilers count the SFU here too, although its pipe has a fixed latency in this model.
    matches!(pipe(inst, pipes), Pipe::Lsu | Pipe::Sfu) && !is_long(inst)
}

/// True if the instruction counts as local and global memory in the LSU queue.
fn is_local_or_global(inst: &Inst) -> bool {
    matches!(
        inst.op,
        Opcode::Ld
            | Opcode::St
            | Opcode::Atom
            | Opcode::Red
            | Opcode::Ldgsts
            | Opcode::Cctl
            | Opcode::CctlIvall
            | Opcode::Membar
            | Opcode::Tex
            | Opcode::Suld
            | Opcode::Sust
    ) && !matches!(inst.mods.space, Space::Shared | Space::Cluster)
}

/// Route of an instruction through the LSU, as far as opcode and space determine it.
fn route(inst: &Inst) -> Route {
    match (inst.op, inst.mods.space) {
        (Opcode::Shfl, _) => Route::Shuffle,
        (Opcode::Membar | Opcode::CctlIvall | Opcode::FenceView, _) => Route::Fence,
        (Opcode::Ld | Opcode::St, Space::Shared) => Route::Shared,
        (Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red, Space::Global) => Route::Device,
        // The AGU finds the memory of a generic address. Other kinds have rules of their own.
        _ => Route::Other,
    }
}

/// True for a posted instruction: a store or reduction that leaves the SM, or a prefetch.
fn is_posted(inst: &Inst) -> bool {
    matches!(inst.op, Opcode::St | Opcode::Red | Opcode::Sust | Opcode::Cctl) && inst.mods.space != Space::Shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_isa::inst::Operand;
    use warpwave_isa::reg::Reg;

    fn ffma(a: u8, b: u8, c: u8) -> RegSet {
        let mut inst = Inst::new(Opcode::Ffma);
        for (slot, reg) in [a, b, c].into_iter().enumerate() {
            inst.src[slot] = Operand::reg(Reg(reg));
        }
        Decoded::of(&inst).uses
    }

    #[test]
    fn registers_of_one_bank_take_a_cycle_each_per_port() {
        assert_eq!(bank_cycles(&ffma(0, 2, 4), 2, 1), 3);
        assert_eq!(bank_cycles(&ffma(0, 1, 4), 2, 1), 2);
        assert_eq!(bank_cycles(&ffma(0, 1, 4), 2, 2), 1);
        assert_eq!(bank_cycles(&ffma(0, 0, 0), 2, 1), 1);
        assert_eq!(bank_cycles(&ffma(0, 4, 8), 4, 1), 3);
    }
}
