//! Elements that an expression gives: one evaluation per element, over the elements of other buffers.
//!
//! | name | value for element i |
//! |---|---|
//! | `i` | the index, in row-major order |
//! | `x` | element i of buffer `x` before the first launch |
//! | `x[e]` | element e of it |
//! | any other | a constant |
//!
//! Elements of `f16`, `bf16` and `f32` are computed in f64 and rounded once, to the nearest number of the type. `f32(e)` rounds within an
//! expression. Elements of integer types are exact.

use super::dtype::{Dtype, Number};
use super::error::Fault;
use super::expr::{Expr, ExprError, Node, Scope};
use super::quantity::{Constants, RESERVED, whole};
use super::similar::nearest;
use super::{Layout, data};

/// The initial elements of a buffer, by its name.
pub(super) struct Source<'a> {
    pub name: &'a str,
    pub dtype: Dtype,
    pub bytes: &'a [u8],
}

/// Generates elements by an expression, from index `first` of the buffer on.
pub(super) fn bytes(
    expr: &Expr,
    layout: &Layout,
    first: u64,
    constants: &Constants,
    sources: &[Source<'_>],
) -> Result<Vec<u8>, Fault> {
    data::check_room(layout.bytes())?;
    let mut bytes = Vec::with_capacity(layout.bytes() as usize);
    for index in first..first + layout.elements() {
        let scope = Element {
            index,
            constants,
            sources,
        };
        let value = expr.value(&scope).map_err(Fault::from);
        // An expression such as `6 / 2.0` gives a float. `whole` lets an integer buffer hold it.
        let appended = value.and_then(|value| data::append(layout.dtype, &mut bytes, whole(value)));
        appended.map_err(|fault| Fault::Element {
            index,
            fault: fault.into(),
        })?;
    }
    Ok(bytes)
}

/// The names that the expression of one element may use.
struct Element<'a> {
    index: u64,
    constants: &'a Constants,
    sources: &'a [Source<'a>],
}

impl Element<'_> {
    fn source(&self, name: &str) -> Option<&Source<'_>> {
        self.sources.iter().find(|source| source.name == name)
    }
}

impl Source<'_> {
    fn element(&self, index: i128) -> Result<Number, ExprError> {
        let size = self.dtype.bytes();
        let n = self.bytes.len() / size;
        let inside = usize::try_from(index).ok().filter(|&index| index < n);
        let at = inside.ok_or_else(|| ExprError::NotA {
            text: format!("{}[...]", self.name),
            value: Number::Int(index),
            want: format!("an index below {n}"),
        })?;
        Ok(self.dtype.read(&self.bytes[at * size..]))
    }
}

impl Scope for Element<'_> {
    fn name(&self, name: &str) -> Result<Number, ExprError> {
        if name == "i" {
            return Ok(Number::Int(self.index.into()));
        }
        match self.source(name) {
            // A buffer's name without an index means its element i.
            Some(source) => source.element(self.index.into()),
            None => self.constants.name(name).map_err(|_| {
                let buffers = self.sources.iter().map(|source| source.name);
                ExprError::UnknownName {
                    nearest: nearest(name, self.constants.names().chain(RESERVED).chain(buffers)),
                    name: name.to_owned(),
                }
            }),
        }
    }

    fn index(&self, base: &Node, index: &Node) -> Result<Number, ExprError> {
        let source = match base {
            Node::Name(name) => self.source(name),
            _ => None,
        };
        let Some(source) = source else {
            return Err(ExprError::Misplaced("only a buffer has elements".to_owned()));
        };
        match whole(index.value(self)?) {
            Number::Int(index) => source.element(index),
            value => Err(ExprError::NotA {
                text: format!("{}[...]", source.name),
                value,
                want: "a whole index".to_owned(),
            }),
        }
    }
}
