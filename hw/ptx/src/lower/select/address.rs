//! Address conversions: `cvta` and `mapa`.

use super::integer::lop;
use super::memory::{space_of, vector_parts};
use super::value::byte_permute;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::lower::code::{Arg, Bits, Op, VGuard, Wide};
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{LOCAL_WINDOW, MAX_CLUSTER, PARAM_WINDOW, SHARED_WINDOW, Space, WINDOW_BYTES, bank0};

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `cvta`. A global address is its generic address; shared and local memory have windows. A constant has a copy in global
    /// memory.
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
            Space::Const => return self.constant_conversion(form),
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

    /// Selects `cvta` of a constant: adds or subtracts the address of the copy.
    fn constant_conversion(&mut self, form: &Form<'t, 'a>) -> Selected {
        let result = self.dst(form, 0)?;
        let source = self.src(form, 1)?;
        let copy = Arg::of(Bits::Const {
            bank: 0,
            offset: bank0::CONSTANTS,
        });
        let wide = if form.has(".to") { Wide::Sub } else { Wide::Add };
        self.emit(Op::wide(wide).dst(result).src(&[source, copy]));
        Ok(())
    }

    /// Selects `mapa`: replaces the window byte of a shared address.
    pub(super) fn mapa(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".shared::cluster"])?;
        let result = self.dst(form, 0)?;
        let address = self.src(form, 1)?;
        let rank = self.arg(form, form.operand(2)?, Type::U32)?;
        // A rank beyond every cluster gets the first window without a CTA. Its low byte alone could name another CTA or memory.
        let rank = match rank.known() {
            Some(rank) => Arg::imm(rank.min(MAX_CLUSTER.into())),
            None => {
                let least = Op::machine(Opcode::Imnmx).src(&[rank, Arg::imm(MAX_CLUSTER.into())]);
                self.compute(least.psrc(VGuard::ALWAYS).mods(|mods| mods.ty = Ty::U32))
            }
        };
        // The window of a CTA is its rank plus 1.
        let window = self.compute(Op::machine(Opcode::Iadd3).src(&[rank, Arg::imm(1)]));
        let mapped = self.compute(byte_permute(address.part(0), window, 0x4210));
        if form.ty().bits() == 64 {
            self.copy(result.offset(1), address.part(1), Type::B32);
        }
        self.copy(result, mapped, Type::B32);
        Ok(())
    }

    /// Selects a generic load that may read a parameter: each lane loads from its own space.
    pub(super) fn load_param_or_memory(&mut self, form: &Form<'t, 'a>) -> Selected {
        let targets = vector_parts(form, 0)?;
        let bits = |value: &Value<'a>| match value {
            Value::Register(reg) => self.register_type(*reg).bits().max(form.ty().bits()),
            _ => form.ty().bits(),
        };
        let registers = (0..)
            .zip(targets)
            .map(|(n, value)| format!(".reg .b{} %v{n}; ", bits(value)));
        let registers: String = registers.collect();
        let names: Vec<String> = (0..targets.len()).map(|n| format!("%v{n}")).collect();
        let list = format!("{{{}}}", names.join(", "));
        let all: String = form.qualifiers().map(|name| name.text).collect();
        let words = form.qualifiers().map(|name| name.text);
        let shape: String = words
            .filter(|word| matches!(*word, ".v2" | ".v4") || Type::from_dotted(word).is_some())
            .collect();
        // The difference wraps, so one unsigned comparison tests both ends of a window.
        let code = format!(
            "{registers}.reg .b64 %at, %x; .reg .pred %p;\n\
             sub.u64 %x, %at, {PARAM_WINDOW};\nsetp.lt.u64 %p, %x, {WINDOW_BYTES};\n@%p ld.param{shape} {list}, [%x];\n\
             @!%p ld{all} {list}, [%at];\n"
        );
        self.expand(form, &code)
    }
}
