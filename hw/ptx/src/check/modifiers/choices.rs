//! Choices: sets of modifiers that exclude each other. An instruction may need one of a set.
//!
//! The rules follow the vendor's assembler (`ptxas` 11.8). Modifiers of newer forms are in the sets too.

use super::{Dialect, either, exclude};
use crate::ast::{Instruction, Name, Type};
use crate::check::Value;
use crate::check::signature::is_video;
use crate::diag::Diagnostic;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A set of modifiers that exclude each other.
struct Choice {
    opcodes: &'static str,
    /// Types for which the choice holds: one of them is the instruction's last type. Empty for any type.
    types: &'static str,
    /// Modifier that the instruction must have for the choice to hold. Empty for any form.
    form: &'static str,
    /// The modifiers of the set.
    words: &'static str,
    /// Oldest PTX version in which the instruction needs one of `words`. `None` if it never does.
    since: Option<(u32, u32)>,
}

/// A choice that is optional.
const fn optional(opcodes: &'static str, types: &'static str, words: &'static str) -> Choice {
    Choice {
        opcodes,
        types,
        form: "",
        words,
        since: None,
    }
}

/// A choice that every instruction makes.
const fn needed(opcodes: &'static str, types: &'static str, words: &'static str) -> Choice {
    needed_since((0, 0), opcodes, types, words)
}

/// A choice that every instruction makes from a PTX version on.
const fn needed_since(version: (u32, u32), opcodes: &'static str, types: &'static str, words: &'static str) -> Choice {
    Choice {
        opcodes,
        types,
        form: "",
        words,
        since: Some(version),
    }
}

/// A choice that every instruction with the modifier `form` makes.
const fn needed_in(form: &'static str, opcodes: &'static str, words: &'static str) -> Choice {
    Choice {
        opcodes,
        types: "",
        form,
        words,
        since: Some((0, 0)),
    }
}

const SIGNED: &str = ".s8 .s16 .s32 .s64";
const UNSIGNED: &str = ".u8 .u16 .u32 .u64";
const BITS: &str = ".b8 .b16 .b32 .b64";
const INTEGERS: &str = ".u16 .u32 .u64 .s16 .s32 .s64";
const FLOATS: &str = ".f16 .f16x2 .bf16 .bf16x2 .f32 .f32x2 .f64";
const ROUNDINGS: &str = ".rn .rz .rm .rp";
const APPROX_OR_ROUNDED: &str = ".approx .rn .rz .rm .rp";
const SPACES: &str = ".const .global .local .shared .shared::cta .shared::cluster .param .param::entry .param::func";

/// All choices. Lists of modifiers, types and opcodes have a space between their words.
const CHOICES: &[Choice] = &[
    needed("mul mad", INTEGERS, ".lo .hi .wide"),
    needed("madc mul24 mad24 dp2a", "", ".lo .hi"),
    needed("shf", "", ".l .r"),
    needed("shf szext bmsk vshl vshr", "", ".clamp .wrap"),
    optional("prmt", "", ".f4e .b4e .rc8 .ecl .ecr .rc16"),
    optional("add sub mul", FLOATS, ROUNDINGS),
    needed("fma", "", ROUNDINGS),
    needed_since((3, 2), "mad", ".f32", ROUNDINGS),
    needed_since((1, 4), "mad", ".f64", ROUNDINGS),
    needed_since((1, 4), "div", ".f32", ".approx .full .rn .rz .rm .rp"),
    needed_since((1, 4), "rcp sqrt", ".f32", APPROX_OR_ROUNDED),
    needed_since((1, 4), "rcp", ".f64", APPROX_OR_ROUNDED),
    needed_since((1, 4), "div sqrt", ".f64", ROUNDINGS),
    needed_since((1, 4), "rsqrt sin cos lg2 ex2 tanh", "", ".approx"),
    needed("ex2", ".bf16 .bf16x2", ".ftz"),
    needed("testp", "", ".finite .infinite .number .notanumber .normal .subnormal"),
    needed("setp set", SIGNED, ".eq .ne .lt .le .gt .ge"),
    needed("setp set", UNSIGNED, ".eq .ne .lt .le .gt .ge .lo .ls .hi .hs"),
    needed("setp set", BITS, ".eq .ne"),
    needed(
        "setp set",
        FLOATS,
        ".eq .ne .lt .le .gt .ge .equ .neu .ltu .leu .gtu .geu .num .nan",
    ),
    needed("vset vset2 vset4", "", ".eq .ne .lt .le .gt .ge"),
    optional("setp set", "", BOOLEANS),
    needed("shfl", "", ".up .down .bfly .idx"),
    optional("vote", "", ".all .any .uni .ballot"),
    needed("match", "", ".any .all"),
    needed("redux", ".u32 .s32", ".add .min .max"),
    needed("redux", ".b32", ".and .or .xor"),
    needed("redux", ".f32", ".min .max"),
    needed("isspacep cvta", "", SPACES),
    needed("prefetch", "", ".L1 .L2 .L2::evict_last .L2::evict_normal .tensormap"),
    needed("prefetchu", "", ".L1"),
    needed("applypriority", "", ".L2::evict_normal"),
    needed("discard", "", ".L2"),
    needed("createpolicy", "", ".fractional .range .cvt"),
    needed_in(".cvt", "createpolicy", ".L2"),
    needed("mma wmma wgmma setmaxnreg", "", ".sync"),
    needed("mma wmma wgmma setmaxnreg", "", ".aligned"),
    needed("wgmma", "", ".mma_async .fence .commit_group .wait_group"),
    needed("wmma", "", ".load .store .mma"),
    needed_in(".a", "wmma", ".row .col"),
    needed_in(".b", "wmma", ".row .col"),
    needed_in(".load", "wmma", ".a .b .c"),
    needed_in(".store", "wmma", ".d"),
    optional("mma wmma", ".f64", ROUNDINGS),
    needed("setmaxnreg", "", ".inc .dec"),
    needed("tld4", "", ".r .g .b .a"),
    needed("tex tld4", "", ".v2 .v4"),
    needed("suld sust sured", "", ".b .p"),
    needed("suld sust sured", "", ".trap .clamp .zero"),
    needed_in(".pack", "cvt", ".sat"),
    optional("vadd2 vsub2 vabsdiff2 vmin2 vmax2 vavrg2", "", ".sat .add"),
    optional("vadd4 vsub4 vabsdiff4 vmin4 vmax4 vavrg4", "", ".sat .add"),
    optional("cvt", "", ".rn .rz .rm .rp .rni .rzi .rmi .rpi .rna .rs"),
];

/// Operations that combine a comparison with a predicate.
const BOOLEANS: &str = ".and .or .xor";

/// Opcodes that take only some types, and these types (PTX ISA 9.0, the syntax of each instruction).
const TYPES: &[(&str, &str)] = &[
    ("redux", ".u32 .s32 .b32 .f32"),
    ("copysign testp", ".f32 .f64"),
    ("rsqrt rcp sqrt", ".f32 .f64"),
    ("sin cos lg2", ".f32"),
    ("ex2 tanh", ".f32 .f16 .f16x2 .bf16 .bf16x2"),
    ("neg abs", ".s16 .s32 .s64 .f16 .f16x2 .bf16 .bf16x2 .f32 .f64"),
    ("mul24 mad24 dp4a dp2a szext", ".u32 .s32"),
    // The vendor's assembler takes 16-bit sums with a carry too.
    ("sad rem addc subc madc", INTEGERS),
    ("bfe bfind", ".u32 .s32 .u64 .s64"),
    ("bfi popc clz brev match", ".b32 .b64"),
    ("fns bmsk lop3 shf prmt activemask", ".b32"),
    ("and or xor not", ".pred .b16 .b32 .b64"),
    ("cnot shl", ".b16 .b32 .b64"),
    ("vadd vsub vabsdiff vmin vmax vshl vshr vset vmad", ".u32 .s32"),
    ("vadd2 vsub2 vabsdiff2 vmin2 vmax2 vavrg2 vset2", ".u32 .s32"),
    ("vadd4 vsub4 vabsdiff4 vmin4 vmax4 vavrg4 vset4", ".u32 .s32"),
];

/// Opcodes that do not take some types, and these types.
const NOT_TYPES: &[(&str, &str)] = &[
    ("add sub mul mad fma div min max shr", ".pred .b8 .u8 .s8 .b128"),
    ("add sub mul mad fma div min max", ".b16 .b32 .b64"),
    ("sub mul mad div shr selp setp", ".u16x2 .s16x2"),
    ("mad div selp", ".f16 .f16x2 .bf16 .bf16x2"),
];

/// Modifiers that exclude types: opcodes, types, modifiers.
const EXCLUDED: &[(&str, &str, &str)] = &[
    (
        "add sub mul fma mad min max abs neg div sqrt setp set",
        ".f64",
        ".ftz .sat .NaN .relu",
    ),
    ("rcp rsqrt", ".f64", ".sat .NaN .relu"),
    ("setp set", ".bf16 .bf16x2", ".ftz"),
    ("setp", INTEGERS, ".ftz"),
    ("setp", BITS, ".ftz"),
    ("mul mad", FLOATS, ".lo .hi .wide"),
    ("popc clz", "", ".shiftamt"),
    ("tanh", "", ".ftz"),
    ("redux", ".u32 .s32 .b32", ".NaN .abs"),
    // Only a fused product of bf16 takes all roundings. Only f16 flushes and saturates.
    ("add sub mul", ".f16 .f16x2 .bf16 .bf16x2", ".rz .rm .rp"),
    ("fma", ".f16 .f16x2", ".rz .rm .rp"),
    ("vmad", "", ".add .min .max"),
    ("add sub mul fma neg abs", ".bf16 .bf16x2", ".ftz .sat"),
    ("add sub mad", ".u16 .s16 .u16x2 .s16x2", ".cc"),
    ("add sub mad", FLOATS, ".cc"),
    ("vadd vsub vabsdiff vmin vmax vmad vset", "", ".clamp .wrap"),
];

/// Opcodes that need a type although their signature does not say so.
const TYPED: &str = "mov cvta nanosleep setmaxnreg txq suq suld sust sured alloca stacksave stackrestore";

/// Returns the choices of an opcode.
fn of_opcode(opcode: &str) -> &'static [&'static Choice] {
    static INDEX: LazyLock<HashMap<&str, Vec<&Choice>>> = LazyLock::new(|| {
        let mut index: HashMap<_, Vec<_>> = HashMap::new();
        for choice in CHOICES {
            for opcode in choice.opcodes.split(' ') {
                index.entry(opcode).or_default().push(choice);
            }
        }
        index
    });
    INDEX.get(opcode).map_or(&[], Vec::as_slice)
}

fn lists(words: &str, word: &str) -> bool {
    words.split(' ').any(|other| other == word)
}

/// Returns the first finding about the types and modifiers of an instruction: a wrong type, an excluded modifier, or a wrong choice.
pub(super) fn fault(instruction: &Instruction<'_>, operands: &[Value<'_>], dialect: Dialect) -> Option<Diagnostic> {
    let words = Words::of(instruction);
    let opcode = instruction.opcode.text;
    words
        .wrong_type()
        .or_else(|| words.excluded())
        .or_else(|| words.choices(dialect.version))
        .or_else(|| match opcode {
            "cvt" => words.conversion(operands.len()),
            "setp" | "set" => words
                .boolean(operands.len())
                .or_else(|| words.comparison(operands.first())),
            "match" if words.has(".any") => words.one_predicate(operands.first()),
            "vshl" | "vshr" => words.shift_count(),
            "dp4a" | "dp2a" => words.factor_types(),
            "wmma" => words.saturated_product(dialect.version),
            "shfl" | "vote" => words.mask(dialect),
            "discard" | "applypriority" => words.line(operands.get(1)),
            _ if is_video(opcode) => words.negated(operands),
            _ => None,
        })
}

/// The modifiers of an instruction.
struct Words<'i, 'a> {
    instruction: &'i Instruction<'a>,
    types: Vec<(Type, Name<'a>)>,
}

impl<'i, 'a> Words<'i, 'a> {
    fn of(instruction: &'i Instruction<'a>) -> Self {
        let words = instruction.qualifiers.iter();
        let types = words.filter_map(|name| Some((Type::from_dotted(name.text)?, *name)));
        Words {
            instruction,
            types: types.collect(),
        }
    }

    fn opcode(&self) -> &'a str {
        self.instruction.opcode.text
    }

    /// Returns the modifiers of a set, in text order.
    fn among<'w>(&'w self, words: &'w str) -> impl Iterator<Item = Name<'a>> + 'w {
        let names = self.instruction.qualifiers.iter().copied();
        names.filter(move |name| lists(words, name.text))
    }

    fn has(&self, word: &str) -> bool {
        self.among(word).next().is_some()
    }

    /// True if `types` is empty or lists the last type of the instruction.
    fn is_of(&self, types: &str) -> bool {
        types.is_empty() || self.types.last().is_some_and(|(_, name)| lists(types, name.text))
    }

    fn wrong_type(&self) -> Option<Diagnostic> {
        let opcode = self.opcode();
        if lists(TYPED, opcode) && self.types.is_empty() {
            let message = format!("`{opcode}` has no known type");
            return Some(Diagnostic::malformed(self.instruction.opcode.span, message));
        }
        let finding =
            |name: &Name<'_>| Diagnostic::malformed(name.span, format!("`{opcode}` takes no `{}`", name.text));
        if let Some((_, types)) = TYPES.iter().find(|(opcodes, _)| lists(opcodes, opcode)) {
            let (_, name) = self.types.iter().find(|(_, name)| !lists(types, name.text))?;
            return Some(finding(name).help(format!("its types are {}", super::list(&split(types)))));
        }
        let refused = NOT_TYPES.iter().filter(|(opcodes, _)| lists(opcodes, opcode));
        let is_refused = |name: &str| refused.clone().any(|(_, types)| lists(types, name));
        self.types
            .iter()
            .find(|(_, name)| is_refused(name.text))
            .map(|(_, name)| finding(name))
    }

    fn excluded(&self) -> Option<Diagnostic> {
        let rules = EXCLUDED
            .iter()
            .filter(|(opcodes, types, _)| lists(opcodes, self.opcode()) && self.is_of(types));
        let (types, name) = rules
            .filter_map(|(_, types, words)| Some((types, self.among(words).next()?)))
            .next()?;
        Some(match self.types.last().filter(|_| !types.is_empty()) {
            Some((_, ty)) => exclude(name, *ty),
            None => {
                let message = format!("`{}` takes no `{}`", self.opcode(), name.text);
                Diagnostic::malformed(name.span, message)
            }
        })
    }

    fn choices(&self, version: (u32, u32)) -> Option<Diagnostic> {
        let own = of_opcode(self.opcode())
            .iter()
            .filter(|choice| self.is_of(choice.types) && (choice.form.is_empty() || self.has(choice.form)));
        own.filter_map(|choice| {
            let mut made = self.among(choice.words);
            match (made.next(), made.next()) {
                (Some(first), Some(second)) if first.text != second.text => Some(exclude(first, second)),
                (None, _) if choice.since.is_some_and(|since| version >= since) => Some(self.without(choice.words)),
                _ => None,
            }
        })
        .next()
    }

    /// Creates the finding for an instruction without any of `words`.
    fn without(&self, words: &str) -> Diagnostic {
        let opcode = self.instruction.opcode;
        let message = match self.types.as_slice() {
            [] => format!("`{}` without a modifier that it needs", opcode.text),
            types => {
                let types: String = types.iter().map(|(_, name)| name.text).collect();
                format!("`{}` on `{types}` without a modifier that it needs", opcode.text)
            }
        };
        Diagnostic::malformed(opcode.span, message).help(format!("write {}", either(&split(words))))
    }

    /// Checks that `setp` and `set` combine their result if and only if there is a third source.
    fn boolean(&self, operands: usize) -> Option<Diagnostic> {
        match (operands, self.among(BOOLEANS).next()) {
            (4, None) => Some(self.without(BOOLEANS)),
            (3, Some(name)) => {
                let message = format!("`{}{}` without a third source", self.opcode(), name.text);
                Some(Diagnostic::malformed(name.span, message).help("add a predicate, or leave out the operation"))
            }
            _ => None,
        }
    }

    /// Checks the type of the result of `set`, and that `setp` on a half has one result.
    fn comparison(&self, result: Option<&Value<'_>>) -> Option<Diagnostic> {
        let &[(_, result_name), (_, source_name)] = self.types.as_slice() else {
            let is_half = self.is_of(".f16 .bf16");
            return if is_half { self.one_predicate(result) } else { None };
        };
        let known = match source_name.text {
            ".f16x2" => ".u32 .s32 .f16x2",
            ".bf16x2" => ".u32 .s32 .bf16x2",
            ".f16" | ".bf16" => ".u16 .s16 .u32 .s32 .f16 .bf16",
            _ => ".u32 .s32 .f32 .f16 .bf16",
        };
        let message = format!(
            "`set` on `{}` has no result of `{}`",
            source_name.text, result_name.text
        );
        let help = format!("its results are {}", super::list(&split(known)));
        (!lists(known, result_name.text)).then(|| Diagnostic::malformed(result_name.span, message).help(help))
    }

    /// Checks that the result is not a pair of predicates.
    fn one_predicate(&self, result: Option<&Value<'_>>) -> Option<Diagnostic> {
        let is_pair = matches!(result, Some(Value::Pair(..)));
        let message = format!("this form of `{}` has one result, not a pair", self.opcode());
        is_pair.then(|| Diagnostic::malformed(self.instruction.operands[0].span, message))
    }

    /// Checks that a video shift has an unsigned count.
    fn shift_count(&self) -> Option<Diagnostic> {
        let (_, name) = self.types.get(2).filter(|(_, name)| name.text != ".u32")?;
        let message = format!("the count of `{}` is `.u32`, not `{}`", self.opcode(), name.text);
        Some(Diagnostic::malformed(name.span, message))
    }

    /// Checks that a dot product names the types of both factors.
    fn factor_types(&self) -> Option<Diagnostic> {
        let message = format!("`{}` needs a type for each of its two factors", self.opcode());
        let finding = Diagnostic::malformed(self.instruction.opcode.span, message);
        (self.types.len() < 2).then(|| finding.help("write two types, such as `.s32.u32`"))
    }

    /// Checks that an exchange between lanes names its lanes, in new texts for GPUs whose lanes can diverge.
    fn mask(&self, dialect: Dialect) -> Option<Diagnostic> {
        if self.has(".sync") || dialect.version < (6, 4) || dialect.capability < 70 {
            return None;
        }
        let opcode = self.instruction.opcode;
        let qualifiers: String = self.instruction.qualifiers.iter().map(|name| name.text).collect();
        let message = format!("`{}` without `.sync` on `sm_70` or later", opcode.text);
        let help = format!(
            "write `{}.sync{qualifiers}`, with a mask of the lanes as last operand: 0xffffffff for all",
            opcode.text
        );
        Some(Diagnostic::malformed(opcode.span, message).help(help))
    }

    /// Checks that the size of a cache operation is one line.
    fn line(&self, size: Option<&Value<'_>>) -> Option<Diagnostic> {
        let size = size.filter(|size| **size != Value::Int(128))?;
        let shown = match size {
            Value::Int(size) => format!(", not {size}"),
            _ => String::new(),
        };
        let message = format!("`{}` takes a size of 128 bytes{shown}", self.opcode());
        Some(Diagnostic::malformed(self.instruction.operands[1].span, message))
    }

    /// Checks that products of floats do not saturate in new texts.
    fn saturated_product(&self, version: (u32, u32)) -> Option<Diagnostic> {
        let name = self.among(".satfinite").next()?;
        let is_float = self.types.first().is_some_and(|(ty, _)| ty.is_float());
        let message = "`wmma.mma` of floats takes no `.satfinite` from PTX ISA 6.5 on";
        (is_float && version >= (6, 5)).then(|| Diagnostic::malformed(name.span, message))
    }

    /// Checks that only `vmad` negates a source, without `.po`.
    fn negated(&self, operands: &[Value<'_>]) -> Option<Diagnostic> {
        let at = operands.iter().position(|value| matches!(value, Value::Minus(_)))?;
        let span = self.instruction.operands[at].span;
        if self.opcode() != "vmad" {
            let message = format!("`{}` cannot negate a source", self.opcode());
            return Some(Diagnostic::malformed(span, message).help("negate it before, with `neg`"));
        }
        let message = "`.po` and a negated source exclude each other";
        self.has(".po")
            .then(|| Diagnostic::malformed(span, message).help("leave out one of them"))
    }

    /// Checks the rounding, `.ftz`, `.satfinite` and the number of sources of a conversion.
    fn conversion(&self, operands: usize) -> Option<Diagnostic> {
        let &[(to, _), (from, from_name)] = self.types.as_slice() else {
            return None;
        };
        if self.has(".pack") {
            return None;
        }
        const TO_INTEGRAL: &str = ".rni .rzi .rmi .rpi";
        let is_bytes = |ty: Type| matches!(ty, Type::E4m3x2 | Type::E5m2x2);
        let is_pair = is_bytes(to) || matches!(to, Type::F16x2 | Type::Bf16x2);
        let rounding = match (to.is_float(), from.is_float()) {
            _ if is_bytes(to) || is_bytes(from) => Some(".rn"),
            (_, true) if is_pair => Some(".rn .rz .rs"),
            (true, true) if to == Type::Tf32 => Some(".rn .rz .rna"),
            (true, true) if to.bits() < from.bits() => Some(ROUNDINGS),
            (true, false) => Some(ROUNDINGS),
            (false, true) => Some(TO_INTEGRAL),
            _ => None,
        };
        if let Some(words) = rounding.filter(|words| self.among(words).next().is_none()) {
            return Some(self.without(words));
        }
        // An exact conversion has nothing to round. Within one float type it can round to an integral value.
        // From bf16, or between float types of one width, any rounding is taken.
        let refused: &[&str] = match () {
            () if rounding.is_some() => &[],
            () if to == from && to.is_float() => &[ROUNDINGS],
            () if from == Type::Bf16 || (to.is_float() && to.bits() <= from.bits()) => &[],
            () => &[ROUNDINGS, TO_INTEGRAL],
        };
        if let Some(name) = refused.iter().find_map(|words| self.among(words).next()) {
            let finding = Diagnostic::malformed(name.span, format!("`{}` on an exact conversion", name.text));
            return Some(finding.help("leave it out"));
        }
        if is_bytes(to) && !self.has(".satfinite") {
            return Some(self.without(".satfinite"));
        }
        let flush = self.among(".ftz").next();
        if let Some(name) = flush.filter(|_| is_pair || (to != Type::F32 && from != Type::F32)) {
            return Some(exclude(name, from_name));
        }
        let saturation = self.among(".sat").next();
        if let Some(name) = saturation.filter(|_| is_pair || to == Type::Bf16 || from == Type::Bf16) {
            return Some(exclude(name, from_name));
        }
        // A pair of f32 values is two sources. Stochastic rounding has its random bits as one more.
        let expected = 2 + usize::from(is_pair && from == Type::F32) + usize::from(self.has(".rs"));
        let message = format!("this form of `cvt` takes {expected} operands, found {operands}");
        (operands != expected).then(|| Diagnostic::malformed(self.instruction.span, message))
    }
}

fn split(words: &str) -> Vec<&str> {
    words.split(' ').collect()
}
