//! Assembly text of instructions, in the style of NVIDIA's disassembler. Written here, read in `text/read.rs`.
//!
//! ```text
//! guard opcode modifiers  register result, predicate results, sources, predicate sources
//! @!P0 IADD3.X R4, P1, R2, -R3, c[0][0x160], P2
//! ```
//!
//! - A source can have `-` (negated), `~` (inverted), `|x|` (absolute).
//! - An address is `[source+0x10]`, in constant memory `c[3][source+0x10]`.
//! - A branch ends with the index of its target. BSSY, BSYNC and BREAK end with their convergence barrier.
//! - Modifiers are suffixes, one word each, in a fixed order. A default is left out. But comparison, function, operation and
//!   shape are part of the name, and always written. `ty` precedes `from`, and is written whenever `from` is.
//!
//! Reading restores every field that the opcode uses. The source line is not part of the text.
//!
//! ```
//! use warpwave_isa::inst::Inst;
//! let text = "@!P0 ISETP.LT.AND.S32 P1, PT, R2, 0x10, PT, PT";
//! let inst: Inst = text.parse().unwrap();
//! assert_eq!(inst.to_string(), text);
//! ```

use std::fmt::{self, Display, Formatter};

use crate::inst::{
    AtomOp, CacheOp, Cmp, Inst, Join, Mods, Mufu, Operand, Round, Scope, ShflMode, Source, Ty, VoteMode,
};
use crate::opcode::{Opcode, Width};
use crate::program::Program;
use crate::reg::{Guard, Special};
use crate::shape::NAMES as SHAPES;
use crate::space::{Access, Space};

mod read;

pub use read::TextError;

/// Text of each value of a field.
type Names<T> = &'static [(T, &'static str)];

const TYPES: Names<Ty> = &[
    (Ty::U8, "U8"),
    (Ty::S8, "S8"),
    (Ty::U16, "U16"),
    (Ty::S16, "S16"),
    (Ty::U32, "U32"),
    (Ty::S32, "S32"),
    (Ty::U64, "U64"),
    (Ty::S64, "S64"),
    (Ty::F16, "F16"),
    (Ty::Bf16, "BF16"),
    (Ty::F32, "F32"),
    (Ty::F64, "F64"),
    (Ty::F16x2, "F16X2"),
    (Ty::Bf16x2, "BF16X2"),
    (Ty::E4m3x2, "E4M3X2"),
    (Ty::E5m2x2, "E5M2X2"),
    (Ty::U128, "U128"),
];

/// A float comparison that is also true for NaN ends in U.
const COMPARISONS: Names<(Cmp, bool)> = &[
    ((Cmp::Eq, false), "EQ"),
    ((Cmp::Ne, false), "NE"),
    ((Cmp::Lt, false), "LT"),
    ((Cmp::Le, false), "LE"),
    ((Cmp::Gt, false), "GT"),
    ((Cmp::Ge, false), "GE"),
    ((Cmp::Num, false), "NUM"),
    ((Cmp::Nan, false), "NAN"),
    ((Cmp::Eq, true), "EQU"),
    ((Cmp::Ne, true), "NEU"),
    ((Cmp::Lt, true), "LTU"),
    ((Cmp::Le, true), "LEU"),
    ((Cmp::Gt, true), "GTU"),
    ((Cmp::Ge, true), "GEU"),
    ((Cmp::Num, true), "NUMU"),
    ((Cmp::Nan, true), "NANU"),
];

const JOINS: Names<Join> = &[(Join::And, "AND"), (Join::Or, "OR"), (Join::Xor, "XOR")];

const ATOMICS: Names<AtomOp> = &[
    (AtomOp::Add, "ADD"),
    (AtomOp::Min, "MIN"),
    (AtomOp::Max, "MAX"),
    (AtomOp::Inc, "INC"),
    (AtomOp::Dec, "DEC"),
    (AtomOp::And, "AND"),
    (AtomOp::Or, "OR"),
    (AtomOp::Xor, "XOR"),
    (AtomOp::Exch, "EXCH"),
    (AtomOp::Cas, "CAS"),
    (AtomOp::Arrive, "ARRIVE"),
    (AtomOp::ArriveDrop, "ARRIVEDROP"),
];

const SHUFFLES: Names<ShflMode> = &[
    (ShflMode::Idx, "IDX"),
    (ShflMode::Up, "UP"),
    (ShflMode::Down, "DOWN"),
    (ShflMode::Bfly, "BFLY"),
];

const VOTES: Names<VoteMode> = &[
    (VoteMode::Ballot, "BALLOT"),
    (VoteMode::Any, "ANY"),
    (VoteMode::All, "ALL"),
    (VoteMode::Uni, "UNI"),
];

const FUNCTIONS: Names<Mufu> = &[
    (Mufu::Rcp, "RCP"),
    (Mufu::Rsq, "RSQ"),
    (Mufu::Sqrt, "SQRT"),
    (Mufu::Ex2, "EX2"),
    (Mufu::Lg2, "LG2"),
    (Mufu::Sin, "SIN"),
    (Mufu::Cos, "COS"),
    (Mufu::Tanh, "TANH"),
];

const SPACES: Names<Space> = &[
    (Space::Global, "GLOBAL"),
    (Space::Shared, "SHARED"),
    (Space::Cluster, "CLUSTER"),
    (Space::Local, "LOCAL"),
    (Space::Const, "CONST"),
    (Space::Generic, "GENERIC"),
];

const CACHE_OPS: Names<CacheOp> = &[
    (CacheOp::All, "CA"),
    (CacheOp::Global, "CG"),
    (CacheOp::Streaming, "CS"),
    (CacheOp::Volatile, "CV"),
    (CacheOp::ReadOnly, "NC"),
];

const SCOPES: Names<Scope> = &[(Scope::Cta, "CTA"), (Scope::Gpu, "GPU"), (Scope::Sys, "SYS")];

const ROUNDINGS: Names<Round> = &[
    (Round::Nearest, "RN"),
    (Round::Zero, "RZ"),
    (Round::Down, "RM"),
    (Round::Up, "RP"),
];

/// A boolean modifier: its suffix, and its field.
type Flag = (&'static str, fn(&mut Mods) -> &mut bool);

const FLAGS: &[Flag] = &[
    ("HI", |mods| &mut mods.high),
    ("R", |mods| &mut mods.right),
    ("W", |mods| &mut mods.wrap),
    ("X", |mods| &mut mods.extended),
    ("INT", |mods| &mut mods.integral),
    ("FTZ", |mods| &mut mods.ftz),
    ("SAT", |mods| &mut mods.sat),
    ("T", |mods| &mut mods.trans),
    ("NEG", |mods| &mut mods.neg),
];

/// Suffix of `unordered` outside of comparisons: a NaN wins.
const NAN_WINS: &str = "NANS";

const SPECIALS: Names<Special> = &[
    (Special::TidX, "SR_TID.X"),
    (Special::TidY, "SR_TID.Y"),
    (Special::TidZ, "SR_TID.Z"),
    (Special::CtaidX, "SR_CTAID.X"),
    (Special::CtaidY, "SR_CTAID.Y"),
    (Special::CtaidZ, "SR_CTAID.Z"),
    (Special::LaneId, "SR_LANEID"),
    (Special::WarpId, "SR_WARPID"),
    (Special::NWarpId, "SR_NWARPID"),
    (Special::SmId, "SR_SMID"),
    (Special::NSmId, "SR_NSMID"),
    (Special::GridId, "SR_GRIDID"),
    (Special::LanemaskEq, "SR_EQMASK"),
    (Special::LanemaskLe, "SR_LEMASK"),
    (Special::LanemaskLt, "SR_LTMASK"),
    (Special::LanemaskGe, "SR_GEMASK"),
    (Special::LanemaskGt, "SR_GTMASK"),
    (Special::ClockLo, "SR_CLOCKLO"),
    (Special::ClockHi, "SR_CLOCKHI"),
    (Special::GlobaltimerLo, "SR_GLOBALTIMERLO"),
    (Special::GlobaltimerHi, "SR_GLOBALTIMERHI"),
    (Special::ClusterCtarank, "SR_CLUSTERCTARANK"),
    (Special::ClusterNctarank, "SR_CLUSTERNCTARANK"),
    (Special::ClusteridX, "SR_CLUSTERID.X"),
    (Special::ClusteridY, "SR_CLUSTERID.Y"),
    (Special::ClusteridZ, "SR_CLUSTERID.Z"),
    (Special::NclusteridX, "SR_NCLUSTERID.X"),
    (Special::NclusteridY, "SR_NCLUSTERID.Y"),
    (Special::NclusteridZ, "SR_NCLUSTERID.Z"),
    (Special::ClusterCtaidX, "SR_CLUSTER_CTAID.X"),
    (Special::ClusterCtaidY, "SR_CLUSTER_CTAID.Y"),
    (Special::ClusterCtaidZ, "SR_CLUSTER_CTAID.Z"),
    (Special::ClusterNctaidX, "SR_CLUSTER_NCTAID.X"),
    (Special::ClusterNctaidY, "SR_CLUSTER_NCTAID.Y"),
    (Special::ClusterNctaidZ, "SR_CLUSTER_NCTAID.Z"),
    (Special::DynamicSharedSize, "SR_DYNAMICSHAREDSIZE"),
    (Special::TotalSharedSize, "SR_TOTALSHAREDSIZE"),
    (Special::BarrierCount, "SR_BARRIERCOUNT"),
];

/// Properties of the opcode that the text depends on.
impl Opcode {
    fn has_result(self) -> bool {
        self.info().dst != Width::Words(0)
    }

    fn is_comparison(self) -> bool {
        matches!(self, Opcode::Isetp | Opcode::Fsetp | Opcode::Dsetp | Opcode::Hsetp2)
    }

    fn is_atomic(self) -> bool {
        matches!(self, Opcode::Atom | Opcode::Red | Opcode::Redux | Opcode::Ublkred)
    }

    /// Returns the source slot that is written as an address.
    fn address_slot(self) -> Option<usize> {
        match self {
            Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red => Some(0),
            Opcode::Ldc | Opcode::Ldsm | Opcode::Syncs | Opcode::Cctl => Some(0),
            Opcode::Ldgsts => Some(1),
            _ => None,
        }
    }

    fn has_barrier(self) -> bool {
        matches!(self, Opcode::Bssy | Opcode::Bsync | Opcode::Break)
    }
}

fn name_of<T: PartialEq>(names: Names<T>, value: T) -> &'static str {
    names
        .iter()
        .find(|(known, _)| *known == value)
        .map_or("", |(_, name)| name)
}

/// Writes a suffix if the value is not the default, or if `show` is true.
fn suffix<T: PartialEq + Default>(f: &mut Formatter, names: Names<T>, value: T, show: bool) -> fmt::Result {
    if show || value != T::default() {
        write!(f, ".{}", name_of(names, value))?;
    }
    Ok(())
}

fn modifiers(f: &mut Formatter, inst: &Inst) -> fmt::Result {
    let (op, mut mods) = (inst.op, inst.mods);
    if op.is_atomic() {
        suffix(f, ATOMICS, mods.atom, true)?;
    }
    suffix(f, SHUFFLES, mods.shfl, op == Opcode::Shfl)?;
    suffix(f, VOTES, mods.vote, matches!(op, Opcode::Vote | Opcode::Match))?;
    suffix(f, FUNCTIONS, mods.mufu, op == Opcode::Mufu)?;
    suffix(f, SHAPES, mods.mma, matches!(op, Opcode::Mma | Opcode::MmaSp))?;
    if op.is_comparison() {
        suffix(f, COMPARISONS, (mods.cmp, mods.unordered), true)?;
        suffix(f, JOINS, mods.join, true)?;
    // Comparisons have it in their name (EQU).
    } else if mods.unordered {
        write!(f, ".{NAN_WINS}")?;
    }
    // The reader takes the first type as `ty`. So `ty` is written even as the default if `from` follows.
    suffix(f, TYPES, mods.ty, mods.from != Ty::default())?;
    suffix(f, TYPES, mods.from, false)?;
    suffix(f, SPACES, mods.space, false)?;
    access(f, mods.access)?;
    suffix(f, CACHE_OPS, mods.cache, false)?;
    suffix(f, SCOPES, mods.scope, op == Opcode::Membar)?;
    suffix(f, ROUNDINGS, mods.round, false)?;
    for (name, field) in FLAGS {
        if *field(&mut mods) {
            write!(f, ".{name}")?;
        }
    }
    if mods.count != 0 {
        write!(f, ".N{}", mods.count)?;
    }
    if mods.lut != 0 {
        write!(f, ".{:#04x}", mods.lut)?;
    }
    Ok(())
}

/// Writes `.B32` or `.B32X4`. `.SB8` extends the sign.
fn access(f: &mut Formatter, access: Access) -> fmt::Result {
    if access == Access::default() {
        return Ok(());
    }
    let sign = if access.signed { "S" } else { "" };
    write!(f, ".{sign}B{}", 8 * u32::from(access.bytes))?;
    if access.count != 1 {
        write!(f, "X{}", access.count)?;
    }
    Ok(())
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mark = |shown: bool, mark: &'static str| if shown { mark } else { "" };
        write!(
            f,
            "{}{}{}",
            mark(self.neg, "-"),
            mark(self.not, "~"),
            mark(self.abs, "|")
        )?;
        match self.source {
            Source::Reg(reg) => write!(f, "{reg}")?,
            Source::Imm(bits) => write!(f, "{bits:#x}")?,
            Source::Const { bank, offset } => write!(f, "c[{bank}][{offset:#x}]")?,
            Source::Special(special) => f.write_str(name_of(SPECIALS, special))?,
        }
        f.write_str(mark(self.abs, "|"))
    }
}

/// Writes the operand in a slot, as an address if the opcode has one there.
fn source(f: &mut Formatter, inst: &Inst, slot: usize) -> fmt::Result {
    let operand = inst.src[slot];
    if inst.op.address_slot() != Some(slot) {
        return write!(f, "{operand}");
    }
    if inst.op == Opcode::Ldc {
        write!(f, "c[{}]", inst.mods.bank)?;
    }
    let sign = if inst.mods.offset < 0 { '-' } else { '+' };
    match inst.mods.offset.unsigned_abs() {
        0 => write!(f, "[{operand}]"),
        magnitude => write!(f, "[{operand}{sign}{magnitude:#x}]"),
    }
}

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let info = self.op.info();
        if self.guard != Guard::ALWAYS {
            write!(f, "@{} ", self.guard)?;
        }
        f.write_str(info.name)?;
        modifiers(f, self)?;
        let mut between = Separator(" ");
        if self.op.has_result() {
            write!(f, "{}{}", between.next(), self.dst)?;
        }
        for pred in &self.pdst[..info.pdst as usize] {
            write!(f, "{}{pred}", between.next())?;
        }
        for slot in 0..info.src.len() {
            f.write_str(between.next())?;
            source(f, self, slot)?;
        }
        for guard in &self.psrc[..info.psrc as usize] {
            write!(f, "{}{guard}", between.next())?;
        }
        if self.op == Opcode::Bra {
            write!(f, "{}{}", between.next(), self.target)?;
        }
        if self.op.has_barrier() {
            write!(f, "{}{}", between.next(), self.conv)?;
        }
        Ok(())
    }
}

/// Separator before an operand: first a blank, then commas.
struct Separator(&'static str);

impl Separator {
    fn next(&mut self) -> &'static str {
        std::mem::replace(&mut self.0, ", ")
    }
}

impl Display for Program {
    /// Writes one instruction per line, after its index.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, inst) in self.code().iter().enumerate() {
            writeln!(f, "{index:4}: {inst}")?;
        }
        Ok(())
    }
}
