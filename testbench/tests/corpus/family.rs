//! Families of instructions: an opcode with the qualifiers that select an operation, without plain types.

use std::collections::BTreeMap;

use warpwave_ptx::ast::{Block, Function, Instruction, Module, Statement};

/// Opcodes with a family of its own for each type of float.
const BY_FLOAT: &str = "abs add copysign div fma max min mul neg rcp sqrt sub";
/// Opcodes with the operation in their first qualifier.
const BY_FIRST: &str = "bar barrier elect fence mbarrier redux shfl tcgen05 vote wgmma wmma";

/// The families of each function, and whether it is an entry.
pub fn of_functions<'a>(module: &'a Module<'a>) -> impl Iterator<Item = (&'a Function<'a>, Vec<String>)> {
    module.functions.iter().filter_map(|function| {
        let mut found = BTreeMap::new();
        collect(function.body.as_ref()?, &mut found);
        Some((function, found.into_keys().collect()))
    })
}

fn collect(block: &Block, found: &mut BTreeMap<String, ()>) {
    for statement in &block.statements {
        match statement {
            Statement::Instruction(instruction) => {
                found.insert(of(instruction), ());
            }
            Statement::Block(block) => collect(block, found),
            _ => {}
        }
    }
}

/// The family of an instruction.
fn of(instruction: &Instruction) -> String {
    let opcode = instruction.opcode.text;
    let qualifiers: Vec<_> = instruction
        .qualifiers
        .iter()
        .map(|qualifier| qualifier.text.trim_start_matches('.'))
        .collect();
    let first_of = |words: &str| {
        words
            .split(' ')
            .find(|word| qualifiers.contains(word))
            .map(str::to_owned)
    };
    let listed = |list: &str| list.split(' ').any(|word| word == opcode);
    let mut parts = vec![opcode.to_owned()];
    match opcode {
        "ld" | "st" | "red" | "atom" => {
            let spaces = "global shared shared::cluster local param const";
            let space = first_of(spaces).or_else(|| first_of("shared::cta").map(|_| "shared".to_owned()));
            parts.push(space.unwrap_or("generic".into()));
            parts.extend(
                first_of("add and cas dec exch inc max min or xor").filter(|_| matches!(opcode, "red" | "atom")),
            );
        }
        "cp" => parts.extend(copy(&qualifiers)),
        "mul" | "mad" | "madc" => {
            parts.extend(first_of("lo hi wide f16 f16x2 bf16 bf16x2 f32 f32x2 f64"));
            parts.extend(first_of("cc"));
        }
        "add" | "addc" | "sub" | "subc" if qualifiers.contains(&"cc") => parts.push("cc".into()),
        "shf" => parts.extend(qualifiers[..2].iter().map(|&part| part.to_owned())),
        "cvta" => parts.extend(first_of("to")),
        "prefetch" => parts.extend(first_of("tensormap")),
        "bar" if qualifiers.first() == Some(&"warp") => parts.push("warp.sync".into()),
        _ if listed(BY_FIRST) => parts.extend(qualifiers.first().map(|&first| first.to_owned())),
        _ if listed(BY_FLOAT) => parts.extend(first_of("f16 f16x2 bf16 bf16x2 f32 f32x2 f64")),
        _ => {}
    }
    parts.join(".")
}

/// The qualifiers that distinguish asynchronous copies.
fn copy(qualifiers: &[&str]) -> Vec<String> {
    let telling = [
        "async",
        "bulk",
        "tensor",
        "commit_group",
        "wait_group",
        "wait_all",
        "mbarrier",
    ];
    let parts = qualifiers.iter().filter(|part| telling.contains(part));
    parts.map(|&part| part.to_owned()).collect()
}
