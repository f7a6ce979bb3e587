//! The arguments of a launch, as the text gives them.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::elements::Address;
use super::{Quantity, zero};
use crate::scenario::dtype::Dtype;

/// An argument: a buffer's name, or a value.
pub(in crate::scenario) enum Arg {
    Buffer(String),
    Address(Address),
    Scalar(Dtype, Quantity),
    Bytes(String),
    Struct(Vec<Arg>),
    Image(Image),
    TensorMap(TensorMap),
}

/// `{ tensor_map = { buffer = "x", tile = [32, 32], swizzle = 128 } }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct TensorMap {
    pub buffer: String,
    pub tile: Vec<Quantity>,
    // 0 means no swizzle.
    #[serde(default)]
    pub swizzle: u32,
    // Empty for 1 everywhere.
    #[serde(default)]
    pub steps: Vec<u8>,
    #[serde(default)]
    pub fill: TileFill,
    pub im2col: Option<Corners>,
}

/// The value of elements outside a tensor.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::scenario) enum TileFill {
    #[default]
    Zero,
    Nan,
}

/// The corners of the bounding box of an im2col map: depth, height, width, as many as the buffer has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Corners {
    pub lower: Vec<i16>,
    pub upper: Vec<i16>,
}

/// A texture or surface of a buffer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Image {
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
    #[serde(default)]
    pub order: ImageOrder,
}

/// The address mode: the texel of a coordinate outside the image.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::scenario) enum ImageAddress {
    #[default]
    Clamp,
    Wrap,
    Mirror,
    Border,
}

/// The order of the texels in the buffer.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::scenario) enum ImageOrder {
    #[default]
    Rows,
    Blocks,
}

/// The filter mode.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::scenario) enum ImageFilter {
    #[default]
    Point,
    Linear,
}

/// The read mode of integer texels.
#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::scenario) enum ImageRead {
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
    "address",
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
            "a buffer's name, { dtype = value }, { address = \"x\" }, { bytes = \"00ff\" }, { struct = [...] }, { tensor_map = {...} }, \
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
            // The only tables with two keys.
            "address" => return address(map.next_value()?, None, map),
            // Keys come in the order of the text, so `offset` may be first.
            "offset" => {
                let offset = map.next_value()?;
                let key = map.next_key::<String>()?;
                return match key.as_deref() {
                    Some("address") => address(map.next_value()?, Some(offset), map),
                    _ => Err(A::Error::missing_field("address")),
                };
            }
            "bytes" => Arg::Bytes(map.next_value()?),
            "struct" => Arg::Struct(map.next_value()?),
            "texture" | "surface" => Arg::Image(map.next_value()?),
            "tensor_map" => Arg::TensorMap(map.next_value()?),
            name => {
                let dtype = Dtype::of_name(name).ok_or_else(|| A::Error::unknown_variant(name, ARG_KEYS))?;
                Arg::Scalar(dtype, map.next_value()?)
            }
        };
        // An argument has one value, so a second key is a mistake.
        match map.next_key::<IgnoredAny>()? {
            None => Ok(arg),
            Some(_) => Err(A::Error::invalid_length(2, &self)),
        }
    }
}

/// Reads the rest of `{ address = "x", offset = 64 }`.
fn address<'de, A: MapAccess<'de>>(to: String, offset: Option<Quantity>, mut map: A) -> Result<Arg, A::Error> {
    let offset = match (offset, map.next_key::<String>()?.as_deref()) {
        (None, Some("offset")) => map.next_value()?,
        (offset, None) => offset.unwrap_or_else(zero),
        (_, Some(key)) => return Err(A::Error::unknown_field(key, &["address", "offset"])),
    };
    Ok(Arg::Address(Address { to, offset }))
}
