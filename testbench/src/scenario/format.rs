//! The TOML text of a scenario, key by key. This module only parses: `resolve` checks names, and `draft` checks sizes.
//!
//! ```toml
//! title = "y = a x + y"              # optional
//! claim = "…"                        # optional: one sentence that the scenario proves
//! ptx = "saxpy.ptx"                  # relative to this file
//! gpu = "h100-sxm5"                  # optional: a preset's name or file; --gpu wins
//!
//! [constants]                        # optional: names for expressions. Wherever this text has a number of the machine's or of
//! n = 1024                           # the data's size, an argument or an element, it may have an expression: "ceil(n / 256)".
//!
//! [buffers.x]                        # device buffers by name; [globals.NAME] sets a module variable.
//!                                    # A name must be a plain file name. All data must fit the GPU's memory.
//! dtype = "f32"                      # i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64
//! shape = [1024]
//! init = { npy = "x.npy" }           # or "zeros", { fill = 1.0 }, { iota = { start = 0, step = 1 } },
//!                                    # { uniform = { low = 0.0, high = 1.0, seed = 7 } }, { values = [1, 2] },
//!                                    # or an expression for element i: "2 * i".
//!                                    # Default: zeros for a buffer, the program's bytes for a module variable.
//! expect = { npy = "y.npy", rtol = 1e-5, atol = 1e-6 }   # any source; exact without rtol and atol.
//!                                    # An expression may name all buffers: "2 * x + y", or { expr = "2 * x + y", rtol = 1e-5 }.
//!                                    # Both are finite and at least 0; rtol is below 1. Tolerances that accept
//!                                    # every number of the dtype are refused. An npy file must have exactly
//!                                    # the bytes of its shape.
//!
//! [[launch]]                         # one or more, in order
//! entry = "saxpy"                    # optional if the module has one entry
//! grid = [4, 1, 1]                   # blocks: one to three sizes, or one integer
//! block = 256                        # threads, in the same form
//! dynamic_shared_bytes = 0           # optional
//! cluster = [2, 1, 1]                # optional: blocks of a cluster
//! args = ["x", "y", { f32 = 2.0 }, { u32 = 1024 }]       # a buffer's name passes its address
//! # Other arguments:
//! #   { bytes = "00ff" }                         a structure as hexadecimal bytes
//! #   { struct = ["x", { u64 = 500 }] }          a structure as fields with natural alignment
//! #   { tensor_map = { buffer = "x", tile = [32, 32], swizzle = 128 } }
//! #                                              for bulk copies; swizzle is 32, 64 or 128 bytes, or left out for none
//! #   { texture = { buffer = "x" } }             the handle of a texture; { surface = { buffer = "x" } } for suld and sust
//! # A texture or surface is a buffer of i8, u8, i16, u16, i32, u32, f16 or f32. Its shape is [width], [height, width] or
//! # [height, width, channels], with 1, 2 or 4 channels. Optional keys, with their defaults:
//! #   address = "clamp"       for coordinates outside the image; or "wrap", "mirror", "border"
//! #   filter = "point"        or "linear"
//! #   normalized = false      true: coordinates from 0 to 1
//! #   read = "element"        or "normalized": unsigned integers become 0 to 1, signed integers -1 to 1
//! #   layers = 1              number of 3D slices or array layers. The height of the shape is that of all layers together.
//!
//! [[assert]]
//! metric = "smsp__inst_executed.sum"
//! max = 1000                         # at least one of min, max, equal, each within ±2^64
//! launch = 0                         # optional: index of one launch; without it, all launches together
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::dtype::{Dtype, Number};
use super::expr::Expr;
use super::quantity::Quantity;

/// The parsed text of a scenario.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub title: Option<String>,
    pub claim: Option<String>,
    pub ptx: String,
    pub gpu: Option<String>,
    #[serde(default)]
    pub constants: BTreeMap<String, Quantity>,
    #[serde(default)]
    pub buffers: BTreeMap<String, Buffer>,
    #[serde(default)]
    pub globals: BTreeMap<String, Buffer>,
    #[serde(default)]
    pub launch: Vec<Launch>,
    #[serde(default)]
    pub assert: Vec<super::Assert>,
}

impl ScenarioFile {
    /// Paths of the PTX file and of all npy files, as written in the text.
    pub fn paths(&self) -> Vec<&str> {
        let buffers = self.buffers.values().chain(self.globals.values());
        let arrays = buffers.flat_map(|buffer| {
            let init = buffer.init.as_ref().and_then(ElementSource::path);
            let expect = buffer.expect.as_ref().and_then(|expect| expect.source.as_ref()?.path());
            init.into_iter().chain(expect)
        });
        [&self.ptx].into_iter().chain(arrays).map(String::as_str).collect()
    }
}

/// A table `[buffers.NAME]` or `[globals.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Buffer {
    pub dtype: Dtype,
    pub shape: Vec<Quantity>,
    pub init: Option<ElementSource>,
    pub expect: Option<Expect>,
}

/// The source of a buffer's elements.
#[derive(Clone)]
pub(super) enum ElementSource {
    Zeros,
    /// One expression for all elements.
    Expr(Expr),
    Table(SourceTable),
}

/// A source that a table gives.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SourceTable {
    Npy(String),
    Fill(Quantity),
    Iota(Iota),
    Uniform(Uniform),
    Values(Vec<Quantity>),
}

impl ElementSource {
    /// The path of an npy file.
    fn path(&self) -> Option<&String> {
        match self {
            ElementSource::Table(SourceTable::Npy(path)) => Some(path),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for ElementSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = ElementSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"zeros\", an expression such as \"i % 7\", or a table such as { fill = 1 }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ElementSource, E> {
        match text {
            "zeros" => Ok(ElementSource::Zeros),
            text => Expr::parse(text).map(ElementSource::Expr).map_err(E::custom),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ElementSource, A::Error> {
        SourceTable::deserialize(MapAccessDeserializer::new(map)).map(ElementSource::Table)
    }
}

/// Element i is `start + i * step`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Iota {
    #[serde(default = "zero")]
    pub start: Quantity,
    #[serde(default = "one")]
    pub step: Quantity,
}

fn zero() -> Quantity {
    Quantity::Number(Number::Int(0))
}

fn one() -> Quantity {
    Quantity::Number(Number::Int(1))
}

/// Random elements from `low` up to `high`, which is not included.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Uniform {
    #[serde(default = "zero")]
    pub low: Quantity,
    #[serde(default = "one")]
    pub high: Quantity,
    #[serde(default = "zero")]
    pub seed: Quantity,
}

/// An `expect`: a source of elements, with tolerances.
pub(super) struct Expect {
    /// The source. `None` unless the text names exactly one.
    pub source: Option<ElementSource>,
    pub rtol: f64,
    pub atol: f64,
}

/// A table of an `expect`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectTable {
    npy: Option<String>,
    fill: Option<Quantity>,
    iota: Option<Iota>,
    uniform: Option<Uniform>,
    values: Option<Vec<Quantity>>,
    expr: Option<Text>,
    #[serde(default)]
    rtol: f64,
    #[serde(default)]
    atol: f64,
}

/// A text that is an expression.
struct Text(Expr);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Expr::parse(&text).map(Text).map_err(D::Error::custom)
    }
}

impl From<ExpectTable> for Expect {
    fn from(table: ExpectTable) -> Self {
        let tables = [
            table.npy.map(SourceTable::Npy),
            table.fill.map(SourceTable::Fill),
            table.iota.map(SourceTable::Iota),
            table.uniform.map(SourceTable::Uniform),
            table.values.map(SourceTable::Values),
        ];
        let tables = tables.into_iter().flatten().map(ElementSource::Table);
        let mut sources = tables.chain(table.expr.map(|Text(expr)| ElementSource::Expr(expr)));
        let first = sources.next();
        Expect {
            source: if sources.next().is_none() { first } else { None },
            rtol: table.rtol,
            atol: table.atol,
        }
    }
}

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExpectVisitor)
    }
}

struct ExpectVisitor;

impl<'de> Visitor<'de> for ExpectVisitor {
    type Value = Expect;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an expression such as \"2.0 * x + y\", or a table such as { fill = 1 }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Expect, E> {
        Ok(Expect {
            source: Some(SourceVisitor.visit_str(text)?),
            rtol: 0.0,
            atol: 0.0,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Expect, A::Error> {
        ExpectTable::deserialize(MapAccessDeserializer::new(map)).map(Expect::from)
    }
}

/// A table `[[launch]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    pub entry: Option<String>,
    pub grid: Dim3,
    pub block: Dim3,
    #[serde(default = "zero")]
    pub dynamic_shared_bytes: Quantity,
    pub cluster: Option<Dim3>,
    #[serde(default)]
    pub args: Vec<Arg>,
}

/// Sizes in x, y, z. The text gives one to three.
#[derive(Clone)]
pub(super) struct Dim3(pub [Quantity; 3]);

impl<'de> Deserialize<'de> for Dim3 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Dim3Visitor)
    }
}

struct Dim3Visitor;

impl<'de> Visitor<'de> for Dim3Visitor {
    type Value = Dim3;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one size or a list of one to three, each from 1 to 4294967295 or an expression")
    }

    // The TOML reader passes an integer as i64 if it fits.
    fn visit_i64<E: Error>(self, size: i64) -> Result<Dim3, E> {
        let x = u32::try_from(size).ok().filter(|&x| x > 0);
        let x = x.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(size), &self))?;
        Ok(Dim3([i64::from(x).into(), one(), one()]))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Dim3, E> {
        let size = Quantity::parse(text).map_err(E::custom)?;
        Ok(Dim3([size, one(), one()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Dim3, A::Error> {
        let mut sizes = [one(), one(), one()];
        let mut n = 0;
        while let Some(size) = list.next_element()? {
            let place = sizes.get_mut(n).ok_or_else(|| A::Error::invalid_length(n + 1, &self))?;
            *place = size;
            n += 1;
        }
        if n == 0 {
            return Err(A::Error::invalid_length(0, &self));
        }
        Ok(Dim3(sizes))
    }
}

/// An argument: a buffer's name, or a value.
pub(super) enum Arg {
    Buffer(String),
    Scalar(Dtype, Quantity),
    Bytes(String),
    Struct(Vec<Arg>),
    Image(Image),
    TensorMap(TensorMap),
}

/// `{ tensor_map = { buffer = "x", tile = [32, 32], swizzle = 128 } }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TensorMap {
    pub buffer: String,
    pub tile: Vec<Quantity>,
    // 0 means no swizzle.
    #[serde(default)]
    pub swizzle: u32,
}

/// A texture or surface of a buffer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Image {
    pub buffer: String,
    #[serde(default)]
    pub address: ImageAddress,
    #[serde(default)]
    pub filter: ImageFilter,
    #[serde(default)]
    pub normalized: bool,
    #[serde(default)]
    pub read: ImageRead,
    // 0 if left out. The image reader takes 0 as 1.
    #[serde(default)]
    pub layers: u32,
}

/// The address mode: the texel of a coordinate outside the image.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ImageAddress {
    #[default]
    Clamp,
    Wrap,
    Mirror,
    Border,
}

/// The filter mode.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ImageFilter {
    #[default]
    Point,
    Linear,
}

/// The read mode of integer texels.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ImageRead {
    #[default]
    Element,
    Normalized,
}

/// The keys of an argument table, such as `f32` in `{ f32 = 2.0 }`.
const ARG_KEYS: &[&str] = &[
    "i8",
    "u8",
    "i16",
    "u16",
    "i32",
    "u32",
    "i64",
    "u64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "bytes",
    "struct",
    "texture",
    "surface",
    "tensor_map",
];

impl<'de> Deserialize<'de> for Arg {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgVisitor)
    }
}

struct ArgVisitor;

impl<'de> Visitor<'de> for ArgVisitor {
    type Value = Arg;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a buffer's name, { dtype = value }, { bytes = \"00ff\" }, { struct = [...] }, { tensor_map = {...} }, \
             { texture = {...} } or { surface = {...} }",
        )
    }

    fn visit_str<E>(self, name: &str) -> Result<Arg, E> {
        Ok(Arg::Buffer(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arg, A::Error> {
        let kind = map.next_key::<String>()?;
        let kind = kind.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let arg = match kind.as_str() {
            "bytes" => Arg::Bytes(map.next_value()?),
            "struct" => Arg::Struct(map.next_value()?),
            "texture" | "surface" => Arg::Image(map.next_value()?),
            "tensor_map" => Arg::TensorMap(map.next_value()?),
            name => {
                let dtype = Dtype::of_name(name).ok_or_else(|| A::Error::unknown_variant(name, ARG_KEYS))?;
                Arg::Scalar(dtype, map.next_value()?)
            }
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(arg),
            Some(_) => Err(A::Error::invalid_length(2, &self)),
        }
    }
}
