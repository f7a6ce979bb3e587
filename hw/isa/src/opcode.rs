//! The instruction table: one line per operation, with its name, pipe, and operand widths.
//!
//! A line is an operation, not a PTX mnemonic. A front end selects operations from the table.
//!
//! ```text
//! Imad "IMAD" Fp32 (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
//! opcode name pipe (register result, predicate results) <- ([sources A, B, C, D], predicate sources)
//! ```
//!
//! [`OpcodeInfo`] is a line in Rust. Other modules derive register uses, text and pipes from it. [`crate::exec`] computes results,
//! and the presets of the machine give cycles.
//!
//! # How to add an instruction
//!
//! 1. Add a line here, with a doc that gives the result as a formula.
//! 2. Add a field to [`Mods`] if the instruction has a modifier that no other has. Add its suffix in `text.rs`, and its values in
//!    `tests/generate/mod.rs`.
//! 3. Arithmetic: add the function under `exec/` and a match arm in [`crate::exec::execute`]. A float source needs its kind in
//!    `exec/modifier.rs`.
//! 4. Arithmetic: add vectors in `tests/vectors/generate.py`, from exact fractions. A test fails until they exist.
//! 5. Memory access: add the address slot in `text.rs`, then the access in `testbench/src/reference` (without timing) and in
//!    `components/src/sm/lsu` (with timing).
//! 6. Control: add it in `components/src/sm/subcore/scheduler/control.rs` and `testbench/src/reference/step.rs`.
//! 7. Latency or interval other than the pipe's: add it in `components/src/sm/timing.rs`.
//! 8. PTX: select the opcode in `hw/ptx/src/lower/select`, and list the form in `hw/ptx/src/capability.rs`.
//! 9. Add a kernel with its expected memory in `testbench/tests/families`.

use crate::inst::Mods;
use crate::space::Space;

/// The pipe that an instruction is dispatched to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pipe {
    /// Integer and logic (ALU).
    Int,
    /// FP32 arithmetic, and integer multiply-add. Profilers call this pipe FMA.
    Fp32,
    /// Packed half precision.
    Half,
    /// FP64.
    Fp64,
    /// Special functions and conversions. Profilers call this pipe XU.
    Sfu,
    /// Matrix products.
    Tensor,
    /// Memory and shuffles, through the sub-core's queue to the LSU.
    Lsu,
    /// Branches, convergence, barriers and exit, in the branch unit.
    Control,
}

/// Number of 32-bit words of a result or source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Width {
    /// A fixed number of words.
    Words(u8),
    /// Width of `mods.ty`.
    Ty,
    /// Width of `mods.from`.
    From,
    /// Width of `mods.access`.
    Access,
    /// An address in `mods.space`: two words for global and generic, otherwise one.
    Address,
    /// Matrix operand A of `mods.mma`.
    MmaA,
    /// Matrix operand B of `mods.mma`.
    MmaB,
    /// Matrix operand B of a sparse product: twice as deep as `mods.mma`, the shape of the stored A.
    SparseB,
    /// Matrix accumulator of `mods.mma`, of type `mods.ty`.
    MmaC,
    /// One word per matrix (`mods.count`).
    Count,
    /// Operand A of a warp-group product: a fragment of four words, or with `mods.high` a descriptor of two.
    GmmaA,
    /// Texture or surface coordinates (`mods.count`), then a layer with `mods.high`. Two to four words.
    TexCoord,
    /// Extent of a bulk copy, see [`crate::exec::bulk::Extent`].
    Extent,
}

impl Width {
    /// Returns the width in words for an instruction with these modifiers.
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
            Width::SparseB => 2 * mods.mma.words().1,
            Width::MmaC => mods.mma.accumulator_words(mods.ty),
            Width::Count => mods.count,
            Width::TexCoord => (mods.count.saturating_add(mods.high.into())).clamp(2, 4),
            Width::Extent => mods
                .count
                .max(1)
                .saturating_add(2 * u8::from(mods.trans) + u8::from(mods.wrap)),
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

/// One line of the instruction table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpcodeInfo {
    /// Name as printed.
    pub name: &'static str,
    /// Pipe that runs it.
    pub pipe: Pipe,
    /// Width of the register result. `Words(0)` means none.
    pub dst: Width,
    /// Number of predicate results.
    pub pdst: u8,
    /// Widths of the sources A, B, C, D, as many as there are.
    pub src: &'static [Width],
    /// Number of predicate sources besides the guard.
    pub psrc: u8,
}

macro_rules! opcodes {
    ($($(#[$doc:meta])+ $op:ident $name:literal $pipe:ident ($dst:expr, $pdst:literal) <- ($src:expr, $psrc:literal);)+) => {
        /// An operation of the instruction table.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Opcode {
            $($(#[$doc])+ $op,)+
        }

        impl Opcode {
            /// Every opcode, in table order.
            pub const ALL: &[Opcode] = &[$(Opcode::$op,)+];

            /// Returns the opcode's line of the table.
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
    /// d = bytes of (b:a) chosen by the selector c. `lut` is the mode: 0 generic, then f4e, b4e, rc8, ecl, ecr, rc16.
    Prmt "PRMT" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = the predicates P0 to P6 as bits 0 to 6.
    P2r "P2R" Int (Words(1), 0) <- ([], 0);
    /// P0 to P6 = bits 0 to 6 of a, where mask b has a bit. The other predicates keep their value.
    R2p "R2P" Int (Words(0), 0) <- ([Words(1), Words(1)], 0);

    // ---- integer and logic
    /// d = a + b + c, plus the carry psrc0 if `extended`. pdst0 = carry out: the sum is at least 2^32.
    /// A negated addend counts as its inversion plus one. So the carry of a - b means a >= b.
    /// The upper word of a 64-bit a - b adds ~b and that carry.
    Iadd3 "IADD3" Int (Words(1), 1) <- ([Words(1), Words(1), Words(1)], 1);
    /// d = (a << lut) + b, plus the carry psrc0 if `extended`. With `high`, a << lut is the upper word of (c:a) << lut.
    /// pdst0 = carry out, as for IADD3. The modifiers of a apply after the shift.
    Lea "LEA" Int (Words(1), 1) <- ([Words(1), Words(1), Words(1)], 1);
    /// d = truth table `lut` of a, b, c, bit by bit. The index is 4*a + 2*b + c, so a is 0xf0, b 0xcc, c 0xaa.
    Lop3 "LOP3" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = low word of (c:a) shifted left by b, or right with `right`. With `high`, d = the upper word.
    /// The count clamps at 32, or at 64 for U64 and S64. With `wrap` it wraps instead. Signed types shift in the sign of c.
    Shf "SHF" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = minimum of a and b where psrc0 holds, elsewhere the maximum.
    Imnmx "IMNMX" Int (Words(1), 0) <- ([Words(1), Words(1)], 1);
    /// d = minimum of a + b and c where psrc0 holds, elsewhere the maximum. The sum wraps.
    Viaddmnmx "VIADDMNMX" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 1);
    /// d = minimum of a, b and c where psrc0 holds, elsewhere the maximum.
    Vimnmx3 "VIMNMX3" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 1);
    /// pdst0 = (a cmp b) join psrc0; pdst1 = !(a cmp b) join psrc0.
    /// `extended`: a and b are upper words of a 64-bit comparison, and psrc1 is the result for the low words.
    Isetp "ISETP" Int (Words(0), 2) <- ([Words(1), Words(1)], 2);
    /// d = |a|.
    Iabs "IABS" Int (Words(1), 0) <- ([Words(1)], 0);
    /// d = a narrowed to `from` and extended to `ty`. `sat` clamps instead.
    I2i "I2I" Int (Ty, 0) <- ([From], 0);
    /// d = bit field of a at position b with length c, extended by `ty` (PTX bfe).
    Bfe "BFE" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = b with the low bits of a inserted at position c with length d (PTX bfi).
    Bfi "BFI" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1), Words(1)], 0);
    /// pdst0 = truth table `lut` of psrc0, psrc1 (index 2*p + q); pdst1 = its complement.
    Plop3 "PLOP3" Int (Words(0), 2) <- ([], 2);
    /// d = active lanes in which psrc0 holds, in every mode. pdst0 = any lane, all lanes, or all or none (uni). Ballot: as any.
    Vote "VOTE" Int (Words(1), 1) <- ([], 1);
    /// d = lanes with the same a (width `ty`) as this lane. Mode all: every active lane if all are equal, and pdst0 says so.
    Match "MATCH" Sfu (Words(1), 1) <- ([Ty], 0);
    /// d = reduction `atom` of a over the active lanes. In f32 minimum and maximum a NaN loses, or wins with `unordered`.
    Redux "REDUX" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// d = low word of a*b + c. With `high`, d = high word of a*b, plus c (PTX mad.hi), clamped by `sat` if signed.
    /// `ty` gives the sign.
    Imad "IMAD" Fp32 (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// (d+1:d) = 64-bit a*b + (c+1:c). `ty` gives the sign of a and b.
    ImadWide "IMAD.WIDE" Fp32 (Words(2), 0) <- ([Words(1), Words(1), Words(2)], 0);
    /// d = c + dot product of the four bytes of a and b. `from` gives the sign of a, `ty` the sign of b.
    Idp4a "IDP.4A" Fp32 (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = absolute differences of the four bytes of a and b. With `count` 1, d = c + their sum. Signs as in IDP.4A.
    Vabsdiff4 "VABSDIFF4" Int (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = number of bits set in a.
    Popc "POPC" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// d = position of the leading bit of a, by `ty`, or all ones without one. `sat`: 31 minus the position, a shift count.
    Flo "FLO" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// d = bits of a in reverse order.
    Brev "BREV" Sfu (Words(1), 0) <- ([Words(1)], 0);

    // ---- FP32
    /// d = a + b.
    Fadd "FADD" Fp32 (Words(1), 0) <- ([Words(1), Words(1)], 0);
    /// d = a * b.
    Fmul "FMUL" Fp32 (Words(1), 0) <- ([Words(1), Words(1)], 0);
    /// d = a * b + c, rounded once.
    Ffma "FFMA" Fp32 (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = minimum of a and b where psrc0 holds, elsewhere the maximum. A NaN loses, or wins with `unordered`.
    Fmnmx "FMNMX" Int (Words(1), 0) <- ([Words(1), Words(1)], 1);
    /// pdst0 = (a cmp b) join psrc0; pdst1 = !(a cmp b) join psrc0.
    Fsetp "FSETP" Int (Words(0), 2) <- ([Words(1), Words(1)], 1);
    /// d = approximate function `mufu` of a. `ty`: F32, halves (F16, F16x2, Bf16, Bf16x2), or the upper word of an f64 (F64).
    Mufu "MUFU" Sfu (Words(1), 0) <- ([Words(1)], 0);
    /// pdst0 = the quotient a / b needs the slow path, because an exponent is near the end of its range.
    /// The exponents of a, of b and of the quotient count.
    Fchk "FCHK" Sfu (Words(0), 1) <- ([Words(1), Words(1)], 0);

    // ---- half precision, two at a time or one (`ty` F16x2, F16, Bf16x2, Bf16)
    /// d = a + b.
    Hadd2 "HADD2" Half (Words(1), 0) <- ([Words(1), Words(1)], 0);
    /// d = a * b.
    Hmul2 "HMUL2" Half (Words(1), 0) <- ([Words(1), Words(1)], 0);
    /// d = a * b + c, rounded once.
    Hfma2 "HFMA2" Half (Words(1), 0) <- ([Words(1), Words(1), Words(1)], 0);
    /// d = minimum of a and b where psrc0 holds, elsewhere the maximum. A NaN loses, or wins with `unordered`.
    Hmnmx2 "HMNMX2" Half (Words(1), 0) <- ([Words(1), Words(1)], 1);
    /// pdst0 = (a cmp b of the low halves) join psrc0; pdst1 = (a cmp b of the high halves) join psrc0.
    Hsetp2 "HSETP2" Half (Words(0), 2) <- ([Words(1), Words(1)], 1);

    // ---- FP64
    /// d = a + b.
    Dadd "DADD" Fp64 (Words(2), 0) <- ([Words(2), Words(2)], 0);
    /// d = a * b.
    Dmul "DMUL" Fp64 (Words(2), 0) <- ([Words(2), Words(2)], 0);
    /// d = a * b + c, rounded once.
    Dfma "DFMA" Fp64 (Words(2), 0) <- ([Words(2), Words(2), Words(2)], 0);
    /// d = minimum of a and b where psrc0 holds, elsewhere the maximum. A NaN loses.
    Dmnmx "DMNMX" Fp64 (Words(2), 0) <- ([Words(2), Words(2)], 1);
    /// pdst0 = (a cmp b) join psrc0; pdst1 = !(a cmp b) join psrc0.
    Dsetp "DSETP" Fp64 (Words(0), 2) <- ([Words(2), Words(2)], 1);

    // ---- conversions
    /// d = float `ty` of integer a (`from`).
    I2f "I2F" Sfu (Ty, 0) <- ([From], 0);
    /// d = integer `ty` of float a (`from`), saturated. NaN gives 0, or the top bit alone for F64 sources or 64-bit results (PTX cvt).
    F2i "F2I" Sfu (Ty, 0) <- ([From], 0);
    /// d = float `ty` of float a (`from`). `integral` rounds to an integral value.
    F2f "F2F" Sfu (Ty, 0) <- ([From], 0);
    /// d = packed `ty` (F16x2, Bf16x2, E4m3x2 or E5m2x2) of f32 a (upper half) and f32 b (lower half).
    F2fp "F2FP" Int (Words(1), 0) <- ([Words(1), Words(1)], 0);

    // ---- tensor
    /// D = A * B + C of shape `mma`. With `ty` F16, C and D are packed halves. `sat` clamps integers, and floats to finite numbers.
    Mma "MMA" Tensor (MmaC, 0) <- ([MmaA, MmaB, MmaC], 0);

    /// D = A * B + C: one warp's rows of eight columns of a warp-group product. Without psrc0, D = A * B.
    /// The columns start at 8 * `count`, the rows at 16 * (warp in the group). B is in shared memory, by descriptor b.
    /// `trans`: B is stored by rows. A is a fragment, or with `high` in shared memory by descriptor a; `right`: stored by columns.
    /// `neg` negates A, whose elements are floats. See [`crate::exec::gmma`].
    Hgmma "HGMMA" Tensor (MmaC, 0) <- ([GmmaA, Words(2), MmaC], 1);

    /// Like MMA, with a sparse A: `mma` is the shape of its stored half, and B is twice as deep. d is the metadata, `lut` its selector.
    /// See [`MmaShape::sparsity`](crate::shape::MmaShape::sparsity).
    MmaSp "MMA.SP" Tensor (MmaC, 0) <- ([MmaA, SparseB, MmaC, Words(1)], 0);

    /// Like HGMMA, with a sparse A as in MMA.SP.
    HgmmaSp "HGMMA.SP" Tensor (MmaC, 0) <- ([GmmaA, Words(2), MmaC, Words(1)], 1);

    // ---- memory and exchange
    /// d = value at address a + offset.
    Ld "LD" Lsu (Access, 0) <- ([Address], 0);
    /// Stores value b at address a + offset.
    St "ST" Lsu (Words(0), 0) <- ([Address, Access], 0);
    /// d = old value at a + offset, replaced by `atom`(old, b). CAS compares with b and stores c.
    Atom "ATOM" Lsu (Access, 0) <- ([Address, Access, Access], 0);
    /// Like ATOM, without a result.
    Red "RED" Lsu (Words(0), 0) <- ([Address, Access], 0);
    /// Prefetches the line of a + offset into the L1, or into the L2 only with [`CacheOp::Global`](crate::inst::CacheOp::Global).
    /// A lane with an address outside of memory prefetches nothing.
    Cctl "CCTL.PF" Lsu (Words(0), 0) <- ([Address], 0);
    /// Waits until the warp's earlier accesses are performed as seen from `scope`. At scope Gpu and Sys it also waits for
    /// accesses of other warps of the SM that are in flight.
    Membar "MEMBAR" Lsu (Words(0), 0) <- ([], 0);
    /// Invalidates the L1 once the warp's earlier loads and atomics have returned.
    CctlIvall "CCTL.IVALL" Lsu (Words(0), 0) <- ([], 0);
    /// d = value in constant bank `bank` at a + offset.
    Ldc "LDC" Lsu (Access, 0) <- ([Words(1)], 0);
    /// d = `count` 8x8 matrices of 16-bit elements from shared memory. The rows are at the lanes' addresses a + offset.
    Ldsm "LDSM" Lsu (Count, 0) <- ([Words(1)], 0);
    /// Copies `access` bytes from global b + offset to shared a, bypassing registers. Bytes past the size c are zero.
    Ldgsts "LDGSTS" Lsu (Words(0), 0) <- ([Words(1), Words(2), Words(1)], 0);
    /// Starts one bulk copy per lane between shared memory a and global memory b. The size is c bytes.
    /// With `count` coordinates c it copies a tile; the tensor map is at b. A copy to shared memory arrives at mbarrier d when done.
    /// A copy to global memory (`high`) belongs to a bulk group. `trans`: im2col offsets follow the coordinates. `wrap`: a mask of CTAs
    /// that receive the bytes follows. See [`crate::exec::bulk`].
    Ublkcp "UBLKCP" Lsu (Words(0), 0) <- ([Words(1), Words(2), Extent, Words(1)], 0);
    /// Like UBLKCP of a tile to global memory: `atom`(element in global memory, element in shared memory) replaces each element there.
    Ublkred "UBLKRED" Lsu (Words(0), 0) <- ([Words(1), Words(2), Extent, Words(1)], 0);
    /// Closes the group of asynchronous copies (LDGSTS) started so far.
    Ldgdepbar "LDGDEPBAR" Lsu (Words(0), 0) <- ([], 0);
    /// pdst0 = the phase with parity b of the mbarrier at a + offset is over. `count` 1: may wait a while for the end.
    Syncs "SYNCS.PHASECHK" Lsu (Words(0), 1) <- ([Address, Words(1)], 0);
    /// d = four channels of the texture with handle a at coordinates b, as `ty`. All lanes use one handle. With `trans`, b is a direction
    /// from the centre of a cube. See [`Texture::of_handle`](crate::exec::texture::Texture::of_handle).
    /// `from`: type of the coordinates, F32 or S32 (texels). `count`: dimensions. `high`: a layer follows them.
    /// `lut`: sample, gather or query ([`crate::exec::texture::FetchMode`]).
    Tex "TEX" Lsu (Words(4), 0) <- ([Words(2), TexCoord], 0);
    /// d = value on the surface with handle a at coordinates b: x in bytes, y in rows, z in slices. `count` and `high` as in TEX.
    /// `lut`: beyond the edge it traps (0), clamps (1) or reads zero (2).
    Suld "SULD" Lsu (Access, 0) <- ([Words(2), TexCoord], 0);
    /// Stores value c to the surface with handle a at coordinates b, as in SULD.
    Sust "SUST" Lsu (Words(0), 0) <- ([Words(2), TexCoord, Access], 0);
    /// d = a of the lane that `shfl`, b and the clamp c select; pdst0 = that lane is in range.
    Shfl "SHFL" Lsu (Words(1), 1) <- ([Words(1), Words(1), Words(1)], 0);

    // ---- control
    /// Does nothing.
    Nop "NOP" Control (Words(0), 0) <- ([], 0);
    /// Lanes in which the guard holds jump to `target`.
    Bra "BRA" Control (Words(0), 0) <- ([], 0);
    /// Lanes in which the guard holds jump to the instruction with index a.
    Brx "BRX" Control (Words(0), 0) <- ([Words(1)], 0);
    /// Sets the active lanes as the members of convergence barrier `conv`.
    Bssy "BSSY" Control (Words(0), 0) <- ([], 0);
    /// Waits for the members of `conv`.
    Bsync "BSYNC" Control (Words(0), 0) <- ([], 0);
    /// Removes the lanes in which the guard holds from `conv`.
    Break "BREAK" Control (Words(0), 0) <- ([], 0);
    /// Waits until the live lanes of mask a have arrived.
    Warpsync "WARPSYNC" Control (Words(0), 0) <- ([Words(1)], 0);
    /// Ends the lanes in which the guard holds.
    Exit "EXIT" Control (Words(0), 0) <- ([], 0);
    /// Waits at block barrier a for b threads, or for the whole block if b is 0. `count` 1: arrives without waiting.
    Bar "BAR" Control (Words(0), 0) <- ([Words(1), Words(1)], 0);
    /// Like BAR. Afterwards SR_BARRIERCOUNT is the number of threads in which psrc0 held.
    BarRed "BAR.RED" Control (Words(0), 0) <- ([Words(1), Words(1)], 1);
    /// The active lanes arrive at the cluster barrier and continue.
    ClusterArrive "UCGABAR_ARV" Control (Words(0), 0) <- ([], 0);
    /// Waits until every live lane of the cluster has arrived at the cluster barrier.
    ClusterWait "UCGABAR_WAIT" Control (Words(0), 0) <- ([], 0);
    /// Waits until at most `count` groups of asynchronous copies are pending.
    Depbar "DEPBAR" Control (Words(0), 0) <- ([], 0);
    /// Waits for earlier accesses of all warps of the SM, so that later warp-group products and bulk copies see them.
    FenceView "FENCE.VIEW.ASYNC" Lsu (Words(0), 0) <- ([], 0);
    /// Closes the group of warp-group products started so far.
    GmmaCommit "WARPGROUP.COMMIT" Control (Words(0), 0) <- ([], 0);
    /// Waits until at most `count` groups of warp-group products are pending.
    GmmaWait "WARPGROUP.DEPBAR" Control (Words(0), 0) <- ([], 0);
    /// Closes the group of bulk copies to global memory started so far.
    BulkCommit "UTMACMDFLUSH" Control (Words(0), 0) <- ([], 0);
    /// Waits until at most `count` groups of bulk copies are pending.
    BulkWait "DEPBAR.BULK" Control (Words(0), 0) <- ([], 0);
    /// Sleeps for about a nanoseconds.
    Nanosleep "NANOSLEEP" Control (Words(0), 0) <- ([Words(1)], 0);
    /// Traps: the launch fails.
    Trap "BPT.TRAP" Control (Words(0), 0) <- ([], 0);
}
