//! Where variables live: parameters in constant bank 0, shared and local offsets, the constant image, global variables.
//!
//! Takes: a checked module and one kernel of it. Promises: every variable that the kernel may name has a [`Place`].
//! A global's address is not known before it is loaded: the host writes it to bank [`ADDRESS_BANK`], 8 bytes a variable.

use super::callgraph::{self, CallGraph};
use super::init::{Image, Initializers, Relocation};
use crate::ast::{Space, Variable};
use crate::check::{Body, Checked, SymbolId};
use crate::diag::{Diagnostic, Severity, Span};
use crate::print;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use warpwave_isa::program::{self as isa, Param};
use warpwave_isa::space::{PARAM_WINDOW, Space as MemorySpace, WINDOW_BYTES, bank0};

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

/// A module-scope variable in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its symbol.
    pub name: String,
    /// Initial bytes; as many as the variable has.
    pub bytes: Vec<u8>,
    /// Alignment in bytes.
    pub align: u32,
    /// Addresses of global variables in `bytes`, which the host writes.
    pub relocations: Vec<Relocation>,
}

/// A module-scope variable in constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its symbol.
    pub name: String,
    /// First byte in the constant image.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
}

impl Constant {
    fn as_variable(&self) -> isa::Variable {
        isa::Variable {
            name: self.name.clone(),
            space: MemorySpace::Const,
            offset: self.offset,
            bytes: self.bytes,
        }
    }
}

/// Bytes of constant bank 3.
const CONST_BYTES: usize = 1 << 16;

/// A module's own variables and their initial bytes, and what else holds for all of its kernels.
#[derive(Default)]
pub(crate) struct ModuleLayout {
    places: HashMap<SymbolId, Place>,
    pub constant: Vec<u8>,
    pub constants: Vec<Constant>,
    pub globals: Vec<Global>,
    /// The number of the buffer for `vprintf` among them.
    print_buffer: Option<u32>,
    /// Bytes of its variables in shared memory, and in local memory.
    shared_bytes: u32,
    local_bytes: u32,
    dynamic: Dynamic,
    /// Its variables in shared, local and constant memory, for people.
    variables: Arc<[isa::Variable]>,
    calls: CallGraph,
    /// Whether a function takes memory from the stack by itself.
    takes_stack: bool,
    /// Addresses in the constant image that the host writes.
    pub constant_relocations: Vec<Relocation>,
    /// True if some initial value or function takes the generic address of a constant or parameter.
    generic_constants: bool,
    /// Unsupported initial values, each with its variable.
    pub unsupported: Vec<(SymbolId, Diagnostic)>,
}

impl ModuleLayout {
    pub fn of(checked: &Checked<'_, '_>, findings: &mut Vec<Diagnostic>) -> ModuleLayout {
        let mut layout = ModuleLayout {
            calls: CallGraph::of(checked),
            takes_stack: checked.bodies.iter().any(callgraph::uses_stack),
            ..ModuleLayout::default()
        };
        let variables = &checked.symbols[..checked.n_module_symbols];
        let mut in_memory = Vec::new();
        for (n, variable) in variables.iter().enumerate() {
            in_memory.extend(layout.place(SymbolId(n as u32), variable));
        }
        let constants = layout.constants.iter().map(Constant::as_variable);
        layout.variables = constants.chain(in_memory).collect();
        layout.fill(checked, findings);
        layout.place_print_buffer(checked);
        if layout.globals.len() > CONST_BYTES / 8 {
            let message = "more global variables than the bank of their addresses holds (8192)";
            findings.push(Diagnostic::malformed(Span::default(), message));
        }
        if layout.constant.len() > CONST_BYTES {
            let last = variables.iter().rfind(|variable| variable.space == Space::Const);
            let span = last.map(|variable| variable.name.span).unwrap_or_default();
            findings.push(Diagnostic::malformed(span, "the constant variables exceed 64 KiB"));
        }
        layout
    }

    /// Writes the initial values. Malformed ones go to `findings`.
    fn fill(&mut self, checked: &Checked<'_, '_>, findings: &mut Vec<Diagnostic>) {
        let mut initializers = Initializers::new(checked, &self.places);
        let variables = checked.symbols[..checked.n_module_symbols].iter();
        for (n, variable) in (0..).zip(variables) {
            let Some(init) = &variable.init else { continue };
            let symbol = SymbolId(n);
            match self.places.get(&symbol) {
                Some(&Place::Global(index)) => {
                    let global = &mut self.globals[index as usize];
                    let mut image = Image::new(variable, &mut global.bytes);
                    initializers.fill(&mut image, init);
                    global.relocations = image.relocations;
                }
                Some(&Place::Const(offset)) => {
                    let end = self.constant.len().min(offset as usize + variable.bytes() as usize);
                    let mut image = Image::new(variable, &mut self.constant[offset as usize..end]);
                    initializers.fill(&mut image, init);
                    let moved = image.relocations.into_iter().map(|relocation| Relocation {
                        at: relocation.at + offset,
                        ..relocation
                    });
                    self.constant_relocations.extend(moved);
                }
                _ => {}
            }
            for finding in initializers.findings.drain(..) {
                match finding.severity {
                    Severity::Unsupported => self.unsupported.push((symbol, finding)),
                    _ => findings.push(finding),
                }
            }
        }
        self.generic_constants =
            initializers.generic_constants || checked.bodies.iter().any(callgraph::takes_constant_addresses);
    }

    /// Findings on unsupported data that a kernel can reach.
    pub fn unsupported_for(&self, checked: &Checked<'_, '_>, kernel: &Body<'_, '_>) -> Vec<Diagnostic> {
        if self.unsupported.is_empty() {
            return Vec::new();
        }
        let reached = callgraph::reachable_data(checked, &self.calls, kernel);
        let faults = self.unsupported.iter().filter(|(symbol, _)| reached.contains(symbol));
        faults.map(|(_, finding)| finding.clone()).collect()
    }

    /// A module that calls `vprintf` gets a buffer for what it prints.
    fn place_print_buffer(&mut self, checked: &Checked<'_, '_>) {
        if !callgraph::calls(checked, "vprintf") {
            return;
        }
        self.print_buffer = Some(self.globals.len() as u32);
        self.globals.push(Global {
            name: print::BUFFER.to_owned(),
            bytes: vec![0; print::BYTES as usize],
            align: 16,
            relocations: Vec::new(),
        });
    }

    /// Places a variable. Returns what people may know of it, unless it is a constant or in device memory.
    fn place(&mut self, symbol: SymbolId, variable: &Variable<'_>) -> Option<isa::Variable> {
        let mut of_memory = None;
        let place = match variable.space {
            Space::Const => {
                let mut end = self.constant.len() as u32;
                let offset = advance(&mut end, variable);
                let capped = (end as usize).min(2 * CONST_BYTES);
                self.constant.resize(capped.max(self.constant.len()), 0);
                self.constants.push(Constant {
                    name: variable.name.text.to_owned(),
                    offset,
                    bytes: variable.bytes() as u32,
                });
                Place::Const(offset.min(CONST_BYTES as u32))
            }
            Space::Global if variable.ty == crate::ast::Type::Handle => Place::Handle,
            Space::Tex => Place::Handle,
            Space::Global => {
                self.globals.push(Global {
                    name: variable.name.text.to_owned(),
                    bytes: vec![0; variable.bytes() as usize],
                    align: variable.alignment() as u32,
                    relocations: Vec::new(),
                });
                Place::Global(self.globals.len() as u32 - 1)
            }
            _ if is_dynamic(variable) => {
                self.dynamic.add(symbol, variable);
                return None;
            }
            _ => {
                let ends = (&mut self.shared_bytes, &mut self.local_bytes);
                let (place, named) = in_memory(variable, ends)?;
                of_memory = Some(named);
                place
            }
        };
        self.places.insert(symbol, place);
        of_memory
    }
}
