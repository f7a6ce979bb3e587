//! Addresses of one space made addresses of another: `cvta`, `mapa`.

use super::integer::lop;
use super::memory::space_of;
use super::value::byte_permute;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::lower::code::{Arg, Op, Wide};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, Space, WINDOW_BYTES};

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// `cvta`: global addresses are generic ones; shared and local memory have windows.
    pub(super) fn address_conversion(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[
            ".to",
            ".global",
            ".shared",
            ".shared::cta",
            ".shared::cluster",
            ".local",
            ".const",
            ".param",
            ".param::entry",
        ])?;
        let window = match space_of(form) {
            _ if form.ty().bits() != 64 => return Err(form.unsupported()),
            _ if form.has(".param") || form.has(".param::entry") => PARAM_WINDOW,
            Space::Global => 0,
            Space::Shared | Space::Cluster => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            _ => return Err(form.unsupported()),
        };
        let result = self.dst(form, 0)?;
        let source = self.src(form, 1)?;
        if window == 0 {
            self.copy(result, source, Type::B64);
        } else if form.has(".to") {
            // A shared address keeps the window of its CTA.
            let mask = if window == SHARED_WINDOW {
                LOCAL_WINDOW - SHARED_WINDOW
            } else {
                WINDOW_BYTES
            };
            let mask = Arg::imm(mask - 1);
            self.emit(lop(source.part(0), mask, Arg::ZERO, 0xc0).dst(result));
            self.copy(result.offset(1), Arg::ZERO, Type::B32);
        } else {
            self.emit(Op::wide(Wide::Add).dst(result).src(&[source, Arg::imm(window)]));
        }
        Ok(())
    }

    /// `mapa`: the upper byte of a shared address is the window of its CTA, one more than the CTA's rank.
    pub(super) fn map_address(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".shared::cluster"])?;
        let result = self.dst(form, 0)?;
        let address = self.src(form, 1)?;
        let rank = self.arg(form, form.operand(2)?, Type::U32)?;
        let window = self.compute(Op::row(Opcode::Iadd3).src(&[rank, Arg::imm(1)]));
        let mapped = self.compute(byte_permute(address.part(0), window, 0x4210));
        if form.ty().bits() == 64 {
            self.copy(result.offset(1), address.part(1), Type::B32);
        }
        self.copy(result, mapped, Type::B32);
        Ok(())
    }
}
