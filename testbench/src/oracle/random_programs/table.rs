//! The table of instructions that only compute: mnemonics and operands.
//!
//! An operand is a letter. `r` is a 32-bit register, `h` 16 bits, `l` 64 bits, `f` f32, `d` f64, `p` a predicate. A capital letter,
//! used after the first source, is a register or an immediate of that type. `#` is a byte, written as a number.

/// Letter, name and number of the registers of each type.
// Few of each type, so that most instructions depend on recent ones.
pub(super) const REGISTERS: [(char, &str, u8); 6] = [
    ('r', "b32", 10),
    ('h', "b16", 3),
    ('l', "b64", 4),
    ('f', "f32", 5),
    ('d', "f64", 3),
    ('p', "pred", 4),
];

/// The number of registers of the type with this letter.
pub(super) fn n_registers(letter: char) -> u8 {
    REGISTERS.iter().find(|row| row.0 == letter).map_or(1, |row| row.2)
}

/// The name of a register.
pub(super) fn register(letter: char, n: u8) -> String {
    format!("%{letter}{}", n % n_registers(letter))
}

/// Mnemonics and operands: the result, `=`, the sources.
pub(super) const COMPUTING: &[(&str, &str)] = &[
    // 32-bit integers and predicates.
    ("mov.b32", "r=R"),
    ("add.s32", "r=rR"),
    ("sub.s32", "r=rR"),
    ("mul.lo.s32", "r=rR"),
    ("mul.hi.s32", "r=rR"),
    ("mul.hi.u32", "r=rR"),
    ("mad.lo.s32", "r=rRr"),
    ("mad.hi.u32", "r=rRr"),
    ("sad.s32", "r=rRr"),
    ("div.s32", "r=rR"),
    ("div.u32", "r=rr"),
    ("rem.s32", "r=rr"),
    ("rem.u32", "r=rR"),
    ("abs.s32", "r=r"),
    ("neg.s32", "r=r"),
    ("min.s32", "r=rR"),
    ("max.s32", "r=rR"),
    ("min.u32", "r=rR"),
    ("max.u32", "r=rR"),
    ("and.b32", "r=rR"),
    ("or.b32", "r=rR"),
    ("xor.b32", "r=rR"),
    ("not.b32", "r=r"),
    ("cnot.b32", "r=r"),
    ("lop3.b32", "r=rrr#"),
    ("shl.b32", "r=rR"),
    ("shr.u32", "r=rR"),
    ("shr.s32", "r=rR"),
    ("shf.l.wrap.b32", "r=rrR"),
    ("shf.r.clamp.b32", "r=rrR"),
    ("bfe.u32", "r=rRR"),
    ("bfe.s32", "r=rRR"),
    ("bfi.b32", "r=rrRR"),
    ("prmt.b32", "r=rrR"),
    ("popc.b32", "r=r"),
    ("clz.b32", "r=r"),
    ("brev.b32", "r=r"),
    ("bfind.u32", "r=r"),
    ("bfind.s32", "r=r"),
    ("dp4a.u32.s32", "r=rrr"),
    ("selp.b32", "r=rRp"),
    ("setp.eq.s32", "p=rR"),
    ("setp.lt.s32", "p=rR"),
    ("setp.hi.u32", "p=rR"),
    ("and.pred", "p=pp"),
    ("or.pred", "p=pp"),
    ("xor.pred", "p=pp"),
    ("not.pred", "p=p"),
    // 64-bit integers.
    ("add.s64", "l=lL"),
    ("sub.s64", "l=lL"),
    ("mul.lo.s64", "l=lL"),
    ("mul.hi.u64", "l=ll"),
    ("mul.wide.s32", "l=rR"),
    ("mul.wide.u32", "l=rr"),
    ("mad.wide.s32", "l=rrl"),
    ("mad.lo.s64", "l=lLl"),
    ("and.b64", "l=lL"),
    ("xor.b64", "l=lL"),
    ("not.b64", "l=l"),
    ("shl.b64", "l=lR"),
    ("shr.u64", "l=lR"),
    ("shr.s64", "l=lr"),
    ("min.s64", "l=ll"),
    ("max.u64", "l=ll"),
    ("neg.s64", "l=l"),
    ("div.u64", "l=lL"),
    ("rem.s64", "l=ll"),
    ("popc.b64", "r=l"),
    ("clz.b64", "r=l"),
    ("selp.b64", "l=llp"),
    ("setp.lt.s64", "p=lL"),
    ("setp.ge.u64", "p=ll"),
    ("cvt.u64.u32", "l=r"),
    ("cvt.s64.s32", "l=r"),
    ("cvt.u32.u64", "r=l"),
    ("cvt.u16.u32", "h=r"),
    ("cvt.s32.s16", "r=h"),
    ("cvt.u32.u16", "r=h"),
    // 16-bit integers.
    ("add.s16", "h=hH"),
    ("mul.lo.u16", "h=hH"),
    ("mul.wide.s16", "r=hh"),
    ("max.s16", "h=hh"),
    ("shr.s16", "h=hR"),
    ("xor.b16", "h=hH"),
    ("setp.ne.s16", "p=hH"),
    // FP32, with each rounding and the approximations of the SFU.
    ("add.f32", "f=fF"),
    ("add.rz.f32", "f=fF"),
    ("add.ftz.sat.f32", "f=fF"),
    ("sub.f32", "f=fF"),
    ("mul.f32", "f=fF"),
    ("mul.rm.f32", "f=ff"),
    ("fma.rn.f32", "f=fFf"),
    ("fma.rp.ftz.f32", "f=fff"),
    ("div.rn.f32", "f=ff"),
    ("rcp.rn.f32", "f=f"),
    ("sqrt.rn.f32", "f=f"),
    ("ex2.approx.f32", "f=f"),
    ("rsqrt.approx.f32", "f=f"),
    ("min.f32", "f=fF"),
    ("max.NaN.f32", "f=ff"),
    ("abs.f32", "f=f"),
    ("neg.f32", "f=f"),
    ("copysign.f32", "f=ff"),
    ("selp.f32", "f=fFp"),
    ("setp.lt.f32", "p=fF"),
    ("setp.geu.f32", "p=ff"),
    // Conversions from and to FP32.
    ("cvt.rn.f32.s32", "f=r"),
    ("cvt.rz.f32.u64", "f=l"),
    ("cvt.rzi.s32.f32", "r=f"),
    ("cvt.rni.u64.f32", "l=f"),
    ("cvt.rpi.f32.f32", "f=f"),
    ("cvt.rn.f16.f32", "h=f"),
    ("cvt.f32.f16", "f=h"),
    ("mov.b32", "r=f"),
    ("mov.b32", "f=r"),
    // Half precision: one value, then two packed ones.
    ("add.f16", "h=hh"),
    ("fma.rn.f16", "h=hhh"),
    ("add.f16x2", "r=rr"),
    ("fma.rn.f16x2", "r=rrr"),
    ("max.f16x2", "r=rr"),
    ("fma.rn.bf16x2", "r=rrr"),
    // FP64.
    ("add.f64", "d=dD"),
    ("mul.f64", "d=dD"),
    ("fma.rn.f64", "d=ddd"),
    ("div.rn.f64", "d=dd"),
    ("sqrt.rn.f64", "d=d"),
    ("min.f64", "d=dd"),
    ("setp.gt.f64", "p=dD"),
    ("cvt.f64.f32", "d=f"),
    ("cvt.rn.f32.f64", "f=d"),
    ("cvt.rn.f64.s32", "d=r"),
    ("cvt.rzi.s64.f64", "l=d"),
    ("mov.b64", "l=d"),
    ("mov.b64", "d=l"),
];

/// Instructions of a full warp, in the same form. The lane mask is appended.
pub(super) const COLLECTIVE: &[(&str, &str)] = &[
    // After `%`, the last operand of a shuffle: the clamp, and from bit 8 on the mask of the segment.
    ("shfl.sync.bfly.b32", "r=rR%31"),
    ("shfl.sync.down.b32", "r=rR%31"),
    ("shfl.sync.up.b32", "r=rR%0"),
    // Segments of 8 lanes.
    ("shfl.sync.idx.b32", "r=rR%0x181f"),
    ("vote.sync.any.pred", "p=p"),
    ("vote.sync.all.pred", "p=p"),
    ("vote.sync.uni.pred", "p=p"),
    ("vote.sync.ballot.b32", "r=p"),
    ("match.any.sync.b32", "r=r"),
    ("redux.sync.add.u32", "r=r"),
    ("redux.sync.max.s32", "r=r"),
    ("redux.sync.xor.b32", "r=r"),
];

/// Commutative 32-bit operations of `atom` and `red`.
pub(super) const COMMUTING: &[&str] = &[
    // Without `inc`, `dec`, `exch` and `cas`: their result depends on the order.
    "add.u32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32",
];
