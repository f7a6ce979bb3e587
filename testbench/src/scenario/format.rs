//! The TOML text of a scenario, key by key. This module only parses: `resolve` checks names, and `draft` checks sizes.
//!
//! ```toml
//! title = "y = a x + y"              # optional
//! claim = "…"                        # optional: one sentence that the scenario proves
//! ptx = "saxpy.ptx"                  # relative to this file
//! gpu = "h100-sxm5"                  # optional: a preset's name or file; --gpu wins
//!
//! [buffers.x]                        # device buffers by name; [globals.NAME] sets a module variable.
//!                                    # A name must be a plain file name. All data must fit the GPU's memory.
//! dtype = "f32"                      # i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64
//! shape = [1024]
//! init = { npy = "x.npy" }           # or "zeros", { fill = 1.0 }, { iota = { start = 0, step = 1 } },
//!                                    # { uniform = { low = 0.0, high = 1.0, seed = 7 } }, { values = [1, 2] }.
//!                                    # Default: zeros for a buffer, the program's bytes for a module variable.
//! expect = { npy = "y.npy", rtol = 1e-5, atol = 1e-6 }   # any source but "zeros"; exact without rtol and atol.
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
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::dtype::{Dtype, Number};

/// The parsed text of a scenario.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub title: Option<String>,
    pub claim: Option<String>,
    pub ptx: String,
    pub gpu: Option<String>,
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
            let init = match &buffer.init {
                Some(ElementSource::Npy(path)) => Some(path),
                _ => None,
            };
            let expect = buffer.expect.as_ref().and_then(|expect| expect.npy.as_ref());
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
    pub shape: Vec<u64>,
    pub init: Option<ElementSource>,
    pub expect: Option<Expect>,
}

/// The source of a buffer's elements.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ElementSource {
    Npy(String),
    Zeros,
    Fill(Number),
    Iota(Iota),
    Uniform(Uniform),
    Values(Vec<Number>),
}

/// Element i is `start + i * step`.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Iota {
    #[serde(default = "zero")]
    pub start: Number,
    #[serde(default = "one")]
    pub step: Number,
}

fn zero() -> Number {
    Number::Int(0)
}

fn one() -> Number {
    Number::Int(1)
}

/// Random elements from `low` up to `high`, which is not included.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Uniform {
    #[serde(default = "zero")]
    pub low: Number,
    #[serde(default = "one")]
    pub high: Number,
    #[serde(default)]
    pub seed: u64,
}

/// An `expect`: a source of elements, with tolerances.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    npy: Option<String>,
    fill: Option<Number>,
    iota: Option<Iota>,
    uniform: Option<Uniform>,
    values: Option<Vec<Number>>,
    #[serde(default)]
    pub rtol: f64,
    #[serde(default)]
    pub atol: f64,
}

impl Expect {
    /// The source of the expected elements. `None` unless the text names exactly one.
    pub fn source(self) -> Option<ElementSource> {
        let mut sources = [
            self.npy.map(ElementSource::Npy),
            self.fill.map(ElementSource::Fill),
            self.iota.map(ElementSource::Iota),
            self.uniform.map(ElementSource::Uniform),
            self.values.map(ElementSource::Values),
        ]
        .into_iter()
        .flatten();
        let first = sources.next();
        if sources.next().is_none() { first } else { None }
    }
}

/// A table `[[launch]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    pub entry: Option<String>,
    pub grid: Dim3,
    pub block: Dim3,
    #[serde(default)]
    pub dynamic_shared_bytes: u32,
    pub cluster: Option<Dim3>,
    #[serde(default)]
    pub args: Vec<Arg>,
}

/// Sizes in x, y, z. The text gives one to three.
#[derive(Clone, Copy)]
pub(super) struct Dim3(pub [u32; 3]);

impl Default for Dim3 {
    fn default() -> Self {
        Dim3([1; 3])
    }
}

impl<'de> Deserialize<'de> for Dim3 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Dim3Visitor)
    }
}

struct Dim3Visitor;

impl<'de> Visitor<'de> for Dim3Visitor {
    type Value = Dim3;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one size or a list of one to three, each from 1 to 4294967295")
    }

    // The TOML reader passes an integer as i64 if it fits.
    fn visit_i64<E: Error>(self, size: i64) -> Result<Dim3, E> {
        let x = u32::try_from(size).ok().filter(|&x| x > 0);
        let x = x.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(size), &self))?;
        Ok(Dim3([x, 1, 1]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Dim3, A::Error> {
        let mut sizes = [1; 3];
        let mut n = 0;
        while let Some(size) = list.next_element::<u32>()? {
            if n == 3 || size == 0 {
                return Err(A::Error::custom(format!("expected {}", Expecting(&self))));
            }
            sizes[n] = size;
            n += 1;
        }
        if n == 0 {
            return Err(A::Error::invalid_length(0, &self));
        }
        Ok(Dim3(sizes))
    }
}

/// Displays the `expecting` text of a visitor, for custom errors.
struct Expecting<'a, V>(&'a V);

impl<'de, V: Visitor<'de>> fmt::Display for Expecting<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}

/// An argument: a buffer's name, or a value.
pub(super) enum Arg {
    Buffer(String),
    Scalar(Dtype, Number),
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
    pub tile: Vec<u32>,
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
