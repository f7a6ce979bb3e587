//! Modifiers: required and excluded combinations. Most rules are for memory instructions and fences.
//!
//! [`fault`] finds combinations that no form of the PTX ISA has. The rules follow the vendor's assembler (`ptxas` 13.5).
//! The lowering reports an unknown modifier as unsupported.

mod atomic;
mod choices;
mod fence;
mod forms;

use super::Value;
use crate::ast::{Instruction, Name, Type};
use crate::diag::Diagnostic;
use forms::{Form, Kind};

/// The dialect of a text: rules that depend on its header.
#[derive(Clone, Copy)]
pub(super) struct Dialect {
    /// PTX version of the text.
    pub version: (u32, u32),
    /// Compute capability of the target: 80 for 8.0. 0 without a known target.
    pub capability: u32,
}

/// Returns the finding for wrong modifiers of an instruction.
pub(super) fn fault(instruction: &Instruction<'_>, operands: &[Value<'_>], dialect: Dialect) -> Option<Diagnostic> {
    let Some(form) = Form::of(instruction) else {
        return atomic::asynchronous(instruction).or_else(|| choices::fault(instruction, operands, dialect));
    };
    let is_known = |name: &Name<'_>| Kind::of(name.text).is_some() || Type::from_dotted(name.text).is_some();
    if !instruction.qualifiers.iter().all(is_known) {
        return None;
    }
    let modifiers = Modifiers { form, instruction };
    let combined = || match form.name {
        "ld" | "ldu" | "st" => modifiers.access(),
        "atom" | "red" => modifiers.atomic(operands),
        _ => modifiers.fence(operands),
    };
    // Plain mistakes first: only the first finding is reported.
    modifiers.foreign().or_else(|| modifiers.repeated()).or_else(combined)
}

/// Modifiers of an instruction, with the form that they are checked against.
struct Modifiers<'i, 'a> {
    form: &'static Form,
    instruction: &'i Instruction<'a>,
}

impl<'a> Modifiers<'_, 'a> {
    fn of(&self, kind: Kind) -> Option<Name<'a>> {
        let mut words = self.instruction.qualifiers.iter().copied();
        words.find(|name| Kind::of(name.text) == Some(kind))
    }

    fn named(&self, word: &str) -> Option<Name<'a>> {
        self.instruction
            .qualifiers
            .iter()
            .copied()
            .find(|name| name.text == word)
    }

    fn has(&self, word: &str) -> bool {
        self.named(word).is_some()
    }

    fn types(&self) -> Vec<(Type, Name<'a>)> {
        let words = self.instruction.qualifiers.iter();
        words
            .filter_map(|name| Some((Type::from_dotted(name.text)?, *name)))
            .collect()
    }

    /// Creates a finding at the opcode.
    fn wrong(&self, message: String) -> Diagnostic {
        Diagnostic::malformed(self.instruction.opcode.span, message)
    }

    /// Finds a modifier that belongs to another instruction.
    fn foreign(&self) -> Option<Diagnostic> {
        let words = &self.instruction.qualifiers;
        words.iter().find_map(|name| {
            let kind = Kind::of(name.text).filter(|_| !self.form.takes(name.text))?;
            let finding = self.takes_no(*name);
            Some(match (kind, self.form.words(kind).as_slice()) {
                (Kind::Other, _) | (_, []) => finding,
                (_, words) => finding.help(format!("its {} are {}", kind.plural(), list(words))),
            })
        })
    }

    fn takes_no(&self, name: Name<'_>) -> Diagnostic {
        let message = format!("`{}` takes no `{}`", self.form.name, name.text);
        Diagnostic::malformed(name.span, message)
    }

    /// Finds two modifiers of one set, or one modifier twice.
    fn repeated(&self) -> Option<Diagnostic> {
        let words = &self.instruction.qualifiers;
        words.iter().enumerate().find_map(|(n, name)| {
            let kind = Kind::of(name.text).filter(|kind| *kind != Kind::Other);
            let same = |other: &&Name<'_>| other.text == name.text || (kind.is_some() && Kind::of(other.text) == kind);
            let first = words[..n].iter().find(same)?;
            let what = kind.map_or_else(
                || "a modifier twice".to_owned(),
                |kind| format!("two {}", kind.plural()),
            );
            let message = format!("{what}: `{}` and `{}`", first.text, name.text);
            Some(Diagnostic::malformed(name.span, message).help("keep one of them"))
        })
    }

    /// Checks `ld`, `ldu` and `st`.
    fn access(&self) -> Option<Diagnostic> {
        self.order_and_scope()
            .or_else(|| self.caching())
            .or_else(|| self.space())
            .or_else(|| self.mmio())
            .or_else(|| self.access_type())
            .or_else(|| self.vector_size())
            .or_else(|| self.l2_priority())
    }

    /// Checks that a strong order has a scope, and that a weak access has none.
    fn order_and_scope(&self) -> Option<Diagnostic> {
        let (order, scope) = (self.of(Kind::Order), self.of(Kind::Scope));
        match (order, scope) {
            (Some(order), None) if is_strong(order) => Some(self.no_scope(order)),
            (Some(order), Some(scope)) if !is_strong(order) => Some(exclude(order, scope)),
            (None, Some(scope)) => {
                let mut strong = self.form.words(Kind::Order);
                strong.retain(|word| ![".weak", ".volatile"].contains(word));
                let finding = Diagnostic::malformed(scope.span, format!("`{}` without a memory order", scope.text));
                Some(finding.help(format!("write {} too, or leave out the scope", either(&strong))))
            }
            _ => None,
        }
    }

    fn no_scope(&self, order: Name<'_>) -> Diagnostic {
        let message = format!("`{}{}` without a scope", self.form.name, order.text);
        Diagnostic::malformed(order.span, message).help(format!("write {}", either(&self.form.words(Kind::Scope))))
    }

    /// Checks cache operators, priorities and `.nc` against each other and the memory order.
    fn caching(&self) -> Option<Diagnostic> {
        let (order, cache) = (self.of(Kind::Order), self.of(Kind::Cache));
        let priority = self.of(Kind::L1Priority).or(self.of(Kind::L2Priority));
        let not_weak = order.filter(|order| order.text != ".weak");
        let volatile = order.filter(|order| order.text == ".volatile");
        let read_only = self.named(".nc");
        // A strong access must be coherent, so it takes no cache operator. Read-only data has no order.
        let pairs = [
            (not_weak, cache),
            (read_only, order),
            (read_only, cache.filter(|cache| [".lu", ".cv"].contains(&cache.text))),
            (priority, cache),
            (priority, volatile),
        ];
        let excluded = pairs.into_iter().find_map(|pair| match pair {
            (Some(first), Some(second)) => Some(exclude(first, second)),
            _ => None,
        });
        excluded.or_else(|| {
            let name = read_only.filter(|_| !self.has(".global"))?;
            Some(Diagnostic::malformed(name.span, "`.nc` outside of `.global`").help("write `ld.global.nc`"))
        })
    }

    /// Checks that the state space allows the memory order.
    fn space(&self) -> Option<Diagnostic> {
        // No order exists for parameters, constants and local memory: they are constant or private to one thread.
        let (order, space) = (self.of(Kind::Order)?, self.of(Kind::Space)?);
        let constant = [".const", ".param", ".param::entry", ".param::func"].contains(&space.text);
        let strong = is_strong(order) && space.text == ".local";
        ((constant && order.text != ".weak") || strong).then(|| exclude(order, space))
    }

    fn mmio(&self) -> Option<Diagnostic> {
        let mmio = self.named(".mmio")?;
        let order = self.of(Kind::Order).is_some_and(is_strong);
        let space = self.of(Kind::Space);
        let generic = space.is_none_or(|space| space.text == ".global");
        (!order || !self.has(".sys") || !generic).then(|| {
            let finding = Diagnostic::malformed(mmio.span, "`.mmio` is for global memory at system scope");
            finding.help(format!("write `{}.mmio.relaxed.sys.global`", self.form.name))
        })
    }

    /// Checks that an access has one type, which memory can hold.
    fn access_type(&self) -> Option<Diagnostic> {
        let types = self.types();
        if let [_, (_, second), ..] = types[..] {
            return Some(self.two_types(second));
        }
        let &(ty, name) = types.first()?;
        let plain = ty.is_bits() || ty.is_signed() || ty.is_unsigned() || matches!(ty, Type::F32 | Type::F64);
        if plain && !matches!(ty, Type::U16x2 | Type::S16x2) {
            return None;
        }
        Some(match ty.bits() {
            bits @ (16 | 32 | 64) => self.takes_no(name).help(format!("write `.b{bits}`")),
            _ => self.takes_no(name),
        })
    }

    /// Checks that a vector has at most 128 bits, or 256 bits in global memory.
    fn vector_size(&self) -> Option<Diagnostic> {
        let vector = self.of(Kind::Vector)?;
        let (ty, _) = *self.types().first()?;
        let elements = vector.text.strip_prefix(".v")?.parse::<u32>().ok()?;
        let bits = elements * ty.bits();
        let space = self.of(Kind::Space).filter(|space| space.text != ".global");
        let takes_256 = self.form.name != "ldu" && ty.bits() < 128;
        if bits <= 128 || (bits == 256 && takes_256 && space.is_none()) {
            return None;
        }
        Some(match space {
            Some(space) if bits == 256 && takes_256 => {
                let message = format!("`{}{}` of 256 bits", self.form.name, space.text);
                let finding = Diagnostic::malformed(space.span, message);
                finding.help("only `.global` has 256 bits, and needs `sm_100` or later; write two accesses of 128 bits")
            }
            _ => {
                let message = format!("a vector of {bits} bits in `{}`", self.form.name);
                Diagnostic::malformed(vector.span, message).help("write accesses of at most 128 bits")
            }
        })
    }

    /// Checks that an L2 priority is on an access of 256 bits.
    fn l2_priority(&self) -> Option<Diagnostic> {
        let priority = self.of(Kind::L2Priority)?;
        let bits = self.types().first().map_or(0, |(ty, _)| ty.bits());
        let wide = (self.has(".v8") && bits == 32) || (self.has(".v4") && bits == 64);
        let message = format!("`{}` on an access of less than 256 bits", priority.text);
        let finding =
            || Diagnostic::malformed(priority.span, message).help("use `.v8.b32` or `.v4.b64`, or leave it out");
        (!wide).then(finding)
    }

    fn two_types(&self, second: Name<'_>) -> Diagnostic {
        let message = format!("`{}` takes one type", self.form.name);
        Diagnostic::malformed(second.span, message).help("keep one of them")
    }
}

fn is_strong(order: Name<'_>) -> bool {
    !matches!(order.text, ".weak" | ".volatile")
}

/// Creates the finding for two modifiers that exclude each other.
fn exclude(first: Name<'_>, second: Name<'_>) -> Diagnostic {
    let later = if first.span.start > second.span.start {
        first
    } else {
        second
    };
    let message = format!("`{}` and `{}` exclude each other", first.text, second.text);
    Diagnostic::malformed(later.span, message).help("leave out one of them")
}

/// Joins words as `.a`, `.b` and `.c`.
fn list(words: &[&str]) -> String {
    joined(words, "and")
}

/// Joins words as `.a`, `.b` or `.c`.
fn either(words: &[&str]) -> String {
    joined(words, "or")
}

fn joined(words: &[&str], last: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match words.as_slice() {
        [] => String::new(),
        [word] => word.clone(),
        [before @ .., word] => format!("{} {last} {word}", before.join(", ")),
    }
}
