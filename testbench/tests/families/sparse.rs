//! `mma.sp` and `wgmma.mma_async.sp` in every shape and type, against products of whole matrices computed element by element.
//!
//! Half of each row of A is zero. The other half is in registers, as for a product of half the depth (see `products`). Its columns are
//! in the metadata (PTX ISA, "Sparse matrix storage"). The numbers are small and whole, so sums are exact in every type and any order.

use super::Kernel;
use super::products::Element::{self, *};
use super::products::{Registers, list};

/// Places of two of four elements, or of two of four pairs.
const PLACES: [[usize; 2]; 6] = [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]];

/// A sparse A of a type and depth.
#[derive(Clone, Copy)]
struct Sparse {
    element: Element,
    depth: usize,
}

impl Sparse {
    /// Columns of the stored elements of a chunk, and the four bits of metadata.
    fn chunk(self, row: usize, chunk: usize) -> (Vec<usize>, u32) {
        let choice = row * 5 + chunk * 3 + row * chunk;
        let [first, second] = PLACES[choice % 6];
        let index = (first | second << 2) as u32;
        match self.element.bits() {
            32 => (vec![2 * chunk + choice % 2], [0b0100, 0b1110][choice % 2]),
            4 => {
                let pairs = [first, second].into_iter().flat_map(|place| [2 * place, 2 * place + 1]);
                (pairs.map(|place| 8 * chunk + place).collect(), index)
            }
            _ => (vec![4 * chunk + first, 4 * chunk + second], index),
        }
    }

    fn chunks(self) -> usize {
        self.depth / 2 / self.chunk(0, 0).0.len()
    }

    /// Column of stored element `n` of a row.
    fn column(self, row: usize, n: usize) -> usize {
        let each = self.chunk(0, 0).0.len();
        self.chunk(row, n / each).0[n % each]
    }

    /// Lanes of a group of four that hold metadata.
    fn lanes(self) -> usize {
        self.chunks() / 4
    }

    /// The metadata register of each lane for 16 rows from `first` on.
    fn metadata(self, first: usize, selector: usize) -> Vec<u32> {
        let mut words = vec![0xdead_beef; 32];
        for group in 0..8 {
            words[4 * group + selector * self.lanes()..][..self.lanes()].fill(0);
        }
        for (row, chunk) in (0..16).flat_map(|row| (0..self.chunks()).map(move |chunk| (row, chunk))) {
            let (lane, bit) = match self.element.bits() {
                16.. => (chunk / 4, 16 * (row / 8) + 4 * (chunk % 4)),
                _ => (2 * (chunk / 8) + row / 8, 4 * (chunk % 8)),
            };
            words[4 * (row % 8) + selector * self.lanes() + lane] |= self.chunk(first + row, chunk).1 << bit;
        }
        words
    }

    /// Element (`row`, `column`) of the product with B, of elements `right`.
    fn product(self, right: Element, row: usize, column: usize) -> i64 {
        let stored = (0..self.depth / 2).map(|n| self.column(row, n));
        stored
            .map(|at| self.element.value(0, row, at) * right.value(1, at, column))
            .sum()
    }

    /// Elements of a register.
    fn per_register(self) -> usize {
        32 / self.element.bits()
    }

    /// Writes the stored rows from `first` on into the registers of a warp.
    fn put_rows(self, registers: &mut Registers, lane: usize, first: usize, n_registers: usize) {
        let each = self.per_register();
        for (r, j) in (0..n_registers).flat_map(|r| (0..each).map(move |j| (r, j))) {
            let row = first + lane % 32 / 4 + 8 * (r % 2);
            let column = self.column(row, each * (lane % 4 + 4 * (r / 2)) + j);
            registers.put(self.element, lane, r * each + j, self.element.value(0, row, column));
        }
    }
}

/// A kernel of one warp in which each lane loads its registers, multiplies and stores the result.
fn kernel(mnemonic: &str, counts: [usize; 3], selector: usize) -> String {
    let [a, b, c] = counts;
    let mut text = ".version 8.6\n.target sm_90\n.address_size 64\n\
        .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 e, .param .u64 d) {\n\
        .reg .b32 %l, %a<4>, %b<4>, %c<4>, %e<1>, %d<4>;\n.reg .b64 %p;\nmov.u32 %l, %laneid;\n"
        .to_owned();
    for (letter, n) in [('a', a), ('b', b), ('c', c), ('e', 1)] {
        text += &format!("ld.param.u64 %p, [{letter}];\nmad.wide.u32 %p, %l, {}, %p;\n", 4 * n);
        text.extend((0..n).map(|i| format!("ld.global.b32 %{letter}{i}, [%p+{}];\n", 4 * i)));
    }
    let [a, b, sums, d] = [list('a', a), list('b', b), list('c', c), list('d', c)];
    text += &format!("{mnemonic} {d}, {a}, {b}, {sums}, %e0, {selector};\n");
    text += &format!("ld.param.u64 %p, [d];\nmad.wide.u32 %p, %l, {}, %p;\n", 4 * c);
    text.extend((0..c).map(|i| format!("st.global.b32 [%p+{}], %d{i};\n", 4 * i)));
    text + "ret;\n}\n"
}

/// Runs `mma.sp` with each selector.
fn warp_product_holds(depth: usize, [left, right]: [Element; 2], sums: Element, suffix: &str) {
    let sparse = Sparse { element: left, depth };
    let each = sparse.per_register();
    let (n_a, n_b) = (depth / 4 / each, depth / 4 / each);
    let n_c = if sums == F16 { 2 } else { 4 };
    let (mut a, mut b) = (Registers::new(n_a), Registers::new(n_b));
    let [mut c, mut d] = [(); 2].map(|()| Registers::new(n_c));
    for lane in 0..32 {
        let (g, p) = (lane / 4, lane % 4);
        sparse.put_rows(&mut a, lane, 0, n_a);
        for (r, j) in (0..n_b).flat_map(|r| (0..each).map(move |j| (r, j))) {
            b.put(right, lane, r * each + j, right.value(1, each * (p + 4 * r) + j, g));
        }
        for i in 0..4 {
            let (row, column) = (g + 8 * (i / 2), 2 * p + i % 2);
            let start = S32.value(2, row, column);
            c.put(sums, lane, i, start);
            d.put(sums, lane, i, start + sparse.product(right, row, column));
        }
    }
    let mnemonic = format!(
        "mma.sp{suffix}.sync.aligned.m16n8k{depth}.row.col.{}.{}.{}.{}",
        sums.name(),
        left.name(),
        right.name(),
        sums.name()
    );
    for selector in 0..4 / sparse.lanes() {
        let kernel = Kernel::of(&kernel(&mnemonic, [n_a, n_b, n_c], selector));
        let kernel = kernel.input(&a.words).input(&b.words).input(&c.words);
        kernel.input(&sparse.metadata(0, selector)).output(&d.words).holds();
    }
}

const BYTES: [[Element; 2]; 4] = [[S8, S8], [U8, U8], [S8, U8], [U8, S8]];
const NIBBLES: [[Element; 2]; 4] = [[S4, S4], [U4, U4], [S4, U4], [U4, S4]];
const SMALL_FLOATS: [[Element; 2]; 4] = [[E4m3, E4m3], [E5m2, E5m2], [E4m3, E5m2], [E5m2, E4m3]];

#[test]
fn sparse_products_of_every_shape_are_exact() {
    for (depths, pairs, sums) in [
        ([16, 32], &[[F16, F16], [Bf16, Bf16]][..], F32),
        ([16, 32], &[[F16, F16]], F16),
        ([8, 16], &[[Tf32, Tf32]], F32),
        ([64, 64], &SMALL_FLOATS, F32),
        ([32, 64], &BYTES, S32),
        ([64, 128], &NIBBLES, S32),
    ] {
        for (depth, types) in depths
            .into_iter()
            .flat_map(|depth| pairs.iter().map(move |types| (depth, *types)))
        {
            warp_product_holds(depth, types, sums, "");
        }
    }
    warp_product_holds(32, [F16, F16], F32, "::ordered_metadata");
}

/// Words of an operand in shared memory without swizzle: core matrices of eight lines of 16 bytes, 128 bytes apart along the depth.
fn operand(element: Element, lines: usize, depth: usize, at: impl Fn(usize, usize) -> i64) -> Vec<u32> {
    let line_bytes = depth * element.bits() / 8;
    let mut words = vec![0u32; lines * line_bytes / 4];
    for (line, k) in (0..lines).flat_map(|line| (0..depth).map(move |k| (line, k))) {
        let bit = k * element.bits();
        let byte = line / 8 * 8 * line_bytes + bit / 128 * 128 + line % 8 * 16 + bit % 128 / 8;
        words[byte / 4] |= (element.encode(at(line, k)) as u32) << (byte % 4 * 8);
    }
    words
}

/// Runs `wgmma.mma_async.sp` of 64 by 8 with each selector. A row of A has 32 stored bytes.
fn group_product_holds([left, right]: [Element; 2], sums: Element, in_registers: bool) {
    let depth = 512 / left.bits();
    let sparse = Sparse { element: left, depth };
    let stored = operand(left, 64, depth / 2, |row, n| left.value(0, row, sparse.column(row, n)));
    let b = operand(right, 8, depth, |column, k| right.value(1, k, column));
    let n = if sums == F16 { 2 } else { 4 };
    let mut fragments = Registers::new(4);
    let [mut c, mut d] = [(); 2].map(|()| Registers::new(n));
    (fragments.words, c.words, d.words) = (vec![0; 512], vec![0; 128 * n], vec![0; 128 * n]);
    for thread in 0..128 {
        sparse.put_rows(&mut fragments, thread, thread / 32 * 16, 4);
        for i in 0..4 {
            let (row, column) = (
                thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2),
                2 * (thread % 4) + i % 2,
            );
            let start = S32.value(2, row, column);
            c.put(sums, thread, i, start);
            d.put(sums, thread, i, start + sparse.product(right, row, column));
        }
    }
    for selector in 0..4 / sparse.lanes() {
        let metadata: Vec<u32> = (0..4).flat_map(|warp| sparse.metadata(16 * warp, selector)).collect();
        let kernel = Kernel::of(&group_text([left, right], sums, in_registers, selector)).sizes(1, 128);
        let kernel = kernel.input(&stored).input(&b).input(&fragments.words);
        kernel.input(&metadata).input(&c.words).output(&d.words).holds();
    }
}

fn group_text([left, right]: [Element; 2], sums: Element, in_registers: bool, selector: usize) -> String {
    let n = if sums == F16 { 2 } else { 4 };
    let a = if in_registers { list('a', 4) } else { "%da".to_owned() };
    let tail = match (left, sums) {
        (_, S32) => "",
        (F16 | Bf16, _) if in_registers => ", 1, 1, 0",
        (F16 | Bf16, _) => ", 1, 1, 0, 0",
        _ => ", 1, 1",
    };
    let d = list('d', n);
    let mut text = ".version 8.6\n.target sm_90a\n.address_size 64\n\
        .entry k(.param .u64 a, .param .u64 b, .param .u64 f, .param .u64 e, .param .u64 c, .param .u64 d) {\n\
        .reg .b32 %t, %x, %s, %e, %d<4>, %a<4>;\n.reg .b64 %g, %da, %db;\n.reg .pred %p;\n.shared .align 1024 .b8 tile[4096];\n\
        mov.u32 %t, %tid.x;\nmov.u32 %s, tile;\ncvt.u64.u32 %da, %s;\nshr.u64 %da, %da, 4;\nor.b64 %da, %da, 0x1000080000;\n\
        add.u64 %db, %da, 128;\nmad.lo.u32 %s, %t, 4, %s;\nsetp.eq.u32 %p, 0, 0;\nld.param.u64 %g, [a];\nmad.wide.u32 %g, %t, 4, %g;\n"
        .to_owned();
    for n in 0..4 {
        text += &format!("ld.global.b32 %x, [%g+{0}];\nst.shared.b32 [%s+{0}], %x;\n", 512 * n);
    }
    text += "ld.param.u64 %g, [b];\nmad.wide.u32 %g, %t, 4, %g;\nld.global.b32 %x, [%g];\nst.shared.b32 [%s+2048], %x;\n\
        ld.param.u64 %g, [f];\nmad.wide.u32 %g, %t, 16, %g;\nld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%g];\n\
        ld.param.u64 %g, [e];\nmad.wide.u32 %g, %t, 4, %g;\nld.global.b32 %e, [%g];\n";
    text += &format!(
        "ld.param.u64 %g, [c];\nmad.wide.u32 %g, %t, {}, %g;\nld.global.v{n}.b32 {d}, [%g];\n\
         fence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n\
         wgmma.mma_async.sp.sync.aligned.m64n8k{}.{}.{}.{} {d}, {a}, %db, %e, {selector}, %p{tail};\n",
        4 * n,
        512 / left.bits(),
        sums.name(),
        left.name(),
        right.name()
    );
    text + &format!(
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n\
         ld.param.u64 %g, [d];\nmad.wide.u32 %g, %t, {}, %g;\nst.global.v{n}.b32 [%g], {d};\nret;\n}}\n",
        4 * n
    )
}

#[test]
fn sparse_products_of_a_warp_group_are_exact() {
    let floats = [[F16, F16], [Bf16, Bf16], [Tf32, Tf32]];
    for in_registers in [false, true] {
        for types in floats.into_iter().chain(SMALL_FLOATS) {
            group_product_holds(types, F32, in_registers);
        }
        for types in [[F16, F16], [E4m3, E5m2]] {
            group_product_holds(types, F16, in_registers);
        }
        for types in BYTES {
            group_product_holds(types, S32, in_registers);
        }
    }
}
