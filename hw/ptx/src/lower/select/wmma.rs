//! Tile products (`wmma`): fragments in the layout of `mma.sync`, loaded and stored by element or by run.
//!
//! PTX leaves the fragment layout open. Here a fragment consists of tiles that the MMA instruction takes directly: 16 rows for
//! the left factor, and 8 columns for the right one. Let group g be lane / 4 and position p be lane % 4. A lane holds elements of
//! line g (and g + 8) of a tile. It holds `each` consecutive elements from position `each` * p. A product of 8 rows and 32 columns
//! is computed transposed.

mod memory;

use super::convert::rounding;
use super::integer::parts;
use super::tensor::{ROUNDINGS, narrowed};
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, Wide};
use warpwave_isa::inst::{MmaShape, Ty};
use warpwave_isa::opcode::Opcode;

const KNOWN: &[&str] = &[
    ".load",
    ".store",
    ".mma",
    ".a",
    ".b",
    ".c",
    ".d",
    ".sync",
    ".aligned",
    ".row",
    ".col",
    ".satfinite",
    ".global",
    ".shared",
    ".shared::cta",
    ".m16n16k16",
    ".m32n8k16",
    ".m8n32k16",
    ".m16n16k8",
    ".m8n8k4",
    ".m8n8k32",
    ".m8n8k128",
    ".s4",
    ".u4",
    ".b1",
];

/// Tile size of an instruction: rows, columns and depth.
#[derive(Clone, Copy)]
struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

impl Shape {
    fn of(form: &Form<'_, '_>) -> Option<Shape> {
        let known = [
            (".m16n16k16", 16, 16, 16),
            (".m32n8k16", 32, 8, 16),
            (".m8n32k16", 8, 32, 16),
            (".m16n16k8", 16, 16, 8),
            (".m8n8k4", 8, 8, 4),
            // The depth is in 32-bit words.
            (".m8n8k32", 8, 8, 4),
            (".m8n8k128", 8, 8, 4),
        ];
        let found = known.into_iter().find(|(name, ..)| form.has(name))?;
        Some(Shape {
            m: found.1,
            n: found.2,
            k: found.3,
        })
    }

    /// True if the product is transposed, so that left tiles have 16 rows.
    fn is_transposed(self) -> bool {
        // MMA has tiles of 16 rows and 8 columns, and this product has 8 rows.
        self.m == 8 && self.n == 32
    }

    /// Returns the number of lines of the left and the right factor.
    fn lines(self) -> (u32, u32) {
        if self.is_transposed() {
            (self.n, self.m)
        } else {
            (self.m, self.n)
        }
    }
}

/// Role of a matrix in the product.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Left,
    Right,
    Sum,
}

/// Consecutive elements of a fragment in one line.
struct Run {
    /// First register.
    register: u8,
    /// Line and position of the first element, relative to the lane's own.
    line: u32,
    position: u32,
}

/// A fragment: the elements that a lane's registers hold.
struct Fragment {
    ty: Type,
    runs: Vec<Run>,
    /// Elements of a run, and step of a lane along a line.
    each: u32,
}

impl Fragment {
    /// Returns the fragment of a matrix, with its runs in the order of the registers.
    fn of(role: Role, ty: Type, shape: Shape) -> Fragment {
        let (left, right) = shape.lines();
        let per_word = (32 / ty.bits()).max(1);
        let mut runs = Vec::new();
        let mut run = |register: usize, line, position| {
            runs.push(Run {
                register: register as u8,
                line,
                position,
            });
        };
        // Each word of a factor spans four lanes. A run of the sum is two elements, in one or two registers.
        let depth = (0..shape.k).step_by(4 * per_word as usize);
        let halves = if left == 8 { 1 } else { 2 };
        match role {
            Role::Left => {
                let tiles = (0..left).step_by(8 * halves as usize);
                let places = tiles.flat_map(|tile| depth.clone().map(move |position| (tile, position)));
                // The order of MMA: rows g and g + 8, then the next positions.
                let all = places.flat_map(|(tile, position)| (0..halves).map(move |half| (tile + 8 * half, position)));
                all.enumerate().for_each(|(n, (line, position))| run(n, line, position));
            }
            Role::Right => {
                let all = (0..right)
                    .step_by(8)
                    .flat_map(|line| depth.clone().map(move |position| (line, position)));
                all.enumerate().for_each(|(n, (line, position))| run(n, line, position));
            }
            Role::Sum => {
                // A run of two halves shares one register.
                let registers = 2 / per_word as usize;
                let tiles = (0..left).step_by(8 * halves as usize);
                let places = tiles.flat_map(|tile| (0..right).step_by(8).map(move |position| (tile, position)));
                let all = places.flat_map(|(tile, position)| (0..halves).map(move |half| (tile + 8 * half, position)));
                all.enumerate()
                    .for_each(|(n, (line, position))| run(n * registers, line, position));
            }
        }
        let each = if role == Role::Sum { 2 } else { per_word };
        Fragment { ty, runs, each }
    }

    fn bytes(&self) -> u32 {
        self.ty.bytes()
    }

    /// Returns the number of registers of a run.
    fn registers(&self) -> u8 {
        // Elements narrower than a word share a register.
        (self.each * self.bytes() / self.bytes().max(4)) as u8
    }

    /// Returns the number of 32-bit words of a register.
    fn words(&self) -> u8 {
        self.bytes().div_ceil(4) as u8
    }

    fn register_type(&self) -> Type {
        if self.words() == 2 { Type::B64 } else { Type::B32 }
    }
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn wmma(&mut self, form: &Form<'t, 'a>) -> Selected {
        let is_rounded = form.has(".mma") && form.types.contains(&Type::F64);
        match is_rounded {
            true => form.only(&[KNOWN, &ROUNDINGS].concat())?,
            false => form.only(KNOWN)?,
        }
        let shape = Shape::of(form).ok_or_else(|| form.unsupported())?;
        match () {
            // Elements below a byte have one layout: A by rows, B by columns.
            () if form.has(".load") && elements_of_word(form) > 1 && form.has(".a") != form.has(".row") => {
                Err(form.unsupported())
            }
            () if !form.has(".mma") && !Self::has_fragment(form, shape) => Err(form.unsupported()),
            () if form.has(".mma") => self.tile_product(form, shape),
            () if form.has(".load") => self.load_tile(form, shape),
            () => self.store_tile(form, shape),
        }
    }

    /// True if the type of a load or store is valid for its matrix.
    fn has_fragment(form: &Form<'_, '_>, shape: Shape) -> bool {
        match (form.types.as_slice(), Self::role_of(form, shape)) {
            ([], role) => role != Role::Sum && elements_of_word(form) > 1,
            ([Type::F16 | Type::F32 | Type::S32 | Type::F64], Role::Sum) => true,
            ([_], Role::Sum) => false,
            ([ty], _) => matches!(
                ty,
                Type::F16 | Type::Bf16 | Type::Tf32 | Type::S8 | Type::U8 | Type::F64
            ),
            _ => false,
        }
    }

    /// Returns the matrix of a load or store. The factors are exchanged in a transposed product.
    fn role_of(form: &Form<'_, '_>, shape: Shape) -> Role {
        match form.has(".a") {
            _ if form.has(".c") || form.has(".d") => Role::Sum,
            first if first != shape.is_transposed() => Role::Left,
            _ => Role::Right,
        }
    }

    /// Selects `wmma.mma`, tile by tile.
    fn tile_product(&mut self, form: &Form<'t, 'a>, shape: Shape) -> Selected {
        let (of_result, of_factors, of_sum) = match *form.types.as_slice() {
            // PTX leaves out the type of the factors if they are halves.
            [d, c] => (d, Type::F16, c),
            [d, a, b, c] if a == b => (d, a, c),
            _ => return Err(form.unsupported()),
        };
        // Of floats, only halves saturated, before PTX ISA 6.5.
        if form.has(".satfinite") && !matches!(of_factors, Type::F16 | Type::S8 | Type::U8) {
            return Err(form.unsupported());
        }
        let (mma, ty) = tile_shape(of_factors, shape).ok_or_else(|| form.unsupported())?;
        // If only C or only D has halves, the tile's accumulators are f32.
        let is_packed = (of_result, of_sum) == (Type::F16, Type::F16) && mma.has_half_accumulators(Ty::F16);
        let ty = if is_packed { Ty::F16 } else { ty };
        let [results, a, b, c] = form.operands() else {
            return Err(form.unsupported());
        };
        // D^T = B^T A^T + C^T: the factors change places.
        let (left, right) = if shape.is_transposed() { (b, a) } else { (a, b) };
        let row = Op::machine(Opcode::Mma).mods(|mods| {
            (mods.mma, mods.ty) = (mma, ty);
            mods.sat = form.has(".satfinite");
            mods.round = rounding(form);
        });
        let words = row.shape();
        let (lines, columns) = shape.lines();
        let right_tiles = columns / 8;
        let tiles = (lines.div_ceil(16) * right_tiles) as u8;
        let mut sums = Vec::new();
        for tile in 0..tiles {
            let (n, m) = (tile % right_tiles as u8, tile / right_tiles as u8);
            let args = [
                self.words_from(form, left, m * words.src[0], words.src[0])?,
                self.words_from(form, right, n * words.src[1], words.src[1])?,
                match is_packed {
                    true => self.words_from(form, c, tile * words.src[2], words.src[2])?,
                    false => self.sum_words(form, c, tile, of_sum)?,
                },
            ];
            sums.push(self.compute(row.src(&args)));
        }
        // After all products, because the result registers may be those of C.
        for (tile, sums) in (0..).zip(sums) {
            self.write_sums(form, results, tile, of_result, sums, is_packed)?;
        }
        Ok(())
    }

    /// Copies `count` words of a fragment into one group.
    fn words_from(&mut self, form: &Form<'t, 'a>, value: &Value<'a>, first: u8, count: u8) -> Result<Arg, Diagnostic> {
        let mut all = Vec::new();
        for register in parts(value) {
            let words = self.word_count(register);
            let ty = if words == 2 { Type::B64 } else { Type::B32 };
            let source = self.arg(form, register, ty)?;
            all.extend((0..words).map(|n| source.part(n)));
        }
        let selected = all.get(usize::from(first)..usize::from(first + count));
        let selected = selected.ok_or_else(|| too_few(form))?;
        let group = self.code.new_group(count);
        for (n, word) in (0..).zip(selected) {
            self.emit(Op::machine(Opcode::Mov).dst(group.offset(n)).src(&[*word]));
        }
        Ok(Arg::vreg(group))
    }

    /// Returns the four accumulators of a tile. Halves are widened, which is exact.
    fn sum_words(&mut self, form: &Form<'t, 'a>, value: &Value<'a>, tile: u8, ty: Type) -> Result<Arg, Diagnostic> {
        if ty != Type::F16 {
            return self.words_from(form, value, 4 * tile, 4);
        }
        let pairs = self.words_from(form, value, 2 * tile, 2)?;
        Ok(Arg::vreg(self.widened([pairs.part(0), pairs.part(1)])))
    }

    /// Copies a tile's sum to the result registers. Sums of type f32 are rounded once if the result has halves.
    fn write_sums(
        &mut self,
        form: &Form<'t, 'a>,
        results: &Value<'a>,
        tile: u8,
        ty: Type,
        sums: Arg,
        is_packed: bool,
    ) -> Selected {
        let (first, registers) = match ty {
            Type::F16 => (2 * tile, 2),
            Type::F64 => (0, 2),
            _ => (4 * tile, 4),
        };
        for n in 0..registers {
            let target = parts(results)
                .get(usize::from(first + n))
                .ok_or_else(|| too_few(form))?;
            match ty {
                Type::F16 if !is_packed => {
                    let register = self.dst_of(form, target, Type::B32)?;
                    let halves = self.compute(narrowed(sums, n));
                    let halves = match form.has(".satfinite") {
                        true => self.finite_halves(halves),
                        false => halves,
                    };
                    self.copy(register, halves, Type::B32);
                }
                Type::F64 => {
                    let register = self.dst_of(form, target, Type::B64)?;
                    let pair = Op::wide(Wide::Mov).dst(register);
                    self.emit(pair.src(&[sums.part(2 * n)]));
                }
                _ => {
                    let register = self.dst_of(form, target, Type::B32)?;
                    self.copy(register, sums.part(n), Type::B32);
                }
            }
        }
        Ok(())
    }
}

impl Selector<'_, '_, '_> {
    /// Replaces infinities in a pair of halves by the largest finite numbers.
    fn finite_halves(&mut self, halves: Arg) -> Arg {
        let limit = |value: Arg, limit: u64, minimum: VGuard| {
            let op = Op::machine(Opcode::Hmnmx2).src(&[value, Arg::imm(limit)]).psrc(minimum);
            op.mods(|mods| mods.ty = Ty::F16x2)
        };
        let below = self.compute(limit(halves, 0x7bff_7bff, VGuard::ALWAYS));
        self.compute(limit(below, 0xfbff_fbff, VGuard::NEVER))
    }
}

/// Returns the tensor-core shape for a tile, and the type of its sum.
fn tile_shape(factors: Type, shape: Shape) -> Option<(MmaShape, Ty)> {
    Some(match (factors, shape.k) {
        (Type::F16, 16) => (MmaShape::M16n8k16F16, Ty::F32),
        (Type::Bf16, 16) => (MmaShape::M16n8k16Bf16, Ty::F32),
        (Type::Tf32, 8) => (MmaShape::M16n8k8Tf32, Ty::F32),
        (Type::S8, 16) => (MmaShape::M16n8k16S8, Ty::S32),
        (Type::U8, 16) => (MmaShape::M16n8k16U8, Ty::S32),
        (Type::F64, 4) => (MmaShape::M8n8k4F64, Ty::F64),
        _ => return None,
    })
}

fn too_few(form: &Form<'_, '_>) -> Diagnostic {
    form.malformed("the fragment has fewer registers than this shape needs")
}

/// Returns the elements packed in a word: 8 of four bits, 32 of one bit.
fn elements_of_word(form: &Form<'_, '_>) -> u32 {
    match () {
        () if form.has(".s4") || form.has(".u4") => 8,
        () if form.has(".b1") => 32,
        () => 1,
    }
}
