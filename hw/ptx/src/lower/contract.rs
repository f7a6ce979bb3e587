//! Contraction: a product and a sum without a rounding modifier become one multiply-add.
//!
//! `d = a * b; e = d + c` becomes `e = fma(a, b, c)`. The product is then not rounded, so the pass changes values. The PTX ISA permits it
//! where neither instruction names a rounding, and the vendor's assembler does it by default (`-fmad=true`). Without the
//! pass, as with `-fmad=false`, values differ from those of a GPU with its usual compiler.
//!
//! The rule was read from machine code of the vendor's assembler (ptxas 11.8). A product contracts only if it disappears: all its readers
//! are sums of its own region. Moves and `neg` between a product and a sum are no readers. Dead code is removed first, so it reads nothing.
//! A region is a basic block of the PTX text, without its unused labels. Calls, fences and some guarded instructions divide it
//! (`ends_region` in `select.rs`). If both operands of a sum are products, one of them contracts. A product with one reader is preferred.
//! If both have one reader, the first operand contracts.

use super::code::{Arg, Bits, BlockId, Code, Op, OpKind, VGuard, VReg, Wide};
use super::dce;
use super::graph::Graph;
use super::live::{GeneralRegs, live_after_blocks};
use std::collections::{HashMap, HashSet};
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;

/// Contracts the products of a kernel.
pub(super) fn run(code: &mut Code) {
    let has_product = code
        .ops()
        .any(|op| op.contraction.is_some() && multiply_add_of(op).is_some());
    if has_product && !code.keeps_products {
        // A reader without readers of its own must not keep a product.
        dce::run(code);
        let graph = Graph::of(code);
        let live = live_after_blocks::<GeneralRegs>(code, &graph);
        for blocks in chains(&graph) {
            let last = blocks[blocks.len() - 1];
            contract(code, &blocks, &live[last]);
        }
    }
    // Later passes compare operations, to find equal ones. The region has no meaning for them, so it must not make two differ.
    for op in code.blocks.iter_mut().flat_map(|block| &mut block.ops) {
        op.contraction = None;
    }
}

/// Splits the blocks into chains. The only successor of a block in a chain is the next one, which has no other predecessor.
fn chains(graph: &Graph) -> Vec<Vec<BlockId>> {
    let n = graph.successors.len();
    let next = |block: BlockId| match graph.successors[block][..] {
        // Block 0 is the entry: it is also reached from outside the graph.
        [next] if next != 0 => {
            let mut before = graph.predecessors[next]
                .iter()
                .filter(|&&before| graph.is_reachable(before));
            (before.next() == Some(&block) && before.next().is_none()).then_some(next)
        }
        _ => None,
    };
    let mut is_head = vec![true; n];
    for block in (0..n).filter(|&block| graph.is_reachable(block)) {
        if let Some(next) = next(block) {
            is_head[next] = false;
        }
    }
    let heads = (0..n).filter(|&block| is_head[block]);
    heads
        .map(|head| std::iter::successors(Some(head), |&block| next(block)).collect())
        .collect()
}

/// A product that may contract.
struct Product {
    /// Index of its operation in the chain.
    at: usize,
    readers: Vec<Reader>,
    /// Indices of the moves and negations of the product.
    copies: HashSet<usize>,
    /// Writes to its factors after the product: register, and index of the operation.
    overwrites: Vec<(VReg, usize)>,
    /// True while all readers are sums that can take the product.
    contracts: bool,
}

/// A sum that can take a product.
#[derive(Clone, Copy, PartialEq)]
struct Reader {
    /// Index of the sum in the chain.
    sum: usize,
    /// Operand of the sum that is the product.
    operand: usize,
    /// True if the sum adds the negated product.
    negated: bool,
}

/// A register that holds a word of a product, or of the negated product.
#[derive(Clone, Copy)]
struct Alias {
    product: usize,
    word: u8,
    negated: bool,
}

/// Contracts the products of a chain of blocks, and removes them. `live` are the registers read after the chain.
fn contract(code: &mut Code, blocks: &[BlockId], live: &[usize]) {
    let mut ops: Vec<(BlockId, Op)> = Vec::new();
    for &block in blocks {
        ops.extend(
            std::mem::take(&mut code.blocks[block].ops)
                .into_iter()
                .map(|op| (block, op)),
        );
    }
    let products = Chain::of(&ops).products(live);
    // Operations that replace another one. No sum is a product, so the order in which sums take their products does not matter.
    let mut replaced: HashMap<usize, Vec<Op>> = HashMap::new();
    for (product, readers) in assign(&products) {
        let at = product.at;
        let mut op = ops[at].1;
        let last_reader = readers.iter().map(|reader| reader.sum).max().unwrap_or(at);
        let is_stale = |vreg: VReg| {
            product
                .overwrites
                .iter()
                .any(|&(factor, by)| factor == vreg && by < last_reader)
        };
        let copies = keep_factors(code, &mut op, is_stale);
        replaced.insert(at, copies);
        replaced.extend(product.copies.iter().map(|&copy| (copy, Vec::new())));
        for reader in readers {
            let sum = fused(&op, &ops[reader.sum].1, *reader);
            replaced.insert(reader.sum, vec![sum]);
        }
    }
    for (index, (block, op)) in ops.into_iter().enumerate() {
        let out = &mut code.blocks[block].ops;
        match replaced.remove(&index) {
            Some(new) => out.extend(new),
            None => out.push(op),
        }
    }
}

/// Moves each factor that is overwritten before the last sum to a register of its own. Returns the moves.
fn keep_factors(code: &mut Code, product: &mut Op, is_stale: impl Fn(VReg) -> bool) -> Vec<Op> {
    let shape = product.shape();
    let mut moves = Vec::new();
    let mut kept: HashMap<VReg, VReg> = HashMap::new();
    for (arg, words) in product.src.iter_mut().zip(shape.src) {
        let Some(vreg) = arg
            .as_vreg()
            .filter(|vreg| (0..words).any(|n| is_stale(vreg.offset(n))))
        else {
            continue;
        };
        let to = *kept.entry(vreg).or_insert_with(|| {
            let to = code.new_group(words);
            let mut copy = match words {
                2 => Op::wide(Wide::Mov),
                _ => Op::machine(Opcode::Mov),
            };
            copy.line = product.line;
            moves.push(copy.dst(to).src(&[Arg::vreg(vreg)]));
            to
        });
        arg.bits = Bits::VReg(to);
    }
    moves
}

/// A scan of a chain in order, which tracks the registers that hold products.
struct Chain<'o> {
    ops: &'o [(BlockId, Op)],
    products: Vec<Product>,
    aliases: HashMap<VReg, Alias>,
    /// Products by factor.
    by_factor: HashMap<VReg, Vec<usize>>,
}

impl<'o> Chain<'o> {
    fn of(ops: &'o [(BlockId, Op)]) -> Self {
        Chain {
            ops,
            products: Vec::new(),
            aliases: HashMap::new(),
            by_factor: HashMap::new(),
        }
    }

    /// Returns the products with sums as their only readers, in order of their operations.
    fn products(mut self, live: &[usize]) -> Vec<Product> {
        for (index, (_, op)) in self.ops.iter().enumerate() {
            let copied = self.copied(op);
            match copied.first() {
                Some(first) => _ = self.products[first.product].copies.insert(index),
                None => self.read(index, op),
            }
            self.write(index, op, copied.first().map(|alias| alias.product));
            for (vreg, alias) in op.defs().zip(copied) {
                self.aliases.insert(vreg, alias);
            }
            if op.contraction.is_some() && multiply_add_of(op).is_some() {
                self.add(index, op);
            }
        }
        for &vreg in live {
            if let Some(alias) = self.aliases.get(&VReg(vreg as u32)) {
                self.products[alias.product].contracts = false;
            }
        }
        self.products
            .retain(|product| product.contracts && !product.readers.is_empty());
        self.products
    }

    /// Adds a product.
    fn add(&mut self, index: usize, op: &Op) {
        let product = self.products.len();
        for (word, vreg) in (0..).zip(op.defs()) {
            let negated = false;
            self.aliases.insert(vreg, Alias { product, word, negated });
        }
        for vreg in op.uses() {
            self.by_factor.entry(vreg).or_default().push(product);
        }
        self.products.push(Product {
            at: index,
            readers: Vec::new(),
            copies: HashSet::new(),
            overwrites: Vec::new(),
            contracts: true,
        });
    }

    /// Returns the aliases in the results of a move or a negation, if all of them are words of one product. Empty otherwise.
    fn copied(&self, op: &Op) -> Vec<Alias> {
        let is_move = op.is(Opcode::Mov) || op.kind == OpKind::Wide(Wide::Mov);
        let source = op.src[0];
        let (Some(vreg), true, true) = (source.as_vreg(), source.is_plain(), op.guard == VGuard::ALWAYS) else {
            return Vec::new();
        };
        let aliases = (0..op.shape().dst).map(|n| self.aliases.get(&vreg.offset(n)).copied());
        let aliases: Option<Vec<Alias>> = aliases.collect();
        let Some(mut aliases) = aliases.filter(|aliases| !aliases.is_empty()) else {
            return Vec::new();
        };
        let product = &self.ops[self.products[aliases[0].product].at].1;
        // `select` marks only negations among the logic operations.
        let is_negation = op.is(Opcode::Lop3) && op.contraction.is_some() && negates(product, op);
        if is_negation && aliases[0].word + 1 == product.shape().dst {
            aliases[0].negated ^= true;
        } else if !is_move {
            return Vec::new();
        }
        let is_one = aliases.iter().all(|alias| alias.product == aliases[0].product);
        if is_one { aliases } else { Vec::new() }
    }

    /// Adds an operation to the readers of the products that it reads.
    fn read(&mut self, index: usize, op: &Op) {
        let mut words: HashMap<usize, u8> = HashMap::new();
        for alias in op.uses().filter_map(|vreg| self.aliases.get(&vreg)) {
            *words.entry(alias.product).or_default() += 1;
        }
        for (number, words) in words {
            let op_of_product = &self.ops[self.products[number].at].1;
            // A sum that reads the product in both operands cannot take it.
            let is_read_once = words == op_of_product.shape().dst;
            let operand = (0..2).find(|&n| self.holds(op.src[n], number, words));
            let sum = operand.filter(|_| is_read_once && takes(op_of_product, op));
            let product = &mut self.products[number];
            match sum {
                // A multiply-add can negate the product, but not take its absolute value.
                Some(operand) if !op.src[operand].abs => {
                    let last = op.src[operand].as_vreg().map(|vreg| vreg.offset(words - 1));
                    let is_negated = last.is_some_and(|vreg| self.aliases[&vreg].negated);
                    product.readers.push(Reader {
                        sum: index,
                        operand,
                        negated: op.src[operand].neg ^ is_negated,
                    });
                }
                _ => product.contracts = false,
            }
        }
    }

    /// True if an operand is all words of a product, in order.
    fn holds(&self, arg: Arg, product: usize, words: u8) -> bool {
        let is_word = |vreg: VReg, n: u8| {
            let alias = self.aliases.get(&vreg.offset(n));
            alias.is_some_and(|alias| alias.product == product && alias.word == n)
        };
        arg.as_vreg().is_some_and(|vreg| (0..words).all(|n| is_word(vreg, n)))
    }

    /// Notes the registers that an operation writes. `copied` is the product that the operation copies.
    fn write(&mut self, index: usize, op: &Op, copied: Option<usize>) {
        for vreg in op.defs() {
            // A guarded write keeps the product in other lanes.
            if let Some(alias) = self.aliases.remove(&vreg)
                && op.guard != VGuard::ALWAYS
            {
                self.products[alias.product].contracts = false;
            }
            let Some(mut readers) = self.by_factor.remove(&vreg) else {
                continue;
            };
            // Only the first write counts. A copy disappears with its product.
            readers.retain(|&product| {
                if copied != Some(product) {
                    self.products[product].overwrites.push((vreg, index));
                }
                copied == Some(product)
            });
            if !readers.is_empty() {
                self.by_factor.insert(vreg, readers);
            }
        }
    }
}

/// Returns the products that contract, each with its sums.
fn assign(products: &[Product]) -> Vec<(&Product, &[Reader])> {
    let mut taken: HashMap<usize, (usize, usize)> = HashMap::new();
    for (number, product) in products.iter().enumerate() {
        if let &[Reader { sum, operand, .. }] = product.readers.as_slice() {
            let taken = taken.entry(sum).or_insert((number, operand));
            if operand < taken.1 {
                *taken = (number, operand);
            }
        }
    }
    for (number, product) in products.iter().enumerate() {
        // All sums or none: a product that stays for one of them saves nothing.
        let all_free = product.readers.iter().all(|reader| !taken.contains_key(&reader.sum));
        if product.readers.len() > 1 && all_free {
            taken.extend(
                product
                    .readers
                    .iter()
                    .map(|reader| (reader.sum, (number, reader.operand))),
            );
        }
    }
    let is_taken = |number: usize| {
        taken
            .get(&products[number].readers[0].sum)
            .is_some_and(|taken| taken.0 == number)
    };
    let taken = (0..products.len()).filter(|&number| is_taken(number));
    taken
        .map(|number| (&products[number], products[number].readers.as_slice()))
        .collect()
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

/// True if `sum` is an addition in the product's region, with its type and its `.ftz`.
fn takes(product: &Op, sum: &Op) -> bool {
    let OpKind::Machine(opcode) = sum.kind else {
        return false;
    };
    let multiply_add = match opcode {
        Opcode::Fadd => Opcode::Ffma,
        Opcode::Dadd => Opcode::Dfma,
        Opcode::Hadd2 => Opcode::Hfma2,
        _ => return false,
    };
    let same_numbers = product.mods.ty == sum.mods.ty && product.mods.ftz == sum.mods.ftz;
    same_numbers && sum.contraction == product.contraction && multiply_add_of(product) == Some(multiply_add)
}

/// True if a logic operation from `neg` changes the sign of the whole product.
fn negates(product: &Op, op: &Op) -> bool {
    let signs = op.src[1].known();
    match product.mods.ty {
        // The upper half is undefined.
        Ty::F16 | Ty::Bf16 => signs == Some(0x8000),
        Ty::F16x2 | Ty::Bf16x2 => signs == Some(0x8000_8000),
        _ => signs == Some(0x8000_0000),
    }
}

/// Returns the multiply-add of a product and the other operand of a sum. A negated product negates one factor.
fn fused(product: &Op, sum: &Op, reader: Reader) -> Op {
    let [mut factor, other, ..] = product.src;
    if reader.negated {
        factor = factor.negated();
    }
    let opcode = multiply_add_of(product).expect("the product contracts");
    Op {
        kind: OpKind::Machine(opcode),
        ..sum.src(&[factor, other, sum.src[1 - reader.operand]])
    }
}
