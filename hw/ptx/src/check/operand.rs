//! Operands: resolves each one and checks it against the instruction's signature.

mod literals;

use super::scope::Meaning;
use super::signature::{is_selector, is_video, most_types, needs_type, signature};
use super::{Checker, Op, RegId, Step, Value, barrier, modifiers};
use crate::ast::{Instruction, Name, Operand, OperandKind, Type};
use crate::diag::{Diagnostic, Span};

impl<'t, 'a> Checker<'t, 'a> {
    pub(super) fn instruction(&mut self, instruction: &'t Instruction<'a>) {
        let guard = self.guard(instruction);
        let is_branch = matches!(instruction.opcode.text, "bra");
        self.in_video_instruction = is_video(instruction.opcode.text);
        let is_v4 = instruction.qualifiers.iter().any(|name| name.text == ".v4");
        self.in_vector_move = is_v4 && instruction.opcode.text == "mov";
        let before = self.findings.len();
        self.begin_sums(instruction);
        let operands = instruction
            .operands
            .iter()
            .map(|operand| self.value(operand, is_branch))
            .collect();
        // An undefined operand has no width to check.
        if self.findings.len() == before {
            self.check_shape(instruction, &operands);
            if instruction.opcode.text == "call" {
                self.check_call(instruction, &operands);
            }
        }
        let op = Op {
            instruction,
            guard,
            operands,
            sums: std::mem::take(&mut self.sums),
        };
        self.body.code.push(Step::Op(op));
    }

    fn guard(&mut self, instruction: &Instruction<'a>) -> Option<(RegId, bool)> {
        let (name, negated) = instruction.guard?;
        match self.scopes.get(name.text) {
            Some(Meaning::Register(reg)) if self.type_of(reg) == Type::Pred => Some((reg, negated)),
            Some(_) => {
                self.report(name.span, format!("guard `{}` is not a predicate register", name.text));
                None
            }
            None => {
                self.undefined(name, "register");
                None
            }
        }
    }

    pub(super) fn type_of(&self, reg: RegId) -> Type {
        self.body.registers[reg.0 as usize]
    }

    fn value(&mut self, operand: &Operand<'a>, is_branch: bool) -> Value<'a> {
        let name = |text| Name {
            text,
            span: operand.span,
        };
        match &operand.kind {
            OperandKind::Name(text) if is_branch => self.label(name(text)).map_or(Value::Sink, Value::Label),
            OperandKind::Name(text) => self.named(name(text)),
            OperandKind::Offset(text, offset) => self.sum(name(text), *offset),
            OperandKind::Component(text, component) => self.component(name(text), component),
            OperandKind::Minus(inner) => Value::Minus(Box::new(self.value(inner, false))),
            OperandKind::Int(value) => Value::Int(*value),
            OperandKind::Float(float) => Value::Float(*float),
            OperandKind::Not(inner) => Value::Not(Box::new(self.value(inner, false))),
            OperandKind::Pair(first, second) => {
                Value::Pair(Box::new(self.value(first, false)), Box::new(self.value(second, false)))
            }
            OperandKind::Address(base, offset) => Value::Address(Box::new(self.value(base, false)), *offset),
            OperandKind::Handle(parts) => Value::Handle(self.values(parts)),
            OperandKind::Vector(parts) => Value::Vector(self.elements(parts)),
            OperandKind::List(parts) => Value::List(self.values(parts)),
        }
    }

    fn values(&mut self, operands: &[Operand<'a>]) -> Vec<Value<'a>> {
        operands.iter().map(|operand| self.value(operand, false)).collect()
    }

    /// Resolves the elements of a vector, and reports a vector among them.
    fn elements(&mut self, operands: &[Operand<'a>]) -> Vec<Value<'a>> {
        let mut values = self.values(operands);
        for (value, operand) in values.iter_mut().zip(operands) {
            if matches!(value, Value::Vector(_)) {
                self.report(operand.span, "an element of a vector is a vector itself".to_owned());
                *value = Value::Sink;
            }
        }
        values
    }

    /// Resolves a name without a component.
    pub(super) fn named(&mut self, name: Name<'a>) -> Value<'a> {
        match self.scopes.get(name.text) {
            Some(Meaning::Register(reg)) => Value::Register(reg),
            Some(Meaning::Vector(first, width)) => {
                let registers = first.0..first.0 + width;
                Value::Vector(registers.map(|n| Value::Register(RegId(n))).collect())
            }
            Some(Meaning::Symbol(symbol)) => Value::Symbol(symbol, 0),
            Some(Meaning::Label(label)) => Value::Label(label),
            Some(Meaning::Prototype) => Value::Prototype,
            Some(Meaning::Targets(table)) => Value::Targets(table),
            None if name.text == "_" => Value::Sink,
            None if self.checked.functions.contains_key(name.text) => Value::Function(name.text),
            // The predefined constant of PTX.
            None if name.text == "WARP_SZ" => Value::Int(32),
            None if is_special(name.text, "") => Value::Special(name.text, ""),
            None if self.in_vector_move && is_special(name.text, ".x") => {
                // The fourth element of a special register is zero.
                let [x, y, z] = [".x", ".y", ".z"].map(|component| Value::Special(name.text, component));
                Value::Vector(vec![x, y, z, Value::Int(0)])
            }
            None => {
                let is_register = name.text.starts_with('%');
                self.undefined(name, if is_register { "register" } else { "symbol" });
                Value::Sink
            }
        }
    }

    /// Resolves `name.x`: a special register, an element of a vector, or a part of a register.
    fn component(&mut self, name: Name<'a>, component: &'a str) -> Value<'a> {
        if is_special(name.text, component) {
            return Value::Special(name.text, component);
        }
        if let Some(Meaning::Register(reg)) = self.scopes.get(name.text)
            && self.in_video_instruction
            && is_selector(component)
        {
            return Value::Part(Box::new(Value::Register(reg)), component);
        }
        if let Some(Meaning::Vector(first, width)) = self.scopes.get(name.text)
            && let Some(n) = element_number(component).filter(|&n| n < width)
        {
            return Value::Register(RegId(first.0 + n));
        }
        let is_known = is_special(name.text, ".x") || is_special(name.text, "");
        if is_known || self.scopes.get(name.text).is_some() {
            self.report(name.span, format!("`{}` has no component `{component}`", name.text));
        } else {
            self.undefined(name, "register");
        }
        Value::Sink
    }

    /// Checks the opcode, then the number and width of the operands.
    fn check_shape(&mut self, instruction: &Instruction<'a>, operands: &Vec<Value<'a>>) {
        let opcode = instruction.opcode;
        let has = |qualifier: &str| instruction.qualifiers.iter().any(|name| name.text == qualifier);
        // A form of newer GPUs, with operands and modifiers of its own. The lowering reports it.
        if opcode.text == "st" && has(".bulk") {
            return;
        }
        let Some(letters) = signature(opcode.text, has) else {
            self.report(opcode.span, format!("unknown instruction `{}`", opcode.text));
            return;
        };
        if !self.check_count(instruction, letters) {
            return;
        }
        let dialect = modifiers::Dialect {
            version: self.module.version,
            capability: self.checked.capability,
        };
        if let Some(finding) =
            modifiers::fault(instruction, operands, dialect).or_else(|| barrier::fault(instruction, operands))
        {
            self.findings.push(finding);
            return;
        }
        if !self.check_fragments(instruction, operands) {
            return;
        }
        let types: Vec<Type> = instruction
            .qualifiers
            .iter()
            .filter_map(|name| Type::from_dotted(name.text))
            .collect();
        if let Some(finding) = surplus_type(instruction, most_types(opcode.text, has)) {
            self.findings.push(finding);
            return;
        }
        let is_width = |name: &&Name<'_>| name.text.strip_prefix(".v").is_some_and(|n| n.parse::<u8>().is_ok());
        let widths = instruction.qualifiers.iter().filter(is_width);
        if let Some(width) = widths
            .into_iter()
            .find(|name| !matches!(name.text, ".v2" | ".v4" | ".v8"))
        {
            let finding = Diagnostic::malformed(width.span, format!("`{}` is not a vector width", width.text));
            self.findings.push(finding.help("write `.v2`, `.v4` or `.v8`"));
            return;
        }
        if needs_type(letters) && types.is_empty() {
            let finding = Diagnostic::malformed(opcode.span, format!("`{}` has no known type", opcode.text));
            self.findings
                .push(finding.help(format!("write one, as in `{}.b32`", opcode.text)));
            return;
        }
        self.check_literals(instruction, &types, operands);
        // In mixed precision (`sub.f32.f16`) each operand has its own type.
        let mixed = types.len() > 1 && !letters.contains(['v', 'e']);
        let Some(&ty) = types.last().filter(|_| !mixed) else {
            return;
        };
        let rules = OperandRules {
            ty,
            wide: has(".wide"),
            vector: vector_width(instruction),
        };
        for ((letter, value), operand) in letters
            .chars()
            .filter(|&c| c != '?')
            .zip(operands)
            .zip(&instruction.operands)
        {
            self.check_operand(&rules, letter, value, operand.span);
        }
        match opcode.text {
            "mov" if rules.vector > 1 => self.check_vector_move(&rules, operands, instruction),
            "mov" => self.check_packing(ty, operands, instruction),
            _ => {}
        }
    }

    fn check_count(&mut self, instruction: &Instruction<'a>, letters: &str) -> bool {
        let max = letters.bytes().filter(|&c| c != b'?').count();
        let min = letters.find('?').unwrap_or(max);
        let found = instruction.operands.len();
        if (min..=max).contains(&found) {
            return true;
        }
        let expected = match (min, max) {
            (0, 0) => "no operands".to_owned(),
            (1, 1) => "1 operand".to_owned(),
            _ if min == max => format!("{min} operands"),
            _ => format!("{min} to {max} operands"),
        };
        let message = format!("`{}` takes {expected}, found {found}", instruction.opcode.text);
        self.report(instruction.span, message);
        false
    }

    fn check_operand(&mut self, rules: &OperandRules, letter: char, value: &Value<'a>, span: Span) {
        match letter {
            'd' | 'a' => self.check_typed(rules.ty, rules.ty.bits(), value, span),
            // `.wide` doubles the result and the addend only.
            'D' | 'A' => self.check_typed(rules.ty, rules.ty.bits() << u32::from(rules.wide), value, span),
            'u' => self.check_typed(Type::B32, 32, value, span),
            'p' => self.check_predicate(value, span),
            'P' => match value {
                Value::Pair(first, second) => {
                    self.check_predicate(first, span);
                    self.check_predicate(second, span);
                }
                _ => self.check_predicate(value, span),
            },
            'v' | 'e' => self.check_memory_value(rules, value, letter == 'v', span),
            'm' if !matches!(value, Value::Address(..) | Value::Handle(_)) => {
                let finding = Diagnostic::malformed(span, "expected an address");
                self.findings.push(finding.help("write it in brackets: `[%rd1+4]`"));
            }
            'l' if !matches!(value, Value::Label(_)) => self.report(span, "expected a label".to_owned()),
            _ => {}
        }
    }

    /// Checks a register of exactly `bits` bits with a type that fits `ty`, or an immediate.
    pub(super) fn check_typed(&mut self, ty: Type, bits: u32, value: &Value<'a>, span: Span) {
        match value {
            Value::Register(reg) => {
                let found = self.type_of(*reg);
                if found.bits() != bits {
                    self.mismatch(found, bits, span);
                } else if kind_clash(ty, found) {
                    self.clash(ty, found, span);
                }
            }
            Value::Int(_) | Value::Float(_) => self.check_literal(ty, bits, value, span),
            Value::Vector(_) | Value::Address(..) | Value::Handle(_) | Value::List(_) => {
                self.report(span, "expected a register or a literal".to_owned());
            }
            Value::Not(inner) | Value::Pair(inner, _) => self.check_typed(ty, bits, inner, span),
            _ => {}
        }
    }

    pub(super) fn clash(&mut self, ty: Type, found: Type, span: Span) {
        let message = format!(
            "{} register where the instruction works on {}",
            found.dotted(),
            ty.dotted()
        );
        self.report(span, message);
    }

    pub(super) fn mismatch(&mut self, found: Type, bits: u32, span: Span) {
        let found = match found {
            Type::Pred => "a predicate".to_owned(),
            _ => format!("{} bits", found.bits()),
        };
        let expected = if bits == 1 {
            "a predicate".to_owned()
        } else {
            format!("{bits} bits")
        };
        self.report(
            span,
            format!("this register holds {found}, the instruction needs {expected}"),
        );
    }

    fn check_predicate(&mut self, value: &Value<'a>, span: Span) {
        match value {
            Value::Register(reg) if self.type_of(*reg) != Type::Pred => {
                let found = self.type_of(*reg);
                self.mismatch(found, 1, span);
            }
            Value::Not(inner) => self.check_predicate(inner, span),
            _ => {}
        }
    }

    /// Checks the register or vector of a memory access: the number of elements, and each element. `relaxed` allows wider registers.
    fn check_memory_value(&mut self, rules: &OperandRules, value: &Value<'a>, relaxed: bool, span: Span) {
        let elements = match value {
            Value::Vector(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        if elements.len() != rules.vector {
            let ending = if rules.vector == 1 { "" } else { "s" };
            let message = format!("expected {} element{ending}, found {}", rules.vector, elements.len());
            let finding = Diagnostic::malformed(span, message);
            self.findings
                .push(finding.help("`.v2` and `.v4` set the number of elements; the default is 1"));
            return;
        }
        for element in elements {
            match element {
                Value::Register(reg) if relaxed => self.check_relaxed(rules.ty, *reg, span),
                value => self.check_typed(rules.ty, rules.ty.bits(), value, span),
            }
        }
    }

    /// Checks a register of a load or store: at least as wide as the type. A float is exact, or in a bit register.
    fn check_relaxed(&mut self, ty: Type, reg: RegId, span: Span) {
        let found = self.type_of(reg);
        let other_float = matches!(found, Type::F32 | Type::F64) && !ty.is_bits();
        if found.bits() < ty.bits() || (other_float && ty.is_float() && found.bits() != ty.bits()) {
            self.mismatch(found, ty.bits(), span);
        } else if kind_clash(ty, found) {
            self.clash(ty, found, span);
        }
    }

    /// Checks `mov.v2.u32 %v, {%r1, %r2}`: as many elements on both sides, each of the instruction's type.
    fn check_vector_move(&mut self, rules: &OperandRules, operands: &[Value<'a>], instruction: &Instruction<'a>) {
        if rules.ty == Type::Pred || rules.vector * rules.ty.bits() as usize > 128 {
            let message = format!("`mov.v{}` takes no `{}`", rules.vector, rules.ty.dotted());
            self.report(instruction.opcode.span, message);
            return;
        }
        for (value, operand) in operands.iter().zip(&instruction.operands) {
            self.check_memory_value(rules, value, false, operand.span);
        }
    }

    /// Checks that the parts of a packing `mov` fill the whole, as in `mov.b64 {%lo, %hi}, %rd`.
    fn check_packing(&mut self, ty: Type, operands: &[Value<'a>], instruction: &Instruction<'a>) {
        for (value, operand) in operands.iter().zip(&instruction.operands) {
            match value {
                Value::Vector(parts) => {
                    if !parts.is_empty() && !ty.bits().is_multiple_of(parts.len() as u32) {
                        self.report(
                            operand.span,
                            format!("{} parts do not fill {} bits", parts.len(), ty.bits()),
                        );
                        continue;
                    }
                    let each = ty.bits() / (parts.len() as u32).max(1);
                    for part in parts {
                        // Any bit type will do: only the width of a part counts.
                        self.check_typed(Type::B8, each, part, operand.span);
                    }
                }
                Value::Register(reg) if self.type_of(*reg).bits() != ty.bits() => {
                    let found = self.type_of(*reg);
                    self.mismatch(found, ty.bits(), operand.span);
                }
                _ => {}
            }
        }
    }
}

/// Operand rules that follow from an instruction's qualifiers.
struct OperandRules {
    ty: Type,
    wide: bool,
    vector: usize,
}

fn vector_width(instruction: &Instruction<'_>) -> usize {
    let width = |name: &Name<'_>| match name.text {
        ".v2" => Some(2),
        ".v4" => Some(4),
        ".v8" => Some(8),
        _ => None,
    };
    instruction.qualifiers.iter().find_map(width).unwrap_or(1)
}

/// Returns the number of a vector element: `.x` or `.r` is 0.
fn element_number(component: &str) -> Option<u32> {
    Some(match component {
        ".x" | ".r" => 0,
        ".y" | ".g" => 1,
        ".z" | ".b" => 2,
        ".w" | ".a" => 3,
        _ => return None,
    })
}

/// Finds a type beyond the `most` that the instruction names.
fn surplus_type(instruction: &Instruction<'_>, most: Option<usize>) -> Option<Diagnostic> {
    let is_type = |name: &&Name<'_>| Type::from_dotted(name.text).is_some();
    let (most, opcode) = (most?, instruction.opcode.text);
    let surplus = instruction.qualifiers.iter().filter(is_type).nth(most)?;
    let (count, help) = match most {
        1 => ("one type", "keep one of them"),
        2 => ("two types", "keep two of them"),
        _ => ("three types", "keep three of them"),
    };
    Some(Diagnostic::malformed(surplus.span, format!("`{opcode}` takes {count}")).help(help))
}

/// True if an instruction of one type cannot use a register of the other. Bit types match every type of their width.
pub(super) fn kind_clash(instruction: Type, register: Type) -> bool {
    let is_integer = |ty: Type| ty.is_signed() || ty.is_unsigned();
    // Packed and half types are kept in bit registers, so only `.f32` and `.f64` can clash.
    (is_integer(instruction) && matches!(register, Type::F32 | Type::F64))
        || (matches!(instruction, Type::F32 | Type::F64) && is_integer(register))
        || ((instruction == Type::Pred) != (register == Type::Pred) && instruction.bits() == register.bits())
}

/// True if PTX has a special register with this name and component.
pub(super) fn is_special(name: &str, component: &str) -> bool {
    let xyz = matches!(component, ".x" | ".y" | ".z");
    match name {
        "%tid" | "%ntid" | "%ctaid" | "%nctaid" | "%clusterid" | "%nclusterid" | "%cluster_ctaid"
        | "%cluster_nctaid" => xyz,
        "%laneid"
        | "%warpid"
        | "%nwarpid"
        | "%smid"
        | "%nsmid"
        | "%gridid"
        | "%lanemask_eq"
        | "%lanemask_le"
        | "%lanemask_lt"
        | "%lanemask_ge"
        | "%lanemask_gt"
        | "%clock"
        | "%clock_hi"
        | "%clock64"
        | "%globaltimer"
        | "%globaltimer_lo"
        | "%globaltimer_hi"
        | "%cluster_ctarank"
        | "%cluster_nctarank"
        | "%is_explicit_cluster"
        | "%total_smem_size"
        | "%aggr_smem_size"
        | "%dynamic_smem_size"
        | "%current_graph_exec" => component.is_empty(),
        _ => {
            component.is_empty()
                && (name.starts_with("%envreg") || name.starts_with("%pm") || name.starts_with("%reserved_smem"))
        }
    }
}
