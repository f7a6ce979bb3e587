//! Instructions as text: what is written is read back unchanged, and what is not an instruction is refused with its reason.

mod generate;

use proptest::prelude::*;
use warpwave_isa::inst::Inst;
use warpwave_isa::program::{Program, Requirements};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn any_instruction_written_and_read_is_the_same(inst in generate::inst()) {
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
    let program = Program::new("k", code.to_vec(), Requirements::default());
    assert_eq!(program.to_string(), "   0: S2R R0, SR_TID.X\n   1: EXIT\n");
}
