//! Random instructions on random words: each arithmetic instruction executes without panic, and twice with equal results.

mod generate;

use proptest::prelude::*;
use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::{Inst, Operand};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::Decoded;
use warpwave_isa::reg::Reg;

/// True if the opcode computes its result, instead of a memory access.
fn computes(op: Opcode) -> bool {
    let pipe = op.info().pipe;
    let is_group = matches!(op, Opcode::Hgmma | Opcode::HgmmaSp);
    op == Opcode::Shfl || !is_group && !matches!(pipe, Pipe::Lsu | Pipe::Control)
}

/// Generates an arithmetic instruction with all sources in registers, since only the operand words matter here.
fn computing() -> impl Strategy<Value = Inst> {
    let in_registers = |mut inst: Inst| {
        for operand in &mut inst.src {
            operand.source = Operand::reg(Reg(0)).source;
        }
        inst
    };
    generate::inst()
        .prop_filter("computes", |inst| computes(inst.op))
        .prop_filter("has a sparse form", |inst| {
            inst.op != Opcode::MmaSp || inst.mods.mma.sparsity().is_some()
        })
        .prop_map(in_registers)
}

fn operands() -> impl Strategy<Value = Operands> {
    let words = prop::collection::vec(
        prop_oneof![any::<u32>(), 0..70u32, Just(0x8000_0000), Just(u32::MAX)],
        416,
    );
    (words, any::<[u32; 9]>()).prop_map(|(words, masks)| {
        let mut operands = Operands::default();
        for (target, lanes) in operands.words.iter_mut().zip(words.chunks_exact(32)) {
            *target = Lanes(lanes.try_into().expect("32 words"));
        }
        operands.preds = [LaneMask(masks[7]), LaneMask(masks[8])];
        operands.file = std::array::from_fn(|n| LaneMask(masks[n]));
        operands
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]
    #[test]
    fn any_instruction_executed_twice_gives_equal_results(mut inst in computing(), operands in operands(), active in any::<u32>()) {
        inst.dst = Reg(0);
        let decoded = Decoded::of(&inst);
        let run = |mut results: Results| {
            execute(&inst, &decoded, LaneMask(active), &operands, &mut results);
            results
        };
        let first = run(Results::default());
        prop_assert_eq!(run(first.clone()), first);
    }
}
