//! `wmma` in every shape, type and layout of the operands, against products computed element by element.
//!
//! The numbers are small integers, so sums are exact in every type and in any order.

use half::{bf16, f16};

use super::{Kernel, one_word_each};

/// The type of a matrix's elements.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    S8,
    U8,
    S32,
}

use Element::*;

impl Element {
    fn bytes(self, value: i32) -> Vec<u8> {
        match self {
            F16 => f16::from_f32(value as f32).to_le_bytes().to_vec(),
            Bf16 => bf16::from_f32(value as f32).to_le_bytes().to_vec(),
            Tf32 | F32 => (value as f32).to_le_bytes().to_vec(),
            F64 => f64::from(value).to_le_bytes().to_vec(),
            S8 | U8 => vec![value as u8],
            S32 => value.to_le_bytes().to_vec(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            F16 => "f16",
            Bf16 => "bf16",
            Tf32 => "tf32",
            F32 => "f32",
            F64 => "f64",
            S8 => "s8",
            U8 => "u8",
            S32 => "s32",
        }
    }
}

/// Rows, columns, depth.
type Shape = [usize; 3];

/// A value that depends on its position, so that a swap is noticed. Not negative for an unsigned type.
fn value(element: Element, matrix: usize, row: usize, column: usize) -> i32 {
    let hash = (row * 7 + column * 13 + matrix * 5) % 11;
    if element == U8 { hash as i32 } else { hash as i32 - 5 }
}

/// The words of a matrix in memory, in lines of `stride` elements. Elements between the lines are 99.
fn words(element: Element, lines: usize, stride: usize, at: impl Fn(usize, usize) -> Option<i32>) -> Vec<u32> {
    let bytes: Vec<u8> = (0..lines)
        .flat_map(|line| (0..stride).map(move |place| (line, place)))
        .flat_map(|(line, place)| element.bytes(at(line, place).unwrap_or(99)))
        .collect();
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&word| u32::from_le_bytes(word))
        .collect()
}

struct Case {
    shape: Shape,
    factors: Element,
    sums: Element,
    /// True for A, B and the sums in row-major order.
    rows: [bool; 3],
    /// Registers of the fragments.
    registers: [usize; 3],
}

impl Case {
    fn text(&self) -> String {
        let [m, n, k] = self.shape;
        let layout = |n: usize| if self.rows[n] { "row" } else { "col" };
        let (shape, factor, sum) = (format!("m{m}n{n}k{k}"), self.factors.name(), self.sums.name());
        let list = |letter: char, n: usize| {
            let names: Vec<String> = (0..self.registers[n]).map(|i| format!("%{letter}{i}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let types = match (self.factors, self.sums) {
            (F16, sum) => format!("{0}.{0}", sum.name()),
            _ => format!("{sum}.{factor}.{factor}.{sum}"),
        };
        let [a, b, c] = [list('a', 0), list('b', 1), list('c', 2)];
        let register = if self.factors == F64 { "b64" } else { "b32" };
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n\
             .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u32 stride) {{\n\
             .reg .{register} %a<8>, %b<8>, %c<8>;\n.reg .b32 %s;\n.reg .b64 %p<4>;\n.shared .align 32 .b8 tile[2048];\n\
             ld.param.u64 %p0, [a];\nld.param.u64 %p1, [b];\nld.param.u64 %p2, [c];\nld.param.u64 %p3, [d];\nld.param.u32 %s, [stride];\n\
             wmma.load.a.sync.aligned.{}.{shape}.global.{factor} {a}, [%p0], %s;\n\
             wmma.load.b.sync.aligned.{}.{shape}.{factor} {b}, [%p1], %s;\n\
             wmma.load.c.sync.aligned.{2}.{shape}.global.{sum} {c}, [%p2], %s;\n\
             wmma.mma.sync.aligned.{0}.{1}.{shape}.{types} {c}, {a}, {b}, {c};\n\
             wmma.store.d.sync.aligned.{2}.{shape}.shared.{sum} [tile], {c};\nbar.sync 0;\n\
             wmma.load.c.sync.aligned.{2}.{shape}.shared.{sum} {c}, [tile];\n\
             wmma.store.d.sync.aligned.{2}.{shape}.global.{sum} [%p3], {c}, %s;\nret;\n}}\n",
            layout(0),
            layout(1),
            layout(2)
        )
    }

    fn holds(&self) {
        self.holds_as(&self.text());
    }

    /// Runs the kernel as `text`, another spelling of [`Case::text`].
    fn holds_as(&self, text: &str) {
        const STRIDE: usize = 48;
        let [m, n, k] = self.shape;
        let memory = |matrix: usize, element: Element, sizes: [usize; 2], at: &dyn Fn(usize, usize) -> i32| {
            let by_row = self.rows[matrix];
            let lines = if by_row { sizes[0] } else { sizes[1] };
            words(element, lines, STRIDE, |line, place| {
                let (row, column) = if by_row { (line, place) } else { (place, line) };
                (row < sizes[0] && column < sizes[1]).then(|| at(row, column))
            })
        };
        let (factors, sums) = (self.factors, self.sums);
        let product = |row: usize, column: usize| {
            let one = |depth| value(factors, 0, row, depth) * value(factors, 1, depth, column);
            (0..k).map(one).sum::<i32>() + value(sums, 2, row, column)
        };
        let a = memory(0, factors, [m, k], &|row, column| value(factors, 0, row, column));
        let b = memory(1, factors, [k, n], &|row, column| value(factors, 1, row, column));
        let c = memory(2, sums, [m, n], &|row, column| value(sums, 2, row, column));
        let d = memory(2, sums, [m, n], &product);
        let kernel = Kernel::of(text).input(&a).input(&b).input(&c);
        kernel.changed(&c, &d).number(STRIDE as u32).holds();
    }
}

#[test]
fn products_of_every_shape_and_layout_are_exact() {
    let shapes: [(Shape, [usize; 2]); 3] = [([16, 16, 16], [2, 2]), ([32, 8, 16], [4, 1]), ([8, 32, 16], [1, 4])];
    for (index, (shape, bytes)) in shapes.into_iter().enumerate() {
        let case = |factors, sums, rows, registers| Case {
            shape,
            factors,
            sums,
            rows,
            registers,
        };
        for layout in 0..8 {
            let rows = [layout & 1 == 0, layout & 2 == 0, layout & 4 == 0];
            case(F16, F32, rows, [8, 8, 8]).holds();
            case(F16, F16, rows, [8, 8, 4]).holds();
            case(Bf16, F32, rows, [2 * bytes[0], 2 * bytes[1], 8]).holds();
            let integer = if (layout + index) % 2 == 0 { S8 } else { U8 };
            case(integer, S32, rows, [bytes[0], bytes[1], 8]).holds();
        }
    }
    for rows in [[true, false, true], [false, true, false]] {
        let (shape, registers) = ([16, 16, 8], [4, 4, 8]);
        let (factors, sums) = (Tf32, F32);
        Case {
            shape,
            factors,
            sums,
            rows,
            registers,
        }
        .holds();
    }
}

/// nvcc writes the rounding behind the types, the PTX ISA before them. Both mean the only rounding of the product.
#[test]
fn products_of_doubles_take_their_rounding_before_or_behind_the_types() {
    const TYPES: &str = ".f64.f64.f64.f64 ";
    for layout in 0..8 {
        let case = Case {
            shape: [8, 8, 4],
            factors: F64,
            sums: F64,
            rows: [layout & 1 == 0, layout & 2 == 0, layout & 4 == 0],
            registers: [1, 1, 2],
        };
        for types in [TYPES, ".rn.f64.f64.f64.f64 ", ".f64.f64.f64.f64.rn "] {
            let text = case.text();
            assert!(text.contains(TYPES));
            case.holds_as(&text.replace(TYPES, types));
        }
    }
}

/// CUDA C++ Programming Guide, `mma_sync` with `satf`: an infinity becomes the largest finite number of the result, a NaN becomes +0.
#[test]
fn saturated_products_of_halves_are_finite() {
    let cases = [
        ("f32.f32", f32::INFINITY.to_bits(), f32::MAX.to_bits()),
        ("f32.f32", f32::NEG_INFINITY.to_bits(), f32::MIN.to_bits()),
        ("f32.f32", f32::NAN.to_bits(), 0),
        ("f32.f16", 0x7c00_7c00, f32::MAX.to_bits()),
        // Pairs of halves: 0x7c00 is an infinity, and 0x7bff is 65504.
        ("f16.f16", 0x7c00_fc00, 0x7bff_fbff),
        ("f16.f16", 0x7fff_7fff, 0),
        // In range of f32, but not of f16.
        ("f16.f32", 1e30f32.to_bits(), 0x7bff_7bff),
        ("f16.f32", (-1e30f32).to_bits(), 0xfbff_fbff),
        ("f16.f32", f32::INFINITY.to_bits(), 0x7bff_7bff),
    ];
    for (types, c, sum) in cases {
        let registers = |ty: &str| if ty == "f16" { 4 } else { 8 };
        let (of_result, of_sum) = types.split_once('.').expect("two types");
        let repeat = |register: &str, n: usize| vec![register; n].join(", ");
        let results: Vec<String> = (0..registers(of_result)).map(|n| format!("%a{n}")).collect();
        let body = format!(
            "mov.b32 %a8, 0;\nmov.b32 %a9, {c:#x};\n\
             wmma.mma.sync.aligned.row.col.m16n16k16.{types}.satfinite {{{}}}, {{{zeros}}}, {{{zeros}}}, {{{}}};\n\
             mov.b32 %r, %a3;",
            results.join(", "),
            repeat("%a9", registers(of_sum)),
            zeros = repeat("%a8", 8)
        );
        // PTX ISA 6.5 removed the modifier from products of floats.
        let text = one_word_each("sm_70", &body).replace(".version 8.6", ".version 6.4");
        Kernel::of(&text).output(&[sum; 32]).holds();
    }
}
