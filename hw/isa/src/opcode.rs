//! THE table of instructions. Everything else grows from it: definitions and uses, printing, execution, pipes.
//!
//! A row is an operation, not a mnemonic: a front end selects rows, and a spelling of another language is its own business.
//! A row says which pipe runs it, how wide its result and sources are, and what kind of latency its result has.
//! Meaning is in [`crate::exec`], cycles are in the machine's presets.

use crate::inst::Mods;
use crate::space::Space;

/// The pipe that an instruction is dispatched to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pipe {
    /// Integer and logic (ALU).
    Int,
    /// FP32 arithmetic, and integer multiply-add (the profiler's FMA).
    Fp32,
    /// Packed half precision.
    Half,
    /// FP64.
    Fp64,
    /// Special functions and conversions (XU).
    Sfu,
    /// Matrix products.
    Tensor,
    /// Memory and shuffles, through the memory queue of the sub-core.
    Lsu,
    /// Branches, convergence, barriers, exit: resolved at the branch unit.
    Control,
}

/// Number of 32-bit words of a result or source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Width {
    /// This many.
    Words(u8),
    /// As `mods.ty` says.
    Ty,
    /// As `mods.from` says.
    From,
    /// As `mods.access` says.
    Access,
    /// An address in `mods.space`: two words for global and generic, else one.
    Address,
    /// Matrix operand A of `mods.mma`.
    MmaA,
    /// Matrix operand B of `mods.mma`.
    MmaB,
    /// Matrix accumulator of `mods.mma`.
    MmaC,
    /// One word a matrix (`mods.count`).
    Count,
    /// Operand A of a warp group's product: a fragment of four words, or a descriptor of two where it is in shared memory (`mods.high`).
    GmmaA,
    /// Coordinates of a texture's or surface's place (`mods.count`), and perhaps a layer (`mods.high`); two words at least.
    TexCoord,
    /// What a bulk copy says of its extent: a size in bytes, or as many coordinates as a tile has (`mods.count`).
    Extent,
}

impl Width {
    /// The width in words for an instruction with these modifiers.
    pub fn of(self, mods: &Mods) -> u8 {
        match self {
            Width::Words(n) => n,
            Width::Ty => mods.ty.words(),
            Width::From => mods.from.words(),
            Width::Access => mods.access.words(),
            Width::Address => match mods.space {
                Space::Global | Space::Generic => 2,
                Space::Shared | Space::Cluster | Space::Local | Space::Const => 1,
            },
            Width::MmaA => mods.mma.words().0,
            Width::MmaB => mods.mma.words().1,
            Width::MmaC => mods.mma.words().2,
            Width::Count => mods.count,
            Width::TexCoord => (mods.count.saturating_add(mods.high.into())).clamp(2, 3),
            Width::Extent => mods.count.max(1),
            Width::GmmaA => {
                if mods.high {
                    2
                } else {
                    4
                }
            }
        }
    }
}

/// What a row is, apart from its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpcodeInfo {
    /// Name as printed.
    pub name: &'static str,
    /// Pipe that runs it.
    pub pipe: Pipe,
    /// Width of the register result; `Words(0)` for none.
    pub dst: Width,
    /// Result predicates.
    pub pdst: u8,
    /// Widths of the sources A, B, C, D; as many as the row has.
    pub src: &'static [Width],
    /// Predicate sources besides the guard.
    pub psrc: u8,
}

macro_rules! opcodes {
    ($($(#[$doc:meta])+ $op:ident $name:literal $pipe:ident ($dst:expr, $pdst:literal) <- ($src:expr, $psrc:literal);)+) => {
        /// A row of the table.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Opcode {
            $($(#[$doc])+ $op,)+
        }

        impl Opcode {
            /// Every row, in table order.
            pub const ALL: &[Opcode] = &[$(Opcode::$op,)+];

            /// The row's columns.
            pub const fn info(self) -> &'static OpcodeInfo {
                use Width::*;
                match self {
                    $(Opcode::$op => &OpcodeInfo { name: $name, pipe: Pipe::$pipe, dst: $dst, pdst: $pdst, src: &$src, psrc: $psrc },)+
                }
            }
        }
    };
}

opcodes! {
    // ---- moves and selection
    /// d = a.
    Mov "MOV" Int (Words(1), 0) <- ([Words(1)], 0);
    /// d = psrc0 ? a : b.
    Sel "SEL" Int (Words(1), 0) <- ([Words(1), Words(1)], 1);
    /// d = special register; a is `Source::Special`.
    S2r "S2R" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// d = bytes of (b:a) chosen by the selector c; `lut` holds the mode: 0 generic, then f4e, b4e, rc8, ecl, ecr, rc16 from 1 to 6.
    Prmt "PRMT" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = the predicates P0 to P6 as bits 0 to 6.
    P2r "P2R" Int (Words(1), 0) <- ([], 0);
    /// P0 to P6 = bits 0 to 6 of a, where mask b has a bit; the others keep their value (of the predicate file).
    R2p "R2P" Int (Words(0), 0) <- ([Words(1), Words(1)], 0);

    // ---- integer and logic
    /// d = a + b + c (+ carry psrc0 if `extended`); pdst0 = whether the sum is 2^32 or more, a negated addend counting as its inversion
    /// plus one. So a + b carries as usual, and the carry of a - b says a >= b; a 64-bit a - b goes on with ~b and that carry.
    Iadd3 "IADD3" Int (Words(1), 1) <- ([Words(1), Words(1), Words(1)], 1);
    /// d = (a << lut) + b; with `high`, the upper word of (c:a) << lut, plus b (+ carry psrc0 if `extended`); pdst0 = carry out as of IADD3, modifiers of a applied after the shift.
    Lea "LEA" Int (Words(1), 1) <- ([Words(1), Words(1), Words(1)], 1);
    /// d = truth table `lut` of a, b, c, bit by bit (index 4*a + 2*b + c, so that a is 0xf0, b 0xcc, c 0xaa).
    Lop3 "LOP3" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// Funnel shift of (c:a) by b, to the left or `right`: its low word, or its upper one (`high`). The count clamps at 32, or 64 for U64
    /// and S64, or wraps there (`wrap`); signed types shift in c's sign.
    Shf "SHF" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = least or greatest of a, b: least where psrc0 holds.
    Imnmx "IMNMX" Int (Words(1), 0) <- ([Words(1), Words(1)], 1);
    /// pdst0 = (a cmp b) join psrc0; pdst1 = its complement joined likewise. `extended`: the upper words of a 64-bit comparison whose low step gave psrc1.
    Isetp "ISETP" Int (Words(0), 2) <- ([Words(1), Words(1)], 2);
    /// d = |a|.
    Iabs "IABS" Int (Words(1), 0) <- ([Words(1)], 0);
    /// d = a narrowed to `from` and extended to `ty`; `sat` clamps instead.
    I2i "I2I" Int (Ty, 0) <- ([From], 0);
    /// d = field of a at bit b, length c, extended as `ty` says (PTX bfe).
    Bfe "BFE" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = b with the low bits of a inserted at bit c, length d (PTX bfi).
    Bfi "BFI" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1), Words(1)], 0);
    /// pdst0 = truth table `lut` of psrc0, psrc1 (index 2*p + q); pdst1 its complement.
    Plop3 "PLOP3" Int (Words(0), 2) <- ([], 2);
    /// d = the active lanes in which psrc0 holds, in every mode; pdst0 = whether it holds in any, all, or all or none of them (ballot: as any).
    Vote "VOTE" Int (Words(1), 1) <- ([], 1);
    /// d = lanes whose a (width `ty`) equals this lane's (any), or all lanes if equal everywhere (all, pdst0).
    Match "MATCH" Sfu (Words(1), 1) <- ([Ty], 0);
    /// d = reduction `atom` of a over the active lanes; least and greatest of f32 too, where a NaN loses (`unordered`: wins).
    Redux "REDUX" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// d = low word of a*b+c, or the high word of a*b, plus c (`high`, as PTX mad.hi; `sat` clamps if signed); `ty` gives the sign.
    Imad "IMAD" Fp32 (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// (d+1:d) = 64-bit a*b + (c+1:c); `ty` gives the sign of a and b.
    ImadWide "IMAD.WIDE" Fp32 (Words(2), 0) <- ([Words(1), Words(1), Words(2)], 0);
    /// d = c + dot product of the four bytes of a and b; whether a is signed is `from`, whether b is, `ty`.
    Idp4a "IDP.4A" Fp32 (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = the differences without sign of the four bytes of a and b; `count` 1: their sum and c. Signs as of IDP.4A.
    Vabsdiff4 "VABSDIFF4" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// Bits set in a.
    Popc "POPC" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// Position of the leading bit of a, as `ty` says; all ones if none. `sat`: as a shift amount (31 minus it).
    Flo "FLO" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// Bits of a in reverse.
    Brev "BREV" Sfu (Words(1), 0) <- ([Words(1)], 0);

    // ---- FP32
    /// d = a + b.
    Fadd "FADD" Fp32 (Words(1), 0) <- ([Words(1), Words(1)], 0);
    /// d = a * b.
    Fmul "FMUL" Fp32 (Words(1), 0) <- ([Words(1), Words(1)], 0);
    /// d = a * b + c, rounded once.
    Ffma "FFMA" Fp32 (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = lesser or greater of a, b (lesser where psrc0 holds); a NaN loses (`unordered`: wins).
    Fmnmx "FMNMX" Int (Words(1), 0) <- ([Words(1), Words(1)], 1);
    /// pdst0 = (a cmp b) join psrc0; pdst1 = complement joined likewise.
    Fsetp "FSETP" Int (Words(0), 2) <- ([Words(1), Words(1)], 1);
    /// d = approximate function `mufu` of a, in f32, halves (`ty` F16, F16x2, Bf16, Bf16x2) or on the upper word of an f64 (F64).
    Mufu "MUFU" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// pdst0 = a / b may be out of reach of a reciprocal and its corrections: an exponent of either, or of the quotient, is too near
    /// its range's ends.
    Fchk "FCHK" Sfu (Words(0), 1) <- ([Words(1), Words(1)], 0);

    // ---- half precision, two at a time or one (`ty` F16x2, F16, Bf16x2, Bf16)
    /// d = a + b.
    Hadd2 "HADD2" Half (Words(1), 0) <- ([Words(1), Words(1)], 0);
    /// d = a * b.
    Hmul2 "HMUL2" Half (Words(1), 0) <- ([Words(1), Words(1)], 0);
    /// d = a * b + c, rounded once.
    Hfma2 "HFMA2" Half (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = lesser or greater (lesser where psrc0 holds); a NaN loses (`unordered`: wins).
    Hmnmx2 "HMNMX2" Half (Words(1), 0) <- ([Words(1), Words(1)], 1);
    /// pdst0 = (low halves compare) join psrc0; pdst1 = (high halves compare) join psrc0.
    Hsetp2 "HSETP2" Half (Words(0), 2) <- ([Words(1), Words(1)], 1);

    // ---- FP64
    /// d = a + b.
    Dadd "DADD" Fp64 (Words(2), 0) <- ([Words(2), Words(2)], 0);
    /// d = a * b.
    Dmul "DMUL" Fp64 (Words(2), 0) <- ([Words(2), Words(2)], 0);
    /// d = a * b + c, rounded once.
    Dfma "DFMA" Fp64 (Words(2), 0) <- ([Words(2), Words(2), Words(2)], 0);
    /// d = lesser or greater (lesser where psrc0 holds); a NaN loses.
    Dmnmx "DMNMX" Fp64 (Words(2), 0) <- ([Words(2), Words(2)], 1);
    /// pdst0 = (a cmp b) join psrc0; pdst1 = complement joined likewise.
    Dsetp "DSETP" Fp64 (Words(0), 2) <- ([Words(2), Words(2)], 1);

    // ---- conversions
    /// Integer `from` to float `ty`.
    I2f "I2F" Sfu (Ty, 0) <- ([From], 0);
    /// Float `from` to integer `ty`, saturating; NaN gives 0, from F64 or to 64 bits the top bit alone (PTX cvt).
    F2i "F2I" Sfu (Ty, 0) <- ([From], 0);
    /// Float `from` to float `ty`; `integral` rounds to an integral value.
    F2f "F2F" Sfu (Ty, 0) <- ([From], 0);
    /// d = packed `ty` (F16x2, Bf16x2, E4m3x2 or E5m2x2) of a (upper half) and b (lower half), both f32.
    F2fp "F2FP" Int (Words(1), 0) <- ([Words(1), Words(1)], 0);

    // ---- tensor
    /// D = A * B + C for the shape `mma`; sources A, B, C; `sat` clamps integers.
    Mma "MMA" Tensor (MmaC, 0) <- ([MmaA, MmaB, MmaC], 0);

    /// One warp's part of eight columns of a warp group's product, D = A * B + C: columns 8 * `count` and on, rows 16 * (warp of the
    /// group) and on. B lies in shared memory as descriptor b says, by columns or (`trans`) by rows; A is a fragment, or (`high`) lies
    /// in shared memory likewise, by rows or (`right`) by columns. Without psrc0 the product alone. See [`crate::exec::gmma`].
    Hgmma "HGMMA" Tensor (Words(4), 0) <- ([GmmaA, Words(2), Words(4)], 1);

    // ---- memory and exchange
    /// d = value at address a + offset.
    Ld "LD" Lsu (Access, 0) <- ([Address], 0);
    /// Value b to address a + offset.
    St "ST" Lsu (Words(0), 0) <- ([Address, Access], 0);
    /// d = old value at a + offset, replaced by `atom`(old, b); CAS compares with b and stores c.
    Atom "ATOM" Lsu (Access, 0) <- ([Address, Access, Access], 0);
    /// As ATOM, without a result.
    Red "RED" Lsu (Words(0), 0) <- ([Address, Access], 0);
    /// Brings the line of a + offset into the L1, or with `cache` [`CacheOp::Global`](crate::inst::CacheOp::Global) into the L2 alone.
    /// A lane whose address is in no memory asks for nothing.
    Cctl "CCTL.PF" Lsu (Words(0), 0) <- ([Address], 0);
    /// Waits until the warp's earlier accesses have been performed as far as `scope` sees. At scope Gpu and Sys it also waits for the
    /// accesses that other warps of the SM have begun.
    Membar "MEMBAR" Lsu (Words(0), 0) <- ([], 0);
    /// Invalidates the L1, once the warp's earlier loads and atomics have returned.
    CctlIvall "CCTL.IVALL" Lsu (Words(0), 0) <- ([], 0);
    /// d = value in constant bank `bank` at a + offset.
    Ldc "LDC" Lsu (Access, 0) <- ([Words(1)], 0);
    /// d = `count` 8x8 matrices of 16-bit elements from shared memory, rows at the lanes' addresses a + offset.
    Ldsm "LDSM" Lsu (Count, 0) <- ([Words(1)], 0);
    /// Copies `access` bytes from global b + offset to shared a, without a register; bytes past the size c are zero.
    Ldgsts "LDGSTS" Lsu (Words(0), 0) <- ([Words(1), Words(2), Words(1)], 0);
    /// Each lane begins a copy between shared memory a and global memory b: c bytes, or (`count` coordinates c) a tile of the tensor whose
    /// map is at b. Towards shared memory it arrives at the mbarrier d when it is done; towards global memory (`high`) it belongs to a
    /// group. See [`crate::exec::bulk`].
    Ublkcp "UBLKCP" Lsu (Words(0), 0) <- ([Words(1), Words(2), Extent, Words(1)], 0);
    /// Closes the group of copies begun so far.
    Ldgdepbar "LDGDEPBAR" Lsu (Words(0), 0) <- ([], 0);
    /// pdst0 = whether the phase of parity b of the mbarrier at a + offset is over; `count` 1: the answer may wait a while for the end.
    Syncs "SYNCS.PHASECHK" Lsu (Words(0), 1) <- ([Address, Words(1)], 0);
    /// d = the four channels of the image of handle a at coordinates b, of type `from` (F32, or S32: texels), in `count` dimensions, and
    /// in a layer behind them (`high`), as `ty` has them. `lut`: a mix, a channel of the four texels around, or what the image is
    /// ([`crate::exec::texture::FetchMode`]). All lanes have one handle.
    Tex "TEX" Lsu (Words(4), 0) <- ([Words(2), TexCoord], 0);
    /// d = what lies on the surface of handle a at b: x in bytes, y in rows, z in slices; `count` and `high` as of TEX; `lut` 0, 1, 2:
    /// beyond its edge it traps, clamps, reads zero.
    Suld "SULD" Lsu (Access, 0) <- ([Words(2), TexCoord], 0);
    /// Value c to the surface of handle a at b, as SULD.
    Sust "SUST" Lsu (Words(0), 0) <- ([Words(2), TexCoord, Access], 0);
    /// d = a of the lane that `shfl`, b and the clamp c name; pdst0 = whether that lane was in range.
    Shfl "SHFL" Lsu (Words(1), 1) <- ([Words(1), Words(1), Words(1)], 0);

    // ---- control
    /// Nothing.
    Nop "NOP" Control (Words(0), 0) <- ([], 0);
    /// Lanes in which the guard holds go to `target`.
    Bra "BRA" Control (Words(0), 0) <- ([], 0);
    /// Lanes in which the guard holds go to the instruction whose index is in a.
    Brx "BRX" Control (Words(0), 0) <- ([Words(1)], 0);
    /// The active lanes will meet at the BSYNC of `conv`.
    Bssy "BSSY" Control (Words(0), 0) <- ([], 0);
    /// Waits for the lanes of `conv`.
    Bsync "BSYNC" Control (Words(0), 0) <- ([], 0);
    /// The lanes in which the guard holds leave `conv`.
    Break "BREAK" Control (Words(0), 0) <- ([], 0);
    /// Waits until the live lanes of mask a are here.
    Warpsync "WARPSYNC" Control (Words(0), 0) <- ([Words(1)], 0);
    /// Lanes in which the guard holds are done.
    Exit "EXIT" Control (Words(0), 0) <- ([], 0);
    /// Block barrier a; with b threads unless b is 0. `count` 1: arrives without waiting.
    Bar "BAR" Control (Words(0), 0) <- ([Words(1), Words(1)], 0);
    /// As BAR with waiting; SR_BARRIERCOUNT is then the number of threads in which psrc0 held.
    BarRed "BAR.RED" Control (Words(0), 0) <- ([Words(1), Words(1)], 1);
    /// The running lanes arrive at the barrier of their cluster, and go on.
    ClusterArrive "UCGABAR_ARV" Control (Words(0), 0) <- ([], 0);
    /// Waits until every lane of the cluster that has not ended has arrived at its barrier.
    ClusterWait "UCGABAR_WAIT" Control (Words(0), 0) <- ([], 0);
    /// Waits until at most `count` groups of copies are pending.
    Depbar "DEPBAR" Control (Words(0), 0) <- ([], 0);
    /// What the warp has written to shared memory is seen by products and bulk copies that come later.
    FenceView "FENCE.VIEW.ASYNC" Control (Words(0), 0) <- ([], 0);
    /// Closes the group of the warp group's products begun so far.
    GmmaCommit "WARPGROUP.COMMIT" Control (Words(0), 0) <- ([], 0);
    /// Waits until at most `count` groups of products are pending.
    GmmaWait "WARPGROUP.DEPBAR" Control (Words(0), 0) <- ([], 0);
    /// Closes the group of bulk copies towards global memory begun so far.
    BulkCommit "UTMACMDFLUSH" Control (Words(0), 0) <- ([], 0);
    /// Waits until at most `count` groups of bulk copies are pending.
    BulkWait "DEPBAR.BULK" Control (Words(0), 0) <- ([], 0);
    /// Sleeps for about a nanoseconds.
    Nanosleep "NANOSLEEP" Control (Words(0), 0) <- ([Words(1)], 0);
    /// The program gives up.
    Trap "BPT.TRAP" Control (Words(0), 0) <- ([], 0);
}
