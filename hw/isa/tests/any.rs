//! Whatever the modifiers and the words, a row that computes does so without a fault, and the same way twice.

mod generate;

use proptest::prelude::*;
use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::{Inst, Operand};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::program::Decoded;
use warpwave_isa::reg::Reg;

/// Whether the row has a result that is computed, not fetched.
fn computes(op: Opcode) -> bool {
    let pipe = op.info().pipe;
    op == Opcode::Shfl || op != Opcode::Hgmma && !matches!(pipe, Pipe::Lsu | Pipe::Control)
}

/// A generated instruction with its sources in registers: only the words that are read matter here.
fn computing() -> impl Strategy<Value = Inst> {
    let in_registers = |mut inst: Inst| {
        for operand in &mut inst.src {
            operand.source = Operand::reg(Reg(0)).source;
        }
        inst
    };
    generate::inst()
        .prop_filter("computes", |inst| computes(inst.op))
        .prop_map(in_registers)
}

fn operands() -> impl Strategy<Value = Operands> {
    let words = prop::collection::vec(
        prop_oneof![any::<u32>(), 0..70u32, Just(0x8000_0000), Just(u32::MAX)],
        320,
    );
    (words, any::<[u32; 9]>()).prop_map(|(words, masks)| {
        let mut operands = Operands::default();
        for (place, lanes) in operands.words.iter_mut().zip(words.chunks_exact(32)) {
            *place = Lanes(lanes.try_into().expect("32 words"));
        }
        operands.preds = [LaneMask(masks[7]), LaneMask(masks[8])];
        operands.file = std::array::from_fn(|n| LaneMask(masks[n]));
        operands
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]
    #[test]
    fn any_words_executed_twice_give_the_same(mut inst in computing(), operands in operands(), active in any::<u32>()) {
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
