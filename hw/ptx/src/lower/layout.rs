//! Where variables live: parameters in constant bank 0, shared and local offsets, the constant image, global variables.
//!
//! Takes: a checked module and one kernel of it. Promises: every variable that the kernel may name has a [`Place`].
//! A global's address is not known before it is loaded: the host writes it to bank [`ADDRESS_BANK`], 8 bytes a variable.

mod module;

use super::callgraph;
use crate::ast::{Space, Variable};
use crate::check::{Body, Checked, SymbolId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use warpwave_isa::program::{self as isa, Param};
use warpwave_isa::space::{PARAM_WINDOW, Space as MemorySpace, WINDOW_BYTES, bank0};

pub(crate) use module::ModuleLayout;
pub use module::{Constant, Global};

/// The constant bank of `.const` variables.
pub const CONST_BANK: u8 = 3;
/// The constant bank of global variables' addresses: variable `n` of [`crate::Module::globals`] at byte `8 * n`.
pub const ADDRESS_BANK: u8 = 4;

/// The generic-address window of the module's constants, behind that of the parameters. Only loads read there.
pub(super) const CONST_WINDOW: u64 = PARAM_WINDOW + WINDOW_BYTES;

/// Where a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Offset in constant bank 0.
    Param(u32),
    /// Offset in the constant image.
    Const(u32),
    /// Index among the global variables.
    Global(u32),
    /// Offset in the CTA's shared memory.
    Shared(u32),
    /// Offset in the thread's local memory.
    Local(u32),
    /// A parameter or result of a call.
    Call,
    /// A handle of a texture or surface.
    Handle,
}

/// Places of the variables that one kernel sees.
pub(crate) struct Layout<'m> {
    module: &'m ModuleLayout,
    /// Places of the kernel's own variables and of those of its functions.
    places: HashMap<SymbolId, Place>,
    pub params: Vec<Param>,
    pub shared_bytes: u32,
    pub local_bytes: u32,
    /// Variables that are not the module's.
    pub variables: Vec<isa::Variable>,
    /// Its names of dynamic shared memory, and where that begins.
    dynamic: HashSet<SymbolId>,
    dynamic_at: u32,
    /// Functions that may come to call themselves.
    recursive: HashSet<String>,
    /// Where the stack of such functions begins in local memory.
    pub stack_at: u32,
}

/// Bytes of local memory for the stack of functions that call themselves, four times what CUDA gives a thread by default, since the
/// frames here hold copies that a compiler's would not.
const STACK_BYTES: u32 = 4096;

/// Names of dynamic shared memory that a program knows. All of them mean the same bytes.
const DYNAMIC_NAMES: usize = 16;

impl<'m> Layout<'m> {
    pub fn of(checked: &Checked<'_, '_>, module: &'m ModuleLayout, body: &Body<'_, '_>) -> Layout<'m> {
        let mut layout = Layout {
            module,
            places: HashMap::new(),
            params: Vec::new(),
            shared_bytes: module.shared_bytes,
            local_bytes: module.local_bytes,
            variables: Vec::new(),
            dynamic: HashSet::new(),
            dynamic_at: 0,
            recursive: HashSet::new(),
            stack_at: 0,
        };
        layout.place_params(checked, body);
        layout.place_variables(checked, body);
        if layout.has_stack() {
            layout.stack_at = layout.local_bytes.next_multiple_of(8);
            layout.local_bytes = layout.stack_at.saturating_add(STACK_BYTES);
        }
        layout
    }

    pub fn place(&self, symbol: SymbolId) -> Option<Place> {
        if self.dynamic.contains(&symbol) || self.module.dynamic.symbols.contains(&symbol) {
            return Some(Place::Shared(self.dynamic_at));
        }
        let own = self.places.get(&symbol);
        own.or_else(|| self.module.places.get(&symbol)).copied()
    }

    /// The number among the global variables of the buffer for `vprintf`, in modules that call it.
    pub fn print_buffer(&self) -> Option<u32> {
        self.module.print_buffer
    }

    /// The functions whose address the module takes, by their place among those with a body.
    pub fn taken(&self) -> &'m [usize] {
        &self.module.calls.taken
    }

    /// Whether the module takes the generic address of a parameter or constant.
    pub fn constants_are_generic(&self) -> bool {
        self.module.generic_constants
    }

    /// The module's variables in shared, local and constant memory, for people.
    pub fn module_variables(&self) -> Arc<[isa::Variable]> {
        Arc::clone(&self.module.variables)
    }

    /// Whether a function of this name may come to call itself.
    pub fn is_recursive(&self, name: &str) -> bool {
        self.recursive.contains(name)
    }

    /// Whether any function may, or takes memory from the stack by itself.
    pub fn has_stack(&self) -> bool {
        self.module.takes_stack || !self.recursive.is_empty()
    }

    fn place_params(&mut self, checked: &Checked<'_, '_>, body: &Body<'_, '_>) {
        let mut end = 0;
        for &symbol in &body.params {
            let variable = checked.symbols[symbol.0 as usize];
            let offset = advance(&mut end, variable);
            self.places
                .insert(symbol, Place::Param(u32::from(bank0::PARAMS) + offset));
            self.params.push(Param {
                name: variable.name.text.to_owned(),
                offset,
                bytes: variable.bytes() as u32,
                align: variable.alignment() as u32,
            });
        }
    }

    /// Static shared variables in order, then the dynamic part: all `.extern .shared` names are its start.
    fn place_variables(&mut self, checked: &Checked<'_, '_>, body: &Body<'_, '_>) {
        let functions = callgraph::functions(checked, &self.module.calls, body);
        let is_recursive = |function: &&&Body<'_, '_>| self.module.calls.is_recursive(function.number);
        let recursive = functions.iter().filter(is_recursive);
        self.recursive = recursive
            .map(|function| function.function.name.text.to_owned())
            .collect();
        let own = functions.iter().flat_map(|body| body.symbols.iter().copied());
        let of_functions = functions.iter().skip(1).flat_map(|body| body.params.iter().copied());
        let mut dynamic = Dynamic {
            align: self.module.dynamic.align,
            names: self.module.dynamic.names.clone(),
            symbols: HashSet::new(),
        };
        for symbol in own.chain(of_functions) {
            let variable = checked.symbols[symbol.0 as usize];
            let ends = (&mut self.shared_bytes, &mut self.local_bytes);
            if variable.space == Space::Param {
                self.places.insert(symbol, Place::Call);
            } else if is_dynamic(variable) {
                dynamic.add(symbol, variable);
            } else if let Some((place, named)) = in_memory(variable, ends) {
                self.variables.push(named);
                self.places.insert(symbol, place);
            }
        }
        self.place_dynamic(dynamic);
    }

    /// Dynamic shared memory begins behind all other variables.
    fn place_dynamic(&mut self, dynamic: Dynamic) {
        let Some(align) = dynamic.align else { return };
        let start = u64::from(self.shared_bytes).next_multiple_of(align);
        self.dynamic_at = u32::try_from(start).unwrap_or(u32::MAX);
        self.shared_bytes = self.dynamic_at;
        let named = dynamic.names.into_iter().map(|name| isa::Variable {
            name,
            space: MemorySpace::Shared,
            offset: self.dynamic_at,
            bytes: 0,
        });
        self.variables.extend(named);
        self.dynamic = dynamic.symbols;
    }
}

/// The names of dynamic shared memory.
#[derive(Default)]
struct Dynamic {
    /// The largest alignment; none without a name.
    align: Option<u64>,
    /// Some of the names, for people.
    names: Vec<String>,
    symbols: HashSet<SymbolId>,
}

impl Dynamic {
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

/// Puts a variable of shared or local memory behind the others, given where those of each space end.
fn in_memory(variable: &Variable<'_>, ends: (&mut u32, &mut u32)) -> Option<(Place, isa::Variable)> {
    match variable.space {
        Space::Shared => {
            let offset = advance(ends.0, variable);
            Some((Place::Shared(offset), named(variable, MemorySpace::Shared, offset)))
        }
        Space::Local => {
            let offset = advance(ends.1, variable);
            Some((Place::Local(offset), named(variable, MemorySpace::Local, offset)))
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

/// Puts a variable behind `end` and returns its offset.
pub(super) fn advance(end: &mut u32, variable: &Variable<'_>) -> u32 {
    // The checker bounds each variable; what many of them add up to stays at the greatest number.
    let offset = u64::from(*end).next_multiple_of(variable.alignment());
    let clamped = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    *end = clamped(offset + variable.bytes());
    clamped(offset)
}
