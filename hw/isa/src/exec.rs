//! Execution of instructions: bits in, bits out, for a whole warp at once. No clock, no memory.
//!
//! [`execute`] covers all arithmetic. Memory accesses use [`access`] and [`atomic`], control flow uses [`crate::flow`].
//! Results are computed in all 32 lanes, and the caller keeps the active ones. A function inspects the instruction before its
//! loop over the lanes, so that the compiler can vectorize the loop.
//!
//! NaN results are canonical, as on NVIDIA GPUs: 0x7fff (half), 0x7fffffff (f32), 0xfff8000000000000 (f64).
//!
//! ```
//! use warpwave_isa::exec::{Operands, Results, execute};
//! use warpwave_isa::inst::{Inst, Operand};
//! use warpwave_isa::lane::{LaneMask, Lanes};
//! use warpwave_isa::opcode::Opcode;
//! use warpwave_isa::program::Decoded;
//! use warpwave_isa::reg::Reg;
//! let mut add = Inst::new(Opcode::Iadd3);
//! add.src[0] = Operand::reg(Reg(0));
//! add.src[1] = Operand::imm(2);
//! let mut operands = Operands::default();
//! operands.words[0] = Lanes::splat(40);
//! operands.words[1] = Lanes::splat(2); // the caller gathers immediates too
//! let mut results = Results::default();
//! execute(&add, &Decoded::of(&add), LaneMask::ALL, &operands, &mut results);
//! assert_eq!(results.words[0].0[31], 42);
//! ```

use crate::inst::Inst;
use crate::lane::{LaneMask, Lanes};
use crate::opcode::Opcode;
use crate::program::{Decoded, MAX_RESULT_WORDS, MAX_SOURCE_WORDS};
use crate::reg::{Guard, Pred};

mod map;
mod modifier;

mod compare;
mod int;
mod moves;
mod product;
mod shift;

mod fp32;
mod fp64;
mod half;

mod fp8;
mod soft;

mod convert;
mod elementary;
mod mufu;
mod sparse;
mod tensor;
mod warp;

pub(crate) use modifier::is_unmodified;

pub mod access;
pub mod atomic;
pub mod bulk;
pub mod gmma;
pub mod mbarrier;
pub mod special;
pub mod texture;

/// Operands of an instruction as read: source words in the order of [`Decoded::sources`], without modifiers applied.
#[derive(Clone, PartialEq, Debug)]
pub struct Operands {
    /// Source words.
    pub words: [Lanes; MAX_SOURCE_WORDS],
    /// Lanes in which each predicate source holds, after negation.
    pub preds: [LaneMask; 2],
    /// All seven predicates, only for P2R and R2P. R2P keeps those outside its mask.
    pub file: [LaneMask; 7],
}

impl Default for Operands {
    /// Returns zero words, true predicate sources, and an empty predicate file.
    fn default() -> Self {
        Operands {
            words: [Lanes::ZERO; MAX_SOURCE_WORDS],
            preds: [LaneMask::ALL; 2],
            file: [LaneMask::NONE; 7],
        }
    }
}

/// Results of an instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// Result words.
    pub words: [Lanes; MAX_RESULT_WORDS],
    /// Result predicates. R2P writes all seven.
    pub preds: [LaneMask; 7],
}

impl Default for Results {
    /// Returns zero words and false predicates.
    fn default() -> Self {
        Results {
            words: [Lanes::ZERO; MAX_RESULT_WORDS],
            preds: [LaneMask::NONE; 7],
        }
    }
}

/// Returns the lanes in which a predicate holds, after negation.
#[inline]
pub fn holds(guard: Guard, file: &[LaneMask; Pred::COUNT]) -> LaneMask {
    let lanes = if guard.pred.is_true() {
        LaneMask::ALL
    } else {
        file[guard.pred.0 as usize]
    };
    if guard.negated { !lanes } else { lanes }
}

/// Returns the active lanes in which the guard holds.
#[inline]
pub fn guard(inst: &Inst, file: &[LaneMask; Pred::COUNT], active: LaneMask) -> LaneMask {
    holds(inst.guard, file) & active
}

/// Returns the values of both predicate sources, for [`Operands::preds`].
#[inline]
pub fn predicate_sources(inst: &Inst, file: &[LaneMask; Pred::COUNT]) -> [LaneMask; 2] {
    [holds(inst.psrc[0], file), holds(inst.psrc[1], file)]
}

/// Input of one execution: the instruction, and its sources with modifiers applied.
struct ExecInput<'a> {
    inst: &'a Inst,
    words: &'a [Lanes],
    /// Index in `words` of the first word of each operand A, B, C, D.
    first_word: [u8; 4],
    operands: &'a Operands,
    /// Lanes that take part in votes and exchanges.
    active: LaneMask,
}

impl<'a> ExecInput<'a> {
    /// Returns word `n` of the operand in a slot.
    #[inline]
    fn word(&self, slot: usize, n: usize) -> &'a Lanes {
        &self.words[self.first_word[slot] as usize + n]
    }

    #[inline]
    fn a(&self) -> &'a Lanes {
        self.word(0, 0)
    }

    #[inline]
    fn b(&self) -> &'a Lanes {
        self.word(1, 0)
    }

    #[inline]
    fn c(&self) -> &'a Lanes {
        self.word(2, 0)
    }

    /// Returns the low and high word of an operand of two words.
    #[inline]
    fn pair(&self, slot: usize) -> [&'a Lanes; 2] {
        [self.word(slot, 0), self.word(slot, 1)]
    }
}

/// Computes the results of an arithmetic instruction. `active` are the lanes in which its guard holds.
///
/// Writes only the results that the opcode defines. Operand modifiers are applied here.
///
/// # Panics
///
/// If the opcode is a memory access or control instruction.
pub fn execute(inst: &Inst, decoded: &Decoded, active: LaneMask, operands: &Operands, results: &mut Results) {
    // Declared here, so that a modified copy outlives its branch.
    let (narrow, wide);
    // Most instructions have no modifier, and read the gathered words without a copy.
    let words = if decoded.unmodified {
        &operands.words[..]
    // At most three sources, each of one word: this copy has half the words of the wide one.
    } else if decoded.source_words as usize == inst.op.info().src.len() && decoded.source_words <= 3 {
        narrow = modifier::apply_narrow(inst, operands);
        &narrow[..]
    } else {
        wide = modifier::apply(inst, decoded, operands);
        &wide[..]
    };
    let input = &ExecInput {
        inst,
        words,
        first_word: decoded.first_word,
        operands,
        active,
    };
    match inst.op {
        Opcode::Mov | Opcode::S2r => results.words[0] = *input.a(),
        Opcode::Sel => moves::sel(input, results),
        Opcode::Prmt => moves::prmt(input, results),
        Opcode::P2r => moves::p2r(input, results),
        Opcode::R2p => moves::r2p(input, results),

        Opcode::Iadd3 => int::iadd3(input, results),
        Opcode::Lea => int::lea(input, results),
        Opcode::Lop3 => int::lop3(input, results),
        Opcode::Imnmx => int::imnmx(input, results),
        Opcode::Viaddmnmx => int::viaddmnmx(input, results),
        Opcode::Vimnmx3 => int::vimnmx3(input, results),
        Opcode::Iabs => int::iabs(input, results),
        Opcode::Popc => int::popc(input, results),
        Opcode::Flo => int::flo(input, results),
        Opcode::Brev => int::brev(input, results),
        Opcode::Plop3 => int::plop3(input, results),
        Opcode::Shf => shift::shf(input, results),
        Opcode::Bfe => shift::bfe(input, results),
        Opcode::Bfi => shift::bfi(input, results),
        Opcode::Imad => product::imad(input, results),
        Opcode::ImadWide => product::imad_wide(input, results),
        Opcode::Idp4a => product::idp4a(input, results),
        Opcode::Vabsdiff4 => product::vabsdiff4(input, results),
        Opcode::Isetp => compare::isetp(input, results),

        Opcode::Fadd => fp32::fadd(input, results),
        Opcode::Fmul => fp32::fmul(input, results),
        Opcode::Ffma => fp32::ffma(input, results),
        Opcode::Fmnmx => fp32::fmnmx(input, results),
        Opcode::Fsetp => compare::fsetp(input, results),
        Opcode::Mufu => mufu::mufu(input, results),
        Opcode::Fchk => compare::fchk(input, results),

        Opcode::Hadd2 | Opcode::Hmul2 | Opcode::Hfma2 => half::arithmetic(input, results),
        Opcode::Hmnmx2 => half::hmnmx2(input, results),
        Opcode::Hsetp2 => compare::hsetp2(input, results),

        Opcode::Dadd | Opcode::Dmul | Opcode::Dfma => fp64::arithmetic(input, results),
        Opcode::Dmnmx => fp64::dmnmx(input, results),
        Opcode::Dsetp => compare::dsetp(input, results),

        Opcode::I2i => convert::i2i(input, results),
        Opcode::I2f => convert::i2f(input, results),
        Opcode::F2i => convert::f2i(input, results),
        Opcode::F2f => convert::f2f(input, results),
        Opcode::F2fp => convert::f2fp(input, results),

        Opcode::Vote => warp::vote(input, results),
        Opcode::Match => warp::match_lanes(input, results),
        Opcode::Redux => warp::redux(input, results),
        Opcode::Shfl => warp::shfl(input, results),
        Opcode::Mma => tensor::mma(input, results),
        Opcode::MmaSp => sparse::mma(input, results),

        op => panic!(
            "{} is a memory or control instruction and has no arithmetic result",
            op.info().name
        ),
    }
}
