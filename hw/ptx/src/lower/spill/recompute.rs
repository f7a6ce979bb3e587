//! Recomputation: a value that one cheap operation gives needs no slot.
//!
//! The operation is the *recipe* of the value. It runs before each use, and the definition goes. All its registers have a single
//! definition before their uses, so the result has the same bits. It reads no predicate and writes none.
//!
//! A source has to stay in its register until the last use of the value. This is worth it in two cases. The source is live at all uses
//! anyway; or at least [`SHARED`] values with this source are live at once, and one register replaces theirs. In all other cases the
//! value has a recipe only if the source is a constant. Then the recipe moves the constant into a new register too.

use crate::lower::code::{Bits, BlockId, Code, Op, OpKind, VReg};
use crate::lower::graph::{Graph, Values};
use crate::lower::live::{self, LiveRanges};
use warpwave_isa::opcode::Opcode;

/// Minimum number of live values for which a source is kept. Assumed.
const SHARED: usize = 3;

/// Recipes of all values, by the first register of each.
pub(super) struct Recipes(Vec<Option<Recipe>>);

/// Operations that compute the words of one value. Most values have one.
#[derive(Clone)]
pub(super) struct Recipe {
    ops: Vec<Op>,
    /// Registers that must keep their values until the last use.
    pub kept: Vec<VReg>,
    /// Number of operations, with the moves of constants.
    pub cost: u64,
    /// True if no operation reads a register.
    is_constant: bool,
}

impl Recipes {
    /// Returns the recipes of a kernel with these live ranges.
    pub fn of(code: &Code, graph: &Graph, ranges: &[LiveRanges]) -> Recipes {
        let mut recipes = Recipes(vec![None; code.groups.len()]);
        if code.spills_to_memory {
            return recipes;
        }
        let values = Values::of(code, graph);
        for vreg in (0..code.groups.len() as u32).map(VReg) {
            if code.groups[vreg.0 as usize].0 == vreg {
                recipes.0[vreg.0 as usize] = recipe(code, &values, vreg);
            }
        }
        recipes.settle_dead_sources(code, ranges);
        recipes
    }

    /// Returns the recipe of the value whose first register is `first`.
    pub fn get(&self, first: VReg) -> Option<&Recipe> {
        self.0.get(first.0 as usize)?.as_ref()
    }

    /// Returns the recipe of the value that a register is part of.
    pub fn of_register(&self, code: &Code, vreg: VReg) -> Option<&Recipe> {
        self.get(code.groups[vreg.0 as usize].0)
    }

    /// True if the value that a register is part of has a recipe without sources.
    pub fn is_constant(&self, code: &Code, vreg: VReg) -> bool {
        self.of_register(code, vreg).is_some_and(|recipe| recipe.is_constant)
    }

    /// Drops the recipes whose sources would stay live for too few values. A constant becomes a part of the recipe instead.
    fn settle_dead_sources(&mut self, code: &Code, ranges: &[LiveRanges]) {
        for (source, values) in (0..).map(VReg).zip(self.users_of_dead_sources(code, ranges)) {
            if live_at_once(&values, ranges) >= SHARED {
                continue;
            }
            let is_constant = self.is_constant(code, source);
            for value in values {
                let recipe = &mut self.0[value.0 as usize];
                match recipe {
                    Some(recipe) if is_constant => {
                        recipe.kept.retain(|&kept| kept != source);
                        recipe.cost += 1;
                    }
                    _ => *recipe = None,
                }
            }
        }
    }

    /// Returns the values of each source that is dead at some of their uses.
    fn users_of_dead_sources(&self, code: &Code, ranges: &[LiveRanges]) -> Vec<Vec<VReg>> {
        let mut users = vec![Vec::new(); ranges.len()];
        for (index, op) in (0..).zip(code.ops()) {
            for vreg in op.uses() {
                let value = code.groups[vreg.0 as usize].0;
                for source in self.get(value).into_iter().flat_map(|recipe| &recipe.kept) {
                    let values = &mut users[source.0 as usize];
                    // A value can have several uses in a row.
                    if !live::contains(&ranges[source.0 as usize], 2 * index) && values.last() != Some(&value) {
                        values.push(value);
                    }
                }
            }
        }
        for values in &mut users {
            values.sort_unstable();
            values.dedup();
        }
        users
    }

    /// Runs the recipes before each use of the chosen values, and drops the definitions.
    pub fn rewrite(&self, code: &mut Code, block: BlockId, is_chosen: impl Fn(VReg) -> bool) {
        let is_chosen = |code: &Code, vreg: VReg| is_chosen(code.groups[vreg.0 as usize].0);
        let ops = std::mem::take(&mut code.blocks[block].ops);
        let mut out = Vec::with_capacity(ops.len());
        for mut op in ops {
            // Every use has a recipe of its own, so the definition has no reader.
            if op.dst.is_some_and(|vreg| is_chosen(code, vreg)) {
                continue;
            }
            self.repeat_sources(code, &mut op, &is_chosen, &mut out);
            out.push(op);
        }
        code.blocks[block].ops = out;
    }

    /// Runs the recipes of those sources of an operation that `is_repeated` names. The operation reads the new registers.
    fn repeat_sources(
        &self,
        code: &mut Code,
        op: &mut Op,
        is_repeated: &dyn Fn(&Code, VReg) -> bool,
        out: &mut Vec<Op>,
    ) {
        let shape = op.shape();
        for (slot, &words) in shape.src.iter().enumerate().filter(|(_, words)| **words > 0) {
            let Some(vreg) = op.src[slot].as_vreg().filter(|&vreg| is_repeated(code, vreg)) else {
                continue;
            };
            let (value, length) = code.groups[vreg.0 as usize];
            let Some(recipe) = self.get(value) else { continue };
            let temp = code.new_group(length);
            let renamed = |vreg: VReg| VReg(vreg.0 - value.0 + temp.0);
            let is_read = |part: &&Op| part.defs().any(|word| (vreg..vreg.offset(words)).contains(&word));
            // The constants of a recipe are repeated with it, if this round or an earlier one took their registers.
            let is_part = |code: &Code, source: VReg| {
                self.is_constant(code, source) && (is_repeated(code, source) || !recipe.kept.contains(&source))
            };
            for part in recipe.ops.iter().filter(is_read) {
                let mut part = Op {
                    dst: part.dst.map(renamed),
                    line: op.line,
                    ..*part
                };
                self.repeat_sources(code, &mut part, &is_part, out);
                out.push(part);
            }
            op.src[slot].bits = Bits::VReg(renamed(vreg));
        }
    }
}

/// Returns the maximum number of the values that are live at the same time.
fn live_at_once(values: &[VReg], ranges: &[LiveRanges]) -> usize {
    let spans = values.iter().flat_map(|value| &ranges[value.0 as usize]);
    // A range that ends where another starts comes first.
    let mut changes: Vec<(u32, isize)> = spans.flat_map(|&(start, end)| [(start, 1), (end, -1)]).collect();
    changes.sort_unstable();
    let live = changes.iter().scan(0, |live, (_, change)| {
        *live += change;
        Some(*live)
    });
    live.max().unwrap_or(0) as usize
}

/// Returns the recipe of a value; `None` if a word of it has none.
fn recipe(code: &Code, values: &Values, first: VReg) -> Option<Recipe> {
    let end = first.offset(code.groups[first.0 as usize].1);
    let mut ops = Vec::new();
    let mut next = first;
    while next < end {
        let op = values.definition(code, next)?;
        let is_whole = op.dst == Some(next) && op.defs().all(|vreg| vreg < end && values.is_fixed(vreg));
        let is_fixed = op.uses().all(|vreg| values.is_fixed(vreg));
        if !(is_whole && is_fixed && is_cheap(op)) {
            return None;
        }
        ops.push(*op);
        next = next.offset(op.shape().dst);
    }
    let kept: Vec<VReg> = ops.iter().flat_map(Op::uses).collect();
    Some(Recipe {
        cost: ops.len() as u64,
        is_constant: kept.is_empty(),
        ops,
        kept,
    })
}

/// True if an operation takes about as long as a move, and its result depends on registers and constants only.
fn is_cheap(op: &Op) -> bool {
    use Opcode::*;
    let OpKind::Machine(opcode) = op.kind else { return false };
    // A special register can read differently each time.
    let is_constant = |bits: Bits| !matches!(bits, Bits::Special(_));
    let is_integer = matches!(
        opcode,
        Mov | Iadd3 | Lea | Lop3 | Shf | Prmt | Iabs | Bfe | Bfi | Imad | ImadWide
    );
    is_integer
        && op.src.iter().all(|arg| is_constant(arg.bits))
        && op.pred_uses().next().is_none()
        && op.pred_defs().next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::{Arg, Block, VGuard, VPred};
    use warpwave_isa::space::Access;

    const SOURCE: VReg = VReg(0);

    fn op(opcode: Opcode, dst: VReg, sources: &[VReg]) -> Op {
        let args: Vec<Arg> = sources.iter().map(|&vreg| Arg::vreg(vreg)).collect();
        let mut op = Op::machine(opcode).dst(dst).src(&args);
        op.mods.access = Access::one(4);
        op
    }

    /// Returns the recipes of a block. Register 0 is loaded first, and 1 to `n` are the other registers.
    fn recipes(ops: &[Op], n: u8) -> Recipes {
        let mut code = Code::default();
        (0..=n).for_each(|_| _ = code.new_group(1));
        let load = op(Opcode::Ld, SOURCE, &[]);
        code.blocks.push(Block {
            ops: [&[load], ops].concat(),
        });
        let graph = Graph::of(&code);
        let ranges = live::live_ranges::<live::GeneralRegs>(&code, &graph);
        Recipes::of(&code, &graph, &ranges)
    }

    /// Returns a store of the register.
    fn store(vreg: VReg) -> Op {
        let op = Op::machine(Opcode::St).src(&[Arg::ZERO, Arg::vreg(vreg)]);
        op.mods(|mods| mods.access = Access::one(4))
    }

    #[test]
    fn value_of_a_register_that_is_live_at_its_use_has_a_recipe() {
        let value = op(Opcode::Lop3, VReg(1), &[SOURCE]);
        let found = recipes(&[value, store(VReg(1)), store(SOURCE)], 1);
        assert_eq!(found.get(VReg(1)).unwrap().kept, [SOURCE]);
        // The source has no reader after the definition, so it would take the register that the value frees.
        assert!(recipes(&[value, store(VReg(1))], 1).get(VReg(1)).is_none());
    }

    #[test]
    fn three_values_are_worth_the_register_of_their_source() {
        let values = |n: u8| {
            let defs = (1..=n).map(|at| op(Opcode::Lop3, SOURCE.offset(at), &[SOURCE]));
            let ops: Vec<Op> = defs.chain((1..=n).map(|at| store(SOURCE.offset(at)))).collect();
            recipes(&ops, n)
        };
        assert!(values(2).get(VReg(1)).is_none());
        assert!((1..=3).all(|at| values(3).get(VReg(at)).is_some()));
    }

    #[test]
    fn value_of_a_register_with_two_definitions_has_no_recipe() {
        let value = op(Opcode::Lop3, VReg(1), &[SOURCE]);
        let second = op(Opcode::Iadd3, SOURCE, &[SOURCE]);
        assert!(
            recipes(&[value, second, store(VReg(1)), store(SOURCE)], 1)
                .get(VReg(1))
                .is_none()
        );
    }

    #[test]
    fn constant_is_part_of_the_recipe_of_its_only_value() {
        let constant = Op::machine(Opcode::Mov).dst(VReg(1)).src(&[Arg::imm(3)]);
        let value = op(Opcode::Imad, VReg(2), &[SOURCE, VReg(1)]);
        let found = recipes(&[constant, value, store(VReg(2)), store(SOURCE)], 2);
        let recipe = found.get(VReg(2)).unwrap();
        assert_eq!((&recipe.kept[..], recipe.cost), (&[SOURCE][..], 2));
    }

    #[test]
    fn loads_conversions_and_guarded_operations_have_no_recipe() {
        let guard = VGuard::pred(VPred(0));
        let plain = op(Opcode::Lop3, VReg(1), &[SOURCE]);
        for value in [
            op(Opcode::Ld, VReg(1), &[SOURCE]),
            op(Opcode::Popc, VReg(1), &[SOURCE]),
            plain.guard(guard),
        ] {
            let found = recipes(&[value, store(VReg(1)), store(SOURCE)], 1);
            assert!(found.get(VReg(1)).is_none(), "{value:?}");
        }
    }
}
