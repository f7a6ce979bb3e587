//! Tiles in memory: loads and stores of a lane's elements, in runs where they are consecutive.

use super::{Fragment, Role, Run, Shape, elements_of_word, too_few};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VReg};
use crate::lower::select::integer::{lop, parts, shift_right};
use crate::lower::select::memory::{MemOperand, space_of};
use crate::lower::select::value::byte_permute;
use crate::lower::select::{Form, Selected, Selector};
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Special;
use warpwave_isa::space::{Access, Space};

/// A matrix in memory, from the first element of a lane.
struct Matrix {
    mem: MemOperand,
    /// Bytes between two lines, or between two positions of a line.
    stride: Arg,
    /// True if the positions of a line are consecutive in memory.
    by_line: bool,
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `wmma.load`.
    pub(super) fn load_tile(&mut self, form: &Form<'t, 'a>, shape: Shape) -> Selected {
        let role = Self::role_of(form, shape);
        let fragment = Fragment::of(role, form.ty(), shape);
        let matrix = self.matrix(form, 1, role, &fragment, shape)?;
        let targets = parts(form.operand(0)?);
        let mut loaded = Vec::new();
        for run in &fragment.runs {
            loaded.extend((run.register..).zip(self.load_run(&fragment, &matrix, run)));
        }
        // After all loads, because a result may be a register of the address.
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

    /// Selects `wmma.store`.
    pub(super) fn store_tile(&mut self, form: &Form<'t, 'a>, shape: Shape) -> Selected {
        let fragment = Fragment::of(Role::Sum, form.ty(), shape);
        let matrix = self.matrix(form, 0, Role::Sum, &fragment, shape)?;
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
        role: Role,
        fragment: &Fragment,
        shape: Shape,
    ) -> Result<Matrix, Diagnostic> {
        let by_row = form.has(".row");
        let mem = self.mem_operand(form, n, space_of(form))?;
        let (rows, columns) = match (role, form.has(".a")) {
            (Role::Sum, _) => (shape.m, shape.n),
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
                self.compute(Op::machine(Opcode::Imad).src(&[elements, Arg::imm(bytes.into()), Arg::ZERO]))
            }
            // Without a stride the lines have no gaps.
            None => Arg::imm(u64::from(if by_row { columns } else { rows } * bytes)),
        };
        // Lines of the first factor and the sum are rows. Lines of the second factor are columns.
        let by_line = match role {
            Role::Sum => by_row != shape.is_transposed(),
            _ => by_row == form.has(".a"),
        };
        let mut matrix = Matrix { mem, stride, by_line };
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
        // `far` counts strides, and `near` counts elements side by side.
        let (far, near, step) = match matrix.by_line {
            true => (group, position, several),
            false => (position, group, element),
        };
        let far = match matrix.by_line || fragment.each == 1 {
            true => far,
            false => self.compute(Op::machine(Opcode::Imad).src(&[far, Arg::imm(fragment.each.into()), Arg::ZERO])),
        };
        self.advance(&mut matrix.mem, far, matrix.stride);
        self.advance(&mut matrix.mem, near, step);
    }

    /// Adds a product of two words to the address.
    fn advance(&mut self, mem: &mut MemOperand, x: Arg, y: Arg) {
        // Shared addresses have 32 bits.
        let row = match mem.space {
            Space::Shared => Opcode::Imad,
            _ => Opcode::ImadWide,
        };
        mem.base = self.compute(Op::machine(row).src(&[x, y, mem.base]));
    }

    /// Returns the address of a line and position relative to the lane's own.
    fn address_in(&mut self, matrix: &Matrix, bytes: u32, line: u32, position: u32) -> MemOperand {
        let (far, near) = if matrix.by_line {
            (line, position)
        } else {
            (position, line)
        };
        let mut mem = MemOperand {
            space: matrix.mem.space,
            base: matrix.mem.base,
            offset: matrix.mem.offset + i64::from(near * bytes),
        };
        match matrix.stride.known() {
            Some(stride) => mem.offset += i64::from(far) * stride as i64,
            None if far > 0 => self.advance(&mut mem, matrix.stride, Arg::imm(far.into())),
            None => {}
        }
        self.limit_offset(&mut mem, matrix.mem.space != Space::Shared);
        mem
    }

    /// Loads a run, and returns the value of each of its registers.
    fn load_run(&mut self, fragment: &Fragment, matrix: &Matrix, run: &Run) -> Vec<Arg> {
        let (bytes, words) = (fragment.bytes(), fragment.words());
        // The run is consecutive in memory: one access.
        if matrix.by_line {
            let mem = self.address_in(matrix, bytes, run.line, run.position);
            let count = fragment.registers();
            let group = self.load_words(&mem, side_by_side(bytes, count), words * count);
            return (0..count).map(|n| Arg::vreg(group.offset(n * words))).collect();
        }
        let mut elements = Vec::new();
        for position in run.position..run.position + fragment.each {
            let mem = self.address_in(matrix, bytes, run.line, position);
            elements.push(Arg::vreg(self.load_words(&mem, Access::one(bytes as u8), words)));
        }
        match bytes {
            1 => {
                // Byte 0 of each element: two pairs, and then both pairs.
                let low = self.compute(byte_permute(elements[0], elements[1], 0x0040));
                let high = self.compute(byte_permute(elements[2], elements[3], 0x0040));
                vec![self.compute(byte_permute(low, high, 0x5410))]
            }
            2 => vec![self.compute(byte_permute(elements[0], elements[1], 0x5410))],
            _ => elements,
        }
    }

    fn load_words(&mut self, mem: &MemOperand, access: Access, words: u8) -> VReg {
        let group = self.code.new_group(words);
        let load = Op::machine(Opcode::Ld).dst(group).src(&[mem.base]).guard(self.guard);
        self.emit(at(load, mem, access));
        group
    }

    /// Stores a run. `values` are its registers.
    fn store_run(&mut self, fragment: &Fragment, matrix: &Matrix, run: &Run, values: &[Arg]) {
        let (bytes, words) = (fragment.bytes(), fragment.words());
        if matrix.by_line {
            let mem = self.address_in(matrix, bytes, run.line, run.position);
            let count = fragment.registers();
            let group = self.code.new_group(words * count);
            for (n, value) in (0..).zip(values) {
                for word in 0..words {
                    let to = group.offset(n * words + word);
                    self.emit(Op::machine(Opcode::Mov).dst(to).src(&[value.part(word)]));
                }
            }
            let store = Op::machine(Opcode::St).src(&[mem.base, Arg::vreg(group)]);
            self.emit(at(store, &mem, side_by_side(bytes, count)));
            return;
        }
        for n in 0..fragment.each {
            let value = match bytes {
                // The second half of a word is stored from the low half of a register.
                2 if n == 1 => self.compute(byte_permute(values[0], Arg::ZERO, 0x4432)),
                2 => values[0],
                _ => values[n as usize],
            };
            let mem = self.address_in(matrix, bytes, run.line, run.position + n);
            let store = Op::machine(Opcode::St).src(&[mem.base, value]);
            self.emit(at(store, &mem, Access::one(bytes as u8)));
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

fn at(op: Op, mem: &MemOperand, access: Access) -> Op {
    op.mods(|mods| {
        mods.space = mem.space;
        mods.offset = mem.offset as i32;
        mods.access = access;
    })
}
