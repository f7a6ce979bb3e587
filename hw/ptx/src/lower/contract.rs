//! Contraction: a product and a sum without a rounding modifier become one multiply-add.
//!
//! `d = a * b; e = d + c` becomes `e = fma(a, b, c)`. The product is then not rounded, so the pass changes values. The PTX ISA permits it
//! where neither instruction names a rounding, and the vendor's assembler does it by default (`-fmad=true`). So the pass always runs:
//! without it, values differ from those of a GPU.
//!
//! The rule was read from machine code of the vendor's assembler (ptxas 11.8). A product contracts only if it disappears: all its readers
//! are sums of its own block. If both operands of a sum are products, one of them contracts. A product with one reader is preferred. If
//! both have one reader, the first operand contracts.

use super::code::{Arg, Code, Op, OpKind, VGuard, VReg};
use std::collections::HashMap;
use warpwave_isa::opcode::Opcode;

/// Contracts the products of a kernel, block by block.
pub(super) fn run(code: &mut Code) {
    let has_product = code.ops().any(|op| op.open_rounding && multiply_add_of(op).is_some());
    if has_product {
        let totals = Totals::of(code);
        for block in &mut code.blocks {
            contract(&mut block.ops, &totals);
        }
    }
    // Later passes compare operations, to find equal ones. The flag has no meaning for them, so it must not make two differ.
    for op in code.blocks.iter_mut().flat_map(|block| &mut block.ops) {
        op.open_rounding = false;
    }
}

/// Reads and writes of each register in the whole kernel.
struct Totals {
    reads: Vec<u32>,
    writes: Vec<u32>,
}

impl Totals {
    fn of(code: &Code) -> Totals {
        let mut totals = Totals {
            reads: vec![0; code.groups.len()],
            writes: vec![0; code.groups.len()],
        };
        for op in code.ops() {
            op.uses().for_each(|vreg| totals.reads[vreg.0 as usize] += 1);
            op.defs().for_each(|vreg| totals.writes[vreg.0 as usize] += 1);
        }
        totals
    }
}

/// A product of a block that may contract.
struct Product {
    /// Index of its operation in the block.
    at: usize,
    /// Its readers, each as the index of a sum and the operand that is the product.
    readers: Vec<(usize, usize)>,
    /// True while all readers are sums that can take the product.
    contracts: bool,
    /// True after a factor has got a new value: a later sum can no longer compute the product.
    has_stale_factor: bool,
}

/// Contracts the products of one block, and removes them.
fn contract(ops: &mut Vec<Op>, totals: &Totals) {
    // No sum is a product, so the order in which sums take their products does not matter.
    let products = products(ops, totals);
    let mut is_contracted = vec![false; ops.len()];
    for (sum, (product, operand)) in assign(&products) {
        let at = products[product].at;
        ops[sum] = fused(&ops[at], &ops[sum], operand);
        is_contracted[at] = true;
    }
    let mut stays = is_contracted.into_iter().map(|is_contracted| !is_contracted);
    ops.retain(|_| stays.next() == Some(true));
}

/// Returns the products whose readers are sums of the same block, in order of their operations.
fn products(ops: &[Op], totals: &Totals) -> Vec<Product> {
    let mut products: Vec<Product> = Vec::new();
    let mut by_result: HashMap<VReg, usize> = HashMap::new();
    let mut by_factor: HashMap<VReg, Vec<usize>> = HashMap::new();
    for (index, op) in ops.iter().enumerate() {
        // Uses before definitions: an operation reads its operands before it writes its result.
        for vreg in op.uses() {
            if let Some(&product) = by_result.get(&vreg) {
                let Product {
                    at, has_stale_factor, ..
                } = products[product];
                let operand = operand_for(&ops[at], op).filter(|_| !has_stale_factor);
                // The second word of a value is the same reader.
                match operand.map(|operand| (index, operand)) {
                    Some(reader) if !products[product].readers.contains(&reader) => {
                        products[product].readers.push(reader)
                    }
                    Some(_) => {}
                    None => products[product].contracts = false,
                }
            }
        }
        for vreg in op.defs() {
            for product in by_factor.remove(&vreg).into_iter().flatten() {
                products[product].has_stale_factor = true;
            }
        }
        // With another writer, a reader may see a value that is not this product.
        let has_one_value = op.defs().all(|vreg| totals.writes[vreg.0 as usize] == 1);
        if op.open_rounding && has_one_value && multiply_add_of(op).is_some() {
            by_result.extend(op.defs().map(|vreg| (vreg, products.len())));
            for vreg in op.uses() {
                by_factor.entry(vreg).or_default().push(products.len());
            }
            products.push(Product {
                at: index,
                readers: Vec::new(),
                contracts: true,
                has_stale_factor: false,
            });
        }
    }
    // A product stays if it has reads beyond these readers: in another block, or twice in one sum that adds it to itself.
    products.retain(|product| {
        let reads = ops[product.at].dst.map_or(0, |vreg| totals.reads[vreg.0 as usize]);
        product.contracts && product.readers.len() == reads as usize
    });
    products
}

/// Returns the product that each sum takes: index of the sum, then index of the product and operand of the sum.
fn assign(products: &[Product]) -> HashMap<usize, (usize, usize)> {
    let mut taken: HashMap<usize, (usize, usize)> = HashMap::new();
    for (product, Product { readers, .. }) in products.iter().enumerate() {
        if let &[(sum, operand)] = readers.as_slice() {
            let taken = taken.entry(sum).or_insert((product, operand));
            if operand < taken.1 {
                *taken = (product, operand);
            }
        }
    }
    for (product, Product { readers, .. }) in products.iter().enumerate() {
        // All sums or none: a product that stays for one of them saves nothing.
        let all_free = readers.iter().all(|(sum, _)| !taken.contains_key(sum));
        if readers.len() > 1 && all_free {
            taken.extend(readers.iter().map(|&(sum, operand)| (sum, (product, operand))));
        }
    }
    taken
}

/// Returns the multiply-add for a product that can contract: it writes in all lanes and does not saturate.
fn multiply_add_of(product: &Op) -> Option<Opcode> {
    let OpKind::Machine(opcode) = product.kind else {
        return None;
    };
    let opcode = match opcode {
        Opcode::Fmul => Opcode::Ffma,
        Opcode::Dmul => Opcode::Dfma,
        Opcode::Hmul2 => Opcode::Hfma2,
        _ => return None,
    };
    (product.guard == VGuard::ALWAYS && !product.mods.sat).then_some(opcode)
}

/// Returns the operand of `sum` that is the product; `None` if `sum` is no sum that can take it.
fn operand_for(product: &Op, sum: &Op) -> Option<usize> {
    let OpKind::Machine(opcode) = sum.kind else {
        return None;
    };
    let multiply_add = match opcode {
        Opcode::Fadd => Opcode::Ffma,
        Opcode::Dadd => Opcode::Dfma,
        Opcode::Hadd2 => Opcode::Hfma2,
        _ => return None,
    };
    let same_numbers = product.mods.ty == sum.mods.ty && product.mods.ftz == sum.mods.ftz;
    // A multiply-add can negate the product, but not take its absolute value.
    let takes = |arg: Arg| arg.as_vreg() == product.dst && !arg.abs;
    let operand = sum.src[..2].iter().position(|&arg| takes(arg))?;
    (sum.open_rounding && same_numbers && multiply_add_of(product) == Some(multiply_add)).then_some(operand)
}

/// Returns the multiply-add of a product and the other operand of a sum. A negative product negates a factor.
fn fused(product: &Op, sum: &Op, operand: usize) -> Op {
    let [mut factor, other, ..] = product.src;
    if sum.src[operand].neg {
        factor = factor.negated();
    }
    let opcode = multiply_add_of(product).expect("the product contracts");
    Op {
        kind: OpKind::Machine(opcode),
        ..sum.src(&[factor, other, sum.src[1 - operand]])
    }
}
