//! Instructions as text: what is written is read back unchanged, and what is not an instruction is refused with its reason.

use proptest::prelude::*;
use proptest::sample::select;
use warpwave_isa::inst::*;
use warpwave_isa::opcode::{Opcode, Width};
use warpwave_isa::program::{Needs, Program};
use warpwave_isa::reg::{Conv, Guard, Pred, Reg, Special};
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
            Special::TotalSharedSize
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
        U8, S8, U16, S16, U32, S32, U64, S64, F16, Bf16, F32, F64, F16x2, Bf16x2,
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
        select(vec![
            M::M16n8k16F16,
            M::M16n8k8F16,
            M::M16n8k16Bf16,
            M::M16n8k8Tf32,
            M::M16n8k4Tf32,
            M::M16n8k32S8,
            M::M8n8k4F64,
        ]),
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
    (choices(), ty(), ty(), access, any::<[bool; 9]>(), numbers).prop_map(
        |(choices, ty, from, access, flags, numbers)| {
            let [unordered, extended, integral, ftz, sat, high, right, wrap, trans] = flags;
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
                lut,
                bank,
                count,
                offset,
                ..choices
            }
        },
    )
}

/// Any instruction of any row, with nothing set that the row does not use.
fn inst() -> impl Strategy<Value = Inst> {
    let operands = (
        reg(),
        [pred(), pred()],
        [operand(), operand(), operand(), operand()],
        [guard(), guard()],
    );
    let rest = (guard(), mods(), any::<u32>(), (0..16u8).prop_map(Conv));
    (select(Opcode::ALL), operands, rest).prop_map(|(op, (dst, pdst, src, psrc), (guard, mods, target, conv))| {
        let row = op.row();
        let mut inst = Inst {
            guard,
            mods,
            ..Inst::new(op)
        };
        if row.dst != Width::Words(0) {
            inst.dst = dst;
        }
        inst.pdst[..row.pdst as usize].copy_from_slice(&pdst[..row.pdst as usize]);
        inst.src[..row.src.len()].copy_from_slice(&src[..row.src.len()]);
        inst.psrc[..row.psrc as usize].copy_from_slice(&psrc[..row.psrc as usize]);
        use Opcode::*;
        match op {
            Bra => inst.target = target,
            Bssy | Bsync | Break => inst.conv = conv,
            _ => {}
        }
        if !matches!(op, Ld | St | Atom | Red | Ldc | Ldsm | Ldgsts) {
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
        inst
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn any_instruction_written_and_read_is_the_same(inst in inst()) {
        let text = inst.to_string();
        prop_assert_eq!(text.parse::<Inst>(), Ok(inst), "{}", text);
    }
}

/// Reads a text and writes it again.
fn rewritten(text: &str) -> String {
    text.parse::<Inst>()
        .map_or_else(|error| error.to_string(), |inst| inst.to_string())
}

#[test]
fn usual_instructions_read_and_written_keep_their_look() {
    for text in [
        "@!P0 IADD3 R4, P1, R2, -R3, c[0][0x160], PT",
        "IADD3.X R5, PT, R3, ~R7, RZ, P1",
        "IMAD.WIDE.S32 R2, R0, 0x4, c[0][0x168]",
        "LOP3.0xc0 R0, R1, R2, RZ",
        "SHF.S32.HI.R R3, RZ, 0x1f, R0",
        "ISETP.GE.AND.S32 P0, PT, R0, c[0][0x170], PT, PT",
        "FSETP.GTU.OR P2, P3, |R1|, -RZ, !P4",
        "FFMA.FTZ R0, R1, -R2, R3",
        "MUFU.EX2 R1, R1",
        "I2F.F32.S32 R2, R2",
        "LD.B32X4.NC R4, [R2+0x10]",
        "ST.SHARED.SB8 [R9-0x4], R1",
        "ATOM.CAS.GENERIC.B64 R4, [R2], R6, R8",
        "LDC.B32 R1, c[3][R0+0x20]",
        "SHFL.BFLY R1, PT, R0, 0x10, 0x1f",
        "S2R R0, SR_TID.X",
        "MMA.16816F16.F32 R4, R8, R12, R4",
        "@P6 BRA 12",
        "BSSY B3",
        "BAR 0x0, 0x0",
        "DEPBAR.N1",
        "EXIT",
        "BPT.TRAP",
    ] {
        assert_eq!(rewritten(text), text);
    }
}

#[test]
fn wrong_text_read_says_what_is_wrong() {
    for (text, complaint) in [
        ("FROB R1", "no instruction is called `FROB`: see the table of opcodes"),
        (
            "IMADX R1, R2, R3, R4",
            "no instruction is called `IMADX`: see the table of opcodes",
        ),
        ("MOV.FAST R1, R2", "`.FAST` is no modifier"),
        ("MOV R1", "a source is missing at the end"),
        ("MOV R255, R1", "`R255` stands where a register belongs"),
        ("MOV P0, R1", "`P0` stands where a register belongs"),
        ("LD.B32 R1, R2", "`R2` stands where an address belongs"),
        ("@P9 EXIT", "`P9` stands where a predicate belongs"),
        ("BSYNC B16", "`B16` stands where a convergence barrier belongs"),
        ("MOV R1, R2, R3", "`R3` is more than the instruction takes"),
        ("", "no instruction is called ``: see the table of opcodes"),
    ] {
        assert_eq!(rewritten(text), complaint, "{text}");
    }
}

#[test]
fn a_program_listed_has_its_indices() {
    let code = ["S2R R0, SR_TID.X", "EXIT"].map(|text| text.parse().unwrap());
    let program = Program::new("k", code.to_vec(), Needs::default());
    assert_eq!(program.to_string(), "   0: S2R R0, SR_TID.X\n   1: EXIT\n");
}
