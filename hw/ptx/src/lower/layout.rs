//! Layout: the location of each variable.
//!
//! Every variable that a kernel can name gets a [`VarLoc`]. The address of a global variable is known only at load time. The host
//! then writes it to bank [`ADDRESS_BANK`], 8 bytes per variable.

mod module;
mod reference;

use super::callgraph;
use crate::ast::{Space, Variable};
use crate::check::{Body, Checked, SymbolId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use warpwave_isa::exec::texture::Sampler;
use warpwave_isa::program::{self as isa, Param};
use warpwave_isa::space::{PARAM_WINDOW, Space as MemorySpace, WINDOW_BYTES, bank0};

pub(crate) use module::ModuleLayout;
pub use module::{Constant, Global};

/// Constant bank with the `.const` variables.
pub const CONST_BANK: u8 = 3;
/// Constant bank with the addresses of global variables: variable `n` of [`crate::Module::globals`] at byte `8 * n`. Behind them are
/// the handles of [`crate::Module::references`], 8 bytes each.
pub const ADDRESS_BANK: u8 = 4;

/// Name of the global variable with a copy of the constants, which their generic addresses lead to. The host fills it.
///
/// A module has it if its code or data hold such an address.
pub const CONSTANTS_COPY: &str = "copy of the constants";

/// Window of the module's constants, after the window of the parameters. Only bulk copies that name a tensor map read there.
pub(super) const CONST_WINDOW: u64 = PARAM_WINDOW + WINDOW_BYTES;

/// Location of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VarLoc {
    /// Offset in constant bank 0.
    Param(u32),
    /// Offset in the constant image.
    Const(u32),
    /// Index in the global variables.
    Global(u32),
    /// Offset in the CTA's shared memory.
    Shared(u32),
    /// Offset in the thread's local memory.
    Local(u32),
    /// A parameter or result of a call.
    Call,
    /// Index in the texture, surface and sampler references.
    Handle(u32),
    /// A sampler with its modes in the text.
    Sampler(Sampler),
}

/// Locations of the variables that one kernel can name.
pub(crate) struct Layout<'m> {
    module: &'m ModuleLayout,
    /// Locations of the variables of the kernel and its functions.
    locations: HashMap<SymbolId, VarLoc>,
    pub params: Vec<Param>,
    pub shared_bytes: u32,
    pub local_bytes: u32,
    /// Variables declared inside functions, for debuggers and reports.
    pub variables: Vec<isa::Variable>,
    /// Names of dynamic shared memory.
    dynamic: HashSet<SymbolId>,
    /// Offset of dynamic shared memory, after all static variables.
    dynamic_offset: u32,
    /// Functions that can call themselves.
    recursive: HashSet<String>,
    /// Offset in local memory of the stack for recursive functions.
    pub stack_offset: u32,
}

/// Bytes of local memory for the stack of recursive functions. This is four times CUDA's default per thread, because frames
/// here hold copies that an optimising compiler removes.
const STACK_BYTES: u32 = 4096;

/// Maximum number of names of dynamic shared memory kept in a program. All of them name the same bytes.
const DYNAMIC_NAMES: usize = 16;

impl<'m> Layout<'m> {
    pub fn of(checked: &Checked<'_, '_>, module: &'m ModuleLayout, body: &Body<'_, '_>) -> Layout<'m> {
        let mut layout = Layout {
            module,
            locations: HashMap::new(),
            params: Vec::new(),
            shared_bytes: module.shared_bytes,
            local_bytes: module.local_bytes,
            variables: Vec::new(),
            dynamic: HashSet::new(),
            dynamic_offset: 0,
            recursive: HashSet::new(),
            stack_offset: 0,
        };
        layout.place_params(checked, body);
        layout.place_variables(checked, body);
        if layout.has_stack() {
            // Aligned as `alloca` aligns by default.
            layout.stack_offset = layout.local_bytes.next_multiple_of(8);
            layout.local_bytes = layout.stack_offset.saturating_add(STACK_BYTES);
        }
        layout
    }

    pub fn location(&self, symbol: SymbolId) -> Option<VarLoc> {
        // The offset depends on the kernel's static variables, so the module layout has none.
        if self.dynamic.contains(&symbol) || self.module.dynamic.symbols.contains(&symbol) {
            return Some(VarLoc::Shared(self.dynamic_offset));
        }
        let own = self.locations.get(&symbol);
        own.or_else(|| self.module.locations.get(&symbol)).copied()
    }

    /// Returns the index of the `printf` buffer in the global variables, if the module calls `vprintf`.
    pub fn print_buffer(&self) -> Option<u32> {
        self.module.print_buffer
    }

    /// Returns the offset of a reference's handle in bank [`ADDRESS_BANK`].
    pub fn handle_offset(&self, index: u32) -> u16 {
        (8 * (self.module.globals.len() as u32 + index)) as u16
    }

    /// Returns the functions whose address the module takes, as indices of bodies.
    pub fn address_taken(&self) -> &'m [usize] {
        &self.module.calls.address_taken
    }

    /// True if the module takes the generic address of a parameter.
    pub fn params_are_generic(&self) -> bool {
        self.module.generic_params
    }

    /// Returns the module's variables in shared, local and constant memory, for debuggers and reports.
    pub fn module_variables(&self) -> Arc<[isa::Variable]> {
        Arc::clone(&self.module.variables)
    }

    /// True if the function can call itself.
    pub fn is_recursive(&self, name: &str) -> bool {
        self.recursive.contains(name)
    }

    /// Returns the names of the functions that can call themselves, sorted.
    pub fn recursive_functions(&self) -> Vec<String> {
        let mut names: Vec<String> = self.recursive.iter().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns the bytes of the stack.
    pub fn stack_bytes(&self) -> u32 {
        if self.has_stack() { STACK_BYTES } else { 0 }
    }

    /// True if the kernel needs a stack: for recursion, or for memory that a function allocates.
    pub fn has_stack(&self) -> bool {
        self.module.uses_stack || !self.recursive.is_empty()
    }

    /// Places the kernel's parameters in constant bank 0, in order.
    fn place_params(&mut self, checked: &Checked<'_, '_>, body: &Body<'_, '_>) {
        let mut end = 0;
        for &symbol in &body.params {
            let variable = checked.symbols[symbol.0 as usize];
            let offset = append_variable(&mut end, variable);
            self.locations
                .insert(symbol, VarLoc::Param(u32::from(bank0::PARAMS) + offset));
            self.params.push(Param {
                name: variable.name.text.to_owned(),
                offset,
                bytes: variable.bytes() as u32,
                align: variable.alignment() as u32,
                is_float: variable.ty.is_float(),
            });
        }
    }

    /// Places static shared variables in order, then dynamic shared memory. All `.extern .shared` names share one offset.
    fn place_variables(&mut self, checked: &Checked<'_, '_>, body: &Body<'_, '_>) {
        let functions = callgraph::functions(checked, &self.module.calls, body);
        let is_recursive = |function: &&&Body<'_, '_>| self.module.calls.is_recursive(function.number);
        let recursive = functions.iter().filter(is_recursive);
        self.recursive = recursive
            .map(|function| function.function.name.text.to_owned())
            .collect();
        let own = functions.iter().flat_map(|body| body.symbols.iter().copied());
        // The first function is the kernel, with its parameters in bank 0.
        let of_functions = functions.iter().skip(1).flat_map(|body| body.params.iter().copied());
        let mut dynamic = DynamicShared {
            align: self.module.dynamic.align,
            names: self.module.dynamic.names.clone(),
            symbols: HashSet::new(),
        };
        for symbol in own.chain(of_functions) {
            let variable = checked.symbols[symbol.0 as usize];
            let ends = (&mut self.shared_bytes, &mut self.local_bytes);
            // Call parameters are in registers, not in memory.
            if variable.space == Space::Param {
                self.locations.insert(symbol, VarLoc::Call);
            } else if is_dynamic(variable) {
                // All names of dynamic shared memory share one offset, with the largest alignment.
                dynamic.add(symbol, variable);
            } else if let Some((location, named)) = place_in_memory(variable, ends) {
                self.variables.push(named);
                self.locations.insert(symbol, location);
            }
        }
        self.place_dynamic(dynamic);
    }

    /// Places dynamic shared memory after all other variables.
    fn place_dynamic(&mut self, dynamic: DynamicShared) {
        let Some(align) = dynamic.align else { return };
        let start = u64::from(self.shared_bytes).next_multiple_of(align);
        self.dynamic_offset = u32::try_from(start).unwrap_or(u32::MAX);
        // A launch adds its dynamic bytes from here.
        self.shared_bytes = self.dynamic_offset;
        let named = dynamic.names.into_iter().map(|name| isa::Variable {
            name,
            space: MemorySpace::Shared,
            offset: self.dynamic_offset,
            // The launch sets the size.
            bytes: 0,
        });
        self.variables.extend(named);
        self.dynamic = dynamic.symbols;
    }
}

/// The names of dynamic shared memory.
#[derive(Default)]
struct DynamicShared {
    /// Largest alignment in bytes; `None` without a name.
    align: Option<u64>,
    /// The first names, for debuggers and reports.
    names: Vec<String>,
    symbols: HashSet<SymbolId>,
}

impl DynamicShared {
    fn add(&mut self, symbol: SymbolId, variable: &Variable<'_>) {
        self.align = self.align.max(Some(variable.alignment()));
        self.symbols.insert(symbol);
        if self.names.len() < DYNAMIC_NAMES {
            self.names.push(variable.name.text.to_owned());
        }
    }
}

fn is_dynamic(variable: &Variable<'_>) -> bool {
    variable.space == Space::Shared && variable.dims.contains(&None)
}

/// Places a variable of shared or local memory. `ends` are the end offsets of the two spaces.
fn place_in_memory(variable: &Variable<'_>, ends: (&mut u32, &mut u32)) -> Option<(VarLoc, isa::Variable)> {
    match variable.space {
        Space::Shared => {
            let offset = append_variable(ends.0, variable);
            Some((VarLoc::Shared(offset), named(variable, MemorySpace::Shared, offset)))
        }
        Space::Local => {
            let offset = append_variable(ends.1, variable);
            Some((VarLoc::Local(offset), named(variable, MemorySpace::Local, offset)))
        }
        _ => None,
    }
}

fn named(variable: &Variable<'_>, space: MemorySpace, offset: u32) -> isa::Variable {
    isa::Variable {
        name: variable.name.text.to_owned(),
        space,
        offset,
        bytes: variable.bytes() as u32,
    }
}

/// Places a variable at the aligned end of a space, moves the end, and returns the offset.
pub(super) fn append_variable(end: &mut u32, variable: &Variable<'_>) -> u32 {
    // The checker bounds each variable, but not their sum. The sum saturates.
    let offset = u64::from(*end).next_multiple_of(variable.alignment());
    let clamped = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    *end = clamped(offset + variable.bytes());
    clamped(offset)
}
