//! Predecoded instructions for the warp schedulers, computed at launch.
//!
//! A scheduler reads the next instruction of a warp whenever the warp's state changes, and an issued one when it is complete. That takes
//! one read here, instead of three for the instruction, its decoded form and its timing.

use std::sync::Arc;

use warpwave_isa::inst::{Inst, Source};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::{Decoded, Program, WordSource};
use warpwave_isa::reg::{Guard, RegSet};

use super::timing::{ResultWait, Timing};

/// Target of an issued instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IssueTarget {
    /// A math pipe, which accepts the next instruction after the interval.
    Math,
    /// The memory queue.
    Memory,
    /// The memory queue; the instruction is complete for its warp once it is sent.
    Posted,
    /// The memory queue; the warp waits until the instruction is complete.
    Fence,
    /// The branch unit, which reads its operands; the warp waits.
    BranchUnit,
    /// None: a control instruction that reads no register is resolved at issue.
    Resolved,
    /// None: the instruction closes a group of asynchronous copies.
    Close,
}

/// The group counter of an asynchronous instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// None: the instruction is not asynchronous.
    None,
    /// The warp's asynchronous copies (LDGSTS).
    Copies,
    /// Products of the warp's group (HGMMA).
    Products,
    /// Bulk copies from shared to global memory (UBLKCP).
    Bulk,
}

/// Progress of earlier accesses of the warp that an instruction needs to issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// None.
    None,
    /// All have left the memory queue: a barrier.
    Queued,
    /// All loads and atomics have returned: a fence, an invalidation of the L1.
    Returned,
    /// All are complete: a fence before products and bulk copies.
    Over,
}

/// A predecoded instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predecoded {
    /// Registers read or written.
    pub touches: RegSet,
    /// Registers written: word [`defs_word`](Predecoded::defs_word) of a [`RegSet`].
    pub defs: u64,
    /// Operands A and B of an instruction that is resolved at issue.
    pub operands: [u32; 2],
    /// Its number among the instructions of all kernels.
    pub number: u32,
    /// Index of the word of a [`RegSet`] with the first register written.
    pub defs_word: u8,
    /// Registers written: the word after [`defs_word`](Predecoded::defs_word).
    pub defs_beyond: u8,
    /// Number of the predicate that guards the instruction, 0 to 7. 7 is the constant PT: no guard.
    pub guard: u8,
    /// True if an operand is a word of a constant bank.
    pub reads_constant: bool,
    /// Predicates written, bit i for Pi.
    pub pred_defs: u8,
    /// Predicates read or written.
    pub pred_touches: u8,
    /// Issue interval of its pipe, in cycles.
    pub interval: u16,
    /// Its pipe.
    pub pipe: Pipe,
    /// Kind of stall of a dependent instruction.
    pub result: ResultWait,
    /// True for an access to local or global memory: it stalls as `lg_throttle`.
    pub is_local_or_global: bool,
    /// Its target at issue.
    pub target: IssueTarget,
    /// Dependency barriers that must be free before it issues, bit i for barrier i.
    pub waits: u8,
    /// Dependency barrier that its result holds until it is written.
    pub barrier: Option<u8>,
    /// Its group counter.
    pub group: Group,
    /// Progress that it needs of earlier accesses.
    pub order: Order,
}

impl Predecoded {
    /// Predecodes an instruction.
    pub fn of(inst: &Inst, decoded: &Decoded, timing: &Timing) -> Self {
        let words = decoded.defs.0;
        // Without results any word serves: all are 0.
        let first = words.iter().position(|&word| word != 0).unwrap_or(0);
        let beyond = words.get(first + 1).copied().unwrap_or(0);
        let operands = (decoded.pipe == Pipe::Control)
            .then(|| immediate_operands(inst))
            .flatten();
        let target = match decoded.pipe {
            Pipe::Control if operands.is_some() => IssueTarget::Resolved,
            Pipe::Control => IssueTarget::BranchUnit,
            // The opcode table has the LSU for it, but only the scheduler executes it.
            Pipe::Lsu if inst.op == Opcode::Ldgdepbar => IssueTarget::Close,
            Pipe::Lsu if matches!(inst.op, Opcode::Membar | Opcode::FenceView) => IssueTarget::Fence,
            Pipe::Lsu if timing.is_posted => IssueTarget::Posted,
            Pipe::Lsu => IssueTarget::Memory,
            _ => IssueTarget::Math,
        };
        Predecoded {
            touches: decoded.touches,
            defs: words[first],
            defs_word: first as u8,
            defs_beyond: u8::try_from(beyond).expect("an instruction writes adjacent registers"),
            operands: operands.unwrap_or_default(),
            number: 0,
            guard: inst.guard.pred.0,
            reads_constant: has_constant(decoded),
            pred_defs: decoded.pred_defs,
            pred_touches: decoded.pred_touches,
            pipe: timing.pipe,
            interval: u16::try_from(timing.interval).expect("the check of a configuration bounds intervals"),
            result: timing.result,
            is_local_or_global: timing.is_local_or_global,
            target,
            waits: timing.barriers.wait,
            barrier: timing.barriers.write,
            group: group(inst),
            order: order(inst),
        }
    }
}

fn has_constant(decoded: &Decoded) -> bool {
    let sources = &decoded.sources[..decoded.source_words as usize];
    sources.iter().any(|source| matches!(source, WordSource::Const { .. }))
}

/// Predecodes every instruction of a program, by program counter.
pub fn table(program: &Program, timing: &[Timing]) -> Arc<[Predecoded]> {
    let code = program.code().iter().zip(program.decoded()).zip(timing);
    let numbered = code.zip(program.base_index()..);
    let rows = numbered.map(|(((inst, decoded), timing), number)| Predecoded {
        number,
        ..Predecoded::of(inst, decoded, timing)
    });
    rows.collect()
}

fn group(inst: &Inst) -> Group {
    match inst.op {
        Opcode::Ldgsts => Group::Copies,
        Opcode::Hgmma | Opcode::HgmmaSp => Group::Products,
        Opcode::Ublkcp | Opcode::Ublkred if inst.mods.high => Group::Bulk,
        _ => Group::None,
    }
}

fn order(inst: &Inst) -> Order {
    match inst.op {
        // From the memory queue on, the LSU keeps the order of accesses.
        Opcode::Bar | Opcode::BarRed | Opcode::ClusterArrive => Order::Queued,
        Opcode::Membar | Opcode::CctlIvall => Order::Returned,
        Opcode::FenceView => Order::Over,
        _ => Order::None,
    }
}

/// Operands A and B of a control instruction that reads no register and no predicate.
fn immediate_operands(inst: &Inst) -> Option<[u32; 2]> {
    // BAR.RED reads a predicate.
    if inst.guard != Guard::ALWAYS || inst.op == Opcode::BarRed {
        return None;
    }
    // Neither register nor predicate: the scheduler itself has the values.
    let mut operands = [0; 2];
    for (slot, operand) in operands.iter_mut().enumerate().take(inst.op.info().src.len()) {
        match inst.src[slot].source {
            Source::Imm(bits) => *operand = bits as u32,
            Source::Reg(reg) if reg.is_zero() => {}
            _ => return None,
        }
    }
    Some(operands)
}
