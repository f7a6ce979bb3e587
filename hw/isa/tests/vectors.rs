//! Instructions against vectors: `vectors/*.txt`, which `vectors/generate.py` computes with exact fractions.
//!
//! A line is `INSTRUCTION : source words [; predicate sources] -> result words [; result predicates]`.
//! `~>` allows an error of one unit in the last place. All lanes get the same words, and all must agree.

use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::{Inst, Ty};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::Decoded;

struct Case {
    inst: Inst,
    words: Vec<u32>,
    preds: Vec<bool>,
    /// Allowed error, in units in the last place.
    slack: u32,
    expected_words: Vec<u32>,
    expected_preds: Vec<bool>,
}

/// Parses hexadecimal words, then bits after a semicolon.
fn side(text: &str) -> (Vec<u32>, Vec<bool>) {
    let (words, bits) = text.split_once(';').unwrap_or((text, ""));
    let words = words
        .split_whitespace()
        .map(|word| u32::from_str_radix(word, 16).expect("a word in hexadecimal"));
    (words.collect(), bits.split_whitespace().map(|bit| bit == "1").collect())
}

fn case(line: &str) -> Case {
    let (text, rest) = line.split_once(" : ").expect("a colon after the instruction");
    let exact = rest.split_once("->").map(|sides| (sides, 0));
    let ((inputs, outputs), slack) = exact
        .or_else(|| rest.split_once("~>").map(|sides| (sides, 1)))
        .expect("an arrow");
    let ((words, preds), (expected_words, expected_preds)) = (side(inputs), side(outputs));
    Case {
        inst: text.parse().unwrap_or_else(|error| panic!("{line}: {error}")),
        words,
        preds,
        slack,
        expected_words,
        expected_preds,
    }
}

fn everywhere(holds: bool) -> LaneMask {
    if holds { LaneMask::ALL } else { LaneMask::NONE }
}

fn run(case: &Case) -> Results {
    let decoded = Decoded::of(&case.inst);
    let mut operands = Operands::default();
    let mut results = Results::default();
    assert_eq!(
        decoded.source_words as usize,
        case.words.len(),
        "source words of {}",
        case.inst
    );
    for (target, &word) in operands.words.iter_mut().zip(&case.words) {
        *target = Lanes::splat(word);
    }
    for (target, &holds) in operands.preds.iter_mut().zip(&case.preds) {
        *target = everywhere(holds);
    }
    execute(&case.inst, &decoded, LaneMask::ALL, &operands, &mut results);
    results
}

/// True if the case holds in all lanes.
fn holds(case: &Case) -> bool {
    let results = run(case);
    let words = case
        .expected_words
        .iter()
        .zip(&results.words)
        .all(|(&expected, got)| got.0.iter().all(|&word| word.abs_diff(expected) <= case.slack));
    let preds = case
        .expected_preds
        .iter()
        .zip(&results.preds)
        .all(|(&expected, &got)| got == everywhere(expected));
    words && preds
}

fn check(file: &str) {
    let mut failures = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let case = case(line);
        if !holds(&case) {
            let results = run(&case);
            let got: Vec<String> = results
                .words
                .iter()
                .take(case.expected_words.len())
                .map(|w| format!("{:08x}", w.0[0]))
                .collect();
            let preds = &results.preds[..case.expected_preds.len()];
            failures.push(format!("{line}\n    got {} {preds:?}", got.join(" ")));
        }
    }
    assert!(
        failures.is_empty(),
        "{} cases fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

macro_rules! files {
    ($($name:ident $file:literal;)+) => {
        $(#[test]
        fn $name() {
            check(include_str!(concat!("vectors/", $file)));
        })+
    };
}

files! {
    fp32_vectors_give_their_results "fp32.txt";
    half_vectors_give_their_results "half.txt";
    fp64_vectors_give_their_results "fp64.txt";
    integer_vectors_give_their_results "int.txt";
    product_vectors_give_their_results "product.txt";
    conversion_vectors_give_their_results "convert.txt";
    special_function_vectors_give_their_results "mufu.txt";
    special_function_vectors_of_halves_give_their_results "mufu_half.txt";
    flushed_denormal_vectors_give_their_results "flush.txt";
}

/// Arithmetic opcodes with tests elsewhere: their operands differ from lane to lane, or are more than a few words.
const ELSEWHERE: [(&str, &str); 11] = [
    ("S2R", "exec/special.rs"),
    ("P2R", "warp.rs"),
    ("R2P", "warp.rs"),
    ("VOTE", "warp.rs"),
    ("MATCH", "warp.rs"),
    ("REDUX", "warp.rs"),
    ("MMA", "tensor.rs"),
    ("HGMMA", "gmma.rs"),
    ("MMA.SP", "sparse.rs"),
    ("HGMMA.SP", "sparse.rs"),
    ("SHFL", "warp.rs"),
];

/// Returns every instruction of the vector files.
fn instructions() -> Vec<Inst> {
    let mut files: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    files.sort();
    let texts = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
    let lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let cases = lines.iter().filter(|line| !line.is_empty() && !line.starts_with('#'));
    cases.map(|line| case(line).inst).collect()
}

#[test]
fn every_arithmetic_opcode_has_vectors_or_listed_tests() {
    let tested = instructions();
    let computes = |op: &&Opcode| !matches!(op.info().pipe, Pipe::Lsu | Pipe::Control) || **op == Opcode::Shfl;
    for op in Opcode::ALL.iter().filter(computes) {
        let has_vectors = tested.iter().any(|inst| inst.op == *op);
        let is_listed = ELSEWHERE.iter().any(|(name, _)| *name == op.info().name);
        assert!(
            has_vectors != is_listed,
            "{}: add vectors for it in generate.py, or name its tests in ELSEWHERE",
            op.info().name
        );
    }
}

#[test]
fn opcodes_with_several_types_have_vectors_for_each() {
    use Opcode::{F2f, F2fp, F2i, Hadd2, Hfma2, Hmnmx2, Hmul2, I2f, I2i, Imnmx, Isetp, Viaddmnmx, Vimnmx3};
    const HALVES: &[Ty] = &[Ty::F16, Ty::F16x2, Ty::Bf16, Ty::Bf16x2];
    const FLOATS: &[Ty] = &[Ty::F16, Ty::Bf16, Ty::F32, Ty::F64];
    const WORDS: &[Ty] = &[Ty::U32, Ty::S32];
    const INTEGERS: &[Ty] = &[Ty::U8, Ty::S8, Ty::U16, Ty::S16, Ty::U32, Ty::S32, Ty::U64, Ty::S64];
    const WHOLE: &[Ty] = &[Ty::U16, Ty::S16, Ty::U32, Ty::S32, Ty::U64, Ty::S64];
    let rows: [(Opcode, &[Ty], &[Ty]); 13] = [
        (Hadd2, HALVES, &[]),
        (Hmul2, HALVES, &[]),
        (Hfma2, HALVES, &[]),
        (Hmnmx2, HALVES, &[]),
        (Imnmx, WORDS, &[]),
        (Viaddmnmx, WORDS, &[]),
        (Vimnmx3, WORDS, &[]),
        (Isetp, WORDS, &[]),
        (I2i, WHOLE, INTEGERS),
        (I2f, FLOATS, INTEGERS),
        (F2i, WHOLE, FLOATS),
        (F2f, FLOATS, FLOATS),
        (F2fp, &[Ty::F16x2, Ty::Bf16x2], &[]),
    ];
    let tested = instructions();
    let mut missing = Vec::new();
    for (op, types, froms) in rows {
        for &ty in types {
            let of = |from: Option<Ty>| {
                let is = |inst: &&Inst| {
                    inst.op == op && inst.mods.ty == ty && from.is_none_or(|from| inst.mods.from == from)
                };
                tested.iter().any(|inst| is(&inst))
            };
            let absent = froms
                .iter()
                .filter(|&&from| !of(Some(from)))
                .map(|from| format!("{op:?} {ty:?} {from:?}"));
            missing.extend(absent);
            if froms.is_empty() && !of(None) {
                missing.push(format!("{op:?} {ty:?}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "no vectors for {missing:?}: add them in generate.py"
    );
}
