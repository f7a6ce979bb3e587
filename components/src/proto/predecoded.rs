//! What a warp scheduler needs to know of an instruction: one line of the processor's cache each, worked out at launch.
//!
//! A scheduler looks the next instruction of a warp up whenever something of the warp changes, and the issued one when its
//! results are stored. Here both are one read, where the instruction, its facts and its cycles would be three.

use std::sync::Arc;

use warpwave_isa::inst::{Inst, Source};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::{Decoded, Program};
use warpwave_isa::reg::{Guard, RegSet};

use super::launch::{ResultWait, Timing};

/// Where an instruction goes when it is issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IssueTarget {
    /// Into a math pipe, which is taken for its interval.
    Math,
    /// Into the memory queue.
    Memory,
    /// Likewise; it is over for its warp once it is sent.
    Posted,
    /// Into the memory queue; the warp waits at it until it is back.
    Fence,
    /// To the branch unit, which reads its operands; the warp waits.
    BranchUnit,
    /// Nowhere: a control instruction that needs no register is resolved at issue.
    Resolved,
    /// Nowhere: it closes a group of asynchronous copies.
    Close,
}

/// What an instruction counts in until it is over, beside its warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Nothing.
    None,
    /// The warp's asynchronous copies.
    Copies,
    /// Its part of the products of its warp group.
    Products,
    /// Its bulk copies towards global memory.
    Bulk,
}

/// What of a warp's accesses must be done before a control instruction may issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Nothing.
    None,
    /// They have left the memory queue: a barrier.
    Queued,
    /// The loads and atomics have returned: a fence, an invalidation of the L1.
    Returned,
    /// They are over: a fence before products and bulk copies.
    Over,
}

/// One instruction, as its scheduler sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct Predecoded {
    /// Registers read or written.
    pub touches: RegSet,
    /// Registers written, as far as they are in word `defs_word` of a [`RegSet`].
    pub defs: u64,
    /// Operands A and B of what is resolved at issue.
    pub operands: [u32; 2],
    /// Its number among those of all kernels.
    pub number: u32,
    /// Which word of a [`RegSet`] the first register written is in.
    pub defs_word: u8,
    /// The registers written that are in the word behind that.
    pub defs_beyond: u8,
    /// Predicates written, bit i for Pi.
    pub pred_defs: u8,
    /// Predicates read or written.
    pub pred_touches: u8,
    /// Its pipe.
    pub pipe: Pipe,
    /// Cycles that it takes of its pipe.
    pub interval: u8,
    /// How its result is waited for.
    pub result: ResultWait,
    /// Whether it uses the queue for local and global accesses.
    pub is_local_or_global: bool,
    /// Where it goes.
    pub target: IssueTarget,
    /// What it counts in.
    pub group: Group,
    /// What it waits for in order.
    pub order: Order,
}

/// Of this every slot of every scheduler reads two at each instruction.
const _: () = assert!(size_of::<Predecoded>() == 64);

impl Predecoded {
    /// What is known of an instruction that takes these cycles.
    pub fn of(inst: &Inst, decoded: &Decoded, timing: &Timing) -> Self {
        let words = decoded.defs.0;
        let first = words.iter().position(|&word| word != 0).unwrap_or(0);
        let beyond = words.get(first + 1).copied().unwrap_or(0);
        let operands = (decoded.pipe == Pipe::Control)
            .then(|| immediate_operands(inst))
            .flatten();
        let target = match decoded.pipe {
            Pipe::Control if operands.is_some() => IssueTarget::Resolved,
            Pipe::Control => IssueTarget::BranchUnit,
            Pipe::Lsu if inst.op == Opcode::Ldgdepbar => IssueTarget::Close,
            Pipe::Lsu if inst.op == Opcode::Membar => IssueTarget::Fence,
            Pipe::Lsu if timing.is_posted => IssueTarget::Posted,
            Pipe::Lsu => IssueTarget::Memory,
            _ => IssueTarget::Math,
        };
        Predecoded {
            touches: decoded.touches,
            defs: words[first],
            defs_word: first as u8,
            defs_beyond: u8::try_from(beyond).expect("the results of an instruction are in neighboring registers"),
            operands: operands.unwrap_or_default(),
            number: 0,
            pred_defs: decoded.pred_defs,
            pred_touches: decoded.pred_touches,
            pipe: decoded.pipe,
            interval: u8::try_from(timing.interval).expect("an interval is bounded where timing is made"),
            result: timing.result,
            is_local_or_global: timing.is_local_or_global,
            target,
            group: group(inst),
            order: order(inst.op),
        }
    }
}

/// Every instruction of a program with these cycles, by program counter.
pub fn table(program: &Program, timing: &[Timing]) -> Arc<[Predecoded]> {
    let code = program.code().iter().zip(program.decoded()).zip(timing);
    let numbered = code.zip(program.first()..);
    let rows = numbered.map(|(((inst, decoded), timing), number)| Predecoded {
        number,
        ..Predecoded::of(inst, decoded, timing)
    });
    rows.collect()
}

fn group(inst: &Inst) -> Group {
    match inst.op {
        Opcode::Ldgsts => Group::Copies,
        Opcode::Hgmma => Group::Products,
        Opcode::Ublkcp if inst.mods.high => Group::Bulk,
        _ => Group::None,
    }
}

fn order(op: Opcode) -> Order {
    match op {
        Opcode::Bar | Opcode::BarRed | Opcode::ClusterArrive => Order::Queued,
        Opcode::Membar | Opcode::CctlIvall => Order::Returned,
        Opcode::FenceView => Order::Over,
        _ => Order::None,
    }
}

/// Operands A and B of a control instruction that needs no register, no guard and no predicate.
fn immediate_operands(inst: &Inst) -> Option<[u32; 2]> {
    if inst.guard != Guard::ALWAYS || inst.op == Opcode::BarRed {
        return None;
    }
    let mut operands = [0; 2];
    for (slot, operand) in operands.iter_mut().enumerate().take(inst.op.row().src.len()) {
        match inst.src[slot].source {
            Source::Imm(bits) => *operand = bits as u32,
            Source::Reg(reg) if reg.is_zero() => {}
            _ => return None,
        }
    }
    Some(operands)
}
