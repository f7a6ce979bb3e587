//! Semantic checks: resolves names, and checks every instruction against its signature.
//!
//! All findings are reported, not only the first. In a [`Checked`] module every name is a number and every guard a predicate.
//! The count and width of all operands match their instruction. Scopes and shadowing end here. The lowering decides later if the
//! machine supports an instruction.

mod barrier;
mod call;
mod declare;
mod fragment;
mod modifiers;
mod operand;
mod scope;
mod signature;
mod sum;

use crate::ast::{Block, Float, Function, Instruction, Linkage, Module, Name, Space, Statement, Type, Variable};
use crate::capability;
use crate::diag::{Diagnostic, Span};
use crate::heap;
use operand::is_special;
use scope::{Meaning, Scopes};
use std::collections::{HashMap, HashSet};
pub(crate) use sum::reads_first;

/// Number of a register in its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegId(pub u32);

/// Number of a variable or parameter in the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SymbolId(pub u32);

/// Number of a label in its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LabelId(pub u32);

/// A module with all names resolved.
pub(crate) struct Checked<'t, 'a> {
    /// All variables: first the module's, then the functions'.
    pub symbols: Vec<&'t Variable<'a>>,
    /// Number of module-scope variables, at the front of `symbols`.
    pub n_module_symbols: usize,
    /// Variables that initial values inside functions name: by the initialised variable and the name.
    pub init_names: HashMap<(SymbolId, &'a str), SymbolId>,
    /// Compute capability that the text is written for: 80 for `sm_80`.
    pub capability: u32,
    /// True if no loop of the module is unrolled.
    pub keeps_loops: bool,
    /// Span of the first declaration of each function, with or without a body, by name.
    pub functions: HashMap<&'a str, Span>,
    /// Function bodies in text order.
    pub bodies: Vec<Body<'t, 'a>>,
    /// Index in `bodies` of each function with a body. The first one counts if a name is defined twice.
    numbers: HashMap<&'a str, usize>,
}

impl<'t, 'a> Checked<'t, 'a> {
    /// Returns the index of a function in [`Checked::bodies`]. A function of the library stands for one without a body.
    pub fn number(&self, function: &str) -> Option<usize> {
        let named = |name: &str| self.numbers.get(name).copied();
        named(function).or_else(|| named(&heap::library_name(function)?))
    }

    /// Returns the variables of the module's image: those of module scope, then `.global` and `.const` ones of functions.
    pub fn static_variables(&self) -> impl Iterator<Item = (SymbolId, &'t Variable<'a>)> + '_ {
        let of_module = (0..self.n_module_symbols as u32).map(SymbolId);
        let of_functions = self.bodies.iter().flat_map(|body| body.symbols.iter().copied());
        let variable = |symbol: SymbolId| (symbol, self.symbols[symbol.0 as usize]);
        // As `static` in C: one instance, wherever it is declared.
        let is_static = |(_, variable): &(SymbolId, &Variable<'_>)| is_static(variable);
        of_module
            .map(variable)
            .chain(of_functions.map(variable).filter(is_static))
    }

    /// Returns the body of a function.
    pub fn body(&self, function: &str) -> Option<&Body<'t, 'a>> {
        Some(&self.bodies[self.number(function)?])
    }
}

/// True for a variable with one instance in the module, wherever it is declared.
fn is_static(variable: &Variable<'_>) -> bool {
    matches!(variable.space, Space::Global | Space::Const)
}

/// Code of a function as a flat list, without scopes.
pub(crate) struct Body<'t, 'a> {
    /// Index in [`Checked::bodies`].
    pub number: usize,
    pub function: &'t Function<'a>,
    /// Parameters in order.
    pub params: Vec<SymbolId>,
    /// Registers of the parameters and results that the function declares in registers.
    pub param_registers: HashMap<SymbolId, Vec<RegId>>,
    /// Variables of the function: static, shared and local ones, and call parameters.
    pub symbols: Vec<SymbolId>,
    /// Type of each register.
    pub registers: Vec<Type>,
    /// True if register declarations were dropped because there are too many.
    has_dropped_registers: bool,
    pub n_labels: u32,
    /// Targets of each `.branchtargets`.
    pub tables: Vec<Vec<LabelId>>,
    pub code: Vec<Step<'t, 'a>>,
}

/// One line of a function's code.
pub(crate) enum Step<'t, 'a> {
    Label(LabelId),
    /// Declaration of a `.param` variable for calls.
    Param(SymbolId),
    /// The loop that begins here is not unrolled.
    KeepLoop,
    Op(Op<'t, 'a>),
}

/// An instruction with names resolved.
pub(crate) struct Op<'t, 'a> {
    pub instruction: &'t Instruction<'a>,
    /// Guard register; true if negated.
    pub guard: Option<(RegId, bool)>,
    pub operands: Vec<Value<'a>>,
    /// Sums to compute before the instruction, for its operands only.
    pub sums: Vec<Sum>,
}

/// An operand `register+offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    /// A new register for the sum, with the type of `base`.
    pub result: RegId,
    pub base: RegId,
    pub offset: i64,
}

/// An operand with names resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Register(RegId),
    /// A special register: `%tid.x`, `%laneid`.
    Special(&'a str, &'a str),
    Int(i128),
    Float(Float),
    /// Address of a variable plus an offset in bytes.
    Symbol(SymbolId, i64),
    /// Name of a function.
    Function(&'a str),
    Label(LabelId),
    /// Prototype of a call.
    Prototype,
    /// Index of a branch table in [`Body::tables`].
    Targets(u32),
    /// `_`: a discarded result.
    Sink,
    Not(Box<Value<'a>>),
    /// `-%r1`: a negated source, used by `vmad`.
    Minus(Box<Value<'a>>),
    /// `%r1.h1`: bytes or halves of a register in a video instruction.
    Part(Box<Value<'a>>, &'a str),
    Pair(Box<Value<'a>>, Box<Value<'a>>),
    Address(Box<Value<'a>>, i64),
    Handle(Vec<Value<'a>>),
    Vector(Vec<Value<'a>>),
    List(Vec<Value<'a>>),
}

/// Checks a module. The result can be lowered if there are no findings.
pub(crate) fn check<'t, 'a>(module: &'t Module<'a>) -> (Checked<'t, 'a>, Vec<Diagnostic>) {
    let mut checker = Checker::new(module);
    // All names first, because a function may name one that comes later.
    checker.module_symbols();
    for function in &module.functions {
        checker.function(function);
    }
    // Last, because an alias may come before its function.
    checker.number_aliases();
    (checker.checked, checker.findings)
}

struct Checker<'t, 'a> {
    module: &'t Module<'a>,
    checked: Checked<'t, 'a>,
    scopes: Scopes<'a>,
    /// The first declaration of each function.
    prototypes: HashMap<&'a str, &'t Function<'a>>,
    body: Body<'t, 'a>,
    /// True while the current instruction is a video instruction.
    in_video_instruction: bool,
    /// True while the current instruction is a `mov.v4`, which can read a whole special register.
    in_vector_move: bool,
    /// Sums of the current instruction, and its source type if that is not an integer type.
    sums: Vec<Sum>,
    non_integer: Option<Type>,
    /// Undefined names already reported in this function.
    reported: HashSet<&'a str>,
    findings: Vec<Diagnostic>,
}

impl<'t, 'a> Checker<'t, 'a> {
    fn new(module: &'t Module<'a>) -> Self {
        Checker {
            module,
            checked: Checked {
                symbols: Vec::new(),
                n_module_symbols: 0,
                init_names: HashMap::new(),
                capability: capability::of_targets(&module.target),
                keeps_loops: module.keeps_loops,
                functions: HashMap::new(),
                bodies: Vec::new(),
                numbers: HashMap::new(),
            },
            scopes: Scopes::default(),
            prototypes: HashMap::new(),
            body: Body::of(&EMPTY),
            in_video_instruction: false,
            in_vector_move: false,
            sums: Vec::new(),
            non_integer: None,
            reported: HashSet::new(),
            findings: Vec::new(),
        }
    }

    /// Declares the variables of module scope, and registers all functions and aliases by name.
    fn module_symbols(&mut self) {
        self.scopes.open();
        for variable in &self.module.variables {
            self.variable(variable);
        }
        self.checked.n_module_symbols = self.checked.symbols.len();
        let mut defined = HashSet::new();
        for function in &self.module.functions {
            if self.scopes.get(function.name.text).is_some() {
                let message = format!("`{}` is a variable and a function", function.name.text);
                let finding = Diagnostic::malformed(function.name.span, message);
                self.findings.push(finding.help("give one of them another name"));
            }
            let name = function.name;
            self.checked.functions.entry(name.text).or_insert(name.span);
            self.prototypes.entry(function.name.text).or_insert(function);
            if function.body.is_some() && !defined.insert(function.name.text) {
                self.redefined(function.name, "function");
            }
        }
        for &(alias, function) in &self.module.aliases {
            self.checked.functions.entry(alias.text).or_insert(alias.span);
            if let Some(&prototype) = self.prototypes.get(function.text) {
                self.prototypes.entry(alias.text).or_insert(prototype);
            }
            if !defined.insert(alias.text) {
                self.redefined(alias, "function");
            }
        }
    }

    /// Gives each alias the number of its function.
    fn number_aliases(&mut self) {
        for &(alias, function) in &self.module.aliases {
            let number = self.checked.numbers.get(function.text).copied();
            match number.filter(|&number| !self.checked.bodies[number].function.is_entry) {
                Some(number) => _ = self.checked.numbers.entry(alias.text).or_insert(number),
                None => {
                    let message = format!("`{}` is not a function with a body in this text", function.text);
                    let finding = Diagnostic::malformed(function.span, message);
                    self.findings
                        .push(finding.help("an alias stands for a `.func` with a body"));
                }
            }
        }
    }

    /// Checks a function with a body, and adds the body to the module.
    fn function(&mut self, function: &'t Function<'a>) {
        let Some(block) = &function.body else { return };
        self.body = Body::of(function);
        self.reported.clear();
        self.scopes.open();
        for param in function.returns.iter().chain(&function.params) {
            let symbol = match param.space {
                Space::Reg => self.register_param(param),
                _ => self.variable(param),
            };
            self.body.params.push(symbol);
        }
        // The body opens a scope of its own, so a local name may hide a parameter.
        self.block(block);
        self.scopes.close();
        let mut finished = std::mem::replace(&mut self.body, Body::of(&EMPTY));
        finished.number = self.checked.bodies.len();
        self.checked
            .numbers
            .entry(function.name.text)
            .or_insert(finished.number);
        self.checked.bodies.push(finished);
    }

    /// Resolves the statements of a scope, in text order.
    fn block(&mut self, block: &'t Block<'a>) {
        self.scopes.open();
        // A branch may come before its label.
        self.labels(block);
        for statement in &block.statements {
            match statement {
                Statement::Registers(registers) => self.registers(registers),
                Statement::Variable(variable) => {
                    let symbol = self.variable(variable);
                    self.function_variable(variable, symbol);
                    self.body.symbols.push(symbol);
                    if variable.space == Space::Param {
                        // The lowering may have to zero the variable each time control comes here.
                        self.body.code.push(Step::Param(symbol));
                    }
                }
                Statement::Label(name) => {
                    if let Some(Meaning::Label(label)) = self.scopes.get(name.text) {
                        self.body.code.push(Step::Label(label));
                    }
                }
                Statement::Instruction(instruction) => self.instruction(instruction),
                Statement::KeepLoop => self.body.code.push(Step::KeepLoop),
                Statement::Block(inner) => self.block(inner),
                Statement::Targets(name, targets) => {
                    let labels = targets.iter().filter_map(|&target| self.label(target)).collect();
                    if let Some(Meaning::Targets(table)) = self.scopes.get(name.text) {
                        self.body.tables[table as usize] = labels;
                    }
                }
                // A call finds its function by the address, so it needs no list.
                Statement::CallTargets(_, targets) => targets.iter().for_each(|&target| self.call_target(target)),
                Statement::Loc(_) | Statement::Prototype(_) => {}
            }
        }
        self.scopes.close();
    }

    /// Declares the labels of a block, so that the whole block can use them.
    fn labels(&mut self, block: &'t Block<'a>) {
        for statement in &block.statements {
            let (name, meaning) = match statement {
                Statement::Label(name) => {
                    let label = LabelId(self.body.n_labels);
                    self.body.n_labels += 1;
                    (*name, Meaning::Label(label))
                }
                Statement::Prototype(name) | Statement::CallTargets(name, _) => (*name, Meaning::Prototype),
                Statement::Targets(name, _) => {
                    self.body.tables.push(Vec::new());
                    (*name, Meaning::Targets(self.body.tables.len() as u32 - 1))
                }
                _ => continue,
            };
            if !self.scopes.declare(name.text, meaning) {
                self.redefined(name, "label");
            }
        }
    }

    /// Reports a call target that is no function.
    fn call_target(&mut self, name: Name<'a>) {
        match self.scopes.get(name.text) {
            None if self.checked.functions.contains_key(name.text) => {}
            None => self.undefined(name, "function"),
            Some(_) => self.report(name.span, format!("`{}` is not a function", name.text)),
        }
    }

    fn label(&mut self, name: Name<'a>) -> Option<LabelId> {
        match self.scopes.get(name.text) {
            Some(Meaning::Label(label)) => Some(label),
            Some(_) => {
                self.report(name.span, format!("`{}` is not a label", name.text));
                None
            }
            None => {
                self.undefined(name, "label");
                None
            }
        }
    }

    fn report(&mut self, span: Span, message: String) {
        self.findings.push(Diagnostic::malformed(span, message));
    }

    fn redefined(&mut self, name: Name<'a>, what: &str) {
        let finding = Diagnostic::malformed(name.span, format!("{what} `{}` is defined twice", name.text));
        self.findings
            .push(finding.help("give one of them another name, or a scope of its own"));
    }

    /// Reports an undefined name, once per function.
    fn undefined(&mut self, name: Name<'a>, what: &str) {
        // The missing declaration may be one that was dropped.
        if self.body.has_dropped_registers || !self.reported.insert(name.text) {
            return;
        }
        let finding = Diagnostic::malformed(name.span, format!("undefined {what} `{}`", name.text));
        self.findings.push(match what {
            "register" if is_special(name.text, ".x") => finding.help(format!("name a component: `{}.x`", name.text)),
            "register" => finding.help(format!(
                "declare it in this function: `.reg {} {};`",
                usual_type(name.text),
                name.text
            )),
            _ => finding,
        });
    }
}

/// Returns the type that compilers usually give a register with this name.
fn usual_type(register: &str) -> &'static str {
    match register.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "%p" => ".pred",
        "%rs" => ".b16",
        "%rd" => ".b64",
        "%f" => ".f32",
        "%fd" => ".f64",
        _ => ".b32",
    }
}

impl<'t, 'a> Body<'t, 'a> {
    fn of(function: &'t Function<'a>) -> Self {
        Body {
            number: 0,
            function,
            params: Vec::new(),
            param_registers: HashMap::new(),
            symbols: Vec::new(),
            registers: Vec::new(),
            has_dropped_registers: false,
            n_labels: 0,
            tables: Vec::new(),
            code: Vec::new(),
        }
    }
}

/// Placeholder function of the checker between two functions.
static EMPTY: Function<'static> = Function {
    linkage: Linkage::Internal,
    is_entry: false,
    name: Name {
        text: "",
        span: Span { start: 0, end: 0 },
    },
    returns: Vec::new(),
    params: Vec::new(),
    limits: Vec::new(),
    keeps_loops: false,
    body: None,
};
