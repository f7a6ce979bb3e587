//! Matrix products beside those of an H100, bit for bit: `mma.txt` has two warps of random fragments for each shape.
//!
//! The first warp of a shape has normal numbers. The second one has exponents over a range of 18 bits, so that many bits are cut off.

use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::program::Decoded;

/// The text of the instruction of a shape. A, B and C are in R0 to R11.
fn text(shape: &str) -> &'static str {
    match shape {
        "M16n8k16F16 F32" => "MMA.16816F16.F32 R16, R0, R4, R8",
        "M16n8k8F16 F32" => "MMA.1688F16.F32 R16, R0, R4, R8",
        "M16n8k16Bf16 F32" => "MMA.16816BF16 R16, R0, R4, R8",
        "M16n8k8Tf32 F32" => "MMA.1688TF32 R16, R0, R4, R8",
        "M16n8k16F16 F16" => "MMA.16816F16.F16 R16, R0, R4, R8",
        "M16n8k32E4m3 F32" => "MMA.16832E4M3.F32 R16, R0, R4, R8",
        "M16n8k32E5m2 F32" => "MMA.16832E5M2.F32 R16, R0, R4, R8",
        _ => panic!("no instruction has the shape {shape}"),
    }
}

#[test]
fn products_are_those_of_an_h100() {
    let vectors = include_str!("mma.txt");
    let mut lines = vectors.lines().filter(|line| !line.starts_with('#'));
    let mut warps = 0;
    while let Some(shape) = lines.next() {
        let inst: Inst = text(shape).parse().expect("the text of an instruction");
        let decoded = Decoded::of(&inst);
        let (mut operands, mut wanted) = (Operands::default(), Vec::new());
        for lane in 0..WARP_SIZE {
            let line = lines.next().expect("a line for each lane");
            let parts: Vec<Vec<u32>> = line.split('|').map(words).collect();
            for (slot, values) in parts[..3].iter().enumerate() {
                let first = usize::from(decoded.first_word[slot]);
                for (n, value) in values.iter().enumerate() {
                    operands.words[first + n].0[lane] = *value;
                }
            }
            wanted.push(parts[3].clone());
        }
        let mut results = Results::default();
        execute(&inst, &decoded, LaneMask::ALL, &operands, &mut results);
        for (lane, wanted) in wanted.iter().enumerate() {
            let found: Vec<_> = (0..wanted.len()).map(|n| results.words[n].0[lane]).collect();
            assert_eq!(
                &found, wanted,
                "{shape}, warp {warps}, lane {lane}: {found:x?} and {wanted:x?}"
            );
        }
        warps += 1;
    }
    assert_eq!(warps, 14, "two warps for each of seven shapes");
}

fn words(part: &str) -> Vec<u32> {
    let word = |digits: &str| u32::from_str_radix(digits, 16).expect("eight hexadecimal digits");
    part.split_whitespace().map(word).collect()
}
