//! The module layout: locations and initial bytes of module variables, and other facts common to all kernels.

use super::{CONSTANTS_COPY, DynamicShared, VarLoc, append_variable, is_dynamic, place_in_memory, reference};
use crate::ast::{Linkage, Space, Variable};
use crate::check::{Body, Checked, SymbolId};
use crate::diag::{Diagnostic, Severity, Span};
use crate::lower::callgraph::{self, CallGraph};
use crate::lower::init::{Image, Initializers, Relocation};
use crate::printf;
use std::collections::HashMap;
use std::sync::Arc;
use warpwave_isa::program as isa;
use warpwave_isa::space::Space as MemorySpace;

/// A module-scope variable in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Name of the variable.
    pub name: String,
    /// Initial bytes, for the whole size of the variable.
    pub bytes: Vec<u8>,
    /// Alignment in bytes.
    pub align: u32,
    /// Addresses of global variables in `bytes`. The host writes them when it loads the module.
    pub relocations: Vec<Relocation>,
}

/// A module-scope variable in constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name of the variable.
    pub name: String,
    /// Offset of its first byte in the constant image.
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

/// Size of constant bank 3 in bytes.
const CONST_BYTES: usize = 1 << 16;

/// Adds a finding about the initial value of a variable.
fn add_finding(
    unsupported: &mut Vec<(SymbolId, Diagnostic)>,
    symbol: SymbolId,
    finding: Diagnostic,
    findings: &mut Vec<Diagnostic>,
) {
    match finding.severity {
        // Only kernels that can reach the variable fail.
        Severity::Unsupported => unsupported.push((symbol, finding)),
        _ => findings.push(finding),
    }
}

/// True for a variable with bytes in device or constant memory.
fn is_in_image(variable: &Variable<'_>) -> bool {
    matches!(variable.space, Space::Global | Space::Const) && !is_reference(variable)
}

/// True for a texture, surface or sampler reference of the module.
fn is_reference(variable: &Variable<'_>) -> bool {
    variable.space == Space::Tex || variable.space == Space::Global && variable.ty.is_reference()
}

/// Locations and initial bytes of a module's variables, and other facts common to all its kernels.
#[derive(Default)]
pub(crate) struct ModuleLayout {
    pub(super) locations: HashMap<SymbolId, VarLoc>,
    pub constant_image: Vec<u8>,
    pub constants: Vec<Constant>,
    pub globals: Vec<Global>,
    /// Names of texture, surface and sampler references, in text order.
    pub references: Vec<String>,
    /// Index of the `printf` buffer in `globals`.
    pub(super) print_buffer: Option<u32>,
    /// Bytes of module variables in shared memory, and in local memory.
    pub(super) shared_bytes: u32,
    pub(super) local_bytes: u32,
    pub(super) dynamic: DynamicShared,
    /// Variables in shared, local and constant memory, for debuggers and reports.
    pub(super) variables: Arc<[isa::Variable]>,
    pub(super) calls: CallGraph,
    /// True if a function allocates stack memory.
    pub(super) uses_stack: bool,
    /// Addresses in the constant image that the host writes.
    pub constant_relocations: Vec<Relocation>,
    /// True if a function takes the generic address of a parameter.
    pub(super) generic_params: bool,
    /// Unsupported initial values, with their variables.
    pub unsupported: Vec<(SymbolId, Diagnostic)>,
}

impl ModuleLayout {
    /// Lays out a module. Malformed initial values and sizes become `findings`.
    pub fn of(checked: &Checked<'_, '_>, findings: &mut Vec<Diagnostic>) -> ModuleLayout {
        let mut layout = ModuleLayout {
            calls: CallGraph::of(checked),
            uses_stack: checked.bodies.iter().any(callgraph::uses_stack),
            ..ModuleLayout::default()
        };
        let mut in_memory = Vec::new();
        for (symbol, variable) in checked.static_variables() {
            match reference::initialised(variable) {
                Some(Ok(sampler)) => _ = layout.locations.insert(symbol, VarLoc::Sampler(sampler)),
                Some(Err(finding)) => {
                    layout.place(symbol, variable);
                    add_finding(&mut layout.unsupported, symbol, finding, findings);
                }
                None => in_memory.extend(layout.place(symbol, variable)),
            }
            if variable.linkage == Linkage::Extern && is_in_image(variable) {
                let name = variable.name;
                layout
                    .unsupported
                    .push((symbol, callgraph::undefined(name.text, name.span)));
            }
        }
        let constants = layout.constants.iter().map(Constant::as_variable);
        layout.variables = constants.chain(in_memory).collect();
        layout.fill(checked, findings);
        layout.place_print_buffer(checked);
        if layout.globals.len() + layout.references.len() > CONST_BYTES / 8 {
            let message = "more than 8192 global variables and references, the capacity of the address bank";
            findings.push(Diagnostic::malformed(Span::default(), message));
        }
        if layout.constant_image.len() > CONST_BYTES {
            let constants = checked.static_variables();
            let last = constants.filter(|(_, variable)| variable.space == Space::Const).last();
            let span = last.map(|(_, variable)| variable.name.span).unwrap_or_default();
            findings.push(Diagnostic::malformed(span, "the constant variables exceed 64 KiB"));
        }
        layout
    }

    /// Writes the initial values. Malformed values become `findings`.
    fn fill(&mut self, checked: &Checked<'_, '_>, findings: &mut Vec<Diagnostic>) {
        // The copy comes behind the variables of the text, if it is needed.
        let copy = self.globals.len() as u32;
        let mut initializers = Initializers::new(checked, &self.locations, copy);
        for (symbol, variable) in checked.static_variables() {
            let Some(init) = &variable.init else { continue };
            match self.locations.get(&symbol) {
                Some(&VarLoc::Global(index)) => {
                    let global = &mut self.globals[index as usize];
                    let mut image = Image::new(variable, &mut global.bytes);
                    initializers.fill(symbol, &mut image, init);
                    global.relocations = image.relocations;
                }
                Some(&VarLoc::Const(offset)) => {
                    let end = self
                        .constant_image
                        .len()
                        .min(offset as usize + variable.bytes() as usize);
                    let mut image = Image::new(variable, &mut self.constant_image[offset as usize..end]);
                    initializers.fill(symbol, &mut image, init);
                    let moved = image.relocations.into_iter().map(|relocation| Relocation {
                        at: relocation.at + offset,
                        ..relocation
                    });
                    self.constant_relocations.extend(moved);
                }
                _ => {}
            }
            for finding in initializers.findings.drain(..) {
                add_finding(&mut self.unsupported, symbol, finding, findings);
            }
        }
        let takes = |spaces: &[&str]| {
            checked
                .bodies
                .iter()
                .any(|body| callgraph::takes_addresses(body, spaces))
        };
        self.generic_params = takes(&[".param", ".param::entry"]);
        if initializers.generic_constants || takes(&[".const"]) {
            self.globals.push(Global {
                name: CONSTANTS_COPY.to_owned(),
                // As large as the bank, so that one comparison tells its addresses.
                bytes: vec![0; CONST_BYTES],
                align: 256,
                relocations: Vec::new(),
            });
        }
    }

    /// Returns the findings for unsupported data that a kernel can reach.
    pub fn unsupported_for(&self, checked: &Checked<'_, '_>, kernel: &Body<'_, '_>) -> Vec<Diagnostic> {
        // The reachability is rarely needed.
        if self.unsupported.is_empty() {
            return Vec::new();
        }
        let reached = callgraph::reachable_data(checked, &self.calls, kernel);
        let faults = self.unsupported.iter().filter(|(symbol, _)| reached.contains(symbol));
        faults.map(|(_, finding)| finding.clone()).collect()
    }

    /// Adds the `printf` buffer to a module that calls `vprintf`.
    fn place_print_buffer(&mut self, checked: &Checked<'_, '_>) {
        if !callgraph::calls_external(checked, "vprintf") {
            return;
        }
        // Behind the variables of the text, so that their numbers do not depend on it.
        self.print_buffer = Some(self.globals.len() as u32);
        self.globals.push(Global {
            name: printf::BUFFER.to_owned(),
            bytes: vec![0; printf::BUFFER_BYTES as usize],
            align: 16,
            relocations: Vec::new(),
        });
    }

    /// Places a variable. Returns its description if it is in shared or local memory.
    fn place(&mut self, symbol: SymbolId, variable: &Variable<'_>) -> Option<isa::Variable> {
        let mut of_memory = None;
        let location = match variable.space {
            Space::Const => {
                let mut end = self.constant_image.len() as u32;
                let offset = append_variable(&mut end, variable);
                // `of` reports the size. The cap bounds the host memory until then.
                let capped = (end as usize).min(2 * CONST_BYTES);
                self.constant_image.resize(capped.max(self.constant_image.len()), 0);
                self.constants.push(Constant {
                    name: variable.name.text.to_owned(),
                    offset,
                    bytes: variable.bytes() as u32,
                });
                // Beyond the bank, the module has a finding and is not compiled.
                VarLoc::Const(offset.min(CONST_BYTES as u32))
            }
            _ if is_reference(variable) => {
                self.references.push(variable.name.text.to_owned());
                VarLoc::Handle(self.references.len() as u32 - 1)
            }
            Space::Global => {
                self.globals.push(Global {
                    name: variable.name.text.to_owned(),
                    bytes: vec![0; variable.bytes() as usize],
                    align: variable.alignment() as u32,
                    relocations: Vec::new(),
                });
                VarLoc::Global(self.globals.len() as u32 - 1)
            }
            _ if is_dynamic(variable) => {
                self.dynamic.add(symbol, variable);
                return None;
            }
            _ => {
                let ends = (&mut self.shared_bytes, &mut self.local_bytes);
                let (location, named) = place_in_memory(variable, ends)?;
                of_memory = Some(named);
                location
            }
        };
        self.locations.insert(symbol, location);
        of_memory
    }
}
