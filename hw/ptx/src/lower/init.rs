//! Initial values of module variables, as bytes.
//!
//! Values known now are written to the bytes of the variable, which start as zero. The address of a global variable becomes a
//! [`Relocation`], because the host allocates such variables.

use super::callgraph;
use super::layout::VarLoc;
use crate::ast::{Init, Name, Type, Variable};
use crate::check::{Checked, SymbolId};
use crate::diag::{Diagnostic, Span};
use std::collections::HashMap;

/// A place in module data for the address of a global variable, or for one byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Offset of the first byte in the image.
    pub at: u32,
    /// Index of the global variable.
    pub global: u32,
    /// Value added to the variable's address, modulo 2^64.
    pub addend: u64,
    /// Lowest bit of the sum to store.
    pub shift: u32,
    /// Number of bytes to store: 8 or 1.
    pub bytes: u8,
}

impl Relocation {
    /// Writes the bytes for a variable at `address` into an image.
    ///
    /// ```
    /// use warpwave_ptx::Relocation;
    ///
    /// let byte = Relocation { at: 1, global: 0, addend: 4, shift: 8, bytes: 1 };
    /// let mut image = [0; 3];
    /// byte.apply(&mut image, 0x12fe);
    /// assert_eq!(image, [0, 0x13, 0]);
    /// ```
    pub fn apply(&self, image: &mut [u8], address: u64) {
        let value = address.wrapping_add(self.addend) >> self.shift;
        let (first, bytes) = (self.at as usize, usize::from(self.bytes));
        image[first..first + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}

/// Writer of initial values. It collects findings.
pub(super) struct Initializers<'f, 't, 'a> {
    checked: &'f Checked<'t, 'a>,
    locations: &'f HashMap<SymbolId, VarLoc>,
    names: HashMap<&'a str, SymbolId>,
    /// The variable that is being initialised.
    symbol: SymbolId,
    pub findings: Vec<Diagnostic>,
    /// Index of the global variable with a copy of the constants.
    copy: u32,
    /// True if a value is the generic address of a constant, so that the module needs the copy.
    pub generic_constants: bool,
}

/// Bytes of one variable while they are initialised.
pub(super) struct Image<'i> {
    ty: Type,
    bytes: &'i mut [u8],
    /// Bytes of the variable, then of an element of each dimension, down to a single value.
    sizes: Vec<usize>,
    pub relocations: Vec<Relocation>,
}

impl<'i> Image<'i> {
    pub fn new(variable: &Variable<'_>, bytes: &'i mut [u8]) -> Self {
        let dims = variable.dims.iter().map(|dim| dim.unwrap_or(0));
        // A vector is one more dimension, the innermost one.
        let vector = (variable.vector > 1).then_some(u64::from(variable.vector));
        let dims: Vec<u64> = dims.chain(vector).collect();
        let mut sizes = vec![variable.ty.bytes() as usize];
        for n in dims.into_iter().rev() {
            sizes.insert(0, sizes[0].saturating_mul(n as usize));
        }
        Image {
            ty: variable.ty,
            bytes,
            sizes,
            relocations: Vec::new(),
        }
    }

    /// Returns the bytes of a part at brace depth `depth`.
    fn size(&self, depth: usize) -> usize {
        // Never zero, because lists are rounded up to whole parts.
        self.sizes[depth.min(self.sizes.len() - 1)].max(1)
    }

    fn value_size(&self) -> usize {
        self.ty.bytes() as usize
    }
}

/// A single value: known bits, or an address that only the host knows.
enum Value {
    Bits(u128),
    Address(Relocation),
}

impl<'f, 't, 'a> Initializers<'f, 't, 'a> {
    pub fn new(checked: &'f Checked<'t, 'a>, locations: &'f HashMap<SymbolId, VarLoc>, copy: u32) -> Self {
        let variables = checked.symbols[..checked.n_module_symbols].iter();
        let names = (0..)
            .zip(variables)
            .map(|(n, variable)| (variable.name.text, SymbolId(n)));
        Initializers {
            checked,
            locations,
            names: names.collect(),
            symbol: SymbolId(0),
            findings: Vec::new(),
            copy,
            generic_constants: false,
        }
    }

    /// Writes the initial value of variable `symbol`.
    pub fn fill(&mut self, symbol: SymbolId, image: &mut Image<'_>, init: &Init<'a>) {
        self.symbol = symbol;
        match init {
            Init::List(items, _) => self.list(image, items, 0, 0),
            single => _ = self.single(image, single, 0, image.bytes.len()),
        }
    }

    /// Writes a list at brace depth `depth` from byte `first`.
    ///
    /// A value fills the next element. Inner braces fill the next whole part.
    fn list(&mut self, image: &mut Image<'_>, items: &[Init<'a>], first: usize, depth: usize) {
        let part = image.size(depth + 1);
        let end = image.bytes.len().min(first.saturating_add(image.size(depth)));
        let mut at = first;
        for item in items {
            if let Init::List(inner, span) = item {
                // As in C: values before the brace leave the rest of their part zero.
                at = first + (at - first).next_multiple_of(part);
                if at + part > end {
                    return self.too_many(*span);
                }
                self.list(image, inner, at, depth + 1);
                at += part;
            } else {
                if !self.single(image, item, at, end) {
                    return;
                }
                at += image.value_size();
            }
        }
    }

    /// Writes one value at byte `at`. Returns false if it does not fit before `end`.
    fn single(&mut self, image: &mut Image<'_>, init: &Init<'a>, at: usize, end: usize) -> bool {
        let bytes = image.value_size();
        if at + bytes > end {
            self.too_many(span_of(init));
            return false;
        }
        match self.value(image.ty, init) {
            Ok(Value::Bits(bits)) => image.bytes[at..at + bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]),
            Ok(Value::Address(relocation)) => image.relocations.push(Relocation {
                at: at as u32,
                ..relocation
            }),
            Err(finding) => self.findings.push(finding),
        }
        true
    }

    fn too_many(&mut self, span: Span) {
        let message = "more initial values than the variable holds";
        self.findings.push(Diagnostic::malformed(span, message));
    }

    /// Returns one value for a variable of type `ty`.
    fn value(&mut self, ty: Type, init: &Init<'a>) -> Result<Value, Diagnostic> {
        let span = span_of(init);
        let typed = |what: &str| Diagnostic::malformed(span, format!("{what} in a variable of `{}`", ty.dotted()));
        let bits = "declare the variable as `.b16` or `.b32`, and write the bits as integers";
        if ty.is_float() && !matches!(ty, Type::F32 | Type::F64) {
            return Err(typed("an initial value").help(bits));
        }
        match init {
            // Zero has the same bits in every type.
            Init::Int(value, _) if ty.is_float() && *value != 0 => {
                Err(typed("an integer").help("write a float: `1.0`, or its bits: `0f3F800000`"))
            }
            // The lowest bytes count, as in a C conversion.
            Init::Int(value, _) => Ok(Value::Bits(*value as u128)),
            Init::Float(float, _) if ty.is_float() || float.bits() == ty.bits() => {
                Ok(Value::Bits(float.bits_as(ty).into()))
            }
            Init::Float(float, _) => Err(typed(&format!("a float of {} bits", float.bits()))),
            Init::Symbol(..) | Init::Byte(..) if ty.is_float() => Err(typed("an address")),
            Init::Symbol(name, offset, generic) => self.whole_address(ty, *name, *offset, *generic),
            Init::Byte(inner, shift, _) => self.byte(inner, *shift),
            Init::List(..) => Err(typed("a list instead of a value")),
            Init::Fields(..) => Err(typed("fields").help("only a texture, surface or sampler reference has fields")),
        }
    }

    /// Returns an address for a 64-bit variable, or for a 32-bit variable if the address fits.
    fn whole_address(&mut self, ty: Type, name: Name<'a>, offset: i64, generic: bool) -> Result<Value, Diagnostic> {
        let value = self.address(name, offset, generic)?;
        match (ty.bits(), &value) {
            (64, _) => Ok(value),
            // Constants and functions have small addresses, known here.
            (32, Value::Bits(bits)) if bits >> 32 == 0 => Ok(value),
            (32, _) => {
                let message = format!("an address of 64 bits in a variable of `{}`", ty.dotted());
                Err(Diagnostic::unsupported(name.span, message).help("declare the variable as `.u64`"))
            }
            _ => {
                let message = format!("an address in a variable of `{}`", ty.dotted());
                let help = "declare the variable as `.u64`, or write each byte: `0xFF(name)`, `0xFF00(name)` and so on";
                Err(Diagnostic::malformed(name.span, message).help(help))
            }
        }
    }

    /// Returns one byte of an address or of an integer.
    fn byte(&mut self, inner: &Init<'a>, shift: u32) -> Result<Value, Diagnostic> {
        let value = match inner {
            Init::Symbol(name, offset, generic) => self.address(*name, *offset, *generic)?,
            Init::Int(value, _) => Value::Bits(*value as u128),
            other => {
                let message = "a mask applies to an address or an integer only";
                return Err(Diagnostic::malformed(span_of(other), message));
            }
        };
        Ok(match value {
            Value::Bits(bits) => Value::Bits(bits >> shift & 0xff),
            Value::Address(relocation) => Value::Address(Relocation {
                shift,
                bytes: 1,
                ..relocation
            }),
        })
    }

    /// Returns the address of a variable, in its own space or generic, or of a function.
    fn address(&mut self, name: Name<'a>, offset: i64, generic: bool) -> Result<Value, Diagnostic> {
        let text = name.text;
        let inner = self.checked.init_names.get(&(self.symbol, text));
        let Some(symbol) = inner.or_else(|| self.names.get(text)) else {
            return self.function(name, offset, generic);
        };
        let in_global = |global: u32, addend: u64| {
            Value::Address(Relocation {
                at: 0,
                global,
                addend,
                shift: 0,
                bytes: 8,
            })
        };
        match self.locations.get(symbol) {
            Some(&VarLoc::Global(global)) => Ok(in_global(global, offset as u64)),
            Some(&VarLoc::Const(at)) => {
                self.generic_constants |= generic;
                let address = u64::from(at).wrapping_add(offset as u64);
                // A plain address of a constant is its offset in the bank.
                Ok(match generic {
                    true => in_global(self.copy, address),
                    false => Value::Bits(address.into()),
                })
            }
            Some(VarLoc::Handle(_) | VarLoc::Sampler(_)) => Err(Diagnostic::unsupported(
                name.span,
                format!("the handle of `{text}` in an initial value"),
            )
            .help("give the kernel the handle of a texture or surface object as a parameter")),
            _ => Err(
                Diagnostic::malformed(name.span, format!("the address of `{text}` cannot be an initial value"))
                    .help("use the address of a `.global` or `.const` variable, or of a function"),
            ),
        }
    }

    /// Returns the address of a function. An offset or `generic()` is malformed.
    fn function(&self, name: Name<'a>, offset: i64, generic: bool) -> Result<Value, Diagnostic> {
        let text = name.text;
        match callgraph::address(self.checked, text) {
            Some(address) if offset == 0 && !generic => Ok(Value::Bits(address.into())),
            Some(_) => {
                let message = format!("the address of the function `{text}` takes no offset and no `generic()`");
                Err(Diagnostic::malformed(name.span, message))
            }
            None => Err(match self.checked.functions.get(text) {
                Some(declaration) => callgraph::undefined(text, *declaration),
                None => Diagnostic::malformed(name.span, format!("undefined symbol `{text}`")),
            }),
        }
    }
}

fn span_of(init: &Init<'_>) -> Span {
    match init {
        Init::Int(_, span)
        | Init::Float(_, span)
        | Init::Byte(_, _, span)
        | Init::List(_, span)
        | Init::Fields(_, span) => *span,
        Init::Symbol(name, ..) => name.span,
    }
}
