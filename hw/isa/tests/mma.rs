//! Matrix products beside those of an H100, bit for bit.
//!
//! `mma.txt` has two warps of random fragments for each shape. The first has normal numbers. The second has exponents over a range of 18
//! bits, so that many bits are cut off. `mma_limits.txt` has subnormal numbers, zeros, numbers near the limits, and products of other
//! instructions: of a warp group, of a sparse A, and the four small ones of `mma.m8n8k4`.

use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::program::Decoded;

/// The text of the instruction of a shape. A, B and C are in R0 to R11, metadata in R12.
fn text(shape: &str) -> &'static str {
    match shape {
        "M16n8k16F16 F32" => "MMA.16816F16.F32 R16, R0, R4, R8",
        "M16n8k8F16 F32" => "MMA.1688F16.F32 R16, R0, R4, R8",
        "M16n8k16Bf16 F32" => "MMA.16816BF16 R16, R0, R4, R8",
        "M16n8k8Tf32 F32" => "MMA.1688TF32 R16, R0, R4, R8",
        "M16n8k16F16 F16" => "MMA.16816F16.F16 R16, R0, R4, R8",
        "M16n8k32E4m3 F32" => "MMA.16832E4M3.F32 R16, R0, R4, R8",
        "M16n8k32E5m2 F32" => "MMA.16832E5M2.F32 R16, R0, R4, R8",
        "sparse M16n8k32E4m3 F32" => "MMA.SP.16832E4M3.F32 R16, R0, R4, R8, R12",
        "sparse M16n8k32E5m2 F32" => "MMA.SP.16832E5M2.F32 R16, R0, R4, R8, R12",
        "group M16n8k32E4m3 F32" => "MMA.16832E4M3.F32.HI R16, R0, R4, R8",
        "group M16n8k32E5m2 F32" => "MMA.16832E5M2.F32.HI R16, R0, R4, R8",
        "group M16n8k32E4m3E5m2 F32" => "MMA.16832E4M3E5M2.F32.HI R16, R0, R4, R8",
        "group M16n8k32E4m3 F16" => "MMA.16832E4M3.F16.HI R16, R0, R4, R8",
        "group M16n8k32E5m2 F16" => "MMA.16832E5M2.F16.HI R16, R0, R4, R8",
        "group M16n8k32E4m3E5m2 F16" => "MMA.16832E4M3E5M2.F16.HI R16, R0, R4, R8",
        "quads F32" => "MMA.884F16.F32 R16, R0, R4, R8",
        "quads F16" => "MMA.884F16.F16 R16, R0, R4, R8",
        _ => panic!("no instruction has the shape {shape}"),
    }
}

#[test]
fn products_are_those_of_an_h100() {
    assert_eq!(check(include_str!("mma.txt")), 14, "two warps for each of seven shapes");
}

#[test]
fn products_of_subnormal_and_of_large_numbers_are_those_of_an_h100() {
    assert_eq!(check(include_str!("mma_limits.txt")), 20, "warps");
}

/// Checks every warp of a file. Returns their number.
fn check(vectors: &str) -> usize {
    let mut lines = vectors.lines().filter(|line| !line.starts_with('#'));
    let mut warps = 0;
    while let Some(shape) = lines.next() {
        let lanes: Vec<Vec<Vec<u32>>> = lines
            .by_ref()
            .take(WARP_SIZE)
            .map(|line| line.split('|').map(words).collect())
            .collect();
        let wanted: Vec<&Vec<u32>> = lanes.iter().filter_map(|parts| parts.last()).collect();
        let found = multiply(shape, &lanes);
        for (lane, wanted) in wanted.iter().enumerate() {
            assert_eq!(
                &found[lane], *wanted,
                "{shape}, warp {warps}, lane {lane}: {:x?} and {wanted:x?}",
                found[lane]
            );
        }
        warps += 1;
    }
    warps
}

/// The words of D in each lane. The last part of a lane has those of the H100.
fn multiply(shape: &str, lanes: &[Vec<Vec<u32>>]) -> Vec<Vec<u32>> {
    let mut inst: Inst = text(shape).parse().expect("the text of an instruction");
    let decoded = Decoded::of(&inst);
    let d_words = lanes[0].last().expect("the words of D").len();
    // The four products of M8n8k4 are made in two instructions, each with half of C and D.
    let parts = if shape.starts_with("quads") { 2 } else { 1 };
    let mut found = vec![Vec::new(); WARP_SIZE];
    for part in 0..parts {
        inst.mods.count = part as u8;
        let mut operands = Operands::default();
        for (lane, of_lane) in lanes.iter().enumerate() {
            for (slot, values) in of_lane[..of_lane.len() - 1].iter().enumerate() {
                let first = usize::from(decoded.first_word[slot]);
                let skipped = if slot == 2 { part * d_words / parts } else { 0 };
                for (n, value) in values.iter().skip(skipped).take(4).enumerate() {
                    operands.words[first + n].0[lane] = *value;
                }
            }
        }
        let mut results = Results::default();
        execute(&inst, &decoded, LaneMask::ALL, &operands, &mut results);
        for (lane, found) in found.iter_mut().enumerate() {
            found.extend((0..d_words / parts).map(|n| results.words[n].0[lane]));
        }
    }
    found
}

fn words(part: &str) -> Vec<u32> {
    let word = |digits: &str| u32::from_str_radix(digits, 16).expect("eight hexadecimal digits");
    part.split_whitespace().map(word).collect()
}
