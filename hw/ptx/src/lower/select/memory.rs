//! Loads and stores.
//!
//! Parameters and constants at known addresses are operands, not loads. A guarded vector load writes a group that holds the old
//! values.

use super::halves::{MAX_WORDS, part_of};
use super::integer::parts;
use super::qualifiers::MEMORY_QUALIFIERS;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::{SymbolId, Value};
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Bits, Op, VGuard, VReg, Wide};
use crate::lower::layout::{CONST_BANK, VarLoc};
use warpwave_isa::inst::{CacheOp, Mods, Scope};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, LOCAL_WINDOW, SHARED_WINDOW, Space};

/// Limit of a displacement: 24 bits, signed.
const MAX_DISPLACEMENT: i64 = 1 << 23;

/// A memory operand.
#[derive(Clone, Copy)]
pub(super) struct MemOperand {
    pub space: Space,
    pub base: Arg,
    pub offset: i64,
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn memory(&mut self, form: &Form<'t, 'a>) -> Selected {
        match form.opcode() {
            "prefetch" | "prefetchu" | "discard" | "applypriority" | "createpolicy" => self.hint(form),
            "ld" | "ldu" => self.load(form),
            "st" => self.store(form),
            "atom" | "red" => self.atomic(form),
            "cp" => self.copy_async(form),
            "ldmatrix" => self.load_matrix(form),
            _ => Err(form.unsupported()),
        }
    }

    /// Returns the memory operand at operand `n`.
    pub(super) fn mem_operand(
        &mut self,
        form: &Form<'t, 'a>,
        n: usize,
        space: Space,
    ) -> Result<MemOperand, Diagnostic> {
        let Value::Address(base, offset) = form.operand(n)? else {
            return Err(form.unsupported());
        };
        let wide = has_wide_addresses(space);
        let (base, offset) = match &**base {
            Value::Symbol(symbol, _) if self.stack_location(*symbol).is_some() && space == Space::Local => {
                (self.address_of(form, *symbol, 0)?, *offset)
            }
            Value::Symbol(symbol, _) if space == Space::Generic && self.space_of_variable(*symbol).is_some() => {
                (self.generic_address(form, *symbol)?, *offset)
            }
            Value::Symbol(symbol, _) => match (self.layout.location(*symbol), space) {
                // The address is known, so it becomes a displacement from RZ.
                (Some(VarLoc::Shared(at)), Space::Shared | Space::Cluster)
                | (Some(VarLoc::Local(at)), Space::Local) => (Arg::ZERO, i64::from(at) + offset),
                (Some(VarLoc::Global(_)), Space::Global | Space::Generic) => {
                    (self.address_of(form, *symbol, 0)?, *offset)
                }
                (Some(VarLoc::Call), _) => {
                    return Err(self
                        .address_of(form, *symbol, 0)
                        .err()
                        .unwrap_or_else(|| form.unsupported()));
                }
                _ => return Err(form.malformed("this variable is not in the state space of the instruction")),
            },
            Value::Int(address) => (Arg::ZERO, (*address as i64).wrapping_add(*offset)),
            base => {
                if wide && self.word_count(base) != 2 {
                    return Err(form.malformed("an address in this space has 64 bits"));
                }
                (self.address(form, base)?, *offset)
            }
        };
        let mut mem = MemOperand { space, base, offset };
        self.limit_offset(&mut mem, wide);
        Ok(mem)
    }

    /// Returns the space of a variable in shared or local memory; `None` for any other variable.
    fn space_of_variable(&self, symbol: SymbolId) -> Option<Space> {
        match self.layout.location(symbol) {
            _ if self.stack_location(symbol).is_some() => Some(Space::Local),
            Some(VarLoc::Shared(_)) => Some(Space::Shared),
            Some(VarLoc::Local(_)) => Some(Space::Local),
            _ => None,
        }
    }

    /// Returns the generic address of a variable in shared or local memory.
    fn generic_address(&mut self, form: &Form<'t, 'a>, symbol: SymbolId) -> Result<Arg, Diagnostic> {
        let window = match self.space_of_variable(symbol) {
            Some(Space::Local) => LOCAL_WINDOW,
            _ => SHARED_WINDOW,
        };
        let address = self.address_of(form, symbol, 0)?;
        Ok(self.compute(Op::wide(Wide::Add).src(&[address, Arg::imm(window)])))
    }

    /// Returns the space of an access. A generic access that names a shared or local variable has the space of the variable.
    pub(super) fn access_space(&self, form: &Form<'t, 'a>, n: usize) -> Space {
        let space = space_of(form);
        match form.operands().get(n) {
            Some(Value::Address(base, _)) if space == Space::Generic => match **base {
                Value::Symbol(symbol, _) => self.space_of_variable(symbol).unwrap_or(space),
                _ => space,
            },
            _ => space,
        }
    }

    /// Returns an address with the width of its register.
    fn address(&mut self, form: &Form<'t, 'a>, base: &Value<'a>) -> Result<Arg, Diagnostic> {
        // Shared and local addresses may be in 32-bit registers.
        let narrow = matches!(base, Value::Register(_)) && self.word_count(base) == 1;
        self.arg(form, base, if narrow { Type::U32 } else { Type::U64 })
    }

    /// Adds an offset to the base if no displacement can hold it.
    pub(super) fn limit_offset(&mut self, mem: &mut MemOperand, wide: bool) {
        if (-MAX_DISPLACEMENT..MAX_DISPLACEMENT).contains(&mem.offset) {
            return;
        }
        let offset = Arg::imm(mem.offset as u64);
        let sum = match wide {
            true => Op::wide(Wide::Add).src(&[mem.base, offset]),
            false => Op::machine(Opcode::Iadd3).src(&[mem.base, offset.part(0)]),
        };
        mem.base = self.compute(sum);
        mem.offset = 0;
    }

    /// Selects `ld` and `ldu`. Parameters and constants are not in memory.
    fn load(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(MEMORY_QUALIFIERS)?;
        let targets = vector_parts(form, 0)?;
        let access = access_of(form, targets.len());
        if form.has(".param") || form.has(".param::entry") || form.has(".param::func") || form.has(".const") {
            return self.load_constant(form, targets, access);
        }
        let space = self.access_space(form, 1);
        let part = part_of(access);
        // Not inside an expansion: that contains the load itself.
        if space == Space::Generic && self.layout.params_are_generic() && self.frame().line.is_none() {
            // Parameters take no access of two parts.
            return match part == access {
                true => self.load_param_or_memory(form),
                false => Err(form.unsupported()),
            };
        }
        let mut mem = self.mem_operand(form, 1, space)?;
        if part != access {
            // A target of the first part may be the address of the second.
            mem.base = self.copy_of_address(mem.base, space);
        }
        for (n, targets) in (0..).zip(targets.chunks(part.count.into())) {
            let op = self.access(form, Opcode::Ld, &[], mem, access, n);
            self.load_into(form, op, targets, part)?;
        }
        if form.has(".acquire") {
            self.acquire(scope_of(form));
        }
        Ok(())
    }

    /// Orders later accesses after an acquiring load or atomic. Beyond CTA scope it also invalidates the L1.
    pub(super) fn acquire(&mut self, scope: Scope) {
        self.emit(match scope {
            Scope::Cta => membar(scope),
            // The L1s are not coherent: a later load must not hit a line from before the acquire.
            Scope::Gpu | Scope::Sys => Op::machine(Opcode::CctlIvall),
        });
    }

    /// Orders a releasing store or atomic after all earlier accesses in its scope.
    pub(super) fn release(&mut self, scope: Scope) {
        self.emit(membar(scope));
    }

    /// Emits a load and copies its words to the target registers.
    pub(super) fn load_into(&mut self, form: &Form<'t, 'a>, op: Op, targets: &[Value<'a>], access: Access) -> Selected {
        let each = (access.words() / access.count).max(1);
        // The group is temporary, but a lane with a false guard must not access memory.
        let op = op.guard(self.guard);
        if let [target @ Value::Register(_)] = targets
            && self.word_count(target) == each
        {
            let result = self.dst_of(form, target, form.ty())?;
            self.emit(op.dst(result));
            return Ok(());
        }
        let group = self.code.new_group(access.words());
        let guarded = self.guard != VGuard::ALWAYS;
        let registers: Vec<(u8, &Value<'a>)> = (0..)
            .zip(targets)
            .filter(|(_, target)| **target != Value::Sink)
            .collect();
        // Inactive lanes keep the old values, and the allocator can merge both groups.
        if guarded {
            for &(n, target) in &registers {
                let old = self.dst_of(form, target, form.ty())?;
                self.move_words(group.offset(n * each), old, each);
            }
        }
        self.emit(op.dst(group));
        // The group is right in all lanes, so its copies need no guard.
        let guard = std::mem::replace(&mut self.guard, VGuard::ALWAYS);
        for (n, target) in registers {
            let result = self.dst_of(form, target, form.ty())?;
            let words = self.word_count(target);
            let value = Arg::vreg(group.offset(n * each));
            // An extension would change the upper words of inactive lanes.
            if words > each && guarded {
                self.guard = guard;
            }
            self.widen(result, words, value, each == 2, access.signed);
        }
        self.guard = guard;
        Ok(())
    }

    pub(super) fn move_words(&mut self, to: VReg, from: VReg, words: u8) {
        for n in 0..words {
            self.emit(
                Op::machine(Opcode::Mov)
                    .dst(to.offset(n))
                    .src(&[Arg::vreg(from.offset(n))]),
            );
        }
    }

    /// Selects `ld.param` and `ld.const`.
    fn load_constant(&mut self, form: &Form<'t, 'a>, targets: &[Value<'a>], access: Access) -> Selected {
        if targets.len() > usize::from(MAX_WORDS) {
            return Err(form.unsupported());
        }
        if let Some(location) = self.param_location(form, form.operand(1)?, access)? {
            return self.load_param(form, targets, access, &location);
        }
        let Value::Address(base, offset) = form.operand(1)? else {
            return Err(form.unsupported());
        };
        let constant = match &**base {
            Value::Symbol(symbol, _) => match self.layout.location(*symbol) {
                Some(VarLoc::Param(at)) => {
                    check_bounds(form, *offset, access, self.param_bytes(*symbol))?;
                    Some((0, i64::from(at) + offset))
                }
                Some(VarLoc::Const(at)) => Some((CONST_BANK, i64::from(at).saturating_add(*offset))),
                _ => {
                    return Err(self
                        .address_of(form, *symbol, 0)
                        .err()
                        .unwrap_or_else(|| form.unsupported()));
                }
            },
            _ => None,
        };
        // An operand is a whole word of a bank. Unlike a load, it is never misaligned or out of bounds: both trap.
        let is_operand = |(bank, at): (u8, i64)| {
            let is_inside = bank == 0 || self.is_inside(base, *offset, access);
            let is_aligned = at % if bank == 0 { 4 } else { i64::from(access.total()) } == 0;
            access.bytes >= 4 && is_aligned && is_inside && u16::try_from(at).is_ok()
        };
        // An `ld.param` at a computed address reads the parameters in bank 0.
        let bank = if form.has(".const") { CONST_BANK } else { 0 };
        match constant {
            Some((bank, at)) if is_operand((bank, at)) => self.constant_words(form, targets, access, bank, at as u16),
            Some((bank, at)) => {
                // A displacement of 32 bits must not wrap into the bank.
                let at = at.clamp(i32::MIN.into(), i32::MAX.into());
                let op = constant_load(Arg::ZERO, bank, at, access);
                self.load_into(form, op, targets, access)
            }
            None => {
                let base = self.address(form, base)?;
                let op = constant_load(base.part(0), bank, *offset, access);
                self.load_into(form, op, targets, access)
            }
        }
    }

    /// True if an access at `offset` lies inside a variable.
    fn is_inside(&self, base: &Value<'a>, offset: i64, access: Access) -> bool {
        let Value::Symbol(symbol, _) = base else { return false };
        offset >= 0 && offset.saturating_add(access.total().into()) <= self.param_bytes(*symbol).into()
    }

    /// Copies words of a constant bank, used as operands, to the targets.
    fn constant_words(
        &mut self,
        form: &Form<'t, 'a>,
        targets: &[Value<'a>],
        access: Access,
        bank: u8,
        at: u16,
    ) -> Selected {
        for (n, target) in (0u16..).zip(targets).filter(|(_, target)| **target != Value::Sink) {
            let offset = at + n * u16::from(access.bytes);
            // A word of a constant bank is an operand: it takes no load, and often no register.
            let value = Arg::of(Bits::Const { bank, offset });
            let result = self.dst_of(form, target, form.ty())?;
            let words = self.word_count(target);
            if access.bytes == 16 {
                for n in 0..words {
                    self.copy(result.offset(n), value.part(n), Type::B32);
                }
                continue;
            }
            self.widen(result, words, value, access.bytes == 8, access.signed);
        }
        Ok(())
    }

    /// Selects `st`.
    fn store(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.has(".async") {
            return self.store_async(form);
        }
        form.only(MEMORY_QUALIFIERS)?;
        let values = vector_parts(form, 1)?;
        let access = access_of(form, values.len());
        if form.has(".param") || form.has(".param::func") {
            if values.len() > usize::from(MAX_WORDS) {
                return Err(form.unsupported());
            }
            return self.store_param(form, values, access);
        }
        let mem = self.mem_operand(form, 0, self.access_space(form, 0))?;
        let part = part_of(access);
        let parts = values.chunks(part.count.into());
        let groups = parts
            .map(|values| self.gather(form, values, part))
            .collect::<Result<Vec<Arg>, _>>()?;
        if form.has(".release") {
            self.release(scope_of(form));
        }
        for (n, group) in (0..).zip(groups) {
            let op = self.access(form, Opcode::St, &[group], mem, access, n);
            self.emit(op);
        }
        Ok(())
    }

    /// Copies values into consecutive registers of one group.
    pub(super) fn gather(
        &mut self,
        form: &Form<'t, 'a>,
        values: &[Value<'a>],
        access: Access,
    ) -> Result<Arg, Diagnostic> {
        let each = (access.words() / access.count).max(1);
        // A single value needs no group of its own.
        if let [value] = values {
            return self.arg(form, value, form.ty());
        }
        let group = self.code.new_group(access.words());
        for (n, value) in (0..).zip(values) {
            let value = self.arg(form, value, form.ty())?;
            for word in 0..each {
                let op = Op::machine(Opcode::Mov)
                    .dst(group.offset(n * each + word))
                    .src(&[value.part(word)]);
                self.emit(op);
            }
        }
        Ok(Arg::vreg(group))
    }
}

/// Reports an access outside a parameter.
pub(super) fn check_bounds(form: &Form<'_, '_>, offset: i64, access: Access, bytes: u32) -> Selected {
    if offset >= 0 && offset.saturating_add(access.total().into()) <= bytes.into() {
        return Ok(());
    }
    Err(form.malformed(&format!("an access outside of the {bytes} bytes of this parameter")))
}

/// Returns the one to eight elements of a vector operand.
pub(super) fn vector_parts<'t, 'a>(form: &Form<'t, 'a>, n: usize) -> Result<&'t [Value<'a>], Diagnostic> {
    match parts(form.operand(n)?) {
        parts if (1..=8).contains(&parts.len()) => Ok(parts),
        _ => Err(form.malformed("a vector has one to eight elements")),
    }
}

fn constant_load(base: Arg, bank: u8, offset: i64, access: Access) -> Op {
    Op::machine(Opcode::Ldc).src(&[base]).mods(|mods: &mut Mods| {
        mods.space = Space::Const;
        mods.bank = bank;
        mods.offset = offset as i32;
        mods.access = access;
    })
}

/// Returns a MEMBAR: the warp waits for its own accesses, and beyond CTA scope for all accesses of its SM.
fn membar(scope: Scope) -> Op {
    Op::machine(Opcode::Membar).mods(|mods| mods.scope = scope)
}

/// True if an address in a space has 64 bits.
pub(super) fn has_wide_addresses(space: Space) -> bool {
    matches!(space, Space::Global | Space::Generic)
}

fn access_of(form: &Form<'_, '_>, count: usize) -> Access {
    Access {
        bytes: form.ty().bytes() as u8,
        count: count as u8,
        signed: form.ty().is_signed(),
    }
}

/// Returns the state space of an access; generic without a qualifier.
pub(super) fn space_of(form: &Form<'_, '_>) -> Space {
    match () {
        () if form.has(".global") => Space::Global,
        () if form.has(".shared") || form.has(".shared::cta") => Space::Shared,
        () if form.has(".shared::cluster") => Space::Cluster,
        () if form.has(".local") => Space::Local,
        () if form.has(".const") => Space::Const,
        () => Space::Generic,
    }
}

/// Returns the cache policy of an access. A strong or volatile access is not cached.
pub(super) fn cache_of(form: &Form<'_, '_>) -> CacheOp {
    let any = |names: &[&str]| names.iter().any(|&name| form.has(name));
    match () {
        // A strong access must see stores of other SMs, which the L1 does not follow.
        () if any(&[".volatile", ".cv", ".wt", ".relaxed", ".acquire", ".release", ".mmio"]) => CacheOp::Volatile,
        () if form.has(".nc") => CacheOp::ReadOnly,
        () if form.has(".cg") => CacheOp::Global,
        () if any(&[".cs", ".lu"]) => CacheOp::Streaming,
        () => CacheOp::All,
    }
}

/// Returns the scope of an access or fence. Cluster scope becomes GPU scope, because a cluster spans SMs.
pub(super) fn scope_of(form: &Form<'_, '_>) -> Scope {
    match () {
        () if form.has(".cta") => Scope::Cta,
        () if form.has(".sys") => Scope::Sys,
        () => Scope::Gpu,
    }
}
