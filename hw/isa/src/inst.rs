//! One instruction: an opcode with its guard, operands and modifiers.

use crate::opcode::Opcode;
use crate::reg::{ConvBarrier, Guard, Pred, Reg, Special};
pub use crate::shape::MmaShape;
use crate::space::{Access, Space};

/// Origin of a source's bits. A source of several words continues in the following registers or words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// A register, or the first register of a group.
    Reg(Reg),
    /// An immediate. A source of two words takes the low word first.
    Imm(u64),
    /// A word of a constant bank.
    Const {
        /// Bank number.
        bank: u8,
        /// Offset in bytes, a multiple of 4.
        offset: u16,
    },
    /// A special register, only in S2R.
    Special(Special),
}

/// A source with its operand modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operand {
    /// Origin of the bits.
    pub source: Source,
    /// Arithmetic negation, after `abs`.
    pub neg: bool,
    /// Absolute value.
    pub abs: bool,
    /// Bitwise inversion.
    pub not: bool,
}

impl Operand {
    /// An absent operand: the zero register.
    pub const NONE: Operand = Operand::plain(Source::Reg(Reg::ZERO));

    /// Returns a source without modifiers.
    pub const fn plain(source: Source) -> Self {
        Operand {
            source,
            neg: false,
            abs: false,
            not: false,
        }
    }

    /// Returns a register without modifiers.
    pub const fn reg(reg: Reg) -> Self {
        Self::plain(Source::Reg(reg))
    }

    /// Returns an immediate.
    pub const fn imm(bits: u64) -> Self {
        Self::plain(Source::Imm(bits))
    }

    /// Returns the operand with its sign flipped.
    pub const fn negated(mut self) -> Self {
        self.neg = !self.neg;
        self
    }
}

/// A comparison. `unordered` in [`Mods`] makes a float comparison also true for NaN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the usual six, and tests for NaN")]
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

/// Boolean operation that combines a comparison with the predicate `psrc[0]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "boolean operations")]
pub enum Join {
    #[default]
    And,
    Or,
    Xor,
}

/// Rounding mode of a result.
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

/// Type that an operation reads or writes.
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
    U128,
}

impl Ty {
    /// Size in bytes.
    pub const fn bytes(self) -> u8 {
        match self {
            Ty::U8 | Ty::S8 => 1,
            Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 | Ty::E4m3x2 | Ty::E5m2x2 => 2,
            Ty::U32 | Ty::S32 | Ty::F32 | Ty::F16x2 | Ty::Bf16x2 => 4,
            Ty::U64 | Ty::S64 | Ty::F64 => 8,
            Ty::U128 => 16,
        }
    }

    /// Registers that a value of the type fills.
    pub const fn words(self) -> u8 {
        self.bytes().div_ceil(4)
    }

    /// True for signed integers.
    pub const fn is_signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }

    /// True for floating-point types.
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

/// Operation of an atomic on the word in memory.
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
    /// Arrives at an mbarrier (see [`crate::exec::mbarrier`]). The operand's lower word is the number of arrivals.
    /// The upper word adds to the pending bytes; it is negative for bytes that have arrived.
    Arrive,
    /// Like `Arrive`, and lowers the arrival count of later phases by the same number.
    ArriveDrop,
}

impl AtomOp {
    /// True for an arrival at an mbarrier.
    pub fn is_arrival(self) -> bool {
        matches!(self, AtomOp::Arrive | AtomOp::ArriveDrop)
    }
}

/// Rule that selects the source lane of a shuffle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the PTX shuffle mode of that name")]
pub enum ShflMode {
    #[default]
    Idx,
    Up,
    Down,
    Bfly,
}

/// Condition of a vote. A match uses `Any` and `All`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the PTX vote mode of that name")]
pub enum VoteMode {
    #[default]
    Ballot,
    Any,
    All,
    Uni,
}

/// Cache policy of a load or store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CacheOp {
    /// Cached at all levels (`.ca`, `.wb`, and the default).
    #[default]
    All,
    /// Cached in the L2 only (`.cg`).
    Global,
    /// Streaming, likely used once (`.cs`, `.lu`).
    Streaming,
    /// Not cached (`.cv`, `.wt`, `.volatile`, and loads with device scope).
    Volatile,
    /// Read-only data (`.nc`).
    ReadOnly,
}

/// Scope of a fence, an atomic, or a strong load or store.
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

/// Modifiers: every property besides opcode and operands. An unused modifier keeps its default.
///
/// Some opcodes use a modifier for something else: see each line of [`Opcode`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mods {
    /// Type of the operation or of its result.
    pub ty: Ty,
    /// Type of the input of a conversion.
    pub from: Ty,
    /// Comparison.
    pub cmp: Cmp,
    /// True if the comparison is also true for NaN. In a minimum or maximum: a NaN wins.
    pub unordered: bool,
    /// Combines a comparison with `psrc[0]`.
    pub join: Join,
    /// Upper step of a 64-bit operation. A comparison takes the low step's result from `psrc[1]`, an addition the carry from `psrc[0]`.
    pub extended: bool,
    /// Rounding.
    pub round: Round,
    /// Rounds a conversion to an integral value in the float type (`.rni` and its siblings).
    pub integral: bool,
    /// Flushes denormal inputs and results to zero.
    pub ftz: bool,
    /// Clamps the result to 0..1 (floats) or to the type's range (integers).
    pub sat: bool,
    /// Selects the high half: of a product (IMAD.HI) or of a shift (SHF.HI, LEA.HI). A bulk copy with it goes to global memory.
    /// A matrix product with it is one of a warp group, which has fewer bits in sums of 8-bit floats.
    /// A load or store with it is the first half of a vector, so its address is a multiple of twice its size.
    pub high: bool,
    /// Shifts to the right (SHF).
    pub right: bool,
    /// Wraps the shift count at the width instead of clamping it (SHF).
    pub wrap: bool,
    /// Truth table of LOP3 and PLOP3, shift of LEA, mode of PRMT, selector of the lanes with the metadata of a sparse product.
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
    /// Scope of a fence, an atomic, or a strong load or store.
    pub scope: Scope,
    /// Shape of a tensor product.
    pub mma: MmaShape,
    /// A small number. LDSM: matrices (1, 2, 4). DEPBAR: groups that may stay pending.
    /// SYNCS: 1 if it may wait. WARPSYNC: 1 if it also orders memory. BPT.TRAP: 1 if the count of an mbarrier is its cause.
    pub count: u8,
    /// Transposes the matrices (LDSM).
    pub trans: bool,
    /// Negates A (HGMMA).
    pub neg: bool,
}

impl Mods {
    /// Returns the alignment of the address of a load or store, in bytes.
    pub const fn alignment(&self) -> u32 {
        self.access.total() << self.high as u32
    }
}

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inst {
    /// Operation.
    pub op: Opcode,
    /// Lanes in which the instruction takes effect.
    pub guard: Guard,
    /// Result register, the first of a group, or [`Reg::ZERO`] without a result.
    pub dst: Reg,
    /// Result predicates.
    pub pdst: [Pred; 2],
    /// Sources A, B, C, D.
    pub src: [Operand; 4],
    /// Predicate sources besides the guard.
    pub psrc: [Guard; 2],
    /// Modifiers.
    pub mods: Mods,
    /// Branch target, an index into the program.
    pub target: u32,
    /// Convergence barrier of BSSY, BSYNC, BREAK.
    pub conv: ConvBarrier,
    /// Line of the PTX text, from 1, or 0 without one.
    pub line: u32,
}

impl Inst {
    /// Returns an instruction with the default of every field: always executed, no operands, no results.
    pub fn new(op: Opcode) -> Self {
        Inst {
            op,
            guard: Guard::ALWAYS,
            dst: Reg::ZERO,
            // Writes to PT are dropped, so this is no result.
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
