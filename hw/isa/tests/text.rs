//! Assembly text: written instructions read back unchanged, and wrong text is refused with a reason.

mod generate;

use proptest::prelude::*;
use warpwave_isa::inst::Inst;
use warpwave_isa::program::{Program, Requirements};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn any_instruction_written_and_read_is_unchanged(inst in generate::inst()) {
        let text = inst.to_string();
        prop_assert_eq!(text.parse::<Inst>(), Ok(inst), "{}", text);
    }
}

/// Reads a text, then writes it, or the error.
fn rewritten(text: &str) -> String {
    text.parse::<Inst>()
        .map_or_else(|error| error.to_string(), |inst| inst.to_string())
}

#[test]
fn usual_instructions_read_and_written_are_unchanged() {
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
        "MMA.1688F16.F16 R4, R8, R12, R4",
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
fn wrong_text_is_refused_with_its_reason() {
    for (text, complaint) in [
        ("FROB R1", "unknown instruction `FROB`: see the instruction table"),
        (
            "IMADX R1, R2, R3, R4",
            "unknown instruction `IMADX`: see the instruction table",
        ),
        ("MOV.FAST R1, R2", "unknown modifier `.FAST`"),
        ("MOV R1", "expected a source at the end"),
        ("MOV R255, R1", "expected a register, found `R255`"),
        // The fourth register of the group is RZ, and the next register would have the number 256.
        ("LD.B32X4 R252, [R2]", "expected registers up to R254, found `R252`"),
        ("LD.B32X4 R253, [R2]", "expected registers up to R254, found `R253`"),
        ("ST.B64 [R2], R254", "expected registers up to R254, found `R254`"),
        ("LD.B32 R0, [R254]", "expected registers up to R254, found `R254`"),
        ("MOV P0, R1", "expected a register, found `P0`"),
        ("LD.B32 R1, R2", "expected an address, found `R2`"),
        ("@P9 EXIT", "expected a predicate, found `P9`"),
        ("BSYNC B16", "expected a convergence barrier, found `B16`"),
        ("MOV R1, R2, R3", "surplus operand `R3`"),
        ("", "unknown instruction ``: see the instruction table"),
    ] {
        assert_eq!(rewritten(text), complaint, "{text}");
    }
}

#[test]
fn listing_of_a_program_has_indices() {
    let code = ["S2R R0, SR_TID.X", "EXIT"].map(|text| text.parse().unwrap());
    let program = Program::new("k", code.to_vec(), Requirements::default());
    assert_eq!(program.to_string(), "   0: S2R R0, SR_TID.X\n   1: EXIT\n");
}
