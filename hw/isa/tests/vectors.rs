//! The meaning of instructions, case by case: `vectors/*.txt`, which `vectors/generate.py` works out with exact fractions.
//!
//! A line is `INSTRUCTION : source words [; predicate sources] -> result words [; result predicates]`; `~>` allows one unit in the last
//! place. The same words stand in every lane, and every lane must agree.

use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::program::Decoded;

struct Case {
    inst: Inst,
    words: Vec<u32>,
    preds: Vec<bool>,
    /// Units in the last place by which a result may be off.
    slack: u32,
    expected_words: Vec<u32>,
    expected_preds: Vec<bool>,
}

/// Words in hexadecimal, then bits after a semicolon.
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
        decoded.words as usize,
        case.words.len(),
        "source words of {}",
        case.inst
    );
    for (place, &word) in operands.words.iter_mut().zip(&case.words) {
        *place = Lanes::splat(word);
    }
    for (place, &holds) in operands.preds.iter_mut().zip(&case.preds) {
        *place = everywhere(holds);
    }
    execute(&case.inst, &decoded, LaneMask::ALL, &operands, &mut results);
    results
}

/// Whether the case holds in all lanes.
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
    fp32_vectors_executed_give_their_results "fp32.txt";
    half_vectors_executed_give_their_results "half.txt";
    fp64_vectors_executed_give_their_results "fp64.txt";
    integer_vectors_executed_give_their_results "int.txt";
    product_vectors_executed_give_their_results "product.txt";
    conversion_vectors_executed_give_their_results "convert.txt";
    special_function_vectors_executed_give_their_results "mufu.txt";
}
