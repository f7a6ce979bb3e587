//! Matrix products of a warp group (`wgmma`) in every type, and `wmma` tiles of 4-bit and 1-bit elements, element by element.
//!
//! Operands of a warp group are in shared memory, without a swizzle (PTX ISA, "Shared Memory Layout" of wgmma). A core matrix has eight
//! lines of 16 bytes. Core matrices are 128 bytes apart along k, and 256 along the other axis. The depth is 32 bytes in every type.

use super::Kernel;
use super::products::Element::{self, *};
use super::products::{Registers, list};

/// A product of 64 by 8.
#[derive(Clone, Copy)]
struct Group {
    types: [Element; 2],
    sums: Element,
    /// True if A is in registers.
    registers: bool,
    /// True if the product adds to its accumulators.
    counts: bool,
    sign: i64,
}

impl Group {
    /// Words of an operand of `lines` lines, in the layout of shared memory.
    fn operand(element: Element, lines: usize, at: impl Fn(usize, usize) -> i64) -> Vec<u32> {
        let mut words = vec![0u32; lines * 8];
        for line in 0..lines {
            for k in 0..256 / element.bits() {
                let bit = k * element.bits();
                let byte = line / 8 * 256 + bit / 128 * 128 + line % 8 * 16 + bit % 128 / 8;
                let shift = byte % 4 * 8 + bit % 8;
                words[byte / 4] |= (element.encode(at(line, k)) as u32) << shift;
            }
        }
        words
    }

    fn text(&self) -> String {
        let Group {
            types: [left, right],
            sums,
            ..
        } = *self;
        let depth = 256 / left.bits();
        let half = sums == F16;
        let n = if half { 2 } else { 4 };
        let a = if self.registers { list('a', 4) } else { "%da".to_owned() };
        let tail = match (left, sums) {
            (B1, _) => ", %p",
            (_, S32) => ", %p",
            (F16 | Bf16, _) if self.registers => ", %p, 1, SIGN, 0",
            (F16 | Bf16, _) => ", %p, 1, SIGN, 0, 0",
            _ => ", %p, 1, SIGN",
        };
        let tail = tail.replace("SIGN", &self.sign.to_string());
        let join = if left == B1 { ".and.popc" } else { "" };
        let d = list('d', n);
        let mut text = format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 a, .param .u64 b, .param .u64 f, .param .u64 c, .param .u64 d) {{\n\
             .reg .b32 %t, %x, %s, %d<4>, %a<4>;\n.reg .b64 %p0, %g, %da, %db;\n.reg .pred %p;\n.shared .align 1024 .b8 tile[4096];\n\
             mov.u32 %t, %tid.x;\nmov.u32 %s, tile;\ncvt.u64.u32 %da, %s;\nshr.u64 %da, %da, 4;\nor.b64 %da, %da, 0x1000080000;\nadd.u64 %db, %da, 128;\n\
             mad.lo.u32 %s, %t, 4, %s;\nsetp.{}.u32 %p, 0, 0;\n",
            if self.counts { "eq" } else { "ne" }
        );
        text += "ld.param.u64 %g, [a];\nmad.wide.u32 %g, %t, 4, %g;\n";
        for n in 0..4 {
            text += &format!(
                "ld.global.b32 %x, [%g+{}];\nst.shared.b32 [%s+{}], %x;\n",
                512 * n,
                512 * n
            );
        }
        text += "ld.param.u64 %g, [b];\nmad.wide.u32 %g, %t, 4, %g;\nld.global.b32 %x, [%g];\nst.shared.b32 [%s+2048], %x;\n";
        text += "ld.param.u64 %g, [f];\nmad.wide.u32 %g, %t, 16, %g;\nld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%g];\n";
        text += &format!(
            "ld.param.u64 %g, [c];\nmad.wide.u32 %g, %t, {}, %g;\nld.global.v{n}.b32 {d}, [%g];\n",
            4 * n
        );
        text += "fence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n";
        text += &format!(
            "wgmma.mma_async.sync.aligned.m64n8k{depth}.{}.{}.{}{join} {d}, {a}, %db{tail};\n",
            sums.name(),
            left.name(),
            right.name()
        );
        text += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
        text + &format!(
            "ld.param.u64 %g, [d];\nmad.wide.u32 %g, %t, {}, %g;\nst.global.v{n}.b32 [%g], {d};\nret;\n}}\n",
            4 * n
        )
    }

    fn holds(&self) {
        let Group {
            types: [left, right],
            sums,
            ..
        } = *self;
        let depth = 256 / left.bits();
        let a = Self::operand(left, 64, |row, k| left.value(0, row, k));
        let mut b = Self::operand(right, 8, |column, k| right.value(1, k, column));
        b.resize(128, 0);
        let each = if sums == F16 { 2 } else { 4 };
        let mut fragments = Registers::new(4);
        let mut c = Registers::new(each);
        let mut d = Registers::new(each);
        (fragments.words, c.words, d.words) = (vec![0; 512], vec![0; 128 * each], vec![0; 128 * each]);
        for thread in 0..128 {
            let (g, p, first) = (thread % 32 / 4, thread % 4, thread / 32 * 16);
            let per_register = 32 / left.bits();
            for (r, j) in (0..4).flat_map(|r| (0..per_register).map(move |j| (r, j))) {
                let (row, k) = (first + g + 8 * (r % 2), per_register * (p + 4 * (r / 2)) + j);
                fragments.put(left, thread, r * per_register + j, left.value(0, row, k));
            }
            for i in 0..4 {
                let (row, column) = (first + g + 8 * (i / 2), 2 * p + i % 2);
                let product: i64 = (0..depth)
                    .map(|k| left.value(0, row, k) * right.value(1, k, column))
                    .sum();
                let start = S32.value(2, row, column);
                c.put(sums, thread, i, start);
                let start = if self.counts { start } else { 0 };
                d.put(sums, thread, i, start + self.sign * product);
            }
        }
        let kernel = Kernel::of(&self.text())
            .sizes(1, 128)
            .input(&a)
            .input(&b)
            .input(&fragments.words);
        kernel.input(&c.words).output(&d.words).holds();
    }
}

#[test]
fn warp_group_products_of_every_type_are_exact() {
    let floats = [
        [F16, F16],
        [Bf16, Bf16],
        [Tf32, Tf32],
        [E4m3, E4m3],
        [E4m3, E5m2],
        [E5m2, E4m3],
        [E5m2, E5m2],
    ];
    let integers = [[S8, S8], [S8, U8], [U8, S8], [U8, U8], [B1, B1]];
    let usual = Group {
        types: [F16, F16],
        sums: F32,
        registers: false,
        counts: true,
        sign: 1,
    };
    for registers in [false, true] {
        for types in floats {
            Group {
                types,
                registers,
                ..usual
            }
            .holds();
        }
        for types in integers {
            Group {
                types,
                registers,
                sums: S32,
                ..usual
            }
            .holds();
        }
        for types in [[F16, F16], [E4m3, E5m2]] {
            Group {
                types,
                registers,
                sums: F16,
                ..usual
            }
            .holds();
            Group {
                types,
                registers,
                sums: F16,
                sign: -1,
                ..usual
            }
            .holds();
        }
        for types in [[F16, F16], [Bf16, Bf16], [Tf32, Tf32], [E4m3, E5m2]] {
            Group {
                types,
                registers,
                sign: -1,
                ..usual
            }
            .holds();
        }
        Group {
            registers,
            counts: false,
            ..usual
        }
        .holds();
    }
}

/// A fragment of eight lines, whose elements fill words, loaded with a stride, multiplied, and stored by rows or columns.
#[test]
fn wmma_tiles_of_4_bit_and_1_bit_elements_are_exact() {
    for (element, k, join) in [
        (S4, 32, ""),
        (U4, 32, ""),
        (B1, 128, ".xor.popc"),
        (B1, 128, ".and.popc"),
    ] {
        for layout in ["row", "col"] {
            let stride_words = 6;
            let line_words = |at: &dyn Fn(usize, usize) -> i64| -> Vec<u32> {
                let mut words = vec![0x9999_9999; 8 * stride_words];
                for line in 0..8 {
                    words[line * stride_words..][..4].fill(0);
                    for place in 0..k {
                        let bit = place * element.bits();
                        words[line * stride_words + bit / 32] |= (element.encode(at(line, place)) << (bit % 32)) as u32;
                    }
                }
                words
            };
            let a = line_words(&|row, at| element.value(0, row, at));
            let b = line_words(&|column, at| element.value(1, at, column));
            let one = |row: usize, at: usize, column: usize| {
                let (x, y) = (element.value(0, row, at), element.value(1, at, column));
                if join.starts_with(".xor") { x ^ y } else { x * y }
            };
            let cells = |at: &dyn Fn(usize, usize) -> i64| -> Vec<u32> {
                let places = (0..8).flat_map(|line| (0..8).map(move |place| (line, place)));
                places.map(|(line, place)| if layout == "row" { at(line, place) } else { at(place, line) } as u32).collect()
            };
            let c = cells(&|row, column| S32.value(2, row, column));
            let d =
                cells(&|row, column| S32.value(2, row, column) + (0..k).map(|at| one(row, at, column)).sum::<i64>());
            let ty = element.name();
            let stride = stride_words * 32 / element.bits();
            let text = format!(
                ".version 8.6\n.target sm_80\n.address_size 64\n.entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u32 n) {{\n\
                 .reg .b32 %a, %b, %c<2>, %n;\n.reg .b64 %p<4>;\nld.param.u64 %p0, [a];\nld.param.u64 %p1, [b];\nld.param.u64 %p2, [c];\n\
                 ld.param.u64 %p3, [d];\nld.param.u32 %n, [n];\n\
                 wmma.load.a.sync.aligned.row.m8n8k{k}.global.{ty} {{%a}}, [%p0], %n;\n\
                 wmma.load.b.sync.aligned.col.m8n8k{k}.global.{ty} {{%b}}, [%p1], {stride};\n\
                 wmma.load.c.sync.aligned.{layout}.m8n8k{k}.global.s32 {{%c0, %c1}}, [%p2];\n\
                 wmma.mma{join}.sync.aligned.row.col.m8n8k{k}.s32.{ty}.{ty}.s32 {{%c0, %c1}}, {{%a}}, {{%b}}, {{%c0, %c1}};\n\
                 wmma.store.d.sync.aligned.{layout}.m8n8k{k}.global.s32 [%p3], {{%c0, %c1}}, 8;\nret;\n}}\n"
            );
            let kernel = Kernel::of(&text).input(&a).input(&b).input(&c).output(&d);
            kernel.number(stride as u32).holds();
        }
    }
}

/// The lane with the number of a line gives its address. A line of a transposed matrix is a column.
#[test]
fn stmatrix_stores_matrices_line_by_line() {
    const LINE: u32 = 48;
    for (count, trans) in [(1, ""), (2, ""), (4, ""), (1, ".trans"), (2, ".trans"), (4, ".trans")] {
        let element = |matrix: usize, line: usize, place: usize| (matrix * 64 + line * 8 + place) as u32 * 257 + 1;
        let held = |lane: usize, matrix: usize, i: usize| {
            let (line, place) = (lane / 4, 2 * (lane % 4) + i);
            if trans.is_empty() {
                element(matrix, line, place)
            } else {
                element(matrix, place, line)
            }
        };
        let registers: Vec<u32> = (0..32)
            .flat_map(|lane| (0..count).map(move |matrix| (lane, matrix)))
            .map(|(lane, matrix)| held(lane, matrix, 0) | held(lane, matrix, 1) << 16)
            .collect();
        let mut memory = vec![0; 32 * LINE as usize / 4];
        for (matrix, line, place) in (0..count).flat_map(|m| (0..8).flat_map(move |l| (0..8).map(move |p| (m, l, p)))) {
            let at = ((matrix * 8 + line) * LINE as usize + 2 * place) / 4;
            memory[at] |= element(matrix, line, place) << (16 * (place % 2));
        }
        let v = list('v', count);
        let loads: String = (0..count)
            .map(|n| format!("ld.global.b32 %v{n}, [%p+{}];\n", 4 * n))
            .collect();
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 a, .param .u64 d) {{\n\
             .reg .b32 %l, %s, %x, %y, %v<4>;\n.reg .b64 %p, %q;\n.reg .pred %more;\n.shared .align 16 .b8 tile[{}];\n\
             mov.u32 %l, %laneid;\nld.param.u64 %p, [a];\nmad.wide.u32 %p, %l, {}, %p;\n{loads}\
             mov.u32 %s, tile;\nshl.b32 %x, %l, 2;\nadd.u32 %x, %s, %x;\nmov.u32 %y, 0;\n\
             clear:\nst.shared.b32 [%x], 0;\nadd.u32 %x, %x, 128;\nadd.u32 %y, %y, 128;\nsetp.lt.u32 %more, %y, {0};\n@%more bra clear;\n\
             bar.warp.sync -1;\nmad.lo.u32 %x, %l, {LINE}, %s;\nstmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%x], {v};\nbar.warp.sync -1;\n\
             ld.param.u64 %q, [d];\nmad.wide.u32 %q, %l, 4, %q;\nshl.b32 %x, %l, 2;\nadd.u32 %x, %s, %x;\nmov.u32 %y, 0;\n\
             out:\nld.shared.b32 %v0, [%x];\nst.global.b32 [%q], %v0;\nadd.u64 %q, %q, 128;\nadd.u32 %x, %x, 128;\nadd.u32 %y, %y, 128;\n\
             setp.lt.u32 %more, %y, {0};\n@%more bra out;\nret;\n}}\n",
            32 * LINE,
            4 * count
        );
        Kernel::of(&text).input(&registers).output(&memory).holds();
    }
}
