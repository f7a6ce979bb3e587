//! The syntax tree: the text as written, with nothing resolved and no opcode refused.
//!
//! Names borrow from the text. Every part that a finding can point at has a [`Span`].

use crate::diag::Span;
use std::collections::HashSet;
use warpwave_isa::source::SourcePos;

/// A name and its span.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// The name as written.
    pub text: &'a str,
    /// Span of the name.
    pub span: Span,
}

/// A whole PTX text.
#[derive(Clone, Debug, Default)]
pub struct Module<'a> {
    /// Major and minor number of `.version`.
    pub version: (u32, u32),
    /// Span of the directive; byte 0 if it is missing.
    pub version_span: Span,
    /// Names of `.target`: the architecture, then its options.
    pub target: Vec<&'a str>,
    /// Span of the directive.
    pub target_span: Span,
    /// `.address_size` in bits; 64 if the directive is missing.
    pub address_size: u32,
    /// Index and name of each `.file`.
    pub files: Vec<(u32, &'a str)>,
    /// Module-scope variables, in text order.
    pub variables: Vec<Variable<'a>>,
    /// True with `.pragma "nounroll"` at module scope: no loop is unrolled.
    pub keeps_loops: bool,
    /// Entries and functions, in text order. A prototype has no body.
    pub functions: Vec<Function<'a>>,
    /// Each `.alias`: the new name, and the function that it stands for.
    pub aliases: Vec<(Name<'a>, Name<'a>)>,
}

/// Visibility of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// Visible in this module only.
    Internal,
    /// `.visible`.
    Visible,
    /// `.extern`: defined in another module.
    Extern,
    /// `.weak`.
    Weak,
    /// `.common`.
    Common,
}

/// State space of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// `.const`.
    Const,
    /// `.global`.
    Global,
    /// `.local`.
    Local,
    /// `.param`.
    Param,
    /// `.reg`, for a parameter or result of a `.func`.
    Reg,
    /// `.shared`.
    Shared,
    /// `.tex`, the legacy space of texture handles.
    Tex,
}

/// The type of a register, a variable or an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the PTX type of that name")]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    U16x2,
    S16x2,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F32x2,
    F64,
    E4m3x2,
    E5m2x2,
    /// `.texref`, `.surfref`.
    Handle,
    /// `.samplerref`.
    Sampler,
}

impl Type {
    /// Parses a dotted word such as `.u32`.
    pub fn from_dotted(word: &str) -> Option<Type> {
        Some(match word {
            ".pred" => Type::Pred,
            ".b8" => Type::B8,
            ".b16" => Type::B16,
            ".b32" => Type::B32,
            ".b64" => Type::B64,
            ".b128" => Type::B128,
            ".u8" => Type::U8,
            ".u16" => Type::U16,
            ".u32" => Type::U32,
            ".u64" => Type::U64,
            ".s8" => Type::S8,
            ".s16" => Type::S16,
            ".s32" => Type::S32,
            ".s64" => Type::S64,
            ".u16x2" => Type::U16x2,
            ".s16x2" => Type::S16x2,
            ".f16" => Type::F16,
            ".f16x2" => Type::F16x2,
            ".bf16" => Type::Bf16,
            ".bf16x2" => Type::Bf16x2,
            ".tf32" => Type::Tf32,
            ".f32" => Type::F32,
            ".f32x2" => Type::F32x2,
            ".f64" => Type::F64,
            ".e4m3x2" => Type::E4m3x2,
            ".e5m2x2" => Type::E5m2x2,
            ".texref" | ".surfref" => Type::Handle,
            ".samplerref" => Type::Sampler,
            _ => return None,
        })
    }

    /// Returns the PTX spelling, such as `.u32`. A handle has two PTX spellings and gives `.handle`.
    pub fn dotted(self) -> String {
        format!(".{self:?}").to_lowercase()
    }

    /// Returns the width in bits; 1 for a predicate.
    pub fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::B8 | Type::U8 | Type::S8 => 8,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 | Type::E4m3x2 | Type::E5m2x2 => 16,
            Type::B32 | Type::U32 | Type::S32 | Type::F32 | Type::U16x2 | Type::S16x2 => 32,
            Type::F16x2 | Type::Bf16x2 | Type::Tf32 => 32,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 | Type::F32x2 | Type::Handle | Type::Sampler => 64,
            Type::B128 => 128,
        }
    }

    /// Returns the bytes of one element in memory.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// True for a floating-point type.
    pub fn is_float(self) -> bool {
        // The types left over are halves, packed floats and formats of 8 bits.
        let is_number = !self.is_reference() && self != Type::Pred;
        is_number && !self.is_bits() && !self.is_signed() && !self.is_unsigned()
    }

    /// True for a texture, surface or sampler reference.
    pub fn is_reference(self) -> bool {
        matches!(self, Type::Handle | Type::Sampler)
    }

    /// True for a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64 | Type::S16x2)
    }

    /// True for an unsigned integer type.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::U16x2)
    }

    /// True for an untyped bit pattern, such as `.b32`.
    pub fn is_bits(self) -> bool {
        matches!(self, Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128)
    }
}

/// A variable or parameter of any state space.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    /// Visibility of the variable.
    pub linkage: Linkage,
    /// State space of the variable.
    pub space: Space,
    /// Alignment in bytes, if `.align` is written.
    pub align: Option<u32>,
    /// Elements of a `.v2` or `.v4` type; 1 otherwise.
    pub vector: u32,
    /// Type of one element.
    pub ty: Type,
    /// Name of the variable; `_` in a prototype.
    pub name: Name<'a>,
    /// Array dimensions; `None` is an unsized `[]`.
    pub dims: Vec<Option<u64>>,
    /// Initial value, if written.
    pub init: Option<Init<'a>>,
}

impl Variable<'_> {
    /// Returns the size in bytes, saturating at `u64::MAX`; 0 for an unsized array.
    pub fn bytes(&self) -> u64 {
        // At most 4 elements of 16 bytes, so the product cannot overflow.
        let each = u64::from(self.vector * self.ty.bytes());
        self.dims
            .iter()
            .fold(each, |bytes, dim| bytes.saturating_mul(dim.unwrap_or(0)))
    }

    /// Returns the alignment in bytes: as written, or the natural alignment of one element.
    pub fn alignment(&self) -> u64 {
        u64::from(self.align.unwrap_or(self.vector * self.ty.bytes())).max(1)
    }
}

/// Initial value of a variable.
#[derive(Clone, Debug)]
pub enum Init<'a> {
    /// An integer.
    Int(i128, Span),
    /// A floating-point literal.
    Float(Float, Span),
    /// The address of a symbol plus an offset in bytes; true if written `generic(symbol)`.
    Symbol(Name<'a>, i64, bool),
    /// One byte of a symbol's address or of an integer, with its lowest bit number: `0xFF00(symbol)`.
    Byte(Box<Init<'a>>, u32, Span),
    /// A list in braces. Missing elements are zero.
    List(Vec<Init<'a>>, Span),
    /// Fields of a texture, surface or sampler reference: `{addr_mode_0 = wrap, filter_mode = nearest}`.
    Fields(Vec<(Name<'a>, Init<'a>)>, Span),
}

impl<'a> Init<'a> {
    /// Adds the names of all symbols in the value to `names`.
    pub(crate) fn names(&self, names: &mut HashSet<&'a str>) {
        match self {
            Init::Symbol(name, ..) => _ = names.insert(name.text),
            Init::Byte(inner, ..) => inner.names(names),
            Init::List(items, _) => items.iter().for_each(|item| item.names(names)),
            // The value of a field is a word of its own, and no symbol.
            Init::Int(..) | Init::Float(..) | Init::Fields(..) => {}
        }
    }
}

/// A floating-point literal, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Float {
    /// `0f3F800000`.
    Single(u32),
    /// `0d3FF0000000000000`, or a decimal literal.
    Double(u64),
}

impl Float {
    /// Returns the width of the literal in bits.
    pub fn bits(self) -> u32 {
        match self {
            Float::Single(_) => 32,
            Float::Double(_) => 64,
        }
    }

    /// Returns the literal converted to `ty`. An integer type takes the bits unchanged.
    pub fn bits_as(self, ty: Type) -> u64 {
        match (self, ty) {
            (Float::Single(bits), Type::F64) => f64::from(f32::from_bits(bits)).to_bits(),
            // PTX reads a decimal literal as a double, so it is rounded here.
            (Float::Double(bits), Type::F32) => (f64::from_bits(bits) as f32).to_bits().into(),
            (Float::Single(bits), _) => bits.into(),
            (Float::Double(bits), _) => bits,
        }
    }
}

/// An entry, a function, or a prototype.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// Visibility of the function.
    pub linkage: Linkage,
    /// True for `.entry`.
    pub is_entry: bool,
    /// Name of the function.
    pub name: Name<'a>,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable<'a>>,
    /// Parameters in text order.
    pub params: Vec<Variable<'a>>,
    /// Performance directives and their numbers: `.maxntid`, `.reqntid`, `.minnctapersm`, and so on.
    pub limits: Vec<(&'a str, Vec<u64>)>,
    /// True with `.pragma "nounroll"` before the body: none of its loops is unrolled.
    pub keeps_loops: bool,
    /// The body; `None` for a prototype.
    pub body: Option<Block<'a>>,
}

/// `{ … }`: a scope.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// Statements in text order.
    pub statements: Vec<Statement<'a>>,
    /// Span of the closing brace.
    pub end: Span,
}

/// A statement in a function body.
#[derive(Clone, Debug)]
pub enum Statement<'a> {
    /// `.reg .b32 %r<8>, x;`
    Registers(Registers<'a>),
    /// `.shared .align 4 .b8 tile[4096];`
    Variable(Variable<'a>),
    /// `$L__BB0_2:`
    Label(Name<'a>),
    /// `@%p1 bra $L__BB0_2;`
    Instruction(Instruction<'a>),
    /// A nested scope.
    Block(Block<'a>),
    /// `.pragma "nounroll";`: the loop that begins here is not unrolled.
    KeepLoop,
    /// `.loc 1 17 9`
    Loc(Loc),
    /// `prototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);`
    Prototype(Name<'a>),
    /// `ts: .branchtargets L1, L2;`
    Targets(Name<'a>, Vec<Name<'a>>),
    /// `ts: .calltargets f, g;`
    CallTargets(Name<'a>, Vec<Name<'a>>),
}

/// A `.loc` directive: the source position of the instructions after it.
#[derive(Clone, Copy, Debug)]
pub struct Loc {
    /// The source position.
    pub at: SourcePos,
    /// Position of the inlined call: `, inlined_at 1 18 5`.
    pub inlined_at: Option<SourcePos>,
    /// Span of the file index.
    pub span: Span,
}

/// A register declaration.
#[derive(Clone, Debug)]
pub struct Registers<'a> {
    /// Type of the registers.
    pub ty: Type,
    /// Elements of a `.v2` or `.v4` register; 1 otherwise.
    pub vector: u32,
    /// Register names. A count of `n` declares `name0` to `name(n-1)`.
    pub names: Vec<(Name<'a>, Option<u32>)>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Instruction<'a> {
    /// The guard predicate `@%p1`; true if negated, as in `@!%p1`.
    pub guard: Option<(Name<'a>, bool)>,
    /// The opcode: the word before the first dot.
    pub opcode: Name<'a>,
    /// Qualifiers as written, with their dots: `.global`, `.f32`.
    pub qualifiers: Vec<Name<'a>>,
    /// Operands from left to right.
    pub operands: Vec<Operand<'a>>,
    /// Span from the guard to the semicolon.
    pub span: Span,
}

/// An operand and its span.
#[derive(Clone, Debug)]
pub struct Operand<'a> {
    /// Form of the operand.
    pub kind: OperandKind<'a>,
    /// Span of the operand.
    pub span: Span,
}

/// Form of an operand.
#[derive(Clone, Debug)]
pub enum OperandKind<'a> {
    /// A register, a symbol, a label or `_`.
    Name(&'a str),
    /// `symbol+8`.
    Offset(&'a str, i64),
    /// `%tid.x`.
    Component(&'a str, &'a str),
    /// An integer. 128 bits hold every signed and unsigned 64-bit value.
    Int(i128),
    /// A float, bit for bit.
    Float(Float),
    /// `!%p1`, or a negated register.
    Not(Box<Operand<'a>>),
    /// `-%r1`, used by `vmad`.
    Minus(Box<Operand<'a>>),
    /// `%r1|%p1`.
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `[base+offset]`.
    Address(Box<Operand<'a>>, i64),
    /// `[handle, {coordinates}]`.
    Handle(Vec<Operand<'a>>),
    /// `{a, b, c, d}`.
    Vector(Vec<Operand<'a>>),
    /// `(a, b)`: arguments or results of a call.
    List(Vec<Operand<'a>>),
}
