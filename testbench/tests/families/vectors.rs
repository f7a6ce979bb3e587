//! PTX instructions, case by case. `vectors/generate.py` computes the cases in `vectors/*.txt` by the definitions of the PTX ISA.
//!
//! A line `= PTX` begins a group: code that reads `%a0` and so on and leaves results in `%z0` and so on. Each further line is a case,
//! source words `->` result words, and a thread.

use super::Kernel;

struct Group {
    code: String,
    cases: Vec<[Vec<u32>; 2]>,
}

fn groups(file: &str) -> Vec<Group> {
    let words = |side: &str| -> Vec<u32> {
        let words = side.split_whitespace().map(|word| u32::from_str_radix(word, 16));
        words.map(|word| word.expect("a word in hexadecimal")).collect()
    };
    let mut groups: Vec<Group> = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix("= "), groups.last_mut()) {
            (Some(code), _) => groups.push(Group {
                code: code.to_owned(),
                cases: Vec::new(),
            }),
            (None, Some(group)) => {
                let (sources, results) = line.split_once("->").expect("an arrow");
                group.cases.push([words(sources), words(results)]);
            }
            (None, None) => panic!("a case before the first group: {line}"),
        }
    }
    groups
}

fn kernel(group: &Group) -> String {
    let [n_sources, n_results] = [0, 1].map(|side| group.cases[0][side].len());
    let loads: String = (0..n_sources)
        .map(|n| format!("ld.global.u32 %a{n}, [%i+{}];\n", 4 * n))
        .collect();
    let stores: String = (0..n_results)
        .map(|n| format!("st.global.u32 [%o+{}], %z{n};\n", 4 * n))
        .collect();
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %t, %a<12>, %z<8>, %r<8>;\n.reg .b64 %i, %o, %x<8>;\n\
         ld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n\
         mad.wide.u32 %i, %t, {}, %i;\nmad.wide.u32 %o, %t, {}, %o;\n{loads}{}\n{stores}ret;\n}}\n",
        4 * n_sources,
        4 * n_results,
        group.code
    )
}

fn check(file: &str, at_least: usize) {
    let groups = groups(file);
    assert!(groups.len() >= at_least, "{} groups", groups.len());
    for group in groups {
        println!("{}", group.code);
        let [sources, results] = [0, 1].map(|side| {
            group
                .cases
                .iter()
                .flat_map(|case| case[side].clone())
                .collect::<Vec<u32>>()
        });
        let kernel = Kernel::of(&kernel(&group)).sizes(1, group.cases.len() as u32);
        kernel.input(&sources).output(&results).holds();
    }
}

#[test]
fn integers_and_bit_fields_match_the_ptx_isa() {
    check(include_str!("vectors/integer.txt"), 50);
}

#[test]
fn integers_of_every_width_and_conversions_match_the_ptx_isa() {
    check(include_str!("vectors/word.txt"), 450);
}

#[test]
fn comparisons_and_selections_match_the_ptx_isa() {
    check(include_str!("vectors/choice.txt"), 200);
}

#[test]
fn video_instructions_match_the_ptx_isa() {
    check(include_str!("vectors/video.txt"), 400);
}

#[test]
fn float_tests_minima_and_conversions_match_the_ptx_isa() {
    check(include_str!("vectors/float.txt"), 100);
}
