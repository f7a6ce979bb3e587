//! Control words against hand-made ones: `control.txt` has one program per `==` line.

use warpwave_isa::control::{self, Latency};
use warpwave_isa::inst::Inst;
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::{Program, Requirements};

/// Guard latency at the head of `control.txt`.
const GUARD_LATENCY: u32 = 13;

/// Returns the latencies that the head of `control.txt` lists.
fn latency(inst: &Inst) -> Latency {
    match inst.op.info().pipe {
        _ if inst.op == Opcode::S2r => Latency::Short,
        Pipe::Lsu => Latency::Long,
        Pipe::Fp64 => Latency::Fixed(8),
        Pipe::Tensor => Latency::Fixed(24),
        Pipe::Fp32 if inst.op == Opcode::Imad => Latency::Fixed(5),
        _ => Latency::Fixed(4),
    }
}

fn program(lines: &[&str]) -> Program {
    let inst = |line: &&str| -> Inst {
        let (_, text) = line.split_once("  ").expect("a word and an instruction");
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    Program::new("k", lines.iter().map(inst).collect(), Requirements::default())
}

#[test]
fn programs_have_the_control_words_written_by_hand() {
    let text = include_str!("control.txt");
    let cases: Vec<&str> = text.split("== ").skip(1).collect();
    assert!(cases.len() >= 6, "{} cases", cases.len());
    for case in cases {
        let lines: Vec<&str> = case.lines().filter(|line| line.contains(":R")).collect();
        let program = program(&lines);
        let latencies: Vec<Latency> = program.code().iter().map(latency).collect();
        let words = control::words(&program, &latencies, GUARD_LATENCY);
        let found: Vec<String> = words
            .iter()
            .zip(program.code())
            .map(|(word, inst)| format!("{word}  {inst}"))
            .collect();
        assert_eq!(found.join("\n"), lines.join("\n"), "{case}");
    }
}
