//! Predecoded instructions for the warp schedulers: 64 bytes each, one host cache line, computed at launch.
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
#[repr(C, align(64))]
pub struct Predecoded {
    /// Registers read or written.
    pub touches: RegSet,
    /// Registers written: word [`defs_word`](Predecoded::defs_word) of a [`RegSet`].
    pub defs: u64,
    /// Operands A and B of an instruction that is resolved at issue.
    pub operands: [u32; 2],
    /// Its number among the instructions of all kernels.
    pub number: u32,
    /// Index of the word of a [`RegSet`] with the first register written, the guard's predicate, and whether an operand is a constant:
    /// [`Predecoded::defs_word`], [`Predecoded::guard`] and [`Predecoded::reads_constant`]. One byte, so that an instruction fits a line.
    word_and_guard: u8,
    /// Registers written: the word after [`defs_word`](Predecoded::defs_word).
    pub defs_beyond: u8,
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
    /// [`Predecoded::group`], [`Predecoded::order`] and [`Predecoded::barrier`]. One byte, so that an instruction fits a line.
    group_order_barrier: u8,
}

/// Position of the guard in `word_and_guard`. An index of a word takes 2 bits, a predicate 3.
const GUARD_SHIFT: u32 = 2;

/// Position of the bit for a constant operand in `word_and_guard`.
const CONSTANT_SHIFT: u32 = 5;

/// Positions in `group_order_barrier`. A group and an order take 2 bits, a barrier 3.
const ORDER_SHIFT: u32 = 2;
const BARRIER_SHIFT: u32 = 4;

/// The barrier of an instruction without one.
const NO_BARRIER: u8 = 7;

// One host cache line.
const _: () = assert!(size_of::<Predecoded>() == 64);

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
            word_and_guard: first as u8
                | inst.guard.pred.0 << GUARD_SHIFT
                | u8::from(has_constant(decoded)) << CONSTANT_SHIFT,
            defs_beyond: u8::try_from(beyond).expect("an instruction writes adjacent registers"),
            operands: operands.unwrap_or_default(),
            number: 0,
            pred_defs: decoded.pred_defs,
            pred_touches: decoded.pred_touches,
            pipe: timing.pipe,
            interval: u16::try_from(timing.interval).expect("the check of a configuration bounds intervals"),
            result: timing.result,
            is_local_or_global: timing.is_local_or_global,
            target,
            waits: timing.barriers.wait,
            group_order_barrier: group(inst) as u8
                | (order(inst) as u8) << ORDER_SHIFT
                | timing.barriers.write.unwrap_or(NO_BARRIER) << BARRIER_SHIFT,
        }
    }

    /// Its group counter.
    #[inline]
    pub fn group(&self) -> Group {
        match self.group_order_barrier % (1 << ORDER_SHIFT) {
            0 => Group::None,
            1 => Group::Copies,
            2 => Group::Products,
            _ => Group::Bulk,
        }
    }

    /// Progress that it needs of earlier accesses.
    #[inline]
    pub fn order(&self) -> Order {
        match self.group_order_barrier >> ORDER_SHIFT & 3 {
            0 => Order::None,
            1 => Order::Queued,
            2 => Order::Returned,
            _ => Order::Over,
        }
    }

    /// Dependency barrier that its result holds until it is written.
    #[inline]
    pub fn barrier(&self) -> Option<usize> {
        let barrier = self.group_order_barrier >> BARRIER_SHIFT;
        (barrier != NO_BARRIER).then_some(barrier.into())
    }

    /// Index of the word of a [`RegSet`] with the first register written.
    #[inline]
    pub fn defs_word(&self) -> usize {
        usize::from(self.word_and_guard % (1 << GUARD_SHIFT))
    }

    /// Number of the predicate that guards the instruction, 0 to 7. 7 is the constant PT: no guard.
    #[inline]
    pub fn guard(&self) -> usize {
        usize::from(self.word_and_guard >> GUARD_SHIFT & 7)
    }

    /// True if an operand is a word of a constant bank.
    #[inline]
    pub fn reads_constant(&self) -> bool {
        self.word_and_guard >> CONSTANT_SHIFT != 0
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
