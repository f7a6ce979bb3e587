//! Generator of random instructions of any opcode, with only the fields set that the opcode uses.

use proptest::prelude::*;
use proptest::sample::select;
use warpwave_isa::inst::*;
use warpwave_isa::opcode::{Opcode, Width};
use warpwave_isa::reg::{ConvBarrier, Guard, Pred, Reg, Special};
use warpwave_isa::space::{Access, Space};

fn reg() -> impl Strategy<Value = Reg> {
    any::<u8>().prop_map(Reg)
}

fn pred() -> impl Strategy<Value = Pred> {
    (0..8u8).prop_map(Pred)
}

fn guard() -> impl Strategy<Value = Guard> {
    (pred(), any::<bool>()).prop_map(|(pred, negated)| Guard { pred, negated })
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        reg().prop_map(Source::Reg),
        any::<u64>().prop_map(Source::Imm),
        (any::<u8>(), any::<u16>()).prop_map(|(bank, offset)| Source::Const { bank, offset }),
        select(vec![
            Special::TidX,
            Special::LanemaskLt,
            Special::ClockHi,
            Special::TotalSharedSize,
            Special::BarrierCount
        ])
        .prop_map(Source::Special),
    ]
}

fn operand() -> impl Strategy<Value = Operand> {
    (source(), any::<[bool; 3]>()).prop_map(|(source, [neg, abs, not])| Operand { source, neg, abs, not })
}

fn ty() -> impl Strategy<Value = Ty> {
    use Ty::*;
    select(vec![
        U8, S8, U16, S16, U32, S32, U64, S64, F16, Bf16, F32, F64, F16x2, Bf16x2, E4m3x2, E5m2x2,
    ])
}

fn choices() -> impl Strategy<Value = Mods> {
    use {AtomOp as A, Cmp as C, MmaShape as M, Mufu as F};
    let words = (
        select(vec![C::Eq, C::Ne, C::Lt, C::Le, C::Gt, C::Ge, C::Num, C::Nan]),
        select(vec![Join::And, Join::Or, Join::Xor]),
        select(vec![Round::Nearest, Round::Zero, Round::Down, Round::Up]),
        select(vec![F::Rcp, F::Rsq, F::Sqrt, F::Ex2, F::Lg2, F::Sin, F::Cos, F::Tanh]),
        select(vec![
            A::Add,
            A::Min,
            A::Max,
            A::Inc,
            A::Dec,
            A::And,
            A::Or,
            A::Xor,
            A::Exch,
            A::Cas,
            A::Arrive,
            A::ArriveDrop,
        ]),
        select(vec![ShflMode::Idx, ShflMode::Up, ShflMode::Down, ShflMode::Bfly]),
        select(vec![VoteMode::Ballot, VoteMode::Any, VoteMode::All, VoteMode::Uni]),
        select(vec![
            Space::Global,
            Space::Shared,
            Space::Local,
            Space::Const,
            Space::Generic,
        ]),
        select(vec![
            CacheOp::All,
            CacheOp::Global,
            CacheOp::Streaming,
            CacheOp::Volatile,
            CacheOp::ReadOnly,
        ]),
        select(vec![Scope::Cta, Scope::Gpu, Scope::Sys]),
        select(M::ALL.to_vec()),
    );
    words.prop_map(
        |(cmp, join, round, mufu, atom, shfl, vote, space, cache, scope, mma)| Mods {
            cmp,
            join,
            round,
            mufu,
            atom,
            shfl,
            vote,
            space,
            cache,
            scope,
            mma,
            ..Mods::default()
        },
    )
}

fn mods() -> impl Strategy<Value = Mods> {
    let access = prop_oneof![
        Just(Access::default()),
        (select(vec![1, 2, 4, 8, 16]), select(vec![1, 2, 4]), any::<bool>())
            .prop_map(|(bytes, count, signed)| Access { bytes, count, signed }),
    ];
    let numbers = (any::<u8>(), any::<u8>(), any::<u8>(), any::<i32>());
    (choices(), ty(), ty(), access, any::<[bool; 10]>(), numbers).prop_map(
        |(choices, ty, from, access, flags, numbers)| {
            let [unordered, extended, integral, ftz, sat, high, right, wrap, trans, neg] = flags;
            let (lut, bank, count, offset) = numbers;
            Mods {
                ty,
                from,
                access,
                unordered,
                extended,
                integral,
                ftz,
                sat,
                high,
                right,
                wrap,
                trans,
                neg,
                lut,
                bank,
                count,
                offset,
                ..choices
            }
        },
    )
}

/// Generates an instruction.
pub fn inst() -> impl Strategy<Value = Inst> {
    let operands = (
        reg(),
        [pred(), pred()],
        [operand(), operand(), operand(), operand()],
        [guard(), guard()],
    );
    let rest = (guard(), mods(), any::<u32>(), (0..16u8).prop_map(ConvBarrier));
    (select(Opcode::ALL), operands, rest).prop_map(|(op, (dst, pdst, src, psrc), (guard, mods, target, conv))| {
        let info = op.info();
        let mut inst = Inst {
            guard,
            mods,
            ..Inst::new(op)
        };
        if info.dst != Width::Words(0) {
            inst.dst = dst;
        }
        inst.pdst[..info.pdst as usize].copy_from_slice(&pdst[..info.pdst as usize]);
        inst.src[..info.src.len()].copy_from_slice(&src[..info.src.len()]);
        inst.psrc[..info.psrc as usize].copy_from_slice(&psrc[..info.psrc as usize]);
        use Opcode::*;
        match op {
            Bra => inst.target = target,
            Bssy | Bsync | Break => inst.conv = conv,
            _ => {}
        }
        if !matches!(op, Ld | St | Atom | Red | Ldc | Ldsm | Ldgsts | Syncs | Cctl) {
            inst.mods.offset = 0;
        }
        if op != Ldc {
            inst.mods.bank = 0;
        }
        if !matches!(op, Atom | Red | Redux) {
            inst.mods.atom = AtomOp::default();
        }
        if !matches!(op, Isetp | Fsetp | Dsetp | Hsetp2) {
            inst.mods.cmp = Cmp::default();
            inst.mods.join = Join::default();
        }
        // An operand of several registers ends by the last register.
        let fitting = |first: Reg, words: u8| match first {
            Reg::ZERO => first,
            Reg(first) => Reg(first.min((Reg::COUNT as u8).saturating_sub(words))),
        };
        inst.dst = fitting(inst.dst, info.dst.of(&inst.mods));
        for (operand, width) in inst.src.iter_mut().zip(info.src) {
            if let Source::Reg(first) = &mut operand.source {
                *first = fitting(*first, width.of(&inst.mods));
            }
        }
        inst
    })
}
