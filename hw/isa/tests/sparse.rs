//! Sparse products against dense ones with the zeros written out, bit for bit.
//!
//! Fragments follow one formula for all shapes (PTX ISA, "Matrix fragments for mma.m..."). Group g = lane / 4, position p = lane % 4, and a
//! register has e elements. Register r of A holds row g, or g + 8 where r is odd, from column e (p + 4 (r / 2)) on. Register r of B holds
//! column g from row e (p + 4 r) on.

use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::{Inst, MmaShape, Ty};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Decoded;
use warpwave_isa::shape::Sparsity;

/// The indices of two of four places, and the places (PTX ISA: the meaningful values of indices).
const PLACES: [(u32, [usize; 2]); 6] = [
    (0b0100, [0, 1]),
    (0b1000, [0, 2]),
    (0b1001, [1, 2]),
    (0b1100, [0, 3]),
    (0b1101, [1, 3]),
    (0b1110, [2, 3]),
];

fn hash(salt: usize, x: usize, y: usize) -> usize {
    let mixed = (x * 0x9e37 + y * 0x79b9 + salt * 0x85eb) as u64;
    (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as usize
}

/// A sparse product: the shape of its stored half, and the numbers that follow.
struct Sparse {
    shape: MmaShape,
    /// Stored elements of a row. The product is twice as deep.
    stored: usize,
    /// Elements of a register.
    each: usize,
    sparsity: Sparsity,
}

impl Sparse {
    fn of(shape: MmaShape) -> Option<Sparse> {
        let stored = shape.multiply_adds() as usize / (16 * 8);
        let words = usize::from(shape.words().0);
        Some(Sparse {
            shape,
            stored,
            each: stored / (4 * words / 2),
            sparsity: shape.sparsity()?,
        })
    }

    fn is_integer(&self) -> bool {
        let name = format!("{:?}", self.shape);
        name.contains('S') || name.contains('U')
    }

    /// Bits of a finite element that is not zero. A float is a power of two near 1, so every sum is exact, in any order.
    fn element(&self, salt: usize, x: usize, y: usize) -> u32 {
        let bits = hash(salt, x, y) as u32;
        match (self.each, format!("{:?}", self.shape)) {
            (2, name) if name.ends_with("Bf16") => bits & 0x8000 | (125 + bits % 5) << 7,
            (2, _) => bits & 0x8000 | (13 + bits % 4) << 10,
            (1, _) => bits & 0x8000_0000 | (125 + bits % 5) << 23,
            // 1 and 2 as e4m3, 0.5 and 2 as e5m2.
            (4, _) if !self.is_integer() => bits & 0x80 | if bits & 0x100 == 0 { 0x38 } else { 0x40 },
            (4, _) => bits & 0xff | 1,
            _ => bits & 15 | 1,
        }
    }

    /// The bits of a chunk of a row, and the columns of its stored elements.
    fn chunk(&self, row: usize, chunk: usize) -> (u32, Vec<usize>) {
        let choice = hash(7, row, chunk);
        let (index, places) = PLACES[choice % 6];
        match self.sparsity {
            Sparsity::OneOfTwo => ([0b0100, 0b1110][choice % 2], vec![2 * chunk + choice % 2]),
            Sparsity::TwoOfFour => (index, places.map(|place| 4 * chunk + place).to_vec()),
            Sparsity::TwoPairsOfFour => {
                let pairs = places.into_iter().flat_map(|place| [2 * place, 2 * place + 1]);
                (index, pairs.map(|place| 8 * chunk + place).collect())
            }
        }
    }

    fn chunks(&self) -> usize {
        self.stored / self.chunk(0, 0).1.len()
    }

    /// The column of each stored element of a row.
    fn columns(&self, row: usize) -> Vec<usize> {
        (0..self.chunks()).flat_map(|chunk| self.chunk(row, chunk).1).collect()
    }

    /// Row of the stored A.
    fn row(&self, row: usize) -> Vec<u32> {
        (0..self.stored).map(|n| self.element(1, row, n)).collect()
    }

    /// Row of the whole A, with the zeros.
    fn whole_row(&self, row: usize) -> Vec<u32> {
        let mut whole = vec![0; 2 * self.stored];
        for (column, element) in self.columns(row).into_iter().zip(self.row(row)) {
            whole[column] = element;
        }
        whole
    }

    /// Words of A from the columns `first` on.
    fn a(&self, first: usize, row_of: impl Fn(usize) -> Vec<u32>) -> Vec<Lanes> {
        let bits = 32 / self.each;
        let word = |r: usize| {
            Lanes(std::array::from_fn(|lane| {
                let row = row_of(lane / 4 + 8 * (r % 2));
                let at = first + self.each * (lane % 4 + 4 * (r / 2));
                (0..self.each).fold(0, |word, j| word | row[at + j] << ((bits * j) % 32))
            }))
        };
        (0..usize::from(self.shape.words().0)).map(word).collect()
    }

    /// All words of B.
    fn b(&self) -> Vec<Lanes> {
        let bits = 32 / self.each;
        let word = |r: usize| {
            Lanes(std::array::from_fn(|lane| {
                let at = self.each * (lane % 4 + 4 * r);
                (0..self.each).fold(0, |word, j| {
                    word | self.element(2, at + j, lane / 4) << ((bits * j) % 32)
                })
            }))
        };
        (0..2 * usize::from(self.shape.words().1)).map(word).collect()
    }

    /// The metadata for a selector. Lanes that do not contribute hold other bits.
    fn metadata(&self, selector: usize) -> Lanes {
        let mut words = [0x5a5a_a5a5; 32];
        let lanes = usize::from(self.shape.metadata_lanes());
        for group in 0..8 {
            words[4 * group + selector * lanes..][..lanes].fill(0);
        }
        for (row, chunk) in (0..16).flat_map(|row| (0..self.chunks()).map(move |chunk| (row, chunk))) {
            let (lane, bit) = match self.each {
                1 | 2 => (chunk / 4, 16 * (row / 8) + 4 * (chunk % 4)),
                _ => (2 * (chunk / 8) + row / 8, 4 * (chunk % 8)),
            };
            words[4 * (row % 8) + selector * lanes + lane] |= self.chunk(row, chunk).0 << bit;
        }
        Lanes(words)
    }

    fn accumulators(&self, ty: Ty) -> Vec<Lanes> {
        let bits = |lane: usize, n: usize| match ty {
            Ty::S32 => hash(3, lane, n) as u32,
            Ty::F16 => 0x3800_3c00 + (hash(3, lane, n) as u32 & 0x03ff_03ff),
            _ => ((hash(3, lane, n) % 64) as f32 - 32.0).to_bits(),
        };
        let words = usize::from(self.shape.accumulator_words(ty));
        (0..words)
            .map(|n| Lanes(std::array::from_fn(|lane| bits(lane, n))))
            .collect()
    }
}

fn run(op: Opcode, shape: MmaShape, ty: Ty, selector: usize, sources: &[&[Lanes]]) -> Vec<Lanes> {
    let mut inst = Inst::new(op);
    (inst.mods.mma, inst.mods.ty, inst.mods.lut) = (shape, ty, selector as u8);
    let decoded = Decoded::of(&inst);
    let mut operands = Operands::default();
    let words = sources.concat();
    assert_eq!(words.len(), decoded.source_words.into());
    operands.words[..words.len()].copy_from_slice(&words);
    let mut results = Results::default();
    execute(&inst, &decoded, LaneMask::ALL, &operands, &mut results);
    results.words[..decoded.result_words.into()].to_vec()
}

/// Two dense products, one after the other, are one of twice the depth.
#[test]
fn sparse_product_is_the_dense_one_with_the_zeros_written_out() {
    let mut n_shapes = 0;
    for sparse in MmaShape::ALL.iter().filter_map(|shape| Sparse::of(*shape)) {
        let shape = sparse.shape;
        let ty = if sparse.is_integer() { Ty::S32 } else { Ty::F32 };
        let c = sparse.accumulators(ty);
        let b = sparse.b();
        let (first, second) = b.split_at(b.len() / 2);
        let whole = |from: usize| sparse.a(from, |row| sparse.whole_row(row));
        let half = run(Opcode::Mma, shape, ty, 0, &[&whole(0), first, &c]);
        let expected = run(Opcode::Mma, shape, ty, 0, &[&whole(sparse.stored), second, &half]);
        let stored = sparse.a(0, |row| sparse.row(row));
        for selector in 0..usize::from(4 / shape.metadata_lanes()) {
            let metadata = [sparse.metadata(selector)];
            let got = run(Opcode::MmaSp, shape, ty, selector, &[&stored, &b, &c, &metadata]);
            assert_eq!(got, expected, "{shape:?}, selector {selector}");
        }
        n_shapes += 1;
    }
    // f16, bf16 and tf32 in two depths, 8-bit floats in one, 8-bit and 4-bit integers in two, with four pairs of types each.
    assert_eq!(n_shapes, 3 * 2 + 4 + 2 * 2 * 4);
}

/// A product of depth 16 with half accumulators, against one dense product.
#[test]
fn half_accumulators_are_rounded_once() {
    let sparse = Sparse::of(MmaShape::M16n8k8F16).unwrap();
    let (b, c) = (sparse.b(), sparse.accumulators(Ty::F16));
    let mut dense = sparse.a(0, |row| sparse.whole_row(row));
    dense.extend(sparse.a(8, |row| sparse.whole_row(row)));
    let expected = run(Opcode::Mma, MmaShape::M16n8k16F16, Ty::F16, 0, &[&dense, &b, &c]);
    let stored = sparse.a(0, |row| sparse.row(row));
    let got = run(
        Opcode::MmaSp,
        sparse.shape,
        Ty::F16,
        2,
        &[&stored, &b, &c, &[sparse.metadata(2)]],
    );
    assert_eq!(got, expected);
}

/// By hand: row 0 has 1 in column 1 and 2 in column 3.
/// So column n of the result is b(1, n) + 2 b(3, n) = 21 n.
#[test]
fn row_written_by_hand_takes_the_named_rows_of_b() {
    let half = |value: usize| u32::from(half::f16::from_f32(value as f32).to_bits());
    let mut a = [Lanes::ZERO; 2];
    a[0].0[0] = half(1) | half(2) << 16;
    let mut b = [Lanes::ZERO; 2];
    for column in 0..8 {
        // Rows 0 and 1, and rows 2 and 3. Rows 0 and 2 are infinite: they meet zeros of A.
        b[0].0[4 * column] = 0x7c00 | half(column) << 16;
        b[0].0[4 * column + 1] = 0x7c00 | half(10 * column) << 16;
    }
    let mut metadata = [Lanes::splat(0x4444_4444)];
    metadata[0].0[0] = 0x4444_444d;
    let product = |metadata: &[Lanes]| {
        let c = [Lanes::ZERO; 4];
        run(Opcode::MmaSp, MmaShape::M16n8k8F16, Ty::F32, 0, &[&a, &b, &c, metadata])
    };
    let row = |words: &[Lanes]| -> Vec<f32> {
        let pairs = (0..4).flat_map(|p| [words[0].0[p], words[1].0[p]]);
        pairs.map(f32::from_bits).collect()
    };
    let expected: Vec<f32> = (0..8).map(|n| (21 * n) as f32).collect();
    assert_eq!(row(&product(&metadata)), expected);
    // The same columns the other way round: 1 meets row 3 and 2 meets row 1, so 10 n + 2 n.
    metadata[0].0[0] = 0x4444_4447;
    let turned: Vec<f32> = (0..8).map(|n| (12 * n) as f32).collect();
    assert_eq!(row(&product(&metadata)), turned);
}

/// Metadata in memory, as libraries order it for a load of a word per lane: rows r, r + 8 and so on become neighbours, and then the
/// blocks of two by two units are transposed. 16-bit elements have units of 16 bits for 32 rows, 8-bit elements of 32 bits for 16 rows.
#[test]
fn metadata_layout_of_libraries_is_the_layout_of_the_lanes() {
    for (shape, rows, unit_chunks) in [(MmaShape::M16n8k16F16, 32, 4), (MmaShape::M16n8k32S8, 16, 8)] {
        let sparse = Sparse::of(shape).unwrap();
        let unit = |row: usize, block: usize| {
            let chunks = (0..unit_chunks).map(|n| sparse.chunk(row % 16, block * unit_chunks + n).0 << (4 * n));
            chunks.fold(0, |unit, bits| unit | bits)
        };
        let mut ordered = vec![[0; 2]; rows];
        for (row, block) in (0..rows).flat_map(|row| [(row, 0), (row, 1)]) {
            let to = row % 8 * (rows / 8) + row / 8;
            let (to, at) = match (to % 2, block) {
                (0, 1) => (to + 1, 0),
                (1, 0) => (to - 1, 1),
                unchanged => (to, unchanged.1),
            };
            ordered[to][at] = unit(row, block);
        }
        let words: Vec<u32> = match rows {
            32 => ordered.iter().map(|pair| pair[0] | pair[1] << 16).collect(),
            _ => ordered.concat(),
        };
        let lanes = usize::from(shape.metadata_lanes());
        for selector in 0..4 / lanes {
            let metadata = sparse.metadata(selector);
            for lane in (0..32).filter(|lane| lane % 4 / lanes == selector) {
                assert_eq!(metadata.0[lane], words[lane], "{shape:?}, lane {lane}");
            }
        }
    }
}
