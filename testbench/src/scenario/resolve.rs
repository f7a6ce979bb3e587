//! Resolves the text of a scenario: generates elements and expectations, and finds the buffers of arguments.

use std::collections::BTreeMap;

use super::dtype::Dtype;
use super::elements::{self, Source};
use super::files::Files;
use super::format::ElementSource;
use super::quantity::Constants;
use super::{Arg, Buffer, Fault, Layout, ScenarioError, Tiles, data, format, image, nearest};

/// Generates the buffers of a table: initial elements. The caller adds the expected ones.
pub(super) fn buffers<F: FnOnce(Fault) -> ScenarioError>(
    texts: &BTreeMap<String, format::Buffer>,
    table: &str,
    context: &Context<'_>,
    at: impl Fn(&str) -> F,
) -> Result<Vec<Buffer>, ScenarioError> {
    let is_variable = table == "globals";
    let read = |(name, text): (&String, &format::Buffer)| {
        let layout = context.layout(text).map_err(at(&format!("{table}.{name}.shape")))?;
        let init = match &text.init {
            None if is_variable => Vec::new(),
            init => {
                let init = init.as_ref().unwrap_or(&ElementSource::Zeros);
                let at = at(&format!("{table}.{name}.init"));
                context.bytes(init, &layout).map_err(at)?
            }
        };
        Ok(Buffer {
            name: name.clone(),
            layout,
            init,
            expect: None,
        })
    };
    texts.iter().map(read).collect()
}

/// The initial elements of a buffer, for expressions.
pub(super) fn source(buffer: &Buffer) -> Source<'_> {
    Source {
        name: &buffer.name,
        dtype: buffer.layout.dtype,
        bytes: &buffer.init,
    }
}

/// What the text of a buffer may refer to.
pub(super) struct Context<'a> {
    pub files: &'a Files,
    pub constants: &'a Constants,
}

impl Context<'_> {
    /// Evaluates type and shape of a buffer.
    pub fn layout(&self, buffer: &format::Buffer) -> Result<Layout, Fault> {
        let size = |size| self.constants.size(size, 0, u64::MAX);
        let shape = buffer.shape.iter().map(size).collect::<Result<_, _>>()?;
        Ok(Layout {
            dtype: buffer.dtype,
            shape,
        })
    }

    /// Generates initial elements, or expected ones that name no other buffer.
    pub fn bytes(&self, source: &ElementSource, layout: &Layout) -> Result<Vec<u8>, Fault> {
        data::check_room(layout.bytes())?;
        match source {
            ElementSource::Zeros => Ok(vec![0; layout.bytes() as usize]),
            ElementSource::Reference => Err(Fault::ReferenceAsInit),
            ElementSource::Expr(expr) => elements::bytes(expr, layout, 0, self.constants, &[]),
            ElementSource::Table(table) => data::bytes(table, layout, self.files, self.constants),
        }
    }
}

/// Checks tolerances: finite and not negative. With `rtol` at 1 or more, a buffer of zeros would pass for any expectation.
pub(super) fn check_tolerances(rtol: f64, atol: f64) -> Result<(), Fault> {
    let is_sound = |value: &f64| value.is_finite() && *value >= 0.0;
    match [rtol, atol].into_iter().find(|value| !is_sound(value)) {
        Some(value) => Err(Fault::BadTolerance { value }),
        None if rtol >= 1.0 => Err(Fault::BadRelative { value: rtol }),
        None => Ok(()),
    }
}

/// True if some finite number of the type fails the expectation of this element. Otherwise `expect` tests nothing.
pub(super) fn can_miss(dtype: Dtype, want: &[u8], rtol: f64, atol: f64) -> bool {
    let want = dtype.read(want).value();
    let (least, greatest) = dtype.bounds();
    let distance = (want - least).max(greatest - want);
    // Only an equal value passes for an infinity or a NaN.
    !want.is_finite() || distance > atol + rtol * want.abs()
}

/// Resolves the arguments of a launch.
pub(super) fn args(args: Vec<format::Arg>, buffers: &[Buffer], constants: &Constants) -> Result<Vec<Arg>, Fault> {
    let read = |arg| read_arg(arg, buffers, constants);
    args.into_iter().map(read).collect()
}

fn read_arg(arg: format::Arg, buffers: &[Buffer], constants: &Constants) -> Result<Arg, Fault> {
    let (dtype, quantity) = match arg {
        format::Arg::Buffer(name) => return find_buffer(name, buffers),
        format::Arg::Bytes(hex) => return read_hex(&hex).map(Arg::Bytes),
        format::Arg::Image(image) => return image::read(image, buffers).map(Arg::Image),
        format::Arg::Struct(fields) => return args(fields, buffers, constants).map(Arg::Struct),
        format::Arg::TensorMap(map) => return read_map(map, buffers, constants),
        format::Arg::Scalar(dtype, quantity) => (dtype, quantity),
    };
    let mut bytes = Vec::new();
    data::append(dtype, &mut bytes, constants.number(&quantity)?)?;
    Ok(Arg::Scalar(dtype, bytes))
}

/// Resolves a tensor map. It has one to five dimensions, and its tiles have as many. A size of a tile is 1 to 256, and a row is a
/// multiple of 16 bytes.
fn read_map(map: format::TensorMap, buffers: &[Buffer], constants: &Constants) -> Result<Arg, Fault> {
    let Arg::Buffer(buffer) = find_buffer(map.buffer, buffers)? else {
        unreachable!("a buffer's name gives a buffer")
    };
    let size = |size| constants.size(size, 0, u32::MAX.into()).map(|size| size as u32);
    let tile = map.tile.iter().map(size).collect::<Result<Vec<u32>, _>>()?;
    let layout = &buffers[buffer].layout;
    let element = layout.dtype.bytes() as u8;
    let shape: Option<Vec<u32>> = layout.shape.iter().map(|&n| u32::try_from(n).ok()).collect();
    let swizzle = [0, 32, 64, 128].iter().position(|&bytes| bytes == map.swizzle);
    let row = tile.last().map_or(0, |&n| n.saturating_mul(element.into()));
    match (shape, swizzle) {
        (Some(shape), Some(swizzle))
            if (1..=5).contains(&shape.len())
                && shape.len() == tile.len()
                && tile.iter().all(|n| (1..=256).contains(n))
                && row.is_multiple_of(16)
                && (swizzle == 0 || row <= map.swizzle) =>
        {
            Ok(Arg::TensorMap(Tiles {
                buffer,
                shape,
                tile,
                swizzle: swizzle as u8,
                element,
            }))
        }
        _ => Err(Fault::BadTiles {
            shape: layout.shape.clone(),
            tile,
            swizzle: map.swizzle,
        }),
    }
}

pub(super) fn find_buffer(name: String, buffers: &[Buffer]) -> Result<Arg, Fault> {
    let found = buffers.iter().position(|buffer| buffer.name == name);
    found.map(Arg::Buffer).ok_or_else(|| Fault::UnknownBuffer {
        nearest: nearest(&name, buffers.iter().map(|buffer| buffer.name.as_str())),
        name,
    })
}

fn read_hex(hex: &str) -> Result<Vec<u8>, Fault> {
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(Fault::NotHex);
    }
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("checked to be digits");
    Ok((0..hex.len()).step_by(2).map(byte).collect())
}
