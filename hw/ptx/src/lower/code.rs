//! Code between PTX and the machine: rows of the table on as many registers as they like.
//!
//! A [`Word`] is a 32-bit virtual register. Words that belong together (the two of a 64-bit value, the four of a vector)
//! are a group: neighbours in number, aligned when they get physical registers. A [`Flag`] is a virtual predicate.
//! 64-bit integer operations stay whole ([`Wide`]) until the `split` pass, so that passes before it see a value and not
//! its halves. A block ends behind a BRA or an EXIT; a block that does not jump goes on with the next in text order.

pub(crate) use super::arg::{Arg, Bits, Flag, When, Word};
use warpwave_isa::inst::Mods;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Assertion;
use warpwave_isa::reg::{ConvBarrier, Special};

/// The place of a block in [`Code::blocks`].
pub(crate) type BlockId = usize;

/// A 64-bit integer operation, whole.
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
    /// d = a >> b, in a's sign where `ty` is signed.
    Shr,
    /// d = psrc0 ? a : b.
    Sel,
    /// pdst0 = (a cmp b) join psrc0, pdst1 its complement.
    Setp,
    /// d = low 64 bits of a * b + c.
    Mad,
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum What {
    Row(Opcode),
    Wide(Wide),
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Op {
    pub what: What,
    pub guard: When,
    /// First word of the result.
    pub dst: Option<Word>,
    pub pdst: [Option<Flag>; 2],
    pub src: [Arg; 4],
    pub psrc: [When; 2],
    pub mods: Mods,
    /// Where a BRA goes; for a BSSY, where its lanes meet.
    pub target: Option<BlockId>,
    pub conv: ConvBarrier,
    /// Whether the text promises that all lanes agree (`bra.uni`).
    pub uniform: bool,
    /// Line of the PTX text.
    pub line: u32,
}

/// How many words an operation reads and writes, and how many predicates it reads besides its guard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub dst: u8,
    pub src: [u8; 4],
    pub psrc: usize,
}

impl Op {
    pub fn new(what: What) -> Op {
        Op {
            what,
            guard: When::ALWAYS,
            dst: None,
            pdst: [None; 2],
            src: [Arg::ZERO; 4],
            psrc: [When::ALWAYS; 2],
            mods: Mods::default(),
            target: None,
            conv: ConvBarrier(0),
            uniform: false,
            line: 0,
        }
    }

    pub fn row(opcode: Opcode) -> Op {
        Op::new(What::Row(opcode))
    }

    pub fn wide(wide: Wide) -> Op {
        Op::new(What::Wide(wide))
    }

    pub fn dst(mut self, word: Word) -> Op {
        self.dst = Some(word);
        self
    }

    pub fn src(mut self, args: &[Arg]) -> Op {
        self.src[..args.len()].copy_from_slice(args);
        self
    }

    pub fn flags(mut self, flag: Flag) -> Op {
        self.pdst[0] = Some(flag);
        self
    }

    pub fn when(mut self, guard: When) -> Op {
        self.guard = guard;
        self
    }

    pub fn psrc(mut self, when: When) -> Op {
        self.psrc[0] = when;
        self
    }

    pub fn mods(mut self, set: impl FnOnce(&mut Mods)) -> Op {
        set(&mut self.mods);
        self
    }

    pub fn is(&self, opcode: Opcode) -> bool {
        self.what == What::Row(opcode)
    }

    /// Whether control does not go on behind this operation.
    pub fn ends_flow(&self) -> bool {
        self.guard == When::ALWAYS && matches!(self.what, What::Row(Opcode::Bra | Opcode::Exit | Opcode::Trap))
    }

    /// Whether the operation does more than write its results.
    pub fn has_effect(&self) -> bool {
        use Opcode::*;
        let What::Row(opcode) = self.what else { return false };
        matches!(
            opcode,
            St | Atom
                | Red
                | Cctl
                | CctlIvall
                | Ldgsts
                | Ldgdepbar
                | Ublkcp
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
                | Ldsm
                | Syncs
                | Sust
                | R2p
        ) || (opcode == Ld && self.mods.cache == warpwave_isa::inst::CacheOp::Volatile)
            || (opcode == S2r
                && matches!(
                    self.src[0].bits,
                    Bits::Special(Special::ClockLo | Special::ClockHi | Special::BarrierCount)
                ))
    }

    pub fn shape(&self) -> Shape {
        match self.what {
            What::Row(opcode) => row_shape(opcode, &self.mods),
            What::Wide(wide) => wide_shape(wide),
        }
    }

    /// Words read, the address of a group's every word.
    pub fn uses(&self) -> impl Iterator<Item = Word> + use<> {
        let shape = self.shape();
        let src = self.src;
        (0..4).flat_map(move |slot| {
            let first = src[slot].as_word();
            (0..shape.src[slot]).filter_map(move |n| first.map(|word| word.offset(n)))
        })
    }

    /// Words written.
    pub fn defs(&self) -> impl Iterator<Item = Word> + use<> {
        let n = self.shape().dst;
        let first = self.dst;
        (0..n).filter_map(move |at| first.map(|word| word.offset(at)))
    }

    /// Predicates read, the guard's included.
    pub fn flag_uses(&self) -> impl Iterator<Item = Flag> + use<> {
        let n = self.shape().psrc;
        let psrc = self.psrc;
        self.guard
            .flag
            .into_iter()
            .chain((0..n).filter_map(move |at| psrc[at].flag))
    }

    /// Predicates written.
    pub fn flag_defs(&self) -> impl Iterator<Item = Flag> + use<> {
        let pdst = self.pdst;
        pdst.into_iter().flatten()
    }
}

fn row_shape(opcode: Opcode, mods: &Mods) -> Shape {
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

/// A run of operations with one way in, at its start.
#[derive(Clone, Default, Debug)]
pub(crate) struct Block {
    pub ops: Vec<Op>,
}

/// A kernel's code.
#[derive(Clone, Default, Debug)]
pub(crate) struct Code {
    pub blocks: Vec<Block>,
    /// For each word: the first word of its group, and the group's length.
    pub groups: Vec<(Word, u8)>,
    pub n_flags: u32,
    /// What the traps of assertions say.
    pub assertions: Vec<Assertion>,
    /// Registers that a thread has at least.
    pub least_registers: usize,
    /// Registers that a thread may have.
    pub most_registers: usize,
    /// Whether each WARPSYNC that orders memory stays, also where lanes are together anyway.
    pub keep_syncs: bool,
}

impl Code {
    /// New words that belong together.
    pub fn group(&mut self, words: u8) -> Word {
        let first = Word(self.groups.len() as u32);
        self.groups.extend((0..words).map(|_| (first, words)));
        first
    }

    pub fn flag(&mut self) -> Flag {
        self.n_flags += 1;
        Flag(self.n_flags - 1)
    }

    /// Blocks to which control may go behind a block.
    pub fn successors(&self, block: BlockId) -> impl Iterator<Item = BlockId> + use<> {
        let last = self.blocks[block].ops.last();
        let jump = last.filter(|op| op.is(Opcode::Bra)).and_then(|op| op.target);
        let goes_on = !last.is_some_and(Op::ends_flow) && block + 1 < self.blocks.len();
        let next = goes_on.then_some(block + 1);
        next.into_iter().chain(jump.filter(|_| jump != next))
    }

    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.blocks.iter().flat_map(|block| &block.ops)
    }
}
