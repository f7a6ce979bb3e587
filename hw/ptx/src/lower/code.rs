//! The intermediate code: machine operations on an unlimited number of virtual registers.
//!
//! A [`VReg`] is a 32-bit virtual register, and a [`VPred`] is a virtual predicate. The registers of one wide value form a group (two for
//! 64 bits, four for a vector). A group has consecutive numbers and is aligned at allocation. 64-bit integer operations stay whole
//! ([`Wide`]) until the `legalize` pass. So earlier passes see values and not halves. A block ends after a BRA or an EXIT. A block without
//! a jump continues with the next block.

pub(crate) use super::arg::{Arg, Bits, VGuard, VPred, VReg};
use crate::PassSet;
use warpwave_isa::flow::Reconvergence;
use warpwave_isa::inst::Mods;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Assertion;
use warpwave_isa::reg::{ConvBarrier, Special};

/// Index of a block in [`Code::blocks`].
pub(crate) type BlockId = usize;

/// A 64-bit integer operation, not yet split into words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Wide {
    /// d = a.
    Mov,
    /// d = a + b.
    Add,
    /// d = a - b.
    Sub,
    /// d = truth table `lut` of a and b.
    Lop,
    /// d = a << b, b of 32 bits.
    Shl,
    /// d = a >> b, b of 32 bits. The shift is arithmetic if `ty` is signed.
    Shr,
    /// d = psrc0 ? a : b.
    Sel,
    /// pdst0 = (a cmp b) join psrc0; pdst1 = !(a cmp b) join psrc0.
    Setp,
    /// d = low 64 bits of a * b + c.
    Mad,
}

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum OpKind {
    Machine(Opcode),
    Wide(Wide),
}

/// One operation of the intermediate code.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Op {
    pub kind: OpKind,
    pub guard: VGuard,
    /// First register of the result.
    pub dst: Option<VReg>,
    pub pdst: [Option<VPred>; 2],
    pub src: [Arg; 4],
    pub psrc: [VGuard; 2],
    pub mods: Mods,
    /// Target of a BRA; reconvergence block of a BSSY.
    pub target: Option<BlockId>,
    pub conv: ConvBarrier,
    /// True if the PTX text promises that all lanes agree (`bra.uni`).
    pub uniform: bool,
    /// Region of a float operation without a rounding modifier, or of a negation. `contract` fuses operations of one region, and sets
    /// `None`.
    pub contraction: Option<u32>,
    /// Line of the PTX text.
    pub line: u32,
}

/// Number of words read and written, and number of predicates read in addition to the guard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub dst: u8,
    pub src: [u8; 4],
    pub psrc: usize,
}

impl Op {
    pub fn new(kind: OpKind) -> Op {
        Op {
            kind,
            guard: VGuard::ALWAYS,
            dst: None,
            pdst: [None; 2],
            src: [Arg::ZERO; 4],
            psrc: [VGuard::ALWAYS; 2],
            mods: Mods::default(),
            target: None,
            conv: ConvBarrier(0),
            uniform: false,
            contraction: None,
            line: 0,
        }
    }

    pub fn machine(opcode: Opcode) -> Op {
        Op::new(OpKind::Machine(opcode))
    }

    pub fn wide(wide: Wide) -> Op {
        Op::new(OpKind::Wide(wide))
    }

    pub fn dst(mut self, vreg: VReg) -> Op {
        self.dst = Some(vreg);
        self
    }

    pub fn src(mut self, args: &[Arg]) -> Op {
        self.src[..args.len()].copy_from_slice(args);
        self
    }

    pub fn pdst(mut self, pred: VPred) -> Op {
        self.pdst[0] = Some(pred);
        self
    }

    pub fn guard(mut self, guard: VGuard) -> Op {
        self.guard = guard;
        self
    }

    pub fn psrc(mut self, source: VGuard) -> Op {
        self.psrc[0] = source;
        self
    }

    pub fn mods(mut self, set: impl FnOnce(&mut Mods)) -> Op {
        set(&mut self.mods);
        self
    }

    pub fn is(&self, opcode: Opcode) -> bool {
        self.kind == OpKind::Machine(opcode)
    }

    /// True if control never reaches the next operation.
    pub fn ends_flow(&self) -> bool {
        self.guard == VGuard::ALWAYS && matches!(self.kind, OpKind::Machine(Opcode::Bra | Opcode::Exit | Opcode::Trap))
    }

    /// True if the operation does more than write its results. It stays in place, and it gets the guard of its PTX instruction.
    pub fn has_effect(&self) -> bool {
        use Opcode::*;
        let OpKind::Machine(opcode) = self.kind else {
            return false;
        };
        // Exchanges and matrix products count: a lane with a false guard must not take part in them. Volatile loads and clock
        // reads happen as often as the text says.
        matches!(
            opcode,
            St | Atom
                | Red
                | Cctl
                | CctlIvall
                | Ldgsts
                | Ldgdepbar
                | Ublkcp
                | Ublkred
                | BulkCommit
                | BulkWait
                | Shfl
                | Bra
                | Brx
                | Bssy
                | Bsync
                | Break
                | Warpsync
                | Exit
                | Bar
                | BarRed
                | FenceView
                | GmmaCommit
                | GmmaWait
                | Hgmma
                | HgmmaSp
                | ClusterArrive
                | ClusterWait
                | Membar
                | Depbar
                | Nanosleep
                | Trap
                | Vote
                | Match
                | Redux
                | Mma
                | MmaSp
                | Ldsm
                | Syncs
                | Sust
                | R2p
        ) || (opcode == Ld && self.mods.cache == warpwave_isa::inst::CacheOp::Volatile)
            || (opcode == S2r
                && matches!(
                    self.src[0].bits,
                    Bits::Special(
                        Special::ClockLo
                            | Special::ClockHi
                            | Special::GlobaltimerLo
                            | Special::GlobaltimerHi
                            | Special::BarrierCount
                    )
                ))
    }

    pub fn shape(&self) -> Shape {
        match self.kind {
            OpKind::Machine(opcode) => machine_shape(opcode, &self.mods),
            OpKind::Wide(wide) => wide_shape(wide),
        }
    }

    /// Iterates over the registers read, with every register of a group.
    pub fn uses(&self) -> impl Iterator<Item = VReg> + use<> {
        let shape = self.shape();
        let src = self.src;
        (0..4).flat_map(move |slot| {
            let first = src[slot].as_vreg();
            (0..shape.src[slot]).filter_map(move |n| first.map(|vreg| vreg.offset(n)))
        })
    }

    /// Iterates over the registers written.
    pub fn defs(&self) -> impl Iterator<Item = VReg> + use<> {
        let n = self.shape().dst;
        let first = self.dst;
        (0..n).filter_map(move |at| first.map(|vreg| vreg.offset(at)))
    }

    /// Iterates over the predicates read, with the guard.
    pub fn pred_uses(&self) -> impl Iterator<Item = VPred> + use<> {
        let n = self.shape().psrc;
        let psrc = self.psrc;
        self.guard
            .pred
            .into_iter()
            .chain((0..n).filter_map(move |at| psrc[at].pred))
    }

    /// Iterates over the predicates written.
    pub fn pred_defs(&self) -> impl Iterator<Item = VPred> + use<> {
        let pdst = self.pdst;
        pdst.into_iter().flatten()
    }
}

fn machine_shape(opcode: Opcode, mods: &Mods) -> Shape {
    let info = opcode.info();
    let mut src = [0; 4];
    for (words, width) in src.iter_mut().zip(info.src) {
        *words = width.of(mods);
    }
    Shape {
        dst: info.dst.of(mods),
        src,
        psrc: info.psrc.into(),
    }
}

fn wide_shape(wide: Wide) -> Shape {
    let (dst, src, psrc) = match wide {
        Wide::Mov => (2, [2, 0, 0, 0], 0),
        Wide::Add | Wide::Sub | Wide::Lop => (2, [2, 2, 0, 0], 0),
        Wide::Shl | Wide::Shr => (2, [2, 1, 0, 0], 0),
        Wide::Sel => (2, [2, 2, 0, 0], 1),
        Wide::Setp => (0, [2, 2, 0, 0], 1),
        Wide::Mad => (2, [2, 2, 2, 0], 0),
    };
    Shape { dst, src, psrc }
}

/// A basic block: operations with a single entry at the start.
#[derive(Clone, Default, Debug)]
pub(crate) struct Block {
    pub ops: Vec<Op>,
}

/// Intermediate code of a kernel.
#[derive(Clone, Default, Debug)]
pub(crate) struct Code {
    pub blocks: Vec<Block>,
    /// First register and length of each register's group.
    pub groups: Vec<(VReg, u8)>,
    pub n_preds: u32,
    /// Blocks whose loops `unroll` leaves as they are. Later passes do not renumber this list.
    pub kept_loops: Vec<BlockId>,
    /// Assertions of the traps.
    pub assertions: Vec<Assertion>,
    /// Minimum number of registers of a thread.
    pub min_registers: usize,
    /// Maximum number of registers of a thread.
    pub max_registers: usize,
    /// Compute capability that the text is written for: ten times the major number plus the minor number.
    pub capability: u32,
    /// Passes that are left out. `unroll` asks before it cleans up.
    pub skipped: PassSet,
    /// True to treat every conditional branch as divergent.
    pub all_diverge: bool,
    /// True if no loop is unrolled.
    pub keeps_loops: bool,
    /// True if no product and sum become a multiply-add.
    pub keeps_products: bool,
    /// True if every spilled value has a slot in local memory, and no operation is repeated.
    pub spills_to_memory: bool,
    /// Progress of diverged lanes on the GPU.
    pub reconvergence: Reconvergence,
}

impl Code {
    /// Creates a group of `words` new registers.
    pub fn new_group(&mut self, words: u8) -> VReg {
        let first = VReg(self.groups.len() as u32);
        // Every register knows its group, so that the allocator finds the group from any operand.
        self.groups.extend((0..words).map(|_| (first, words)));
        first
    }

    pub fn new_pred(&mut self) -> VPred {
        self.n_preds += 1;
        VPred(self.n_preds - 1)
    }

    /// Iterates over the blocks that can run after `block`.
    pub fn successors(&self, block: BlockId) -> impl Iterator<Item = BlockId> + use<> {
        let last = self.blocks[block].ops.last();
        // A guarded jump or end falls through in the lanes where its guard is false.
        let jump = last.filter(|op| op.is(Opcode::Bra)).and_then(|op| op.target);
        // BRX is never selected: `brx.idx` becomes a search by BRA.
        let goes_on = !last.is_some_and(Op::ends_flow) && block + 1 < self.blocks.len();
        let next = goes_on.then_some(block + 1);
        // A jump to the next block is one edge, not two.
        next.into_iter().chain(jump.filter(|_| jump != next))
    }

    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.blocks.iter().flat_map(|block| &block.ops)
    }
}
