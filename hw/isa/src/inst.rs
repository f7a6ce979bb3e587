//! One instruction: a row of the table, its guard, operands and modifiers.

use crate::opcode::Opcode;
use crate::reg::{ConvBarrier, Guard, Pred, Reg, Special};
pub use crate::shape::MmaShape;
use crate::space::{Access, Space};

/// Where a source's bits come from. A source of more than one word starts here and goes on in the following registers or words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// A register, or the first of a group.
    Reg(Reg),
    /// The bits themselves; the low word first where the source has two.
    Imm(u64),
    /// A constant bank's word at a byte offset.
    Const {
        /// Bank number.
        bank: u8,
        /// Offset in bytes, a multiple of 4.
        offset: u16,
    },
    /// A special register (S2R alone).
    Special(Special),
}

/// A source with what is done to it on the way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operand {
    /// Where the bits come from.
    pub source: Source,
    /// Arithmetic negation, after `abs`.
    pub neg: bool,
    /// Absolute value.
    pub abs: bool,
    /// Bitwise inversion.
    pub not: bool,
}

impl Operand {
    /// The zero register: an operand that is not there.
    pub const NONE: Operand = Operand::plain(Source::Reg(Reg::ZERO));

    /// A source as it is.
    pub const fn plain(source: Source) -> Self {
        Operand {
            source,
            neg: false,
            abs: false,
            not: false,
        }
    }

    /// A register as it is.
    pub const fn reg(reg: Reg) -> Self {
        Self::plain(Source::Reg(reg))
    }

    /// Immediate bits.
    pub const fn imm(bits: u64) -> Self {
        Self::plain(Source::Imm(bits))
    }

    /// The same operand, negated once more.
    pub const fn negated(mut self) -> Self {
        self.neg = !self.neg;
        self
    }
}

/// Comparison. The unordered forms of floats (also true when an input is NaN) carry `unordered` in [`Mods`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the usual six, and whether both or not both are numbers")]
pub enum Cmp {
    #[default]
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// True when neither input is NaN.
    Num,
    /// True when an input is NaN.
    Nan,
}

/// How a comparison's result is joined with the predicate `psrc[0]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "boolean operations")]
pub enum Join {
    #[default]
    And,
    Or,
    Xor,
}

/// Rounding of a result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Round {
    /// To nearest, ties to even.
    #[default]
    Nearest,
    /// Toward zero.
    Zero,
    /// Toward minus infinity.
    Down,
    /// Toward plus infinity.
    Up,
}

/// The type in which an operation reads or writes bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the PTX type of the same name")]
pub enum Ty {
    U8,
    S8,
    U16,
    S16,
    #[default]
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    F32,
    F64,
    F16x2,
    Bf16x2,
    E4m3x2,
    E5m2x2,
}

impl Ty {
    /// Size in bytes.
    pub const fn bytes(self) -> u8 {
        match self {
            Ty::U8 | Ty::S8 => 1,
            Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 | Ty::E4m3x2 | Ty::E5m2x2 => 2,
            Ty::U32 | Ty::S32 | Ty::F32 | Ty::F16x2 | Ty::Bf16x2 => 4,
            Ty::U64 | Ty::S64 | Ty::F64 => 8,
        }
    }

    /// Registers that a value of the type fills.
    pub const fn words(self) -> u8 {
        if self.bytes() == 8 { 2 } else { 1 }
    }

    /// Whether it is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64 | Ty::F16x2 | Ty::Bf16x2 | Ty::E4m3x2 | Ty::E5m2x2
        )
    }
}

/// A function of the special-function unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the function of that name")]
pub enum Mufu {
    #[default]
    Rcp,
    Rsq,
    Sqrt,
    Ex2,
    Lg2,
    Sin,
    Cos,
    Tanh,
}

/// What an atomic does with the word it finds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the PTX atomic operation of that name")]
pub enum AtomOp {
    #[default]
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    /// Arrivals at an mbarrier (see [`crate::exec::mbarrier`]): so many in the operand's lower word, so many more bytes to wait for in
    /// its upper word, a negative number for bytes that have come.
    Arrive,
    /// As `Arrive`, and the next phases wait for as many arrivals less.
    ArriveDrop,
}

/// Which lane a shuffle reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the PTX shuffle mode of that name")]
pub enum ShflMode {
    #[default]
    Idx,
    Up,
    Down,
    Bfly,
}

/// What a vote answers; also the form of a match (`Any`, `All`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the PTX vote mode of that name")]
pub enum VoteMode {
    #[default]
    Ballot,
    Any,
    All,
    Uni,
}

/// How a load or store uses the caches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CacheOp {
    /// At all levels (`.ca`, `.wb`, and the default).
    #[default]
    All,
    /// At the L2 only (`.cg`).
    Global,
    /// Streaming: likely used once (`.cs`, `.lu`).
    Streaming,
    /// Not cached: fetched again (`.cv`, `.wt`, `.volatile`, and loads with device scope).
    Volatile,
    /// Read-only data (`.nc`).
    ReadOnly,
}

/// How far a fence or atomic reaches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scope {
    /// The CTA.
    Cta,
    /// The device.
    #[default]
    Gpu,
    /// The whole system.
    Sys,
}

/// Everything about an instruction that is neither operand nor row. What a row does not use stays at its default.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mods {
    /// Type of the operation or of its result.
    pub ty: Ty,
    /// Type of the input of a conversion.
    pub from: Ty,
    /// Comparison.
    pub cmp: Cmp,
    /// Whether the comparison is also true for NaN; for a least or greatest, whether a NaN wins.
    pub unordered: bool,
    /// How a comparison joins `psrc[0]`.
    pub join: Join,
    /// Second step of a 64-bit comparison or addition: takes the low step's predicate from `psrc[1]` (compare) or the carry from `psrc[0]` (add).
    pub extended: bool,
    /// Rounding.
    pub round: Round,
    /// Conversion to an integral value in the same or another float type (`.rni` and so on).
    pub integral: bool,
    /// Denormal inputs and results become zero.
    pub ftz: bool,
    /// Result clamped to 0..1 (floats) or to the type's range (integers).
    pub sat: bool,
    /// High half of the product (IMAD.HI), the upper word (SHF.HI, LEA.HI).
    pub high: bool,
    /// Shift to the right (SHF).
    pub right: bool,
    /// Shift count modulo the width instead of clamped (SHF).
    pub wrap: bool,
    /// Truth table of LOP3 and PLOP3, shift of LEA, mode of PRMT.
    pub lut: u8,
    /// Function of MUFU.
    pub mufu: Mufu,
    /// Operation of an atomic, of RED and of REDUX.
    pub atom: AtomOp,
    /// Mode of SHFL.
    pub shfl: ShflMode,
    /// Mode of VOTE and MATCH.
    pub vote: VoteMode,
    /// State space of a memory instruction.
    pub space: Space,
    /// Size of a memory access.
    pub access: Access,
    /// Byte offset added to the address.
    pub offset: i32,
    /// Constant bank of LDC.
    pub bank: u8,
    /// Cache behaviour of a load or store.
    pub cache: CacheOp,
    /// Scope of a fence or atomic.
    pub scope: Scope,
    /// Shape of a tensor product.
    pub mma: MmaShape,
    /// Matrices of LDSM (1, 2, 4), the groups that may stay pending (DEPBAR), whether SYNCS waits a while (1),
    /// whether memory is ordered behind WARPSYNC (1).
    pub count: u8,
    /// Transposed (LDSM).
    pub trans: bool,
}

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inst {
    /// OpcodeInfo of the table.
    pub op: Opcode,
    /// Lanes in which it takes effect.
    pub guard: Guard,
    /// Result register, the first of a group; [`Reg::ZERO`] where there is none.
    pub dst: Reg,
    /// Result predicates.
    pub pdst: [Pred; 2],
    /// Sources A, B, C, D as the row defines them.
    pub src: [Operand; 4],
    /// Predicate sources besides the guard.
    pub psrc: [Guard; 2],
    /// Modifiers.
    pub mods: Mods,
    /// Branch target, as an index into the program.
    pub target: u32,
    /// Convergence barrier of BSSY, BSYNC, BREAK.
    pub conv: ConvBarrier,
    /// Line of the source text (PTX), from 1; 0 where none.
    pub line: u32,
}

impl Inst {
    /// A row with nothing filled in: always executed, no operands, no results.
    pub fn new(op: Opcode) -> Self {
        Inst {
            op,
            guard: Guard::ALWAYS,
            dst: Reg::ZERO,
            pdst: [Pred::TRUE; 2],
            src: [Operand::NONE; 4],
            psrc: [Guard::ALWAYS; 2],
            mods: Mods::default(),
            target: 0,
            conv: ConvBarrier(0),
            line: 0,
        }
    }
}
