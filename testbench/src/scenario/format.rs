//! The text of a scenario, key by key; nothing is resolved or checked against anything else here.
//!
//! ```toml
//! title = "y = a x + y"              # optional
//! claim = "…"                        # optional: one sentence that the scenario proves
//! ptx = "saxpy.ptx"                  # relative to this file
//! gpu = "h100-sxm5"                  # optional: a preset's name or file; --gpu wins
//!
//! [buffers.x]                        # device buffers by name; [globals.NAME]: module variables.
//!                                    # A name is a plain file name. All data together fit the GPU's memory.
//! dtype = "f32"                      # i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64
//! shape = [1024]
//! init = { npy = "x.npy" }           # or "zeros", { fill = 1.0 }, { iota = { start = 0, step = 1 } },
//!                                    # { uniform = { low = 0.0, high = 1.0, seed = 7 } }, { values = [1, 2] }.
//!                                    # Without `init` a buffer starts as zeros. A module variable keeps the values of its program.
//! expect = { npy = "y.npy", rtol = 1e-5, atol = 1e-6 }   # any source but "zeros"; exact without rtol and atol.
//!                                    # rtol is below 1. Both are finite. Some number of the dtype must fail.
//!                                    # An npy file has exactly the bytes of its shape.
//!
//! [[launch]]                         # one or more, in order
//! entry = "saxpy"                    # optional where the module has one entry
//! grid = [4, 1, 1]                   # one to three sizes, or one integer
//! block = 256
//! dynamic_shared_bytes = 0           # optional
//! cluster = [2, 1, 1]                # optional: blocks of a cluster
//! args = ["x", "y", { f32 = 2.0 }, { u32 = 1024 }]       # { bytes = "00ff" } or { struct = ["x", { u64 = 500 }] } by value
//!                                    # { tensor_map = { buffer = "x", tile = [32, 32], swizzle = 128 } }: tiles for bulk copies;
//!                                    # swizzle is 32, 64 or 128 bytes, none if left out
//!
//!                                    # { texture = { buffer = "x" } } the handle of an image in a buffer of i8 to u32, f16 or f32, of shape
//!                                    # [width], [height, width] or [height, width, channels] (1, 2, 4); beside it, optional:
//!                                    # address = "clamp" ("wrap", "mirror", "border"), filter = "point" ("linear"),
//!                                    # normalized = false (coordinates from 0 to 1), read = "element" ("normalized": integers as 0 or -1 to 1)
//!                                    # layers = 1 (slices of an image of three dimensions, or layers, one below the other)
//!                                    # { surface = { buffer = "x" } } likewise, for suld and sust
//! [[assert]]
//! metric = "smsp__inst_executed.sum"
//! max = 1000                         # min, max, equal, each within ±2^64; launch = 0 (index) for one launch alone
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::dtype::{Dtype, Number};

/// A scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
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

impl File {
    /// Every file that it names, as it names it.
    pub fn paths(&self) -> Vec<&str> {
        let buffers = self.buffers.values().chain(self.globals.values());
        let arrays = buffers.flat_map(|buffer| {
            let init = match &buffer.init {
                Some(Source::Npy(path)) => Some(path),
                _ => None,
            };
            let expect = buffer.expect.as_ref().and_then(|expect| expect.npy.as_ref());
            init.into_iter().chain(expect)
        });
        [&self.ptx].into_iter().chain(arrays).map(String::as_str).collect()
    }
}

/// A `[buffers.NAME]` or `[globals.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Buffer {
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    pub init: Option<Source>,
    pub expect: Option<Expect>,
}

/// Where elements come from.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    Npy(String),
    Zeros,
    Fill(Number),
    Iota(Iota),
    Uniform(Uniform),
    Values(Vec<Number>),
}

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

/// A source with tolerances beside it.
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
    /// The one source, if it is exactly one.
    pub fn source(self) -> Option<Source> {
        let mut sources = [
            self.npy.map(Source::Npy),
            self.fill.map(Source::Fill),
            self.iota.map(Source::Iota),
            self.uniform.map(Source::Uniform),
            self.values.map(Source::Values),
        ]
        .into_iter()
        .flatten();
        let first = sources.next();
        if sources.next().is_none() { first } else { None }
    }
}

/// A `[[launch]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    pub entry: Option<String>,
    pub grid: Sizes,
    pub block: Sizes,
    #[serde(default)]
    pub dynamic_shared_bytes: u32,
    pub cluster: Option<Sizes>,
    #[serde(default)]
    pub args: Vec<Arg>,
}

/// Sizes in x, y, z.
#[derive(Clone, Copy)]
pub(super) struct Sizes(pub [u32; 3]);

impl Default for Sizes {
    fn default() -> Self {
        Sizes([1; 3])
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizesVisitor)
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = Sizes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one size or a list of one to three, each from 1 to 4294967295")
    }

    fn visit_i64<E: Error>(self, size: i64) -> Result<Sizes, E> {
        let x = u32::try_from(size).ok().filter(|&x| x > 0);
        let x = x.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(size), &self))?;
        Ok(Sizes([x, 1, 1]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sizes, A::Error> {
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
        Ok(Sizes(sizes))
    }
}

/// A visitor's expectation as text.
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
    #[serde(default)]
    pub swizzle: u32,
}

/// What a texture or surface is made of.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Image {
    pub buffer: String,
    #[serde(default)]
    pub address: Address,
    #[serde(default)]
    pub filter: Filter,
    #[serde(default)]
    pub normalized: bool,
    #[serde(default)]
    pub read: Read,
    #[serde(default)]
    pub layers: u32,
}

/// What lies beyond an image's edge.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Address {
    #[default]
    Clamp,
    Wrap,
    Mirror,
    Border,
}

/// Whether texels are mixed.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Filter {
    #[default]
    Point,
    Linear,
}

/// What a texel's integers become.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Read {
    #[default]
    Element,
    Normalized,
}

/// The keys of an argument that is no buffer.
const KINDS: &[&str] = &[
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
        f.write_str("a buffer's name, { dtype = value }, { bytes = \"00ff\" }, { struct = [...] }, { tensor_map = {...} }, { texture = {...} } or { surface = {...} }")
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
                let dtype = Dtype::of_name(name).ok_or_else(|| A::Error::unknown_variant(name, KINDS))?;
                Arg::Scalar(dtype, map.next_value()?)
            }
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(arg),
            Some(_) => Err(A::Error::invalid_length(2, &self)),
        }
    }
}
