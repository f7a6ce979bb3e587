//! Tiles in memory: loads and stores of a lane's elements, in runs where they are consecutive.

use super::{Fragment, Part, Run, Shape, elements_of_word, too_few};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, Word};
use crate::lower::select::integer::{lop, parts, shift_right};
use crate::lower::select::memory::{Spot, space_of};
use crate::lower::select::value::byte_permute;
use crate::lower::select::{Form, Selected, Selector};
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Special;
use warpwave_isa::space::{Access, Space};

/// A matrix in memory, from the first element of a lane.
struct Matrix {
    spot: Spot,
    /// Bytes between two lines, or between two positions of a line.
    stride: Arg,
    /// True if the positions of a line are consecutive in memory.
    by_line: bool,
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn load_tile(&mut self, form: &Form<'t, 'a>, shape: Shape) -> Selected {
        let part = Self::part_of(form, shape);
        let fragment = Fragment::of(part, form.ty(), shape);
        let matrix = self.matrix(form, 1, part, &fragment, shape)?;
        let targets = parts(form.operand(0)?);
        let mut loaded = Vec::new();
        for run in &fragment.runs {
            loaded.extend((run.register..).zip(self.load_run(&fragment, &matrix, run)));
        }
        for (register, value) in loaded {
            let target = targets.get(usize::from(register)).ok_or_else(|| too_few(form))?;
            let ty = fragment.register_type();
            let register = self.dst_of(form, target, ty)?;
            self.copy(register, value, ty);
        }
        // Half-precision factors have unused registers.
        for spare in targets
            .iter()
            .skip(fragment.runs.len() * usize::from(fragment.registers()))
        {
            let register = self.dst_of(form, spare, Type::B32)?;
            self.copy(register, Arg::ZERO, Type::B32);
        }
        Ok(())
    }

    pub(super) fn store_tile(&mut self, form: &Form<'t, 'a>, shape: Shape) -> Selected {
        let fragment = Fragment::of(Part::Sum, form.ty(), shape);
        let matrix = self.matrix(form, 0, Part::Sum, &fragment, shape)?;
        let sources = parts(form.operand(1)?);
        for run in &fragment.runs {
            let mut values = Vec::new();
            for n in 0..fragment.registers() {
                let source = sources
                    .get(usize::from(run.register + n))
                    .ok_or_else(|| too_few(form))?;
                values.push(self.arg(form, source, fragment.register_type())?);
            }
            self.store_run(&fragment, &matrix, run, &values);
        }
        Ok(())
    }

    /// Returns the matrix at the address in operand `n`. The stride is operand 2.
    fn matrix(
        &mut self,
        form: &Form<'t, 'a>,
        n: usize,
        part: Part,
        fragment: &Fragment,
        shape: Shape,
    ) -> Result<Matrix, Diagnostic> {
        let by_row = form.has(".row");
        let spot = self.spot(form, n, space_of(form))?;
        let (rows, columns) = match (part, form.has(".a")) {
            (Part::Sum, _) => (shape.m, shape.n),
            (_, true) => (shape.m, shape.k),
            (_, false) => (shape.k, shape.n),
        };
        let bytes = fragment.bytes();
        let per_word = elements_of_word(form);
        let stride = match form.operands().get(2) {
            Some(Value::Int(elements)) => Arg::imm((*elements as u64).wrapping_mul(bytes.into()) / u64::from(per_word)),
            Some(value) if per_word > 1 => {
                let elements = self.arg(form, value, Type::U32)?;
                let shift = Arg::imm((per_word / bytes).ilog2().into());
                self.compute(shift_right(Ty::U32, elements, shift))
            }
            Some(value) => {
                let elements = self.arg(form, value, Type::U32)?;
                self.compute(Op::row(Opcode::Imad).src(&[elements, Arg::imm(bytes.into()), Arg::ZERO]))
            }
            None => Arg::imm(u64::from(if by_row { columns } else { rows } * bytes)),
        };
        // Lines of the first factor and the sum are rows. Lines of the second factor are columns.
        let by_line = match part {
            Part::Sum => by_row != shape.is_transposed(),
            _ => by_row == form.has(".a"),
        };
        let mut matrix = Matrix { spot, stride, by_line };
        self.move_to_lane(&mut matrix, fragment);
        Ok(matrix)
    }

    /// Moves the address to the lane's own line and position.
    fn move_to_lane(&mut self, matrix: &mut Matrix, fragment: &Fragment) {
        let lane = self.special_word(Special::LaneId);
        let group = self.compute(shift_right(Ty::U32, lane, Arg::imm(2)));
        let position = self.compute(lop(lane, Arg::imm(3), Arg::ZERO, 0xc0));
        let element = Arg::imm(fragment.bytes().into());
        let several = Arg::imm(u64::from(fragment.each * fragment.bytes()));
        let (far, near, step) = match matrix.by_line {
            true => (group, position, several),
            false => (position, group, element),
        };
        let far = match matrix.by_line || fragment.each == 1 {
            true => far,
            false => self.compute(Op::row(Opcode::Imad).src(&[far, Arg::imm(fragment.each.into()), Arg::ZERO])),
        };
        self.advance(&mut matrix.spot, far, matrix.stride);
        self.advance(&mut matrix.spot, near, step);
    }

    /// Adds a product of two words to the address.
    fn advance(&mut self, spot: &mut Spot, x: Arg, y: Arg) {
        let row = match spot.space {
            Space::Shared => Opcode::Imad,
            _ => Opcode::ImadWide,
        };
        spot.base = self.compute(Op::row(row).src(&[x, y, spot.base]));
    }

    /// Returns the address of a line and position relative to the lane's own.
    fn address_in(&mut self, matrix: &Matrix, bytes: u32, line: u32, place: u32) -> Spot {
        let (far, near) = if matrix.by_line { (line, place) } else { (place, line) };
        let mut spot = Spot {
            space: matrix.spot.space,
            base: matrix.spot.base,
            offset: matrix.spot.offset + i64::from(near * bytes),
        };
        match matrix.stride.known() {
            Some(stride) => spot.offset += i64::from(far) * stride as i64,
            None if far > 0 => self.advance(&mut spot, matrix.stride, Arg::imm(far.into())),
            None => {}
        }
        self.keep_near(&mut spot, matrix.spot.space != Space::Shared);
        spot
    }

    fn load_run(&mut self, fragment: &Fragment, matrix: &Matrix, run: &Run) -> Vec<Arg> {
        let (bytes, words) = (fragment.bytes(), fragment.words());
        if matrix.by_line {
            let spot = self.address_in(matrix, bytes, run.line, run.place);
            let count = fragment.registers();
            let group = self.load_words(&spot, side_by_side(bytes, count), words * count);
            return (0..count).map(|n| Arg::word(group.offset(n * words))).collect();
        }
        let mut elements = Vec::new();
        for place in run.place..run.place + fragment.each {
            let spot = self.address_in(matrix, bytes, run.line, place);
            elements.push(Arg::word(self.load_words(&spot, Access::one(bytes as u8), words)));
        }
        match bytes {
            1 => {
                let low = self.compute(byte_permute(elements[0], elements[1], 0x0040));
                let high = self.compute(byte_permute(elements[2], elements[3], 0x0040));
                vec![self.compute(byte_permute(low, high, 0x5410))]
            }
            2 => vec![self.compute(byte_permute(elements[0], elements[1], 0x5410))],
            _ => elements,
        }
    }

    fn load_words(&mut self, spot: &Spot, access: Access, words: u8) -> Word {
        let group = self.code.group(words);
        let load = Op::row(Opcode::Ld).dst(group).src(&[spot.base]).when(self.guard);
        self.emit(at(load, spot, access));
        group
    }

    fn store_run(&mut self, fragment: &Fragment, matrix: &Matrix, run: &Run, values: &[Arg]) {
        let (bytes, words) = (fragment.bytes(), fragment.words());
        if matrix.by_line {
            let spot = self.address_in(matrix, bytes, run.line, run.place);
            let count = fragment.registers();
            let group = self.code.group(words * count);
            for (n, value) in (0..).zip(values) {
                for word in 0..words {
                    let to = group.offset(n * words + word);
                    self.emit(Op::row(Opcode::Mov).dst(to).src(&[value.part(word)]));
                }
            }
            let store = Op::row(Opcode::St).src(&[spot.base, Arg::word(group)]);
            self.emit(at(store, &spot, side_by_side(bytes, count)));
            return;
        }
        for n in 0..fragment.each {
            let value = match bytes {
                2 if n == 1 => self.compute(byte_permute(values[0], Arg::ZERO, 0x4432)),
                2 => values[0],
                _ => values[n as usize],
            };
            let spot = self.address_in(matrix, bytes, run.line, run.place + n);
            let store = Op::row(Opcode::St).src(&[spot.base, value]);
            self.emit(at(store, &spot, Access::one(bytes as u8)));
        }
    }
}

/// Returns the access of `registers` consecutive registers.
fn side_by_side(bytes: u32, registers: u8) -> Access {
    Access {
        bytes: bytes.max(4) as u8,
        count: registers,
        signed: false,
    }
}

fn at(op: Op, spot: &Spot, access: Access) -> Op {
    op.mods(|mods| {
        mods.space = spot.space;
        mods.offset = spot.offset as i32;
        mods.access = access;
    })
}
